"""The batches and records of a ``.log`` or a KRaft snapshot as plain dicts, one by one.

Bytes that are not a sound batch are an ``error`` in their place, and the dump goes on behind them.
"""

from collections.abc import Iterator

import numpy as np

from logtool.disk.files import LogFile
from logtool.dump.blocks import Block, Origin, cut
from logtool.dump.records import Object, error_object, read_records, record_object
from logtool.dump.selecting import ANY_CONTENT, RecordContent, select
from logtool.dump.values import EVERYTHING, Range, or_null
from logtool.formats import compression, control_record, legacy_batch, record, record_batch
from logtool.formats.record_batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchTable,
    Column,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.record_table import RecordTable
from logtool.log.selection import begins_by
from logtool.times import rfc3339


@dataclass(frozen=True, slots=True)
class Filter:
    """Choice of batches and records."""

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    """Milliseconds."""
    producer_id: int | None = None
    records: bool = False
    """True if each batch is followed by its records."""
    content: RecordContent = ANY_CONTENT
    """Required content of records; anything but `ANY_CONTENT` needs `records`."""
    max_batch_memory: int = compression.DEFAULT_LIMIT
    """Bytes that the records of one batch may decompress to."""
    decode: bool = False
    """True if records of brokers' own topics get their decoded fields, in ``decoded``."""
    secrets: bool = False
    """True if decoded fields and values may contain passwords and keys."""
    bad_records: bool = False
    """True if a batch with a wrong CRC is followed by its records, as `BAD_RECORD`."""

    @property
    def every_record(self) -> bool:
        """Return whether a batch is printed whole or not at all."""
        anything = self.offsets == EVERYTHING == self.timestamps and self.content == ANY_CONTENT
        return not self.records or anything


def dump_chunk(
    origin: Origin, file: LogFile, chunk: Chunk, chosen: Filter, *, in_blocks: bool = False
) -> Iterator[Object | Block]:
    """Yield the content of one chunk of `file`, with `in_blocks` ordinary batches as blocks."""
    if chunk.damage:
        damage = chunk.damage
        reason, message = str(damage.reason), damage.message
        yield error_object(origin.path, reason, message, damage.position, damage.length)
        yield from _unsound_batch(origin, file, damage)
    rows = np.flatnonzero(_wanted(chunk.table, chosen))
    if chosen.every_record and not in_blocks:
        yield from _objects(origin, file, chunk, rows, chosen)
        return
    limit = chosen.max_batch_memory
    for some, block in cut(origin, chunk, rows, records=chosen.records, limit=limit):
        if block is None:
            yield from _objects(origin, file, chunk, some, chosen)
            continue
        # Also for objects: most records do not match, and a block is filtered faster.
        part = block if chosen.every_record else select(block, _rows(block, chosen))
        if part and in_blocks:
            yield part
        elif part:
            yield from block_objects(part)


def _rows(block: Block, chosen: Filter) -> Column:
    """Return the records of a block that match."""
    records = block.records
    assert records
    mask = np.ones(len(records.offset), np.bool_)
    for numbers, wanted in (
        (records.offset, chosen.offsets),
        (records.timestamp, chosen.timestamps),
    ):
        if wanted.first is not None:
            mask &= numbers >= wanted.first
        if wanted.last is not None:
            mask &= numbers <= wanted.last
    if chosen.timestamps != EVERYTHING:
        mask &= records.timestamp != NO_TIMESTAMP
    return chosen.content.rows(records, np.flatnonzero(mask))


def block_objects(block: Block) -> Iterator[Object]:
    """Yield each batch of a block with its records."""
    records = block.records
    assert records
    ends = np.cumsum(records.counts).tolist()
    firsts = [0, *ends[:-1]]
    for batch, first, end in zip(
        batch_objects(block.origin, block.batches), firsts, ends, strict=True
    ):
        yield batch
        for row in range(first, end):
            yield _record_of(batch, records, row)


def _record_of(batch: Object, records: RecordTable, row: int) -> Object:
    spans = records.spans
    at, count = int(spans.header_position[row]), int(spans.header_count[row])
    return record_object(
        batch,
        int(spans.offset_delta[row]),
        int(records.timestamp[row]),
        records.key(row),
        records.value(row),
        record.parse_headers(records.data, at, count),
    )


def _objects(
    origin: Origin, file: LogFile, chunk: Chunk, rows: Column, chosen: Filter
) -> Iterator[Object]:
    for row, obj in zip(rows.tolist(), batch_objects(origin, chunk.table[rows]), strict=True):
        if not chosen.records:
            yield obj
        else:
            limit = chosen.max_batch_memory
            yield from _with_records(obj, read_records(obj, chunk, row, limit, file), chosen)


