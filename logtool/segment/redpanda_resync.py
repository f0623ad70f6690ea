"""Where a log of Redpanda goes on behind damage: the search for the next sound batch.

A broker never does this. Each header has a CRC of its own, which makes the search simpler than for
Kafka's logs (`logtool.segment.resync`):

1. Where the header is sound, its size is: damage to the body is framed, and the log goes on behind.
2. Where it is not, a candidate is a header whose CRC holds, with offsets behind the last sound
   batch and in reach of the segment, and whose batch is sound.
3. A candidate is proven if the damaged header's CRC holds with the size that leads to it: only the
   size was wrong.
4. Else the size field decides, if it leads to a candidate. A record may hold whole batches.
5. Else the first candidate counts whose chain of sound batches reaches the end or `FAR`, or zeros;
   where none does, the first.
"""

from collections.abc import Iterator

import numpy as np

from logtool.formats.crc import crc32c
from logtool.formats.record_batch import CODEC_MASK
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.record_batch import HEADER, HEADER_CRC_SIZE, HEADER_SIZE, Header
from logtool.segment.candidates import Offsets
from logtool.segment.redpanda_damage import entry_size
from logtool.segment.resync import FAR, FIRST_WINDOW, WIDEST_WINDOW, Source

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
    """The search of one scan; `budget` is what it may still hash in vain."""

    def __init__(self, source: Source, budget: int, piece: int) -> None:
        self._source = source
        self.budget = budget
        self._piece = piece
        """Bytes that are read at once for a CRC."""

    def frames(self, at: int, behind: int, offsets: Offsets) -> bool:
        """Return True: it is asked only where the header is sound, and with it the size."""
        return True

    def next_batch(
        self, at: int, behind: int | None, offsets: Offsets, *, torn: bool
    ) -> int | None:
        """Return where the log goes on behind damage at `at`; None where it does not.

        `behind` is where it is framed to end, None where it is not.
        """
        if behind is not None:
            return None
        head = bytes(self._source.read(at, HEADER_SIZE))
        target = None if torn else self._target(head, at, offsets)
        stop = self._source.end if target is None else target
        first: int | None = None
        reached = at
        for position in self._sound(at + 1, stop, offsets):
            if _proves(head, position - at):
                return position
            if target is not None or position < reached:
                continue
            first = position if first is None else first
            reached, ended = self._chain(position)
            if ended:
                return position
        return first if target is None else target

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

    def _target(self, head: bytes, at: int, offsets: Offsets) -> int | None:
        """Return where the size of a damaged header leads, if to a sound batch."""
        if len(head) < HEADER_SIZE:
            return None
        position = at + record_batch.parse(head).size
        if not at + HEADER_SIZE <= position < self._source.end:
            return None
        header = self._header(position)
        return position if header and offsets.last < header.base_offset else None

    def _header(self, position: int) -> Header | None:
        """Return the header of the sound batch at `position`, paying for one that is not."""
        head = bytes(self._source.read(position, HEADER_SIZE))
        size = entry_size(head)
        if size is None or size > self._source.end - position or size > self.budget:
            return None
        if self.holds(position, size):
            return record_batch.parse(head)
        self.budget -= size
        return None

    def _chain(self, position: int) -> tuple[int, bool]:
        """Return where the sound batches end that begin at `position`, and if that is enough."""
        start, last = position, -1
        while position < self._source.end and position - start < FAR:
            header = self._header(position)
            if header is None or header.base_offset <= last:
                return position, not any(self._source.read(position, HEADER_SIZE))
            last = header.last_offset
            position += header.size
        return position, True

    def _sound(self, start: int, stop: int, offsets: Offsets) -> Iterator[int]:
        """Yield where sound batches begin in ``[start, stop)``."""
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


def _proves(head: bytes, size: int) -> bool:
    """Return whether the CRC of a header holds once its size is taken to be `size`."""
    if len(head) < HEADER_SIZE or not HEADER_SIZE <= size < 2**31:
        return False
    with_size = bytearray(head)
    with_size[_SIZE_AT] = size.to_bytes(4, "little")
    stored: int = HEADER.unpack(head)[0]
    return stored == crc32c(with_size[HEADER_CRC_SIZE:])


def _likely(data: bytes, offsets: Offsets, left: int) -> list[int]:
    """Return where the fields of a header could be real; `left` is what the file has of `data`."""
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
