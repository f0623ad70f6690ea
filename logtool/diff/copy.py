"""One copy of a partition: its batches as columns, its damage, what stands beside its logs.

Everything here but `Reading` is plain data, so that a copy can be scanned in one place, saved
(`digest`) and compared in another. A copy is read in blocks, and mostly need not be held as a
whole: batches of 200 bytes take half of their size as columns.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np

from logtool.checks.batches import BatchRules
from logtool.disk.partition import Segment
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.formats.columns import runs
from logtool.formats.record_batch import DELETE_HORIZON, MAGIC, BatchTable, Column, records_of_each
from logtool.lazy_dataclass import dataclass
from logtool.segment.chunk import Chunk
from logtool.segment.damage import Reason
from logtool.segment.walk import scan

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, first offset) in order."""
UNREADABLE, OVERLAP, OFFSETS = "unreadable", "overlap", "offsets"
"""Reasons of damage besides those of a scan: a log that cannot be read; batches whose offsets were
there before, or are none of the segment."""

BLOCK_ROWS = 16_384
"""Batches from which on a block is given away; it has those of a whole chunk besides."""
_MOST_GROWTH = 64
"""Columns get room for at most this many times the rows that they hold: what follows a few batches
may be zeros alone, so that the size of the file says little about the rows to come."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a copy as int64 columns of one length, their offsets rising."""

    segment: Column
    """Base offset."""
    position: Column
    size: Column
    base_offset: Column
    last_offset: Column
    leader_epoch: Column
    magic: Column
    crc: Column
    attributes: Column
    max_timestamp: Column
    producer_id: Column
    producer_epoch: Column
    base_sequence: Column
    record_count: Column

    def __len__(self) -> int:
        return len(self.position)

    def __getitem__(self, which: Column | slice) -> Self:
        """Return the rows that a mask, an index array or a slice selects."""
        if isinstance(which, np.ndarray) and which.dtype == np.bool_:
            which = np.flatnonzero(which)
            if len(which) == len(self):
                return self  # as nearly always, and there may be millions
        return type(self)(*(getattr(self, name)[which] for name in COLUMNS))

    def row(self, index: int) -> dict[str, int]:
        """Return one batch as plain integers."""
        return {name: int(getattr(self, name)[index]) for name in COLUMNS}


COLUMNS = tuple(field.name for field in fields(Batches))


