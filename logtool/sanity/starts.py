"""The kinds of start, each on the indexes of one partition.

Up to 2.2 a broker opened, mapped and checked every index. Since 2.3 (KAFKA-7283) it opens the
offset and time index of the active segment, to append to them, and checks neither; for the other
segments it only looks for the offset index. At every start, before 2.3 and since, it reads and
checks transaction indexes. Source: ``LogSegment.sanityCheck``, ``LazyIndex``,
``LogLoader.loadSegmentFiles``.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.running.workers import Pace
from logtool.sanity.indexes import MAPPED_KINDS, Cost, Item, Opener
from logtool.sanity.measuring import Readers, Stopwatch, TimedStart


@dataclass(frozen=True, slots=True)
class Eager:
    """The start of a broker before 2.3."""

    opener: Opener

    def __call__(self, partition: Partition, cost: Cost) -> list[Item]:
        """Check every index of every segment."""
        items: list[Item] = []
        for segment in partition.segments:
            items += self.opener.check_segment(segment, cost)
        return items


@dataclass(frozen=True, slots=True)
class Lazy:
    """The start of a broker since 2.3."""

    opener: Opener

    def __call__(self, partition: Partition, cost: Cost) -> list[Item]:
        """Check the transaction indexes, and open the indexes of the active segment."""
        items: list[Item] = []
        for segment in partition.segments:
            items += self.opener.check_segment(segment, cost, (FileKind.TRANSACTION_INDEX,))
            if segment.is_active:
                items += self.opener.open_segment(segment, cost)
        return items


def first_access(
    opener: Opener, partitions: Sequence[Partition], count: int, pace: Pace
) -> TimedStart:
    """Check the indexes that a lazy start left unchecked, as the first readers do in turn."""
    wanted = readers(partitions, count)
    cost, items, waits = Cost(), list[Item](), list[float]()
    watch = Stopwatch()
    for one, at in wanted:
        pace.spend(0)
        began = time.perf_counter()
        items += opener.check_segment(one.segments[at], cost, MAPPED_KINDS)
        waits.append(time.perf_counter() - began)
    done = watch.stop()
    done.cost, done.found = cost, items
    done.readers = Readers(len(waits), sum(waits), max(waits)) if waits else None
    return done


def readers(partitions: Sequence[Partition], count: int) -> list[tuple[Partition, int]]:
    """Return the inactive segments that the first `count` readers need: (partition, position).

    They come to each partition in turn and begin with its oldest segment, like consumers that
    read from the start.
    """
    return list(islice(_in_turn(partitions), count))


def _in_turn(partitions: Sequence[Partition]) -> Iterator[tuple[Partition, int]]:
    inactive = ([(one, at) for at in range(len(one.segments) - 1)] for one in partitions)
    for round_of in zip_longest(*inactive):
        yield from (wanted for wanted in round_of if wanted is not None)
