"""The evidence for the reason of missing offsets.

`logtool.checks.compaction` decides whether compaction explains the offsets that sound batches
lack; this module finds the evidence that the records of a single gap were there.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from logtool.checks.compaction import NOT_KNOWN, Cleaning, Traces
from logtool.formats.record_batch import Column
from logtool.gaps.table import GapPlace, GapReason, GapTable
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GapCauses:
    """Reason of missing offsets, and its evidence."""

    reason: GapReason
    evidence: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a partition from other sources than its batches: plain data."""

    log_start: int = 0
    """Offset at which the ledger starts: below the first segment if the beginning is lost."""
    beginning: GapCauses | None = None
    """Why the offsets from the log start to the first segment are absent; None if they are not."""
    high_watermark: int | None = None
    """Offset in replication-offset-checkpoint; None without a row that is of this log."""
    recovery_point: int | None = None
    """Offset in recovery-point-offset-checkpoint; None without a row."""
    claimed_end: int = 0
    """Largest offset that any file names as one that the log reached, without a proof."""
    lost_end: tuple[int, str] | None = None
    """Offset that the log is proved to have reached, and the proof; None until its end is known,
    and if it reaches this offset."""
    cleaning: Cleaning = NOT_KNOWN
    """Evidence of whether the log was compacted, and up to which offset."""
    first_base: int = 0
    """Base offset of the first segment."""
    is_tiered: bool = False
    """True if segments of the topic are in remote storage, where offsets below `first_base` are."""
    witnesses: tuple[tuple[int, str, bool], ...] = ()
    """Offset and name of index files without a log, and of producer snapshots (True), by offset."""
    indexed: tuple[tuple[int, int], ...] = ()
    """Base offset of a segment, and the largest offset in its indexes."""
    produced: tuple[tuple[int, str], ...] = ()
    """Last offset of a batch that a producer snapshot names and no segment has, and the name of the
    snapshot, by offset."""
    epochs: tuple[tuple[int, int], ...] = ()
    """(leader epoch, start offset) of a sound leader-epoch-checkpoint."""

    @property
    def checkpointed_end(self) -> int | None:
        """Return the largest offset that the checkpoints of the log dir have; None without one."""
        known = [one for one in (self.high_watermark, self.recovery_point) if one is not None]
        return max(known, default=None)


def decide(
    gaps: GapTable, facts: Facts, traces: Traces, behind: Traces
) -> tuple[list[GapCauses], Column]:
    """Return the verdicts, and for each gap the number of its verdict (int64).

    `behind` are the traces in the segments that reach beyond the offset of the cleaner.
    """
    cleaning = facts.cleaning
    judgement = cleaning.judge(traces)
    ordinary = GapReason.COMPACTION if judgement.is_compacted else GapReason.UNKNOWN
    verdicts = [
        GapCauses(ordinary, judgement.evidence),
        GapCauses(
            GapReason.COMPACTION, "only the cleaner leaves batches without some of their records"
        ),
        GapCauses(GapReason.DAMAGE, "this range holds bytes that are not a sound batch"),
        GapCauses(GapReason.DAMAGE, "the batch does not decode"),
    ]
    chosen = np.zeros(len(gaps), np.int64)
    if judgement.is_compacted and cleaning.offset is not None:
        text = f"{verdicts[0].evidence}; above the cleaner checkpoint: fetched from another replica"
        verdicts.append(GapCauses(GapReason.COMPACTION, text))
        chosen[gaps.first_offset >= cleaning.offset] = len(verdicts) - 1
    if facts.beginning:
        verdicts.append(facts.beginning)
        below = (gaps.kind == GapPlace.HEAD) & (gaps.first_offset < facts.first_base)
        chosen[below] = len(verdicts) - 1
    inside, damaged = gaps.kind == GapPlace.RECORDS, gaps.damaged > 0
    for row in np.flatnonzero((gaps.kind == GapPlace.SEGMENTS) & ~damaged).tolist():
        witnesses = _between(gaps, row, facts, verdicts[0], behind)
        if witnesses:
            if witnesses not in verdicts:
                verdicts.append(witnesses)
            chosen[row] = verdicts.index(witnesses)
    if facts.lost_end:
        verdicts.append(GapCauses(GapReason.END_MISSING, facts.lost_end[1]))
        chosen[gaps.kind == GapPlace.LOST_END] = len(verdicts) - 1
    chosen[inside] = 1
    chosen[damaged] = 2
    chosen[inside & damaged] = 3
    if facts.is_tiered:
        text = f"segments below offset {facts.first_base} are in remote storage"
        verdicts.append(GapCauses(GapReason.REMOTE, text))
        chosen[gaps.first_offset < facts.first_base] = len(verdicts) - 1
    return verdicts, chosen


def _between(
    gaps: GapTable, row: int, facts: Facts, ordinary: GapCauses, behind: Traces
) -> GapCauses | None:
    """Return the verdict on a gap after a segment; None if the `ordinary` verdict holds."""
    first, last = int(gaps.first_offset[row]), int(gaps.last_offset[row])
    segment, begin = int(gaps.before_segment[row]), int(gaps.after_segment[row])
    at = bisect_left(facts.indexed, (segment, -1))
    if at < len(facts.indexed) and facts.indexed[at][0] == segment:
        indexed = facts.indexed[at][1]
        if first <= indexed <= last:
            text = f"the indexes of segment {segment} reach offset {indexed}, so its log was cut"
            return GapCauses(GapReason.TRUNCATION_HOLE, text)
    offsets = [offset for offset, _, _ in facts.witnesses]
    some = facts.witnesses[bisect_left(offsets, first) : bisect_left(offsets, begin)]
    # A broker takes a snapshot where a segment ends: one at the start of the gap proves nothing,
    # nor does one of an earlier stop, if the cleaner has emptied the segment since.
    cleaning = facts.cleaning
    compacted = ordinary.reason is GapReason.COMPACTION
    shown = [
        name
        for offset, name, snapshot in some
        if not snapshot or (offset > first and (not compacted or cleaning.spared(offset)))
    ]
    if shown:
        return GapCauses(GapReason.SEGMENT_MISSING, f"{shown[0]} shows that a segment is lost")
    named = facts.produced[
        bisect_left(facts.produced, (first,)) : bisect_left(facts.produced, (begin,))
    ]
    if named and not compacted and cleaning.offset is None:
        text = f"{named[0][1]} names a batch that ends at offset {named[0][0]}"
        return GapCauses(GapReason.SEGMENT_MISSING, text)
    if compacted and first < begin and cleaning.is_contiguous(first, lambda: behind):
        text = (
            f"the cleaner has cleaned offsets below {cleaning.offset} only: a segment is lost, or "
            "this replica fetched a cleaned log"
        )
        return GapCauses(GapReason.UNKNOWN, text)
    if ordinary.reason is GapReason.UNKNOWN and cleaning.by_policy is False and first < begin:
        text = (
            f"{ordinary.evidence}: the log was cut, or rolled at a later offset, or a segment "
            "is lost"
        )
        return GapCauses(GapReason.TRUNCATION_HOLE, text)
    return None


def exact_epoch(facts: Facts, offset: int) -> int | None:
    """Return the leader epoch of an offset in leader-epoch-checkpoint; None if it has none."""
    starts = [start for _, start in facts.epochs]
    at = bisect_right(starts, offset)
    return facts.epochs[at - 1][0] if at else None
