"""The state file: what is refused, what a kill leaves, and what holds of earlier checks."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrubbing import World, counted, make_world, stored_findings, watch

from logtool.errors import LogtoolError, RefusedError, UnreadableError, UsageError
from logtool.running.workers import Pace
from logtool.scrub.state import open_for_run, open_to_read
from logtool.scrub.tables import VERSION
from logtool.verify import Budget

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    yield watch(make_world(tmp_path, 2, 4, 200), monkeypatch)


def _text(path: Path) -> None:
    path.write_text("this is text, and no database of SQLite, however long it may become\n" * 9)


def _other_database(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()


def _later(path: Path) -> None:
    open_for_run(path).close()
    with sqlite3.connect(path) as later:
        later.execute(f"PRAGMA user_version = {VERSION + 1}")
    later.close()


@pytest.mark.parametrize("make", [_text, _other_database, _later])
def test_a_file_of_another_program_or_release_is_refused_and_stays(tmp_path: Path, make) -> None:
    path = tmp_path / "other.db"
    make(path)
    before = path.read_bytes()
    for opened in (open_for_run, open_to_read):
        with pytest.raises(UsageError, match=str(path)):
            opened(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("where", ["data", "data/bench.0-0", "data/sub", "other/t-0"])
def test_a_place_in_a_log_dir_is_refused(world: World, tmp_path: Path, where: str) -> None:
    home = tmp_path / where
    home.mkdir(parents=True, exist_ok=True)
    (tmp_path / "other/t-0").mkdir(parents=True, exist_ok=True)
    (tmp_path / "other/t-0/00000000000000000000.log").touch()
    with pytest.raises(RefusedError, match="inside a log dir"):
        open_for_run(home / "scrub.db", [world.home])
    assert not (home / "scrub.db").exists()


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "target.db")
    with pytest.raises(RefusedError, match="link"):
        open_for_run(tmp_path / "link.db")
    assert not (tmp_path / "target.db").exists()


def test_two_runs_at_once_are_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    path = tmp_path / "scrub.db"
    with open_for_run(path) as state:
        with pytest.raises(RefusedError, match="another run"):
            open_for_run(path)
        with open_to_read(path) as reader:
            assert reader.segments() == state.segments() == []
    open_for_run(path).close()


def test_no_file_to_read_and_no_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        open_to_read(tmp_path / "absent.db")
    with pytest.raises(LogtoolError, match="cannot be opened"):
        open_for_run(tmp_path / "absent" / "scrub.db")


@pytest.mark.parametrize("step", [13, pytest.param(1, marks=pytest.mark.long)])
def test_a_kill_at_a_statement_claims_nothing_that_was_not_read(world: World, step: int) -> None:
    damaged = world.partition(0) / f"{1:020d}.log"
    world.flip(damaged)
    with counted(0, lambda: None) as statements:
        world.night(0, cycle_days=1)
    whole = world.checked()
    found = {one.finding.code for one in stored_findings(world)}
    assert set(whole.values()) == {0}
    for at in range(1, len(statements) + 1, step):
        world.state.unlink()
        world.read.clear()
        died = world.killed_night(0, at, cycle_days=1)
        with sqlite3.connect(world.state) as file:
            assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        file.close()
        world.night(0, cycle_days=1)
        assert world.checked() == whole
        assert {one.finding.code for one in stored_findings(world)} == found
        again = died & set(world.read)
        assert again <= {damaged}, "only what was bad is read again"


def test_a_time_limit_leaves_what_was_not_reached_due(world: World) -> None:
    job = world.night(0, cycle_days=1, budget=Budget(pace=Pace(deadline=time.monotonic())))
    assert (job.row.segments, job.row.complete, job.row.due_segments) == (0, False, 8)
    assert int(job.summary.exit_status()) == 6
    assert set(world.checked().values()) == {None}
    job = world.night(1, cycle_days=1)
    assert (job.row.segments, job.row.complete) == (8, True)
    assert set(world.checked().values()) == {1}


def test_segments_that_are_not_due_are_judged_by_their_last_check(world: World) -> None:
    checkpoint = world.partition(1) / "leader-epoch-checkpoint"
    world.night(0, cycle_days=1)
    assert world.codes() == set()
    sound = checkpoint.read_text()
    checkpoint.write_text("0\n1\n7 0\n")
    world.night(0.01)
    assert len(world.read) < 8
    assert world.codes() == {"leader-epoch/missing-epoch"}
    checkpoint.write_text(sound)
    world.night(0.02)
    assert world.codes() == set()
    assert {one.finding.code: one.state for one in stored_findings(world)}[
        "leader-epoch/missing-epoch"
    ] == "gone"


def test_nothing_is_claimed_from_segments_that_were_never_read(world: World) -> None:
    (world.partition(0) / f"{2:020d}.log").unlink()
    world.night(0)
    assert "segment/hole" not in world.codes()
    assert {"partition/orphan-index"} <= {one.finding.code for one in stored_findings(world)}


@pytest.mark.parametrize("what", ["segment", "partition", "log dir"])
def test_a_finding_is_gone_with_what_it_is_about(world: World, tmp_path: Path, what: str) -> None:
    log = world.partition(0) / f"{1:020d}.log"
    world.flip(log)
    world.night(0, cycle_days=1)
    assert world.codes() == {"batch/crc"}
    if what == "segment":
        for number in (0, 1):
            for path in log.parent.glob(f"{number:020d}.*"):
                path.unlink()
    elif what == "partition":
        log.parent.rename(tmp_path / "elsewhere")
    else:
        world.home.rename(tmp_path / "not-mounted")
    world.night(1, cycle_days=1)
    (finding,) = [one for one in stored_findings(world) if one.finding.code == "batch/crc"]
    assert finding.state == ("open" if what == "log dir" else "gone")


def test_a_finding_that_was_not_looked_at_stays_open_and_decides_the_status(world: World) -> None:
    world.flip(world.partition(0) / f"{1:020d}.log")
    world.night(0, cycle_days=1)
    over = Budget(pace=Pace(deadline=time.monotonic()))
    job = world.night(1, cycle_days=1, budget=over)
    assert world.codes() == set()
    assert int(job.summary.exit_status()) == 1
