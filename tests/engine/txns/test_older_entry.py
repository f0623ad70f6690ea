"""A transaction with a newer epoch than the entry of its producer, whose newer entries are lost."""

from pathlib import Path

import pytest
from rolled_back import BEGUN, COMPLETE, NAME, NEEDED, PRODUCER, SESSIONS, data, ended, log_dir
from transaction_state import entry, write
from verification import set_offsets

from logtool.errors import UnreadableError
from logtool.txns.coordinator import Relation
from logtool.txns.joining import Joining
from logtool.txns.objects import AgeBase, PrintedTransaction
from logtool.txns.open_transactions import PartitionTransactions, TransactionState
from logtool.txns.run import TransactionsRun

HOUR = 3_600_000
OPEN, HANGING, UNKNOWN = TransactionState.OPEN, TransactionState.HANGING, TransactionState.UNKNOWN


def found(*homes: Path, after_ms: int = HOUR) -> tuple[PrintedTransaction, Joining]:
    """Return the open transaction as it is printed, and the entries that it was joined with."""
    job = TransactionsRun(homes, BEGUN + after_ms)
    printed: list[PrintedTransaction] = []
    for each in job:
        assert not isinstance(each, UnreadableError)
        assert isinstance(each, PartitionTransactions)
        moment = AgeBase(BEGUN + after_ms, "HOST:9092")
        printed += [PrintedTransaction(each, one, moment) for one in each.open]
    return printed[0], job.joining


def shown(*homes: Path, after_ms: int = HOUR) -> tuple[TransactionState, bool, bool]:
    """Return the state, whether an abort is printed, and whether the cluster is asked."""
    one, _ = found(*homes, after_ms=after_ms)
    return one.one.state, one.abort is not None, one.ask is not None


@pytest.mark.parametrize("after_ms", [0, HOUR])
def test_without_another_replica_it_hangs_at_any_age(tmp_path, after_ms):
    home = log_dir(tmp_path / "data")
    assert shown(home, after_ms=after_ms) == (HANGING, True, False)
    one, joining = found(home)
    assert one.abort is not None
    assert one.abort.split()[3:] == [
        "abort", "--topic", "payouts", "--partition", "0", "--start-offset", "4",
    ]  # fmt: skip
    account = one.one.account
    assert account is not None
    assert (account.relation, account.is_older, account.is_counted) == (
        Relation.NOT_LISTED, True, True,
    )  # fmt: skip
    assert account.lost is not None
    assert (account.lost.offsets, account.lost.elsewhere) == (range(1, 1 + NEEDED), ())
    codes = [each.code for each in joining.findings()]
    assert codes == ["transaction-state/damaged", "transaction-state/abandoned"]


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit"])
@pytest.mark.parametrize("more", [-1, 0, 1, 20])
def test_an_abort_is_printed_where_the_batches_account_for_every_lost_entry(tmp_path, state, more):
    # One entry more may be a PrepareCommit of the open transaction.
    left = entry(NAME, state, PRODUCER, transactionLastUpdateTimestampMs=BEGUN)
    home = log_dir(tmp_path / "data", lost=NEEDED + more, left=[left])
    assert shown(home) == (HANGING, not more, bool(more))
    account = found(home)[0].one.account
    assert account is not None
    assert account.may_be_committed is bool(more)


@pytest.mark.parametrize(
    ("batches", "lost"),
    [
        ([data(0, 0), ended(1, 0), data(2, 1)], 2),
        ([data(0, 0), ended(1, 0), data(2, 1), ended(3, 1), data(4, 2)], 6),
        # Transaction version 2: a marker has the next epoch, and the next transaction that one.
        ([data(0, 0), ended(1, 0), data(2, 1), ended(3, 2), data(4, 2)], 5),
        # An administrator may have aborted the second one, which no entry shows.
        ([data(0, 0), ended(1, 0), data(2, 1), ended(3, 1, commit=False), data(4, 1, 1)], 2),
    ],
    ids=["first", "new-epoch", "version-2", "aborted"],
)
def test_each_transaction_and_each_new_epoch_accounts_for_its_entries(tmp_path, batches, lost):
    for given in (lost - 1, lost, lost + 1):
        home = log_dir(tmp_path / str(given), batches=batches, lost=given)
        assert shown(home) == (HANGING, given == lost, given != lost)


