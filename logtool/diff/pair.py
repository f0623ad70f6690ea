"""Two copies of a partition against each other: the same, behind, compacted, or diverged.

What compaction leaves of a batch of magic 2 keeps its offsets, leader epoch, producer and sequence
and has fewer records, or a delete horizon (``MemoryRecords.filterTo``); a batch may also be gone as
a whole. Anything else that differs at the same offset was written by two leaders, or is rot that
its CRC does not show: that is divergence.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import numpy as np

from logtool.diff.copy import Batches, Copy, Epochs
from logtool.formats.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    MAGIC,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    Column,
)
from logtool.lazy_dataclass import dataclass

_KEPT = ("last_offset", "leader_epoch", "magic", "producer_id", "producer_epoch", "base_sequence")
_KEPT_ATTRIBUTES = TIMESTAMP_TYPE | TRANSACTIONAL | CONTROL


class Status(StrEnum):
    """How two copies of a partition, or all of its copies, relate to each other.

    Where several of these hold, the gravest counts, which is the one that stands first.
    """

    OTHER_TOPIC = "other-topic"
    """Their topic ids differ: the topic was deleted and made anew between them."""
    DIVERGED = "diverged"
    DAMAGED = "damaged"
    """A batch that one has is damaged in the other."""
    MISSING = "missing"
    """A batch that one has is not in the other, and nothing shows that it was compacted."""
    COMPACTED = "compacted"
    """They differ as compaction at different times leaves them."""
    DISJOINT = "disjoint"
    """They have no offset in common."""
    BEHIND = "behind"
    """One ends, or begins, later than the other; what both have is the same."""
    SAME = "same"
    ALONE = "alone"
    """There is one copy only."""

    @property
    def is_grave(self) -> bool:
        """Return whether data is at stake."""
        return self in (Status.OTHER_TOPIC, Status.DIVERGED, Status.DAMAGED, Status.MISSING)


@dataclass(frozen=True, slots=True)
class Lacks:
    """What one of the two copies lacks that the other has; counts of batches."""

    compacted: int = 0
    """Gone, or with fewer records."""
    damaged: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    """Offset ranges for which nothing accounts."""
    before: int = 0
    """Below its first offset."""
    behind: int = 0
    """From its log end on."""

    def __bool__(self) -> bool:
        return bool(self.compacted or self.damaged or self.missing or self.before or self.behind)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "compacted": self.compacted,
            "damaged": self.damaged,
            "missing": [list(span) for span in self.missing],
            "before": self.before,
            "behind": self.behind,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two copies compared."""

    left: Copy
    right: Copy
    status: Status
    common: tuple[int, int] | None = None
    """First offset and end of what both may have."""
    equal: int = 0
    """Batches that are the same byte for byte."""
    rewritten: int = 0
    """Batches that compaction left in two shapes."""
    diverges_at: int | None = None
    left_batch: dict[str, int] | None = None
    """At the divergence, or the first behind it; None where there is none."""
    right_batch: dict[str, int] | None = None
    left_lacks: Lacks = Lacks()
    """Below the divergence, if there is one."""
    right_lacks: Lacks = Lacks()
    common_epoch: tuple[int, int] | None = None
    """The last entry that the epoch chains share."""
    epochs_diverge_at: int | None = None
    """Offset from which on the epoch chains differ."""

    @property
    def comparable(self) -> bool:
        """Return whether what one has says something of the other."""
        return self.status not in (Status.OTHER_TOPIC, Status.DIVERGED)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "pair",
            "topic": self.left.topic,
            "partition": self.left.partition,
            "left": self.left.label,
            "right": self.right.label,
            "status": str(self.status),
            "first_offset": self.common[0] if self.common else None,
            "end_offset": self.common[1] if self.common else None,
            "left_end_offset": self.left.log_end,
            "right_end_offset": self.right.log_end,
            "equal_batches": self.equal,
            "rewritten_batches": self.rewritten,
            "diverges_at": self.diverges_at,
            "left_batch": _shown(self.left_batch),
            "right_batch": _shown(self.right_batch),
            "left_lacks": self.left_lacks.as_json(),
            "right_lacks": self.right_lacks.as_json(),
            "common_epoch": list(self.common_epoch) if self.common_epoch else None,
            "epochs_diverge_at": self.epochs_diverge_at,
        }


