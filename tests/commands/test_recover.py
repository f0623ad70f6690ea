"""``logtool recover``: its output, its changes with --apply, its refusals, its exit statuses.

The tests of ``plan`` test its share too: wrong options, files that may not be read.
"""

import csv
import errno
import json
import os
import shlex
import shutil

import pytest
from answers import assert_valid, last_line, numbers, undo_dirs
from changes import count, disk_full, everything, failing, interrupt
from damage import damage_file, overwrite, remove_file
from processes import locked_by_a_process, without_rights
from recovering import POINTS, logs
from verification import set_offsets

MARKER = ".kafka_cleanshutdown"
ACCEPT = ("--accept-loss", "small-segments-0")


def recovered(result):
    """Return how many segments of each partition were recovered."""
    found = result.of_type("partition")
    return {f"{obj['topic']}-{obj['partition']}": obj["recovered_segments"] for obj in found}


def changes(result):
    """Return the actions that change a file."""
    kinds = {"truncate", "replace", "create", "remove", "rename"}
    return [one for one in result.of_type("action") if one["action"] in kinds]


def assert_refused(run, home, *words):
    """Assert that a run with --apply is refused and changes nothing; returns the result."""
    before, names = everything(home), sorted(home.parent.rglob("*"))
    result = run("recover", "-f", "ndjson", "--apply", *words, home)
    assert result.status == 5
    assert_valid("plan", result.objects)
    assert [one["reason"] for one in result.of_type("error")] == ["refused"]
    assert (everything(home), sorted(home.parent.rglob("*"))) == (before, names)
    return result


def test_after_an_orderly_stop_there_is_nothing_to_recover(run, stopped):
    result = run("recover", stopped)
    assert result.stdout == ""
    (line,) = (line for line in result.stderr.splitlines() if line.startswith(f"{stopped}: "))
    assert "--full" in line
    assert "--full" not in run("recover", "--full", stopped).stderr
    assert run("recover", "-q", stopped).stderr == ""


def test_the_changes_of_every_start_are_made_once(run, stopped):
    assert run("recover", "--apply", stopped).status == 0
    result = run("recover", "-f", "ndjson", stopped)
    assert (result.status, changes(result)) == (0, [])


def test_a_dry_run_counts_the_changes_and_writes_nothing(run, killed):
    before = everything(killed.parent)
    result = run("recover", killed)
    assert (result.status, result.stdout) == (1, "")
    count = len(changes(run("recover", "-f", "ndjson", killed)))
    assert numbers(last_line(result)) == [count]
    assert "--apply" in last_line(result)
    assert everything(killed.parent) == before


def test_with_apply_it_is_done_and_undo_puts_everything_back(run, killed):
    before = everything(killed)
    count = len(changes(run("recover", "-f", "ndjson", killed)))
    result = run("recover", "--apply", killed)
    assert result.status == 0
    (undo_dir,) = undo_dirs(killed)
    assert result.stdout.endswith(f"logtool undo --apply {undo_dir}\n")
    assert (len(result.lines), numbers(last_line(result))) == (1, [count])
    assert run("recover", killed).status == 0
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(killed) == before


def test_without_consent_to_a_loss_nothing_is_changed(run, cut):
    asked = run("recover", cut)
    assert asked.status == 1
    assert [2553, 1] in map(numbers, asked.stderr.splitlines())
    refused = assert_refused(run, cut)
    for result in (asked, refused):
        assert "--accept-loss small-segments-0" in result.stderr
    assert undo_dirs(cut) == []


def test_with_consent_records_are_lost_and_counted(run, cut):
    result = run("recover", "--apply", *ACCEPT, cut)
    assert result.status == 0
    assert [2553, 1] in map(numbers, result.stderr.splitlines())
    assert run("recover", cut).status == 0


