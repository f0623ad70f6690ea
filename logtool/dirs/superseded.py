"""Proof that batches which compaction removed from other copies were replaced there, by key.

For each key whose last record is in batches that no other copy holds, another copy must hold that
record at its offset with its value, or a later record of the key. If the last record deletes the
key, it is enough that the other copy has no record of the key and that the cleaner has passed the
offset: the cleaner removes such records in time. Records of aborted transactions are ignored, and
records of open transactions prove nothing. A marker may be missing if no transaction of its
producer is open without it.
Source: ``Cleaner``, ``CleanedTransactionMetadata`` (Kafka 3.9 and 4.3).
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

import numpy as np

from logtool.checks.compaction import Cleaning, CompactionEvidence, Traces
from logtool.copies.batches import CopyBatches
from logtool.copies.copy import Copy
from logtool.copies.sources import ListedCopy
from logtool.dirs.transaction_outcomes import (
    OutcomeSource,
    TransactionOutcome,
    fates_of,
    left_open,
    markers_of,
)
from logtool.formats import wording
from logtool.formats.columns import runs
from logtool.formats.record_batch import (
    CONTROL,
    Column,
)
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE, KeyTable, lengthened
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import records as read_records
from logtool.log.redpanda import REDPANDA
from logtool.node.settings import Settings
from logtool.running.run import Run

_DIGEST = np.dtype("V16")
_OFFSETS, _FLAGS = ("last", "row", "later"), ("wanted", "deletes", "proven", "seen", "stored")
"""The columns of `_Slots`: int64 with -1 for an absent value, and int8."""


class ProofNeed(IntEnum):
    """Reason why a batch must be held unchanged; of several reasons the greatest counts."""

    REPLACED = 0
    LAST_OF_KEY = 1
    TODAY = 2
    MARKER = 3
    OPEN = 4
    NO_KEY = 5
    UNREADABLE = 6


@dataclass(frozen=True, slots=True)
class Compacted:
    """A copy that was compacted, and the evidence of it."""

    path: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Superseded:
    """Batches that need not be held: other copies have their last records, or later ones."""

    batches: int
    ranges: tuple[tuple[int, int], ...]
    """First and last offset of each range of batches."""
    keys: int
    """Number of keys whose last record is in batches that no other copy holds."""
    stored: int
    """Number of keys whose last record another copy holds."""
    later: int
    """Number of keys of which another copy has a later record."""
    deleted: int
    """Number of keys that their last record deletes, and that are gone in another copy."""
    by: tuple[Compacted, ...]


@dataclass(frozen=True, slots=True)
class KeyProof:
    """Result of the comparison of keys."""

    stretches: tuple[tuple[int, int, str], ...]
    """First and last row of batches that must be held unchanged, and the reason."""
    replaced: Superseded | None
    """None if the keys prove nothing."""
    notes: dict[str, str]
    """Reason why a compacted copy proves nothing, by its path."""


class _Slots(KeyTable):
    """The keys of both copies: columns with a row for each key."""

    last: Column
    """Offset of the last record in the copy that may be deleted; -1 without one."""
    row: Column
    """Number of the batch of that record."""
    wanted: Column
    """1 if no other copy holds that batch."""
    deletes: Column
    """1 if that record has no value."""
    proven: Column
    """1: held; 2: replaced by a later record; 3: gone; 0: not proven."""
    later: Column
    """Offset of the last record in the other copy that is being read; -1 without one."""
    seen: Column
    """1 if that copy has a record of the key."""
    stored: Column
    """1 if that copy holds the record at `last`."""

    def __init__(self) -> None:
        for name in _OFFSETS:
            setattr(self, name, np.empty(0, np.int64))
        for name in _FLAGS:
            setattr(self, name, np.empty(0, np.int8))
        self.digests: Column = np.empty(0, _DIGEST)
        """Digest of the value of the record at `last`, if it is wanted."""
        super().__init__()

    def _lengthen(self, room: int) -> None:
        super()._lengthen(room)
        for name in (*_OFFSETS, *_FLAGS):
            empty = NONE if name in _OFFSETS else 0
            setattr(self, name, lengthened(getattr(self, name), self.count, room, empty))
        digests = np.empty(room, _DIGEST)
        digests[: self.count] = self.digests[: self.count]
        self.digests = digests

    def forget_other(self) -> None:
        """Reset the columns of the other copy, before the next one is read."""
        self.later[:] = NONE
        self.seen[:] = self.stored[:] = 0

    def of(self, records: RecordTable, rows: Column) -> Column:
        """Return the slots of the keys of some records."""
        spans = records.spans
        return self.intern(records.data, spans.key_position[rows], spans.key_length[rows])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sound copy of the same topic, whose batches were read."""

    copy: Copy
    listed: ListedCopy
    settings: Settings
    """Known settings of its topic."""
    diverges_at: int | None
    """Offset at which it and the copy that may be deleted diverge; None if they do not."""


