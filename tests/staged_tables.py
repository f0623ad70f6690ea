"""The answers on log dirs, made in this process by the functions that executors run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyarrow import parquet

from logtool.checks.report import SegmentTask
from logtool.checks.segment_ranges import join
from logtool.disk.files import LogFile
from logtool.formats.names import DirectoryKind
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.dir import Segment
from logtool.schemas import arrow
from logtool.spark.questions.answering import LISTS_OF
from logtool.spark.scan.answers import Questions
from logtool.spark.scan.manifest import TableFile
from logtool.spark.scan.runs import begin
from logtool.spark.scan.unit_rows import STAGED, ScanWork


def answers(
    homes: Sequence[Path], names: Sequence[str], work: Path, *, cut: bool = False
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of tables that are answers; with `cut` sound segments are two pieces."""
    run = begin(str(work / "tables"), "one")
    lists = frozenset(LISTS_OF[name] for name in names)
    compared = {"batches"} if "replicas" in names else set()
    job = ScanWork(run.staging, frozenset({STAGED, *compared}), lists=lists)
    whole: list[SegmentTask] = []
    for home in homes:
        for folder, directory in opening.open_log_dir(home).partitions:
            if directory.kind is not DirectoryKind.DELETE:
                for segment in opening.open_partition(folder).segments:
                    parts = _in_pieces(job, segment) if cut else []
                    run.add(parts)
                    whole += [] if parts else [SegmentTask(segment)]
    run.add(part for number, some in job([(0, whole)]) if number < 0 for part in some)
    parts = Questions(run.staging, tuple(names), tuple(homes)).answer_here(run.files(STAGED))
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for part in parts:
        found = parquet.read_table(f"{run.staging.output}/{part.path}", partitioning=None)
        assert found.schema == arrow.schema(part.table)
        rows[part.table] += found.to_pylist()
    run.abandon()
    return rows


def _in_pieces(job: ScanWork, segment: Segment) -> list[TableFile]:
    """Return the files of a segment that is read in two pieces; none where that does not count."""
    whole, middle = SegmentTask(segment), _middle(segment)
    if not middle:
        return []
    spans = range(middle), range(middle, segment.log.size)
    units: list[tuple[int, Sequence[SegmentTask]]] = [
        (at, [replace(whole, piece=span)]) for at, span in enumerate(spans)
    ]
    pieces = [result for number, result in job(units) if number >= 0]
    counts = join(whole, [report for one in pieces for report in one.reports])
    return [part for one in pieces for part in one.parts] if counts else []


def _middle(segment: Segment) -> int:
    with LogFile(segment.log.path) as log:
        chunks = read_batches(log, base_offset=segment.base_offset)
        positions = [position for chunk in chunks for position in chunk.table.position.tolist()]
    return positions[len(positions) // 2] if len(positions) > 1 else 0
