"""The time until every segment was checked follows from the bytes of the last runs."""

import pytest

from logtool.scrub.coverage import CheckCoverage, complete_in_ms
from logtool.scrub.state import RunRow
from logtool.times import DAY_MS

CYCLE = 30 * DAY_MS


def runs(*rows: tuple[int, int]) -> list[RunRow]:
    """Return a run for each night, of the bytes that were due and those that were checked."""
    return [
        RunRow(night * DAY_MS, CYCLE, "batches", due_bytes=due, bytes=done)
        for night, (due, done) in enumerate(rows)
    ]


@pytest.mark.parametrize(
    ("rows", "left", "days"),
    [
        ([(100, 100)], 0, 0),
        ([(100, 10)], 100, 10),
        ([(100, 10)] * 5, 100, 10),
        ([(100, 100), *[(100, 1)] * 3], 100, 100),  # a first run of a better disk
        ([(100, 100), *[(100, 0)] * 3], 100, None),
        ([(100, 0)], 100, None),
        ([(100, 10), *[(0, 0)] * 4], 100, 40),  # nothing was due, which is no lack of progress
        ([], 100, None),
    ],
)
def test_the_pace_is_that_of_the_last_runs(
    rows: list[tuple[int, int]], left: int, days: int | None
) -> None:
    whole = CheckCoverage()
    whole.ages.never.add(left)
    found = complete_in_ms(whole, runs(*rows), max(len(rows) - 1, 1) * DAY_MS)
    assert found == (None if days is None else days * DAY_MS)
