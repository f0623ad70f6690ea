"""Offsets that the records of one ``__consumer_offsets`` partition commit, in columns.

Keys of all types have a slot. Which commit counts does not depend on the order in which
transactions end: it is the commit with the largest record offset among those of the key that took
effect, unless a tombstone follows it. So plain commits and tombstones are applied chunk by chunk,
and commits of a transaction when its marker was read, unless a newer commit is there.
Source: ``OffsetMetadataManager.replay`` and ``replayEndTransactionMarker`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE, KeyTable, lengthened

Column = NDArray[Any]
_DTYPES = {
    "records": np.int32,
    "size": np.int64,
    "last_size": np.int32,
    "seen": np.int64,
    "record_offset": np.int64,
    "removed_at": np.int64,
    "offset": np.int64,
    "leader_epoch": np.int32,
    "commit_timestamp": np.int64,
    "topic_id": np.int32,
}

_NONE_AT_FIRST = frozenset({"seen", "record_offset", "removed_at", "topic_id"})


@dataclass(slots=True)
class CommitRows:
    """Commits and tombstones of offsets: columns of one length, in the order of the log."""

    slot: Column
    record_offset: Column
    live: Column
    """1 for a commit, 0 for a tombstone."""
    offset: Column
    leader_epoch: Column
    """-1 if absent."""
    commit_timestamp: Column
    """Milliseconds."""
    expire_timestamp: Column
    """Milliseconds; -1 if absent."""
    topic_id: Column
    """Number of the id in `Slots.topic_ids`; -1 if absent."""
    metadata: Sequence[bytes]

    def __len__(self) -> int:
        return len(self.slot)

    def __getitem__(self, which: Column) -> Self:
        """Return the rows that a mask or an index array selects."""
        rows = np.flatnonzero(which) if which.dtype == np.bool_ else which
        chosen: dict[str, Any] = {name: getattr(self, name)[rows] for name in NUMBERS}
        if any(self.metadata):
            texts = [self.metadata[row] for row in rows.tolist()]
        else:
            texts = [b""] * len(rows)
        return type(self)(**chosen, metadata=texts)


NUMBERS = tuple(field.name for field in fields(CommitRows) if field.name != "metadata")
"""The columns of `CommitRows` that are numbers."""


def concat(parts: Sequence[CommitRows]) -> CommitRows:
    """Return the rows of all parts in order."""
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in NUMBERS
    }
    return CommitRows(**joined, metadata=[text for part in parts for text in part.metadata])


class Slots(KeyTable):
    """The keys of one partition's records, and the newest commit of each key."""

    records: Column
    """Number of records with that key."""
    size: Column
    """Bytes of these records."""
    last_size: Column
    """Bytes of the last of these records."""
    seen: Column
    """Offset of the last record with a value."""
    record_offset: Column
    """Offset of the newest commit that took effect; -1 if absent."""
    removed_at: Column
    """Offset of the newest tombstone; -1 if absent."""
    offset: Column
    """Offset of that commit, also if a tombstone follows it."""
    leader_epoch: Column
    commit_timestamp: Column
    topic_id: Column

    def __init__(self) -> None:
        self.expire_timestamps: dict[int, int] = {}
        """Expiry time in ms by slot, for commits with their own (value version 1)."""
        self.metadata: dict[int, bytes] = {}
        """Metadata by slot, where there is any."""
        self.aborted: dict[int, tuple[int, int]] = {}
        """Newest commit in an aborted transaction by slot: its record offset, and its offset."""
        self.topic_ids: list[str] = []
        """Topic ids, as Kafka prints them."""
        self._id_numbers: dict[str, int] = {}
        self._last_row = np.empty(0, np.int32)
        for name, dtype in _DTYPES.items():
            setattr(self, name, np.empty(0, dtype))
        super().__init__()

    @property
    def live(self) -> Column:
        """Return True for each key that has a committed offset: no tombstone follows its commit."""
        return self.record_offset > self.removed_at

    def number_of(self, topic_id: str) -> int:
        """Return the number of a topic id; a new number for a new topic id."""
        number = self._id_numbers.get(topic_id)
        if number is None:
            number = self._id_numbers[topic_id] = len(self.topic_ids)
            self.topic_ids.append(topic_id)
        return number

    def count_records(self, slot: Column, size: Column, offset: Column, has_value: Column) -> None:
        """Count records of any type: their slots, bytes, offsets and whether they have a value."""
        np.add.at(self.records, slot, 1)
        np.add.at(self.size, slot, size)
        self.last_size[slot] = size  # of equal slots the last counts
        self.seen[slot[has_value]] = offset[has_value]

    def last_of_each(self, slot: Column) -> Column:
        """Return the rows that are the last of their slot, in order."""
        numbers = np.arange(len(slot), dtype=np.int32)
        self._last_row[slot] = numbers
        return np.flatnonzero(self._last_row[slot] == numbers)

    def apply(self, rows: CommitRows) -> None:
        """Apply commits and tombstones, in any order: of each key the newest of both counts."""
        tombstones = rows.live == 0
        if tombstones.any():
            gone = rows[tombstones]
            np.maximum.at(self.removed_at, gone.slot, gone.record_offset)
            rows = rows[~tombstones]
        last = self.last_of_each(rows.slot)
        rows = rows[last[rows.record_offset[last] > self.record_offset[rows.slot[last]]]]
        slot = rows.slot
        for name in (
            "record_offset", "offset", "leader_epoch", "commit_timestamp", "topic_id",
        ):  # fmt: skip
            getattr(self, name)[slot] = getattr(rows, name)
        if self.metadata or any(rows.metadata):
            for number, text in zip(slot.tolist(), rows.metadata, strict=True):
                if text:
                    self.metadata[number] = text
                else:
                    self.metadata.pop(number, None)
        if self.expire_timestamps or (len(rows) and int(rows.expire_timestamp.max()) != NONE):
            for number, time in zip(slot.tolist(), rows.expire_timestamp.tolist(), strict=True):
                if time != NONE:
                    self.expire_timestamps[number] = time
                else:
                    self.expire_timestamps.pop(number, None)

    def aborted_offset(self, slot: int) -> int | None:
        """Return the offset that the newest record of a key commits in an aborted transaction.

        None if the newest record is a commit that counts, or one of an open transaction.
        """
        record_offset, offset = self.aborted.get(slot, (NONE, NONE))
        return offset if record_offset == self.seen[slot] else None

    def note_aborted(self, rows: CommitRows) -> None:
        """Note commits in aborted transactions, in any order: of each key the newest counts."""
        columns = (rows.slot, rows.record_offset, rows.offset)
        for slot, *commit in zip(*(column.tolist() for column in columns), strict=True):
            self.aborted[slot] = max(self.aborted.get(slot, (NONE, NONE)), tuple(commit))

    def _lengthen(self, room: int) -> None:
        super()._lengthen(room)
        for name in _DTYPES:
            empty = NONE if name in _NONE_AT_FIRST else 0
            setattr(self, name, lengthened(getattr(self, name), self.count, room, empty))
        self._last_row = np.empty(room, np.int32)


