"""One copy of a partition: the sums of its batches, its damage, its checkpoints.

A copy is read in blocks, and in most cases need not be held as a whole: batches of 200 bytes take
half of their size as columns.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from logtool.copies.batches import CopyBatches, CopyPart, DamagedRange, joined
from logtool.copies.segments import BLOCK_BYTES, BLOCK_ROWS, UNREADABLE
from logtool.formats import wording
from logtool.formats.columns import runs
from logtool.formats.record_batch import DELETE_HORIZON, MAGIC, Column, records_of_each
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment

Epochs = tuple[tuple[int, int], ...]
"""Pairs (leader epoch, first offset) in order."""
OVERLAP = "overlap"
"""Reason of damage in addition to those of segments: batches with offsets of earlier batches."""


class BatchTotals:
    """Sums of the batches of a copy."""

    batches: int
    records: int

    def __init__(self, *tables: CopyBatches) -> None:
        self.batches = 0
        self.records = 0
        self.epochs: list[tuple[int, int]] = []
        """Leader epochs of the batches, and their first offsets."""
        self.horizons = 0
        """Batches with a delete horizon."""
        self.partial = 0
        """Batches with fewer records than offsets."""
        self.inner_gaps = 0
        """Gaps between batches of one segment."""
        self._epoch = -2
        self._before: tuple[int, int] | None = None
        """Segment and last offset of the last batch that was added."""
        for table in tables:
            self.add(table)

    def add(self, table: CopyBatches) -> None:
        """Add the batches that come next."""
        if not len(table):
            return
        self.batches += len(table)
        self.records += int(records_of_each(table.record_count, table.magic).sum())
        epochs = table.leader_epoch
        starts = np.flatnonzero(np.diff(epochs, prepend=self._epoch))
        firsts = table.base_offset[starts]
        pairs = zip(epochs[starts].tolist(), firsts.tolist(), strict=True)
        self.epochs += [(epoch, first) for epoch, first in pairs if epoch >= 0]
        self._epoch = int(epochs[-1])
        modern = table.magic >= MAGIC
        partial = modern & (table.record_count < table.last_offset - table.base_offset + 1)
        self.partial += int(partial.sum())
        self.horizons += int((modern & (table.attributes & DELETE_HORIZON != 0)).sum())
        segment, last = self._before or (-1, 0)
        segments = np.concatenate(([segment], table.segment))
        lasts = np.concatenate(([last], table.last_offset))
        gaps = (table.first_offset > lasts[:-1] + 1) & (segments[1:] == segments[:-1])
        self.inner_gaps += int(gaps.sum())
        self._before = int(segments[-1]), int(lasts[-1])


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of a partition after its batches were read."""

    topic: str
    partition: int
    path: str
    """Path of its directory on the machine where it was scanned."""
    node: int | None
    topic_id: str | None
    log_start: int
    log_end: int
    segments: int
    bytes: int
    high_watermark: int | None
    """High watermark in the checkpoint; None without one."""
    cleaner_offset: int | None
    """Offset in the cleaner checkpoint, up to which the log was compacted; None without one."""
    epochs: Epochs
    """Entries of leader-epoch-checkpoint."""
    tally: BatchTotals
    damages: tuple[DamagedRange, ...]
    label: str
    """Its name among the copies that it is compared with."""

    @property
    def batch_epochs(self) -> Epochs:
        """Return the leader epochs of its batches."""
        return tuple(self.tally.epochs)

    @property
    def compaction_hints(self) -> tuple[str, ...]:
        """Return the signs that this copy was compacted."""
        return _hints(self.cleaner_offset, self.tally)

    @property
    def records(self) -> int:
        """Return the number of records in its sound batches."""
        return self.tally.records

    @property
    def real_damages(self) -> tuple[DamagedRange, ...]:
        """Return the damage except an unfinished append, which any killed broker may leave."""
        return tuple(damage for damage in self.damages if not damage.tail)

    @property
    def is_unread(self) -> bool:
        """Return whether all that is wrong is that a part cannot be read."""
        real = self.real_damages
        return bool(real) and all(damage.reason == UNREADABLE for damage in real)

    @property
    def damaged_ranges(self) -> int:
        """Return the number of damaged ranges, without an unfinished append."""
        return len(self.real_damages)


@dataclass(frozen=True, eq=False)
class WholeCopy(Copy):
    """A copy with all of its batches."""

    batches: CopyBatches


class LateDamageError(Exception):
    """Damage at offsets below batches that were yielded before."""


