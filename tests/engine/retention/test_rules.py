"""The rules of retention over columns of segments."""

import pytest

from logtool.metadata.setting_values import SettingSource, SettingValue
from logtool.retention.rules import (
    NEVER,
    DeletionForecast,
    DeletionRule,
    Obstacle,
    Rounds,
    SegmentColumns,
    forecast,
)
from logtool.retention.settings import TopicRetention

NOW, FIRST, EVERY = 1_000_000, 1_030_000, 300_000


def log(
    *segments: tuple[int, int],
    start: int = 0,
    end: int | None = None,
    watermark: int | None = None,
) -> SegmentColumns:
    """Return a log of segments (size, timestamp), each with ten offsets."""
    size, stamp = zip(*segments, strict=True)
    return SegmentColumns(
        base_offset=[row * 10 for row in range(len(segments))],
        size=size,
        timestamp=stamp,
        log_start=start,
        log_end=end,
        high_watermark=watermark,
    )


def limits(
    policy: str = "delete", *, ms: int = -1, size: int = -1, copied: bool = False
) -> TopicRetention:
    def setting(name: str, value: object) -> SettingValue:
        return SettingValue(name, str(value), SettingSource.TOPIC)

    return TopicRetention(
        setting("cleanup.policy", policy),
        setting("retention.ms", ms),
        setting("retention.bytes", size),
        copied,
    )


def ask(columns: SegmentColumns, of: TopicRetention, *, cleans: bool = True) -> DeletionForecast:
    return forecast(columns, of, Rounds(FIRST, EVERY), NOW, cleans=cleans)


def rounds(found: DeletionForecast) -> list[int | None]:
    return [None if number == NEVER else number for number in found.round]


def test_the_age_is_strict_and_counts_at_the_time_of_the_round() -> None:
    old = FIRST - 500_000
    found = ask(log((5, old - 1), (5, old), (5, old + EVERY)), limits(ms=500_000))
    assert rounds(found) == [1, 2, 3]
    assert found.rule == [DeletionRule.TIME] * 3
    assert found.obstacle == [None, Obstacle.AGE, Obstacle.AGE]


def test_a_future_timestamp_keeps_all_segments_behind_it() -> None:
    found = ask(log((5, 0), (5, NOW + 10 * EVERY), (5, 0), (5, 0)), limits(ms=100))
    assert rounds(found) == [1, 11, 11, 11]
    assert found.obstacle == [None, Obstacle.FUTURE, Obstacle.OLDER, Obstacle.OLDER]
    assert found.held_by == [-1, -1, 1, 1]


def test_the_largest_timestamp_and_the_longest_age_do_not_wrap() -> None:
    for stamp, ms in ((NEVER, 100), (0, NEVER), (NEVER, NEVER)):
        assert rounds(ask(log((5, stamp), (5, 0)), limits(ms=ms))) == [None, None]


@pytest.mark.parametrize(
    ("most", "gone"), [(15, 0), (16, 0), (14, 0), (11, 0), (10, 1), (5, 2), (1, 2), (0, 3), (-1, 0)]
)
def test_the_size_deletes_only_what_is_whole_in_excess(most: int, gone: int) -> None:
    found = ask(log((5, 0), (5, 0), (5, 0)), limits(size=most))
    assert rounds(found) == [1] * gone + [None] * (3 - gone)
    assert found.rule == [DeletionRule.SIZE] * gone + [None] * (3 - gone)
    expected = Obstacle.NO_LIMIT if most < 0 else Obstacle.WITHIN_SIZE
    assert set(found.obstacle[gone:]) <= {expected}


def test_log_start_size_and_time_follow_each_other_in_one_round() -> None:
    columns = log((5, NOW), (5, NOW), (5, 0), (5, NOW), start=10)
    found = ask(columns, limits(ms=FIRST - NOW + 5, size=10))
    assert found.rule == [
        DeletionRule.LOG_START,
        DeletionRule.SIZE,
        DeletionRule.TIME,
        DeletionRule.TIME,
    ]
    assert rounds(found) == [1, 1, 1, 2]


def test_the_log_start_deletes_with_every_policy_but_never_the_active_segment() -> None:
    for policy in ("compact", "delete", ""):
        columns = log((5, 0), (5, 0), (5, 0), start=30)
        assert rounds(ask(columns, limits(policy))) == [1, 1, None]


def test_nothing_goes_that_ends_above_the_high_watermark() -> None:
    for watermark, gone in ((9, 0), (10, 1), (19, 1), (25, 2), (26, 3)):
        columns = log((5, 0), (5, 0), (5, 0), end=26, watermark=watermark)
        for of in (limits(ms=1), limits(size=0)):
            found = ask(columns, of)
            assert rounds(found) == [1] * gone + [None] * (3 - gone)
            assert set(found.obstacle[gone:]) <= {Obstacle.HIGH_WATERMARK}


def test_an_active_segment_with_records_goes_and_an_empty_one_stays() -> None:
    assert rounds(ask(log((5, 0), (5, 0)), limits(ms=1))) == [1, 1]
    found = ask(log((5, 0), (0, 0)), limits(ms=1))
    assert rounds(found) == [1, None]
    assert found.obstacle[1] is Obstacle.EMPTY


def test_without_the_cleaner_a_compacted_log_keeps_everything() -> None:
    columns = log((5, 0), (5, 0), start=10)
    found = ask(columns, limits("compact,delete", ms=1), cleans=False)
    assert rounds(found) == [None, None]
    assert set(found.obstacle) == {Obstacle.CLEANER}
    assert rounds(ask(columns, limits("compact,delete", ms=1))) == [1, 1]


def test_a_copied_log_rolls_its_active_segment_one_round_earlier() -> None:
    assert rounds(ask(log((5, 0), (5, 0)), limits("", ms=1, copied=True))) == [1, 2]
    assert rounds(ask(log((5, 0), (5, 0)), limits("", ms=1))) == [None, None]
