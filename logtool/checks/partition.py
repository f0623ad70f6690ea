"""The check of one partition: its names, its segments, and how its files fit together."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any

from logtool.checks import (
    continuity,
    file_names,
    foreign_segments,
    indexes,
    leader_epochs,
    log_absence,
    metadata_records,
    old_formats,
    producers,
)
from logtool.checks.batches import below_recovery_point
from logtool.checks.compaction import NOT_KNOWN, Cleaning, CompactionEvidence
from logtool.checks.kraft_snapshot import check_kraft_snapshot
from logtool.checks.report import Level, PartitionSummary, SegmentReport, SegmentTask
from logtool.checks.segment import check_segment, vanished
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding, Remedy
from logtool.formats import compression, leader_epoch_checkpoint, offset_index
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.log import small_files
from logtool.log.automq import AUTOMQ
from logtool.log.dir import Partition, Segment
from logtool.log.file import File
from logtool.log.producer_state import ProducerState
from logtool.log.redpanda import REDPANDA
from logtool.metadata import image as metadata_image
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings

Item = Finding | UnreadableError
_OF_MISSING_ROWS = (
    "leader-epoch/missing", "leader-epoch/missing-epoch", "leader-epoch/begins-later",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The parameters for checking a partition."""

    level: Level = Level.BATCHES
    clean: bool = False
    """True if the log dir holds a clean-shutdown marker."""
    log_start_offset: int = 0
    """Offset in log-start-offset-checkpoint; 0 without a row."""
    limit: int = compression.DEFAULT_LIMIT
    drop_cache: bool = False
    needs_topic_id: bool = True
    """True if partition.metadata must exist; see `logtool.checks.topic_id_support`."""
    cleaning: Cleaning = NOT_KNOWN
    settings: Settings = field(default_factory=Settings)
    """The known settings of the topic, used where offsets are missing."""
    ahead_ms: int | None = None
    """Largest time in ms that a timestamp of a producer may be ahead; None: not known."""
    index_interval: int = offset_index.DEFAULT_INTERVAL
    """Bytes for which an offset index may lack an entry."""
    around: Surroundings | None = None
    """Facts from outside of its directory; None: what is absent from the log is not judged."""


def plan(partition: Partition, request: CheckRequest) -> list[SegmentTask]:
    """Return the task of each segment, in order."""
    snapshots = [file.name.offset or 0 for file in partition.snapshots]
    return [
        # The cuts are snapshots inside a segment: taken at a clean stop, or where a log was cut.
        SegmentTask(
            segment=segment,
            level=request.level,
            clean=request.clean,
            cuts=tuple(snapshots[_between(segment, snapshots)]),
            limit=request.limit,
            drop_cache=request.drop_cache,
            ahead_ms=request.ahead_ms,
            index_interval=request.index_interval,
        )
        for segment in partition.segments
    ]


def check_partition(
    partition: Partition,
    request: CheckRequest,
    facts: PartitionSummary,
    reports: Iterable[SegmentReport],
) -> Iterator[Item]:
    """Yield every finding of one partition, with its path, and fill in `facts`.

    `reports` are the reports of the tasks that `plan` returned, in that order.
    """
    directory = partition.directory
    known = isinstance(directory, PartitionDirectory)
    for item in _check(partition, request, facts, reports):
        if isinstance(item, Finding) and known:
            item = item.placed(partition.path, topic=partition.topic, partition=partition.number)
        if isinstance(item, Finding) and partition.is_metadata_log:
            item = metadata_records.at_every_start(item)
        yield item


def foreign_of(partition: Partition) -> list[foreign_segments.ForeignSegment]:
    """Return the segments that seem to hold batches of another partition; [] if a log has gaps."""
    reports = [check_segment(task) for task in plan(partition, CheckRequest())]
    if any(report.has_gaps for report in reports):
        return []
    snapshots = [(file, producers.check_snapshot_file(file)[1]) for file in partition.snapshots]
    return foreign_segments.foreign_segments(reports, snapshots)


