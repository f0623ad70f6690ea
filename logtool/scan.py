"""One pass over a ``.log``: tables of sound batches, and the damage between them.

Memory is flat: the file goes by in a buffer of a few MiB. Behind damage the scan resynchronises at
the next batch that is provably sound, as a broker never does, so that a caller can say how
much would be lost.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from crc32c import crc32c

from logtool.errors import FormatError
from logtool.formats import _kernels, control_record, legacy_batch, record_batch
from logtool.formats.record_batch import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    UNUSED_ATTRIBUTES,
    BatchTable,
)

BUFFER_SIZE = 4 * 1024 * 1024
LARGEST_BUFFERED_BATCH = 64 * 1024 * 1024
"""Bytes; a larger batch is checked without holding it in memory."""
SEARCH_BUDGET = 256 * 1024 * 1024
"""Bytes that may be hashed to refute look-alikes per damage, so that hostile bytes cost bounded
time."""

_MOST_RELATIVE_OFFSET = 2**31 - 1
_LONGEST_STUB = 20
"""Bytes that no walk looks at: less than a size, a magic and a CRC field."""


class Source(Protocol):
    """What a scan reads from; `logtool.files.LogFile` is one."""

    size: int

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""


class Reason(StrEnum):
    """What is wrong at the place where a sound batch should begin."""

    INCOMPLETE = "incomplete"
    """The file ends before the batch does."""
    SIZE = "size"
    """The size field is impossible."""
    MAGIC = "magic"
    """The magic byte is none that exists."""
    CRC = "crc"
    ZEROS = "zeros"
    """Zero bytes only."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of bytes that is no sound batch."""

    position: int
    length: int
    reason: Reason
    message: str
    """What was expected and what was found."""
    resynchronised: bool
    """Whether a sound batch begins right behind it."""
    framed: bool = False
    """Whether the size field still frames exactly this one batch."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of sound batches, or one range of damage and no batches.

    `data` holds the bytes of the batches from file position `data_position` on, and is only valid
    until the next chunk is asked for. Of a batch too large to hold it has the header alone.
    """

    table: BatchTable
    data: memoryview
    data_position: int
    damage: Damage | None
    control_errors: list[tuple[int, FormatError]]
    """(row, error) for each control batch with a producer id that a broker cannot read."""

    def batch(self, row: int) -> memoryview:
        """Return the bytes of one batch."""
        start = int(self.table.position[row]) - self.data_position
        return self.data[start : start + int(self.table.size[row])]


def scan(source: Source, *, base_offset: int, start: int = 0) -> Iterator[Chunk]:
    """Yield the chunks of the file from byte `start` on, where a batch is expected.

    `base_offset` is the segment's; it only serves to recognise batches behind damage.
    """
    return _Scanner(source, base_offset).run(start)


