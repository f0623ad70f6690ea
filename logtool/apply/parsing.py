"""Parsing of a journal, which is carried out, maybe by root: any unexpected content is refused.

Paths are relative and have at most two parts, a partition dir and a file; in a data directory of
Redpanda a partition dir is three folders deep. Every number has a range; each kind of step has what
that kind needs and nothing else.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from logtool.actions import FileChange
from logtool.apply.dirfd import MOST_MODE
from logtool.apply.steps import FileAttributes, FileStep
from logtool.formats.crc import crc32c
from logtool.formats.redpanda.names import parse_partition_directory
from logtool.lazy_dataclass import dataclass
from logtool.log.redpanda_dir import LEVELS
from logtool.schemas.journal import SCHEMA

_INT64 = 1 << 63
_INT32 = 1 << 32
_MOST_TEXT = 100
"""Characters of a value that a message repeats."""


class PlanState(StrEnum):
    """State of a plan."""

    PREPARED = "prepared"
    """Not committed: the log dir is untouched, the undo directory can be removed."""
    COMMITTED = "committed"
    """The plan is to be carried out; some steps may have been."""
    DONE = "done"
    UNDOING = "undoing"
    """The plan is to be undone; some steps may have been."""
    UNDONE = "undone"
    REDOING = "redoing"
    """The plan was undone and is to be carried out again; some steps may have been."""
    REDONE = "redone"


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """Content of a journal."""

    log_dir: Path
    command: str
    state: PlanState
    steps: list[FileStep]
    times: dict[Path, int]
    """Each directory in which a name changes, and its mtime before."""
    time: str | None = None
    """Time at which the journal was written (RFC 3339); None if it does not say."""
    state_time: str | None = None
    """Time at which the plan came to its state; None if it was not carried out."""


def parse(data: bytes) -> JournalRecord:
    """Return the content of a journal; ValueError, or RecursionError, if it is not valid."""
    rows = data.splitlines(keepends=True)
    lines = [_object(json.loads(row)) for row in rows]
    at = next((i for i, line in enumerate(lines) if line.get("type") == "commit"), None)
    if at is None or lines[at].get("crc32c") != crc32c(b"".join(rows[:at])):
        raise ValueError("the commit line does not match the lines before it")
    begin, middle, after = lines[0], lines[1:at], lines[at + 1 :]
    if begin.get("schema") != SCHEMA:
        raise ValueError(f"expected {SCHEMA}, found {_shown(begin.get('schema'))}")
    home = Path(_text(begin, "log_dir"))
    if not home.is_absolute() or ".." in home.parts:
        raise ValueError(f"log_dir is {_shown(str(home))}, which is not an absolute path")
    steps = [_step(line, home) for line in middle if line.get("type") == "step"]
    # They are in the order in which they are carried out, not in the order of saving.
    if sorted(step.number for step in steps) != list(range(1, len(steps) + 1)):
        raise ValueError("the steps are not numbered from 1 upwards")
    if not steps or lines[at].get("steps") != len(steps):
        raise ValueError(
            f"the commit line counts {_shown(lines[at].get('steps'))} steps, but the file has "
            f"{len(steps)}"
        )
    folders = {home, *(path.parent for step in steps for path in step.paths)}
    times = [_time(line, home) for line in middle if line.get("type") == "directory"]
    if not {path for path, _ in times} <= folders:
        raise ValueError("a directory line has no step in its directory")
    states = [PlanState(_text(line, "state")) for line in after]
    state = states[-1] if states else PlanState.COMMITTED
    return JournalRecord(
        log_dir=home,
        command=_text(begin, "command"),
        state=state,
        steps=steps,
        times=dict(times),
        time=_text(begin, "time"),
        state_time=_text(after[-1], "time") if after else None,
    )


def _step(line: dict[str, Any], home: Path) -> FileStep:
    kind = FileChange(_text(line, "kind"))
    before, after = (_path(line, key, home, parts=2) for key in ("before", "after"))
    old, new = _look(line, "old"), _look(line, "new")
    step = FileStep(
        number=_number(line, "number", 1, _INT64),
        kind=kind,
        before=before,
        after=after,
        old=old,
        new=new,
    )
    wanted = {
        # what must be there: before, after, old, new, and the CRC of old and of new
        FileChange.CREATE: (False, True, False, True, False, True),
        FileChange.REMOVE: (True, False, True, False, True, False),
        FileChange.REPLACE: (True, True, True, True, True, True),
        FileChange.TRUNCATE: (True, True, True, True, True, False),
        FileChange.RENAME: (True, True, True, False, False, False),
    }[kind]
    there = (before, after, old, new, old.crc32c if old else None, new.crc32c if new else None)
    if tuple(part is not None for part in there) != wanted:
        raise ValueError(f"step {step.number}: does not have the fields of {kind}")
    if before and after and (before.parent != after.parent):
        raise ValueError(f"step {step.number}: leads into another directory")
    if kind is FileChange.RENAME and before == after:
        raise ValueError(f"step {step.number}: the new name is the old name")
    if kind is FileChange.TRUNCATE and old and new and new.size > old.size:
        raise ValueError(f"step {step.number}: cuts a file of {old.size} bytes to {new.size} bytes")
    return step


def _time(line: dict[str, Any], home: Path) -> tuple[Path, int]:
    path = _path(line, "path", home, parts=1)
    if path is None:
        raise ValueError("a directory line has no path")
    return path, _number(line, "mtime_ns", -_INT64, _INT64)


def _look(line: dict[str, Any], key: str) -> FileAttributes | None:
    if line.get(key) is None:
        return None
    values = _object(line[key])
    crc = None if values.get("crc32c") is None else _number(values, "crc32c", 0, _INT32)
    return FileAttributes(
        size=_number(values, "size", 0, _INT64),
        mtime_ns=_number(values, "mtime_ns", -_INT64, _INT64),
        mode=_number(values, "mode", 0, MOST_MODE + 1),
        user=_number(values, "user", 0, _INT32 - 1),
        group=_number(values, "group", 0, _INT32 - 1),
        crc32c=crc,
    )


def _path(line: dict[str, Any], key: str, home: Path, parts: int) -> Path | None:
    """Return a path in the log dir; a single dot is the log dir itself, for a directory only."""
    if line.get(key) is None:
        return None
    text = _text(line, key)
    names = text.split("/")
    is_home = text == "." and parts == 1
    of_redpanda = len(names) == parts + LEVELS - 1 and parse_partition_directory(names[LEVELS - 1])
    is_deep = len(names) > parts and not of_redpanda
    if is_deep or not (is_home or all(name not in ("", ".", "..") for name in names)):
        raise ValueError(f"{key} is {_shown(text)}, which is not a path in a log dir")
    return home / text


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {_shown(value)}")
    return value


def _text(line: dict[str, Any], key: str) -> str:
    value = line.get(key)
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(f"{key} is {_shown(value)}, expected text")
    return value


def _number(line: dict[str, Any], key: str, least: int, end: int) -> int:
    """Return a number from `least` on and below `end`."""
    value = line.get(key)
    if type(value) is not int or not least <= value < end:
        raise ValueError(f"{key} is {_shown(value)}, expected a number from {least} to {end - 1}")
    return value


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except ValueError:
        return "a number that is too long"
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "..."