def test_another_replica_may_have_the_entries(tmp_path):
    home = log_dir(tmp_path / "data", replicas=(1, 2, 3))
    assert shown(home) == (UNKNOWN, False, True)
    assert shown(home, after_ms=0) == (OPEN, False, True)
    one, joining = found(home)
    account = one.one.account
    assert account is not None
    assert account.lost is not None
    assert account.lost.elsewhere == (2, 3)
    assert one.describe is not None
    assert one.describe.split()[3:] == ["describe", "--transactional-id", NAME]
    assert (one.reason is None, one.after_restart) == (False, None)
    assert [each.code for each in joining.findings()] == ["transaction-state/damaged"]


def test_all_replicas_are_here(tmp_path):
    homes = [log_dir(tmp_path / str(node), replicas=(1, 2), node=node) for node in (1, 2)]
    (homes[1] / "payouts-0").rename(tmp_path / "away")
    assert shown(homes[0]) == (UNKNOWN, False, True)
    # The metadata of each says that the topic of the transaction is on itself: only one can lead.
    for file in (homes[1] / "__cluster_metadata-0").iterdir():
        file.unlink()
    assert shown(*homes) == (HANGING, True, False)


def test_a_longer_copy_of_an_older_leader_may_have_the_entries(tmp_path):
    homes = [log_dir(tmp_path / str(node), replicas=(1, 2), node=node) for node in (1, 2)]
    (homes[1] / "payouts-0").rename(tmp_path / "away")
    for file in (homes[1] / "__cluster_metadata-0").iterdir():
        file.unlink()
    write(homes[0], COMPLETE, epoch=4)
    write(homes[1], COMPLETE, entry("other", "Empty", 9), epoch=3)
    assert shown(*homes) == (UNKNOWN, False, True)


def test_without_metadata_the_replicas_are_not_known(tmp_path):
    home = log_dir(tmp_path / "data", metadata=False)
    assert shown(home) == (UNKNOWN, False, True)
    account = found(home)[0].one.account
    assert account is not None
    assert account.lost is not None
    assert account.lost.elsewhere is None


def test_an_entry_of_the_same_epoch_may_have_a_newer_one_that_lists_it(tmp_path):
    left = entry(NAME, "CompleteCommit", PRODUCER, 1, transactionLastUpdateTimestampMs=BEGUN)
    assert shown(log_dir(tmp_path / "data", left=[left])) == (UNKNOWN, False, True)


def test_an_entry_that_lists_it_ends_it(tmp_path):
    left = entry(NAME, "Ongoing", PRODUCER, partitions={"payouts": [0]})
    assert shown(log_dir(tmp_path / "data", left=[left])) == (OPEN, False, False)


def test_after_an_unclean_stop_the_age_decides_and_no_abort_is_printed(tmp_path):
    home = log_dir(tmp_path / "data", clean=False)
    assert shown(home, after_ms=0) == (OPEN, False, True)
    assert shown(home) == (HANGING, False, True)


def test_a_damaged_log_of_the_coordinator_may_hide_an_entry(tmp_path):
    home = log_dir(tmp_path / "data", left=[entry("b", "Empty", 8), COMPLETE])
    log = home / "__transaction_state-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[70] ^= 0xFF
    log.write_bytes(bytes(content))
    assert shown(home) == (UNKNOWN, False, True)


def test_a_partition_that_has_lost_its_end_may_lack_the_marker(tmp_path):
    home = log_dir(tmp_path / "data")
    set_offsets(home / "replication-offset-checkpoint", {("payouts", 0): len(SESSIONS) + 1})
    assert shown(home) == (UNKNOWN, False, True)


@pytest.mark.parametrize("epoch", [1, 2])
def test_the_effect_of_a_start_of_the_application_is_said(tmp_path, epoch):
    batches = [data(0, 0), ended(1, 0), data(2, epoch)]
    one, _ = found(log_dir(tmp_path / "data", batches=batches, lost=2))
    assert one.after_restart is not None
    assert ("OUT_OF_ORDER_SEQUENCE_NUMBER" in one.after_restart) is (epoch == 1)


def test_an_entry_that_is_older_than_the_log_says_so(tmp_path):
    _, joining = found(log_dir(tmp_path / "data"))
    (each,) = joining.joined(every=True)
    assert each.newer is not None
    assert (each.newer.epoch, each.newer.topic, each.newer.partition) == (1, "payouts", 0)


def test_an_older_entry_without_a_lost_end_orders_no_abort(tmp_path):
    # The broker was started on the old copy: its checkpoints no longer show the loss.
    home = log_dir(tmp_path / "data", lost=0)
    assert shown(home) == (HANGING, False, True)
