"""``logtool txns``: open, hanging and ended transactions, producers and coordinators."""

import os

import pytest
import rolled_back
from answers import last_line, numbers
from damage import copied, damage_file, flip
from transaction_state import FIRST, entry, write
from verification import set_offsets

from logtool.formats import producer_snapshot

COMMAND = [
    "kafka-transactions.sh", "--bootstrap-server", "HOST:9092", "find-hanging",
    "--topic", "tx.mixed", "--partition", "0",
]  # fmt: skip


@pytest.fixture
def killed(scenario, tmp_path):
    """Return a partition dir alone, without coordinators next to it."""
    return copied(scenario("4.3.1/killed") / "tx.mixed-0", tmp_path / "alone" / "tx.mixed-0")


@pytest.fixture
def log_dir(scenario):
    return scenario("4.3.1/killed")


@pytest.fixture
def begun(run, killed):
    """Return when the oldest open transaction began, in ms."""
    objects = run("txns", "-f", "ndjson", killed).of_type("transaction")
    return min(obj["started_ms"] for obj in objects)


def test_a_person_sees_the_pinning_transaction_and_the_command_to_end_it(run, killed):
    result = run("txns", killed)
    assert result.status == 1
    assert {336, 1009, 2, 17, 32} <= set(numbers(result.lines[0]))
    assert sum(line.startswith("unknown") for line in result.lines) == 2
    assert " ".join(COMMAND) in result.stdout
    assert numbers(last_line(result))[-5:] == [1, 2, 0, 17, 32]
    (one,) = run("txns", "-f", "ndjson", killed).of_type("partition")
    assert (one["last_stable_offset"], one["pinned_by"]) == (336, 1009)
    assert [one[state] for state in ("open", "hanging", "aborted", "committed")] == [2, 0, 17, 32]


@pytest.mark.parametrize("name", ["tx.mixed-0", "tx-interleaved_v2-0"])
def test_a_partition_dir_gets_the_answer_of_its_log_dir(run, scenario, name):
    home = scenario("4.3.1/killed")
    whole = run("txns", "-f", "ndjson", home)
    alone = run("txns", "-f", "ndjson", home / name)
    assert alone.status == whole.status == 0

    def open_ones(result):
        found = [one for one in result.of_type("transaction") if one["path"] == str(home / name)]
        names = ("state", "first_offset", "advice", "abort")
        return [[one[key] for key in names] + [one["coordinator"]["relation"]] for one in found]

    assert open_ones(alone) == open_ones(whole)
    assert {(one[0], one[-1]) for one in open_ones(alone)} == {("open", "listed")}
    for log in (home / name).glob("*.log"):
        found = run("txns", "-f", "ndjson", log).of_type("transaction")
        assert "hanging" not in {one["state"] for one in found}


def test_an_open_transaction_that_is_not_too_old_is_no_finding(run, killed, begun):
    result = run("txns", "-f", "ndjson", "--now", begun + 60_000, killed)
    assert result.status == 0
    ones = result.of_type("transaction")
    assert [obj["state"] for obj in ones] == ["open", "open"]
    assert ones[0]["age_ms"] == 60_000
    assert (ones[0]["abort"], ones[0]["ask"].split()) == (None, COMMAND)


def test_max_age_decides_which_transactions_hang(run, killed, begun):
    given = ["-f", "ndjson", "--now", begun + 60_000, "--max-age"]
    assert run("txns", *given, "59s", killed).status == 1
    assert run("txns", *given, "1m", killed).status == 0


def test_now_is_milliseconds_or_a_time_in_utc_unless_it_has_a_zone(run, killed):
    runs = [
        run("txns", "--json", "--now", now, killed)
        for now in ("2026-11-21T01:40:00Z", 1795225200000, "2026-11-21T01:40:00")
    ]
    assert [one.status for one in runs] == [0, 0, 0]
    assert len({one.stdout.partition('"summary"')[0] for one in runs}) == 1
    assert ["2026-11-21T01:40:00.000Z" in one.stderr for one in runs] == [False, False, True]
    result = run("txns", "--now", "noon", killed)
    assert result.status == 2
    assert "--now noon: " in result.stderr


def test_ended_ones_are_listed_on_demand(run, killed):
    found = run("txns", "-f", "ndjson", "--all", killed).of_type("transaction")
    states = [obj["state"] for obj in found]
    assert (states.count("aborted"), states.count("committed")) == (17, 32)


def test_the_command_names_the_broker_that_was_given(run, killed):
    found = run("txns", "-f", "ndjson", "--bootstrap-server", "b1:9093", killed)
    assert " --bootstrap-server b1:9093 find-hanging " in found.of_type("transaction")[0]["ask"]


