"""What a broker's next start does to the partitions of a log dir, and how long it takes.

Each partition is loaded on a shadow of its directory, as a broker would load it; nothing is
written. The order of the output is that of the paths, whatever was done first.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from logtool import data_dir, metadata_image, partition, strays
from logtool.checks import inventory, root, small_files
from logtool.checks.ensemble import (
    WITH_STRAYS,
    Effect,
    Ensemble,
    Future,
    Member,
    member,
)
from logtool.checks.segment import Level, Task, check_segment
from logtool.data_dir import DataDir, PathKind, Selection
from logtool.errors import UnreadableError
from logtool.findings import Broker, Severity
from logtool.formats.names import (
    CLUSTER_METADATA,
    FileKind,
    PartitionDirectory,
)
from logtool.loading import metadata_log
from logtool.loading.actions import actions
from logtool.loading.loader import Loaded, Outcome, Start, load
from logtool.loading.recovery import INDEX_INTERVAL, MAX_INDEX_SIZE
from logtool.loading.supplement import supplement
from logtool.plan import Action, Loss
from logtool.schedule import WORTH_A_POOL
from logtool.strays import Fate
from logtool.workers import OutOfTimeError, Pace, Workers

_WORTH_TIMING = 4 * 1024 * 1024
"""Bytes of a log from which on the time to read it says something."""
BATCH_SECONDS = 2.8e-6
"""What a broker spends on each batch besides reading it: Kafka 4.3.1 as tests/bench measured it."""
Key = tuple[str, int]
Points = Callable[[Key, int | None], int]
"""From a partition and its row of recovery-point-offset-checkpoint to where recovery begins."""


@dataclass(frozen=True, slots=True)
class Request:
    """One partition to be loaded: plain data for a worker."""

    path: Path
    start: Start
    topic: str | None = None
    partition: int | None = None
    high_watermark: int | None = None
    fate: Fate | None = None
    """What a broker does with the directory once it is loaded, and its metadata log does not know
    it."""
    contents: bool = False
    """Whether the actions hold what would be written, to carry them out."""
    verify: bool = False
    """Whether the logs that a broker does not read are checked too."""
    supplement: bool = False
    """Whether indexes and producer state are kept and added to, and not made anew."""


@dataclass(frozen=True, slots=True)
class PartitionForecast:
    """What becomes of one partition."""

    request: Request
    outcome: Outcome
    reason: str = ""
    log_start: int = 0
    log_end: int = 0
    recovery_point: int = 0
    segments: int = 0
    recovered: int = 0
    bytes_scanned: int = 0
    bytes_replayed: int = 0
    batches_scanned: int = 0
    records_scanned: int = 0
    bytes_applied: int = 0
    """Bytes of batches that were applied to the producer state."""
    records_applied: int = 0
    seconds: float = 0.0
    """How long loading it took here."""
    actions: tuple[Action, ...] = ()
    other_end: int = 0
    """Where the log would end if offsets out of order were cut the other way: as a broker does
    where it is cut precisely, and the reverse."""

    @property
    def lost_acknowledged(self) -> int | None:
        """Return how many offsets below the high watermark the log lacks; None without a row."""
        watermark = self.request.high_watermark
        if watermark is None or self.outcome is not Outcome.LOADS:
            return None
        return max(0, watermark - max(self.log_end, self.log_start))

    @property
    def bytes_read(self) -> int:
        """Return the bytes of log that a broker reads."""
        return self.bytes_scanned + self.bytes_replayed

    @property
    def losses(self) -> list[Loss]:
        """Return what its actions lose."""
        return [action.loss for action in self.actions if action.loss]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        request, losses = self.request, self.losses
        precise = request.start.cut_precisely
        return {
            "type": "partition",
            "path": str(request.path),
            "topic": request.topic,
            "partition": request.partition,
            "outcome": str(self.outcome),
            "reason": self.reason or None,
            "clean": request.start.clean,
            "log_start_offset": self.log_start,
            "recovery_point": request.start.recovery_point,
            "new_recovery_point": self.recovery_point,
            "high_watermark": request.high_watermark,
            "log_end_offset": self.log_end,
            "broker_log_end_offset": self.other_end if precise else self.log_end,
            "recover_log_end_offset": self.log_end if precise else self.other_end,
            "segments": self.segments,
            "recovered_segments": self.recovered,
            "bytes_scanned": self.bytes_scanned,
            "bytes_replayed": self.bytes_replayed,
            "bytes_applied": self.bytes_applied,
            "records_applied": self.records_applied,
            "lost_batches": sum(loss.batches for loss in losses),
            "lost_records": sum(loss.records for loss in losses),
            "lost_bytes": sum(loss.bytes for loss in losses),
            "lost_acknowledged": self.lost_acknowledged,
        }


def forecast_partition(
    request: Request, on_bytes: Callable[[int], None]
) -> PartitionForecast | UnreadableError:
    """Load one partition on its shadow; work for a thread of its own."""
    begun = time.perf_counter()
    try:
        found = partition.read(request.path)
        loaded = (supplement if request.supplement else load)(found, request.start, on_bytes)
        done = list(actions(loaded, request.high_watermark))
        if loaded.outcome is Outcome.LOADS:
            recovered = {one.base_offset for one in loaded.recovered} | set(loaded.removed)
            done += _unnoticed(found, recovered, request)
            done += _lacking(loaded, request, done)
        other_end = _other_end(found, loaded, request)
    except UnreadableError as error:
        return error
    if loaded.outcome is Outcome.LOADS and request.fate:
        done.append(Action(request.fate.action, request.path, request.fate.text))
    return PartitionForecast(
        request, loaded.outcome, loaded.reason, loaded.log_start, loaded.log_end,
        loaded.recovery_point, len(found.segments), len(loaded.recovered), loaded.bytes_scanned,
        loaded.bytes_replayed, sum(one.batches for one in loaded.recovered),
        sum(one.records for one in loaded.recovered), loaded.bytes_applied, loaded.records_applied,
        time.perf_counter() - begun, tuple(_placed(action, request) for action in done),
        other_end,
    )  # fmt: skip


def _lacking(loaded: Loaded, request: Request, done: Sequence[Action]) -> Iterator[Action]:
    """Say where a log has lost acknowledged records before, so that nothing is left to be cut."""
    end, watermark = loaded.log_end, request.high_watermark or 0
    if watermark <= end or any(action.loss.below_high_watermark for action in done):
        return
    text = (
        f"the log ends at {end}, below its high watermark {watermark}: {watermark - end} "
        "acknowledged offsets are not in this replica; look for them in the others before it leads"
    )
    yield Action("lacks", request.path, text)


def _other_end(found: partition.Partition, loaded: Loaded, request: Request) -> int:
    """Return where the log would end if offsets out of order were cut the other way."""
    if not any(one.emptied or one.precise for one in loaded.recovered):
        return loaded.log_end
    start = replace(request.start, cut_precisely=not request.start.cut_precisely)
    return load(found, start, lambda _: None).log_end


def _placed(action: Action, request: Request) -> Action:
    change = action.change
    if change and not request.contents:
        change = replace(change, content=None)
    return replace(action, topic=request.topic, partition=request.partition, change=change)


def _unnoticed(
    found: partition.Partition, recovered: set[int], request: Request
) -> Iterator[Action]:
    """Yield the bad indexes of segments that a broker opens without reading them."""
    level = Level.BATCHES if request.verify else Level.QUICK
    for segment in found.segments:
        if segment.base_offset in recovered:
            continue
        for item in check_segment(Task(segment, level, request.start.clean)).findings:
            if isinstance(item, UnreadableError):
                raise item
            if item.severity is not Severity.INFO and item.path:
                text = f"stays as it is, no broker notices: {item.message}"
                yield Action("unnoticed", item.path, text, segment=segment.base_offset,
                             position=item.position, length=item.length)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What is assumed of the broker that will start."""

    kafka: tuple[int, int] | None = None
    """Its release; None: that which the log dirs show."""
    index_interval: int | None = None
    """Bytes, of all topics; None: what the metadata log says, else Kafka's default."""
    index_size: int | None = None
    """Bytes, ``segment.index.bytes``; None as above."""
    cut_precisely: bool = False
    clean: bool | None = None
    """Whether the log dir counts as stopped in order; None: by its marker."""
    contents: bool = False
    """As in `Request`."""
    verify: bool = False
    """As in `Request`."""
    supplement: bool = False
    """As in `Request`."""


