"""Recovery of log dirs without a broker: the changes that a broker's next start would make.

Each partition is loaded on a shadow of its directory (`logtool.startup.partition`). The differences
from the disk are carried out through a journal (`logtool.apply`), so that they can be finished or
undone.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import field, replace
from pathlib import Path

from logtool import apply
from logtool.actions import HINDRANCES, Action, Change, FileChange, Stamp
from logtool.apply import Journal, PendingJournal
from logtool.checks.broker_dirs import BrokerDirs
from logtool.checks.identity import Effect
from logtool.checks.root import MARKER_TOLERANCE_NS
from logtool.disk import files, shell
from logtool.errors import (
    LogtoolError,
    RefusedError,
    UnreadableError,
    UnwritableError,
    UsageError,
)
from logtool.formats import clean_shutdown, offset_checkpoint
from logtool.formats.names import FileKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import Outcome
from logtool.log import opening
from logtool.log.dir import LogDir
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import OpenedPath, open_each
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import Node
from logtool.node.options import StartOptions
from logtool.running.run import Run
from logtool.startup import filled
from logtool.startup.forecast import Forecast
from logtool.startup.log_dir_start import LogDirStart, Points
from logtool.startup.partition import PartitionForecast

Item = Action | PartitionForecast | LogtoolError
_DECIDE = (
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.LOG_START_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
)
"""The offset checkpoints that decide where recovery begins, and whether a loss was committed."""


@dataclass(frozen=True, slots=True)
class ApplyConsent:
    """The changes that the user allows."""

    apply: bool = False
    accepted: frozenset[TopicPartition] = frozenset()
    """Partitions that may lose records."""
    mark_clean: bool = False
    """True if the log dir is to be marked as stopped in order."""
    undo_dir: Path | None = None
    """Directory for the undo data; None for one next to the log dir."""
    command: str = "logtool recover"


@dataclass(slots=True)
class Recover:
    """One run: iterate over the actions, done or planned, log dir by log dir.

    A partition that a broker could not load is left alone; everything else is still done. Without
    consent to a loss, or if a log dir cannot be marked clean, nothing of that log dir is done, and
    the error among the items gives the reason.
    """

    paths: Sequence[Path]
    assumed: StartOptions
    consent: ApplyConsent
    selection: Selection = field(default_factory=Selection)
    points: Points = lambda key, row: row or 0
    run: Run = field(default_factory=Run)
    undo_dirs: list[Path] = field(default_factory=list)
    """Undo directories of the log dirs that were changed."""
    named_by: str = "--from-offset"
    """The option that named the partitions of the selection."""
    made: int = 0
    """Changes that were carried out."""
    flavour: Flavour | None = None
    """The value of ``--flavour``; None to go by the names in each directory."""
    blocked: bool = False
    """True if --apply refuses because one of the deciding checkpoints could not be read."""
    _broker: BrokerDirs = field(init=False)
    """The log dirs given, which belong to one broker."""

    def __iter__(self) -> Iterator[Item]:
        opened = list(open_each(self.paths, self.flavour))
        self._check(opened)
        yield from _not_there(self.assumed.fill_from)
        self._broker = self._gather(opened)
        whole = [one.log_dir for one in opened if isinstance(one, OpenedPath) and one.is_whole]
        yield from filled.absent(whole, self.assumed.fill_from, self.selection)
        for given in opened:
            if isinstance(given, UnreadableError):
                yield given
                continue
            try:
                lock = apply.locked(given.log_dir, self.flavour) if self.consent.apply else None
                with lock or nullcontext():
                    yield from self._log_dir(given)
            except (UnreadableError, UnwritableError, RefusedError) as error:
                yield error

    def _gather(self, opened: Sequence[OpenedPath | UnreadableError]) -> BrokerDirs:
        """Return the log dirs as those of one broker, as its start takes them."""
        members: dict[Path, LogDirIdentity] = {}
        for given in opened:
            if isinstance(given, OpenedPath) and given.log_dir not in members:
                with suppress(UnreadableError):  # reported when its turn comes
                    if (root := given.read()).flavour.has_checkpoints:
                        members[given.log_dir] = identify(root)
        return BrokerDirs(Node(list(members.values()), self.assumed.kafka, self.assumed.static))

    def _check(self, opened: Sequence[OpenedPath | UnreadableError]) -> None:
        """Raise UsageError for contradictory options, before any log dir is changed."""
        if self.consent.undo_dir and len(self.paths) > 1:
            raise UsageError("--undo-dir is for one log dir; give only one PATH")
        selected: set[TopicPartition] = set()
        unread = False
        for given in opened:
            # Reported when its turn comes.
            if isinstance(given, UnreadableError) or isinstance(given.contents, UnreadableError):
                unread = True
                continue
            in_part = given.name is not None or self.selection != Selection()
            if self.consent.mark_clean and in_part:
                raise UsageError(
                    "--mark-clean is for a whole log dir; it cannot be combined with a selection"
                )
            chosen = given.chosen(self.selection)
            selected |= {(directory.topic, directory.partition) for _, directory in chosen}
        for key in selected:
            self.points(key, None)
        named = (("--accept-loss", self.consent.accepted), (self.named_by, self.selection.keys))
        for option, keys in named:
            for topic, number in sorted(keys - selected):
                if not unread:
                    raise UsageError(f"{option} {topic}-{number}: this partition is not selected")

    def _log_dir(self, opened: OpenedPath) -> Iterator[Item]:
        log_dir = opened.log_dir
        if self.consent.undo_dir:
            apply.check_place(self.consent.undo_dir, log_dir)
        for action in apply.finish_earlier(
            log_dir, self.consent.undo_dir, dry_run=not self.consent.apply
        ):
            if self.consent.apply:
                self.undo_dirs.append(action.path)
            yield action
        if self.consent.apply:
            opened = opened.again()  # another process may have changed it before it was locked
        forecast = Forecast(
            [opened],
            replace(
                self.assumed,
                contents=True,
                verify=self.consent.mark_clean and not self.assumed.trust,
            ),
            selection=self.selection,
            points=self.points,
            run=self.run.restarted(),
            broker=self._broker,
            is_locked=self.consent.apply,
        )
        with ExitStack() as stack:
            work = _LogDirPlan(self.consent, log_dir, stack)
            for item in forecast:
                if isinstance(item, PartitionForecast):
                    work.take(item)
                elif isinstance(item, UnreadableError):
                    work.unread = True
                yield item
            if forecast.out_of_time:
                return
            for start in forecast.log_dirs:
                is_blocked = bool(start.lacking(*_DECIDE))
                self.blocked |= is_blocked
                for action, first in () if is_blocked else work.log_dir_actions(start):
                    work.stage([action], first=first)
                    yield action
            work.check(forecast.log_dirs, self._broker)
            if work.journal:
                work.commit(work.journal)
                self.undo_dirs.append(self.consent.undo_dir or work.journal.undo_dir)
                work.journal.carry_out()
                self.made += work.staged


class _LogDirPlan:
    """The changes to one log dir."""

    def __init__(self, consent: ApplyConsent, log_dir: Path, stack: ExitStack) -> None:
        self._consent = consent
        self._log_dir = log_dir
        self._ends: dict[TopicPartition, int] = {}
        self._paths: list[Path] = []
        self._pending = PendingJournal(
            log_dir, undo_dir=consent.undo_dir, command=consent.command, stack=stack
        )
        self.staged = 0
        """Number of changes in the journal."""
        self.unread = False
        self._truncated: set[TopicPartition] = set()
        self._changed: set[Path] = set()
        """Logs that are changed."""
        self._refusals: list[str] = []
        self._losing: list[str] = []
        self._hiding: list[str] = []
        """The commands to run first: a log would end in front of sound batches."""
        self._doubts: list[str] = []

    @property
    def journal(self) -> Journal | None:
        """Return the journal, once there is a change."""
        return self._pending.journal

    def take(self, forecast: PartitionForecast) -> None:
        """Stage the changes to one partition, and note what speaks against them."""
        request = forecast.request
        if forecast.outcome is not Outcome.LOADS:
            self._doubts.append(f"{request.path.name}: {forecast.reason}")
            return
        key = request.topic or "", request.partition or 0
        is_losing = forecast.cut or _lacks_remote_epochs(forecast)
        if is_losing and key not in self._consent.accepted:
            self._losing.append(f"{key[0]}-{key[1]}")
        if forecast.hidden and key not in self._consent.accepted:
            self._hiding.append(forecast.hidden.command)
        self._doubts += [
            f"{action.path}: {action.reason}"
            for action in forecast.actions
            if action.action in ("unnoticed", "hide", "zombie", "overlap")
        ]
        target = request.start.truncate_to
        if target is not None and target < forecast.log_start:
            text = f"{key[0]}-{key[1]} starts at {forecast.log_start}; it cannot be truncated to "
            self._refusals.append(text + str(target))
        self._paths.append(request.path)
        if request.path.name == f"{key[0]}-{key[1]}":
            self._ends[key] = forecast.log_end
            if target is not None:
                self._truncated.add(key)
        actions = forecast.actions
        self.stage(actions if request.redpanda else _in_safe_order(actions))

    def stage(self, actions: Sequence[Action], *, first: bool = False) -> None:
        """Save the data to do and undo the actions; with `first` they come before all others."""
        changes = [action.change for action in actions if action.change]
        self._changed |= {one.path for one in changes if one.path.suffix == FileKind.LOG}
        if not changes or not self._consent.apply:
            return
        self._pending.stage(changes, first=first)
        self.staged += len(changes)

    def check(self, starts: Sequence[LogDirStart], broker: BrokerDirs) -> None:
        """Raise RefusedError if the plan must not be carried out, or a deciding file is unread."""
        for error in (error for start in starts for error in start.lacking(*_DECIDE)):
            if self._consent.apply:
                text = f"nothing was changed: the recovery depends on {error.path.name}"
                raise RefusedError(f"{self._log_dir}: {text}, which could not be read")
        if self._refusals:
            raise RefusedError(f"{self._log_dir}: {'; '.join(self._refusals)}")
        if self._losing and self._consent.apply:
            options = " ".join(shell.option("--accept-loss", name) for name in self._losing)
            raise RefusedError(
                f"{self._log_dir}: records would be lost; to accept this loss: {options}"
            )
        if self._hiding and self._consent.apply:
            raise RefusedError(
                f"{self._log_dir}: sound batches would be hidden; first: {'; '.join(self._hiding)}"
            )
        if not self._consent.mark_clean:
            return
        doubts = [*self._doubts, *_stops(starts, broker)]
        if self.unread and not doubts:
            doubts = ["not everything could be read"]
        if doubts:
            raise RefusedError(
                f"{self._log_dir}: cannot be marked clean: {doubts[0]}"
                + (f" (and {len(doubts) - 1} more)" if len(doubts) > 1 else "")
            )

    def log_dir_actions(self, start: LogDirStart) -> Iterator[tuple[Action, bool]]:
        """Yield the actions on the log dir's own files; True for those before all others.

        A row that is lowered is written before the log is cut: after an interruption a broker then
        reads the cut log again. Rows are raised when all is done, and the marker is written last.
        """
        rows = start.rows(FileKind.RECOVERY_POINT_CHECKPOINT)
        lowered = {key: min(row, self._ends.get(key, row)) for key, row in rows.items()}
        risen = {**rows, **self._ends} if self._consent.mark_clean else lowered
        for before, after, falls in ((rows, lowered, True), (lowered, risen, False)):
            if before == after:
                continue
            content = offset_checkpoint.encode(offset_checkpoint.build(after))
            changed = sum(before.get(key) != offset for key, offset in after.items())
            what = (
                "recovery point is set to the end"
                if changed == 1
                else "recovery points are set to the ends"
            )
            text = f"{changed} {what} of the recovered logs"
            if lowered not in (rows, risen):
                text += ", lowered before the logs are cut" if falls else ", raised at the end"
            yield _write(start, FileKind.RECOVERY_POINT_CHECKPOINT, content, text), falls
        watermarks = start.rows(FileKind.REPLICATION_CHECKPOINT)
        low = {
            key: min(row, self._ends[key]) if key in self._truncated else row
            for key, row in watermarks.items()
        }
        if low != watermarks:
            content = offset_checkpoint.encode(offset_checkpoint.build(low))
            text = "high watermarks are lowered to the ends of truncated logs"
            yield _write(start, FileKind.REPLICATION_CHECKPOINT, content, text), True
        if self._consent.mark_clean and not start.log_dir.is_clean:
            text = "a broker then takes the logs as they are and recovers nothing"
            yield _write(start, FileKind.CLEAN_SHUTDOWN, clean_shutdown.MARKER, text), False
        elif marker := self._kept_marker(start.log_dir):
            text = "is written again, because it is older than the logs that were recovered"
            yield _write(start, FileKind.CLEAN_SHUTDOWN, marker, text), False

    def _kept_marker(self, root: LogDir) -> bytes | None:
        """Return the content of a clean-shutdown marker that holds once the logs are recovered.

        None without one, if no log changes, or if a log that stays as it is is newer: then it was
        not the broker that wrote the log last.
        """
        marker = root.files.get(FileKind.CLEAN_SHUTDOWN)
        if marker is None or not self._changed:
            return None
        newest = marker.mtime_ns + MARKER_TOLERANCE_NS
        for path, _ in root.partitions:
            for one in opening.open_partition(path, KAFKA).segments:
                if one.log.path not in self._changed and one.log.mtime_ns > newest:
                    return None
        return files.read_small(marker.path)

    def commit(self, journal: Journal) -> None:
        """Sync the logs if they are to be marked clean, then commit the journal."""
        if self._consent.mark_clean:
            for path in self._paths:
                apply.sync(file.path for file in opening.open_partition(path, KAFKA).files())
        journal.commit()


def _lacks_remote_epochs(forecast: PartitionForecast) -> bool:
    """Return whether a log lacks the leader epochs of what is in remote storage alone.

    A recovery writes those of local batches, with which a leader deletes the remote segments.
    """
    return any(
        one.action in ("lost", "unnoticed") and one.path.name == FileKind.LEADER_EPOCH_CHECKPOINT
        for one in forecast.actions
    )


def _in_safe_order(actions: Sequence[Action]) -> list[Action]:
    """Return the actions on a log in an order in which it can be loaded at any interruption.

    If a log is cut, the segments behind go first, the last one before the others: the rest is
    always the beginning of the log, without a hole. Then its indexes become shorter, then the log
    itself, and the leader epochs last.
    """
    cuts = [
        action.segment
        for action in actions
        if (action.action == FileChange.TRUNCATE or _is_cut_again(action))
        and action.segment is not None
    ]
    if not cuts:
        return list(actions)

    def turn(action: Action) -> tuple[int, int]:
        segment = -1 if action.segment is None else action.segment
        if action.action == FileChange.REMOVE and segment > min(cuts):
            return 0, -segment
        if action.action == FileChange.TRUNCATE or _is_cut_again(action):
            return 2, 0
        return (3 if action.path.name == FileKind.LEADER_EPOCH_CHECKPOINT.value else 1), 0

    return sorted(actions, key=turn)


def _not_there(fill_from: Sequence[Path]) -> Iterator[UnreadableError]:
    """Yield the other copies that cannot be read, from which nothing is filled."""
    if fill_from:
        from logtool.repair.salvage import not_there

        yield from not_there(fill_from)


def _is_cut_again(action: Action) -> bool:
    """Return whether a log gets batches of another copy and is cut behind them."""
    change = action.change
    return bool(
        change and change.blocks and change.kind is FileChange.REPLACE and action.loss.bytes
    )


def _stops(starts: Sequence[LogDirStart], broker: BrokerDirs) -> Iterator[str]:
    """Yield the reasons why a log dir goes offline, or the broker stops for another log dir."""
    here = {start.log_dir.path for start in starts}
    for start in starts:
        for note in start.notes:
            # Recovery points that could not be read are written again with the mark.
            mended = note.path.name == FileKind.RECOVERY_POINT_CHECKPOINT.value
            if note.action in HINDRANCES and not mended:
                yield f"{note.path}: {note.reason}"
    for verdict in broker.verdicts:
        if verdict.effect is Effect.REFUSE and verdict.log_dir not in here:
            yield f"{verdict.finding.path}: {verdict.finding.message}"


def _write(start: LogDirStart, kind: FileKind, content: bytes, reason: str) -> Action:
    file: File | None = start.log_dir.files.get(kind)
    path = start.log_dir.path / kind.value
    seen = Stamp(file.size, file.mtime_ns) if file else None
    change = Change(
        kind=FileChange.REPLACE if file else FileChange.CREATE,
        path=path,
        seen=seen,
        content=content,
    )
    return Action(action=change.kind, path=path, reason=reason, length=len(content), change=change)
