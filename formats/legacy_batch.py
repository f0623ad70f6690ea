"""Entries of magic 0 and 1: single messages, or wrappers around compressed ones.

Layout behind the shared first 12 bytes (offset int64, size int32); CRC-32 (IEEE) over 16..end::

    12  crc         uint32
    16  magic       int8     0 or 1
    17  attributes  int8     bits 0-2 codec, bit 3 LogAppendTime (magic 1)
    18  timestamp   int64    magic 1 only, milliseconds
        key         int32 length (-1 null), bytes
        value       int32 length (-1 null), bytes

The offset is the *last* one of a wrapper; its first, and how many messages it holds, are known
only after decompression. Brokers write none of these since 4.0 and still read them. Source:
``LegacyRecord``, ``AbstractLegacyRecordBatch`` (Kafka 3.9).
"""

import struct
import zlib
from collections import deque
from collections.abc import Iterator

import numpy as np

from logtool.errors import FormatError
from logtool.formats import compression
from logtool.formats.record_batch import (
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE,
    BatchTable,
    Column,
)
from logtool.lazy_dataclass import dataclass

_ENTRY = struct.Struct(">qi")
_HEAD = struct.Struct(">IbB")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_LZ4_FLAGS = 4
_LZ4_CHECKSUM = 6
_LZ4_DESCRIPTOR_CHECKSUM = 0x82
_LZ4_DESCRIPTOR = b"\x60\x40"