class _Scanner:
    def __init__(self, source: Source, base_offset: int) -> None:
        self._source = source
        self._base_offset = base_offset
        self._end = source.size
        self._buffer = bytearray(min(BUFFER_SIZE, max(source.size, 1)))
        self._last_offset = base_offset - 1

    def run(self, position: int) -> Iterator[Chunk]:
        while position < self._end:
            data = self._read(position, len(self._buffer))
            found: list[int] = []
            stop, why = _kernels.walk_batches(data, 0, len(data), found)
            if found:
                yield self._chunk(data, found, position)
            position += stop
            left = self._end - position
            if left <= 0:
                return
            size = _entry_size(self._read(position, LOG_OVERHEAD), 0)
            if why != _kernels.MORE:
                damage = self._damage(position, _REASONS[why])
            elif left <= _LONGEST_STUB or size is None or size > left:
                damage = self._damage(position, Reason.INCOMPLETE)
            elif size <= LARGEST_BUFFERED_BATCH:
                if size > len(self._buffer):
                    self._buffer = bytearray(size)
                continue
            elif self._sound(position, size):
                yield self._chunk(self._read(position, HEADER_SIZE), [0], position)
                position += size
                continue
            else:
                damage = self._damage(position, Reason.CRC)
            yield Chunk(record_batch.empty_table(), data[:0], position, damage, [])
            position += damage.length

    def _read(self, position: int, size: int) -> memoryview:
        size = min(size, self._end - position)
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        count = self._source.read_into(view, position)
        if count < size:
            # The file shrank while it was read: what is gone is simply not there any more.
            self._end = position + count
        return view[:count]

    def _chunk(self, data: memoryview, found: list[int], base: int) -> Chunk:
        table = record_batch.parse(data, found, base=base)
        if int(table.magic.min()) < MAGIC:
            legacy_batch.fill(table, data, found)
        last = int(table.last_offset[-1])
        if self._base_offset <= last <= self._base_offset + _MOST_RELATIVE_OFFSET:
            self._last_offset = last
        return Chunk(table, data, base, None, _fill_control(table, data, found))

    def _damage(self, at: int, reason: Reason) -> Damage:
        """Describe the damage that begins at `at` and find where it ends."""
        head = bytes(self._read(at, HEADER_SIZE))
        frame = _entry_size(head, 0)
        message = _describe(head, reason, self._end - at, at)
        if frame is not None and reason in (Reason.CRC, Reason.MAGIC):
            behind = at + frame
            if behind == self._end or (behind < self._end and self._begins_batch(behind)):
                if reason is Reason.MAGIC and self._sound(at, frame, magic=MAGIC):
                    message += "; the CRC is that of a sound magic 2 batch"
                resynchronised = behind < self._end
                return Damage(at, frame, reason, message, resynchronised, framed=True)
        found = self._search(at + 1)
        end = self._end if found is None else found
        zeros = self._zeros_from(at, end)
        if zeros >= 12 and (
            zeros >= end - at - LOG_OVERHEAD or (found is None and zeros == end - at)
        ):
            # A batch begins with zero bytes of its own (the offset), so a run ends a little early.
            reason, message = Reason.ZEROS, f"{end - at} zero bytes where a batch should begin"
        elif found is not None and reason is Reason.INCOMPLETE:
            reason = Reason.SIZE
        return Damage(at, end - at, reason, message, found is not None)

    def _zeros_from(self, at: int, end: int) -> int:
        """Return how many zero bytes follow from `at`, at most up to `end`."""
        position = at
        while position < end:
            window = self._read(position, min(BUFFER_SIZE, end - position))
            nonzero = np.flatnonzero(np.frombuffer(window, np.uint8))
            if len(nonzero) or not len(window):
                return position - at + (int(nonzero[0]) if len(nonzero) else 0)
            position += len(window)
        return end - at

    def _begins_batch(self, position: int) -> bool:
        head = bytes(self._read(position, HEADER_SIZE))
        size = _entry_size(head, 0)
        if size is None or size > self._end - position or head[16] > MAGIC:
            return False
        return self._sound(position, size)

    def _sound(self, position: int, size: int, magic: int | None = None) -> bool:
        """Return whether the CRC of the entry at `position` holds, reading it piece by piece."""
        head = bytes(self._read(position, 21))
        magic = head[16] if magic is None else magic
        start, field = (21, head[17:21]) if magic == MAGIC else (16, head[12:16])
        if magic == MAGIC and size < HEADER_SIZE:
            return False
        crc, done = 0, start
        while done < size:
            piece = self._read(position + done, min(BUFFER_SIZE, size - done))
            if not len(piece):
                return False
            crc = crc32c(piece, crc) if magic == MAGIC else zlib.crc32(piece, crc)
            done += len(piece)
        return crc == int.from_bytes(field, "big")

    def _search(self, start: int) -> int | None:
        """Return the position of the next provably sound magic 2 batch at or behind `start`."""
        budget = SEARCH_BUDGET
        while self._end - start >= HEADER_SIZE:
            window = bytes(self._read(start, BUFFER_SIZE))
            if len(window) < HEADER_SIZE:
                return None
            for candidate in self._candidates(window, self._end - start):
                size = int.from_bytes(window[candidate + 8 : candidate + 12], "big") + LOG_OVERHEAD
                budget -= size
                if budget < 0:
                    return None
                if self._sound(start + candidate, size):
                    return start + candidate
            start += len(window) - HEADER_SIZE + 1
        return None

    def _candidates(self, window: bytes, left: int) -> list[int]:
        """Return positions in `window` where the fields of a header could all be real."""
        raw = np.frombuffer(window, np.uint8)
        starts = np.flatnonzero(raw[16 : len(raw) - HEADER_SIZE + 17] == MAGIC)
        if not len(starts):
            return []
        headers = np.ascontiguousarray(raw[starts[:, None] + np.arange(HEADER_SIZE)])
        head = headers.view(HEADER).reshape(-1)
        base, delta = head["base_offset"], head["last_offset_delta"].astype(np.int64)
        good = (
            (head["batch_length"] >= HEADER_SIZE - LOG_OVERHEAD)
            & (head["batch_length"].astype(np.int64) + LOG_OVERHEAD <= left - starts)
            & (base > self._last_offset)
            & (delta >= 0)
            & (base <= self._base_offset + _MOST_RELATIVE_OFFSET - delta)
            & ((head["attributes"].astype(np.int32) & (UNUSED_ATTRIBUTES & 0xFFFF)) == 0)
            & ((head["attributes"] & CODEC_MASK) <= 4)
            & (head["record_count"] >= 0)
            & (head["leader_epoch"] >= -1)
        )
        return [int(start) for start in starts[good]]


_REASONS = {
    _kernels.BAD_SIZE: Reason.SIZE,
    _kernels.BAD_MAGIC: Reason.MAGIC,
    _kernels.BAD_CRC: Reason.CRC,
}


def _entry_size(data: bytes | memoryview, position: int) -> int | None:
    """Return the bytes of the entry at `position` by its size field; None if it has none."""
    if len(data) - position < LOG_OVERHEAD:
        return None
    size = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
    return size + LOG_OVERHEAD if size >= 14 else None


def _describe(head: bytes, reason: Reason, left: int, position: int) -> str:
    size = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    if reason is Reason.INCOMPLETE:
        if len(head) < LOG_OVERHEAD:
            return f"{left} bytes are left, too few for the header of a batch"
        return f"batch of {size + LOG_OVERHEAD} bytes begins with {left} bytes left in the file"
    if reason is Reason.SIZE:
        return f"size field holds {size}, at least {HEADER_SIZE - LOG_OVERHEAD} is needed"
    if reason is Reason.MAGIC:
        return f"magic byte is {head[16]}, only 0, 1 and 2 exist"
    at = 17 if head[16] == MAGIC else 12
    kind = "CRC-32C" if head[16] == MAGIC else "CRC-32"
    return f"{kind} does not match the stored {int.from_bytes(head[at : at + 4], 'big')}"


def _fill_control(
    table: BatchTable, data: memoryview, found: list[int]
) -> list[tuple[int, FormatError]]:
    """Decode the first record of each control batch into the table; returns what is unreadable."""
    errors = []
    for row in np.flatnonzero(table.is_control & (table.record_count > 0)):
        start = found[row]
        try:
            control = control_record.parse_batch(data[start : start + int(table.size[row])])
        except FormatError as error:
            errors.append((int(row), error))
            continue
        table.control_type[row] = control.type
        table.coordinator_epoch[row] = control.coordinator_epoch
    return errors
