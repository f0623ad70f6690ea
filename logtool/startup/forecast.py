"""A forecast of a broker's next start on the partitions of log dirs.

Each partition is loaded on a shadow of its directory, as a broker would load it; nothing is
written. Results come in the order of the paths, not in that of loading.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action, Loss
from logtool.checks import altered
from logtool.checks.broker_dirs import WITH_STRAYS, BrokerDirs, FutureReplica
from logtool.checks.leader_epochs import check_epochs
from logtool.disk import files, shell
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import names, wording
from logtool.formats.names import (
    CLUSTER_METADATA,
    DirectoryKind,
    FileKind,
    PartitionDirectory,
    TopicPartition,
)
from logtool.loading.result import Outcome
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour
from logtool.log.inputs import OpenedPath, open_each
from logtool.log.selection import Selection
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import Node, images_of
from logtool.node.options import StartOptions
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError
from logtool.startup.disks import Disks, Samples
from logtool.startup.loads import PartitionToLoad, prepared
from logtool.startup.log_dir_start import LogDirStart, Points
from logtool.startup.partition import PartitionForecast
from logtool.startup.plain_partition import PlainLooks
from logtool.startup.request import LoadRequest

LONG = 100
"""Segments to recover from which on a recovery before the start is proposed."""


class Forecast:
    """One run over paths: iterate over what happens, partition by partition.

    Paths are log dirs and partition dirs; a partition dir is judged by the checkpoints of its log
    dir.
    """

    def __init__(
        self,
        paths: Sequence[Path | OpenedPath],
        assumed: StartOptions,
        *,
        selection: Selection | None = None,
        points: Points = lambda key, row: row or 0,
        run: Run | None = None,
        broker: BrokerDirs | None = None,
        is_locked: bool = False,
        sample_disks: bool = False,
        flavour: Flavour | None = None,
    ) -> None:
        """Take the paths as all log dirs of a broker, or as some log dirs of a `broker`.

        With `is_locked` no other process changes the log dirs meanwhile, and listings stay true.
        With `sample_disks` a little of each disk is read first, to estimate how long a start takes.
        `flavour` overrules the names of files and directories.
        """
        self._flavour = flavour
        self._is_locked = is_locked
        self._samples = Samples() if sample_disks else None
        self.disks: Disks | None = None
        """Samples of the disks; None if they were not asked for."""
        self._paths = paths
        self.assumed = assumed
        self._selection = selection or Selection()
        self._points = points
        self._run = run or Run()
        self._loaded: dict[Path, PartitionForecast] = {}
        self._altered: set[tuple[Path, str]] = set()
        """Log dirs with files that a tool changed, and the codes of the changes."""
        self._given = broker
        self.broker = broker or BrokerDirs(Node((), assumed.kafka, assumed.static))
        """The log dirs given, which belong to one broker."""
        self.log_dirs: list[LogDirStart] = []
        self.not_reached = 0
        """Partitions for which there was no time."""

    @property
    def out_of_time(self) -> bool:
        """Return whether time was over before every partition was loaded."""
        return self._run.ran_out

    @property
    def has_metadata_log(self) -> bool:
        """Return whether a log dir holds the metadata log, which is no partition of the start."""
        homes = (one.log_dir for one in self.log_dirs)
        return any(one.topic == CLUSTER_METADATA for home in homes for _, one in home.partitions)

    def early_recovery(self, loads: Sequence[PartitionForecast]) -> str | None:
        """Return the command that does a long recovery before the start; None if it is short.

        None too if `loads` are not all partitions of the log dirs.
        """
        partitions = [one for home in self.log_dirs for _, one in home.log_dir.partitions]
        expected = sum(one.topic != CLUSTER_METADATA for one in partitions)
        if len(loads) < expected or sum(one.recovered for one in loads) < LONG:
            return None
        paths = (shell.path(one.log_dir.path) for one in self.log_dirs)
        return f"logtool recover --mark-clean {' '.join(paths)}"

    def __iter__(self) -> Iterator[Action | PartitionForecast | UnreadableError]:
        requests: list[LoadRequest] = []
        for item in self._open():
            if isinstance(item, LoadRequest):
                requests.append(item)
            else:
                yield item
        if self.broker.node.kafka < WITH_STRAYS:
            requests = _with_copies(requests)
        moving = {one.key for one in requests if one.path.name.endswith(DirectoryKind.FUTURE)}
        loads = prepared(requests, self._samples, self._looks(), hold=self._is_locked)
        if self._samples:
            self.disks = self._samples.taken()
        self._run.bytes_total = sum(load.bytes_ahead for load in loads)
        with self._run.workers(PartitionToLoad.forecast) as workers:
            for request, result in zip(
                requests, workers.run(loads, lambda load: -load.bytes_ahead), strict=True
            ):
                self._run.path = request.path
                if isinstance(result, OutOfTimeError):
                    self.not_reached += 1
                elif not self._is_gone(request, result):
                    if isinstance(result, PartitionForecast):
                        if request.key in moving or result.outcome is Outcome.OFFLINE:
                            self._loaded[request.path] = replace(result, actions=())
                        if note := self._altered_note(result):
                            yield note
                        result = self._with_epochs(self._with_fix(result))
                    yield result
        if self._given is None:
            yield from self._afterwards()
            yield from self._cleaned_twice()

    def _looks(self) -> PlainLooks | None:
        """Return the fast checks to try first; None if an option excludes them."""
        is_paced = self._run.budget.pace.bytes_per_second is not None
        return None if is_paced or self._flavour is not None else PlainLooks()

    def _is_gone(self, request: LoadRequest, result: PartitionForecast | UnreadableError) -> bool:
        """Return whether a broker has deleted the partition since the log dir was listed."""
        gone = isinstance(result, UnreadableError) and files.has_vanished(result)
        return gone and request.path not in self._paths and not files.has_dir(request.path)

    def _altered_note(self, forecast: PartitionForecast) -> Action | None:
        """Return a note if a tool changed the files of a log; one for each log dir and cause."""
        home = forecast.request.log_dir
        for action in forecast.actions if forecast.is_damaged else ():
            code = altered.cause(action.path, action.position)
            if code and (home, code) not in self._altered:
                self._altered.add((home, code))
                text = f"{forecast.request.path.name}, perhaps others: {altered.TEXTS[code]}"
                return Action(action="damaged", path=home, reason=text)
        return None

    def _with_fix(self, forecast: PartitionForecast) -> PartitionForecast:
        """Return the forecast; for a damaged log with the command that repairs it."""
        if len(self._paths) < 2 or not forecast.is_damaged:
            return forecast
        from logtool.repair import propose

        places = [path for path in self._paths if isinstance(path, Path)]
        return replace(forecast, fix=propose.repair(forecast.request.path, places))

    def _with_epochs(self, forecast: PartitionForecast) -> PartitionForecast:
        """Return the forecast, with an action for leader epochs above the metadata log."""
        request, node = forecast.request, self.broker.node
        home = next((one for one in node.log_dirs if one.path == request.log_dir), None)
        is_loaded = forecast.outcome is Outcome.LOADS and not request.fate
        if self._given is not None or home is None or not is_loaded:
            return forecast
        key = request.topic or "", request.partition or 0
        found = check_epochs(home.root, images_of({home.path: node}, home.path), key, forecast)
        actions = tuple(
            Action(
                action="limits" if one.severity is Severity.INFO else "ahead",
                path=request.path,
                reason=one.message,
                topic=request.topic,
                partition=request.partition,
            )
            for one in found
        )
        return replace(forecast, actions=forecast.actions + actions) if actions else forecast

    def _afterwards(self) -> Iterator[Action]:
        """Yield the actions on the log dirs as wholes, and on future replicas."""
        whole, node = self.broker, self.broker.node
        starts = {one.log_dir.path: one for one in self.log_dirs}
        broken = {
            path.parent for path, one in self._loaded.items() if one.outcome is Outcome.OFFLINE
        }
        gone = broken | {path for path, start in starts.items() if start.offline_notes}
        broken |= {path for path, start in starts.items() if start.fails_while_loading}
        for future in () if self.out_of_time else whole.future_replicas:
            if future.assigned and future.path.parent in broken:
                text = (
                    "goes offline while it holds "
                    f"{future.path.name}, which the metadata log gives to it: the broker cannot "
                    "rename that directory, and does not start"
                )
                yield Action(action="refuse", path=future.path.parent, reason=text)
                continue
            if not future.assigned and {one.parent for one in future.places} & gone:
                continue  # Neither of the two logs is read or written.
            copy, live = self._loaded.get(future.path), None
            if future.live:
                live = self._loaded.get(future.live)
            is_kept = copy and copy.outcome is Outcome.LOADS and not copy.request.fate
            if copy and is_kept and not future.is_blocked:
                yield from _future(future, copy, live, node.others_in_sync(*future.key))
        needed = next((path for path in sorted(gone) if node.needs(path)), None)
        if needed:
            text = "goes offline with the metadata log: the broker does not start"
            yield Action(action="refuse", path=needed, reason=text)
        elif node.log_dirs and starts and gone >= {one.path for one in node.log_dirs}:
            text = (
                "every log dir given goes offline: a broker without other log dirs does not start"
            )
            yield Action(action="refuse", path=next(iter(starts)), reason=text)
        holder = node.metadata_log or next(iter(node.log_dirs), None)
        if holder:
            for text in whole.limits:
                yield Action(action="limits", path=holder.path, reason=text)

    def _cleaned_twice(self) -> Iterator[Action]:
        """Yield a row that two log dirs have for the cleaner of 4.x, which ends because of it."""
        seen: set[TopicPartition] = set()
        for start in self.log_dirs if self.broker.node.kafka >= (4, 0) else ():
            rows = start.rows(FileKind.CLEANER_CHECKPOINT)
            twice = seen & rows.keys()
            if twice and start.log_dir.path not in self.broker.copies:
                path = start.log_dir.path / FileKind.CLEANER_CHECKPOINT.value
                topic, number = min(twice)
                text = (
                    f"has a row of {topic}-{number}, which another log dir has too: the "
                    "broker starts, but its log cleaner ends at once: nothing is "
                    "compacted"
                )
                yield Action(action="ignore", path=path, reason=text, topic=topic, partition=number)
            seen |= rows.keys()

    def _is_selected(self, action: Action) -> bool:
        """Return whether an action is about a log dir, or a partition that is selected."""
        if action.topic is None:
            return True
        directory = names.parse_directory(f"{action.topic}-{action.partition}")
        return isinstance(directory, PartitionDirectory) and self._selection.takes(directory)

    def _opened(self) -> Iterator[OpenedPath | UnreadableError]:
        """Yield the opened paths; those that were opened before as they are."""
        looked_up = open_each(
            (path for path in self._paths if not isinstance(path, OpenedPath)), self._flavour
        )
        for path in self._paths:
            yield path if isinstance(path, OpenedPath) else next(looked_up)

    def _open(self) -> Iterator[LoadRequest | Action | UnreadableError]:
        """Yield the partitions to load, and the notes on the log dirs as wholes."""
        members: dict[Path, LogDirIdentity] = {}
        opened: list[tuple[LogDir, list[tuple[Path, PartitionDirectory]]]] = []
        whole: set[Path] = set()
        known = {one.path for one in self._given.node.log_dirs} if self._given else set()
        for one in self._opened():
            try:
                if isinstance(one, UnreadableError):
                    raise one
                root, chosen = one.read(), one.chosen(self._selection)
                if root.flavour.has_checkpoints and root.path not in members.keys() | known:
                    members[root.path] = identify(root)
            except UnreadableError as error:
                yield error
                continue
            opened.append((root, chosen))
            if one.is_whole:
                whole.add(root.path)
        if self._given is None:
            options = self.assumed
            node = Node(list(members.values()), options.kafka, options.static)
            self.broker = BrokerDirs(node)
        starts: dict[Path, LogDirStart] = {}
        for root, chosen in opened:
            try:
                start = starts.get(root.path) or LogDirStart(root, self.assumed, self.broker)
            except UnreadableError as error:
                yield error
                continue
            if root.path not in starts:
                starts[root.path] = start
                self.log_dirs.append(start)
                yield from start.unread
                yield from start.notes
            if self._given is None and root.path in whole:
                whole.discard(root.path)
                yield from filter(self._is_selected, start.absences)
            pace = self._run.budget.pace
            for folder, directory in () if start.is_offline else chosen:
                if pace.is_over:
                    self.not_reached, pace.ran_out = self.not_reached + 1, True
                    continue
                try:
                    yield start.request(folder, directory, self._points)
                except UnreadableError as error:
                    yield error


def _with_copies(requests: list[LoadRequest]) -> list[LoadRequest]:
    """Return the requests for a broker that deletes every copy of a partition by its name."""
    fates = {
        (request.topic, request.partition): request.fate
        for request in requests
        if request.fate and request.fate.action == "delete"
    }
    return [
        replace(request, fate=request.fate or fates.get((request.topic, request.partition)))
        if request.path.name == f"{request.topic}-{request.partition}"
        or request.path.name.endswith("-future")
        else request
        for request in requests
    ]


def _future(
    future: FutureReplica,
    copy: PartitionForecast,
    live: PartitionForecast | None,
    others: Sequence[int],
) -> Iterator[Action]:
    """Yield the fate of a future replica, and of the live log that it replaces.

    `others` are the other nodes in sync: as long as there is one, the node fetches from the leader
    what its live log lacks.
    """
    topic, number = future.key
    if future.live is None and not future.assigned:
        if copy.log_end > copy.log_start:
            text = (
                "the log dirs given hold no other copy: the broker creates an empty log "
                "for this replica, which loses "
                f"{wording.offsets(copy.log_start, copy.log_end - 1)}"
            )
            loss = Loss(first_offset=copy.log_start, last_offset=copy.log_end - 1)
            yield _discard(future.path, text, future.key, loss)
        return
    if not future.assigned:
        text = f"continues: when this copy has caught up, it replaces {future.live}"
        loads = live is not None and live.outcome is Outcome.LOADS
        is_cut = loads and live is not None and live.log_end < copy.log_end
        if is_cut and others:
            named = ", ".join(map(str, others))
            text += f"; before, it is cut at the end of that log; in sync: {named}"
        yield Action(action="move", path=future.path, reason=text, topic=topic, partition=number)
        if live and is_cut and not others:
            text = (
                f"is cut at offset {live.log_end}, the end of {future.live}, before it replaces "
                f"that log; that loses {wording.offsets(live.log_end, copy.log_end - 1)}; to keep "
                f"them, move {future.live} out of the log dirs and rename this copy to "
                f"{topic}-{number} before the start"
            )
            loss = Loss(first_offset=live.log_end, last_offset=copy.log_end - 1)
            yield _discard(future.path, text, future.key, loss)
        return
    text = "becomes the partition: the metadata log assigns the partition to this log dir"
    if future.live:
        text += f"; {future.live} is deleted"
    yield Action(action="promote", path=future.path, reason=text, topic=topic, partition=number)
    if live and live.outcome is Outcome.LOADS and live.log_end > copy.log_end:
        first = max(copy.log_end, live.log_start)
        watermark = live.request.high_watermark
        text = (
            f"is deleted in favour of {future.path.name}, which ends at {copy.log_end}; "
            f"that loses {wording.offsets(first, live.log_end - 1)}"
        )
        acknowledged = None if watermark is None else watermark > first
        loss = Loss(
            first_offset=first, last_offset=live.log_end - 1, below_high_watermark=acknowledged
        )
        yield _discard(live.request.path, text, future.key, loss)


def _discard(path: Path, reason: str, key: TopicPartition, loss: Loss) -> Action:
    topic, number = key
    return Action("discard", path, reason, topic=topic, partition=number, loss=loss)
