"""The answer on open transactions is that of `txns`, from the logs as the start loads them."""

import time

import pytest
import rolled_back
from conftest import SCENARIOS
from damage import damage_file, overwrite, remove_file
from examining import examined, of, the
from verification import log_dirs, rewrite, set_offsets, small_log_dir

from logtool.disk.shell import path as quoted
from logtool.doctor.answers import Gravity, Next, NextStart, OpenTransactionsAnswer
from logtool.errors import UnreadableError
from logtool.formats import offset_checkpoint
from logtool.running.budget import Budget
from logtool.running.workers import Pace
from logtool.txns import coordinator_logs
from logtool.txns.open_transactions import TransactionState
from logtool.txns.run import TransactionsRun

STATES = ("__transaction_state-0", "__transaction_state-1")
OPEN = ("tx.mixed-0", "tx-interleaved_v2-0", "tx-interleaved_v2-1")
WATERMARK = "replication-offset-checkpoint"
RECOVERY = "recovery-point-offset-checkpoint"


def counted(paths):
    """Return partitions with open transactions, and open, hanging and unknown ones by `txns`."""
    run = TransactionsRun(paths, time.time_ns() // 1_000_000)
    parts = [one for one in run if not isinstance(one, UnreadableError) and one.open]
    return (
        len(parts),
        sum(one.open_count for one in parts),
        sum(one.hanging_count for one in parts),
        sum(one.count(TransactionState.UNKNOWN) for one in parts),
    )


def counts(answer):
    return answer.partitions, answer.open, answer.hanging, answer.unknown


@pytest.mark.parametrize("name", [one for one in SCENARIOS if not one.endswith("/replicas")])
def test_real_log_dirs_have_the_open_transactions_that_txns_finds(scenario, name):
    paths = log_dirs(scenario(name))
    expected = counted(paths)
    _, reported = examined(*paths)
    found = [(counts(one), one.complete) for one in of(OpenTransactionsAnswer, reported)]
    assert found == ([(expected, True)] if expected[1] else [])


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of a killed broker with four transactions that their coordinator knows."""
    return small_log_dir(
        scenario("4.3.1/killed"), tmp_path / "data", *OPEN, *STATES, "__cluster_metadata-0"
    )


def forgotten(home):
    """Let the coordinators know no transaction: their logs are empty, and nothing lists an end."""
    for folder in STATES:
        for file in (home / folder).iterdir():
            if file.suffix == ".snapshot" or file.name == "leader-epoch-checkpoint":
                file.unlink()
            elif file.suffix == ".log":
                file.write_bytes(b"")
    for name in (WATERMARK, RECOVERY):
        rows = offset_checkpoint.parse((home / name).read_bytes()).offsets
        left = {key: at for key, at in rows.items() if key[0] != "__transaction_state"}
        rewrite(home / name, offset_checkpoint.encode(offset_checkpoint.build(left)))


def test_transactions_that_their_coordinator_ends_are_an_info(home):
    run, reported = examined(home)
    found = the(OpenTransactionsAnswer, reported)
    assert counts(found) == (3, 4, 0, 0) == counted([home])
    assert (found.state, found.complete) == (Gravity.INFO, True)
    assert the(Next, reported).command != found.command
    assert int(run.summary.exit_status()) == 0


def test_transactions_that_no_coordinator_knows_hang_and_are_looked_at_next(home):
    forgotten(home)
    run, reported = examined(home)
    found = the(OpenTransactionsAnswer, reported)
    assert counts(found) == (3, 4, 4, 0) == counted([home])
    assert (found.state, found.oldest, found.oldest_offset) == (Gravity.WARNING, "tx.mixed-0", 336)
    assert found.age_ms > 900_000
    assert found.command == f"logtool txns --open {quoted(home)}"
    assert the(Next, reported).command == found.command
    assert int(run.summary.exit_status()) == 1


def test_a_partition_dir_alone_is_joined_with_the_coordinators_around_it(home):
    forgotten(home)
    _, reported = examined(home / OPEN[0])
    assert counts(the(OpenTransactionsAnswer, reported)) == (1, 2, 2, 0)


def test_without_coordinators_it_is_not_known_whether_old_ones_hang(scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/killed"), tmp_path / "data", *OPEN)
    _, reported = examined(home)
    found = the(OpenTransactionsAnswer, reported)
    assert (counts(found), found.state) == ((3, 4, 0, 4), Gravity.INFO)
    assert counts(found) == counted([home])
    assert sorted(found.stuck) == sorted(OPEN)
    assert found.command in [one.command for one in of(Next, reported)]


@pytest.mark.parametrize(("replicas", "kinds"), [((1,), (1, 0)), ((1, 2), (0, 1))])
def test_what_a_rolled_back_coordinator_leaves_is_named_next_to_the_damage(
    tmp_path, replicas, kinds
):
    home = rolled_back.log_dir(tmp_path / "data", replicas=replicas)
    _, reported = examined(home)
    found = the(OpenTransactionsAnswer, reported)
    assert counts(found) == (1, 1, *kinds) == counted([home])
    assert found.stuck == ["payouts-0"]
    assert [one.command for one in of(Next, reported)][1:] == [found.command]


def test_coordinators_that_cannot_be_read_make_it_incomplete(home):
    log = next((home / STATES[0]).glob("*.log"))
    log.unlink()
    log.mkdir()
    _, reported = examined(home)
    assert not the(OpenTransactionsAnswer, reported).complete


def test_an_index_that_lies_does_not_hide_the_first_batch(home):
    expected = counted([home])
    damage_file(max((home / OPEN[0]).glob("*.index")), overwrite, 0, b"\0\0\0\1\0\0\0\7")
    assert counts(the(OpenTransactionsAnswer, examined(home)[1])) == expected


def test_nothing_is_reported_where_the_time_was_over(home):
    pace = Pace()
    pace.end()
    _, reported = examined(home, budget=Budget(pace=pace))
    assert not of(OpenTransactionsAnswer, reported)


def test_coordinators_for_which_the_time_does_not_suffice_leave_it_out(home, monkeypatch):
    pace, read = Pace(), coordinator_logs.read

    def late(*arguments):
        pace.end()
        return read(*arguments)

    monkeypatch.setattr(coordinator_logs, "read", late)
    run, reported = examined(home, budget=Budget(pace=pace))
    assert run.forecast_is_whole
    assert not of(OpenTransactionsAnswer, reported)
    assert not run.summary.complete


def test_an_error_of_the_data_is_graver_than_a_hanging_transaction(home):
    forgotten(home)
    set_offsets(home / WATERMARK, {("tx.mixed", 0): 100_000})
    _, reported = examined(home)
    found = the(OpenTransactionsAnswer, reported)
    assert found.hanging == 4
    assert sorted(found.stuck) == sorted(OPEN)
    first, then = of(Next, reported)
    assert first.command != found.command == then.command


def test_recovery_points_that_are_missing_are_the_cause_of_a_long_recovery(home):
    assert the(NextStart, examined(home)[1]).cause is None
    remove_file(home / RECOVERY)
    _, reported = examined(home)
    start = the(NextStart, reported)
    assert start.cause == f"{RECOVERY} is missing"
    assert the(Next, reported).command == f"logtool plan {quoted(home)}"
