"""What a verification with a time limit remembers: which segments were checked, and when.

A JSON file outside the log dirs, written anew at the end of a run::

    {"schema": "logtool.resume/1", "checked": {"<path of the .log>": [size, mtime_ns, time_s]}}

A segment that is not any more what it was counts as never checked.
"""

import json
import math
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from logtool.disk.partition import File
from logtool.errors import LogtoolError, RefusedError, UsageError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory

SCHEMA = "logtool.resume/1"


@dataclass(slots=True)
class Memory:
    """When each segment was checked last."""

    path: Path
    checked: dict[str, tuple[int, int, float]] = field(default_factory=dict)
    """(size, mtime_ns, seconds since 1970) by the path of the log."""

    def age_key(self, log: File) -> float:
        """Return when the log was checked as it is now, in seconds since 1970; 0 for never."""
        known = self.checked.get(str(log.path.absolute()))
        return known[2] if known and known[:2] == (log.size, log.mtime_ns) else 0.0

    def remember(self, log: File) -> None:
        """Note that the log was checked now."""
        self.checked[str(log.path.absolute())] = (log.size, log.mtime_ns, time.time())

    def save(self) -> None:
        """Write the file: the old one or the new one is there at any moment."""
        checked = {path: list(known) for path, known in self.checked.items()}
        temporary = self.path.with_name(self.path.name + ".tmp")
        try:
            # Not through a link that somebody put there.
            temporary.unlink(missing_ok=True)
            with temporary.open("x", encoding="utf-8") as out:
                json.dump({"schema": SCHEMA, "checked": checked}, out)
                out.flush()
                os.fsync(out.fileno())
            temporary.replace(self.path)
        except OSError as error:
            raise LogtoolError(f"{self.path}: cannot be written: {error.strerror}") from error


def load(path: Path) -> Memory:
    """Read the file, or begin one; RefusedError for a place inside a log dir."""
    home = path.absolute().parent
    in_partition = isinstance(names.parse_directory(home.name), PartitionDirectory)
    if (in_partition and any(home.glob("*.log"))) or (home / FileKind.META_PROPERTIES).exists():
        raise RefusedError(f"{path}: lies in a log dir, where nothing may be written")
    if not path.exists():
        return Memory(path)
    try:
        content = json.loads(path.read_text("utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r}")
        checked = {
            str(log): (int(size), int(mtime_ns), float(when))
            for log, (size, mtime_ns, when) in content["checked"].items()
        }
        if not all(math.isfinite(when) for _, _, when in checked.values()):
            raise ValueError("a time is no number")
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
    return Memory(path, checked)
