"""The segments that the first round deletes early, because their timestamps are in seconds."""

from collections.abc import Sequence

import pytest

from logtool.metadata.setting_values import SettingSource, SettingValue
from logtool.retention.early import EarlyDeletion, deleted_offsets, early_deletion
from logtool.retention.rules import Rounds, SegmentColumns, forecast
from logtool.retention.segments import LogSegments, StampSource
from logtool.retention.settings import TopicRetention

NOW = 1_795_963_654_644
HOUR = 3_600_000
LIMIT = 24 * HOUR
SIZE = 100


def log(*stamps: int, start: int = 0) -> SegmentColumns:
    """Return a log of segments with ten offsets each."""
    bases = [row * 10 for row in range(len(stamps))]
    return SegmentColumns(bases, [SIZE] * len(stamps), stamps, log_start=start)


def found(
    columns: SegmentColumns,
    *,
    end: int | None = None,
    sources: Sequence[StampSource] | None = None,
    limit: int = LIMIT,
    size: int = -1,
) -> EarlyDeletion | None:
    limits = TopicRetention(
        SettingValue("cleanup.policy", "delete", SettingSource.TOPIC),
        SettingValue("retention.ms", str(limit), SettingSource.TOPIC),
        SettingValue("retention.bytes", str(size), SettingSource.TOPIC),
    )
    gone = forecast(columns, limits, Rounds(NOW + 30_000, 300_000), NOW)
    of = tuple(sources or [StampSource.TIME_INDEX] * len(columns))
    return early_deletion(LogSegments(columns, of), gone, limit, NOW, end)


def seconds(before_ms: int) -> int:
    """Return the time so many ms before NOW, in seconds."""
    return (NOW - before_ms) // 1000


def test_segments_in_seconds_go_early() -> None:
    old, new = seconds(2 * HOUR), seconds(HOUR)
    one = found(log(old, new, NOW))
    assert one is not None
    assert (one.segments, one.bytes) == (2, 2 * SIZE)
    assert (one.first_offset, one.last_offset) == (0, 19)
    assert (one.newest_ms, one.age_ms) == (new * 1000, NOW - new * 1000)


def test_only_offsets_from_the_log_start_on_are_deleted() -> None:
    one = found(log(seconds(HOUR), seconds(HOUR), NOW, start=7))
    assert one is not None
    assert (one.first_offset, one.last_offset) == (7, 19)


@pytest.mark.parametrize("end", [None, 25])
def test_a_log_that_goes_as_a_whole_ends_at_its_end(end: int | None) -> None:
    one = found(log(*[seconds(HOUR)] * 3), end=end)
    assert one is not None
    assert (one.segments, one.last_offset) == (3, None if end is None else 24)


def test_records_that_are_too_old_in_seconds_too_do_not_go_early() -> None:
    assert found(log(seconds(LIMIT + HOUR), NOW)) is None
    one = found(log(seconds(LIMIT + HOUR), seconds(HOUR), NOW))
    assert one is not None
    assert (one.segments, one.first_offset) == (1, 10)


def test_a_segment_behind_a_younger_one_does_not_go_early() -> None:
    assert found(log(NOW, seconds(HOUR), NOW)) is None


def test_the_time_of_a_file_is_no_timestamp_in_seconds() -> None:
    of = [StampSource.MTIME, StampSource.TIME_INDEX]
    assert found(log(seconds(HOUR), NOW), sources=of) is None


def test_another_rule_than_the_age_is_not_early() -> None:
    assert found(log(seconds(HOUR), NOW), size=SIZE, limit=-1) is None
    assert found(log(seconds(HOUR), NOW), size=SIZE) is None


def test_a_record_of_the_near_future_has_no_age() -> None:
    one = found(log(seconds(-HOUR), NOW))
    assert one is not None
    assert one.age_ms == 0


def test_below_the_log_start_no_offset_is_deleted() -> None:
    columns = log(NOW, NOW, NOW, start=10)
    assert deleted_offsets(columns, range(1), None) is None
    assert deleted_offsets(columns, range(0), None) is None
    assert deleted_offsets(columns, range(2), None) == (10, 19)
