"""One copy of a partition as columns: its batches, its damage, what stands beside its logs.

Everything here is plain data, so that a copy can be scanned in one place, saved (`digest`) and
compared in another.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
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
    if len(parts) == 1:
        return parts[0]
    nothing = np.empty(0, np.int64)
    return Batches(
        *(np.concatenate([nothing, *(getattr(p, name) for p in parts)]) for name in COLUMNS)
    )


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
class SegmentCopy:
    """What one segment adds to a copy."""

    batches: Batches
    damages: tuple[DamagedRange, ...]
    size: int


def scan_segment(segment: Segment, on_bytes: Callable[[int], None]) -> SegmentCopy:
    """Read one segment; one that cannot be read is damage as a whole. Work for a thread."""
    collector = _Collector(segment)
    with segment.log.open() as log:
        at = 0
        for chunk in scan(log, base_offset=segment.base_offset, payload=False):
            collector.feed(chunk)
            on_bytes(chunk.end_position - at)
            at = chunk.end_position
        return SegmentCopy(collector.batches, tuple(collector.finish()), log.size)


def try_segment(segment: Segment, on_bytes: Callable[[int], None]) -> SegmentCopy | UnreadableError:
    """As `scan_segment`, with the error as a value."""
    try:
        return scan_segment(segment, on_bytes)
    except UnreadableError as error:
        return error


def unreadable_segment(segment: Segment, reason: str) -> SegmentCopy:
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
    return SegmentCopy(joined([]), (damage,), segment.log.size)


def _end_of(segment: Segment) -> int | None:
    return None if segment.next_base_offset is None else segment.next_base_offset - 1


class _Collector:
    """Takes the chunks of a segment: sound batches in their place, and damage with its offsets."""

    def __init__(self, segment: Segment) -> None:
        self._columns = np.empty((len(COLUMNS), 0), np.int64)
        self._count = 0
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

    @property
    def batches(self) -> Batches:
        """Return the sound batches in their place."""
        return Batches(*self._columns[:, : self._count])

    def _keep(self, table: BatchTable, position: int) -> None:
        """Add rows to the one table that there is of them: memory is what takes time here."""
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

    def finish(self) -> list[DamagedRange]:
        """Return all damage."""
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


@dataclass(frozen=True, eq=False)
class Copy:
    """One copy of a partition."""

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
    batches: Batches
    damages: tuple[DamagedRange, ...]
    label: str = ""
    """How it is called among the copies that it is compared with."""

    @cached_property
    def batch_epochs(self) -> Epochs:
        """Return the leader epochs as the batches have them."""
        epochs = self.batches.leader_epoch
        starts = np.flatnonzero(np.diff(epochs, prepend=-2))
        firsts = self.batches.base_offset[starts]
        pairs = zip(epochs[starts].tolist(), firsts.tolist(), strict=True)
        return tuple((epoch, first) for epoch, first in pairs if epoch >= 0)

    @cached_property
    def compaction_hints(self) -> tuple[str, ...]:
        """Return what shows that this copy was compacted."""
        table = self.batches
        modern = table.magic >= MAGIC
        partial = modern & (table.record_count < table.last_offset - table.base_offset + 1)
        signs = {
            "cleaner-checkpoint": self.cleaner_offset is not None,
            "delete-horizons": bool((modern & (table.attributes & DELETE_HORIZON != 0)).any()),
            "partial-batches": bool(partial.any()),
        }
        return tuple(name for name, seen in signs.items() if seen)

    @property
    def records(self) -> int:
        """Return the records of its sound batches."""
        return int(records_of_each(self.batches.record_count, self.batches.magic).sum())

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
            "batches": len(self.batches),
            "records": self.records,
            "bytes": self.bytes,
            "leader_epochs": [list(entry) for entry in self.epochs],
            "batch_epochs": [list(entry) for entry in self.batch_epochs],
            "compaction_hints": list(self.compaction_hints),
            "damaged_ranges": len(self.real_damages),
        }


def make_copy(
    place: Mapping[str, Any],
    segments: Sequence[Segment],
    parts: Sequence[SegmentCopy],
    log_start: int,
) -> Copy:
    """Put the segments of a copy together; `place` has the fields that are known without them."""
    batches = joined([part.batches for part in parts])
    damages = [damage for part in parts for damage in part.damages]
    again = _again(batches)
    for first, last in runs(again):
        end = int(batches.position[last] + batches.size[last])
        at = int(batches.position[first])
        twice = wording.offsets(batches.base_offset[first], batches.last_offset[last])
        text = f"{twice} a second time"
        # Nothing is missing: the last offset is before the first.
        damages.append(
            DamagedRange(
                segment=int(batches.segment[first]),
                position=at,
                length=max(end - at, 0),
                reason=OVERLAP,
                message=text,
                first_offset=int(batches.base_offset[first]),
                last_offset=int(batches.base_offset[first]) - 1,
            )
        )
    batches = batches[~again]
    first = segments[0].base_offset if segments else 0
    last = segments[-1].base_offset if segments else 0
    end = max(last, int(batches.last_offset[-1]) + 1) if len(batches) else last
    return Copy(
        **place,
        log_start=max(first, log_start),
        log_end=end,
        segments=len(segments),
        bytes=sum(part.size for part in parts),
        batches=batches,
        damages=tuple(damages),
    )


def _again(batches: Batches) -> Column:
    """Return which batches begin at or below an offset that came before."""
    base, last = batches.base_offset, batches.last_offset
    if len(base) and base[0] >= 0 and (base[1:] > last[:-1]).all() and (last >= base).all():
        return np.zeros(len(base), np.bool_)
    highest = np.maximum.accumulate(np.concatenate(([-1], last)))[:-1]
    again: Column = base <= highest
    return again
