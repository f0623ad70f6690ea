"""Stream objects and stream set objects of AutoMQ: one format, big-endian.

Data blocks, the index block with one entry of 36 bytes for each data block or group of adjacent
data blocks, and a footer of 48 bytes:

================  ========  ========================================================================
magic             uint8     0x5A: a data block
flag              uint8     0x02
count             int32     records
size              int32     bytes of the records, which follow: see `stream_record`
----------------  --------  ------------------------------------------------------------------------
stream_id         int64     an entry of the index block
start_offset      int64
offset_delta      int32     end offset minus start offset
record_count      int32     of all blocks of the entry
position          int64     of the first block
size              int32     bytes of all blocks
----------------  --------  ------------------------------------------------------------------------
index_position    int64     the footer
index_size        int32     bytes
padding           28 bytes  0; not read
magic             uint64    0x88e241b785f4cff7
================  ========  ========================================================================

Entries ascend by stream and start offset, and their blocks follow each other without a gap. A
stream set object has the streams of one node, a stream object has one stream. No checksum covers
anything but what the payload has: a log stream has Kafka's batches with their CRC. Source:
``ObjectWriter``, ``ObjectReader``, ``DataBlockIndex`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from logtool.findings import Finding
from logtool.formats.automq import stream_record
from logtool.formats.automq.stream_record import Fault, StreamRecord, StreamRecords
from logtool.formats.columns import runs
from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass

MAGIC = 0x88E241B785F4CFF7
BLOCK_MAGIC, BLOCK_FLAG = 0x5A, 0x02
ENTRY = np.dtype(
    [
        ("stream_id", ">i8"), ("start_offset", ">i8"), ("offset_delta", ">i4"),
        ("record_count", ">i4"), ("position", ">i8"), ("size", ">i4"),
    ]
)  # fmt: skip
ENTRY_SIZE = ENTRY.itemsize
FOOTER = struct.Struct(">qi28sQ")
BLOCK = struct.Struct(">BBii")
_BATCH = struct.Struct(">qiibI")
_LOG_OVERHEAD, _CRC_FROM, _SMALLEST_BATCH = 12, 21, 61


@dataclass(frozen=True, slots=True)
class ObjectFooter:
    """The last 48 bytes."""

    index_position: int
    index_size: int
    padding: bytes
    magic: int


@dataclass(frozen=True, slots=True, eq=False)
class DataObject:
    """One object."""

    body: bytes
    """Data blocks: all before the index block, or before the footer if that leads nowhere."""
    entries: NDArray[np.void]
    """Entries of the index block (`ENTRY`), read-only."""
    loose: bytes
    """Bytes between the last whole entry and the footer."""
    footer: ObjectFooter | None
    """None if the object is shorter than a footer."""

    @property
    def size(self) -> int:
        """Return the size of the object in bytes."""
        behind = len(self.loose) + (FOOTER.size if self.footer else 0)
        return len(self.body) + self.entries.nbytes + behind

    @property
    def end_offset(self) -> NDArray[np.int64]:
        """Return the offset behind each entry."""
        end: NDArray[np.int64] = self.entries["start_offset"].astype(np.int64)
        return end + self.entries["offset_delta"].astype(np.int64)


def parse_footer(data: bytes) -> ObjectFooter | None:
    """Read the footer at the end of `data`; None if that is shorter."""
    if len(data) < FOOTER.size:
        return None
    return ObjectFooter(*FOOTER.unpack_from(data, len(data) - FOOTER.size))


def parse_entries(data: bytes) -> NDArray[np.void]:
    """Return the whole entries of an index block, read-only."""
    return np.frombuffer(data, ENTRY, len(data) // ENTRY_SIZE)


def parse(data: bytes) -> DataObject:
    """Split an object into its parts. Never fails."""
    footer = parse_footer(data)
    if footer is None:
        return DataObject(data, parse_entries(b""), b"", None)
    end = len(data) - FOOTER.size
    start = footer.index_position if 0 <= footer.index_position <= end else end
    stop = start + max(0, min(footer.index_size, end - start)) // ENTRY_SIZE * ENTRY_SIZE
    return DataObject(data[:start], parse_entries(data[start:stop]), data[stop:end], footer)


def encode(parsed: DataObject) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return parsed.body + parsed.entries.tobytes() + parsed.loose + encode_footer(parsed.footer)


def encode_footer(footer: ObjectFooter | None) -> bytes:
    """Return the bytes of a footer, none for None."""
    if footer is None:
        return b""
    return FOOTER.pack(footer.index_position, footer.index_size, footer.padding, footer.magic)


def records(body: bytes | memoryview, start: int, stop: int) -> tuple[StreamRecords, list[Fault]]:
    """Read the records of the data blocks from `start` to `stop`, and the faults in them.

    Reading ends at a fault of the framing. A count that is wrong is a fault, too.
    """
    view = memoryview(body)
    parts, faults = [], []
    while start < stop:
        if stop - start < BLOCK.size:
            found = f"expected the {BLOCK.size} bytes of a data block's header, found"
            faults.append(Fault(start, f"{found} {stop - start}"))
            break
        magic, flag, count, size = BLOCK.unpack_from(view, start)
        left = stop - start - BLOCK.size
        if (magic, flag) != (BLOCK_MAGIC, BLOCK_FLAG):
            found = f"expected a data block (5a02), found {magic:02x}{flag:02x}"
            faults.append(Fault(start, found))
            break
        if not 0 <= size <= left:
            faults.append(Fault(start, f"expected a size of at most {left}, found {size}"))
            break
        part, fault = stream_record.parse(view, start + BLOCK.size, start + BLOCK.size + size)
        parts.append(part)
        if fault:
            faults.append(fault)
        elif count != len(part):
            faults.append(Fault(start, f"expected a count of {len(part)}, found {count}"))
        start += BLOCK.size + size
    return stream_record.concat(parts), faults


def entry_records(parsed: DataObject, row: int) -> tuple[StreamRecords, list[Fault]]:
    """Read the records of one entry, and the faults in its blocks."""
    start = int(parsed.entries["position"][row])
    stop = start + int(parsed.entries["size"][row])
    if not 0 <= start <= stop <= len(parsed.body):
        return stream_record.concat([]), []
    return records(parsed.body, start, stop)


def check(parsed: DataObject) -> Iterator[Finding]:
    """Yield every broken rule: footer, index block, data blocks, records, CRC of Kafka's batches.

    Batches are looked for in every payload, because an object does not say which streams have them.
    """
    yield from check_footer(parsed.footer, parsed.size, MAGIC)
    yield from check_entries(parsed.entries, len(parsed.body))
    for row in range(len(parsed.entries)):
        start, size = (int(parsed.entries[name][row]) for name in ("position", "size"))
        if 0 <= start <= start + size <= len(parsed.body):
            yield from check_entry(parsed.entries, row, parsed.body[start : start + size])


def check_entry(entries: NDArray[np.void], row: int, data: bytes) -> Iterator[Finding]:
    """Yield every broken rule of the data blocks of one entry, which are `data`."""
    entry, size = entries[row], len(data)
    start = int(entry["position"])
    part, faults = records(data, 0, size)
    for fault in faults:
        yield Finding(
            "automq-object/block",
            f"entry {row}: {fault.text}",
            position=start + fault.position,
            length=size - fault.position,
        )
    if not faults:
        yield from _check_records(row, entry, part)
    yield from _check_batches(part, start)


def check_footer(footer: ObjectFooter | None, size: int, magic: int) -> Iterator[Finding]:
    """Yield the finding for a footer that does not lead to the index block of its object."""
    code, at = "automq-object/footer", max(0, size - FOOTER.size)
    if footer is None:
        text = f"expected an object of at least {FOOTER.size} bytes, found {size}"
        yield Finding(code, text, position=0, length=size)
    elif footer.magic != magic:
        text = f"expected magic 0x{magic:016x}, found 0x{footer.magic:016x}"
        yield Finding(code, text, position=at, length=FOOTER.size)
    elif (
        min(footer.index_position, footer.index_size) < 0
        or footer.index_size % ENTRY_SIZE
        or footer.index_position + footer.index_size != at
    ):
        text = (
            f"expected an index block of whole entries that ends at {at}, found "
            f"{footer.index_size} bytes at {footer.index_position}"
        )
        yield Finding(code, text, position=at, length=FOOTER.size)


def check_entries(entries: NDArray[np.void], body_size: int) -> Iterator[Finding]:
    """Yield the broken rules of an index block whose data blocks fill `body_size` bytes."""
    if not len(entries):
        if body_size:
            yield Finding(
                "automq-object/index",
                f"expected entries for {body_size} bytes of data blocks, found no entry",
                position=body_size,
                length=0,
            )
        return
    position, size = (entries[name].astype(np.int64) for name in ("position", "size"))
    expected = np.concatenate(([0], (position + size)[:-1]))
    after = np.concatenate(((position)[1:], [body_size]))
    rules = (
        (order_faults(entries), "ascending streams and offsets, with at least one record"),
        (
            (size < 0) | (position != expected) | (position + size != after),
            "blocks that follow each other up to the index block",
        ),
    )
    for bad, what in rules:
        for first, last in runs(bad):
            yield Finding(
                "automq-object/index",
                f"entry {first}: expected {what}, found {described(entries[first])}",
                position=body_size + first * ENTRY_SIZE,
                length=(last + 1 - first) * ENTRY_SIZE,
            )


def order_faults(entries: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return which entries are empty, negative, or not behind the entry before them."""
    stream, start, delta, count = (
        entries[name].astype(np.int64)
        for name in ("stream_id", "start_offset", "offset_delta", "record_count")
    )
    bad: NDArray[np.bool_] = (stream < 0) | (start < 0) | (delta <= 0) | (count <= 0)
    end = start + delta
    same = stream[1:] == stream[:-1]
    bad[1:] |= (stream[1:] < stream[:-1]) | (same & (start[1:] < end[:-1]))
    return bad


