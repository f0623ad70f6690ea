"""Rules for the batches of one ``.log``: framing and CRC (from the scan), and every header."""

from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np

from logtool.checks.report import InnerGaps, SegmentReport
from logtool.disk import shell
from logtool.findings import Broker, Finding, Remedy
from logtool.formats import compression, control_record, wording
from logtool.formats.columns import runs
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import (
    MAGIC,
    NO_EPOCH,
    NO_TIMESTAMP,
    UNUSED_ATTRIBUTES,
    BatchTable,
    Column,
    concat,
    empty_table,
)
from logtool.formats.redpanda.record_batch import RAFT_DATA, BatchType
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.order import outside_segment, stands_out

_MOST_OFFSETS = 2**31 - 1
"""Largest distance of an offset from the base offset of its segment."""
_LARGEST_TYPE = 127
"""Largest type of a batch of Redpanda; the column is unsigned."""
_DAMAGE_CODES = {
    DamageReason.CRC: "batch/crc",
    DamageReason.SIZE: "batch/size",
    DamageReason.MAGIC: "batch/magic",
    DamageReason.ZEROS: "batch/zero-run",
    DamageReason.HEADER: "batch/header-crc",
}
_CUT = "recovery would also cut off"
# Where a sound batch follows, the scan never calls damage incomplete.
_TAIL_CODES = {DamageReason.INCOMPLETE: "log/torn-tail", DamageReason.ZEROS: "log/zero-tail"}


@dataclass(slots=True)
class _Region:
    """Damage and the sound data up to the next damage; `judge_damage` adds all data behind it."""

    damage: Damage
    after_offset: int
    """Last offset before the damage, or the segment's base minus 1."""
    before_offset: int | None = None
    """First offset behind the damage."""
    batches: int = 0
    records: int = 0
    bytes: int = 0


