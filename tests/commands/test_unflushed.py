"""``logtool checkpoint show``: what is not flushed, what a start reads, journals of KAFKA-615."""

import os
import re
import shutil

import pytest
from answers import assert_valid, last_line, numbers
from recovering import POINTS
from terminal import LOGTOOL, shown_on
from verification import batches

from logtool.formats import wording

NOW = ("--now", "2026-11-23T00:00:00Z")


@pytest.fixture
def killed(killed):
    """Return the killed log dir without its metadata log, which has no checkpoints."""
    shutil.rmtree(killed / "__cluster_metadata-0")
    return killed


def partitions(result):
    return {one["directory"]: one for one in result.of_type("partition")}


def test_unflushed_bytes_records_and_age_are_shown_for_each_partition(run, killed):
    result = run("checkpoint", "show", "--unflushed", *NOW, "-f", "ndjson", killed)
    assert_valid("checkpoint", result.objects)
    assert result.status == 0
    planned = {one["path"]: one for one in run("plan", "-f", "ndjson", killed).of_type("partition")}
    for name, one in partitions(result).items():
        behind = [
            (int(size), int(records), int(stamp))
            for log in sorted((killed / name).glob("*.log"))
            if log.stat().st_size
            for table in [batches(log)]
            for size, records, last, stamp in zip(
                table.size, table.record_count, table.last_offset, table.max_timestamp, strict=True
            )
            if last >= one["recovery_point"]
        ]
        assert one["unflushed_bytes"] == sum(size for size, _, _ in behind)
        assert one["unflushed_records"] == sum(records for _, records, _ in behind)
        assert one["unflushed_since_ms"] == (behind[0][2] if behind else None)
        if behind:
            assert one["unflushed_age_ms"] == 1795392000000 - behind[0][2]
        forecast = planned[str(killed / name)]
        assert one["log_end_offset"] == forecast["log_end_offset"]
        assert one["recovery_bytes"] == forecast["bytes_scanned"]
    assert partitions(result)["small-segments-0"]["unflushed_bytes"] > 0


def test_a_table_has_ages_and_sizes_and_csv_has_numbers(run, killed):
    words = ("checkpoint", "show", "--unflushed", *NOW)
    titles, _, *rows = run(*words, killed).lines
    assert titles.split() == [
        "topic", "partition", "unflushed", "records", "age", "start_reads", "would_read",
        "recovery_point", "log_end_offset", "unflushed_since",
    ]  # fmt: skip
    found = partitions(run(*words, "-f", "ndjson", killed))
    for row in rows:
        cells = dict(zip(titles.split(), re.split(r"  +", row), strict=False))
        one = found[f"{cells['topic']}-{cells['partition']}"]
        assert cells["unflushed"] == wording.size(one["unflushed_bytes"])
        if one["unflushed_age_ms"] is not None:
            assert cells["age"] == wording.duration(one["unflushed_age_ms"] / 1000)
    header, *_ = run(*words, "-f", "csv", killed).lines
    assert "unflushed_age_ms" in header.split(",")


def test_at_80_columns_fewer_columns_are_shown_and_the_rest_with_wide(killed):
    command = [LOGTOOL, "checkpoint", "show", "--unflushed", *NOW, str(killed)]
    _, shown = shown_on(80, command, os.environ)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert shown.split("\n")[0].split()[:5] == [
        "topic", "partition", "unflushed", "records", "age"
    ]  # fmt: skip
    assert "--wide" in shown
    assert "unflushed_since" in shown_on(80, [*command, "--wide"], os.environ)[1].split("\n")[0]


def test_logs_are_read_only_on_request(run, killed):
    result = run("checkpoint", "show", "-f", "ndjson", killed)
    assert_valid("checkpoint", result.objects)
    assert {one["unflushed_bytes"] for one in result.of_type("partition")} == {None}
    assert result.stderr == ""
    assert run("checkpoint", "show", *NOW, killed).status == 2


def test_a_threshold_on_unflushed_bytes_is_for_scripts(run, killed):
    found = run("checkpoint", "show", "--unflushed", "-f", "ndjson", killed).of_type("partition")
    most = max(one["unflushed_bytes"] for one in found)
    under = run("checkpoint", "show", "--max-unflushed", most, killed)
    assert (under.status, "small-segments-0" in under.stderr) == (0, False)
    over = run("checkpoint", "show", "--max-unflushed", most - 1, killed)
    assert (over.status, last_line(over).endswith(" small-segments-0")) == (1, True)


def test_smaller_segments_are_read_sooner_at_a_start(run, killed):
    def read(size):
        words = ("checkpoint", "show", "--segment-bytes", size, "-f", "ndjson", killed)
        return partitions(run(*words))

    for name, one in read("128M").items():  # each of the logs would be one segment
        total = sum(log.stat().st_size for log in (killed / name).glob("*.log"))
        assert one["recovery_bytes_if"] == total
    for one in read(1).values():
        assert one["recovery_bytes_if"] == one["unflushed_bytes"]
    small, large = read("4K")["small-segments-0"], read("16K")["small-segments-0"]
    rest = small["unflushed_bytes"]
    assert rest <= small["recovery_bytes_if"] < rest + 4096
    assert rest <= large["recovery_bytes_if"] < rest + 16384
    line = last_line(run("checkpoint", "show", "--segment-bytes", "128M", killed))
    every = sum(one["recovery_bytes_if"] for one in read("128M").values())
    assert "128.0 MiB" in line
    assert wording.size(every) in line


# KAFKA-615: "keep a text file containing: topic partition offset", appended to


JOURNAL = b"orders 0 4711\nusers 1 10\norders 0 9422\norders 0 60\n"


def journal_of(run, path, data):
    path.write_bytes(data)
    result = run("checkpoint", "show", "-f", "ndjson", path)
    assert_valid("checkpoint", result.objects)
    points = {one["topic"]: one["recovery_point"] for one in result.of_type("partition")}
    return result, points


def test_of_appended_entries_the_last_of_each_partition_counts(run, tmp_path):
    journal = tmp_path / "recovery-journal"
    result, points = journal_of(run, journal, JOURNAL)
    assert (result.status, points) == (0, {"orders": 60, "users": 10})
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"{journal}: ")
    assert numbers(first)[-3:] == [4, 2, 1]  # entries, partitions, set back


@pytest.mark.parametrize("size", range(len(JOURNAL) - len(b"orders 0 60\n") + 1, len(JOURNAL)))
def test_losing_an_entry_at_the_end_is_one_line_that_names_the_byte(run, tmp_path, size):
    result, points = journal_of(run, tmp_path / POINTS, JOURNAL[:size])
    assert (result.status, points) == (1, {"orders": 9422, "users": 10})
    (line,) = (line for line in result.stderr.splitlines() if "byte 39" in line)
    assert line.startswith(f"{tmp_path / POINTS}: ")
    assert (tmp_path / POINTS).read_bytes() == JOURNAL[:size]
