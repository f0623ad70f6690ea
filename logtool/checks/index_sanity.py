"""Kafka's own sanity checks of an index, no more and no less; each returns the first fault.

They read little: the last entry, the first timestamp, and all of a transaction index. Every whole
slot counts as an entry, zeros included, so that a zero-padded offset index passes and a zero-padded
time index does not. Source: ``OffsetIndex.sanityCheck``, ``TimeIndex.sanityCheck``,
``TransactionIndex.sanityCheck`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c; unchanged since 2.0).
"""

import struct
from collections.abc import Callable

from logtool.findings import Finding
from logtool.formats import offset_index, time_index, transaction_index
from logtool.formats.names import FileKind

ReadAt = Callable[[int, int], bytes]
"""Function that returns the bytes at a position, given the position and a size."""
Check = Callable[[ReadAt, int, int], Finding | None]
"""Function that returns a fault, or None, given `ReadAt`, the file size and the base offset."""

ENTRY_SIZES = {
    FileKind.OFFSET_INDEX: offset_index.ENTRY_SIZE,
    FileKind.TIME_INDEX: time_index.ENTRY_SIZE,
    FileKind.TRANSACTION_INDEX: transaction_index.ENTRY_SIZE,
}
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_ABORTED = struct.Struct(">h16xq8x")
"""Version and last offset of an entry of a transaction index."""
_TIMESTAMP = struct.Struct(">q")


def check_offset_index(read: ReadAt, size: int, base_offset: int) -> Finding | None:
    """Return the fault that ``OffsetIndex`` finds; None without one."""
    entry = _last(read, size, offset_index.ENTRY_SIZE)
    if entry and (relative := _OFFSET_ENTRY.unpack(entry)[0]) < 0:
        return _below("offset-index/offset-range", relative, size, len(entry), base_offset)
    return _length("offset-index/length", size, offset_index.ENTRY_SIZE)


def check_time_index(read: ReadAt, size: int, base_offset: int) -> Finding | None:
    """Return the fault that ``TimeIndex`` finds; None without one."""
    entry = _last(read, size, time_index.ENTRY_SIZE)
    if entry:
        (first,) = _TIMESTAMP.unpack(read(0, _TIMESTAMP.size))
        last, relative = _TIME_ENTRY.unpack(entry)
        if last < first:
            # An entry of zeros is padding, which this check takes for an entry.
            rule = "timestamp-order" if any(entry) else "padding"
            text = f"the last timestamp {last} is below the first, {first}"
            at = _last_position(size, len(entry))
            return Finding(code=f"time-index/{rule}", message=text, position=at, length=len(entry))
        if relative < 0:
            return _below("time-index/offset-range", relative, size, len(entry), base_offset)
    return _length("time-index/length", size, time_index.ENTRY_SIZE)


def check_transaction_index(read: ReadAt, size: int, base_offset: int) -> Finding | None:
    """Return the fault that ``TransactionIndex`` finds; it ignores a partial entry at the end."""
    # Usually there are few entries: making columns of them would take longer than opening the file.
    entry_size = transaction_index.ENTRY_SIZE
    entries = _ABORTED.iter_unpack(read(0, size - size % entry_size))
    for row, (version, last) in enumerate(entries):
        at = row * entry_size
        if version >> 8 > 0:
            text = f"entry {row}: version {version} is not known"
            return Finding(
                code="transaction-index/version", message=text, position=at, length=entry_size
            )
        if last < base_offset:
            text = f"entry {row}: the last offset {last} is below the base {base_offset}"
            return Finding(
                code="transaction-index/below-base", message=text, position=at, length=entry_size
            )
    return None


CHECKS: dict[FileKind, Check] = {
    FileKind.OFFSET_INDEX: check_offset_index,
    FileKind.TIME_INDEX: check_time_index,
    FileKind.TRANSACTION_INDEX: check_transaction_index,
}


def read_last_entry(read: ReadAt, size: int, entry_size: int) -> None:
    """Read the bytes that Kafka reads when it opens an offset or time index; check nothing."""
    _last(read, size, entry_size)


def _last(read: ReadAt, size: int, entry_size: int) -> bytes:
    """Return the last whole entry; empty if the file has no whole entry."""
    return read(_last_position(size, entry_size), entry_size) if size >= entry_size else b""


def _last_position(size: int, entry_size: int) -> int:
    return size - size % entry_size - entry_size


def _below(code: str, relative: int, size: int, entry_size: int, base_offset: int) -> Finding:
    text = f"the last offset {base_offset + relative} is below the base {base_offset}"
    return Finding(
        code=code, message=text, position=_last_position(size, entry_size), length=entry_size
    )


def _length(code: str, size: int, entry_size: int) -> Finding | None:
    rest = size % entry_size
    if not rest:
        return None
    text = f"the size {size} is not divisible by {entry_size}"
    return Finding(code=code, message=text, position=size - rest, length=rest)
