"""A month and a half of nights over a log dir that changes: coverage is exact all the time."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from scrubbing import CYCLE_DAYS, World, make_world, stored_findings, watch

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
PARTITIONS, SEGMENTS, SIZE, NIGHTS = 2, 8, 800, 42
KILLED = (7, 8, 34)
"""Nights on which a run dies before its third commit, and another one follows."""
REWRITTEN, DAMAGED, REPAIRED = 10, 5, 38
Files = tuple[int, int, int]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A log dir of two partitions with eight segments each, of a broker that runs."""
    yield watch(make_world(tmp_path, PARTITIONS, SEGMENTS, SIZE), monkeypatch)


@dataclass
class Expected:
    """The state of each log by what was read of it, without a look at the state file."""

    since: dict[Path, float] = field(default_factory=dict)
    """The day since which a log is not checked."""
    files: dict[Path, Files] = field(default_factory=dict)
    """Inode, size and mtime of a log when it was read last."""

    active: set[Path] = field(default_factory=set)

    def list(self, logs: set[Path], active: set[Path], day: int) -> set[Path]:
        """Take the logs that are there; return closed ones that are new or changed."""
        for gone in self.since.keys() - logs:
            del self.since[gone]
            self.files.pop(gone, None)
        for path in logs:
            self.since.setdefault(path, day)
        changed = {p for p in logs - active if self.files.get(p, files_of(p)) != files_of(p)}
        for path in changed:
            if path not in self.active:
                self.since[path] = day
            del self.files[path]
        self.active = active
        return changed

    def checked(self, path: Path, day: int) -> None:
        self.since[path], self.files[path] = day, files_of(path)


def files_of(path: Path) -> Files:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def change(world: World, day: int) -> None:
    """Change the log dir as a broker does in a day, and damage it now and then."""
    for number in range(PARTITIONS):
        world.append(number)
        if day % 2:
            world.roll(number)
    if day % 2:
        world.delete_oldest(0)
    victim = world.partition(1) / f"{6:020d}.log"
    if day == REWRITTEN:
        world.rewrite(sorted(world.partition(0).glob("*.log"))[2])
    if day in (DAMAGED, REPAIRED):
        world.flip(victim)


def test_every_segment_is_checked_in_its_cycle_and_none_twice_without_a_reason(
    world: World,
) -> None:
    expected = Expected()
    bad: set[Path] = set()
    found_on: list[int] = []
    for day in range(NIGHTS):
        change(world, day)
        logs = set(world.logs().values())
        active = {world.active(number) for number in range(PARTITIONS)}
        changed = expected.list(logs, active, day)
        if day in KILLED:
            marked = world.killed_night(day, at=3, only="COMMIT")
            assert len(marked) == 2
            for path in marked:
                expected.checked(path, day)
        job = world.night(day)
        read = set(world.read)
        assert len(world.read) == len(read) == job.row.segments
        assert job.row.bytes == sum(path.stat().st_size for path in read)
        if day == REWRITTEN:
            assert changed <= read
        # A log is read again because it changed or was bad, or as one of the oldest.
        spared = [expected.since[path] for path in logs - read]
        for path in read - changed - bad:
            if path in expected.files:
                assert expected.since[path] <= min(spared)
        sizes = [path.stat().st_size for path in logs]
        share = sum(sizes) / CYCLE_DAYS + max(sizes)
        assert job.row.bytes <= 2 * share + len(bad) * max(sizes)
        for path in read:
            expected.checked(path, day)
        assert all(day + 1 - expected.since[path] <= CYCLE_DAYS for path in logs)
        checked = world.checked()
        assert checked == {p: expected.since[p] if p in expected.files else None for p in logs}
        bad = {world.partition(1) / f"{6:020d}.log"} if world.codes() else set()
        if bad:
            found_on.append(day)
            assert world.codes() == {"batch/crc"}
            assert int(job.summary.exit_status()) == 1
    assert found_on[0] <= DAMAGED + CYCLE_DAYS
    assert found_on == list(range(found_on[0], REPAIRED))
    (finding,) = [one for one in stored_findings(world) if one.finding.code == "batch/crc"]
    assert finding.gone_ms is not None
    assert all(path in expected.files for path in set(world.logs().values()) - active)


def test_each_night_of_a_cycle_reads_as_much(world: World) -> None:
    read = [world.night(day, cycle_days=8).row.segments for day in range(8)]
    assert read == [2] * 8
    assert set(world.checked().values()) == set(range(8))
