"""One run of ``logtool cluster``: volumes, controllers, partitions, and the steps of the start."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path

from logtool.actions import GRAVE, Action
from logtool.checks.broker_dirs import BrokerDirs
from logtool.cluster.controllers import Controllers, elect
from logtool.cluster.offsets import AheadOffset, ahead
from logtool.cluster.order import Step
from logtool.cluster.partitions import (
    OtherTopic,
    PartitionOutlook,
    other_topics,
    outlook,
    without_copy,
)
from logtool.cluster.steps import steps
from logtool.cluster.unnamed import Unseen, named
from logtool.cluster.volumes import Volume, Volumes
from logtool.disk import files, shell
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import CONSUMER_OFFSETS
from logtool.lazy_dataclass import dataclass
from logtool.log.inputs import NodeDir
from logtool.log.selection import Selection
from logtool.metadata.image import MetadataImage
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.verdict import judge
from logtool.quorum.voters import Voter
from logtool.running.run import Run
from logtool.running.summary import ActionSummary
from logtool.startup.fill_plan import plan_fill
from logtool.startup.forecast import Forecast
from logtool.startup.log_dir_start import LogDirStart
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import ReplicaGroup, shown_end
from logtool.watermark.run import Watermarks


@dataclass(frozen=True, slots=True)
class NodeAction:
    """An action of the start of one node on a log dir as a whole, as `plan` shows it."""

    node: int | None
    action: Action


@dataclass(frozen=True, slots=True)
class ClusterVerdict:
    """The outcome for the cluster as a whole."""

    start: str
    """``start``: in any order; ``in-order``: as the steps say; ``do-not-start``: the steps come
    first that mend volumes, nodes or controllers."""
    first_ms: int | None
    """Time of the oldest volume, by the last record of its metadata log; None if not known."""
    last_ms: int | None
    """Time of the newest volume."""
    partitions: int
    losing: int
    """Partitions in which controllers may elect a leader that loses acknowledged records."""
    may_lose: int
    """Further partitions in which such a leader may lose acknowledged records."""
    without_leader: int
    """Partitions that have, or may have, no leader without a person."""
    without_copy: int
    strays: int
    """Directories that become strays."""
    ahead_offsets: int
    """Committed offsets that are ahead of a leader that may be elected."""
    repairs: int = 0
    """Replicas, damaged or without their end, that another volume can fill before the start."""
    unread_bytes: int = 0
    """Bytes of logs below the recovery points, in which damage is not seen."""
    unread: tuple[Path, ...] = ()
    """The log dirs with these logs."""
    deleted: int = 0
    """Directories that end in -delete, which the brokers delete after the start."""
    with_deleted: tuple[Path, ...] = ()
    """The log dirs with these directories."""

    @property
    def undelete(self) -> str | None:
        """Return the command that saves these directories; None without any."""
        paths = map(str, self.with_deleted)
        return (
            shell.join(["logtool", "undelete", "--output", "back", *paths])
            if self.deleted
            else None
        )

    @property
    def verify(self) -> str | None:
        """Return the command that reads these logs; None without any."""
        return shell.join(["logtool", "verify", *map(str, self.unread)]) if self.unread else None

    @property
    def spread_ms(self) -> int | None:
        """Return the time between the oldest and the newest volume, in ms."""
        if self.first_ms is None or self.last_ms is None:
            return None
        return self.last_ms - self.first_ms

    @property
    def is_calm(self) -> bool:
        """Return whether the start loses and refuses nothing, and each partition gets a leader.

        No directory becomes a stray, no committed offset is ahead of its log, and no replica is to
        be filled from another one.
        """
        partitions = self.losing + self.may_lose + self.without_leader + self.without_copy
        problems = partitions + self.strays + self.ahead_offsets + self.repairs
        return self.start != "do-not-start" and not problems


_FIRST = ("refuse", "discard")
"""Actions that somebody has to prevent before the start."""
Found = (
    Volume | Controllers | NodeAction | PartitionOutlook | OtherTopic | AheadOffset | Finding | Step
)
Item = Found | ClusterVerdict | UnreadableError


@dataclass(slots=True)
class ClusterRun:
    """One run: iterate over the volumes, the controllers, the partitions, and the steps."""

    places: Sequence[NodeDir]
    settings: StartOptions
    selection: Selection = field(default_factory=Selection)
    run: Run = field(default_factory=Run)
    configured: tuple[Voter, ...] | None = None
    """The voters of a static quorum, from the configuration; None if not given."""
    controller: int | None = None
    """Node that is taken to win the election of a controller; None: that with the longest log."""
    summary: ActionSummary = field(default_factory=ActionSummary)

    def __iter__(self) -> Iterator[Item]:
        reported: set[str] = set()
        for item in self._all():
            if isinstance(item, UnreadableError):
                if str(item) in reported:
                    continue  # several engines read the same file
                reported.add(str(item))
            if isinstance(item, Finding | UnreadableError):
                self.summary.add(item)
            yield item

    def _all(self) -> Iterator[Item]:
        given = Volumes()
        yield from given.open(self.places)
        if not given.given:
            return
        controllers = yield from self._controllers(given)
        image = controllers.image if controllers else None
        known = [*given.with_metadata_log]
        given.given = named(given.given, image, controllers.voters if controllers else ())
        if given.with_metadata_log != known:  # It is now known of which node one of them is.
            controllers = yield from self._controllers(given)
            image = controllers.image if controllers else None
        nodes = given.nodes(image, self.settings.kafka)
        voters = controllers.quorum.voters or () if controllers else ()
        may_win = controllers.may_win if controllers else ()
        volumes = list(given.report(nodes, image, voters, may_win))
        # Without a metadata log the volume of a controller is missing.
        unused = [one for one in given.given if one.others and one.others[0] == "unidentified"]
        self.summary.missing = sum(one.status == "absent" for one in volumes) + len(unused)
        self.summary.missing += controllers is None
        yield from volumes
        if controllers:
            yield controllers
        starts = yield from self._starts(nodes)
        notes = [
            NodeAction(start.node_id, note)
            for start in starts
            for note in start.notes
            if note.action in GRAVE
        ]
        notes += self._cut_moves(nodes)
        yield from notes
        homes = {one.log_dir.path: one for one in starts if not one.is_offline}
        unread: dict[Path, int] = {}
        unseen = Unseen.of(given.given, volumes)
        partitions = yield from self._partitions(homes, image, given.spares, unread, unseen)
        offsets = yield from self._offsets(homes, partitions, volumes)
        refusals = [(one.node, one.action) for one in notes if one.action.action in _FIRST]
        verdict = replace(
            _verdict(volumes, controllers, bool(refusals), partitions, offsets),
            unread_bytes=sum(unread.values()),
            unread=tuple(path for path in homes if unread.get(path)),
            deleted=len(given.deleted),
            with_deleted=tuple(dict.fromkeys(path.parent for path in given.deleted)),
        )
        yield from steps(volumes, controllers, refusals, partitions, verdict.verify)
        self.summary.to_do |= not verdict.is_calm
        self.summary.to_do |= any(one.status == "empty" for one in volumes)
        yield verdict

    def _controllers(self, given: Volumes) -> Generator[Item, None, Controllers | None]:
        """Return the outcome of the election of a controller; None without a metadata log."""
        copies = []
        for item in read(given.with_metadata_log, self.run.restarted()):
            if isinstance(item, MetadataCopy):
                copies.append(item)
            else:
                yield item
        return elect(judge(copies, self.configured), self.controller) if copies else None

    def _starts(self, nodes: Sequence[Node]) -> Generator[Item, None, list[LogDirStart]]:
        """Return the start of each log dir."""
        starts = []
        for node in nodes:
            broker = BrokerDirs(node)
            for one in node.log_dirs:
                try:
                    starts.append(LogDirStart(one.root, self.settings, broker))
                except UnreadableError as error:
                    yield error
        return starts

    def _cut_moves(self, nodes: Sequence[Node]) -> Iterator[NodeAction]:
        """Yield the copies for a move between log dirs that the start cuts, with their records."""
        for node in nodes:
            moves = [one for one in BrokerDirs(node).future_replicas if one.live]
            if not moves:
                continue
            job = Forecast(
                [one.path for one in node.log_dirs],
                self.settings,
                selection=Selection(keys=frozenset(one.key for one in moves)),
                run=self.run.restarted(),
            )
            for item in job:
                if isinstance(item, Action) and item.action == "discard":
                    yield NodeAction(node.node_id, item)

    def _partitions(
        self,
        homes: dict[Path, LogDirStart],
        image: MetadataImage | None,
        spares: Sequence[NodeDir],
        unread: dict[Path, int],
        unseen: Unseen,
    ) -> Generator[Item, None, list[PartitionOutlook]]:
        """Yield and return the outlook of each partition; yield findings and other topics.

        Copies in `spares` may fill damaged replicas. Bytes of logs that the start does not read
        are added to `unread`, by log dir. `unseen` may hold longer copies.
        """
        job = Watermarks(
            [NodeDir(path, home.node_id) for path, home in homes.items()],
            self.settings,
            selection=self.selection,
            run=self.run.restarted(),
            homes=homes,
        )
        found: list[PartitionOutlook] = []
        seen: set[tuple[str, int]] = set()
        ids: dict[tuple[str, str], set[int]] = {}
        waiting: list[Replica] = []
        for item in chain(job, (None,)):
            is_next = isinstance(item, Replica | ReplicaGroup) and _is_other(item, waiting)
            if waiting and (item is None or is_next):  # no broker comes up with one of its replicas
                found.append(unseen.marked(outlook(waiting, None, image), image))
                yield found[-1]
                waiting = []
            if isinstance(item, ReplicaGroup):
                seen.add((item.topic, item.partition))
                members = waiting or item.replicas
                one = self._grouped(members, item, image, spares)
                found.append(unseen.marked(one, image))
                yield found[-1]
                waiting = []
            elif isinstance(item, Replica):
                seen.add((item.topic, item.partition))
                waiting.append(item)
                home = item.path.parent
                unread[home] = unread.get(home, 0) + item.unread_bytes
                if item.topic_id and item.node is not None:
                    ids.setdefault((item.topic, item.topic_id), set()).add(item.node)
            elif isinstance(item, Finding | UnreadableError):
                yield item
        self.summary.partitions = job.summary.partitions
        self.summary.bytes = job.summary.bytes
        self.summary.partition_list = job.summary.partition_list
        if image is None or image.damage:
            return found
        for one in without_copy(image, seen, self.selection):
            found.append(one)
            yield one
        yield from other_topics(ids, image)
        return found

    def _grouped(
        self,
        members: Sequence[Replica],
        group: ReplicaGroup,
        image: MetadataImage | None,
        spares: Sequence[NodeDir],
    ) -> PartitionOutlook:
        """Return the outlook of a partition, with the repairs that `recover` would make."""
        found = outlook(members, group, image, self._spares(members, spares))
        plans = {one.path: plan_fill(one.path, [one.source]) for one in found.repairs}
        proven = [one for one in found.repairs if (plan := plans[one.path]) and plan.command]
        return replace(found, repairs=tuple(proven))

    def _spares(
        self, replicas: Sequence[Replica], spares: Sequence[NodeDir]
    ) -> tuple[Replica, ...]:
        """Return the copies of a partition to fill in volumes that take no part in the start."""
        lost = (
            one.lost_records or one.missing_below(one.log_end) or shown_end(one) > one.log_end
            for one in replicas
        )  # fmt: skip
        if not any(lost):
            return ()
        name = f"{replicas[0].topic}-{replicas[0].partition}"
        found: list[Replica] = []
        for place in (NodeDir(one.path / name, one.node) for one in spares):
            if files.has_dir(place.path):
                job = Watermarks([place], self.settings, run=self.run.restarted())
                found += [replace(one, path=place.path) for one in job if isinstance(one, Replica)]
        return tuple(found)

    def _offsets(
        self,
        homes: dict[Path, LogDirStart],
        partitions: Sequence[PartitionOutlook],
        volumes: Sequence[Volume],
    ) -> Generator[Item, None, int]:
        """Yield the committed offsets that are ahead of a leader; return their number."""
        count = 0
        paths = [
            path
            for path, home in homes.items()
            if any(one.topic == CONSUMER_OFFSETS for _, one in home.log_dir.partitions)
        ]
        if not paths:
            return count
        by_name = {(one.topic, one.partition): one for one in partitions}
        now_ms = max((one.metadata_ms or 0 for one in volumes), default=0)
        for item in ahead(paths, by_name, self.selection, self.run.restarted(), now_ms):
            count += isinstance(item, AheadOffset)
            yield item
        return count


def _is_other(replica: Replica | ReplicaGroup, waiting: Sequence[Replica]) -> bool:
    """Return whether an item is of another partition than the replicas that wait for a group."""
    return bool(waiting) and (replica.topic, replica.partition) != (
        waiting[0].topic,
        waiting[0].partition,
    )


def _verdict(
    volumes: Sequence[Volume],
    controllers: Controllers | None,
    refuses: bool,
    partitions: Sequence[PartitionOutlook],
    offsets: int,
) -> ClusterVerdict:
    times = [one.metadata_ms for one in volumes if one.metadata_ms is not None]
    statuses = [one.status for one in partitions]
    wrong = any(one.is_wrong for one in volumes) or refuses
    stopped = wrong or controllers is None or not controllers.has_majority
    ordered = any(one.is_disputed or one.repairs for one in partitions)
    ordered |= controllers is not None and not controllers.is_sure
    ordered |= any(one.status == "empty" for one in volumes)
    return ClusterVerdict(
        start="do-not-start" if stopped else "in-order" if ordered else "start",
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        partitions=len(partitions),
        losing=statuses.count("loses"),
        may_lose=statuses.count("may-lose"),
        without_leader=sum(
            bool(one.leaders) and (not one.elected or one.may_be_leaderless) for one in partitions
        ),
        without_copy=statuses.count("no-copy"),
        strays=sum(len(one.strays) for one in partitions),
        ahead_offsets=offsets,
        repairs=sum(len(one.repairs) for one in partitions),
    )
