"""The log dirs of one broker, taken together as its start takes them.

A broker reads `meta.properties` of all its log dirs before it opens a log, and loads the partitions
of all of them into one table. So what one log dir does to a start is known only beside the others:
a file that stops a broker with one log dir takes one of several offline. Both `plan` and `verify`
ask here. Source: ``MetaPropertiesEnsemble``, ``KafkaRaftServer.initializeLogDirs``,
``LogManager.loadLog`` and ``recoverAbandonedFutureLogs`` (Kafka 3.7 to 4.3);
``BrokerMetadataCheckpoint`` (before 3.7, where every difference between the files is fatal).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from logtool.checks.identity import Effect, Member, differences, faults, topic_id_of
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Broker, Finding
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    FileKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import OF_TODAY
from logtool.metadata import image as metadata_image
from logtool.metadata import releases
from logtool.metadata.image import MetadataImage

WITH_STRAYS = (3, 6)
"""The first release that knows names that end in ``-stray``."""
WITH_DIRECTORY_IDS = (3, 7)
"""The first release that reads directory ids, and starts without a log dir it cannot identify."""
NO_LOG_DIRS = frozenset({"AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ",
                          "AAAAAAAAAAAAAAAAAAAAAg"})  # fmt: skip
"""What an assignment says where the log dir is not known (``DirectoryId``): migrating, unassigned,
lost."""
_META = FileKind.META_PROPERTIES.value


@dataclass(frozen=True, slots=True)
class Verdict:
    """A finding, and what it does to a start of the broker."""

    finding: Finding
    effect: Effect
    log_dir: Path


@dataclass(frozen=True, slots=True)
class Future:
    """A copy of a partition on its way to another log dir of the broker."""

    key: TopicPartition
    path: Path
    live: Path | None
    """The copy that it is made of."""
    assigned: bool
    """Whether the metadata log assigns the partition to this log dir already. Then the copy becomes
    the partition as soon as all logs are loaded, and the live one is deleted."""

    @property
    def is_blocked(self) -> bool:
        """Return whether the name that it is to get is taken."""
        return self.live is not None and self.live.parent == self.path.parent


def brokers(
    members: Sequence[Member], kafka: tuple[int, int], static: Mapping[str, str] | None = None
) -> list["Ensemble"]:
    """Divide log dirs that may be several brokers'.

    Each broker has one metadata log, so other node ids beside a metadata log of their own are
    another broker's. A log dir with neither belongs to the only broker there is.
    """
    groups: dict[str | None, list[Member]] = {}
    for member in members:
        groups.setdefault(member.node, []).append(member)
    whole = [any(member.has_metadata_log for member in group) for group in groups.values()]
    if sum(whole) <= 1 and not (len(groups) > 1 and not any(whole)):
        return [Ensemble(members, kafka, static)] if members else []
    return [Ensemble(group, kafka, static) for group in groups.values()]


class Ensemble:
    """The log dirs of one broker: what their start knows before, and what it does to them."""

    def __init__(
        self,
        members: Sequence[Member],
        kafka: tuple[int, int] | None,
        static: Mapping[str, str] | None = None,
    ) -> None:
        """Without a release of `kafka` it is that which the log dirs show.

        `static` is what the broker's own file sets.
        """
        self.members = tuple(members)
        self.static = static or {}
        self._given = kafka
        self.unread: UnreadableError | None = None
        """Why the metadata log could not be opened, after `image`."""

    @cached_property
    def metadata_log(self) -> Member | None:
        """Return the log dir with the metadata log: the fuller one, where there are two."""
        holders = [member for member in self.members if member.has_metadata_log]
        if len(holders) < 2:
            return holders[0] if holders else None
        return max(
            holders, key=lambda member: len(files.list_dir(member.path / metadata_image.DIRECTORY))
        )

    @cached_property
    def image(self) -> MetadataImage | None:
        """Return what the metadata log says; None where there is none or it cannot be opened."""
        if self.metadata_log is None:
            return None
        try:
            image = metadata_image.read(self.metadata_log.path / metadata_image.DIRECTORY)
        except UnreadableError as error:
            self.unread = error
            return None
        image.static = self.static
        return image

    @cached_property
    def node_id(self) -> int | None:
        """Return the broker's id: what stands beside the metadata log, else anywhere."""
        first = [self.metadata_log] if self.metadata_log else []
        for member in (*first, *self.members):
            if member.node_id is not None:
                return member.node_id
        return None

    @cached_property
    def shown(self) -> tuple[int, int] | None:
        """Return the release of the broker that registered last; None where nothing tells it."""
        if not self.image or self.node_id is None:
            return None
        level = self.image.metadata_version_of(self.node_id)
        return None if level is None else releases.of_feature(level)

    @cached_property
    def kafka(self) -> tuple[int, int]:
        """Return the release whose start this is: the given, else the nearest to that shown.

        Where neither tells, the broker's own file may hint at one.
        """
        if self._given:
            return self._given
        near = self.shown or releases.hinted(self.static)
        return releases.nearest(near) if near else releases.KNOWN[-1]

    @property
    def is_kafka_assumed(self) -> bool:
        """Return whether nothing tells the release."""
        return not (self._given or self.shown)

    @property
    def _has_ids(self) -> bool:
        return self.kafka >= WITH_DIRECTORY_IDS

    @property
    def _has_strays(self) -> bool:
        return self.kafka >= WITH_STRAYS

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what stops the broker, or takes a log dir of it offline."""
        known = self._by_themselves
        return (
            *known,
            *self._identities(),
            *self._two_metadata_logs(),
            *self._unknown_names(),
            *self._twice(),
        )

    @cached_property
    def offline(self) -> frozenset[Path]:
        """Return the log dirs that the broker starts without, and of which it loads nothing."""
        known = self._by_themselves
        return frozenset(verdict.log_dir for verdict in known if verdict.effect is Effect.OFFLINE)

    def needs(self, log_dir: Path) -> bool:
        """Return whether the broker does not start without this log dir: not before 3.7."""
        holder = self.metadata_log
        return self._has_ids and holder is not None and holder.path == log_dir

    @property
    def refuses(self) -> bool:
        """Return whether the broker does not start."""
        return any(verdict.effect is Effect.REFUSE for verdict in self.verdicts)

    @cached_property
    def futures(self) -> tuple[Future, ...]:
        """Return the copies that are on their way to another log dir, with what becomes of them."""
        copies = [
            (member, path, d)
            for member in self.members
            if member.path not in self.offline
            for path, d in member.root.partitions
            if d.kind is DirectoryKind.FUTURE and not (self._has_ids and self.is_stray(path, d))
        ]
        live = {
            (d.topic, d.partition): path
            for member in self.members
            for path, d in member.root.partitions
            if d.kind is DirectoryKind.LIVE
        }
        return tuple(
            Future(
                key=(d.topic, d.partition),
                path=path,
                live=live.get((d.topic, d.partition)),
                assigned=self._is_assigned_here(member, path, d),
            )
            for member, path, d in copies
        )

    @property
    def limits(self) -> Iterator[str]:
        """Yield what cannot be said because not all log dirs of the broker were given."""
        if not self._given and self.shown and self.shown != self.kafka:
            yield (
                f"the broker registered last with Kafka {releases.text(self.shown)}, which was not "
                f"held against one: this is what {releases.text(self.kafka)} does"
            )
        if self.is_kraft and self.metadata_log is None:
            yield (
                "holds no metadata log: which partitions are put aside as stray, how topics are "
                "set and which log dirs the broker has is not known; give all its log dirs together"
            )
        missing = self._missing_ids()
        if missing:
            s, be = ("s", "are") if len(missing) > 1 else ("", "is")
            yield (
                f"the metadata log knows log dir{s} {', '.join(sorted(missing))} of node "
                f"{self.node_id}, which {be} not given: partitions in two log dirs and ids that do "
                "not agree are not seen, and what the broker does with those partitions is not said"
            )

    def is_stray(self, path: Path, directory: PartitionDirectory) -> bool:
        """Return whether the metadata log, as far as it could be read, does not know the log."""
        image = self.image
        if not image or image.damage or self.node_id is None:
            return False
        topic_id = topic_id_of(path)
        return image.is_stray(directory.topic, directory.partition, topic_id, self.node_id)

    @property
    def is_kraft(self) -> bool:
        """Return whether a log dir is one of KRaft, as its own files show."""
        return any(
            member.has_metadata_log or (member.meta and member.meta.version == 1)
            for member in self.members
        )

    @cached_property
    def _by_themselves(self) -> tuple[Verdict, ...]:
        return tuple(self._unidentified())

    def _unidentified(self) -> Iterator[Verdict]:
        """Yield what is wrong with each meta.properties by itself."""
        broken = {
            member.path: faults for member in self.members if (faults := self._faults(member))
        }
        nothing_left = len(broken) == len(self.members)
        for member in self.members:
            needed = nothing_left or member is self.metadata_log
            for finding, effect in broken.get(member.path, ()):
                fate = Effect.REFUSE if needed else effect
                yield Verdict(_told(finding, fate), fate, member.path)
            is_missing = member.meta is None and not member.is_folder and not member.unread
            if is_missing and self.is_kraft:
                text = "holds no meta.properties, as the broker's other log dirs do"
                if member.has_metadata_log:
                    text = "holds a metadata log and no meta.properties"
                yield Verdict(
                    Finding("meta-properties/missing", text, path=member.path),
                    Effect.REFUSE,
                    member.path,
                )

    def _faults(self, member: Member) -> list[tuple[Finding, Effect]]:
        return faults(member, has_ids=self._has_ids, is_kraft=self.is_kraft)

    def _identities(self) -> Iterator[Verdict]:
        """Hold the files that can be read against each other."""
        readable = [
            (member, member.meta)
            for member in self.members
            if member.meta and (not self._has_ids or not self._faults(member))
        ]
        # What stands beside the metadata log is right: that is whom the broker takes itself for.
        readable.sort(key=lambda pair: pair[0] is not self.metadata_log)
        if not readable:
            return
        (first, right), *others = readable
        for member, meta in others:
            for key, value, wanted in differences(right, meta, all_keys=not self._has_ids):
                text = f"{key} is {value}, but {first.path} says {wanted}"
                yield _refusal("meta-properties/mismatch", text, member.path / _META)
        if not self._has_ids:
            return
        seen: dict[str, Member] = {}
        for member, meta in readable:
            other = seen.setdefault(meta.directory_id, member) if meta.directory_id else member
            if other is not member:
                text = f"directory.id {meta.directory_id} is also that of {other.path}"
                yield _refusal("meta-properties/duplicate-id", text, member.path / _META)

    def _two_metadata_logs(self) -> Iterator[Verdict]:
        for member in self.members:
            if member.has_metadata_log and self.metadata_log and member is not self.metadata_log:
                path = member.path / metadata_image.DIRECTORY
                text = f"is also in {self.metadata_log.path}; a broker has one metadata log"
                yield _refusal("data-dir/duplicate-partition", text, path, (CLUSTER_METADATA, 0))

    def _unknown_names(self) -> Iterator[Verdict]:
        for member in self.members:
            for path, directory in () if self._has_strays else member.root.partitions:
                if directory.kind is DirectoryKind.STRAY:
                    text = "is a name that releases before 3.6 do not know"
                    yield _refusal("data-dir/stops-broker", text, path)

    def _twice(self) -> Iterator[Verdict]:
        """Yield partitions that lie in the log dirs twice, live or on their way."""
        seen: dict[tuple[TopicPartition, DirectoryKind], Path] = {}
        for member in self.members:
            if member.path in self.offline:
                continue
            for path, directory in member.root.partitions:
                if directory.kind not in OF_TODAY or directory.topic == CLUSTER_METADATA:
                    continue
                key = directory.topic, directory.partition
                other = seen.setdefault((key, directory.kind), path)
                if other is path or self._one_is_stray(path, other, directory):
                    continue
                if directory.kind is DirectoryKind.FUTURE:
                    text = f"is a second copy on its way, beside {other}"
                elif other.parent == path.parent:
                    continue  # as the names alone tell
                else:
                    text = f"is also in {other.parent}"
                yield _refusal("data-dir/duplicate-partition", text, path, key)
        yield from self._in_the_way()

    def _in_the_way(self) -> Iterator[Verdict]:
        """Yield future copies that cannot get their name: the live copy of their log dir has it."""
        for future in self.futures:
            if not future.is_blocked:
                continue
            text = f"is to become {future.key[0]}-{future.key[1]}, which lies in the same log dir"
            topic, number = future.key
            finding = Finding(
                "data-dir/duplicate-partition",
                text,
                path=future.path,
                topic=topic,
                partition=number,
            )
            effect = Effect.REFUSE if future.assigned else Effect.OFFLINE
            if effect is Effect.OFFLINE:
                text += "; once it is at its end, the broker takes the log dir offline"
                finding = replace(finding, message=text, broker_override=Broker.ALWAYS)
            yield Verdict(finding, effect, future.path.parent)

    def _one_is_stray(self, path: Path, other: Path, directory: PartitionDirectory) -> bool:
        """Return whether one of two is put aside before the other is in its way."""
        return self._has_ids and any(self.is_stray(one, directory) for one in (path, other))

    def _is_assigned_here(self, here: Member, path: Path, directory: PartitionDirectory) -> bool:
        """Return whether the metadata log says that the partition lies in this log dir."""
        image, topic_id = self.image, topic_id_of(path)
        if not self._has_ids or not image or image.damage or topic_id is None or not here.meta:
            return False
        state = image.partition(topic_id, directory.partition)
        if state is None or self.node_id not in state.replicas or not state.directories:
            return False
        assigned = state.directories[state.replicas.index(self.node_id)]
        return assigned == here.meta.directory_id

    def _missing_ids(self) -> set[str]:
        """Return the directory ids of this node that no log dir given has."""
        image = self.image
        if not self._has_ids or not image or image.damage or self.node_id is None:
            return set()
        known = [member.meta.directory_id if member.meta else None for member in self.members]
        missing = image.log_dirs(self.node_id) - {*known} - NO_LOG_DIRS
        # A log dir that has lost its id may be any of them.
        return missing if len(missing) > known.count(None) else set()


def _refusal(code: str, text: str, path: Path, key: TopicPartition | None = None) -> Verdict:
    topic, number = key or (None, None)
    finding = Finding(code, text, path=path, topic=topic, partition=number)
    return Verdict(finding, Effect.REFUSE, path.parent)


def _told(finding: Finding, effect: Effect) -> Finding:
    """Return a finding that says so where the broker only does without the log dir."""
    if effect is Effect.REFUSE:
        return finding
    text = f"{finding.message}; the broker starts without this log dir"
    return replace(finding, message=text, broker_override=Broker.ALWAYS)
