"""The tables ``gaps``, ``producers`` and ``transactions`` of the data source.

They have the rows that `scan` writes for the same partitions, made by the same functions
(`logtool.spark.questions`). These rows are about whole partitions, so that one task reads all of a
partition dir. A row that reaches into the wanted offsets is returned whole.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from logtool.disk import files
from logtool.errors import UnreadableError, UsageError
from logtool.gaps.evidence import Facts
from logtool.log import inputs
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.inputs import PathKind
from logtool.log.selection import WHOLE, OffsetTimeRange
from logtool.spark.identity import place_of_dir
from logtool.spark.questions.answering import LISTS_OF, DirectoryKey, answers
from logtool.spark.questions.facts import facts_by_directory, facts_of
from logtool.spark.questions.range_summary import (
    RangeSummary,
    StretchRows,
    as_rows,
    with_wrappers,
)
from logtool.spark.source import listing
from logtool.spark.source.bundles import OPENING, bundle_size, bundled
from logtool.spark.source.loss import report_loss
from logtool.spark.source.read_tasks import PartitionTask, QuestionTask, ReadTask
from logtool.spark.source.wanted import RowFilter

TABLES: Final = ("gaps", "producers", "transactions")


def plan(
    paths: Sequence[Path],
    table: str,
    wanted: RowFilter,
    bundle_bytes: int | None = None,
    *,
    fails: bool = True,
) -> list[list[QuestionTask]]:
    """Return the wanted partition dirs in bundles, in the order of the paths.

    UnreadableError for a path that does not exist or holds nothing of Kafka, UsageError for a file
    or if no partition matches. LostDataError, or with `fails` False a warning, for a partition dir
    or a checkpoint below a path that cannot be read.
    """
    found: dict[str, PartitionTask] = {}
    for path in listing.expanded(paths):
        if inputs.kind_of(path, redpanda=True) is PathKind.FILE:
            raise UsageError(
                f"{path} is a file: the tables {', '.join(TABLES)} are about whole partitions, so "
                "give a log dir or a partition dir"
            )
        facts = _facts(path, wanted, fails=fails) if table == "gaps" else {}
        for one, segments in listing.partitions(path, wanted, fails=fails):
            place = place_of_dir(one.path)
            span = wanted.span(place.topic, place.partition)
            task = PartitionTask(
                segments=tuple(ReadTask.of(one, segment, place, span) for segment in segments),
                facts=facts.get(_key(place)),
            )
            found.setdefault(files.real(one.path), task)
    if not found and not wanted.takes_all:
        raise UsageError(listing.no_match(paths))

    def cost(task: PartitionTask) -> int:
        return task.size + OPENING * len(task.segments)

    tasks = list(found.values())
    bundles = bundled(tasks, bundle_size(sum(map(cost, tasks)), bundle_bytes), cost)
    return [[QuestionTask(tuple(some))] for some in bundles]


def _facts(path: Path, wanted: RowFilter, *, fails: bool) -> Mapping[DirectoryKey, Facts]:
    """Return facts about the wanted partitions at a path: they need the metadata log, read once."""

    def lost(error: UnreadableError) -> None:
        report_loss(str(error), fails=fails)

    return facts_by_directory(facts_of(path, wanted.selection, lost))


def _key(place: PartitionIdentity) -> DirectoryKey:
    return place.log_dir, place.directory or ""


def rows_of(
    task: QuestionTask, table: str, columns: Sequence[str], *, fails: bool
) -> Iterator[Any]:
    """Yield the columns of a task's rows as a `pyarrow.RecordBatch`.

    LostDataError, or with `fails` False a warning, for a file that cannot be read, or is not as it
    was listed. As in a scan, a partition with such a log has no gaps, and its other rows are those
    of the remaining bytes.
    """

    def lost(error: UnreadableError) -> None:
        report_loss(str(error), fails=fails)

    pieces = [piece for partition in task.partitions for piece in partition.segments]
    if not pieces:
        return
    stretches = [_summary(piece, LISTS_OF[table], lost) for piece in pieces]
    facts = {
        _key(one.segments[0].place): one.facts
        for one in task.partitions
        if one.segments and one.facts
    }
    spans = {_key(piece.place): piece.span for piece in pieces if piece.span != WHOLE}
    for _, rows in answers(pa.Table.from_batches([as_rows(stretches)]), [table], facts):
        yield _touching(rows, spans).select(columns)


def _summary(piece: ReadTask, asked: str, lost: Callable[[UnreadableError], None]) -> RangeSummary:
    """Return the summary of a segment, with the list that is asked for."""
    rows = StretchRows(frozenset({asked}), piece.place, piece.segment, piece.next_segment)
    read = False
    try:
        with piece.open() as log:
            for chunk in piece.batches(log, payload=False):
                for some in with_wrappers(chunk, piece.open):
                    rows.feed(some)
            piece.hold_to_listing(log)
        read = True
    except UnreadableError as error:
        lost(error)
    rows.finish()
    rows.stretch.edge["read"] = read
    return rows.stretch


def _touching(rows: Any, spans: Mapping[DirectoryKey, OffsetTimeRange]) -> Any:
    """Return the rows with an offset of the span of their directory; all where it has none."""
    if not spans:
        return rows
    keys = zip(*(rows.column(name).to_pylist() for name in ("log_dir", "directory")), strict=True)
    wanted = [spans.get(key, WHOLE) for key in keys]
    first, last = (rows.column(name).to_numpy() for name in ("first_offset", "last_offset"))
    taken = (first <= np.array([span.last for span in wanted], np.float64)) & (
        last >= np.array([span.first for span in wanted], np.float64)
    )
    return rows.filter(pa.array(taken))
