"""A broker's next start on one partition, loaded on a shadow of its directory."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from logtool.actions import Action, FileChange, Loss
from logtool.checks import log_absence
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.formats.names import COORDINATORS_OF_GROUPS, DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.actions import actions
from logtool.loading.loader import load
from logtool.loading.result import LoadResult, Logs, Outcome, Playback, StartConditions
from logtool.log import opening
from logtool.log.dir import Partition, Segment
from logtool.log.file import File
from logtool.log.producer_state import Producer
from logtool.node import host_limits
from logtool.node.identity import topic_id_of
from logtool.node.lost_end import left_of_segment, lost_offsets
from logtool.node.options import StartOptions
from logtool.startup import filled, hidden_end, tiering
from logtool.startup.disks import Cold, StretchTimes
from logtool.startup.hidden_end import HiddenEnd
from logtool.startup.request import LoadRequest


@dataclass(frozen=True, slots=True)
class PartitionForecast:
    """Forecast of the next start for one partition."""

    request: LoadRequest
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
    producers: int = 0
    """Producers that are known at the end of the log."""
    in_transaction: Mapping[int, Producer] = field(default_factory=dict, repr=False)
    """Producers whose transaction is open at the end of the log, by their id."""
    indexes_changed: int = 0
    """Offset, time and transaction indexes that are made or changed."""
    why: Mapping[str, int] = field(default_factory=dict)
    """Recoveries of segments, by the reason: one without an offset index may have two."""
    needs: host_limits.Needs = field(default_factory=host_limits.Needs)
    """Numbers of files and indexes of the log, for the limits of the host."""
    epoch_starts: tuple[tuple[int, int], ...] = ()
    """Leader epochs in which batches were written, with their first offsets."""
    newest_log: File | None = field(default=None, repr=False)
    """Segment that was written last; None without a segment."""
    unread_segments: int = 0
    """Segments that are not recovered: no broker checks whether their logs are sound."""
    unread_bytes: int = 0
    """Bytes of the logs of these segments."""
    damage_left: int = 0
    """Damaged places that the start reads and leaves: no broker notices them."""
    log_bytes: int = 0
    """Bytes of the logs of all segments."""
    last_bytes: int = 0
    """Bytes of the log of the last segment."""
    damaged_before_last: tuple[tuple[Path, int, str], ...] = ()
    """Logs, the last excepted, that recovery finds damaged, each with the byte and the reason."""
    trusted: bool = False
    """True if the log was trusted: only headers were read, and no CRC was compared."""
    distrust: str = ""
    """Why the log was checked although it was to be trusted."""
    playback: Playback | None = None
    """Start of the playback of the log, if indexes and producer state are supplemented."""
    bytes_saved: int = 0
    """Bytes of the log that a rebuild would have read and that were not read."""
    unchecked_bytes: int = 0
    """Bytes of logs whose CRCs were not compared because the log was trusted."""
    cold: Cold = field(default_factory=Cold)
    """The part of the logs to be recovered that was not in the page cache before."""
    rates: tuple[float, ...] = ()
    """Bytes a second at which each 4 MiB was loaded here."""
    actions: tuple[Action, ...] = ()
    fix: str | None = None
    """The command that repairs the log from another copy, where one is at hand."""
    hidden: HiddenEnd | None = None
    """The sound batches at the end of the log that the start hides; None if it hides none."""
    other_end: int | None = 0
    """Log end if offsets out of order were cut the other way: as a broker cuts if `log_end` is of
    a precise cut, and precisely if not. None if a broker would not load the log."""

    @property
    def lost_acknowledged(self) -> int | None:
        """Return how many offsets below the high watermark the log lacks; None without one."""
        watermark = self.request.high_watermark
        if watermark is None or self.outcome is not Outcome.LOADS:
            return None
        return max(0, watermark - max(self.log_end, self.log_start))

    @property
    def lost_before(self) -> int:
        """Return how many of `lost_acknowledged` no batch has that the start loses.

        They were gone before. 0 if it is not known which offsets the start loses.
        """
        lost, losses = self.lost_acknowledged or 0, self.losses
        if any(loss.last_offset is None for loss in losses):
            return 0
        end = max([self.log_end, *_ends(losses)])
        return min(lost, max(0, (self.request.high_watermark or 0) - end))

    @property
    def topic_id(self) -> str | None:
        """Return the topic id in partition.metadata, which is read now; None without one."""
        return topic_id_of(self.request.path)

    @property
    def bytes_read(self) -> int:
        """Return how many bytes of log a broker reads."""
        return self.bytes_scanned + self.bytes_replayed

    @property
    def losses(self) -> list[Loss]:
        """Return the losses of its actions."""
        return [action.loss for action in self.actions if action.loss]

    @property
    def is_damaged(self) -> bool:
        """Return whether its log is damaged, or lacks what it held."""
        return any(
            action.loss
            or action.action == "lacks"
            or (action.action == FileChange.TRUNCATE and not action.loss.only_zeros)
            or (action.action == "unnoticed" and action.path.suffix == ".log")
            for action in self.actions
        )

    @property
    def doubts_groups(self) -> bool:
        """Return whether groups are stored in it, and it loses records or lacks some it held."""
        is_lacking = any(action.loss or action.action == "lacks" for action in self.actions)
        return self.request.topic in COORDINATORS_OF_GROUPS and is_lacking

    @property
    def failure(self) -> str | None:
        """Return why the log does not load; None if it does."""
        return self.reason or None

    @property
    def why_checked(self) -> str | None:
        """Return why the log was checked although it was to be trusted; None if it was not."""
        return self.distrust or None

    @property
    def broker_log_end(self) -> int | None:
        """Return the log end after a broker's start; None if a broker would not load the log."""
        return self.other_end if self.request.start.cut_precisely else self.log_end

    @property
    def recover_log_end(self) -> int | None:
        """Return the log end after `recover`, which cuts precisely."""
        return self.log_end if self.request.start.cut_precisely else self.other_end

    @property
    def cut(self) -> list[Loss]:
        """Return the losses of the actions that cut or remove a file."""
        return [one.loss for one in self.actions if one.loss and one.action != "hide"]

    @property
    def lost_batches(self) -> int:
        """Return how many sound batches its actions lose."""
        return sum(loss.batches for loss in self.losses)

    @property
    def lost_records(self) -> int:
        """Return how many records its actions lose."""
        return sum(loss.records for loss in self.losses)

    @property
    def lost_bytes(self) -> int:
        """Return how many bytes of log its actions lose."""
        return sum(loss.bytes for loss in self.losses)

    @property
    def supplemented(self) -> "PartitionForecast | None":
        """Return the forecast itself if indexes and producer state are supplemented, else None."""
        return self if self.playback else None


