"""One partition of ``__consumer_offsets`` as its coordinator loads it: all records, in order.

A coordinator stops at a record that it cannot read, and no group of the partition can be used.
This module reports such a record and loads the rest. Source: ``CoordinatorLoaderImpl``
(Kafka 4.3).
"""

from collections.abc import Callable
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from logtool.formats import compression, record_batch
from logtool.formats.record_batch import HEADER_SIZE, MAGIC
from logtool.groups import redpanda
from logtool.groups.columns import Pending, Slots
from logtool.groups.commits import Taken, take
from logtool.groups.membership import Memberships
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition, Segment
from logtool.log.keys import NONE
from logtool.log.record_table import RecordTable, Unread

_MOST_REPORTED = 20
"""Largest number of records that cannot be read, or are refused, that are reported singly."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something that a coordinator could not read."""

    path: Path
    segment: int
    reason: str
    position: int | None = None
    length: int | None = None
    first_offset: int | None = None
    last_offset: int | None = None


@dataclass(slots=True)
class LoadedGroups:
    """Content of one copy of a partition of the topic."""

    listed: Partition
    slots: Slots = field(default_factory=Slots)
    memberships: Memberships = field(default_factory=Memberships)
    pending: Pending = field(default_factory=Pending)
    damage: list[Wrong] = field(default_factory=list)
    torn: Wrong | None = None
    """The batch at the end of which only a part is there; None without one."""
    wrong: list[Wrong] = field(default_factory=list)
    """The first records that cannot be read; `wrong_records` counts all."""
    refused: list[Wrong] = field(default_factory=list)
    """The first records that a coordinator can read and refuses to apply."""
    wrong_records: int = 0
    unknown_records: int = 0
    present: int = 0
    """Records of all batches, markers included."""
    records: int = 0
    batches: int = 0
    bytes: int = 0
    first_offset: int = 0
    end_offset: int = 0
    leader_epoch: int = NONE
    """The last leader epoch; -1 without one."""
    newest_ms: int = NONE
    """The largest timestamp of a batch, in ms; -1 without one."""
    cut_at: int | None = None
    """Offset of the first record after the moment of `load`; None if the whole log was loaded."""
    missing: int = 0
    """Offsets below `cut_at` without a record: compaction or a deletion removed the records."""

    @property
    def number(self) -> int:
        """Return the number of the partition."""
        return self.listed.number or 0

    @property
    def last_leader_epoch(self) -> int | None:
        """Return the leader epoch of the last batch; None where it has none."""
        return None if self.leader_epoch == NONE else self.leader_epoch

    @property
    def keys(self) -> int:
        """Return how many different keys its records have."""
        return len(self.slots)


def load(
    listed: Partition,
    on_bytes: Callable[[int], None],
    limit: int = compression.DEFAULT_LIMIT,
    *,
    at_ms: int | None = None,
) -> LoadedGroups:
    """Read a partition directory; UnreadableError where a file cannot be read.

    With `at_ms`, the log ends for this load before the first record with a later timestamp, in ms:
    the state is that of the coordinator at that offset.
    """
    loaded = LoadedGroups(listed)
    loaded.first_offset = listed.segments[0].base_offset if listed.segments else 0
    loaded.end_offset = loaded.first_offset
    for segment in listed.segments:
        loaded.end_offset = max(loaded.end_offset, segment.base_offset)
        for chunk in segment.batches():
            if chunk.damage and segment.is_active and is_torn(chunk.damage):
                loaded.torn = torn_batch(segment, chunk.damage)
            elif chunk.damage:
                loaded.damage.append(_damage(chunk, segment.log.path, segment.base_offset))
            else:
                _replay(loaded, chunk, segment.log.path, segment.base_offset, limit, at_ms)
                on_bytes(int(chunk.table.size.sum()))
            if loaded.cut_at is not None:
                return loaded
    return loaded


def _until(chunk: Chunk, at_ms: int) -> tuple[Chunk, int | None]:
    """Return the batches up to the first with a timestamp after `at_ms`, and where they end.

    A batch of data is in the result too, because its first records may be earlier. The end is an
    offset; None if there is no such batch.
    """
    table = chunk.table
    later = np.flatnonzero(table.max_timestamp > at_ms)
    if not len(later):
        return chunk, None
    row = int(later[0])
    if table.is_control[row]:
        return replace(chunk, table=table[:row], plain=None), int(table.base_offset[row])
    return replace(chunk, table=table[: row + 1], plain=None), int(table.last_offset[row]) + 1