def _wanted(table: BatchTable, chosen: Filter) -> Column:
    """Return a mask of the batches that may match."""
    mask = np.ones(len(table), np.bool_)
    offsets, times = chosen.offsets, chosen.timestamps
    if offsets.first is not None:
        mask &= table.last_offset >= offsets.first
    if offsets.last is not None:
        mask &= begins_by(table, offsets.last, records=chosen.records)
    if times.first is not None:
        mask &= table.max_timestamp >= times.first
    if times.last is not None and not chosen.records:
        mask &= (table.base_timestamp <= times.last) | table.has_delete_horizon
    if chosen.producer_id is not None:
        mask &= table.producer_id == chosen.producer_id
    return mask


def batch_objects(origin: Origin, table: BatchTable) -> Iterator[Object]:
    """Yield each batch of a table."""
    home = {
        "path": str(origin.path),
        "topic": origin.topic,
        "partition": origin.partition,
        "segment": origin.segment,
    }
    names = (
        "position",
        "size",
        "base_offset",
        "last_offset",
        "leader_epoch",
        "magic",
        "crc",
        "attributes",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "last_sequence",
        "record_count",
        "control_type",
        "coordinator_epoch",
    )
    columns = [getattr(table, column).tolist() for column in names]
    for values in zip(*columns, strict=True):
        yield _batch(home, dict(zip(names, values, strict=True)))


def _batch(home: Object, raw: dict[str, int]) -> Object:
    attributes, magic, kind = raw["attributes"], raw["magic"], raw["control_type"]
    modern = magic >= MAGIC
    horizon = raw["base_timestamp"] if modern and attributes & DELETE_HORIZON else None
    base_ms = None if horizon is not None else or_null(raw["base_timestamp"])
    max_ms = or_null(raw["max_timestamp"])
    return {
        "type": "batch",
        **home,
        "position": raw["position"],
        "size": raw["size"],
        "magic": magic,
        "base_offset": raw["base_offset"],
        "last_offset": raw["last_offset"],
        "record_count": raw["record_count"] if modern else None,
        "codec": compression.name(attributes & CODEC_MASK),
        "timestamp_type": _timestamp_type(magic, attributes),
        "base_timestamp_ms": base_ms,
        "base_timestamp": rfc3339(base_ms),
        "max_timestamp_ms": max_ms,
        "max_timestamp": rfc3339(max_ms),
        "delete_horizon_ms": horizon,
        "delete_horizon": rfc3339(horizon),
        "leader_epoch": or_null(raw["leader_epoch"]),
        "producer_id": or_null(raw["producer_id"]),
        "producer_epoch": or_null(raw["producer_epoch"]),
        "base_sequence": or_null(raw["base_sequence"]),
        "last_sequence": or_null(raw["last_sequence"]),
        "transactional": modern and bool(attributes & TRANSACTIONAL),
        "control": modern and bool(attributes & CONTROL),
        "control_type": None if kind == -1 else control_record.name(kind),
        "coordinator_epoch": or_null(raw["coordinator_epoch"]),
        "attributes": attributes,
        "crc": raw["crc"],
        "crc_valid": True,
    }


def _timestamp_type(magic: int, attributes: int) -> str | None:
    if magic == 0:
        return None
    return "LogAppendTime" if attributes & TIMESTAMP_TYPE else "CreateTime"


def _with_records(batch: Object, records: Iterator[Object], chosen: Filter) -> Iterator[Object]:
    """Yield the batch and its matching records; a batch without any is left out."""
    if chosen.every_record:
        yield batch
    pending: Object | None = None if chosen.every_record else batch
    for obj in records:
        if obj["type"] == "record" and not is_wanted(obj, chosen):
            continue
        if pending:
            yield pending
            pending = None
        yield obj


def is_wanted(obj: Object, chosen: Filter) -> bool:
    """Return whether a record matches; one without an offset has none in a range."""
    offset, time = obj["offset"], obj["timestamp_ms"]
    if chosen.offsets != EVERYTHING and (
        offset is None or not chosen.offsets.overlaps(offset, offset)
    ):
        return False
    if not chosen.content.holds(obj):
        return False
    if chosen.timestamps == EVERYTHING:
        return True
    return time is not None and chosen.timestamps.overlaps(time, time)


def _unsound_batch(origin: Origin, file: LogFile, damage: Damage) -> Iterator[Object]:
    """Yield the header of a batch with a wrong CRC, if its size field frames it."""
    if not damage.framed or damage.reason is not DamageReason.CRC:
        return
    head = memoryview(bytearray(HEADER_SIZE))
    read = file.read_into(head, damage.position)
    if read < HEADER_SIZE and head[16] >= MAGIC:
        return
    table = record_batch.parse(head, [0], base=damage.position)
    if head[16] < MAGIC:
        legacy_batch.fill(table, head, np.zeros(1, np.int64))
    for obj in batch_objects(origin, table):
        yield obj | {"crc_valid": False}
