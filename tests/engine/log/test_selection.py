"""The batches and records of a span of times."""

import numpy as np
import pytest
from log_dir_damage import new_batch

from logtool.formats import record_batch
from logtool.log.selection import OffsetTimeRange

TIMES = np.array([-5000, -1000, -1, 0, 7])


@pytest.mark.parametrize(
    ("since", "until", "chosen"),
    [
        (-2000, float("inf"), [-1000, 0, 7]),
        (float("-inf"), -1, [-5000, -1000]),
        (float("-inf"), float("inf"), TIMES.tolist()),
        (0, 5, [0]),
    ],
)
def test_a_negative_time_is_a_time_and_minus_one_is_none(since, until, chosen):
    mask = OffsetTimeRange(since=since, until=until).of_records(np.arange(5), TIMES)
    assert TIMES[slice(None) if mask is None else mask].tolist() == chosen


@pytest.mark.parametrize(("since", "expected"), [(-2000, True), (-1, True), (0, False)])
def test_a_batch_without_a_time_may_hold_records_before_1970(since, expected):
    data = new_batch(0, b"x", base_timestamp=-1000, max_timestamp=-1)
    table = record_batch.parse(memoryview(data), [0])
    span = OffsetTimeRange(since=since)
    assert len(span.of_their_batches(table)) == expected
    assert len(span.of_batches(table)) == 0


def test_a_compacted_wrapper_may_hold_an_offset_before_the_one_that_its_count_gives():
    data = b"".join(new_batch(offset, b"x") for offset in (9, 19, 29))
    table = record_batch.parse(memoryview(data), [0, len(data) // 3, 2 * len(data) // 3])
    table.magic[:], table.attributes[:], table.record_count[:] = 1, 1, 4
    table.last_offset[:] = table.base_offset
    assert table.first_offset.tolist() == [6, 16, 26]
    for last, in_headers, with_records in [(5, [], [9]), (6, [9], [9]), (10, [9, 19], [9, 19])]:
        span = OffsetTimeRange(last=last)
        assert span.of_batches(table).last_offset.tolist() == in_headers
        assert span.of_their_batches(table).last_offset.tolist() == with_records