def test_consent_for_one_partition_is_none_for_another(run, cut):
    damage_file(cut / "codec-none-0" / f"{0:020d}.log", overwrite, 70, b"\xff\xff")
    result = assert_refused(run, cut, *ACCEPT)
    assert result.stderr.splitlines()[0].endswith(" --accept-loss codec-none-0")


def test_a_log_that_does_not_load_is_left_alone_and_the_rest_is_done(run, killed):
    (killed / "codec-none-0" / "x.log").touch()
    before = everything(killed / "codec-none-0")
    result = run("recover", "-f", "ndjson", "--apply", killed)
    assert (result.status, bool(result.of_type("undo"))) == (1, True)
    outcomes = {one["topic"]: one["outcome"] for one in result.of_type("partition")}
    assert [topic for topic, outcome in outcomes.items() if outcome != "loads"] == ["codec-none"]
    assert everything(killed / "codec-none-0") == before
    again = run("recover", "-f", "ndjson", "--apply", killed)
    assert (again.status, again.of_type("undo")) == (1, [])
    (killed / "tx.mixed-0" / "x.log").touch()
    assert [[2] for line in run("recover", killed).stderr.splitlines() if numbers(line) == [2]]


def test_changed_recovery_points_are_counted(run, killed):
    for changed, topic in enumerate(("codec-none", "small-segments"), 1):
        set_offsets(killed / POINTS, {(topic, 0): 10_000})
        (line,) = (line for line in run("recover", "-v", killed).lines if POINTS in line)
        assert line.startswith(f"replace   {killed / POINTS}, ")
        assert numbers(line)[-1] == changed


def test_ndjson_has_the_undo_directory_before_the_summary(run, cut, tmp_path):
    undo_dir = tmp_path / "undo"
    result = run("recover", "-f", "ndjson", "--apply", *ACCEPT, "--undo-dir", undo_dir, cut)
    assert_valid("plan", result.objects)
    *_, undo, summary = result.objects
    assert undo == {"type": "undo", "path": str(undo_dir)}
    assert (summary["type"], summary["complete"], summary["partitions"]) == ("summary", True, 3)
    assert undo_dirs(cut) == []


def test_every_kind_of_object_keeps_to_the_schema(run, cut, tmp_path):
    (cut / "codec-none-0" / "x.log").touch()
    (cut / "unknown").mkdir()
    objects = [
        obj
        for options in ([], ["--apply"], ["--mark-clean"], ["--apply", *ACCEPT])
        for obj in run("recover", "-f", "ndjson", *options, cut, tmp_path / "tyop").objects
    ]
    assert_valid("plan", objects)
    assert {obj["type"] for obj in objects} == {"partition", "action", "undo", "error", "summary"}
    reasons = {obj["reason"] for obj in objects if obj["type"] == "error"}
    assert reasons == {"refused", "unreadable"}
    assert_valid("plan", [run("recover", "--json", cut).document])


