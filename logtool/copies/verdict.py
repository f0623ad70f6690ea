"""Verdict on all copies of a partition: supersets, copies behind, and fillings for damage."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import zip_longest

import numpy as np

from logtool.copies.batches import CopyBatch, CopyBatches, DamagedRange
from logtool.copies.byte_difference import ByteDifference
from logtool.copies.compare import Pairs
from logtool.copies.copy import Copy, CopyReading
from logtool.copies.merge import stretches
from logtool.copies.pair import CopyPair, Lacks, Status
from logtool.lazy_dataclass import dataclass

_ORDER = list(Status)


@dataclass(frozen=True, slots=True)
class DamageInCopy:
    """Damage of one copy, and the other copies whose batches at these offsets are sound."""

    copy: Copy
    damage: DamagedRange
    filled_by: tuple[str, ...]
    partly_by: tuple[str, ...]
    sound: tuple[Copy, CopyBatch] | None = None
    """The first sound batch at these offsets in another copy, and that copy; None without one."""
    difference: ByteDifference | None = None
    """First byte that differs from that batch; None unless the damage begins with a batch of the
    same offset and size, and the bytes of both copies are at hand."""

    @property
    def differs_from(self) -> str | None:
        """Return the name of the copy with which the bytes were compared; None without one."""
        return self.sound[0].label if self.sound and self.difference else None

    @property
    def differs_at(self) -> int | None:
        """Return the byte of the log that differs first from that copy; None if not known."""
        return self.difference.position if self.difference else None

    @property
    def header_field(self) -> str | None:
        """Return the field of the header of the batch that has this byte; None without one."""
        return self.difference.header_field if self.difference else None

    @property
    def record_offset(self) -> int | None:
        """Return the offset of the record that has this byte; None if it is not known."""
        return self.difference.record_offset if self.difference else None

    @property
    def differs_in_codec(self) -> str | None:
        """Return the codec of the records that have this byte; None if they have none."""
        return self.difference.codec if self.difference else None

    @property
    def first_offset(self) -> int | None:
        """Return the first offset missing because of it; None if no offset is missing."""
        return self.damage.first_offset if self.damage.loses else None

    @property
    def last_offset(self) -> int | None:
        """Return the last offset missing because of it; None if unknown, or nothing is missing."""
        return self.damage.last_offset if self.damage.loses else None


@dataclass(frozen=True, slots=True)
class LeaderCandidates:
    """Node ids of brokers that may lead a partition without loss, by the newest metadata log."""

    in_sync: tuple[int, ...]
    eligible: tuple[int, ...]
    """Eligible leader replicas (KIP-966): they left the ISR with all committed records."""


@dataclass(frozen=True, slots=True)
class CopiesVerdict:
    """Result of the comparison of all copies of a partition."""

    copies: tuple[Copy, ...]
    pairs: tuple[CopyPair, ...]
    wounds: tuple[DamageInCopy, ...]
    status: Status
    superset: tuple[str, ...]
    """Copies that have every batch of every copy; several if they are the same."""
    behind: tuple[str, ...]
    """Copies that end before another copy with the same history."""
    standing: LeaderCandidates | None = None
    """Brokers that may lead it; None if no given metadata log has the partition."""
    may_begin_later: frozenset[str] = frozenset()
    """Paths of copies whose records before the log start were deleted, or are in remote storage."""
    fixes: tuple[str, ...] = ()
    """Commands that repair damaged copies from others, if these are given as directories."""
    planned: Mapping[str, int] = field(default_factory=dict)
    """Numbers of ranges that these commands leave unfilled, by the name of each copy for which
    `recover` was planned."""
    foreign: tuple[str, ...] = ()
    """Segments of copies that diverge whose batches are those of another partition, in words."""
    next_command: str | None = None
    """Command that says more about copies that diverge; None if none do, or for digests."""
    is_new_topic: bool = False
    """True if the copies are of one log dir, and the topic was created again in between."""
    same_damage: bool = False
    """True if all copies have the same bytes without a sound batch, at the same places."""

    @property
    def is_grave(self) -> bool:
        """Return whether data is at stake."""
        if not self.is_new_topic:
            return self.status.is_grave
        others = (pair.status for pair in self.pairs if pair.status is not Status.OTHER_TOPIC)
        return bool(self.damaged) or any(status.is_grave for status in others)

    @property
    def diverges_at(self) -> int | None:
        """Return the first offset at which any two copies diverge."""
        offsets = [pair.diverges_at for pair in self.pairs if pair.diverges_at is not None]
        return min(offsets, default=None)

    @property
    def stuck(self) -> tuple[str, ...]:
        """Return the copies that are behind, and that do not catch up by following.

        A follower of 3.9.2 or 4.x skips a batch whose leader epoch is above its own, and all
        batches behind it (KAFKA-18723). A later batch with a smaller epoch shows that the epoch of
        the partition is below that of such a batch.
        """
        return tuple(
            copy.label
            for copy in self.copies
            if copy.label in self.behind
            and any(_has_epoch_above(other, copy.log_end) for other in self.copies)
        )

    @property
    def without_beginning(self) -> tuple[str, ...]:
        """Return the copies that begin later than another, and not because of retention.

        A broker that deletes the beginning of a log moves the first row of leader-epoch-checkpoint
        to the new log start (``LeaderEpochFileCache.truncateFromStart``). It may be killed before
        it writes that file.
        """
        return tuple(
            copy.label
            for copy in self.copies
            if copy.path not in self.may_begin_later and not copy.compaction_hints
            if copy.epochs and copy.epochs[0][1] < copy.log_start
            if any(one.before for one in _lacking(copy, self.pairs))
        )

    @property
    def unfilled(self) -> int:
        """Return the number of damaged ranges that no copy can fill, without unfinished appends."""
        return sum(self.planned.values()) + sum(
            wound.damage.loses and not wound.filled_by and not wound.damage.tail
            for wound in self.wounds
            if wound.copy.label not in self.planned
        )

    @property
    def identical(self) -> bool:
        """Return whether all copies have the same batches, and no damage or the same.

        Leader epochs and log start are compared too; indexes and producer snapshots are not.
        """
        is_same = self.pairs and all(pair.status is Status.SAME for pair in self.pairs)
        return bool(is_same) and not self.unequal

    @property
    def unequal(self) -> tuple[str, ...]:
        """Return descriptions of what differs besides the batches, with the value of each copy."""
        values: dict[str, Sequence[int | str]] = {
            "log start": [copy.log_start for copy in self.copies],
            "log end": [copy.log_end for copy in self.copies],
            "leader epochs": _first_different([copy.epochs for copy in self.copies]),
        }
        differ = {name: found for name, found in values.items() if len(set(found)) > 1}
        if not self.same_damage and any(copy.damages for copy in self.copies):
            differ["bytes without a sound batch"] = [
                sum(damage.length for damage in copy.damages) for copy in self.copies
            ]
        return tuple(f"{name} {_by_copy(found, self.labels)}" for name, found in differ.items())

    @property
    def topic(self) -> str:
        """Return the name of the topic."""
        return self.copies[0].topic

    @property
    def partition(self) -> int:
        """Return the number of the partition."""
        return self.copies[0].partition

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the copies."""
        return tuple(copy.label for copy in self.copies)

    @property
    def damaged(self) -> tuple[str, ...]:
        """Return the names of the copies with damage that is no unfinished append."""
        wrong = (one for one in self.copies if one.real_damages and not one.is_unread)
        return tuple(one.label for one in wrong)

    @property
    def unread(self) -> tuple[str, ...]:
        """Return the names of the copies of which a part cannot be read."""
        return tuple(copy.label for copy in self.copies if copy.is_unread)

    @property
    def in_sync(self) -> tuple[int, ...] | None:
        """Return the node ids of the ISR; None if no metadata log has the partition."""
        return self.standing.in_sync if self.standing else None

    @property
    def eligible(self) -> tuple[int, ...] | None:
        """Return the eligible leader replicas; None if no metadata log has the partition."""
        return self.standing.eligible if self.standing else None


