"""The records of one batch that is not sound, as far as they decode: any of them may be wrong."""

from collections.abc import Iterator

from logtool.dump.blocks import Origin
from logtool.dump.log import batch_objects
from logtool.dump.records import (
    LIMIT,
    Object,
    error_object,
    message_object,
    read_records,
    record_error,
)
from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC
from logtool.log.chunk import Chunk
from logtool.log.records import one_batch

BAD_RECORD = "bad-record"
"""Type of such a record in a dump, so that no reader of records takes it for a sound one."""
_CODEC_AT = 22
"""Byte of the codec in a header of magic 2."""
REST = "bad-records"
"""Reason of the ``error`` for the records of such a batch that do not decode."""


def objects(
    origin: Origin, entry: memoryview, position: int, limit: int, *, hides: bool
) -> Iterator[Object]:
    """Yield a batch that takes all of `entry`, and the records that decode.

    Each record says in ``crc_valid`` whether its own CRC holds. With `hides` their bytes are stars.
    The batch may decompress to at most `limit` bytes.
    """
    chunk = one_batch(entry, position)
    (batch,) = batch_objects(origin, chunk.table)
    yield batch | {"crc_valid": False}
    read = _messages if batch["magic"] < MAGIC else _records
    try:
        for obj in read(batch, chunk, limit):
            yield _starred(obj) if hides and obj["type"] == "record" else obj
    except LimitError as error:
        yield record_error(batch, error.reason, LIMIT)
    except (FormatError, ValueError, OverflowError) as error:
        text = f"the remaining records do not decode: {error}"
        yield error_object(origin.path, "damaged", text, position, len(entry))


def records(
    origin: Origin, entry: memoryview, position: int, limit: int, *, hides: bool
) -> Iterator[Object]:
    """Yield the records of `objects` with the type `BAD_RECORD`, and their errors."""
    for obj in objects(origin, entry, position, limit, hides=hides):
        if obj["type"] == "record":
            yield obj | {"type": BAD_RECORD}
        elif obj["type"] == "error":
            yield obj | {"reason": REST}


def _messages(batch: Object, chunk: Chunk, limit: int) -> Iterator[Object]:
    """Yield the messages of magic 0 or 1, and the error where they end."""
    found, error = legacy_batch.decodable_messages(chunk.data, limit)
    stamped = batch["timestamp_type"] == "LogAppendTime"
    for one in found:
        message = one.message
        time = batch["max_timestamp_ms"] if stamped else message.timestamp
        obj = message_object(batch, one.offset, time, message.crc, message.key, message.value)
        yield obj | {"crc_valid": one.crc_valid}
    if error:
        yield record_error(batch, error.reason)


def _records(batch: Object, chunk: Chunk, limit: int) -> Iterator[Object]:
    """Yield the records of magic 2, which have no CRC of their own, and the error."""
    data, codec = chunk.data, int(chunk.table.codec[0])
    body, error = compression.decompress_front(codec, data[HEADER_SIZE:], limit)
    head = bytearray(data[:HEADER_SIZE])
    head[_CODEC_AT] &= ~CODEC_MASK
    plain = one_batch(memoryview(bytes(head) + body), batch["position"])
    for obj in read_records(batch, plain, 0, limit):
        if obj["type"] == "record":
            yield obj | {"crc_valid": None}
        elif error is None:
            yield obj
    if error:
        yield record_error(batch, error.reason)


def _starred(record: Object) -> Object:
    """Return a record with as many stars as its keys, values and headers have bytes."""
    headers = [(_stars(key), _stars(value)) for key, value in record["headers"]]
    pair = {name: _stars(record[name]) for name in ("key", "value")}
    return record | pair | {"headers": headers}


def _stars(data: bytes | None) -> bytes | None:
    return None if data is None else b"*" * len(data)
