"""One run of `rebuild-index` over paths: log dir by log dir, partition by partition.

Files are written to a directory of their own, or in place through a journal.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from logtool import apply
from logtool.actions import Action, FileChange
from logtool.apply import Journal, PendingJournal
from logtool.apply.output_tree import OutputTree
from logtool.checks.compaction import CleanerRows
from logtool.checks.schedule import PartitionJob, Schedule
from logtool.disk import files
from logtool.errors import LogtoolError, RefusedError, UnreadableError, UsageError
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection
from logtool.metadata.releases import NEWEST
from logtool.node.log_dir_state import LogDirState
from logtool.node.options import StartOptions
from logtool.rebuild import building, fast_path, redpanda
from logtool.rebuild import scope as scopes
from logtool.rebuild.building import Built, IndexesToBuild
from logtool.rebuild.fast_path import PlainPartition, QuickLook
from logtool.rebuild.partition import PartitionToRebuild
from logtool.rebuild.scope import Indexing, Scope
from logtool.rebuild.targets import FileChoice
from logtool.running.run import Run
from logtool.running.summary import Summary
from logtool.running.workers import OutOfTimeError

Item = Action | LogtoolError
_TOGETHER = 64
"""Segments whose indexes are held in memory before any of them is written."""


@dataclass(frozen=True, slots=True)
class RebuildConsent:
    """Places that may be written to."""

    apply: bool = False
    """True to change files in place."""
    undo_dir: Path | None = None
    """Undo directory for `apply`; None: one next to the log dir."""
    output: Path | None = None
    """A directory for copies, which is made; None: no copies."""
    command: str = "logtool rebuild-index"
    """The command line, which is stored in the undo directory."""


@dataclass(slots=True)
class IndexRebuild:
    """One run: iterate to get the actions, done or proposed, and errors for unreadable inputs.

    Nothing in a log dir is changed before all of it was checked. If it cannot be changed safely,
    an error is among the items, and the run goes on with the other log dirs.
    """

    paths: Sequence[Path]
    wanted: FileChoice = field(default_factory=FileChoice)
    consent: RebuildConsent = field(default_factory=RebuildConsent)
    selection: Selection = field(default_factory=Selection)
    indexing: Indexing = field(default_factory=Indexing)
    run: Run = field(default_factory=Run)
    summary: Summary = field(default_factory=Summary)
    undo_dirs: list[Path] = field(default_factory=list)
    """Undo directories of the log dirs that were changed."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None: each directory by its names."""
    _quick: QuickLook | None = None
    _cleaner_rows: CleanerRows = field(default_factory=dict)

    def __iter__(self) -> Iterator[Item]:
        given: dict[Path, tuple[Path, list[Scope | None]]] = {}
        of_redpanda: dict[Path, list[Path]] = {}
        for path in self.paths:
            try:
                if opening.try_flavour(path, self.flavour) is REDPANDA:
                    of_redpanda.setdefault(redpanda.data_dir_of(path), []).append(path)
                    continue
                log_dir, scope = scopes.scope_of(path, self.flavour)
            except UnreadableError as error:
                yield error
                continue
            given.setdefault(log_dir.resolve(), (log_dir, []))[1].append(scope)
        if self.consent.undo_dir and len(given) + len(of_redpanda) > 1:
            raise UsageError("--undo-dir is for one log dir; give only paths in one log dir")
        output = IndexOutput(self.consent.output) if self.consent.output else None
        if output is None:
            yield from self._log_dirs(given, of_redpanda, None)
            return
        output.check([*given, *of_redpanda])
        ended = False
        try:
            yield from self._log_dirs(given, of_redpanda, output)
            ended = True
        finally:
            output.close(ended=ended)

    def _log_dirs(
        self,
        given: Mapping[Path, tuple[Path, list[Scope | None]]],
        of_redpanda: Mapping[Path, list[Path]],
        output: "IndexOutput | None",
    ) -> Iterator[Item]:
        for data_dir, paths in of_redpanda.items():
            try:
                lock = apply.locked(data_dir, REDPANDA) if self.consent.apply else None
                with lock or nullcontext():
                    yield from self._log_dir(data_dir, self._redpanda(paths), output)
            except (UnreadableError, RefusedError) as error:
                yield error
        for log_dir, chosen in given.values():
            try:
                lock = apply.locked(log_dir, KAFKA) if self.consent.apply else None
                with lock or nullcontext():
                    yield from self._log_dir(log_dir, self._partitions(log_dir, chosen), output)
            except (UnreadableError, RefusedError) as error:
                yield error
            if self.run.ran_out:
                return

    def _redpanda(self, paths: Sequence[Path]) -> Iterator[list[Action | UnreadableError]]:
        """Yield the actions for base indexes, some segments at a time."""
        for path in dict.fromkeys(paths):
            for listed, only in redpanda.partitions(path, self.selection):
                if isinstance(listed, UnreadableError):
                    yield [listed]
                    continue
                self.summary.partitions += 1
                self.summary.segments += len(listed.segments)
                made = redpanda.actions(
                    listed,
                    everything=self.wanted.everything,
                    only=only,
                    in_place=self.consent.output is None,
                )
                yield from _some(made)

    def _log_dir(
        self,
        log_dir: Path,
        planned: Iterator[list[Action | UnreadableError]],
        output: "IndexOutput | None",
    ) -> Iterator[Item]:
        with ExitStack() as stack:
            in_place = InPlace(self.consent, log_dir, stack)
            if self.consent.apply:
                for action in apply.finish_earlier(log_dir, self.consent.undo_dir):
                    self.undo_dirs.append(action.path)
                    yield action
            take = output.take if output else in_place.take if self.consent.apply else None
            for items in planned:
                actions = [item for item in items if isinstance(item, Action)]
                yield from (item for item in items if not isinstance(item, Action))
                yield from take(actions) if take else actions
            if self.consent.apply and not self.run.ran_out:
                if in_place.journal:
                    self.undo_dirs.append(in_place.journal.undo_dir)
                in_place.carry_out()

    def _partitions(
        self, log_dir: Path, given: list[Scope | None]
    ) -> Iterator[list[Action | UnreadableError]]:
        """Yield the actions, some segments at a time."""
        found = opening.open_log_dir(log_dir, KAFKA)
        home = LogDirState(found, StartOptions(NEWEST, static=self.indexing.static))
        yield list(home.unread)
        for error in home.lacking(FileKind.LOG_START_CHECKPOINT) if self.consent.apply else ():
            text = f"nothing was changed: the new files depend on {error.path.name}"
            raise RefusedError(f"{log_dir}: {text}, which could not be read")
        self._quick = fast_path.looks(self.wanted, self.run.budget, self.flavour)
        named = {scope.path for scope in given if scope}
        with Schedule(self.run) as schedule:
            jobs = (self._job(home, scope) for scope in scopes.scopes(home, given, self.selection))
            for job, reports in schedule.run(jobs):
                if isinstance(job.subject, UnreadableError):
                    # A broker may delete a partition that was listed.
                    if job.path in named or not files.has_vanished(job.subject):
                        yield [job.subject]
                    continue
                subject: PartitionToRebuild | PlainPartition = job.subject
                known = list(reports)
                if schedule.out_of_time:
                    break
                if isinstance(subject, PlainPartition):
                    schedule.spend(subject.facts.bytes, job.path)
                try:
                    yield from _some(subject.actions(known, partial(self._build, path=job.path)))
                except OutOfTimeError:
                    break
                self.summary.count(subject.facts)

    def _job(self, home: LogDirState, scope: Scope) -> PartitionJob:
        try:
            directory = scopes.directory_of(scope)
            settings = scopes.partition_settings(home, directory, self.indexing)
            if self._quick and scope.only is None:
                plain = self._quick.look(scope.path, directory, settings)
                if plain:
                    self.run.bytes_total += plain.facts.bytes
                    return PartitionJob(scope.path, (), plain)
            listed = scopes.read(scope, settings.log_start)
        except UnreadableError as error:
            return PartitionJob(scope.path, [], error)
        subject = PartitionToRebuild(
            partition=listed,
            settings=settings,
            wanted=self.wanted,
            only=scope.only,
            cleaner_rows=self._cleaner_rows,
        )
        job = PartitionJob(scope.path, subject.tasks(), subject)
        self.run.bytes_total += job.bytes
        return job

    def _build(self, pieces: Sequence[IndexesToBuild], path: Path) -> Iterator[Built]:
        """Build the indexes of segments; OutOfTimeError once time is over."""
        for start in range(0, len(pieces), _TOGETHER):
            some = pieces[start : start + _TOGETHER]
            size = sum(piece.segment.log.size for piece in some)
            self.run.bytes_total += size
            self.run.path = path
            with self.run.workers(building.build, size) as workers:
                for built in workers.run(some, lambda piece: -piece.segment.log.size):
                    if isinstance(built, OutOfTimeError):
                        raise built
                    yield built