class Home:
    """One log dir as a broker finds it: its checkpoints, its marker, and who it belongs to.

    What the metadata log says comes from the log dir of the broker that holds it.
    """

    def __init__(
        self, found: DataDir, settings: Settings, ensemble: Ensemble | None = None
    ) -> None:
        self.found = found
        self.ensemble = ensemble or Ensemble([member(found)], settings.kafka)
        self.clean = found.is_clean if settings.clean is None else settings.clean
        self.notes: list[Action] = []
        """What happens to the log dir as a whole."""
        self._settings = settings
        self._now_ms = time.time_ns() // 1_000_000
        self._rows = {kind: self._read(kind) for kind in data_dir.OFFSET_CHECKPOINTS}
        self.image, self.node_id = self.ensemble.image, self.ensemble.node_id
        self._tell_of_metadata()
        for finding in root.check_in_use(found):
            self.notes.append(Action("in-use", found.path, finding.message))
        if self.is_offline:
            return  # a broker does not list it
        for finding in inventory.check_root_names(found):
            if finding.broker is Broker.REFUSES:
                self.notes.append(Action("refuse", finding.path or found.path, finding.message))

    @property
    def is_offline(self) -> bool:
        """Return whether the broker starts without the log dir, and loads nothing of it."""
        return self.found.path in self.ensemble.offline

    def rows(self, kind: FileKind) -> dict[Key, int]:
        """Return the rows of one checkpoint; none where a broker cannot read it."""
        return self._rows[kind]

    def request(self, path: Path, directory: PartitionDirectory, points: Points) -> Request:
        """Return what is needed to load one of its partitions."""
        key = directory.topic, directory.partition
        point = points(key, self.rows(FileKind.RECOVERY_POINT_CHECKPOINT).get(key))
        start = Start(
            self.clean, point, self.rows(FileKind.LOG_START_CHECKPOINT).get(key, 0),
            now_ms=self._now_ms,
            index_interval=self._setting(directory.topic, "index.interval.bytes",
                                         self._settings.index_interval, INDEX_INTERVAL),
            max_index_size=self._setting(directory.topic, "segment.index.bytes",
                                         self._settings.index_size, MAX_INDEX_SIZE),
            kafka=self.ensemble.kafka, cut_precisely=self._settings.cut_precisely,
        )  # fmt: skip
        watermark = None
        if directory.kind in data_dir.OF_TODAY:  # A row of that name is not about one that goes.
            watermark = self.rows(FileKind.REPLICATION_CHECKPOINT).get(key)
        fate = self._fate(path, directory)
        settings = self._settings
        return Request(path, start, *key, watermark, fate, settings.contents, settings.verify,
                       settings.supplement)  # fmt: skip

    def _setting(self, topic: str, name: str, chosen: int | None, default: int) -> int:
        if chosen is not None:
            return chosen
        if self.image is None:
            return default
        return self.image.topic_number(topic, name, default, self.node_id)

    def _read(self, kind: FileKind) -> dict[Key, int]:
        """Read one offset checkpoint, and note what a broker does that cannot."""
        file = self.found.files.get(kind)
        if not file:
            return {}
        needed = self.ensemble.needs(self.found.path)
        offsets = small_files.read_offsets(file, beside_metadata_log=needed)
        if isinstance(offsets, dict):
            return offsets
        self.notes.append(
            Action(offsets.action, file.path, offsets.text, position=offsets.position)
        )
        return {}

    def _tell_of_metadata(self) -> None:
        """Note what the log dir, beside the others of its broker, does to a start."""
        for verdict in self.ensemble.verdicts:
            finding = verdict.finding
            if verdict.log_dir != self.found.path:
                continue
            path, text = finding.path or verdict.log_dir, finding.message
            if verdict.effect is Effect.OFFLINE:
                path, text = verdict.log_dir, f"{path.name}: {text}"
            self.notes.append(Action(str(verdict.effect), path, text))
        holder, image = self.ensemble.metadata_log, self.image
        if holder and holder.path == self.found.path:
            if self.ensemble.unread:
                raise self.ensemble.unread
            bootstrap = self.found.files.get(FileKind.BOOTSTRAP_CHECKPOINT)
            for one in metadata_log.hindrances(holder.path, bootstrap, self.ensemble.kafka):
                action = "refuse" if one.stops else "ignore"
                self.notes.append(Action(action, one.path, one.text, position=one.position))
            if image and image.damage:
                text = f"which logs are put aside as stray is not known: {image.damage}"
                path = self.found.path / metadata_image.DIRECTORY
                self.notes.append(Action("unknown", path, text))

    def _fate(self, path: Path, directory: PartitionDirectory) -> Fate | None:
        """Return what becomes of a directory that the metadata log does not know."""
        ensemble = self.ensemble
        if directory.kind not in data_dir.OF_TODAY or not ensemble.is_stray(path, directory):
            return None
        fate = strays.fate(ensemble, path, directory)
        if fate and fate.action == "stray" and ensemble.is_kafka_assumed:
            return Fate(fate.action, f"{fate.text}, if the broker is 3.7 or later")
        return fate


