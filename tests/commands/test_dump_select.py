"""`dump` finds records by what they hold, in every partition, codec and format."""

import base64
import csv
import io
import json
import re
import shutil

import pytest
from answers import assert_valid
from damage import flip
from thinned import some

from logtool.formats import control_record
from logtool.formats.record import Record


@pytest.fixture(scope="module")
def everything(scenario):
    """Return a function: each record of a log dir as a plain dict, its bytes decoded."""

    def plain(shown):
        return None if shown is None else base64.b64decode(shown["base64"])

    def of(run, log_dir):
        # A search reads these files too; a plain dump of a log dir does not.
        others = [
            path
            for end in ("deleted", "cleaned", "swap")
            for path in log_dir.glob(f"*-[0-9]*/*.log.{end}")
            if path.stat().st_size
        ]
        given = log_dir, *others
        result = run("dump", "--records", "--values", "base64", "-f", "ndjson", *given)
        return [
            {
                "place": (obj["path"], obj["offset"]),
                "partition": (obj["topic"], obj["partition"]),
                "timestamp_ms": obj["timestamp_ms"],
                "key": plain(obj["key"]),
                "value": plain(obj["value"]),
                "headers": [(plain(h["key"]), plain(h["value"])) for h in obj["headers"]],
            }
            for obj in result.of_type("record")
            if not obj["control"]
        ]

    return of


QUESTIONS = {
    "a key": (["--key", "key-0013"], lambda r: r["key"] == b"key-0013"),
    "one of two keys": (
        ["--key", "key-0013", "--key", "hex:6b65792d30303136"],
        lambda r: r["key"] in (b"key-0013", b"key-0016"),
    ),
    "no key": (["--key", "null:"], lambda r: r["key"] is None),
    "an empty key": (["--key", ""], lambda r: r["key"] == b""),
    "a tombstone": (["--value", "null:"], lambda r: r["value"] is None),
    "an empty value": (["--value", "utf8:"], lambda r: r["value"] == b""),
    "a value in base64": (
        ["--value", "base64:" + base64.b64encode(b"broker tombstone replica").decode()],
        lambda r: r["value"] == b"broker tombstone replica",
    ),
    "a header": (["--header", "why"], lambda r: b"why" in dict(r["headers"])),
    "a header with a value": (
        ["--header", "why=gone"], lambda r: (b"why", b"gone") in r["headers"]
    ),
    "two headers": (
        ["--header", "trace", "--header", "origin"],
        lambda r: {b"trace", b"origin"} <= set(dict(r["headers"])),
    ),
    "a word": (
        ["--grep", "tombstone"],
        lambda r: any(b"tombstone" in (part or b"") for part in (r["key"], r["value"])),
    ),
    "an expression": (
        ["--grep", "^key-00[12].$"],
        lambda r: any(re.search(b"^key-00[12].$", p or b"") for p in (r["key"], r["value"])),
    ),
    "two expressions": (
        ["--grep", "quorum", "--grep", "(?i)LEDGER"],
        lambda r: all(w in (r["value"] or b"").lower() for w in (b"quorum", b"ledger")),
    ),
    "bytes that are no text": (["--grep", r"\xff"], lambda r: b"\xff" in (r["value"] or b"")
                               or b"\xff" in (r["key"] or b"")),
    "several at once": (
        ["--key", "key-0013", "--header", "trace", "--grep", "broker"],
        lambda r: r["key"] == b"key-0013" and b"trace" in dict(r["headers"])
        and b"broker" in r["value"],
    ),
    "a key and offsets": (
        ["--key", "key-0013", "--offset", "100..200"],
        lambda r: r["key"] == b"key-0013" and 100 <= r["place"][1] <= 200,
    ),
    "a word and times": (
        ["--grep", "leader", "--timestamp", "2023-11-14T22:13:21Z..2023-11-14"],
        lambda r: b"leader" in (r["value"] or b"") and r["timestamp_ms"] is not None
        and 1_700_000_001_000 <= r["timestamp_ms"] < 1_700_006_400_000,
    ),
}  # fmt: skip


EACH_WAY = ["a key", "no key", "a header with a value", "a word and times"]


@pytest.mark.parametrize("name", some(QUESTIONS, 5))
def test_the_records_found_are_those_that_hold_what_is_asked_for(run, scenario, everything, name):
    options, is_meant = QUESTIONS[name]
    home = scenario("4.3.1/clean")
    expected = [r["place"] for r in everything(run, home) if is_meant(r)]
    assert expected
    result = run("dump", "-f", "ndjson", *options, home)
    assert result.status == 0
    found = result.of_type("record")
    assert sorted((obj["path"], obj["offset"]) for obj in found) == sorted(expected)
    # What stands before them is there, and nothing that holds none of them.
    assert len(result.of_type("file")) == len({path for path, _ in expected})
    heads = {(obj["path"], obj["position"]) for obj in result.of_type("batch")}
    assert heads == {(obj["path"], obj["batch_position"]) for obj in found}
    assert f"{len(expected):,} record" in result.stderr


