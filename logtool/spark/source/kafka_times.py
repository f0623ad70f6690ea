"""The offset at which a time begins in a partition, as a broker finds it."""

from collections.abc import Callable
from dataclasses import replace

from logtool.errors import UsageError
from logtool.log.dir import Partition
from logtool.spark.source.kafka_options import STRATEGY
from logtool.spark.source.wanted import LATEST, RowFilter, offset_of

FirstAt = Callable[[Partition, int], int | None]
"""Function that returns the offset of the first record that is not older than a time, in ms."""


def by_offset(wanted: RowFilter, found: Partition, first_at: FirstAt) -> RowFilter:
    """Return the filter of a partition with offsets in place of times.

    UsageError if no record is as late as the starting time, unless the options allow it.
    """
    times = wanted.times
    if times is None:
        return wanted
    start, end = starting_offset(wanted, found, first_at), None
    if times.end is not None:
        option = "endingOffsetsByTimestamp"
        end = first_at(found, offset_of(option, times.end, found.topic, found.number))
        end = LATEST if end is None else end
    return replace(
        wanted,
        starting_offsets=wanted.starting_offsets if start is None else start,
        ending_offsets=wanted.ending_offsets if end is None else end,
        times=None,
    )


def starting_offset(wanted: RowFilter, found: Partition, first_at: FirstAt) -> int | None:
    """Return the offset at which the starting time begins; None without such a time.

    UsageError as for `by_offset`.
    """
    times = wanted.times
    if times is None or times.start is None:
        return None
    stamp = offset_of("startingOffsetsByTimestamp", times.start, found.topic, found.number)
    offset = first_at(found, stamp)
    if offset is None and not times.late_is_latest:
        raise UsageError(
            f"{found.path} has no record from the time {stamp} on; to read no rows of such "
            f"partitions, set the option {STRATEGY}=latest"
        )
    return LATEST if offset is None else offset
