"""A writer of Redpanda's files that shares nothing with the code that reads them."""

import struct
from pathlib import Path

from crc32c import crc32c

HEADER = "<IiqbIhiqqqhii"
START = 1_700_000_000_000
"""Milliseconds."""
CONFIGURATION, DATA, KVSTORE, GHOST, TX_FENCE, PLACEHOLDER = 2, 1, 4, 7, 10, 29


def varint(value: int) -> bytes:
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def a_record(delta: int, value: bytes, key: bytes = b"k") -> bytes:
    body = b"\0" + varint(delta) + varint(delta) + varint(len(key)) + key
    body += varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    base: int, *values: bytes, kind: int = DATA, last: int | None = None, attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1), stamp: int = START, body: bytes | None = None,
    count: int | None = None,
) -> bytes:  # fmt: skip
    """Return a batch with a record for each of `values`."""
    if body is None:
        body = b"".join(a_record(delta, value) for delta, value in enumerate(values))
    count = len(values) if count is None else count
    delta = max(count - 1, 0) if last is None else last - base
    fields = (attributes, delta, stamp, stamp + max(count - 1, 0), *producer, count)
    crc = crc32c(struct.pack(">hiqqqhii", *fields) + body)
    head = struct.pack(HEADER, 0, 61 + len(body), base, kind, crc, *fields)[4:]
    return struct.pack("<I", crc32c(head)) + head + body


def filled(first: int, last: int) -> bytes:
    """Return a batch with a record at each offset from `first` through `last`."""
    return batch(first, *(b"x" for _ in range(last - first + 1)))


def of_rfc(home: Path) -> Path:
    """Write the partition of the RFC on ghost batches: [0,10][11,20] and, of term 3, [33,40]."""
    first = filled(0, 10) + filled(11, 20) + bytes(4096)
    folder = data_dir(home, {"0-1-v1.log": first, "33-3-v1.log": filled(33, 40)})
    (folder / "0-1-v1.compaction_index").touch()
    return folder


def sealed(data: bytes, at: int = 0) -> bytes:
    """Return a segment with the CRC of the header at `at` made right."""
    crc = struct.pack("<I", crc32c(data[at + 4 : at + 61]))
    return data[:at] + crc + data[at + 4 :]


def index(base: int, last: int, *entries: tuple[int, int]) -> bytes:
    """Return a base index of version 9 with (relative offset, position) entries."""
    count = len(entries)
    blob = struct.pack("<IqqqqI", 0, base, last, START, START + 2, count)
    blob += struct.pack(f"<{count}I", *(offset for offset, _ in entries))
    blob += struct.pack(f"<I{count}I", count, *([2**31 + 2] * count))
    blob += struct.pack(f"<I{count}Q", count, *(position for _, position in entries))
    blob += struct.pack("<bbbBBQBb", 1, 1, 0, 0, 1, count, 0, 1)
    front = struct.pack("<BBII", 9, 4, len(blob) + 8, len(blob))
    return front + blob + struct.pack("<I", crc32c(blob))


def index_4(base: int, last: int, *entries: tuple[int, int]) -> bytes:
    """Return a base index of version 4, as releases before 23.1 wrote it: without flags."""
    count = len(entries)
    blob = struct.pack("<IqqqqI", 0, base, last, START, START + 2, count)
    blob += struct.pack(f"<{count}I", *(offset for offset, _ in entries))
    blob += struct.pack(f"<I{count}I", count, *([2] * count))
    blob += struct.pack(f"<I{count}Q", count, *(position for _, position in entries))
    front = struct.pack("<BBII", 4, 4, len(blob) + 8, len(blob))
    return front + blob + struct.pack("<I", crc32c(blob))


def log(first: int = 0, batches: int = 6, size: int = 80) -> bytes:
    """Return a configuration and batches of three records each."""
    parts = [batch(first, b"config", kind=CONFIGURATION)]
    parts += [
        batch(first + 1 + 3 * number, *(bytes([number % 251]) * size for _ in range(3)))
        for number in range(batches)
    ]
    return b"".join(parts)


def positions(data: bytes) -> list[int]:
    """Return where each batch begins, up to the zeros."""
    found, at = [], 0
    while at + 61 <= len(data) and any(data[at : at + 61]):
        found.append(at)
        at += struct.unpack_from("<i", data, at + 4)[0]
    return found


