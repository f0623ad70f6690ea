"""Headers that may stand behind damage, of any magic: what could be one, and where."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from logtool.formats import compression
from logtool.formats.record_batch import (
    CODEC_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MIN_ENTRY_SIZE,
    TIMESTAMP_TYPE,
    UNUSED_ATTRIBUTES,
    Column,
)
from logtool.log.damage import entry_size

MIN_SIZES = (MIN_ENTRY_SIZE, MIN_ENTRY_SIZE + 8, HEADER_SIZE)
"""Bytes of the smallest entry by magic."""
_LEGACY_ATTRIBUTES = (CODEC_MASK, CODEC_MASK | TIMESTAMP_TYPE)
LENGTHS = (18, 26)
"""Byte of the length of the key in a message of magic 0 and 1."""


class OffsetBounds(NamedTuple):
    """The bounds of the offsets that a batch behind damage may have."""

    last: int
    """Last offset of the sound batches before the damage."""
    highest: int
    """In reach of the segment."""


class CandidateHeader(NamedTuple):
    """The fields in the first bytes of an entry, right or wrong."""

    position: int
    size: int
    magic: int
    base_offset: int
    """First offset; for magic 0 and 1 the last offset, as the first is known only once the entry is
    unpacked."""
    last_offset: int


def header_of(
    head: memoryview, position: int, offsets: OffsetBounds | None
) -> CandidateHeader | None:
    """Return the fields of a header; None if the bytes cannot be a header.

    With `offsets` the size is not checked, but the offsets of the header have to be possible.
    """
    if len(head) < MIN_ENTRY_SIZE or head[16] > MAGIC:
        return None
    magic, base = head[16], int.from_bytes(head[:8], "big", signed=True)
    size, last = entry_size(head) or 0, base
    if magic == MAGIC:
        if len(head) < HEADER_SIZE:
            return None
        fields = np.frombuffer(head, HEADER, 1)[0]
        delta, count = int(fields["last_offset_delta"]), int(fields["record_count"])
        # Behind damage one of the two may be wrong, and cleaning leaves fewer records than offsets.
        last += min(delta, max(count - 1, 0)) if offsets else delta
        if offsets and not (
            delta >= 0
            and int(fields["attributes"]) & UNUSED_ATTRIBUTES & 0xFFFF == 0
            and int(fields["attributes"]) & CODEC_MASK <= compression.ZSTD
            and count >= 0
            and int(fields["leader_epoch"]) >= -1
        ):
            return None
    elif offsets:
        size = max(size, _said(head, magic))
        if head[17] & ~_LEGACY_ATTRIBUTES[magic]:
            return None
    if offsets and not offsets.last < base <= last <= offsets.highest:
        return None
    return CandidateHeader(
        position=position, size=size, magic=magic, base_offset=base, last_offset=last
    )


def _said(head: memoryview, magic: int) -> int:
    """Return how long the lengths in a message of magic 0 or 1 say that it is; 0 for impossible."""
    at = LENGTHS[magic]
    for _ in ("key", "value"):
        length = int.from_bytes(head[at : at + 4], "big", signed=True)
        if length < -1:
            return 0
        at += 4 + max(length, 0)
    return at


def candidates(
    data: memoryview, count: int, start: int, stop: int, offsets: OffsetBounds
) -> Iterator[CandidateHeader]:
    """Yield the headers at the first `count` bytes of `data` whose fields could be real, in order.

    `start` is the file position of ``data[0]``. Of messages of magic 0 and 1 the fields are looked
    at up to the attributes.
    """
    columns = _legacy(data[: count + MIN_ENTRY_SIZE - 1], start, stop, offsets)
    if len(data) >= HEADER_SIZE:
        modern = _modern(data, start, stop, offsets)
        columns = np.concatenate((columns, modern), axis=1) if columns.size else modern
    if columns.shape[1] > 1:
        columns = columns[:, np.argsort(columns[0], kind="stable")]
    yield from map(CandidateHeader._make, zip(*columns.tolist(), strict=True))


def _modern(data: memoryview, start: int, stop: int, offsets: OffsetBounds) -> Column:
    """Return a row for each field of `CandidateHeader`."""
    raw = np.frombuffer(data, np.uint8)
    count = len(raw) - HEADER_SIZE + 1
    # Three single bytes leave so little of most data that the rest costs nothing.
    at = np.flatnonzero(
        (raw[16 : 16 + count] == MAGIC) & (raw[21 : 21 + count] == 0) & (raw[8 : 8 + count] < 0x80)
    )
    head = np.ndarray((count,), HEADER, data, strides=(1,))[at]
    base, delta = head["base_offset"], head["last_offset_delta"].astype(np.int64)
    size = head["batch_length"].astype(np.int64) + LOG_OVERHEAD
    good = (
        (size >= HEADER_SIZE)
        & (size <= stop - start - at)
        & (base > offsets.last)
        & (delta >= 0)
        & (base <= offsets.highest - delta)
        & ((head["attributes"].astype(np.int32) & (UNUSED_ATTRIBUTES & 0xFFFF)) == 0)
        & ((head["attributes"] & CODEC_MASK) <= compression.ZSTD)
        & (head["record_count"] >= 0)
        & (head["leader_epoch"] >= -1)
    )
    magic = np.full(len(at), MAGIC)
    return np.array((at + start, size, magic, base, base + delta))[:, good]


_LEGACY = np.dtype([("offset", ">i8"), ("size", ">i4"), ("crc", ">u4"), ("magic", "u1")])


def _legacy(data: memoryview, start: int, stop: int, offsets: OffsetBounds) -> Column:
    """Return a row for each field of `CandidateHeader`."""
    raw = np.frombuffer(data, np.uint8)
    count = len(raw) - MIN_ENTRY_SIZE + 1
    if count <= 0:
        return np.empty((len(CandidateHeader._fields), 0), np.int64)
    good = raw[16 : 16 + count] <= 1
    good &= raw[17 : 17 + count] <= _LEGACY_ATTRIBUTES[1]
    good &= raw[8 : 8 + count] < 0x80
    # No entry is empty: that alone leaves nothing of zeros.
    good &= (raw[9 : 9 + count] | raw[10 : 10 + count] | raw[11 : 11 + count]) != 0
    low, high = max(offsets.last + 1, 0).to_bytes(8, "big"), offsets.highest.to_bytes(8, "big")
    for byte in range(4):
        if low[byte] != high[byte]:
            break
        good &= raw[byte : byte + count] == low[byte]
    at = np.flatnonzero(good)
    head = np.ndarray((count,), _LEGACY, data, strides=(1,))[at]
    offset, size = head["offset"], head["size"].astype(np.int64) + LOG_OVERHEAD
    attributes, magic = raw[at + 17], head["magic"]
    good = (
        (size >= np.where(magic == 0, MIN_SIZES[0], MIN_SIZES[1]))
        & (size <= stop - start - at)
        & (offset > offsets.last)
        & (offset <= offsets.highest)
        & ((attributes & CODEC_MASK) <= compression.LZ4)
        & ((magic == 1) | (attributes <= CODEC_MASK))
    )
    return np.array((at + start, size, magic, offset, offset))[:, good]
