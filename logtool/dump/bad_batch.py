"""The records of one batch that is not sound, as far as they decode: any of them may be wrong."""

from collections.abc import Iterator

from logtool.dump.blocks import Origin
from logtool.dump.log import batch_objects
from logtool.dump.records import Object, error_object, read_records
from logtool.errors import FormatError
from logtool.log.records import one_batch

BAD_RECORD = "bad-record"
"""Type of such a record in a dump, so that no reader of records takes it for a sound one."""
REST = "bad-records"
"""Reason of the ``error`` for the records of such a batch that do not decode."""


def objects(
    origin: Origin, entry: memoryview, position: int, limit: int, *, hides: bool
) -> Iterator[Object]:
    """Yield a batch that takes all of `entry`, and the records that decode.

    With `hides` their bytes are stars. The batch may decompress to at most `limit` bytes.
    """
    chunk = one_batch(entry, position)
    (batch,) = batch_objects(origin, chunk.table)
    yield batch | {"crc_valid": False}
    try:
        for obj in read_records(batch, chunk, 0, limit):
            yield _starred(obj) if hides and obj["type"] == "record" else obj
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


def _starred(record: Object) -> Object:
    """Return a record with as many stars as its keys, values and headers have bytes."""
    headers = [(_stars(key), _stars(value)) for key, value in record["headers"]]
    pair = {name: _stars(record[name]) for name in ("key", "value")}
    return record | pair | {"headers": headers}


def _stars(data: bytes | None) -> bytes | None:
    return None if data is None else b"*" * len(data)
