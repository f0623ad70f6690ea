"""The records inside a magic 2 batch, as columns, and one by one for people.

Layout; varint is zig-zag base-128, low group first, at most 5 bytes (varlong: 10)::

    length           varint     bytes behind this field
    attributes       int8       unused, 0
    timestamp_delta  varlong    to the batch's base timestamp
    offset_delta     varint     to the batch's base offset
    key              varint length (negative = null), bytes
    value            varint length (negative = null), bytes
    header count     varint     then for each: varint length, UTF-8 key, varint length, value

Source: ``org.apache.kafka.common.record.DefaultRecord`` (Kafka 3.9 and 4.x).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from logtool.errors import FormatError
from logtool.formats import _kernels
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass

Header = tuple[bytes, bytes | None]
NULL = -1
MOST_AT_ONCE = 65536
"""Records of one table: a row takes 88 bytes, and the smallest record 7."""

_REASONS = {
    _kernels.RECORD_TRUNCATED: "a length exceeds the bytes that are left",
    _kernels.RECORD_LENGTH: "its length field does not agree with its content",
    _kernels.RECORD_VARINT: "a varint has no end",
    _kernels.RECORD_HEADERS: "its header count or a header length is impossible",
}


@dataclass(frozen=True, slots=True)
class RecordSpans:
    """Records of one payload as int64 columns of one length: where each begins, and its parts."""

    position: Column
    """Byte position of the record in the payload."""
    size: Column
    """Bytes, length field included."""
    attributes: Column
    timestamp_delta: Column
    """Milliseconds to the batch's base timestamp."""
    offset_delta: Column
    key_position: Column
    key_length: Column
    """-1 is null."""
    value_position: Column
    value_length: Column
    """-1 is null."""
    header_position: Column
    header_count: Column

    def __len__(self) -> int:
        return len(self.position)


@dataclass(frozen=True, slots=True)
class Record:
    """One record to write."""

    offset_delta: int
    timestamp_delta: int = 0
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[Header] = ()


def parse(payload: memoryview, count: int) -> tuple[RecordSpans, FormatError | None]:
    """Decode `count` records; returns those before the first damage, and the damage.

    Bytes that are left behind the last record are damage, as they are for Kafka.
    """
    return next(parse_slices(payload, count, max(count, 1)))


def parse_slices(
    payload: memoryview, count: int, most: int = MOST_AT_ONCE
) -> Iterator[tuple[RecordSpans, FormatError | None]]:
    """Decode `count` records, at most `most` of them at a time, so that tables stay small.

    Positions count in the whole payload. There is at least one slice, and damage comes with the
    last: what `parse` says of all at once.
    """
    done = position = 0
    while True:
        # A count is as untrusted as any length: no more records than have room.
        room = (len(payload) - position) // _kernels.SMALLEST_RECORD + 1
        rows = np.empty((max(min(count - done, room, most), 0), _kernels.RECORD_COLUMNS), np.int64)
        added, position, reason = _kernels.decode_records(
            payload, position, len(payload), len(rows), rows, 0
        )
        done += added
        damage = _damage(done, count, position, reason, len(payload))
        yield RecordSpans(*rows[:added].T), damage
        if damage or done >= count:
            return


def _damage(done: int, count: int, position: int, reason: int, size: int) -> FormatError | None:
    """Return the error that stopped the decoding of `count` records, or None without an error."""
    if count < 0:
        return FormatError(f"record count is {count}")
    if reason != _kernels.DONE:
        return FormatError(f"record {done} of {count}: {_REASONS[reason]}", position)
    if done == count > 0 and position != size:
        return FormatError(f"{size - position} bytes after the last of {count} records", position)
    return None


def parse_headers(payload: memoryview, position: int, count: int) -> list[Header]:
    """Return the headers of one record that `parse` accepted."""
    headers: list[Header] = []
    for _ in range(count):
        length, position = _kernels.decode_varint(payload, position, len(payload), 5)
        key = bytes(payload[position : position + length])
        length, position = _kernels.decode_varint(payload, position + length, len(payload), 5)
        value = None if length < 0 else bytes(payload[position : position + length])
        position += max(length, 0)
        headers.append((key, value))
    return headers


def encode(records: Sequence[Record]) -> bytes:
    """Return the records as they stand in an uncompressed payload."""
    return b"".join(map(_encode_record, records))


def _encode_record(record: Record) -> bytes:
    body = b"".join(
        [
            b"\0",
            encode_varint(record.timestamp_delta),
            encode_varint(record.offset_delta),
            _encode_bytes(record.key),
            _encode_bytes(record.value),
            encode_varint(len(record.headers)),
            *(_encode_bytes(key) + _encode_bytes(value) for key, value in record.headers),
        ]
    )
    return encode_varint(len(body)) + body


def encode_varint(value: int) -> bytes:
    """Return `value` in zig-zag base-128."""
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _encode_bytes(data: bytes | None) -> bytes:
    return encode_varint(NULL) if data is None else encode_varint(len(data)) + data
