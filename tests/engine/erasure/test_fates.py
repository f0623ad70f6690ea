"""The ends that the log cleaner gives to the records of a key."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from logtool.cleaner.rules import CleaningObstacle
from logtool.cleaner.transactions import AbortedTransactions
from logtool.erasure import fates
from logtool.erasure.fates import Fate, Moments
from logtool.erasure.files import KeyRecords
from logtool.formats import transaction_index
from logtool.formats.record_batch import Column

NOW, PAUSE, DELAY = 1_000_000, 15_000, 60_000
GONE = NOW + PAUSE + DELAY


def records(offsets: list[int], tombstones: tuple[int, ...], horizon: int) -> KeyRecords:
    offset = np.array(offsets)
    none = np.full(len(offset), -1)
    is_tombstone = np.isin(offset, tombstones)
    return KeyRecords(offset, none, is_tombstone, np.where(is_tombstone, horizon, -1), none)


def ends(
    offsets: list[int],
    *,
    first: int = 0,
    limit: int = 100,
    tombstones: tuple[int, ...] = (),
    aborted: tuple[int, ...] = (),
    horizon: int = -1,
    obstacle: CleaningObstacle | None = None,
    due_ms: int | None = None,
    has_key: bool = True,
) -> list[tuple[int | None, str | None]]:
    """Return the time at which each record is gone, and why it stays."""
    extent = SimpleNamespace(
        first_dirty_offset=first, first_uncleanable_offset=limit, bound=CleaningObstacle.ACTIVE
    )
    one: Any = SimpleNamespace(
        extent=extent, obstacle=obstacle, due_ms=due_ms, is_cleaned=obstacle is None
    )
    found = records(offsets, tombstones, horizon)
    mask: Column = np.isin(found.offset, aborted)
    moments = Moments(start=NOW, partition_delay=0, cleaner_delay=PAUSE)
    known, number = fates.of_cleaner(found, mask, one, moments, DELAY, has_key=has_key)
    return [(known[at].gone_ms, known[at].obstacle) for at in number.tolist()]


ACTIVE, LATEST = (None, "active-segment"), (None, "latest-value")


def test_a_newer_dirty_record_removes_the_older_ones() -> None:
    assert ends([3, 50, 99]) == [(GONE, None), (GONE, None), LATEST]
    assert ends([3, 50, 99], first=99) == [(GONE, None), (GONE, None), LATEST]


def test_a_record_in_the_active_segment_removes_nothing() -> None:
    assert ends([3, 100]) == [ACTIVE, LATEST]
    assert ends([3, 50, 100, 120]) == [(GONE, None), ACTIVE, ACTIVE, LATEST]


def test_a_clean_record_removes_nothing() -> None:
    assert ends([3, 50], first=60) == [(None, "newer-is-clean"), LATEST]


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [
        (-1, (None, "tombstone")),
        (NOW + PAUSE, (GONE, None)),
        (NOW + PAUSE + 1, (None, "tombstone")),
    ],
)
def test_a_tombstone_goes_when_its_horizon_has_passed(
    horizon: int, expected: tuple[int | None, str | None]
) -> None:
    assert ends([3, 50], tombstones=(50,), horizon=horizon) == [(GONE, None), expected]


@pytest.mark.parametrize(
    ("obstacle", "horizon", "expected"),
    [
        (CleaningObstacle.DISABLED, -1, "cleaner-disabled"),
        (CleaningObstacle.FUTURE, NOW, "future-copy"),
        (CleaningObstacle.ACTIVE, -1, "tombstone"),
        (CleaningObstacle.ACTIVE, NOW + PAUSE + 1, "tombstone"),
        (CleaningObstacle.ACTIVE, NOW, "active-segment"),
    ],
)
def test_a_tombstone_without_a_cleaning_stays_for_the_reason_of_the_log(
    obstacle: CleaningObstacle, horizon: int, expected: str
) -> None:
    found = ends([3, 50], tombstones=(50,), horizon=horizon, obstacle=obstacle)
    assert found == [(None, str(obstacle)), (None, expected)]


def test_a_record_of_an_aborted_transaction_goes_and_replaces_nothing() -> None:
    assert ends([3, 50], aborted=(50,)) == [LATEST, (GONE, None)]


def test_a_record_without_a_key_goes() -> None:
    assert ends([3, 150], has_key=False) == [(GONE, None), ACTIVE]


def test_a_log_that_is_not_cleaned_keeps_all_until_age_alone_cleans_it() -> None:
    ratio = CleaningObstacle.RATIO
    assert ends([3, 50], obstacle=ratio) == [(None, "dirty-ratio"), LATEST]
    due = GONE + 5
    assert ends([3, 50], obstacle=ratio, due_ms=due) == [(due + DELAY, "dirty-ratio"), LATEST]
    lag = CleaningObstacle.MIN_LAG
    assert ends([3, 50], obstacle=lag, due_ms=due) == [(None, "min-lag"), LATEST]


def test_the_earlier_end_counts() -> None:
    early, late = Fate("time", 1, 5), Fate("cleaner", None, 6)
    stays = Fate(None, obstacle="policy")
    assert fates.earlier(early, late) == fates.earlier(early, stays) == early
    assert fates.earlier(late, early) == early
    assert fates.earlier(stays, late) == late


def test_aborted_transactions_are_found_by_producer_and_offset() -> None:
    columns = [(7, 10, 20), (8, 12, 30), (7, 40, 41)]
    data = np.array([(0, *one, 0) for one in columns], transaction_index.ENTRY).tobytes()
    index: Any = SimpleNamespace(read_listed=lambda: data)
    offset, producer = np.mgrid[0:50, 6:10].reshape(2, -1)
    expected = [
        any(first <= at <= last for one, first, last in columns if one == who)
        for at, who in zip(offset.tolist(), producer.tolist(), strict=True)
    ]
    assert AbortedTransactions([index]).mask(offset, producer).tolist() == expected
