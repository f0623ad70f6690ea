"""The memory of verifications with a time limit: the segments that were checked, and when.

A JSON file outside the log dirs, written again at the end of a run::

    {"schema": "logtool.resume/1", "checked": {"<path of the .log>": [size, mtime_ns, time_s]},
     "begun": {"<path of the .log>": [size, mtime_ns, time_s]},
     "parts": {"<path of the .log>": [size, mtime_ns, basis, part]}}

A segment that has changed counts as never checked. A segment that needs more than the whole time of
a run is checked after all others, so that the others have their turn. `parts` is there if time ran
out inside of segments: `logtool.checks.segment_part` has what a run keeps of the part that it read,
and what that depends on. Releases that do not know `parts` begin such a segment again.
"""

import json
import math
import os
import time
from collections.abc import Iterable
from dataclasses import field
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from logtool.errors import LogtoolError, UsageError
from logtool.lazy_dataclass import dataclass
from logtool.log.file import File
from logtool.running.own_file import require_outside

SCHEMA = "logtool.resume/1"
Seen = tuple[int, int, float]
"""Size, mtime_ns, and seconds since 1970."""
Part = tuple[int, int, list[Any], dict[str, Any]]
"""Size, mtime_ns, what the part depends on next to the log, and the part."""


@dataclass(slots=True)
class Memory:
    """The time of the last check of each segment."""

    path: Path
    checked: dict[str, Seen] = field(default_factory=dict)
    """By the path of the log."""
    begun: dict[str, Seen] = field(default_factory=dict)
    """The same for those for which the whole time of a run was too short."""

    parts: dict[str, Part] = field(default_factory=dict)
    """The parts that were read of segments, by the path of the log."""

    def age_key(self, log: File) -> float:
        """Return when the log had its last turn, in s since 1970; 0 for never.

        A log that has changed since it was checked had none. One that was begun, or read in part,
        had its turn also if it changes: an active segment must not keep all others from theirs.
        """
        key = str(log.path.absolute())
        part, begun = self.parts.get(key), self.begun.get(key)
        if part and part[:2] != (log.size, log.mtime_ns):
            return time.time()  # What was read of it counts no longer: it comes after the others.
        return max(self.checked_s(log), begun[2] if begun else 0.0)

    def checked_s(self, log: File) -> float:
        """Return when the log was checked to its end as it is now, in s since 1970; 0 for never."""
        known = self.checked.get(str(log.path.absolute()))
        return known[2] if known and known[:2] == (log.size, log.mtime_ns) else 0.0

    def in_turn(self, paths: Iterable[Path]) -> list[Path]:
        """Return paths in the order of the last check below each, so that each has its turn."""
        last = {path.absolute(): (0.0, path) for path in paths}
        for name, (_, _, when) in chain(self.checked.items(), self.begun.items()):
            log = Path(name)
            for place in (log, *log.parents):
                if place in last and last[place][0] < when:
                    last[place] = when, last[place][1]
        return [path for _, path in sorted(last.values(), key=itemgetter(0))]

    def remember(self, log: File) -> None:
        """Note that the log was checked now."""
        self.begun.pop(str(log.path.absolute()), None)
        self.parts.pop(str(log.path.absolute()), None)
        self.checked[str(log.path.absolute())] = (log.size, log.mtime_ns, time.time())

    def give_up(self, log: File) -> None:
        """Note that the log was begun now, and that the time of a whole run is too short for it."""
        self.begun[str(log.path.absolute())] = (log.size, log.mtime_ns, time.time())

    def part_of(self, log: File, basis: list[Any]) -> dict[str, Any] | None:
        """Return the part that was read of the log as it is now, on this basis; None without."""
        known = self.parts.get(str(log.path.absolute()))
        return known[3] if known and known[:3] == (log.size, log.mtime_ns, basis) else None

    def keep(self, log: File, basis: list[Any], part: dict[str, Any]) -> None:
        """Note the part that was read of the log."""
        self.parts[str(log.path.absolute())] = (log.size, log.mtime_ns, basis, part)

    def save(self) -> None:
        """Write the file: the old one or the new one is there at any moment."""
        content = {"schema": SCHEMA, "checked": self.checked, "begun": self.begun}
        content |= {"parts": self.parts} if self.parts else {}
        temporary = self.path.with_name(self.path.name + ".tmp")
        try:
            # Not through a link that somebody put there.
            temporary.unlink(missing_ok=True)
            with temporary.open("x", encoding="utf-8") as out:
                json.dump(content, out)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise LogtoolError(f"{self.path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Memory:
    """Read the file, or begin one; RefusedError for a place inside a log dir."""
    require_outside(path)
    if not path.exists():
        return Memory(path)
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r}")
        checked, begun = _seen(content["checked"]), _seen(content.get("begun", {}))
        parts = {
            str(log): (int(size), int(mtime_ns), list(basis), dict(part))
            for log, (size, mtime_ns, basis, part) in content.get("parts", {}).items()
        }
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise UsageError(f"{path}: was not written by --resume: {error}") from error
    return Memory(path, checked, begun, parts)


def _seen(rows: Any) -> dict[str, Seen]:
    found = {
        str(log): (int(size), int(mtime_ns), float(when))
        for log, (size, mtime_ns, when) in rows.items()
    }
    if not all(math.isfinite(when) for _, _, when in found.values()):
        raise ValueError("a time is not a number")
    return found
