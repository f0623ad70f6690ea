"""Leader epochs are kept as a broker keeps them."""

import pytest

from logtool.loading.epochs import EpochCache

ROWS = [(0, 0), (1, 100), (3, 250)]


@pytest.mark.parametrize(
    ("end", "left"),
    [(251, ROWS), (250, ROWS[:2]), (101, ROWS[:2]), (100, ROWS[:1]), (1, ROWS[:1]), (0, [])],
)
def test_an_epoch_that_begins_at_the_log_end_or_behind_it_is_dropped(
    end: int, left: list[tuple[int, int]]
) -> None:
    cache = EpochCache(ROWS)
    cache.truncate_from_end(end)
    assert cache.rows == left
    assert cache.changed == (left != ROWS)


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (99, [(0, 99), (1, 100), (3, 250)]),
        (100, [(1, 100), (3, 250)]),
        (249, [(1, 249), (3, 250)]),
        (250, [(3, 250)]),
        (1000, [(3, 1000)]),
    ],
)
def test_the_epoch_of_the_log_start_begins_there(start: int, left: list[tuple[int, int]]) -> None:
    cache = EpochCache(ROWS)
    cache.truncate_from_start(start)
    assert cache.rows == left


@pytest.mark.parametrize(
    ("row", "rows"),
    [
        ((3, 300), ROWS),
        ((3, 240), [*ROWS[:2], (3, 240)]),
        ((4, 250), [*ROWS[:2], (4, 250)]),
        ((4, 251), [*ROWS, (4, 251)]),
        ((1, 260), [(0, 0), (1, 260)]),
    ],
)
def test_a_new_epoch_drops_the_rows_that_contradict_it(
    row: tuple[int, int], rows: list[tuple[int, int]]
) -> None:
    cache = EpochCache(ROWS)
    cache.assign(*row)
    assert cache.rows == rows
