"""Rules for the base index of a segment of Redpanda: by itself, and against the segment.

A start reads an index and trusts it; it replays a segment only if the index cannot be read. So a
wrong entry stays. Source: ``storage/segment_set.cc``, ``storage/segment_index.cc``
(Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterator

import numpy as np

from logtool.checks.report import SegmentReport
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.redpanda import base_index
from logtool.formats.redpanda.base_index import BaseIndex
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.log.file import File


class BaseIndexRules:
    """The rules of one ``.base_index``."""

    def __init__(self, segment: Segment, file: File) -> None:
        self._segment, self._file = segment, file
        found = base_index.parse(file.read_listed())
        self.fault = fault_of(found)
        """Reason for which a start builds the index again; None if a start trusts the index."""
        self._index = found if isinstance(found, BaseIndex) and not self.fault else None
        self._offsets = self._positions = np.empty(0, np.int64)
        if self._index:
            known = base_index.offsets(
                self._index,
                segment_base=segment.base_offset,
                next_base=segment.next_base_offset,
            )
            self._offsets = np.array(known, np.int64)
            self._positions = self._index.entries.position.astype(np.int64)
        self._right = np.zeros(len(self._offsets), np.bool_)
        self._wrong = np.empty(0, np.int64)
        """Entries whose position is not the start of a batch with their offset."""

    @property
    def last_offset(self) -> int:
        """Return the largest offset in the index, -1 for none."""
        return self._index.max_offset if self._index else -1

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk of the segment."""
        table = chunk.table
        if not len(table) or not len(self._positions):
            return
        at = np.searchsorted(table.position, self._positions)
        at = np.minimum(at, len(table) - 1)
        begins = table.position[at] == self._positions
        self._right |= begins & (table.base_offset[at] == self._offsets)

    def finish(self) -> None:
        """Note the entries that match no batch of any chunk."""
        self._wrong = np.flatnonzero(~self._right)

    def alone(self) -> Iterator[Finding]:
        """Yield the faults of the index that do not depend on the segment."""
        if self._segment.is_active and not self._file.size:
            text = "is empty: Redpanda writes it when it closes or flushes the segment"
            yield self._placed(Finding("base-index/not-written", text))
            return
        if self.fault:
            yield self._placed(Finding("base-index/unreadable", self.fault, self._position(0)))
            return
        if self._index and not self._index.base_offset and self._segment.base_offset:
            text = "has base offset 0 and offsets modulo 2^32, as earlier releases wrote it"
            yield self._placed(Finding("base-index/wrapped", text))
        for name, column in (("offset", self._offsets), ("position", self._positions)):
            fall = np.flatnonzero(column[1:] <= column[:-1])
            if len(fall):
                row = int(fall[0]) + 1
                text = f"{name} {column[row]} follows {column[row - 1]}"
                yield self._placed(
                    Finding("base-index/order", f"entry {row}: {text}", self._position(row))
                )

    def joined(self, report: SegmentReport) -> Iterator[Finding]:
        """Yield where the index contradicts a segment that was read as a whole; see `alone`."""
        if self._index is None or report.damaged:
            return
        wrong = self._wrong
        if len(wrong):
            row = int(wrong[0])
            text = f"entry {row}: no batch with offset {self._offsets[row]} begins at byte "
            text += f"{self._positions[row]}"
            more = f" (and {len(wrong) - 1} more entries)" if len(wrong) > 1 else ""
            yield self._placed(Finding("base-index/not-a-batch", text + more, self._position(row)))
        last, named = report.last_offset, self._index.max_offset
        # The index of the last segment is written when it is closed, or flushed now and then.
        stale = self._segment.is_active and last is not None and named < last
        if last is not None and named != last and not stale:
            text = f"says that the segment ends at offset {named}, but the segment ends at {last}"
            yield self._placed(Finding("base-index/max-offset", text))

    def _position(self, row: int) -> int:
        """Return the byte of the file at which an entry stands; 0 if the index cannot be read."""
        return base_index.entry_position(self._index, row) if self._index else 0

    def _placed(self, finding: Finding) -> Finding:
        return finding.placed(self._file.path, segment=self._segment.base_offset)


def fault_of(found: BaseIndex | base_index.Unreadable) -> str | None:
    """Return why a start does not trust an index; None if it does."""
    if not isinstance(found, BaseIndex):
        version = "is empty" if found.version is None else f"has version {found.version}"
        return f"{version}; a complete index has a version from 3 to 9"
    if not found.checksum_holds:
        return f"the checksum does not match the stored {found.checksum}"
    if (found.compat_version or 0) > base_index.VERSION:
        return f"can be read only by releases that know version {found.compat_version}"
    if excess := len(found.trailing) or (found.compat_version is None and len(found.unread)):
        return f"has {wording.count(excess, 'byte')} after its end"
    if found.size != base_index.size_of(found):
        return f"has a size field of {found.size}, but {base_index.size_of(found)} bytes follow"
    entries = found.entries
    sizes = {len(entries.relative_offset), len(entries.relative_time), len(entries.position)}
    if len(sizes) > 1:
        return f"its three indexes have {min(sizes)} to {max(sizes)} entries"
    return None
