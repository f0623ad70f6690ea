"""The transaction index (``<base offset>.txnindex``): the aborted transactions of a segment.

No header, no checksum, only entries of 34 bytes, big-endian; never preallocated:

==================  =====  ======================================================================
version             int16  0
producer_id         int64
first_offset        int64  base offset of the transaction's first batch, maybe in an older segment
last_offset         int64  offset of the ABORT marker, in this segment
last_stable_offset  int64  when the marker was written: the first offset of the oldest transaction
                           then open of another producer, else last_offset + 1
==================  =====  ======================================================================

Entries stand in the order of their markers, so ``last_offset`` rises strictly. The last stable
offset is not ordered: a broker computes it from all transactions that begin in the same append, and
recovery batch by batch. A broker reads only the high byte of the version. Bytes after the last
whole entry are ignored by readers, but the next entry is appended after them and with it all that
follow are out of step. Source: ``TransactionIndex``, ``AbortedTxn`` (Kafka 4.0.0-SNAPSHOT,
1eb7644349c).
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logtool.findings import Broker, Finding, Remedy
from logtool.formats.columns import column, run_finding, runs, unordered
from logtool.lazy_dataclass import dataclass

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
ENTRY_SIZE = ENTRY.itemsize
VERSION = 0


@dataclass(frozen=True, slots=True, eq=False)
class TransactionIndex:
    """One transaction index as read-only columns of equal length, and a torn entry if any."""

    versions: npt.NDArray[np.int16]
    producer_ids: npt.NDArray[np.int64]
    first_offsets: npt.NDArray[np.int64]
    last_offsets: npt.NDArray[np.int64]
    last_stable_offsets: npt.NDArray[np.int64]
    trailing: bytes = b""
    """Bytes after the last whole entry: less than one entry."""

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.versions)


def parse(data: bytes) -> TransactionIndex:
    """Split `data` into columns. Never fails: damage is for `check` to find."""
    count = len(data) // ENTRY_SIZE
    rows = np.frombuffer(data, ENTRY, count)
    return TransactionIndex(
        versions=column(rows, "version"),
        producer_ids=column(rows, "producer_id"),
        first_offsets=column(rows, "first_offset"),
        last_offsets=column(rows, "last_offset"),
        last_stable_offsets=column(rows, "last_stable_offset"),
        trailing=bytes(data[count * ENTRY_SIZE :]),
    )


def encode(index: TransactionIndex) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    rows = np.empty(len(index), ENTRY)
    rows["version"] = index.versions
    rows["producer_id"] = index.producer_ids
    rows["first_offset"] = index.first_offsets
    rows["last_offset"] = index.last_offsets
    rows["last_stable_offset"] = index.last_stable_offsets
    return rows.tobytes() + index.trailing


def check(index: TransactionIndex, *, base_offset: int | None = None) -> Iterator[Finding]:
    """Yield every broken rule, rule by rule; `base_offset` is that of the segment.

    Neighbouring entries that break one rule are one finding.
    """
    yield from _check_versions(index)
    impossible = _impossible(index)
    for first, last in runs(impossible):
        yield _finding(
            "range", f"entry {first}: expected {_range_fault(index, first)}", first, last
        )
    last_offsets = index.last_offsets
    below = np.zeros(len(index), np.bool_)
    if base_offset is not None:
        below = last_offsets < base_offset
        for first, last in runs(below):
            yield _finding(
                "below-base",
                f"entry {first}: expected a last offset of at least {base_offset} (base "
                f"offset of the segment), found {last_offsets[first]}",
                first,
                last,
            )
    for before, first, last in unordered(last_offsets, ~impossible & ~below, strictly=True):
        yield _finding(
            "order",
            f"entry {first}: expected a last offset above {last_offsets[before]} (entry "
            f"{before}), found {last_offsets[first]}",
            first,
            last,
        )
    if index.trailing:
        yield Finding(
            "transaction-index/length",
            f"expected a size divisible by {ENTRY_SIZE}, "
            f"found {len(index.trailing)} bytes after the last whole entry",
            position=len(index) * ENTRY_SIZE,
            length=len(index.trailing),
        )


def _check_versions(index: TransactionIndex) -> Iterator[Finding]:
    # A broker sees the high byte alone, and only a positive one stops it.
    stops = index.versions >> 8 > 0
    unseen = ~stops & (index.versions != VERSION)
    for bad, broker, remedy in ((stops, None, None), (unseen, Broker.NEVER, Remedy.RECOVER)):
        for first, last in runs(bad):
            yield run_finding(
                "transaction-index/version",
                f"entry {first}: expected version {VERSION}, found {index.versions[first]}",
                first,
                last,
                ENTRY_SIZE,
                broker=broker,
                remedy=remedy,
            )


def _impossible(index: TransactionIndex) -> npt.NDArray[np.bool_]:
    impossible: npt.NDArray[np.bool_] = (
        (index.producer_ids < 0)
        | (index.first_offsets < 0)
        | (index.first_offsets >= index.last_offsets)
        | (index.last_stable_offsets < 0)
    )
    return impossible


def _range_fault(index: TransactionIndex, entry: int) -> str:
    if index.producer_ids[entry] < 0:
        return f"a producer id of at least 0, found {index.producer_ids[entry]}"
    if index.first_offsets[entry] < 0:
        return f"a first offset of at least 0, found {index.first_offsets[entry]}"
    if index.first_offsets[entry] >= index.last_offsets[entry]:
        first, last = index.first_offsets[entry], index.last_offsets[entry]
        return f"a first offset below the last offset {last}, found {first}"
    return f"a last stable offset of at least 0, found {index.last_stable_offsets[entry]}"


def _finding(rule: str, message: str, first: int, last: int) -> Finding:
    return run_finding(f"transaction-index/{rule}", message, first, last, ENTRY_SIZE)
