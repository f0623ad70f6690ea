"""Reading of one segment to be saved: extents and rejects, in the order of the file."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace

import numpy as np

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import record_batch, wording
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.redpanda import REDPANDA
from logtool.repair import ordering, ranges
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.disk_image import Image, Refined
from logtool.repair.ranges import Kept, Part, Rejected, RejectReason

_LARGEST_OFFSET = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogToRead:
    """One segment to be read."""

    log: File
    base_offset: int
    end_offset: int | None
    """Base offset of the next segment; None for the last one."""
    flavour: Flavour
    earlier: Image | None = None
    """Bytes of it that an earlier run has read; None without any."""


@dataclass(frozen=True, slots=True)
class LogRanges:
    """Parts of one segment."""

    piece: LogToRead
    found: tuple[Part, ...]
    bad: dict[int, int]
    """Number of bytes that the disk does not give, by position."""


def read(piece: LogToRead, on_bytes: Callable[[int], None]) -> LogRanges | UnreadableError:
    """Read one segment; work for a thread of its own."""
    try:
        with opened(piece) as source:
            try:
                found = list(_plainly(piece, source, on_bytes))
            except _DisorderError:
                found = _decided(piece, source)
            return LogRanges(piece, tuple(_explained(found, source)), source.bad)
    except UnreadableError as error:
        return error


_TORN = (DamageReason.INCOMPLETE, DamageReason.ZEROS)


@contextmanager
def opened(piece: LogToRead) -> Iterator[SectorTolerantFile]:
    """Yield the source of a segment: the disk, and the image of an earlier run if given."""
    with piece.log.open() as log, ExitStack() as stack:
        if piece.earlier is None:
            yield SectorTolerantFile(log)
            return
        image = stack.enter_context(LogFile(piece.earlier.path))
        yield Refined(log, image, piece.earlier.missing)


def _chunks(piece: LogToRead, source: SectorTolerantFile) -> Iterator[Chunk]:
    form = piece.flavour.form(piece.log.path)
    return read_batches(source, base_offset=piece.base_offset, form=form, payload=False)


class _DisorderError(Exception):
    """Offsets or epochs do not rise: all batches are needed for the choice of those that stay."""


def _plainly(
    piece: LogToRead, source: SectorTolerantFile, on_bytes: Callable[[int], None]
) -> Iterator[Part]:
    """Yield the parts of a segment whose batches rise, with one part in memory at a time."""
    last, epoch, known = piece.base_offset - 1, -1, 0
    open_extent: Kept | None = None
    for chunk in _chunks(piece, source):
        on_bytes(chunk.end_position - known)
        known = chunk.end_position
        if chunk.damage:
            if open_extent:
                yield open_extent
                open_extent = None
            yield _damaged(piece, chunk.damage)
            continue
        table = chunk.table
        epochs = table.leader_epoch[table.leader_epoch >= 0]
        starts = table.first_offset
        if (
            int(starts[0]) <= last
            or not ordering.rises(starts, table.last_offset, table.leader_epoch)
            or int(table.last_offset[-1]) > _highest(piece)
            or (len(epochs) and int(epochs[0]) < epoch)
        ):
            raise _DisorderError
        last = int(table.last_offset[-1])
        epoch = int(epochs[-1]) if len(epochs) else epoch
        made = ranges.extent(piece.log.path, table)
        if open_extent and open_extent.end == made.position:
            made = joined(open_extent, made)
        elif open_extent:
            yield open_extent
        open_extent = made
    if open_extent:
        yield open_extent


def _decided(piece: LogToRead, source: SectorTolerantFile) -> list[Part]:
    """Return the parts of a segment in which some sound batches contradict others."""
    tables: list[BatchTable] = []
    found: list[Part] = []
    for chunk in _chunks(piece, source):
        if chunk.damage:
            found.append(_damaged(piece, chunk.damage))
        else:
            tables.append(chunk.table)
    table = record_batch.concat(tables)
    beyond = table.last_offset > _highest(piece)
    within = (table.base_offset >= piece.base_offset) & ~beyond
    rows = np.flatnonzero(within)
    kept = np.zeros(len(table), np.bool_)
    kept[rows] = ordering.longest(
        table.first_offset[rows], table.last_offset[rows], table.leader_epoch[rows]
    )
    ends = table.position + table.size
    same = (kept[1:] == kept[:-1]) & (beyond[1:] == beyond[:-1])
    breaks = np.flatnonzero(~(same & (table.position[1:] == ends[:-1]))) + 1
    for rows in np.split(np.arange(len(table)), breaks):
        some = take(table, rows)
        made = ranges.extent(piece.log.path, some)
        if kept[rows[0]]:
            found.append(made)
        else:
            found.append(_contradicting(piece, made, beyond=bool(beyond[rows[0]])))
    return sorted(found, key=lambda part: part.position)


def take(table: BatchTable, rows: record_batch.Column) -> BatchTable:
    """Return some rows of a table."""
    return BatchTable(*(getattr(table, field.name)[rows] for field in fields(BatchTable)))


def _highest(piece: LogToRead) -> int:
    unlimited = piece.flavour is REDPANDA
    most = _LARGEST_OFFSET if unlimited else piece.base_offset + MAX_RELATIVE_OFFSET
    return most if piece.end_offset is None else min(most, piece.end_offset - 1)


def joined(one: Kept, other: Kept) -> Kept:
    """Return two extents that lie one behind the other as one."""
    return replace(
        one,
        size=other.end - one.position,
        last=other.last,
        batches=one.batches + other.batches,
        records=one.records + other.records,
    )


def _damaged(piece: LogToRead, damage: Damage) -> Rejected:
    return Rejected(
        path=piece.log.path,
        position=damage.position,
        length=damage.length,
        kind=RejectReason.DAMAGE,
        reason=damage.message,
        is_torn=damage.reason in _TORN and not damage.resynchronised,
    )


def _contradicting(piece: LogToRead, made: Kept, *, beyond: bool) -> Rejected:
    first, last = made.first.base_offset, made.last.last_offset
    span = f"{wording.count(made.batches, 'sound batch', 'sound batches')} with "
    span += wording.offsets(first, last)
    overlaps = beyond and piece.end_offset is not None
    if overlaps:
        text = f"{span}: the next segment begins at {piece.end_offset}"
    else:
        text = (
            f"{span} of leader epoch {made.first.leader_epoch}, which contradicts the batches "
            "around it"
        )
    return Rejected(
        path=piece.log.path,
        position=made.position,
        length=made.size,
        kind=RejectReason.OVERLAP if overlaps else RejectReason.ORDER,
        reason=text,
    )


def _explained(found: list[Part], source: SectorTolerantFile) -> Iterator[Part]:
    """Yield the parts; damage over bytes that the disk does not give becomes UNREADABLE."""
    for part in found:
        if isinstance(part, Rejected) and source.holds_bad(part.position, part.length):
            text = "the disk does not return all of it"
            yield replace(part, kind=RejectReason.UNREADABLE, reason=f"{text}: {part.reason}")
        else:
            yield part
