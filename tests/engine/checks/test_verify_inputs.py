"""Inputs of verify that are missing, locked, odd, changing or huge."""

import errno
import json
import os
import shutil
import stat
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from calls import calls_of
from damage import flip
from log_dir_damage import batch, home_of, in_batch, new_batch
from processes import give_up_rights, locked_by_a_process
from verification import (
    batches,
    fingerprint,
    logs,
    rewrite,
    small_log_dir,
    verify,
)

from logtool.checks import segment
from logtool.checks.report import SegmentTask
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import leader_epoch_checkpoint
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.file import describe
from logtool.schemas.tables import FINDING
from logtool.verify import Level, Selection

PYTHON = [sys.executable, "-c"]


@pytest.fixture
def clean(scenario, tmp_path) -> Path:
    """A log dir with two partitions of one segment and one of many."""
    return small_log_dir(
        scenario("4.3.1/clean"), tmp_path / "clean",
        "codec-none-0", "codec-none-1", "small-segments-0",
    )  # fmt: skip


@pytest.fixture
def killed(scenario, tmp_path) -> Path:
    return small_log_dir(scenario("4.3.1/killed"), tmp_path / "killed", "codec-none-0")


def only_reason(outcome) -> str:
    (error,) = outcome.unreadable
    assert not outcome.findings
    assert outcome.exit_status == 4
    assert outcome.summary.complete is False
    return error.reason


# Not there, not Kafka's


def test_a_missing_path(tmp_path):
    assert only_reason(verify(tmp_path / "nowhere")) == os.strerror(errno.ENOENT)


def test_an_empty_directory(tmp_path):
    assert "empty" in only_reason(verify(tmp_path))


def test_a_directory_without_kafka_files(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "photos").mkdir()
    reason = only_reason(verify(tmp_path))
    assert "Kafka" in reason
    assert "empty" not in reason


def test_names_like_those_of_partitions_do_not_make_a_log_dir(tmp_path):
    (tmp_path / "dbus-1" / "session.d").mkdir(parents=True)
    assert only_reason(verify(tmp_path)).startswith("nothing matched: ")
    (tmp_path / "orders-0").mkdir()  # As a broker leaves it that was killed at once.
    assert not verify(tmp_path).unreadable


def test_an_empty_partition_is_reported_by_its_name(tmp_path):
    (tmp_path / "orders-0").mkdir()
    # Outside of a log dir it may be the empty disk of a node, such as controller-1.
    assert "is empty" in only_reason(verify(tmp_path / "orders-0"))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n0\n")
    outcome = verify(tmp_path / "orders-0")
    assert outcome.codes == {"partition/empty": 1}
    assert outcome.exit_status == 0