def test_csv_has_transactions_and_producers(run, killed):
    rows = run("txns", "-f", "csv", killed).rows
    assert [row["type"] for row in rows] == ["transaction"] * 2 + ["producer"] * 5
    assert rows[0]["ask"].split() == COMMAND
    assert rows[2]["last_sequence"] == "143"


def test_a_table_leaves_out_partitions_without_producers(run, scenario):
    folder = scenario("4.3.1/clean") / "codec-lz4-0"
    assert run("txns", folder).stdout == ""
    assert run("txns", "-v", folder).lines[0].startswith(f"{folder}: ")


def test_a_snapshot_that_contradicts_the_log_makes_the_status_1(run, copy_of, begun):
    folder = copy_of("4.3.1/clean") / "tx.mixed-0"
    file = folder / f"{486:020d}.snapshot"
    assert run("txns", "--max-age", "9999h", folder).status == 0
    entries = producer_snapshot.parse(file.read_bytes()).entries.copy()
    entries["current_txn_first_offset"] = -1
    file.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    result = run("txns", "--max-age", "9999h", folder)
    assert result.status == 1
    assert "WARNING producer-snapshot/mismatch" in result.stdout


def test_another_file_is_one_line_with_its_path(run, killed):
    result = run("txns", "-q", killed / "leader-epoch-checkpoint")
    assert result.status == 4
    (line,) = result.stderr.splitlines()
    assert f"{killed / 'leader-epoch-checkpoint'}: " in line


def test_when_time_is_over_the_answer_is_incomplete(run, scenario):
    result = run("txns", "--max-duration", "0.0001s", scenario("4.3.1/killed"))
    assert result.status == 6
    assert last_line(result).startswith("incomplete")


def test_an_open_transaction_has_the_last_offset_that_was_written_in_it(run, killed):
    found = run("txns", "-f", "ndjson", killed)
    ones = {obj["producer_id"]: obj for obj in found.of_type("transaction")}
    producers = {obj["producer_id"]: obj for obj in found.of_type("producer")}
    # By Kafka's own tool: kafka-dump-log.sh prints of 1009 and 1010 one batch each without marker.
    assert {i: (one["first_offset"], one["last_offset"]) for i, one in ones.items()} == {
        i: (producers[i]["transaction_first_offset"], producers[i]["last_offset"])
        for i in (1009, 1010)
    }
    assert ones[1009]["last_offset"] == 350


def test_open_shows_open_transactions_and_nothing_else(run, scenario, killed):
    home = log_dir
    when = ["-f", "ndjson", "--now", "2026-11-22T00:00Z"]
    result = run("txns", "--open", *when, home)
    states = {obj["state"] for obj in result.of_type("transaction")}
    assert states <= {"open", "hanging"}
    assert result.of_type("producer") == []
    assert all(obj["open"] for obj in result.of_type("partition"))
    assert len(result.of_type("transaction")) == sum(o["open"] for o in result.of_type("partition"))
    whole = run("txns", *when, home)
    assert result.of_type("transaction") == whole.of_type("transaction")
    nothing = run("txns", "--open", scenario("4.3.1/clean") / "idempotent_writes-0")
    assert (nothing.status, nothing.stdout) == (0, "")
    assert numbers(last_line(nothing))[:3] == [1, 0, 0]
    assert run("txns", "--open", "--all", home).status == 2


def test_a_table_begins_with_open_transactions_and_leaves_out_plain_producers(run, log_dir):
    home = log_dir
    result = run("txns", home)
    headings = [line for line in result.lines if line.startswith(str(home))]
    objects = run("txns", "-f", "ndjson", home)
    open_at = {one["path"] for one in objects.of_type("partition") if one["open"]}
    with_open = [line.partition(": ")[0] in open_at for line in headings]
    assert with_open == sorted(with_open, reverse=True)
    assert any(with_open)
    assert not all(with_open)
    plain = [
        obj for obj in objects.of_type("producer")
        if obj["coordinator_epoch"] is None and obj["transaction_first_offset"] is None
    ]  # fmt: skip
    assert plain
    (line,) = (line for line in result.stderr.splitlines() if "--all" in line)
    assert numbers(line) == [len(plain)]
    assert "idempotent_writes-0" not in result.stdout
    everything = run("txns", "--all", home)
    assert "idempotent_writes-0" in everything.stdout
    assert "--all" not in everything.stderr