def forecast_partition(
    request: LoadRequest, on_bytes: Callable[[int], None], listed: Partition | None = None
) -> PartitionForecast | UnreadableError:
    """Load one partition on its shadow, in the thread that calls.

    `listed` is the listing of its directory, if there is one already.
    """
    stopwatch = StretchTimes(on_bytes)
    try:
        listed = opening.open_partition(request.path, request.flavour) if listed is None else listed
        assumed = request.assumed
        bases = {one.base_offset for one in listed.segments}
        if filled.is_to_fill(request):
            new, diverging = filled.replaced(listed, request, stopwatch)
            loaded = load(listed, request.start, stopwatch, Logs(new.joined, new.whole))
            bases |= new.joined.keys()
            done = [
                filled.action_of(one)
                for one in new.reported
                if not filled.is_left_to_the_start(one, listed, request)
            ]
            done += diverging
        else:
            loaded, done = _loader(assumed)(listed, request.start, stopwatch), []
        done += actions(loaded, request.high_watermark)
        unread: list[Segment] = []
        left = 0
        hidden = hidden_end.find(listed, loaded, request)
        if loaded.outcome is Outcome.LOADS:
            recovered = {one.base_offset for one in loaded.recovered}
            recovered |= loaded.removed.keys() | loaded.split.keys()
            unread = [one for one in listed.segments if one.base_offset not in recovered]
            done += _unread(listed, loaded, request, unread)
            if hidden:
                known = "unnoticed", hidden.action.path
                done = [hidden.action, *(a for a in done if (a.action, a.path) != known)]
            left = sum(one.action == "unnoticed" and one.segment in recovered for one in done)
            done += _lacking(listed, loaded, request, done, hidden)
            done += tiering.actions(request, loaded)
            done += _absent(listed, loaded, request)
        other_end = _other_end(listed, loaded, request)
    except UnreadableError as error:
        return error
    if getattr(listed.directory, "kind", None) is DirectoryKind.DELETE:
        # The broker deletes all of it: a cut, without which the broker may not start, loses nothing
        # more.
        done = [replace(one, loss=Loss()) for one in done]
        if loaded.outcome is Outcome.LOADS:
            done.append(_purge(listed))
    if loaded.outcome is Outcome.LOADS and request.fate:
        done.append(Action(action=request.fate.action, path=request.path, reason=request.fate.text))
    return PartitionForecast(
        request=request,
        outcome=loaded.outcome,
        reason=loaded.reason,
        log_start=loaded.log_start,
        log_end=loaded.log_end,
        recovery_point=loaded.recovery_point,
        segments=len(bases),
        needs=host_limits.needs(listed),
        recovered=len({segment.base_offset for segment in loaded.recovered}),
        bytes_scanned=loaded.bytes_scanned,
        bytes_replayed=loaded.bytes_replayed,
        batches_scanned=sum(segment.batches for segment in loaded.recovered),
        records_scanned=sum(segment.records for segment in loaded.recovered),
        bytes_applied=loaded.bytes_applied,
        records_applied=loaded.records_applied,
        producers=loaded.producers,
        in_transaction=loaded.in_transaction,
        indexes_changed=sum(_changes_index(action) for action in done),
        why=Counter(str(segment.why) for segment in loaded.recovered),
        epoch_starts=tuple(one for one in loaded.epochs if one[1] < loaded.log_end),
        newest_log=max(
            (one.log for one in listed.segments), key=lambda log: log.mtime_ns, default=None
        ),
        unread_segments=0 if request.assumed.verify else len(unread),
        unread_bytes=0 if request.assumed.verify else sum(one.log.size for one in unread),
        damage_left=left,
        log_bytes=sum(one.log.size for one in listed.segments),
        last_bytes=listed.segments[-1].log.size if listed.segments else 0,
        damaged_before_last=tuple(_damaged_before_last(listed, loaded)),
        trusted=loaded.trusted,
        distrust=loaded.distrust,
        playback=loaded.playback,
        bytes_saved=_bytes_saved(listed, loaded, request.start) if loaded.playback else 0,
        unchecked_bytes=sum(one.log.size for one in listed.segments) if loaded.trusted else 0,
        rates=tuple(stopwatch.rates),
        actions=tuple(placed(action, request) for action in done),
        hidden=hidden,
        other_end=other_end,
    )


