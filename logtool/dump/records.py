"""The records of one batch as plain dicts, one by one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logtool.dump import control as dump_control
from logtool.dump.values import or_null, rfc3339
from logtool.errors import FormatError
from logtool.formats import compression, legacy_batch, record, record_batch
from logtool.formats.record_batch import CODEC_MASK, HEADER_SIZE, MAGIC, SEQUENCES

Object = dict[str, Any]


def error_object(
    path: Path, reason: str, message: str, position: int | None = None, length: int | None = None
) -> Object:
    """Return an ``error``: bytes that cannot be shown, with their place."""
    return {
        "type": "error", "path": str(path), "position": position, "length": length,
        "reason": reason, "message": message,
    }  # fmt: skip


def read_records(batch: Object, data: memoryview) -> Iterator[Object]:
    """Yield the records of one batch, of which `data` are the bytes."""
    if len(data) != batch["size"]:
        limit = compression.DEFAULT_LIMIT
        yield _record_error(batch, f"batch of more than {limit} bytes: its records are not read")
        return
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
        yield record_object(
            batch,
            delta,
            raw_base + time,
            None if key_size < 0 else bytes(payload[key : key + key_size]),
            None if value_size < 0 else bytes(payload[value : value + value_size]),
            record.parse_headers(payload, headers, header_count),
        )
    if damage:
        yield _record_error(batch, damage.reason)


def record_object(
    batch: Object, delta: int, time: int, key: bytes | None, value: bytes | None,
    headers: list[record.Header],
) -> Object:  # fmt: skip
    """Return one record of a magic 2 batch; `time` in ms."""
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