def test_hanging_transactions_come_before_open_ones(run, killed, begun):
    ones = run("txns", "-f", "ndjson", killed).of_type("transaction")
    last = max(obj["started_ms"] for obj in ones)
    assert last > begun
    given = ["--now", last + 60_000, "--max-age", f"{(60_000 + (last - begun) // 2) / 1000:.3f}s"]
    found = run("txns", "-f", "ndjson", *given, killed).of_type("transaction")
    assert [obj["state"] for obj in found] == ["unknown", "open"]


def test_a_log_dir_shows_the_entries_of_the_coordinators(run, log_dir):
    home = log_dir
    result = run("txns", "--open", home)
    assert result.status == 0
    titles = next(line for line in result.lines if "transactional_id" in line)
    assert titles.index("state ") < titles.index("producer_id") < titles.index("epoch")
    rows = [line.split() for line in result.lines if line.startswith("open ")]
    assert [(row[1], row[5]) for row in rows if row[1][-1] == "0"] == [
        ("fixture-open-0", "Ongoing")
    ] * 2
    assert "2026-11-21T01:47:5" in result.stdout  # the timeout
    assert "kafka-transactions.sh" not in result.stdout
    found = run("txns", "-f", "ndjson", home)
    ids = {obj["transactional_id"]: obj for obj in found.of_type("coordinator")}
    assert sorted(ids) == ["fixture-open-0", "fixture-open-1", "fixture-traffic"]
    assert ids["fixture-open-0"]["times_out"].startswith("2026-11-21T01:47:5")
    assert ids["fixture-open-0"]["terminate"].split() == [
        "kafka-transactions.sh", "--bootstrap-server", "HOST:9092",
        "forceTerminateTransaction", "--transactionalId", "fixture-open-0",
    ]  # fmt: skip
    for one in found.of_type("transaction"):
        assert (one["state"], one["abort"]) == ("open", None)
        assert one["coordinator"]["timeout_ms"] == 900_000
    of_traffic = run("txns", "-f", "ndjson", "--topic", "codec-*", home)
    assert of_traffic.of_type("coordinator") == []
    every = run("txns", "-f", "ndjson", "--all", home).of_type("coordinator")
    assert {"CompleteCommit", "CompleteAbort", "Ongoing"} <= {obj["state"] for obj in every}
    rows = run("txns", "-f", "csv", "--open", home).rows
    assert [row["transactional_id"] for row in rows if row["type"] == "transaction"] == (
        ["fixture-open-0", "fixture-open-1", "fixture-open-0", "fixture-open-1"]
    )


@pytest.mark.parametrize("is_known", [True, False], ids=["after-the-commit", "maybe-committed"])
def test_the_command_to_abort_is_printed_where_nothing_committed_is_lost(run, copy_of, is_known):
    home = copy_of("4.3.1/killed")
    (home / "recovery-point-offset-checkpoint").unlink()
    # A marker in front of the transaction is newer than the commit, or none is.
    updated = 1_795_224_772_400 - (3_600_000 if is_known else 0)
    made = entry("a", "CompleteCommit", 1009, transactionLastUpdateTimestampMs=updated)
    for number in (0, 1):
        write(home, *(() if number else [made]), number=number)
    ends = {("__transaction_state", 0): 1, ("__transaction_state", 1): 0}
    set_offsets(home / "replication-offset-checkpoint", ends)
    given = ["--now", 1_795_224_773_400, "--topic", "tx.mixed", home]
    found = run("txns", "-f", "ndjson", *given)
    assert found.status == 1
    one = next(each for each in found.of_type("transaction") if each["producer_id"] == 1009)
    assert (one["state"], one["coordinator"]["may_be_committed"]) == ("hanging", not is_known)
    abort = [*COMMAND[:3], "abort", *COMMAND[4:], "--start-offset", "336"]
    command = one["abort" if is_known else "ask"].split()
    assert command == (abort if is_known else COMMAND)
    assert one["ask" if is_known else "abort"] is None
    (finding,) = (each for each in found.of_type("finding") if each["first_offset"] == 336)
    assert finding["code"] == "transaction-state/abandoned"
    table = run("txns", *given)
    assert (" abort --topic tx.mixed " in table.stdout) is is_known


def test_a_partition_has_the_offset_to_which_it_moves_by_itself(run, log_dir):
    parts = run("txns", "-f", "ndjson", "--open", log_dir).of_type("partition")
    assert all(one["last_stable_offset_later"] == one["log_end_offset"] for one in parts)
    (alone,) = run("txns", "-f", "ndjson", log_dir / "tx.mixed-0").of_type("partition")
    assert (alone["last_stable_offset"], alone["last_stable_offset_later"]) == (336, 2003)


