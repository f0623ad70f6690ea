"""The records of one batch as plain dicts, one by one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from logtool.dump.values import or_null
from logtool.errors import FormatError
from logtool.formats import record
from logtool.formats.record_batch import MAGIC, SEQUENCES, Column
from logtool.log import control as control_records
from logtool.log.chunk import Chunk, Source
from logtool.log.record_table import RecordTable
from logtool.log.records import batch_records
from logtool.schemas.printed import ERROR
from logtool.times import rfc3339

Object = dict[str, Any]
LIMIT = "limit"
"""Reason of the ``error`` for a batch whose records were not read: it may be sound."""


def error_object(
    path: Path, reason: str, message: str, position: int | None = None, length: int | None = None
) -> Object:
    """Return an ``error``: bytes that cannot be shown, with their place."""
    return ERROR.make(
        path=str(path), position=position, length=length, reason=reason, message=message
    )


def read_records(
    batch: Object, chunk: Chunk, row: int, limit: int, source: Source | None = None
) -> Iterator[Object]:
    """Yield the records of a batch, which is row `row` of a chunk.

    It may decompress to at most `limit` bytes: a larger one gives an ``error`` with the reason
    ``limit``. A batch that the chunk does not hold is read from `source`.
    """
    if batch["magic"] >= MAGIC and chunk.table.record_count[row] < 0:
        # The batch itself shows its count; a count below 0 needs no error of its own.
        table = chunk.table[row : row + 1]
        none = np.zeros(1, np.int64)
        chunk, row = chunk.with_table(replace(table, record_count=none)), 0
    for part in batch_records(chunk, row, limit=limit, source=source):
        if isinstance(part, RecordTable):
            yield from _objects(batch, part)
        elif part.in_memory:
            yield record_error(batch, part.reason, LIMIT if part.beyond_limit else "records")
        else:
            text = (
                f"batch of more than the limit of {limit:,} bytes: logtool did not read its records"
            )
            yield record_error(batch, text, LIMIT)


def _objects(batch: Object, records: RecordTable) -> Iterator[Object]:
    """Yield the records of a table, which are all of one batch."""
    if records.crc is not None:
        yield from _legacy_objects(batch, records, records.crc)
        return
    data, spans = records.data, records.spans
    columns = (
        spans.offset_delta, records.timestamp, spans.key_position, spans.key_length,
        spans.value_position, spans.value_length, spans.header_position, spans.header_count,
    )  # fmt: skip
    for delta, time, key, key_size, value, value_size, headers, header_count in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        yield record_object(
            batch,
            delta,
            time,
            None if key_size < 0 else bytes(data[key : key + key_size]),
            None if value_size < 0 else bytes(data[value : value + value_size]),
            record.parse_headers(data, headers, header_count),
        )


def record_object(
    batch: Object,
    delta: int,
    time: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[record.Header],
) -> Object:
    """Return one record of a magic 2 batch; `time` in ms."""
    if batch["timestamp_type"] == "LogAppendTime":
        time_ms: int | None = batch["max_timestamp_ms"]
    else:
        time_ms = or_null(time)
    first = batch["base_sequence"]
    control, problem = _control(key, value) if batch["control"] else (None, None)
    kind = None if control is None else control["name"]
    return {
        **_record_head(batch, batch["base_offset"] + delta, time_ms),
        "sequence": None if first is None or first < 0 else (first + delta) % SEQUENCES,
        **_flags_and_control(batch, None, kind, control, problem),
        "key": key,
        "value": value,
        "headers": headers,
    }


def _control(key: bytes | None, value: bytes | None) -> tuple[Object | None, str | None]:
    try:
        return control_records.decode(key, value), None
    except FormatError as error:
        return None, error.reason


def _record_head(batch: Object, offset: int | None, time_ms: int | None) -> Object:
    return {
        "type": "record",
        "path": batch["path"],
        "topic": batch["topic"],
        "partition": batch["partition"],
        "segment": batch["segment"],
        "batch_position": batch["position"],
        "offset": offset,
        "timestamp_type": batch["timestamp_type"],
        "timestamp_ms": time_ms,
        "timestamp": rfc3339(time_ms),
        "leader_epoch": batch["leader_epoch"],
        "producer_id": batch["producer_id"],
        "producer_epoch": batch["producer_epoch"],
    }


def _flags_and_control(
    batch: Object,
    crc: int | None,
    kind: str | None = None,
    control: Object | None = None,
    problem: str | None = None,
) -> Object:
    return {
        "transactional": batch["transactional"],
        "control": batch["control"],
        "control_type": kind,
        "control_record": control,
        "control_error": problem,
        "crc": crc,
    }


def _legacy_objects(batch: Object, records: RecordTable, crc: Column) -> Iterator[Object]:
    """Yield messages of magic 0 and 1."""
    columns = records.offset.tolist(), records.timestamp.tolist(), crc.tolist()
    for row, (offset, time, stored_crc) in enumerate(zip(*columns, strict=True)):
        yield message_object(batch, offset, time, stored_crc, records.key(row), records.value(row))


def message_object(
    batch: Object, offset: int | None, time: int, crc: int, key: bytes | None, value: bytes | None
) -> Object:
    """Return one message of magic 0 or 1; `time` in ms, -1 for none."""
    return {
        **_record_head(batch, offset, or_null(time)),
        "sequence": None,
        **_flags_and_control(batch, crc),
        "key": key,
        "value": value,
        "headers": [],
    }


def record_error(batch: Object, message: str, reason: str = "records") -> Object:
    """Return the ``error`` for records of a batch that do not decode."""
    return error_object(Path(batch["path"]), reason, message, batch["position"], batch["size"])
