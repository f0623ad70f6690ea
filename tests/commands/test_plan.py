"""``logtool plan``: its output for sound and damaged log dirs, and its exit statuses."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from answers import assert_valid, last_line, numbers
from damage import append_to_file, damage_file, flip, overwrite, remove_file
from damage import cut as cut_to
from processes import interrupted, locked_by_a_process, without_rights
from recovering import POINTS, logs
from verification import batches, fingerprint, set_offsets

from logtool.startup import loads


def planned(run, *words):
    """Return the result of a plan, and the object of each of its partitions by name."""
    result = run("plan", "-f", "ndjson", *words)
    found = {f"{one['topic']}-{one['partition']}": one for one in result.of_type("partition")}
    return result, found


def actions(result):
    """Return the actions by kind."""
    kinds = {}
    for one in result.of_type("action"):
        kinds.setdefault(one["action"], []).append(one)
    return kinds


@pytest.mark.parametrize(("state", "recovered"), [("stopped", ()), ("killed", (12, 86))])
def test_a_sound_log_dir_loses_nothing(run, request, state, recovered):
    home = request.getfixturevalue(state)
    result = run("plan", home)
    assert (result.status, result.stdout) == (0, "")
    assert numbers(last_line(result)) == [3, *recovered]
    _, found = planned(run, home)
    assert sum(one["recovered_segments"] for one in found.values()) == (12 if recovered else 0)
    assert not any(one["lost_records"] or one["lost_batches"] for one in found.values())


def test_verbose_lists_the_partitions_and_every_file(run, killed):
    assert "-v" in run("plan", killed).stderr.split()
    result = run("plan", "-v", killed)
    (head,) = (line for line in result.lines if line.startswith(f"{killed}/codec-none-0: "))
    assert numbers(head) == [0, 359, 1, 1]
    assert " 31.5 KiB " in head
    at = result.lines.index(head)
    assert result.lines[at + 1].startswith(f"  recover   {0:020d}.log, 31.5 KiB: ")
    for row in (f"  replace   {0:020d}.index, 48 B: ", f"  create    {360:020d}.snapshot, 10 B: "):
        assert any(line.startswith(row) for line in result.lines[at:]), row
    assert "-v" not in result.stderr.split()


def time_reasons(result):
    """Return the lines that say why a plan has no start time."""
    return [line for line in result.stderr.splitlines() if "not estimated" in line]


def test_why_a_start_time_is_not_estimated(run, killed):
    (line,) = time_reasons(run("plan", killed))
    assert "4.0 MiB" in line
    assert "--read-rate" in line
    assert not time_reasons(run("plan", "--read-rate", "100M", killed))
    (line,) = time_reasons(run("plan", "--strategy", "supplement", killed))
    assert "--read-rate" not in line


def test_a_loss_matters_more_than_why_a_time_is_absent(run, cut):
    assert not time_reasons(run("plan", cut))
    assert len(time_reasons(run("plan", "-v", cut))) == 1


def test_a_torn_batch_is_cut_and_no_sound_record_is_lost(run, scenario):
    home = scenario("4.3.1/torn")
    result = run("plan", home)
    assert result.status == 1
    heading, row = result.lines
    assert heading.startswith(f"{home}/torn.tail-1: ")
    assert numbers(heading)[:4] == [0, 89, 1, 1]
    assert row.startswith(f"  truncate  {0:020d}.log @2976160, 1.2 MiB: ")
    (duration,) = (line for line in result.stderr.splitlines() if "12.5 MiB" in line)
    assert numbers(duration)[0] == 4  # partitions
    assert " 1 thread " in duration
    assert numbers(last_line(result)) == [4, 4, 4]
    _, found = planned(run, home)
    assert not any(one["lost_records"] or one["lost_acknowledged"] for one in found.values())


def test_a_bad_batch_costs_everything_behind_it(run, cut):
    shown = run("plan", cut)
    result, found = planned(run, cut)
    assert shown.status == result.status == 1
    heading, truncate, below, above = shown.lines
    names = [path.name for path in logs(cut)]
    base, following = int(names[2][:20]), int(names[3][:20])
    assert heading.startswith(f"{cut}/small-segments-0: ")
    assert numbers(heading) == [0, base - 1, 3, 69, 2553]
    assert truncate.startswith(f"  truncate  {names[2]} @0, 4.0 KiB: ")
    (one,) = actions(result)["truncate"]
    counts = ("lost_batches", "lost_records", "lost_bad_batches", "lost_bad_records")
    assert [one[count] for count in counts] == [13, 34 + 3, 1, 3]
    assert (one["first_offset"], one["last_offset"]) == (base, following - 1)
    assert [34, 13, 3, 1, base, following - 1] == numbers(truncate)[-6:]
    assert below.startswith(f"  remove    {names[3]} ")
    assert f" {names[-1]}, " in above
    assert ["WATERMARK" in line for line in (truncate, below, above)] == [True, True, False]
    assert found["small-segments-0"]["lost_records"] == 2553
    assert numbers(last_line(shown))[-2:] == [2553, 1]


def last_batch(home):
    """Return the log of codec-none-0, where its last batch begins, and the offsets of that."""
    log = home / "codec-none-0" / f"{0:020d}.log"
    table = batches(log)
    return log, int(table.position[-1]), int(table.base_offset[-1]), int(table.last_offset[-1])


@pytest.mark.parametrize("kept", [61, 100])
def test_a_last_batch_cut_short_was_acknowledged_if_the_high_watermark_says_so(run, killed, kept):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position + kept)
    result, found = planned(run, killed)
    assert result.status == 1
    count = last + 1 - first
    one = found["codec-none-0"]
    assert (one["lost_records"], one["lost_acknowledged"]) == (count, count)
    (truncate,) = actions(result)["truncate"]
    assert (truncate["lost_bad_batches"], truncate["lost_bad_records"]) == (1, count)
    assert (truncate["first_offset"], truncate["last_offset"]) == (first, last)
    assert truncate["below_high_watermark"] is True
    shown = run("plan", killed)
    heading, row = shown.lines
    assert (numbers(heading)[-1], numbers(row)[-4:]) == (count, [count, 1, first, last])
    assert numbers(last_line(shown))[-2:] == [count, 1]
    assert run("recover", "--apply", killed).status == 5


def test_offsets_behind_a_batch_that_is_cut_were_lost_before(run, killed):
    log = killed / "codec-none-0" / f"{0:020d}.log"
    table = batches(log)
    first, last = int(table.base_offset[-3]), int(table.last_offset[-3])
    end = int(table.last_offset[-1]) + 1
    damage_file(log, cut_to, int(table.position[-3]) + 80)
    result, found = planned(run, killed)
    one, count, gone = found["codec-none-0"], last + 1 - first, end - last - 1
    assert one["lost_records"] == count
    assert (one["lost_acknowledged"], one["lost_before"]) == (count + gone, gone)
    assert len(actions(result)["lacks"]) == 1
    shown = run("plan", killed)
    heading, *_ = shown.lines
    assert numbers(heading)[-2:] == [count, gone]
    assert numbers(last_line(shown))[-4:] == [count, 1, gone, 1]


def test_a_batch_without_a_whole_header_is_counted_in_offsets(run, killed):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position + 30)
    count = last + 1 - first
    result, found = planned(run, killed)
    one = found["codec-none-0"]
    assert (result.status, one["lost_records"], one["lost_acknowledged"]) == (1, 0, count)
    (truncate,) = actions(result)["truncate"]
    assert truncate["below_high_watermark"] is True
    shown = run("plan", killed)
    heading, _ = shown.lines
    assert (numbers(heading)[-1], heading.endswith(" offsets")) == (count, True)
    assert numbers(last_line(shown))[-2:] == [count, 1]
    assert "--accept-loss codec-none-0" in run("recover", killed).stderr


def test_a_log_that_was_cut_between_batches_lacks_acknowledged_offsets(run, killed):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position)
    count = last + 1 - first
    result, _ = planned(run, killed)
    kinds = actions(result)
    assert (result.status, len(kinds["lacks"]), "truncate" in kinds) == (1, 1, False)
    shown = run("plan", killed)
    heading, lacks = shown.lines
    assert (numbers(heading)[-1], "LOSES" in heading) == (count, False)
    assert lacks.startswith("  lacks     codec-none-0: ")
    assert first in numbers(lacks)
    assert numbers(last_line(shown))[-2:] == [count, 1]


def test_an_append_that_was_not_acknowledged_is_no_loss(run, killed):
    log, position, first, _ = last_batch(killed)
    damage_file(log, cut_to, position + 100)
    set_offsets(killed / "replication-offset-checkpoint", {("codec-none", 0): first})
    assert "LOSES" not in run("plan", killed).stdout
    one = planned(run, killed)[1]["codec-none-0"]
    assert (one["lost_acknowledged"], one["log_end_offset"]) == (0, first)


def test_a_bad_header_is_not_believed(run, killed):
    log, position, _, _ = last_batch(killed)
    damage_file(log, overwrite, position + 57, b"\x7f\xff\xff\xff")
    result, _ = planned(run, killed)
    (one,) = actions(result)["truncate"]
    assert (one["lost_bad_records"], one["below_high_watermark"]) == (0, True)


def test_both_ends_are_shown_where_recover_keeps_more_than_the_broker(run, killed):
    remove_file(killed / POINTS)
    log, _, _, last = last_batch(killed)
    data = log.read_bytes()
    log.write_bytes(data + data[: int.from_bytes(data[8:12], "big") + 12])
    # An index that has an entry for each batch is where a broker sees it.
    often = ("--index-interval-bytes", 0)
    end = last + 1
    shown = {"plan": [0, end], "recover": [0, last, 0]}
    for command, expected in shown.items():
        (heading,) = (line for line in run(command, *often, killed).lines
                      if line.startswith(f"{killed}/codec-none-0:"))  # fmt: skip
        assert numbers(heading)[: len(expected)] == expected
    found = run("recover", "--cut-as-broker", "-f", "ndjson", *often, killed).of_type("partition")
    (one,) = (p for p in found if p["broker_log_end_offset"] != p["recover_log_end_offset"])
    assert (one["log_end_offset"], one["recover_log_end_offset"]) == (0, end)


def test_damage_that_stops_a_broker_is_named(run, killed):
    (killed / "codec-none-0" / "x.log").touch()
    (killed / "unknown").mkdir()
    result, found = planned(run, killed)
    assert (result.status, found["codec-none-0"]["outcome"]) == (1, "refuses")
    root, inner = actions(result)["refuse"]
    assert (root["path"], root["topic"]) == (f"{killed}/unknown", None)
    assert (inner["topic"], "x.log" in inner["reason"]) == ("codec-none", True)
    first, heading, row = run("plan", killed).lines
    assert first.startswith(f"refuse    {killed}/unknown: ")
    assert heading.startswith(f"{killed}/codec-none-0: ")
    assert row.startswith("  refuse    codec-none-0: ")


def test_logs_that_do_not_load_are_counted(run, killed):
    for count, name in enumerate(("codec-none-0", "tx.mixed-0"), 1):
        (killed / name / "x.log").touch()
        assert numbers(last_line(run("plan", killed)))[-1] == count


def test_a_stray_log_is_not_safe(run, killed):
    (killed / "codec-none-0" / "partition.metadata").unlink()
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines[1].startswith("  stray     codec-none-0: ")
    assert "-stray" in result.lines[1]
    assert last_line(result).endswith(" stray")


def test_a_bad_index_that_no_broker_notices_makes_the_status_1(run, killed):
    index = sorted((killed / "small-segments-0").glob("*.timeindex"))[1]
    append_to_file(index, b"\x01")
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines[1].startswith(f"  unnoticed {index.name} @")


def test_a_checkpoint_that_a_broker_cannot_read_is_named_with_its_path(run, killed):
    damage_file(killed / POINTS, overwrite, 0, b"x")
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines[0].startswith(f"refuse    {killed / POINTS} @0: ")


def test_a_metadata_log_that_is_damaged_makes_no_log_stray(run, killed):
    (metadata,) = (killed / "__cluster_metadata-0").glob("*.log")
    damage_file(metadata, flip, 300)
    result = run("plan", killed)
    assert result.status == 1
    (line,) = result.lines
    assert line.startswith(f"unknown   {killed}/__cluster_metadata-0: ")


@pytest.mark.parametrize("given", ["{}", "{}/", "../data/small-segments-0", "."])
def test_a_partition_dir_is_judged_by_the_checkpoints_of_its_log_dir(run, cut, monkeypatch, given):
    whole = run("plan", "-f", "ndjson", cut).of_type("partition")
    home = cut / "small-segments-0"
    monkeypatch.chdir(home if given == "." else cut)
    (one,) = run("plan", "-f", "ndjson", given.format(home)).of_type("partition")
    expected = "../data/small-segments-0" if given.startswith("..") else str(home)
    assert one["path"] == expected
    (same,) = (obj for obj in whole if obj["topic"] == "small-segments")
    assert {**one, "path": str(home)} == {"schema": one["schema"], **same}


def test_an_empty_partition_dir_may_be_a_dot(run, killed, monkeypatch):
    shutil.rmtree(killed / "__cluster_metadata-0")
    home = killed / "new-0"
    home.mkdir()
    monkeypatch.chdir(home)
    result = run("plan", "-v", ".")
    assert result.status == 0
    assert result.lines[0].startswith(f"{home}: ")
    assert numbers(result.lines[0]) == [0]


def test_ndjson_has_partitions_with_their_actions_behind_them_then_the_summary(run, cut):
    result = run("plan", "-f", "ndjson", cut)
    assert_valid("plan", result.objects)
    first, *middle, summary = result.objects
    assert (first["schema"], first["type"]) == ("logtool.plan/1", "partition")
    # The log dir has no recovery points.
    assert {obj["type"] for obj in middle} == {"partition", "action", "finding"}
    assert (summary["type"], summary["complete"], summary["partitions"]) == ("summary", True, 3)
    (loss,) = (p for p in result.of_type("partition") if p["lost_records"])
    actions = [a for a in result.of_type("action") if a["topic"] == "small-segments"]
    assert sum(a["lost_records"] for a in actions) == loss["lost_records"]
    (truncate,) = (a for a in actions if a["action"] == "truncate")
    assert truncate["below_high_watermark"] is True
    assert (truncate["position"], truncate["path"]) == (0, str(logs(cut)[2]))


def test_json_is_one_document(run, cut):
    document = run("plan", "--json", cut).document
    assert_valid("plan", [document])
    lines = run("plan", "-f", "ndjson", cut).objects
    assert [obj["type"] for obj in document["items"]] == [obj["type"] for obj in lines[:-1]]


@pytest.mark.parametrize(("format", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_tables_for_programs_have_a_row_for_each_action(run, cut, format, delimiter):
    result = run("plan", "-f", format, cut)
    rows = list(csv.DictReader(result.lines, delimiter=delimiter))
    found = run("plan", "-f", "ndjson", cut).of_type("action")
    assert [row["path"] for row in rows] == [obj["path"] for obj in found]
    assert list(rows[0]) == [key for key in found[0] if key != "type"]


def test_markdown_is_a_table_for_a_ticket(run, cut):
    lines = run("plan", "-f", "markdown", cut).lines
    assert [word.strip() for word in lines[0].strip("|").split("|")] == [
        "action", "path", "position", "length", "lost_records", "reason",
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("| truncate")]) == 1


def test_colour_marks_losses(run, cut):
    assert "\x1b[" not in run("plan", cut).stdout
    assert "\x1b[" in run("plan", "--color", "always", cut).stdout


def test_selection_and_files_from_choose_partitions(run, killed, tmp_path):
    def named(*options):
        return list(planned(run, *options)[1])

    assert named("--topic", "codec*", killed) == ["codec-none-0"]
    assert named("--exclude-topic", "codec*", "--exclude-topic", "tx*", killed) == [
        "small-segments-0"
    ]
    assert named("--partition", 1, killed) == []
    listed = tmp_path / "list"
    listed.write_bytes(os.fsencode(killed / "tx.mixed-0") + b"\0")
    assert named("--files-from", listed, "--null") == ["tx.mixed-0"]


def test_the_time_is_that_of_the_rate_given_with_that_many_threads(run, scenario):
    home = scenario("4.3.1/torn")
    (one,) = run("plan", "-f", "ndjson", "--read-rate", "1M", home).of_type("duration")
    assert_valid("plan", [one])
    assert (one["threads"], one["bytes_per_second"]) == (1, 1 << 20)
    assert one["seconds"] == pytest.approx(one["bytes"] / (1 << 20), abs=0.05)
    assert one["seconds_low"] <= one["seconds"] <= one["seconds_high"]
    assert (one["rate_from"], one["pieces"], one["disk_bytes_per_second"]) == ("given", 0, None)
    assert one["critical"] == f"{home}/torn.tail-0"
    options = ("--read-rate", "1M", "--recovery-threads", 4)
    result = run("plan", *options, home)
    (four,) = run("plan", "-f", "ndjson", *options, home).of_type("duration")
    assert four["seconds"] == one["critical_seconds"] == four["critical_seconds"]
    (line,) = (line for line in result.stderr.splitlines() if " 4 threads " in line)
    assert " 1.0 MiB/s " in line
    assert f" {four['probe_timeout_s']} s" in line
    named = [line for line in result.stderr.splitlines() if line.startswith("- ")]
    assert [line.split(",")[0] for line in named] == [
        f"- torn.tail-{number}" for number in (0, 1, 3, 2)
    ]
    assert all(part in named[0] for part in (" 8.5 s", " 8.5 MiB ", " 1 segment "))


def test_the_time_is_a_range_of_measured_rates(run, scenario):
    (one,) = run("plan", "-f", "ndjson", scenario("4.3.1/torn")).of_type("duration")
    assert_valid("plan", [one])
    assert one["rate_from"] == "measured"
    assert one["pieces"] == 2
    assert one["bytes_per_second_low"] <= one["bytes_per_second"] <= one["bytes_per_second_high"]
    assert 0 < one["seconds_low"] <= one["seconds"] <= one["seconds_high"]
    assert one["slowest"][0]["path"] == one["critical"]
    assert all(slow["recovered_why"] == {"unflushed": 1} for slow in one["slowest"])


def test_no_more_is_read_for_the_range_where_the_rate_is_limited(run, scenario):
    options = ("plan", "-f", "ndjson", "--max-rate", "10G")
    (one,) = run(*options, scenario("4.3.1/torn")).of_type("duration")
    assert one["disk_bytes_per_second"] is None


def test_the_interval_of_indexes_is_that_of_the_topic_unless_one_is_given(run, killed):
    def sizes(*options):
        found = run("plan", "-f", "ndjson", *options, killed / "codec-none-0").of_type("action")
        return [obj["length"] for obj in found if obj["path"].endswith(f"{0:020d}.index")]

    assert sizes() == [48]
    assert sizes("--index-interval-bytes", "0")[0] > 48


def test_every_supported_version_of_kafka_is_taken(run, killed):
    """Tests of the loading show what differs between versions."""
    for version, status in (("3.9", 1), ("3.9.2", 1), ("4.3", 0), ("4.3.1", 0), ("4.4", 0)):
        assert run("plan", "--kafka-version", version, "-j", 1, killed).status == status


def test_nothing_is_rebuilt_while_the_broker_refuses_to_start(run, killed):
    def first(*words):
        lines = run("plan", *words, killed).stderr.splitlines()
        (files,) = (row for row, line in enumerate(lines) if " rebuilt or removed" in line)
        return lines[:files]

    assert first("--kafka-version", "4.3") == []
    (line,) = first("--kafka-version", "3.9")
    assert "refuses to start" in line


WRONG = {
    "an unknown option": (["--tyop"], "--tyop"),
    "an invalid version": (["--kafka-version", "abc"], "--kafka-version abc"),
    "a version that is too old": (["--kafka-version", "2.8"], "--kafka-version 2.8"),
    "a version of the future": (["--kafka-version", "5.0"], "--kafka-version 5.0"),
    "no threads": (["--recovery-threads", "0"], "--recovery-threads"),
    "no jobs": (["-j", "0"], "--jobs"),
    "an invalid rate": (["--read-rate", "fast"], "--read-rate fast"),
    "an invalid pace": (["--max-rate", "fast"], "--max-rate fast"),
    "an invalid time": (["--max-duration", "soon"], "--max-duration soon"),
    "an interval below nothing": (["--index-interval-bytes", "-1"], "--index-interval-bytes"),
    "a partition that is no number": (["--partition", "x"], "--partition"),
    "an unknown format": (["-f", "xml"], "--format"),
    "two formats": (["--json", "-f", "csv"], "--json"),
    "quiet and verbose": (["-q", "-v"], "--quiet"),
    "a list that is not there": (["--files-from", "/nonexistent/list"], "/nonexistent/list"),
    "NUL without a list": (["--null"], "--null"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_wrong_command_line_is_one_line_that_names_the_option(run, partition, command, name):
    options, part = WRONG[name]
    if command == "recover" and options[0] in ("--read-rate", "--recovery-threads"):
        part = options[0]
    result = run(command, *options, partition.parent)
    assert (result.status, result.stdout) == (2, "")
    assert part in result.stderr
    assert f"'logtool {command} --help'" in last_line(result)


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_no_path_is_a_usage_error(run, command):
    assert run(command).status == run(command, "").status == 2


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_missing_path_is_named_and_the_rest_is_looked_at(run, stopped, tmp_path, command):
    result = run(command, "-f", "ndjson", tmp_path / "tyop", stopped)
    assert result.status == 4
    assert len(result.of_type("partition")) == 3
    assert_valid("plan", result.objects)
    (error,) = result.of_type("error")
    assert (error["path"], error["reason"]) == (str(tmp_path / "tyop"), "unreadable")
    assert result.objects[-1]["complete"] is False
    assert any(f"{tmp_path / 'tyop'}: " in line for line in result.stderr.splitlines())
    assert (last_line(result).split(",")[0], numbers(last_line(result))[0]) == ("incomplete", 1)


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_file_is_no_log_dir(run, stopped, command):
    path = stopped / "meta.properties"
    result = run(command, path)
    assert result.status == 4
    assert f"{path}: " in result.stderr


@pytest.mark.parametrize("command", ["plan", "recover"])
@pytest.mark.parametrize(
    "name",
    [
        f"codec-none-0/{0:020d}.log", "codec-none-0/leader-epoch-checkpoint",
        "codec-none-0/partition.metadata", "codec-none-0",
    ],
)  # fmt: skip
def test_an_unreadable_file_is_named_and_its_partition_is_left_out(cut, command, name):
    (cut / name).chmod(0)
    status, stdout, stderr = without_rights(command, "-f", "ndjson", cut)
    (cut / name).chmod(0o755)
    assert status == 4
    assert f"{cut / name}: Permission denied" in stderr
    objects = [json.loads(line) for line in stdout.splitlines()]
    assert_valid("plan", objects)
    found = [obj["path"] for obj in objects if obj["type"] == "partition"]
    assert found == [f"{cut}/small-segments-0", f"{cut}/tx.mixed-0"]


@pytest.mark.parametrize("name", [POINTS, "meta.properties"])
def test_a_file_of_the_log_dir_that_may_not_be_read_is_named_and_costs_no_partition(cut, name):
    (cut / name).touch()
    (cut / name).chmod(0)
    status, stdout, stderr = without_rights("plan", cut)
    assert status == 4
    assert "small-segments-0" in stdout
    assert f"{cut / name}: Permission denied\n" in stderr
    last = stderr.splitlines()[-1]
    partitions = len({log.parent for log in cut.glob("[!_]*/*.log")})
    assert numbers(last)[:2] == [1, partitions]


@pytest.mark.parametrize("name", [f"{0:020d}.index", f"{0:020d}.timeindex"])
def test_an_index_that_no_broker_reads_must_be_readable_all_the_same(killed, name):
    path = killed / "small-segments-0" / name
    path.chmod(0)
    status, _, complaints = without_rights("plan", killed)
    assert status == 4
    assert f"{path}: Permission denied" in complaints


def test_a_log_dir_that_may_not_be_written_is_looked_at(killed):
    killed.chmod(0o555)
    for command, status in (("plan", 0), ("recover", 1)):
        assert without_rights(command, killed)[0] == status


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_running_broker_is_named_and_the_forecast_goes_on(run, killed, command):
    with locked_by_a_process(killed / ".lock") as pid:
        result = run(command, killed)
    assert result.status == (0 if command == "plan" else 1)
    assert result.lines[0].startswith(f"in-use    {killed}: ")
    assert pid in numbers(result.lines[0])


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_when_time_is_over_the_answer_is_incomplete(run, killed, command):
    result = run(command, "--max-duration", "0.000001", "-f", "ndjson", killed)
    assert result.status == 6
    assert result.objects[-1]["complete"] is False
    assert last_line(result).startswith("incomplete")


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_ctrl_c_ends_it_with_an_incomplete_answer(run, killed, command, monkeypatch):
    original = loads.forecast_partition

    def third(request, on_bytes, listed=None):
        if request.topic == "tx.mixed":
            raise KeyboardInterrupt
        return original(request, on_bytes, listed)

    monkeypatch.setattr(loads, "forecast_partition", third)
    result = run(command, "-f", "ndjson", killed)
    assert result.status == 130
    assert [obj["type"] for obj in result.objects][-1] == "summary"
    assert result.objects[-1]["complete"] is False
    assert len(result.of_type("partition")) == 2
    assert last_line(result).startswith("interrupted")


def test_a_signal_ends_it_too(scenario, child_environment):
    home = scenario("4.3.1/torn")
    status, lines, errors = interrupted(
        "plan", "-v", "-f", "ndjson", home, environment=child_environment()
    )
    assert (status, json.loads(lines[-1])["complete"]) == (130, False)
    assert "interrupted" in errors


@pytest.mark.parametrize("command", ["plan", "recover"])
@pytest.mark.parametrize("format", ["table", "ndjson"])
def test_a_closed_pipe_is_quiet(cut, child_environment, command, format):
    process = subprocess.Popen(
        [sys.executable, "-m", "logtool", command, "-f", format, "-v", str(cut)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=child_environment(),
    )  # fmt: skip
    process.stdout.close()
    stderr = process.stderr.read()
    assert (process.wait(60), stderr) == (141, b"")
    process.stderr.close()


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_name_cannot_write_controls_to_the_terminal(run, killed, tmp_path, command):
    home = tmp_path / "a b\x1b]0;pwn\x07\n"
    shutil.move(killed, home)
    shutil.copytree(home / "codec-none-0", home / "\x1b[31mred\n-3")
    (home / "\x1b[2Junknown").mkdir()
    for options in (["-v"], ["-f", "markdown"], ["-f", "json"], ["--color", "never"]):
        result = run(command, *options, home)
        assert "\x1b" not in result.stdout + result.stderr
    lines = run(command, "-v", home).lines
    heads = [line.partition("\\x1b[31mred\\n-3: ")[2] for line in lines]
    assert [0, 359] in [numbers(head)[:2] for head in heads]


def test_quiet_leaves_the_plan_and_the_errors(run, cut, tmp_path):
    loud = run("plan", cut, tmp_path / "tyop")
    quiet = run("plan", "-q", cut, tmp_path / "tyop")
    assert quiet.stdout == loud.stdout
    (line,) = quiet.stderr.splitlines()
    assert line.startswith(f"logtool: {tmp_path / 'tyop'}: ")


def test_the_help_names_every_exit_status(run):
    for command in ("plan", "recover"):
        text = run(command, "--help").stdout
        assert text.startswith(f"Usage: logtool {command} ")
        for status in (0, 1, 2, 4, 6, 130):
            assert f"\n    {status:<4} " in text


def test_nothing_is_written_next_to_the_log_dir_either(run, cut):
    before = fingerprint(cut.parent)
    for command in ("plan", "recover"):
        run(command, cut)
    assert fingerprint(cut.parent) == before


def test_the_log_of_a_partition_that_is_being_deleted_is_not_called_unread(run, copy_of):
    home = copy_of("4.3.1/clean")
    deleted = [path for path in home.iterdir() if path.name.endswith("-delete")]
    for path in home.iterdir():
        if path.is_dir() and path not in deleted:
            shutil.rmtree(path)
    result = run("plan", "-f", "ndjson", home)
    found = result.of_type("partition")
    assert {Path(one["path"]).name for one in found} == {path.name for path in deleted}
    assert not any(one.startswith("logtool verify") for one in result.of_type("summary")[0]["next"])
