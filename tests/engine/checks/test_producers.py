"""A producer snapshot is compared with the state that a replay of the log gives."""

from dataclasses import replace
from pathlib import Path

import pytest

from logtool.checks.producers import compare_snapshot
from logtool.formats import names
from logtool.log.file import File
from logtool.log.producer_state import Producer

FILE = File(
    path=Path("orders-0/00000000000000000100.snapshot"),
    name=names.parse_partition_file("00000000000000000100.snapshot"),
    size=100,
    mtime_ns=10**18,
)
STATE = Producer(epoch=3, last_sequence=20, last_offset=90, timestamp=10**12)
ENTRY = {
    "producer_epoch": 3, "last_sequence": 20, "last_offset": 90, "current_txn_first_offset": -1,
}  # fmt: skip


def differs(entry: dict[str, int], *, compacted: bool = False, state: Producer = STATE) -> bool:
    """Return whether the entry of one producer is reported."""
    found = compare_snapshot(
        FILE, {7: ENTRY | entry}, {7: state}, first_known=50, compacted=compacted
    )
    return [one.code for one in found] == ["producer-snapshot/mismatch"]


@pytest.mark.parametrize(
    ("field", "value", "in_compacted"),
    [
        ("producer_epoch", 2, True),
        ("producer_epoch", 4, False),
        ("last_offset", 89, True),
        ("last_offset", 91, False),
        ("last_sequence", 19, True),
        ("last_sequence", 21, True),
        ("current_txn_first_offset", 60, False),
    ],
)
def test_a_field_that_differs_is_reported_unless_compaction_explains_it(
    field: str, value: int, in_compacted: bool
) -> None:
    assert not differs({})
    assert differs({field: value})
    assert differs({field: value}, compacted=True) == in_compacted


def test_a_transaction_may_begin_before_the_replay() -> None:
    began = "current_txn_first_offset"
    assert not differs({began: 49})
    assert differs({began: 50})
    opened = replace(STATE, transaction_first_offset=60)
    assert differs({}, state=opened)
    assert not differs({began: 60}, state=opened)
