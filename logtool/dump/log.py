"""The batches and records of a ``.log`` or a KRaft snapshot as plain dicts, one by one.

What is no sound batch is an ``error`` in its place, and the dump goes on behind it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from logtool.dump import control as dump_control
from logtool.dump.values import EVERYTHING, Range, or_null, rfc3339
from logtool.errors import FormatError
from logtool.files import LogFile
from logtool.formats import compression, legacy_batch, record, record_batch
from logtool.formats.record_batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_SIZE,
    MAGIC,
    SEQUENCES,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchTable,
    Column,
)
from logtool.scan import Chunk, Damage, Reason

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which batches and records are meant."""

    offsets: Range = EVERYTHING
    timestamps: Range = EVERYTHING
    """Milliseconds."""
    producer_id: int | None = None
    records: bool = False
    """Whether each batch is followed by its records."""


def dump_chunk(path: Path, file: LogFile, chunk: Chunk, chosen: Filter) -> Iterator[Object]:
    """Yield what one chunk of the scan of `file` holds."""
    if chunk.damage:
        damage = chunk.damage
        reason, message = str(damage.reason), damage.message
        yield error_object(path, reason, message, damage.position, damage.length)
        yield from _unsound_batch(path, file, damage)
    rows = np.flatnonzero(_wanted(chunk.table, chosen))
    for row, obj in zip(rows.tolist(), _batches(path, chunk.table[rows]), strict=True):
        if not chosen.records:
            yield obj
        else:
            yield from _with_records(obj, _bytes_of(file, chunk, row), chosen)


def error_object(
    path: Path, reason: str, message: str, position: int | None = None, length: int | None = None
) -> Object:
    """Return an ``error``: bytes that cannot be shown, with their place."""
    return {
        "type": "error", "path": str(path), "position": position, "length": length,
        "reason": reason, "message": message,
    }  # fmt: skip


def _wanted(table: BatchTable, chosen: Filter) -> Column:
    """Return a mask of the batches that may hold what is asked for."""
    mask = np.ones(len(table), np.bool_)
    offsets, times = chosen.offsets, chosen.timestamps
    if offsets.first is not None:
        mask &= table.last_offset >= offsets.first
    if offsets.last is not None:
        # The base of a compressed wrapper of magic 0 or 1 is only known when it is opened.
        mask &= (table.base_offset <= offsets.last) | (table.magic < MAGIC)
    if times.first is not None:
        mask &= table.max_timestamp >= times.first
    if times.last is not None and not chosen.records:
        mask &= (table.base_timestamp <= times.last) | table.has_delete_horizon
    if chosen.producer_id is not None:
        mask &= table.producer_id == chosen.producer_id
    return mask


def _batches(path: Path, table: BatchTable) -> Iterator[Object]:
    name = str(path)
    names = (
        "position", "size", "base_offset", "last_offset", "leader_epoch", "magic", "crc",
        "attributes", "base_timestamp", "max_timestamp", "producer_id", "producer_epoch",
        "base_sequence", "last_sequence", "record_count",
    )  # fmt: skip
    columns = [getattr(table, column).tolist() for column in names]
    for values in zip(*columns, strict=True):
        yield _batch(name, dict(zip(names, values, strict=True)))


def _batch(name: str, raw: dict[str, int]) -> Object:
    attributes, magic = raw["attributes"], raw["magic"]
    modern = magic >= MAGIC
    horizon = raw["base_timestamp"] if modern and attributes & DELETE_HORIZON else None
    base_ms = None if horizon is not None else or_null(raw["base_timestamp"])
    max_ms = or_null(raw["max_timestamp"])
    return {
        "type": "batch",
        "path": name,
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
        "attributes": attributes,
        "crc": raw["crc"],
        "crc_valid": True,
    }


def _timestamp_type(magic: int, attributes: int) -> str | None:
    if magic == 0:
        return None
    return "LogAppendTime" if attributes & TIMESTAMP_TYPE else "CreateTime"


def _bytes_of(file: LogFile, chunk: Chunk, row: int) -> memoryview:
    """Return the bytes of a batch; the scan does not hold those of a very large one."""
    size, held = int(chunk.table.size[row]), chunk.batch(row)
    if len(held) >= size or size > compression.DEFAULT_LIMIT:
        return held
    whole = memoryview(bytearray(size))
    return whole[: file.read_into(whole, int(chunk.table.position[row]))]


def _with_records(batch: Object, data: memoryview, chosen: Filter) -> Iterator[Object]:
    """Yield the batch and its records; the batch only if it has a record that is asked for."""
    records = _records(batch, data) if len(data) == batch["size"] else _too_large(batch)
    everything = chosen.offsets == EVERYTHING and chosen.timestamps == EVERYTHING
    if everything:
        yield batch
    pending: Object | None = None if everything else batch
    for obj in records:
        if obj["type"] == "record" and not _record_wanted(obj, chosen):
            continue
        if pending:
            yield pending
            pending = None
        yield obj


