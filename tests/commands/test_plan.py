"""``logtool plan``: what it prints of sound and damaged log dirs, and how it ends."""

import csv
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files

import pytest
from damage import append_to_file, damage_file, flip, overwrite, remove_file
from damage import cut as cut_to
from jsonschema import Draft202012Validator
from processes import held, interrupted, without_rights
from verification import batches, fingerprint, set_offsets, small_log_dir

from logtool.startup import forecast

POINTS = "recovery-point-offset-checkpoint"
PARTITIONS = ("small-segments-0", "codec-none-0", "tx.mixed-0", "__cluster_metadata-0")
SCHEMA = Draft202012Validator(json.loads((files("logtool.schemas") / "plan.json").read_text()))


@pytest.fixture
def killed(scenario, tmp_path):
    """Return a log dir of three partitions whose broker was killed; no record is bad."""
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "data", *PARTITIONS)


@pytest.fixture
def clean(scenario, tmp_path):
    """Return the same three partitions after an orderly stop."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", *PARTITIONS)


@pytest.fixture
def cut(killed):
    """Return the killed log dir with a bad batch in the third of 69 segments, nothing flushed."""
    remove_file(killed / POINTS)
    damage_file(logs(killed)[2], overwrite, 70, b"\xff\xff")
    return killed


def logs(home):
    return sorted((home / "small-segments-0").glob("*.log"))


def last_line(result):
    return result.stderr.splitlines()[-1]


def assert_valid(objects):
    for obj in objects:
        assert not [error.message for error in SCHEMA.iter_errors(obj)], obj


def test_a_log_dir_that_was_stopped_in_order_loses_nothing(run, clean):
    result = run("plan", clean)
    assert (result.status, result.stdout) == (0, "")
    assert last_line(result) == "3 partitions: nothing is lost"


def test_after_a_kill_segments_are_recovered_and_nothing_is_lost(run, killed):
    result = run("plan", killed)
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr.splitlines()[0].endswith(" files are rebuilt or removed; -v lists them")
    assert last_line(result) == "3 partitions, 12 of 86 segments recovered: nothing is lost"


def test_verbose_lists_the_partitions_and_every_file(run, killed):
    result = run("plan", "-v", killed)
    head = f"{killed}/codec-none-0: offsets 0 through 359, 1 of 1 segment recovered, 31.5 KiB read"
    assert head in result.lines
    at = result.lines.index(head)
    assert result.lines[at + 1].startswith(f"  recover   {0:020d}.log, 31.5 KiB: is read from")
    assert f"  replace   {0:020d}.index, 48 B: is written anew from the log" in result.lines
    assert f"  create    {360:020d}.snapshot, 10 B: producer state at offset 360" in result.lines
    assert "see -v" not in result.stderr


def test_a_torn_batch_is_cut_and_no_sound_record_is_lost(run, scenario):
    home = scenario("4.3.1/torn")
    result = run("plan", home)
    assert result.status == 1
    heading, cut = result.lines
    assert heading.startswith(
        f"{home}/torn.tail-1: offsets 0 through 89, 1 of 1 segment recovered, "
    )
    assert cut.startswith(f"  truncate  {0:020d}.log @2976160, 1.2 MiB: the log ends where ")
    assert "12.5 MiB of 4 partitions to be read: " in result.stderr
    assert " in 1 thread at " in result.stderr
    assert "that rests on 2 stretches timed here" in result.stderr
    expected = "4 partitions, 4 of 4 segments recovered: no sound record is lost"
    assert last_line(result) == expected


def test_a_bad_batch_costs_what_stands_behind_it(run, cut):
    result = run("plan", cut)
    assert result.status == 1
    heading, truncate, below, above = result.lines
    names = [path.name for path in logs(cut)]
    base, following = int(names[2][:20]), int(names[3][:20])
    assert heading.startswith(
        f"{cut}/small-segments-0: offsets 0 through {base - 1}, 3 of 69 segments "
    )
    assert heading.endswith("read, LOSES 2,553 records")
    assert truncate.startswith(f"  truncate  {names[2]} @0, 4.0 KiB: the log ends where a batch is")
    counted = "34 records in 13 sound batches and 3 records in 1 bad batch"
    gone = f"; this loses {counted}, offsets {base} through {following - 1}"
    assert truncate.endswith(f"{gone}, BELOW THE HIGH WATERMARK")
    assert below.startswith(f"  remove    {names[3]} to ")
    assert below.endswith(", BELOW THE HIGH WATERMARK")
    assert f" to {names[-1]}, " in above
    assert "WATERMARK" not in above
    assert last_line(result).endswith(", 2,553 records lost in 1 partition")


def last_batch(home):
    """Return the log of codec-none-0, where its last batch begins, and the offsets of that."""
    log = home / "codec-none-0" / f"{0:020d}.log"
    table = batches(log)
    return log, int(table.position[-1]), int(table.base_offset[-1]), int(table.last_offset[-1])


@pytest.mark.parametrize("kept", [61, 100])
def test_a_last_batch_cut_short_was_acknowledged_if_the_high_watermark_says_so(run, killed, kept):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position + kept)
    result = run("plan", killed)
    assert result.status == 1
    count = last + 1 - first
    heading, truncate = result.lines
    assert heading.endswith(f", LOSES {count} records")
    gone = f"; this loses {count} records in 1 bad batch, offsets {first} through {last}"
    assert truncate.endswith(f"{gone}, BELOW THE HIGH WATERMARK")
    assert last_line(result).endswith(f", {count} records lost in 1 partition")
    (one,) = (p for p in run("plan", "-f", "ndjson", killed).of_type("partition")
              if p["lost_records"])  # fmt: skip
    assert (one["lost_records"], one["lost_acknowledged"]) == (count, count)
    assert run("recover", "--apply", killed).status == 5


def test_what_nobody_can_count_is_told_in_offsets(run, killed):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position + 30)
    result = run("plan", killed)
    assert result.status == 1
    heading, truncate = result.lines
    offsets = f"{last + 1 - first} acknowledged offsets"
    assert heading.endswith(f", LOSES {offsets}")
    assert truncate.endswith("; this loses records that nobody can count, BELOW THE HIGH WATERMARK")
    assert last_line(result).endswith(f", {offsets} lost in 1 partition")
    assert "to accept that: --accept-loss codec-none-0" in run("recover", killed).stderr


def test_a_log_that_was_cut_between_batches_lacks_what_was_acknowledged(run, killed):
    log, position, first, last = last_batch(killed)
    damage_file(log, cut_to, position)
    result = run("plan", killed)
    assert result.status == 1
    heading, lacks = result.lines
    offsets = f"{last + 1 - first} acknowledged offsets"
    assert heading.endswith(f", LACKS {offsets}")
    assert lacks.startswith(f"  lacks     codec-none-0: the log ends at {first}, below its high ")
    assert last_line(result).endswith(f", {offsets} were lost before, in 1 partition")


def test_an_append_that_was_not_acknowledged_is_no_loss(run, killed):
    log, position, first, _ = last_batch(killed)
    damage_file(log, cut_to, position + 100)
    path = killed / "replication-offset-checkpoint"
    set_offsets(path, {("codec-none", 0): first})
    result = run("plan", killed)
    assert "LOSES" not in result.stdout
    assert last_line(result).endswith(": no sound record is lost")


def test_a_bad_header_is_not_believed(run, killed):
    log, position, _, _ = last_batch(killed)
    damage_file(log, overwrite, position + 57, b"\x7f\xff\xff\xff")
    result = run("plan", killed)
    assert "; this loses records that nobody can count, BELOW THE HIGH WATERMARK" in result.stdout


def test_both_ends_are_told_where_recover_keeps_more_than_the_broker(run, killed):
    remove_file(killed / POINTS)
    log, _, _, last = last_batch(killed)
    data = log.read_bytes()
    log.write_bytes(data + data[: int.from_bytes(data[8:12], "big") + 12])
    # An index that has an entry for each batch is where a broker sees it.
    often = ("--index-interval-bytes", 0)

    def heading(*words):
        (found,) = (line for line in run(*words, *often, killed).lines
                    if line.startswith(f"{killed}/codec-none-0:"))  # fmt: skip
        return found

    end = last + 1
    assert f": no offsets, ends at 0 (after logtool recover the log ends at {end}), " in heading(
        "plan"
    )
    assert (
        f": offsets 0 through {end - 1} (after a broker's recovery the log ends at 0), "
        in heading("recover")
    )
    told = run("recover", "--cut-as-broker", "-f", "ndjson", *often, killed).of_type("partition")
    (one,) = (p for p in told if p["broker_log_end_offset"] != p["recover_log_end_offset"])
    assert (one["log_end_offset"], one["recover_log_end_offset"]) == (0, end)


def test_what_stops_a_broker_is_told_and_nobody_says_that_nothing_is_lost(run, killed):
    (killed / "codec-none-0" / "x.log").touch()
    (killed / "unknown").mkdir()
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines == [
        f"refuse    {killed}/unknown: expected <topic>-<partition>, found no '-'",
        f"{killed}/codec-none-0: A BROKER REFUSES TO START",
        "  refuse    codec-none-0: the name x.log has no offset",
    ]
    assert last_line(result).endswith("recovered, 1 does not load, a broker refuses to start")


def test_two_logs_that_do_not_load_are_counted_in_the_plural(run, killed):
    for name in ("codec-none-0", "tx.mixed-0"):
        (killed / name / "x.log").touch()
    assert last_line(run("plan", killed)).endswith(", 2 do not load")


def test_a_log_that_is_put_aside_is_not_said_to_be_safe(run, killed):
    (killed / "codec-none-0" / "partition.metadata").unlink()
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines[1].startswith("  stray     codec-none-0: gets a name that ends in -stray")
    assert last_line(result).endswith("segments recovered, 1 put aside as stray")


def test_a_bad_index_that_nobody_notices_makes_the_status_1(run, killed):
    index = sorted((killed / "small-segments-0").glob("*.timeindex"))[1]
    append_to_file(index, b"\x01")
    result = run("plan", killed)
    assert result.status == 1
    assert result.lines[1].startswith(f"  unnoticed {index.name} @")
    assert "stays as it is, no broker notices" in result.lines[1]


def test_a_checkpoint_that_a_broker_cannot_read_is_named_with_its_path(run, killed):
    damage_file(killed / POINTS, overwrite, 0, b"x")
    result = run("plan", killed)
    assert result.status == 1
    told = f"refuse    {killed / POINTS} @0: the broker does not start: "
    assert result.lines[0].startswith(told)


def test_a_metadata_log_that_is_damaged_makes_no_log_stray(run, killed):
    (metadata,) = (killed / "__cluster_metadata-0").glob("*.log")
    damage_file(metadata, flip, 300)
    result = run("plan", killed)
    assert result.status == 1
    (told,) = result.lines
    assert told.startswith(f"unknown   {killed}/__cluster_metadata-0: which logs are put aside")


@pytest.mark.parametrize("given", ["{}", "{}/", "../data/small-segments-0", "."])
def test_a_partition_dir_is_judged_by_the_checkpoints_beside_it(run, cut, monkeypatch, given):
    whole = run("plan", "-f", "ndjson", cut).of_type("partition")
    home = cut / "small-segments-0"
    monkeypatch.chdir(home if given == "." else cut)
    (told,) = run("plan", "-f", "ndjson", given.format(home)).of_type("partition")
    expected = "../data/small-segments-0" if given.startswith("..") else str(home)
    assert told["path"] == expected
    (same,) = (obj for obj in whole if obj["topic"] == "small-segments")
    assert {**told, "path": str(home)} == {"schema": told["schema"], **same}


def test_an_empty_partition_dir_may_be_a_dot(run, killed, monkeypatch):
    shutil.rmtree(killed / "__cluster_metadata-0")
    home = killed / "new-0"
    home.mkdir()
    monkeypatch.chdir(home)
    result = run("plan", "-v", ".")
    assert result.status == 0
    assert result.lines[0] == f"{home}: no offsets, ends at 0"


def test_ndjson_has_partitions_with_their_actions_behind_them_then_the_summary(run, cut):
    result = run("plan", "-f", "ndjson", cut)
    assert_valid(result.objects)
    first, *middle, summary = result.objects
    assert (first["schema"], first["type"]) == ("logtool.plan/1", "partition")
    assert {obj["type"] for obj in middle} == {"partition", "action"}
    assert (summary["type"], summary["complete"], summary["partitions"]) == ("summary", True, 3)
    (loss,) = (p for p in result.of_type("partition") if p["lost_records"])
    actions = [a for a in result.of_type("action") if a["topic"] == "small-segments"]
    assert sum(a["lost_records"] for a in actions) == loss["lost_records"]
    (truncate,) = (a for a in actions if a["action"] == "truncate")
    assert truncate["below_high_watermark"] is True
    assert (truncate["position"], truncate["path"]) == (0, str(logs(cut)[2]))


def test_json_is_one_document(run, cut):
    document = json.loads(run("plan", "--json", cut).stdout)
    assert_valid([document])
    lines = run("plan", "-f", "ndjson", cut).objects
    assert [obj["type"] for obj in document["items"]] == [obj["type"] for obj in lines[:-1]]


@pytest.mark.parametrize(("format", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_tables_for_programs_have_a_row_for_each_action(run, cut, format, delimiter):
    result = run("plan", "-f", format, cut)
    rows = list(csv.DictReader(result.lines, delimiter=delimiter))
    told = run("plan", "-f", "ndjson", cut).of_type("action")
    assert [row["path"] for row in rows] == [obj["path"] for obj in told]
    assert list(rows[0]) == [key for key in told[0] if key != "type"]


def test_markdown_is_a_table_for_a_ticket(run, cut):
    lines = run("plan", "-f", "markdown", cut).lines
    assert [word.strip() for word in lines[0].strip("|").split("|")] == [
        "action", "path", "position", "length", "lost_records", "reason",
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("| truncate")]) == 1


def test_colour_marks_what_goes(run, cut):
    assert "\x1b[" not in run("plan", cut).stdout
    assert "\x1b[" in run("plan", "--color", "always", cut).stdout


def test_selection_and_files_from_choose_partitions(run, killed, tmp_path):
    def named(*options):
        told = run("plan", "-f", "ndjson", *options).of_type("partition")
        return [obj["path"].rpartition("/")[2] for obj in told]

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
    assert_valid([one])
    assert (one["threads"], one["bytes_per_second"]) == (1, 1 << 20)
    assert one["seconds"] == pytest.approx(one["bytes"] / (1 << 20), abs=0.05)
    assert one["seconds_low"] <= one["seconds"] <= one["seconds_high"]
    assert (one["rate_from"], one["pieces"], one["disk_bytes_per_second"]) == ("given", 0, None)
    assert one["critical"] == f"{home}/torn.tail-0"
    options = ("--read-rate", "1M", "--recovery-threads", 4)
    result = run("plan", *options, home)
    (four,) = run("plan", "-f", "ndjson", *options, home).of_type("duration")
    assert four["seconds"] == one["critical_seconds"] == four["critical_seconds"]
    assert "in 4 threads at about 1.0 MiB/s each; let probes wait 78 s" in result.stderr
    named = [line for line in result.stderr.splitlines() if line.startswith("- ")]
    assert [line.split(",")[0] for line in named] == [
        f"- torn.tail-{number}" for number in (0, 1, 3, 2)
    ]
    assert named[0].startswith("- torn.tail-0, about 8.5 s: 8.5 MiB of 1 segment in ")


def test_the_time_is_a_range_and_says_what_it_rests_on(run, scenario):
    (one,) = run("plan", "-f", "ndjson", scenario("4.3.1/torn")).of_type("duration")
    assert_valid([one])
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
        told = run("plan", "-f", "ndjson", *options, killed / "codec-none-0").of_type("action")
        return [obj["length"] for obj in told if obj["path"].endswith(f"{0:020d}.index")]

    assert sizes() == [48]
    assert sizes("--index-interval-bytes", "0")[0] > 48


def test_the_version_of_kafka_decides_what_is_foretold(run, killed):
    """A log without a sound end is cut by either; what differs is told by tests of the loading."""
    for version in ("3.9", "3.9.2", "4.3", "4.3.1"):
        assert run("plan", "--kafka-version", version, "-j", 1, killed).status == 0


WRONG = {
    "an option that is none": (["--tyop"], "No such option"),
    "a version that is none": (["--kafka-version", "abc"], "known of 3.3, 3.7, 3.9 or 4.3 alone"),
    "a version that is too old": (["--kafka-version", "2.8"], "--kafka-version 2.8: what a start"),
    "a version never started": (["--kafka-version", "3.5"], "held against their brokers"),
    "no threads": (["--recovery-threads", "0"], "--recovery-threads"),
    "no jobs": (["-j", "0"], "--jobs"),
    "a rate that is none": (["--read-rate", "fast"], "--read-rate fast: expected a size"),
    "a pace that is none": (["--max-rate", "fast"], "--max-rate fast: expected a size"),
    "a time that is none": (["--max-duration", "soon"], "--max-duration soon: expected a time"),
    "an interval below nothing": (["--index-interval-bytes", "-1"], "--index-interval-bytes"),
    "a partition that is no number": (["--partition", "x"], "--partition"),
    "a format that is none": (["-f", "xml"], "--format"),
    "two formats": (["--json", "-f", "csv"], "contradict"),
    "quiet and verbose": (["-q", "-v"], "--quiet and --verbose contradict each other"),
    "a list that is not there": (["--files-from", "/nonexistent/list"], "cannot read --files-from"),
    "NUL without a list": (["--null"], "--null"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_command_line_that_makes_no_sense_is_told_in_a_line(run, killed, command, name):
    options, told = WRONG[name]
    if command == "recover" and options[0] in ("--read-rate", "--recovery-threads"):
        told = "No such option"
    result = run(command, *options, killed)
    assert (result.status, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.endswith(f"Try 'logtool {command} --help'.\n")


def test_no_path_is_a_usage_error(run):
    assert run("plan").status == run("plan", "").status == 2


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_path_that_is_not_there_is_named_and_the_rest_is_looked_at(run, clean, tmp_path, command):
    result = run(command, "-f", "ndjson", tmp_path / "tyop", clean)
    assert result.status == 4
    assert f"{tmp_path / 'tyop'}: No such file or directory" in result.stderr
    assert len(result.of_type("partition")) == 3
    assert_valid(result.objects)
    assert result.objects[-1]["complete"] is False
    assert last_line(result).startswith("incomplete, 1 input could not be read: ")
    assert "nothing is lost" not in result.stderr


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_a_file_is_no_log_dir(run, clean, command):
    path = clean / "meta.properties"
    result = run(command, path)
    assert result.status == 4
    assert f"{path}: expected a log dir or a partition dir" in result.stderr


@pytest.mark.parametrize("command", ["plan", "recover"])
@pytest.mark.parametrize(
    "name",
    [
        f"codec-none-0/{0:020d}.log", "codec-none-0/leader-epoch-checkpoint",
        "codec-none-0/partition.metadata", "codec-none-0",
    ],
)  # fmt: skip
def test_what_may_not_be_read_is_named_and_is_no_word_about_the_broker(cut, command, name):
    (cut / name).chmod(0)
    status, said, complaints = without_rights(command, "-f", "ndjson", cut)
    (cut / name).chmod(0o755)
    assert status == 4
    assert f"{cut / name}: Permission denied" in complaints
    objects = [json.loads(line) for line in said.splitlines()]
    assert_valid(objects)
    told = [obj["path"] for obj in objects if obj["type"] == "partition"]
    assert told == [f"{cut}/small-segments-0", f"{cut}/tx.mixed-0"]


@pytest.mark.parametrize("name", [POINTS, "meta.properties"])
def test_a_file_of_the_log_dir_that_may_not_be_read_is_named_and_costs_no_partition(cut, name):
    (cut / name).touch()
    (cut / name).chmod(0)
    status, said, complaints = without_rights("plan", cut)
    assert status == 4
    assert "small-segments-0" in said
    assert f"{cut / name}: Permission denied\n" in complaints
    last = complaints.splitlines()[-1]
    partitions = len({log.parent for log in cut.glob("[!_]*/*.log")})
    assert last.startswith(f"incomplete, 1 input could not be read: {partitions} partitions"), last


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
def test_a_broker_at_work_is_told_of_and_the_forecast_goes_on(run, killed, command):
    with held(killed / ".lock") as pid:
        result = run(command, killed)
    assert result.status == (0 if command == "plan" else 1)
    assert result.lines[0].startswith(f"in-use    {killed}: process {pid} (")
    assert "files may change while they are read" in result.lines[0]


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_when_time_is_over_it_says_so(run, killed, command):
    result = run(command, "--max-duration", "0.000001", "-f", "ndjson", killed)
    assert result.status == 6
    assert result.objects[-1]["complete"] is False
    assert last_line(result).startswith("incomplete, the time is over: ")
    assert "nothing is lost" not in result.stderr


@pytest.mark.parametrize("command", ["plan", "recover"])
def test_ctrl_c_ends_it_with_what_was_found(run, killed, command, monkeypatch):
    original = forecast.forecast_partition

    def third(request, on_bytes, listed=None):
        if request.topic == "tx.mixed":
            raise KeyboardInterrupt
        return original(request, on_bytes, listed)

    monkeypatch.setattr(forecast, "forecast_partition", third)
    result = run(command, "-f", "ndjson", killed)
    assert result.status == 130
    assert [obj["type"] for obj in result.objects][-1] == "summary"
    assert result.objects[-1]["complete"] is False
    assert len(result.of_type("partition")) == 2
    assert last_line(result).startswith("interrupted: ")


def test_a_signal_ends_it_too(scenario, child_environment):
    home = scenario("4.3.1/torn")
    status, lines, errors = interrupted(
        "plan", "-v", "-f", "ndjson", home, environment=child_environment()
    )
    assert (status, json.loads(lines[-1])["complete"]) == (130, False)
    assert "interrupted: " in errors


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
    assert [line for line in lines if "\\x1b[31mred\\n-3: offsets 0 through 359" in line]


def test_quiet_leaves_the_plan_and_the_errors(run, cut, tmp_path):
    loud = run("plan", cut, tmp_path / "tyop")
    quiet = run("plan", "-q", cut, tmp_path / "tyop")
    assert quiet.stdout == loud.stdout
    assert quiet.stderr == f"logtool: {tmp_path / 'tyop'}: No such file or directory\n"


def test_the_help_names_every_exit_status(run):
    for command in ("plan", "recover"):
        text = run(command, "--help").stdout
        assert text.startswith(f"Usage: logtool {command} [OPTIONS]")
        for status in (0, 1, 2, 4, 6, 130):
            assert f"\n    {status:<4} " in text


def test_nothing_is_written_beside_the_log_dir_either(run, cut):
    before = fingerprint(cut.parent)
    for command in ("plan", "recover"):
        run(command, cut)
    assert fingerprint(cut.parent) == before