def _shown(batch: dict[str, int] | None) -> dict[str, int] | None:
    keys = (
        "segment",
        "position",
        "size",
        "base_offset",
        "last_offset",
        "leader_epoch",
        "crc",
        "record_count",
    )
    return None if batch is None else {key: batch[key] for key in keys}


def compare(left: Copy, right: Copy) -> Pair:
    """Compare two copies of a partition."""
    if left.topic_id and right.topic_id and left.topic_id != right.topic_id:
        return Pair(left=left, right=right, status=Status.OTHER_TOPIC)
    start = max(left.log_start, right.log_start)
    end = min(left.log_end, right.log_end)
    a, b = (_within(copy.batches, start, end) for copy in (left, right))
    in_a, in_b = _in_both(a.base_offset, b.base_offset)
    hinted = bool(left.compaction_hints or right.compaction_hints)
    same, rewritten = _match(a[in_a], b[in_b], hinted=hinted)
    only_a, only_b = _rest(len(a), in_a), _rest(len(b), in_b)
    different = np.concatenate(
        (
            a.base_offset[in_a][~(same | rewritten)],
            _overlapping(a[only_a], b),
            _overlapping(b[only_b], a),
        )
    )
    at = int(different.min()) if len(different) else None
    # What stands behind a divergence is another history, and says nothing.
    counts = a.base_offset[in_a] < (end if at is None else at)
    more = a.record_count[in_a] - b.record_count[in_b]
    shrunk = rewritten & counts
    left_lacks = _lacks(left, right, b, only_b, hinted, at, int((shrunk & (more < 0)).sum()))
    right_lacks = _lacks(right, left, a, only_a, hinted, at, int((shrunk & (more > 0)).sum()))
    chains = _epochs_agree(left, right, start)
    return Pair(
        left,
        right,
        _status(at, start < end, left_lacks, right_lacks, bool(shrunk.any())),
        (start, end) if start < end else None,
        int((same & counts).sum()),
        int(shrunk.sum()),
        at,
        _batch_at(a, at),
        _batch_at(b, at),
        left_lacks,
        right_lacks,
        *chains,
    )


def _within(batches: Batches, start: int, end: int) -> Batches:
    return batches[slice(*np.searchsorted(batches.base_offset, (start, max(start, end))))]


def _in_both(a: Column, b: Column) -> tuple[Column | slice, Column | slice]:
    """Return where the offsets are that both have, in each of them."""
    if np.array_equal(a, b):
        return slice(None), slice(None)
    _, in_a, in_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return in_a, in_b


def _rest(count: int, matched: Column | slice) -> Column:
    rest = np.ones(count, np.bool_)
    rest[matched] = False
    return rest


def _match(a: Batches, b: Batches, *, hinted: bool) -> tuple[Column, Column]:
    """Return which batches at the same offsets are the same, and which compaction rewrote."""
    alike = (*_KEPT, "attributes", "crc", "size")
    if all(np.array_equal(getattr(a, name), getattr(b, name)) for name in alike):
        return np.ones(len(a), np.bool_), np.zeros(len(a), np.bool_)
    kept = (a.attributes ^ b.attributes) & _KEPT_ATTRIBUTES == 0
    for name in _KEPT:
        kept &= getattr(a, name) == getattr(b, name)
    same = kept & (a.crc == b.crc) & (a.size == b.size)
    horizon = (a.attributes | b.attributes) & DELETE_HORIZON != 0
    modern = ((a.record_count != b.record_count) | horizon) & (a.magic >= MAGIC)
    # A wrapper of magic 0 or 1 does not count its messages.
    legacy = (a.size != b.size) & (a.magic < MAGIC) & hinted
    return same, kept & ~same & (modern | legacy)