def _purge(listed: Partition) -> Action:
    """Return the action of a broker on a directory that waits for its deletion."""
    segments = len(listed.segments)
    what = "1 segment" if segments == 1 else f"{segments} segments"
    text = (
        f"the partition was deleted or moved away, and the broker deletes {what} with this "
        "directory after its start"
    )
    size = sum(one.log.size for one in listed.segments)
    return Action(action="purge", path=listed.path, reason=text, length=size)


def _loader(
    assumed: StartOptions,
) -> Callable[[Partition, StartConditions, StretchTimes], LoadResult]:
    """Return the function that loads a log: as a broker does, or with less work."""
    # Imported here because few ask for these, and every other forecast does without them.
    if assumed.trust:
        from logtool.loading.trusting import trust

        return trust
    if assumed.supplement:
        from logtool.loading.supplement import supplement

        return supplement
    return load


def _lacking(
    listed: Partition,
    loaded: LoadResult,
    request: LoadRequest,
    done: Sequence[Action],
    hidden: HiddenEnd | None,
) -> Iterator[Action]:
    """Yield an action if the log ends below its high watermark before this start.

    So it does if the log is absent or empty, and other files prove that it held records. Offsets
    that this start loses are not among them; nothing is yielded where it is not known which.
    """
    losses = [one.loss for one in done if one.loss and (hidden is None or one is not hidden.action)]
    end, watermark = max([loaded.log_end, *_ends(losses)]), request.high_watermark or 0
    is_cut = any(loss.below_high_watermark for loss in losses)
    if is_cut and (watermark <= end or any(loss.last_offset is None for loss in losses)):
        return
    if hidden:
        end = max(end, hidden.last_offset + 1)
    if watermark > end:
        acknowledged = wording.count(watermark - end, "acknowledged offset")
        what = "with the batches that are lost, the log" if is_cut else "the log"
        text = f"{what} ends at {end}, below its high watermark {watermark}: this replica lacks "
        text += f"{acknowledged}; " + (
            "no other replica is in sync; look for a copy of the log"
            if tiering.leads(request)
            else "look for them in the other replicas before this one becomes leader"
        )
        if left := left_of_segment(request.path, end, clean=request.start.clean):
            text += f"; a segment file seems to be gone: {left} is left of the segment"
        yield Action(action="lacks", path=request.path, reason=text)
    else:
        yield from _proven_lost(listed, end, request, is_cut=bool(losses))


def _ends(losses: Sequence[Loss]) -> list[int]:
    """Return the offsets behind the last ones that are lost, as far as they are known."""
    return [loss.last_offset + 1 for loss in losses if loss.last_offset is not None]


