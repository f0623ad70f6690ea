"""Objects of the WAL that AutoMQ keeps in a bucket, big-endian: a header and records.

===============  ======  ===========================================================================
magic            uint32  0xEDCBA987, or 0x12345678 for a header without trim offset (40 bytes)
start_offset     int64   WAL offset of the first record
length           int64   bytes of the records: the size of the object minus that of the header
sticky_length    int64   0; not read
node_id          int32
epoch            int64   of the node
trim_offset      int64   records up to this WAL offset are not needed; -1 none
---------------  ------  ---------------------------------------------------------------------------
magic            uint32  0x87654321: a record
body_length      int32
body_offset      int64   WAL offset of the body: that of the record plus 24
body_crc         uint32  CRC-32 of the body without its top bit
header_crc       uint32  CRC-32 of the 20 bytes before it without its top bit
body                     one record of a stream, see `stream_record`
===============  ======  ===========================================================================

Records in one object are sorted by stream and offset. WAL offsets are logical: every object begins
at a multiple of 64 MiB. A record of stream -1 is padding. Source: ``WALObjectHeader``,
``RecordHeader``, ``WALUtil``, ``DefaultWriter``, ``RecoverIterator`` (AutoMQ f1ce98ec8981,
2026-08-21).
"""

import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from logtool.findings import Finding
from logtool.formats.automq import stream_record
from logtool.formats.automq.stream_record import (
    HEADER_SIZE,
    NO_STREAM,
    Fault,
    StreamRecord,
    StreamRecords,
)
from logtool.lazy_dataclass import dataclass

MAGIC, OLD_MAGIC, RECORD_MAGIC = 0xEDCBA987, 0x12345678, 0x87654321
HEADERS = {MAGIC: struct.Struct(">Iqqqiqq"), OLD_MAGIC: struct.Struct(">Iqqqiq")}
ALIGNMENT = 64 * 1024 * 1024
NO_TRIM = -1
RECORD = struct.Struct(">IiqII")
_MAGIC = struct.Struct(">I")
_COVERED = RECORD.size - 4
_MASK = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class WalHeader:
    """The header of an object."""

    magic: int
    start_offset: int
    length: int
    sticky_length: int
    node_id: int
    epoch: int
    trim_offset: int | None
    """None in the older form."""

    @property
    def size(self) -> int:
        """Return the size of the header in bytes."""
        return HEADERS[self.magic].size


@dataclass(frozen=True, slots=True)
class WalObject:
    """One object."""

    header: WalHeader | None
    """None if AutoMQ could not read the header."""
    content: bytes
    """Bytes behind the header, or the whole object without a header."""


@dataclass(frozen=True, slots=True, eq=False)
class WalRecords:
    """The records of an object up to the first one that AutoMQ does not take."""

    offset: NDArray[np.int64]
    """WAL offset of each record, as its header says."""
    records: StreamRecords
    fault: Fault | None
    """The first record at which recovery fails; None if all are whole."""

    def __len__(self) -> int:
        return len(self.offset)

    @property
    def size(self) -> NDArray[np.int64]:
        """Return the bytes of each record with both headers."""
        return self.records.size + RECORD.size + HEADER_SIZE

    @property
    def is_padding(self) -> NDArray[np.bool_]:
        """Return which records carry nothing."""
        padding: NDArray[np.bool_] = (self.records.stream_id == NO_STREAM) & (
            self.records.epoch == NO_STREAM
        )
        return padding


def crc(data: bytes | memoryview) -> int:
    """Return the CRC of the WAL: CRC-32 without its top bit."""
    return zlib.crc32(data) & _MASK


def parse(data: bytes) -> WalObject:
    """Split an object into header and content. Never fails."""
    layout = HEADERS.get(_MAGIC.unpack_from(data)[0]) if len(data) >= _MAGIC.size else None
    if layout is None or len(data) < layout.size:
        return WalObject(None, data)
    fields = layout.unpack_from(data)
    trim = fields[6] if len(fields) > 6 else None
    magic, start, length, sticky, node_id, epoch = fields[:6]
    header = WalHeader(magic, start, length, sticky, node_id, epoch, trim)
    return WalObject(header, data[layout.size :])


def encode(parsed: WalObject) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return encode_header(parsed.header) + parsed.content


def encode_header(header: WalHeader | None) -> bytes:
    """Return the bytes of a header, none for None."""
    if header is None:
        return b""
    fields = [
        header.magic, header.start_offset, header.length, header.sticky_length, header.node_id,
        header.epoch,
    ]  # fmt: skip
    fields += [] if header.trim_offset is None else [header.trim_offset]
    return HEADERS[header.magic].pack(*fields)


