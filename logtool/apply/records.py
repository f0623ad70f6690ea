"""The file ``journal.ndjson`` of an undo directory: written once, whole; then lines are added."""

import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import crc32c

from logtool import __version__, files
from logtool.apply import disk
from logtool.apply.steps import Step
from logtool.errors import RefusedError

NAME = "journal.ndjson"
SCHEMA = "logtool.journal/1"
DEFAULT_INFIX = ".logtool-undo-"
_TEMPORARY = NAME + ".tmp"
_OURS = re.compile(rf"\d{{6,}}\.(old|new)|{re.escape(NAME)}(\.tmp)?")


class State(StrEnum):
    """How far a plan has come."""

    PREPARED = "prepared"
    """Not committed: the log dir is untouched, the undo directory can be removed."""
    COMMITTED = "committed"
    """It is to be carried out; some of it may have been."""
    DONE = "done"
    UNDOING = "undoing"
    """It is to be undone; some of it may have been."""
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Record:
    """What a journal says."""

    log_dir: Path
    command: str
    state: State
    steps: list[Step]
    times: dict[Path, int]
    """Each directory in which a name changes, and its mtime before."""


def write(undo_dir: Path, record: Record) -> None:
    """Write the journal of an undo directory whose other files are durable: the commit."""
    home = record.log_dir
    lines: list[dict[str, Any]] = [
        {
            "type": "begin", "schema": SCHEMA, "version": __version__, "time": _now(),
            "command": record.command, "log_dir": str(home),
        },
        *(
            {"type": "directory", "path": str(path.relative_to(home)), "mtime_ns": mtime_ns}
            for path, mtime_ns in record.times.items()
        ),
        *(step.as_json(home) for step in record.steps),
    ]  # fmt: skip
    body = b"".join(map(_line, lines))
    commit = {"type": "commit", "steps": len(record.steps), "crc32c": crc32c.crc32c(body)}
    disk.remove(undo_dir / _TEMPORARY)
    disk.write_new(undo_dir / _TEMPORARY, [body + _line(commit)])
    disk.sync_dir(undo_dir)
    disk.rename(undo_dir / _TEMPORARY, undo_dir / NAME)
    disk.sync_dir(undo_dir)


def append_state(undo_dir: Path, state: State) -> None:
    """Add durably that the plan has come to `state`."""
    path = undo_dir / NAME
    # What power loss left of a line is written over.
    end = files.read_small(path, _LIMIT).rfind(b"\n") + 1
    disk.append(path, end, [_line({"type": "state", "state": str(state), "time": _now()})])


def read(undo_dir: Path) -> Record:
    """Read the journal of an undo directory; RefusedError for what is none or is damaged."""
    path = undo_dir / NAME
    if not os.path.lexists(path):
        names = [entry.name for entry in files.list_dir(undo_dir)]
        if not all(map(_OURS.fullmatch, names)):
            raise RefusedError(f"{undo_dir}: is no undo directory: it has no {NAME}")
        return Record(undo_dir, "", State.PREPARED, [], {})
    data = files.read_small(path, _LIMIT)
    try:
        return _parsed(data[: data.rfind(b"\n") + 1])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise RefusedError(f"{path}: is damaged or of another version: {error}") from error


def discard(undo_dir: Path, *, keep_dir: bool) -> None:
    """Remove what `logtool` wrote into an undo directory, and the directory unless told not to."""
    # The journal first: without it nobody takes the rest for a plan.
    for path in reversed(_entries(undo_dir)):
        disk.remove(path)
    if not keep_dir:
        disk.remove_dir(undo_dir)


_LIMIT = 1 << 40


def _parsed(data: bytes) -> Record:
    rows = data.splitlines(keepends=True)
    lines = [json.loads(row) for row in rows]
    at = next((i for i, line in enumerate(lines) if line["type"] == "commit"), None)
    if at is None or lines[at]["crc32c"] != crc32c.crc32c(b"".join(rows[:at])):
        raise ValueError("the commit does not match what stands before it")
    begin, states = lines[0], [State(line["state"]) for line in lines[at + 1 :]]
    if begin["schema"] != SCHEMA:
        raise ValueError(f"expected {SCHEMA}, found {begin['schema']}")
    home = Path(begin["log_dir"])
    return Record(
        home,
        begin["command"],
        states[-1] if states else State.COMMITTED,
        [Step.from_json(line, home) for line in lines[:at] if line["type"] == "step"],
        {home / x["path"]: x["mtime_ns"] for x in lines[:at] if x["type"] == "directory"},
    )


def _entries(undo_dir: Path) -> list[Path]:
    return [undo_dir / e.name for e in files.list_dir(undo_dir) if _OURS.fullmatch(e.name)]


def _line(obj: dict[str, Any]) -> bytes:
    # ASCII alone: a byte of a name that is not UTF-8 becomes an escaped surrogate and comes back.
    return json.dumps(obj, ensure_ascii=True).encode() + b"\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
