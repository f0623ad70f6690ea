"""The groups of all partitions of the topic, each in the partition that its hash names.

A coordinator loads and changes a group only in the partition ``abs(hashCode) % count``, so records
of the group in another partition are left over from the time before the topic got more partitions.
The metadata log has the count. Without it the partition of a group is not known: of several
partitions that have the group, the one with the newest record counts. Redpanda has another hash.
Source: ``GroupCoordinatorService.partitionFor`` (Kafka 4.3), ``GroupMetadataManager.partitionFor``
(3.9), ``Utils.abs``.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from logtool.disk import shell
from logtool.findings import Finding
from logtool.formats.java_text import partition_of
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.groups import findings
from logtool.groups.state import DEAD, GroupState
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.log.keys import NONE

_MOST_NAMED = 5
"""Largest number of offsets that a message names."""


@dataclass(frozen=True, slots=True)
class FoundGroup:
    """A group with the partition dir of ``__consumer_offsets`` that holds records of it."""

    state: GroupState
    path: Path


class Placing:
    """Takes the groups partition by partition, and decides which are shown."""

    def __init__(self, count: int | None) -> None:
        """Begin; `count` is the number of partitions of the topic, None if it is not known."""
        self.count = count
        self._read: set[int] = set()
        """Numbers of the partitions that were read."""
        self._at_home: set[str] = set()
        """Groups with records in their own partition."""
        self._elsewhere: list[FoundGroup] = []
        self._undecided: dict[str, list[FoundGroup]] = {}

    def begin(self, number: int) -> None:
        """Begin with the groups of a partition."""
        self._read.add(number)

    def take(self, one: FoundGroup) -> bool:
        """Take a group of a partition; return whether it is shown now, and not in `settled`."""
        name = one.state.name
        if self.count is None:
            self._undecided.setdefault(name, []).append(one)
            return False
        if partition_of(name, self.count) == one.state.offsets_partition:
            self._at_home.add(name)
            return True
        self._elsewhere.append(one)
        return False

    def settled(self) -> Iterator[FoundGroup]:
        """Yield the groups that `take` left undecided, by partition, after the last partition."""
        chosen = []
        for found in self._undecided.values():
            best = max(found, key=lambda one: (one.state.state != DEAD, _newest_ms(one.state)))
            chosen.append(best)
            self._elsewhere += [one for one in found if one is not best]
        yield from sorted(chosen, key=lambda one: (one.state.offsets_partition, one.state.name))

    def not_found(
        self, group: str, doubtful: Collection[tuple[str, int]], until: str = ""
    ) -> Iterator[str]:
        """Yield a text that says where a group would be that was not found.

        Nothing without the number of partitions, and for a glob. `doubtful` are partitions that
        have lost records, and `until` limits the time of the records.
        """
        if self.count is None or any(char in group for char in "*?["):
            return
        home = partition_of(group, self.count)
        text = f"the coordinator of group {shell.quote(group)} reads {CONSUMER_OFFSETS}-{home}"
        if home not in self._read:
            yield f"{text}, which was not read here"
        elif (CONSUMER_OFFSETS, home) in doubtful:
            yield f"{text}, which has lost records: the group may have been there"
        else:
            yield f"{text}, which has no record of it{until}"

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each group in a partition that is not its own."""
        for one in self._elsewhere:
            state = one.state
            if state.state == DEAD:
                continue
            if self.count is None:
                finding = findings.in_two_partitions(state.name, _records_of(state))
            else:
                home = partition_of(state.name, self.count)
                has_none = home in self._read and state.name not in self._at_home
                records = _records_of(state)
                finding = findings.left_over(state.name, records, home, self.count, alone=has_none)
            yield finding.placed(
                one.path, topic=CONSUMER_OFFSETS, partition=state.offsets_partition
            )

    def of_history(self, group: str, listed: Partition, *, has_events: bool) -> Iterator[Finding]:
        """Yield a finding if events of a group come from a partition that is not its own."""
        number = listed.number or 0
        if self.count is None or listed.flavour.has_raft_offsets or not has_events:
            return
        home = partition_of(group, self.count)
        if home != number:
            finding = findings.left_over(group, "records", home, self.count, alone=False)
            yield finding.placed(listed.path, topic=CONSUMER_OFFSETS, partition=number)


def _newest_ms(state: GroupState) -> int:
    """Return the newest time in the records of a group, in ms; -1 without one."""
    times = [one.commit_ms for one in state.offsets] + [one.commit_ms for one in state.pending]
    return max([*times, NONE if state.state_ms is None else state.state_ms])


def _records_of(state: GroupState) -> str:
    """Return the committed offsets of a group as text; the first few of them if it has many."""
    if not state.offsets:
        return "records"
    named = [f"{one.topic}-{one.partition} {one.offset}" for one in state.offsets[:_MOST_NAMED]]
    more = len(state.offsets) - len(named)
    named += [f"{more:,} more"] if more else []
    return f"committed offsets ({', '.join(named)})"
