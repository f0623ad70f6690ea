"""The next start of Redpanda on one partition, as actions."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from logtool.actions import Action, Change, FileChange, Loss, Stamp
from logtool.checks.base_index import BaseIndexRules
from logtool.errors import UnreadableError
from logtool.findings import Severity
from logtool.formats import wording
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.loading.result import Outcome
from logtool.log import opening
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.startup import redpanda_start
from logtool.startup.partition import PartitionForecast
from logtool.startup.redpanda_start import RedpandaStart, Replayed, SegmentOutcome
from logtool.startup.request import LoadRequest


def forecast(
    request: LoadRequest,
    start: RedpandaStart,
    on_bytes: Callable[[int], None],
    listed: Partition | None = None,
) -> PartitionForecast | UnreadableError:
    """Return the forecast for one partition, loaded in the thread that calls."""
    try:
        listed = opening.open_partition(request.path, request.flavour) if listed is None else listed
        found = redpanda_start.load(listed, start, on_bytes)
        return outcome_of(request, start, listed, found)
    except UnreadableError as error:
        return error


def outcome_of(
    request: LoadRequest, start: RedpandaStart, listed: Partition, found: Sequence[Replayed]
) -> PartitionForecast:
    """Return the forecast for a partition whose segments are loaded; UnreadableError."""
    refusing = next((one for one in found if one.refusal), None)
    done = [_refused(refusing)] if refusing else list(_actions(listed, found))
    replayed = [
        one for one in found if one.fate in (SegmentOutcome.REPLAYED, SegmentOutcome.GIVEN_UP)
    ]
    unread = [one for one in found if one.fate is SegmentOutcome.STAYS]
    ends = [one.next_offset for one in found if one.next_offset is not None]
    firsts = [
        one.segment.base_offset
        for one in found
        if one.fate in (SegmentOutcome.STAYS, SegmentOutcome.REPLAYED)
    ]
    log_start = max(min(firsts, default=0), start.start_offset or 0)
    log_end = max(ends[-1] if ends else log_start, log_start)
    return PartitionForecast(
        request=request,
        outcome=Outcome.REFUSES if refusing else Outcome.LOADS,
        reason=refusing.refusal if refusing else "",
        log_start=log_start,
        log_end=log_end,
        segments=len(found),
        recovered=len(replayed),
        bytes_scanned=sum(one.segment.log.size for one in replayed),
        batches_scanned=sum(one.batches for one in replayed),
        records_scanned=sum(one.records for one in replayed),
        indexes_changed=sum(action.path.suffix == RedpandaFileKind.BASE_INDEX for action in done),
        why=Counter(one.why for one in replayed),
        unread_segments=len(unread),
        unread_bytes=sum(one.segment.log.size for one in unread),
        log_bytes=sum(one.segment.log.size for one in found),
        last_bytes=found[-1].segment.log.size if found else 0,
        actions=tuple(_placed(action, request) for action in done),
        other_end=log_end,
    )


def _placed(action: Action, request: LoadRequest) -> Action:
    change = action.change
    if change and not request.assumed.contents:
        change = replace(change, content=None)
    return replace(action, topic=request.topic, partition=request.partition, change=change)


def _actions(listed: Partition, found: Sequence[Replayed]) -> Iterator[Action]:
    """Yield the actions, in an order in which a start after a kill believes nothing wrong.

    A log is cut before its index says that it ends there: until then a start replays the log.
    """
    holes = {id(one): (first, last) for one, first, last in redpanda_start.holes(found)}
    compaction = {
        file.path.name: file
        for file in listed.others
        if names.parse_partition_file(file.path.name).kind is RedpandaFileKind.COMPACTION_INDEX
    }
    for number, one in enumerate(found):
        hole = ""
        if id(one) in holes:
            missing = wording.offsets(*holes[id(one)])
            hole = f"; the log continues after it and lacks {missing}, which no broker reports"
        if one.fate is SegmentOutcome.STAYS:
            yield from _unnoticed(one)
        elif one.fate is SegmentOutcome.REMOVED:
            yield from _removed(one)
        elif one.fate is SegmentOutcome.GIVEN_UP:
            name = redpanda_start.given_up_name(one, listed, is_last=number == len(found) - 1)
            yield _given_up(one, name, hole)
        else:
            yield from _replayed(one, compaction, hole)


def _refused(one: Replayed) -> Action:
    return _of(one, "refuse", one.segment.log, one.refusal, length=0)


def _removed(one: Replayed) -> Iterator[Action]:
    for file in filter(None, (one.segment.log, one.index)):
        text = "the segment has no bytes: Redpanda reserved no room for it"
        yield _of(one, FileChange.REMOVE, file, text, length=file.size)


def _given_up(one: Replayed, name: str, hole: str) -> Action:
    size = one.segment.log.size
    if one.stop is None:
        text = "holds only zeros: Redpanda reserved room, but the first write was lost"
    else:
        text = (
            f"no batch can be read from its first byte: {one.stop.message}; a broker never "
            "reads the file again; logtool dump shows what it holds"
        )
    action = _of(one, FileChange.RENAME, one.segment.log, f"{text}{hole}", length=size)
    target = one.segment.log.path.with_name(name)
    change = action.change
    return replace(
        action,
        target=target,
        change=replace(change, target=target) if change else None,
        loss=_loss(one, size),
    )


def _replayed(one: Replayed, compaction: dict[str, File], hole: str) -> Iterator[Action]:
    log = one.segment.log
    text = f"is read from its first byte, and its base index is rebuilt, because {one.why}"
    yield _of(one, "recover", log, text, length=log.size)
    if one.valid_size < log.size:
        gone = log.size - one.valid_size
        if one.stop:
            at = f"{one.stop.message} at byte {one.stop.position}"
            text = f"the segment ends at a damaged batch: {at}{hole}"
        else:
            text = f"the segment ends after its last batch, before reserved room{hole}"
        action = _of(one, FileChange.TRUNCATE, log, text, length=gone)
        yield replace(
            action,
            position=one.valid_size,
            change=Change(
                kind=FileChange.TRUNCATE, path=log.path, seen=_stamp(log), size=one.valid_size
            ),
            loss=_loss(one, gone),
        )
    file = compaction.get(log.path.with_suffix(RedpandaFileKind.COMPACTION_INDEX).name)
    if file:
        text = "the broker rebuilds it from the replayed segment"
        yield _of(one, FileChange.REMOVE, file, text, length=file.size)
    yield from _index(one)


def _index(one: Replayed) -> Iterator[Action]:
    file = one.index
    if file:
        with file.open() as opened:
            if opened.read(0, file.size) == one.new_index:
                return
    path = one.segment.log.path.with_suffix(RedpandaFileKind.BASE_INDEX)
    change = Change(
        kind=FileChange.REPLACE if file else FileChange.CREATE,
        path=path,
        seen=_stamp(file) if file else None,
        content=one.new_index,
    )
    yield Action(
        action=change.kind,
        path=path,
        reason="is rebuilt from the segment",
        segment=one.segment.base_offset,
        length=len(one.new_index),
        change=change,
    )


def _of(one: Replayed, kind: str, file: File, reason: str, *, length: int) -> Action:
    """Return an action on a file, with the change if `kind` is a removal or a renaming."""
    change = None
    if kind in (FileChange.REMOVE, FileChange.RENAME):
        change = Change(kind=FileChange(kind), path=file.path, seen=_stamp(file))
    return Action(
        action=kind,
        path=file.path,
        reason=reason,
        segment=one.segment.base_offset,
        length=length,
        change=change,
    )


def _loss(one: Replayed, size: int) -> Loss:
    lost = one.lost
    return Loss(
        bytes=0 if one.stop is None else size,
        batches=lost.batches,
        records=lost.records + lost.bad_records,
        bad_batches=lost.bad_batches,
        bad_records=lost.bad_records,
        first_offset=min(lost.offsets, default=None),
        last_offset=max(lost.offsets, default=None),
        batches_behind_damage=lost.batches,
        only_zeros=one.stop is None,
    )


def _unnoticed(one: Replayed) -> Iterator[Action]:
    """Yield faults in the base index of a segment that no start replays."""
    if one.index is None:
        return
    for finding in BaseIndexRules(one.segment, one.index).alone():
        if finding.severity is not Severity.INFO:
            yield Action(
                action="unnoticed",
                path=one.index.path,
                reason=f"stays as it is, and no broker notices: {finding.message}",
                segment=one.segment.base_offset,
                position=finding.position,
            )


def _stamp(file: File) -> Stamp:
    return Stamp(file.size, file.mtime_ns)