def build(blocks: Sequence[Sequence[StreamRecord]]) -> bytes:
    """Return an object with these data blocks, which are of one stream each and in order."""
    body, rows = bytearray(), []
    for block in blocks:
        content = b"".join(map(stream_record.encode, block))
        start, last = block[0].base_offset, block[-1].end_offset
        size = BLOCK.size + len(content)
        rows.append((block[0].stream_id, start, last - start, len(block), len(body), size))
        body += BLOCK.pack(BLOCK_MAGIC, BLOCK_FLAG, len(block), len(content)) + content
    entries = np.array(rows, ENTRY)
    footer = ObjectFooter(len(body), entries.nbytes, bytes(28), MAGIC)
    return bytes(body) + entries.tobytes() + encode_footer(footer)


def described(entry: np.void) -> str:
    """Return the fields of an entry of an index block, for a message."""
    fields = ("stream_id", "start_offset", "offset_delta", "record_count", "position", "size")
    return ", ".join(f"{name.replace('_', ' ')} {entry[name]}" for name in fields)


def _check_records(row: int, entry: np.void, part: StreamRecords) -> Iterator[Finding]:
    start = int(entry["start_offset"])
    expected = {
        "records": (int(entry["record_count"]), len(part)),
        "start offset": (start, int(part.base_offset[0]) if len(part) else None),
        "end offset": (
            start + int(entry["offset_delta"]),
            int(part.end_offset[-1]) if len(part) else None,
        ),
    }
    for what, (wanted, found) in expected.items():
        if wanted != found:
            yield Finding(
                "automq-object/record",
                f"entry {row}: expected {what} {wanted} as in the index block, found {found}",
                position=int(entry["position"]),
                length=int(entry["size"]),
            )
    others = part.stream_id != int(entry["stream_id"])
    apart = np.zeros(len(part), np.bool_)
    apart[1:] = part.base_offset[1:] != part.end_offset[:-1]
    for bad, rule in ((others, "stream"), (apart, "offset")):
        for first, last in runs(bad):
            where = f"stream {part.stream_id[first]}, offset {part.base_offset[first]}"
            yield Finding(
                "automq-object/record",
                f"entry {row}: expected the {rule} of the entry, in order, found {where}",
                position=int(entry["position"]) + int(part.position[first]),
                length=int(part.position[last] - part.position[first])
                + stream_record.HEADER_SIZE
                + int(part.size[last]),
            )