class Forecast:
    """One run over paths: iterate for what happens, partition by partition.

    Log dirs and partition dirs are taken; a partition dir is judged by the checkpoints of the log
    dir that it stands in.
    """

    def __init__(
        self, paths: Sequence[Path], settings: Settings, *, selection: Selection | None = None,
        points: Points = lambda key, row: row or 0, jobs: int = 1, pace: Pace | None = None,
        on_progress: Callable[[int, int, Path], None] = lambda *_: None,
        ensemble: Ensemble | None = None,
    ) -> None:  # fmt: skip
        """Take the paths for all there is of a broker, or for some of its `ensemble`."""
        self._paths = paths
        self._settings = settings
        self._selection = selection or Selection()
        self._points = points
        self._jobs = jobs
        self._pace = pace or Pace()
        self._on_progress = on_progress
        self._done = self._total = 0
        self._path = Path()
        self._loaded: dict[Path, PartitionForecast] = {}
        self._given = ensemble
        self.ensemble = ensemble or Ensemble((), settings.kafka)
        """All log dirs given: those of one broker."""
        self.homes: list[Home] = []
        self.out_of_time = False

    def __iter__(self) -> Iterator[Action | PartitionForecast | UnreadableError]:
        requests: list[Request] = []
        for item in self._open():
            if isinstance(item, Request):
                requests.append(item)
            else:
                yield item
        if self.ensemble.kafka < WITH_STRAYS:
            requests = _with_copies(requests)
        ahead = {request.path: _bytes_ahead(request) for request in requests}
        self._total = sum(ahead.values())
        jobs = self._jobs if self._total >= WORTH_A_POOL else 1
        with Workers(forecast_partition, jobs, self._pace, self._advance) as workers:
            for request, result in zip(
                requests, workers.run(requests, lambda r: -ahead[r.path]), strict=True
            ):
                self._path = request.path
                if isinstance(result, OutOfTimeError):
                    self.out_of_time = True
                else:
                    if isinstance(result, PartitionForecast):
                        self._loaded[request.path] = replace(result, actions=())
                    yield result
        if self._given is None:
            yield from self._afterwards()
            yield from self._cleaned_twice()

    def _afterwards(self) -> Iterator[Action]:
        """Yield what becomes of the log dirs as wholes, and of copies that are on their way."""
        whole = self.ensemble
        skip = self.out_of_time or whole.refuses
        for future in () if skip else whole.futures:
            copy, live = self._loaded.get(future.path), None
            if future.live:
                live = self._loaded.get(future.live)
            is_kept = copy and copy.outcome is Outcome.LOADS and not copy.request.fate
            if copy and is_kept and not future.is_blocked:
                yield from _future(future, copy, live)
        homes = {home.found.path: home for home in self.homes}
        gone = {path for path, home in homes.items()
                if any(note.action == "offline" for note in home.notes)}  # fmt: skip
        gone |= {path.parent for path, one in self._loaded.items()
                 if one.outcome is Outcome.OFFLINE}  # fmt: skip
        needed = next((path for path in sorted(gone) if whole.needs(path)), None)
        if needed:
            text = "goes offline with the metadata log: the broker does not start"
            yield Action("refuse", needed, text)
        elif homes and gone >= {one.path for one in whole.members}:
            text = "every log dir given goes offline: a broker that has no other does not start"
            yield Action("refuse", next(iter(homes)), text)
        holder = whole.metadata_log or next(iter(whole.members), None)
        if holder:
            for text in whole.limits:
                yield Action("limits", holder.path, text)

    def _cleaned_twice(self) -> Iterator[Action]:
        """Yield a row that two log dirs have for the cleaner of 4.x, which does not survive it."""
        seen: set[Key] = set()
        for home in self.homes if self.ensemble.kafka >= (4, 0) else ():
            rows = home.rows(FileKind.CLEANER_CHECKPOINT)
            twice = seen & rows.keys()
            if twice:
                path = home.found.path / FileKind.CLEANER_CHECKPOINT.value
                topic, number = min(twice)
                text = (
                    f"has a row of {topic}-{number} that another log dir has too: the broker "
                    "starts, and its log cleaner ends at once: nothing is compacted"
                )
                yield Action("ignore", path, text, topic, number)
            seen |= rows.keys()

    def _open(self) -> Iterator[Request | Action | UnreadableError]:
        """Yield what is to be loaded, and what is said of the log dirs as wholes."""
        members: dict[Path, Member] = {}
        opened: list[tuple[DataDir, list[tuple[Path, PartitionDirectory]]]] = []
        for path in self._paths:
            try:
                found, chosen = choose(path, self._selection)
                if found.path not in members:
                    members[found.path] = member(found)
            except UnreadableError as error:
                yield error
                continue
            opened.append((found, chosen))
        if self._given is None:
            self.ensemble = Ensemble(list(members.values()), self._settings.kafka)
        homes: dict[Path, Home] = {}
        for found, chosen in opened:
            try:
                home = homes.get(found.path) or Home(found, self._settings, self.ensemble)
            except UnreadableError as error:
                yield error
                continue
            if found.path not in homes:
                homes[found.path] = home
                self.homes.append(home)
                yield from home.notes
            for folder, directory in () if home.is_offline else chosen:
                try:
                    yield home.request(folder, directory, self._points)
                except UnreadableError as error:
                    yield error

    def _advance(self, count: int) -> None:
        self._done += count
        self._on_progress(self._done, self._total, self._path)


