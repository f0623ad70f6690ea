"""The output of `retention` for directories of real brokers, and for changed copies of them."""

import json
import os
import shutil
import struct
import sys
from importlib.resources import files

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from log_dir_damage import new_batch
from terminal import shown_on
from verification import set_offsets

from logtool.formats import time_index

HOUR = 3_600_000
SEGMENTS = 25


def ndjson(run, *arguments, status=0):
    result = run("retention", "-f", "ndjson", *arguments)
    assert result.status == status, result.stderr
    return result


def only(run, *arguments):
    """Return the object of the one partition that is shown."""
    (found,) = ndjson(run, *arguments).of_type("partition")
    return found


def stamps(home):
    """Return the largest timestamp of each segment, by the whole of each time index."""
    found = []
    for path in sorted(home.glob("*.timeindex")):
        entries = time_index.parse(path.read_bytes())
        found.append(int(entries.timestamps[-1]) if len(entries) else None)
    return found


@pytest.fixture
def small(copy_of):
    """Return the log dir of a broker that stopped in order; the topic has 25 segments."""
    return copy_of("4.3.1/clean")


def of_small(log_dir):
    return ["--topic", "small-segments", log_dir]


def test_every_object_keeps_the_schema(run, small):
    schema = json.loads((files("logtool.schemas") / "retention.json").read_text())
    options = ["--segments", "--with", "retention.bytes=20000", "--at", "2026-12-30"]
    document = run("retention", "--json", *options, small).document
    Draft202012Validator(schema).validate(document)
    kinds = {one["type"] for one in document["items"]}
    assert kinds == {"partition", "segment", "total"}


def test_the_age_of_each_segment_is_that_of_its_last_index_entry(run, small):
    known = stamps(small / "small-segments-0")
    at = known[-1] + 168 * HOUR - 30_000 - 300_000  # the last one is as old in the second round
    result = ndjson(run, "--segments", "--at", at, *of_small(small))
    segments = result.of_type("segment")
    assert [one["timestamp_ms"] for one in segments] == known
    assert {one["timestamp_source"] for one in segments} == {"time-index"}
    due = np.maximum.accumulate(np.array(known)) + 168 * HOUR + 1
    rounds = np.maximum(0, -(-(due - at - 30_000) // 300_000)) + 1
    assert [one["round"] for one in segments] == rounds.tolist()
    assert segments[-1]["round"] == 3
    assert segments[-1]["deleted_ms"] == at + 30_000 + 2 * 300_000


def test_a_planned_change_says_what_it_frees(run, small):
    at = stamps(small / "small-segments-0")[0]
    before = only(run, "--at", at, *of_small(small))
    assert (before["first_segments"], before["freed_bytes"]) == (0, None)
    found = only(run, "--at", at, "--with", "retention.bytes=20000", *of_small(small))
    assert found["freed_bytes"] == found["first_bytes"] <= found["bytes"] - 20_000
    assert found["bytes"] - 20_000 - found["first_bytes"] < 4096
    rows = ndjson(run, "--segments", "--at", at, *of_small(small)).of_type("segment")
    kept = rows[found["first_segments"]]
    assert found["first_offsets"] == kept["base_offset"] == found["blocked_at"]
    gone = found["deleted_first_offset"], found["deleted_last_offset"]
    assert gone == (0, kept["base_offset"] - 1)
    shown = run("retention", "--at", at, "--with", "retention.bytes=20000", *of_small(small))
    assert f"offsets 0 through {gone[1]} " in shown.stdout
    assert (before["deleted_first_offset"], before["deleted_last_offset"]) == (None, None)


@pytest.mark.parametrize("missing", ["nothing", "checkpoints", "checkpoints and snapshots"])
def test_a_log_that_goes_as_a_whole_goes_to_its_last_offset(run, small, missing):
    if missing != "nothing":
        for path in small.glob("*-checkpoint"):
            path.unlink()
    if missing == "checkpoints and snapshots":
        for path in (small / "small-segments-0").glob("*.snapshot"):
            path.unlink()
    found = only(run, "--at", "2030-01-01", *of_small(small))
    assert (found["first_segments"], found["obstacle"]) == (SEGMENTS, None)
    assert (found["deleted_first_offset"], found["deleted_last_offset"]) == (0, 899)
    assert found["first_offsets"] == 900


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ("604800000", "default")),
        (["--with", "retention.ms=5"], ("5", "option")),
    ],
)
def test_each_setting_has_its_source(run, small, words, expected):
    (_, age, _) = only(run, *words, *of_small(small))["settings"]
    assert (age["value"], age["source"]) == expected
    policy, _, _ = only(run, "--topic", "compacted.keys", small)["settings"]
    assert policy["source"] == "topic"


