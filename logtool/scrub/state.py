"""The state file of `scrub`: a SQLite database with the tables of `logtool.scrub.tables`.

Each commit is atomic: a kill at any moment leaves the rows of the last one. A run holds a lock on
the file, so that no other run writes to it; `scrub --status` reads it meanwhile.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from logtool.errors import LogtoolError, RefusedError, UnreadableError, UsageError
from logtool.lazy_dataclass import dataclass
from logtool.running.own_file import require_outside
from logtool.scrub.due import KnownSegment
from logtool.scrub.listing import ListedPartition, ListedSegment, SegmentListing, home_of
from logtool.scrub.tables import APPLICATION, CREATE_PART, STATEMENTS, VERSION
from logtool.times import rfc3339

SYNCHRONOUS = "FULL"
"""The setting of SQLite: a commit is durable when it returns."""
_WAIT_SECONDS = 10
"""Time to wait for another process that reads or writes the file at the moment."""
_SHARED = sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED
_KNOWN = (
    "SELECT path, home, topic, size, active, first_seen_ms, since_ms, checked_ms, level, findings, "
    "begun_ms FROM segment ORDER BY path"
)


@dataclass(slots=True)
class RunRow:
    """A row of the table ``run``; `id` is 0 for a run that has no row yet."""

    start_ms: int
    cycle_ms: int
    level: str
    end_ms: int | None = None
    due_segments: int = 0
    due_bytes: int = 0
    segments: int = 0
    bytes: int = 0
    complete: bool = False
    status: int | None = None
    id: int = 0

    @property
    def start(self) -> str | None:
        """Return `start_ms` as RFC 3339."""
        return rfc3339(self.start_ms)

    @property
    def end(self) -> str | None:
        """Return `end_ms` as RFC 3339."""
        return rfc3339(self.end_ms)


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row of the table ``report``."""

    asked: str
    content: bytes
    producer_rows: bytes | None


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    """The result of a check, for the row of the segment."""

    listed: ListedSegment
    home: bytes
    level: str
    findings: int
    kept: KeptRow | None
    """The report for later runs; None for one that cannot be kept."""


