"""Groups and their committed offsets over paths, partition by partition of the topic.

Of several copies of one partition the run takes the copy with the newest leader epoch, and among
those the copy with the largest log end: the others are to become equal to it. If it is damaged,
the run takes an undamaged copy with equal leader epoch and log end instead.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path

from logtool.checks import internal_topics
from logtool.checks.internal_topics import AbsentNumbers
from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Finding
from logtool.formats.names import (
    CONSUMER_OFFSETS,
    SHARE_GROUP_STATE,
    DirectoryKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.groups import ends as group_ends
from logtool.groups import findings, history
from logtool.groups.committed_offset import RETENTION_MS, CommittedOffset, Retention
from logtool.groups.ends import Ends, LogEnds
from logtool.groups.history import GroupEvent
from logtool.groups.loading import LoadedGroups, load
from logtool.groups.membership import SHARE
from logtool.groups.partition_state import LostEnds
from logtool.groups.placing import FoundGroup, Placing
from logtool.groups.share_groups import ShareDelivery, ShareOffset, Shares
from logtool.groups.state import GroupState, judge, with_later
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.keys import NONE
from logtool.log.selection import Selection
from logtool.node.node import Node
from logtool.running.run import Run
from logtool.running.summary import Summary
from logtool.running.workers import OutOfTimeError
from logtool.times import shown

_OLD_NAMESPACE, _OLD = "kafka_internal", "group"


@dataclass(frozen=True, slots=True)
class OffsetsCopy:
    """One copy of a partition of ``__consumer_offsets``."""

    listed: Partition
    extent: LogEnds

    @property
    def rank(self) -> tuple[int, int]:
        """Return the leader epoch and the log end, by which copies of a partition are compared."""
        return self.extent.leader_epoch, self.extent.log_end

    @property
    def leader_epoch(self) -> int | None:
        """Return the leader epoch of its last batch; None where it has none."""
        return None if self.extent.leader_epoch == NONE else self.extent.leader_epoch


@dataclass(frozen=True, slots=True)
class OffsetsPartition:
    """One partition of the topic that was read, and the copies that were not."""

    loaded: LoadedGroups
    others: tuple[OffsetsCopy, ...]


Item = OffsetsPartition | GroupState | GroupEvent | ShareOffset | ShareDelivery | Finding
DOUBTS = frozenset({"group/missing-records", "group/absent-end", "group/unreadable-record"})
"""Findings about a partition whose newest records may be lost."""


@dataclass(slots=True)
class Groups:
    """One run over paths: iterate for each partition of the topic, its groups and its findings.

    The paths are log dirs and partition dirs of ``__consumer_offsets``; for a partition dir, the
    run looks in its log dir for the partitions that offsets are committed for. All paths are of
    one cluster (`node.identity`).
    """

    paths: Sequence[Path]
    now_ms: int
    """Time at which expiry is checked, in ms."""
    groups: Sequence[str] = ()
    """Globs of the selected groups; all groups if empty."""
    selection: Selection = field(default_factory=Selection)
    """Selection of the topics and partitions that offsets are committed for."""
    history_of: str | None = None
    """A group whose events are yielded, and nothing else; None for a normal run."""
    retention_ms: int = RETENTION_MS
    at_ms: int | None = None
    """Moment whose state is yielded, in ms; None for the state at the end of the log."""
    compares_with_end: bool = False
    """True if groups of a moment get the offsets that they have at the end of the log."""
    restores_removed: bool = False
    """True if groups get their removed offsets as offsets to commit again."""
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    absent: int = 0
    """Number of the topic's partitions in the metadata log that no given log dir has; filled."""
    is_listed: bool = True
    """False if no file in the log dirs lists the partitions that should exist; filled."""
    metadata_damage: str | None = None
    """Reason why today's topics are not known; None if they are; filled."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: the names in each directory decide."""
    doubtful: set[TopicPartition] = field(default_factory=set)
    """Partitions that have lost records, maybe the newest of some group; filled."""
    not_found: list[str] = field(default_factory=list)
    """Texts about groups that are selected by name and not found; filled."""
    _found: set[str] = field(default_factory=set)
    """Names of the selected groups that were found."""
    _homes: dict[Path, LogDir] = field(default_factory=dict)
    _nodes: list[Node] = field(default_factory=list)
    """The nodes of the log dirs; empty unless every path is a log dir."""
    _placing: Placing = field(default_factory=lambda: Placing(None))
    _shares: Shares = field(default_factory=Shares)
    _has_shares: bool = False
    _ends_of: LostEnds | None = None

    def __iter__(self) -> Iterator[Item | UnreadableError]:
        for item in self._all():
            if isinstance(item, Finding | UnreadableError):
                self.summary.add(item)
            if isinstance(item, Finding) and item.code in DOUBTS:
                self.doubtful.add((item.topic or "", item.partition or 0))
            yield item

    def _all(self) -> Iterator[Item | UnreadableError]:
        found: dict[int, list[Partition]] = {}
        for path in self.paths:
            try:
                yield from self._open(path, found)
            except UnreadableError as error:
                yield error
        ends = Ends(list(self._homes.values()), self._spend)
        yield from _taken(ends.problems)
        self.metadata_damage = ends.damage
        has_homes = all(path in self._homes for path in self.paths)
        if has_homes:
            self._nodes = internal_topics.kafka_nodes(self._homes.values(), ends.images)
            self.is_listed = not self._nodes or internal_topics.lists_partitions(self._nodes)
        missed = list(self._missed(CONSUMER_OFFSETS, found))
        for one in missed:
            yield one.placed(findings.absent_partitions(one.text, "groups"))
        if has_homes:
            named = {number for one in missed for number in one.numbers}
            self.absent = ends.absent(CONSUMER_OFFSETS, {*found, *named})
        self.run.bytes_total = sum(
            segment.log.size for ones in found.values() for one in ones for segment in one.segments
        )
        self._placing = Placing(ends.partition_count(CONSUMER_OFFSETS, found))
        try:
            for number in sorted(found):
                yield from self._partition(found[number], ends)
        except OutOfTimeError:
            yield from (self._doubted(one.state) for one in self._placing.settled())
            return
        for group in self._placing.settled():
            yield from self._group(group, ends)
        yield from self._placing.findings()
        if not found and not missed and not self.summary.unreadable:
            for path in self.paths:
                yield NothingMatchedError(path, f"holds no partition of {CONSUMER_OFFSETS}")
        wanted = list(self.groups) if self.history_of is None else []
        is_hashed = not any(one.flavour.has_raft_offsets for ones in found.values() for one in ones)
        for name in wanted if self.history_of is None else [self.history_of]:
            if name not in self._found and is_hashed:
                until = "" if self.at_ms is None else f" up to {shown(self.at_ms)}"
                self.not_found += self._placing.not_found(name, self.doubtful, until)
        if found and not self._found and (wanted or self.history_of is not None):
            words = " ".join(f"--group {glob}" for glob in wanted) or f"--history {self.history_of}"
            if self.at_ms is not None:
                words += f" among the records up to {shown(self.at_ms)}"
            words = "; ".join([words, *self.not_found])
            self.not_found = []
            for path in self.paths:
                yield NothingMatchedError(path, f"nothing matched {words}")

    def _missed(self, topic: str, here: Collection[int]) -> list[AbsentNumbers]:
        """Return the partitions of a topic that should be in the log dirs, and are not."""
        return list(internal_topics.absent(self._nodes, topic, here))

    def _open(self, path: Path, found: dict[int, list[Partition]]) -> Iterator[UnreadableError]:
        """Add the partitions of the topic at a path to `found`; yield errors of the others."""
        kind = inputs.kind_of(path, self.flavour, redpanda=True)
        if kind is PathKind.FILE:
            raise UnreadableError(path, "expected a log dir or a partition dir")
        whole = kind is PathKind.LOG_DIR
        try:
            home = opening.open_log_dir(inputs.root_of(path, self.flavour), self.flavour)
        except UnreadableError:
            if whole:
                raise
            home = None
        if home:
            self._homes.setdefault(home.path, home)
        # A partition dir that is given alone has its own flavour: its log dir may hold anything.
        folders, flavour = [path], self.flavour
        if whole and home:
            folders, flavour = list(_partitions_in(home, path, CONSUMER_OFFSETS)), home.flavour
        if home and not folders:
            yield from _of_old(home)
        for folder in folders:
            try:
                listed = opening.open_partition(folder, flavour)
            except UnreadableError as error:
                if folder == path or not files.has_vanished(error):
                    yield error
                continue
            if listed.topic == CONSUMER_OFFSETS and listed.number is not None:
                copies = found.setdefault(listed.number, [])
                if all(one.path != listed.path for one in copies):
                    copies.append(listed)

    def _partition(self, copies: list[Partition], ends: Ends) -> Iterator[Item | UnreadableError]:
        ranked: list[OffsetsCopy] = []
        is_compared = len(copies) > 1 or self.history_of is not None
        for listed in copies:
            try:
                extent = group_ends.measure(listed, 0, lambda _: None) if is_compared else None
                ranked.append(OffsetsCopy(listed, extent or group_ends.unmeasured(listed)))
            except UnreadableError as error:
                yield error
        ranked.sort(key=lambda one: one.rank, reverse=True)
        if not ranked:
            return
        self.summary.partitions += 1
        if self.history_of is not None:
            self._placing.begin(ranked[0].listed.number or 0)
            yield from self._history(ranked, self.history_of, ends)
            yield from self._lost(ranked, ranked[0].listed, ranked[0].extent.log_end)
            return
        loaded = None
        for copy in ranked:
            if loaded and (copy.rank < ranked[0].rank or not loaded.damage):
                break
            self.run.path = copy.listed.path
            try:
                read = load(copy.listed, self._spend, at_ms=self.at_ms)
            except UnreadableError as error:
                yield error
                continue
            if loaded is None or not read.damage:
                loaded = read
        if loaded is None:
            return
        self._count(loaded)
        others = tuple(one for one in ranked if one.listed.path != loaded.listed.path)
        yield OffsetsPartition(loaded, others)
        yield from findings.of_loaded(loaded, clean=self._is_clean(loaded.listed))
        if loaded.cut_at is None:
            yield from self._lost(ranked, loaded.listed, loaded.end_offset)
        elif loaded.missing:
            finding = findings.compacted(loaded.cut_at, loaded.missing)
            listed = loaded.listed
            yield finding.placed(listed.path, topic=listed.topic, partition=listed.number)
        retention = Retention(self.retention_ms, self.now_ms)
        is_hashed = not loaded.listed.flavour.has_raft_offsets
        self._placing.begin(loaded.number)
        states = judge(
            loaded, ends, self._takes_group, self._takes, retention,
            restores_removed=self.restores_removed,
        )  # fmt: skip
        if self.compares_with_end and loaded.cut_at is not None:
            try:
                at_end = load(loaded.listed, self._spend)
            except UnreadableError as error:
                yield error
                return
            now = judge(at_end, ends, self._takes_group, self._takes, retention)
            states = with_later(states, now)
        for state in states:
            self._found.add(state.name)
            one = FoundGroup(state, loaded.listed.path)
            if not is_hashed or self._placing.take(one):
                yield from self._group(one, ends)

    def _group(self, found: FoundGroup, ends: Ends) -> Iterator[Item | UnreadableError]:
        """Yield a group, and the findings about its offsets."""
        state = found.state
        if state.type == SHARE:
            yield from self._read_shares()
            shares = self._shares.of_group(state.name, ends, self._takes)
            initialized = state.membership.shares if state.membership else ()
            lacking = self._shares.lacking(state.name, initialized, ends, self._takes)
            state = replace(state, shares=shares, lacking=lacking)
        state = self._doubted(state)
        yield state
        ones: list[ShareOffset | CommittedOffset] = [*state.shares, *state.offsets]
        for one in ones:
            for finding in one.findings():
                where = one.extent.path if one.extent else found.path
                yield finding.placed(where, topic=one.topic, partition=one.partition)
        for name in state.lacking:
            yield findings.lacking_start(state.name, name).placed(found.path)
        yield from _taken(ends.problems)

    def _doubted(self, state: GroupState) -> GroupState:
        """Return a group with its offsets and shares marked whose newest record may be lost."""
        shares: Sequence[ShareOffset] = [
            replace(one, in_doubt=(SHARE_GROUP_STATE, one.state.stored_in) in self.doubtful)
            for one in state.shares
        ]
        if (CONSUMER_OFFSETS, state.offsets_partition) not in self.doubtful:
            return replace(state, shares=shares) if shares else state
        offsets = [replace(one, in_doubt=True) for one in state.offsets]
        return replace(state, in_doubt=True, offsets=offsets, shares=shares)

    def _history(
        self, ranked: list[OffsetsCopy], group: str, ends: Ends
    ) -> Iterator[Item | UnreadableError]:
        """Yield the events of a group; of equal copies an undamaged one is read.

        The states of a share group follow: where delivery goes on, and the last state of its
        records.
        """
        equal = [one for one in ranked if one.rank == ranked[0].rank]
        for copy in equal:
            self.run.path = copy.listed.path
            items: Iterable[GroupEvent | Finding] = history.of_group(
                copy.listed, group, self._spend, clean=self._is_clean(copy.listed)
            )
            if copy is not equal[-1]:
                items = list(items)
                if any(isinstance(one, Finding) for one in items):
                    continue
            has_events = is_share = False
            for item in items:
                if isinstance(item, GroupEvent):
                    has_events = True
                    is_share |= item.what.startswith("ShareGroup")
                yield item
            if has_events:
                self._found.add(group)
            yield from self._placing.of_history(group, copy.listed, has_events=has_events)
            if is_share:
                yield from self._deliveries(group, ends)
            return

    def _deliveries(self, group: str, ends: Ends) -> Iterator[Item | UnreadableError]:
        """Yield the partitions of a share group, each with the states of its records."""
        yield from self._read_shares()
        for share in self._shares.of_group(group, ends, self._takes):
            is_doubtful = (SHARE_GROUP_STATE, share.state.stored_in) in self.doubtful
            yield replace(share, in_doubt=is_doubtful)
            yield from share.deliveries()
        yield from _taken(ends.problems)

    def _lost(
        self, copies: list[OffsetsCopy], chosen: Partition, end: int
    ) -> Iterator[Item | UnreadableError]:
        """Yield findings about the lost end of a partition; `chosen` is the copy that was read."""
        if self._ends_of is None:
            self._ends_of = LostEnds(self._homes, self._nodes)
        yield from self._ends_of.of([one.listed for one in copies], chosen, end)

    def _is_clean(self, listed: Partition) -> bool:
        """Return whether the log dir of a partition was stopped in order."""
        home = self._homes.get(listed.path.parent)
        return home is not None and home.is_clean

    def _read_shares(self) -> Iterator[Item | UnreadableError]:
        """Read the states of share groups, on the first call, from the furthest copies."""
        if self._has_shares:
            return
        self._has_shares = True
        self._shares = Shares(self.at_ms, keeps_settled=self.history_of is not None)
        found: dict[int, list[OffsetsCopy]] = {}
        for home in self._homes.values():
            for folder in _partitions_in(home, home.path, SHARE_GROUP_STATE):
                try:
                    listed = opening.open_partition(folder, home.flavour)
                    extent = group_ends.measure(listed, 0, lambda _: None)
                    found.setdefault(listed.number or 0, []).append(OffsetsCopy(listed, extent))
                except UnreadableError as error:
                    yield error
        for one in self._missed(SHARE_GROUP_STATE, found):
            stored = "start offsets of share groups"
            yield one.placed(findings.absent_partitions(one.text, stored))
        for _, copies in sorted(found.items()):
            best = max(copies, key=lambda one: one.rank)
            is_over = False
            try:
                is_over = yield from self._shares.read(best.listed, self._spend)
            except UnreadableError as error:
                yield error
            if not is_over:
                yield from self._lost(copies, best.listed, best.extent.log_end)

    def _takes_group(self, name: str) -> bool:
        return not self.groups or any(fnmatchcase(name, glob) for glob in self.groups)

    def _takes(self, topic: str, number: int) -> bool:
        if self.selection == Selection():
            return True
        directory = PartitionDirectory(
            name=f"{topic}-{number}",
            kind=DirectoryKind.LIVE,
            topic=topic,
            partition=number,
            unique_id=None,
            exact=True,
        )
        return self.selection.takes(directory)

    def _count(self, loaded: LoadedGroups) -> None:
        summary = self.summary
        summary.segments += len(loaded.listed.segments)
        summary.batches += loaded.batches
        summary.records += loaded.records
        summary.bytes += loaded.bytes

    def _spend(self, size: int) -> None:
        self.run.advance(size)
        self.run.budget.pace.spend(size)


def _partitions_in(home: LogDir, path: Path, topic: str) -> Iterator[Path]:
    """Yield the partitions of a topic in a log dir that lie below `path`."""
    for folder, directory in home.latest:
        is_meant = path == home.path or path.absolute() in folder.absolute().parents
        is_named = directory.topic == topic or directory.unlisted
        if is_named and directory.kind is DirectoryKind.LIVE and is_meant:
            yield folder


def _of_old(home: LogDir) -> Iterator[UnreadableError]:
    """Yield an error for each partition that has groups as before ``__consumer_offsets``."""
    for folder, directory in home.partitions:
        if directory.topic == _OLD and folder.absolute().parent.parent.name == _OLD_NAMESPACE:
            text = "holds groups in the format that Redpanda used before __consumer_offsets; "
            yield UnreadableError(folder, f"{text}logtool does not read this format")


def _taken(problems: list[UnreadableError]) -> Iterator[UnreadableError]:
    """Yield the errors of a list, and empty it."""
    while problems:
        yield problems.pop(0)
