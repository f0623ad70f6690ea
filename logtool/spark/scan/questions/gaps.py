"""Missing offsets of one partition: the gaps inside its stretches, and those between them.

As `logtool gaps` tells them at ``--level batches``, from the log start on, but for two kinds: holes
inside a batch, which only decoding can list, and an end that cannot be told. A partition with a
segment that could not be read has no rows, as it has no ledger there. Reasons come from the same
function, `logtool.gaps.evidence.decide`.

What may differ from the local command: whether a batch lacks records which a log start, or an
overlap, cuts in two. There it decodes the batch, here its header counts. That can only be told
apart in a partition where nothing else is compacted and no policy is known.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from logtool.checks.compaction import Traces
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.record_batch import Column
from logtool.gaps import table as gap_table
from logtool.gaps.coverage import Coverage, EdgeBatch
from logtool.gaps.evidence import Facts, GapCauses, decide
from logtool.gaps.partition_facts import PartitionToRead, indexed
from logtool.gaps.table import GapPlace, GapTable
from logtool.lazy_dataclass import dataclass
from logtool.log import opening

Stretch = tuple[Mapping[str, Any], Column]
"""What `gap_rows` tells of a stretch: its edges by the names of `gap_rows.EDGES`, and the gaps
inside as an int64 array of three rows: first offset, last offset, and whether it is damaged."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A stretch, and what is known of those before it."""

    edge: Mapping[str, Any]
    inner: Column
    floor: int
    """Offsets below were there before, or lie below the log start."""
    counts: bool
    """Whether any batch reaches the floor."""
    damaged_before: bool
    """Whether damage lies behind the last batch before that counts."""
    before_segment: int
    """Segment of that batch; -1: there is none."""

    @property
    def kind(self) -> GapPlace:
        """Return the kind of a gap in front of it."""
        if self.before_segment < 0:
            return GapPlace.HEAD
        return (
            GapPlace.BATCHES if self.before_segment == self.edge["segment"] else GapPlace.SEGMENTS
        )


def gaps_of(
    stretches: Sequence[Stretch], facts: Facts, log_dir: str, directory: str
) -> tuple[GapTable, Sequence[GapCauses], Column]:
    """Return the gaps of a partition, the verdicts, and for each gap which of them is its own.

    `stretches` are in the order of the log. The indexes of segments that a gap follows are looked
    at where they lie.
    """
    known = _known(stretches, facts.log_start)
    found = [_before(one) for one in known[:-1] if one.counts]
    found += [_before(one) for one in known[-1:]]
    found += [_inside(one) for one in known if one.counts and one.inner.shape[1]]
    gaps = gap_table.concat([one for one in found if one is not None])
    if not len(gaps):
        return gaps, [], np.empty(0, np.int64)
    inner = (gaps.kind == GapPlace.BATCHES) & (gaps.damaged == 0)
    traces = Traces(
        horizons=sum(_reaches(one, "last_horizon") for one in known),
        with_holes=sum(_reaches(one, "last_hole") for one in known),
        inner_gaps=int(inner.sum()),
    )
    return gaps, *decide(gaps, _with_indexes(facts, log_dir, directory, gaps), traces)


def _known(stretches: Sequence[Stretch], log_start: int) -> list[_Known]:
    """Return the stretches that lie above the log start; none of a log that was not read whole."""
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
    """Return the facts with what the indexes name of segments that a gap follows."""
    behind = np.flatnonzero((gaps.kind == GapPlace.SEGMENTS) & (gaps.damaged == 0))
    if not len(behind):
        return known
    try:
        found = opening.open_partition(files.path_of(log_dir) / directory)
    except UnreadableError:
        return known  # it went after the pass over its bytes
    ends = zip(
        gaps.before_segment[behind].tolist(), gaps.first_offset[behind].tolist(), strict=True
    )
    segments = [
        Coverage(base, last=EdgeBatch(offset=end - 1, epoch=-1, timestamp=-1, position=-1))
        for base, end in ends
    ]
    return indexed(PartitionToRead(found, known), segments)