def _record_wanted(obj: Object, chosen: Filter) -> bool:
    offset, time = obj["offset"], obj["timestamp_ms"]
    if not chosen.offsets.overlaps(offset, offset):
        return False
    if chosen.timestamps == EVERYTHING:
        return True
    return time is not None and chosen.timestamps.overlaps(time, time)


def _too_large(batch: Object) -> Iterator[Object]:
    limit = compression.DEFAULT_LIMIT
    yield _record_error(batch, f"batch of more than {limit} bytes: its records are not read")


def _records(batch: Object, data: memoryview) -> Iterator[Object]:
    if batch["magic"] < MAGIC:
        yield from _legacy_records(batch, data)
        return
    try:
        payload = compression.decompress(batch["attributes"] & CODEC_MASK, data[HEADER_SIZE:])
    except FormatError as error:
        yield _record_error(batch, error.reason)
        return
    table, damage = record.parse(payload, max(batch["record_count"], 0))
    raw_base = int(record_batch.parse(data, [0]).base_timestamp[0])
    rows = zip(
        *(getattr(table, name).tolist() for name in (
            "timestamp_delta", "offset_delta", "key_position", "key_length", "value_position",
            "value_length", "header_position", "header_count",
        )), strict=True,
    )  # fmt: skip
    for time, delta, key, key_size, value, value_size, headers, header_count in rows:
        yield _record(
            batch,
            delta,
            raw_base + time,
            None if key_size < 0 else bytes(payload[key : key + key_size]),
            None if value_size < 0 else bytes(payload[value : value + value_size]),
            record.parse_headers(payload, headers, header_count),
        )
    if damage:
        yield _record_error(batch, damage.reason)


def _record(
    batch: Object, delta: int, time: int, key: bytes | None, value: bytes | None,
    headers: list[record.Header],
) -> Object:  # fmt: skip
    if batch["timestamp_type"] == "LogAppendTime":
        time_ms: int | None = batch["max_timestamp_ms"]
    else:
        time_ms = or_null(time)
    first = batch["base_sequence"]
    control, problem = _control(key, value) if batch["control"] else (None, None)
    return {
        **_record_head(batch, batch["base_offset"] + delta, time_ms),
        "sequence": None if first is None else (first + delta) % SEQUENCES,
        "crc": None,
        "control": control,
        "control_error": problem,
        "key": key,
        "value": value,
        "headers": headers,
    }


def _control(key: bytes | None, value: bytes | None) -> tuple[Object | None, str | None]:
    try:
        return dump_control.decode(key, value), None
    except FormatError as error:
        return None, error.reason


def _record_head(batch: Object, offset: int, time_ms: int | None) -> Object:
    return {
        "type": "record",
        "path": batch["path"],
        "batch_position": batch["position"],
        "offset": offset,
        "timestamp_type": batch["timestamp_type"],
        "timestamp_ms": time_ms,
        "timestamp": rfc3339(time_ms),
        "leader_epoch": batch["leader_epoch"],
        "producer_id": batch["producer_id"],
        "producer_epoch": batch["producer_epoch"],
        "transactional": batch["transactional"],
    }


def _legacy_records(batch: Object, data: memoryview) -> Iterator[Object]:
    try:
        for message in legacy_batch.parse_messages(data, compression.DEFAULT_LIMIT):
            yield {
                **_record_head(batch, message.offset, or_null(message.timestamp)),
                "sequence": None,
                "crc": message.crc,
                "control": None,
                "control_error": None,
                "key": message.key,
                "value": message.value,
                "headers": [],
            }
    except FormatError as error:
        yield _record_error(batch, error.reason)


def _record_error(batch: Object, message: str) -> Object:
    path = Path(batch["path"])
    return error_object(path, "records", message, batch["position"], batch["size"])


def _unsound_batch(path: Path, file: LogFile, damage: Damage) -> Iterator[Object]:
    """Yield what the header of a batch with a wrong CRC says, where its size can be believed."""
    if not damage.framed or damage.reason is not Reason.CRC:
        return
    head = memoryview(bytearray(HEADER_SIZE))
    read = file.read_into(head, damage.position)
    if read < HEADER_SIZE and head[16] >= MAGIC:
        return
    table = record_batch.parse(head, [0], base=damage.position)
    if head[16] < MAGIC:
        legacy_batch.fill(table, head, np.zeros(1, np.int64))
    for obj in _batches(path, table):
        yield obj | {"crc_valid": False}
