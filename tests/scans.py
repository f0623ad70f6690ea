"""Segments of each format, and a scan that checks the rules for any bytes."""

import itertools
import struct
import zlib

import pytest
from crc32c import crc32c

from logtool.formats import compression, control_record, record, record_batch
from logtool.log.batches import read_batches

BASE = 1000
MASKS = (1, 2, 4, 8, 16, 32, 64, 128, 255)


class Bytes:
    """A source that counts what is read, and may change under the reader."""

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self.data = data
        self.size = len(data) if size is None else size
        self.calls = 0
        self.bytes_read = 0
        self.largest_read = 0

    def read_into(self, buffer: memoryview, position: int) -> int:
        assert position >= 0
        self.calls += 1
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        self.bytes_read += len(piece)
        self.largest_read = max(self.largest_read, len(buffer))
        return len(piece)


def batch(
    offset: int, *values: bytes, codec: int = 0, payload: bytes | None = None, **more
) -> bytes:
    records = [record.Record(i, i, b"key", value) for i, value in enumerate(values)]
    return record_batch.encode(
        record.encode(records) if payload is None else payload,
        **{
            "base_offset": offset,
            "last_offset_delta": max(len(values) - 1, 0),
            "record_count": len(values),
            "leader_epoch": 3,
            "attributes": codec,
            "base_timestamp": 1700000000000,
            "max_timestamp": 1700000000009,
        }
        | more,
    )


def marker(offset: int, *, commit: bool = True, **more) -> bytes:
    key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=7)
    return control(offset, key, value, **({"producer_id": 4000, "producer_epoch": 1} | more))


def control(offset: int, key: bytes | None, value: bytes | None, **more) -> bytes:
    payload = record.encode([record.Record(0, 0, key, value)])
    return batch(offset, payload=payload, record_count=1, codec=0x30, **more)


def message(offset: int, value: bytes, *, magic: int, codec: int = 0) -> bytes:
    stamp = struct.pack(">q", 1700000000000) if magic else b""
    body = bytes([magic, codec]) + stamp + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(offset: int, *values: bytes, magic: int, codec: int) -> bytes:
    first = 0 if magic else offset - len(values) + 1
    inner = b"".join(message(first + i, v, magic=magic) for i, v in enumerate(values))
    return message(offset, compression.compress(codec, inner), magic=magic, codec=codec)


def modern(codec: int) -> list[bytes]:
    return [
        batch(1000, b"one", b"two", codec=codec),
        marker(1002),
        batch(1003, b"three" * 4, codec=codec, producer_id=4000, producer_epoch=1, base_sequence=0),
        batch(1010, payload=b"", last_offset_delta=5),
        marker(1016, commit=False),
        batch(1020, b"last", b"words", codec=codec),
    ]


def legacy(magic: int) -> list[bytes]:
    return [
        message(1000, b"one", magic=magic),
        wrapper(1002, b"two", b"three", magic=magic, codec=compression.GZIP),
        message(1003, b"", magic=magic),
        wrapper(1005, b"two", b"three", magic=magic, codec=compression.LZ4),
        message(1006, b"last", magic=magic),
    ]


SEGMENTS = {f"magic 2 {name}": modern(codec) for codec, name in enumerate(compression.NAMES)}
SEGMENTS |= {f"magic {magic}": legacy(magic) for magic in (0, 1)}
SEGMENTS["upgraded"] = [
    message(1000, b"old", magic=0),
    wrapper(1003, b"a", b"b", magic=1, codec=compression.SNAPPY),
    batch(1004, b"new"),
    batch(1005, b"newer", codec=compression.ZSTD),
]
MODERN = [name for name in SEGMENTS if name.startswith("magic 2")]
every_segment = pytest.mark.parametrize("name", SEGMENTS)


def starts_of(parts: list[bytes]) -> list[int]:
    return list(itertools.accumulate(map(len, parts[:-1]), initial=0))


def is_sound(entry: bytes) -> bool:
    if len(entry) != 12 + int.from_bytes(entry[8:12], "big"):
        return False
    if entry[16] == 2:
        return len(entry) >= 61 and crc32c(entry[21:]) == int.from_bytes(entry[17:21], "big")
    least = {0: 26, 1: 34}[entry[16]]
    return len(entry) >= least and zlib.crc32(entry[16:]) == int.from_bytes(entry[12:16], "big")


def scanned(data: bytes | Bytes, *, start: int = 0, base_offset: int = BASE):
    """Return (table, damages, control errors by position); assert what holds for any bytes."""
    source = Bytes(data) if isinstance(data, bytes) else data
    tables, damages, errors, at = [], [], [], start
    for chunk in read_batches(source, base_offset=base_offset, start=start):
        if chunk.damage:
            assert len(chunk.table) == 0
            assert chunk.damage.position == at
            assert chunk.damage.length > 0
            assert chunk.damage.message
            assert not damages or damages[-1].resynchronised or damages[-1].framed
            damages.append(chunk.damage)
            at += chunk.damage.length
        else:
            assert len(chunk.table) > 0
            for row, position in enumerate(chunk.table.position.tolist()):
                assert position == at
                at += int(chunk.table.size[row])
                if isinstance(data, bytes):
                    assert is_sound(data[position:at])
                    assert chunk.batch(row) == data[position:at]
        errors += [(int(chunk.table.position[row]), str(e)) for row, e in chunk.control_errors]
        tables.append(chunk.table)
    if isinstance(data, bytes):
        assert at == max(len(data), start)
    table = record_batch.concat(tables)
    for damage in damages if isinstance(data, bytes) else ():
        assert damage.resynchronised == (damage.position + damage.length in table.position)
    return table, damages, errors


def ranges(damages) -> list[tuple[int, int]]:
    return [(damage.position, damage.length) for damage in damages]


def rows(table) -> list[dict[str, int]]:
    return [table.row(index) for index in range(len(table))]


PARTS = modern(0)
WHOLE = b"".join(PARTS)
AT = starts_of(PARTS)
LEN = [len(part) for part in PARTS]


def entry_of(magic: int, offset: int, value: bytes = b"nested" * 5) -> bytes:
    return batch(offset, value) if magic == 2 else message(offset, value, magic=magic)


def cut_out(data: bytes, at: int, count: int) -> bytes:
    return data[:at] + data[at + count :]