def test_the_broker_file_sets_rounds_and_limits(run, small, tmp_path):
    config = tmp_path / "server.properties"
    lines = ("log.initial.task.delay.ms=7", "log.retention.check.interval.ms=11",
             "log.retention.hours=1", "log.retention.bytes=5")  # fmt: skip
    config.write_text("\n".join(lines))
    result = ndjson(run, "--broker-config", config, "--at", 1000, *of_small(small))
    (found,) = result.of_type("partition")
    assert [(one["value"], one["source"]) for one in found["settings"][1:]] == [
        (str(HOUR), "file"), ("5", "file"),
    ]  # fmt: skip
    (total,) = result.of_type("total")
    assert (total["first_ms"], total["every_ms"]) == (1007, 11)


def test_a_segment_without_timestamps_has_the_age_of_its_file(run, small):
    home = small / "small-segments-0"
    for path in home.glob("*.timeindex"):
        path.write_bytes(b"")
        os.utime(path.with_suffix(".log"), (2_000_000_000, 2_000_000_000))
    found = only(run, "--at", 2_000_000_000_000 + 168 * HOUR - 60_000, *of_small(small))
    assert (found["first_segments"], found["obstacle"]) == (0, "age")
    assert found["by_mtime"] == found["segments"]
    found = only(run, "--at", 2_000_000_000_000 + 168 * HOUR, *of_small(small))
    assert found["first_segments"] == found["segments"]
    assert found["obstacle"] is None


