"""A log whose gaps are filled with ghosts, as one segment; real batches are copied unchanged.

Bytes that are no sound batch are left out, and ghosts fill the offsets lost with them too.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from logtool.apply import unfinished
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import RefusedError, UnreadableError, UnwritableError, UsageError
from logtool.formats import names
from logtool.formats.names import FileKind, FileState, Reception
from logtool.formats.record_batch import HEADER_SIZE, MAX_SEGMENT_SIZE
from logtool.gaps import ghosts as ghosts_of
from logtool.gaps.ghosts import Ghosts
from logtool.gaps.run import Result, SegmentBatches

MOST_OFFSETS = 2**31
"""Largest number of offsets of a segment: its indexes count from its base in 31 bits."""
_BLOCK = 1024 * 1024


def check_target(target: Path, *, of_redpanda: bool = False) -> None:
    """Raise RefusedError if `target` exists, or lies among the files of a broker.

    The target for a log of Redpanda is a directory, which is checked when it is written: it may
    hold what a killed run of the same command left.
    """
    if of_redpanda:
        return
    if os.path.lexists(target):
        raise RefusedError(f"{target}: already exists; nothing was written")
    name = names.parse_partition_file(target.name)
    good = name.state is FileState.LIVE and name.reception is Reception.EXACT
    if name.kind is not FileKind.LOG or not good:
        raise UsageError(f"--output {target}: expected the name of a log (for example {_name(0)})")
    for folder in target.absolute().resolve().parents:
        if _holds_files(folder):
            raise RefusedError(f"{target}: is inside {folder}, which holds files of a broker")


def write(result: Result, ghosts: Ghosts, target: Path) -> int:
    """Write the filled log of a partition; return its size in bytes.

    RefusedError if no broker would take the log, UsageError if it must have another name,
    UnwritableError if it cannot be written. It has a temporary name until it is complete.
    """
    _check(result, ghosts, target)
    size = 0
    try:
        with unfinished.new_file(target, 0o600) as file:
            for block in blocks(result, ghosts):
                size += file.write(block)
            check_target(target)
    except OSError as error:
        raise UnwritableError(target, error.strerror or str(error)) from error
    return size


def blocks(result: Result, ghosts: Ghosts) -> Iterator[bytes]:
    """Yield the filled log piece by piece: batches, and ghosts where offsets are missing."""
    waiting: dict[int, list[tuple[int, bytes]]] = {}
    for segment, position, *span in placed(result, ghosts):
        waiting.setdefault(segment, []).append((position, ghosts_of.encode(*span)))
    for part in result.parts:
        yield from of_segment(part, waiting.get(part.segment.base_offset, []))


def placed(result: Result, ghosts: Ghosts) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield for each ghost segment and position of the batch after it, its offsets, its epoch."""
    gaps = result.ledger.gaps
    columns = (
        gaps.after_segment[ghosts.gap],
        gaps.position[ghosts.gap],
        ghosts.first_offset,
        ghosts.last_offset,
        ghosts.epoch,
    )
    yield from zip(*(column.tolist() for column in columns), strict=True)


def of_segment(part: SegmentBatches, inserts: list[tuple[int, bytes]]) -> Iterator[bytes]:
    """Yield the batches of one segment with each ghost before the batch at its position."""
    if not part.stretches:
        return
    at = 0
    with part.segment.log.open() as log:
        for start, end in part.stretches:
            while at < len(inserts) and inserts[at][0] < end:
                position, ghost = inserts[at]
                yield from _copy(log, start, position)
                yield ghost
                start, at = position, at + 1
            yield from _copy(log, start, end)


def _copy(log: LogFile, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        buffer = bytearray(min(_BLOCK, end - start))
        if log.read_into(memoryview(buffer), start) < len(buffer):
            raise UnreadableError(log.path, "became shorter while logtool read it")
        yield bytes(buffer)
        start += len(buffer)


def _check(result: Result, ghosts: Ghosts, target: Path) -> None:
    ledger = result.ledger
    if ledger.overlaps:
        path = result.subject.partition.path
        raise RefusedError(f"{path}: {ledger.overlaps} batches overlap others")
    if ledger.legacy and len(ghosts):
        text = (
            f"{ledger.legacy} entries are older than magic 2; logtool cannot add ghost batches "
            "to such a log"
        )
        raise RefusedError(f"{result.subject.partition.path}: {text}")
    facts, start = result.subject.facts, ledger.log_start
    if facts.beginning and not (len(ghosts) and int(ghosts.first_offset[0]) == start):
        start = facts.first_base  # nothing fills the lost beginning
    first = min(start, result.first_base)
    if target.name != _name(first):
        raise UsageError(
            f"--output {target}: the name of a log that begins at offset {first} is {_name(first)}"
        )
    kept = sum(end - start for part in result.parts for start, end in part.stretches)
    size = kept + len(ghosts) * HEADER_SIZE
    offsets = ledger.last_offset + 1 - first
    if offsets > MOST_OFFSETS or size > MAX_SEGMENT_SIZE:
        raise RefusedError(
            f"{target}: {offsets:,} offsets in {size:,} bytes are more than one log "
            f"can hold ({MOST_OFFSETS:,} offsets, {MAX_SEGMENT_SIZE:,} bytes)"
        )


def _name(offset: int) -> str:
    return f"{offset:020d}{FileKind.LOG}"


def _holds_files(folder: Path) -> bool:
    """Return whether a folder holds files of a broker: it is a log dir, or a partition dir.

    Folders in it prove nothing: it may hold folders with filled logs of several partitions.
    """
    try:
        entries = [entry.name for entry in files.list_dir(folder)]
    except UnreadableError:
        return False
    inside = [names.parse_partition_file(name) for name in entries]
    return any(
        one.kind is not FileKind.UNKNOWN and one.reception is Reception.EXACT for one in inside
    ) or any(
        names.parse_root_file(name).kind not in (FileKind.UNKNOWN, FileKind.LOCK)
        for name in entries
    )
