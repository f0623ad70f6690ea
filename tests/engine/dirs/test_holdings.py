"""Batches that other copies have, for any stretches in which they are read."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logtool.copies.batches import COLUMNS, CopyBatches
from logtool.dirs.holdings import CoveredRange, Holdings

Row = tuple[int, int, int]
"""First offset, offsets and CRC of a batch."""


def table(rows: list[Row]) -> CopyBatches:
    columns = {name: np.zeros(len(rows), np.int64) for name in COLUMNS}
    for at, (base, count, crc) in enumerate(rows):
        columns["base_offset"][at], columns["last_offset"][at] = base, base + count - 1
        columns["crc"][at] = crc
    return CopyBatches(*(columns[name] for name in COLUMNS))


@st.composite
def logs(draw: st.DrawFn) -> list[list[Row]]:
    """Draw the batches of a copy and of up to three others, from one history with gaps."""
    history: list[Row] = []
    base = 0
    for count, gap in draw(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=14)):
        history.append((base + gap, count, 0))
        base += gap + count
    found = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = draw(
            st.lists(st.sampled_from("hhhgr"), min_size=len(history), max_size=len(history))
        )
        rows = [(*row[:2], int(kind == "r")) for row, kind in zip(history, kinds, strict=True)
                if kind != "g"]  # fmt: skip
        found.append(rows)
    return found


def expected(own: list[Row], others: list[list[Row]], chosen: list[int]) -> list[CoveredRange]:
    """Return the spans of the rows of a copy with these numbers."""
    spans: list[CoveredRange] = []
    for at in chosen:
        base, count, _ = own[at]
        if spans and spans[-1].rows.stop == at:
            begin = spans.pop()
            rows, first = slice(begin.rows.start, at + 1), begin.first
        else:
            rows, first = slice(at, at + 1), base
        last = base + count - 1
        inside = tuple(any(b <= last and b + n > first for b, n, _ in rows_) for rows_ in others)
        spans.append(CoveredRange(rows, first, last, inside))
    return spans


@given(logs(), st.lists(st.integers(0, 60), max_size=6))
def test_it_is_what_all_batches_at_once_show(rows: list[list[Row]], cuts: list[int]) -> None:
    own, *others = rows
    holdings = Holdings(len(others))
    # No batch of the history goes on behind the first offset of another one.
    starts = {base for copy in rows for base, _, _ in copy}
    bounds = [0, *sorted(starts & set(cuts)), 1000]
    for first, end in pairwise(bounds):
        parts = [table([row for row in copy if first <= row[0] < end]) for copy in rows]
        holdings.add(parts[0], parts[1:])
    left = list(range(len(own)))
    for number, other in enumerate(others):
        has = [at for at in left if own[at] in other]
        assert holdings.taken_by(number) == expected(own, others, has)
        left = [at for at in left if at not in has]
    assert holdings.left() == expected(own, others, left)