def test_a_future_or_second_scaled_timestamp_is_found_with_its_batch(run, small):
    home = small / "idempotent_writes-0"
    (index,) = home.glob("*.timeindex")
    largest = stamps(home)[-1]
    base = ["--topic", "idempotent_writes", small]
    found = only(run, "--at", largest - HOUR, *base)
    assert found["obstacle"] == "future-timestamp"
    stamp = found["stamp"]
    assert (stamp["timestamp"], stamp["unit"]) == (largest, None)
    assert stamp["producer_id"] is not None
    assert stamp["first_offset"] <= stamp["last_offset"]
    index.write_bytes(struct.pack(">qi", largest // 1000, 0))
    found = only(run, "--at", largest, *base)
    assert (found["first_segments"], found["stamp"]["unit"]) == (1, "seconds")


def set_seconds(home, rows, *, age_ms):
    """Let segments end in a time in seconds, some time before the last write; return that time."""
    written = max(stamps(home))
    for path in sorted(home.glob("*.timeindex"))[:rows]:
        path.write_bytes(struct.pack(">qi", (written - age_ms) // 1000, 0))
    return written


def test_records_in_seconds_that_go_early_are_a_warning(run, small):
    at = set_seconds(small / "small-segments-0", 2, age_ms=HOUR)
    result = ndjson(run, "--segments", "--at", at, *of_small(small))
    (found,), rows = result.of_type("partition"), result.of_type("segment")
    early = found["early"]
    assert (early["segments"], early["bytes"]) == (2, rows[0]["size"] + rows[1]["size"])
    assert (early["first_offset"], early["last_offset"]) == (0, rows[2]["base_offset"] - 1)
    assert HOUR <= early["age_ms"] < HOUR + 1000
    assert early["newest_ms"] == at - early["age_ms"]
    assert (found["stamp"]["unit"], found["stamp"]["base_offset"]) == ("seconds", 0)
    shown = run("retention", "--at", at, *of_small(small)).stderr
    assert "log.initial.task.delay.ms=" in shown
    assert "--entity-name small-segments --alter --add-config retention.ms=-1" in shown


def test_records_that_go_early_are_named_behind_a_segment_that_is_old_enough(run, small):
    home = small / "small-segments-0"
    at = set_seconds(home, 2, age_ms=HOUR)
    old = struct.pack(">qi", (at - 169 * HOUR) // 1000, 0)
    min(home.glob("*.timeindex")).write_bytes(old)
    found = only(run, "--at", at, *of_small(small))
    first = sorted(int(path.stem) for path in home.glob("*.log"))[1:3]
    assert (found["first_segments"], found["early"]["segments"]) == (2, 1)
    assert (found["early"]["first_offset"], found["early"]["last_offset"]) == (
        first[0], first[1] - 1
    )  # fmt: skip
    shown = run("retention", "--at", at, *of_small(small)).stderr
    assert f"offsets {first[0]} through {first[1] - 1} " in shown


def test_records_in_seconds_that_are_old_enough_do_not_go_early(run, small):
    at = set_seconds(small / "small-segments-0", 2, age_ms=169 * HOUR)
    found = only(run, "--at", at, *of_small(small))
    assert (found["first_segments"], found["early"]) == (2, None)
    assert "--add-config" not in run("retention", "--at", at, *of_small(small)).stderr


def test_the_log_cleaner_deletes_early_in_a_topic_that_is_compacted_too(run, small):
    at = set_seconds(small / "small-segments-0", 1, age_ms=HOUR)
    options = ["--at", at, "--with", "cleanup.policy=compact,delete"]
    assert only(run, *options, *of_small(small))["early"]["segments"] == 1
    shown = run("retention", *options, *of_small(small)).stderr
    assert "log.cleaner.enable=false" in shown
    assert "log.initial.task.delay.ms=" not in shown


def test_on_a_narrow_terminal_the_timestamp_of_each_segment_is_shown(small, child_environment):
    """It is the reason for which a segment goes or stays."""
    words = [sys.executable, "-m", "logtool", "retention", "--segments", *map(str, of_small(small))]
    status, shown = shown_on(80, words, child_environment())
    titles = shown.split("\n", 1)[0].split()
    assert (status, {"goes", "stays", "timestamp"} <= set(titles)) == (0, True)
    assert max(map(len, shown.partition("\n\x1b")[0].splitlines())) <= 80


def test_the_next_segment_with_a_future_timestamp_is_named(run, small):
    rows = ndjson(run, "--segments", *of_small(small)).of_type("segment")
    first, second = stamps(small / "small-segments-0")[:2]
    found = only(run, "--at", first - HOUR, *of_small(small))
    assert (found["obstacle"], found["blocked_at"]) == ("future-timestamp", 0)
    assert found["behind"]["base_offset"] == rows[1]["base_offset"]
    assert found["behind"]["timestamp_ms"] == second
    found = only(run, "--at", max(stamps(small / "small-segments-0")), *of_small(small))
    assert (found["obstacle"], found["behind"]) == ("age", None)


def test_zeros_at_the_end_of_a_closed_index_are_the_year_1970(run, small):
    first = min((small / "small-segments-0").glob("*.timeindex"))
    at = max(stamps(small / "small-segments-0"))
    first.write_bytes(first.read_bytes() + bytes(12))
    found = only(run, "--at", at, *of_small(small))
    assert (found["first_segments"], found["obstacle"]) == (1, "age")


def test_without_a_metadata_log_the_row_of_the_high_watermark_counts(run, small):
    rows = ndjson(run, "--segments", *of_small(small)).of_type("segment")
    bases = [one["base_offset"] for one in rows]
    assert only(run, *of_small(small))["high_watermark"] is None
    shutil.rmtree(small / "__cluster_metadata-0")
    for watermark, gone in ((bases[3] - 1, 2), (bases[3], 3), (900, SEGMENTS)):
        set_offsets(small / "replication-offset-checkpoint", {("small-segments", 0): watermark})
        result = ndjson(run, "--at", "2030-01-01", *of_small(small))
        (found,) = result.of_type("partition")
        assert (found["high_watermark"], found["first_segments"]) == (watermark, gone)
        assert found["obstacle"] == ("high-watermark" if gone < SEGMENTS else None)
        assert result.of_type("total")[0]["topics_known"] is False


def test_a_log_start_deletes_what_lies_below_it(run, small):
    rows = ndjson(run, "--segments", *of_small(small)).of_type("segment")
    at = stamps(small / "small-segments-0")[0]
    third = rows[2]["base_offset"]
    set_offsets(small / "log-start-offset-checkpoint", {("small-segments", 0): third + 1})
    found = only(run, "--at", at, *of_small(small))
    assert (found["first_segments"], found["first_offsets"]) == (2, 0)
    assert (found["deleted_first_offset"], found["deleted_last_offset"]) == (None, None)


def test_a_killed_broker_recovers_segments_and_finds_the_same_times(run, scenario):
    home = scenario("4.3.1/killed")
    rows = ndjson(run, "--segments", "--topic", "small-segments", home).of_type("segment")
    sources = [one["timestamp_source"] for one in rows]
    assert {"time-index", "batches"} == set(sources)
    from logtool.log.opening import open_partition

    listed = open_partition(home / "small-segments-0")
    for one, segment in zip(rows, listed.segments, strict=True):
        largest = max(int(chunk.table.max_timestamp.max()) for chunk in segment.batches())
        assert one["timestamp_ms"] == largest


@pytest.mark.parametrize(
    "words",
    [
        ["--with", "retention.ms"], ["--with", "segment.bytes=5"], ["--with", "retention.ms=x"],
        ["--with", "cleanup.policy=drop"], ["--at", "soon"],
    ],
)  # fmt: skip
def test_a_wrong_option_is_a_usage_error(run, small, words):
    assert run("retention", *words, small).status == 2


def test_the_metadata_log_and_copies_are_left_out(run, small):
    names = {one["path"].rpartition("/")[2] for one in ndjson(run, small).of_type("partition")}
    assert "__cluster_metadata-0" not in names
    assert "small-segments-0" in names


@pytest.mark.parametrize("kept", [True, False], ids=["stale marker", "without the marker"])
def test_a_future_timestamp_behind_a_stale_marker_keeps_nothing(run, copy_of, kept):
    """The start trusts the marker, and the time index lacks the batch; `verify` names both."""
    home = copy_of("4.3.1/clean")
    (log,) = (home / "codec-none-0").glob("*.log")
    ahead = 4_000_000_000_000
    future = new_batch(360, b"x", base_timestamp=ahead, max_timestamp=ahead)
    log.write_bytes(log.read_bytes() + future)
    marker = home / ".kafka_cleanshutdown"
    if kept:
        late_ns = marker.stat().st_mtime_ns + 10_000_000_000
        os.utime(log, ns=(late_ns, late_ns))
    else:
        marker.unlink()
    found = run("retention", "-f", "ndjson", log.parent)
    (one,) = found.of_type("partition")
    explain = "logtool explain clean-shutdown/stale"
    assert (one["after_marker"], one["first_segments"], one["obstacle"]) == (
        (1, 1, None) if kept else (0, 0, "future-timestamp")
    )
    assert (one["stamp"]["timestamp"], one["stamp"]["counts"]) == (ahead, not kept)
    assert one["deleted_last_offset"] == (360 if kept else None)
    assert found.of_type("summary")[0]["next"] == ([explain] if kept else [])
    assert (explain in run("retention", log.parent).stderr) is kept
    codes = {one["code"] for one in run("verify", "-f", "ndjson", home).of_type("finding")}
    assert "batch/timestamp-future" in codes
    assert ("clean-shutdown/stale" in codes) is kept


def test_a_copy_without_times_has_no_stale_marker(run, copy_of):
    home = copy_of("4.3.1/clean")
    for path in (home / "meta.properties", *(home / "codec-none-0").glob("*.log")):
        os.utime(path)
    (one,) = run("retention", "-f", "ndjson", home / "codec-none-0").of_type("partition")
    assert one["after_marker"] == 0


def test_a_partition_dir_without_a_log_loses_nothing(run, small):
    for path in (small / "small-segments-0").glob("*.log"):
        path.unlink()
    found = only(run, "--at", "2030-01-01", *of_small(small))
    assert (found["segments"], found["first_segments"]) == (0, 0)
    assert (found["deleted_first_offset"], found["early"]) == (None, None)