def _check(
    partition: Partition,
    request: CheckRequest,
    facts: PartitionSummary,
    found_in: Iterable[SegmentReport],
) -> Iterator[Item]:
    if partition.flavour is REDPANDA:
        yield from _check_redpanda(partition, facts, found_in)
        return
    names = file_names.check_partition_names(partition, needs_topic_id=request.needs_topic_id)
    yield from names
    values: dict[FileKind, Any] = {}
    for kind, file in partition.fixed.items():
        try:
            value, findings = small_files.check_file(file)
            yield from findings
            # Further findings about an unsound file would repeat the fault.
            if not findings:
                values[kind] = value
        except UnreadableError as error:
            yield vanished(error)
    made = partition.fixed.get(FileKind.PARTITION_METADATA)
    facts.made_ns = made.mtime_ns if made else 0
    metadata = values.get(FileKind.PARTITION_METADATA)
    facts.topic_id = metadata.topic_id if metadata else None
    if request.level is not Level.QUICK:
        for file in partition.kraft_snapshots:
            yield from check_kraft_snapshot(file)
    reports: list[SegmentReport] = []

    @cache
    def judged() -> CompactionEvidence:
        """Return whether the log was compacted; called at the first gap, for it reads metadata."""
        return judge(reports, request, facts.topic_id)

    # AutoMQ's partitions were closed in order: that says nothing about the metadata log.
    clean = request.clean and not (partition.is_metadata_log and partition.flavour is AUTOMQ)
    for segment, report in zip(partition.segments, found_in, strict=True):
        flushed = 0 if partition.is_metadata_log else _recovery_point_above(segment, request)
        for item in (*indexes.missing(segment, clean=clean), *report.findings):
            if flushed and isinstance(item, Finding):
                item = below_recovery_point(item, flushed)
            yield _in_segment(item, report)
        _count(facts, report, segment.log)
        reports.append(report)
    yield from old_formats.findings(one for report in reports for one in report.old_formats)
    yield from _lost_log(partition, request, facts)
    if not reports:
        return
    facts.first_base_offset = partition.segments[0].base_offset
    facts.log_end_offset = _log_end(partition, reports)
    runs = (run for report in reports for run in report.epochs)
    facts.epoch_starts = leader_epochs.rising((epoch, first) for epoch, first, _ in runs)
    start, covered = request.log_start_offset, 0
    if partition.is_metadata_log:
        covered = metadata_image.snapshot_end(partition)
        # A node replaces a log that ends below its newest snapshot.
        facts.log_end_offset = max(facts.log_end_offset or 0, covered)
    for segment, report in zip(partition.segments, reports, strict=True):
        yield from (
            _in_segment(finding, report)
            for finding in continuity.check_inside(segment, report, judged, max(start, covered))
        )
    what = partition, reports, request.cleaning, judged, start, covered
    yield from continuity.check_segments(*what)
    yield from _check_producers(partition, request, reports)
    facts.damaged = any(report.damaged and not report.changed for report in reports)
    changed = any(report.changed for report in reports)
    absent: list[Finding] = []
    if request.around and not changed and not _grew(partition.segments[-1].log):
        absent += log_absence.check(partition, request.around, facts.log_end_offset)
    yield from absent
    steady = all(report.scanned and not report.changed for report in reports)
    if steady and not _grew(partition.segments[-1].log) and not _is_going(partition):
        lacks_remote = any(one.code == log_absence.REMOTE_EPOCHS for one in absent)
        for finding in _check_epochs(partition, request, values, facts, reports):
            # The local batches alone do not give the rows that are missing.
            if not (lacks_remote and finding.code in _OF_MISSING_ROWS):
                yield finding


def _lost_log(
    partition: Partition, request: CheckRequest, facts: PartitionSummary
) -> Iterator[Finding]:
    """Yield a finding if the logs are absent or empty, and other files prove that they were not.

    An absent log counts as an empty one: a broker makes it at the log start offset.
    """
    is_live = getattr(partition.directory, "kind", None) is DirectoryKind.LIVE
    if not is_live or any(segment.log.size for segment in partition.segments):
        return
    end = max([request.log_start_offset, *(one.base_offset for one in partition.segments)])
    if not partition.segments and not partition.is_metadata_log:
        facts.first_base_offset = facts.log_end_offset = end
    if found := log_absence.missing_end(partition, end, clean=request.clean):
        yield found


