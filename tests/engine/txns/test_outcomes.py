"""The outcomes of the transactions of saved records."""

import pytest

from logtool.txns.open_transactions import Transaction, TransactionState
from logtool.txns.outcomes import Outcomes, RecordOutcome


def outcomes(*lost_at: int) -> Outcomes:
    """Return those of a log with four transactions of one producer."""
    found = Outcomes(list(lost_at))
    for state, first, last in (
        (TransactionState.MARKER_LOST, 40, None),
        (TransactionState.COMMITTED, 0, 10),
        (TransactionState.ABORTED, 20, 30),
    ):
        found.add(Transaction(7, state, first, last))
    found.add(Transaction(8, TransactionState.HANGING, 5, 35))
    found.settle()
    return found


@pytest.mark.parametrize(
    ("producer_id", "offset", "expected"),
    [
        (7, 0, "committed"), (7, 9, "committed"), (7, 20, "aborted"), (7, 40, "committed"),
        (7, 99, "committed"), (7, 15, "unknown"), (8, 5, "open"), (8, 4, "unknown"),
        (9, 5, "unknown"),
    ],
)  # fmt: skip
def test_a_record_has_the_outcome_of_the_transaction_around_it(
    producer_id: int, offset: int, expected: str
) -> None:
    assert outcomes().of(producer_id, offset) is RecordOutcome(expected)


@pytest.mark.parametrize(
    ("offset", "expected"), [(20, "unknown"), (24, "unknown"), (25, "aborted"), (9, "committed")]
)
def test_a_marker_that_may_be_lost_leaves_the_records_in_front_unknown(
    offset: int, expected: str
) -> None:
    assert outcomes(25).of(7, offset) is RecordOutcome(expected)
