"""The records and bytes that a cleaning leaves, compared with a count record by record."""

from types import SimpleNamespace

import pytest

from logtool.cleaner import sizes
from logtool.log import opening, records
from logtool.running.workers import Pace

KEYS = "compacted.keys-0"
ALWAYS, EVER = -1, 2**62
"""Times before and after every delete horizon."""


def extent(partition, first=0):
    return SimpleNamespace(uncleanable_row=len(partition.segments) - 1, first_dirty_offset=first)


def measured(partition, first=0, now_ms=EVER):
    return sizes.measure(partition, extent(partition, first), now_ms, Pace())


def counted(partition, first, now_ms):
    """Return the records before and after a cleaning, and the tombstones that it deletes."""
    found, last = [], {}
    for segment in partition.segments[:-1]:
        for chunk in segment.batches():
            for table in records.records(chunk, (~chunk.table.is_control).nonzero()[0]):
                due = table.batches.has_delete_horizon & (table.batches.base_timestamp <= now_ms)
                is_due = table.of_batches(due)
                for row, offset in enumerate(table.offset.tolist()):
                    key, dead = table.key(row), table.value(row) is None and bool(is_due[row])
                    found.append((key, offset, dead))
                    if key is not None and offset >= first:
                        last[key] = offset
    left = [one for one in found if one[0] is not None and one[1] >= last.get(one[0], -1)]
    gone = sum(one[2] for one in left)
    return len(found), len(left) - gone, gone


@pytest.fixture
def partition(scenario, request):
    return opening.open_partition(scenario("4.3.1/clean") / request.param)


@pytest.mark.parametrize(
    "partition", [KEYS, "small-segments-0", "deleted-pending-0"], indirect=True
)
@pytest.mark.parametrize("now_ms", [ALWAYS, EVER])
def test_the_records_are_those_of_a_count_one_by_one(partition, now_ms):
    middle = partition.segments[len(partition.segments) // 2].base_offset
    for first in (0, middle, 10**9):
        found = measured(partition, first, now_ms)
        expected = counted(partition, first, now_ms)
        assert (found.records, found.records_after, found.tombstones_due) == expected
        assert found.is_exact
        assert found.bytes == sum(one.log.size for one in partition.segments[:-1])


@pytest.mark.parametrize("partition", [KEYS], indirect=True)
def test_what_stays_whole_keeps_its_bytes(partition):
    found = measured(partition, first=10**9, now_ms=ALWAYS)
    assert (found.records_after, found.bytes_after) == (found.records, found.bytes)
    part = measured(partition, now_ms=EVER)
    assert part.records_after < part.records
    assert part.bytes_after < part.bytes


@pytest.mark.parametrize("partition", ["tx.mixed-0"], indirect=True)
def test_records_of_aborted_transactions_go(partition):
    found = measured(partition, first=10**9)
    keyed = counted(partition, 10**9, EVER)[1]
    assert found.records_after < keyed


@pytest.mark.parametrize("partition", [KEYS], indirect=True)
def test_keys_that_take_too_much_memory_give_an_estimate(partition, monkeypatch):
    exact = measured(partition)
    monkeypatch.setattr(sizes._LastOffsets, "is_full", property(lambda self: len(self) > 150))
    about = measured(partition)
    assert not about.is_exact
    assert about.records == exact.records
    assert about.records_after == pytest.approx(exact.records_after, rel=0.2)