@dataclass(slots=True)
class ScrubState:
    """An open state file. Close it, or use it as a context manager."""

    path: Path
    connection: sqlite3.Connection
    lock: int | None = None
    """Descriptor that holds the lock of a run; None for a reader."""

    def __enter__(self) -> "ScrubState":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; what was not committed is undone."""
        with translated(self.path):
            self.connection.close()
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Run one statement; LogtoolError where that fails. A change begins a transaction."""
        with translated(self.path):
            if not self.connection.in_transaction and not statement.startswith("SELECT"):
                self.connection.execute("BEGIN IMMEDIATE")
            return self.connection.execute(statement, values)

    def commit(self) -> None:
        """Make all changes durable."""
        with translated(self.path):
            if self.connection.in_transaction:
                self.connection.execute("COMMIT")

    def segments(self) -> list[KnownSegment]:
        """Return all segments, by path."""
        return [
            KnownSegment(path, home, topic, size, bool(active), *more)
            for path, home, topic, size, active, *more in self.execute(_KNOWN)
        ]

    def runs(self) -> list[RunRow]:
        """Return all runs, the first one first."""
        columns = (
            "start_ms, cycle_ms, level, end_ms, due_segments, due_bytes, segments, bytes, "
            "complete, status, id"
        )
        found = [RunRow(*row) for row in self.execute(f"SELECT {columns} FROM run ORDER BY id")]
        for one in found:
            one.complete = bool(one.complete)
        return found

    def begin_run(self, run: RunRow) -> None:
        """Add the row of a run."""
        cursor = self.execute(
            "INSERT INTO run (start_ms, cycle_ms, level, due_segments, due_bytes, segments, bytes, "
            "complete) VALUES (?, ?, ?, ?, ?, 0, 0, 0)",
            (run.start_ms, run.cycle_ms, run.level, run.due_segments, run.due_bytes),
        )
        run.id = cursor.lastrowid or 0

    def update_run(self, run: RunRow) -> None:
        """Write the totals of a run to its row."""
        self.execute(
            "UPDATE run SET end_ms = ?, segments = ?, bytes = ?, complete = ?, status = ? "
            "WHERE id = ?",
            (run.end_ms, run.segments, run.bytes, run.complete, run.status, run.id),
        )

    def sync(self, listing: SegmentListing, now_ms: int) -> None:
        """Take the segments that are there into the file, and those that are gone out of it."""
        for partition in listing.partitions:
            self._sync_partition(partition, now_ms)
        known = self.execute("SELECT DISTINCT home FROM segment").fetchall()
        for (home,) in known:
            if home not in listing.homes and home_of(home) in listing.log_dirs:
                self._forget(path for (path,) in self._paths(home))

    def _sync_partition(self, partition: ListedPartition, now_ms: int) -> None:
        """Take the segments of one partition into the file."""
        columns = "path, files, active, whole FROM segment WHERE home = ?"
        known = {row[0]: row[1:] for row in self.execute(f"SELECT {columns}", (partition.home,))}
        for one in partition.segments:
            before = known.pop(one.path, None)
            if before is None:
                self.execute(
                    "INSERT INTO segment (path, home, topic, partition, base_offset, size, files, "
                    "active, first_seen_ms, since_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (one.path, partition.home, partition.topic, partition.number, one.base_offset,
                     one.size, one.files, one.active, now_ms, now_ms),
                )  # fmt: skip
                continue
            files, active, whole = before
            same = files == one.files
            if same and active == one.active:
                continue
            self.execute(
                "UPDATE segment SET size = ?, files = ?, active = ?, whole = whole AND ? "
                "WHERE path = ?",
                (one.size, one.files, one.active, same, one.path),
            )
            if not same and self.execute("DELETE FROM part WHERE path = ?", (one.path,)).rowcount:
                self.give_up(one.path, now_ms)  # What was read of it counts no longer.
            if not one.active and not (same and (whole or not active)):
                self._renew(one.path, now_ms, was_active=active)
        self._forget(known)

    def _renew(self, path: bytes, now_ms: int, *, was_active: bool) -> None:
        """Note that a closed segment is new or has changed: no earlier check is about it.

        What was appended while it was active is as old as its last check.
        """
        self.execute(
            "UPDATE segment SET since_ms = iif(?, coalesce(checked_ms, since_ms), ?), "
            "first_seen_ms = ?, checked_ms = NULL, level = NULL, findings = 0, whole = 0, "
            "begun_ms = NULL WHERE path = ?",
            (was_active, now_ms, now_ms, path),
        )
        self._delete_kept(path)

    def _delete_kept(self, path: bytes) -> None:
        """Remove what earlier runs have kept of a segment: its report or a part of it."""
        self.execute("DELETE FROM report WHERE path = ?", (path,))
        self.execute("DELETE FROM part WHERE path = ?", (path,))

    def _paths(self, home: bytes) -> sqlite3.Cursor:
        return self.execute("SELECT path FROM segment WHERE home = ?", (home,))

    def _forget(self, paths: Iterable[bytes]) -> None:
        """Remove segments that are gone."""
        for path in list(paths):
            self.execute("DELETE FROM segment WHERE path = ?", (path,))
            self._delete_kept(path)

    def mark(self, checked: CheckedSegment, now_ms: int) -> None:
        """Note that a segment was checked now."""
        one = checked.listed
        self.execute(
            "UPDATE segment SET checked_ms = ?, level = ?, findings = ?, files = ?, size = ?, "
            "whole = 1, begun_ms = NULL WHERE path = ?",
            (now_ms, checked.level, checked.findings, one.files, one.size, one.path),
        )
        self._delete_kept(one.path)
        if kept := checked.kept:
            values = (one.path, kept.asked, kept.content, kept.producer_rows)
            self.execute("INSERT INTO report VALUES (?, ?, ?, ?)", values)

    def give_up(self, path: bytes, now_ms: int) -> None:
        """Note that the time of this run ran out in a segment."""
        self.execute("UPDATE segment SET begun_ms = ? WHERE path = ?", (now_ms, path))

    def keep_part(self, path: bytes, basis: str, content: bytes) -> None:
        """Note the part of a segment that was read, and what it depends on."""
        self.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?)", (path, basis, content))

    def part(self, path: bytes, basis: str) -> bytes | None:
        """Return the part of a segment that was read on this basis; None without one."""
        row = self.execute(
            "SELECT content FROM part WHERE path = ? AND basis = ?", (path, basis)
        ).fetchone()
        return row[0] if row else None

    def kept(self, path: bytes, files: str) -> KeptRow | None:
        """Return the report of a segment whose files are still those of its last check."""
        row = self.execute(
            "SELECT asked, content, producer_rows FROM report JOIN segment USING (path) "
            "WHERE path = ? AND whole AND files = ?",
            (path, files),
        ).fetchone()
        return KeptRow(*row) if row else None