@pytest.mark.parametrize("name", some(EACH_WAY, 2))
def test_every_format_has_the_same_records(run, scenario, tmp_path, name):
    from pyarrow import parquet

    options, _ = QUESTIONS[name]
    home = scenario("4.3.1/clean")
    lines = run("dump", "-f", "ndjson", *options, home)
    expected = [(obj["path"], obj["offset"]) for obj in lines.of_type("record")]
    items = json.loads(run("dump", "--json", *options, home).stdout)["items"]
    assert items == [{k: v for k, v in obj.items() if k != "schema"} for obj in lines.objects[:-1]]
    rows = csv.DictReader(io.StringIO(run("dump", "-f", "csv", *options, home).stdout))
    assert [(row["path"], int(row["offset"])) for row in rows] == expected
    target = tmp_path / "found.parquet"
    assert run("dump", "-f", "parquet", "--output", target, *options, home).status == 0
    table = parquet.read_table(target, columns=["path", "offset"]).to_pylist()
    assert [(row["path"], row["offset"]) for row in table] == expected
    kafka = run("dump", "-f", "kafka", *options, home).stdout
    assert kafka.count("| offset: ") == len(expected)


def test_count_has_each_partition_and_all(run, scenario, everything):
    home = scenario("4.3.1/clean")
    meant = [r for r in everything(run, home) if r["value"] is None]
    by_partition = {}
    for one in meant:
        by_partition[one["partition"]] = by_partition.get(one["partition"], 0) + 1
    result = run("dump", "--value", "null:", "--count", "-f", "ndjson", home)
    counts = result.of_type("count")
    assert {(o["topic"], o["partition"]): o["records"] for o in counts if o["records"]} == (
        by_partition
    )
    assert result.of_type("total") == [
        {"type": "total", "partitions": len(by_partition), "records": len(meant)}
    ]
    table = run("dump", "--value", "null:", "--count", home)
    assert re.findall(r"\d+", table.lines[-1]) == [str(len(meant)), str(len(by_partition))]
    assert len(table.lines) == len(by_partition) + 4
    rows = list(csv.DictReader(io.StringIO(
        run("dump", "--value", "null:", "--count", "-f", "csv", home).stdout
    )))  # fmt: skip
    assert (rows[-1]["type"], rows[-1]["records"]) == ("total", str(len(meant)))


def test_count_alone_counts_what_records_would_print(run, scenario):
    home = scenario("4.3.1/clean")
    for options in ([], ["--offset", "5..40"], ["--topic", "tx*", "--timestamp", "..2026-11-20"]):
        printed = run("dump", "--records", "-f", "ndjson", *options, home).of_type("record")
        (total,) = run("dump", "--count", "-f", "ndjson", *options, home).of_type("total")
        assert total["records"] == len(printed)


def test_limit_counts_records_that_are_found(run, scenario):
    home = scenario("4.3.1/clean")
    result = run("dump", "-f", "ndjson", "--key", "key-0013", "--limit", 3, home)
    assert len(result.of_type("record")) == 3


def test_control_records_are_never_found(run, log, make_batch):
    key, value = control_record.encode_end_transaction(commit=False, coordinator_epoch=5)
    marker = make_batch(0, [Record(0, 0, key, value)], attributes=0x30, producer_id=7)
    log.write_bytes(marker + make_batch(1, [Record(0, 0, key, value)]))
    result = run("dump", "-f", "ndjson", "--key", f"hex:{key.hex()}", log)
    assert [obj["offset"] for obj in result.of_type("record")] == [1]


def test_damage_is_reported_and_what_is_sound_is_looked_through(run, damaged_log):
    result = run("dump", "-f", "ndjson", "--key", "key", damaged_log)
    assert result.status == 1
    assert [obj["offset"] for obj in result.of_type("record")] == [0, 6]
    (error,) = result.of_type("error")
    assert error["reason"] == "crc"
    counted = run("dump", "--count", "--key", "key", "-f", "ndjson", damaged_log)
    assert counted.status == 1
    assert counted.of_type("total")[0]["records"] == 2
    assert len(counted.of_type("error")) == 1


@pytest.mark.parametrize(
    ("offsets", "status"), [("0..0", 0), ("0..5", 1), ("5..6", 1), ("6..6", 1)]
)
def test_damage_behind_all_wanted_offsets_does_not_count(run, damaged_log, offsets, status):
    for more in ((), ("--records",), ("--count",)):
        result = run("dump", "-f", "ndjson", "--offset", offsets, *more, damaged_log)
        assert (result.status, len(result.of_type("error"))) == (status, status)


def test_legacy_messages_and_large_batches_are_looked_through(run, scenario, log, make_batch):
    home = scenario("1.0.2/magic-1")
    printed = run("dump", "--records", "-f", "ndjson", "--values", "hex", home).of_type("record")
    assert any(obj["crc"] is not None for obj in printed)
    key = next(obj["key"]["hex"] for obj in printed if obj["crc"] is not None and obj["key"])
    expected = [
        (o["path"], o["offset"]) for o in printed if not o["control"] and o["key"]
        and o["key"]["hex"] == key
    ]  # fmt: skip
    found = run("dump", "-f", "ndjson", "--key", f"hex:{key}", home).of_type("record")
    assert sorted((obj["path"], obj["offset"]) for obj in found) == sorted(expected)
    big = b"x" * 20_000_000
    log.write_bytes(make_batch(0, [Record(0, 0, b"big", big + b"needle")]))
    result = run("dump", "-f", "ndjson", "--values", "len", "--grep", "needle", log)
    assert [obj["offset"] for obj in result.of_type("record")] == [0]


