"""Offsets that a log lacks between its own sound batches, and that another copy holds.

No byte is damaged there: a batch was taken out, or was never written. A compacted log lacks offsets
on purpose, and so may a copy that was cleaned less. A copy counts as compacted by the signs of
`logtool.copies.copy`: a row in ``cleaner-offset-checkpoint``, a delete horizon, or a batch with
fewer records than offsets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import offset_checkpoint, record_batch
from logtool.formats.names import FileKind
from logtool.formats.record_batch import DELETE_HORIZON, MAGIC, BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.dir import Partition
from logtool.repair import ranges
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.ranges import Kept, Part, Rejected, RejectReason, is_dense
from logtool.repair.reading import joined, take

_NO_BATCH = frozenset({RejectReason.DAMAGE, RejectReason.UNREADABLE})


@dataclass(frozen=True, slots=True)
class _Gap:
    """Offsets that are missing in front of a batch."""

    first: int
    last: int


def with_holes(
    found: Sequence[Part], ours: Partition, copies: Sequence[Partition], start: int
) -> list[Part]:
    """Return the parts of a log, divided where offsets are missing, with a reject for each hole.

    A hole is reported where one of the `copies` holds batches that are missing; the log begins at
    offset `start`. The parts of a compacted log are returned as they are.
    """
    kept = [part for part in found if isinstance(part, Kept)]
    if not copies or not kept or not _has_gaps(kept, start) or _was_cleaned(ours):
        return list(found)
    divided: list[tuple[Part, _Gap | None]] = []
    end: int | None = start
    for part in found:
        if isinstance(part, Rejected):
            divided.append((part, None))
            # Other bytes explain what is missing around them, and are filled themselves.
            end = None
            continue
        table = None if is_dense(part) else _table(part, start)
        if table is not None and _is_compacted(table):
            return list(found)
        for piece in [part] if table is None else _pieces(part, table):
            at = piece.first.start
            divided.append((piece, _Gap(end, at - 1) if end is not None and at > end else None))
            end = piece.last.last_offset + 1
    filled = _filled_by(copies, [gap for _, gap in divided if gap])
    parts: list[Part] = []
    for one, gap in divided:
        before = parts[-1] if parts else None
        if isinstance(one, Kept) and gap and gap in filled:
            parts += [_hole(one, gap), one]
        elif isinstance(one, Kept) and isinstance(before, Kept) and _adjoin(before, one):
            parts[-1] = joined(before, one)
        else:
            parts.append(one)
    return parts


def _adjoin(one: Kept, other: Kept) -> bool:
    return (one.path, one.end) == (other.path, other.position)


def _has_gaps(kept: Sequence[Kept], start: int) -> bool:
    end = start
    for part in kept:
        if part.first.start != end or not is_dense(part):
            return True
        end = part.last.last_offset + 1
    return False


def _hole(behind: Kept, gap: _Gap) -> Rejected:
    """Return the reject for a hole in front of a part."""
    return Rejected(
        path=behind.path,
        position=behind.position,
        length=0,
        kind=RejectReason.MISSING,
        reason="batches are missing in front of this byte",
        first_offset=gap.first,
        last_offset=gap.last,
    )


def _table(part: Part, start: int) -> BatchTable:
    """Return the sound batches of an extent, or of bytes that are not taken over."""
    size = part.size if isinstance(part, Kept) else part.length
    with LogFile(part.path) as log:
        chunks = read_batches(
            SectorTolerantFile(log),
            base_offset=start,
            start=part.position,
            stop=part.position + size,
            payload=False,
        )
        return record_batch.concat([chunk.table for chunk in chunks])


def _pieces(part: Kept, table: BatchTable) -> Iterator[Kept]:
    """Yield an extent in pieces between which offsets are missing."""
    apart = table.first_offset[1:] > table.last_offset[:-1] + 1
    # The count of an old wrapper that does not unpack is not known, nor is its first offset.
    apart &= (table.magic[1:] >= MAGIC) | (table.record_count[1:] > 0)
    for rows in np.split(np.arange(len(table)), np.flatnonzero(apart) + 1):
        yield ranges.extent(part.path, take(table, rows))


def _is_compacted(table: BatchTable) -> bool:
    """Return whether batches show that a log was compacted."""
    modern = table.magic >= MAGIC
    partial = table.record_count < table.last_offset - table.base_offset + 1
    horizon = table.attributes & DELETE_HORIZON != 0
    return bool((modern & (partial | horizon)).any())


def _was_cleaned(listed: Partition) -> bool:
    """Return whether a log has a row in the cleaner checkpoint of its log dir."""
    path = listed.path.resolve().parent / FileKind.CLEANER_CHECKPOINT.value
    try:
        rows = offset_checkpoint.parse(files.read_small(path)).offsets
    except UnreadableError:
        return False
    return (listed.topic or "", listed.number or 0) in rows


def _filled_by(copies: Sequence[Partition], gaps: Sequence[_Gap]) -> set[_Gap]:
    """Return the gaps in which a copy that was not compacted holds a batch."""
    if not gaps:
        return set()
    firsts = np.array([gap.first for gap in gaps], np.int64)
    lasts = np.array([gap.last for gap in gaps], np.int64)
    found = np.zeros(len(gaps), np.bool_)
    for copy in copies:
        if _was_cleaned(copy):
            continue
        try:
            rows = _inside(copy, firsts, lasts)
        except UnreadableError:
            continue  # reported where the copy is read to fill a hole
        if rows is not None:
            found[rows] = True
    return {gap for gap, is_there in zip(gaps, found.tolist(), strict=True) if is_there}


def _inside(copy: Partition, firsts: Column, lasts: Column) -> list[int] | None:
    """Return the numbers of the gaps in which a copy has a batch; None if it was compacted."""
    found: set[int] = set()
    low, high = int(firsts[0]), int(lasts[-1])
    for segment in copy.segments:
        beyond = segment.next_base_offset is not None and segment.next_base_offset <= low
        if beyond or segment.base_offset > high:
            continue
        with segment.log.open() as log:
            for chunk in segment.batches(SectorTolerantFile(log), payload=False):
                table = chunk.table
                if not len(table):
                    continue
                if _is_compacted(table):
                    return None
                at = np.searchsorted(lasts, table.base_offset)
                rows = np.minimum(at, len(lasts) - 1)
                within = (at < len(lasts)) & (table.base_offset >= firsts[rows])
                found.update(rows[within].tolist())
    return sorted(found)


def without_repeats(parts: Sequence[Part], start: int) -> Iterator[Part]:
    """Yield the parts; sound batches that are out of order are left out if the log has them.

    Such are batches that were written twice, and those that changed places with others.
    """
    if not any(map(_may_repeat, parts)):
        yield from parts
        return
    present = {
        key for part in parts if isinstance(part, Kept) for key in _keys(_table(part, start))
    }
    for part in parts:
        if isinstance(part, Rejected) and _may_repeat(part):
            found = set(_keys(_table(part, start)))
            if found and found <= present:
                proof = "the log holds the same batches at the place of their offsets"
                part = replace(part, filled_from=part.path, proof=proof)
        yield part


def without_spare_bytes(parts: Sequence[Part], start: int) -> Iterator[Part]:
    """Yield the parts; damage is left out where the batches around it follow each other.

    The damaged bytes held no batch of the log then. The log begins at offset `start`.
    """
    end = start
    for number, part in enumerate(parts):
        if isinstance(part, Kept):
            end = part.last.last_offset + 1
        elif part.kind in _NO_BATCH and part.length and not part.filled_from:
            behind = next((one for one in parts[number:] if isinstance(one, Kept)), None)
            if behind and behind.first.start == end:
                proof = "no offset is missing between the batches around it"
                part = replace(part, filled_from=part.path, proof=proof)
        yield part


def _may_repeat(part: Part) -> bool:
    """Return whether a part is of sound batches that are not taken over, and that stay."""
    if isinstance(part, Kept) or part.filled_from or not part.length:
        return False
    return part.kind in (RejectReason.ORDER, RejectReason.OVERLAP)


def _keys(table: BatchTable) -> Iterator[tuple[int, ...]]:
    """Yield the offsets, size, CRC and leader epoch of each batch."""
    columns = (table.base_offset, table.last_offset, table.size, table.crc, table.leader_epoch)
    yield from zip(*(column.tolist() for column in columns), strict=True)
