"""A parse of segments that shares no code with logtool: the truth of the campaign on Spark.

It reads magic 2, uncompressed or gzip, as Kafka's documentation of the message format has it. A
batch whose CRC is wrong is left out, and a batch that the file cuts off ends the log. The tables
about whole partitions come from `pipeline.plain_questions`.
"""

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pipeline.plain_questions import Row, gaps, producers, transactions

_HEAD = struct.Struct(">qiibI")
_REST = struct.Struct(">hiqqqhii")
_CODECS = {0: "none", 1: "gzip"}


def _table() -> list[int]:
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


_CRC = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Cursor:
    """A position in the bytes of records, which moves as values are read."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        """Return a zigzag varint."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)

    def skip(self, count: int) -> None:
        """Pass over bytes."""
        self._at += count

    def content(self) -> bytes | None:
        """Return bytes behind their length; None for a length of -1."""
        size = self.number()
        if size < 0:
            return None
        self._at += size
        return self._data[self._at - size : self._at]


class Tables(NamedTuple):
    """Rows of tables by the names of the tables, with the columns that are compared."""

    batches: list[Row]
    records: list[Row]
    kafka: list[Row]
    gaps: list[Row]
    producers: list[Row]
    transactions: list[Row]


def parse(log_dir: Path) -> Tables:
    """Return the rows of a log dir."""
    found, starts = Tables([], [], [], [], [], []), log_starts(log_dir)
    for folder in sorted(one for one in log_dir.iterdir() if one.is_dir()):
        topic, _, number = folder.name.rpartition("-")
        place: Row = {"topic": topic, "partition": int(number)}
        segments = []
        for log in sorted(folder.glob("*.log")):
            data, batches = log.read_bytes(), []
            for batch, payload in _batches(data):
                batches.append(batch)
                rows = [
                    {**place, "segment": int(log.stem), **row} for row in _records(batch, payload)
                ]
                _add_marker(batch, rows)
                found.batches.append({**place, "segment": int(log.stem), **batch})
                found.records.extend(rows)
            segments.append((int(log.stem), len(data), batches))
        start = starts.get((topic, int(number)), segments[0][0])
        in_order = [batch for _, _, some in segments for batch in some]
        found.gaps.extend({**place, **row} for row in gaps(segments, start))
        found.producers.extend({**place, **row} for row in producers(in_order))
        found.transactions.extend({**place, **row} for row in transactions(in_order))
    of_kafka = ("topic", "partition", "offset", "key", "value")
    found.kafka.extend(
        {name: row[name] for name in of_kafka}
        for row in found.records
        if not row["control"] and row["offset"] >= starts.get((row["topic"], row["partition"]), 0)
    )
    return found


def log_starts(log_dir: Path) -> dict[tuple[str, int], int]:
    """Return the log start of each partition in the checkpoint of a log dir, if it has one."""
    path = log_dir / "log-start-offset-checkpoint"
    rows = [line.split() for line in path.read_text().splitlines()[2:]] if path.exists() else []
    return {(topic, int(number)): int(offset) for topic, number, offset in rows}


def _batches(data: bytes) -> Iterator[tuple[Row, bytes]]:
    at = 0
    while at + 61 <= len(data):
        base, length, leader_epoch, magic, crc = _HEAD.unpack_from(data, at)
        end = at + 12 + length
        if length < 49 or end > len(data):
            return
        flags, delta, first, largest, producer, epoch, sequence, count = _REST.unpack_from(
            data, at + 21
        )
        if magic == 2 and crc32c(data[at + 21 : end]) == crc:
            payload = data[at + 61 : end]
            last_sequence = None if sequence == -1 else (sequence + delta) % 2**31
            yield {
                "position": at, "size": end - at, "base_offset": base, "last_offset": base + delta,
                "record_count": count, "codec": _CODECS[flags & 7], "base_timestamp_ms": first,
                "max_timestamp_ms": largest, "leader_epoch": leader_epoch,
                "producer_id": None if producer == -1 else producer,
                "producer_epoch": None if epoch == -1 else epoch,
                "base_sequence": None if sequence == -1 else sequence,
                "last_sequence": last_sequence, "crc": crc, "transactional": bool(flags & 16),
                "control": bool(flags & 32), "control_type": None, "coordinator_epoch": None,
            }, gzip.decompress(payload) if flags & 7 else payload  # fmt: skip
        at = end


def _add_marker(batch: Row, rows: list[Row]) -> None:
    """Add the type of a marker and its coordinator epoch to a control batch."""
    if batch["control"]:
        kind = struct.unpack(">hh", rows[0]["key"])[1]
        batch["control_type"] = ("ABORT", "COMMIT")[kind]
        batch["coordinator_epoch"] = struct.unpack(">hi", rows[0]["value"])[1]


def _records(batch: Row, payload: bytes) -> Iterator[Row]:
    cursor, first = Cursor(payload), batch["base_sequence"]
    for _ in range(batch["record_count"]):
        cursor.number()
        cursor.skip(1)
        time, offset = cursor.number(), cursor.number()
        key, value = cursor.content(), cursor.content()
        headers = [(cursor.content(), cursor.content()) for _ in range(cursor.number())]
        yield {
            "offset": batch["base_offset"] + offset,
            "timestamp_ms": batch["base_timestamp_ms"] + time,
            "leader_epoch": batch["leader_epoch"], "producer_id": batch["producer_id"],
            "producer_epoch": batch["producer_epoch"],
            "sequence": None if first is None else (first + offset) % 2**31,
            "transactional": batch["transactional"], "control": batch["control"],
            "key": key, "value": value, "header_count": len(headers),
        }  # fmt: skip