@pytest.mark.parametrize("format", ["csv", "tsv", "markdown"])
def test_where_only_actions_have_rows_the_way_back_is_on_stderr(run, cut, format):
    result = run("recover", "-f", format, "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    assert last_line(result).endswith(f"logtool undo --apply {undo_dir}")
    assert "undo" not in result.stdout
    if format != "markdown":
        rows = list(csv.DictReader(result.lines, delimiter="," if format == "csv" else "\t"))
        assert sum(int(row["lost_records"]) for row in rows) == 2553


def test_the_way_back_can_be_typed_with_any_name(run, killed, tmp_path):
    home = tmp_path / "my data (old)"
    shutil.move(killed, home)
    before = everything(home)
    (line,) = run("recover", "--apply", home).lines
    words = shlex.split(line[line.index("logtool undo") :])
    assert run(*words[1:]).status == 0
    assert everything(home) == before


def test_from_the_checkpoint_is_the_default(run, killed):
    found = recovered(run("recover", "-f", "ndjson", killed))
    assert found == recovered(run("recover", "-f", "ndjson", "--from-checkpoint", killed))
    assert found["small-segments-0"] == 8 < len(logs(killed))


def test_from_an_offset_the_segment_that_holds_it_is_the_first(run, stopped):
    bases = [int(path.stem) for path in logs(stopped)]
    offset = bases[-3] + 1
    named = run("recover", "-f", "ndjson", "--from-offset", f"small-segments-0={offset}", stopped)
    assert recovered(named) == {"small-segments-0": 3}
    alone = run("recover", "-f", "ndjson", "--from-offset", offset, stopped / "small-segments-0")
    assert recovered(alone) == recovered(named)
    both = ("--from-offset", "small-segments-0=0", "--from-offset", "codec-none-0=0")
    found = recovered(run("recover", "-f", "ndjson", *both, stopped))
    assert found == {"codec-none-0": 1, "small-segments-0": len(bases)}


def test_a_full_recovery_reads_every_segment_also_with_the_marker(run, stopped):
    found = run("recover", "-f", "ndjson", "--full", stopped).of_type("partition")
    assert found
    assert all(obj["recovered_segments"] == obj["segments"] for obj in found)


@pytest.mark.parametrize("touched", [False, True])
def test_the_marker_of_a_clean_stop_stays_younger_than_the_logs_that_are_cut(run, stopped, touched):
    """Only if another program wrote to another log does the marker stay as it was."""
    now = 1_700_000_000
    damage_file(logs(stopped)[2], overwrite, 70, b"\xff\xff")
    for path in (*stopped.rglob("*.log"), stopped / MARKER, stopped / "meta.properties"):
        os.utime(path, (now, now))
    if touched:
        (other,) = (stopped / "codec-none-0").glob("*.log")
        os.utime(other, (now + 60, now + 60))
    content = (stopped / MARKER).read_bytes()
    result = run("recover", "--full", "--apply", *ACCEPT, stopped)
    assert result.status == 0, result.stderr
    assert (stopped / MARKER).read_bytes() == content
    found = run("verify", "-f", "ndjson", stopped).of_type("finding")
    assert ("clean-shutdown/stale" in {one["code"] for one in found}) is touched


@pytest.mark.parametrize("strategy", ["rebuild", "supplement"])
def test_either_strategy_leaves_a_log_dir_that_verifies(run, cut, strategy):
    assert run("recover", "--strategy", strategy, "--apply", *ACCEPT, cut).status == 0
    # What was acknowledged and given up stays gone, until a broker has written high watermarks.
    found = run("verify", "--fail-on", "error", "-f", "ndjson", cut)
    errors = [one["code"] for one in found.of_type("finding") if one["severity"] == "error"]
    assert errors == ["checkpoint/high-watermark-beyond-end"]


def test_cut_as_broker_empties_the_segment_in_which_offsets_go_backwards(run, killed):
    remove_file(killed / POINTS)
    log = killed / "codec-none-0" / f"{0:020d}.log"
    data = log.read_bytes()
    log.write_bytes(data + data[: int.from_bytes(data[8:12], "big") + 12])

    def at(*options):
        # An index that has an entry for each batch is where a broker sees it.
        options = ("--index-interval-bytes", 0, *options)
        (cut,) = (
            obj
            for obj in run("recover", "-f", "ndjson", *options, killed).of_type("action")
            if obj["action"] == "truncate"
        )
        return cut["position"]

    assert (at("--cut-as-broker"), at("--cut-precisely"), at()) == (0, len(data), len(data))


def test_version_interval_and_jobs_are_taken(run, killed):
    options = ("--kafka-version", "3.9", "--index-interval-bytes", 0, "-j", 2, "--max-rate", "1G")
    actions = run("recover", "-f", "ndjson", *options, killed).of_type("action")
    name = f"codec-none-0/{0:020d}.index"
    (size,) = (obj["length"] for obj in actions if obj["path"].endswith(name))
    assert size > 48


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("replication-offset-checkpoint", b"x"),
        ("cleaner-offset-checkpoint", b"0\n-1\n"),
        ("partition.metadata", b""),
        ("partition.metadata", b"0"),
    ],
)
def test_a_log_dir_that_a_broker_does_not_survive_is_not_marked_clean(run, killed, name, content):
    folder = logs(killed)[0].parent if name == "partition.metadata" else killed
    (folder / name).write_bytes(content)
    result = assert_refused(run, killed, "--mark-clean")
    named = folder.name if name == "partition.metadata" else str(folder / name)
    assert named in result.stderr
    assert not (killed / MARKER).exists()


