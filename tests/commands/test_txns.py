import csv
import io
import os

import pytest
from transaction_state import FIRST
from verification import set_offsets

from logtool.formats import producer_snapshot

COMMAND = (
    "kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic tx.mixed "
    "--partition 0 --start-offset 336"
)


@pytest.fixture
def killed(scenario):
    return scenario("4.3.1/killed") / "tx.mixed-0"


@pytest.fixture
def begun(run, killed):
    """Return when the oldest open transaction began, in ms."""
    objects = run("txns", "-f", "ndjson", killed).of_type("transaction")
    return min(obj["started_ms"] for obj in objects)


def test_a_person_sees_what_pins_reading_and_how_to_end_it(run, killed):
    result = run("txns", killed)
    assert result.status == 1
    assert (
        "last stable offset 336, pinned by producer 1009; 2 open, 17 aborted, 32" in result.lines[0]
    )
    assert sum(line.startswith("hanging") for line in result.lines) == 2
    assert COMMAND in result.stdout
    assert result.stderr.splitlines()[-1] == (
        "1 partition, 2 open, 2 hanging, 17 aborted, 32 committed"
    )


def test_what_is_open_and_not_too_old_is_no_finding(run, killed, begun):
    result = run("txns", "-f", "ndjson", "--now", begun + 60_000, killed)
    assert result.status == 0
    ones = result.of_type("transaction")
    assert [obj["state"] for obj in ones] == ["open", "open"]
    assert ones[0]["age_ms"] == 60_000
    assert ones[0]["abort"] == COMMAND


def test_how_old_is_too_old_can_be_said(run, killed, begun):
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
    told = "--now 2026-11-21T01:40:00 means 2026-11-21T01:40:00.000Z, in UTC"
    assert [told in one.stderr for one in runs] == [False, False, True]
    result = run("txns", "--now", "noon", killed)
    assert result.status == 2
    assert "--now noon: expected milliseconds, a time such as" in result.stderr


def test_ended_ones_are_listed_on_demand(run, killed):
    states = [obj["state"] for obj in run("txns", "-f", "ndjson", "--all", killed).objects
              if obj["type"] == "transaction"]  # fmt: skip
    assert (states.count("aborted"), states.count("committed")) == (17, 32)


def test_the_command_names_the_broker_that_was_given(run, killed):
    found = run("txns", "-f", "ndjson", "--bootstrap-server", "b1:9093", killed)
    assert " --bootstrap-server b1:9093 abort " in found.of_type("transaction")[0]["abort"]


def test_csv_has_transactions_and_producers(run, killed):
    rows = list(csv.DictReader(io.StringIO(run("txns", "-f", "csv", killed).stdout)))
    assert [row["type"] for row in rows] == ["transaction"] * 2 + ["producer"] * 5
    assert rows[0]["abort"] == COMMAND
    assert rows[2]["last_sequence"] == "143"


def test_a_table_leaves_out_partitions_without_producers(run, scenario):
    folder = scenario("4.3.1/clean") / "codec-lz4-0"
    assert run("txns", folder).stdout == ""
    assert "offsets 0 through 299" in run("txns", "-v", folder).stdout


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


def test_what_is_no_log_is_one_clear_line(run, killed):
    result = run("txns", "-q", killed / "leader-epoch-checkpoint")
    assert result.status == 4
    assert len(result.stderr.splitlines()) == 1
    assert "expected a log dir, a partition dir or a .log file" in result.stderr


def test_time_that_runs_out_is_said(run, scenario):
    result = run("txns", "--max-duration", "0.0001s", scenario("4.3.1/killed"))
    assert result.status == 6
    assert result.stderr.splitlines()[-1].startswith("incomplete, the time is over: ")


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


def test_open_shows_what_is_open_and_nothing_else(run, scenario, killed):
    home = killed.parent
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
    assert "1 partition, 0 open, 0 hanging" in nothing.stderr
    assert run("txns", "--open", "--all", home).status == 2


