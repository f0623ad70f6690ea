"""A rebuilt checkpoint holds what a broker would make of its rows."""

import pytest

from logtool.checkpoints import rules
from logtool.checkpoints.rules import LogBounds
from logtool.formats.names import FileKind

RUNS = [(0, 0, 99), (1, 100, 199)]
"""Leader epoch, first and last offset of the batches of a log that ends at 200."""


@pytest.mark.parametrize(
    ("rows", "start", "expected"),
    [
        ([(0, 0), (1, 100)], 0, [(0, 0), (1, 100)]),
        ([], 0, [(0, 0), (1, 100)]),
        ([(0, 0), (1, 100), (2, 200)], 0, [(0, 0), (1, 100), (2, 200)]),
        ([(0, 0), (1, 100), (2, 201)], 0, [(0, 0), (1, 100)]),
        ([(0, 0), (1, 120)], 0, [(0, 0), (1, 100)]),
        ([(0, 0), (1, 100)], 50, [(0, 50), (1, 100)]),
        ([(0, 0), (1, 100)], 100, [(1, 100)]),
    ],
)
def test_an_epoch_may_begin_at_the_log_end_and_not_behind_it(rows, start, expected) -> None:
    assert rules.epochs(rows, RUNS, start=start, end=200) == expected


@pytest.mark.parametrize(
    ("kind", "row", "expected"),
    [
        (FileKind.RECOVERY_POINT_CHECKPOINT, 10, 10),
        (FileKind.RECOVERY_POINT_CHECKPOINT, 201, 200),
        (FileKind.LOG_START_CHECKPOINT, 10, 10),
        (FileKind.LOG_START_CHECKPOINT, 201, 200),
        (FileKind.REPLICATION_CHECKPOINT, 49, 50),
        (FileKind.REPLICATION_CHECKPOINT, 200, 200),
        (FileKind.REPLICATION_CHECKPOINT, 201, 200),
        (FileKind.CLEANER_CHECKPOINT, 49, 50),
        (FileKind.CLEANER_CHECKPOINT, 200, 200),
        (FileKind.CLEANER_CHECKPOINT, 201, 50),
    ],
)
def test_an_offset_outside_of_the_log_becomes_what_a_broker_makes_of_it(
    kind: FileKind, row: int, expected: int
) -> None:
    assert rules.offset(kind, row, LogBounds(50, 200), start=50) == expected
    assert rules.offset(kind, row, LogBounds(50, None), start=50) == row
