"""Everything that can be checked about the given paths: a stream of findings and a summary."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TypeGuard

from logtool.checks import compaction, file_names, metadata_records, root, topic_id_support
from logtool.checks.altered import AlteredFiles
from logtool.checks.broker_dirs import BrokerDirs
from logtool.checks.compaction import NOT_KNOWN, Cleaning
from logtool.checks.fast_path import PlainPartitions, may_look
from logtool.checks.leader_epochs import check_epochs
from logtool.checks.partition import CheckRequest, Item, check_partition, plan
from logtool.checks.partition_numbers import PartitionNumbers, numbers_of
from logtool.checks.report import PartitionSummary
from logtool.checks.schedule import EarlierReports, Engine, PartitionJob, Schedule
from logtool.checks.segment import Level, vanished
from logtool.checks.single_file import Neighbours, check_single_file
from logtool.checks.topic_ids import TopicIds
from logtool.checks.unfinished_output import check_output
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import compression, names
from logtool.formats.meta_properties import MetaProperties
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening, small_files
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir, Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import Opened, PathKind
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.metadata.releases import NEWEST
from logtool.node import settings, surroundings
from logtool.node.claims import has_list
from logtool.node.identity import identify
from logtool.node.node import Node, images_of, nodes_of
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings
from logtool.running.budget import Budget
from logtool.running.run import Progress, Run
from logtool.running.summary import Summary

__all__ = ["SMALL_FILES", "Budget", "Level", "Progress", "Selection", "Verification"]

SMALL_FILES = frozenset(
    {"checkpoint", "clean-shutdown", "leader-epoch", "meta-properties", "partition-metadata",
     "quorum-state"}
)  # fmt: skip
"""The areas of the text files next to the logs."""

_REPAIRED = frozenset(
    {"batch/crc", "batch/size", "batch/magic", "batch/zero-run", "batch/offset-order",
     "batch/offset-range", "batch/last-offset", "batch/leader-epoch-order", "batch/record-count",
     "batch/hole", "log/truncated", "log/torn-tail-clean", "segment/missing", "segment/hole",
     "segment/overlap", "partition/orphan-index", "checkpoint/high-watermark-beyond-end"}
)  # fmt: skip
"""Damage that `recover --fill-from` may repair."""

_NO_REQUEST = CheckRequest()
_WENT = "was renamed or deleted while logtool checked its log dir"


@dataclass(frozen=True, slots=True)
class _PartitionToCheck:
    """A partition to be checked: what is known of it before its segments are."""

    partition: Partition | UnreadableError | None
    """None where a quick look has found nothing to say."""
    request: CheckRequest
    facts: PartitionSummary
    key: TopicPartition | None = None
    """Key of its rows in the checkpoints."""


class Verification:
    """One run of `verify`: iterate over it for the findings, then read `summary`.

    Inputs that cannot be read come as `UnreadableError` among the findings, and everything else is
    still checked. Paths are checked in the order given. When the time of the budget is over, what
    was looked at is judged, and the summary says that it is not complete. With `areas`, only codes
    that begin with one of them are reported.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        level: Level = Level.BATCHES,
        selection: Selection | None = None,
        limit: int = compression.DEFAULT_LIMIT,
        budget: Budget | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        areas: Collection[str] = (),
        static: Mapping[str, str] | None = None,
        flavour: Flavour | None = None,
        engine: Engine | None = None,
        earlier: EarlierReports | None = None,
        numbers: dict[Path, PartitionNumbers] | None = None,
    ) -> None:
        """Take the paths, and how they are checked.

        With an `engine` other processes check the segments; those that `earlier` knows are skipped.
        The numbers of each partition dir that is reached are put into `numbers`.
        """
        self._paths = paths
        self._flavour = flavour
        """The value of ``--flavour``; None: each directory by its names."""
        self._areas = areas
        self._static = static or {}
        """Settings of the broker's own file."""
        self._level = level
        self._limit = limit
        self._selection = selection or Selection()
        self._verdicts: dict[Path, list[Finding]] = {}
        """Findings about the start with a log dir, among the others of its broker, by log dir."""
        self._repairs: dict[tuple[Path, int | None], str | None] = {}
        """The command that repairs each damaged log, where another copy is at hand."""
        self._topic_ids = TopicIds()
        self._nodes: dict[Path, Node] = {}
        """By log dir: its node, with all log dirs of it that were given."""
        self._neighbours: Neighbours = {}
        self._numbers = numbers
        self.opened: dict[Path, Opened] = {}
        """The paths, each once, in their order."""
        self._run = Run(budget=budget or Budget(), on_progress=on_progress)
        self.engine = engine
        """The engine that checks the segments; None if this process does."""
        self._earlier = earlier
        self._schedule = Schedule(self._run, engine=engine, earlier=earlier)
        self.summary = Summary(pace=self._run.budget.pace)

    def use(self, engine: Engine) -> None:
        """Check the segments with an engine; call it before the first item is asked for."""
        self.engine = engine
        self._schedule = Schedule(self._run, engine=engine, earlier=self._earlier)

    @property
    def progress(self) -> Progress:
        """Return how far it is."""
        return self._run

    @property
    def too_large(self) -> Sequence[File]:
        """Return the logs for which the whole time of the run was too short, at the end of it."""
        return self._schedule.too_large

    def __iter__(self) -> Iterator[Item]:
        with self._schedule:
            for item in self._all():
                if self._is_wanted(item):
                    reported = self._with_repair(item)
                    self.summary.add(reported)
                    if reported is not item and isinstance(item, Finding) and item.next:
                        self.summary.next.setdefault(item.next)
                    yield reported

    def _with_repair(self, item: Item) -> Item:
        """Return a finding with the command that repairs the log, if another copy is at hand."""
        if len(self._paths) < 2 or isinstance(item, UnreadableError):
            return item
        if item.code not in _REPAIRED or not item.path or item.topic is None:
            return item
        home = item.path.parent
        if item.code == "checkpoint/high-watermark-beyond-end":
            home = home / f"{item.topic}-{item.partition}"
        key = home, item.first_offset if item.code == "batch/leader-epoch-order" else None
        if key not in self._repairs:
            from logtool.repair import propose

            self._repairs[key] = propose.repair(home, self._paths, key[1])
        command = self._repairs[key]
        return replace(item, next=command) if command else item

    def _is_wanted(self, item: Item) -> bool:
        if not self._areas or isinstance(item, UnreadableError):
            return True
        return item.code.partition("/")[0] in self._areas

    def _all(self) -> Iterator[Item]:
        paths = list(files.each_once(self._paths))
        self.opened = {path: inputs.open_path(path, paths, self._flavour) for path in paths}
        self._gather(filter(_is_of_kafka, self.opened.values()))
        for path, found in self.opened.items():
            if self.summary.out_of_time:
                break
            yield from check_output(path)
            try:
                if isinstance(found, UnreadableError):
                    yield found
                elif isinstance(found, LogDir):
                    yield from self._log_dir(found)
                elif found is PathKind.PARTITION_DIR:
                    yield from self._partitions([self._alone(path)])
                else:
                    yield from self._file(path)
            except UnreadableError as error:
                yield error
        yield from self._topic_ids.check(self._nodes)
        lone = (path for path, found in self.opened.items() if found is PathKind.PARTITION_DIR)
        self.summary.partition_list = has_list(self._nodes.values(), lone)

    def _gather(self, homes: Iterable[LogDir]) -> None:
        """Group the log dirs by node, and judge each group as a start of the node would."""
        identities = [identify(home) for home in homes]
        # A meta.properties that cannot be read is reported when the files are checked.
        readable = [one for one in identities if not one.unread]
        for node in nodes_of(readable, NEWEST, self._static):
            for one in node.log_dirs:
                self._nodes[one.path] = node
            for verdict in BrokerDirs(node).verdicts:
                self._verdicts.setdefault(verdict.log_dir, []).append(verdict.finding)
            if node.metadata_log and node.image:
                faults = metadata_records.check(node.image)
                self._verdicts.setdefault(node.metadata_log.path, []).extend(faults)

    def _file(self, path: Path) -> Iterator[Item]:
        facts = PartitionSummary()
        with LogFile(path) as file:
            self._run.bytes_total += file.size
        what = path, self._level, self._limit, facts, self._neighbours
        yield from check_single_file(
            *what, lambda count: self._schedule.spend(count, path), self._static, self._flavour
        )
        self.summary.count(facts, partitions=0)

    def _log_dir(self, home: LogDir) -> Iterator[Item]:
        yield from root.check_in_use(home.path, home.flavour)
        if home.flavour is REDPANDA:
            yield from self._of_redpanda(home)
            return
        yield from file_names.check_root_names(home)
        checkpoints: dict[FileKind, dict[TopicPartition, OffsetRow]] = {}
        meta: MetaProperties | None = None
        for kind, file in home.files.items():
            if kind not in small_files.CHECKABLE:
                continue
            try:
                value, findings = small_files.check_file(file)
            except UnreadableError as error:
                yield error
                continue
            if kind is not FileKind.META_PROPERTIES:  # which is judged with those of the others
                yield from findings
            if kind in OFFSET_CHECKPOINTS:
                checkpoints[kind] = value.by_partition
            elif kind is FileKind.META_PROPERTIES:
                meta = value
        yield from root.check_rows(home, checkpoints)
        yield from filter(self._is_selected, self._verdicts.get(home.path, ()))
        yield from self._live(home, checkpoints, topic_id_support.needs_topic_ids(home, meta))

    def _alone(self, path: Path) -> PartitionJob:
        """Return the job for a partition dir that was given without its log dir."""
        quick = self._level is Level.QUICK
        known = None if quick else settings.around(path, self._static)
        plain = self._plain(path)
        directory = names.parse_directory(path.resolve().name) if plain else None
        if plain and isinstance(directory, PartitionDirectory):
            job = self._quick_job(plain, path, directory, 0, known)
            if job:
                return job
        request = self._request(
            around=surroundings.alone(path, known) if known else None,
            needs_topic_id=topic_id_support.needs_topic_id(path),
            cleaning=compaction.next_to(path),
            known=known,
        )
        return self._job(path, opening.try_partition(path, self._flavour), request)

    def _quick_job(
        self,
        plain: PlainPartitions,
        path: Path,
        directory: PartitionDirectory,
        log_start: int,
        known: Settings | None,
        *,
        clean: bool = False,
    ) -> PartitionJob | None:
        """Return a job with nothing left to do, if a quick look at a partition is enough."""
        key = root.key_of(directory)
        over = self._run.budget.pace.is_over
        if directory.kind is not DirectoryKind.LIVE or key is None or over:
            return None
        ahead_ms = known.ahead_ms(directory.topic) if known else None
        quick = self._level is Level.QUICK
        found = plain.look(path, log_start, ahead_ms, clean=clean, quick=quick)
        if found is None:
            return None
        self._run.bytes_total += found.bytes
        if self._numbers is not None:
            self._numbers[path] = plain.files.numbers
        return PartitionJob(path, (), _PartitionToCheck(None, _NO_REQUEST, found, key))

    def _of_redpanda(self, home: LogDir) -> Iterator[Item]:
        """Check the partitions of a data directory of Redpanda, which has no files next to them."""
        chosen = [entry for entry in home.partitions if self._selection.takes(entry[1])]
        listed = opening.try_partitions([path for path, _ in chosen], home.flavour)
        request = self._request(known=Settings())
        yield from self._partitions(
            self._job(path, result, request)
            for (path, _), result in zip(chosen, listed, strict=True)
        )

    def _live(
        self, home: LogDir, checkpoints: root.Checkpoints, needs_topic_ids: bool
    ) -> Iterator[Item]:
        """Check the partitions of a log dir, and its own files against them."""
        facts: dict[PartitionDirectory, PartitionSummary] = {}
        topics = self._settings_of(home.path)
        known = None if self._level is Level.QUICK else topics
        plain = self._plain(home.path)
        images = images_of(self._nodes, home.path)
        shared = surroundings.of_log_dir(home)

        def jobs() -> Iterator[PartitionJob]:
            chosen = [entry for entry in home.partitions if self._selection.takes(entry[1])]
            listing = self.engine.partitions if self.engine else opening.try_partitions
            listed = listing([path for path, _ in chosen if not plain], home.flavour)
            for path, directory in chosen:
                key = root.key_of(directory) if directory.kind is DirectoryKind.LIVE else None
                offset = root.offset(checkpoints, FileKind.LOG_START_CHECKPOINT, key) or 0
                clean = home.is_clean
                job = plain and self._quick_job(plain, path, directory, offset, known, clean=clean)
                if job:
                    facts[directory] = job.subject.facts
                    yield job
                    continue
                result = opening.try_partition(path, home.flavour) if plain else next(listed)
                cleaned = root.offset(checkpoints, FileKind.CLEANER_CHECKPOINT, key)
                request = self._request(
                    around=surroundings.of(shared, topics, directory, offset, cleaned),
                    needs_topic_id=needs_topic_ids,
                    cleaning=Cleaning(directory.topic, cleaned, home.is_clean),
                    known=known,
                )
                job = self._job(path, result, request, key)
                facts[directory] = job.subject.facts
                yield job

        def judged(subject: _PartitionToCheck) -> Iterator[Finding]:
            if subject.key:
                what = home, subject.key, subject.facts, checkpoints
                yield from root.check_partition_offsets(*what)
                yield from root.check_missing_rows(*what)
                yield from check_epochs(home, images, subject.key, subject.facts)
            if subject.facts.damaged and home.is_clean and isinstance(subject.partition, Partition):
                from logtool.loading.clean_start import check_clean_start  # for damage alone

                yield from check_clean_start(subject.partition, subject.request.log_start_offset)

        yield from self._partitions(jobs(), judged)
        self._topic_ids.note(self._nodes.get(home.path), home, facts)
        # The metadata log is closed after the marker is written, and recovered at every start.
        logs = [entry for directory, entry in facts.items() if root.key_of(directory)]
        yield from root.check_marker(home, logs)

    def _plain(self, path: Path) -> PlainPartitions | None:
        """Return the fast check to try first; None if an option or remote storage excludes it."""
        timed = self._level is Level.QUICK
        may = may_look(path, self._run.budget, self._flavour, timed=timed)
        special = self.engine or self._earlier or self._level is Level.RECORDS
        return PlainPartitions() if may and not special else None

    def _request(
        self,
        *,
        around: Surroundings | None = None,
        needs_topic_id: bool = True,
        cleaning: Cleaning = NOT_KNOWN,
        known: Settings | None = None,
    ) -> CheckRequest:
        return CheckRequest(
            level=self._level,
            around=around,
            clean=around is not None and around.clean,
            log_start_offset=around.log_start or 0 if around else 0,
            limit=self._limit,
            drop_cache=self._run.budget.drop_cache,
            needs_topic_id=needs_topic_id,
            cleaning=cleaning,
            settings=known or Settings(),
            ahead_ms=known.ahead_ms(cleaning.topic) if known else None,
            index_interval=(known or Settings()).index_interval(cleaning.topic),
        )

    def _settings_of(self, path: Path) -> Settings:
        """Return the same of a log dir, by the metadata log of its broker."""
        node = self._nodes.get(path)
        return settings.of_node(node) if node else Settings(static=self._static)

    def _job(
        self,
        path: Path,
        result: Partition | UnreadableError,
        request: CheckRequest,
        key: TopicPartition | None = None,
    ) -> PartitionJob:
        tasks = plan(result, request) if isinstance(result, Partition) else []
        if self._numbers is not None and isinstance(result, Partition):
            self._numbers[path] = numbers_of(result)
        subject = _PartitionToCheck(result, request, PartitionSummary(), key)
        job = PartitionJob(path, tasks, subject)
        self._run.bytes_total += job.bytes
        return job

    def _partitions(
        self,
        jobs: Iterable[PartitionJob],
        judged: Callable[[_PartitionToCheck], Iterator[Finding]] | None = None,
    ) -> Iterator[Item]:
        """Check partitions; `judged` is asked for more to say of each one that could be read."""
        altered = AlteredFiles(alone=judged is None)
        for job, reports in self._schedule.run(jobs):
            subject: _PartitionToCheck = job.subject
            if isinstance(subject.partition, UnreadableError):
                given = job.path in self._paths
                yield subject.partition if given else vanished(subject.partition, _WENT)
                continue
            more = judged(subject) if judged else ()
            if subject.partition is None:
                self._schedule.count(subject.facts.bytes, job.path)
                yield from chain(altered.sound(), more)
            else:
                what = subject.partition, subject.request, subject.facts
                items = chain(check_partition(*what, reports), more)
                yield from altered.seen(subject.partition, items)
            self.summary.count(subject.facts)
        yield from altered.finish(whole=not self._schedule.out_of_time)

    def _is_selected(self, finding: Finding) -> bool:
        """Return whether a finding is of the log dir, or of a partition that is asked about."""
        if finding.topic is None:
            return True
        directory = names.parse_directory(f"{finding.topic}-{finding.partition}")
        return isinstance(directory, PartitionDirectory) and self._selection.takes(directory)


def _is_of_kafka(found: Opened) -> TypeGuard[LogDir]:
    return isinstance(found, LogDir) and found.flavour.has_checkpoints
