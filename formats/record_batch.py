"""Record batches of magic 2, each with one CRC, and BatchTable, which holds many batches.

Layout, big-endian; the CRC-32C covers all bytes after the crc field::

     0  base_offset        int64    first offset; compaction does not change it
     8  batch_length       int32    bytes after this field
    12  leader_epoch       int32    -1 unknown          (partitionLeaderEpoch)
    16  magic              int8     2
    17  crc                uint32
    21  attributes         int16    bits 0-2 codec, 3 LogAppendTime, 4 transactional, 5 control,
                                    6 base_timestamp is the delete horizon
    23  last_offset_delta  int32
    27  base_timestamp     int64    milliseconds
    35  max_timestamp      int64    milliseconds
    43  producer_id        int64    -1 none
    51  producer_epoch     int16    -1 none
    53  base_sequence      int32    -1 none
    57  record_count       int32    (recordsCount); below last_offset_delta + 1 after compaction
    61  records, or one compressed stream of them

Source: ``org.apache.kafka.common.record.DefaultRecordBatch`` (Kafka 3.9 and 4.x; 4.x moved it to
``common.record.internal``). Entries of magic 0 and 1 have the same first two fields, and the magic
byte at the same position; BatchTable holds them too, see `logtool.formats.legacy_batch`.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logtool.formats import compression
from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass

HEADER = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
HEADER_SIZE = HEADER.itemsize
MAGIC = 2
LOG_OVERHEAD = 12
"""Bytes before those that ``batch_length`` counts."""
MIN_ENTRY_SIZE = LOG_OVERHEAD + 14
"""Bytes of the smallest entry of any magic."""
SEQUENCES = 2**31
"""Number of sequence numbers of a producer: after the last one comes 0 again."""
MAX_SEGMENT_SIZE = 2**31 - 1
"""A broker cannot open a longer ``.log`` (``FileRecords``)."""

CODEC_MASK, TIMESTAMP_TYPE, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x07, 0x08, 0x10, 0x20, 0x40
UNUSED_ATTRIBUTES = 0xFF80
NO_TIMESTAMP = NO_PRODUCER_ID = NO_EPOCH = NO_SEQUENCE = -1
SEQUENCES = 2**31
"""Sequence numbers wrap to 0 behind 2147483647."""

_RAFT_DATA = 1
"""The type of data in Redpanda; see `logtool.formats.redpanda.record_batch`."""

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class BatchTable:
    """Batches as int64 columns of one length, in file order; the table of the whole toolkit.

    The order of the fields is that of the columns of `_kernels.walk_batches`.
    """

    position: Column
    """Byte position of the batch in its ``.log``."""
    size: Column
    """Bytes of the whole entry."""
    base_offset: Column
    """Equal to last_offset for magic 0 and 1; see `first_offset`."""
    last_offset: Column
    leader_epoch: Column
    """-1 unknown and for magic 0 and 1."""
    magic: Column
    crc: Column
    """CRC as stored."""
    attributes: Column
    base_timestamp: Column
    """Milliseconds; the delete horizon where that bit is set."""
    max_timestamp: Column
    """Milliseconds; -1 none."""
    producer_id: Column
    """-1 none."""
    producer_epoch: Column
    """-1 none."""
    base_sequence: Column
    """-1 none."""
    record_count: Column
    """Record count as stored. Magic 0 and 1 store no count: -1 until `legacy_batch.count` has
    counted the inner messages."""
    batch_type: Column
    """Type of a batch of Redpanda, see `logtool.formats.redpanda.record_batch.BatchType`; -1 of
    Kafka."""
    control_type: Column
    """Key type of the first control record, -1 for none; see `control_record`."""
    coordinator_epoch: Column
    """Coordinator epoch of an end-transaction marker, else -1."""

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, which: slice | Column) -> Self:
        """Return the rows that a slice, a mask or an index array selects."""
        return type(self)(*(getattr(self, name)[which] for name in _FIELDS))

    @property
    def end_position(self) -> Column:
        """Return int64, the byte behind each batch."""
        return self.position + self.size

    @property
    def first_offset(self) -> Column:
        """Return int64, the first offset of each batch; see `first_offsets`."""
        return first_offsets(self.base_offset, self.last_offset, self.record_count, self.magic)

    @property
    def records_of_each(self) -> Column:
        """Return int64, how many records each batch holds; see `records_of_each`."""
        return records_of_each(self.record_count, self.magic)

    @property
    def records(self) -> int:
        """Return how many records all batches hold together."""
        return int(self.records_of_each.sum())

    @property
    def codec(self) -> Column:
        """Return codec ids."""
        return self.attributes & CODEC_MASK

    @property
    def is_wrapper(self) -> Column:
        """Return a bool column: entries of magic 0 and 1 that hold compressed messages."""
        wrappers: Column = (self.magic < MAGIC) & (self.codec != 0)
        return wrappers

    @property
    def is_transactional(self) -> Column:
        """Return a bool column."""
        return self._has(TRANSACTIONAL)

    @property
    def is_control(self) -> Column:
        """Return a bool column: of Redpanda everything that is no data, which no client sees."""
        control: Column = self._has(CONTROL, MAGIC) | (self.batch_type > _RAFT_DATA)
        return control

    @property
    def is_log_append_time(self) -> Column:
        """Return a bool column."""
        return self._has(TIMESTAMP_TYPE, 1)

    @property
    def has_delete_horizon(self) -> Column:
        """Return a bool column."""
        return self._has(DELETE_HORIZON, MAGIC)

    @property
    def last_sequence(self) -> Column:
        """Return int64, wrapped as Kafka wraps; -1 where there is no sequence.

        A sum below 0 stays as it is (``DefaultRecordBatch.incrementSequence``).
        """
        last = self.base_sequence.astype(np.int64) + self.last_offset - self.base_offset
        last[last >= SEQUENCES] -= SEQUENCES
        return np.where(self.base_sequence == NO_SEQUENCE, NO_SEQUENCE, last)

    def _has(self, flag: int, since_magic: int = MAGIC) -> Column:
        """Return where `flag` is set; an older magic has other meanings for the bit."""
        flags: Column = ((self.attributes & flag) != 0) & (self.magic >= since_magic)
        return flags

    def row(self, index: int) -> dict[str, int]:
        """Return one batch as plain integers, for the few that a person looks at."""
        return {name: int(getattr(self, name)[index]) for name in _FIELDS}


_FIELDS = tuple(field.name for field in fields(BatchTable))
_EMPTY = BatchTable(*(np.empty(0, np.int64) for _ in _FIELDS))


def first_offsets(
    base_offset: Column, last_offset: Column, record_count: Column, magic: Column
) -> Column:
    """Return int64, the first offset of each batch.

    A wrapper of magic 0 or 1 only has its last offset; its record count gives the first one.
    """
    counted = (magic < MAGIC) & (record_count > 0)
    return np.where(counted, last_offset - record_count + 1, base_offset)


def records_of_each(record_count: Column, magic: Column) -> Column:
    """Return int64, the number of records in each batch; every count of records uses it.

    A negative count is taken for 0. A wrapper that could not be unpacked is one record.
    """
    unknown = (record_count < 0) & (magic < MAGIC)
    return np.where(unknown, 1, np.maximum(record_count, 0))


def empty_table() -> BatchTable:
    """Return the table of no batches."""
    return _EMPTY


def concat(tables: Sequence[BatchTable]) -> BatchTable:
    """Return the rows of all tables in order."""
    tables = [table for table in tables if len(table)]
    if len(tables) < 2:
        return tables[0] if tables else _EMPTY
    return BatchTable(*(np.concatenate([getattr(t, name) for t in tables]) for name in _FIELDS))


def parse(data: memoryview, found: list[int], *, base: int = 0) -> BatchTable:
    """Return the table of the batches that begin at the positions `found` in `data`.

    `base` is the file position of ``data[0]``. Magic 0 and 1 rows hold their wide fields in other
    places; `legacy_batch.fill` corrects them.
    """
    positions = np.array(found, np.int64)
    raw = np.frombuffer(data, np.uint8)
    if len(found) and found[-1] + HEADER_SIZE > len(raw):
        # Entries of magic 0 may be shorter than a header; pad so that the gather stays inside.
        raw = np.concatenate([raw, np.zeros(HEADER_SIZE, np.uint8)])
    # Every byte begins a header here; picking some of them copies those alone.
    everywhere: NDArray[np.void] = np.ndarray(
        (max(len(raw) - HEADER_SIZE + 1, 0),), HEADER, raw.data, strides=(1,)
    )
    return from_headers(everywhere[positions], positions + base)


def from_headers(headers: NDArray[np.void], positions: Column) -> BatchTable:
    """Return the table of `headers` (dtype `HEADER`) at file positions `positions` (int64)."""

    def column(name: str) -> Column:
        return headers[name].astype(np.int64)

    base_offset = column("base_offset")
    nothing = np.full(len(headers), -1, np.int64)
    return BatchTable(
        position=positions,
        size=column("batch_length") + LOG_OVERHEAD,
        base_offset=base_offset,
        last_offset=base_offset + column("last_offset_delta"),
        leader_epoch=column("leader_epoch"),
        magic=column("magic"),
        crc=column("crc"),
        attributes=column("attributes"),
        base_timestamp=column("base_timestamp"),
        max_timestamp=column("max_timestamp"),
        producer_id=column("producer_id"),
        producer_epoch=column("producer_epoch"),
        base_sequence=column("base_sequence"),
        record_count=column("record_count"),
        batch_type=nothing,
        control_type=nothing.copy(),
        coordinator_epoch=nothing.copy(),
    )


def put_base_offsets(data: bytearray, positions: Column, base_offset: Column) -> None:
    """Write `base_offset` (int64) into the batches that begin at `positions` (int64) in `data`.

    No CRC of a batch of magic 2 covers this field.
    """
    # Every byte begins a number here; the batches do not overlap.
    count = max(len(data) - HEADER_SIZE + 1, 0)
    everywhere: Column = np.ndarray((count,), ">i8", data, strides=(1,))
    everywhere[positions] = base_offset


def encode(
    payload: bytes,
    *,
    base_offset: int,
    last_offset_delta: int,
    record_count: int,
    leader_epoch: int = NO_EPOCH,
    attributes: int = 0,
    base_timestamp: int = NO_TIMESTAMP,
    max_timestamp: int = NO_TIMESTAMP,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """Return one batch with a valid CRC; `payload` is what stands behind the header, encoded.

    A codec in `attributes` is applied here: give the payload uncompressed.
    """
    body = compression.compress(attributes & CODEC_MASK, payload)
    header = np.zeros(1, HEADER)
    header[0] = (
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(body),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    covered = HEADER.fields["attributes"][1] if HEADER.fields else 0
    header["crc"] = crc32c(header.tobytes()[covered:] + body)
    return header.tobytes() + body
