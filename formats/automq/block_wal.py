"""The WAL of AutoMQ on a device or in a file, before May 2025: a ring, big-endian.

Two headers at bytes 0 and 4096, written in turn.
The one with a right CRC and the later time counts:

===============  ======  ===========================================================================
magic            uint32  0x12345678
capacity         int64   bytes of the ring with both headers
trim_offset      int64   WAL offset of the last record that is not needed; -1 none
last_write       int64   nanoseconds of a clock that has no fixed zero
window_length    int64   bytes behind which nothing was written before it
shutdown         int32   0 orderly, 1 not
node_id          int32
epoch            int64   of the node
crc              uint32  CRC-32 of the 52 bytes before it without its top bit
===============  ======  ===========================================================================

The record at WAL offset o stands at byte ``o % (capacity - 8192) + 8192`` and has the form of
`wal_object`; a block of records begins at a multiple of 4096. Source: ``BlockWALHeader``,
``BlockWALService``, ``WALUtil`` (AutoMQ c5d0b84bac, 2025-05; newer releases have no such WAL).
"""

import struct
from collections.abc import Iterator, Sequence

import numpy as np

from logtool.findings import Finding
from logtool.formats.automq import stream_record
from logtool.formats.automq.wal_object import (
    RECORD,
    RECORD_MAGIC,
    WalRecords,
    crc,
)
from logtool.lazy_dataclass import dataclass

MAGIC = 0x12345678
BLOCK = 4096
RING_START = 2 * BLOCK
_LAYOUT = struct.Struct(">IqqqqiiqI")
_COVERED = _LAYOUT.size - 4
_GRACE = 4 * 1024 * 1024
"""Bytes behind the last sound record in which recovery goes on looking."""


@dataclass(frozen=True, slots=True)
class BlockWalHeader:
    """One of the two headers."""

    magic: int
    capacity: int
    trim_offset: int
    last_write: int
    window_length: int
    shutdown: int
    node_id: int
    epoch: int
    crc: int

    @property
    def crc_holds(self) -> bool:
        """Return whether magic and CRC are right."""
        return self.magic == MAGIC and self.crc == crc(encode_header(self)[:_COVERED])

    @property
    def is_clean(self) -> bool:
        """Return whether the WAL was closed in order."""
        return self.shutdown == 0


@dataclass(frozen=True, slots=True)
class BlockWal:
    """The headers of a WAL, and the bytes behind each."""

    headers: tuple[BlockWalHeader | None, BlockWalHeader | None]
    """None for a header that the file is too short for."""
    behind: tuple[bytes | memoryview, bytes | memoryview]
    """Bytes between the headers, and the ring."""

    @property
    def header(self) -> BlockWalHeader | None:
        """Return the header that counts; None if no header is right."""
        right = [one for one in self.headers if one and one.crc_holds]
        return max(right, key=lambda one: one.last_write, default=None)


@dataclass(frozen=True, slots=True, eq=False)
class BlockWalRecovery:
    """The records that recovery finds, and findings for what it steps over."""

    records: WalRecords
    findings: tuple[Finding, ...]
    """A finding for each damaged record, and for each hole between two records."""


def parse_header(data: bytes | memoryview) -> BlockWalHeader | None:
    """Read a header at the beginning of `data`; None if that is too short."""
    if len(data) < _LAYOUT.size:
        return None
    return BlockWalHeader(*_LAYOUT.unpack_from(data))


def encode_header(header: BlockWalHeader | None) -> bytes:
    """Return the bytes of a header, none for None."""
    if header is None:
        return b""
    return _LAYOUT.pack(
        header.magic, header.capacity, header.trim_offset, header.last_write, header.window_length,
        header.shutdown, header.node_id, header.epoch, header.crc,
    )  # fmt: skip


def parse(data: bytes | memoryview) -> BlockWal:
    """Split a WAL into its parts. Never fails."""
    parts = (data[:BLOCK], data[BLOCK:])
    headers = (parse_header(parts[0]), parse_header(parts[1]))
    first, second = (
        part[_LAYOUT.size if header else 0 :] for part, header in zip(parts, headers, strict=True)
    )
    return BlockWal(headers, (first, second))


def encode(parsed: BlockWal) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(
        encode_header(header) + bytes(behind)
        for header, behind in zip(parsed.headers, parsed.behind, strict=True)
    )


def check(parsed: BlockWal) -> Iterator[Finding]:
    """Yield a finding for each header that is not right; AutoMQ needs one of the two."""
    size = sum(map(len, parsed.behind)) + _LAYOUT.size * sum(map(bool, parsed.headers))
    if parsed.header is None:
        yield Finding(
            "automq-block-wal/no-header",
            "expected a header with a right CRC at byte 0 or 4096, found none",
            position=0,
            length=min(size, BLOCK + _LAYOUT.size),
        )
    for number, header in enumerate(parsed.headers):
        at = min(number * BLOCK, size)
        length = min(_LAYOUT.size, size - at)
        if header is None or not header.crc_holds:
            yield Finding(
                "automq-block-wal/header",
                f"header {number}: expected magic {MAGIC:#010x} and the CRC of its bytes",
                position=at,
                length=length,
            )
        elif header.capacity != size or header.shutdown not in (0, 1) or header.trim_offset < -1:
            yield Finding(
                "automq-block-wal/header",
                f"header {number}: expected capacity {size} and shutdown 0 or 1, found capacity "
                f"{header.capacity} and shutdown {header.shutdown}",
                position=at,
                length=length,
            )


