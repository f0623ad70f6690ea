"""The sparse range index of a node of AutoMQ (``<hash>/ns/node-<node>``), big-endian.

============  =====  ===============================================================================
version       int16  0
stream_count  int32
------------  -----  -------------------------------------------------------------------------------
stream_id     int64  for each stream
range_count   int32
start_offset  int64  for each range, which ascend
end_offset    int64
object_id     int64  a stream set object
============  =====  ===============================================================================

The index merges and drops ranges: it is a hint for a stream set object that has a stream, never a
list of all. Source: ``LocalStreamRangeIndexCache`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from logtool.findings import Finding
from logtool.lazy_dataclass import dataclass

VERSION = 0
RANGE = np.dtype([("start_offset", ">i8"), ("end_offset", ">i8"), ("object_id", ">i8")])
HEAD, STREAM = struct.Struct(">hi"), struct.Struct(">qi")


@dataclass(frozen=True, slots=True, eq=False)
class RangeIndex:
    """One index."""

    head: tuple[int, int] | None
    """Version and number of streams; None if the object is too short."""
    ranges: tuple[tuple[int, NDArray[np.void]], ...]
    """Ranges (`RANGE`) of each stream, by its id, in the order of the object."""
    trailing: bytes
    """Bytes behind the last whole stream."""


def parse(data: bytes) -> RangeIndex:
    """Read an index. Never fails."""
    if len(data) < HEAD.size:
        return RangeIndex(None, (), data)
    head = HEAD.unpack_from(data)
    found: list[tuple[int, NDArray[np.void]]] = []
    at = HEAD.size
    while len(found) < head[1] and len(data) - at >= STREAM.size:
        stream_id, count = STREAM.unpack_from(data, at)
        start = at + STREAM.size
        if not 0 <= count <= (len(data) - start) // RANGE.itemsize:
            break
        found.append((stream_id, np.frombuffer(data, RANGE, count, start)))
        at = start + count * RANGE.itemsize
    return RangeIndex(head, tuple(found), data[at:])


def encode(parsed: RangeIndex) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    parts = [] if parsed.head is None else [HEAD.pack(*parsed.head)]
    for stream_id, ranges in parsed.ranges:
        parts += [STREAM.pack(stream_id, len(ranges)), ranges.tobytes()]
    return b"".join(parts) + parsed.trailing


def check(parsed: RangeIndex) -> Iterator[Finding]:
    """Yield the finding for an index that is not whole, and for ranges that are out of order."""
    size = len(encode(parsed))
    if parsed.head != (VERSION, len(parsed.ranges)) or parsed.trailing:
        found = "no header" if parsed.head is None else f"version and count {parsed.head}"
        yield Finding(
            "automq-range-index/format",
            f"expected version {VERSION} and streams that fill the object, found {found}, "
            f"{len(parsed.ranges)} whole streams",
            position=size - len(parsed.trailing),
            length=len(parsed.trailing),
        )
    at = HEAD.size
    for stream_id, ranges in parsed.ranges:
        start, end = (ranges[name].astype(np.int64) for name in ("start_offset", "end_offset"))
        bad = (start < 0) | (end < start) | (ranges["object_id"] < 0)
        bad[1:] |= start[1:] < start[:-1]
        length = STREAM.size + ranges.nbytes
        if stream_id < 0 or bad.any():
            yield Finding(
                "automq-range-index/format",
                f"stream {stream_id}: expected ranges in order",
                position=at,
                length=length,
            )
        at += length


def build(streams: Mapping[int, Sequence[tuple[int, int, int]]]) -> bytes:
    """Return an index of ranges: start offset, end offset and object id, by stream."""
    ranges = tuple((stream, np.array(rows, RANGE)) for stream, rows in streams.items())
    return encode(RangeIndex((VERSION, len(ranges)), ranges, b""))