def test_marking_replaces_unreadable_recovery_points(run, killed):
    damage_file(killed / POINTS, lambda _: b"x")
    result = run("recover", "--mark-clean", "--apply", killed)
    assert result.status == 0, result.stderr
    again = run("plan", killed)
    assert again.status == 0
    assert "recovery-point" not in again.stdout


def test_mark_clean_writes_the_marker_of_an_orderly_stop(run, killed):
    before = everything(killed)
    result = run("recover", "--apply", "--mark-clean", "-v", killed)
    assert result.status == 0
    assert [
        line for line in result.lines if line.startswith(f"create    {killed / MARKER}, 30 B: ")
    ]
    assert (killed / MARKER).read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    again = run("recover", "--mark-clean", "-f", "ndjson", killed)
    assert (again.status, changes(again)) == (0, [])
    assert all(one["clean"] for one in again.of_type("partition"))
    assert run("undo", "--apply", *undo_dirs(killed)).status == 0
    assert everything(killed) == before


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_damage_that_no_broker_would_read_keeps_it_from_being_marked_clean(run, killed, options):
    damage_file(logs(killed)[2], overwrite, 70, b"\xff\xff")
    before = everything(killed)
    result = run("recover", "--mark-clean", *options, killed)
    assert result.status == 5
    assert f"logtool: {killed}: " in result.stderr
    assert f"{logs(killed)[2]}: " in result.stderr
    assert everything(killed) == before
    assert undo_dirs(killed) == []


def test_a_log_that_may_not_be_read_keeps_it_from_being_marked_clean(killed):
    logs(killed)[2].chmod(0)
    status, stdout, _ = without_rights("recover", "--mark-clean", "-f", "ndjson", killed)
    assert status == 5
    errors = [one for one in map(json.loads, stdout.splitlines()) if one["type"] == "error"]
    assert {one["reason"] for one in errors} == {"refused", "unreadable"}


