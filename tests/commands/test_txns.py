import csv
import io

import pytest

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


def test_now_is_milliseconds_or_a_time_with_its_zone(run, killed):
    one = run("txns", "--json", "--now", "2026-11-21T01:40:00Z", killed)
    other = run("txns", "--json", "--now", 1795225200000, killed)
    assert one.status == other.status == 0
    assert one.stdout.partition('"summary"')[0] == other.stdout.partition('"summary"')[0]
    result = run("txns", "--now", "2026-11-21T01:40:00", killed)
    assert result.status == 2
    assert "--now 2026-11-21T01:40:00: expected milliseconds or RFC 3339" in result.stderr


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
