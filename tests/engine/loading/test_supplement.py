"""Recovery that supplements against recovery that rebuilds: of real logs, damaged ones, corners."""

import dataclasses
import re
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from broker import damaged
from damage import append_to_file, damage_file, flip, zero
from supplements import (
    both,
    changed_again,
    differences,
    last_time,
    new_findings,
    snapshot,
    unclean_starts,
    write_out,
)
from verification import batches

from logtool.disk.files import LogFile
from logtool.formats import producer_snapshot, time_index, transaction_index
from logtool.loading.loader import load
from logtool.loading.recovery import encode_aborted
from logtool.loading.result import LoadResult, Outcome, StartConditions
from logtool.loading.shadow import Shadow
from logtool.loading.supplement import supplement
from logtool.log import opening
from logtool.log.producer_state import AbortedTransaction

Scenario = Callable[[str], Path]
_SCENARIOS = [
    f"{version}/{name}"
    for version in ("4.3.1", "3.9.2")
    for name in ("killed", "torn", "running", "clean", "java-clients")
] + ["3.9.0/compaction"]
_NEVER = 2**62
"""No producer expires: fixtures grow old."""
_UNSEEN = re.compile(
    r"snapshot|gone|higher|swap|twice|instead|moved|cleaned|log: cut|behind|empty|\]:"
    r"|marker|compact|a file"
)
"""Damages that a CRC does not show, and those to the producers: a snapshot then knows better, or
worse, than the log."""


@pytest.mark.parametrize("name", _SCENARIOS)
def test_a_log_is_supplemented_to_what_rebuilding_makes_of_it(
    scenario: Scenario, name: str, tmp_path: Path
) -> None:
    homes = sorted(scenario(name).rglob("meta.properties"))
    applied = {"rebuilt": 0, "mine": 0}
    for path, start in (found for home in homes for found in unclean_starts(home.parent)):
        rebuilt, mine = both(path, start)
        assert mine.outcome is rebuilt.outcome is Outcome.LOADS
        assert differences(path, rebuilt, mine) == [], path.name
        assert new_findings(path, rebuilt, mine, tmp_path) == set()
        assert changed_again(tmp_path / "mine" / path.name, start) == []
        assert mine.bytes_applied <= rebuilt.bytes_applied
        applied["rebuilt"] += rebuilt.bytes_applied
        applied["mine"] += mine.bytes_applied
    assert applied["mine"] < applied["rebuilt"] or "torn" in name


@pytest.mark.long
@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_a_damaged_log_is_supplemented_to_what_rebuilding_makes_of_it(
    scenario: Scenario, version: str, tmp_path: Path
) -> None:
    compared = 0
    for case in damaged.cases(version, scenario, tmp_path / "cases", seed=7, count=200):
        path = Path(shutil.move(case.path, tmp_path / "in" / f"{case.name}-0"))
        start = StartConditions(
            False, case.recovery_point or 0, case.log_start or 0, expiration_ms=_NEVER,
            index_interval=case.settings.index_interval, max_index_size=case.settings.index_size,
            kafka=(int(version[0]), int(version[2])),
        )  # fmt: skip
        rebuilt, mine = both(path, start)
        if Outcome.LOADS not in (rebuilt.outcome, mine.outcome):
            continue
        # A segment without replay stops no start. A directory in the place of a snapshot stops it,
        # but a broker of today empties the segment.
        loads = mine.outcome is Outcome.LOADS or ".snapshot " in mine.reason
        assert loads, case.description
        if mine.outcome is not rebuilt.outcome or "is a directory" in case.description:
            continue
        sound = not _UNSEEN.search("; ".join((*case.damage, case.source)) + ":")
        assert differences(path, rebuilt, mine, producers=sound) == [], case.description
        if sound and not start.log_start:
            assert new_findings(path, rebuilt, mine, tmp_path) == set(), case.description
        if sound:
            written = write_out(mine.shadow, tmp_path / "again" / path.name)
            assert changed_again(written, start) == [], case.description
        compared += 1
    assert compared > 100


# --- corners -------------------------------------------------------------------------------------


class Subject:
    """A partition of transactions in 17 segments, the last two not flushed, that may be changed."""

    ACTIVE, LAST, FLOOR, END = 1992, 1859, 1736, 2003

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = StartConditions(False, self.FLOOR, 0, expiration_ms=_NEVER)

    def file(self, base_offset: int, suffix: str) -> Path:
        return self.path / f"{base_offset:020}{suffix}"

    def index(self, base_offset: int, suffix: str) -> bytes:
        return self.file(base_offset, suffix).read_bytes()

    def run(self, **more: Any) -> tuple[LoadResult, LoadResult]:
        """Return the results of rebuilding and of supplementing, when they agree."""
        start = dataclasses.replace(self.start, **more)
        rebuilt, mine = both(self.path, start)
        assert differences(self.path, rebuilt, mine) == []
        again = write_out(mine.shadow, self.path.parent / "again" / self.path.name)
        assert changed_again(again, start) == []
        shutil.rmtree(again)
        return rebuilt, mine

    def changes(self, mine: LoadResult) -> set[str]:
        """Return the changes but for the padding of the active segment and a stray snapshot."""
        usual = {f"{self.ACTIVE:020}.index", f"{self.ACTIVE:020}.timeindex",
                 f"{336:020}.snapshot", f"{self.END:020}.snapshot"}  # fmt: skip
        return {change.path.name for change in mine.shadow.changes()} - usual


