"""The time stamps that count as times of records."""

from dataclasses import fields, replace

import numpy as np
import pytest

from logtool.formats.record_batch import DELETE_HORIZON, TIMESTAMP_TYPE, BatchTable
from logtool.stat.statistics import of_table


@pytest.mark.parametrize(
    ("attributes", "first_ms"), [(0, 1000), (TIMESTAMP_TYPE, 5000), (DELETE_HORIZON, 5000)]
)
def test_a_base_timestamp_is_a_time_unless_the_batch_has_one_time_or_a_delete_horizon(
    attributes: int, first_ms: int
) -> None:
    one = replace(
        BatchTable(*(np.zeros(1, np.int64) for _ in fields(BatchTable))),
        magic=np.array([2]),
        attributes=np.array([attributes]),
        base_timestamp=np.array([1000]),
        max_timestamp=np.array([5000]),
        size=np.array([100]),
    )
    found = of_table(one)
    assert (found.first_ms, found.last_ms) == (first_ms, 5000)
