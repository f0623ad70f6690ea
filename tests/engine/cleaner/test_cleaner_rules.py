"""The rules of the log cleaner over columns of segments."""

import pytest

from logtool.cleaner.rules import (
    NO_LAG,
    CleanerLimits,
    CleaningObstacle,
    DirtySource,
    Stable,
    extent,
    first_dirty,
    obstacle,
)
from logtool.metadata.setting_values import SettingSource, SettingValue
from logtool.retention.rules import SegmentColumns

NOW = 1_000_000
TRANSACTION, WATERMARK = CleaningObstacle.TRANSACTION, CleaningObstacle.WATERMARK


def log(*sizes: int, start: int = 0, times: tuple[int, ...] = ()) -> SegmentColumns:
    """Return a log of segments with ten offsets each; the last one is active."""
    return SegmentColumns(
        base_offset=[row * 10 for row in range(len(sizes))],
        size=sizes,
        timestamp=times or [0] * len(sizes),
        log_start=start,
    )


def limits(ratio: float = 0.5, *, min_lag: int = 0, max_lag: int = NO_LAG) -> CleanerLimits:
    values = ("compact", ratio, min_lag, max_lag, 0)
    return CleanerLimits(*(SettingValue("", str(one), SettingSource.TOPIC) for one in values))


@pytest.mark.parametrize(
    ("row", "start", "expected"),
    [
        (None, 0, (0, DirtySource.NO_ROW)),
        (None, 7, (7, DirtySource.NO_ROW)),
        (0, 0, (0, DirtySource.ROW)),
        (6, 7, (7, DirtySource.BELOW_START)),
        (-1, 0, (0, DirtySource.BELOW_START)),
        (30, 7, (30, DirtySource.ROW)),
        (31, 7, (7, DirtySource.ABOVE_END)),
    ],
)
def test_a_row_outside_of_the_log_is_reset_to_its_start(
    row: int | None, start: int, expected: tuple[int, DirtySource]
) -> None:
    assert first_dirty(row, start, 30) == expected


@pytest.mark.parametrize(
    ("row", "stable", "times", "lag", "clean", "cleanable", "uncleanable_from"),
    [
        # row, last stable offset, timestamps, min lag; bytes clean and cleanable, where it ends
        (0, 40, (), 0, 0, 7, 30),
        (10, 40, (), 0, 1, 6, 30),
        (15, 40, (), 0, 3, 6, 30),  # The segment of the first dirty offset counts twice.
        (30, 40, (), 0, 7, 0, 30),
        (35, 40, (), 0, 15, 0, 30),
        (0, 20, (), 0, 0, 3, 20),
        (0, 25, (), 0, 0, 3, 20),  # The segment of the last stable offset stays as a whole.
        (0, 5, (), 0, 0, 0, 0),
        (20, 5, (), 0, 3, 0, 20),
        (15, 12, (), 0, 3, 0, 10),
        (0, 40, (0, NOW - 5, 0, 0), 5, 0, 7, 30),  # As old as the lag: cleaned.
        (0, 40, (0, NOW - 4, 0, 0), 5, 0, 1, 10),
        (20, 40, (0, NOW - 4, 0, 0), 5, 3, 4, 30),  # Clean segments do not count.
        (0, 25, (0, 0, NOW, 0), 5, 0, 3, 20),
    ],
)
def test_the_range_ends_with_whole_segments(
    row: int, stable: int, times: tuple[int, ...], lag: int, clean: int, cleanable: int,
    uncleanable_from: int,
) -> None:  # fmt: skip
    found = extent(
        log(1, 2, 4, 8, times=times),
        (row, DirtySource.ROW),
        Stable(stable, WATERMARK if stable < 40 else None),
        lag,
        NOW,
    )
    assert (found.clean_bytes, found.cleanable_bytes) == (clean, cleanable)
    assert found.first_uncleanable_offset == uncleanable_from
    assert found.uncleanable_bytes == sum((1, 2, 4, 8)[uncleanable_from // 10 :])


def why(
    columns: SegmentColumns,
    of: CleanerLimits,
    *,
    row: int = 0,
    stable: Stable | None = None,
    earliest: int = NO_LAG,
) -> CleaningObstacle | None:
    dirty, end = (row, DirtySource.ROW), Stable(len(columns) * 10)
    found = extent(columns, dirty, stable or end, of.min_lag.number, NOW)
    return obstacle(found, extent(columns, dirty, end, 0, NOW), of, earliest, NOW)


@pytest.mark.parametrize(
    ("ratio", "expected"), [(0.5, None), (0.75, CleaningObstacle.RATIO), (0.74, None), (0.0, None)]
)
def test_the_ratio_is_strict(ratio: float, expected: CleaningObstacle | None) -> None:
    assert why(log(1, 3, 9), limits(ratio), row=10) == expected


def test_a_log_without_closed_dirty_segments_waits_for_the_active_one() -> None:
    assert why(log(9), limits(0)) is CleaningObstacle.ACTIVE
    assert why(log(1, 3, 9), limits(0), row=20) is CleaningObstacle.ACTIVE
    assert why(log(1, 3, 9), limits(0), row=25) is CleaningObstacle.ACTIVE
    assert why(log(0, 0), limits(0)) is CleaningObstacle.EMPTY


def test_the_longest_lag_cleans_whatever_the_ratio_is() -> None:
    columns, of = log(7, 1, 9), limits(max_lag=100)
    assert why(columns, of, row=10, earliest=NOW - 101) is None
    assert why(columns, of, row=10, earliest=NOW - 100) is CleaningObstacle.RATIO
    assert why(columns, limits(max_lag=NO_LAG), row=10, earliest=1) is CleaningObstacle.RATIO
    pinned = Stable(10, TRANSACTION)
    assert why(columns, of, row=10, earliest=NOW - 101, stable=pinned) is TRANSACTION


@pytest.mark.parametrize("bound", [TRANSACTION, WATERMARK])
def test_a_bound_is_the_reason_only_if_the_log_is_cleaned_without_it(
    bound: CleaningObstacle,
) -> None:
    assert why(log(1, 3, 3, 9), limits(), stable=Stable(5, bound)) is bound
    assert why(log(1, 3, 3, 9), limits(0.6), row=10, stable=Stable(25, bound)) is None
    assert why(log(1, 3, 3, 9), limits(0.8), row=10, stable=Stable(25, bound)) is bound
    found = why(log(1, 3, 3, 9), limits(0.9), row=10, stable=Stable(25, bound))
    assert found is CleaningObstacle.RATIO


def test_a_young_segment_is_the_reason_if_it_comes_before_the_last_stable_offset() -> None:
    columns = log(1, 3, 3, 9, times=(NOW, 0, 0, 0))
    assert why(columns, limits(min_lag=5)) is CleaningObstacle.MIN_LAG
    assert why(columns, limits(min_lag=5), stable=Stable(0, TRANSACTION)) is (
        CleaningObstacle.MIN_LAG
    )
    later = log(1, 3, 3, 9, times=(0, NOW, 0, 0))
    assert why(later, limits(1.0, min_lag=5)) is CleaningObstacle.RATIO
    assert why(later, limits(min_lag=5), stable=Stable(5, TRANSACTION)) is TRANSACTION
