"""Objects of remote segments checked: present, of the right size and content, and named by records.

Without log dirs, the objects are checked by themselves. With them, a segment is also compared with
its records in ``__remote_log_metadata``; segments whose partition of that topic is not among the
log dirs are neither called missing nor orphaned.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.checks.report import Level
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Finding
from logtool.formats.messages.remote_log import SegmentState, metadata_partition
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.log.selection import Selection
from logtool.remote import contents, objects
from logtool.remote import object_findings as findings
from logtool.remote.contents import SegmentContent
from logtool.remote.findings import unfinished_copy
from logtool.remote.loading import MetadataLog, PartitionId
from logtool.remote.local import LocalCopy
from logtool.remote.objects import ObjectSet, RemoteObject
from logtool.remote.run import RemoteLineage, takes
from logtool.remote.segments import RemotePartition, RemoteSegment
from logtool.running.run import Run
from logtool.running.summary import Summary


@dataclass(frozen=True, slots=True)
class CheckedRemoteSegment:
    """One segment in remote storage, with what was found out about it."""

    objects: ObjectSet
    result: SegmentContent
    metadata: RemoteSegment | None
    """Its records; None without log dirs, or if no record names it."""

    @property
    def object_count(self) -> int:
        """Return the number of its objects."""
        return len(self.objects.objects)

    @property
    def first_offset(self) -> int | None:
        """Return the first offset of its batches; None if they were not read."""
        return self.result.report.first_offset if self.result.report else None

    @property
    def last_offset(self) -> int | None:
        """Return the last offset of its batches; None if they were not read."""
        return self.result.report.last_offset if self.result.report else None

    @property
    def state(self) -> str | None:
        """Return its state by the records; None if no record is known."""
        return self.metadata.state_word if self.metadata else None


@dataclass(slots=True)
class RemoteVerification:
    """One run over a prefix: iterate for the segments, findings and errors."""

    plugin: Plugin
    prefix: Path
    lineage: RemoteLineage | None = None
    """The log dirs with the metadata; None if none was given."""
    selection: Selection = field(default_factory=Selection)
    level: Level = Level.BATCHES
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    unjudged: int = 0
    """Segments that are not compared with records, which are elsewhere; filled."""
    _known: dict[PartitionId, RemotePartition] = field(default_factory=dict)
    _logs: set[int] = field(default_factory=set)
    _seen: set[PartitionId] = field(default_factory=set)
    """Partitions with objects so far."""

    def __iter__(self) -> Iterator[CheckedRemoteSegment | Finding | UnreadableError]:
        for item in self._all():
            if isinstance(item, Finding | UnreadableError):
                self.summary.add(item)
            yield item

    def _all(self) -> Iterator[CheckedRemoteSegment | Finding | UnreadableError]:
        every = list(objects.listed(self.plugin, self.prefix))
        written = [one for one in every if isinstance(one, RemoteObject)]
        if not written:
            objects.require_written_by(self.plugin, self.prefix)
        others = [one for one in every if written and not isinstance(one, RemoteObject)]
        if self.lineage:
            yield from self._read_metadata(self.lineage)
        found = [one for one in written if self._takes(one.name.topic, one.name.partition)]
        self.run.bytes_total = sum(one.size for one in found if one.name.kind == LOG)
        groups = objects.grouped(found)
        places: dict[str, list[ObjectSet]] = {}
        for group in groups:
            places.setdefault(group.name.segment_id, []).append(group)
        for group in groups:
            others_of = [one for one in places[group.name.segment_id] if one is not group]
            yield from self._segment(group, others_of)
        for path, size in others:
            yield findings.unknown(size).placed(path)
        yield from self._absent(places)
        if not groups and not self.summary.unreadable:
            chosen = f" {self.selection}" if self.selection != Selection() else ""
            text = f"nothing matched{chosen}: no object that the plugin {self.plugin} writes"
            yield NothingMatchedError(self.prefix, text)

    def _read_metadata(self, lineage: RemoteLineage) -> Iterator[Finding | UnreadableError]:
        for item in lineage.logs():
            if isinstance(item, MetadataLog):
                self._logs.add(item.number)
            else:
                yield item
        self._known = {
            (remote.topic_id, remote.number): remote for remote, _ in lineage.partitions()
        }

    def _is_covered(self, partition_id: PartitionId) -> bool:
        """Return whether the records of a partition would be in the given log dirs."""
        if self.lineage is None:
            return False
        if partition_id in self._known:
            return True
        count = self.lineage.partition_count
        return bool(count) and metadata_partition(*partition_id, count or 1) in self._logs

    def _segment(
        self, group: ObjectSet, others: Sequence[ObjectSet]
    ) -> Iterator[CheckedRemoteSegment | Finding | UnreadableError]:
        """Check one segment."""
        name = group.name
        self.run.path = group.path
        partition = self._known.get(name.partition_id)
        metadata = partition.segments.get(name.segment_id) if partition else None
        result = contents.check(self.plugin, group, self._spend, self.level)
        is_covered = self._is_covered(name.partition_id)
        self.unjudged += self.lineage is not None and not is_covered
        faults: list[Finding | UnreadableError] = []
        if others:
            faults.append(findings.double(name.segment_id, str(others[0].path)))
        in_use = metadata is None or metadata.is_readable
        if is_covered and (metadata is None or metadata.is_gone):
            why = "no record names it"
            if metadata:
                why = "a null value removed its record" if metadata.is_forgotten else (
                    "its records say that it was deleted"
                )  # fmt: skip
            faults.append(findings.orphan(name.segment_id, group.bytes, why))
        elif partition and metadata and metadata.state is SegmentState.COPY_STARTED:
            faults.append(unfinished_copy(metadata, partition.last_copy))
        elif in_use:
            lacking = [kind for kind in self.plugin.required if kind not in group.objects]
            if lacking:
                faults.append(self._missing(group, lacking, metadata))
            faults += self._against(group, result, metadata)
            faults += result.findings
        self.summary.partitions += name.partition_id not in self._seen
        self._seen.add(name.partition_id)
        self.summary.segments += 1
        if result.report:
            self.summary.batches += result.report.batches
            self.summary.records += result.report.records
            self.summary.bytes += result.report.bytes
        yield CheckedRemoteSegment(group, result, metadata)
        for fault in faults:
            if isinstance(fault, UnreadableError):
                yield fault
            else:
                yield fault.placed(
                    group.path, topic=name.topic, partition=name.partition, segment=name.base_offset
                )

    def _missing(
        self, group: ObjectSet, lacking: Sequence[str], metadata: RemoteSegment | None
    ) -> Finding:
        """Return the finding about missing objects of a segment, with what local copies have."""
        name = group.name
        if metadata is None:
            return findings.missing(name, lacking, None)
        copies = self._copies(name.topic, name.partition, name.topic_id)
        where = findings.where_it_is(metadata, copies) if LOG in lacking else ""
        found = findings.missing(name, lacking, metadata, where)
        if self.plugin is Plugin.LOCAL:
            found = replace(found, next=findings.put_back(group, lacking, metadata, copies))
        return found

    def _copies(self, topic: str, number: int, topic_id: str) -> list[LocalCopy]:
        """Return the local copies of a partition; one that cannot be read is left out."""
        every = self.lineage.copies(topic, number) if self.lineage else ()
        return [one for one in every
                if isinstance(one, LocalCopy) and one.topic_id in (None, topic_id)]  # fmt: skip

    def _against(
        self, group: ObjectSet, result: SegmentContent, metadata: RemoteSegment | None
    ) -> Iterator[Finding]:
        """Yield where objects contradict the records of the segment, its manifest or its name."""
        name, log = group.name, group.objects.get(LOG)
        known = result.manifest_range
        if metadata:
            known = metadata.start_offset, metadata.end_offset
        start, end = known or (name.base_offset, 2**63 - 1)
        if start != name.base_offset:
            yield findings.wrong_name(
                name.segment_id, f"offset {name.base_offset}", f"offset {start}"
            )
        if metadata and log and result.log_size not in (None, metadata.size):
            why = "by its records"
            finding = findings.object_size(result.log_size or 0, metadata.size, why)
            yield finding.placed(log.path)
        report = result.report
        if report and report.scanned and log and not report.damaged:
            first, last = report.first_offset, report.last_offset
            if first is None or last is None or first < start or last > end or (
                known is None and first != start
            ):  # fmt: skip
                shown = end if known else start
                yield findings.other_offsets(first, last, start, shown).placed(log.path)
        if metadata and result.epochs is not None:
            rows, own = dict(result.epochs), metadata.leader_epochs
            first_epoch = own[0][0] if own else -1
            wrong = [
                epoch for epoch, offset in own
                if epoch not in rows or (rows[epoch] != offset and epoch != first_epoch)
                or rows[epoch] > offset
            ]  # fmt: skip
            if wrong:
                finding = findings.other_epochs(_epochs(result.epochs), _epochs(own))
                yield finding

    def _absent(self, places: dict[str, list[ObjectSet]]) -> Iterator[Finding]:
        """Yield a finding for each copied segment of which no object is there."""
        for partition in self._known.values():
            for segment in partition.present:
                if segment.is_readable and segment.segment_id not in places:
                    copies = self._copies(partition.topic, partition.number, partition.topic_id)
                    where = findings.where_it_is(segment, copies)
                    place = f"{partition.topic}-{partition.number}"
                    yield findings.absent(place, segment, where).placed(
                        self.prefix, topic=partition.topic, partition=partition.number,
                        segment=segment.start_offset,
                    )  # fmt: skip

    def _takes(self, topic: str, number: int) -> bool:
        return takes(self.selection, topic, number)

    def _spend(self, size: int) -> None:
        self.run.advance(size)
        self.run.budget.pace.spend(size)


def _epochs(rows: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{epoch} from {first}" for epoch, first in rows) or "none"