@dataclass(frozen=True, slots=True)
class Usable:
    """A compacted copy that may prove something."""

    path: str
    limit: int | None
    """Its compaction counts only below this offset; None for no limit."""
    evidence: str
    """Evidence that it was compacted."""


def usable(own: Copy, candidates: Sequence[Candidate]) -> tuple[list[Usable], dict[str, str]]:
    """Return the compacted candidates that may prove something, and why others do not, by path.

    `own` is the copy that may be deleted.
    """
    found: list[Usable] = []
    notes: dict[str, str] = {}
    for other in candidates:
        judged, limit = _compacted(other)
        if not judged.is_compacted:
            continue
        why = _unfit(own, other, limit)
        if why:
            notes[other.copy.path] = f"was compacted, and {why}"
        else:
            found.append(Usable(other.copy.path, limit, judged.evidence))
    return found, notes


def prove(
    own: OutcomeSource,
    missing: Column,
    others: Sequence[OutcomeSource],
    compacted: Sequence[Usable],
    notes: Mapping[str, str],
    run: Run,
) -> KeyProof:
    """Find the `missing` batches (a mask) that other copies have replaced.

    `others` are all candidates, `compacted` and `notes` the result of `usable` for them. The logs
    are read again; OutOfTimeError once the time is over, UnreadableError if a log cannot be read.
    """
    notes = dict(notes)
    by_path = {other.copy.path: other for other in others}
    chosen = [(by_path[one.path], one.limit, one.evidence) for one in compacted]
    proof = _KeyProofRun(own, missing, run)
    by = []
    for other, limit, evidence in chosen:
        problem = proof.take(other, limit)
        if problem:
            notes[other.copy.path] = f"was compacted, and {problem}"
        else:
            by.append(Compacted(other.copy.path, evidence))
    if not by:
        return KeyProof((), None, notes)
    limits = [limit for other, limit, _ in chosen if other.copy.path not in notes]
    proof.end(others, None if None in limits else max(one or 0 for one in limits))
    paths = " or ".join(one.path for one in by)
    return KeyProof(tuple(proof.stretches(paths)), proof.replaced(tuple(by)), notes)


def _compacted(other: Candidate) -> tuple[CompactionEvidence, int | None]:
    """Return whether a copy was compacted, and the offset below which that counts.

    Without an offset (None) the topic is known to be compacted today. If it is not, all batches
    after the last run of the cleaner must be held.
    """
    copy, tally = other.copy, other.copy.tally
    traces = Traces(tally.horizons, tally.partial, tally.inner_gaps)
    cleaning = Cleaning(copy.topic, copy.cleaner_offset)
    cleaning = cleaning.with_policy(other.settings, copy.topic_id)
    judged = cleaning.judge(traces)
    today = cleaning.by_policy is True or cleaning.is_always_compacted
    return judged, None if today else copy.cleaner_offset or 0