@pytest.fixture
def subject(copy_of: Scenario) -> Subject:
    return Subject(copy_of("4.3.1/killed") / "tx.mixed-0")


def _content(mine: LoadResult, base_offset: int, suffix: str) -> bytes:
    return mine.shadow.files[f"{base_offset:020}{suffix}"].read()


def test_what_is_whole_stays_and_only_what_is_behind_the_newest_snapshot_is_replayed(
    subject: Subject,
) -> None:
    rebuilt, mine = subject.run()
    assert subject.changes(mine) == set()
    assert mine.bytes_scanned == rebuilt.bytes_scanned
    assert mine.bytes_applied == subject.file(subject.ACTIVE, ".log").stat().st_size
    assert rebuilt.bytes_applied == rebuilt.bytes_scanned
    assert mine.bytes_replayed == 0
    assert 0 < mine.records_applied < rebuilt.records_applied


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("base_offset", [Subject.LAST, 1603])
def test_a_torn_last_entry_goes(subject: Subject, suffix: str, base_offset: int) -> None:
    before = subject.index(base_offset, suffix)
    append_to_file(subject.file(base_offset, suffix), b"\1\2\3\4\5")
    _, mine = subject.run()
    assert _content(mine, base_offset, suffix) == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_padding_goes(subject: Subject, suffix: str) -> None:
    before = subject.index(subject.LAST, suffix)
    append_to_file(subject.file(subject.LAST, suffix), bytes(240))
    _, mine = subject.run()
    assert _content(mine, subject.LAST, suffix) == before


def test_indexes_that_are_ahead_of_the_log_are_cut_with_it(subject: Subject) -> None:
    log = subject.file(subject.ACTIVE, ".log")
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        subject.file(subject.ACTIVE, suffix).unlink()
    log = subject.file(subject.LAST, ".log")
    table = batches(log)
    log.write_bytes(log.read_bytes()[: int(table.position[2])])
    _, mine = subject.run(recovery_point=subject.FLOOR)
    assert mine.log_end == int(table.base_offset[2])
    assert _content(mine, subject.LAST, ".index") == b""
    assert _content(mine, subject.LAST, ".txnindex") == b""
    assert last_time(mine, subject.LAST) == (max(table.max_timestamp[:2]), mine.log_end - 1)


def test_a_snapshot_ahead_of_the_log_goes(subject: Subject) -> None:
    ahead = subject.file(subject.END + 7, ".snapshot")
    shutil.copy(subject.file(subject.ACTIVE, ".snapshot"), ahead)
    _, mine = subject.run()
    assert ahead.name not in mine.shadow


@pytest.mark.parametrize("gone", [[], [".index", ".timeindex"]])
def test_a_snapshot_older_than_the_first_missing_abort_is_begun_with(
    subject: Subject, gone: list[str]
) -> None:
    expected = {base: subject.index(base, ".txnindex") for base in (subject.FLOOR, subject.LAST)}
    for suffix in (".txnindex", *gone):
        subject.file(subject.FLOOR, suffix).unlink()
    rebuilt, mine = subject.run()
    for base, entries in expected.items():
        assert _content(mine, base, ".txnindex") == entries
    assert mine.bytes_applied == mine.bytes_scanned
    twice = subject.file(subject.FLOOR, ".log").stat().st_size if gone else 0
    assert rebuilt.bytes_scanned == mine.bytes_scanned + twice


def test_an_entry_without_its_marker_goes_and_the_right_one_is_made(subject: Subject) -> None:
    right = subject.index(subject.LAST, ".txnindex")
    wrong = AbortedTransaction(1011, 1839, 1870, 1871)
    subject.file(subject.LAST, ".txnindex").write_bytes(encode_aborted([wrong]))
    _, mine = subject.run()
    assert _content(mine, subject.LAST, ".txnindex") == right


def test_an_entry_of_an_unknown_version_is_made_again_where_a_broker_refuses(
    subject: Subject,
) -> None:
    right = subject.index(803, ".txnindex")
    damage_file(subject.file(803, ".txnindex"), flip, 0, 1)
    assert load(opening.open_partition(subject.path), subject.start).outcome is Outcome.REFUSES
    mine = supplement(opening.open_partition(subject.path), subject.start)
    assert mine.outcome is Outcome.LOADS
    assert _content(mine, 803, ".txnindex") == right


