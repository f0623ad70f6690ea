"""A reader of Redpanda's segments, simple and slow, which tests hold the walk against.

It stops where a broker does, says why, and goes on behind damage at the next batch whose two CRCs
hold, as a broker never does. See `logtool.formats.redpanda.record_batch`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from logtool.formats.record_batch import CODEC_MASK
from logtool.formats.redpanda import record_batch
from logtool.formats.redpanda.record_batch import HEADER_SIZE, RedpandaBatch

_FIELDS = np.dtype(
    {
        "names": ["size", "attributes", "last_offset_delta"],
        "formats": ["<i4", "<i2", "<i4"],
        "offsets": [4, 21, 23],
        "itemsize": HEADER_SIZE,
    }
)
_KNOWN_ATTRIBUTES = 0x3F
_CODECS = 5


class Reason(StrEnum):
    """Why bytes are no batch."""

    ZEROS = "zeros"
    """Nothing but zeros up to the end of the file: room that was not used."""
    SHORT_HEADER = "short-header"
    """The file ends within a header."""
    HEADER_CRC = "header-crc"
    SIZE = "size"
    """The header's CRC holds, and its size is less than its own 61 bytes."""
    SHORT_BODY = "short-body"
    """The file ends within the batch."""
    CRC = "crc"


@dataclass(frozen=True, slots=True)
class Rest:
    """Bytes that are no batch."""

    data: bytes
    reason: Reason


@dataclass(frozen=True, slots=True)
class Segment:
    """The parts of a segment, in the order of the file and without a byte left out."""

    parts: tuple[RedpandaBatch | Rest, ...]

    @property
    def batches(self) -> tuple[RedpandaBatch, ...]:
        """Return the sound batches, those behind damage too."""
        return tuple(part for part in self.parts if isinstance(part, RedpandaBatch))

    @property
    def rests(self) -> tuple[tuple[int, Rest], ...]:
        """Return the damaged ranges, each with its position in the file."""
        return tuple((at, part) for at, part in self._placed() if isinstance(part, Rest))

    def _placed(self) -> Iterator[tuple[int, RedpandaBatch | Rest]]:
        at = 0
        for part in self.parts:
            yield at, part
            at += part.header.size if isinstance(part, RedpandaBatch) else len(part.data)


def parse(data: bytes) -> Segment:
    """Split `data` into batches and other bytes. Never fails."""
    return Segment(tuple(parts(data)))


def encode(segment: Segment) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(
        record_batch.encode(part.header) + part.body
        if isinstance(part, RedpandaBatch)
        else part.data
        for part in segment.parts
    )


def build(batches: list[RedpandaBatch], *, room: int = 0) -> bytes:
    """Return a segment of `batches` with `room` zero bytes behind them."""
    return encode(Segment((*batches, Rest(bytes(room), Reason.ZEROS))))


def parts(data: bytes) -> Iterator[RedpandaBatch | Rest]:
    """Yield the parts of `data`, one part behind the other."""
    at = 0
    while at < len(data):
        batch = batch_at(data, at)
        if isinstance(batch, RedpandaBatch):
            yield batch
            at += batch.header.size
            continue
        behind = len(data) if batch is Reason.ZEROS else _next_batch(data, at + 1)
        yield Rest(data[at:behind], batch)
        at = behind


def batch_at(data: bytes, at: int) -> RedpandaBatch | Reason:
    """Return the batch that begins at `at`, or why a broker's reader stops there."""
    if len(data) - at < HEADER_SIZE:
        return Reason.ZEROS if _zeros(data, at) else Reason.SHORT_HEADER
    if not any(data[at : at + HEADER_SIZE]):
        return Reason.ZEROS if _zeros(data, at) else Reason.HEADER_CRC
    header = record_batch.parse(data, at)
    if header.header_crc != record_batch.header_crc(header):
        return Reason.HEADER_CRC
    # Only now does the size mean anything.
    if header.size < HEADER_SIZE:
        return Reason.SIZE
    if header.size > len(data) - at:
        return Reason.SHORT_BODY
    body = data[at + HEADER_SIZE : at + header.size]
    if header.crc != record_batch.body_crc(header, body):
        return Reason.CRC
    return RedpandaBatch(header, body)


def _zeros(data: bytes, at: int) -> bool:
    return data.count(0, at) == len(data) - at


def _next_batch(data: bytes, start: int) -> int:
    """Return where the next batch with sound CRCs begins, or the end."""
    count = len(data) - start - HEADER_SIZE + 1
    if count <= 0:
        return len(data)
    fields = np.ndarray((count,), _FIELDS, data, offset=start, strides=(1,))
    # The body of a candidate is hashed only where the header's own CRC holds.
    likely = (
        (fields["size"] >= HEADER_SIZE)
        & (fields["size"] <= len(data) - start - np.arange(count))
        & (fields["last_offset_delta"] >= 0)
        & ((fields["attributes"] & ~np.int16(_KNOWN_ATTRIBUTES)) == 0)
        & ((fields["attributes"] & CODEC_MASK) < _CODECS)
    )
    for position in (np.flatnonzero(likely) + start).tolist():
        if isinstance(batch_at(data, position), RedpandaBatch):
            return int(position)
    return len(data)
