"""Missing offsets of one partition: the gaps inside its stretches, and those between them.

These are the gaps that `logtool gaps` prints at ``--level batches``, from the log start on, without
two kinds: holes inside a batch, which only decoding can list, and an unknown end of the log. A
partition with a segment that could not be read has no rows, as `logtool gaps` has no ledger for it.
Nor has one without any segment, whose offsets are all lost: no stretch of it is read.
Reasons come from the same function as there, `logtool.gaps.evidence.decide`.

One answer may differ from that of `logtool gaps`: whether records are missing in a batch that a log
start, or an overlap, cuts in two. `logtool gaps` decodes the batch, here only its header counts.
The difference only shows in a partition where nothing else is compacted and no policy is known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from logtool.checks.compaction import Traces
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.record_batch import Column
from logtool.gaps import lost_ranges
from logtool.gaps import table as gap_table
from logtool.gaps.coverage import Coverage, EdgeBatch
from logtool.gaps.evidence import Facts, GapCauses, decide
from logtool.gaps.partition_facts import PartitionToRead, indexed
from logtool.gaps.table import GapPlace, GapTable
from logtool.lazy_dataclass import dataclass
from logtool.log import opening

Stretch = tuple[Mapping[str, Any], Column]
"""A stretch from `gap_rows`: its edges by the names of `gap_rows.EDGES`, and the gaps inside as an
int64 array of three rows: first offset, last offset, and 1 for a damaged gap."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A stretch, with facts about the stretches before it."""

    edge: Mapping[str, Any]
    inner: Column
    floor: int
    """Offset below which nothing is missing here: stretches before reach to it, or the log start
    does."""
    counts: bool
    """True if any batch reaches the floor."""
    damaged_before: bool
    """True if damage lies behind the last batch that counts before this stretch."""
    before_segment: int
    """Segment of the last batch that counts before this stretch; -1 without one."""

    @property
    def kind(self) -> GapPlace:
        """Return the kind of a gap in front of the stretch."""
        if self.before_segment < 0:
            return GapPlace.HEAD
        return (
            GapPlace.BATCHES if self.before_segment == self.edge["segment"] else GapPlace.SEGMENTS
        )


def gaps_of(
    stretches: Sequence[Stretch], facts: Facts, log_dir: str, directory: str
) -> tuple[GapTable, Sequence[GapCauses], Column]:
    """Return the gaps of a partition, the verdicts, and for each gap the number of its verdict.

    `stretches` are in the order of the log. The indexes of segments before a gap are read from the
    log dir.
    """
    known = _known(stretches, facts.log_start)
    found = [_before(one) for one in known[:-1] if one.counts]
    found += [_before(one) for one in known[-1:]]
    found += [_inside(one) for one in known if one.counts and one.inner.shape[1]]
    if known:
        facts, lost = _behind_end(known, facts, log_dir, directory)
        found.append(lost)
    gaps = gap_table.concat([one for one in found if one is not None])
    if not len(gaps):
        return gaps, [], np.empty(0, np.int64)
    ends: dict[int, int] = {}
    for edge in (one.edge for one in known if one.counts):
        ends[edge["segment"]] = max(edge["last_offset"], ends.get(edge["segment"], -1))
    cleaned = facts.cleaning.offset or 0
    behind = [one for one in known if ends.get(one.edge["segment"], -1) >= cleaned]
    facts = _with_indexes(facts, log_dir, directory, gaps)
    return gaps, *decide(gaps, facts, _traces(known, gaps), _traces(behind, gaps))


def _traces(known: Sequence[_Known], gaps: GapTable) -> Traces:
    """Return the traces of compaction in stretches; `gaps` are those of all stretches."""
    segments = np.array([one.edge["segment"] for one in known], np.int64)
    inner = (gaps.kind == GapPlace.BATCHES) & (gaps.damaged == 0)
    return Traces(
        horizons=sum(_reaches(one, "last_horizon") for one in known),
        with_holes=sum(_reaches(one, "last_hole") for one in known),
        inner_gaps=int((inner & np.isin(gaps.after_segment, segments)).sum()),
    )


