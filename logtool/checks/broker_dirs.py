"""Rules for all log dirs of one node: what stops its start or takes a log dir offline.

The effect of a log dir on a start depends on the others: a file that stops a broker with one log
dir only takes the log dir offline if there are several. `plan` and `verify` use it. Source:
``MetaPropertiesEnsemble``, ``KafkaRaftServer.initializeLogDirs``, ``LogManager.loadLog`` and
``recoverAbandonedFutureLogs`` (Kafka 3.7 to 4.3); ``BrokerMetadataCheckpoint`` (before 3.7, where
every difference between the files is fatal).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from logtool.checks import absence, directory_ids, own_file
from logtool.checks.identity import Effect, differences, faults
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Broker, Finding
from logtool.formats import wording
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    FileKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import OF_TODAY
from logtool.metadata import image as metadata_image
from logtool.metadata import releases
from logtool.node.dir_copies import are_copies
from logtool.node.identity import LogDirIdentity
from logtool.node.node import Node

WITH_STRAYS = (3, 6)
"""The first release that knows names that end in ``-stray``."""
_MOST_NAMED = 3
"""Partitions of a copied log dir that a finding names."""
_META = FileKind.META_PROPERTIES.value


@dataclass(frozen=True, slots=True)
class StartVerdict:
    """A finding, and its effect on a start of the broker."""

    finding: Finding
    effect: Effect | None
    """None for a finding without an effect on a start."""
    log_dir: Path


@dataclass(frozen=True, slots=True)
class FutureReplica:
    """A copy of a partition that moves to another log dir of the broker."""

    key: TopicPartition
    path: Path
    live: Path | None
    """Directory of the live copy, from which the broker copies; None if there is no live copy."""
    assigned: bool
    """True if the metadata log assigns the partition to this log dir already. Then the copy becomes
    the partition as soon as all logs are loaded, and the broker deletes the live copy."""

    @property
    def places(self) -> tuple[Path, ...]:
        """Return the directories of the copy and of the live copy."""
        return (self.path, self.live) if self.live else (self.path,)

    @property
    def is_blocked(self) -> bool:
        """Return whether its log dir already holds the live copy, which has the final name."""
        return self.live is not None and self.live.parent == self.path.parent


@dataclass(frozen=True, slots=True)
class LogDirCopy:
    """A log dir that is a copy of another one."""

    path: Path
    of: Path
    """The other log dir, which was given first."""
    partitions: tuple[TopicPartition, ...]
    """The live partitions in both."""


class BrokerDirs:
    """The rules for the log dirs of one node."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @cached_property
    def verdicts(self) -> tuple[StartVerdict, ...]:
        """Return the findings that stop the broker, or take one of its log dirs offline."""
        known = self._by_themselves
        return (
            *known,
            *self._identities(),
            *self._two_metadata_logs(),
            *self._unknown_names(),
            *self._copied(),
            *self._twice(),
            *self._absent(),
            *self._directory_ids(),
            *self._own_file(),
        )

    @cached_property
    def offline(self) -> frozenset[Path]:
        """Return the log dirs without which the broker starts; it loads nothing from them."""
        known = self._by_themselves
        return frozenset(verdict.log_dir for verdict in known if verdict.effect is Effect.OFFLINE)

    @property
    def refuses(self) -> bool:
        """Return whether the broker does not start."""
        return any(verdict.effect is Effect.REFUSE for verdict in self.verdicts)

    @cached_property
    def future_replicas(self) -> tuple[FutureReplica, ...]:
        """Return the copies of partitions that move to another log dir."""
        node = self.node
        skips_strays = node.has_directory_ids
        copies = [
            (one, path, d)
            for one in node.log_dirs
            if one.path not in self.offline
            for path, d in one.root.partitions
            if d.kind is DirectoryKind.FUTURE and not (skips_strays and node.is_stray(path, d))
        ]
        live = {
            (d.topic, d.partition): path
            for one in node.log_dirs
            for path, d in one.root.partitions
            if d.kind is DirectoryKind.LIVE
        }
        return tuple(
            FutureReplica(
                key=(d.topic, d.partition),
                path=path,
                live=live.get((d.topic, d.partition)),
                assigned=node.is_assigned(one, path, d),
            )
            for one, path, d in copies
        )

    @property
    def limits(self) -> Iterator[str]:
        """Yield the limits of the checks, due to the release or to log dirs that were not given."""
        node = self.node
        starting, predicted = node.starting_kafka, releases.text(node.kafka)
        if node.is_newer_than_known and not node.given_kafka:
            yield (
                f"the broker last registered with metadata.version {node.shown_level}, of a "
                "release newer than this logtool; logtool shows the behaviour of Kafka "
                f"{predicted}"
            )
        elif starting and starting != node.kafka:
            whose = "" if node.given_kafka else "the broker last registered with "
            yield (
                f"{whose}Kafka {releases.text(starting)}: how it loads logs is shown as for "
                f"Kafka {predicted}, because logtool has not been compared with that release"
            )

    @property
    def _has_strays(self) -> bool:
        return self.node.kafka >= WITH_STRAYS

    @cached_property
    def _by_themselves(self) -> tuple[StartVerdict, ...]:
        return tuple(self._unidentified())

    def _unidentified(self) -> Iterator[StartVerdict]:
        """Yield the faults of each meta.properties by itself."""
        node = self.node
        broken = {one.path: found for one in node.log_dirs if (found := self._faults(one))}
        nothing_left = len(broken) == len(node.log_dirs)
        for one in node.log_dirs:
            needed = nothing_left or one is node.metadata_log
            for finding, effect in broken.get(one.path, ()):
                outcome = Effect.REFUSE if needed else effect
                yield StartVerdict(_with_outcome(finding, outcome), outcome, one.path)
            is_missing = one.meta is None and not one.is_folder and not one.unread
            if one.meta and not one.meta.elements and not one.meta.unread and not node.is_kraft:
                text = (
                    "the file is empty: a broker with KRaft does not start; one with ZooKeeper "
                    "takes its id from its own file, or gets a new one"
                )
                empty = Finding("meta-properties/empty", text, 0, path=one.path / _META)
                yield StartVerdict(empty, None, one.path)
            if is_missing and node.is_kraft:
                text = "has no meta.properties, but the broker's other log dirs have one"
                if one.has_metadata_log:
                    text = "holds a metadata log, but no meta.properties"
                finding = Finding("meta-properties/missing", text, path=one.path)
                yield StartVerdict(finding, Effect.REFUSE, one.path)

    def _faults(self, log_dir: LogDirIdentity) -> list[tuple[Finding, Effect]]:
        node = self.node
        return faults(log_dir, has_ids=node.has_directory_ids, is_kraft=node.is_kraft)

    def _identities(self) -> Iterator[StartVerdict]:
        """Compare the readable meta.properties files with each other."""
        node, has_ids = self.node, self.node.has_directory_ids
        readable = [
            (one, one.meta)
            for one in node.log_dirs
            if one.meta and (not has_ids or not self._faults(one))
        ]
        # The file next to the metadata log counts: the broker takes its id from there.
        readable.sort(key=lambda pair: pair[0] is not node.metadata_log)
        if not readable:
            return
        (first, right), *others = readable
        for one, meta in others:
            for key, value, wanted in differences(right, meta, all_keys=not has_ids):
                text = f"{key} is {value}, but {first.path} says {wanted}"
                yield _refusal("meta-properties/mismatch", text, one.path / _META)
        if not has_ids:
            return
        seen: dict[str, LogDirIdentity] = {}
        for one, meta in readable:
            other = seen.setdefault(meta.directory_id, one) if meta.directory_id else one
            if other is not one and not self._are_copies(one.path, other.path):
                text = f"directory.id {meta.directory_id} is also that of {other.path}"
                yield _refusal("meta-properties/duplicate-id", text, one.path / _META)

    def _two_metadata_logs(self) -> Iterator[StartVerdict]:
        holder = self.node.metadata_log
        for one in self.node.log_dirs:
            is_second = one.has_metadata_log and holder and one is not holder
            if holder and is_second and not self._are_copies(one.path, holder.path):
                path = one.path / metadata_image.DIRECTORY
                text = f"is also in {holder.path}; a broker has one metadata log"
                yield _refusal("data-dir/duplicate-partition", text, path, (CLUSTER_METADATA, 0))

    def _unknown_names(self) -> Iterator[StartVerdict]:
        for one in self.node.log_dirs:
            for path, directory in () if self._has_strays else one.root.partitions:
                if directory.kind is DirectoryKind.STRAY:
                    text = "has a name that releases before 3.6 do not know"
                    yield _refusal("data-dir/stops-broker", text, path)

    def _twice(self) -> Iterator[StartVerdict]:
        """Yield partitions that have two live copies, or two future copies, in the log dirs."""
        seen: dict[tuple[TopicPartition, DirectoryKind], Path] = {}
        for one in self.node.log_dirs:
            if one.path in self.offline:
                continue
            for path, directory in one.root.partitions:
                if directory.kind not in OF_TODAY or directory.topic == CLUSTER_METADATA:
                    continue
                key = directory.topic, directory.partition
                other = seen.setdefault((key, directory.kind), path)
                if other is path or self._one_is_stray(path, other, directory):
                    continue
                if self._are_copies(path.parent, other.parent):
                    continue
                if directory.kind is DirectoryKind.FUTURE:
                    text = f"is a second future replica, next to {other}"
                elif other.parent == path.parent:
                    continue  # The rules for names in one log dir report it.
                else:
                    yield _duplicate(path, other, key)
                    continue
                yield _refusal("data-dir/duplicate-partition", text, path, key)
        yield from self._in_the_way()

    @cached_property
    def copies(self) -> Mapping[Path, LogDirCopy]:
        """Return the log dirs that are copies of another one, by path.

        All partitions of one are in the other too. If they have different directory ids, or none,
        one partition that is in both is no proof: it was moved by hand.
        """
        found: dict[Path, LogDirCopy] = {}
        known = [one for one in self.node.log_dirs if one.path not in self.offline]
        live = [self._live(one) for one in known] if len(known) > 1 else []
        for number, mine in enumerate(live):
            one = known[number]
            for other, others in zip(known[:number], live, strict=False):
                shared = mine & others
                ids = [
                    log_dir.meta.directory_id if log_dir.meta else None for log_dir in (one, other)
                ]
                enough = len(shared) >= (1 if ids[0] and ids[0] == ids[1] else 2)
                if other.path not in found and shared in (mine, others) and enough:
                    found[one.path] = LogDirCopy(one.path, other.path, _users_first(shared))
                    break
        return found

    def _live(self, log_dir: LogDirIdentity) -> frozenset[TopicPartition]:
        """Return the live partitions of a log dir that the broker does not rename as stray."""
        return frozenset(
            (directory.topic, directory.partition)
            for path, directory in log_dir.root.partitions
            if directory.kind is DirectoryKind.LIVE
            and directory.topic != CLUSTER_METADATA
            and not self._one_is_stray(path, path, directory)
        )

    def _are_copies(self, *paths: Path) -> bool:
        """Return whether of two log dirs one is a copy of the other, or both of a third."""
        first, second = (self.copies[one].of if one in self.copies else one for one in paths)
        return first == second

    def _copied(self) -> Iterator[StartVerdict]:
        """Yield the log dirs that are copies, each as one finding for all of its partitions."""
        first = 1 if self.node.node_id is None else self.node.node_id
        known = {one.path: one for one in self.node.log_dirs}
        for copy in self.copies.values():
            count, names = len(copy.partitions), copy.partitions[:_MOST_NAMED]
            named = ", ".join(f"{topic}-{number}" for topic, number in names)
            more = f" and {count - len(names):,} more" if count > len(names) else ""
            text = (
                f"is a copy of {copy.of}: {wording.count(count, 'partition')} in both "
                f"({named}{more}); "
            )
            command = f"verify {first}={shell.path(copy.of)} {first + 1}={shell.path(copy.path)}"
            if are_copies(known[copy.of], known[copy.path]):
                text += "give each by itself, as they are of different times"
                command = f"diff {shell.path(copy.of)} {shell.path(copy.path)}"
            else:
                text += "ID=DIR says that log dirs are of different brokers"
            yield StartVerdict(
                Finding(
                    "data-dir/duplicate-partition",
                    text,
                    path=copy.path,
                    next=f"logtool {command}",
                ),
                Effect.REFUSE,
                copy.path,
            )

    def _absent(self) -> Iterator[StartVerdict]:
        """Yield partitions and logs that files of the node name and no log dir of it holds."""
        for finding, effect, home in absence.check(self.node):
            yield StartVerdict(finding, effect, home.path)

    def _directory_ids(self) -> Iterator[StartVerdict]:
        """Yield log dirs whose replicas are assigned to a log dir that is not there."""
        for finding, effect, home in directory_ids.check(self.node):
            yield StartVerdict(finding, effect, home.path)

    def _own_file(self) -> Iterator[StartVerdict]:
        """Yield where the broker's own file contradicts its log dirs."""
        for conflict in own_file.check(self.node):
            yield StartVerdict(*conflict)

    def _in_the_way(self) -> Iterator[StartVerdict]:
        """Yield future copies whose final name is taken by the live copy in their log dir."""
        for future in self.future_replicas:
            if not future.is_blocked:
                continue
            topic, number = future.key
            text = f"is the future replica of {topic}-{number}, which is in the same log dir"
            finding = Finding(
                "data-dir/duplicate-partition",
                text,
                path=future.path,
                topic=topic,
                partition=number,
            )
            effect = Effect.REFUSE if future.assigned else Effect.OFFLINE
            if effect is Effect.OFFLINE:
                text += (
                    "; when the future replica has caught up, the broker takes the log dir offline"
                )
                finding = replace(finding, message=text, broker_override=Broker.ALWAYS)
            yield StartVerdict(finding, effect, future.path.parent)

    def _one_is_stray(self, path: Path, other: Path, directory: PartitionDirectory) -> bool:
        """Return whether the broker renames one of two copies as stray before they collide."""
        node = self.node
        return node.has_directory_ids and any(
            node.is_stray(one, directory) for one in (path, other)
        )