class BatchRules:
    """Rules for the chunks of one segment, in order; `judge_damage` is for the end of it."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._regions: list[_Region] = []
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        """Largest last offset so far; None before the first batch."""
        self.leader_epoch = -1
        """Largest leader epoch so far."""
        self.foreign_epoch: Column | None = None
        """Mask of the batches of the last chunk with a foreign leader epoch; None for none."""
        self._foreign = False
        self.gaps = InnerGaps()
        self.with_holes = 0
        """Batches of magic 2 with fewer records than offsets, which compaction leaves."""
        self.horizons = 0
        """Batches with a delete horizon, as far as the chunks with gaps or holes show them."""
        self._earlier = empty_table()
        """The last batch of the chunk before."""
        self._behind_damage = False
        """True if something unsound came since the last batch with offsets of its own."""

    def begin_behind(self, part: SegmentReport) -> None:
        """Take a part of the segment for judged; `take_damage` takes what `damage_so_far` gave."""
        self.first_offset, self.last_offset = part.first_offset, part.last_offset
        self.leader_epoch = max((epoch for epoch, _, _ in part.epochs), default=-1)
        self.gaps = replace(part.gaps)
        self.with_holes, self.horizons = part.with_holes, part.horizons

    def damage_so_far(self) -> dict[str, Any]:
        """Return the damage that was judged so far as JSON, for `take_damage`."""
        return {
            "regions": [[*astuple(one.damage), *astuple(one)[1:]] for one in self._regions],
            "foreign": self._foreign,
            "behind_damage": self._behind_damage,
        }

    def take_damage(self, value: dict[str, Any]) -> None:
        """Take the damage of the part that was judged, as `damage_so_far` has it."""
        self._regions = [
            _Region(Damage(at, size, DamageReason(reason), *facts[:3]), *facts[3:])
            for at, size, reason, *facts in value["regions"]
        ]
        self._foreign, self._behind_damage = value["foreign"], value["behind_damage"]

    def judge(self, chunk: Chunk) -> Iterator[Finding]:
        """Take one chunk and yield the findings of its batches.

        Afterwards `foreign_epoch` says which of the batches have a leader epoch that must not be
        compared with anything.
        """
        if chunk.damage:
            last = self._base_offset - 1 if self.last_offset is None else self.last_offset
            self._regions.append(_Region(chunk.damage, last))
            self._behind_damage = True
        table = chunk.table
        self.foreign_epoch = None
        if not len(table):
            return
        for region in self._regions[-1:]:
            if region.before_offset is None:
                region.before_offset = int(table[:1].first_offset[0])
            region.batches += chunk.batches
            region.records += chunk.records
            region.bytes += chunk.end_position - int(table.position[0])
        if not self._ordinary(chunk):
            yield from self._order(table, chunk.misplaced)
            yield from self._header(table)
        self._earlier = table[np.array([len(table) - 1])]
        for row, error in chunk.control_errors:
            yield _at(table, "batch/control-record", error.reason, row, row)

    def judge_damage(self, *, active: bool, clean: bool, whole: bool = True) -> Iterator[Finding]:
        """Yield each damage so far with the data behind it in this segment.

        The segment was not read to its end if it is not `whole`.
        """
        regions = self._regions[-1:]
        for region in reversed(self._regions[:-1]):
            behind, first = regions[-1], region.before_offset
            regions.append(replace(
                region,
                before_offset=behind.before_offset if first is None else first,
                batches=region.batches + behind.batches,
                records=region.records + behind.records,
                bytes=region.bytes + behind.bytes,
            ))  # fmt: skip
        for region in reversed(regions):
            yield _damage_finding(region, active=active, clean=clean, whole=whole)

    @property
    def torn(self) -> bool:
        """Return whether the segment ends in damage."""
        return bool(self._regions) and not self._regions[-1].damage.resynchronised

    @property
    def end_known(self) -> bool:
        """Return whether the log ends at its last sound batch, with or without a torn tail."""
        return not self.torn or self._regions[-1].damage.reason in _TAIL_CODES

    @property
    def damaged(self) -> bool:
        """Return whether the segment has damage, or a batch with foreign offsets."""
        return bool(self._regions) or self._foreign

    def _ordinary(self, chunk: Chunk) -> bool:
        """Return whether the edges of a chunk show that all rules hold; if so, note its end.

        Nearly all chunks are of this kind, and all rules together cost several times as much.
        """
        if chunk.plain is None or chunk.misplaced is not None:
            return False
        table = chunk.table
        first, last = int(table.base_offset[0]), int(table.last_offset[-1])
        start = self._base_offset - 1 if self.last_offset is None else self.last_offset
        if first <= start or table.leader_epoch[0] < self.leader_epoch:
            return False
        if self.first_offset is None:
            self.first_offset, start = first, first - 1
        if last - start != chunk.plain.records:
            # A chunk that has rows only for its edges has the gap in front of the first row.
            rows = 1 if chunk.at_edges else len(table)
            self._add_gaps(table[:rows], np.arange(rows), start)
        self._behind_damage = False
        self.last_offset, self.leader_epoch = last, int(table.leader_epoch[-1])
        return True

    def _order(self, table: BatchTable, misplaced: Column | None) -> Iterator[Finding]:
        """Yield where offsets do not rise, and where they are out of the segment's range."""
        base_offset, last_offset = table.base_offset, table.last_offset
        start = self._base_offset - 1 if self.last_offset is None else self.last_offset
        if misplaced is None:
            misplaced = np.zeros(len(table), np.bool_)
        else:
            self._foreign = True
        outside = misplaced & outside_segment(table, self._base_offset)
        ahead = misplaced & ~outside
        trusted = np.where(misplaced, start, last_offset)
        highest = np.maximum.accumulate(np.concatenate(([start], trusted)))
        before = highest[:-1]
        for first, last in runs(ahead):
            text = f"stands between offset {before[first]} and offset {base_offset[last + 1]}"
            yield _at(table, "batch/offset-order", text, first, last)
        started = (before >= self._base_offset) | (self.last_offset is not None)
        for first, last in runs((base_offset <= before) & ~misplaced & started):
            text = f"begins at offset {base_offset[first]}, expected more than {before[first]}"
            if (again := _earlier_place(concat([self._earlier, table[: first + 1]]))) is not None:
                text += f"; the batch at byte {again} has the same base offset, size and CRC: "
                text += "one batch was written twice"
            yield _at(table, "batch/offset-order", text, first, last)
        for first, last in runs(outside):
            limit = self._base_offset + MAX_RELATIVE_OFFSET
            allowed = wording.through(self._base_offset, limit)
            if table.batch_type[first] >= 0:  # Redpanda's
                allowed = f"offsets from {self._base_offset} on"
            text = (
                f"holds {wording.offsets(base_offset[first], last_offset[first])}, but the "
                f"segment can only hold {allowed}"
            )
            yield _at(table, "batch/offset-range", text, first, last)
        good = np.flatnonzero(~misplaced)
        if not len(good):
            self._behind_damage = True
            return
        self._add_gaps(table, good, start)
        self._behind_damage = bool(good[-1] < len(table) - 1)
        self.last_offset = int(highest[-1])

    def _add_gaps(self, table: BatchTable, good: Column, start: int) -> None:
        """Note the offsets missing between the batches of the rows `good`, and behind `start`.

        A gap with damage in it is left out, because the damage is reported itself; so is a gap in
        front of a wrapper, whose first offset is not known.
        """
        first = int(table[good[:1]].first_offset[0])
        if self.first_offset is None:
            self.first_offset, start = first, first - 1
        bases, ends = table.base_offset[good], table.last_offset[good]
        before = np.maximum.accumulate(np.concatenate(([start], ends[:-1])))
        damaged = np.diff(good, prepend=-1) > 1
        damaged[0] |= self._behind_damage
        at = np.flatnonzero((bases > before + 1) & ~damaged & ~table.is_wrapper[good])
        if len(at):
            firsts, behind = before[at] + 1, bases[at]
            missing, end = int((behind - firsts).sum()), int(behind[-1])
            gap = int(firsts[0]), int(behind[0]), int(table.position[good[at[0]]])
            self.gaps.extend(InnerGaps(len(at), missing, gap, end))
        self.with_holes += int(_fewer_records(table)[good].sum())
        self.horizons += int(table.has_delete_horizon[good].sum())

    def _header(self, table: BatchTable) -> Iterator[Finding]:
        delta = table.last_offset - table.base_offset
        modern = table.magic >= MAGIC
        rules: list[tuple[str, Column, Column, str]] = [
            (
                "batch/last-offset",
                (delta < 0) | (table.last_offset < table.base_offset),
                delta,
                "last offset delta is {}, with which the batch ends before it begins",
            ),
            (
                "batch/record-count",
                modern
                & ((table.record_count < 0) | ((table.record_count > delta + 1) & (delta >= 0))),
                table.record_count,
                "holds {} records, but its offsets have room for fewer",
            ),
            (
                "batch/codec",
                table.codec >= len(compression.NAMES),
                table.codec,
                "compression codec {} does not exist",
            ),
            (
                "batch/attributes",
                modern & ((table.attributes & np.int16(UNUSED_ATTRIBUTES - 0x10000)) != 0),
                table.attributes,
                "attributes {} use bits without a meaning",
            ),
            (
                "batch/timestamp",
                (table.max_timestamp < NO_TIMESTAMP) | (table.base_timestamp < NO_TIMESTAMP),
                table.max_timestamp,
                "timestamps are negative (largest {}); only -1, for none, is usual",
            ),
            (
                "batch/producer",
                _without_sequence(table),
                table.base_sequence,
                "has a producer id and base sequence {}, expected at least 0",
            ),
            (
                "batch/type",
                (table.batch_type == 0)
                | (table.batch_type == BatchType.GHOST_BATCH)
                | (table.batch_type > _LARGEST_TYPE),
                np.where(
                    table.batch_type > _LARGEST_TYPE, table.batch_type - 256, table.batch_type
                ),
                "type {} is never stored in a log",
            ),
            (
                "batch/control-type",
                table.is_control
                & (table.producer_id >= 0)
                & (table.control_type > control_record.COMMIT),
                table.control_type,
                "control record of type {} with a producer id, expected ABORT or COMMIT",
            ),
        ]
        for code, bad, value, text in rules:
            for first, last in runs(bad):
                yield _at(table, code, text.format(value[first]), first, last)
        yield from self._epochs(table)

    def _epochs(self, table: BatchTable) -> Iterator[Finding]:
        epochs, start = table.leader_epoch.astype(np.int64), self.leader_epoch
        negative = epochs < NO_EPOCH
        # Unlike offsets, epochs may stay the same.
        ahead = stands_out(epochs, epochs - 1, negative, start - 1)
        foreign = negative | ahead
        self.foreign_epoch = foreign if foreign.any() else None
        trusted = np.where(foreign, start, epochs)
        highest = np.maximum.accumulate(np.concatenate(([start], trusted)))
        for first, last in runs(negative):
            text = (
                f"leader epoch {epochs[first]} is negative; the only valid negative epoch is "
                f"{NO_EPOCH}"
            )
            yield _at(table, "batch/leader-epoch-order", text, first, last)
        for first, last in runs(ahead):
            text = f"leader epoch {epochs[first]} stands between {highest[first]} and "
            text += str(epochs[last + 1])
            yield _at(table, "batch/leader-epoch-order", text, first, last)
        for first, last in runs((epochs < highest[:-1]) & (epochs > NO_EPOCH)):
            text = (
                f"leader epoch {epochs[first]} follows {highest[first]}: a follower that lacks the "
                "batches with the larger epoch skips them, and does not catch up"
            )
            yield _at(table, "batch/leader-epoch-order", text, first, last)
        self.leader_epoch = int(highest[-1])