class CopyReading:
    """A copy that is being read: iterate over it once for its batches, then use `copy`."""

    def __init__(
        self,
        place: Mapping[str, Any],
        parts: Iterable[CopyPart],
        *,
        segments: int,
        log_start: int,
        least_end: int,
        damages: Sequence[DamagedRange] | None = None,
    ) -> None:
        """Prepare to read; `place` has the fields of a copy that are known before its batches.

        No log ends before `least_end`, the base offset of its last segment. `damages` is the damage
        of all parts, if it is known. If not, batches are yielded with the damage known so far, and
        damage at an offset that was yielded already raises `LateDamageError`.
        """
        self.topic_id: str | None = place["topic_id"]
        self.log_start = log_start
        self.damages = list(damages or ())
        """Damage that was found so far."""
        self._is_forewarned = damages is not None
        self._given = -1
        """Last offset of the batches that were yielded."""
        self.tally = BatchTotals()
        self._place, self._parts = place, parts
        self._segments, self._end, self._bytes = segments, least_end, 0
        self._highest = -1
        self._twice: list[DamagedRange] = []
        self._again: _Again | None = None
        """Batches in a row that are skipped, up to the last batch read; None after others."""

    def __iter__(self) -> Iterator[CopyBatches]:
        """Yield blocks of batches whose offsets rise; no block is empty."""
        kept: list[CopyBatches] = []
        size = 0
        for part in self._parts:
            self._take(part)
            size += part.size
            kept += [self._rising(part.batches)] if len(part.batches) else []
            count = sum(map(len, kept))
            if count >= BLOCK_ROWS or (count and size >= BLOCK_BYTES):
                yield self._added(joined(kept))
                kept.clear()
                size = 0
        self._close()
        if any(map(len, kept)):
            yield self._added(joined(kept))

    def _take(self, part: CopyPart) -> None:
        """Add the damage and the bytes of a part."""
        self._bytes += part.size
        if self._is_forewarned:
            return
        self.damages += part.damages
        for damage in part.damages:
            if damage.loses and damage.first_offset <= self._given:
                raise LateDamageError

    def _added(self, block: CopyBatches) -> CopyBatches:
        """Add a block to the sums, and return it."""
        self.tally.add(block)
        self._given = int(block.last_offset[-1])
        self._end = max(self._end, self._given + 1)
        return block

    @property
    def compaction_hints(self) -> tuple[str, ...]:
        """Return the signs that it was compacted, as far as it was read."""
        return _hints(self._place["cleaner_offset"], self.tally)

    @property
    def log_end(self) -> int:
        """Return its log end offset, as far as it was read."""
        return self._end

    @property
    def copy(self) -> Copy:
        """Return the copy as far as it was read."""
        return Copy(
            **self._place,
            log_start=self.log_start,
            log_end=self._end,
            segments=self._segments,
            bytes=self._bytes,
            tally=self.tally,
            damages=(*self.damages, *self._twice),
            label="",
        )

    def whole(self) -> WholeCopy:
        """Read the copy to its end, and return it with its batches."""
        batches = joined(list(self))
        copy = self.copy
        known = {field.name: getattr(copy, field.name) for field in fields(copy)}
        return WholeCopy(**known, batches=batches)

    def _rising(self, batches: CopyBatches) -> CopyBatches:
        """Return the batches without those that begin at or below an earlier offset."""
        base, last = batches.base_offset, batches.last_offset
        highest, self._highest = self._highest, max(self._highest, int(last.max()))
        if base[0] > highest and (base[1:] > last[:-1]).all() and (last >= base).all():
            self._close()
            return batches
        before = np.maximum.accumulate(np.concatenate(([highest], last)))[:-1]
        again: Column = base <= before
        for first, until in runs(again):
            if first or not self._again:
                self._close()
                self._again = _Again(batches.row(first), batches.row(until))
            self._again = replace(self._again, last=batches.row(until))
        if not again[-1]:
            self._close()
        return batches[~again]

    def _close(self) -> None:
        """Note skipped batches as damage without missing offsets: it ends before it begins."""
        if self._again:
            first, last = self._again.first, self._again.last
            text = f"{wording.offsets(first['base_offset'], last['last_offset'])} are repeated"
            damage = DamagedRange(
                segment=first["segment"],
                position=first["position"],
                length=max(last["position"] + last["size"] - first["position"], 0),
                reason=OVERLAP,
                message=text,
                first_offset=first["base_offset"],
                last_offset=first["base_offset"] - 1,
            )
            self._twice.append(damage)
        self._again = None


@dataclass(frozen=True, slots=True)
class _Again:
    """The first and the last of batches in a row whose offsets were read before."""

    first: dict[str, int]
    last: dict[str, int]


def _hints(cleaner_offset: int | None, tally: BatchTotals) -> tuple[str, ...]:
    signs = {
        "cleaner-checkpoint": cleaner_offset is not None,
        "delete-horizons": tally.horizons > 0,
        "partial-batches": tally.partial > 0,
    }
    return tuple(name for name, seen in signs.items() if seen)


def reading_of(
    place: Mapping[str, Any],
    segments: Sequence[Segment],
    log_start: int,
    parts: Iterable[CopyPart],
    damages: Sequence[DamagedRange] | None = None,
) -> CopyReading:
    """Return the reading of a directory's segments; `parts` are their parts in order."""
    first = segments[0].base_offset if segments else 0
    return CopyReading(
        place,
        parts,
        segments=len(segments),
        log_start=max(first, log_start),
        least_end=segments[-1].base_offset if segments else 0,
        damages=damages,
    )
