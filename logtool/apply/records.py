"""The file ``journal.ndjson`` of an undo directory: written once, whole; then lines are added."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from logtool import __version__
from logtool.apply import disk, parsing
from logtool.apply.dirfd import OpenDir, OpenFile, check_trusted
from logtool.apply.parsing import JournalRecord, PlanState
from logtool.apply.steps import FileStep
from logtool.disk import unfinished
from logtool.errors import LogtoolError, RefusedError
from logtool.formats.crc import crc32c
from logtool.schemas.journal import BEGIN, COMMIT, DIRECTORY, SCHEMA, STATE, STEP

NAME = unfinished.JOURNAL
DEFAULT_INFIX = unfinished.UNDO
_TEMPORARY = NAME + ".tmp"
_OURS = re.compile(rf"\d{{6,}}\.(old|new)|{re.escape(NAME)}(\.tmp)?")


def write(undo: OpenDir, record: JournalRecord) -> None:
    """Write the journal of an undo directory whose other files are durable: the commit."""
    home = record.log_dir
    lines: list[dict[str, Any]] = [
        BEGIN.make(
            schema=SCHEMA,
            version=__version__,
            time=_now(),
            command=record.command,
            log_dir=home,
        ),
        *(
            DIRECTORY.make(path=path.relative_to(home), mtime_ns=mtime_ns)
            for path, mtime_ns in record.times.items()
        ),
        *(_step(step, home) for step in record.steps),
    ]
    body = b"".join(map(_line, lines))
    commit = COMMIT.make(steps=len(record.steps), crc32c=crc32c(body))
    temporary = undo.path / _TEMPORARY
    disk.remove(undo, temporary)
    disk.write_new(undo, temporary, [body + _line(commit)])
    disk.sync_dir(undo, undo.path)
    disk.rename(undo, temporary, undo.path / NAME)
    disk.sync_dir(undo, undo.path)


def append_state(undo: OpenDir, state: PlanState) -> None:
    """Add a line with the state of the plan, durably."""
    line = _line(STATE.make(state=str(state), time=_now()))
    # Part of a line that a power loss left is overwritten.
    data = _content(undo)
    data = data[: data.rfind(b"\n") + 1]
    if disk.append(undo, undo.path / NAME, len(data), [line]):
        return
    # The file has other names, as in a snapshot, which must keep it as it was.
    disk.remove(undo, undo.path / _TEMPORARY)
    disk.write_new(undo, undo.path / _TEMPORARY, [data + line])
    disk.rename(undo, undo.path / _TEMPORARY, undo.path / NAME)
    disk.sync_dir(undo, undo.path)


def read(undo: OpenDir) -> JournalRecord:
    """Read the journal of an undo directory.

    RefusedError if it is not an undo directory, if it is damaged, or if another user than the
    caller or root could have written it.
    """
    check_trusted(undo.path, undo.fd)
    path = undo.path / NAME
    if NAME not in undo.names():
        if not all(map(_OURS.fullmatch, undo.names())):
            raise RefusedError(f"{undo.path}: is not an undo directory: it has no {NAME}")
        return JournalRecord(
            log_dir=_log_dir_next_to(undo.path),
            command="",
            state=PlanState.PREPARED,
            steps=[],
            times={},
        )
    data = _content(undo)
    try:
        return parsing.parse(data[: data.rfind(b"\n") + 1])
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            f"{path}: is damaged or was written by another version of logtool: {error}"
        ) from error


def claims_to_be_ended(undo: OpenDir) -> bool:
    """Return whether a journal, which may be untrusted, ends with a state that needs no more."""
    try:
        with OpenFile(undo, undo.path / NAME) as file:
            last = b"".join(file.blocks(max(0, file.status.st_size - _LINE))).splitlines()[-1:]
        return any(b'"state": "%s"' % state.encode() in line for line in last for state in _ENDS)
    except LogtoolError:
        return False


def discard(undo: OpenDir, *, keep_dir: bool) -> None:
    """Remove what `logtool` wrote into an undo directory, and without `keep_dir` the directory."""
    # The journal first: without it the rest is not taken for a plan.
    for name in reversed(undo.names()):
        if _OURS.fullmatch(name):
            disk.remove(undo, undo.path / name)
    if not keep_dir:
        parent = OpenDir(undo.path.parent)
        disk.remove_dir(parent, undo.path)


def _log_dir_next_to(undo_dir: Path) -> Path:
    """Return the log dir next to an undo directory with the default name."""
    name, infix, _ = undo_dir.name.rpartition(DEFAULT_INFIX)
    return undo_dir.with_name(name) if infix and name else undo_dir


_LIMIT = 1 << 30
"""Bytes of the largest journal, which has room for some million files."""
_LINE = 1 << 10
_ENDS = (PlanState.DONE, PlanState.UNDONE, PlanState.REDONE)


def _content(undo: OpenDir) -> bytes:
    path = undo.path / NAME
    with OpenFile(undo, path) as file:
        check_trusted(path, file.fd)
        if file.status.st_size > _LIMIT:
            raise RefusedError(f"{path}: is larger than any journal")
        return b"".join(file.blocks())


def _step(step: FileStep, home: Path) -> dict[str, Any]:
    """Return the line of a step; paths are relative to the log dir `home`."""
    return STEP.make(
        number=step.number,
        kind=str(step.kind),
        before=None if step.before is None else step.before.relative_to(home),
        after=None if step.after is None else step.after.relative_to(home),
        old=step.old,
        new=step.new,
    )


def _line(obj: dict[str, Any]) -> bytes:
    # ASCII alone: a byte of a name that is not UTF-8 becomes an escaped surrogate and comes back.
    return json.dumps(obj, ensure_ascii=True).encode() + b"\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
