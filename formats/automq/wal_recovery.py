"""The order in which AutoMQ recovers the objects of a WAL, and where it stops.

1. The objects are sorted by epoch and start offset. The first one is left out if it ends beyond the
   start of an object of another epoch.
2. The trim offset is that of the header of the newest object. Objects that end at or below it are
   left out, and records at or below it, and padding.
3. The objects are taken as long as each begins where the one before it ends. At a gap all objects
   behind it are dropped, and only a line of the log says so.
4. A header or record that is not sound ends the start of the node with an exception.

Source: ``ObjectUtils.parse``, ``ObjectUtils.skipOverlapObjects``, ``RecoverIterator``
(AutoMQ f1ce98ec8981, 2026-08-21).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from logtool.formats.automq import wal_object
from logtool.formats.automq.names import ObjectName
from logtool.formats.automq.stream_record import Fault
from logtool.formats.automq.wal_object import NO_TRIM, WalRecords
from logtool.lazy_dataclass import dataclass

_OLD_HEADER = wal_object.HEADERS[wal_object.OLD_MAGIC].size


@dataclass(frozen=True, slots=True)
class WalOrder:
    """The objects of a WAL by what recovery does with them."""

    taken: tuple[ObjectName, ...] = ()
    """Objects whose records come back, in order."""
    trimmed: tuple[ObjectName, ...] = ()
    """Objects whose records are all in objects of streams."""
    overlapping: tuple[ObjectName, ...] = ()
    """An object of an older epoch that a fenced node wrote late."""
    behind_gap: tuple[ObjectName, ...] = ()
    """Objects behind a gap: their records are lost without an error."""
    trim_offset: int = NO_TRIM
    fault: Fault | None = None
    """The reason why the header of the newest object cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class WalPart:
    """The records that one object gives back."""

    name: ObjectName
    records: WalRecords
    """Records of the object up to a fault."""
    kept: tuple[int, ...]
    """Rows of the records above the trim offset that are not padding."""


def order(
    objects: Sequence[tuple[ObjectName, int]], newest: Callable[[ObjectName], bytes]
) -> WalOrder:
    """Sort the objects of one node, given by names and sizes in bytes, as recovery does.

    `newest` reads the first 48 bytes of an object, or all of it.
    """
    ranked = sorted(
        (_ended(name, size) for name, size in objects),
        key=lambda one: (one.epoch or 0, one.start_offset or 0),
    )
    overlapping: tuple[ObjectName, ...] = ()
    if ranked and any(
        one.epoch != ranked[0].epoch and _end(ranked[0]) > _start(one) for one in ranked[1:]
    ):
        overlapping = (ranked.pop(0),)
    if not ranked:
        return WalOrder(overlapping=overlapping)
    header = wal_object.parse(newest(ranked[-1])).header
    if header is None:
        fault = Fault(0, f"expected the header of a WAL object in {ranked[-1].key}")
        return WalOrder(overlapping=overlapping, taken=tuple(ranked), fault=fault)
    trim = NO_TRIM if header.trim_offset is None else header.trim_offset
    first = next((n for n, one in enumerate(ranked) if _end(one) > trim), len(ranked))
    stop = first + 1
    while stop < len(ranked) and _start(ranked[stop]) == _end(ranked[stop - 1]):
        stop += 1
    return WalOrder(
        tuple(ranked[first:stop]), tuple(ranked[:first]), overlapping, tuple(ranked[stop:]), trim
    )


def recover(found: WalOrder, read: Callable[[ObjectName], bytes]) -> Iterator[WalPart]:
    """Yield the records of each object that is taken, up to the first fault."""
    if found.fault:
        return
    for name in found.taken:
        parsed = wal_object.parse(read(name))
        if parsed.header is None:
            empty = wal_object.records(replace(parsed, content=b""))
            fault = Fault(0, f"expected the header of a WAL object in {name.key}")
            yield WalPart(name, replace(empty, fault=fault), ())
            return
        records = wal_object.records(parsed)
        kept = np.flatnonzero((records.offset > found.trim_offset) & ~records.is_padding)
        yield WalPart(name, records, tuple(kept.tolist()))
        if records.fault:
            return


def _ended(name: ObjectName, size: int) -> ObjectName:
    """Return a name with the end offset, which a key of the older form does not have."""
    if name.end_offset is not None:
        return name
    return replace(name, end_offset=_start(name) + size - _OLD_HEADER)


def _start(name: ObjectName) -> int:
    return name.start_offset or 0


def _end(name: ObjectName) -> int:
    return name.end_offset or 0
