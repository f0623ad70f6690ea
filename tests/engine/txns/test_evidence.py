"""Evidence that a transaction hangs at any age, and that it began after the last commit."""

from pathlib import Path

import pytest
from damage import copied
from transaction_state import Keyed, entry, write
from verification import give_away, set_offsets

from logtool.errors import UnreadableError
from logtool.log.producer_state import Marker
from logtool.txns.coordinator import CoordinatorLog, TransactionalId
from logtool.txns.evidence import marker_before
from logtool.txns.open_transactions import PartitionTransactions, Transaction, TransactionState
from logtool.txns.run import TransactionsRun

BEGUN = 1_795_224_772_301
"""Start of the oldest open transaction of 4.3.1/killed, by its first record."""
FIRST, WATERMARK = 336, 516
"""First offset of that transaction of producer 1009, and the high watermark of its partition."""
ROWS = "replication-offset-checkpoint"
COMPLETE = entry("a", "CompleteCommit", 1009)
OPEN, HANGING = TransactionState.OPEN, TransactionState.HANGING


@pytest.fixture
def home(copy_of) -> Path:
    """Return a log dir whose only entry is complete, with the high watermarks of that moment."""
    made: Path = copy_of("4.3.1/killed")
    (made / "recovery-point-offset-checkpoint").unlink()
    return coordinated(made, COMPLETE)


def coordinated(home: Path, *records: Keyed) -> Path:
    for number in (0, 1):
        write(home, *(() if number else records), number=number)
    set_offsets(
        home / ROWS, {("__transaction_state", 0): len(records), ("__transaction_state", 1): 0}
    )
    return home


def looked_at(*paths: Path, after_ms: int = 1000) -> tuple[PartitionTransactions, Transaction]:
    """Return tx.mixed-0 and the transaction of producer 1009, some time after its beginning."""
    for one in TransactionsRun(paths, BEGUN + after_ms):
        assert not isinstance(one, UnreadableError)
        if one.path.name == "tx.mixed-0":
            return one, next(each for each in one.open if each.producer_id == 1009)
    raise AssertionError


@pytest.mark.parametrize("after_ms", [-1, 1000, 3_600_000])
def test_high_watermarks_of_both_logs_show_that_a_transaction_hangs(home, after_ms):
    assert looked_at(home, after_ms=after_ms)[1].state is HANGING


@pytest.mark.parametrize(
    ("key", "watermark", "state"),
    [
        (("tx.mixed", 0), FIRST + 1, HANGING),
        (("tx.mixed", 0), FIRST, OPEN),  # the transaction may have begun later
        (("tx.mixed", 0), 1_000_000, OPEN),  # a marker may be lost
        (("__transaction_state", 0), 0, OPEN),  # the entry may be newer
        (("__transaction_state", 0), 2, OPEN),  # a newer entry may be lost
    ],
)
def test_logs_that_may_be_of_different_moments_do_not_show_it(home, key, watermark, state):
    set_offsets(home / ROWS, {key: watermark})
    assert looked_at(home)[1].state is state


def test_without_high_watermarks_the_age_decides(home):
    (home / ROWS).unlink()
    states = [looked_at(home, after_ms=ms)[1].state for ms in (1000, 3_600_000)]
    assert states == [OPEN, HANGING]


@pytest.mark.parametrize("lagging", ["tx.mixed-0", "__transaction_state-0"])
def test_a_follower_that_is_not_in_sync_does_not_show_it(home, lagging):
    kept = {"tx.mixed-0", "__transaction_state-0", "__transaction_state-1"} - {lagging}
    give_away(home / "__cluster_metadata-0", sorted(kept))
    assert looked_at(home)[1].state is OPEN


def test_logs_of_different_log_dirs_do_not_show_it(home, tmp_path):
    other = copied(home / "tx.mixed-0", tmp_path / "other" / "tx.mixed-0").parent
    for name in ("meta.properties", ROWS):
        (other / name).write_bytes((home / name).read_bytes())
    (home / "tx.mixed-0").rename(tmp_path / "away")
    assert looked_at(home, other)[1].state is OPEN


