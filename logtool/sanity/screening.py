"""Choice of the segments that the rules of verify need to judge: those not plainly in order.

The indexes of many segments are looked at as one table. An index that is not plainly in order is
not yet bad: the rules judge a preallocated one of the active segment, or an older or newer one.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np
import numpy.typing as npt

from logtool.checks.indexes import LONGEST_STRETCH
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import offset_index, time_index, transaction_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition, Segment
from logtool.log.file import File

Place = tuple[Partition, Segment]

_ENTRIES = {
    FileKind.OFFSET_INDEX: offset_index.ENTRY,
    FileKind.TIME_INDEX: time_index.ENTRY,
    FileKind.TRANSACTION_INDEX: transaction_index.ENTRY,
}
_NEEDED = frozenset((FileKind.OFFSET_INDEX, FileKind.TIME_INDEX))
_MOST_SEGMENTS = 4096
_MOST_BYTES = 32 * 1024 * 1024
"""Bytes of the indexes that are looked at together."""

_Rows = npt.NDArray[np.void]
_Flags = npt.NDArray[np.bool_]
_Owners = npt.NDArray[np.intp]


def suspects(segments: Iterable[Place]) -> Iterator[Place]:
    """Yield the segments whose indexes the rules have to judge, in the order given."""
    group: list[Place] = []
    size = 0
    for partition, segment in segments:
        group.append((partition, segment))
        size += sum(file.size for file in segment.indexes.values())
        if len(group) >= _MOST_SEGMENTS or size >= _MOST_BYTES:
            yield from _of_group(group)
            group, size = [], 0
    yield from _of_group(group)


@dataclass(slots=True)
class _IndexTable:
    """The entries of all indexes of one kind, and the segment of each entry."""

    contents: list[bytes] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def rows(self, kind: FileKind) -> tuple[_Rows, _Owners]:
        """Return the entries of the indexes in one array, and the segment number of each."""
        entry = _ENTRIES[kind]
        counts = [len(content) // entry.itemsize for content in self.contents]
        owner = np.repeat(np.array(self.owners, np.intp), counts)
        return np.frombuffer(b"".join(self.contents), entry), owner


def _of_group(group: Sequence[Place]) -> Iterator[Place]:
    suspect = np.zeros(len(group), np.bool_)
    tables = {kind: _IndexTable() for kind in _ENTRIES}
    for at, (_, segment) in enumerate(group):
        suspect[at] = not segment.indexes.keys() >= _NEEDED
        for kind, file in segment.indexes.items():
            content = _content(file, _ENTRIES[kind].itemsize)
            if content is None:
                suspect[at] = True
            elif content:
                tables[kind].contents.append(content)
                tables[kind].owners.append(at)
            elif kind is FileKind.OFFSET_INDEX:
                suspect[at] |= segment.log.size > LONGEST_STRETCH
    logs = np.array([segment.log.size for _, segment in group], np.int64)
    bases = np.array([segment.base_offset for _, segment in group], np.int64)
    rows, owner = tables[FileKind.OFFSET_INDEX].rows(FileKind.OFFSET_INDEX)
    suspect[owner[_odd_offsets(rows, owner, logs)]] = True
    rows, owner = tables[FileKind.TIME_INDEX].rows(FileKind.TIME_INDEX)
    suspect[owner[_odd_times(rows, owner)]] = True
    rows, owner = tables[FileKind.TRANSACTION_INDEX].rows(FileKind.TRANSACTION_INDEX)
    suspect[owner[_odd_transactions(rows, owner, bases)]] = True
    yield from (group[at] for at in np.flatnonzero(suspect).tolist())


def _content(file: File, entry_size: int) -> bytes | None:
    """Return the content of an index; None if it has changed, or has a partial entry."""
    if file.size % entry_size or file.size > _MOST_BYTES:
        return None
    try:
        fd = files.open_readonly(file.path)
    except UnreadableError:
        return None
    try:
        content = os.read(fd, file.size + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return content if len(content) == file.size else None


def _odd_offsets(rows: _Rows, owner: _Owners, logs: npt.NDArray[np.int64]) -> _Flags:
    offsets, positions = _column(rows, "relative_offset"), _column(rows, "position")
    within = owner[1:] == owner[:-1]
    before = np.zeros_like(positions)
    before[1:] = np.where(within, positions[:-1], 0)
    after = logs[owner]
    after[:-1] = np.where(within, positions[1:], after[:-1])
    odd: _Flags = (offsets <= 0) | (positions <= before) | (positions >= after)
    odd |= (positions - before > LONGEST_STRETCH) | (after - positions > LONGEST_STRETCH)
    odd[1:] |= within & (np.diff(offsets) <= 0)
    return odd


def _odd_times(rows: _Rows, owner: _Owners) -> _Flags:
    stamps, offsets = _column(rows, "timestamp"), _column(rows, "relative_offset")
    within = owner[1:] == owner[:-1]
    odd: _Flags = (stamps <= 0) | (offsets < 0)
    odd[1:] |= within & ((np.diff(stamps) <= 0) | (np.diff(offsets) < 0))
    return odd


def _odd_transactions(rows: _Rows, owner: _Owners, bases: npt.NDArray[np.int64]) -> _Flags:
    last, first = _column(rows, "last_offset"), _column(rows, "first_offset")
    within = owner[1:] == owner[:-1]
    odd: _Flags = (rows["version"] != 0) | (rows["producer_id"] < 0) | (first < 0)
    odd |= (last <= first) | (last < bases[owner]) | (_column(rows, "last_stable_offset") < 0)
    odd[1:] |= within & (np.diff(last) <= 0)
    return odd


def _column(rows: _Rows, name: str) -> npt.NDArray[np.int64]:
    return rows[name].astype(np.int64)
