"""Misplaced batches of a log: by the text of the rule, and in every chunk of a scan."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.disk.files import LogFile
from logtool.formats import record, record_batch
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import BatchTable
from logtool.log.batches import read_batches
from logtool.log.order import BatchOrder
from logtool.log.walk import scanner

BASE = 1000
FAR = BASE + MAX_RELATIVE_OFFSET
Row = tuple[int, int, int, int]
"""Base offset, last offset, magic, and the type of Redpanda, -1 for a batch of Kafka."""


def table_of(rows: list[Row]) -> BatchTable:
    """Return a table in which nothing but these columns has a meaning."""
    columns = {field.name: np.zeros(len(rows), np.int64) for field in fields(BatchTable)}
    names = "base_offset", "last_offset", "magic", "batch_type"
    columns |= dict(zip(names, np.array(rows, np.int64).T, strict=True))
    return BatchTable(**columns)


def by_the_words(rows: list[Row], highest: int) -> tuple[list[bool], int]:
    """Return which batches are misplaced, and the highest offset up to the last of them."""
    outside = [
        (first < BASE and magic == 2) or (last > FAR and kind < 0)
        for first, last, magic, kind in rows
    ]
    misplaced = []
    for at, (first, last, *_) in enumerate(rows):
        following = rows[at + 1][0] if at + 1 < len(rows) and not outside[at + 1] else None
        is_ahead = following is not None and highest < following < first
        misplaced.append(outside[at] or is_ahead)
        if not misplaced[-1]:
            highest = max(highest, last)
    return misplaced, highest


usual = st.tuples(st.integers(0, 40), st.sampled_from([0, 0, 0, 2, -1]))
odd = st.tuples(st.sampled_from([-1, -BASE, FAR - BASE, FAR - BASE + 1, 2**40]), st.just(0))
magics, types = st.sampled_from([2, 2, 2, 1]), st.sampled_from([-1, 1])
rows_drawn = st.lists(
    st.tuples(st.one_of(usual, usual, odd), magics, types), min_size=1, max_size=8
)


@given(st.lists(st.tuples(rows_drawn, st.booleans()), min_size=1, max_size=3))
def test_misplaced_batches_are_those_of_the_rule(chunks):
    order, highest = BatchOrder(BASE), BASE - 1
    for drawn, is_sorted in chunks:
        spans = sorted(drawn) if is_sorted else drawn
        rows = [(BASE + at, BASE + at + more, magic, kind) for (at, more), magic, kind in spans]
        expected, highest = by_the_words(rows, highest)
        found = order.misplaced(table_of(rows), None)
        assert (found.tolist() if found is not None else None) == (
            expected if any(expected) else None
        )


def batch(offset: int, size: int = 10) -> bytes:
    return record_batch.encode(
        record.encode([record.Record(0, 0, b"key", bytes(size))]),
        base_offset=offset, last_offset_delta=0, record_count=1, max_timestamp=1,
    )  # fmt: skip


@pytest.mark.parametrize("payload", [True, False])
def test_every_chunk_of_a_scan_says_which_of_its_batches_are_misplaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, payload: bool
) -> None:
    monkeypatch.setattr(scanner, "LARGEST_BUFFERED_BATCH", 4000)
    monkeypatch.setattr(scanner, "BUFFER_SIZE", 4000)
    offsets = [1000, 1001, 5000, 1002, 999, 1003]
    behind = [1004, FAR + 1, 1006]
    path = tmp_path / "0.log"
    path.write_bytes(
        b"".join(map(batch, offsets)) + bytes(100) + b"".join(batch(at, 5000) for at in behind)
    )
    found, damages = {}, 0
    with LogFile(path) as log:
        for chunk in read_batches(log, base_offset=BASE, payload=payload):
            damages += chunk.damage is not None
            mask = [False] * len(chunk.table) if chunk.misplaced is None else chunk.misplaced
            found |= dict(zip(chunk.table.base_offset.tolist(), map(bool, mask), strict=True))
    assert damages == 1
    assert [at for at, is_misplaced in found.items() if is_misplaced] == [5000, 999, FAR + 1]
    assert list(found) == [*offsets, *behind]
