"""Everything that can be checked about the given paths: a stream of findings and a summary."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeGuard

from logtool.checks import access, compaction, file_names, root, topic_id_support
from logtool.checks.altered import AlteredFiles
from logtool.checks.compaction import NOT_KNOWN, Cleaning
from logtool.checks.fast_path import PlainPartitions, may_look
from logtool.checks.kraft_snapshot import check_bootstrap
from logtool.checks.log_dir_facts import LogDirFacts, live_key
from logtool.checks.node_verdicts import NodeVerdicts
from logtool.checks.partition import CheckRequest, Item, check_partition, plan
from logtool.checks.partition_numbers import PartitionNumbers, numbers_of
from logtool.checks.report import PartitionSummary
from logtool.checks.schedule import EarlierReports, Engine, PartitionJob, ResumeCoverage, Schedule
from logtool.checks.segment import Level, vanished
from logtool.checks.single_file import Neighbours, check_single_file
from logtool.checks.topic_ids import TopicIds
from logtool.checks.unfinished_output import check_change, check_output
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import FOREIGN_SEGMENT, Finding
from logtool.formats import compression, names
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import OF_TODAY, LogDir, Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import Opened, PathKind
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.node import settings, surroundings
from logtool.node.claims import has_list
from logtool.node.node import images_of
from logtool.node.settings import Settings
from logtool.node.surroundings import Surroundings
from logtool.running.budget import Budget
from logtool.running.run import Progress, Run
from logtool.running.summary import Summary

__all__ = ["Budget", "Level", "Progress", "Selection", "Verification"]

_REPAIRED = frozenset(
    {"checkpoint/high-watermark-beyond-end", "checkpoint/recovery-point-beyond-end", "segment/hole",
     "checkpoint/high-watermark-ahead", "batch/leader-epoch-order", "partition/orphan-index",
     "log/torn-tail-clean", "batch/offset-order", "batch/offset-range", "batch/record-count",
     "batch/last-offset", "segment/missing", "segment/overlap", "batch/zero-run", FOREIGN_SEGMENT,
     "log/truncated", "batch/magic", "batch/size", "batch/hole", "batch/crc"}
)  # fmt: skip
"""Damage about which another copy says more; `recover --fill-from` may repair most of it."""

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
    home: LogDirFacts | None = None
    """Its log dir; None if that is not known."""

    def compared_with_log_dir(self) -> Iterator[Finding]:
        """Yield where the files of the log dir contradict the partition, once it was checked."""
        if self.home and not isinstance(self.partition, UnreadableError):
            yield from self.home.judged(self.key, self.facts)
            if self.facts.damaged and self.home.is_clean and self.partition:
                from logtool.loading.clean_start import check_clean_start  # for damage alone

                yield from check_clean_start(self.partition, self.request.log_start_offset)


class Verification:
    """One run of `verify`: iterate over it for the findings, then read `summary`.

    Inputs that cannot be read come as `UnreadableError` among the findings, and everything else is
    still checked. Paths are checked in the order given; with a memory, each has its turn. When the
    time of the budget is over, what was looked at is judged, and the summary says that it is not
    complete. With `areas`, only codes that begin with one of them are reported.
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
        node_ids: Mapping[Path, int] | None = None,
        flavour: Flavour | None = None,
        engine: Engine | None = None,
        earlier: EarlierReports | None = None,
        numbers: dict[Path, PartitionNumbers] | None = None,
    ) -> None:
        """Take the paths, and how they are checked.

        With an `engine` other processes check the segments; those that `earlier` knows are skipped.
        The numbers of each partition dir that is reached are put into `numbers`. `node_ids` has the
        ids of ``ID=DIR`` by path: log dirs with different ids are of different brokers.
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
        self._verdicts = NodeVerdicts(self._static, node_ids or {})
        self._repairs: dict[tuple[Path, int | None], str | None] = {}
        """The command that repairs each damaged log, where another copy is at hand."""
        self._topic_ids = TopicIds()
        self._containing: dict[Path, LogDirFacts | None] = {}
        """The log dirs that contain partition dirs which were given, by their path."""
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

    @property
    def coverage(self) -> ResumeCoverage | None:
        """Return which logs runs with the same memory have checked; None without a memory."""
        return self._schedule.coverage(self.opened)

    @property
    def read_in_part(self) -> Mapping[Path, int]:
        """Return the bytes at which the next run with the same memory goes on, by the log."""
        return self._schedule.read_in_part

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
        if item.code.startswith("checkpoint/"):
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
        self._verdicts.gather(filter(_is_of_kafka, self.opened.values()))
        for path in self._run.budget.in_turn(self.opened):
            if self.summary.out_of_time:
                break
            self._schedule.reached.add(path)
            found = self.opened[path]
            yield from check_output(path)
            try:
                if isinstance(found, UnreadableError):
                    yield found
                elif isinstance(found, LogDir):
                    yield from self._log_dir(found)
                elif found is PathKind.PARTITION_DIR:
                    yield from self._partition(path)
                else:
                    yield from self._file(path)
            except UnreadableError as error:
                yield error
        yield from self._topic_ids.check(self._verdicts.nodes)
        lone = (path for path, found in self.opened.items() if found is PathKind.PARTITION_DIR)
        self.summary.partition_list = has_list(self._verdicts.nodes.values(), lone)

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
        yield from check_change(home.path)
        if home.flavour is REDPANDA:
            yield from self._of_redpanda(home)
            return
        yield from file_names.check_root_names(home)
        facts = self._facts_of(home)
        yield from facts.items
        yield from self._bootstrap(home)
        yield from root.check_rows(home, facts.checkpoints)
        yield from filter(self._is_selected, self._verdicts.findings.get(home.path, ()))
        yield from filter(self._is_selected, access.of_node(home, self._verdicts.nodes))
        yield from self._live(facts)

    def _bootstrap(self, home: LogDir) -> Iterator[Item]:
        if file := home.files.get(FileKind.BOOTSTRAP_CHECKPOINT):
            node = self._verdicts.nodes.get(home.path)
            holder = node.metadata_log if node else None
            is_read = holder is None or holder.path == home.path
            yield from check_bootstrap(file, is_read=is_read)

    def _facts_of(self, home: LogDir) -> LogDirFacts:
        node = self._verdicts.nodes.get(home.path)
        known = settings.of_node(node) if node else Settings(static=self._static)
        return LogDirFacts(home, known, images_of(self._verdicts.nodes, home.path))

    def _around(self, path: Path) -> LogDirFacts | None:
        """Return the log dir that contains a partition dir; None for a copy of a partition dir."""
        if files.is_remote(path):
            return None  # each further file is a request
        place = path.resolve().parent
        if place not in self._containing:
            home = inputs.containing(path, self._flavour)
            if home and home.path not in self._verdicts.nodes:
                self._verdicts.gather([home])
            self._containing[place] = self._facts_of(home) if home else None
        return self._containing[place]

    def _partition(self, path: Path) -> Iterator[Item]:
        """Check a partition dir with the files of the log dir that contains it, if one does."""
        home, altered = self._around(path), AlteredFiles(alone=True)
        directory = names.parse_directory(path.resolve().name)
        if home is None or not isinstance(directory, PartitionDirectory):
            yield from self._partitions([self._alone(path)], altered)
            return
        if directory.kind in OF_TODAY:
            of_it = directory.topic, directory.partition
            verdicts = self._verdicts.findings.get(home.home.path, ())
            yield from (one for one in verdicts if (one.topic, one.partition) == of_it)
        listing = partial(opening.try_partition, path, self._flavour)
        job = self._job_in(home, path, directory, self._plain(path), listing)
        yield from self._partitions([job], altered)
        self._topic_ids.note_one(self._verdicts.nodes.get(home.home.path), home.home, directory)

    def _alone(self, path: Path) -> PartitionJob:
        """Return the job for a partition dir that no log dir contains."""
        known = None if self._level is Level.QUICK else settings.around(path, self._static)
        request = self._request(
            around=surroundings.alone(path, known) if known else None,
            needs_topic_id=topic_id_support.needs_topic_id(path),
            cleaning=compaction.next_to(path),
            known=known,
        )
        return self._job(path, opening.try_partition(path, self._flavour), request)

    def _job_in(
        self,
        home: LogDirFacts,
        path: Path,
        directory: PartitionDirectory,
        plain: PlainPartitions | None,
        listing: Callable[[], Partition | UnreadableError],
    ) -> PartitionJob:
        """Return the job for a partition of a log dir; `listing` is called if it must be listed."""
        if plain and (job := self._quick_job(plain, path, directory, home)):
            return job
        request = self._request(
            around=home.around(directory),
            needs_topic_id=home.needs_topic_ids,
            cleaning=home.cleaning(directory),
            known=None if self._level is Level.QUICK else home.settings,
        )
        return self._job(path, listing(), request, live_key(directory), home)

    def _quick_job(
        self,
        plain: PlainPartitions,
        path: Path,
        directory: PartitionDirectory,
        home: LogDirFacts,
    ) -> PartitionJob | None:
        """Return a job with nothing left to do, if a quick look at a partition is enough."""
        key = root.key_of(directory)
        over = self._run.budget.pace.is_over
        if directory.kind is not DirectoryKind.LIVE or key is None or over:
            return None
        start, quick, clean = home.log_start(directory), self._level is Level.QUICK, home.is_clean
        ahead_ms = None if quick else home.settings.ahead_ms(directory.topic)
        found = plain.look(path, start, ahead_ms, clean=clean, quick=quick)
        if found is None or home.lacks_remote_epochs(directory, plain.files.epochs, found):
            return None
        self._run.bytes_total += found.bytes
        if self._numbers is not None:
            self._numbers[path] = plain.files.numbers
        return PartitionJob(path, (), _PartitionToCheck(None, _NO_REQUEST, found, key, home))

    def _of_redpanda(self, home: LogDir) -> Iterator[Item]:
        """Check the partitions of a data directory of Redpanda, which has no files next to them."""
        chosen = [entry for entry in home.partitions if self._selection.takes(entry[1])]
        listed = opening.try_partitions([path for path, _ in chosen], home.flavour)
        request = self._request(known=Settings())
        folders = (path for path, _ in chosen)
        jobs = (self._job(*one, request) for one in zip(folders, listed, strict=True))
        yield from self._partitions(jobs, AlteredFiles(alone=True))

    def _live(self, home: LogDirFacts) -> Iterator[Item]:
        """Check the partitions of a log dir, and its own files against them."""
        log_dir = home.home
        facts: dict[PartitionDirectory, PartitionSummary] = {}
        plain = self._plain(log_dir.path)

        def jobs() -> Iterator[PartitionJob]:
            chosen = [entry for entry in log_dir.partitions if self._selection.takes(entry[1])]
            listing = self.engine.partitions if self.engine else opening.try_partitions
            listed = listing([path for path, _ in chosen if not plain], log_dir.flavour)
            for path, directory in chosen:
                one = partial(opening.try_partition, path, log_dir.flavour)
                listed_one = one if plain else partial(next, listed)
                job = self._job_in(home, path, directory, plain, listed_one)
                facts[directory] = job.subject.facts
                yield job

        yield from self._partitions(jobs(), AlteredFiles(alone=False))
        self._topic_ids.note(self._verdicts.nodes.get(log_dir.path), log_dir, facts)
        # The metadata log is closed after the marker is written, and recovered at every start.
        logs = [entry for directory, entry in facts.items() if root.key_of(directory)]
        yield from root.check_marker(log_dir, logs)

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

    def _job(
        self,
        path: Path,
        result: Partition | UnreadableError,
        request: CheckRequest,
        key: TopicPartition | None = None,
        home: LogDirFacts | None = None,
    ) -> PartitionJob:
        tasks = plan(result, request) if isinstance(result, Partition) else []
        if self._numbers is not None and isinstance(result, Partition):
            self._numbers[path] = numbers_of(result)
        subject = _PartitionToCheck(result, request, PartitionSummary(), key, home)
        job = PartitionJob(path, tasks, subject)
        self._run.bytes_total += job.bytes
        return job

    def _partitions(self, jobs: Iterable[PartitionJob], altered: AlteredFiles) -> Iterator[Item]:
        """Check partitions, each with the files of its log dir if that is known."""
        for job, reports in self._schedule.run(jobs):
            subject: _PartitionToCheck = job.subject
            if isinstance(subject.partition, UnreadableError):
                given = job.path in self._paths
                yield subject.partition if given else vanished(subject.partition, _WENT)
                continue
            more = subject.compared_with_log_dir()
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
