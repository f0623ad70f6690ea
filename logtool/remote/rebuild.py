"""Partitions in a bucket whose cluster is lost, and what keeps a new one from their segments.

A broker finds a remote segment only if three things lead to it: a topic of the same id, which is
part of the names of the objects and of the records; the records of the segment in the partition of
``__remote_log_metadata`` that a hash of topic id and partition gives, so that the number of its
partitions counts; and the leader epochs of the segment in leader-epoch-checkpoint of the leader,
which also needs the log start offset in log-start-offset-checkpoint. Source: ``RemoteLogManager``,
``TopicBasedRemoteLogMetadataManager``, ``RemoteTopicPartitioner`` (Kafka 3.9 and 4.2).
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path

from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import leader_epoch_checkpoint, names
from logtool.formats.messages.remote_log import metadata_partition
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.remote import contents, objects
from logtool.remote.contents import SegmentContent
from logtool.remote.loading import PartitionId
from logtool.remote.local import LocalCopy, Rows, best
from logtool.remote.objects import ObjectSet, RemoteObject
from logtool.remote.run import RemoteLineage, takes
from logtool.remote.segments import RemotePartition
from logtool.running.run import Run
from logtool.running.summary import Summary


class Lack(StrEnum):
    """The things that a new cluster lacks to read a partition from remote storage."""

    TOPIC_ID = "topic-id"
    RECORDS = "records"
    LEADER_EPOCHS = "leader-epochs"
    OBJECTS = "objects"
    OFFSETS = "offsets"


@dataclass(frozen=True, slots=True)
class SegmentSpan:
    """The offsets of one segment, both included, its leader epochs and the bytes of its log."""

    first: int
    last: int
    epochs: Rows
    size: int


@dataclass(frozen=True, slots=True)
class RebuildPartition:
    """One partition in the bucket."""

    topic: str
    topic_id: str
    number: int
    spans: Sequence[SegmentSpan]
    """The segments with all their objects, by first offset."""
    unrecorded_segments: int
    """Segments of which no record in the log dirs says that they are copied."""
    absent_segments: int
    """Copied segments, by the records, of which objects are missing."""
    metadata_partition: int | None
    """The partition of the metadata topic that its records belong to; None if it is not known."""
    has_topic_id: bool
    """True if the metadata log has the topic with this id."""
    local: LocalCopy | None
    """The furthest copy in the log dirs."""

    @property
    def path(self) -> Path | None:
        """Return the partition dir of that copy."""
        return self.local.path if self.local else None

    @property
    def segments(self) -> int:
        """Return the number of segments."""
        return len(self.spans)

    @property
    def bytes(self) -> int:
        """Return the bytes of their logs."""
        return sum(one.size for one in self.spans)

    @property
    def first_offset(self) -> int | None:
        """Return the first offset in the bucket."""
        return self.spans[0].first if self.spans else None

    @property
    def end_offset(self) -> int | None:
        """Return the offset behind the last in the bucket: newer records were local alone."""
        return max(one.last for one in self.spans) + 1 if self.spans else None

    @property
    def missing_offsets(self) -> int:
        """Return how many offsets between these no segment has."""
        missing, at = 0, self.first_offset or 0
        for one in self.spans:
            missing += max(0, one.first - at)
            at = max(at, one.last + 1)
        return missing

    @property
    def leader_epochs(self) -> Rows:
        """Return the leader epochs of the segments, each with its first offset."""
        found: dict[int, int] = {}
        for one in self.spans:
            for epoch, first in one.epochs:
                found[epoch] = min(first, found.get(epoch, first))
        return tuple(sorted(found.items()))

    @property
    def lacks(self) -> list[Lack]:
        """Return the things that a new cluster lacks."""
        known = dict(self.local.epochs) if self.local else {}
        tests = {
            Lack.TOPIC_ID: not self.has_topic_id,
            Lack.RECORDS: self.unrecorded_segments > 0,
            Lack.LEADER_EPOCHS: any(epoch not in known for epoch, _ in self.leader_epochs),
            Lack.OBJECTS: self.absent_segments > 0,
            Lack.OFFSETS: self.missing_offsets > 0,
        }
        return [lack for lack, is_lacking in tests.items() if is_lacking]


@dataclass(frozen=True, slots=True)
class RebuildTopic:
    """One topic in the bucket, with its settings as far as the metadata log has them."""

    topic: str
    topic_id: str
    partitions: int
    """Number of its partitions, or the least number that the names of objects prove."""
    replicas: int | None
    """Replicas of its first partition; None without a metadata log that has the topic."""
    settings: tuple[str, ...] | None
    """Settings as ``name=value``; None without a metadata log that has the topic."""
    source: str
    """``metadata-log`` or ``objects``."""
    segments: int
    bytes: int


@dataclass(slots=True)
class RebuildPlan:
    """One run over a prefix: iterate for partitions, then topics, and for errors."""

    plugin: Plugin
    prefix: Path
    lineage: RemoteLineage | None = None
    """The log dirs that are left of the cluster; None if none was given."""
    selection: Selection = field(default_factory=Selection)
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    _known: dict[PartitionId, RemotePartition] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RebuildPartition | RebuildTopic | UnreadableError]:
        for item in self._all():
            if isinstance(item, UnreadableError):
                self.summary.add(item)
            yield item

    @property
    def metadata_partitions(self) -> int | None:
        """Return the number of partitions of the metadata topic; None if it is not known."""
        return self.lineage.partition_count if self.lineage else None

    def _all(self) -> Iterator[RebuildPartition | RebuildTopic | UnreadableError]:
        listed = [one for one in objects.listed(self.plugin, self.prefix)
                  if isinstance(one, RemoteObject)]  # fmt: skip
        if not listed:
            objects.require_written_by(self.plugin, self.prefix)
        if self.lineage:
            for item in self.lineage.logs():
                # A volume of a controller has no records, which is no fault of it.
                if isinstance(item, UnreadableError) and not isinstance(item, NothingMatchedError):
                    yield item
            self._known = {(one.topic_id, one.number): one for one, _ in self.lineage.partitions()}
        found: dict[tuple[str, str], dict[int, list[ObjectSet]]] = {}
        for group in objects.grouped(listed):
            name = group.name
            if takes(self.selection, name.topic, name.partition):
                of_topic = found.setdefault((name.topic, name.topic_id), {})
                of_topic.setdefault(name.partition, []).append(group)
        topics = []
        for (topic, topic_id), by_number in sorted(found.items()):
            made = []
            for number, groups in sorted(by_number.items()):
                made.append((yield from self._partition(topic, topic_id, number, groups)))
                yield made[-1]
            topics.append(self._topic(topic, topic_id, made))
        yield from topics
        if not found:
            text = f"nothing matched: no object that the plugin {self.plugin} writes"
            yield NothingMatchedError(self.prefix, text)

    def _topic(
        self, topic: str, topic_id: str, partitions: Sequence[RebuildPartition]
    ) -> RebuildTopic:
        image = self.lineage.image if self.lineage else None
        known = image.partitions.get(topic_id, {}) if image else {}
        proven = max(one.number for one in partitions) + 1
        has_topic = image is not None and image.names.get(topic_id) == topic
        configs = image.topic_configs.get(topic, {}) if image else {}
        first = next(iter(known.values()), None)
        return RebuildTopic(
            topic=topic,
            topic_id=topic_id,
            partitions=max(len(known), proven),
            replicas=len(first.replicas) if first else None,
            settings=tuple(f"{key}={value}" for key, value in sorted(configs.items()))
            if has_topic else None,
            source="metadata-log" if has_topic else "objects",
            segments=sum(one.segments for one in partitions),
            bytes=sum(one.bytes for one in partitions),
        )  # fmt: skip

    def _partition(
        self, topic: str, topic_id: str, number: int, groups: Sequence[ObjectSet]
    ) -> Generator[UnreadableError, None, RebuildPartition]:
        """Yield errors; return the partition."""
        self.summary.partitions += 1
        records = self._known.get((topic_id, number))
        spans, unrecorded, whole = [], 0, set()
        for group in groups:
            self.run.path = group.path
            name = group.name
            one = records.segments.get(name.segment_id) if records else None
            if one and not one.is_readable:
                continue  # its copy was not finished, or its deletion began
            self.summary.segments += 1
            unrecorded += one is None
            if not all(kind in group.objects for kind in self.plugin.required):
                continue
            whole.add(name.segment_id)
            try:
                if one:
                    spans.append(
                        SegmentSpan(one.start_offset, one.end_offset, one.leader_epochs, one.size)
                    )
                else:
                    spans.append(_span(self.plugin, group))
            except UnreadableError as error:
                yield error
        copied = [one for one in records.present if one.is_readable] if records else []
        count, copies = self.metadata_partitions, []
        image = self.lineage.image if self.lineage else None
        for item in self.lineage.copies(topic, number) if self.lineage else ():
            if isinstance(item, LocalCopy):
                copies.append(item)
            else:
                yield item
        return RebuildPartition(
            topic=topic,
            topic_id=topic_id,
            number=number,
            spans=sorted(spans, key=lambda span: span.first),
            unrecorded_segments=unrecorded,
            absent_segments=sum(one.segment_id not in whole for one in copied),
            metadata_partition=metadata_partition(topic_id, number, count) if count else None,
            has_topic_id=image is not None and image.names.get(topic_id) == topic,
            local=best(copies, topic_id),
        )


def _span(plugin: Plugin, group: ObjectSet) -> SegmentSpan:
    """Return the offsets of a segment without a record; UnreadableError.

    The manifest has them, otherwise the headers of the log are read.
    """
    result = SegmentContent()
    there = contents.pieces(plugin, group, result)
    segment = result.manifest.segment if result.manifest else None
    if result.manifest and segment:
        try:
            epochs = {int(key): int(at) for key, at in segment["segmentLeaderEpochs"].items()}
            return SegmentSpan(
                int(segment["startOffset"]), int(segment["endOffset"]),
                tuple(sorted(epochs.items())), result.manifest.log_size,
            )  # fmt: skip
        except (AttributeError, KeyError, TypeError, ValueError):
            text = "the manifest has no offsets of the segment"
            raise UnreadableError(group.path, text) from None
    if LOG not in there:
        text = "; ".join(str(getattr(one, "message", one)) for one in result.findings)
        raise UnreadableError(group.path, text or "the log cannot be read")
    log, base = there[LOG], group.name.base_offset
    name = names.parse_partition_file(f"{base:020d}.log")
    file = File(path=log.path, name=name, size=log.size, mtime_ns=0)
    last = base - 1
    for chunk in Segment(base, file, {}, 2**63 - 1, KAFKA).batches(payload=False):
        if len(chunk.table):
            last = max(last, int(chunk.table.last_offset.max()))
    rows = leader_epoch_checkpoint.parse(
        files.read_small(there["leader_epoch_checkpoint"].path)
    ).epochs  # fmt: skip
    own = [(epoch, first) for row, (epoch, first) in enumerate(rows)
           if first <= last and (row + 1 == len(rows) or rows[row + 1][1] > base)]  # fmt: skip
    return SegmentSpan(base, last, tuple(own), log.size)
