"""Committed transactions whose marker a log has lost, and damage that can hide no marker."""

from collections.abc import Callable
from pathlib import Path

import pytest
from damage import damage_file, flip, overwrite
from transaction_state import Keyed, entry, write
from verification import batches, set_offsets

from logtool.log import opening
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast
from logtool.txns.after_start import open_after_start
from logtool.txns.objects import AgeBase, PrintedTransaction
from logtool.txns.open_transactions import PartitionTransactions, TransactionState
from logtool.txns.run import TransactionsRun

BEGUN = 1_795_224_772_301
"""Start of the oldest open transaction of 4.3.1/killed, by its first record."""
SOON, LATER = BEGUN + 1_000, BEGUN + 3_600_000
OPEN = {"tx.mixed": [0], "tx-interleaved_v2": [0]}
NAME, KEY = "tx.mixed-0", ("tx.mixed", 0)
WATERMARKS = "replication-offset-checkpoint"
PREPARED = entry("a", "PrepareCommit", 1009, partitions=OPEN)
COMPLETE = entry("a", "CompleteCommit", 1009)


@pytest.fixture
def home(copy_of: Callable[[str], Path]) -> Path:
    """Return a log dir whose partition has lost offsets at its end."""
    found = copy_of("4.3.1/killed")
    (found / "recovery-point-offset-checkpoint").unlink()
    # The broker's own log of the topic was longer.
    set_offsets(found / WATERMARKS, {KEY: 10_000, ("__transaction_state", 0): 0,
                                     ("__transaction_state", 1): 0})  # fmt: skip
    return found


def states(
    home: Path, *records: Keyed, now_ms: int = SOON, is_now_given: bool = True
) -> tuple[TransactionState, TransactionsRun, PartitionTransactions]:
    """Return the state of the transaction of producer 1009, with its run and partition."""
    for number in (0, 1):
        write(home, *(records if number == 0 else ()), number=number)
    job = TransactionsRun([home], now_ms, is_now_given=is_now_given)
    found = {one.path.name: one for one in job if isinstance(one, PartitionTransactions)}
    (state,) = (one.state for one in found[NAME].open if one.producer_id == 1009)
    return state, job, found[NAME]


def test_a_decision_to_commit_outlives_its_marker(home: Path) -> None:
    state, job, found = states(home, PREPARED, COMPLETE, now_ms=LATER)
    assert state is TransactionState.MARKER_LOST
    (one,) = (one for one in found.open if one.producer_id == 1009)
    assert one.account is not None and one.account.committed_at == 0
    printed = PrintedTransaction(found, one, AgeBase(LATER, "HOST:9092"))
    assert (printed.abort, printed.ask) == (None, None)
    assert printed.advice and str(one.first_offset) in printed.advice
    assert "transaction-state/marker-lost" in [each.code for each in job.joining.findings()]
    # It still holds back consumers.
    assert found.last_stable_offset == one.first_offset


@pytest.mark.parametrize(
    "records",
    [
        (COMPLETE,),
        (entry("a", "PrepareAbort", 1009, partitions=OPEN), COMPLETE),
        (entry("a", "PrepareCommit", 1009, partitions={"other": [0]}), COMPLETE),
        (entry("a", "PrepareCommit", 1009, 1, partitions=OPEN), COMPLETE),
        (entry("a", "PrepareCommit", 1010, partitions=OPEN), COMPLETE),
        # A marker in front of the transaction is newer than the decision.
        (
            entry("a", "PrepareCommit", 1009, partitions=OPEN, transactionLastUpdateTimestampMs=1),
            COMPLETE,
        ),
    ],
    ids=["no-decision", "abort", "other-partition", "epoch", "producer", "before"],
)
def test_another_decision_commits_nothing(home: Path, records: tuple[Keyed, ...]) -> None:
    assert states(home, *records)[0] is not TransactionState.MARKER_LOST


def test_a_whole_log_has_lost_no_marker(home: Path) -> None:
    end = int(batches(max((home / NAME).glob("*.log"))).last_offset[-1]) + 1
    set_offsets(home / WATERMARKS, {KEY: end})
    assert states(home, PREPARED, COMPLETE)[0] is not TransactionState.MARKER_LOST


def test_damage_in_front_may_have_hidden_the_marker(home: Path) -> None:
    log = min((home / NAME).glob("*.log"))
    table = batches(log)
    damage_file(log, flip, int(table[table.is_control].position[0]) + 70)
    assert states(home, PREPARED, COMPLETE)[0] is not TransactionState.MARKER_LOST


def test_the_time_that_passes_after_a_stop_decides_nothing(home: Path) -> None:
    found = {states(home, COMPLETE, now_ms=at, is_now_given=False)[0]
             for at in (2 * LATER, 3 * LATER)}  # fmt: skip
    assert found == {TransactionState.HANGING}


@pytest.mark.parametrize(("control", "is_lost"), [(False, False), (True, True)])
def test_a_damaged_batch_of_data_hides_no_marker(
    copy_of: Callable[[str], Path], control: bool, is_lost: bool
) -> None:
    home = copy_of("4.3.1/clean")
    log = min((home / NAME).glob("*.log"))
    table = batches(log)
    chosen = table[(table.is_control == control) & (table.record_count > (0 if control else 1))]
    position, first = int(chosen.position[1]), int(chosen.base_offset[1])
    damage_file(log, overwrite, position + 66, b"\xa5\x5a")
    (found,) = (one for one in TransactionsRun([home / NAME], LATER)
                if isinstance(one, PartitionTransactions))  # fmt: skip
    assert (found.damaged, found.lost_at) == (is_lost, (first,) if is_lost else ())


def test_the_next_start_judges_a_log_that_stopped_in_order_as_txns_does(home: Path) -> None:
    for number, records in ((0, (PREPARED, COMPLETE)), (1, ())):
        write(home, *records, number=number)
    (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    opened = opening.open_log_dir(home)
    forecasts = [one for one in Forecast([home / NAME], StartOptions((4, 3)))
                 if isinstance(one, PartitionForecast)]  # fmt: skip
    found = open_after_start(forecasts, [opened], LATER, lambda _: None)
    states = {one.producer_id: one.state for each in found.partitions for one in each.open}
    assert states[1009] is TransactionState.MARKER_LOST