def stored(base: int, *pairs: tuple[bytes, bytes | None]) -> bytes:
    """Return a batch of a kvstore; a key begins with its keyspace, and a value of None deletes."""
    body = b""
    for delta, (key, value) in enumerate(pairs):
        wrapped = b"\0" if value is None else struct.pack("<bi", 1, len(value)) + value
        body += a_record(delta, wrapped, key)
    return batch(base, kind=KVSTORE, body=body, count=len(pairs))


def log_key(kind: int, topic: str = "orders", partition: int = 0) -> bytes:
    """Return a key of the keyspace `storage`: 0 where a log begins, 1 its last clean segment."""
    named = b"".join(struct.pack("<i", len(name)) + name for name in (b"kafka", topic.encode()))
    return struct.pack("<bb", 2, kind) + named + struct.pack("<i", partition)


def clean_segment(name: str) -> bytes:
    """Return the value of the last clean segment."""
    return struct.pack("<BBIi", 0, 0, 4 + len(name), len(name)) + name.encode()


def offset_map(group: int, delta: int, *elements: tuple[int, int]) -> tuple[bytes, bytes]:
    """Return key and value of the map of a log: the delta behind the first (base, length)."""
    content = struct.pack("<qI", delta, len(elements))
    content += b"".join(struct.pack("<qi", *element) for element in elements)
    return struct.pack("<bbq", 4, 0, group), struct.pack("<BBI", 0, 0, len(content)) + content


def snapshot(metadata: bytes, version: int = 1) -> bytes:
    """Return the frame of a snapshot with its metadata."""
    covered = struct.pack("<Ibi", crc32c(metadata), version, len(metadata))
    return struct.pack("<I", crc32c(covered)) + covered + metadata


def kvstore(data: Path, *batches: bytes, shard: int = 0) -> Path:
    """Write the kvstore of a core into a data directory; returns its folder."""
    folder = data / "redpanda" / "kvstore" / f"{shard}_0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "0-0-v1.log").write_bytes(b"".join(batches))
    return folder


def records(*pairs: tuple[bytes, bytes | None]) -> bytes:
    """Return a body with a record for each key and value."""
    return b"".join(a_record(delta, value or b"", key) for delta, (key, value) in enumerate(pairs))


def commit(group: bytes, topic: bytes, number: int, offset: int) -> tuple[bytes, bytes]:
    """Return the record by which a group commits an offset, in Kafka's form."""
    named = b"".join(struct.pack(">h", len(name)) + name for name in (group, topic))
    value = struct.pack(">hqihq", 3, offset, -1, 0, START)
    return struct.pack(">h", 1) + named + struct.pack(">i", number), value


def prepared(
    base: int, producer: int, group: bytes, *offsets: tuple[bytes, int, int, bytes | None]
) -> bytes:
    """Return the batch in which a group commits (topic, partition, offset, metadata) for later."""
    value = (
        struct.pack("<bi", 0, len(group))
        + group
        + struct.pack("<qhqi", producer, 0, 5, len(offsets))
    )
    for topic, number, offset, metadata in offsets:
        value += struct.pack("<i", len(topic)) + topic + struct.pack("<iqi", number, offset, -1)
        value += b"\0" if metadata is None else struct.pack("<bi", 1, len(metadata)) + metadata
    return of_transaction(base, producer, 14, value)


def ended(base: int, producer: int, group: bytes, *, commits: bool) -> bytes:
    """Return the batch that ends a transaction of a group."""
    value = struct.pack("<bi", 0, len(group)) + group
    return of_transaction(base, producer, 15 if commits else 16, value)


def of_transaction(base: int, producer: int, kind: int, value: bytes) -> bytes:
    body = a_record(0, value, struct.pack("<bq", kind, producer))
    return batch(base, kind=kind, attributes=0x20, producer=(producer, 0, -1), body=body, count=1)


def data_dir(root: Path, segments: dict[str, bytes], topic: str = "orders") -> Path:
    """Write a data directory with one partition; returns the folder of the partition."""
    folder = root / "data" / "kafka" / topic / "0_22"
    folder.mkdir(parents=True)
    (root / "data" / ".redpanda_data_dir").touch()
    (root / "data" / "pid.lock").write_text("1\n")
    for name, content in segments.items():
        (folder / name).write_bytes(content)
    return folder
