"""The leader epochs of a log are compared with those of its batches."""

import pytest

from logtool.checks.continuity import check_epochs
from logtool.formats import leader_epoch_checkpoint

RUNS = [(0, 0, 99), (1, 100, 199)]
"""Leader epoch, first and last offset of the batches of a log that ends at 200."""


@pytest.mark.parametrize(
    ("rows", "log_start", "codes"),
    [
        ([(0, 0), (1, 100)], 0, []),
        ([(0, 0), (1, 100), (2, 200)], 0, []),
        ([(0, 0), (1, 100), (2, 201)], 0, ["leader-epoch/beyond-end"]),
        ([(0, 0)], 0, ["leader-epoch/missing-epoch"]),
        ([(0, 0), (1, 101)], 0, ["leader-epoch/mismatch"]),
        ([(0, 0), (1, 99)], 0, ["leader-epoch/mismatch"]),
        ([(1, 100)], 0, ["leader-epoch/begins-later"]),
        ([(1, 120)], 0, ["leader-epoch/begins-later"]),
        ([(1, 200)], 0, ["leader-epoch/begins-later"]),
        ([(5, 200)], 0, ["leader-epoch/begins-later"]),
        ([(0, 20), (1, 100)], 0, []),
        ([(0, 200)], 0, ["leader-epoch/missing-epoch"]),
        ([(0, 120), (1, 150)], 0, ["leader-epoch/mismatch"]),
        ([(1, 100)], 100, []),
        ([], 0, ["leader-epoch/missing"]),
    ],
)
def test_each_run_of_batches_needs_the_row_of_its_epoch(rows, log_start, codes) -> None:
    checkpoint = leader_epoch_checkpoint.build(rows)
    found = check_epochs(None, checkpoint, RUNS, log_start=log_start, log_end=200)
    assert [one.code for one in found] == codes


FORMAT_CHANGES = [(-1, 0, 599), (0, 600, 899), (-1, 900, 1499), (0, 1500, 1999)]
"""Batches of a log whose message.format.version was raised, lowered and raised again."""


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([(0, 1500)], []),
        ([(0, 1600)], []),  # the first row may begin later, as after DeleteRecords
        ([(0, 600)], []),
        ([(1, 600)], ["leader-epoch/missing-epoch"] * 2),
        ([(1, 1500)], ["leader-epoch/missing-epoch"]),
        ([], ["leader-epoch/missing"]),
    ],
)
def test_a_message_of_an_old_format_clears_the_rows_of_batches_before_it(rows, codes) -> None:
    checkpoint = leader_epoch_checkpoint.build(rows)
    found = list(check_epochs(None, checkpoint, FORMAT_CHANGES, log_start=0, log_end=2000))
    assert [one.code for one in found] == codes
    assert all(one.first_offset >= 1500 for one in found[len(found) - 1 :])