def judge(
    reports: Sequence[SegmentReport], request: CheckRequest, topic_id: str | None
) -> CompactionEvidence:
    """Return whether compaction explains gaps; `topic_id` is that in partition.metadata."""
    traces = continuity.traces(reports)
    cleaning = request.cleaning.with_policy(request.settings, topic_id)
    if cleaning.needs_past(traces):
        cleaning = replace(cleaning, past=request.settings.past(cleaning.topic, topic_id))
    return cleaning.judge(traces)


def _check_redpanda(
    partition: Partition, facts: PartitionSummary, found_in: Iterable[SegmentReport]
) -> Iterator[Item]:
    from logtool.checks import redpanda  # of which Kafka's have no need

    yield from redpanda.check_names(partition)
    for found in redpanda.check_snapshot(partition):
        yield vanished(found) if isinstance(found, UnreadableError) else found
    reports = []
    for segment, report in zip(partition.segments, found_in, strict=True):
        for item in report.findings:
            yield _in_segment(item, report)
        _count(facts, report, segment.log)
        reports.append(report)
    if reports:
        facts.first_base_offset = partition.segments[0].base_offset
        facts.log_end_offset = _log_end(partition, reports)
        yield from redpanda.check_segments(partition, reports)


def _check_epochs(
    partition: Partition,
    request: CheckRequest,
    values: Mapping[FileKind, Any],
    facts: PartitionSummary,
    reports: Sequence[SegmentReport],
) -> Iterator[Finding]:
    """Compare the batches with leader-epoch-checkpoint, unless that file is unsound by itself."""
    file = partition.fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    checkpoint = values.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if file and checkpoint is None:
        return
    findings = continuity.check_epochs(
        file,
        checkpoint or leader_epoch_checkpoint.parse(b""),
        continuity.merge_runs(reports),
        log_start=_log_start(partition, request),
        log_end=facts.log_end_offset,
        may_begin_later=not partition.is_metadata_log,
    )
    yield from _placed(file, partition, findings)


def _grew(log: File) -> bool:
    """Return whether the size of the log changed since it was listed.

    Files that were read later may then be about batches that were appended later.
    """
    try:
        with log.open() as opened:
            return opened.size_now() != log.size
    except UnreadableError:
        return True


def _is_going(partition: Partition) -> bool:
    """Return whether the partition is being deleted: a broker then opens it without epochs."""
    return getattr(partition.directory, "kind", None) is DirectoryKind.DELETE


def _log_start(partition: Partition, request: CheckRequest) -> int:
    """Return the offset from which on leader-epoch-checkpoint must know the epochs."""
    start = max(request.log_start_offset, partition.segments[0].base_offset)
    if partition.is_metadata_log:
        # Its log start is its oldest snapshot (``KafkaMetadataLog.deleteBeforeSnapshot``).
        snapshots = [file.name.offset or 0 for file in partition.kraft_snapshots]
        return max(start, min(snapshots, default=0))
    return start