def _with_copies(requests: list[Request]) -> list[Request]:
    """Return the requests of a broker that deletes a partition by its name, wherever it lies."""
    fates = {
        (one.topic, one.partition): one.fate
        for one in requests
        if one.fate and one.fate.action == "delete"
    }
    return [
        replace(one, fate=one.fate or fates.get((one.topic, one.partition)))
        if one.path.name == f"{one.topic}-{one.partition}" or one.path.name.endswith("-future")
        else one
        for one in requests
    ]


def _future(
    future: Future, copy: PartitionForecast, live: PartitionForecast | None
) -> Iterator[Action]:
    """Yield what becomes of a copy on its way, and what goes with that."""
    topic, number = future.key
    if future.live is None and not future.assigned:
        if copy.log_end > copy.log_start:
            text = (
                "the log dirs given hold no other copy: the broker makes an empty log and lets "
                f"this one follow it; offsets {copy.log_start} to {copy.log_end - 1} go"
            )
            loss = Loss(first_offset=copy.log_start, last_offset=copy.log_end - 1)
            yield Action("discard", future.path, text, topic, number, loss=loss)
        return
    if not future.assigned:
        text = f"goes on: when it is at its end, this copy replaces {future.live}"
        yield Action("move", future.path, text, topic, number)
        return
    text = "becomes the partition: the metadata log assigns it to this log dir"
    if future.live:
        text += f"; {future.live} is deleted"
    yield Action("promote", future.path, text, topic, number)
    if live and live.outcome is Outcome.LOADS and live.log_end > copy.log_end:
        first = max(copy.log_end, live.log_start)
        watermark = live.request.high_watermark
        text = (
            f"is deleted for {future.path.name}, which ends at {copy.log_end}: offsets {first} to "
            f"{live.log_end - 1} go"
        )
        acknowledged = None if watermark is None else watermark > first
        loss = Loss(first_offset=first, last_offset=live.log_end - 1,
                    below_high_watermark=acknowledged)  # fmt: skip
        yield Action("discard", live.request.path, text, topic, number, loss=loss)