def is_torn(damage: Damage) -> bool:
    """Return whether damage at the end of an active segment is merely an unfinished write."""
    unwritten = damage.reason in (DamageReason.INCOMPLETE, DamageReason.ZEROS)
    return unwritten and not damage.resynchronised


def torn_batch(segment: Segment, damage: Damage) -> Wrong | None:
    """Return the batch of which only a part is there, with the offsets in its header.

    None for mere zeros: no batch was begun there. UnreadableError.
    """
    if damage.reason is not DamageReason.INCOMPLETE:
        return None
    found = Wrong(
        segment.log.path, segment.base_offset, damage.message, damage.position, damage.length
    )
    with segment.log.open() as source:
        head = source.read(damage.position, HEADER_SIZE)
    if len(head) < HEADER_SIZE or head[16] != MAGIC:
        return found
    table = record_batch.parse(memoryview(head), [0])
    first, last = int(table.base_offset[0]), int(table.last_offset[0])
    is_range = segment.base_offset <= first <= last
    return replace(found, first_offset=first, last_offset=last) if is_range else found


def _replay(
    loaded: LoadedGroups, chunk: Chunk, path: Path, base: int, limit: int, at_ms: int | None
) -> None:
    cut_at: int | None = None
    if at_ms is not None:
        chunk, cut_at = _until(chunk, at_ms)
        loaded.cut_at = cut_at
    table = chunk.table
    present = table.records
    if not len(table):
        _end_at(loaded, cut_at, present)
        return
    loaded.batches += len(table)
    loaded.bytes += int(table.size.sum())
    loaded.end_offset = max(loaded.end_offset, int(table.last_offset.max()) + 1)
    loaded.leader_epoch = max(loaded.leader_epoch, int(table.leader_epoch[-1]))
    loaded.newest_ms = max(loaded.newest_ms, int(table.max_timestamp.max()))
    is_over = False
    for part in redpanda.read(chunk, limit):
        if isinstance(part, Unread):
            place = Wrong(
                path, base, part.reason, part.position, part.size, part.first_offset,
                part.last_offset,
            )  # fmt: skip
            _note(loaded, place)
            continue
        if is_over:
            present -= len(part.offset)
            continue
        if at_ms is not None and (later := np.flatnonzero(part.timestamp > at_ms)).size:
            is_over, cut_at = True, int(part.offset[later[0]])
            present -= len(part.offset) - int(later[0])
            part = part.first(int(later[0]))
        loaded.records += len(part.offset)
        taken = take(part, loaded.slots)
        _replay_taken(loaded, part, taken, path, base)
    ended = redpanda.ends(table)
    if ended:
        loaded.pending.end(ended, loaded.slots)
    loaded.pending.drop_superseded(loaded.slots)
    _end_at(loaded, cut_at, present)


def _end_at(loaded: LoadedGroups, cut_at: int | None, present: int) -> None:
    """Count the records of a chunk; where the log is cut, note the end and what is missing."""
    loaded.present += present
    if cut_at is not None:
        loaded.cut_at = loaded.end_offset = cut_at
        loaded.missing = max(0, cut_at - loaded.present)


def _replay_taken(
    loaded: LoadedGroups, records: RecordTable, taken: Taken, path: Path, base: int
) -> None:
    commits, producer_id = taken.commits, taken.producer_id
    if len(commits):
        at_once = producer_id == NONE
        if at_once.all():
            loaded.slots.apply(commits)
        else:
            loaded.slots.apply(commits[at_once])
            loaded.pending.add(commits[~at_once], producer_id[~at_once])
    for one in taken.others:
        offset = int(records.offset[one.row])
        refused = loaded.memberships.replay(one.type, one.key, one.value, offset)
        if refused and len(loaded.refused) < _MOST_REPORTED:
            loaded.refused.append(
                Wrong(path, base, refused, first_offset=offset, last_offset=offset)
            )
    loaded.unknown_records += taken.unknown
    for row, reason in taken.wrong:
        offset = int(records.offset[row])
        _note(loaded, Wrong(path, base, reason, first_offset=offset, last_offset=offset))


def _note(loaded: LoadedGroups, wrong: Wrong) -> None:
    loaded.wrong_records += 1
    if len(loaded.wrong) < _MOST_REPORTED:
        loaded.wrong.append(wrong)


def _damage(chunk: Chunk, path: Path, base: int) -> Wrong:
    assert chunk.damage
    damage = chunk.damage
    return Wrong(path, base, damage.message, damage.position, damage.length)
