"""The hot loops: plain functions over bytes with primitive results.

A kernel validates every length against the bytes that are left before it uses it, keeps no state
and raises nothing in its loop; the callers in this package allocate before and judge after.
"""

import struct
import zlib

from crc32c import crc32c

# Why a walk over batches stopped; `walk_batches` returns one of these.
MORE = 0
"""The bytes end before the batch does (or before its first 21 bytes)."""
BAD_SIZE = 1
BAD_MAGIC = 2
BAD_CRC = 3

# Why decoding records stopped.
DONE = 0
RECORD_TRUNCATED = 1
RECORD_LENGTH = 2
RECORD_VARINT = 3
RECORD_HEADERS = 4

_MIN_LEGACY = (14, 22)
_PREFIX = struct.Struct(">iiBI")
_LEGACY_CRC = struct.Struct(">I")


def walk_batches(data: memoryview, start: int, end: int, found: list[int]) -> tuple[int, int]:
    """Append the position of each valid batch in ``data[start:end]`` to `found`.

    Walks from `start`, checks framing, magic and CRC of each batch, and stops at the first that
    is not whole and sound. Returns (position where it stopped, reason). Source of the rules:
    ``FileLogInputStream``, ``DefaultRecordBatch.ensureValid``, ``LegacyRecord.ensureValid``.
    """
    position = start
    while end - position > 20:
        size, _, magic, stored = _PREFIX.unpack_from(data, position + 8)
        if size < 14:
            return position, BAD_SIZE
        if magic > 2:
            return position, BAD_MAGIC
        after = position + 12 + size
        if magic == 2:
            if size < 49:
                return position, BAD_SIZE
            if after > end:
                return position, MORE
            if crc32c(data[position + 21 : after]) != stored:
                return position, BAD_CRC
        else:
            if size < _MIN_LEGACY[magic]:
                return position, BAD_SIZE
            if after > end:
                return position, MORE
            (stored,) = _LEGACY_CRC.unpack_from(data, position + 12)
            if zlib.crc32(data[position + 16 : after]) != stored:
                return position, BAD_CRC
        found.append(position)
        position = after
    return position, MORE


def decode_varint(data: memoryview, position: int, end: int, most: int) -> tuple[int, int]:
    """Decode one zig-zag varint of at most `most` bytes; returns (value, next position).

    The next position is -1 when the bytes end first or the varint is too long. 5 bytes make a
    32-bit, 10 a 64-bit varint; higher bits are dropped as Java's shifts drop them.
    """
    shift = raw = 0
    last = min(end, position + most)
    while position < last:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            bits = 32 if most == 5 else 64
            raw &= (1 << bits) - 1
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, -1


def decode_records(
    data: memoryview, count: int, rows: list[tuple[int, ...]]
) -> tuple[int, int, int]:
    """Decode up to `count` magic 2 records from `data` and append one row for each to `rows`.

    A row is (position, size, attributes, timestamp delta, offset delta, key position, key length,
    value position, value length, header position, header count); positions are from the start of
    `data`, a length of -1 is null. Returns (records decoded, position, reason). Source:
    ``DefaultRecord.readFrom`` (Kafka 4.x).
    """
    position, end = 0, len(data)
    for done in range(count):
        start = position
        length, position = decode_varint(data, position, end, 5)
        if position < 0:
            return done, start, RECORD_VARINT
        if length < 0:
            return done, start, RECORD_LENGTH
        if length > end - position:
            return done, start, RECORD_TRUNCATED
        stop = position + length
        row = _decode_record(data, position, stop)
        if len(row) == 1:
            return done, start, row[0]
        rows.append((start, stop - start, *row))
        position = stop
    return count, position, DONE


def _decode_record(data: memoryview, position: int, stop: int) -> tuple[int, ...]:
    """Decode the body of one record, which must end exactly at `stop`; a 1-tuple is a reason."""
    if position >= stop:
        return (RECORD_TRUNCATED,)
    attributes = data[position]
    timestamp_delta, position = decode_varint(data, position + 1, stop, 10)
    if position < 0:
        return (RECORD_VARINT,)
    offset_delta, position = decode_varint(data, position, stop, 5)
    if position < 0:
        return (RECORD_VARINT,)
    key_length, key = decode_varint(data, position, stop, 5)
    if key < 0:
        return (RECORD_VARINT,)
    if key_length > stop - key:
        return (RECORD_TRUNCATED,)
    value_length, value = decode_varint(data, key + max(key_length, 0), stop, 5)
    if value < 0:
        return (RECORD_VARINT,)
    if value_length > stop - value:
        return (RECORD_TRUNCATED,)
    header_count, headers = decode_varint(data, value + max(value_length, 0), stop, 5)
    if headers < 0:
        return (RECORD_VARINT,)
    if header_count < 0 or header_count > stop - headers:
        return (RECORD_HEADERS,)
    position = headers
    for _ in range(header_count):
        length, position = decode_varint(data, position, stop, 5)
        if position < 0 or not 0 <= length <= stop - position:
            return (RECORD_HEADERS,)
        length, position = decode_varint(data, position + length, stop, 5)
        if position < 0 or length > stop - position:
            return (RECORD_HEADERS,)
        position += max(length, 0)
    if position != stop:
        return (RECORD_LENGTH,)
    return (
        attributes, timestamp_delta, offset_delta, key, max(key_length, -1), value,
        max(value_length, -1), headers, header_count,
    )  # fmt: skip
