"""The base indexes of a partition of Redpanda, as a start makes them when it replays a segment.

An index is rebuilt if it is bad, or if it is missing for a segment that is not the last: the last
one has no index while it is open. It ends at the first damage of the segment, as it does after the
start has cut the segment there. In place no index of a damaged segment is made: a start would trust
it, and not cut the segment, nor give up one that holds no batch.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action, Change, FileChange, Stamp
from logtool.checks.partition import CheckRequest, check_partition, plan
from logtool.checks.report import PartitionSummary
from logtool.checks.segment import check_segment
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.formats.redpanda.names import KAFKA_NAMESPACE
from logtool.log import inputs, opening, redpanda_dir
from logtool.log.base_index import Builder
from logtool.log.dir import Partition, Segment
from logtool.log.inputs import PathKind
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.rebuild.partition import DAMAGED

_INDEX = FileKind.REDPANDA_BASE_INDEX
_AREA = "base-index/"
_LEGAL = "base-index/wrapped"


def data_dir_of(path: Path) -> Path:
    """Return the data directory that a path lies in, which has the lock; UnreadableError."""
    return redpanda_dir.data_dir_of(path.absolute().parent if redpanda_dir.place(path) else path)[0]


def partitions(
    path: Path, selection: Selection
) -> Iterator[tuple[Partition | UnreadableError, Path | None]]:
    """Yield the partitions of a path, each with the one file that is meant, or None for all.

    An error stands for one that cannot be listed; UnreadableError is raised for `path` itself.
    """
    if redpanda_dir.place(path):
        yield opening.try_partition(path.parent, REDPANDA), path
    elif inputs.kind_of(path, REDPANDA, redpanda=True) is PathKind.PARTITION_DIR:
        yield opening.try_partition(path, REDPANDA), None
    else:
        for folder, directory in opening.open_log_dir(path, REDPANDA).partitions:
            if selection.takes(directory):
                found = opening.try_partition(folder, REDPANDA)
                if not (isinstance(found, UnreadableError) and files.has_vanished(found)):
                    yield found, None


def actions(
    listed: Partition, *, everything: bool, only: Path | None = None, in_place: bool
) -> Iterator[Action | UnreadableError]:
    """Yield the actions for the indexes of a partition; `only` is one segment or index."""
    all_data = listed.path.absolute().parent.parent.name != KAFKA_NAMESPACE
    tasks = plan(listed, CheckRequest())
    reports = [check_segment(task) for task in tasks]
    items = list(check_partition(listed, CheckRequest(), PartitionSummary(), reports))
    yield from (item for item in items if isinstance(item, UnreadableError))
    faults = {
        item.path: item.message
        for item in items
        if isinstance(item, Finding) and item.code.startswith(_AREA) and item.code != _LEGAL
    }
    for segment in listed.segments:
        path = segment.log.path.with_suffix(".base_index")
        if only is not None and only.name not in (path.name, segment.log.path.name):
            continue
        file = segment.indexes.get(_INDEX)
        why = faults.get(path)
        if file is None and (everything or only or not segment.is_active):
            why = "the index does not exist"
        elif why is None and (everything or only):
            why = "asked for"
        if why is not None:
            for item in _made(segment, path, why, all_data=all_data, in_place=in_place):
                if isinstance(item, Action):
                    item = replace(item, topic=listed.topic, partition=listed.number)
                yield item


def _made(
    segment: Segment, path: Path, why: str, *, all_data: bool, in_place: bool
) -> Iterator[Action | UnreadableError]:
    try:
        content, damage = _content(segment, all_data=all_data)
        file = segment.indexes.get(_INDEX)
        if file is not None:
            with file.open() as opened:
                if opened.read(0, file.size) == content:
                    return
    except UnreadableError as error:
        yield error
        return
    if content is None or (damage and in_place):
        text = f"no index is built: {damage}; 'logtool recover' does what a broker does with it"
        yield Action(action=DAMAGED, path=path, reason=text, segment=segment.base_offset)
        return
    if damage:
        why += f"; is sound up to {damage}"
    change = Change(
        kind=FileChange.REPLACE if file else FileChange.CREATE,
        path=path,
        seen=Stamp(file.size, file.mtime_ns) if file else None,
        content=content,
    )
    yield Action(
        action=change.kind,
        path=path,
        reason=why,
        length=len(content),
        change=change,
        segment=segment.base_offset,
    )


def _content(segment: Segment, *, all_data: bool) -> tuple[bytes | None, str]:
    """Return the index of a segment up to its first damage, and a text about the damage.

    Without a batch before the damage, return None in place of the index.
    """
    builder = Builder(segment.base_offset, all_data=all_data)
    with segment.log.open() as log:
        for chunk in segment.batches(log, payload=False):
            if chunk.damage:
                text = f"byte {chunk.damage.position} of {log.size}: {chunk.damage.message}"
                return builder.finish() if builder.count else None, text
            builder.add(chunk.table)
    return (builder.finish(), "") if builder.count else (None, "the segment has no batch")
