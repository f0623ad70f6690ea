"""A fast reader of the columns of a log that its broker closed in order, which are most logs.

In a log dir of many small partitions, objects for the files of a partition cost more than the
answer. So a directory with the names of a broker at rest is read here without them: the names, size
and mtime of each ``.log``, and the last entry of each time index. Anything out of the ordinary, be
it sound or not, ends the attempt with None: then `logtool.retention.segments` reads the log, and
says what is wrong.
"""

import os
from pathlib import Path
from stat import S_ISREG

from logtool.disk import files
from logtool.formats.names import FileKind
from logtool.retention import segments
from logtool.retention.segments import CheckpointedOffsets, LogSegments, SegmentFacts, StampSource

_DIGITS = 20
_LOG, _INDEX, _TIMES, _SNAPSHOT = ".log", ".index", ".timeindex", ".snapshot"
_FIXED = (FileKind.LEADER_EPOCH_CHECKPOINT.value, FileKind.PARTITION_METADATA.value)
_ENTRY = segments.ENTRY
_LAST_OFFSET = 2**63 - 1


def read(path: Path, state: CheckpointedOffsets) -> LogSegments | None:
    """Return the columns of the log in a local partition dir; None if it is not ordinary."""
    if not state.clean:
        return None
    home = f"{path}/"
    try:
        # A Path for each name would take longer than all the rest.
        listed = os.listdir(home)  # noqa: PTH208
        offsets = _offsets(listed)
        bases = offsets.get(_LOG)
        if not bases or bases != offsets.get(_INDEX) or bases != offsets.get(_TIMES):
            return None
        facts = [_facts(home, base) for base in bases]
        # A file that is renamed during a listing may be in it under neither name.
        if sorted(os.listdir(home)) != sorted(listed):  # noqa: PTH208
            return None
    except (OSError, _OddError):
        return None
    return segments.columns(facts, None, max(offsets.get(_SNAPSHOT, [0])), state)


class _OddError(Exception):
    """Something is out of the ordinary."""


def _offsets(listed: list[str]) -> dict[str, list[int]]:
    """Return the sorted offsets in the names of files, by the end of the name."""
    found: dict[str, list[int]] = {}
    for name in sorted(listed):
        if name in _FIXED:
            continue
        digits, kind = name[:_DIGITS], name[_DIGITS:]
        is_number = len(digits) == _DIGITS and digits.isascii() and digits.isdigit()
        if kind not in (_LOG, _INDEX, _TIMES, _SNAPSHOT) or not is_number:
            raise _OddError
        offset = int(digits)
        if offset > _LAST_OFFSET:
            raise _OddError
        found.setdefault(kind, []).append(offset)
    return found


def _facts(home: str, base: int) -> SegmentFacts:
    """Return the facts about one segment; OSError."""
    stem = f"{home}{base:020d}"
    log = os.lstat(stem + _LOG)
    if not S_ISREG(log.st_mode):
        raise _OddError
    fd = os.open(stem + _TIMES, files.READ_ONLY)
    try:
        slots = os.fstat(fd).st_size // _ENTRY.size
        data = os.pread(fd, _ENTRY.size, (slots - 1) * _ENTRY.size) if slots else b""
    finally:
        os.close(fd)
    if slots and len(data) != _ENTRY.size:
        raise _OddError
    stamp = int(_ENTRY.unpack(data)[0]) if slots else segments.NO_TIMESTAMP
    mtime_ns = log.st_mtime_ns
    if stamp >= 0:
        return SegmentFacts(base, log.st_size, stamp, StampSource.TIME_INDEX, mtime_ns)
    return SegmentFacts(base, log.st_size, mtime_ns // 1_000_000, StampSource.MTIME, mtime_ns)