def record_fault(view: memoryview, at: int, offset: int | None = None) -> tuple[Fault | None, int]:
    """Return the reason why a record is not sound, or None, and the length of its body.

    `offset` is the WAL offset at which it should be; AutoMQ does not compare that in a bucket. The
    length is -1 if the header is not sound.
    """
    left = len(view) - at
    if left < RECORD.size:
        return Fault(at, f"expected the {RECORD.size} bytes of a header, found {left}"), -1
    magic, length, body_offset, body_crc, header_crc = RECORD.unpack_from(view, at)
    found = crc(view[at : at + _COVERED])
    if header_crc != found:
        return Fault(at, f"expected header CRC {found:#010x}, found {header_crc:#010x}"), -1
    if magic != RECORD_MAGIC:
        return Fault(at, f"expected magic {RECORD_MAGIC:#010x}, found {magic:#010x}"), -1
    if offset is not None and body_offset != offset + RECORD.size:
        expected = offset + RECORD.size
        return Fault(at, f"expected body offset {expected}, found {body_offset}"), -1
    start = at + RECORD.size
    if not 0 <= length <= len(view) - start:
        return Fault(at, f"expected a body of {length} bytes, found {len(view) - start}"), length
    body = view[start : start + length]
    found = crc(body)
    if body_crc != found:
        return Fault(at, f"expected body CRC {found:#010x}, found {body_crc:#010x}"), length
    _, fault = stream_record.parse(body)
    if fault or stream_record.parse(body)[0].size.tolist() != [length - HEADER_SIZE]:
        return Fault(at, "expected one record of a stream as the body"), length
    return None, length


def records(parsed: WalObject) -> WalRecords:
    """Read the records of an object up to the first at which AutoMQ's recovery would fail.

    An object without a record is a fault, too: recovery reads one behind each header.
    """
    view = memoryview(parsed.content)
    found: list[int] = []
    offsets: list[int] = []
    at, fault = 0, None
    while at < len(view) or not found:
        fault, length = record_fault(view, at)
        if fault:
            break
        found.append(at + RECORD.size)
        offsets.append(RECORD.unpack_from(view, at)[2] - RECORD.size)
        at += RECORD.size + length
    return WalRecords(np.array(offsets, np.int64), stream_record.at(view, found), fault)


def check(
    parsed: WalObject,
    *,
    start_offset: int | None = None,
    node_id: int | None = None,
    epoch: int | None = None,
) -> Iterator[Finding]:
    """Yield every broken rule of header and records.

    `start_offset`, `node_id` and `epoch` are those of the key; None without a key.
    """
    header, size = parsed.header, len(parsed.content)
    if header is None:
        yield Finding(
            "automq-wal/header",
            "expected one of the two headers of a WAL object, found none",
            position=0,
            length=size,
        )
        return
    rules = {
        "length": (size, header.length),
        "start offset": (start_offset, header.start_offset),
        "node": (node_id, header.node_id),
        "epoch": (epoch, header.epoch),
    }
    faults = [
        f"{what} {wanted}, found {found}"
        for what, (wanted, found) in rules.items()
        if wanted not in (None, found)
    ]
    sane = header.sticky_length == 0 and min(header.node_id, header.epoch) >= 0
    if not sane or (header.trim_offset or 0) < NO_TRIM:
        faults.append("fields without a negative value")
    if faults:
        yield Finding(
            "automq-wal/header",
            f"expected {'; '.join(faults)}",
            position=0,
            length=header.size,
        )
    read = records(parsed)
    if read.fault:
        at = read.fault.position + header.size
        yield Finding(
            "automq-wal/record",
            read.fault.text,
            position=at,
            length=header.size + size - at,
        )
    positions = read.records.position - RECORD.size
    for row in np.flatnonzero(read.offset != header.start_offset + positions).tolist():
        yield Finding(
            "automq-wal/record",
            f"expected WAL offset {header.start_offset + positions[row]}, found {read.offset[row]}",
            position=int(positions[row]) + header.size,
            length=int(read.size[row]),
        )


def encode_record(offset: int, record: StreamRecord) -> bytes:
    """Return the bytes of a record at a WAL offset."""
    body = stream_record.encode(record)
    head = RECORD.pack(RECORD_MAGIC, len(body), offset + RECORD.size, crc(body), 0)[:_COVERED]
    return head + _MAGIC.pack(crc(head)) + body


def build(
    stored: Sequence[StreamRecord],
    *,
    start_offset: int,
    node_id: int,
    epoch: int,
    trim_offset: int | None = NO_TRIM,
) -> bytes:
    """Return an object with these records; without trim offset it has the older header."""
    content = bytearray()
    for record in stored:
        content += encode_record(start_offset + len(content), record)
    magic = OLD_MAGIC if trim_offset is None else MAGIC
    header = WalHeader(magic, start_offset, len(content), 0, node_id, epoch, trim_offset)
    return encode_header(header) + bytes(content)


def padding() -> StreamRecord:
    """Return the record that an object has if it carries a trim offset and nothing else."""
    return StreamRecord(NO_STREAM, NO_STREAM, 0, 0, b"")
