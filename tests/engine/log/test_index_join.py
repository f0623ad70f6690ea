"""The join of an index with the log: the same however the log comes, and quick for any index."""

from dataclasses import replace

import numpy as np
import pytest
from calls import calls_of
from hypothesis import given
from hypothesis import strategies as st

from logtool.formats import compression, offset_index, record_batch, time_index
from logtool.formats.record_batch import HEADER, BatchTable
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.index_join import EntryState, OffsetIndexJoin, TimeIndexJoin

SIZE = 100
BASE = 5000


def log(lengths: list[int], stamps: list[int]) -> BatchTable:
    """Return batches of 100 bytes that hold so many offsets each."""
    headers = np.zeros(len(lengths), HEADER)
    headers["base_offset"] = BASE + np.concatenate(([0], np.cumsum(lengths)[:-1]))
    headers["last_offset_delta"] = np.array(lengths) - 1
    headers["batch_length"] = SIZE - record_batch.LOG_OVERHEAD
    headers["magic"], headers["max_timestamp"] = 2, stamps
    headers["record_count"] = lengths
    return record_batch.from_headers(headers, np.arange(len(lengths), dtype=np.int64) * SIZE)


def chunk(table: BatchTable) -> Chunk:
    return Chunk(table, memoryview(b""), int(table.position[0]), None, [])


def verdicts_of(join: OffsetIndexJoin | TimeIndexJoin) -> list[int]:
    """Return the verdicts of a join that was given the whole log."""
    join.finish()
    verdicts: list[int] = join.verdicts.tolist()
    return verdicts


def offset_entries(rows: list[tuple[int, int]]) -> offset_index.OffsetIndex:
    return offset_index.parse(np.array(rows, offset_index.ENTRY).tobytes())


def time_entries(rows: list[tuple[int, int]]) -> time_index.TimeIndex:
    return time_index.parse(np.array(rows, time_index.ENTRY).tobytes())


def slow_offset_verdict(table: BatchTable, rows: list[tuple[int, int]], number: int) -> EntryState:
    """Return the verdict by the words of the rule, entry by entry."""
    relative, position = rows[number]
    offset = BASE + relative
    hit = np.flatnonzero(table.position == position)
    if not len(hit):
        beyond = position >= table.end_position[-1]
        return EntryState.UNKNOWN if beyond else EntryState.NO_BATCH
    row = int(hit[0])
    before = int(table.last_offset[row - 1]) if row else -1
    following = rows[number + 1][1] if number + 1 < len(rows) else None
    last_in_reach = int(table.last_offset[-1])
    if following is not None:
        until = np.flatnonzero(table.position == following)
        if len(until):
            last_in_reach = int(table.last_offset[until[0] - 1])
    reach = max(last_in_reach, int(table.last_offset[row]))
    right = before < offset and int(table.base_offset[row]) <= offset <= reach
    return EntryState.RIGHT if right else EntryState.OFFSET


shapes = st.lists(st.integers(1, 4), min_size=2, max_size=12)


@given(shapes, st.data())
def test_offset_verdicts_are_those_of_the_rule(lengths, data):
    table = log(lengths, [1000] * len(lengths))
    total = sum(lengths)
    positions = data.draw(
        st.lists(st.integers(1, len(lengths) + 1), unique=True, max_size=6).map(sorted)
    )
    odd = data.draw(st.sampled_from([0, 0, 0, 7]))
    rows = [(data.draw(st.integers(1, total + 2)), at * SIZE + odd) for at in positions]
    join = OffsetIndexJoin(offset_entries(rows), BASE)
    join.feed(chunk(table))
    expected = [slow_offset_verdict(table, rows, number) for number in range(len(rows))]
    verdicts = verdicts_of(join)
    # Where the next entry points at no batch, how far this one reaches is anybody's guess.
    sure = [
        number for number in range(len(rows))
        if number + 1 == len(rows) or expected[number + 1] in (EntryState.RIGHT, EntryState.OFFSET)
    ]  # fmt: skip
    assert [verdicts[n] for n in sure] == [expected[n] for n in sure]