@dataclass(frozen=True, slots=True)
class Message:
    """One message, or one wrapper."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    """Milliseconds, -1 for magic 0."""
    key: bytes | None
    value: bytes | None


def parse(entry: memoryview) -> Message:
    """Decode one whole entry; FormatError when its lengths do not fit."""
    if len(entry) < LOG_OVERHEAD + _HEAD.size:
        raise FormatError(f"message of {len(entry)} bytes", 0)
    offset, _ = _ENTRY.unpack_from(entry)
    crc, magic, attributes = _HEAD.unpack_from(entry, LOG_OVERHEAD)
    position, timestamp = LOG_OVERHEAD + _HEAD.size, -1
    if magic == 1:
        if len(entry) < position + _TIMESTAMP.size:
            raise FormatError("magic 1 message without room for its timestamp", position)
        (timestamp,) = _TIMESTAMP.unpack_from(entry, position)
        position += _TIMESTAMP.size
    key, position = _parse_bytes(entry, position)
    value, position = _parse_bytes(entry, position)
    return Message(
        offset=offset,
        crc=crc,
        magic=magic,
        attributes=attributes,
        timestamp=timestamp,
        key=key,
        value=value,
    )


def parse_messages(entry: memoryview, limit: int) -> Iterator[Message]:
    """Yield the messages of one entry with absolute offsets: itself, or those it wraps."""
    outer = parse(entry)
    codec = outer.attributes & CODEC_MASK
    if codec == compression.NONE:
        yield outer
        return
    if codec > compression.LZ4:
        raise FormatError(f"wrapper compressed with {compression.name(codec)}", LOG_OVERHEAD)
    if outer.value is None:
        raise FormatError("compressed wrapper with a null value", LOG_OVERHEAD)
    stream = outer.value
    if outer.magic == 0 and codec == compression.LZ4:
        stream = with_sound_lz4_checksum(stream)
    inner = compression.decompress(codec, memoryview(stream), limit)
    # Gone through twice: a list of a million messages takes many times their bytes.
    last = next(iter(deque(_entries(inner), maxlen=1)), None)
    if last is None:
        raise FormatError("compressed wrapper with no messages", LOG_OVERHEAD)
    # Magic 1 offsets inside are relative and the wrapper has the absolute one of the last; old
    # librdkafka left it 0.
    base = outer.offset - last.offset if outer.magic == 1 and outer.offset else 0
    if base < 0:
        raise FormatError(
            f"wrapper offset {outer.offset} is below {last.offset}, the offset of its last message"
        )
    for message in _entries(inner):
        stamp = outer.timestamp if outer.attributes & TIMESTAMP_TYPE else message.timestamp
        yield Message(
            offset=base + message.offset,
            crc=message.crc,
            magic=message.magic,
            attributes=message.attributes | outer.attributes & TIMESTAMP_TYPE,
            timestamp=stamp,
            key=message.key,
            value=message.value,
        )


@dataclass(frozen=True, slots=True)
class DamagedMessage:
    """One message of an entry whose CRC does not hold."""

    offset: int | None
    """None where the last message of its wrapper, which has the offset, does not decode, or where
    the offsets inside do not rise up to that of the wrapper."""
    message: Message
    """The message as stored: its offset is that inside the wrapper."""
    crc_valid: bool
    """True if its own CRC holds, which covers its time, key and value, but not its offset."""


def decodable_messages(
    entry: memoryview, limit: int
) -> tuple[list[DamagedMessage], FormatError | None]:
    """Return the messages of a damaged entry up to the first that does not decode, and the error.

    The error is None where all of them decode. FormatError where the entry itself does not decode.
    """
    outer = parse(entry)
    codec = outer.attributes & CODEC_MASK
    if codec == compression.NONE:
        return [DamagedMessage(outer.offset, outer, _crc_holds(entry, outer))], None
    if codec > compression.LZ4 or outer.value is None:
        raise FormatError("wrapper without a compressed stream", LOG_OVERHEAD)
    stream = outer.value
    if outer.magic == 0 and codec == compression.LZ4:
        stream = with_sound_lz4_checksum(stream)
    inner, error = compression.decompress_front(codec, memoryview(stream), limit)
    found: list[tuple[Message, bool]] = []
    end = 0
    try:
        for position, message in _placed_entries(inner):
            found.append((message, _crc_holds(inner[position:], message)))
            end = position + LOG_OVERHEAD + _ENTRY.unpack_from(inner, position)[1]
    except FormatError as damage:
        error = error or damage
    if end < len(inner):
        error = error or FormatError("a message is cut short", end)
    stored, base = [message.offset for message, _ in found], 0
    if outer.magic == 1 and outer.offset and stored:
        base = outer.offset - stored[-1]
    # No CRC of a message covers its offset.
    known = stored == sorted(set(stored)) and not (error and outer.magic == 1)
    known = known and base >= 0 and all(base + offset <= outer.offset for offset in stored[-1:])
    return [
        DamagedMessage(base + message.offset if known else None, message, holds)
        for message, holds in found
    ], error


def _crc_holds(data: memoryview, message: Message) -> bool:
    """Return whether the CRC of the message holds that takes the first bytes of `data`."""
    (size,) = _LENGTH.unpack_from(data, LOG_OVERHEAD - _LENGTH.size)
    covered = data[LOG_OVERHEAD + _LENGTH.size : LOG_OVERHEAD + max(size, 0)]
    return zlib.crc32(covered) == message.crc


def fill(table: BatchTable, data: memoryview, positions: Column) -> None:
    """Correct in place the rows of magic 0 and 1 in a table made by `record_batch.parse`."""
    for row in np.nonzero(table.magic < 2)[0]:
        at = int(positions[row])
        crc, magic, attributes = _HEAD.unpack_from(data, at + LOG_OVERHEAD)
        stamp = _TIMESTAMP.unpack_from(data, at + LOG_OVERHEAD + _HEAD.size)[0] if magic else -1
        table.last_offset[row] = table.base_offset[row]
        table.crc[row], table.attributes[row] = crc, attributes
        table.base_timestamp[row] = table.max_timestamp[row] = stamp
        for column in (
            table.leader_epoch,
            table.producer_id,
            table.producer_epoch,
            table.base_sequence,
            table.record_count,
        ):
            column[row] = -1


def count(table: BatchTable, data: memoryview, base: int, limit: int) -> None:
    """Fill in the record counts of the rows of magic 0 and 1: what a wrapper holds is unpacked.

    `base` is the file position of ``data[0]``, which holds the rows whole; `limit` is in bytes. A
    wrapper that cannot be unpacked keeps -1.
    """
    wrappers = table.is_wrapper
    table.record_count[(table.magic < MAGIC) & ~wrappers] = 1
    for row in np.flatnonzero(wrappers).tolist():
        start = int(table.position[row]) - base
        try:
            entry = data[start : start + int(table.size[row])]
            table.record_count[row] = sum(1 for _ in parse_messages(entry, limit))
        except FormatError:
            continue  # a reader of the records reports it


def _entries(data: memoryview) -> Iterator[Message]:
    """Yield the inner messages; see `_placed_entries`."""
    return (message for _, message in _placed_entries(data))


def _placed_entries(data: memoryview) -> Iterator[tuple[int, Message]]:
    """Yield the inner messages with their positions.

    A truncated one at the end is ignored, as the broker does.
    """
    position = 0
    while len(data) - position >= LOG_OVERHEAD:
        _, size = _ENTRY.unpack_from(data, position)
        if size < _HEAD.size:
            raise FormatError(f"inner message of size {size}", position)
        if size > len(data) - position - LOG_OVERHEAD:
            return
        message = parse(data[position : position + LOG_OVERHEAD + size])
        if message.magic not in (0, 1) or message.attributes & CODEC_MASK:
            raise FormatError("inner message that is itself a batch or a wrapper", position)
        yield position, message
        position += LOG_OVERHEAD + size


def _parse_bytes(entry: memoryview, position: int) -> tuple[bytes | None, int]:
    if len(entry) - position < _LENGTH.size:
        raise FormatError("message ends inside a length field", position)
    (length,) = _LENGTH.unpack_from(entry, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    if length > len(entry) - position:
        left = len(entry) - position
        raise FormatError(f"field of {length} bytes, but {left} are left", position - _LENGTH.size)
    return bytes(entry[position : position + length]), position + length


def with_sound_lz4_checksum(stream: bytes) -> bytes:
    """Mend the descriptor checksum that old producers computed over the wrong bytes."""
    if stream[_LZ4_FLAGS:_LZ4_CHECKSUM] != _LZ4_DESCRIPTOR or len(stream) <= _LZ4_CHECKSUM:
        return stream
    mended = bytearray(stream)
    mended[_LZ4_CHECKSUM] = _LZ4_DESCRIPTOR_CHECKSUM
    return bytes(mended)
