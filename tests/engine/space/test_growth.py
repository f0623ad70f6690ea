"""Growth and the day on which a disk is full, over segments whose answers are known."""

import pytest

from logtool.space.growth import DAY_MS, NOT_DELETED, WINDOW_DAYS, SegmentTimes, forecast

NOW = 1_700_000_000_000
MIB = 1 << 20


def segments(*logs, deleted=NOT_DELETED):
    """Return columns of logs, each a list of (size, begin in days before now, end likewise)."""
    made = SegmentTimes([], [], [], [], [])
    for number, rows in enumerate(logs):
        for size, begin, end in rows:
            made.log.append(number)
            made.size.append(size)
            made.begin_ms.append(-1 if begin is None else NOW - round(begin * DAY_MS))
            made.timestamp_ms.append(NOW - round(end * DAY_MS))
            made.deleted_ms.append(deleted)
    return made


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ([(7 * MIB, 7, 0)], MIB),
        ([(14 * MIB, 14, 0)], MIB),  # half of it lies before the window
        ([(50 * MIB, 30, 9), (18 * MIB, 9, 0)], 2 * MIB),
        ([(50 * MIB, None, 2), (4 * MIB, 2, 0)], 2 * MIB),  # retention left two days
        ([(50 * MIB, None, 0)], 0),
    ],
)
def test_bytes_are_spread_over_the_time_of_their_segment(log, expected):
    assert forecast(segments(log), 0, NOW).day_bytes == pytest.approx(expected, abs=1)


def test_logs_add_up_and_a_silent_one_counts_nothing():
    found = forecast(segments([(7 * MIB, 7, 0)], [(90 * MIB, 90, 60)]), 0, NOW)
    assert found.day_bytes == MIB
    assert found.newest_ms == NOW


@pytest.mark.parametrize(
    ("seconds", "is_short", "expected"),
    [(7200, False, 12 * MIB), (3599, True, 24 * MIB), (60, True, 1440 * MIB),
     (1, True, 8640 * MIB)],
)  # fmt: skip
def test_a_log_of_a_short_time_counts_over_it_and_is_counted_apart(seconds, is_short, expected):
    young = [(50 * MIB, None, seconds / 86400), (MIB, seconds / 86400, 0)]
    found = forecast(segments([(7 * MIB, 7, 0)], young), 0, NOW)
    assert found.day_bytes == pytest.approx(MIB + expected, rel=1e-3)
    assert found.short_bytes == pytest.approx(expected if is_short else 0, rel=1e-3)


def test_a_timestamp_in_the_future_is_left_out():
    found = forecast(segments([(7 * MIB, 7, 0)], [(99 * MIB, 7, -400)]), 0, NOW)
    assert (found.day_bytes, found.newest_ms) == (MIB, NOW)


def test_the_disk_is_full_on_the_first_day_that_lacks_bytes():
    growing = segments([(WINDOW_DAYS * MIB, WINDOW_DAYS, 0)])
    assert forecast(growing, 10 * MIB, NOW).full_ms == NOW + 11 * DAY_MS
    assert forecast(growing, 365 * MIB, NOW).full_ms is None
    assert forecast(growing, 365 * MIB - 1, NOW).full_ms == NOW + 365 * DAY_MS


def test_what_retention_deletes_until_then_counts():
    freed = segments([(WINDOW_DAYS * MIB, WINDOW_DAYS, 0)], deleted=NOW + 2 * DAY_MS)
    assert forecast(freed, 10 * MIB, NOW).full_ms == NOW + (11 + WINDOW_DAYS) * DAY_MS
    assert forecast(freed, 1 * MIB, NOW).full_ms == NOW + 2 * DAY_MS
    soon = segments([(WINDOW_DAYS * MIB, WINDOW_DAYS, 0)], deleted=NOW)
    assert forecast(soon, 0, NOW).freed_bytes == WINDOW_DAYS * MIB


def test_nothing_is_nothing():
    found = forecast(segments(), 5, NOW)
    assert (found.newest_ms, found.day_bytes, found.full_ms) == (None, 0, None)
