"""The evidence for why offsets are missing.

Kafka leaves gaps lawfully only by compaction and below the log start: a transaction takes offsets
for its markers, but these are batches. So it matters whether a topic is or was compacted, and
whether something shows that the records of a gap were there. Only the cleaner writes batches with
fewer records than offsets and delete horizons (``MemoryRecords.filterTo``, Kafka 3.9 and 4.x); a
replica that fetched a cleaned log has the same gaps above its own cleaner checkpoint.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from logtool.checks.compaction import Cleaning
from logtool.formats.record_batch import Column
from logtool.gaps.table import GapTable, Kind, Reason
from logtool.metadata.policies import Past

MANY_GAPS = 3
"""Sound gaps inside segments from which on a log counts as compacted of which nothing tells the
policies that it had: lost batches do not end exactly where the next one begins, again and again."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why offsets are missing, and what shows it."""

    reason: Reason
    evidence: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a partition beside its batches: plain data."""

    log_start: int = 0
    """Offset from which on the ledger is kept."""
    policy: str | None = None
    """``cleanup.policy``; None where nothing says."""
    policy_source: str = "the metadata log"
    past: Past | None = None
    """What the policy was before, where that was asked for and is known."""
    cleaner_offset: int | None = None
    """The row of cleaner-offset-checkpoint."""
    clean: bool = False
    """Whether the log dir was stopped in order."""
    first_base: int = 0
    """Base offset of the first segment. A log start below it is that of a broker which stopped in
    order and then still had the offsets from there on."""
    witnesses: tuple[tuple[int, str, bool], ...] = ()
    """Offset and name of index files without a log, and of producer snapshots (true), by offset."""
    indexed: tuple[tuple[int, int], ...] = ()
    """Base offset of a segment, and the largest offset that an index of it names."""
    epochs: tuple[tuple[int, int], ...] = ()
    """(leader epoch, start offset) of a sound leader-epoch-checkpoint."""

    @property
    def is_compacted(self) -> bool | None:
        """Return what the policy says; None where it is not known."""
        return None if self.policy is None else "compact" in self.policy


@dataclass(frozen=True, slots=True)
class Traces:
    """What the batches tell of compaction."""

    horizons: int = 0
    with_holes: int = 0
    inner_gaps: int = 0
    """Gaps between sound batches of one segment."""


def decide(gaps: GapTable, facts: Facts, traces: Traces) -> tuple[list[Verdict], Column]:
    """Return the verdicts, and for each gap which of them is its own (int64)."""
    verdicts = [
        _ordinary(facts, traces),
        Verdict(Reason.COMPACTION, "only the cleaner leaves batches without some of their records"),
        Verdict(Reason.DAMAGE, "bytes that are no sound batch lie there"),
        Verdict(Reason.DAMAGE, "the batch does not decode"),
    ]
    chosen = np.zeros(len(gaps), np.int64)
    if verdicts[0].reason is Reason.COMPACTION and facts.cleaner_offset is not None:
        text = f"{verdicts[0].evidence}; above the cleaner checkpoint: fetched from another replica"
        verdicts.append(Verdict(Reason.COMPACTION, text))
        chosen[gaps.first_offset >= facts.cleaner_offset] = len(verdicts) - 1
    below = (gaps.kind == Kind.HEAD) & (gaps.first_offset < facts.first_base)
    text = f"the log started at {facts.log_start} when the broker stopped in order"
    verdicts.append(Verdict(Reason.SEGMENT_MISSING, text))
    chosen[below] = len(verdicts) - 1
    inside, damaged = gaps.kind == Kind.RECORDS, gaps.damaged > 0
    for row in np.flatnonzero((gaps.kind == Kind.SEGMENTS) & ~damaged).tolist():
        witnesses = _between(gaps, row, facts, verdicts[0])
        if witnesses:
            if witnesses not in verdicts:
                verdicts.append(witnesses)
            chosen[row] = verdicts.index(witnesses)
    chosen[inside] = 1
    chosen[damaged] = 2
    chosen[inside & damaged] = 3
    return verdicts, chosen


def _ordinary(facts: Facts, traces: Traces) -> Verdict:
    """Return why sound batches leave a gap in this partition."""
    marked = []
    if traces.horizons:
        marked.append("delete horizons")
    if traces.with_holes:
        marked.append("batches without some of their records")
    policy = f"cleanup.policy={facts.policy} ({facts.policy_source})"
    if facts.is_compacted:
        return Verdict(Reason.COMPACTION, policy)
    if marked:
        return Verdict(Reason.COMPACTION, f"the partition has {' and '.join(marked)}")
    if facts.cleaner_offset is not None:
        return Verdict(Reason.COMPACTION, "cleaner-offset-checkpoint names the partition")
    past = facts.past
    if past and past.compacted_at is not None:
        text = f"the topic was compacted before, see offset {past.compacted_at} of the metadata log"
        return Verdict(Reason.COMPACTION, text)
    if facts.is_compacted is None and not past and traces.inner_gaps >= MANY_GAPS:
        text = f"{traces.inner_gaps} gaps between sound batches of one segment"
        return Verdict(Reason.COMPACTION, text)
    known = policy if facts.policy else "cleanup.policy is not known"
    if past:
        since = f"since offset {past.since} of" if past.since else "in the whole of"
        known += f", never compact {since} the metadata log"
    return Verdict(Reason.UNKNOWN, f"{known}, and nothing in the partition looks compacted")


def _between(gaps: GapTable, row: int, facts: Facts, ordinary: Verdict) -> Verdict | None:
    """Return the verdict on a gap behind a segment where it is another than the ordinary one."""
    first, last = int(gaps.first_offset[row]), int(gaps.last_offset[row])
    segment, begin = int(gaps.before_segment[row]), int(gaps.after_segment[row])
    at = bisect_left(facts.indexed, (segment, -1))
    if at < len(facts.indexed) and facts.indexed[at][0] == segment:
        indexed = facts.indexed[at][1]
        if first <= indexed <= last:
            text = f"the indexes of segment {segment} go on to offset {indexed}, its log was cut"
            return Verdict(Reason.TRUNCATION_HOLE, text)
    offsets = [offset for offset, _, _ in facts.witnesses]
    some = facts.witnesses[bisect_left(offsets, first) : bisect_left(offsets, begin)]
    # A snapshot is taken where a segment ends: the one at the start of the gap tells nothing. Nor
    # does that of an earlier stop, where the cleaner has emptied the segment since.
    cleaning = Cleaning(offset=facts.cleaner_offset, clean=facts.clean)
    compacted = ordinary.reason is Reason.COMPACTION
    shown = [
        name
        for offset, name, snapshot in some
        if not snapshot or (offset > first and (not compacted or cleaning.spared(offset)))
    ]
    if shown:
        return Verdict(Reason.SEGMENT_MISSING, f"{shown[0]} shows that one was there")
    if ordinary.reason is Reason.UNKNOWN and facts.is_compacted is False and first < begin:
        text = f"{ordinary.evidence}: a log that was cut or rolled further on, or a lost segment"
        return Verdict(Reason.TRUNCATION_HOLE, text)
    return None


def exact_epoch(facts: Facts, offset: int) -> int | None:
    """Return the leader epoch that leader-epoch-checkpoint gives an offset."""
    starts = [start for _, start in facts.epochs]
    at = bisect_right(starts, offset)
    return facts.epochs[at - 1][0] if at else None