def joined(parts: Sequence[Batches]) -> Batches:
    """Return the rows of all parts in order."""
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return Batches(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


NOTHING = Batches(*(np.empty(0, np.int64) for _ in COLUMNS))


@dataclass(frozen=True, slots=True)
class DamagedRange:
    """Bytes of a log that hold no sound batch, and the offsets that are missing for it."""

    segment: int
    position: int
    length: int
    reason: str
    message: str
    first_offset: int
    last_offset: int | None
    """None: to the end of the log, which is unknown; below the first: none is missing."""
    tail: bool = False
    """Whether it is an append that was not finished, at the end of the active segment."""

    def overlaps(self, first: Column, last: Column) -> Column:
        """Return where the offset ranges are among those that may be missing, a bool each."""
        overlapping: Column = last >= self.first_offset
        return (
            overlapping if self.last_offset is None else overlapping & (first <= self.last_offset)
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What a segment, or a stretch of it, adds to a copy."""

    batches: Batches
    damages: tuple[DamagedRange, ...] = ()
    size: int = 0
    """Bytes of the log, told with its last stretch."""


def scan_segment(segment: Segment, on_bytes: Callable[[int], None]) -> Part:
    """Read one segment as a whole; UnreadableError. Work for a thread."""
    table = _Table(segment)
    collector = _Collector(segment, table.add)
    with segment.log.open() as log:
        at = 0
        for chunk in scan(log, base_offset=segment.base_offset, payload=False):
            collector.feed(chunk)
            on_bytes(chunk.end_position - at)
            at = chunk.end_position
        return Part(table.batches, tuple(collector.finish()), log.size)


def try_segment(segment: Segment, on_bytes: Callable[[int], None]) -> Part | UnreadableError:
    """As `scan_segment`, with the error as a value."""
    try:
        return scan_segment(segment, on_bytes)
    except UnreadableError as error:
        return error


def parts_of(segment: Segment, on_bytes: Callable[[int], None]) -> Iterator[Part]:
    """Read one segment stretch by stretch.

    Where it cannot be read any further, the last part has that as damage; then UnreadableError.
    """
    kept: list[Batches] = []
    collector = _Collector(segment, lambda table, _: kept.append(_rows(segment, table)))
    at = 0
    try:
        with segment.log.open() as log:
            for chunk in scan(log, base_offset=segment.base_offset, payload=False):
                collector.feed(chunk)
                on_bytes(chunk.end_position - at)
                at = chunk.end_position
                if sum(map(len, kept)) >= BLOCK_ROWS:
                    yield Part(joined(kept), collector.take())
                    kept.clear()
            yield Part(joined(kept), tuple(collector.finish()), log.size)
    except UnreadableError as error:
        collector.give_up(at, error.reason)
        yield Part(joined(kept), tuple(collector.finish()), segment.log.size)
        raise


def _rows(segment: Segment, table: BatchTable) -> Batches:
    """Return the rows of a chunk, which no later chunk changes."""
    columns = (np.asarray(getattr(table, name), np.int64) for name in COLUMNS[1:])
    return Batches(np.full(len(table), segment.base_offset, np.int64), *columns)


def unreadable_segment(segment: Segment, reason: str) -> Part:
    """Return what a segment adds that cannot be read: damage from its first byte to its last."""
    damage = DamagedRange(
        segment=segment.base_offset,
        position=0,
        length=segment.log.size,
        reason=UNREADABLE,
        message=reason,
        first_offset=segment.base_offset,
        last_offset=_end_of(segment),
    )
    return Part(NOTHING, (damage,), segment.log.size)


def _end_of(segment: Segment) -> int | None:
    return None if segment.next_base_offset is None else segment.next_base_offset - 1


class _Table:
    """The batches of a segment as one table, and no other: memory is what takes time here."""

    def __init__(self, segment: Segment) -> None:
        self._columns = np.empty((len(COLUMNS), 0), np.int64)
        self._count = 0
        self._segment = segment

    @property
    def batches(self) -> Batches:
        """Return the rows."""
        return Batches(*self._columns[:, : self._count])

    def add(self, table: BatchTable, position: int) -> None:
        """Add the rows of a chunk that ends at a position of the log."""
        first, end = self._count, self._count + len(table)
        if end > self._columns.shape[1]:
            # Room for the rest of the log if it goes on like this, which it mostly does.
            rest = max(self._segment.log.size - position, 0)
            room = int(end * (1.01 + 1.01 * rest / position))
            room = min(max(room, 3 * first // 2), _MOST_GROWTH * end)
            grown = np.empty((len(COLUMNS), room), np.int64)
            grown[:, :first] = self._columns[:, :first]
            self._columns = grown
        self._columns[0, first:end] = self._segment.base_offset
        for column, name in zip(self._columns[1:], COLUMNS[1:], strict=True):
            column[first:end] = getattr(table, name)
        self._count = end


class _Collector:
    """Takes the chunks of a segment: sound batches in their place, and damage with its offsets."""

    def __init__(self, segment: Segment, keep: Callable[[BatchTable, int], None]) -> None:
        """`keep` is given sound batches, and the position behind the chunk that they are of."""
        self._keep = keep
        self._segment = segment
        self._rules = BatchRules(segment.base_offset)
        self._damages: list[DamagedRange] = []
        self._open: list[tuple[int, int, str, str, bool]] = []
        """Damage since the last sound batch: (position, length, reason, message, tail)."""
        self._next = segment.base_offset

    def feed(self, chunk: Chunk) -> None:
        for _ in self._rules.feed(chunk):
            pass  # what is wrong with headers is for verify to say
        damage = chunk.damage
        if damage:
            torn = damage.reason in (Reason.INCOMPLETE, Reason.ZEROS)
            tail = torn and not damage.resynchronised and self._segment.is_active
            if not (tail and damage.reason is Reason.ZEROS):  # preallocated: nothing was there
                reason = str(damage.reason)
                what = damage.position, damage.length, reason, damage.message, tail
                self._open.append(what)
            return
        table, bad = chunk.table, self._rules.misplaced
        for row in [] if bad is None else np.flatnonzero(bad).tolist():
            text = f"batch at offset {table.base_offset[row]}"
            what = int(table.position[row]), int(table.size[row]), OFFSETS, text, False
            self._open.append(what)
        good = table if bad is None else table[~bad]
        if len(good):
            self._close(int(good.base_offset[0]) - 1)
            self._next = int(good.last_offset.max()) + 1
            self._keep(good, chunk.end_position)

    def take(self) -> tuple[DamagedRange, ...]:
        """Return the damage whose offsets are known by now; it is not returned again."""
        found, self._damages = self._damages, []
        return tuple(found)

    def give_up(self, position: int, reason: str) -> None:
        """Take what follows a position for damage."""
        length = max(self._segment.log.size - position, 0)
        self._open.append((position, length, UNREADABLE, reason, False))

    def finish(self) -> list[DamagedRange]:
        """Return all damage, but for what was taken."""
        self._close(_end_of(self._segment))
        return self._damages

    def _close(self, last: int | None) -> None:
        """Give the damage since the last sound batch the offsets up to the next one."""
        for position, length, reason, message, tail in self._open:
            self._damages.append(
                DamagedRange(
                    segment=self._segment.base_offset,
                    position=position,
                    length=length,
                    reason=reason,
                    message=message,
                    first_offset=self._next,
                    last_offset=last,
                    tail=tail,
                )
            )
        self._open = []


class Tally:
    """What the batches of a copy add up to."""

    def __init__(self, *tables: Batches) -> None:
        self.batches = 0
        self.records = 0
        self.epochs: list[tuple[int, int]] = []
        """Leader epochs as the batches have them, and their first offsets."""
        self.horizons = 0
        """Batches with a delete horizon."""
        self.partial = 0
        """Batches with fewer records than offsets."""
        self.inner_gaps = 0
        """Gaps between batches of one segment."""
        self._epoch = -2
        self._before: tuple[int, int] | None = None
        """Segment and last offset of the batch before the next one."""
        for table in tables:
            self.add(table)

    def add(self, table: Batches) -> None:
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
        gaps = (table.base_offset > lasts[:-1] + 1) & (segments[1:] == segments[:-1])
        self.inner_gaps += int(gaps.sum())
        self._before = int(segments[-1]), int(lasts[-1])


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of a partition, once its batches were seen."""

    topic: str
    partition: int
    path: str
    """Of its directory, where it was scanned."""
    node: int | None
    topic_id: str | None
    log_start: int
    log_end: int
    segments: int
    bytes: int
    high_watermark: int | None
    """As checkpointed."""
    cleaner_offset: int | None
    """As checkpointed: up to where the log was compacted."""
    epochs: Epochs
    """As leader-epoch-checkpoint says."""
    tally: Tally
    damages: tuple[DamagedRange, ...]
    label: str
    """How it is called among the copies that it is compared with."""

    @property
    def batch_epochs(self) -> Epochs:
        """Return the leader epochs as the batches have them."""
        return tuple(self.tally.epochs)

    @property
    def compaction_hints(self) -> tuple[str, ...]:
        """Return what shows that this copy was compacted."""
        return _hints(self.cleaner_offset, self.tally)

    @property
    def records(self) -> int:
        """Return the records of its sound batches."""
        return self.tally.records

    @property
    def real_damages(self) -> tuple[DamagedRange, ...]:
        """Return the damage but for an unfinished append, which is how a kill leaves any log."""
        return tuple(damage for damage in self.damages if not damage.tail)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "copy",
            "topic": self.topic,
            "partition": self.partition,
            "copy": self.label,
            "node": self.node,
            "path": self.path,
            "topic_id": self.topic_id,
            "log_start_offset": self.log_start,
            "log_end_offset": self.log_end,
            "high_watermark": self.high_watermark,
            "segments": self.segments,
            "batches": self.tally.batches,
            "records": self.tally.records,
            "bytes": self.bytes,
            "leader_epochs": [list(entry) for entry in self.epochs],
            "batch_epochs": [list(entry) for entry in self.batch_epochs],
            "compaction_hints": list(self.compaction_hints),
            "damaged_ranges": len(self.real_damages),
        }


@dataclass(frozen=True, eq=False)
class WholeCopy(Copy):
    """One with all of its batches at hand."""

    batches: Batches


class Reading:
    """A copy that is being read: iterate once for its batches, then ask for the `copy`."""

    def __init__(
        self,
        place: Mapping[str, Any],
        parts: Iterable[Part],
        *,
        segments: int,
        log_start: int,
        least_end: int,
    ) -> None:
        """`place` has the fields of a copy that are known before its batches are.

        No log ends before `least_end`, the base offset of its last segment.
        """
        self.topic_id: str | None = place["topic_id"]
        self.log_start = log_start
        self.damages: list[DamagedRange] = []
        """What was come by so far."""
        self.tally = Tally()
        self._place, self._parts = place, parts
        self._segments, self._end, self._bytes = segments, least_end, 0
        self._highest = -1
        self._twice: list[DamagedRange] = []
        self._again: _Again | None = None
        """Batches that are skipped, up to the last one that was seen."""

    def __iter__(self) -> Iterator[Batches]:
        """Yield blocks of batches whose offsets rise, none of them empty."""
        kept: list[Batches] = []
        for part in self._parts:
            self.damages += part.damages
            self._bytes += part.size
            kept += [self._rising(part.batches)] if len(part.batches) else []
            if sum(map(len, kept)) >= BLOCK_ROWS:
                yield self._told(joined(kept))
                kept.clear()
        self._close()
        if any(map(len, kept)):
            yield self._told(joined(kept))

    def _told(self, block: Batches) -> Batches:
        """Return a block that is added to what is known."""
        self.tally.add(block)
        self._end = max(self._end, int(block.last_offset[-1]) + 1)
        return block

    @property
    def compaction_hints(self) -> tuple[str, ...]:
        """Return what shows so far that it was compacted."""
        return _hints(self._place["cleaner_offset"], self.tally)

    @property
    def log_end(self) -> int:
        """Return its log end offset, as far as it was read."""
        return self._end

    @property
    def copy(self) -> Copy:
        """Return what was read."""
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
        """Read it to its end, and return it with its batches."""
        batches = joined(list(self))
        copy = self.copy
        known = {field.name: getattr(copy, field.name) for field in fields(copy)}
        return WholeCopy(**known, batches=batches)

    def _rising(self, batches: Batches) -> Batches:
        """Return the batches without those that begin at or below an offset that came before."""
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
        """Note the batches that were skipped: nothing is missing, the last offset is before."""
        if self._again:
            first, last = self._again.first, self._again.last
            text = f"{wording.offsets(first['base_offset'], last['last_offset'])} a second time"
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
    """The first and the last of batches in a row that are there a second time."""

    first: dict[str, int]
    last: dict[str, int]


def _hints(cleaner_offset: int | None, tally: Tally) -> tuple[str, ...]:
    signs = {
        "cleaner-checkpoint": cleaner_offset is not None,
        "delete-horizons": tally.horizons > 0,
        "partial-batches": tally.partial > 0,
    }
    return tuple(name for name, seen in signs.items() if seen)


def reading_of(
    place: Mapping[str, Any], segments: Sequence[Segment], log_start: int, parts: Iterable[Part]
) -> Reading:
    """Return the reading of a directory's segments, `parts` of which come in order."""
    first = segments[0].base_offset if segments else 0
    return Reading(
        place,
        parts,
        segments=len(segments),
        log_start=max(first, log_start),
        least_end=segments[-1].base_offset if segments else 0,
    )
