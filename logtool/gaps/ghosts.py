"""Ghosts: batches without records that would fill the gaps of a log.

A gap gets the epoch of the batch that follows, which is always known, for behind the last batch
nothing is filled: that is the rule of the RFC, with one ghost for one gap. By the other rule, the
epochs are those that leader-epoch-checkpoint tells of the offsets in a gap, which is split where
they change; that needs a file that agrees with the batches on both sides.
"""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np

from logtool.formats import record_batch
from logtool.formats.record_batch import HEADER_SIZE, Column
from logtool.gaps.evidence import Facts, exact_epoch
from logtool.gaps.ledger import Ledger
from logtool.gaps.table import GapPlace, GapReason, GapTable
from logtool.lazy_dataclass import dataclass

MOST_OFFSETS = 2**31 - 1
"""Of one ghost: one more, and the number of its offsets would not fit in 32 bits."""
RFC_OVERHEAD = 57
"""Bytes of a ghost by the RFC, which left out the checksum of the header."""


@dataclass(frozen=True, slots=True)
class Ghosts:
    """Ghosts by offset, int64 columns of one length."""

    first_offset: Column
    last_offset: Column
    epoch: Column
    following_epoch: Column
    """Leader epoch of the batch behind the gap: the rule of the RFC."""
    exact: Column
    """1 where `epoch` is that of leader-epoch-checkpoint."""
    gap: Column
    """Row of the gap in the table given."""

    def __len__(self) -> int:
        return len(self.first_offset)

    def __getitem__(self, which: Column) -> "Ghosts":
        """Return the ghosts that a mask selects."""
        return Ghosts(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def bytes(self) -> int:
        """Return what they take in a log of magic 2."""
        return len(self) * HEADER_SIZE

    @property
    def rfc_bytes(self) -> int:
        """Return what they take by the RFC."""
        return len(self) * RFC_OVERHEAD


def of(ledger: Ledger, facts: Facts, *, following: bool = False) -> Ghosts:
    """Return the ghosts of a partition; `gap` numbers the rows of its ledger.

    With `following`, the epoch is always that of the batch behind the gap.
    """
    gaps = ledger.gaps
    wanted = (gaps.kind <= GapPlace.SEGMENTS) & (gaps.position >= 0)
    rows = np.flatnonzero(wanted & ~ledger.having([GapReason.RETENTION]))
    filled = fill(gaps[rows], Facts() if following else facts)
    return replace(filled, gap=rows[filled.gap])


def harmless(ghosts: Ghosts, ledger: Ledger) -> Ghosts:
    """Return those that fill no gap that may mean loss."""
    losses = ledger.having([reason for reason in GapReason if reason.is_loss])
    return ghosts[~losses[ghosts.gap]]


def none(ghosts: Ghosts) -> Ghosts:
    """Return no ghosts: what a follower has on disk, which counts them but does not store them."""
    return ghosts[np.zeros(len(ghosts), np.bool_)]


def fill(gaps: GapTable, facts: Facts) -> Ghosts:
    """Return the ghosts that fill gaps between batches, each by one or more."""
    starts = np.array([start for _, start in facts.epochs], np.int64)
    epochs = np.array([epoch for epoch, _ in facts.epochs], np.int64)
    first, last, following = gaps.first_offset, gaps.last_offset, gaps.epoch
    of_first, of_last, of_next = (
        np.searchsorted(starts, offsets, "right") - 1 for offsets in (first, last, last + 1)
    )
    known = of_first >= 0
    if len(starts):
        # The file is believed where it agrees with the batches on both sides.
        known &= (epochs[of_next] == following) & (epochs[of_first] >= gaps.before_epoch)
    exact = np.where(known, epochs[of_first], following) if len(starts) else following
    several = (known & (of_first != of_last)) | (last - first + 1 > MOST_OFFSETS)
    plain = np.flatnonzero(~several)
    rows = [(first[plain], last[plain], exact[plain], known[plain], plain)]
    for row in np.flatnonzero(several).tolist():
        cuts = _cuts(int(first[row]), int(last[row]), facts if known[row] else Facts())
        table = np.array(cuts, np.int64)
        of_cut = [exact_epoch(facts, start) if known[row] else following[row] for start, _ in cuts]
        rows.append(
            (*table.T, np.array(of_cut), np.full(len(cuts), known[row]), np.full(len(cuts), row))
        )
    columns = [np.concatenate(column).astype(np.int64) for column in zip(*rows, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    starts_at, ends_at, epoch, is_exact, gap = (column[order] for column in columns)
    return Ghosts(
        first_offset=starts_at,
        last_offset=ends_at,
        epoch=epoch,
        following_epoch=following[gap],
        exact=is_exact,
        gap=gap,
    )


def _cuts(first: int, last: int, facts: Facts) -> list[tuple[int, int]]:
    """Return (first, last) of the parts of a gap: none of two epochs, none too long."""
    edges = [first, *(start for _, start in facts.epochs if first < start <= last), last + 1]
    return [
        (start, min(start + MOST_OFFSETS, end) - 1)
        for begin, end in pairwise(edges)
        for start in range(begin, end, MOST_OFFSETS)
    ]


def encode(first_offset: int, last_offset: int, epoch: int) -> bytes:
    """Return a ghost as a batch of magic 2 without records.

    Kafka has no type for it. What its cleaner leaves of an emptied batch is the nearest that every
    broker and client reads and steps over. It names no producer and no time, so that neither
    producer state nor time indexes nor retention see it.
    """
    return record_batch.encode(
        b"",
        base_offset=first_offset,
        last_offset_delta=last_offset - first_offset,
        record_count=0,
        leader_epoch=epoch,
    )
