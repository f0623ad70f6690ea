"""The offset index (``<base offset>.index``): a sparse map from offset to position in the log.

No header, no checksum, only entries of 8 bytes, big-endian:

===============  =====  =========================================================================
relative_offset  int32  last offset of an append, minus the segment's base offset
position         int32  byte position in the ``.log`` file where that append starts
===============  =====  =========================================================================

Both columns rise strictly. Position 0 is never indexed, so a relative offset of 0 is never
written: the broker preallocates the index of the active segment, and a tail of all-zero entries is
padding. An append holds one batch or, on a follower, several; brokers before 2.0 wrote the base
offset of the batch. Source: ``OffsetIndex``, ``AbstractIndex``, ``LogSegment.append`` (Kafka
4.0.0-SNAPSHOT, 1eb7644349c).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from logtool.findings import Finding
from logtool.formats.columns import column, count_used, run_finding, runs, unordered
from logtool.lazy_dataclass import dataclass

ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
ENTRY_SIZE = ENTRY.itemsize
WIDE_ENTRY = np.dtype([("relative_offset", ">i4"), ("position", ">i8")])
"""An entry of the format that KIP-1333 proposes for segments above 2 GiB; no release writes it."""
_LARGEST_WIDE = 1 << 32
"""Bytes of log up to which wide entries are recognised."""
DEFAULT_INTERVAL: Final = 4096
"""Default of ``index.interval.bytes``: the bytes of log after which an entry is due."""
DEFAULT_MAX_SIZE: Final = 10 * 1024 * 1024
"""Default of ``segment.index.bytes``."""
MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""The largest distance of an offset from the base offset of its segment: indexes hold it as an
int32, and a log that goes beyond is split."""


@dataclass(frozen=True, slots=True, eq=False)
class OffsetIndex:
    """One offset index as two read-only columns of equal length, and what follows them."""

    relative_offsets: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    padding: int = 0
    """Bytes of all-zero entries after the last entry."""
    trailing: bytes = b""
    """Bytes after the last whole entry: less than one entry, or all bytes of a wide index."""
    is_wide: bool = False
    """True if the entries are `WIDE_ENTRY`; then the columns are empty."""

    def __len__(self) -> int:
        """Return the number of entries, padding left out."""
        return len(self.positions)

    def offsets(self, base_offset: int) -> npt.NDArray[np.int64]:
        """Return the absolute offsets, for the segment's `base_offset`."""
        return self.relative_offsets.astype(np.int64) + base_offset


def parse(data: bytes, size: int | None = None) -> OffsetIndex:
    """Split `data` into columns. Never fails: damage is for `check` to find.

    `size` is that of the file, in bytes, if zeros at its end were not read.
    """
    size = len(data) if size is None else size
    if _is_wide(data, size):
        none = np.empty(0, np.int32)
        return OffsetIndex(none, none, trailing=data.ljust(size, b"\0"), is_wide=True)
    whole = size - size % ENTRY_SIZE
    used = count_used(data, ENTRY_SIZE)
    rows = np.frombuffer(data, ENTRY, used)
    return OffsetIndex(
        relative_offsets=column(rows, "relative_offset"),
        positions=column(rows, "position"),
        padding=whole - used * ENTRY_SIZE,
        trailing=bytes(data[whole:]) or bytes(size - whole),
    )


def _is_wide(data: bytes, size: int) -> bool:
    """Return whether `data` are entries of 12 bytes, whose offsets and positions rise.

    The first position of an index is below 4 GiB, so that its upper half is 0. No entry of 8 bytes
    has the position 0, and one that follows gives a wide position of 4 GiB or more.
    """
    if len(data) <= ENTRY_SIZE or any(data[4:8]) or not any(data[:4]):
        return False
    entry = WIDE_ENTRY.itemsize
    whole = -(-len(data.rstrip(b"\0")) // entry) * entry
    if whole > size:
        return False
    rows = np.frombuffer(data[:whole].ljust(whole, b"\0"), WIDE_ENTRY)
    offsets, positions = column(rows, "relative_offset"), column(rows, "position")
    rise = (np.diff(offsets, prepend=0) > 0) & (np.diff(positions, prepend=0) > 0)
    return bool(rise.all()) and int(positions[-1]) < _LARGEST_WIDE


def encode(index: OffsetIndex) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    rows = np.empty(len(index), ENTRY)
    rows["relative_offset"] = index.relative_offsets
    rows["position"] = index.positions
    return rows.tobytes() + bytes(index.padding) + index.trailing


def check(index: OffsetIndex, *, log_size: int | None = None) -> Iterator[Finding]:
    """Yield every broken rule, rule by rule; `log_size` is the size of the ``.log`` in bytes.

    Neighbouring entries that break one rule are one finding.
    """
    if index.is_wide:
        text = "has entries of 12 bytes, the format of KIP-1333: no release up to 4.4 reads it"
        yield Finding("offset-index/newer-format", text, position=0)
        return
    offsets, positions = index.relative_offsets, index.positions
    if not len(index) and not index.trailing:
        return
    for first, last in runs(offsets == 0):
        yield _finding(
            "relative-zero",
            f"entry {first}: expected a relative offset of at least 1, found 0 "
            f"(position {positions[first]}) before the padding",
            first,
            last,
        )
    for first, last in runs(offsets < 0):
        yield _finding(
            "offset-range",
            f"entry {first}: expected a relative offset of at least 1, found {offsets[first]}",
            first,
            last,
        )
    for before, first, last in unordered(offsets, offsets > 0, strictly=True):
        yield _finding(
            "offset-order",
            f"entry {first}: expected a relative offset above {offsets[before]} (entry "
            f"{before}), found {offsets[first]}",
            first,
            last,
        )
    yield from _check_positions(index, log_size)
    if index.trailing:
        yield Finding(
            "offset-index/length",
            f"expected a size divisible by {ENTRY_SIZE}, "
            f"found {len(index.trailing)} bytes after the last whole entry",
            position=len(index) * ENTRY_SIZE + index.padding,
            length=len(index.trailing),
        )


def _check_positions(index: OffsetIndex, log_size: int | None) -> Iterator[Finding]:
    positions = index.positions
    hole = (index.relative_offsets == 0) & (positions == 0)
    possible = positions > 0
    if log_size is not None:
        possible &= positions < log_size
    within = "above 0" if log_size is None else f"above 0 and below the log's size {log_size}"
    for first, last in runs(~possible & ~hole):
        yield _finding(
            "position-range",
            f"entry {first}: expected a position {within}, found {positions[first]}",
            first,
            last,
        )
    for before, first, last in unordered(positions, possible, strictly=True):
        yield _finding(
            "position-order",
            f"entry {first}: expected a position above {positions[before]} (entry "
            f"{before}), found {positions[first]}",
            first,
            last,
        )


def _finding(rule: str, message: str, first: int, last: int) -> Finding:
    return run_finding(f"offset-index/{rule}", message, first, last, ENTRY_SIZE)
