"""Sound batches whose offset or leader epoch has changed, which the log itself does not show.

No CRC covers the base offset and the leader epoch of a batch. If a bit of them flips, the batches
around contradict it (`logtool.repair.ordering`), but not at the end of a log, nor at the edge of a
segment; and of two that contradict each other either may be wrong. Then another copy decides: a
batch of equal size and CRC in the place of ours is our batch, as it was written.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from logtool.disk.files import LogFile
from logtool.formats import record_batch
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.dir import Partition
from logtool.repair import ranges
from logtool.repair.bad_sectors import SectorTolerantFile
from logtool.repair.filling import Rows
from logtool.repair.ranges import Kept, Part, Rejected, RejectReason
from logtool.repair.reading import take


def without_altered(
    found: Sequence[Part], epochs: Rows, copies: Sequence[Partition]
) -> Iterator[Part]:
    """Yield the parts of a log, with rejects for batches that a copy has with another header."""
    last = next((part for part in reversed(found) if isinstance(part, Kept)), None)
    end: int | None = None
    for number, part in enumerate(found):
        if isinstance(part, Rejected):
            yield part
            continue
        around = (*found[max(number - 1, 0) : number], *found[number + 1 : number + 2])
        doubted = any(isinstance(one, Rejected) for one in around)
        base = int(part.path.name.partition(".")[0])
        asked = _CopyQuery(
            part, base if end is None else max(base, end), epochs, part is last or doubted
        )
        yield from asked.parts(copies) if asked.is_odd() else [part]
        end = part.last.last_offset + 1


@dataclass(frozen=True, slots=True)
class _CopyQuery:
    """The comparison of one extent with other copies."""

    extent: Kept
    start: int
    """The offset at which it would begin if nothing before it were missing."""
    epochs: Rows
    may_jump: bool
    """True if its offsets may have risen unnoticed: no batch comes behind it, or the part before or
    behind it is damage or a reject for its order, which may be the right one of two."""

    def is_odd(self) -> bool:
        """Return whether the extent has to be read again and compared."""
        first, last = self.extent.first, self.extent.last
        rises = self.may_jump and self.extent.records != last.last_offset - self.start + 1
        return rises or any(self._denied(e.base_offset, e.leader_epoch) for e in (first, last))

    def _denied(self, offset: int, epoch: int) -> bool:
        """Return whether our ``leader-epoch-checkpoint`` has another epoch for an offset."""
        known = [start for _, start in self.epochs]
        at = bisect_right(known, offset)
        return bool(at) and epoch != -1 and self.epochs[at - 1][0] != epoch

    def parts(self, copies: Sequence[Partition]) -> Iterator[Part]:
        """Yield the extent, cut where a copy has other offsets or epochs."""
        with LogFile(self.extent.path) as log:
            chunks = read_batches(
                SectorTolerantFile(log),
                base_offset=self.start,
                start=self.extent.position,
                stop=self.extent.end,
                payload=False,
            )
            table = record_batch.concat([chunk.table for chunk in chunks])
        place = starts = table.first_offset
        if self.may_jump:
            place = np.concatenate(([self.start], table.last_offset[:-1] + 1))
        rows = [
            row
            for row in range(len(table))
            if place[row] != starts[row]
            or self._denied(int(table.base_offset[row]), int(table.leader_epoch[row]))
        ]
        mask = np.zeros(len(table), np.bool_)
        for copy in copies if rows else ():
            mask[list(_stored_otherwise(copy, table, rows, place))] = True
        for some in np.split(np.arange(len(table)), np.flatnonzero(mask[1:] != mask[:-1]) + 1):
            cut = ranges.extent(self.extent.path, take(table, some))
            yield _altered(cut) if mask[some[0]] else cut


def _altered(cut: Kept) -> Rejected:
    first, last = cut.first.base_offset, cut.last.last_offset
    text = f"its batch has offsets {first} through {last} of leader epoch {cut.first.leader_epoch}"
    text += ", and another copy holds the same records with other offsets or another epoch"
    return Rejected(cut.path, cut.position, cut.size, RejectReason.ORDER, text)


def _stored_otherwise(
    copy: Partition, table: BatchTable, rows: Sequence[int], place: Column
) -> set[int]:
    """Return the rows that a copy holds in their places, with another offset or epoch.

    The copy is read once, as far as these places reach.
    """
    wanted = {int(place[row]): row for row in rows}
    low, high = min(wanted), max(wanted)
    found = set()
    for segment in copy.segments:
        beyond = segment.next_base_offset is not None and segment.next_base_offset <= low
        if beyond or segment.base_offset > high:
            continue
        with segment.log.open() as log:
            for chunk in segment.batches(SectorTolerantFile(log), payload=False):
                theirs = chunk.table
                starts = theirs.first_offset
                for at in np.flatnonzero(np.isin(starts, list(wanted))).tolist():
                    row = wanted[int(starts[at])]
                    ours, other = ranges.edge(table, row), ranges.edge(theirs, at)
                    same = (ours.size, ours.crc, ours.magic) == (other.size, other.crc, other.magic)
                    if same and ours != other:
                        found.add(row)
    return found
