"""A parse of segments that shares no code with logtool: the truth of the campaign on Spark.

It reads magic 2, uncompressed or gzip, as Kafka's documentation of the message format has it. A
batch whose CRC is wrong is left out, and a batch that the file cuts off ends the log.
"""

import gzip
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_HEAD = struct.Struct(">qiibI")
_REST = struct.Struct(">hiqqqhii")
_CODECS = {0: "none", 1: "gzip"}

Row = dict[str, Any]


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
    """Rows of the tables ``batches`` and ``records``, with the columns that are compared."""

    batches: list[Row]
    records: list[Row]


def parse(log_dir: Path) -> Tables:
    """Return the rows of a log dir."""
    found = Tables([], [])
    for log in sorted(log_dir.glob("*/*.log")):
        topic, _, partition = log.parent.name.rpartition("-")
        place = {"topic": topic, "partition": int(partition), "segment": int(log.stem)}
        for batch, payload in _batches(log.read_bytes()):
            found.batches.append({**place, **batch})
            found.records.extend({**place, **row} for row in _records(batch, payload))
    return found


def _batches(data: bytes) -> Iterator[tuple[Row, bytes]]:
    at = 0
    while at + 61 <= len(data):
        base, length, epoch, magic, crc = _HEAD.unpack_from(data, at)
        end = at + 12 + length
        if length < 49 or end > len(data):
            return
        flags, delta, first, largest, producer, *_, count = _REST.unpack_from(data, at + 21)
        if magic == 2 and crc32c(data[at + 21 : end]) == crc:
            payload = data[at + 61 : end]
            yield {
                "position": at, "size": end - at, "base_offset": base, "last_offset": base + delta,
                "record_count": count, "codec": _CODECS[flags & 7], "base_timestamp_ms": first,
                "max_timestamp_ms": largest, "leader_epoch": epoch,
                "producer_id": None if producer == -1 else producer, "crc": crc,
                "transactional": bool(flags & 16), "control": bool(flags & 32),
            }, gzip.decompress(payload) if flags & 7 else payload  # fmt: skip
        at = end


def _records(batch: Row, payload: bytes) -> Iterator[Row]:
    cursor = Cursor(payload)
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
            "transactional": batch["transactional"], "control": batch["control"],
            "key": key, "value": value, "header_count": len(headers),
        }  # fmt: skip