def recover(data: bytes | memoryview, header: BlockWalHeader) -> BlockWalRecovery:
    """Return the records that AutoMQ's recovery finds with this header, and what it steps over."""
    view, room = memoryview(data)[: max(header.capacity, 0)], header.capacity - RING_START
    at, found, offsets = max(header.trim_offset, 0), [], []
    findings: list[Finding] = []
    steps: list[int] = []
    invalid = invalid_cycle = last_valid = -1
    grace = min(header.window_length, _GRACE)
    # Two cycles reach each byte; a header with a right CRC may still have any window.
    most = at + 2 * len(data) if room > 0 else at
    while at < most and (
        invalid < 0 or at < invalid + header.window_length or at < last_valid + grace
    ):
        cycle, is_trimmed = at // room, at == header.trim_offset
        position = at % room + RING_START
        sound, following = _sound(view, position, at)
        if sound:
            last_valid = at
            if invalid_cycle not in (-1, cycle):
                invalid = invalid_cycle = -1
            findings += _stepped_over(view, header, steps, at, following)
            steps = []
            if not is_trimmed:
                found.append(position + RECORD.size)
                offsets.append(at)
        else:
            steps.append(at)
            if invalid < 0 and at % BLOCK == 0 and not is_trimmed:
                invalid, invalid_cycle = at, cycle
        at = following
    findings += _stepped_over(view, header, steps)
    whole = [
        row
        for row, start in enumerate(found)
        if _is_record(view, start, RECORD.unpack_from(view, start - RECORD.size)[1])
    ]
    records = WalRecords(
        np.array(offsets, np.int64)[whole],
        stream_record.at(view, [found[row] for row in whole]),
        None,
    )
    return BlockWalRecovery(records, tuple(findings))


def _stepped_over(
    view: memoryview,
    header: BlockWalHeader,
    steps: Sequence[int],
    following: int | None = None,
    end: int = 0,
) -> Iterator[Finding]:
    """Yield a finding for each loss in a run of WAL offsets without a sound record.

    `following` and `end` are the WAL offsets of the sound record behind the run, None for the run
    at the end.
    """
    room = header.capacity - RING_START
    is_damaged = False
    for at in steps:
        position = at % room + RING_START
        if at != header.trim_offset and _was_written(view, position, at):
            is_damaged = True
            yield Finding(
                "automq-block-wal/record",
                f"expected the CRCs of header and body at WAL offset {at}, found others",
                position=position,
                length=RECORD.size,
            )
    blocks = [at for at in steps if at % BLOCK == 0]
    if is_damaged or not blocks or following is None or steps[0] == header.trim_offset:
        return
    start, size = blocks[0], following - blocks[0]
    # A record that does not fit between the last block and the end of the ring begins at its start.
    if following % room == 0 and size < end - following:
        return
    yield Finding(
        "automq-block-wal/hole",
        f"expected a record at WAL offset {start}, found none in the {size} bytes before the next",
        position=start % room + RING_START,
        length=min(size, room - start % room),
    )


def _was_written(view: memoryview, position: int, offset: int) -> bool:
    """Return whether bytes are a record that was written for this WAL offset.

    A record of an earlier cycle has another body offset and a header CRC that is right.
    """
    if len(view) - position < RECORD.size:
        return False
    magic, _, body_offset, _, header_crc = RECORD.unpack_from(view, position)
    is_whole = header_crc == crc(view[position : position + RECORD.size - 4])
    return body_offset == offset + RECORD.size or (magic == RECORD_MAGIC and not is_whole)


def _sound(view: memoryview, position: int, offset: int) -> tuple[bool, int]:
    """Return whether a record is sound, and the WAL offset at which to go on."""
    next_block = offset // BLOCK * BLOCK + BLOCK
    if len(view) - position < RECORD.size:
        return False, next_block
    magic, length, body_offset, body_crc, header_crc = RECORD.unpack_from(view, position)
    start = position + RECORD.size
    if (
        magic != RECORD_MAGIC
        or header_crc != crc(view[position : start - 4])
        or length <= 0
        or body_offset != offset + RECORD.size
    ):
        return False, next_block
    end = offset + RECORD.size + length
    if length > len(view) - start or body_crc != crc(view[start : start + length]):
        return False, end // BLOCK * BLOCK + BLOCK
    return True, end


def _is_record(view: memoryview, start: int, length: int) -> bool:
    parsed, fault = stream_record.parse(view, start, start + length)
    return fault is None and len(parsed) == 1


def build_header(
    *,
    capacity: int,
    trim_offset: int = -1,
    last_write: int = 0,
    window_length: int = 1024 * 1024,
    shutdown: int = 0,
    node_id: int = 0,
    epoch: int = 0,
) -> bytes:
    """Return the bytes of a header with its CRC."""
    fields = (
        MAGIC, capacity, trim_offset, last_write, window_length, shutdown, node_id, epoch,
    )  # fmt: skip
    covered = _LAYOUT.pack(*fields, 0)[:_COVERED]
    return covered + struct.pack(">I", crc(covered))