def _users_first(keys: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Return partitions in order, those of internal topics last."""
    return tuple(sorted(keys, key=lambda key: (key[0].startswith("__"), key)))


def _refusal(code: str, text: str, path: Path, key: TopicPartition | None = None) -> StartVerdict:
    topic, number = key or (None, None)
    finding = Finding(code, text, path=path, topic=topic, partition=number)
    return StartVerdict(finding, Effect.REFUSE, path.parent)


def _duplicate(path: Path, other: Path, key: TopicPartition) -> StartVerdict:
    """Return the verdict on two directories of a partition; it is about the shorter log."""
    reach, others = _reach(path), _reach(other)
    if reach > others:
        path, other, reach, others = other, path, others, reach
    text = f"is also in {other.parent}"
    if reach < others:
        text += ", where the log is longer"
        if reach[0] < others[0]:
            text += f": its last segment is {others[0]}, not {reach[0]}"
    found = _refusal("data-dir/duplicate-partition", text, path, key)
    command = f"logtool diff {shell.path(other)} {shell.path(path)}"
    return replace(found, finding=replace(found.finding, next=command))


def _reach(path: Path) -> tuple[int, int]:
    """Return the base offset of the last segment of a partition dir, and its bytes; -1 for none."""
    with suppress(UnreadableError):
        segments = opening.open_partition(path).segments
        if segments:
            return segments[-1].base_offset, segments[-1].log.size
    return -1, -1


def _with_outcome(finding: Finding, effect: Effect) -> Finding:
    """Return the finding, with a message that says so if the broker starts without the log dir."""
    if effect is Effect.REFUSE:
        return finding
    text = f"{finding.message}; the broker starts without this log dir"
    return replace(finding, message=text, broker_override=Broker.ALWAYS)