@pytest.mark.parametrize("base_offset", [Subject.LAST, 803])
def test_a_missing_time_index_is_built(subject: Subject, base_offset: int) -> None:
    before = subject.index(base_offset, ".timeindex")
    subject.file(base_offset, ".timeindex").unlink()
    _, mine = subject.run()
    assert _content(mine, base_offset, ".timeindex")[-12:] == before[-12:]


def test_a_flushed_log_that_is_damaged_gets_no_short_time_index(subject: Subject) -> None:
    subject.file(803, ".timeindex").unlink()
    log = subject.file(803, ".log")
    damage_file(log, flip, int(batches(log).position[5]) + 30)
    _, mine = subject.run()
    assert _content(mine, 803, ".timeindex") == b""
    assert subject.changes(mine) == {f"{803:020}.timeindex"}


def test_the_closing_entry_has_the_largest_timestamp_and_the_first_batch_that_has_it(
    subject: Subject,
) -> None:
    whole = subject.index(subject.LAST, ".timeindex")
    subject.file(subject.LAST, ".timeindex").write_bytes(whole[:-12] + bytes(1200))
    rebuilt, mine = subject.run()
    table = batches(subject.file(subject.LAST, ".log"))
    first = int(table.max_timestamp.argmax())
    expected = int(table.max_timestamp[first]), int(table.last_offset[first])
    assert last_time(mine, subject.LAST) == expected == last_time(rebuilt, subject.LAST)
    assert _content(mine, subject.LAST, ".timeindex").startswith(whole[:-12])


def test_a_closing_entry_that_names_the_record_gets_the_offset_of_its_batch(
    subject: Subject,
) -> None:
    whole = subject.index(subject.LAST, ".timeindex")
    index = time_index.parse(whole)
    table = batches(subject.file(subject.LAST, ".log"))
    row = int(table.max_timestamp.argmax())
    assert table.base_offset[row] < table.last_offset[row]
    older = int(table.base_offset[row] - subject.LAST).to_bytes(4, "big")
    assert index.relative_offsets[-1] == table.last_offset[row] - subject.LAST
    subject.file(subject.LAST, ".timeindex").write_bytes(whole[:-4] + older)
    _, mine = subject.run()
    assert _content(mine, subject.LAST, ".timeindex") == whole


def test_entries_are_made_an_interval_behind_those_that_stay(subject: Subject) -> None:
    dense, _ = subject.run(index_interval=200)
    whole = _content(dense, subject.LAST, ".index")
    subject.file(subject.LAST, ".index").write_bytes(whole[:40] + bytes(8) + whole[48:])
    _, mine = subject.run(index_interval=200)
    again = _content(mine, subject.LAST, ".index")
    assert again[:40] == whole[:40]
    positions = [int.from_bytes(again[i + 4 : i + 8], "big") for i in range(0, len(again), 8)]
    largest = int(batches(subject.file(subject.LAST, ".log")).size.max())
    assert len(positions) > 8
    assert all(0 < b - a <= 400 + largest for a, b in pairwise(positions))


def test_a_recovery_point_beyond_the_log_makes_everything_suspect(subject: Subject) -> None:
    log = subject.file(803, ".log")
    table = batches(log)
    damage_file(log, flip, int(table.position[5]) + 30)
    beyond = dataclasses.replace(subject.start, recovery_point=9999)
    assert load(opening.open_partition(subject.path), beyond).log_end == subject.END
    _, mine = subject.run(recovery_point=9999)
    assert mine.log_end == int(table.base_offset[5])
    assert set(mine.removed) >= {947, 1090, subject.ACTIVE}


def test_without_a_recovery_point_all_is_checked_and_little_replayed(subject: Subject) -> None:
    rebuilt, mine = subject.run(recovery_point=0)
    logs = sum(path.stat().st_size for path in subject.path.glob("*.log"))
    assert mine.bytes_scanned == rebuilt.bytes_scanned == logs
    assert mine.bytes_applied < logs / 100 < rebuilt.bytes_applied
    assert subject.changes(mine) == set()


@pytest.mark.parametrize("point", [0, Subject.FLOOR])
def test_without_any_snapshot_all_is_replayed_from_the_log_start(
    subject: Subject, point: int
) -> None:
    for path in subject.path.glob("*.snapshot"):
        path.unlink()
    rebuilt, mine = subject.run(recovery_point=point)
    logs = sum(path.stat().st_size for path in subject.path.glob("*.log"))
    assert mine.bytes_applied == logs
    assert mine.bytes_replayed == logs - mine.bytes_scanned
    for base in (subject.LAST, subject.ACTIVE):
        assert f"{base:020}.snapshot" in mine.shadow
    assert snapshot(mine) == snapshot(rebuilt)