@given(shapes, st.data())
def test_verdicts_do_not_depend_on_the_chunks(lengths, data):
    stamps = data.draw(
        st.lists(st.integers(1000, 1010), min_size=len(lengths), max_size=len(lengths))
    )
    table = log(lengths, stamps)
    total = sum(lengths)
    offsets = [
        (data.draw(st.integers(0, total + 2)), at * SIZE)
        for at in range(1, len(lengths), 2)
    ]  # fmt: skip
    times = [
        (data.draw(st.integers(1000, 1012)), data.draw(st.integers(0, total + 2)))
        for _ in range(3)
    ]  # fmt: skip
    cut = data.draw(st.integers(1, len(lengths) - 1))
    results = []
    for parts in ([table], [table[:cut], table[cut:]]):
        by_offset = OffsetIndexJoin(offset_entries(offsets), BASE)
        by_time = TimeIndexJoin(time_entries(times), BASE)
        for part in parts:
            by_offset.feed(chunk(part))
            by_time.feed(chunk(part))
        results.append((verdicts_of(by_offset), verdicts_of(by_time)))
    assert results[0] == results[1]


def test_a_time_entry_is_held_against_all_before_it():
    table = log([2, 2, 2], [10, 30, 20])
    rows = [(10, 1), (30, 3), (20, 5), (30, 5), (40, 7)]
    join = TimeIndexJoin(time_entries(rows), BASE)
    join.feed(chunk(table))
    assert verdicts_of(join) == [
        EntryState.RIGHT, EntryState.RIGHT, EntryState.LATER, EntryState.TIMESTAMP,
        EntryState.NO_BATCH,
    ]  # fmt: skip
    assert join.max_timestamp == 30


def test_an_empty_batch_need_not_be_in_the_time_index():
    table = log([2, 2, 2], [10, 30, 20])
    table.record_count[1] = 0
    join = TimeIndexJoin(time_entries([(10, 1), (20, 5)]), BASE)
    join.feed(chunk(table))
    assert verdicts_of(join) == [EntryState.RIGHT, EntryState.RIGHT]
    assert join.max_timestamp == 20


def test_an_entry_may_name_any_offset_that_a_wrapper_may_hold():
    table = log([3, 3, 3], [10, 10, 10])
    table.magic[:], table.attributes[:], table.record_count[:] = 1, compression.GZIP, -1
    table.base_offset[:] = table.last_offset
    for relative, verdict in ((2, EntryState.OFFSET), (3, EntryState.RIGHT), (5, EntryState.RIGHT)):
        join = OffsetIndexJoin(offset_entries([(relative, SIZE), (8, 2 * SIZE)]), BASE)
        join.feed(chunk(table))
        assert verdicts_of(join) == [verdict, EntryState.RIGHT]


def test_an_entry_in_damage_is_not_judged():
    table = log([1] * 6, [10] * 6)
    join = OffsetIndexJoin(offset_entries([(1, SIZE), (2, 2 * SIZE), (4, 4 * SIZE + 1)]), BASE)
    join.feed(chunk(table[:2]))
    damage = Damage(2 * SIZE, SIZE, DamageReason.CRC, "broken", resynchronised=True)
    join.feed(Chunk(table[:0], memoryview(b""), 2 * SIZE, damage, []))
    join.feed(chunk(table[3:]))
    assert verdicts_of(join) == [EntryState.RIGHT, EntryState.UNKNOWN, EntryState.NO_BATCH]


def test_a_misplaced_batch_counts_as_damage():
    table = log([1] * 4, [10] * 4)
    table.base_offset[2] = table.last_offset[2] = BASE + 10**6
    join = OffsetIndexJoin(offset_entries([(1, SIZE), (2, 2 * SIZE), (3, 3 * SIZE)]), BASE)
    join.feed(replace(chunk(table), misplaced=np.array([False, False, True, False])))
    assert verdicts_of(join) == [EntryState.RIGHT, EntryState.UNKNOWN, EntryState.RIGHT]


@pytest.mark.parametrize("order", ["rising", "falling", "all the same"])
def test_a_large_index_in_any_order_is_joined_without_a_loop_over_entries(order):
    count = 200_000
    numbers = np.arange(1, count + 1)
    positions = {
        "rising": numbers, "falling": numbers[::-1], "all the same": np.full(count, 7),
    }[order] * SIZE  # fmt: skip
    rows = np.zeros(count, offset_index.ENTRY)
    rows["relative_offset"], rows["position"] = numbers, positions
    table = log([1] * (count + 1), [10] * (count + 1))

    def join() -> None:
        joined = OffsetIndexJoin(offset_index.parse(rows.tobytes()), BASE)
        for first in range(0, count + 1, 20_000):
            joined.feed(chunk(table[first : first + 20_000]))
        joined.finish()

    assert calls_of(join) < 10_000  # a loop over entries would make hundreds of thousands
