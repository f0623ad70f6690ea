"""Commands on a log dir of AutoMQ: a metadata log, and no partition next to it."""

import base64

import pytest

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
