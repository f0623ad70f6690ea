"""Sound batches that a start after a clean stop hides: its offset index leads past the log.

Such a start looks for the end of the log from the last entry of the active segment's offset index.
If it finds no batch there, the log ends at the base offset of the segment: consumers no longer read
its batches, and new records get their offsets (``LogSegment.readNextOffset``).
"""

from logtool.actions import Action, Loss
from logtool.disk import shell
from logtool.formats import offset_index, wording
from logtool.formats.names import DirectoryKind, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import LoadResult, Outcome
from logtool.log.dir import Partition, Segment
from logtool.startup.request import LoadRequest


@dataclass(frozen=True, slots=True)
class HiddenEnd:
    """The sound batches of an active segment that no consumer finds after the start."""

    action: Action
    last_offset: int
    offsets: int
    command: str
    """The command that makes them readable again; it prints first what it would do."""
    is_damaged: bool
    """True if the segment is damaged as well, so that another copy may have more."""


def find(listed: Partition, loaded: LoadResult, request: LoadRequest) -> HiddenEnd | None:
    """Return the batches that the start hides; None if it finds the end of the log.

    Only a segment whose end was not found is read.
    """
    is_deleted = getattr(listed.directory, "kind", None) is DirectoryKind.DELETE
    if is_deleted or listed.is_metadata_log or not listed.segments or loaded.wiped:
        return None
    active = listed.segments[-1]
    is_read = active.base_offset in {one.base_offset for one in loaded.recovered}
    if (
        loaded.outcome is not Outcome.LOADS
        or is_read
        or not active.log.size
        or loaded.log_end != active.base_offset
    ):
        return None
    return _hidden(active, request)


def _hidden(active: Segment, request: LoadRequest) -> HiddenEnd | None:
    """Return the sound batches of a segment of which a start finds none; None without one."""
    base, watermark = active.base_offset, request.high_watermark
    batches = records = size = 0
    end, is_damaged, is_behind = base, False, False
    for chunk in active.batches():
        table = chunk.table
        if len(table):
            batches, records = batches + len(table), records + int(table.records)
            size += int(table.size.sum())
            end = max(end, int(table.last_offset.max()) + 1)
            is_behind = is_behind or is_damaged
        is_damaged = is_damaged or chunk.damage is not None
    if not batches:
        return None
    name = f"{request.topic}-{request.partition}"
    # recover would cut the batches behind damage; a new index alone leaves them.
    command = (
        f"logtool rebuild-index {shell.path(active.log.path)}"
        if is_behind
        else f"logtool recover {shell.option('--from-offset', f'{name}={base}')} "
        f"{shell.path(request.path)}"
    )
    position, reason = _entry(active)
    action = Action(
        action="hide",
        path=active.log.path.with_suffix(FileKind.OFFSET_INDEX.value),
        reason=(
            f"{reason}: the broker finds no batch there and takes {base}, the base offset of the "
            f"segment, for the log end; no consumer reads {wording.offsets(base, end - 1)}, and "
            f"new records get offsets from {base} on again"
        ),
        segment=base,
        position=position,
        length=None if position is None else offset_index.ENTRY_SIZE,
        loss=Loss(
            bytes=size,
            batches=batches,
            records=records,
            first_offset=base,
            last_offset=end - 1,
            below_high_watermark=None if watermark is None else watermark > base,
        ),
    )
    return HiddenEnd(action, end - 1, end - base, command, is_damaged)


def _entry(active: Segment) -> tuple[int | None, str]:
    """Return the byte of the last entry of the offset index, and where the entry leads."""
    file = active.indexes.get(FileKind.OFFSET_INDEX)
    index = offset_index.parse(*file.read_index()) if file else None
    if index is None or not len(index.positions):
        return None, "the offset index has no entry"
    at, offset = int(index.positions[-1]), int(index.offsets(active.base_offset)[-1])
    text = f"the last entry leads to offset {offset} at byte {at}"
    if at >= active.log.size:
        text += f", but the log ends at byte {active.log.size}"
    return (len(index.positions) - 1) * offset_index.ENTRY_SIZE, text
