"""Faults that Kafka's checks miss: found by the rules of `verify --level quick`."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from logtool.checks import indexes
from logtool.checks.report import Level, SegmentReport, SegmentTask
from logtool.checks.segment import judge_indexes, open_indexes
from logtool.disk import files, shell
from logtool.errors import UnreadableError
from logtool.findings import Finding, rule
from logtool.formats import transaction_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition, Segment
from logtool.log.redpanda import REDPANDA
from logtool.sanity import screening
from logtool.sanity.indexes import Item


class SeenBy(StrEnum):
    """Kind of start that first sees a finding."""

    LAZY = "lazy"
    """Seen by a lazy and by an eager start."""
    EAGER = "eager"
    NEITHER = "neither"


_LOOKS = {
    SeenBy.LAZY: "Every start notices this fault.",
    SeenBy.EAGER: "No start since 2.3 notices this fault; the first access to the segment does.",
    SeenBy.NEITHER: "No start notices this fault.",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding, and the kind of start that sees it."""

    finding: Finding
    by: SeenBy

    @property
    def risk(self) -> str:
        """Return the risk, in sentences: which start sees it, and what a broker then does."""
        known = rule(self.finding.code)
        of_redpanda = self.finding.code.startswith("base-index/")
        reactions = " ".join(known.broker_does.values())
        does = " ".join(((of_redpanda and known.redpanda) or reactions).split())
        return f"{_LOOKS[self.by]} {does}"


def seen_by(finding: Finding) -> SeenBy:
    """Return the kind of start that sees a finding of Kafka's checks."""
    # A broker since 2.3 looks for the offset index, and checks the transaction index.
    lazy = finding.code == "offset-index/missing" or finding.code.startswith("transaction-index/")
    return SeenBy.LAZY if lazy else SeenBy.EAGER


def passed_over(
    partitions: Iterable[Partition], failed: Mapping[Path, set[int]], *, clean: bool
) -> Iterator[Item]:
    """Yield findings of the rules in segments whose base offsets are not among the `failed`.

    `failed` is by the path of the partition. Most segments pass `screening` and need no rules.
    """
    nothing = set[int]()
    segments = (
        (partition, segment)
        for partition in partitions
        for segment in partition.segments
        if segment.base_offset not in failed.get(partition.path, nothing)
    )
    for partition, segment in screening.suspects(segments):
        for item in _rules(segment, clean=clean):
            yield placed(item, partition) if isinstance(item, Finding) else item


def placed(finding: Finding, partition: Partition) -> Finding:
    """Return a finding with its location and the command that shows more."""
    path = finding.path or partition.path
    command = f"logtool dump-index {shell.path(path)}"
    if path.suffix == FileKind.LOG.value or partition.flavour is REDPANDA:
        command = f"logtool verify {shell.path(partition.path)}"
    return finding.placed(
        path,
        topic=partition.topic,
        partition=partition.number,
        segment=finding.segment,
        next_command=command,
    )


def _rules(segment: Segment, *, clean: bool) -> Iterator[Item]:
    report = SegmentReport(segment.base_offset)
    task = SegmentTask(segment=segment, level=Level.QUICK, clean=clean)
    judge_indexes(task, report, open_indexes(segment, report), judged=False)
    for item in (*report.findings, *indexes.missing(segment, clean=clean), *_transactions(segment)):
        if isinstance(item, Finding):
            item = replace(item, segment=segment.base_offset)
        yield item


def _transactions(segment: Segment) -> Iterator[Item]:
    file = segment.indexes.get(FileKind.TRANSACTION_INDEX)
    if not file:
        return
    try:
        index = transaction_index.parse(files.read_small(file.path))
    except UnreadableError as error:
        yield error
        return
    for finding in transaction_index.check(index, base_offset=segment.base_offset):
        yield replace(finding, path=file.path)
