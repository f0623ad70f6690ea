"""The changes that loading a log makes, as actions with their reasons and losses."""

from collections.abc import Iterator
from dataclasses import replace

from logtool.actions import Action, Change, FileChange, Loss
from logtool.formats import names
from logtool.formats.names import FileKind, FileName, FileState, Reception
from logtool.loading.recovery import CutBatches
from logtool.loading.result import LoadResult, Outcome, RecoveredSegment
from logtool.log.damage import DamageReason

_STOPS = {
    Outcome.REFUSES: "refuse",
    Outcome.OFFLINE: "offline",
    Outcome.UNKNOWN: "unknown",
}
_REPLACED = "was replaced by a cleaning or a split that was committed"
_FOREIGN = (
    "NOT A FILE OF KAFKA, AND DELETED: its name begins with an offset that a .swap file replaces, "
    "and a broker deletes every file with such a name; to keep this file, move it out of the "
    "directory"
)


def actions(loaded: LoadResult, high_watermark: int | None) -> Iterator[Action]:
    """Yield the actions of a broker on the directory, in the order of the segments.

    If the log does not load, the only action reports that. The caller fills in topic and partition.
    """
    path = loaded.shadow.path
    if loaded.outcome is not Outcome.LOADS:
        yield Action(
            action=_STOPS[loaded.outcome], path=path, reason=loaded.reason, segment=loaded.segment
        )
        return
    recovered: dict[int, RecoveredSegment] = {}
    for one in loaded.recovered:
        yield _recover(loaded, one)
        # Without an offset index a segment is recovered twice; the first time may cut it.
        if one.base_offset not in recovered or one.valid_size < one.size:
            recovered[one.base_offset] = one
    yield from _not_of_this_log(loaded)
    for change in sorted(loaded.shadow.changes(), key=_place):
        name = names.parse_partition_file(change.path.name)
        segment = name.offset if name.kind in names.SEGMENT_KINDS else None
        action = _of_file(change, name, loaded, recovered, high_watermark)
        yield replace(action, segment=segment, change=change)


def _place(change: Change) -> tuple[bool, bool, int, int]:
    """Return the turn of a change: leftovers first, then by segment, its log first.

    Renames come last, when the file that had the new name is gone.
    """
    name = names.parse_partition_file(change.path.name)
    live = name.state is FileState.LIVE
    kinds = (FileKind.LOG, *names.INDEX_KINDS)
    kind = kinds.index(name.kind) if name.kind in kinds else len(kinds)
    offset = name.offset if name.offset is not None else 2**63
    return change.kind is FileChange.RENAME, live, offset, kind


def _recover(loaded: LoadResult, segment: RecoveredSegment) -> Action:
    done = "supplemented" if loaded.supplemented else "rebuilt"
    read = "is read from its first byte"
    if segment.headers_from is not None:
        read = (
            f"its headers are read from byte {segment.headers_from} onwards, and no CRC is compared"
        )
    text = f"{read}; its indexes are {done}: {segment.why}"
    return _of_segment(loaded, "recover", segment.base_offset, segment.size, text)


def _of_segment(loaded: LoadResult, action: str, base_offset: int, size: int, text: str) -> Action:
    log = names.format_partition_file(base_offset, FileKind.LOG)
    return Action(
        action=action,
        path=loaded.shadow.path / log,
        reason=text,
        segment=base_offset,
        length=size,
    )


def _not_of_this_log(loaded: LoadResult) -> Iterator[Action]:
    """Yield the segments that stay although they do not, or may not, belong to this log."""
    for zombie in loaded.zombies.values():
        text = f"{zombie.reason}; {zombie.served}; logtool recover removes this segment"
        if zombie.base_offset not in loaded.removed:
            yield _of_segment(loaded, "zombie", zombie.base_offset, zombie.size, text)
    for one in loaded.overlaps:
        if one.base_offset not in loaded.removed:
            yield _of_segment(loaded, "overlap", one.base_offset, one.size, one.reason)


def _of_file(
    change: Change,
    name: FileName,
    loaded: LoadResult,
    recovered: dict[int, RecoveredSegment],
    high_watermark: int | None,
) -> Action:
    offset = name.offset or 0
    if change.kind is FileChange.TRUNCATE and change.size is not None:
        segment = recovered[offset]
        zeros = _only_zeros(segment)
        loss = _loss(
            segment.lost,
            0 if zeros else segment.size - segment.valid_size,
            high_watermark,
            _kept_end(segment),
            segment.behind.batches,
        )
        loss = replace(loss, only_zeros=zeros)
        return Action(
            action=change.kind,
            path=change.path,
            reason=_why_cut(segment),
            position=change.size,
            length=segment.size - segment.valid_size,
            loss=loss,
        )
    if change.blocks is not None:
        return _of_filled(change, offset, recovered, high_watermark)
    if change.kind is FileChange.RENAME and change.target:
        text = "was written by a cleaning or a split that was committed, and replaces the target"
        return Action(action=change.kind, path=change.path, reason=text, target=change.target)
    if change.kind is FileChange.REMOVE:
        size = change.seen.size if change.seen else 0
        lost = loaded.removed.get(offset) if name.kind is FileKind.LOG else None
        behind, first_gone = lost.batches if lost else 0, offset
        if offset in loaded.zombies:  # Batches of the log itself with these offsets stay.
            behind, first_gone = 0, max(offset, loaded.log_end)
        loss = _loss(lost, size, high_watermark, first_gone, behind) if lost else Loss()
        why = _why_gone(name, loaded)
        foreign = why is _REPLACED and name.reception is not Reception.EXACT
        return Action(
            action="erase" if foreign else change.kind,
            path=change.path,
            reason=_FOREIGN if foreign else why,
            length=size,
            loss=loss,
        )
    return Action(
        action=change.kind,
        path=change.path,
        reason=_why_written(name, loaded),
        length=len(change.content or b""),
    )