def _unfit(own: Copy, other: Candidate, limit: int | None) -> str | None:
    """Return why the keys of a compacted copy prove nothing; None if they may."""
    if other.listed.listed and other.listed.listed.flavour is REDPANDA:
        return "compaction by Redpanda proves nothing"
    if own.real_damages:
        return "this copy is damaged, so the last record of a key is not known"
    if limit == 0:
        return (
            "no metadata log among the log dirs shows that its topic is compacted today, and "
            "no cleaner-offset-checkpoint shows how far it was compacted"
        )
    at = other.diverges_at
    return None if at is None else f"diverges at offset {at}"


class _KeyProofRun:
    """The keys of the copy that may be deleted, compared with those of other copies."""

    def __init__(self, own: OutcomeSource, missing: Column, run: Run) -> None:
        self._own, self._missing, self._run = own, missing, run
        self._table = own.copy.batches
        self._why = np.zeros(len(missing), np.int8)
        self._problems: dict[int, str] = {}
        self._keys = _Slots()
        self._markers = markers_of(own, run)
        self._limit: int | None = None
        fates = fates_of(self._table, self._markers)
        self._why[missing & (fates == TransactionOutcome.OPEN)] = ProofNeed.OPEN
        for part in _read(own, run):
            if isinstance(part, Unread):
                row = int(_rows(self._table, np.array([part.last_offset]))[0])
                if missing[row]:
                    self._why[row] = ProofNeed.UNREADABLE
                    self._problems[row] = part.reason
            else:
                self._note(part, fates)

    def _note(self, records: RecordTable, fates: Column) -> None:
        keys = self._keys
        row = _rows(self._table, records.offset)
        counts = fates[row] == TransactionOutcome.COUNTS
        nameless = counts & (records.spans.key_length < 0) & self._missing[row]
        self._why[row[nameless]] = ProofNeed.NO_KEY
        rows = np.flatnonzero(counts & (records.spans.key_length >= 0))
        slot = keys.of(records, rows)
        keys.last[slot] = records.offset[rows]  # of equal slots the last counts
        keys.row[slot] = row[rows]
        keys.wanted[slot] = self._missing[row[rows]]
        keys.deletes[slot] = records.spans.value_length[rows] < 0
        last = (keys.last[slot] == records.offset[rows]) & (keys.wanted[slot] == 1)
        keys.digests[slot[last]] = _digests(records, rows[last])

    def take(self, other: OutcomeSource, limit: int | None) -> str | None:
        """Look for the keys in another copy; return why it proves nothing, or None."""
        keys, copy = self._keys, other.copy
        keys.forget_other()
        fates = fates_of(copy.batches, markers_of(other, self._run))
        for part in _read(other, self._run):
            if isinstance(part, Unread):
                return f"cannot be read at offset {part.first_offset}: {part.reason}"
            batch = _rows(copy.batches, part.offset)
            there = (part.spans.key_length >= 0) & (part.offset >= copy.log_start)
            rows = np.flatnonzero(there & (fates[batch] != TransactionOutcome.ABORTED))
            slot = keys.of(part, rows)
            keys.seen[slot] = 1
            ended = fates[batch[rows]] == TransactionOutcome.COUNTS
            rows, slot = rows[ended], slot[ended]
            keys.later[slot] = part.offset[rows]
            same = (keys.last[slot] == part.offset[rows]) & (keys.wanted[slot] == 1)
            rows, slot = rows[same], slot[same]
            alike = keys.digests[slot] == _digests(part, rows)
            keys.stored[slot] = alike & ((part.spans.value_length[rows] < 0) == keys.deletes[slot])
        self._apply(copy.cleaner_offset or 0, limit)
        return None

    def _apply(self, cleaned: int, limit: int | None) -> None:
        keys = self._keys
        asked = (keys.wanted == 1) & (keys.proven == 0)
        if limit is not None:
            asked &= keys.last < limit
        gone = (keys.deletes == 1) & (keys.seen == 0) & (keys.last < cleaned)
        for number, true in enumerate((keys.stored == 1, keys.later > keys.last, gone), 1):
            keys.proven[asked & true & (keys.proven == 0)] = number

    def end(self, others: Sequence[OutcomeSource], limit: int | None) -> None:
        """Mark the batches that are not proven, after all copies were read."""
        keys, table, why = self._keys, self._table, self._why
        lost = keys.row[: keys.count][self._lost()]
        why[lost] = np.maximum(why[lost], ProofNeed.LAST_OF_KEY)
        if limit is not None:
            behind = self._missing & (table.last_offset >= limit)
            why[behind] = np.maximum(why[behind], ProofNeed.TODAY)
            self._limit = limit
        rows = np.flatnonzero(self._missing & (table.attributes & CONTROL != 0))
        known = np.isin(table.last_offset[rows], [offset for offset, _, _ in self._markers])
        why[rows[~known]] = ProofNeed.MARKER
        for other in others if len(rows) else ():
            ends = markers_of(other, self._run)
            why[rows[left_open(other.copy.batches, ends, table[rows])]] = ProofNeed.MARKER

    def _lost(self) -> Column:
        """Return a mask of the slots of keys that are not proven."""
        keys, count = self._keys, self._keys.count
        lost: Column = (keys.wanted[:count] == 1) & (keys.proven[:count] == 0)
        return lost

    def stretches(self, paths: str) -> Iterator[tuple[int, int, str]]:
        """Yield first and last row of batches that are not proven, and the reason."""
        keys = self._keys
        lost = self._lost()
        at = np.sort(keys.last[: keys.count][lost])
        texts = {
            ProofNeed.TODAY: (
                "its topic is not known to be compacted today, and the cleaner has cleaned "
                f"{paths} only up to offset {self._limit}"
            ),
            ProofNeed.MARKER: f"without this marker a transaction stays open in {paths}",
            ProofNeed.OPEN: "belongs to a transaction that has no marker in this copy",
            ProofNeed.NO_KEY: "holds records without a key, which no later record can replace",
        }
        for why in set(self._why.tolist()) - {0}:
            for first, last in runs(self._why == why):
                text = texts.get(ProofNeed(why), self._problems.get(first, ""))
                if why == ProofNeed.UNREADABLE:
                    text = f"its records cannot be read: {text}"
                if why == ProofNeed.LAST_OF_KEY:
                    begin, end = self._table.base_offset[first], self._table.last_offset[last]
                    here = at[np.searchsorted(at, begin) : np.searchsorted(at, end, "right")]
                    count = wording.count(len(here), "key")
                    text = (
                        f"has the last record of {count}, the first at offset {here[0]}, and "
                        f"{paths} has neither that record nor a later record with the same "
                        "key"
                    )
                yield first, last, text

    def replaced(self, by: tuple[Compacted, ...]) -> Superseded:
        """Return the batches that are proven to be replaced."""
        keys, table = self._keys, self._table
        proven = self._missing & (self._why == ProofNeed.REPLACED)
        wanted = keys.wanted[: keys.count] == 1
        counts = [int((keys.proven[: keys.count][wanted] == kind).sum()) for kind in (1, 2, 3)]
        spans = [
            (int(table.base_offset[first]), int(table.last_offset[last]))
            for first, last in runs(proven)
        ]
        stored, later, deleted = counts
        return Superseded(
            int(proven.sum()), tuple(spans), int(wanted.sum()), stored, later, deleted, by
        )


def _read(source: OutcomeSource, run: Run) -> Iterator[RecordTable | Unread]:
    for segment in source.listed.segments:
        for chunk in segment.batches():
            if chunk.damage is None:
                run.budget.pace.spend(int(chunk.table.size.sum()))
                yield from read_records(chunk, np.flatnonzero(~chunk.table.is_control))


def _rows(table: CopyBatches, offset: Column) -> Column:
    """Return the rows of the batches in which offsets lie."""
    at: Column = np.minimum(np.searchsorted(table.last_offset, offset), len(table) - 1)
    return at


def _digests(records: RecordTable, rows: Column) -> Column:
    """Return a digest of the value of each of some records; an absent value counts as empty."""
    size = _DIGEST.itemsize
    made = (
        hashlib.blake2b(records.value(row) or b"", digest_size=size).digest()
        for row in rows.tolist()
    )
    return np.frombuffer(b"".join(made), _DIGEST)