WRONG = {
    "an offset that is no number": (["--from-offset", "x"], "--from-offset x: "),
    "an offset below nothing": (["--from-offset", "-5"], "--from-offset -5: "),
    "an offset without a number": (["--from-offset", "a-0="], "--from-offset a-0=: "),
    "an offset of what is no partition": (["--from-offset", "orders=5"], "TOPIC-PARTITION"),
    "an offset of a missing partition": (["--from-offset", "orders-3=5"], "--from-offset orders-3"),
    "an offset for several partitions": (["--from-offset", "5"], "--from-offset N"),
    "an offset with a name and one without": (
        ["--from-offset", "5", "--from-offset", "codec-none-0=5"], "TOPIC-PARTITION=N",
    ),
    "an offset twice": (
        ["--from-offset", "codec-none-0=4", "--from-offset", "codec-none-0=5"], "twice",
    ),
    "two places to begin": (["--full", "--from-offset", "codec-none-0=4"], "--full"),
    "two more places to begin": (["--full", "--from-checkpoint"], "--from-checkpoint"),
    "consent for nonsense": (["--accept-loss", "nonsense"], "TOPIC-PARTITION"),
    "consent for a missing partition": (["--accept-loss", "orders-3"], "--accept-loss orders-3"),
    "consent for a partition that is not selected": (
        ["--topic", "tx*", *ACCEPT], "--accept-loss small-segments-0",
    ),
    "an unknown strategy": (["--strategy", "magic"], "--strategy"),
    "a clean mark for a part": (["--mark-clean", "--topic", "tx*"], "--mark-clean"),
    "an undo directory for two log dirs": (["--undo-dir", "undo", "other"], "--undo-dir"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_command_line_that_makes_no_sense_changes_nothing(run, cut, name):
    before = everything(cut.parent)
    options, part = WRONG[name]
    result = run("recover", "--apply", *options, cut)
    assert (result.status, result.stdout) == (2, "")
    assert part in result.stderr
    assert "'logtool recover --help'" in last_line(result)
    assert everything(cut.parent) == before


def test_options_are_checked_for_all_paths_before_the_first_is_changed(run, killed, stopped):
    before = everything(killed)
    second = stopped / "codec-none-0"
    for options in (["--mark-clean"], ["--from-offset", "0"]):
        assert run("recover", "--apply", *options, killed, second).status == 2
    assert everything(killed) == before


def test_a_partition_may_be_in_a_path_that_could_not_be_read(run, killed, tmp_path):
    result = run("recover", "--accept-loss", "orders-3", killed, tmp_path / "tyop")
    assert result.status == 4


@pytest.mark.parametrize("options", [(), ("--apply",)])
@pytest.mark.parametrize("place", ["undo", "codec-none-0/undo"])
def test_an_undo_directory_in_a_log_dir_is_refused(run, killed, options, place):
    result = run("recover", "--undo-dir", killed / place, *options, killed)
    assert (result.status, result.stdout) == (5, "")
    assert f"{killed / place}: " in result.stderr
    assert not (killed / place).exists()


def test_an_undo_directory_that_is_in_use_is_refused(run, killed, tmp_path):
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / "mine").touch()
    result = assert_refused(run, killed, "--undo-dir", tmp_path / "undo")
    assert f"{tmp_path / 'undo'}: " in result.stderr


def test_the_same_command_again_does_not_care_for_its_own_undo_directory(run, killed, tmp_path):
    command = ("recover", "--undo-dir", tmp_path / "undo", "--apply", killed)
    assert run(*command).status == 0
    again = run(*command)
    assert (again.status, again.stdout, len(again.stderr.splitlines())) == (0, "", 1)


def test_a_running_broker_is_named_and_nothing_is_changed(run, killed):
    with locked_by_a_process(killed / ".lock") as pid:
        result = assert_refused(run, killed)
    assert f"(pid {pid})" in result.stderr
    assert result.of_type("error")[0]["path"] is None


def test_one_log_dir_that_may_not_be_written_keeps_no_other_from_being_mended(
    killed, stopped, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(stopped, other / "clean")
    killed.chmod(0o555)
    (killed / ".lock").chmod(0o444)
    before = everything(killed)
    command = ("recover", "-f", "ndjson", "--apply", killed, other / "clean")
    status, stdout, stderr = without_rights(*command)
    assert status == 4
    assert f"{killed}/.lock: Permission denied" in stderr
    objects = [json.loads(line) for line in stdout.splitlines()]
    assert_valid("plan", objects)
    assert [obj["reason"] for obj in objects if obj["type"] == "error"] == ["unwritable"]
    (undo,) = (obj["path"] for obj in objects if obj["type"] == "undo")
    assert [undo] == list(map(str, undo_dirs(other / "clean")))
    assert everything(killed) == before


def test_when_time_is_over_nothing_was_changed(run, cut):
    before = everything(cut.parent)
    result = run("recover", "--apply", *ACCEPT, "--max-duration", "0.000001", cut)
    assert result.status == 6
    assert last_line(result).startswith("incomplete")
    assert everything(cut.parent) == before


def calls(run, home, tmp_path):
    """Return how many calls change something until the journal is committed, and in all."""
    copy = tmp_path / "counted" / "data"
    shutil.copytree(home, copy)
    with failing(0, lambda: None) as paths:
        run("recover", "--apply", *ACCEPT, copy)
    commit = max(i for i, path in enumerate(paths, 1) if path.name == "journal.ndjson.tmp")
    return commit + 1, len(paths)


@pytest.mark.parametrize("fault", [disk_full, interrupt])
def test_a_stop_before_the_first_change_leaves_everything_as_it_was(run, cut, tmp_path, fault):
    commit, _ = calls(run, cut, tmp_path)
    before = everything(cut)
    for number in (3, commit // 2, commit - 2):
        with failing(number, fault):
            result = run("recover", "-f", "ndjson", "--apply", *ACCEPT, cut)
        assert result.status == (4 if fault is disk_full else 130)
        assert_valid("plan", result.objects)
        assert result.of_type("undo") == []
        assert result.objects[-1]["complete"] is False
        assert everything(cut) == before
        assert undo_dirs(cut) == []


@pytest.mark.parametrize(
    ("fault", "status", "word"),
    [(disk_full, 4, os.strerror(errno.ENOSPC)), (interrupt, 130, "interrupted")],
)
def test_a_stop_half_way_shows_the_way_on_and_the_way_back(run, cut, tmp_path, fault, status, word):
    commit, last = calls(run, cut, tmp_path)
    before = everything(cut)
    with failing((commit + last) // 2, fault):
        result = run("recover", "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    assert everything(cut) != before
    assert (result.status, word in result.stderr) == (status, True)
    assert f"logtool undo --apply {undo_dir}" in result.stderr

    dry = run("recover", cut)
    assert dry.status == 1
    assert dry.lines[0].startswith(f"finish    {undo_dir}: ")

    done = run("recover", "--apply", *ACCEPT, cut)
    assert done.status == 0
    assert done.lines[0] == dry.lines[0]
    again = run("recover", "-f", "ndjson", cut)
    assert (again.status, changes(again)) == (0, [])
    assert "lacks" in {one["action"] for one in again.of_type("action")}
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(cut) == before


def test_a_half_undone_log_dir_is_not_recovered(run, cut):
    run("recover", "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    with failing(20, disk_full):
        run("undo", "--apply", undo_dir)
    result = assert_refused(run, cut)
    assert f"logtool undo --apply {undo_dir}" in result.stderr
    assert count(lambda: run("undo", "--apply", undo_dir)) > 0


def test_quiet_leaves_the_plan_the_way_back_and_the_errors(run, cut):
    refused = run("recover", "-q", "--apply", cut)
    assert len(refused.stderr.splitlines()) == 1
    done = run("recover", "-q", "--apply", *ACCEPT, cut)
    assert done.stderr == ""
    assert done.lines[-1].endswith(f" --apply {undo_dirs(cut)[0]}")


def test_a_log_without_an_index_whose_batches_are_out_of_reach_is_cut_with_consent(run, copy_of):
    """A log dir that was stopped in order: a start reads only logs that lack an index."""
    home = copy_of("4.3.1/clean") / "codec-none-0"
    log = min(home.glob("*.log"))
    odd = home / f"{8672:020d}.log"
    odd.write_bytes(log.read_bytes())
    size = odd.stat().st_size
    asked = run("recover", "-f", "ndjson", home)
    assert asked.status == 1
    (cut,) = [one for one in asked.of_type("action") if one["action"] == "truncate"]
    assert (cut["path"], cut["position"], cut["length"]) == (str(odd), 0, size)
    assert cut["lost_records"] > 0
    assert run("recover", "--apply", home).status == 5
    assert odd.stat().st_size == size
    done = run("recover", "--apply", "--accept-loss", "codec-none-0", home)
    assert done.status == 0
    assert odd.stat().st_size == 0
    assert run("recover", home).status == 0