def test_damage_in_the_middle_cuts_the_log_and_takes_what_stands_behind(subject: Subject) -> None:
    log = subject.file(subject.FLOOR, ".log")
    table = batches(log)
    damage_file(log, flip, int(table.position[7]) + 30)
    rebuilt, mine = subject.run()
    assert mine.log_end == int(table.base_offset[7])
    assert set(mine.removed) == {subject.LAST, subject.ACTIVE} == set(rebuilt.removed)
    snapshots = [int(name[:20]) for name in mine.shadow if name.endswith(".snapshot")]
    assert max(snapshots) == mine.log_end


def test_a_segment_that_a_broker_empties_is_cut_precisely_where_that_is_wished(
    subject: Subject,
) -> None:
    log = subject.file(subject.LAST, ".log")
    data, table = log.read_bytes(), batches(log)
    end = int(table.position[9])
    log.write_bytes(data[:end] + data)
    start = dataclasses.replace(subject.start, index_interval=64)
    emptied = supplement(opening.open_partition(subject.path), start)
    assert emptied.log_end == subject.LAST
    precise = supplement(
        opening.open_partition(subject.path), dataclasses.replace(start, cut_precisely=True)
    )
    assert precise.log_end == int(table.base_offset[9])
    assert _content(precise, subject.LAST, ".log") == data[:end]


@pytest.mark.parametrize("what", ["torn", "inside a batch", "of an empty state"])
def test_a_snapshot_that_does_not_fit_is_not_begun_with(subject: Subject, what: str) -> None:
    newest = subject.file(subject.ACTIVE, ".snapshot")
    if what == "torn":
        damage_file(newest, zero, 100, 60)
    elif what == "inside a batch":
        table = batches(subject.file(subject.ACTIVE, ".log"))
        inside = int(table.base_offset[0]) + 1
        assert inside <= int(table.last_offset[0])
        newest.rename(subject.file(inside, ".snapshot"))
    else:
        empty = producer_snapshot.encode(
            producer_snapshot.build(producer_snapshot.parse(b"").entries)
        )
        newest.write_bytes(empty)
    rebuilt, mine = subject.run()
    sizes = [subject.file(base, ".log").stat().st_size for base in (subject.LAST, subject.ACTIVE)]
    assert mine.bytes_applied == sum(sizes)
    name = f"{subject.ACTIVE:020}.snapshot"
    assert producer_snapshot.parse(mine.shadow.files[name].read()).count == 5
    assert snapshot(mine) == snapshot(rebuilt)


def test_what_was_stopped_in_order_is_loaded_as_by_a_broker(subject: Subject) -> None:
    start = dataclasses.replace(subject.start, clean=True)
    rebuilt, mine = (one(opening.open_partition(subject.path), start) for one in (load, supplement))
    assert not mine.supplemented
    assert mine.shadow.changes() == rebuilt.shadow.changes()


def test_no_entry_is_made_for_an_abort_that_left_nothing(subject: Subject) -> None:
    aborts = [
        path for path in sorted(subject.path.glob("*.txnindex"))
        if len(transaction_index.parse(path.read_bytes())) == 1
    ]  # fmt: skip
    for path in aborts:
        path.unlink()
    rebuilt, mine = subject.run(recovery_point=0)
    for path in aborts:
        assert mine.shadow.files[path.name].read() == rebuilt.shadow.files[path.name].read()


def test_an_index_is_read_up_to_the_hole_at_its_end_with_the_entry_that_goes_on_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = bytes.fromhex("00000001 00000000 00000000")
    path = tmp_path / f"{0:020}.timeindex"
    path.write_bytes((entry * 342)[:4096])
    with path.open("r+b") as file:
        file.truncate(10 * 1024 * 1024)
    monkeypatch.setattr(LogFile, "data_end", lambda _: 4096)
    (listed,) = opening.open_partition(tmp_path).files()
    sparse = dataclasses.replace(listed, allocated=4096)
    index = Shadow(tmp_path, [sparse]).files[path.name]

    found = index.read_entries()

    assert len(found) < 5000
    assert len(time_index.parse(found)) == len(time_index.parse(index.read())) == 342


@pytest.mark.parametrize("pieces", [[], [0], [1], [0, 5], [9]])
def test_behind_the_end_of_its_data_a_file_has_zeros_alone(
    tmp_path: Path, pieces: list[int]
) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(10 * 65536)
        for piece in pieces:
            file.seek(piece * 65536 + 65535)
            file.write(b"x")
    with LogFile(path) as log:
        end = log.data_end()
        assert log.size >= end >= 65536 * max((piece + 1 for piece in pieces), default=0)