def _check_batches(part: StreamRecords, base: int) -> Iterator[Finding]:
    for row in range(len(part)):
        payload = part.payload(row)
        at = base + int(part.position[row]) + stream_record.HEADER_SIZE
        for start, stop in batch_spans(payload):
            stored = _BATCH.unpack_from(payload, start)[4]
            found = crc32c(payload[start + _CRC_FROM : stop])
            if stored != found:
                yield Finding(
                    "automq-object/batch-crc",
                    f"stream {part.stream_id[row]}, record at offset {part.base_offset[row]}: "
                    f"expected CRC {found:#010x} in Kafka's batch, found {stored:#010x}",
                    position=at + start,
                    length=stop - start,
                )


def batch_spans(payload: bytes | memoryview) -> list[tuple[int, int]]:
    """Return start and end of each of Kafka's batches in a payload; none if it is not batches."""
    spans, at = [], 0
    while at < len(payload):
        if len(payload) - at < _SMALLEST_BATCH:
            return []
        _, length, _, magic, _ = _BATCH.unpack_from(payload, at)
        end = at + _LOG_OVERHEAD + length
        if magic != 2 or not at + _SMALLEST_BATCH <= end <= len(payload):
            return []
        spans.append((at, end))
        at = end
    return spans


def streams(entries: NDArray[np.void]) -> Iterable[int]:
    """Return the streams of an index block, in order."""
    found: Iterable[int] = np.unique(entries["stream_id"].astype(np.int64)).tolist()
    return found