def _some(
    items: Iterator[Action | UnreadableError],
) -> Iterator[list[Action | UnreadableError]]:
    some: list[Action | UnreadableError] = []
    for item in items:
        some.append(item)
        if len(some) >= _TOGETHER:
            yield some
            some = []
    if some:
        yield some


class IndexOutput:
    """A directory for the built files, with a folder for each partition dir."""

    def __init__(self, path: Path) -> None:
        self._tree = OutputTree(path)
        self._sources: dict[str, Path] = {}
        """The partition dir of each folder."""
        self._current: str | None = None
        """The folder whose files are being written."""

    def check(self, log_dirs: Sequence[Path]) -> None:
        """Raise RefusedError if it is in use, or lies in a log dir."""
        self._tree.check(log_dir.resolve() for log_dir in log_dirs)

    def take(self, actions: Sequence[Action]) -> list[Action]:
        """Write the built files; return the actions with the paths of these files.

        An action that only removes a file is left out.
        """
        return [
            self._written(action, action.change.content)
            if action.change and action.change.content is not None
            else action
            for action in actions
            if action.action is not FileChange.REMOVE
        ]

    def close(self, *, ended: bool) -> None:
        """Complete the last folder if the run has `ended`, and let go of the directory."""
        if ended:
            self._complete()
            self._tree.finish()
        self._tree.close()

    def _written(self, action: Action, content: bytes) -> Action:
        source = action.path.parent.resolve()
        name = source.name
        if self._sources.setdefault(name, source) != source:
            folder = self._tree.path / name
            raise RefusedError(f"{folder}: belongs to {self._sources[name]}, not to {source}")
        if self._current != name:
            self._complete()
            self._current = name
        place = Path(name, action.path.name)
        self._tree.write(place, [content])
        return replace(action, target=self._tree.path / place)

    def _complete(self) -> None:
        if self._current is not None:
            self._tree.complete(Path(self._current))
            self._current = None


class InPlace:
    """The changes of one log dir, saved as they come, then carried out; its lock is held."""

    def __init__(self, consent: RebuildConsent, log_dir: Path, stack: ExitStack) -> None:
        self._pending = PendingJournal(
            log_dir, undo_dir=consent.undo_dir, command=consent.command, stack=stack
        )

    @property
    def journal(self) -> Journal | None:
        """Return the journal, once there is a change."""
        return self._pending.journal

    def take(self, actions: Sequence[Action]) -> list[Action]:
        """Save what is needed to carry the actions out and to undo them."""
        self._pending.stage([action.change for action in actions if action.change])
        return list(actions)

    def carry_out(self) -> None:
        """Change the log dir."""
        if self.journal:
            self.journal.commit()
            self.journal.carry_out()
