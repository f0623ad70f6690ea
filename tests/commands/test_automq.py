"""Commands on a log dir of AutoMQ: a metadata log, and no partition next to it."""

import base64
from collections import Counter

import pytest

from logtool.formats.automq import names

SECRET = b"accessKey=a&secretKey=b"
SPELLED = [SECRET, SECRET.hex().encode()] + [
    base64.b64encode(bytes(lead) + SECRET)[4:-4] for lead in range(3)
]


@pytest.fixture
def meta(scenario):
    return scenario("automq/broker-crash") / "meta"


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("dump", ["--records"]), ("dump", ["--records", "--decode", "none"]),
        ("metadata", ["show"]), ("metadata", ["log"]), ("verify", []), ("doctor", []),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else part,
)  # fmt: skip
@pytest.mark.parametrize("form", ["table", "ndjson"])
def test_the_keys_of_the_object_store_are_never_shown(run, meta, command, options, form):
    target = meta / "__cluster_metadata-0" if command == "dump" else meta
    result = run(command, *options, "-f", form, target)
    assert result.status in (0, 1)
    printed = (result.stdout + result.stderr).encode()
    assert not [spelling for spelling in SPELLED if spelling in printed]


def test_they_are_shown_on_request(run, meta):
    result = run(
        "dump", "--records", "--show-secrets", "-f", "ndjson", meta / "__cluster_metadata-0"
    )
    assert any(spelling in result.stdout.encode() for spelling in SPELLED)


@pytest.mark.parametrize("command", ["verify", "plan"])
def test_partitions_in_a_bucket_are_not_missed(run, meta, command):
    result = run(command, "-f", "ndjson", meta)
    codes = {one["code"] for one in result.of_type("finding")}
    assert codes <= {"offset-index/not-written", "time-index/not-written"}
    summary = result.objects[-1]
    assert result.status == 0, summary
    assert not any("516" in line or "automq.version" in line for line in result.lines)


def test_streams_and_objects_are_shown(run, scenario):
    result = run("metadata", "show", "-f", "ndjson", scenario("automq/broker-clean") / "meta")
    found = {(one["kind"], one["name"]): one for one in result.of_type("entity")}
    kinds = [kind for kind, _ in found]
    assert (kinds.count("stream"), kinds.count("object"), kinds.count("wal")) == (36, 46, 1)
    stream = found["stream", "4"]
    assert (stream["topic"], stream["partition"]) == ("__automq_cluster_events", 0)
    assert (stream["state"]["start_offset"], stream["state"]["end_offset"]) == (0, 15)
    assert found["object", "26"]["state"]["state"] == "marked-destroyed"
    assert found["object", "48"]["state"] == {
        "state": "prepared", "size": 0, "composite": False, "node": None, "order": None,
    }  # fmt: skip


def test_the_history_of_an_object_is_shown(run, scenario):
    result = run("metadata", "log", "-f", "ndjson", scenario("automq/broker-clean") / "meta")
    own = ("object", "26")
    records = [one for one in result.objects if (one.get("kind"), one.get("name")) == own]
    assert {one["record"] for one in records} >= {"S3ObjectRecord", "S3StreamSetObjectRecord"}


@pytest.fixture
def node(copy_of):
    """Return a copy of the killed node, for damage."""
    return copy_of("automq/broker-crash")


def codes_of(result):
    return Counter(one["code"] for one in result.of_type("finding"))


NOT_WRITTEN = {"offset-index/not-written", "time-index/not-written"}


@pytest.mark.parametrize(
    # Those of the metadata log are added.
    ("state", "records", "more"),
    [("broker-crash", 1172 + 601, {}), ("broker-clean", 2641 + 1611, {"automq-bucket/marked": 3})],
)
def test_a_sound_bucket_has_no_finding_above_info(run, scenario, state, records, more):
    home = scenario(f"automq/{state}")
    result = run("verify", "-f", "ndjson", home / "s3", home / "meta")
    assert result.status == 0
    found = codes_of(result)
    assert {code: count for code, count in found.items() if code not in NOT_WRITTEN} == more
    summary = result.objects[-1]
    assert (summary["partitions"], summary["records"]) == (12, records)


def test_a_bucket_without_its_metadata_log_is_checked_object_by_object(run, node):
    assert run("verify", "-f", "ndjson", node / "s3").status == 0
    largest = max(
        (node / "s3").glob("[0-9a-f]*/_kafka_*/[0-9]*"), key=lambda one: one.stat().st_size
    )
    data = bytearray(largest.read_bytes())
    data[0] ^= 1
    largest.write_bytes(data)
    result = run("verify", "-f", "ndjson", node / "s3")
    assert (result.status, codes_of(result)) == (1, {"automq-object/block": 1})


def the_object(node, number):
    return node / "s3" / names.data_key("rtcdRH6ESFi-nWZAzLnP0g", number)


def the_wal(node):
    return sorted((node / "s3").rglob("wal/*"), key=lambda one: int(one.name.partition("-")[0]))


def remove_a_stream_object(node):
    the_object(node, 1).unlink()


def shorten_an_object(node):
    path = the_object(node, 0)
    path.write_bytes(path.read_bytes()[:-1])


def remove_inside_the_wal(node):
    the_wal(node)[-4].unlink()


def damage_a_record_of_the_wal(node):
    path = the_wal(node)[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"\x99")


def add_an_object(node):
    path = node / "s3" / "0ff00000" / the_object(node, 0).parent.name / "4080"
    path.parent.mkdir(parents=True)
    path.write_bytes(the_object(node, 0).read_bytes())


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (remove_a_stream_object, {"automq-bucket/missing-object", "automq-stream/hole"}),
        (shorten_an_object, {
            "automq-bucket/size", "automq-object/footer", "automq-stream/hole",
        }),
        (remove_inside_the_wal, {"automq-wal/gap"}),
        (damage_a_record_of_the_wal, {"automq-wal/record"}),
        (add_an_object, {"automq-bucket/not-referenced"}),
    ],
)  # fmt: skip
def test_each_kind_of_damage_has_its_codes(run, node, damage, expected):
    damage(node)
    result = run("verify", "-f", "ndjson", node / "s3", node / "meta")
    assert set(codes_of(result)) - NOT_WRITTEN == expected
    assert result.status == (0 if damage is add_an_object else 1)


def test_damage_in_a_bucket_is_repaired_by_no_command(run, node):
    remove_inside_the_wal(node)
    result = run("verify", node / "s3", node / "meta")
    assert "logtool explain automq-wal/gap" in result.stderr
    assert "recover" not in result.stderr


@pytest.mark.parametrize("command", ["stat", "plan", "recover", "gaps", "doctor"])
def test_other_commands_say_what_the_directory_is(run, node, command):
    result = run(command, "-f", "ndjson", node / "s3")
    (error,) = result.of_type("error")
    assert (result.status, error["reason"]) == (4, "nothing-matched")
    assert "AutoMQ" in error["message"]
