"""Rebuilt indexes against those that a broker's own recovery wrote, and failures."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import loadable
import pytest
from damage import append_to_file, cut, damage_file, flip, overwrite, remove_file, zero
from log_dir_damage import in_batch
from verification import batches, fingerprint, has_numbers, small_log_dir, verify

from logtool import apply
from logtool.actions import Action
from logtool.apply import Journal
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UsageError
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.loading.loader import load
from logtool.loading.producers import decode
from logtool.loading.result import Outcome, StartConditions
from logtool.log import opening
from logtool.rebuild import FileChoice, Indexing, IndexRebuild, RebuildConsent
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace

Scenario = Callable[[str], Path]
VERSIONS = ("4.3.1", "3.9.2")
INDEXES = (".index", ".timeindex", ".txnindex")
ALL = FileChoice(everything=True)
NOT_RECOVERED = {
    "compacted-tx-0/00000000000000000500.txnindex",
    "compacted-tx-0/00000000000000000562.txnindex",
    "small-segments-0/00000000000000000869.timeindex",
}
"""Segments of killed-recovered that the broker left alone, as their appends wrote them."""


def only(*kinds: FileKind, everything: bool = False) -> FileChoice:
    return FileChoice(frozenset(kinds), everything)


def rebuild(*paths: Path, wanted: FileChoice = ALL, **more: object) -> list[Action]:
    """Run to the end without an error; returns the actions."""
    items = list(IndexRebuild(paths, wanted, **more))  # type: ignore[arg-type]
    assert [item for item in items if isinstance(item, LogtoolError)] == []
    return [item for item in items if isinstance(item, Action)]


def done(*paths: Path, wanted: FileChoice = ALL, **more: object) -> list[Action]:
    """Do it in place."""
    return rebuild(*paths, wanted=wanted, consent=RebuildConsent(apply=True), **more)


def steps_of(actions: Iterable[Action]) -> set[tuple[str, str]]:
    return {(str(action.action), action.path.name) for action in actions}


def built_files(home: Path) -> dict[str, Path]:
    """Return indexes and snapshots of a log dir, but for those of the metadata log."""
    return {
        str(path.relative_to(home)): path
        for path in sorted(home.rglob("[0-9]*"))
        if path.suffix in (*INDEXES, ".snapshot")
        and not path.parent.name.startswith("__cluster")
        and not path.parent.name.endswith("-delete")
    }


def content(path: Path) -> object:
    data = path.read_bytes()
    return decode(data) if path.suffix == ".snapshot" else data


def differences(home: Path, expected: Path) -> set[str]:
    """Return the files in which two log dirs differ, snapshots compared as maps."""
    mine, theirs = built_files(home), built_files(expected)
    return {
        name
        for name in {*mine, *theirs}
        if not (name in mine and name in theirs and content(mine[name]) == content(theirs[name]))
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("suffix", [*INDEXES, ".snapshot"])
def test_what_was_deleted_comes_back_as_the_broker_had_recovered_it(
    scenario: Scenario, copy_of: Scenario, version: str, suffix: str
) -> None:
    home = copy_of(f"{version}/killed-recovered")
    removed = set()
    for name, path in built_files(home).items():
        if path.suffix == suffix and path.stat().st_size:
            path.unlink()
            removed.add(name)
    assert len(removed) > 10
    done(home, wanted=FileChoice())
    left = differences(home, scenario(f"{version}/killed-recovered"))
    if suffix != ".snapshot":
        assert left == removed & NOT_RECOVERED
        return
    # Older snapshots than those of the last two segments and the end of the log are not needed.
    assert left < removed
    for folder in {name.rpartition("/")[0] for name in removed}:
        bases = sorted(int(path.stem) for path in (home / folder).glob("*.log"))
        expected = sorted(name for name in removed if name.startswith(f"{folder}/"))
        needed = [name for name in expected if int(Path(name).stem) >= bases[-2:][0]]
        assert not left.intersection(needed), folder


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bad_snapshot_is_replayed_from_the_one_before(
    scenario: Scenario, copy_of: Scenario, version: str
) -> None:
    home = copy_of(f"{version}/killed-recovered")
    every_other = [p for p in built_files(home).values() if p.suffix == ".snapshot"][1::2]
    for path in every_other:
        damage_file(path, flip, 3)
    actions = done(home, wanted=FileChoice())
    assert {action.path for action in actions} == set(every_other)
    # What compaction took away, no replay finds again.
    wrong = differences(home, scenario(f"{version}/killed-recovered"))
    assert {name for name in wrong if not name.startswith("compacted")} == set()


@pytest.mark.parametrize("version", VERSIONS)
def test_everything_that_was_damaged_is_as_it_was(
    scenario: Scenario, copy_of: Scenario, version: str
) -> None:
    home = copy_of(f"{version}/killed-recovered")
    changed = set()
    for name, path in built_files(home).items():
        size = path.stat().st_size
        if path.suffix in INDEXES and size > 8 and name not in NOT_RECOVERED:
            damage_file(path, overwrite, 0, b"\xff" * 5)
            changed.add(path)
    actions = done(home, wanted=FileChoice())
    assert {action.path for action in actions} == changed
    assert differences(home, scenario(f"{version}/killed-recovered")) == set()
    assert rebuild(home, wanted=FileChoice()) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("state", ["killed", "torn"])
def test_a_killed_log_dir_gets_the_indexes_that_the_broker_recovered(
    scenario: Scenario, copy_of: Scenario, version: str, state: str
) -> None:
    home, after = copy_of(f"{version}/{state}"), scenario(f"{version}/{state}-recovered")
    logs = {path: path.read_bytes() for path in home.rglob("*.log")}
    kinds = FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX
    done(home, wanted=only(*kinds, everything=True))
    assert {path: path.read_bytes() for path in logs} == logs
    wrong = {name for name in differences(home, after) if not name.endswith(".snapshot")}
    # What the broker made at its orderly stop, and the segments that it did not recover.
    assert wrong <= NOT_RECOVERED


def test_the_index_interval_is_that_of_the_topic_unless_one_is_given(
    scenario: Scenario, copy_of: Scenario
) -> None:
    home = copy_of("4.3.1/killed-recovered")
    dense = home / "index.dense-0"
    index = dense / f"{0:020d}.index"
    expected = index.read_bytes()
    remove_file(index)
    done(dense)
    assert index.read_bytes() == expected
    for path in (index, dense, home):
        actions = rebuild(path, wanted=only(FileKind.OFFSET_INDEX, everything=True),
                          indexing=Indexing(interval=10_000))  # fmt: skip
        assert {action.path: action.length for action in actions}[index] == 2 * 8


def test_aborts_that_the_last_segment_lacks_after_a_kill_are_added(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/killed") / "tx.mixed-0"
    index = max(home.glob("*.txnindex"))
    expected = index.read_bytes()
    assert len(expected) >= 34
    index.write_bytes(expected[:-34])
    done(home, wanted=only(FileKind.TRANSACTION_INDEX))
    assert index.read_bytes() == expected


def test_entries_without_room_in_the_largest_index_allowed_are_not_written(
    copy_of: Scenario,
) -> None:
    dense = copy_of("4.3.1/killed-recovered") / "index.dense-0"
    index = dense / f"{0:020d}.index"
    count = index.stat().st_size // 8
    wanted = only(FileKind.OFFSET_INDEX, everything=True)
    small, large = Indexing(max_size=8 * (count - 1)), Indexing(max_size=12 * (count + 2))
    assert ("impossible", index.name) in steps_of(rebuild(index, wanted=wanted, indexing=small))
    assert ("impossible", index.name) not in steps_of(rebuild(index, wanted=wanted, indexing=large))


def test_without_a_metadata_log_the_interval_is_that_of_kafka(
    scenario: Scenario, tmp_path: Path
) -> None:
    home = small_log_dir(scenario("4.3.1/killed-recovered"), tmp_path / "a", "index.dense-0")
    (action, *_) = rebuild(home, wanted=only(FileKind.OFFSET_INDEX, everything=True))
    assert action.length == 7 * 8


def test_a_transaction_index_needs_the_transactions_open_before_its_segment(
    scenario: Scenario, copy_of: Scenario
) -> None:
    home = copy_of("4.3.1/killed-recovered") / "tx.mixed-0"
    expected = scenario("4.3.1/killed-recovered") / "tx.mixed-0"
    for number, path in enumerate(sorted(home.glob("*.snapshot"))):
        # Some snapshots are gone, some cannot be read: the log is read from where one is sound.
        if number % 3:
            path.unlink() if number % 3 == 1 else damage_file(path, flip, 10)
    for path in sorted(home.glob("*.txnindex")):
        if path.stat().st_size:
            remove_file(path)
            (action,) = done(path)
            assert steps_of([action]) == {("create", path.name)}
            assert path.read_bytes() == (expected / path.name).read_bytes()


def test_a_transaction_index_without_aborts_becomes_empty_and_is_not_made(
    copy_of: Scenario,
) -> None:
    home = copy_of("4.3.1/killed-recovered") / "codec-none-0"
    log = next(home.glob("*.log"))
    assert rebuild(log) == []
    index = log.with_suffix(".txnindex")
    index.write_bytes(bytes(34))
    assert steps_of(done(index)) == {("replace", index.name)}
    assert index.read_bytes() == b""


@pytest.mark.parametrize("clean", [True, False])
def test_zeros_behind_an_active_index_go_where_a_broker_would_take_them_for_entries(
    copy_of: Scenario, clean: bool
) -> None:
    home = copy_of("4.3.1/killed-recovered")
    if not clean:
        remove_file(home / ".kafka_cleanshutdown")
    index = sorted((home / "index.dense-0").glob("*.index"))[-1]
    stamps = index.with_suffix(".timeindex")
    before = {path: path.read_bytes() for path in (index, stamps)}
    for path in before:
        append_to_file(path, bytes(4096 // 24 * 24))
    actions = done(home, wanted=FileChoice())
    assert {action.path for action in actions} == (set(before) if clean else set())
    if clean:
        assert {path: path.read_bytes() for path in before} == before
    assert len(done(index.parent, wanted=ALL)) == (0 if clean else 2)


def test_without_any_snapshot_a_clean_log_gets_those_a_broker_would_have(
    scenario: Scenario, copy_of: Scenario
) -> None:
    home = copy_of("4.3.1/clean") / "idempotent_writes-0"
    for path in home.glob("*.snapshot"):
        path.unlink()
    actions = done(home, wanted=FileChoice())
    bases = sorted(int(path.stem) for path in home.glob("*.log"))
    made = sorted(int(action.path.stem) for action in actions)
    assert made[:-1] == [base for base in bases[-2:] if base]
    for action in actions:
        same = scenario("4.3.1/clean") / home.name / action.path.name
        assert content(action.path) == content(same) is not None


def test_a_bad_snapshot_behind_the_end_of_the_log_goes(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean") / "codec-none-0"
    path = home / f"{9_999_999:020d}.snapshot"
    shutil.copy(next(home.glob("*.snapshot")), path)
    output = RebuildConsent(output=home.parent.parent / "new")
    assert rebuild(home, wanted=FileChoice(), consent=output) == []
    assert steps_of(done(home, wanted=FileChoice())) == {("remove", path.name)}
    assert not path.exists()


# Damage in the log


@pytest.fixture
def damaged(scenario: Scenario, tmp_path: Path) -> Path:
    """Return a partition with transactions whose second segment has a bad batch."""
    home = small_log_dir(scenario("4.3.1/killed-recovered"), tmp_path / "data", "tx.mixed-0")
    in_batch(9, 70, log="1.log")(home)
    return home / "tx.mixed-0"


def test_a_damaged_log_gets_an_index_of_what_stands_before_the_damage(damaged: Path) -> None:
    log = sorted(damaged.glob("*.log"))[1]
    before = log.read_bytes()
    position = int(batches(log).end_position[8])
    index = log.with_suffix(".index")
    remove_file(index)
    actions = done(log, wanted=only(FileKind.OFFSET_INDEX))
    assert steps_of(actions) == {("damaged", log.name), ("create", index.name)}
    hurt, made = actions
    assert hurt.position == position
    assert f"logtool recover {damaged}" in hurt.reason
    assert has_numbers(made.reason, position, len(before))
    entries = [index.read_bytes()[i : i + 8] for i in range(0, index.stat().st_size, 8)]
    assert entries
    assert all(int.from_bytes(entry[4:], "big") < position for entry in entries)
    assert log.read_bytes() == before
    # Nothing more can be done, and the damage is still reported.
    assert steps_of(rebuild(log, wanted=only(FileKind.OFFSET_INDEX))) == {("damaged", log.name)}


def test_behind_damage_transactions_are_known_from_the_next_sound_snapshot_on(
    damaged: Path, scenario: Scenario
) -> None:
    bases = sorted(int(path.stem) for path in damaged.glob("*.log"))
    snapshot = damaged / f"{bases[2]:020d}.snapshot"
    damage_file(snapshot, flip, 3)
    index = next(p for p in sorted(damaged.glob("*.txnindex")) if int(p.stem) >= bases[3])
    remove_file(index)
    kinds = FileKind.TRANSACTION_INDEX, FileKind.PRODUCER_SNAPSHOT
    actions = done(damaged, wanted=only(*kinds, everything=True))
    hidden = {action.path: action.reason for action in actions if action.action == "impossible"}
    assert set(hidden) == {snapshot, snapshot.with_suffix(".txnindex")}
    assert all("damage" in reason for reason in hidden.values())
    same = scenario("4.3.1/killed-recovered") / damaged.name / index.name
    assert index.read_bytes() == same.read_bytes()


@pytest.mark.parametrize("name", ["tx.mixed-0", "tx-interleaved_v2-0", "small-segments-0"])
@pytest.mark.parametrize(("segment", "batch"), [(0, 0), (0, 3), (1, 7), (2, -1), (-1, 5)])
def test_indexes_are_those_of_a_full_recovery_up_to_the_damage(
    scenario: Scenario, tmp_path: Path, name: str, segment: int, batch: int
) -> None:
    home = small_log_dir(scenario("4.3.1/killed-recovered"), tmp_path / "data", name) / name
    logs = sorted(home.glob("*.log"))
    log = logs[max(-len(logs), min(segment, len(logs) - 1))]
    at = int(batches(log).position[min(batch, len(batches(log)) - 1)])
    damage_file(log, flip, at + 66)
    loaded = load(opening.open_partition(home), StartConditions(clean=False))
    assert loaded.outcome is Outcome.LOADS
    kinds = FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX
    actions = done(home, wanted=only(*kinds, everything=True))
    assert [action.position for action in actions if action.action == "damaged"] == [at]
    kept = {name for name in loaded.shadow if Path(name).suffix in INDEXES}
    assert {Path(name).stem for name in kept} == {path.stem for path in logs if path <= log}
    for one in kept:
        assert (home / one).read_bytes() == loaded.shadow.files[one].read(), one


def test_a_log_that_recovery_gives_up_gets_nothing(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean") / "codec-none-0"
    log = next(home.glob("*.log"))
    first = int(batches(log).size[0])
    data = log.read_bytes()
    log.write_bytes(data + data[:first])
    index = log.with_suffix(".index")
    remove_file(index)
    actions = rebuild(log, wanted=only(FileKind.OFFSET_INDEX), indexing=Indexing(interval=0))
    assert steps_of(actions) == {("damaged", log.name), ("impossible", index.name)}
    assert "recovery" in actions[1].reason


def test_zeros_in_the_middle_hide_no_segment_behind_them(damaged: Path) -> None:
    log = sorted(damaged.glob("*.log"))[0]
    damage_file(log, zero, int(batches(log).position[5]), 300)
    index = sorted(damaged.glob("*.index"))[3]
    expected = index.read_bytes()
    damage_file(index, cut, 4)
    actions = done(damaged, wanted=only(FileKind.OFFSET_INDEX))
    assert [action.path.name for action in actions if action.action == "damaged"] == [
        path.name for path in sorted(damaged.glob("*.log"))[:2]
    ]
    assert index.read_bytes() == expected


# Paths


def test_a_partition_a_log_and_an_index_may_be_named_together(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    dense = home / "index.dense-0"
    index, other = sorted(dense.glob("*.index"))
    before = index.read_bytes(), other.read_bytes()
    for path in (index, other):
        remove_file(path)
    # A missing index can be named, and nothing is done twice.
    assert steps_of(rebuild(index, wanted=FileChoice())) == {("create", index.name)}
    assert steps_of(rebuild(index.with_suffix(".log"), index, wanted=FileChoice())) == {
        ("create", index.name)
    }
    paths = index, dense, other.with_suffix(".log"), home
    assert len(done(*paths, wanted=FileChoice())) == 2
    assert (index.read_bytes(), other.read_bytes()) == before


def test_an_index_without_a_log_cannot_be_built(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean") / "index.dense-0"
    log = sorted(home.glob("*.log"))[0]
    remove_file(log)
    named = log.with_suffix(".index")
    assert steps_of(rebuild(named)) == {("impossible", named.name)}
    assert steps_of(rebuild(home, wanted=FileChoice())) == {
        ("impossible", log.with_suffix(suffix).name) for suffix in (".index", ".timeindex")
    }


def test_what_is_no_file_is_not_replaced(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean") / "index.dense-0"
    first, second = sorted(home.glob("*.index"))
    for path in (first, second):
        remove_file(path)
    first.mkdir()
    assert steps_of(done(home, wanted=FileChoice())) == {
        ("impossible", first.name), ("create", second.name),
    }  # fmt: skip
    second.unlink()
    second.symlink_to(second.with_suffix(".log"))
    items = list(IndexRebuild([home], ALL, RebuildConsent(apply=True)))
    (error,) = (item for item in items if isinstance(item, UnreadableError))
    assert error.path == second
    assert second.is_symlink()


@pytest.mark.parametrize("name", ["nothing.index", f"{7:020d}.index", "partition.metadata", "no"])
def test_other_paths_are_reported_and_the_rest_is_done(copy_of: Scenario, name: str) -> None:
    home = copy_of("4.3.1/clean") / "index.dense-0"
    index = sorted(home.glob("*.index"))[0]
    remove_file(index)
    items = list(IndexRebuild([home / name, home]))
    errors = [item for item in items if isinstance(item, UnreadableError)]
    assert [error.path for error in errors] == [home / name]
    assert steps_of(item for item in items if isinstance(item, Action)) == {("create", index.name)}


def test_a_topic_that_is_being_deleted_is_left_alone(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    gone = next(home.glob("*-delete"))
    for path in gone.glob("*.index"):
        remove_file(path)
    assert rebuild(home, wanted=FileChoice()) == []


# Writing


def test_a_dry_run_changes_nothing(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/killed")
    before = fingerprint(home.parent)
    assert rebuild(home)
    assert fingerprint(home.parent) == before


def test_what_was_done_can_be_undone(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/killed")
    before = fingerprint(home)
    job = IndexRebuild([home], ALL, RebuildConsent(apply=True))
    assert len(list(job)) > 60
    (undo_dir,) = job.undo_dirs
    assert undo_dir.parent == home.parent
    assert fingerprint(home) != before
    Journal.open(undo_dir).undo()
    assert fingerprint(home) == before


def test_a_broker_that_holds_the_log_dir_is_respected(copy_of: Scenario) -> None:
    first, second = copy_of("4.3.1/clean"), copy_of("3.9.2/torn")
    for path in (*first.rglob("*.index"), *second.rglob("*.index")):
        path.unlink()
    holder = _hold(first)
    try:
        items = list(IndexRebuild([first, second], FileChoice(), RebuildConsent(apply=True)))
    finally:
        holder.kill()
        holder.wait()
    (refused,) = (item for item in items if isinstance(item, RefusedError))
    assert str(first) in str(refused)
    assert not list(first.rglob("*.index"))
    assert list(second.rglob("*.index"))


def _hold(home: Path):
    import subprocess
    import sys

    program = (
        "import fcntl, sys, time\n"
        f"file = open({str(home / '.lock')!r}, 'r+' if {(home / '.lock').exists()} else 'w+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\nprint(flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    return process


def test_copies_go_to_a_directory_of_their_own(scenario: Scenario, tmp_path: Path) -> None:
    home = small_log_dir(
        scenario("4.3.1/killed-recovered"), tmp_path / "data", "index.dense-0", "tx.mixed-0",
        "__cluster_metadata-0",
    )  # fmt: skip
    lost = [
        path for name in ("index.dense-0", "tx.mixed-0") for path in (home / name).glob("*index")
    ]
    for path in lost:
        path.unlink()
    before = fingerprint(home)
    output = tmp_path / "new"
    actions = rebuild(home, wanted=FileChoice(), consent=RebuildConsent(output=output))
    assert fingerprint(home) == before
    assert {action.target for action in actions} == {p for p in output.rglob("*") if p.is_file()}
    same = scenario("4.3.1/killed-recovered")
    for path in lost:
        expected = (same / path.parent.name / path.name).read_bytes()
        copy = output / path.parent.name / path.name
        assert (copy.read_bytes() if copy.exists() else b"") == expected


def test_copies_are_never_written_into_a_log_dir_or_over_something(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/killed")
    used = home.parent / "used"
    used.mkdir()
    (used / "mine").touch()
    before = fingerprint(home.parent)
    for output in (home / "new", home / "index.dense-0" / "new", home, used):
        with pytest.raises(RefusedError):
            list(IndexRebuild([home], ALL, RebuildConsent(output=output)))
    assert fingerprint(home.parent) == before


def test_one_undo_directory_is_for_one_log_dir(copy_of: Scenario, tmp_path: Path) -> None:
    paths = [copy_of("4.3.1/killed"), copy_of("4.3.1/torn")]
    with pytest.raises(UsageError, match="--undo-dir"):
        list(IndexRebuild(paths, ALL, RebuildConsent(apply=True, undo_dir=tmp_path / "undo")))


def test_once_time_is_over_nothing_is_changed(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/killed")
    before = fingerprint(home)
    for spent in (0, 2_000_000):
        pace = _Ending(spent)
        job = IndexRebuild(
            [home], ALL, RebuildConsent(apply=True), run=Run(budget=Budget(pace=pace))
        )
        list(job)
        assert job.run.ran_out
        assert fingerprint(home) == before
        assert job.undo_dirs == []
        assert list(home.parent.glob("*undo*")) == []


class _Ending(Pace):
    """A pace whose time is over after so many bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._left = size

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            self.end()
        super().spend(count)