def _proven_lost(
    listed: Partition, end: int, request: LoadRequest, *, is_cut: bool
) -> Iterator[Action]:
    """Yield an action if the recovery point, or a file of the partition, lies above the log end.

    `is_cut` says that this start cuts the log, so that its end says nothing about the time before.
    """
    around, flushed = request.around, request.flushed or 0
    is_live = getattr(listed.directory, "kind", None) is DirectoryKind.LIVE
    if around and is_live and lost_offsets(around.recovery_points, listed, end, flushed):
        text = f"the log ends at {end}, below its recovery point {flushed}"
        yield Action(action="lacks", path=request.path, reason=text)
    elif not is_cut and (found := log_absence.missing_end(listed, end, clean=request.start.clean)):
        yield Action(action="lacks", path=request.path, reason=found.message)


def _absent(listed: Partition, loaded: LoadResult, request: LoadRequest) -> Iterator[Action]:
    """Yield actions for the beginning of the log, snapshots and a start row that are absent."""
    if request.around is None:
        return
    found = list(log_absence.check(listed, request.around, loaded.log_end))
    if unproven := log_absence.unproven_beginning(listed, request.around):
        found.append(unproven)
    for finding in found:
        action = log_absence.action_of(finding)
        if action == "lost" and tiering.leads(request) is False:
            action = "unnoticed"  # The leader keeps the segments; this replica may lead later.
        if filled.is_to_fill(request) and action == "lacks" and finding.code.startswith("log/"):
            continue  # A fill names what it does not fill.
        if action:
            path = finding.path or request.path
            offsets = (finding.first_offset, finding.last_offset)
            yield Action(action=action, path=path, reason=finding.message, offsets=offsets)


def _other_end(listed: Partition, loaded: LoadResult, request: LoadRequest) -> int | None:
    """Return the log end if offsets out of order were cut the other way; None without a load."""
    differs = any(segment.emptied or segment.precise for segment in loaded.recovered)
    if not differs and not loaded.out_of_reach and not loaded.zombies:
        return loaded.log_end if loaded.outcome is Outcome.LOADS else None
    start = replace(request.start, cut_precisely=not request.start.cut_precisely)
    other = load(listed, start, lambda _: None)
    return other.log_end if other.outcome is Outcome.LOADS else None


def _damaged_before_last(listed: Partition, loaded: LoadResult) -> Iterator[tuple[Path, int, str]]:
    """Yield the logs, the last excepted, that recovery cuts: path, byte and reason."""
    logs = {one.base_offset: one.log.path for one in listed.segments[:-1]}
    for one in loaded.recovered:
        if one.base_offset in logs and one.valid_size < one.size:
            why = one.stop.message if one.stop else one.emptied or "is cut"
            yield logs[one.base_offset], one.valid_size, why


def _bytes_saved(listed: Partition, loaded: LoadResult, start: StartConditions) -> int:
    """Return how many fewer bytes of log were read than a rebuild reads, its replay left out."""
    rebuilt = sum(
        one.log.size
        for one in listed.segments
        if one.next_base_offset is None or one.next_base_offset > start.recovery_point
    )
    return max(0, rebuilt - loaded.bytes_scanned - loaded.bytes_replayed)


def _changes_index(action: Action) -> bool:
    change = action.change
    is_index = action.path.suffix in (".index", ".timeindex", ".txnindex")
    return bool(change and is_index and change.kind in (FileChange.CREATE, FileChange.REPLACE))


def placed(action: Action, request: LoadRequest) -> Action:
    """Return the action with topic and partition; without contents if they were not asked for."""
    change = action.change
    if change and not request.assumed.contents:
        change = replace(change, content=None)
    return replace(action, topic=request.topic, partition=request.partition, change=change)


def _unread(
    listed: Partition, loaded: LoadResult, request: LoadRequest, unread: Sequence[Segment]
) -> Iterator[Action]:
    """Yield actions for damage that the start does not notice, and for absent segments."""
    is_odd = any(one.is_odd for one in loaded.recovered)
    if not unread and len(listed.segments) < 2 and not is_odd:
        return
    # Imported here: a sound log of one segment that is recovered does not need the rules.
    from logtool.startup import unread as look

    reports = look.looked_at(unread, request)
    yield from look.unnoticed(reports)
    if not request.assumed.fill_from:  # A fill names what it does not fill.
        yield from look.left(listed, loaded, request)
        yield from look.absent_segments(listed, loaded, request, reports)