def test_wrappers_behind_the_wanted_offsets_are_left_out(run, scenario):
    home = scenario("2.8.2/magic-1") / "old-gzip-0"
    lasts = [one["last_offset"] for one in run("dump", "-f", "ndjson", home).of_type("batch")]
    for first, last, wanted in [
        (0, lasts[0], lasts[:1]),
        (lasts[0], lasts[0] + 1, lasts[:2]),
        (lasts[0] + 1, lasts[1], lasts[1:2]),
    ]:
        offsets = f"{first}..{last}"
        found = run("dump", "-f", "ndjson", "--offset", offsets, home).of_type("batch")
        assert [one["last_offset"] for one in found] == wanted
        read = run("dump", "--records", "-f", "ndjson", "--offset", offsets, home)
        assert [one["offset"] for one in read.of_type("record")] == [*range(first, last + 1)]


def test_a_batch_beyond_the_memory_limit_is_reported(run, scenario):
    home = scenario("4.3.1/clean") / "codec-zstd-0"
    result = run("dump", "--grep", "nothing like it", "--max-batch-memory", "100", home)
    assert result.status == 4
    assert "!! limit: " in result.stdout


def test_of_no_partition_nothing_is_counted(run, scenario):
    home = scenario("4.3.1/clean")
    for options in (["--count"], ["--count", "--key", "a"], ["--key", "a"]):
        result = run("dump", *options, "--topic", "nothing", home)
        assert (result.status, result.stdout) == (4, "")
        last = result.stderr.splitlines()[-1]
        assert last.startswith(f"logtool: {home}: ")
        assert "--topic nothing" in last


def test_files_without_records_are_passed_over(run, scenario):
    index = scenario("4.3.1/clean") / "codec-none-0" / f"{0:020d}.index"
    assert run("dump", "--key", "key-0013", index).stdout == ""
    found = run("dump", "-f", "ndjson", "--key", "key-0013", index, index.with_suffix(".log"))
    assert {obj["type"] for obj in found.objects} == {"file", "batch", "record", "summary"}


def test_nothing_found_is_status_0_and_reported(run, scenario):
    home = scenario("4.3.1/clean") / "codec-none-0"
    result = run("dump", "--key", "no such key", home)
    assert (result.status, result.stdout) == (0, "")
    assert re.findall(r"\d+", result.stderr) == ["0", "360", "1"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--key", "no such key"), 0),
        (("--key", "key-0013"), 7),
        (("--key", "key-0013", "--count"), 7),
        (("--offset", "0..9"), None),
    ],
    ids=str,
)
def test_the_summary_counts_what_a_search_found(run, scenario, options, found):
    result = run("dump", *options, "-f", "ndjson", scenario("4.3.1/clean") / "codec-none-0")
    assert (result.status, result.objects[-1]["found"]) == (0, found)
    if found is not None and "--count" not in options:
        assert len(result.of_type("record")) == found
    assert_valid("dump", result.objects)


def test_a_flipped_bit_within_compressed_records_is_an_error(run, scenario, tmp_path):
    shutil.copytree(scenario("4.3.1/clean") / "codec-zstd-0", tmp_path / "codec-zstd-0")
    log = tmp_path / "codec-zstd-0" / f"{0:020d}.log"
    log.write_bytes(flip(log.read_bytes(), 700))
    result = run("dump", "-f", "ndjson", "--count", "--grep", "leader", log)
    assert result.status == 1
    assert result.of_type("error")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--key", "hex:6"], "--key hex:6: "),
        (["--value", "base64:?"], "--value base64:?: "),
        (["--header", ""], "--header : "),
        (["--grep", "("], "--grep (: "),
        (["--json-path", "order.id"], "--json-path order.id: "),
        (["--json-path", "$..id"], "--json-path $..id: "),
        (["--count", "-f", "kafka"], "--format kafka"),
        (["--count", "--limit", "3"], "--limit"),
    ],
)
def test_what_cannot_be_looked_for_is_wrong_usage(run, log, options, line):
    result = run("dump", *options, log)
    assert result.status == 2
    assert line in result.stderr.splitlines()[0]
    assert options[0] in result.stderr.splitlines()[0]


def test_the_name_of_a_header_may_be_empty(run, log, make_batch):
    headers = ([(b"", b"v")], [(b"", b"w")], [(b"n", b"v")], [])
    log.write_bytes(make_batch(0, [Record(n, headers=one) for n, one in enumerate(headers)]))
    for wanted, offsets in (("=v", [0]), ("=w", [1]), ("=", []), ("n=v", [2])):
        found = run("dump", "--header", wanted, "-f", "ndjson", log).of_type("record")
        assert [one["offset"] for one in found] == offsets