def _check_producers(
    partition: Partition, request: CheckRequest, reports: Sequence[SegmentReport]
) -> Iterator[Item]:
    """Replay the producers through all segments; compare them with snapshots and aborts."""
    snapshots = []
    for file in partition.snapshots:
        try:
            findings, entries = producers.check_snapshot_file(file)
        except UnreadableError as error:
            yield vanished(error)
            continue
        yield from findings
        snapshots.append((file, entries))
    offsets = [file.name.offset or 0 for file, _ in snapshots]
    state = ProducerState()
    first_known = reports[0].base_offset
    compacted = request.cleaning.is_compacted or any(report.has_gaps for report in reports)
    usable = True
    absent: list[range] = []

    @cache
    def foreign() -> list[foreign_segments.ForeignSegment]:
        """Return the segments in doubt; called where a snapshot contradicts the log."""
        return [] if compacted else foreign_segments.foreign_segments(reports, snapshots)

    for segment, report in zip(partition.segments, reports, strict=True):
        # The lost batches of a damaged segment are unknown, and so is the state behind it.
        usable = usable and report.scanned and not report.damaged
        rows, begin, aborted = report.producer_rows, 0, []
        if report.next_offset < (segment.next_base_offset or 0):
            absent.append(range(report.next_offset, segment.next_base_offset or 0))
        for file, entries in snapshots[_between(segment, offsets, report.next_offset)]:
            offset = file.name.offset or 0
            end = int((rows.base_offset < offset).sum())
            aborted += state.apply(rows[begin:end])[0]
            begin = max(begin, end)
            if usable and entries is not None:
                compare = partial(
                    producers.compare_snapshot, file, entries, state.producers,
                    first_known=first_known, compacted=compacted, absent=absent,
                )  # fmt: skip
                found = list(compare())
                if found and foreign():
                    before = [one for one in foreign() if one.base_offset < offset]
                    skipped = frozenset[int]().union(*(one.producers for one in before))
                    # A rebuild of the snapshot would remove what shows the foreign segment.
                    found = [
                        replace(one, remedy_override=Remedy.NONE)
                        for one in compare(skipped=skipped)
                    ]
                yield from found
        ended, intruders = state.apply(rows[begin:])
        aborted += ended
        if report.scanned:
            try:
                for item in producers.check_transaction_index(
                    segment,
                    aborted,
                    first_known=first_known,
                    compacted=compacted,
                    damaged=not usable,
                    unclean=not request.clean,
                ):
                    yield _in_segment(item, report)
            except UnreadableError as error:
                yield vanished(error)
        for row in intruders:
            offset = int(rows.base_offset[begin + row])
            text = (
                f"plain batch of producer {rows.producer_id[begin + row]} in its open transaction"
            )
            yield Finding(
                code="batch/plain-in-transaction",
                message=text,
                position=int(rows.position[begin + row]),
                length=int(rows.size[begin + row]),
                first_offset=offset,
                path=segment.log.path,
                segment=segment.base_offset,
            )
    for one in foreign() if foreign.cache_info().currsize else ():
        log_dir = shell.path(partition.path.parent)
        yield one.finding().placed(
            partition.segments[one.index].log.path,
            next_command=f"logtool verify --wrong-topic {log_dir}",
        )
    yield from _beyond_end(partition, _log_end(partition, reports))


def _log_end(partition: Partition, reports: Sequence[SegmentReport]) -> int | None:
    """Return the log end offset; None where the active segment does not show it."""
    active = reports[-1]
    empty = active.last_offset is None
    known = (
        active.end_known
        and not active.changed
        and (not empty or partition.segments[-1].log.size == 0)
    )
    return active.next_offset if known else None


def _beyond_end(partition: Partition, end: int | None) -> Iterator[Finding]:
    if end is None:
        return
    for file in partition.snapshots:
        if (file.name.offset or 0) > end:
            text = f"is for offset {file.name.offset}, but the log ends at {end}"
            yield Finding("producer-snapshot/beyond-end", text, path=file.path)


def _between(segment: Segment, offsets: Sequence[int], log_end: int = 2**63) -> slice:
    """Return the slice of the ascending `offsets` behind the segment's base, up to its end."""
    end = log_end if segment.next_base_offset is None else segment.next_base_offset
    return slice(bisect_right(offsets, segment.base_offset), bisect_right(offsets, end))


def _count(facts: PartitionSummary, report: SegmentReport, log: File) -> None:
    facts.segments += not report.skipped
    facts.batches += report.batches
    facts.records += report.records
    facts.bytes += report.bytes
    if log.mtime_ns > facts.newest_log_mtime_ns:
        facts.newest_log_mtime_ns, facts.newest_log = log.mtime_ns, log


def _recovery_point_above(segment: Segment, request: CheckRequest) -> int:
    """Return the recovery point if no start reads the segment because of it, else 0.

    After an unclean stop a broker reads the segments from the one with the recovery point on. At
    every start it reads one without an offset index, or with an unsound index of transactions.
    Source: ``LogLoader.recoverLog``, ``LogSegment.sanityCheck`` (Kafka 3.9 and 4.x).
    """
    around, end = request.around, segment.next_base_offset
    kinds = segment.indexes
    if around is None or end is None or FileKind.OFFSET_INDEX not in kinds:
        return 0
    if FileKind.TRANSACTION_INDEX in kinds or end > around.recovery_point:
        return 0
    return around.recovery_point


def _in_segment(item: Item, report: SegmentReport) -> Item:
    if isinstance(item, UnreadableError) or item.path is None:
        return item
    return item.placed(item.path, segment=report.base_offset)


def _placed(
    file: File | None, partition: Partition, findings: Iterator[Finding]
) -> Iterator[Finding]:
    for finding in findings:
        yield finding.placed(file.path if file else partition.path)
