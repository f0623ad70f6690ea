"""Delivery states of the records of one partition in a share group, range by range.

Of two states of one record the one with the larger delivery count holds, and with equal counts the
one with the larger number. A snapshot replaces the states. Offsets below the start offset have no
state any more: their delivery is complete, and a history keeps the last state of each. Source:
``PersisterStateBatchCombiner`` (Kafka 4.3).
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
STATES = {
    AVAILABLE: "available", 1: "acquired", ACKNOWLEDGED: "acknowledged", 3: "archiving",
    ARCHIVED: "archived",
}  # fmt: skip
_COMPLETE = frozenset({ACKNOWLEDGED, ARCHIVED})


class Delivery(NamedTuple):
    """Records of one partition with the same delivery state."""

    first: int
    last: int
    state: int
    """Number of the state in `STATES`."""
    times: int
    """Number of times the records were delivered."""
    record_offset: int
    """Offset of the newest record in the partition of ``__share_group_state`` that says so."""

    @property
    def is_complete(self) -> bool:
        """Return True if the records are not delivered again."""
        return self.state in _COMPLETE

    def within(self, first: int, last: int) -> Self:
        """Return the part from `first` to `last`."""
        return self._replace(first=max(first, self.first), last=min(last, self.last))


def from_batches(batches: Iterable[Mapping[str, Any]], record_offset: int) -> list[Delivery]:
    """Return the states that a record gives; batches without any offset are left out."""
    found = [
        Delivery(one["firstOffset"], one["lastOffset"], one["deliveryState"],
                 one["deliveryCount"], record_offset)
        for one in batches
    ]  # fmt: skip
    return [one for one in found if one.first <= one.last]


def combined(states: Iterable[Delivery], new: Iterable[Delivery]) -> list[Delivery]:
    """Return the states after an update, in order and without overlap."""
    ranges = sorted(states)
    for one in new:
        ranges = _with(ranges, one)
    return ranges


def _with(states: list[Delivery], new: Delivery) -> list[Delivery]:
    """Return states in order, and one more: in an overlap the one with the higher rank holds."""
    found, at = [], new.first
    for one in states:
        if one.last < new.first or one.first > new.last:
            found.append(one)
            continue
        if at < one.first:
            found.append(new.within(at, one.first - 1))
        wins = (new.times, new.state) >= (one.times, one.state)
        if not wins:
            found.append(one)
        else:
            if one.first < new.first:
                found.append(one.within(one.first, new.first - 1))
            found.append(new.within(one.first, one.last))
            if one.last > new.last:
                found.append(one.within(new.last + 1, one.last))
        at = one.last + 1
    if at <= new.last:
        found.append(new.within(at, new.last))
    return sorted(found)


def split(states: Iterable[Delivery], start: int) -> tuple[list[Delivery], list[Delivery]]:
    """Return the states below the start offset, and those from it on."""
    below = [one.within(one.first, start - 1) for one in states if one.first < start]
    return below, [one.within(start, one.last) for one in states if one.last >= start]


def joined(states: Iterable[Delivery]) -> list[Delivery]:
    """Return states in order, with those joined that are equal and follow each other."""
    found: list[Delivery] = []
    for one in states:
        last = found[-1] if found else None
        if last and last.last + 1 == one.first and last[2:4] == one[2:4]:
            newest = max(last.record_offset, one.record_offset)
            found[-1] = last._replace(last=one.last, record_offset=newest)
        else:
            found.append(one)
    return found


def next_offset(states: Iterable[Delivery], start: int) -> int:
    """Return the first offset from the start offset on whose delivery is not complete."""
    at = start
    for one in states:
        if one.first > at or (one.last >= at and not one.is_complete):
            break
        at = max(at, one.last + 1)
    return at


def count(states: Iterable[Delivery], state: int) -> int:
    """Return how many records have a state."""
    return sum(one.last - one.first + 1 for one in states if one.state == state)
