"""Batches of a transaction that stand in a log twice: its end is then counted twice.

Brokers 3.3.2, 3.7.2, 3.9.2 and 4.3.1 do not start on such a log ("Attempted to complete transaction
... which was not started"): `make campaign` with seed 500 has the case.
"""

import pytest
from log_dir_damage import MARKER, marker, new_batch

from logtool.formats import control_record
from logtool.loading.loader import load
from logtool.loading.result import Outcome, StartConditions
from logtool.log import opening

TRANSACTIONAL = 0x10
COMMIT, ABORT = (bytes([0, 0, 0, kind]) for kind in (control_record.COMMIT, control_record.ABORT))


def transaction(at, kind):
    """Return a batch of producer 9000 in a transaction, and the marker that ends it."""
    fields = {"attributes": TRANSACTIONAL, "producer_id": 9000, "producer_epoch": 0}
    batch = new_batch(at, b"value", base_sequence=at, **fields)
    return batch + marker(at + 1, kind, bytes(6), attributes=MARKER)


def load_of(home, data):
    """Load a flushed segment of `data`, whose producers are replayed for the one behind it."""
    home.mkdir()
    for base, content in ((0, data), (4, new_batch(4, b"value"))):
        (home / f"{base:020d}.log").write_bytes(content)
        (home / f"{base:020d}.index").write_bytes(b"")
        (home / f"{base:020d}.timeindex").write_bytes(b"")
    return load(opening.open_partition(home), StartConditions(clean=False, recovery_point=4))


@pytest.mark.parametrize("kind", [COMMIT, ABORT])
def test_a_transaction_that_ends_twice_stops_the_start(tmp_path, kind):
    once = transaction(0, kind)
    assert load_of(tmp_path / "once-0", once).outcome is Outcome.LOADS
    twice = load_of(tmp_path / "twice-0", once + once)
    assert twice.outcome is Outcome.REFUSES


def test_two_transactions_of_one_producer_are_no_repetition(tmp_path):
    data = transaction(0, COMMIT) + transaction(2, COMMIT)
    assert load_of(tmp_path / "two-0", data).outcome is Outcome.LOADS
