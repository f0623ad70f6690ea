"""Redpanda's record batch: Kafka's of magic 2, with a little-endian header of its own.

Layout of the header, 61 bytes, little-endian::

     0  header_crc         uint32   CRC-32C of the 57 bytes behind it
     4  size_bytes         int32    of the whole batch
     8  base_offset        int64    a Raft offset
    16  type               int8     see `BatchType`
    17  crc                uint32   as Kafka's: of the fields from attributes on, big-endian,
                                    and of the body
    21  attributes         int16    as Kafka's
    23  last_offset_delta  int32
    27  base_timestamp     int64    milliseconds
    35  max_timestamp      int64    milliseconds
    43  producer_id        int64    -1 none
    51  producer_epoch     int16    -1 none
    53  base_sequence      int32    -1 none
    57  record_count       int32    below last_offset_delta + 1 after compaction
    61  records in Kafka's encoding, or one compressed stream of them

The term stands in the name of the segment only. Kafka's header has 61 bytes too, and its CRC
covers the same fields, so that a batch of one is a batch of the other at the same place and with
the same CRC.

A segment (``<base offset>-<term>-v1.log``) is batches one behind the other, and zeros up to the end
of a file that was open: room is reserved in steps of 32 MiB. A broker stops at the end of the file,
at a header of zeros, at a wrong CRC of the header, at a body that the file does not hold, and at a
wrong CRC of the batch. A header CRC of 0 is as good as another: only a header of nothing but zeros
is the end. Source: ``storage/parser.cc``, ``model/record.h``, ``model/record_utils.cc``,
``model/record_batch_types.h``, ``kafka/protocol/kafka_batch_adapter.cc`` (Redpanda 1c6cff34ea,
2024-12-20).
"""

import struct
from dataclasses import replace
from enum import IntEnum

import numpy as np

from logtool.formats import record_batch as kafka_batch
from logtool.formats.crc import crc32c
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass

HEADER = struct.Struct("<IiqbIhiqqqhii")
HEADER_SIZE = HEADER.size
HEADERS = np.dtype(
    [
        ("header_crc", "<u4"),
        ("size", "<i4"),
        ("base_offset", "<i8"),
        ("type", "i1"),
        ("crc", "<u4"),
        ("attributes", "<i2"),
        ("last_offset_delta", "<i4"),
        ("base_timestamp", "<i8"),
        ("max_timestamp", "<i8"),
        ("producer_id", "<i8"),
        ("producer_epoch", "<i2"),
        ("base_sequence", "<i4"),
        ("record_count", "<i4"),
    ]
)
"""The fields of `HEADER`, by name."""
HEADER_CRC_SIZE = 4
"""Bytes in front of those that ``header_crc`` covers."""

_OF_TABLE = frozenset(
    {
        "size", "crc", "attributes", "base_timestamp", "max_timestamp", "producer_id",
        "producer_epoch", "base_sequence", "record_count",
    }
)  # fmt: skip
"""Fields that a `BatchTable` has under the same name."""
_COVERED = struct.Struct(">hiqqqhii")
"""The fields that Kafka's CRC covers, as Kafka writes them."""
_KAFKA = struct.Struct(">qiibI")
_EPOCHS = range(2**31)


class BatchType(IntEnum):
    """Type of a batch. A number that is not here is of a later release: skip such a batch."""

    RAFT_DATA = 1
    """Data of clients, and Kafka's control batches."""
    RAFT_CONFIGURATION = 2
    CONTROLLER = 3
    KVSTORE = 4
    CHECKPOINT = 5
    TOPIC_MANAGEMENT_CMD = 6
    GHOST_BATCH = 7
    """Stands for a gap; never on disk."""
    ID_ALLOCATOR = 8
    TX_PREPARE = 9
    TX_FENCE = 10
    TM_UPDATE = 11
    USER_MANAGEMENT_CMD = 12
    ACL_MANAGEMENT_CMD = 13
    GROUP_PREPARE_TX = 14
    GROUP_COMMIT_TX = 15
    GROUP_ABORT_TX = 16
    NODE_MANAGEMENT_CMD = 17
    DATA_POLICY_MANAGEMENT_CMD = 18
    ARCHIVAL_METADATA = 19
    CLUSTER_CONFIG_CMD = 20
    FEATURE_UPDATE = 21
    CLUSTER_BOOTSTRAP_CMD = 22
    VERSION_FENCE = 23
    TX_TM_HOSTED_TRANSACTIONS = 24
    PREFIX_TRUNCATE = 25
    PLUGIN_UPDATE = 26
    TX_REGISTRY = 27
    CLUSTER_RECOVERY_CMD = 28
    COMPACTION_PLACEHOLDER = 29
    """No record: holds the end of a segment whose last batch compaction emptied."""
    ROLE_MANAGEMENT_CMD = 30
    CLIENT_QUOTA = 31
    DATA_MIGRATION_CMD = 32
    GROUP_FENCE_TX = 33
    PARTITION_PROPERTIES_UPDATE = 34
    DATALAKE_COORDINATOR = 35
    DL_PLACEHOLDER = 36
    DL_STM_COMMAND = 37
    DATALAKE_TRANSLATION_STATE = 38


RAFT_DATA = int(BatchType.RAFT_DATA)