def _known(stretches: Sequence[Stretch], log_start: int) -> list[_Known]:
    """Return the stretches above the log start; none if any part of the log was not read."""
    found: list[_Known] = []
    if not all(edge["read"] for edge, _ in stretches):
        return found
    floor, before, damaged_before = log_start, -1, False
    for edge, inner in stretches:
        behind, last = edge["next_segment"], edge["last_offset"]
        if behind is not None and behind <= log_start:
            continue
        counts = last is not None and last >= floor
        found.append(
            _Known(
                edge=edge,
                inner=inner,
                floor=floor,
                counts=counts,
                damaged_before=damaged_before,
                before_segment=before,
            )
        )
        if counts:
            damaged_before = edge["damaged_tail"]
            before = max(before, edge["segment"])
        else:
            damaged_before |= edge["damages"] > 0
        if last is not None:
            floor = max(floor, last + 1)
    return found


def _before(one: _Known) -> GapTable | None:
    """Return the gap in front of a stretch, or in front of an empty last segment, if any."""
    edge = one.edge
    behind = edge["first_offset"] if one.counts else edge["segment"]
    if behind <= one.floor:
        return None
    damaged = edge["damaged_head"] if one.counts else edge["damages"] > 0
    return gap_table.make(
        1,
        first_offset=one.floor,
        last_offset=behind - 1,
        kind=one.kind,
        before_segment=one.before_segment,
        after_segment=edge["segment"],
        damaged=int(one.damaged_before or damaged),
    )


def _behind_end(
    known: Sequence[_Known], facts: Facts, log_dir: str, directory: str
) -> tuple[Facts, GapTable | None]:
    """Return the gap behind the log end, and the facts with its proof; no gap without a proof."""
    last = known[-1]
    batches_end = max(last.floor, last.edge["last_offset"] + 1 if last.counts else 0)
    end = max(batches_end, last.edge["segment"])
    if facts.claimed_end <= end:
        return facts, None
    place = files.path_of(log_dir)
    try:
        listed, home = opening.open_partition(place / directory), opening.open_log_dir(place)
        facts = lost_ranges.end(listed, home, facts, end)
    except UnreadableError:
        return facts, None  # it was removed after the pass over its bytes
    if not facts.lost_end:
        return facts, None
    damaged = last.edge["damaged_tail"]
    if not last.counts and end == batches_end:
        damaged = last.damaged_before or last.edge["damages"] > 0
    lost = gap_table.make(
        1,
        first_offset=end,
        last_offset=facts.lost_end[0] - 1,
        kind=GapPlace.LOST_END,
        before_segment=last.edge["segment"] if last.counts else last.before_segment,
        after_segment=last.edge["segment"],
        damaged=int(damaged),
    )
    return facts, lost


def _inside(one: _Known) -> GapTable:
    """Return the gaps inside a stretch; one that reaches below the floor begins there."""
    first, last, damaged = one.inner[:, one.inner[1] >= one.floor]
    segment, cut = one.edge["segment"], first <= one.floor
    return gap_table.make(
        len(first),
        first_offset=np.maximum(first, one.floor),
        last_offset=last,
        kind=np.where(cut, one.kind, GapPlace.BATCHES),
        before_segment=np.where(cut, one.before_segment, segment),
        after_segment=segment,
        damaged=damaged | (cut & one.damaged_before),
    )


def _reaches(one: _Known, name: str) -> bool:
    """Return whether a trace of compaction lies above the floor."""
    found = one.edge[name]
    return found is not None and found >= one.floor


def _with_indexes(known: Facts, log_dir: str, directory: str, gaps: GapTable) -> Facts:
    """Return the facts, with those from the indexes of segments before a gap."""
    behind = np.flatnonzero((gaps.kind == GapPlace.SEGMENTS) & (gaps.damaged == 0))
    if not len(behind):
        return known
    try:
        found = opening.open_partition(files.path_of(log_dir) / directory)
    except UnreadableError:
        return known  # it was removed after the pass over its bytes
    ends = zip(
        gaps.before_segment[behind].tolist(), gaps.first_offset[behind].tolist(), strict=True
    )
    segments = [
        Coverage(base, last=EdgeBatch(offset=end - 1, epoch=-1, timestamp=-1, position=-1))
        for base, end in ends
    ]
    return indexed(PartitionToRead(found, known), segments)