def dump_command(path: Path, first: int, last: int) -> str:
    """Return the command that shows the batches around the offsets `first` to `last`.

    It names no offset that the segment in its name cannot hold: damage has put it into a header.
    """
    command, base = f"logtool dump {shell.path(path)}", path.name.partition(".")[0]
    if base.isdecimal() and not int(base) <= first <= last <= int(base) + _MOST_OFFSETS:
        return command
    first, last = max(first, 0), max(first, last, 0)
    return f"{command} --offset {first}..{last}"


def with_next(finding: Finding, path: Path) -> Finding:
    """Return the finding with the command that shows its offsets; unchanged if it has none."""
    if finding.next or finding.first_offset is None:
        return finding
    last = finding.first_offset if finding.last_offset is None else finding.last_offset
    return replace(finding, next=dump_command(path, finding.first_offset, last))


def below_recovery_point(finding: Finding, recovery_point: int) -> Finding:
    """Return a finding of a segment that no recovery reads, because it ends below that offset."""
    if finding.code not in _DAMAGE_CODES.values():
        return finding
    reads = f"no recovery reads the segment, because the recovery point is {recovery_point}"
    without = f"{reads}; one without it (a lost checkpoint, or recover --full) would also cut off"
    text = finding.message.replace(_CUT, without)
    return replace(finding, message=text, broker_override=Broker.NEVER)