def _by_copy(values: Sequence[int | str], labels: Sequence[str]) -> str:
    return ", ".join(f"{one} in {label}" for one, label in zip(values, labels, strict=True))


def _first_different(chains: Sequence[tuple[tuple[int, int], ...]]) -> list[str]:
    """Return the first leader epoch that is not the same in all chains, of each chain."""
    if len(set(chains)) == 1:
        return []
    rows = zip_longest(*chains)
    row = next(row for row in rows if len(set(row)) > 1)
    return ["none" if one is None else f"{one[0]} from offset {one[1]}" for one in row]


def _has_epoch_above(copy: Copy, offset: int) -> bool:
    """Return whether a batch from an offset on has a larger leader epoch than a later batch."""
    least: int | None = None
    end = copy.log_end
    for epoch, first in reversed(copy.batch_epochs):
        if least is not None and epoch > least and end > offset:
            return True
        if epoch >= 0:
            least = epoch if least is None else min(least, epoch)
        end = first
    return False


def judge(
    readings: Sequence[CopyReading],
    blocks: Sequence[Iterable[CopyBatches]] | None = None,
    by_path: Container[str] = (),
) -> CopiesVerdict:
    """Read all copies of one partition to their ends, and compare them with each other.

    `blocks` are the blocks of the readings, if the caller passes them through its own iterators.
    The copies with a path in `by_path` get it as their names, not the node id.
    """
    comparing = Pairs(readings)
    fillings = [Fillings(reading, len(readings)) for reading in readings]
    for tables, over in stretches(blocks or readings):
        comparing.add(tables, over)
        for filling in fillings:
            filling.add(tables)
    copies = _labelled([reading.copy for reading in readings], by_path)
    pairs = comparing.finish(copies)
    wounds = tuple(
        wound
        for number, filling in enumerate(fillings)
        for wound in filling.wounds(number, copies, pairs)
    )
    return _verdict(copies, tuple(pairs.values()), wounds)


