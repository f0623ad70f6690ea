"""The records of one batch as plain dicts, one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logtool.dump import control as dump_control
from logtool.dump.values import or_null
from logtool.errors import FormatError, LimitError
from logtool.formats import compression, legacy_batch, record, record_batch
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC, SEQUENCES
from logtool.times import rfc3339

Object = dict[str, Any]
LIMIT = "limit"
"""Reason of the ``error`` for a batch of which the records were not read: it may well be sound."""


def error_object(
    path: Path, reason: str, message: str, position: int | None = None, length: int | None = None
) -> Object:
    """Return an ``error``: bytes that cannot be shown, with their place."""
    return {
        "type": "error",
        "path": str(path),
        "position": position,
        "length": length,
        "reason": reason,
        "message": message,
    }


def read_records(batch: Object, data: memoryview, limit: int) -> Iterator[Object]:
    """Yield the records of one batch, of which `data` are the bytes.

    `limit` is how many bytes it may decompress to. Of one that is larger there is an ``error``
    whose reason is ``limit``.
    """
    if len(data) != batch["size"]:
        text = f"batch of more than the limit of {limit:,} bytes: its records are not read"
        yield _record_error(batch, text, LIMIT)
        return
    try:
        if batch["magic"] < MAGIC:
            yield from _legacy_records(batch, data, limit)
            return
        codec = batch["attributes"] & CODEC_MASK
        payload = compression.decompress(codec, data[HEADER_SIZE:], limit)
    except FormatError as error:
        over = isinstance(error, LimitError)
        yield _record_error(batch, error.reason, LIMIT if over else "records")
        return
    raw_base = int(record_batch.parse(data, [0]).base_timestamp[0])
    for table, damage in record.parse_slices(payload, max(batch["record_count"], 0)):
        yield from _objects(batch, raw_base, payload, table)
        if damage:
            yield _record_error(batch, damage.reason)


def _objects(
    batch: Object, raw_base: int, payload: memoryview, table: record.RecordSpans
) -> Iterator[Object]:
    """Yield the records of a table; `raw_base` is the header's base timestamp, ms."""
    rows = zip(
        *(
            getattr(table, name).tolist()
            for name in (
                "timestamp_delta",
                "offset_delta",
                "key_position",
                "key_length",
                "value_position",
                "value_length",
                "header_position",
                "header_count",
            )
        ),
        strict=True,
    )
    for time, delta, key, key_size, value, value_size, headers, header_count in rows:
        yield record_object(
            batch,
            delta,
            raw_base + time,
            None if key_size < 0 else bytes(payload[key : key + key_size]),
            None if value_size < 0 else bytes(payload[value : value + value_size]),
            record.parse_headers(payload, headers, header_count),
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
        "sequence": None if first is None else (first + delta) % SEQUENCES,
        **_told(batch, None, kind, control, problem),
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


def _told(
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


def _legacy_records(batch: Object, data: memoryview, limit: int) -> Iterator[Object]:
    for message in legacy_batch.parse_messages(data, limit):
        yield {
            **_record_head(batch, message.offset, or_null(message.timestamp)),
            "sequence": None,
            **_told(batch, message.crc),
            "key": message.key,
            "value": message.value,
            "headers": [],
        }


def _record_error(batch: Object, message: str, reason: str = "records") -> Object:
    return error_object(Path(batch["path"]), reason, message, batch["position"], batch["size"])
