"""The common part of the index formats: entries of one fixed size, as NumPy columns."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from logtool.findings import Broker, Finding, Remedy

_WORD = np.dtype(np.uint32)
_ZEROS = bytes(64 * 1024)


def count_used(data: bytes, entry_size: int) -> int:
    """Return how many whole entries stand before the tail of all-zero entries.

    `entry_size` is in bytes and a multiple of 4.
    """
    end = len(data) // entry_size * entry_size
    # A preallocated index of 10 MiB is mostly padding.
    while data.endswith(_ZEROS, 0, end):
        end -= len(_ZEROS)
    start = max(0, end - len(_ZEROS))
    start -= start % _WORD.itemsize
    nonzero = np.flatnonzero(np.frombuffer(data, _WORD, (end - start) // _WORD.itemsize, start))
    if not len(nonzero):
        return 0
    return (start + int(nonzero[-1]) * _WORD.itemsize) // entry_size + 1


def column(rows: npt.NDArray[np.void], name: str) -> npt.NDArray[np.signedinteger]:
    """Return the field `name` of big-endian `rows` as a read-only column in native byte order."""
    values = np.ascontiguousarray(rows[name].astype(rows.dtype[name].newbyteorder("=")))
    values.setflags(write=False)
    return values


def runs(bad: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield ``(first, last)`` of every run of True, both inclusive."""
    if not bad.any():
        return
    padded = np.concatenate(([False], bad, [False]))
    edges = np.flatnonzero(padded[1:] != padded[:-1])
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield first, end - 1


def unordered(
    values: npt.NDArray[np.signedinteger],
    possible: npt.NDArray[np.bool_],
    *,
    strictly: bool,
) -> Iterator[tuple[int, int, int]]:
    """Yield ``(before, first, last)`` of every run of entries that do not rise.

    Each entry is compared with the nearest one before it (`before` is that of the run's first),
    both among the `possible`: an impossible value is another rule's finding and must not accuse
    its neighbours. Without `strictly`, equal values are in order.
    """
    entries = None if possible.all() else np.flatnonzero(possible)
    kept = values if entries is None else values[entries]
    bad = kept[1:] <= kept[:-1] if strictly else kept[1:] < kept[:-1]
    for first, last in runs(bad):
        rows = [first, first + 1, last + 1]
        before, first, last = rows if entries is None else entries[rows].tolist()
        yield before, first, last


def run_finding(
    code: str,
    message: str,
    first: int,
    last: int,
    entry_size: int,
    *,
    broker: Broker | None = None,
    remedy: Remedy | None = None,
) -> Finding:
    """Return the finding for the entries `first` to `last`; `message` speaks of the first."""
    more = last - first
    return Finding(
        code,
        message + (f" (and so on up to entry {last})" if more else ""),
        position=first * entry_size,
        length=(more + 1) * entry_size,
        broker_override=broker,
        remedy_override=remedy,
    )