class Pending:
    """Commits of transactions that have no marker yet."""

    def __init__(self) -> None:
        self.rows: CommitRows | None = None
        self.producer_id = np.empty(0, np.int64)
        """Producer id of each row."""

    def add(self, rows: CommitRows, producer_id: Column) -> None:
        """Append commits of open transactions."""
        if not len(rows):
            return
        self.rows = rows if self.rows is None else concat([self.rows, rows])
        self.producer_id = np.concatenate([self.producer_id, producer_id])

    def end(self, markers: Sequence[tuple[int, int, bool]], slots: Slots) -> None:
        """End transactions, in order; a marker is offset, producer id, and True for a commit."""
        if self.rows is None:
            return
        by_producer: dict[int, list[tuple[int, bool]]] = {}
        for offset, producer_id, commits in markers:
            by_producer.setdefault(producer_id, []).append((offset, commits))
        ended: Column = np.zeros(len(self.rows), np.bool_)
        committed: Column = ended.copy()
        for producer_id in np.intersect1d(self.producer_id, list(by_producer)).tolist():
            mine = np.flatnonzero(self.producer_id == producer_id)
            offsets = np.array([offset for offset, _ in by_producer[producer_id]], np.int64)
            commit = np.array([commits for _, commits in by_producer[producer_id]], np.bool_)
            at = np.searchsorted(offsets, self.rows.record_offset[mine])
            has_marker = at < len(offsets)
            ended[mine] = has_marker
            committed[mine[has_marker]] = commit[at[has_marker]]
        if not ended.any():
            return
        slots.apply(self.rows[committed])
        slots.note_aborted(self.rows[ended & ~committed])
        left = np.flatnonzero(~ended)
        self.rows = self.rows[left] if len(left) else None
        self.producer_id = self.producer_id[left]

    def drop_superseded(self, slots: Slots) -> None:
        """Forget commits of keys that a tombstone has removed since."""
        if self.rows is None:
            return
        gone = slots.removed_at[self.rows.slot] > self.rows.record_offset
        if gone.any():
            self.rows = self.rows[~gone] if not gone.all() else None
            self.producer_id = self.producer_id[~gone]