def open_for_run(path: Path, given: Sequence[Path] = ()) -> ScrubState:
    """Open the file for a run, or begin one; no other run may use it.

    RefusedError for a place inside a log dir or a `given` path, for a link, and while another run
    uses the file. UsageError for a file that this release did not write.
    """
    path = path.absolute()
    require_outside(path, given)
    if path.is_symlink():
        raise RefusedError(f"{path}: is a link, which logtool does not write through")
    lock = _locked(path)
    try:
        state = ScrubState(path, _connected(path), lock)
        # A run that was killed while it made the tables may have left a journal.
        if state.execute("SELECT 1 FROM sqlite_schema").fetchone() or os.fstat(lock).st_size:
            _require_own(state)
            state.execute(CREATE_PART)
        else:
            for statement in STATEMENTS:
                state.execute(statement)
            state.commit()
    except BaseException:
        os.close(lock)
        raise
    return state


def open_to_read(path: Path) -> ScrubState:
    """Open the file of earlier runs; UnreadableError if it is absent, UsageError as above."""
    path = path.absolute()
    if not path.is_file():
        raise UnreadableError(path, "no such file; 'logtool scrub' writes it", missing=True)
    state = ScrubState(path, _connected(path))
    _require_own(state)
    return state


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise the errors of SQLite as LogtoolErrors that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code == sqlite3.SQLITE_NOTADB:
            raise UsageError(f"{path}: was not written by logtool scrub: {error}") from error
        if code in _SHARED:
            raise RefusedError(f"{path}: another process is using the file") from error
        raise LogtoolError(f"{path}: {error}") from error


def _locked(path: Path) -> int:
    """Open the file, or make an empty one, and lock it for this run."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(path, flags, 0o644)
    except OSError as error:
        raise LogtoolError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise RefusedError(f"{path}: another run of scrub is using the file") from error
        raise LogtoolError(f"{path}: cannot be locked: {error.strerror}") from error
    return lock


def _connected(path: Path) -> sqlite3.Connection:
    with translated(path):
        # SQLite takes a name such as "file:x" for a URI only if it is asked to; the path begins
        # with a slash in any case.
        connection = sqlite3.connect(path, timeout=_WAIT_SECONDS, isolation_level=None)
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        return connection


def _require_own(state: ScrubState) -> None:
    """Raise UsageError for a file that this release did not write."""
    with translated(state.path):
        (application,) = state.connection.execute("PRAGMA application_id").fetchone()
        (version,) = state.connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise UsageError(f"{state.path}: was not written by logtool scrub")
    if version > VERSION:
        raise UsageError(
            f"{state.path}: was written by a later release of logtool (version {version}; this "
            f"release reads version {VERSION})"
        )