_NAMES: dict[int, str] = {type.value: type.name.lower() for type in BatchType}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedpandaHeader:
    """One header, as stored; `parse` takes any 61 bytes."""

    header_crc: int
    size: int
    """Bytes of the whole batch."""
    base_offset: int
    """A Raft offset."""
    type: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def last_offset(self) -> int:
        """Return the Raft offset that the batch reaches to; `record_count` says nothing of it."""
        return self.base_offset + self.last_offset_delta


@dataclass(frozen=True, slots=True)
class RedpandaBatch:
    """A header and what stands behind it."""

    header: RedpandaHeader
    body: bytes
    """Compressed if it is."""


def parse(data: bytes | memoryview, position: int = 0) -> RedpandaHeader:
    """Read the header at `position`, behind which there must be 61 bytes."""
    fields = HEADER.unpack_from(data, position)
    return RedpandaHeader(
        header_crc=fields[0],
        size=fields[1],
        base_offset=fields[2],
        type=fields[3],
        crc=fields[4],
        attributes=fields[5],
        last_offset_delta=fields[6],
        base_timestamp=fields[7],
        max_timestamp=fields[8],
        producer_id=fields[9],
        producer_epoch=fields[10],
        base_sequence=fields[11],
        record_count=fields[12],
    )


def encode(header: RedpandaHeader) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return HEADER.pack(
        header.header_crc,
        header.size,
        header.base_offset,
        header.type,
        header.crc,
        *_covered(header),
    )


def header_crc(header: RedpandaHeader) -> int:
    """Return the CRC that the header should have; 0 is as good as any other."""
    return crc32c(encode(header)[HEADER_CRC_SIZE:])


def body_crc(header: RedpandaHeader, body: bytes | memoryview) -> int:
    """Return the CRC that `header` with `body` should have; Kafka gives such a batch the same."""
    return crc32c(body, crc32c(_COVERED.pack(*_covered(header))))


def build(
    body: bytes,
    *,
    base_offset: int,
    type: int = BatchType.RAFT_DATA,
    last_offset_delta: int = 0,
    record_count: int = 1,
    attributes: int = 0,
    base_timestamp: int = 0,
    max_timestamp: int = 0,
    producer_id: int = kafka_batch.NO_PRODUCER_ID,
    producer_epoch: int = kafka_batch.NO_EPOCH,
    base_sequence: int = kafka_batch.NO_SEQUENCE,
) -> RedpandaBatch:
    """Return a batch with both CRCs; `body` is what stands behind the header, as stored."""
    header = RedpandaHeader(
        header_crc=0,
        size=HEADER_SIZE + len(body),
        base_offset=base_offset,
        type=type,
        crc=0,
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=record_count,
    )
    return RedpandaBatch(_sealed(replace(header, crc=body_crc(header, body))), body)


def to_kafka(header: RedpandaHeader, *, term: int, base_offset: int | None = None) -> bytes:
    """Return the 61 bytes that Kafka has for `header`; the body stays as it is.

    `term` becomes the leader epoch, -1 where it does not fit. `base_offset` is the Kafka offset
    where it is not the Raft offset. Neither is covered by the CRC, which stays the same. The type
    has no place there, and Kafka takes each batch for data: leave out what clients must not see.
    """
    offset = header.base_offset if base_offset is None else base_offset
    epoch = term if term in _EPOCHS else kafka_batch.NO_EPOCH
    size = header.size - kafka_batch.LOG_OVERHEAD
    front = _KAFKA.pack(offset, size, epoch, kafka_batch.MAGIC, header.crc)
    return front + _COVERED.pack(*_covered(header))


def put_headers(data: bytearray, positions: Column, table: BatchTable, base_offset: Column) -> None:
    """Write headers of Redpanda over those of Kafka's batches of magic 2 in `data`.

    The batches of `table` begin at `positions` (int64) in `data`, and get `base_offset` (int64) and
    the type `RAFT_DATA`; their fields are those of the headers that are overwritten.
    """
    headers = np.empty(len(table), HEADERS)
    for name in _OF_TABLE:
        headers[name] = getattr(table, name)
    headers["base_offset"] = base_offset
    headers["type"] = RAFT_DATA
    headers["last_offset_delta"] = table.last_offset - table.base_offset
    raw = memoryview(headers.tobytes())
    headers["header_crc"] = [
        crc32c(raw[at + HEADER_CRC_SIZE : at + HEADER_SIZE])
        for at in range(0, len(raw), HEADER_SIZE)
    ]
    # Every byte begins a header here; the batches do not overlap.
    count = max(len(data) - HEADER_SIZE + 1, 0)
    everywhere = np.ndarray((count,), HEADERS, data, strides=(1,))
    everywhere[positions] = headers


def type_name(type: int) -> str:
    """Return the name of a type in lower case, or its number where it is of a later release."""
    return _NAMES.get(type, str(signed(type, 8)))


def signed(number: int, bits: int) -> int:
    """Return the value of a signed field of `bits` bits that an unsigned column or a sum holds."""
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def _sealed(header: RedpandaHeader) -> RedpandaHeader:
    return replace(header, header_crc=header_crc(header))


def _covered(header: RedpandaHeader) -> tuple[int, int, int, int, int, int, int, int]:
    return (
        header.attributes,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