def _verdict(
    copies: tuple[Copy, ...], pairs: tuple[CopyPair, ...], wounds: tuple[DamageInCopy, ...]
) -> CopiesVerdict:
    statuses = [pair.status for pair in pairs]
    if any(copy.real_damages and not copy.is_unread for copy in copies):
        statuses.append(Status.DAMAGED)
    if any(copy.is_unread for copy in copies):
        statuses.append(Status.UNREAD)
    return CopiesVerdict(
        copies=copies,
        pairs=pairs,
        wounds=wounds,
        status=min(statuses, key=_ORDER.index, default=Status.ALONE),
        superset=tuple(copy.label for copy in copies if _has_everything(copy, pairs)),
        behind=tuple(
            copy.label
            for copy in copies
            if not copy.is_unread and any(one.behind for one in _lacking(copy, pairs))
        ),
    )


def _labelled(copies: Sequence[Copy], by_path: Container[str]) -> tuple[Copy, ...]:
    """Name each copy by its node, or by its path if its node is unknown or has several copies."""
    nodes = [copy.node for copy in copies]

    def label(copy: Copy) -> str:
        is_clear = copy.node is not None and nodes.count(copy.node) == 1
        return str(copy.node) if is_clear and copy.path not in by_path else copy.path

    return tuple(replace(copy, label=label(copy)) for copy in copies)


def _lacking(copy: Copy, pairs: Sequence[CopyPair]) -> list[Lacks]:
    """Return the batches that the copy lacks, for each other copy."""
    return [
        pair.left_lacks if copy is pair.left else pair.right_lacks
        for pair in pairs
        if copy is pair.left or copy is pair.right
    ]


def _has_everything(copy: Copy, pairs: Sequence[CopyPair]) -> bool:
    own = [pair for pair in pairs if copy is pair.left or copy is pair.right]
    return all(pair.comparable for pair in own) and not any(_lacking(copy, pairs))