def test_a_table_begins_with_what_is_open_and_leaves_out_plain_producers(run, killed):
    home = killed.parent
    result = run("txns", home)
    headings = [line for line in result.lines if line.startswith(str(home))]
    pinned = ["pinned by" in line for line in headings]
    assert pinned == sorted(pinned, reverse=True)
    assert any(pinned) and not all(pinned)
    plain = [
        obj for obj in run("txns", "-f", "ndjson", home).of_type("producer")
        if obj["coordinator_epoch"] is None and obj["transaction_first_offset"] is None
    ]  # fmt: skip
    assert plain
    assert f"{len(plain)} producers without transactions not shown (--all shows" in result.stderr
    assert "idempotent_writes-0" not in result.stdout
    everything = run("txns", "--all", home)
    assert "idempotent_writes-0" in everything.stdout
    assert "not shown" not in everything.stderr


def test_what_hangs_comes_before_what_is_open(run, killed, begun):
    ones = run("txns", "-f", "ndjson", killed).of_type("transaction")
    last = max(obj["started_ms"] for obj in ones)
    assert last > begun
    given = ["--now", last + 60_000, "--max-age", f"{(60_000 + (last - begun) // 2) / 1000:.3f}s"]
    found = run("txns", "-f", "ndjson", *given, killed).of_type("transaction")
    assert [obj["state"] for obj in found] == ["hanging", "open"]


def test_a_log_dir_tells_what_the_coordinators_say(run, killed):
    home = killed.parent
    result = run("txns", "--open", home)
    assert result.status == 0
    assert "open   fixture-open-0    Ongoing" in result.stdout
    assert "wait: its coordinator aborts it as soon as it runs (timeout 2026-11-21T01:47:5" in (
        result.stdout
    )
    assert "kafka-transactions.sh" not in result.stdout
    assert "transactional_id  state    producer_id  producer_epoch" in result.stdout
    found = run("txns", "-f", "ndjson", home)
    ids = {obj["transactional_id"]: obj for obj in found.of_type("coordinator")}
    assert sorted(ids) == ["fixture-open-0", "fixture-open-1", "fixture-traffic"]
    assert ids["fixture-open-0"]["terminate"] == (
        "kafka-transactions.sh --bootstrap-server localhost:9092 forceTerminateTransaction "
        "--transactionalId fixture-open-0"
    )
    for one in found.of_type("transaction"):
        assert (one["state"], one["abort"]) == ("open", None)
        assert one["coordinator"]["timeout_ms"] == 900_000
    of_traffic = run("txns", "-f", "ndjson", "--topic", "codec-*", home)
    assert of_traffic.of_type("coordinator") == []
    every = run("txns", "-f", "ndjson", "--all", home).of_type("coordinator")
    assert {"CompleteCommit", "CompleteAbort", "Ongoing"} <= {obj["state"] for obj in every}
    rows = list(csv.DictReader(io.StringIO(run("txns", "-f", "csv", "--open", home).stdout)))
    assert [row["transactional_id"] for row in rows if row["type"] == "transaction"] == (
        ["fixture-open-0", "fixture-open-1", "fixture-open-0", "fixture-open-1"]
    )


def test_a_damaged_coordinator_log_makes_the_status_1(run, copy_of):
    home = copy_of("4.3.1/killed")
    log = home / "__transaction_state-1" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    result = run("txns", "--topic", "tx.mixed", home)
    assert result.status == 1
    assert f"ERROR transaction-state/damaged  {log}" in result.stdout
    assert "fixture-open-1" in result.stdout


def test_a_coordinator_log_that_ends_below_its_high_watermark_settles_nothing(run, copy_of):
    home = copy_of("4.3.1/killed")
    rows = home / "replication-offset-checkpoint"
    set_offsets(rows, {("__transaction_state", number): 1_000_000 for number in (0, 1)})
    for number in (0, 1):
        (home / f"__transaction_state-{number}" / FIRST).write_bytes(b"")
    os.utime(rows, (0, 0))  # the logs are younger, so that nobody copied them before it
    found = run("txns", "-f", "ndjson", "--topic", "tx.mixed", home)
    ends = [one for one in found.of_type("finding") if one["code"] == "transaction-state/damaged"]
    assert found.status == 1
    assert [(one["first_offset"], one["last_offset"]) for one in ends] == [(0, 999_999)] * 2
    # Without an entry it is not known to be abandoned: one may have been lost.
    assert "transaction-state/abandoned" not in {one["code"] for one in found.of_type("finding")}
    told = {one["coordinator"]["relation"] for one in found.of_type("transaction")}
    assert told == {"not-here"}