def choose(
    path: Path, selection: Selection
) -> tuple[DataDir, list[tuple[Path, PartitionDirectory]]]:
    """Return the log dir of a path, and which of its partitions are meant."""
    log_dir, is_whole = place(path)
    found = data_dir.read(log_dir)
    chosen = [
        (folder, directory)
        for folder, directory in found.partitions
        if directory.topic != CLUSTER_METADATA
        and selection.takes(directory)
        and (is_whole or folder.name == path.resolve().name)
    ]
    return found, chosen


def place(path: Path) -> tuple[Path, bool]:
    """Return the log dir of a path, and whether the path is that; UnreadableError for a file."""
    kind = data_dir.classify(path)
    if kind is PathKind.FILE:
        raise UnreadableError(path, "expected a log dir or a partition dir")
    if kind is PathKind.LOG_DIR:
        return path, True
    # As it was given, unless that does not say where it really is: a dot, or a link.
    real = path.resolve()
    is_told = path.name == real.name and path.parent.resolve() == real.parent
    return path.parent if is_told else real.parent, False


def _bytes_ahead(request: Request) -> int:
    """Return about how many bytes of its log a broker reads: those not flushed."""
    try:
        found = partition.read(request.path)
    except UnreadableError:
        return 0
    if request.start.clean and not request.verify:
        return 0
    point = 0 if request.verify else request.start.recovery_point
    return sum(
        segment.log.size
        for segment in found.segments
        if segment.next_base_offset is None or segment.next_base_offset > point
    )


