"""A log dir that changes from night to night, and runs of scrub over it without a clock."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tiny_segments
from verification import set_offsets

from logtool.checks import schedule
from logtool.checks.segment_ranges import check_tasks
from logtool.findings import Finding, Severity
from logtool.formats import record, record_batch
from logtool.scrub import reports, state
from logtool.scrub.open import StoredFinding, stored
from logtool.scrub.run import ScrubOptions, ScrubRun
from logtool.scrub.state import ScrubState, open_for_run
from logtool.times import DAY_MS
from logtool.verify import Budget

FIRST_NIGHT = 1_790_000_000_000
CYCLE_DAYS = 30


@dataclass
class World:
    """A log dir of small segments, its state file, and what was read of it."""

    home: Path
    state: Path
    read: list[Path] = field(default_factory=list)
    """The logs that were read since `night` began, in the order of their tasks."""
    events: Path | None = None
    """A file to which each log that is read is added, for a process that may die."""

    def partition(self, number: int) -> Path:
        return self.home / f"bench.0-{number}"

    def logs(self) -> dict[bytes, Path]:
        return {os.fsencode(path): path for path in self.home.glob("*/*.log")}

    def active(self, number: int) -> Path:
        return max(self.partition(number).glob("*.log"))

    def append(self, number: int, size: int = 700) -> None:
        """Append a batch with one record to the active segment."""
        log = self.active(number)
        with log.open("ab") as out:
            out.write(_batch(self.end(number), size))

    def end(self, number: int) -> int:
        """Return the log end offset, by the headers of the batches of the active segment."""
        log = self.active(number)
        data, position, end = log.read_bytes(), 0, int(log.stem)
        while position < len(data):
            end = int.from_bytes(data[position : position + 8], "big") + 1
            position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        return end

    def roll(self, number: int) -> None:
        """Close the active segment, and begin the next one with a record."""
        log, last = self.active(number), self.end(number) - 1
        entry = (tiny_segments.FIRST_TIME + last).to_bytes(8, "big")
        log.with_suffix(".timeindex").write_bytes(entry + (last - int(log.stem)).to_bytes(4, "big"))
        tiny_segments.write(self.partition(number), [self.end(number)], bytes(700))
        self._write_start(number)

    def delete_oldest(self, number: int) -> None:
        """Delete the oldest segment, as retention does."""
        oldest = min(self.partition(number).glob("*.log"))
        for path in self.partition(number).glob(f"{oldest.stem}.*"):
            path.unlink()
        self._write_start(number)

    def _write_start(self, number: int) -> None:
        """Let the files of the log dir say that the log starts with its first segment."""
        start = int(min(self.partition(number).glob("*.log")).stem)
        (self.partition(number) / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {start}\n")
        rows = {("bench.0", number): start}
        set_offsets(self.home / "log-start-offset-checkpoint", rows)

    def rewrite(self, log: Path) -> None:
        """Put a new file with the same bytes in the place of a log, as the cleaner does."""
        other = log.with_suffix(".other")
        other.write_bytes(log.read_bytes())
        os.utime(other, ns=(log.stat().st_mtime_ns, log.stat().st_mtime_ns))
        other.replace(log)

    def flip(self, log: Path) -> None:
        """Flip a byte in place, or flip it back: size, times and inode stay."""
        status = log.stat()
        with log.open("r+b") as file:
            file.seek(70)
            byte = file.read(1)[0]
            file.seek(70)
            file.write(bytes([byte ^ 0xFF]))
        os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))

    def night(self, day: float, **more: Any) -> ScrubRun:
        """Run scrub on a day; `more` are arguments of `run_of`."""
        self.read.clear()
        with open_for_run(self.state, [self.home]) as opened:
            job = self.run_of(opened, day, **more)
            self.items = list(job)
            job.finish(int(job.summary.exit_status()))
        return job

    def killed_night(self, day: float, at: int, only: str = "", **more: Any) -> set[Path]:
        """Let a run die before statement `at` of its state file; return what it has marked.

        What is marked was read. `only` is that of `counted`.
        """
        before = self.checked()
        self.events = self.state.with_suffix(".events")
        self.events.write_text("")
        assert dies(lambda: self.night(day, **more), at, only)
        read = {Path(line) for line in self.events.read_text().splitlines()}
        self.events = None
        marked = {path for path, when in self.checked().items() if when != before.get(path)}
        assert marked <= read
        return {path for path in marked if self.checked()[path] == day}

    def run_of(
        self, opened: ScrubState, day: float, *, cycle_days: float = CYCLE_DAYS, **more: Any
    ) -> ScrubRun:
        now_ms, cycle_ms = FIRST_NIGHT + round(day * DAY_MS), round(cycle_days * DAY_MS)
        options = ScrubOptions(now_ms, cycle_ms)
        return ScrubRun([self.home], opened, options, budget=more.pop("budget", Budget()), **more)

    def codes(self) -> set[str]:
        """Return the codes at or above warning that the last night found."""
        found = [one for one in self.items if isinstance(one, Finding)]
        return {one.code for one in found if one.severity is not Severity.INFO}

    def checked(self) -> dict[Path, float | None]:
        """Return the day of the last check of each log, as the state file has it."""
        if not self.state.exists():
            return {}
        with open_for_run(self.state) as opened:
            return {
                Path(os.fsdecode(one.path)): None
                if one.checked_ms is None
                else (one.checked_ms - FIRST_NIGHT) / DAY_MS
                for one in opened.segments()
            }


def make_world(home: Path, partitions: int, segments: int, size: int) -> World:
    """Write a log dir of a broker that runs with ZooKeeper, and so has no metadata log."""
    log_dir = home / "data"
    log_dir.mkdir()
    tiny_segments.write_log_dir(log_dir, partitions, segments, size)
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "meta.properties").write_text("version=0\nbroker.id=1\n")
    return World(log_dir, home / "scrub.db")


def watch(world: World, patch: pytest.MonkeyPatch) -> World:
    """Let the world see which logs are read, by the tasks that the schedule runs."""

    def seen(tasks: Any, on_bytes: Any) -> Any:
        for task in tasks:
            world.read.append(task.segment.log.path)
            if world.events:
                with world.events.open("a") as out:
                    out.write(f"{task.segment.log.path}\n")
        return check_tasks(tasks, on_bytes)

    patch.setattr(schedule, "check_tasks", seen)
    patch.setattr(state, "SYNCHRONOUS", "OFF")  # as without_fsync
    patch.setattr(reports, "COMMIT_SEGMENTS", 2)
    return world


def _batch(offset: int, size: int) -> bytes:
    stamp = tiny_segments.FIRST_TIME + offset
    payload = record.encode([record.Record(0, 0, b"key", bytes(size))])
    return record_batch.encode(
        payload, base_offset=offset, last_offset_delta=0, record_count=1, leader_epoch=0,
        base_timestamp=stamp, max_timestamp=stamp,
    )  # fmt: skip


@contextmanager
def counted(at: int, fault: Callable[[], None], only: str = "") -> Iterator[list[str]]:
    """Count the statements of state files, and call `fault` before the one with number `at`.

    With `only`, other statements do not count.
    """
    seen: list[str] = []
    execute, commit = ScrubState.execute, ScrubState.commit

    def before(name: str) -> None:
        if only not in name:
            return
        seen.append(name)
        if len(seen) == at:
            fault()

    def counted_execute(self: ScrubState, statement: str, values: Any = ()) -> Any:
        before(statement)
        return execute(self, statement, values)

    def counted_commit(self: ScrubState) -> None:
        before("COMMIT")
        commit(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScrubState, "execute", counted_execute)
        patch.setattr(ScrubState, "commit", counted_commit)
        yield seen


def dies(job: Callable[[], object], at: int, only: str = "") -> bool:
    """Let a process run a job and die at a statement; return whether it died."""
    child = os.fork()
    if not child:
        try:
            with counted(at, lambda: os.kill(os.getpid(), signal.SIGKILL), only):
                job()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def stored_findings(world: World) -> list[StoredFinding]:
    with open_for_run(world.state) as opened:
        return list(stored(opened))