def test_many_threads_say_the_same(copy_of: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    home = copy_of("4.3.1/killed")
    alone = rebuild(home)
    monkeypatch.setattr("logtool.checks.schedule.WORTH_A_POOL", 0)
    monkeypatch.setattr("logtool.running.run.WORTH_A_POOL", 0)
    assert rebuild(home, run=Run(budget=Budget(4))) == alone


def test_afterwards_verify_finds_nothing_more_in_them(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    for path in built_files(home).values():
        if path.stat().st_size > 12:
            damage_file(path, flip, 2)
    assert verify(home).above_info()
    done(home, wanted=FileChoice())
    assert verify(home).above_info() == []


def test_what_a_kill_interrupted_is_finished_first(
    copy_of: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = copy_of("4.3.1/killed")
    whole = {(a.path, a.length) for a in rebuild(home)}
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "carry_out", lambda *_: None)
        done(home)
    assert len(apply.find_unfinished(home)) == 1
    (finished,) = done(home)
    assert finished.action == "finish"
    assert {(path, path.stat().st_size) for path, _ in whole if path.exists()} == {
        (path, size) for path, size in whole if path.exists()
    }
    assert names.parse_partition_file(finished.path.name).offset is None


@pytest.mark.parametrize("indexed", [True, False])
def test_an_aborted_transaction_without_records_gets_the_entry_that_recovery_makes(
    tmp_path: Path, indexed: bool
) -> None:
    mine, theirs = tmp_path / "mine" / "t-0", tmp_path / "theirs" / "t-0"
    for home in (mine, theirs):
        loadable.write_emptied_transaction(home, indexed=indexed)
    assert "transaction-index/missing-entry" not in {f.code for f in verify(mine).findings}
    done(mine, wanted=FileChoice())
    made = {path.name: path.read_bytes() for path in mine.glob("*.txnindex")}
    load_in_place(theirs, clean=indexed)
    assert made == {path.name: path.read_bytes() for path in theirs.glob("*.txnindex")}
    assert bool(made) is not indexed


def load_in_place(home: Path, *, clean: bool) -> None:
    """Write the files of a load as a broker would."""
    loaded = load(opening.open_partition(home), StartConditions(clean=clean, now_ms=1))
    for name, file in loaded.shadow.files.items():
        (home / name).write_bytes(file.read())
