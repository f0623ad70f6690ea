"""Producers and transactions of logs: the open ones, and the one that pins the last stable offset.

The log is read, and compared with its snapshots and indexes, as `verify` does. Where a log dir
holds partitions of ``__transaction_state``, open transactions are joined with their entries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from logtool.checks import compaction, internal_topics
from logtool.checks.fast_path import PlainPartitions, may_look
from logtool.checks.partition import CheckRequest, check_partition, plan
from logtool.checks.plain_files import PlainFiles
from logtool.checks.plain_segment import PlainSegment
from logtool.checks.report import PartitionSummary, SegmentReport
from logtool.checks.schedule import PartitionJob, Schedule
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import producer_snapshot
from logtool.formats.names import DirectoryKind, PartitionDirectory, TopicPartition
from logtool.formats.record_batch import BatchTable, concat
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.producer_state import NONE, significant
from logtool.log.selection import Selection
from logtool.running.run import Run
from logtool.running.summary import Summary
from logtool.running.windows import in_windows
from logtool.txns import coordinator_logs, findings
from logtool.txns.coordinator import TOPIC
from logtool.txns.joining import Joining
from logtool.txns.open_transactions import (
    MAX_AGE_MS,
    PartitionTransactions,
    audit,
    audit_plain,
)

_AREAS = ("producer-snapshot", "transaction-index")
_CODES = frozenset({"batch/plain-in-transaction"})


@dataclass(frozen=True, slots=True)
class _PartitionToAudit:
    partition: Partition
    request: CheckRequest
    high_watermark: int | None
    until_ms: int
    """Time up to which a coordinator may have run."""
    one_of_many: bool
    """True for a single segment that other segments follow."""


@dataclass(frozen=True, slots=True)
class _Audited:
    """A plain partition, which was read when it was listed."""

    facts: PartitionSummary
    audited: PartitionTransactions


@dataclass(slots=True)
class TransactionsRun:
    """One run over paths: iterate for the transactions of each partition, in path order.

    `summary` counts partitions, segments and bytes; the caller counts findings. Paths are log dirs
    (their live partitions), partition dirs and single logs.
    """

    paths: Sequence[Path]
    now_ms: int
    max_age_ms: int = MAX_AGE_MS
    is_now_given: bool = True
    """False if `now_ms` is the time of the clock: what a stopped broker left is judged by the time
    of its stop."""
    selection: Selection = field(default_factory=Selection)
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    joining: Joining = field(default_factory=Joining)
    """Entries of the coordinators of the log dirs, read first. At the end it has their findings."""
    is_listed: bool = True
    """False if no file in the log dirs lists the partitions that should exist; filled."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: each directory by its names."""
    _homes: dict[Path, LogDir] = field(default_factory=dict)
    """The log dirs that were given."""
    _around: dict[Path, LogDir] = field(default_factory=dict)
    """The log dirs around partition dirs and logs that were given; their coordinators count too."""
    _until: dict[Path, int] = field(default_factory=dict)
    _cleaner_rows: compaction.CleanerRows = field(default_factory=dict)

    def __iter__(self) -> Iterator[PartitionTransactions | UnreadableError]:
        windows = in_windows(self._jobs([self._open(path) for path in self.paths]), _segments)
        reported: set[str] = set()
        with Schedule(self.run) as schedule:
            for number, window in enumerate(chain([next(windows, [])], windows)):
                jobs = [one for one in window if isinstance(one, PartitionJob)]
                errors = [one for one in window if isinstance(one, UnreadableError)]
                yield from (error for error in errors if str(error) not in reported)
                if not number:
                    # Before the first partition is joined with the entries of the coordinators.
                    listed = {str(error) for error in errors}
                    for error in self._read_coordinators():
                        if str(error) not in listed:
                            reported.add(str(error))
                            yield error
                self.run.bytes_total += sum(job.bytes for job in jobs)
                for job, found in schedule.run(jobs):
                    reports = list(found)
                    if isinstance(job.subject, _Audited):
                        schedule.count(job.subject.facts.bytes, job.path)
                        self.summary.count(job.subject.facts)
                        yield self.joining.account(job.subject.audited)
                    elif not any(report.skipped for report in reports):
                        yield from self._partition(job.subject, reports)
                if schedule.out_of_time:
                    return

    def _read_coordinators(self) -> Iterator[UnreadableError]:
        """Read `__transaction_state` of the log dirs, for any selection."""
        yield from coordinator_logs.read(self.joining, self._homes | self._around)
        if set(self.paths) == self._homes.keys():
            here = {log.number for log in self.joining.logs}
            nodes = internal_topics.kafka_nodes(self._homes.values(), {})
            self.is_listed = not nodes or internal_topics.lists_partitions(nodes)
            self.joining.absent = [
                one.placed(findings.absent_partitions(one.text))
                for one in internal_topics.absent(nodes, TOPIC, here)
            ]

    def _open(self, path: Path) -> LogDir | list[PartitionJob | UnreadableError]:
        """Return a log dir, or the job for a partition dir or a log, with errors."""
        try:
            kind = inputs.kind_of(path, self.flavour, redpanda=True)
            if kind is PathKind.LOG_DIR:
                self._homes[path] = opening.open_log_dir(path, self.flavour)
                return self._homes[path]
            folder = path if kind is PathKind.PARTITION_DIR else path.parent
            listed = opening.open_partition(folder, self.flavour)
            chosen = listed if kind is PathKind.PARTITION_DIR else _only(listed, path)
        except UnreadableError as error:
            return [error]
        home: LogDir | None
        try:
            place = inputs.log_dir_of(folder, self.flavour)[0]
            home = self._around.get(place) or opening.open_log_dir(place, listed.flavour)
            self._around[place] = home
        except UnreadableError:
            home = None  # a partition dir in a place of its own
        problems: list[UnreadableError] = []
        job = self._job(chosen, home, coordinator_logs.watermarks(home, problems) if home else {})
        return [*problems, job]

    def _jobs(
        self, opened: Iterable[LogDir | list[PartitionJob | UnreadableError]]
    ) -> Iterator[PartitionJob | UnreadableError]:
        """Yield the jobs for the partitions of log dirs, and errors."""
        for home in opened:
            if isinstance(home, list):
                yield from home
                continue
            problems: list[UnreadableError] = []
            watermarks = coordinator_logs.watermarks(home, problems)
            yield from problems
            may = may_look(home.path, self.run.budget, self.flavour)
            looks = PlainPartitions() if may and home.flavour.has_checkpoints else None
            for folder, directory in home.partitions:
                if directory.kind is DirectoryKind.LIVE and self.selection.takes(directory):
                    if looks and (job := self._plain(looks, folder, directory, home, watermarks)):
                        yield job
                        continue
                    try:
                        listed = opening.open_partition(folder, home.flavour)
                        yield self._job(listed, home, watermarks)
                    except UnreadableError as error:
                        if not files.has_vanished(error):
                            yield error

    def _job(
        self, listed: Partition, home: LogDir | None, watermarks: dict[TopicPartition, int]
    ) -> PartitionJob:
        clean = home is not None and home.is_clean
        cleaning = compaction.next_to(listed.path, clean=clean, read=self._cleaner_rows)
        request = CheckRequest(clean=clean, cleaning=cleaning)
        key = (listed.topic or "", listed.number if listed.number is not None else NONE)
        many = bool(listed.segments) and not listed.segments[-1].is_active
        subject = _PartitionToAudit(
            partition=listed,
            request=request,
            high_watermark=watermarks.get(key),
            until_ms=self._until_ms(home),
            one_of_many=many,
        )
        return PartitionJob(listed.path, plan(listed, request), subject)

    def _until_ms(self, home: LogDir | None) -> int:
        """Return the time up to which a coordinator may have run on a log dir."""
        if home is None or self.is_now_given:
            return self.now_ms
        if home.path not in self._until:
            self._until[home.path] = coordinator_logs.until_ms(home, self.now_ms)
        return self._until[home.path]

    def _plain(
        self,
        looks: PlainPartitions,
        folder: Path,
        directory: PartitionDirectory,
        home: LogDir,
        watermarks: dict[TopicPartition, int],
    ) -> PartitionJob | None:
        """Return a job with nothing left to do for a plain partition; None for any other."""
        rows: list[BatchTable] = []

        def keep(segment: PlainSegment) -> None:
            if segment.totals and segment.totals.producers:
                own = segment.table[np.arange(len(segment.table))]  # the columns are used again
                rows.append(significant(own, plain=segment.totals))

        facts = looks.look(folder, 0, None, clean=home.is_clean, on_segment=keep)
        if facts is None or _remembers(looks.files, facts.first_base_offset or 0):
            return None
        self.run.bytes_total += facts.bytes
        mark = watermarks.get((directory.topic, directory.partition))
        return PartitionJob(
            folder, (), _Audited(facts, audit_plain(folder, directory, facts, concat(rows), mark))
        )

    def _partition(
        self, subject: _PartitionToAudit, reports: list[SegmentReport]
    ) -> Iterator[PartitionTransactions | UnreadableError]:
        findings: list[Finding] = []
        facts = PartitionSummary()
        for item in check_partition(subject.partition, subject.request, facts, reports):
            if isinstance(item, UnreadableError):
                yield item
            elif subject.one_of_many and item.code == "producer-snapshot/beyond-end":
                continue  # behind one segment of many the log does not end
            elif item.code in _CODES or item.code.partition("/")[0] in _AREAS:
                findings.append(item)
        self.summary.count(facts)
        audited = audit(
            subject.partition,
            reports,
            findings,
            subject.high_watermark,
            self.now_ms,
            subject.until_ms,
            self.max_age_ms,
        )
        yield self.joining.account(audited)


def _remembers(found: PlainFiles, start: int) -> bool:
    """Return whether a snapshot has a producer all of whose batches are below the log start."""
    if not start or len(found.newest_snapshot) <= producer_snapshot.HEADER.size:
        return False
    entries = producer_snapshot.parse(found.newest_snapshot).entries
    return bool((entries["last_offset"] < start).any())


def _segments(item: PartitionJob | UnreadableError) -> int:
    return 0 if isinstance(item, UnreadableError) else len(item.tasks)


def _only(listed: Partition, path: Path) -> Partition:
    """Return the partition as if it had one log only; UnreadableError if the path is not a log."""
    for segment in listed.segments:
        if segment.log.path.name == path.name:
            end = segment.next_base_offset
            neighbours = [
                file
                for file in listed.snapshots
                if segment.base_offset <= (file.name.offset or 0)
                and (end is None or (file.name.offset or 0) <= end)
            ]
            return replace(listed, segments=(segment,), snapshots=tuple(neighbours))
    raise UnreadableError(path, "expected a log dir, a partition dir or a .log file")