def _overlapping(a: Batches, b: Batches) -> Column:
    """Return the base offsets of the batches of `a` that have offsets of a batch of `b`."""
    if not len(a) or not len(b):
        return a.base_offset[:0]
    behind = np.searchsorted(b.last_offset, a.base_offset)
    there = behind < len(b)
    overlapping: Column = there & (b.base_offset[np.minimum(behind, len(b) - 1)] <= a.last_offset)
    return a.base_offset[overlapping]


def _lacks(
    copy: Copy,
    other: Copy,
    inside: Batches,
    only: Column,
    hinted: bool,
    at: int | None,
    rewritten: int,
) -> Lacks:
    """Return what `copy` lacks; `inside` are the batches of the other, `only` those of it alone."""
    table = other.batches
    if at is not None:
        only = only & (inside.base_offset < at)
    gone = inside[only]
    damaged = np.zeros(len(gone), np.bool_)
    for damage in copy.damages:
        damaged |= damage.overlaps(gone.base_offset, gone.last_offset)
    lost = gone[~damaged]
    return Lacks(
        compacted=rewritten + (len(lost) if hinted else 0),
        damaged=int(damaged.sum()),
        missing=() if hinted else tuple(_spans(lost)),
        before=int(
            ((table.base_offset < copy.log_start) & (table.last_offset >= other.log_start)).sum()
        )
        if copy.log_start > other.log_start
        else 0,
        behind=int((table.base_offset >= copy.log_end).sum()) if at is None else 0,
    )


def _spans(batches: Batches) -> list[tuple[int, int]]:
    """Return the offset ranges of batches, those that adjoin as one."""
    if not len(batches):
        return []
    adjoins = np.concatenate(([False], batches.base_offset[1:] == batches.last_offset[:-1] + 1))
    starts = np.flatnonzero(~adjoins)
    ends = np.concatenate((starts[1:] - 1, [len(batches) - 1]))
    return list(
        zip(batches.base_offset[starts].tolist(), batches.last_offset[ends].tolist(), strict=True)
    )


def _status(at: int | None, common: bool, left: Lacks, right: Lacks, rewritten: bool) -> Status:
    if at is not None:
        return Status.DIVERGED
    if left.damaged or right.damaged:
        return Status.DAMAGED
    if left.missing or right.missing:
        return Status.MISSING
    if rewritten or left.compacted or right.compacted:
        return Status.COMPACTED
    if left or right:
        return Status.BEHIND if common else Status.DISJOINT
    return Status.SAME


def _batch_at(batches: Batches, at: int | None) -> dict[str, int] | None:
    """Return the batch that has an offset, or the first behind it."""
    if at is None:
        return None
    row = int(np.searchsorted(batches.last_offset, at))
    return batches.row(row) if row < len(batches) else None


def _epochs_agree(left: Copy, right: Copy, start: int) -> tuple[tuple[int, int] | None, int | None]:
    """Return the last entry that the epoch chains share, and where they begin to differ."""
    files = bool(left.epochs and right.epochs)
    a, b = (_from(copy.epochs if files else copy.batch_epochs, start) for copy in (left, right))
    shared = None
    for one, other in zip(a, b, strict=False):
        if one != other:
            return shared, min(one[1], other[1])
        shared = one
    longer = (a if len(a) > len(b) else b)[min(len(a), len(b)) :]
    shorter_end = right.log_end if len(a) > len(b) else left.log_end
    # An epoch that begins where the other log ends is one that it has not come to yet.
    differs = longer and longer[0][1] < shorter_end
    return shared, longer[0][1] if differs else None


def _from(epochs: Sequence[tuple[int, int]], start: int) -> Epochs:
    """Return a chain from an offset on: the entry that is in force there counts from there."""
    later = [entry for entry in epochs if entry[1] > start]
    current = [entry for entry in epochs if entry[1] <= start][-1:]
    return tuple([(epoch, start) for epoch, _ in current] + later)