@dataclass(frozen=True, slots=True)
class Duration:
    """How long the logs of a log dir take to load."""

    threads: int
    bytes_per_second: float
    """Of each thread."""
    bytes: int
    seconds: float
    critical: Path | None
    """The partition that takes longest; no number of threads makes it quicker than that."""
    critical_seconds: float
    probe_timeout_s: int
    """What a liveness probe should wait at least: twice the time, and a minute for the rest."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "duration",
            "threads": self.threads,
            "bytes_per_second": round(self.bytes_per_second),
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "critical": None if self.critical is None else str(self.critical),
            "critical_seconds": round(self.critical_seconds, 3),
            "probe_timeout_s": self.probe_timeout_s,
        }


def measured_rate(forecasts: Iterable[PartitionForecast]) -> float | None:
    """Return the bytes a second at which logs were loaded here; None where too little was read."""
    read = [one for one in forecasts if one.bytes_read >= _WORTH_TIMING]
    return sum(one.bytes_read for one in read) / sum(one.seconds for one in read) if read else None


def duration(
    forecasts: Iterable[PartitionForecast], threads: int, bytes_per_second: float
) -> Duration:
    """Return how long `threads` of a broker need at a rate of reading each.

    The logs are dealt out in their order, as a broker does.
    """
    busy = [0.0] * threads
    total, critical, longest = 0, None, 0.0
    for one in forecasts:
        seconds = one.bytes_read / bytes_per_second + one.batches_scanned * BATCH_SECONDS
        total += one.bytes_read
        if seconds > longest:
            critical, longest = one.request.path, seconds
        busy[busy.index(min(busy))] += seconds
    probe = math.ceil(2 * max(busy) + 60)
    return Duration(threads, bytes_per_second, total, max(busy), critical, longest, probe)