def _of_filled(
    change: Change, offset: int, recovered: dict[int, RecoveredSegment], high_watermark: int | None
) -> Action:
    """Return the action for a log that gets batches of another copy; it may be cut behind them."""
    text, loss, segment = "gets the batches that another copy holds", Loss(), recovered.get(offset)
    if segment and segment.valid_size < segment.size:
        text += f", and is cut: {_why_cut(segment)}"
        loss = _loss(
            segment.lost,
            segment.size - segment.valid_size,
            high_watermark,
            _kept_end(segment),
            segment.behind.batches,
        )
    length = change.blocks.size if change.blocks else 0
    return Action(action=change.kind, path=change.path, reason=text, length=length, loss=loss)


def _only_zeros(segment: RecoveredSegment) -> bool:
    """Return whether nothing but zeros is cut, behind a log that was preallocated."""
    stop = segment.stop
    return stop is not None and stop.reason is DamageReason.ZEROS and not stop.resynchronised


def _kept_end(segment: RecoveredSegment) -> int:
    """Return the first offset that is removed."""
    if segment.lost.first_offset is None:
        return segment.next_offset
    return min(segment.lost.first_offset, segment.next_offset)


def _loss(
    lost: CutBatches, size: int, high_watermark: int | None, first_gone: int, behind: int
) -> Loss:
    def acknowledged(offset: int) -> bool:
        return high_watermark is not None and offset < high_watermark

    # An append that the file ends in was never answered, unless the high watermark says so.
    bad = [one for one in lost.unsound if not one.unfinished or acknowledged(one.first_offset)]
    bad_records = sum(one.records for one in bad)
    firsts = [one.first_offset for one in bad]
    lasts = [one.last_offset for one in bad]
    if lost.first_offset is not None and lost.last_offset is not None:
        firsts.append(lost.first_offset)
        lasts.append(lost.last_offset)
    return Loss(
        bytes=size,
        batches=lost.batches,
        records=lost.records + bad_records,
        bad_batches=len(bad),
        bad_records=bad_records,
        first_offset=min(firsts, default=None),
        last_offset=max(lasts, default=None),
        batches_behind_damage=behind,
        below_high_watermark=None if high_watermark is None else acknowledged(first_gone),
    )


def _why_cut(segment: RecoveredSegment) -> str:
    if segment.emptied:
        return f"the whole segment is removed: {segment.emptied}"
    stop = segment.stop
    if stop is None and segment.truncated_to is not None:
        reached = segment.next_offset
        return (
            f"the log is to be truncated to offset {segment.truncated_to}; the log ends at "
            f"{reached}"
        )
    if stop and _only_zeros(segment):
        return f"the log ends after its last batch: {stop.message} at byte {stop.position}"
    why = f"{stop.message} at byte {stop.position}" if stop else "no batch begins there"
    if stop and stop.reason is DamageReason.INCOMPLETE and not stop.resynchronised:
        torn = "the last write was cut short, as a full disk or a kill leaves it"
        return f"{torn}: {stop.message}, from byte {stop.position}"
    return f"the log ends at a damaged batch: {why}"


def _why_gone(name: FileName, loaded: LoadResult) -> str:
    if name.state is FileState.DELETED or name.reception is Reception.ERASED:
        return "was already scheduled for deletion"
    if name.state is not FileState.LIVE:
        return "was left behind by a cleaning or a split that was not committed"
    if name.kind is FileKind.PRODUCER_SNAPSHOT:
        return (
            "producer snapshot that cannot be read, is out of range, or is replaced by a "
            "newer snapshot"
        )
    if loaded.wiped:
        return (
            "the whole log is removed: the log ends before the log start offset "
            f"{loaded.log_start} of log-start-offset-checkpoint"
        )
    if name.offset in loaded.split:
        return (
            "belongs to a segment that is split: some of its offsets were too far from the "
            "base offset"
        )
    if name.offset in loaded.removed and name.offset in loaded.zombies:
        return loaded.zombies[name.offset].reason
    if name.offset in loaded.removed and loaded.truncated:
        return "is above the offset to which the log is to be truncated"
    if name.offset in loaded.removed:
        return "follows a segment that is cut"
    if name.kind in names.INDEX_KINDS:
        return "has no log file"
    return _REPLACED


def _why_written(name: FileName, loaded: LoadResult) -> str:
    if name.kind is FileKind.PRODUCER_SNAPSHOT:
        return f"producer state at offset {name.offset}"
    if name.kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        return (
            f"leader epochs of the log, which starts at {loaded.log_start} "
            f"and ends at {loaded.log_end}"
        )
    if name.kind is FileKind.LOG:
        parts = {base for bases in loaded.split.values() for base in bases}
        return "part of a segment that is split" if name.offset in parts else "an empty segment"
    recovered = any(segment.base_offset == name.offset for segment in loaded.recovered)
    if not recovered:
        return "was missing, and is created empty"
    if loaded.supplemented:
        return "keeps its readable entries, and gets the missing entries from the log"
    return "is written again from the log"
