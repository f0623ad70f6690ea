"""Two threads that walk over the halves of a log find what one finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import kernels, record, record_batch
from logtool.log.walk import halves
from logtool.log.walk.halves import Halves

BASE = 5_000
"""Where the bytes stand in the file."""


def batch(offset: int, size: int) -> bytes:
    return record_batch.encode(
        record.encode([record.Record(0, 0, b"key", bytes(size))]),
        base_offset=offset, last_offset_delta=0, record_count=1, max_timestamp=1,
    )  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halves, "LEAST", 100)
        yield


def test_the_second_half_is_walked_by_another_thread(monkeypatch):
    begun = []
    parts = [batch(i, 100) for i in range(40)]
    ends = np.cumsum([0, *map(len, parts)])
    rows, same = (np.zeros((kernels.BATCH_COLUMNS, 100), np.int64) for _ in range(2))
    data = memoryview(b"".join(parts))
    both = Halves(BASE + ends[:-1:5])
    begin = both._beside.begin
    monkeypatch.setattr(both._beside, "begin", lambda work: begun.append(begin(work)))
    assert both.walk(data, 0, len(data), BASE, rows, 0) == (40, len(data), kernels.MORE)
    both.close()
    assert kernels.walk_batches(data, 0, len(data), BASE, same, 0)[0] == 40
    assert (rows[:, :40] == same[:, :40]).all()
    assert len(begun) == 1


def test_behind_damage_one_thread_goes_on(monkeypatch):
    """Else each of many damages would have the other thread read megabytes in vain."""
    parts = [batch(i, 100) for i in range(40)]
    ends = np.cumsum([0, *map(len, parts)])
    data = bytearray(b"".join(parts))
    data[ends[3] - 1] ^= 1
    rows = np.zeros((kernels.BATCH_COLUMNS, 100), np.int64)
    both, view = Halves(BASE + ends[:-1]), memoryview(data)
    assert both.walk(view, 0, len(data), BASE, rows, 0) == (2, ends[2], kernels.BAD_CRC)
    monkeypatch.setattr(both._beside, "begin", None)  # whoever calls it fails
    assert both.walk(view, ends[3], len(data), BASE, rows, 2) == (37, len(data), kernels.MORE)
    both.close()


@st.composite
def walks(draw):
    """Draw the bytes of a log, sound or damaged, where it may be cut, and rooms for rows."""
    parts = [
        batch(i, size) for i, size in enumerate(draw(st.lists(st.integers(0, 400), min_size=1)))
    ]
    ends = np.cumsum([0, *map(len, parts)])
    data = bytearray(b"".join(parts))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=2)):
        data[at] ^= 1
    cuts = draw(st.lists(st.one_of(st.sampled_from(ends.tolist()), st.integers(0, len(data)))))
    rooms = draw(st.lists(st.integers(1, 40), min_size=1))
    return bytes(data), np.array(sorted(cuts), np.int64), rooms


@given(walks(), st.integers(0, 3))
def test_both_find_what_one_finds(drawn, taken):
    data, cuts, rooms = drawn
    view, both, at = memoryview(data), Halves(BASE + cuts), 0
    try:
        for room in rooms:
            rows, same = (
                np.full((kernels.BATCH_COLUMNS, taken + room), -5, np.int64) for _ in range(2)
            )
            one = kernels.walk_batches(view, at, len(view), BASE, same, taken)
            found, stop, why = both.walk(view, at, len(view), BASE, rows, taken)
            if why == kernels.FULL and found < one[0]:
                # The second half had more batches than half of the room.
                assert stop == rows[:2, taken + found - 1].sum() - BASE
            else:
                assert (found, stop, why) == one
            assert (rows[:, : taken + found] == same[:, : taken + found]).all()
            at = stop
    finally:
        both.close()
