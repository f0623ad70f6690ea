"""The time index (``<base offset>.timeindex``): a sparse map from timestamp to offset.

No header, no checksum, only entries of 12 bytes, big-endian:

===============  =====  =========================================================================
timestamp        int64  largest timestamp of the segment so far, in milliseconds
relative_offset  int32  the offset it is attributed to, minus the segment's base offset
===============  =====  =========================================================================

Timestamps rise strictly from 0; offsets never fall. The broker preallocates the index of the
active segment, so a tail of all-zero slots is padding, with one exception: (0, 0) is a legal first
entry. A file of all zeros is therefore ambiguous. One slot is read as that entry, for an empty
index is cut to 0 bytes when its segment closes; two slots or more are read as padding, for a
preallocated index without entries is common and a first record of January 1970 is not. The broker
itself makes no such distinction: it takes every slot for an entry, and an index with padding for
one that ends at timestamp 0. Source: ``TimeIndex``, ``AbstractIndex`` (Kafka 4.0.0-SNAPSHOT,
1eb7644349c).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logtool.findings import Finding
from logtool.formats.columns import column, count_used, run_finding, runs, unordered
from logtool.lazy_dataclass import dataclass

ENTRY = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
ENTRY_SIZE = ENTRY.itemsize


@dataclass(frozen=True, slots=True, eq=False)
class TimeIndex:
    """One time index as two read-only columns of equal length, and what follows them."""

    timestamps: npt.NDArray[np.int64]
    """Milliseconds since 1970."""
    relative_offsets: npt.NDArray[np.int32]
    padding: int = 0
    """Bytes of all-zero slots after the last entry."""
    trailing: bytes = b""
    """Bytes after the last whole slot: less than one entry."""

    def __len__(self) -> int:
        """Return the number of entries, padding left out."""
        return len(self.timestamps)

    def offsets(self, base_offset: int) -> npt.NDArray[np.int64]:
        """Return the absolute offsets, for the segment's `base_offset`."""
        return self.relative_offsets.astype(np.int64) + base_offset


def parse(data: bytes, size: int | None = None) -> TimeIndex:
    """Split `data` into columns. Never fails: damage is for `check` to find.

    `size` is that of the file, in bytes, if zeros at its end were not read.
    """
    size = len(data) if size is None else size
    slots = size // ENTRY_SIZE
    used = 1 if slots == 1 else count_used(data, ENTRY_SIZE)
    rows = np.frombuffer(data, ENTRY, used)
    return TimeIndex(
        timestamps=column(rows, "timestamp"),
        relative_offsets=column(rows, "relative_offset"),
        padding=(slots - used) * ENTRY_SIZE,
        trailing=bytes(data[slots * ENTRY_SIZE :]) or bytes(size - slots * ENTRY_SIZE),
    )


def encode(index: TimeIndex) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    rows = np.empty(len(index), ENTRY)
    rows["timestamp"] = index.timestamps
    rows["relative_offset"] = index.relative_offsets
    return rows.tobytes() + bytes(index.padding) + index.trailing


def check(index: TimeIndex) -> Iterator[Finding]:
    """Yield every broken rule, rule by rule.

    Neighbouring entries that break one rule are one finding.
    """
    timestamps, offsets = index.timestamps, index.relative_offsets
    hole = (timestamps == 0) & (offsets == 0)
    hole[:1] = False
    for first, last in runs(hole):
        yield _finding(
            "zero-entry",
            f"entry {first}: expected a timestamp above 0, found {ENTRY_SIZE} zero bytes "
            "before the padding",
            first,
            last,
        )
    yield from _check_timestamps(timestamps, hole)
    for first, last in runs(offsets < 0):
        yield _finding(
            "offset-range",
            f"entry {first}: expected a relative offset of at least 0, found {offsets[first]}",
            first,
            last,
        )
    for before, first, last in unordered(offsets, (offsets >= 0) & ~hole, strictly=False):
        yield _finding(
            "offset-order",
            f"entry {first}: expected a relative offset of at least {offsets[before]} "
            f"(entry {before}), found {offsets[first]}",
            first,
            last,
        )
    if index.trailing:
        yield Finding(
            "time-index/length",
            f"expected a size divisible by {ENTRY_SIZE}, "
            f"found {len(index.trailing)} bytes after the last whole entry",
            position=len(index) * ENTRY_SIZE + index.padding,
            length=len(index.trailing),
        )


def _check_timestamps(
    timestamps: npt.NDArray[np.int64], hole: npt.NDArray[np.bool_]
) -> Iterator[Finding]:
    for first, last in runs(timestamps < 0):
        yield _finding(
            "timestamp-order",
            f"entry {first}: expected a timestamp of at least 0, found {timestamps[first]}",
            first,
            last,
        )
    for before, first, last in unordered(timestamps, (timestamps >= 0) & ~hole, strictly=True):
        yield _finding(
            "timestamp-order",
            f"entry {first}: expected a timestamp above {timestamps[before]} (entry "
            f"{before}), found {timestamps[first]}",
            first,
            last,
        )


def _finding(rule: str, message: str, first: int, last: int) -> Finding:
    return run_finding(f"time-index/{rule}", message, first, last, ENTRY_SIZE)
