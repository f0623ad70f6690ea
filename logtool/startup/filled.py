"""A log whose damage is filled from other copies before a start loads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.actions import Action
from logtool.checks import log_absence
from logtool.disk import files
from logtool.formats import names, wording
from logtool.formats.names import PartitionDirectory
from logtool.log.dir import Partition
from logtool.log.selection import Selection
from logtool.startup.request import LoadRequest

if TYPE_CHECKING:
    from logtool.repair.in_place import RepairedLog
    from logtool.repair.ranges import Rejected


def absent(
    log_dirs: Sequence[Path], fill_from: Sequence[Path], selection: Selection
) -> Iterator[Action]:
    """Yield the partitions that log dirs lack by their own files, and that copies of them have.

    A fill does not make the directory of a partition.
    """
    if not log_dirs or not fill_from:
        return
    from logtool.copies import absent_copies

    for one in absent_copies.missing(log_dirs, fill_from):
        path = one.log_dir / one.path.name
        directory = names.parse_directory(path.name)
        if isinstance(directory, PartitionDirectory) and selection.takes(directory):
            text = f"is not in this log dir, whose own files name it; to copy it: {one.next}"
            yield Action("absent", path, text, one.topic, one.partition, target=one.path)


def is_to_fill(request: LoadRequest) -> bool:
    """Return whether a log is filled from other copies; one to be deleted or moved is not."""
    name = f"{request.topic}-{request.partition}"
    return bool(request.assumed.fill_from) and request.path.name == name


def replaced(
    listed: Partition, request: LoadRequest, on_bytes: Callable[[int], None]
) -> tuple["RepairedLog", list[Action]]:
    """Return the log with its damage filled from other copies, and those from which it diverges."""
    from logtool.repair import divergence, in_place

    start, snapshots = request.start, [one.name.offset or 0 for one in listed.snapshots]
    around = request.around
    lost = log_absence.missing_beginning(listed, around) if around else None
    is_lack = lost is not None and log_absence.action_of(lost) == "lacks"
    wanted = in_place.RepairRequest(
        listed=listed,
        fill_from=request.assumed.fill_from,
        end=max(request.high_watermark or 0, request.flushed or 0, *snapshots, 0),
        recovered_from=None if start.clean else start.recovery_point,
        start=lost.first_offset if lost and is_lack else None,
        log_start=max(0, start.log_start),
    )
    name = f"{request.topic}-{request.partition}"
    diverging = list(divergence.diverging(listed, name, request.assumed.fill_from))
    if not diverging:
        return in_place.replaced(wanted, on_bytes), []
    repaired = in_place.replaced(replace(wanted, foreign=divergence.foreign(listed)), on_bytes)
    return repaired, divergence.left(diverging, repaired.reported)


def is_left_to_the_start(one: "Rejected", listed: Partition, request: LoadRequest) -> bool:
    """Return whether a range is an end that was never written whole, which the start cuts.

    Nothing in it was acknowledged by all replicas: it lies at or above the high watermark, at the
    end of the active segment of a log that was not stopped cleanly. And no copy that was given is
    of the partition.
    """
    name = f"{request.topic}-{request.partition}"
    if any(files.has_dir(one / name) or one.name == name for one in request.assumed.fill_from):
        return False
    is_active = bool(listed.segments) and listed.segments[-1].log.path == one.path
    if one.filled_from or not one.is_torn or not is_active or request.start.clean:
        return False
    return one.first_offset is not None and one.first_offset >= (request.high_watermark or 0)


def action_of(one: "Rejected") -> Action:
    """Return the action on one damaged range."""
    span = ""
    if one.first_offset is not None:
        last = one.last_offset
        known = f"offsets from {one.first_offset} onwards"
        span = f", {known if last is None else wording.offsets(one.first_offset, last)}"
    text = f"{one.reason}{span}; {one.proof or 'nothing was taken from another copy'}"
    if one.filled_from == one.path:
        text = f"{one.reason}{span}; left out: {one.proof}"
    elif one.filled_from:
        text = f"{one.reason}{span}; taken from {one.filled_from}: {one.proof}"
    return Action(
        action="fill" if one.filled_from else "unfilled",
        path=one.path,
        reason=text,
        segment=names.parse_partition_file(one.path.name).offset,
        position=one.position,
        length=one.length,
        target=one.filled_from,
        offsets=(one.first_offset, one.last_offset),
    )
