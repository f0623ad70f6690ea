"""All segments of one partition together: every missing offset with its reason."""

from collections.abc import Iterator, Sequence

import numpy as np

from logtool.checks.compaction import Traces
from logtool.formats.record_batch import Column
from logtool.gaps import table as gap_table
from logtool.gaps.coverage import Coverage
from logtool.gaps.evidence import Facts, GapCauses, decide
from logtool.gaps.table import GapPlace, GapReason, GapTable
from logtool.lazy_dataclass import dataclass
from logtool.log.damage import DamageReason as DamageReason
from logtool.log.producer_state import ProducerState

_NO_MARKERS = np.empty((3, 0), np.int64)
_TORN = (DamageReason.INCOMPLETE, DamageReason.ZEROS)


@dataclass(frozen=True, slots=True)
class ReasonCounts:
    """Gaps and missing offsets with one reason."""

    gaps: int = 0
    offsets: int = 0

    def __add__(self, other: "ReasonCounts") -> "ReasonCounts":
        """Return the sums of both."""
        return ReasonCounts(self.gaps + other.gaps, self.offsets + other.offsets)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Present and missing offsets, from the log start to the log end."""

    log_start: int
    log_end: int
    """Offset after the last batch, or the base offset of an empty segment after it."""
    reached: int
    """The log end, or the offset that the log is proved to have reached if that is larger."""
    last_offset: int
    """Last offset of the last batch; without a batch the offset before the log start."""
    gaps: GapTable
    """Gaps by offset, with the one below the log start."""
    verdicts: tuple[GapCauses, ...]
    verdict: Column
    """Number of the verdict of each gap in `verdicts`."""
    visible: int
    """Number of records that a `read_uncommitted` consumer gets."""
    control: int
    """Number of records of control batches."""
    aborted: int
    """Number of `visible` records that a `read_committed` consumer does not get."""
    first_visible: int | None
    last_visible: int | None
    batches: int
    damages: int
    overlaps: int
    legacy: int

    @property
    def offsets(self) -> int:
        """Return the number of offsets that the log had: visible, control and missing."""
        return self.reached - self.log_start

    def reasons(self) -> dict[GapReason, ReasonCounts]:
        """Return the numbers of gaps and of missing offsets for each reason."""
        counts: dict[GapReason, ReasonCounts] = {}
        if not len(self.verdict):
            return counts
        for number, verdict in enumerate(self.verdicts):
            of_verdict = self.verdict == number
            missing = int(self.gaps.missing[of_verdict].sum())
            found = ReasonCounts(int(of_verdict.sum()), missing)
            if found.gaps:
                counts[verdict.reason] = counts.get(verdict.reason, ReasonCounts()) + found
        return counts

    def having(self, reasons: Sequence[GapReason]) -> Column:
        """Return a mask of the gaps that have one of the reasons."""
        if not len(self.verdict):
            return np.zeros(0, np.bool_)
        numbers = [n for n, verdict in enumerate(self.verdicts) if verdict.reason in reasons]
        chosen: Column = np.isin(self.verdict, numbers)
        return chosen

    @property
    def missing(self) -> int:
        """Return the number of offsets from the log start on that are not on disk."""
        return sum(one.offsets for reason, one in self.reasons().items() if reason.is_missing)

    @property
    def losses(self) -> int:
        """Return the number of gaps that may mean loss."""
        return sum(one.gaps for reason, one in self.reasons().items() if reason.is_loss)


def build(segments: Sequence[Coverage], facts: Facts, *, isolation: bool = False) -> Ledger:
    """Return the ledger of segments that were read from `facts.log_start` on.

    With `isolation` it also lists the offsets of markers and of aborted records.
    """
    gaps, batches_end, log_end = _joined(segments, facts)
    cleaned = facts.cleaning.offset or 0
    behind = [one for one in segments if one.last and one.last.offset >= cleaned]
    verdicts, chosen = decide(gaps, facts, _traces(segments), _traces(behind))
    aborted = _aborted(segments)
    parts, numbers = [gaps], [chosen]
    for more, verdict in _not_missing(segments, facts, aborted if isolation else None):
        parts.append(more)
        numbers.append(np.full(len(more), len(verdicts)))
        verdicts.append(verdict)
    every, which = gap_table.concat(parts), np.concatenate(numbers)
    order = np.argsort(every.first_offset, kind="stable")
    seen = [coverage for coverage in segments if coverage.first_visible is not None]
    control = sum(coverage.control for coverage in segments)
    return Ledger(
        log_start=facts.log_start,
        log_end=log_end,
        reached=max(log_end, facts.lost_end[0]) if facts.lost_end else log_end,
        last_offset=batches_end - 1,
        gaps=every[order],
        verdicts=tuple(verdicts),
        verdict=which[order],
        visible=sum(coverage.records for coverage in segments) - control,
        control=control,
        aborted=int(aborted[3].sum()),
        first_visible=seen[0].first_visible if seen else None,
        last_visible=seen[-1].last_visible if seen else None,
        batches=sum(coverage.batches for coverage in segments),
        damages=sum(coverage.damages for coverage in segments),
        overlaps=sum(coverage.overlaps for coverage in segments),
        legacy=sum(coverage.legacy for coverage in segments),
    )


def _traces(segments: Sequence[Coverage]) -> Traces:
    """Return the traces of compaction in the batches of segments."""
    tables = (one.gaps for one in segments)
    inner = (((table.kind == GapPlace.BATCHES) & (table.damaged == 0)).sum() for table in tables)
    return Traces(
        sum(coverage.horizons for coverage in segments),
        sum(coverage.with_holes for coverage in segments),
        int(sum(inner)),
    )


def unbroken(facts: Facts, log_end: int, batches: int) -> Ledger:
    """Return the ledger of a log that has a record at each offset from its log start to its end."""
    start = facts.log_start
    below = list(_not_missing((), facts, None))
    gaps = below[0][0] if below else gap_table.empty()
    return Ledger(
        log_start=start,
        log_end=log_end,
        reached=log_end,
        last_offset=log_end - 1,
        gaps=gaps,
        verdicts=tuple(verdict for _, verdict in below),
        verdict=np.zeros(len(gaps), np.int64),
        visible=log_end - start,
        control=0,
        aborted=0,
        first_visible=start if batches else None,
        last_visible=log_end - 1 if batches else None,
        batches=batches,
        damages=0,
        overlaps=0,
        legacy=0,
    )


def _not_missing(
    segments: Sequence[Coverage], facts: Facts, aborted: Column | None
) -> Iterator[tuple[GapTable, GapCauses]]:
    """Yield gaps that never count as missing: below the start; with `aborted` invisible offsets."""
    if facts.log_start > 0:
        below = gap_table.make(
            1, first_offset=0, last_offset=facts.log_start - 1, kind=GapPlace.HEAD
        )
        text = f"the log starts at {facts.log_start}"
        if facts.log_start > facts.first_base:
            text += ", inside its first segment: DeleteRecords"
        else:
            text += ": retention or DeleteRecords"
        yield below, GapCauses(GapReason.RETENTION, text)
    if aborted is None:
        return
    markers = np.concatenate([_NO_MARKERS, *(coverage.markers for coverage in segments)], axis=1)
    first, last, position = markers
    yield (
        _inside(first, last, position),
        GapCauses(GapReason.CONTROL, "consumers do not get transaction markers"),
    )
    text = "read_committed consumers do not get the records of aborted transactions"
    _, first, last, count, position = aborted
    yield _inside(first, last, position, count), GapCauses(GapReason.ABORTED, text)


def _joined(segments: Sequence[Coverage], facts: Facts) -> tuple[GapTable, int, int]:
    """Return the gaps in and between segments, the offset after all batches, and the log end."""
    parts: list[GapTable] = []
    end, last, damaged = facts.log_start, None, False
    for coverage in segments:
        if coverage.first is None:
            damaged |= coverage.damages > 0
            continue
        if coverage.first.offset > end:
            parts.append(_behind(last, coverage, end, damaged=damaged or coverage.damaged_head))
        parts.append(coverage.gaps)
        end = max(end, coverage.last.offset + 1) if coverage.last else end
        last, damaged = coverage, coverage.tail is not None
    log_end = max(end, segments[-1].base_offset) if segments else end
    if log_end > end:
        kind, at = GapPlace.SEGMENTS if last else GapPlace.HEAD, segments[-1].base_offset
        parts.append(_at_end(kind, last, range(end, log_end), at, damaged=damaged))
        damaged = segments[-1].tail is not None
    base = segments[-1].base_offset if segments else -1
    # A kill leaves a torn batch at the end: no gap, unless a file shows that the log went on.
    is_torn = bool(segments) and segments[-1].tail in _TORN and not facts.cleaning.clean
    if facts.lost_end and facts.lost_end[0] > log_end:
        lost = range(log_end, facts.lost_end[0])
        parts.append(_at_end(GapPlace.LOST_END, last, lost, base, damaged=damaged))
    elif log_end == end and damaged and not is_torn:
        parts.append(_at_end(GapPlace.END, last, range(end, end), base, damaged=True))
    return gap_table.concat(parts), end, log_end


def _behind(last: Coverage | None, coverage: Coverage, end: int, *, damaged: bool) -> GapTable:
    """Return the gap from `end` up to the first batch of a segment."""
    first = coverage.first
    before = last.last if last else None
    return gap_table.make(
        1,
        first_offset=end,
        last_offset=first.offset - 1 if first else end,
        kind=GapPlace.SEGMENTS if last else GapPlace.HEAD,
        before_segment=last.base_offset if last else -1,
        after_segment=coverage.base_offset,
        position=first.position if first else -1,
        epoch=first.epoch if first else -1,
        before_epoch=before.epoch if before else -1,
        before_ms=before.timestamp if before else -1,
        after_ms=first.timestamp if first else -1,
        damaged=int(damaged),
    )


def _at_end(
    kind: GapPlace, last: Coverage | None, missing: range, after: int, *, damaged: bool
) -> GapTable:
    """Return the gap after the last batch; it has no epoch, as no batch follows.

    An empty range stands for an end that is not known.
    """
    before = last.last if last else None
    return gap_table.make(
        1,
        first_offset=missing.start,
        last_offset=missing.stop - 1 if missing else -1,
        missing=len(missing),
        kind=kind,
        before_segment=last.base_offset if last else -1,
        after_segment=after,
        before_epoch=before.epoch if before else -1,
        before_ms=before.timestamp if before else -1,
        damaged=int(damaged),
    )


def _inside(
    first: Column, last: Column, position: Column, missing: Column | None = None
) -> GapTable:
    return gap_table.make(
        len(first),
        first_offset=first,
        last_offset=last,
        kind=GapPlace.RECORDS,
        position=position,
        missing=last - first + 1 if missing is None else missing,
    )


def _aborted(segments: Sequence[Coverage]) -> Column:
    """Return the columns of `Coverage.transactional` for the batches of aborted transactions."""
    batches = np.concatenate(
        [coverage.transactional for coverage in segments] or [np.empty((5, 0), np.int64)], axis=1
    )
    state = ProducerState()
    chosen = np.zeros(batches.shape[1], np.bool_)
    for coverage in segments:
        for transaction in state.apply(coverage.producer_rows)[0]:
            # Offsets rise from batch to batch: the batches of the transaction are in one range.
            span = slice(
                *np.searchsorted(
                    batches[1], (transaction.first_offset, transaction.last_offset + 1)
                )
            )
            chosen[span] |= batches[0, span] == transaction.producer_id
    return batches[:, chosen]
