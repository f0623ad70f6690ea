"""Search for the next sound batch behind damage in a log of Redpanda.

A broker never does this. Each header has a CRC of its own, which makes the search simpler than for
Kafka's logs (`logtool.log.walk.resync`):

1. If the header is sound, so is its size: damage to the body is framed, and the next batch is
   expected behind it.
2. If it is not sound, a candidate is a header whose CRC holds, with offsets behind the last sound
   batch and in reach of the segment, and whose batch is sound.
3. A candidate is proven if the damaged header's CRC holds with the size that leads to it: only the
   size was wrong. There is one such size for each CRC.
4. Else the size field decides, if it leads to a candidate. A record may hold whole batches.
5. Else the first candidate counts, unless the chain of sound batches that it begins ends before the
   end, `FAR` or zeros, and the offsets of the next candidate behind it contradict it: then the
   longer of the two chains counts.
"""

from collections.abc import Iterator

import numpy as np

from logtool.formats.crc import crc32c
from logtool.formats.record_batch import CODEC_MASK
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.record_batch import HEADER, HEADER_SIZE, RedpandaHeader
from logtool.lazy_dataclass import dataclass
from logtool.log.walk.candidates import OffsetBounds
from logtool.log.walk.redpanda_damage import entry_size
from logtool.log.walk.resync import FAR, FIRST_WINDOW, WIDEST_WINDOW, ScannedBytes

_FIELDS = np.dtype(
    {
        "names": ["size", "base_offset", "attributes", "last_offset_delta", "record_count"],
        "formats": ["<i4", "<i8", "<i2", "<i4", "<i4"],
        "offsets": [4, 8, 21, 23, 57],
        "itemsize": HEADER_SIZE,
    }
)
_KNOWN_ATTRIBUTES = 0x7F
_CODECS = 5
_SIZE_AT = slice(4, 8)


