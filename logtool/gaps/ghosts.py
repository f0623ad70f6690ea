"""Ghosts: batches without records that would fill the gaps of a log.

By the rule of the RFC, a gap has one ghost with the epoch of the batch after it. That epoch is
always known, as no gap after the last batch is filled. By the other rule, the epochs come from
leader-epoch-checkpoint, and a gap is split where its epoch changes; that needs a checkpoint that
agrees with the batches on both sides.
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
"""Largest number of offsets of a ghost, so that the number fits in a signed 32-bit integer."""
RFC_OVERHEAD = 57
"""Size of a ghost by the RFC in bytes, which leaves out the checksum of the header."""


@dataclass(frozen=True, slots=True)
class Ghosts:
    """Ghosts by offset, int64 columns of one length."""

    first_offset: Column
    last_offset: Column
    epoch: Column
    following_epoch: Column
    """Leader epoch of the batch after the gap: the rule of the RFC."""
    exact: Column
    """1 where `epoch` comes from leader-epoch-checkpoint."""
    gap: Column
    """Row of the gap in its table."""

    def __len__(self) -> int:
        return len(self.first_offset)

    def __getitem__(self, which: Column) -> "Ghosts":
        """Return the ghosts that a mask selects."""
        return Ghosts(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def bytes(self) -> int:
        """Return their size in a log of magic 2, in bytes."""
        return len(self) * HEADER_SIZE

    @property
    def rfc_bytes(self) -> int:
        """Return their size by the RFC, in bytes."""
        return len(self) * RFC_OVERHEAD


MOST_FILLED = MOST_OFFSETS << 10
"""Offsets of a gap that is filled: one with more is due to an offset that is damaged."""
_NONE = Ghosts(*(np.zeros(0, np.int64) for _ in fields(Ghosts)))


def of(ledger: Ledger, facts: Facts, *, following: bool = False) -> Ghosts:
    """Return the ghosts of a partition; `gap` numbers the rows of its ledger.

    With `following`, the epoch is always that of the batch after the gap.
    """
    gaps = ledger.gaps
    if not len(gaps):
        return _NONE
    wanted = (gaps.kind <= GapPlace.SEGMENTS) & (gaps.position >= 0)
    wanted &= gaps.last_offset - gaps.first_offset < MOST_FILLED
    rows = np.flatnonzero(wanted & ~ledger.having([GapReason.RETENTION, GapReason.REMOTE]))
    filled = fill(gaps[rows], Facts() if following else facts)
    return replace(filled, gap=rows[filled.gap])


def harmless(ghosts: Ghosts, ledger: Ledger) -> Ghosts:
    """Return the ghosts without those that fill gaps which may mean loss."""
    losses = ledger.having([reason for reason in GapReason if reason.is_loss])
    return ghosts[~losses[ghosts.gap]]


def none(ghosts: Ghosts) -> Ghosts:
    """Return no ghosts, as on a follower's disk: it counts ghosts but does not store them."""
    return ghosts[np.zeros(len(ghosts), np.bool_)]


def fill(gaps: GapTable, facts: Facts) -> Ghosts:
    """Return the ghosts that fill gaps between batches, one or more for each gap."""
    starts = np.array([start for _, start in facts.epochs], np.int64)
    epochs = np.array([epoch for epoch, _ in facts.epochs], np.int64)
    first, last, following = gaps.first_offset, gaps.last_offset, gaps.epoch
    of_first, of_last, of_next = (
        np.searchsorted(starts, offsets, "right") - 1 for offsets in (first, last, last + 1)
    )
    known = of_first >= 0
    if len(starts):
        # The checkpoint counts where it agrees with the batches on both sides.
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
    """Split a gap into parts (first, last) of one epoch each that are not too long."""
    edges = [first, *(start for _, start in facts.epochs if first < start <= last), last + 1]
    return [
        (start, min(start + MOST_OFFSETS, end) - 1)
        for begin, end in pairwise(edges)
        for start in range(begin, end, MOST_OFFSETS)
    ]


def encode(first_offset: int, last_offset: int, epoch: int) -> bytes:
    """Return a ghost as a batch of magic 2 without records.

    Kafka has no type for it. The nearest is the empty batch that its cleaner leaves, which every
    broker and client reads and skips. It has no producer and no time, so that it changes neither
    producer state nor time indexes nor retention.
    """
    return record_batch.encode(
        b"",
        base_offset=first_offset,
        last_offset_delta=last_offset - first_offset,
        record_count=0,
        leader_epoch=epoch,
    )