@dataclass(slots=True)
class StoredRange:
    """The batches of one copy with offsets in a damaged range of another copy."""

    first: int
    """First offset of the first of these batches."""
    last: int
    """Last offset of the last of these batches."""
    batch: CopyBatch
    """The first of these batches."""
    gapless: bool = True

    def add(self, rows: CopyBatches) -> None:
        """Add the batches that come next."""
        follow = np.concatenate(([self.last], rows.last_offset[:-1])) + 1
        self.gapless &= bool((rows.first_offset == follow).all())
        self.last = int(rows.last_offset[-1])

    def covers(self, first: int, last: int) -> bool:
        """Return whether the batches cover each offset from the first to the last."""
        return self.first <= first and self.last >= last and self.gapless


class Fillings:
    """The damage of a copy, and the batches of other copies at its offsets.

    Damage is known before the other copies reach its offsets: see `LateDamageError`.
    """

    def __init__(self, reading: CopyReading, copies: int) -> None:
        self._reading = reading
        self._numbers = range(copies)
        self._stored: dict[tuple[int, int], StoredRange] = {}
        """Batches by the number of the damage and the number of the copy."""
        self._passed: set[int] = set()

    def add(self, tables: Sequence[CopyBatches]) -> None:
        """Add the next batches of all copies."""
        found = list(enumerate(self._reading.damages))
        if len(found) == len(self._passed):
            return
        firsts = (int(table[:1].first_offset[0]) for table in tables if len(table))
        begin = min(firsts, default=None)
        for at, damage in found:
            if at in self._passed or begin is None:
                continue
            if damage.last_offset is not None and damage.last_offset < begin:
                self._passed.add(at)
                continue
            for number in self._numbers:
                self._add(at, number, damage, tables[number])

    def _add(self, at: int, number: int, damage: DamagedRange, table: CopyBatches) -> None:
        first = int(np.searchsorted(table.last_offset, damage.first_offset))
        stop = len(table)
        if damage.last_offset is not None:
            stop = int(np.searchsorted(table.base_offset, damage.last_offset, side="right"))
            # A wrapper of magic 0 or 1 begins before its base offset.
            if (table[stop : stop + 1].first_offset <= damage.last_offset).any():
                stop += 1
        rows = table[first:stop]
        if not len(rows):
            return
        begin = int(rows[:1].first_offset[0])
        stored = self._stored.setdefault((at, number), StoredRange(begin, begin - 1, rows.batch(0)))
        stored.add(rows)

    def stored(self, damage: int, copy: int) -> StoredRange | None:
        """Return the batches of a copy at the offsets of a damage, both by number; or None."""
        return self._stored.get((damage, copy))

    def wounds(
        self, own: int, copies: Sequence[Copy], pairs: Mapping[tuple[int, int], CopyPair]
    ) -> Iterator[DamageInCopy]:
        """Yield the damage of the copy with the number `own`; all copies must have been read."""
        copy = copies[own]
        for at, damage in enumerate(copy.damages):
            full: list[str] = []
            partly: list[str] = []
            sound: tuple[Copy, CopyBatch] | None = None
            wound = DamageInCopy(copy=copy, damage=damage, filled_by=(), partly_by=())
            for number in self._numbers if wound.damage.loses else ():
                pair = pairs.get((min(own, number), max(own, number)))
                stored = self.stored(at, number)
                if pair and stored:
                    filled = _fills(copies[number], damage, pair, stored)
                    if filled is not None:
                        (full if filled else partly).append(copies[number].label)
                        sound = sound or (copies[number], stored.batch)
            yield replace(wound, filled_by=tuple(full), partly_by=tuple(partly), sound=sound)


def _fills(other: Copy, damage: DamagedRange, pair: CopyPair, stored: StoredRange) -> bool | None:
    """Return whether the other copy has all damaged offsets sound; None if its history differs.

    It differs in a copy of another topic, and with a divergence at or before the end of the damage.
    """
    if pair.status is Status.OTHER_TOPIC:
        return None
    first = damage.first_offset
    last = other.log_end - 1 if damage.last_offset is None else damage.last_offset
    if pair.diverges_at is not None and pair.diverges_at <= last:
        return None
    hurt = any(bool(one.overlaps(np.array([first]), np.array([last]))[0]) for one in other.damages)
    # A compacted log lacks offsets on purpose.
    sound = stored.covers(first, last) or (
        bool(other.compaction_hints) and other.log_start <= first and other.log_end > last
    )
    return sound and not hurt