def test_a_file_of_another_kind(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert "name" in only_reason(verify(tmp_path / "notes.txt"))


def test_text_named_like_a_segment(tmp_path):
    path = tmp_path / f"{0:020d}.log"
    path.write_text("2026-01-01 12:00:00 INFO [main] started (kafka.server.KafkaServer)\n" * 40)
    outcome = verify(path)
    assert outcome.places == {("batch/magic", path.name, 0): 1}
    assert outcome.exit_status == 1


def test_an_empty_file_named_like_a_segment(tmp_path):
    path = tmp_path / f"{0:020d}.log"
    path.touch()
    assert not verify(path).findings


@pytest.mark.parametrize("suffix", [".deleted", ".cleaned", ".swap"])
def test_a_segment_with_another_state_is_read(scenario, tmp_path, suffix):
    log = logs(scenario("4.3.1/clean") / "codec-none-0")[0]
    path = tmp_path / f"{log.name}{suffix}"
    shutil.copy(log, path)
    assert verify(path).summary.batches == len(batches(log))
    rewrite(path, flip(path.read_bytes(), 3000))
    assert verify(path).codes == {"batch/crc": 1}


def test_an_index_without_its_log_is_judged_by_itself(scenario, tmp_path):
    home = scenario("4.3.1/clean") / "index.dense-0"
    for name in ("0.index", "0.timeindex", "0.txnindex"):
        try:
            source = home_of(home, name)
        except IndexError:
            source = home_of(scenario("4.3.1/clean") / "tx.mixed-0", name)
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        assert not verify(path).findings
        path.write_bytes(source.read_bytes()[:-3])
        assert [f.code.partition("/")[2] for f in verify(path).findings] == ["length"]


# Several paths


def test_every_other_input_is_checked_next_to_bad_ones(clean, tmp_path):
    in_batch(3, 70)(clean)
    (tmp_path / "empty").mkdir()
    outcome = verify(
        tmp_path / "nowhere", clean / "codec-none-1", tmp_path / "empty", clean,
        clean / "replication-offset-checkpoint",
    )  # fmt: skip
    assert [error.path.name for error in outcome.unreadable] == ["nowhere"]
    # An empty directory with a log dir is a new disk, or one that is not mounted.
    assert outcome.codes == {"batch/crc": 1, "meta-properties/missing": 1}
    assert outcome.summary.partitions == 4
    assert outcome.exit_status == 4


def test_the_same_place_is_checked_once(clean, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(clean)
    outcome = verify(clean, clean / ".", link, clean.parent / "clean" / "codec-none-0" / "..")
    assert not outcome.findings
    assert outcome.summary.partitions == 3


def test_paths_are_relative_to_where_one_is(clean, monkeypatch):
    monkeypatch.chdir(clean / "codec-none-0")
    for path in (Path(), Path("../codec-none-0"), Path("../codec-none-0/")):
        outcome = verify(path)
        assert not outcome.findings
        assert outcome.summary.partitions == 1
    outcome = verify(Path(".."))
    assert not outcome.findings
    assert outcome.summary.partitions == 3


def test_a_selection_takes_some_partitions(clean):
    assert verify(clean, selection=Selection(topics=("codec-*",))).summary.partitions == 2
    assert verify(clean, selection=Selection(exclude_topics=("codec-*",))).summary.partitions == 1
    assert verify(clean, selection=Selection(partitions=(1,))).summary.partitions == 1
    assert not verify(clean, selection=Selection(topics=("none",))).findings


# Not allowed to read


def with_modes_that_bind(home: Path, *names: str) -> dict:
    """Return the results of verify for paths in `home` when it has no special rights."""
    program = """
import json, os, pathlib, sys
from logtool.errors import UnreadableError
from logtool.verify import Level, Verification
os.chdir(sys.argv[1])
run = Verification([pathlib.Path(name) for name in sys.argv[2:]], level=Level.RECORDS,
    static={"process.roles": "broker", "log.dirs": ",".join(["/", *sys.argv[2:]])})
items = list(run)
unreadable = [(str(i.path), i.reason) for i in items if isinstance(i, UnreadableError)]
findings = [(i.code, str(i.path)) for i in items if not isinstance(i, UnreadableError)]
print(json.dumps({"unreadable": unreadable, "findings": findings,
    "partitions": run.summary.partitions, "segments": run.summary.segments,
    "status": int(run.summary.exit_status()), "complete": run.summary.complete}))
"""
    done = subprocess.run(
        [*PYTHON, program, str(home), *names],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=give_up_rights,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "name",
    [
        "codec-none-0",
        "codec-none-0/00000000000000000000.log",
        "codec-none-0/00000000000000000000.index",
        "codec-none-0/00000000000000000000.timeindex",
        "codec-none-0/00000000000000000360.snapshot",
        "codec-none-0/leader-epoch-checkpoint",
        "codec-none-0/partition.metadata",
        "small-segments-0/00000000000000000154.log",
        "replication-offset-checkpoint",
        "meta.properties",
    ],
)
def test_what_may_not_be_read_is_named_and_the_rest_checked(clean, name):
    (clean / name).chmod(0)
    said = with_modes_that_bind(clean, ".")
    assert said["unreadable"] == [[name, "Permission denied"]]
    assert said["findings"] == []
    assert said["status"] == 4
    assert not said["complete"]
    assert said["partitions"] == (2 if name == "codec-none-0" else 3)


def test_an_unreadable_transaction_index_stops_nothing(scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "tx.mixed-0")
    home_of(home, "0.txnindex").chmod(0)
    in_batch(3, 70, log="2.log")(home)
    said = with_modes_that_bind(home, ".")
    assert [path for path, _ in said["unreadable"]] == ["tx.mixed-0/00000000000000000000.txnindex"]
    assert [code for code, _ in said["findings"]] == ["batch/crc"]
    assert said["segments"] == 4


def test_a_log_dir_that_may_not_be_listed(clean):
    clean.chmod(0o311)
    said = with_modes_that_bind(clean.parent, "clean")
    assert said["unreadable"] == [["clean", "Permission denied"]]
    clean.chmod(0o755)


def test_a_lock_that_may_not_be_opened_says_nothing(killed):
    (killed / ".lock").chmod(0)
    said = with_modes_that_bind(killed, ".")
    assert said["unreadable"] == []
    assert said["status"] == 0


def test_a_read_only_mount(clean):
    script = """
mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" || exit 99
touch "$1/x" 2> /dev/null && exit 98
exec "$2" -m logtool verify --fail-on error "$1"
"""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", clean, sys.executable],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Operation not permitted" in done.stderr or done.returncode == 99:
        pytest.skip("this system does not let a test mount")
    assert done.returncode == 0, done.stderr


def test_access_times_aside_nothing_is_touched(clean):
    before = fingerprint(clean)
    for level in Level:
        verify(clean, level=level)
    for path in clean.rglob("*"):
        verify(path)
    assert fingerprint(clean) == before


# Links, pipes and odd names


@pytest.mark.parametrize(
    "name",
    [
        "codec-none-0/00000000000000000000.log",
        "codec-none-0/00000000000000000000.index",
        "codec-none-0/00000000000000000360.snapshot",
        "codec-none-0/leader-epoch-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_a_link_in_the_place_of_a_file_is_not_passed_over(clean, tmp_path, name):
    """A broker would follow it, so a verdict without it would be worth nothing."""
    target = shutil.move(clean / name, tmp_path / "elsewhere")
    (clean / name).symlink_to(target)
    outcome = verify(clean)
    (error,) = outcome.unreadable
    assert error.path == clean / name
    assert "symbolic link" in error.reason
    assert not outcome.findings
    assert outcome.summary.partitions == 3


def test_a_linked_partition_is_checked(clean, tmp_path):
    moved = shutil.move(clean / "codec-none-0", tmp_path / "codec-none-0")
    (clean / "codec-none-0").symlink_to(moved)
    in_batch(3, 70)(clean)
    outcome = verify(clean)
    assert outcome.codes == {"batch/crc": 1}
    assert outcome.summary.partitions == 3


def test_links_that_lead_nowhere_or_round_in_circles(clean):
    (clean / "gone-0").symlink_to("/nowhere/at/all")
    (clean / "loop-0").symlink_to(clean / "loop-0")
    (clean / "codec-none-0" / "note").symlink_to("/nowhere/at/all")
    outcome = verify(clean)
    assert outcome.codes == {"data-dir/unknown-file": 2, "partition/unknown-file": 1}
    assert outcome.exit_status == 0
    for name in ("gone-0", "loop-0"):
        assert verify(clean / name).exit_status == 4


@pytest.mark.parametrize("name", ["codec-none-0/pipe", "codec-none-0/00000000000000000500.log"])
def test_a_pipe_is_not_waited_for(clean, name):
    os.mkfifo(clean / name)
    outcome = verify(clean)
    assert outcome.codes == {"partition/unknown-file": 1}
    assert outcome.exit_status == 0
    assert "regular" in only_reason(verify(clean / name))


ODD_NAMES = [
    b"with space-0", b"new\nline-0", b"tab\tand\x1b[31mred-0", b"caf\xc3\xa9-0", b"\xff\xfe-0",
    b"comma,comma-0", b"quote'\"-0", b"-0-0", b"$(reboot)-0", b"%s-{}-0", "\u202egnp-0".encode(),
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_partitions_with_odd_names(scenario, tmp_path, name):
    home = tmp_path / "log-dir"
    home.mkdir()
    target = home / os.fsdecode(name)
    shutil.copytree(scenario("4.3.1/clean") / "codec-none-0", target)
    in_batch(3, 70)(home)
    for path in (home, target, logs(target)[0]):
        outcome = verify(path)
        assert outcome.codes == {"batch/crc": 1}
        (finding,) = outcome.findings
        assert finding.path == logs(target)[0]
        json.dumps(FINDING.row(outcome.findings[0]))


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
@pytest.mark.parametrize("where", [".", "codec-none-0"])
def test_files_with_odd_names(clean, name, where):
    (clean / where / os.fsdecode(name)).write_bytes(b"x")
    outcome = verify(clean)
    assert sum(outcome.codes.values()) == 1
    assert outcome.exit_status == 0


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
@pytest.mark.parametrize("form", ["table", pytest.param("ndjson", marks=pytest.mark.long)])
def test_odd_names_reach_a_terminal_escaped(scenario, tmp_path, name, form):
    target = tmp_path / os.fsdecode(name)
    shutil.copytree(scenario("4.3.1/clean") / "codec-none-0", target)
    in_batch(3, 70)(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "logtool", "verify", "--format", form, tmp_path],
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    shown = (done.stdout + done.stderr).decode("utf-8")
    assert not [c for c in shown if c in "\x1b\t\u202e" or (ord(c) < 32 and c != "\n")]
    if form == "ndjson":
        *_, found, summary = map(json.loads, done.stdout.splitlines())
        assert (found["code"], summary["complete"]) == ("batch/crc", True)


# In use, and changing


def test_a_log_dir_in_use_is_checked_all_the_same(killed):
    alone = verify(killed)
    assert "data-dir/in-use" not in alone.codes
    with locked_by_a_process(killed / ".lock") as pid:
        outcome = verify(killed)
    finding = outcome.one("data-dir/in-use")
    assert finding.severity is Severity.INFO
    assert str(pid) in finding.message
    assert outcome.exit_status == 0
    assert outcome.summary.batches == alone.summary.batches
    assert outcome.codes - alone.codes == {"data-dir/in-use": 1}
    assert "data-dir/in-use" not in verify(killed).codes


def test_asking_about_a_lock_does_not_take_it(killed):
    with locked_by_a_process(killed / ".lock"):
        pass
    verify(killed)
    with locked_by_a_process(killed / ".lock"):
        verify(killed)


def during(home: Path, change, *, level: Level = Level.RECORDS):
    """Run verify, and do something to the directory once its files are listed."""
    done = []

    def once(progress) -> None:
        if not done:
            done.append(progress.path)
            change()

    outcome = verify(home, level=level, on_progress=once)
    assert done
    return outcome


def errors(outcome) -> list[str]:
    return [f.code for f in outcome.findings if f.severity is not Severity.INFO]


def test_the_active_log_grows(clean):
    log = logs(clean / "small-segments-0")[-1]
    more = new_batch(900, b"more") + new_batch(901, b"and more")[:-5]

    def append() -> None:
        with log.open("ab") as file:
            file.write(more)

    outcome = during(clean / "small-segments-0", append)
    assert errors(outcome) == []
    assert outcome.codes == {"partition/changed": 1}
    assert outcome.exit_status == 0


@pytest.mark.parametrize("number", [1, 7, -1])
@pytest.mark.parametrize("suffixes", [[".log"], [".log", ".index", ".timeindex"], [".timeindex"]])
def test_a_segment_is_deleted(clean, number, suffixes):
    log = logs(clean / "small-segments-0")[number]

    def delete() -> None:
        for suffix in suffixes:
            log.with_suffix(suffix).unlink()

    outcome = during(clean / "small-segments-0", delete)
    assert errors(outcome) == []
    assert set(outcome.codes) == {"partition/changed"}
    assert outcome.exit_status == 0


def test_snapshots_and_transaction_indexes_are_deleted(scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "tx.mixed-0")

    def delete() -> None:
        for path in [*home.rglob("*.snapshot"), *home.rglob("*.txnindex")]:
            path.unlink()

    outcome = during(home, delete)
    assert errors(outcome) == []
    assert set(outcome.codes) == {"partition/changed"}


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("number", [0, 1, 7, -1])
@pytest.mark.parametrize("at", ["a batch", "the middle of a batch", "nothing"])
def test_a_log_is_cut(clean, number, at, level):
    log = logs(clean / "small-segments-0")[number]
    edge = int(batches(log).position[3])
    size = {"a batch": edge, "the middle of a batch": edge + 20, "nothing": 0}[at]
    outcome = during(clean / "small-segments-0", lambda: os.truncate(log, size), level=level)
    assert errors(outcome) == []
    assert set(outcome.codes) <= {"partition/changed"}


@pytest.mark.parametrize("level", Level)
def test_a_whole_partition_is_deleted(clean, level):
    outcome = during(clean, lambda: shutil.rmtree(clean / "small-segments-0"), level=level)
    assert errors(outcome) == []
    assert outcome.unreadable == []
    assert set(outcome.codes) == {"partition/changed"}
    assert outcome.exit_status == 0


INDEXED = (".log", ".index", ".timeindex")


def clean_as_a_broker(home: Path, first: Path, second: Path) -> None:
    """Put one segment with all batches of two in their place, in the order of a broker's renames.

    The order is that of ``LocalLog.replaceSegments``, Kafka 4.3.
    """
    size, table = first.stat().st_size, batches(second)
    entry = int(table.last_offset[-1]) - int(first.stem), size + int(table.position[-1])
    content = first.read_bytes() + second.read_bytes(), struct.pack(">ii", *entry), b""
    made = [first.with_suffix(f"{suffix}.swap") for suffix in INDEXED]
    for path, data in zip(made, content, strict=True):
        path.write_bytes(data)
    for old in (first, second):
        for suffix in INDEXED:
            old.with_suffix(suffix).rename(old.with_suffix(f"{suffix}.deleted"))
    for path in made:
        path.rename(path.with_suffix(""))


def names_in(found: Partition) -> list[str]:
    return [file.path.name for file in found.files()]


def test_a_listing_is_of_one_moment_whenever_the_cleaner_renames(scenario, tmp_path, monkeypatch):
    source = small_log_dir(scenario("4.3.1/clean"), tmp_path / "few", "small-segments-0")
    few = source / "small-segments-0"
    last = logs(few)[7].stem
    for path in [*few.glob("[0-9]*")]:
        if path.stem > last:
            path.unlink()
    count = len(list(few.iterdir()))
    for moment in range(count):
        name = str(moment)
        home = shutil.copytree(few, tmp_path / name / few.name)
        first, second = logs(home)[3:5]
        calls = 0

        def looking(*what, at=moment, home=home, first=first, second=second):
            nonlocal calls
            calls += 1
            if calls == at + 1:
                clean_as_a_broker(home, first, second)
            return describe(*what)

        with monkeypatch.context() as patch:
            patch.setattr("logtool.log.dir.describe", looking)
            found = opening.open_partition(home)
        assert calls > count  # it was listed once more
        assert names_in(found) == names_in(opening.open_partition(home))
        assert {f.path.name for f in found.leftovers} == {
            f"{old.stem}{suffix}.deleted" for old in (first, second) for suffix in INDEXED
        }


def test_a_segment_that_is_cleaned_twice_in_a_row_keeps_its_names(clean, monkeypatch):
    home = clean / "small-segments-0"
    log = logs(home)[3]
    files = [log.with_suffix(suffix) for suffix in INDEXED]
    for path in files:
        path.with_suffix(f"{path.suffix}.deleted").write_bytes(b"")
    names = sorted(path.name for path in home.iterdir())
    done = []

    def looking(parent, entry, name):
        file = describe(parent, entry, name)
        if file.path == log and not done:
            done.append(file)
            for path in files:
                path.rename(path.with_suffix(f"{path.suffix}.deleted"))
                path.write_bytes(b"")
        return file

    monkeypatch.setattr("logtool.log.dir.describe", looking)
    found = opening.open_partition(home).segments[3]
    assert done
    assert sorted(path.name for path in home.iterdir()) == names
    assert [found.log.size, *(one.size for one in found.indexes.values())] == [0, 0, 0]


@pytest.mark.parametrize("level", Level)
def test_an_index_is_not_held_against_a_log_that_was_replaced(clean, level):
    """The listing has the old log and the new index, and both logs have the same time."""
    log = logs(clean / "small-segments-0")[3]
    content, times = log.read_bytes(), (log.stat().st_mtime_ns,) * 2
    os.truncate(log, len(content) // 8)
    os.utime(log, ns=times)
    listed = opening.open_partition(log.parent)
    assert listed.segments[3].log.path == log
    swap = log.with_suffix(".log.swap")
    swap.write_bytes(content)
    os.utime(swap, ns=times)
    swap.rename(log)
    found = segment.check_segment(SegmentTask(listed.segments[3], level=level)).findings
    assert {(one.code, one.path) for one in found} <= {("partition/changed", log)}


def test_a_directory_that_is_never_at_rest_is_listed_all_the_same(clean, monkeypatch):
    home = clean / "small-segments-0"
    before = names_in(opening.open_partition(home))
    calls = 0

    def looking(*what):
        nonlocal calls
        calls += 1
        (home / f"odd-{calls}").touch()
        (home / f"odd-{calls - 1}").unlink(missing_ok=True)
        return describe(*what)

    monkeypatch.setattr("logtool.log.dir.describe", looking)
    found = names_in(opening.open_partition(home))
    assert [name for name in found if not name.startswith("odd")] == before


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_segment_is_cleaned_once_it_is_listed(scenario, tmp_path, monkeypatch, level, moment):
    """Before its files are opened, or between its indexes and its log."""
    topic = "compacted.keys-0"
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", topic) / topic
    before = verify(home, level=level)
    assert errors(before) == []
    indexed = [log.with_suffix(".index").stat().st_size > 0 for log in logs(home)]
    first, second = logs(home)[indexed.index(True) :][:2]
    open_indexes = segment.open_indexes
    done = []

    def opening(one, report):
        due = one.log.path == first
        if due and moment == "before":
            clean_as_a_broker(home, first, second)
        found = open_indexes(one, report)
        if due and moment == "between":
            clean_as_a_broker(home, first, second)
        done.extend([moment] if due else [])
        return found

    monkeypatch.setattr(segment, "open_indexes", opening)
    outcome = verify(home, level=level)
    assert done == [moment]
    assert errors(outcome) == []
    assert set(outcome.codes) == {"partition/changed", *before.codes}
    assert outcome.exit_status == 0


def test_a_file_with_a_new_number_is_the_same_file(clean):
    """Some file systems number files again; the file with the listed time is the listed file."""
    (log, *_) = logs(clean / "small-segments-0")
    listed = next(opening.open_partition(log.parent).files())
    assert listed.path == log
    with replace(listed, identity=-1).open_listed() as file:
        assert file.size == listed.size
    with pytest.raises(UnreadableError, match=f"{log}: .*replaced"):
        replace(listed, identity=-1, mtime_ns=0).open_listed()


def test_a_busy_directory(clean):
    """A thread appends, rolls, deletes and cuts while verify runs again and again."""
    home = clean / "small-segments-0"
    stop = threading.Event()
    *others, last = logs(home)
    deleted = others[:8]

    def work() -> None:
        offset = 900
        log = logs(home)[-1]
        while not stop.is_set():
            with log.open("ab", buffering=0) as file:
                one = new_batch(offset, b"x" * 50)
                file.write(one[:30])
                file.write(one[30:])
            offset += 1
            if offset % 200 == 0:
                log = home / f"{offset:020d}.log"
                for suffix in (".log", ".index", ".timeindex"):
                    log.with_suffix(suffix).touch()
                if deleted:
                    gone = deleted.pop(0)
                    for suffix in (".log", ".index", ".timeindex"):
                        gone.with_suffix(suffix).rename(f"{gone.with_suffix(suffix)}.deleted")
            time.sleep(0)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(30):
            outcome = verify(home, level=Level.BATCHES, at_rest=False)
            serious = [f for f in outcome.findings if f.severity is Severity.ERROR]
            # The listing and the end of the read may both lie between the two writes of a batch.
            torn = [f for f in serious if f.code == "log/torn-tail-clean"]
            assert all(int(f.path.stem) >= int(last.stem) for f in torn)
            assert [f.code for f in serious if f not in torn] == []
            assert not outcome.unreadable
    finally:
        stop.set()
        thread.join()


# Large


def many_segments(home: Path, count: int, *, full: bool) -> Path:
    """Make a partition of so many segments, each of one batch or none."""
    home.mkdir()
    for number in range(count):
        name = home / f"{number * 2:020d}"
        data = new_batch(number * 2, b"x", b"y", epoch=number) if full else b""
        name.with_suffix(".log").write_bytes(data)
        name.with_suffix(".index").touch()
        name.with_suffix(".timeindex").touch()
        if number:
            empty = bytes.fromhex("000148674bc700000000")
            name.with_suffix(".snapshot").write_bytes(empty)
    rows = [(number, number * 2) for number in range(count)] if full else []
    text = leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(rows))
    (home / "leader-epoch-checkpoint").write_bytes(text)
    (home / "partition.metadata").write_text("version: 0\ntopic_id: J8aAPcfLQt2bqs1JT_rMgQ")
    return home


@pytest.mark.parametrize("full", [True, False], ids=["one batch each", "empty"])
def test_the_work_grows_with_the_number_of_segments(tmp_path, full):
    spent = []
    for count in (150, 300):
        home = many_segments(tmp_path / f"many-{count}", count, full=full)
        assert verify(home, level=Level.BATCHES).summary.segments == count
        spent.append(calls_of(partial(verify, home, level=Level.BATCHES)))
    assert spent[1] < 2.1 * spent[0], spent


def test_the_files_of_a_large_directory_one_by_one(tmp_path):
    spent = []
    for count in (100, 200):
        paths = sorted(many_segments(tmp_path / f"many-{count}", count, full=True).glob("*.log"))
        assert verify(*paths, level=Level.BATCHES).summary.segments == count
        spent.append(calls_of(partial(verify, *paths, level=Level.BATCHES)))
    assert spent[1] < 2.1 * spent[0], spent


def test_modes_of_the_fixtures_let_a_broker_write(clean):
    """These tests prove nothing as root on files that are read-only anyway."""
    assert stat.S_IMODE((clean / "codec-none-0").stat().st_mode) & 0o200
    assert batch(0).resolve(logs(clean / "codec-none-0")[0]) == 0


def test_zeros_behind_the_indexes_of_the_metadata_log_are_normal_after_a_clean_stop(
    scenario, tmp_path
):
    """Every start recovers the metadata log, which is closed after the marker is written."""
    home = shutil.copytree(scenario("4.3.1/killed"), tmp_path / "data")
    (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":7}')
    found = [one for one in verify(home, level=Level.QUICK).findings if "/p" in one.code]
    codes = {one.code for one in found if one.path.parent.name == "__cluster_metadata-0"}
    assert codes == {"offset-index/preallocated", "time-index/preallocated"}
    others = {one.code for one in found if one.path.parent.name == "codec-none-0"}
    assert {"offset-index/padding", "time-index/padding"} <= others
