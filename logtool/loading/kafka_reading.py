"""The reading of a segment as a broker does it while it loads: by size fields and offset index.

No CRC is checked here, every slot of an index counts as an entry, and only a size field that no
batch can have counts as damage. The rules are those of ``FileLogInputStream``,
``FileRecords``, ``OffsetIndex.lookup`` and ``LogSegment.readNextOffset`` (Kafka 3.9 and 4.3).
"""

import struct
from collections.abc import Iterator

import numpy as np

from logtool.errors import FormatError
from logtool.formats import legacy_batch, offset_index, record_batch
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC
from logtool.lazy_dataclass import dataclass
from logtool.loading.shadow import ShadowFile
from logtool.log import records
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.control_rows import fill_control

_HEAD = struct.Struct(">qiiBIhi")
_UP_TO_MAGIC = 17
_SMALLEST_MESSAGE = 14
_WINDOW = 64 * 1024
_MOST_BYTES_INSIDE = 1 << 30
_WARM_ENTRIES = 8192 // offset_index.ENTRY_SIZE


class StartFailsError(Exception):
    """A broker does not survive this: its start-up ends with an uncaught exception."""


class OfflineError(Exception):
    """A broker takes the log dir offline: an I/O error in its eyes."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of a batch, found by size fields alone."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    magic: int


def headers(log: ShadowFile, start: int, end: int) -> Iterator[BatchHeader]:
    """Yield the headers of everything that a broker reads as a batch from byte `start` to `end`.

    StartFailsError for a size that is too small for any batch.
    """
    window, window_start = b"", start
    position = start
    while position < end - _UP_TO_MAGIC:
        at = position - window_start
        if at < 0 or at + _HEAD.size > len(window):
            window, window_start, at = log.read(position, _WINDOW), position, 0
        head = window[at : at + _HEAD.size].ljust(_HEAD.size, b"\0")
        base_offset, length, _, magic, _, _, delta = _HEAD.unpack(head)
        if length < _SMALLEST_MESSAGE:
            raise StartFailsError(
                f"size field {length} at byte {position} is smaller than any batch"
            )
        if position > end - LOG_OVERHEAD - length:
            return
        new = MAGIC <= magic < 128
        yield BatchHeader(
            position=position,
            size=LOG_OVERHEAD + length,
            base_offset=base_offset,
            last_offset=wrapped(base_offset + delta) if new else base_offset,
            magic=magic,
        )
        position += LOG_OVERHEAD + length


def wrapped(offset: int) -> int:
    """Return a sum of offsets as a long of Java has it: beyond the largest comes the smallest."""
    return (offset + 2**63) % 2**64 - 2**63


def first_offset(log: ShadowFile, header: BatchHeader) -> int:
    """Return the offset of the first record: of compressed messages, that of the first inside.

    StartFailsError where it cannot be read. A magic byte that was changed to 0 or 1 makes a batch
    such a message, and the first byte of its CRC the attributes, which name a compression.
    """
    if MAGIC <= header.magic < 128:
        return header.base_offset
    entry = memoryview(log.read(header.position, header.size))
    if not entry[_UP_TO_MAGIC] & record_batch.CODEC_MASK:
        return header.base_offset  # not compressed: no other field is looked at
    try:
        return records.first_offset(entry, limit=_MOST_BYTES_INSIDE)
    except FormatError as error:
        text = f"the messages compressed at byte {header.position} cannot be read: {error}"
        raise StartFailsError(text) from error


class IndexedLog:
    """A log with the offset index that a broker would use to find its way in it."""

    def __init__(
        self, base_offset: int, log: ShadowFile, index: ShadowFile | None, *, by_base: bool
    ) -> None:
        self._base = base_offset
        self._by_base = by_base
        self._log = log
        self._index = index

    def next_offset(self) -> int:
        """Return the offset behind the last batch, as ``readNextOffset`` finds it."""
        offset, _ = self._entry(-1)
        start = self.find(offset)
        if start is None:
            return self._base
        end = self._base
        for header in headers(self._log, start, self._log.size):
            end = wrapped(header.last_offset + 1)
        return end

    def find(self, offset: int) -> int | None:
        """Return the position of the first batch that ends at or behind `offset`.

        From Kafka 4.1 on (`by_base`) base offsets lead the search, and last offsets end it: where
        offsets go backwards the two do not find the same. The base offset of compressed messages is
        that of the first inside, and the broker decompresses them for it (StartFailsError).
        """
        before: BatchHeader | None = None
        for header in headers(self._log, max(self.lookup(offset), 0), self._log.size):
            if not self._by_base:
                if header.last_offset >= offset:
                    return header.position
                continue
            base = first_offset(self._log, header)
            if base == offset:
                return header.position
            if base > offset:
                ends = before is not None and before.last_offset >= offset
                return before.position if before and ends else header.position
            before = header
        ends = self._by_base and before is not None and before.last_offset >= offset
        return before.position if before and ends else None

    def _entry(self, slot: int) -> tuple[int, int]:
        """Return (offset, position) of one slot; of an empty index (base offset, 0)."""
        size = offset_index.ENTRY_SIZE
        count = (self._index.size if self._index else 0) // size
        if not self._index or not count:
            return self._base, 0
        slot = slot % count
        entry = np.frombuffer(self._index.read(slot * size, size), offset_index.ENTRY)
        return self._base + int(entry["relative_offset"][0]), int(entry["position"][0])

    def lookup(self, offset: int) -> int:
        """Return the position of the greatest entry at or below `offset`, by binary search.

        In an index out of order the path of the search decides, so it is that of the broker: the
        last entries, which are likely in memory, are searched apart from the rest.
        """
        count = (self._index.size if self._index else 0) // offset_index.ENTRY_SIZE
        if not count:
            return 0
        first_hot = max(0, count - 1 - _WARM_ENTRIES)
        if self._entry(first_hot)[0] < offset:
            low, high = first_hot, count - 1
        elif self._entry(0)[0] > offset:
            return 0
        else:
            low, high = 0, first_hot
        while low < high:
            middle = (low + high + 1) // 2
            value, position = self._entry(middle)
            if value > offset:
                high = middle - 1
            elif value < offset:
                low = middle
            else:
                return position
        return self._entry(low)[1]

    def batches(self, start: int, end: int) -> Iterator[Chunk]:
        """Yield all that a broker reads as a batch from byte `start` to `end`, damaged or not."""
        if start >= end:
            return
        with self._log.open() as file:
            file.size = min(file.size, end)
            position = start
            for chunk in read_batches(file, base_offset=self._base, start=start):
                if chunk.damage is None:
                    yield chunk
                    position = chunk.end_position
                    continue
                for header in headers(self._log, position, end):
                    if header.position == chunk.end_position:
                        break
                    yield self._one(header)
                    position = header.position + header.size
                if position != chunk.end_position:
                    return

    def _one(self, header: BatchHeader) -> Chunk:
        """Return one batch whose CRC does not hold, by the fields of its header."""
        data = memoryview(self._log.read(header.position, max(header.size, HEADER_SIZE)))
        table = record_batch.parse(data, [0], base=header.position)
        legacy_batch.fill(table, data, np.zeros(1, np.int64))
        errors = fill_control(table, data, header.position)
        return Chunk(
            table=table,
            data=data,
            data_position=header.position,
            damage=None,
            control_errors=errors,
        )
