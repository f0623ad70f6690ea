"""Indexes that are built many batches at a time are those that a broker builds batch by batch."""

import struct
from dataclasses import fields, replace

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from logtool.formats.record_batch import BatchTable
from logtool.loading.index_building import IndexBuilder, InvalidOffsetError
from logtool.loading.kafka_reading import StartFailsError

BASE, SIZE = 20, 100

batches = st.lists(
    st.tuples(st.sampled_from([9, 9, -4]), st.sampled_from([-2, 0, 1, 2, 2, 3])),
    min_size=1,
    max_size=12,
)
"""(distance of the last offset from that of the batch before, largest timestamp) of each batch."""


def table_of(rows: list[tuple[int, int]], *, rising: bool) -> BatchTable:
    steps, stamps = np.array(rows, np.int64).T
    empty = BatchTable(*(np.zeros(len(rows), np.int64) for _ in fields(BatchTable)))
    return replace(
        empty,
        position=np.arange(len(rows)) * SIZE,
        last_offset=BASE + steps.cumsum(),
        max_timestamp=np.sort(stamps) if rising else stamps,
    )


def built(parts: list[BatchTable], interval: int, room: int, *, rising: bool) -> object:
    """Return both indexes, or what ends the recovery, and at which batch."""
    indexes = IndexBuilder(BASE, interval, room)
    try:
        for part in parts:
            indexes.add(part, rising=rising)
        return indexes.finish(-1)
    except InvalidOffsetError as error:
        return error.position
    except StartFailsError as error:
        return str(error)


def by_the_rules(table: BatchTable, interval: int, room: int) -> object:
    """Return the same, by ``LogSegment.recover`` and the two ``append`` of its indexes."""
    offsets: list[tuple[int, int]] = []
    times: list[tuple[int, int]] = []
    largest, indexed = (-1, -1), 0
    columns = table.position, table.last_offset, table.max_timestamp
    for position, offset, stamp in zip(*(column.tolist() for column in columns), strict=True):
        if stamp > largest[0]:
            largest = stamp, offset - BASE
        if position - indexed <= interval:
            continue
        if len(offsets) == room // 8:
            return f"the offset index has room for {room // 8} entries"
        if offsets and offset - BASE <= offsets[-1][0]:
            return position
        offsets.append((offset - BASE, position))
        if len(times) == room // 12 - 1:
            return f"the time index has room for {room // 12 - 1} entries"
        if largest[0] > (times[-1][0] if times else -1):
            if times and largest[1] < times[-1][1]:
                return position
            times.append(largest)
        indexed = position
    if largest[0] > (times[-1][0] if times else -1):
        if times and largest[1] < times[-1][1]:
            return -1
        times.append(largest)
    return (
        b"".join(struct.pack(">ii", *entry) for entry in offsets),
        b"".join(struct.pack(">qi", *entry) for entry in times),
    )


@given(
    batches,
    st.booleans(),
    st.integers(0, 12),
    st.sampled_from([0, 150, 150]),
    st.sampled_from([24, 48, 10_000, 10_000]),
)
# Without time stamps the offset index is full first: with one batch fewer it is not.
@example([(9, -2)] * 4, False, 0, 0, 24)
@example([(9, -2)] * 5, False, 0, 0, 24)
def test_many_batches_at_a_time_get_the_entries_that_a_broker_writes_one_by_one(
    rows, rising, cut, interval, room
):
    table = table_of(rows, rising=rising)
    parts = [part for part in (table[:cut], table[cut:]) if len(part)]

    expected = by_the_rules(table, interval, room)

    assert built(parts, interval, room, rising=rising) == expected
    assert built(parts, interval, room, rising=False) == expected
    each = [table[row : row + 1] for row in range(len(table))]
    assert built(each, interval, room, rising=True) == expected
