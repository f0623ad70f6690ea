"""Transactions of consumer groups in Redpanda, in the logs of ``__consumer_offsets``.

Offsets that are committed in a transaction are in a batch of type 14 with one record. They count
when a batch of type 15 of the same producer follows; a batch of type 16 drops the offsets. Redpanda
writes no control records of Kafka there. Integers are little-endian. The value of a record of type
14:

=====================  ======  ====================================================================
version                int8    0
group                  string  an int32 with the size, and the bytes
producer_id            int64
producer_epoch         int16
sequence               int64   of the transaction
n                      int32   offsets; of each:
topic                  string
partition              int32
offset                 int64
leader_epoch           int32
has_metadata           int8    1, or 0 and no metadata
metadata               string
=====================  ======  ====================================================================

Source: ``kafka/server/group_metadata.h``, ``kafka/server/group_recovery_consumer.h``,
``reflection/adl.h`` (Redpanda 2024-12-20).
"""

import struct
from collections.abc import Iterator

from logtool.errors import FormatError
from logtool.formats.redpanda._reader import INT8, INT32, Reader, TooShortError
from logtool.lazy_dataclass import dataclass

VERSION = 0
_PRODUCER = struct.Struct("<qhq")
_OFFSET = struct.Struct("<iqi")
_SMALLEST = INT32.size + _OFFSET.size + INT8.size
"""Bytes of an offset with a topic of no letter and no metadata."""


@dataclass(frozen=True, slots=True)
class TransactionOffset:
    """One offset that a transaction commits."""

    topic: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: bytes
    """Metadata of the commit; empty if it has none."""


@dataclass(frozen=True, slots=True)
class TransactionOffsets:
    """The offsets of one batch of type 14."""

    group: bytes
    producer_id: int
    producer_epoch: int
    sequence: int
    offsets: tuple[TransactionOffset, ...]


def parse(value: bytes) -> TransactionOffsets:
    """Read the value of the record of a batch of type 14; FormatError where it is not whole."""
    reader = Reader(value)
    try:
        version = reader.number(INT8)
        if version != VERSION:
            raise FormatError(f"offsets of a transaction have the unknown version {version}")
        group = _string(reader)
        producer_id, epoch, sequence = reader.numbers(_PRODUCER)
        count = reader.number(INT32)
        if not 0 <= count <= reader.left // _SMALLEST:
            raise TooShortError
        offsets = tuple(_offsets(reader, count))
    except TooShortError:
        raise FormatError("the offsets of a transaction are incomplete") from None
    return TransactionOffsets(group, producer_id, epoch, sequence, offsets)


def _offsets(reader: Reader, count: int) -> Iterator[TransactionOffset]:
    for _ in range(count):
        topic = _string(reader)
        partition, offset, leader_epoch = reader.numbers(_OFFSET)
        metadata = _string(reader) if reader.number(INT8) else b""
        yield TransactionOffset(topic, partition, offset, leader_epoch, metadata)


def _string(reader: Reader) -> bytes:
    return reader.take(reader.number(INT32))
