"""The check of one file, with the log next to it if its rules need the log."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from logtool.checks import compaction, continuity, producers
from logtool.checks.kraft_snapshot import check_bootstrap, check_kraft_snapshot
from logtool.checks.partition import CheckRequest, Item, judge
from logtool.checks.report import Level, PartitionSummary, SegmentTask
from logtool.checks.segment import check_segment
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import names, offset_index, time_index, transaction_index
from logtool.formats.names import FileKind, FileState, PartitionDirectory, Reception
from logtool.log import opening, small_files
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.redpanda import REDPANDA
from logtool.node import settings
from logtool.node.identity import topic_id_of

Neighbours = dict[Path, dict[int, Segment]]
"""Segments by base offset, by directory: one listing of a directory serves many files."""
_OF_SEGMENT = (
    FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.REDPANDA_BASE_INDEX,
)  # fmt: skip


def check_single_file(
    path: Path,
    level: Level,
    limit: int,
    facts: PartitionSummary,
    neighbours: Neighbours,
    on_bytes: Callable[[int], None],
    static: Mapping[str, str] | None = None,
    flavour: Flavour | None = None,
) -> Iterator[Item]:
    """Yield the findings of one file of any kind; UnreadableError if Kafka has no such file.

    `static` has the settings in the broker's own file; `flavour` is the value of ``--flavour``.
    """
    flavour = opening.flavour_of_file(path, flavour)
    name = flavour.file_name(path.name)
    if name.kind is FileKind.UNKNOWN:
        name = names.parse_root_file(path.name)
    with LogFile(path) as opened:
        file = File(path=path, name=name, size=opened.size, mtime_ns=0)
    if name.kind in _OF_SEGMENT:
        yield from _in_segment(file, level, limit, facts, neighbours, on_bytes, static, flavour)
    elif name.kind is FileKind.TRANSACTION_INDEX:
        index = transaction_index.parse(files.read_small(path))
        for finding in transaction_index.check(index, base_offset=name.offset):
            yield finding.placed(path)
    elif name.kind is FileKind.PRODUCER_SNAPSHOT:
        yield from producers.check_snapshot_file(file)[0]
    elif name.kind is FileKind.KRAFT_SNAPSHOT:
        yield from check_kraft_snapshot(file)
    elif name.kind is FileKind.BOOTSTRAP_CHECKPOINT:
        yield from check_bootstrap(file)
    elif name.kind in small_files.CHECKABLE:
        yield from small_files.check_file(file)[1]
    elif name.kind is not FileKind.LOCK:
        raise UnreadableError(path, "its name is not that of a file of Kafka")


def _in_segment(
    file: File,
    level: Level,
    limit: int,
    facts: PartitionSummary,
    neighbours: Neighbours,
    on_bytes: Callable[[int], None],
    static: Mapping[str, str] | None,
    flavour: Flavour,
) -> Iterator[Item]:
    """Check a log by itself, or an index against the log next to it; only `file` is judged."""
    segment = _segment(file, neighbours, flavour)
    if segment is None:
        yield from _index_alone(file, flavour)
        return
    if file.name.kind is not FileKind.LOG:
        segment = replace(segment, indexes={file.name.kind: file})
    else:
        segment = replace(segment, indexes={})
    folder = file.path.parent
    known = settings.around(folder, static or {})
    topic = _topic(folder)
    task = SegmentTask(
        segment=segment,
        level=level,
        limit=limit,
        ahead_ms=known.ahead_ms(topic),
        index_interval=known.index_interval(topic),
    )
    report = check_segment(task, on_bytes)
    facts.segments, facts.batches = 1, report.batches
    facts.records, facts.bytes = report.records, report.bytes
    for item in report.findings:
        if item.path == file.path:
            yield item
    if file.name.kind is FileKind.LOG and flavour is not REDPANDA:
        request = CheckRequest(level, cleaning=compaction.next_to(folder), settings=known)
        yield from continuity.check_inside(
            segment, report, lambda: judge([report], request, topic_id_of(folder)), 0
        )


def _segment(file: File, neighbours: Neighbours, flavour: Flavour) -> Segment | None:
    """Return the segment of a log or index as its directory shows it; None without a log."""
    base, parent = file.name.offset or 0, file.path.parent
    if file.name.state is FileState.LIVE and file.name.reception is Reception.EXACT:
        if parent not in neighbours:
            segments = opening.open_partition(parent, flavour).segments
            neighbours[parent] = {segment.base_offset: segment for segment in segments}
        if base in neighbours[parent]:
            return neighbours[parent][base]
    return (
        Segment(base_offset=base, log=file, indexes={}, next_base_offset=None, flavour=flavour)
        if file.name.kind is FileKind.LOG
        else None
    )


def _topic(directory: Path) -> str | None:
    where = directory if files.is_remote(directory) else directory.resolve()
    name = names.parse_directory(where.name)
    return name.topic if isinstance(name, PartitionDirectory) else None


def _index_alone(file: File, flavour: Flavour) -> Iterator[Item]:
    if file.name.kind is FileKind.REDPANDA_BASE_INDEX:
        from logtool.checks.base_index import BaseIndexRules  # of which Kafka's have no need

        nothing = Segment(file.name.offset or 0, file, {}, None, flavour)
        for finding in BaseIndexRules(nothing, file).alone():
            yield finding.placed(file.path)
        return
    data = files.read_small(file.path)
    findings = (
        offset_index.check(offset_index.parse(data))
        if file.name.kind is FileKind.OFFSET_INDEX
        else time_index.check(time_index.parse(data))
    )
    for finding in findings:
        yield finding.placed(file.path)