def test_a_transaction_that_its_entry_lists_does_not_hang(home):
    coordinated(home, entry("a", "Ongoing", 1009, partitions={"tx.mixed": [0]}))
    assert looked_at(home)[1].state is OPEN


@pytest.mark.parametrize(("updated_ms", "known"), [(BEGUN - 3_600_000, True), (BEGUN, False)])
def test_a_marker_shows_that_a_transaction_began_after_the_commit(home, updated_ms, known):
    made = entry("a", "CompleteCommit", 1009, transactionLastUpdateTimestampMs=updated_ms)
    partition, one = looked_at(coordinated(home, made))
    account = one.account
    assert account is not None
    assert (account.after_marker is not None, account.may_be_committed) == (known, not known)
    if account.after_marker is not None:
        found = {marker.offset: marker for marker in partition.markers.values()}
        assert account.after_marker < FIRST
        assert found[account.after_marker].timestamp >= updated_ms


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit"])
def test_only_a_commit_may_be_lost(home, state):
    account = looked_at(coordinated(home, entry("a", state, 1009)))[1].account
    assert account is not None
    assert account.may_be_committed == (state == "CompleteCommit" and account.after_marker is None)


def the_entry(tmp_path: Path, *, version: int, epoch: int = 7) -> TransactionalId:
    log = CoordinatorLog(path=tmp_path, number=0)
    made = entry(
        "a", "CompleteCommit", 5, epoch,
        transactionLastUpdateTimestampMs=1000, clientTransactionVersion=version,
    )  # fmt: skip
    log.take(0, *made)
    (one,) = log.entries()
    return one


@pytest.mark.parametrize(
    ("version", "marker", "offset"),
    [
        (1, Marker(offset=40, producer_epoch=7, type=1, timestamp=1000), 40),
        (1, Marker(offset=40, producer_epoch=7, type=1, timestamp=999), None),
        (1, Marker(offset=60, producer_epoch=7, type=1, timestamp=1000), None),
        (2, Marker(offset=40, producer_epoch=7, type=1, timestamp=999), 40),
        (2, Marker(offset=40, producer_epoch=6, type=1, timestamp=999), None),
        (2, Marker(offset=60, producer_epoch=7, type=1, timestamp=999), None),
    ],
)
def test_a_marker_counts_by_its_epoch_in_version_2_and_else_by_its_time(
    tmp_path, version, marker, offset
):
    one = Transaction(producer_id=5, state=OPEN, first_offset=50, last_offset=59)
    assert marker_before(one, {5: marker}, the_entry(tmp_path, version=version)) == offset


def test_a_marker_of_another_producer_counts_by_its_time_alone(tmp_path):
    one = Transaction(producer_id=5, state=OPEN, first_offset=50, last_offset=59)
    known = the_entry(tmp_path, version=2)
    for timestamp, offset in ((999, None), (1000, 40)):
        marker = Marker(offset=40, producer_epoch=7, type=0, timestamp=timestamp)
        assert marker_before(one, {6: marker}, known) == offset


@pytest.mark.parametrize(
    ("fields", "later"),
    [({}, 351), ({"transactionTimeoutMs": 2**31 - 1}, FIRST)],
    ids=["timeout", "two-phase"],
)
def test_the_last_stable_offset_moves_past_what_ends_by_itself(home, fields, later):
    listed = entry("a", "Ongoing", 1009, partitions={"tx.mixed": [0]}, **fields)
    partition, one = looked_at(coordinated(home, listed))
    assert one.first_offset == partition.last_stable_offset == FIRST
    # Producer 1010, from offset 351, has no entry.
    assert partition.last_stable_offset_later == later


def test_where_everything_ends_by_itself_it_moves_to_the_log_end(scenario):
    partition, _ = looked_at(scenario("4.3.1/killed"))
    assert partition.last_stable_offset_later == partition.end_offset