def test_a_damaged_coordinator_log_makes_the_status_1(run, copy_of):
    home = copy_of("4.3.1/killed")
    log = home / "__transaction_state-1" / f"{0:020d}.log"
    damage_file(log, flip, log.stat().st_size // 2, 1)
    result = run("txns", "--topic", "tx.mixed", home)
    assert result.status == 1
    (line,) = (line for line in result.lines if "transaction-state/damaged" in line)
    assert (line.split()[0], str(log) in line) == ("ERROR", True)
    assert "fixture-open-1" in result.stdout


def test_a_coordinator_log_that_ends_below_its_high_watermark_settles_nothing(run, copy_of):
    home = copy_of("4.3.1/killed")
    rows = home / "replication-offset-checkpoint"
    set_offsets(rows, {("__transaction_state", number): 1_000_000 for number in (0, 1)})
    for number in (0, 1):
        (home / f"__transaction_state-{number}" / FIRST).write_bytes(b"")
    os.utime(rows, (0, 0))  # the logs are younger: no copy was made before it
    found = run("txns", "-f", "ndjson", "--topic", "tx.mixed", home)
    ends = [one for one in found.of_type("finding") if one["code"] == "transaction-state/damaged"]
    assert found.status == 1
    assert [(one["first_offset"], one["last_offset"]) for one in ends] == [(0, 999_999)] * 2
    # Without an entry it is not known to be abandoned: one may have been lost.
    assert "transaction-state/abandoned" not in {one["code"] for one in found.of_type("finding")}
    relations = {one["coordinator"]["relation"] for one in found.of_type("transaction")}
    assert relations == {"not-here"}
    assert {one["state"] for one in found.of_type("transaction")} == {"unknown"}


def test_a_coordinator_log_below_its_recovery_point_orders_no_abort(run, copy_of):
    home = copy_of("4.3.1/killed")
    (home / "replication-offset-checkpoint").unlink()
    points = home / "recovery-point-offset-checkpoint"
    set_offsets(points, {("__transaction_state", number): 19 for number in (0, 1)})
    for number in (0, 1):
        (home / f"__transaction_state-{number}" / FIRST).write_bytes(b"")
    os.utime(points, (0, 0))
    found = run("txns", "-f", "ndjson", "--topic", "tx.mixed", home)
    assert found.status == 1
    ones = found.of_type("transaction")
    assert {(one["state"], one["abort"]) for one in ones} == {("unknown", None)}
    assert ones[0]["ask"].split() == COMMAND


def test_a_transaction_of_a_rolled_back_coordinator_is_named_with_its_abort(run, tmp_path):
    home = rolled_back.log_dir(tmp_path / "data")
    result = run("txns", "-f", "ndjson", "--all", home)
    assert result.status == 1
    (one,) = (each for each in result.of_type("transaction") if each["state"] == "hanging")
    assert (one["first_offset"], one["producer_epoch"], one["ask"], one["describe"]) == (
        4, 1, None, None,
    )  # fmt: skip
    assert one["abort"].split()[3:] == [
        "abort", "--topic", "payouts", "--partition", "0", "--start-offset", "4",
    ]  # fmt: skip
    account = one["coordinator"]
    assert (account["state"], account["producer_epoch"]) == ("CompleteCommit", 0)
    assert (account["is_older"], account["may_be_committed"]) == (True, False)
    (entry,) = result.of_type("coordinator")
    assert (entry["log_epoch"], entry["log_epoch_in"]) == (1, "payouts-0")
    table = run("txns", "--all", home).stdout
    assert one["after_restart"] in table
    assert entry["contradiction"] in table


def test_where_it_stays_unknown_two_commands_ask_the_cluster(run, tmp_path):
    home = rolled_back.log_dir(tmp_path / "data", replicas=(1, 2))
    (one,) = run("txns", "-f", "ndjson", home).of_type("transaction")
    assert (one["state"], one["abort"], one["after_restart"]) == ("unknown", None, None)
    assert one["ask"].split()[3:] == ["find-hanging", "--topic", "payouts", "--partition", "0"]
    assert one["describe"].split()[3:] == ["describe", "--transactional-id", rolled_back.NAME]
    table = run("txns", home).stdout
    assert all(one[key] in table for key in ("ask", "describe", "reason"))


def test_80_columns_show_the_epoch_that_an_abort_by_hand_needs(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    home = rolled_back.log_dir(tmp_path / "data", lost=rolled_back.NEEDED + 1)
    lines = run("txns", "--open", home).lines
    titles = next(line.split() for line in lines if line.startswith("state "))
    assert {"epoch", "producer_id", "transactional_id", "what_to_do"} <= set(titles)