class RedpandaResync:
    """The search of one scan; `budget` is the number of bytes that it may still hash in vain."""

    def __init__(self, source: ScannedBytes, budget: int, piece: int) -> None:
        self._source = source
        self.budget = budget
        self._piece = piece
        """Bytes that are read at once for a CRC."""

    def frames(self, at: int, behind: int, offsets: OffsetBounds) -> bool:
        """Return True: it is called only if the header is sound, and with it the size."""
        return True

    def next_batch(
        self, at: int, behind: int | None, offsets: OffsetBounds, *, torn: bool
    ) -> int | None:
        """Return the position of the next batch behind damage at `at`; None without one.

        `behind` is the end of framed damage, None if it is not framed.
        """
        if behind is not None:
            return None
        head = bytes(self._source.read(at, HEADER_SIZE))
        for size in (_size_by_crc(head), None if torn else _size_of(head)):
            if size is not None and self._leads(at + size, offsets):
                return at + size
        chosen: _Chain | None = None
        for position in self._sound(at + 1, self._source.end, offsets):
            if chosen and position < chosen.end:
                continue
            chain = self._chain(position)
            contradicts = chosen is None or chain.base_offset <= chosen.last_offset
            longer = chosen is None or chain.reaches or chain.size > chosen.size
            if chosen and not (contradicts and longer):
                break
            chosen = chain
            if chain.reaches:
                break
        return chosen.position if chosen else None

    def holds(self, position: int, size: int, magic: int | None = None) -> bool:
        """Return whether both CRCs of the batch at `position` hold, reading it piece by piece."""
        head = bytes(self._source.read(position, HEADER_SIZE))
        if entry_size(head) != size:
            return False
        header = record_batch.parse(head)
        crc = record_batch.body_crc(header, b"")
        at, stop = position + HEADER_SIZE, position + size
        while at < stop:
            piece = self._source.read(at, min(self._piece, stop - at))
            if not len(piece):
                return False
            crc = crc32c(piece, crc)
            at += len(piece)
        return crc == header.crc

    def _leads(self, position: int, offsets: OffsetBounds) -> bool:
        """Return whether a sound batch of the log begins at a byte behind the damage."""
        header = self._header(position) if position < self._source.end else None
        return header is not None and offsets.last < header.base_offset

    def _header(self, position: int) -> RedpandaHeader | None:
        """Return the header of the sound batch at `position`, paying for one that is not."""
        head = bytes(self._source.read(position, HEADER_SIZE))
        size = entry_size(head)
        if size is None or size > self._source.end - position or size > self.budget:
            return None
        if self.holds(position, size):
            return record_batch.parse(head)
        self.budget -= size
        return None

    def _chain(self, position: int) -> "_Chain":
        """Return the chain of sound batches that begins with one."""
        start, base, last = position, None, -1
        reaches = True
        while position < self._source.end and position - start < FAR:
            header = self._header(position)
            if header is None or header.base_offset <= last:
                reaches = not any(self._source.read(position, HEADER_SIZE))
                break
            base = header.base_offset if base is None else base
            last = header.last_offset
            position += header.size
        return _Chain(start, position, -1 if base is None else base, last, reaches)

    def _sound(self, start: int, stop: int, offsets: OffsetBounds) -> Iterator[int]:
        """Yield the positions of sound batches that begin in ``[start, stop)``."""
        width = FIRST_WINDOW
        while min(stop, self._source.end) - start >= HEADER_SIZE:
            data = bytes(self._source.read(start, min(width, stop - start)))
            if len(data) < HEADER_SIZE:
                return
            for at in _likely(data, offsets, self._source.end - start):
                if self._header(start + at):
                    yield start + at
            start += len(data) - HEADER_SIZE + 1
            width = min(width * 4, WIDEST_WINDOW)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Sound batches whose offsets rise."""

    position: int
    end: int
    base_offset: int
    last_offset: int
    reaches: bool
    """True if they reach the end, `FAR` or zeros."""

    @property
    def size(self) -> int:
        return self.end - self.position


def _size_of(head: bytes) -> int | None:
    """Return the size field of a header; None if no batch can have that size."""
    if len(head) < HEADER_SIZE:
        return None
    size = record_batch.parse(head).size
    return size if size >= HEADER_SIZE else None


def _size_by_crc(head: bytes) -> int | None:
    """Return the only size with which the CRC of a header holds; None if it is impossible.

    A CRC is linear: each bit of the size flips the same bits of the CRC, independent of the others.
    """
    if len(head) < HEADER_SIZE:
        return None
    rest = head[_SIZE_AT.stop :]
    none = crc32c(bytes(4) + rest)
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        flips, size = crc32c((1 << bit).to_bytes(4, "little") + rest) ^ none, 1 << bit
        while (top := flips.bit_length()) in basis:
            flips, size = flips ^ basis[top][0], size ^ basis[top][1]
        basis[top] = flips, size
    left, found = HEADER.unpack(head)[0] ^ none, 0
    while left:
        flips, size = basis[left.bit_length()]
        left, found = left ^ flips, found ^ size
    return found if HEADER_SIZE <= found < 2**31 else None


def _likely(data: bytes, offsets: OffsetBounds, left: int) -> list[int]:
    """Return positions of possible headers; `left` is the bytes of the file from `data` on."""
    count = len(data) - HEADER_SIZE + 1
    # A type is never 0, which leaves nothing of zeros.
    at = np.flatnonzero(np.frombuffer(data, np.uint8, count, 16))
    fields = np.ndarray((count,), _FIELDS, data, strides=(1,))[at]
    base, delta = fields["base_offset"], fields["last_offset_delta"].astype(np.int64)
    good = (
        (fields["size"] >= HEADER_SIZE)
        & (fields["size"] <= left - at)
        & (base > offsets.last)
        & (delta >= 0)
        & (base <= offsets.highest - delta)
        & ((fields["attributes"] & ~np.int16(_KNOWN_ATTRIBUTES)) == 0)
        & ((fields["attributes"] & CODEC_MASK) < _CODECS)
    )
    chosen: list[int] = at[good].tolist()
    return chosen
