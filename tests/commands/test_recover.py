"""``logtool recover``: what it prints, what it does with --apply, what it refuses, how it ends.

What it shares with ``plan`` (options that make no sense, what may not be read) is tested there.
"""

import csv
import errno
import json
import os
import shlex
import shutil
from importlib.resources import files

import pytest
from changes import count, everything, failing
from damage import damage_file, overwrite, remove_file
from jsonschema import Draft202012Validator
from processes import held, without_rights
from verification import set_offsets, small_log_dir

POINTS = "recovery-point-offset-checkpoint"
MARKER = ".kafka_cleanshutdown"
PARTITIONS = ("small-segments-0", "codec-none-0", "tx.mixed-0")
ACCEPT = ("--accept-loss", "small-segments-0")
SCHEMA = Draft202012Validator(json.loads((files("logtool.schemas") / "plan.json").read_text()))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """A process that goes on, or dies, loses nothing that it wrote: fsync may be left out."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


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


def undo_dirs(home):
    return sorted(home.parent.glob(f"{home.name}.logtool-undo-*"))


def assert_valid(objects):
    for obj in objects:
        assert not [error.message for error in SCHEMA.iter_errors(obj)], obj


def recovered(result):
    """Return how many segments of each partition were recovered."""
    told = result.of_type("partition")
    return {f"{obj['topic']}-{obj['partition']}": obj["recovered_segments"] for obj in told}


def test_after_an_orderly_stop_there_is_nothing_to_recover(run, clean):
    result = run("recover", clean)
    assert result.stdout == ""
    told = f"{clean}: nothing to recover, it was stopped in order; --full does it anyway"
    assert told in result.stderr.splitlines()
    assert run("recover", "-q", clean).stderr == ""


def test_what_every_start_writes_is_written_once(run, clean):
    assert run("recover", "--apply", clean).status == 0
    result = run("recover", clean)
    assert (result.status, result.stdout) == (0, "")
    assert last_line(result) == "nothing to do"


def test_a_dry_run_says_what_is_to_be_done_and_that_nothing_was_written(run, killed):
    before = everything(killed.parent)
    result = run("recover", killed)
    assert (result.status, result.stdout) == (1, "")
    assert last_line(result).endswith(" changes to make; nothing was written; add --apply to do it")
    assert everything(killed.parent) == before


def test_with_apply_it_is_done_and_undo_puts_everything_back(run, killed):
    before = everything(killed)
    result = run("recover", "--apply", killed)
    assert result.status == 0
    (undo_dir,) = undo_dirs(killed)
    assert result.stdout == f"undo with: logtool undo --apply {undo_dir}\n"
    assert last_line(result).endswith(" changes made")
    assert run("recover", killed).stderr == "nothing to do\n"
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(killed) == before


def test_a_dry_run_of_a_loss_names_the_option_that_accepts_it(run, cut):
    result = run("recover", cut)
    assert result.status == 1
    lines = result.stderr.splitlines()
    assert "2,553 records would be lost in 1 partition" in lines
    assert "to accept that: --accept-loss small-segments-0" in lines


def test_without_consent_to_a_loss_nothing_is_changed(run, cut):
    before = everything(cut)
    result = run("recover", "--apply", cut)
    assert result.status == 5
    told = "records would be lost; to accept that: --accept-loss small-segments-0"
    assert f"logtool: {cut}: {told}" in result.stderr.splitlines()
    assert last_line(result) == "nothing was changed"
    assert everything(cut) == before
    assert undo_dirs(cut) == []


def test_with_consent_records_are_lost_and_the_number_is_told(run, cut):
    result = run("recover", "--apply", *ACCEPT, cut)
    assert result.status == 0
    assert "2,553 records lost in 1 partition" in result.stderr.splitlines()
    assert last_line(result).endswith(" changes made")
    assert run("recover", cut).status == 0


def test_consent_for_one_partition_is_none_for_another(run, cut):
    damage_file(cut / "codec-none-0" / f"{0:020d}.log", overwrite, 70, b"\xff\xff")
    before = everything(cut)
    result = run("recover", "--apply", *ACCEPT, cut)
    assert result.status == 5
    assert result.stderr.splitlines()[0].endswith("to accept that: --accept-loss codec-none-0")
    assert everything(cut) == before


def test_a_log_that_does_not_load_is_left_alone_and_the_rest_is_done(run, killed):
    (killed / "codec-none-0" / "x.log").touch()
    before = everything(killed / "codec-none-0")
    result = run("recover", "--apply", killed)
    assert result.status == 1
    assert "1 partition left alone: a broker would not load it" in result.stderr
    assert everything(killed / "codec-none-0") == before
    again = run("recover", "--apply", killed)
    assert (again.status, last_line(again)) == (1, "nothing was changed")
    (killed / "tx.mixed-0" / "x.log").touch()
    told = run("recover", killed).stderr
    assert "2 partitions left alone: a broker would not load them" in told


def test_one_recovery_point_is_told_in_the_singular(run, killed):
    set_offsets(killed / POINTS, {("codec-none", 0): 10_000})
    result = run("recover", "-v", killed)
    (line,) = (line for line in result.lines if POINTS in line)
    assert line.startswith(f"replace   {killed / POINTS}, ")
    assert line.endswith(": 1 recovery point is that of the recovered logs")
    set_offsets(killed / POINTS, {("small-segments", 0): 10_000})
    assert (
        ": 2 recovery points are those of the recovered logs" in run("recover", "-v", killed).stdout
    )


def test_ndjson_has_the_undo_directory_before_the_summary(run, cut, tmp_path):
    undo_dir = tmp_path / "undo"
    result = run("recover", "-f", "ndjson", "--apply", *ACCEPT, "--undo-dir", undo_dir, cut)
    assert_valid(result.objects)
    *_, undo, summary = result.objects
    assert undo == {"type": "undo", "path": str(undo_dir)}
    assert (summary["type"], summary["complete"], summary["partitions"]) == ("summary", True, 3)
    assert undo_dirs(cut) == []


def test_every_kind_of_object_keeps_to_the_schema(run, cut, tmp_path):
    (cut / "codec-none-0" / "x.log").touch()
    (cut / "unknown").mkdir()
    told = [
        obj
        for options in ([], ["--apply"], ["--mark-clean"], ["--apply", *ACCEPT])
        for obj in run("recover", "-f", "ndjson", *options, cut, tmp_path / "tyop").objects
    ]
    assert_valid(told)
    assert {obj["type"] for obj in told} == {"partition", "action", "undo", "error", "summary"}
    assert {obj["reason"] for obj in told if obj["type"] == "error"} == {"refused", "unreadable"}
    document = json.loads(run("recover", "--json", cut).stdout)
    assert_valid([document])


@pytest.mark.parametrize("format", ["csv", "tsv", "markdown"])
def test_where_only_actions_have_rows_the_way_back_is_on_stderr(run, cut, format):
    result = run("recover", "-f", format, "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    assert last_line(result) == f"undo with: logtool undo --apply {undo_dir}"
    assert "undo" not in result.stdout
    if format != "markdown":
        rows = list(csv.DictReader(result.lines, delimiter="," if format == "csv" else "\t"))
        assert sum(int(row["lost_records"]) for row in rows) == 2553


def test_the_way_back_can_be_typed_whatever_the_name(run, killed, tmp_path):
    home = tmp_path / "my data (old)"
    shutil.move(killed, home)
    before = everything(home)
    result = run("recover", "--apply", home)
    (line,) = result.lines
    words = shlex.split(line.removeprefix("undo with: "))
    assert run(*words[1:]).status == 0
    assert everything(home) == before


def test_from_the_checkpoint_is_the_default(run, killed):
    found = recovered(run("recover", "-f", "ndjson", killed))
    assert found == recovered(run("recover", "-f", "ndjson", "--from-checkpoint", killed))
    assert found["small-segments-0"] == 8 < len(logs(killed))


def test_from_an_offset_the_segment_that_holds_it_is_the_first(run, clean):
    bases = [int(path.stem) for path in logs(clean)]
    offset = bases[-3] + 1
    named = run("recover", "-f", "ndjson", "--from-offset", f"small-segments-0={offset}", clean)
    assert recovered(named) == {"small-segments-0": 3}
    alone = run("recover", "-f", "ndjson", "--from-offset", offset, clean / "small-segments-0")
    assert recovered(alone) == recovered(named)
    both = ("--from-offset", "small-segments-0=0", "--from-offset", "codec-none-0=0")
    found = recovered(run("recover", "-f", "ndjson", *both, clean))
    assert found == {"codec-none-0": 1, "small-segments-0": len(bases)}


def test_a_full_recovery_reads_every_segment_whatever_the_marker_says(run, clean):
    result = run("recover", "-f", "ndjson", "--full", clean)
    told = result.of_type("partition")
    assert all(obj["recovered_segments"] == obj["segments"] for obj in told)
    assert "stopped in order" not in run("recover", "--full", clean).stderr


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
    told = run("recover", "-f", "ndjson", *options, killed).of_type("action")
    (size,) = (
        obj["length"] for obj in told if obj["path"].endswith(f"codec-none-0/{0:020d}.index")
    )
    assert size > 48


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("replication-offset-checkpoint", b"x", "takes the log dir offline"),
        ("cleaner-offset-checkpoint", b"0\n-1\n", "its log cleaner ends at once"),
        ("partition.metadata", b"", "found the end of the file"),
        ("partition.metadata", b"0", "expected 'version: <number>'"),
    ],
)
def test_what_a_broker_does_not_survive_is_not_marked_clean(run, killed, name, content, says):
    folder = logs(killed)[0].parent if name == "partition.metadata" else killed
    (folder / name).write_bytes(content)
    result = run("recover", "--mark-clean", "--apply", killed)
    assert result.status == 5
    assert "cannot be marked clean" in result.stderr
    assert says in result.stderr
    assert not (killed / MARKER).exists()


def test_marking_writes_unreadable_recovery_points_anew(run, killed):
    damage_file(killed / "recovery-point-offset-checkpoint", lambda _: b"x")
    result = run("recover", "--mark-clean", "--apply", killed)
    assert result.status == 0, result.stderr
    again = run("plan", killed)
    assert again.status == 0
    assert "recovery-point" not in again.stdout


def test_mark_clean_leaves_what_an_orderly_stop_leaves(run, killed):
    before = everything(killed)
    result = run("recover", "--apply", "--mark-clean", "-v", killed)
    assert result.status == 0
    line = f"create    {killed / MARKER}, 30 B: a broker then takes the logs as they are"
    assert [told for told in result.lines if told.startswith(line)]
    assert (killed / MARKER).read_bytes() == b'{"version":0,"brokerEpoch":-1}'
    told = run("recover", "--mark-clean", killed)
    assert told.status == 0
    assert "it was stopped in order" in told.stderr
    assert run("undo", "--apply", *undo_dirs(killed)).status == 0
    assert everything(killed) == before


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_damage_that_no_broker_would_read_keeps_it_from_being_marked_clean(run, killed, options):
    damage_file(logs(killed)[2], overwrite, 70, b"\xff\xff")
    before = everything(killed)
    result = run("recover", "--mark-clean", *options, killed)
    assert result.status == 5
    told = f"logtool: {killed}: cannot be marked clean: {logs(killed)[2]}: stays as it is"
    assert told in result.stderr
    assert everything(killed) == before
    assert undo_dirs(killed) == []


def test_a_log_that_may_not_be_read_keeps_it_from_being_marked_clean(killed):
    logs(killed)[2].chmod(0)
    status, _, complaints = without_rights("recover", "--mark-clean", killed)
    assert status == 5
    assert "cannot be marked clean: not everything could be read" in complaints


WRONG = {
    "an offset that is no number": (["--from-offset", "x"], "--from-offset x: expected N or"),
    "an offset below nothing": (["--from-offset", "-5"], "--from-offset -5: expected N or"),
    "an offset without a number": (["--from-offset", "a-0="], "--from-offset a-0=: expected N"),
    "an offset of what is no partition": (
        ["--from-offset", "orders=5"], "--from-offset orders: expected TOPIC-PARTITION",
    ),
    "an offset of a partition that is not there": (
        ["--from-offset", "orders-3=5"], "--from-offset orders-3: no such partition is selected",
    ),
    "an offset for several partitions": (["--from-offset", "5"], "--from-offset N is for one"),
    "an offset with a name and one without": (
        ["--from-offset", "5", "--from-offset", "codec-none-0=5"], "name each: TOPIC-PARTITION=N",
    ),
    "an offset twice": (
        ["--from-offset", "codec-none-0=4", "--from-offset", "codec-none-0=5"], "is given twice",
    ),
    "two places to begin": (["--full", "--from-offset", "codec-none-0=4"], "exclude each other"),
    "two more places to begin": (["--full", "--from-checkpoint"], "exclude each other"),
    "consent for nonsense": (
        ["--accept-loss", "nonsense"], "--accept-loss nonsense: expected TOPIC-PARTITION",
    ),
    "consent for a partition that is not there": (
        ["--accept-loss", "orders-3"], "--accept-loss orders-3: no such partition is selected",
    ),
    "consent for a partition that is not selected": (
        ["--topic", "tx*", *ACCEPT], "--accept-loss small-segments-0: no such partition",
    ),
    "a strategy that is none": (["--strategy", "magic"], "--strategy"),
    "a clean mark for a part": (["--mark-clean", "--topic", "tx*"], "is for a whole log dir"),
    "an undo directory for two log dirs": (
        ["--undo-dir", "undo", "other"], "--undo-dir is for one log dir; give one PATH",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_command_line_that_makes_no_sense_changes_nothing(run, cut, name):
    before = everything(cut.parent)
    options, told = WRONG[name]
    result = run("recover", "--apply", *options, cut)
    assert (result.status, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.endswith("Try 'logtool recover --help'.\n")
    assert everything(cut.parent) == before


def test_what_makes_no_sense_for_the_second_path_is_found_before_the_first_is_changed(
    run, killed, clean
):
    before = everything(killed)
    second = clean / "codec-none-0"
    for options in (["--mark-clean"], ["--from-offset", "0"]):
        assert run("recover", "--apply", *options, killed, second).status == 2
    assert everything(killed) == before


def test_a_name_cannot_be_said_to_be_missing_where_a_path_could_not_be_read(run, killed, tmp_path):
    result = run("recover", "--accept-loss", "orders-3", killed, tmp_path / "tyop")
    assert result.status == 4


@pytest.mark.parametrize("options", [(), ("--apply",)])
@pytest.mark.parametrize("place", ["undo", "codec-none-0/undo"])
def test_an_undo_directory_in_a_log_dir_is_refused(run, killed, options, place):
    result = run("recover", "--undo-dir", killed / place, *options, killed)
    assert (result.status, result.stdout) == (5, "")
    assert f"{killed / place}: lies in the log dir {killed}" in result.stderr
    assert not (killed / place).exists()


def test_an_undo_directory_that_is_in_use_is_refused(run, killed, tmp_path):
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / "mine").touch()
    before = everything(tmp_path)
    result = run("recover", "--undo-dir", tmp_path / "undo", "--apply", killed)
    assert result.status == 5
    assert f"{tmp_path / 'undo'}: is not empty; give a new directory" in result.stderr
    assert everything(tmp_path) == before


def test_the_same_command_again_does_not_care_for_its_own_undo_directory(run, killed, tmp_path):
    command = ("recover", "--undo-dir", tmp_path / "undo", "--apply", killed)
    assert run(*command).status == 0
    again = run(*command)
    assert (again.status, again.stdout, again.stderr) == (0, "", "nothing to do\n")


def test_a_broker_at_work_is_named_and_nothing_is_changed(run, killed):
    with held(killed / ".lock") as pid:
        before = everything(killed.parent)
        result = run("recover", "-f", "ndjson", "--apply", killed)
        assert everything(killed.parent) == before
    assert result.status == 5
    assert f"(pid {pid}) holds it; stop it first" in result.stderr
    assert_valid(result.objects)
    (error,) = result.of_type("error")
    assert (error["reason"], error["path"]) == ("refused", None)
    assert last_line(result) == "nothing was changed"


def test_one_log_dir_that_may_not_be_written_keeps_no_other_from_being_mended(
    killed, clean, tmp_path
):
    other = tmp_path / "other"
    other.mkdir()
    shutil.move(clean, other / "clean")
    killed.chmod(0o555)
    (killed / ".lock").chmod(0o444)
    before = everything(killed)
    command = ("recover", "-f", "ndjson", "--apply", killed, other / "clean")
    status, said, complaints = without_rights(*command)
    assert status == 4
    assert f"logtool: {killed}/.lock: Permission denied" in complaints
    objects = [json.loads(line) for line in said.splitlines()]
    assert_valid(objects)
    assert [obj["reason"] for obj in objects if obj["type"] == "error"] == ["unwritable"]
    (undo,) = (obj["path"] for obj in objects if obj["type"] == "undo")
    assert [undo] == list(map(str, undo_dirs(other / "clean")))
    assert everything(killed) == before


def test_when_time_is_over_nothing_was_changed(run, cut):
    before = everything(cut.parent)
    result = run("recover", "--apply", *ACCEPT, "--max-duration", "0.000001", cut)
    assert result.status == 6
    assert last_line(result) == "incomplete, the time is over: nothing was changed"
    assert everything(cut.parent) == before


def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt():
    raise KeyboardInterrupt


def calls(run, home, tmp_path):
    """Return how many calls change something until the journal is committed, and in all."""
    copy = tmp_path / "counted" / "data"
    shutil.copytree(home, copy)
    with failing(0, lambda: None) as paths:
        run("recover", "--apply", *ACCEPT, copy)
    commit = max(i for i, path in enumerate(paths, 1) if path.name == "journal.ndjson.tmp")
    return commit + 1, len(paths)


@pytest.mark.parametrize("fault", [full, interrupt])
def test_what_stops_it_before_it_began_leaves_everything_as_it_was(run, cut, tmp_path, fault):
    commit, _ = calls(run, cut, tmp_path)
    before = everything(cut)
    for number in (3, commit // 2, commit - 2):
        with failing(number, fault):
            result = run("recover", "-f", "ndjson", "--apply", *ACCEPT, cut)
        assert result.status == (4 if fault is full else 130)
        assert_valid(result.objects)
        assert result.of_type("undo") == []
        assert result.objects[-1]["complete"] is False
        assert last_line(result).endswith(": nothing was changed")
        assert everything(cut) == before
        assert undo_dirs(cut) == []


@pytest.mark.parametrize("fault", [full, interrupt])
def test_what_stops_it_half_way_says_how_to_go_on_and_how_to_go_back(run, cut, tmp_path, fault):
    commit, last = calls(run, cut, tmp_path)
    before = everything(cut)
    with failing((commit + last) // 2, fault):
        result = run("recover", "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    assert everything(cut) != before
    if fault is full:
        assert result.status == 4
        assert "No space left on device; the change is not finished and nothing is lost" in (
            result.stderr
        )
    else:
        assert result.status == 130
        assert "interrupted: " in result.stderr
        assert "made" not in result.stderr
    assert f"logtool undo --apply {undo_dir}" in result.stderr
    assert "the same command" in result.stderr

    told = run("recover", cut)
    assert told.status == 1
    assert told.lines[0].startswith(f"finish    {undo_dir}: was not finished, which is done first")

    done = run("recover", "--apply", *ACCEPT, cut)
    assert done.status == 0
    assert done.lines[0] == told.lines[0]
    again = run("recover", cut).stderr.splitlines()
    assert again[-1] == "nothing to do"
    assert again[0].endswith(" acknowledged offsets were lost before, in 1 partition")
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(cut) == before


def test_what_is_half_undone_is_not_recovered(run, cut):
    run("recover", "--apply", *ACCEPT, cut)
    (undo_dir,) = undo_dirs(cut)
    with failing(20, full):
        run("undo", "--apply", undo_dir)
    result = run("recover", "--apply", cut)
    assert result.status == 5
    assert f"run 'logtool undo --apply {undo_dir}' to go on with that" in result.stderr
    assert last_line(result) == "nothing was changed"
    assert count(lambda: run("undo", "--apply", undo_dir)) > 0


def test_quiet_leaves_the_plan_the_way_back_and_the_errors(run, cut):
    refused = run("recover", "-q", "--apply", cut)
    assert len(refused.stderr.splitlines()) == 1
    done = run("recover", "-q", "--apply", *ACCEPT, cut)
    assert done.stderr == ""
    assert done.lines[-1].startswith("undo with: ")


def test_no_path_is_a_usage_error(run):
    assert run("recover").status == run("recover", "").status == 2


def test_a_log_without_an_index_whose_batches_are_out_of_reach_is_cut_with_consent(run, copy_of):
    """It stood in a log dir that was stopped in order, where only what lacks an index is read."""
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
