"""Records without content in the place of those of a batch.

What is kept of each record is its offset. Of the timestamps the largest is kept, at its record; of
the attributes, which no release uses, nothing. Keys, values and headers are gone, also their sizes:
all bytes that are left over are the value of the last record. So the bodies of most batches are the
beginnings of one and the same sequence of bytes, which takes next to nothing once it is compressed.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from logtool.formats.record import NULL, encode_varint
from logtool.formats.record_batch import Column

_MOST_SPARE = 4
"""Bytes of a key that make up for the sizes of length fields."""


class Body(NamedTuple):
    """The records of a batch without content."""

    data: bytes
    free: int
    """Number of bytes that stood for content."""


class _Plain:
    """The records of a batch whose offsets have no gap and whose timestamps are those of the batch.

    They are one behind the other for every count of records that was asked for.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.starts = [0]

    def up_to(self, count: int) -> None:
        """Add records until there are `count`."""
        while len(self.starts) <= count:
            self.data += _record(len(self.starts) - 1, 0)
            self.starts.append(len(self.data))


def body(offset_delta: Column, timestamp_delta: Column, size: int) -> Body | None:
    """Return records with these offsets that take `size` bytes; None if they take more.

    There is at least one record.
    """
    count = len(offset_delta)
    latest = int(timestamp_delta.argmax())
    time = int(timestamp_delta[latest])
    others = min(time, 0)
    last = count - 1
    if others == 0 and int(offset_delta[0]) == 0 and bool((np.diff(offset_delta) == 1).all()):
        front = _front(last, latest, time)
    else:
        front = b"".join(
            _record(offset, time if number == latest else others)
            for number, offset in enumerate(offset_delta[:last].tolist())
        )
    own = int(offset_delta[last]), time if latest == last else others
    end = _last(*own, size - len(front))
    if end is None and last:
        # A length field of two bytes leaves out a size: the first record takes a byte of it.
        first = int(offset_delta[0]), time if latest == 0 else others
        front = _record(*first, b"\0") + front[len(_record(*first)) :]
        end = _last(*own, size - len(front))
    return Body(front + end.data, end.free) if end else None


@lru_cache(maxsize=1)
def _plain() -> _Plain:
    return _Plain()


def _front(count: int, latest: int, time: int) -> bytes:
    """Return the first `count` records, where record number `latest` has the time delta `time`."""
    plain = _plain()
    plain.up_to(count)
    data, starts = plain.data, plain.starts
    if latest >= count or not time:
        return bytes(data[: starts[count]])
    own = _record(latest, time)
    return bytes(data[: starts[latest]]) + own + bytes(data[starts[latest + 1] : starts[count]])


def _record(offset: int, time: int, key: bytes | None = None) -> bytes:
    """Return a record without value and headers."""
    field = encode_varint(NULL) if key is None else encode_varint(len(key)) + key
    inner = _head(offset, time) + field + encode_varint(NULL) + b"\0"
    return encode_varint(len(inner)) + inner


def _head(offset: int, time: int) -> bytes:
    return b"\0" + encode_varint(time) + encode_varint(offset)


def _last(offset: int, time: int, size: int) -> Body | None:
    """Return a record of exactly `size` bytes; None if that is too few for any."""
    if size == len(_record(offset, time)):
        return Body(_record(offset, time), 0)
    head = _head(offset, time)
    for spare in range(_MOST_SPARE):
        key = encode_varint(spare) + bytes(spare)
        for width in range(1, 6):
            for inner_width in range(1, 6):
                value = size - width - len(head) - len(key) - inner_width - 1
                if value < 0:
                    break
                field = encode_varint(value)
                inner = head + key + field + bytes(value) + b"\0"
                length = encode_varint(len(inner))
                if len(length) == width and len(field) == inner_width:
                    return Body(length + inner, value)
    return None