def _earlier_place(table: BatchTable) -> int | None:
    """Return the byte of an earlier batch that is the same as the last one; None without one."""
    last = len(table) - 1
    same = (table.base_offset == table.base_offset[last]) & (table.crc == table.crc[last])
    rows = np.flatnonzero(same & (table.size == table.size[last]))
    return int(table.position[rows[0]]) if len(rows) > 1 else None


def _fewer_records(table: BatchTable) -> Column:
    room = table.last_offset - table.base_offset + 1
    modern = table.magic >= MAGIC
    fewer: Column = modern & (table.record_count >= 0) & (table.record_count < room)
    return fewer


def _without_sequence(table: BatchTable) -> Column:
    data = (table.producer_id >= 0) & ~table.is_control & (table.magic >= MAGIC)
    data &= (table.batch_type < 0) | (table.batch_type == RAFT_DATA)
    bad: Column = data & (table.base_sequence < 0)
    return bad


def _at(table: BatchTable, code: str, message: str, first: int, last: int) -> Finding:
    """Return the finding for the rows `first` to `last`; `message` is about the row `first`."""
    more = f" (and {last - first} more batches after it)" if last > first else ""
    return Finding(
        code,
        f"batch at offset {table.base_offset[first]}: {message}{more}",
        position=int(table.position[first]),
        length=int(table.end_position[last] - table.position[first]),
        first_offset=int(table[first : first + 1].first_offset[0]),
        last_offset=int(table.last_offset[last]),
    )


def _damage_finding(region: _Region, *, active: bool, clean: bool, whole: bool) -> Finding:
    damage = region.damage
    message, remedy = damage.message, None
    if damage.resynchronised:
        code = _DAMAGE_CODES[damage.reason]
        follow = wording.count(
            region.batches, "sound batch that follows", "sound batches that follow"
        )
        size = f"({wording.count(region.records, 'record')}, {wording.size(region.bytes)})"
        if whole:
            message += f"; {_CUT} {follow} in this segment {size}"
            message += "" if active else ", and delete all later segments"
        elif region.batches:
            message += f"; {_CUT} at least {follow} in this segment {size}"
        else:
            message += "; the time was over before what follows was read"
    elif damage.reason in _TAIL_CODES:
        code = _TAIL_CODES[damage.reason]
        if not active:
            code = "log/truncated"
        elif clean:
            code = "log/torn-tail-clean"
            remedy = Remedy.RECOVER if damage.reason is DamageReason.ZEROS else None
    else:
        code = _DAMAGE_CODES[damage.reason]
        message += "; no sound batch follows in this segment"
    last = None if region.before_offset is None else max(region.before_offset - 1, 0)
    return Finding(
        code,
        message,
        position=damage.position,
        length=damage.length,
        first_offset=region.after_offset + 1,
        last_offset=last,
        remedy_override=remedy,
    )
