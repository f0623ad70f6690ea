"""The gaps of log dirs, partition dirs and single logs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.checks.fast_path import PlainPartitions, may_look
from logtool.disk import files
from logtool.errors import BatchTooLargeError, UnreadableError, UsageError
from logtool.findings import Finding
from logtool.gaps import kafka_offsets, lost_ranges
from logtool.gaps.coverage import Coverage, CoverageTask, look
from logtool.gaps.kafka_offsets import KafkaView
from logtool.gaps.ledger import Ledger, build, unbroken
from logtool.gaps.partition_facts import (
    GapOptions,
    PartitionToRead,
    PlainLog,
    indexed,
    subjects,
    with_past,
    with_plain,
)
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Segment
from logtool.log.flavour import Flavour
from logtool.log.selection import Selection
from logtool.running.run import Run
from logtool.running.windows import in_windows
from logtool.running.workers import OnBytes, OutOfTimeError, Workers

__all__ = ["GapOptions", "Gaps", "Result", "SegmentBatches"]


_Looked = Coverage | UnreadableError
_Found = _Looked | OutOfTimeError
_Chosen = PartitionToRead | PlainLog | UnreadableError


@dataclass(frozen=True, slots=True)
class SegmentBatches:
    """One segment that was read, and the ranges of bytes of its batches that count."""

    segment: Segment
    stretches: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """One partition and its gaps."""

    subject: PartitionToRead
    ledger: Ledger
    segments: int
    records: int
    bytes: int
    first_base: int
    """Base offset of the first batch, which may be below the log start; else the log start."""
    batch_bytes: int
    """Bytes of the batches that count."""
    parts: tuple[SegmentBatches, ...]
    """Empty for a plain partition with `GapOptions.sums_alone`."""
    findings: tuple[Finding, ...] = ()
    """Findings about timestamps that cannot be meant, with their places."""
    kafka: KafkaView | None = None
    """Its Kafka offsets; None for a log that is not of Redpanda or has no Kafka offsets."""


class Gaps:
    """One run over paths: iterate over it for the result of each partition."""

    def __init__(
        self,
        paths: Sequence[Path],
        wanted: GapOptions,
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        self._paths, self._flavour = paths, flavour
        self._wanted = wanted
        self._selection = selection or Selection()
        self._run = run or Run()

    def _chosen(self) -> Iterator[_Chosen]:
        for path in dict.fromkeys(self._paths):
            may = self._wanted.sums_alone and may_look(path, self._run.budget, self._flavour)
            looks = PlainPartitions() if may else None
            yield from with_plain(path, self._wanted, self._selection, self._flavour, looks)

    @property
    def partitions(self) -> int:
        """Return the number of partitions that are to be read; they are listed for that."""
        return sum(not isinstance(subject, UnreadableError) for subject in self._chosen())

    def __iter__(self) -> Iterator[Result | UnreadableError]:
        for window in in_windows(self._chosen(), _segments):
            for item in window:
                if isinstance(item, UnreadableError):
                    yield item
                elif isinstance(item, PartitionToRead):
                    yield from item.unread
            yield from self._read(
                [item for item in window if not isinstance(item, UnreadableError)]
            )
            if self._run.ran_out:
                return

    def _read(
        self, wanted: Sequence[PartitionToRead | PlainLog]
    ) -> Iterator[Result | UnreadableError]:
        """Yield the results of partitions."""
        looks = [
            [] if isinstance(subject, PlainLog) else subject.looks(self._wanted)
            for subject in wanted
        ]
        tasks = [task for some in looks for task in some]
        self._run.bytes_total += sum(task.segment.log.size for task in tasks)
        self._run.bytes_total += sum(
            subject.summary.bytes for subject in wanted if isinstance(subject, PlainLog)
        )
        turns = {id(task): turn for turn, task in enumerate(tasks)}
        with self._run.workers(_look) as workers:
            # In the order of the tasks: a result that is early waits in memory.
            results = workers.run(tasks, lambda task: turns[id(task)])
            for subject, some in zip(wanted, looks, strict=True):
                if isinstance(subject, PlainLog):
                    self._run.advance(subject.summary.bytes, subject.partition.partition.path)
                    yield _of_plain(subject)
                    continue
                self._run.path = subject.partition.path
                looked = [next(results) for _ in some]
                settled = self._settled(subject, looked, workers)
                if not isinstance(settled, UnreadableError):
                    yield from self._result(*settled)
                elif subject.partition.path in self._paths or not files.has_vanished(settled):
                    yield settled

    def _settled(
        self,
        subject: PartitionToRead,
        looked: list[_Found],
        workers: Workers[CoverageTask, _Looked],
    ) -> tuple[PartitionToRead, list[_Found]] | UnreadableError:
        """Return a partition and the results of its segments, without segments that have vanished.

        A broker deletes and cleans segments while others are read. If so, the directory is
        listed and read again; the returned error is that of the listing.
        """
        path = subject.partition.path
        for _ in range(opening.MOST_LOOKS):
            errors = [one for one in looked if isinstance(one, UnreadableError)]
            is_log = any(error.path == path for error in errors)
            if is_log or not any(map(files.has_vanished, errors)):
                break
            if not files.has_dir(path):
                return UnreadableError(path, "No such file or directory", missing=True)
            flavour = subject.partition.flavour
            *_, item = subjects(path, self._wanted, Selection(), flavour)
            if isinstance(item, UnreadableError):
                return item
            subject = item
            looked = [workers.again(task) for task in subject.looks(self._wanted)]
        return subject, looked

    def log_end_of(self, path: Path) -> int:
        """Return the log end offset of another replica.

        UnreadableError if it cannot be read, UsageError if the path is not exactly one partition.
        """
        run = Run(budget=self._run.budget)
        other = Gaps([path], self._wanted, run=run, flavour=self._flavour)
        ends = []
        for item in other:
            if isinstance(item, UnreadableError):
                raise item
            ends.append(item.ledger.log_end)
        if run.ran_out:
            raise UnreadableError(path, "logtool had no time to read this path")
        if len(ends) != 1:
            raise UsageError(f"{path}: expected one partition, found {len(ends)}")
        return ends[0]

    def _result(
        self, subject: PartitionToRead, looked: list[_Found]
    ) -> Iterator[Result | UnreadableError]:
        problems = [item for item in looked if isinstance(item, UnreadableError)]
        segments = [item for item in looked if isinstance(item, Coverage)]
        yield from problems
        looks = subject.looks(self._wanted)
        for item, task in zip(looked, looks, strict=True):
            for position in sorted(item.too_large) if isinstance(item, Coverage) else ():
                yield BatchTooLargeError(task.segment.log.path, position, task.limit)
        is_whole = not any(isinstance(item, OutOfTimeError) for item in looked)
        if is_whole and not problems:
            segments = _without_overlaps(looks, segments)
            facts = indexed(subject, segments, problems.append)
            yield from problems
            ledger = build(segments, facts, isolation=self._wanted.isolation)
            proved = lost_ranges.end(subject.partition, subject.home, facts, ledger.log_end)
            if proved.lost_end:
                facts = proved
                ledger = build(segments, facts, isolation=self._wanted.isolation)
            is_known = facts.cleaning.is_compacted or self._wanted.policy is not None
            if ledger.missing and not is_known:
                # Only now: the past policies need a read of the whole metadata log.
                facts = with_past(subject, facts)
                ledger = build(segments, facts, isolation=self._wanted.isolation)
            filtered = [one for coverage in segments for one in coverage.filtered]
            yield Result(
                subject=replace(subject, facts=facts),
                ledger=ledger,
                segments=len(subject.partition.segments),
                records=sum(coverage.records for coverage in segments),
                bytes=sum(coverage.bytes for coverage in segments),
                first_base=next(
                    (
                        coverage.first_base
                        for coverage in segments
                        if coverage.first_base is not None
                    ),
                    ledger.log_start,
                ),
                batch_bytes=sum(
                    end - start for coverage in segments for start, end in coverage.stretches
                ),
                parts=tuple(
                    SegmentBatches(task.segment, tuple(coverage.stretches))
                    for task, coverage in zip(looks, segments, strict=True)
                ),
                findings=tuple(_placed(subject, looks, segments)),
                kafka=kafka_offsets.view(subject.partition, ledger, filtered),
            )


def _of_plain(plain: PlainLog) -> Result:
    """Return the result of a plain partition."""
    facts, summary = plain.partition.facts, plain.summary
    ledger = unbroken(facts, summary.log_end_offset or 0, summary.batches)
    return Result(
        subject=plain.partition,
        ledger=ledger,
        segments=summary.segments,
        records=summary.records,
        bytes=summary.bytes,
        first_base=ledger.log_start,
        batch_bytes=summary.bytes,
        parts=(),
    )


def _placed(
    subject: PartitionToRead, looks: Sequence[CoverageTask], segments: Sequence[Coverage]
) -> Iterator[Finding]:
    listed = subject.partition
    for task, coverage in zip(looks, segments, strict=True):
        for finding in coverage.odd:
            segment = task.segment
            yield finding.placed(
                segment.log.path,
                topic=listed.topic,
                partition=listed.number,
                segment=segment.base_offset,
            )


def _look(task: CoverageTask, on_bytes: OnBytes) -> _Looked:
    try:
        return look(task, on_bytes)
    except UnreadableError as error:
        return error


def _without_overlaps(tasks: Sequence[CoverageTask], segments: list[Coverage]) -> list[Coverage]:
    """Read a segment that begins below the end of the one before again, from that end on."""
    end, result = 0, []
    for task, coverage in zip(tasks, segments, strict=True):
        if coverage.first and coverage.first.offset < end:
            coverage = look(replace(task, start=end))
            coverage.overlaps += 1
        end = max(end, coverage.last.offset + 1) if coverage.last else end
        result.append(coverage)
    return result


def _segments(item: _Chosen) -> int:
    if isinstance(item, UnreadableError):
        return 0
    return item.summary.segments if isinstance(item, PlainLog) else len(item.partition.segments)
