import csv
import io
import json

import pytest


@pytest.fixture
def mixed(scenario):
    return scenario("4.3.1/killed") / "tx.mixed-0"


def test_a_person_sees_where_an_offset_is_by_both_ways(run, mixed):
    result = run("lookup", "--offset", 500, mixed)
    assert result.status == 0
    assert result.lines[0] == f"{mixed}: offset 500; index and scan agree"
    index, scan = (line.split() for line in result.lines[3:])
    assert (index[0], scan[0]) == ("index", "scan")
    assert index[1:] == scan[1:]
    assert index[1] == f"{416:020d}.log"


def test_json_has_the_question_the_answer_and_both_places(run, mixed):
    document = json.loads(run("lookup", "--timestamp", 1795224776390, "--json", mixed).stdout)
    question, index, scan = document["items"]
    assert question["asked"] == "timestamp"
    assert question["asked_timestamp"] == "2026-11-21T01:32:56.390Z"
    assert question["found"] is question["agree"] is True
    assert {**index, "by": "scan"} == scan
    assert (index["offset"], index["record"], index["segment"]) == (891, 6, 803)


def test_a_time_is_milliseconds_or_rfc_3339(run, mixed):
    one = run("lookup", "--timestamp", 1795224776390, "-f", "csv", mixed)
    other = run("lookup", "--timestamp", "2026-11-21T01:32:56.390Z", "-f", "csv", mixed)
    assert one == other
    assert [row["offset"] for row in csv.DictReader(io.StringIO(one.stdout))] == ["891", "891"]


def test_the_ends_can_be_asked_for(run, mixed):
    assert "the log starts at offset 0" in run("lookup", "--timestamp", "earliest", mixed).stdout
    assert "offset 2003; index and scan" in run("lookup", "--timestamp", "latest", mixed).stdout


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (("--offset", 2003), "offset 2003 is not below the log end offset 2003"),
        (("--timestamp", "2030-01-01T00:00:00Z"),
         "no record has a timestamp of 2030-01-01T00:00:00.000Z or a later one"),
        (("--timestamp", 2**63 - 1), "no record has a timestamp of 9223372036854775807 or"),
    ],
)  # fmt: skip
def test_what_is_outside_of_the_log_is_one_line_and_status_1(run, mixed, asked, answer):
    result = run("lookup", *asked, mixed)
    assert result.status == 1
    assert len(result.lines) == 1
    assert answer in result.stdout


def test_below_the_log_start_nothing_is_there(run, scenario):
    path = scenario("4.3.1/clean") / "deleted-records.mid-0"
    result = run("lookup", "--offset", 76, path)
    assert result.status == 1
    assert "offset 76 is below the log start offset 77" in result.stdout


def test_an_offset_without_a_record_leads_to_what_is_there(run, scenario):
    log_dir = scenario("4.3.1/clean")
    result = run("lookup", "--offset", 0, log_dir / "compacted-tx-0")
    assert result.status == 0
    assert "there is no record of offset 0: next is " in result.stdout
    result = run("lookup", "--offset", 50, log_dir / "compacted.keys-0")
    assert result.status == 0
    assert "offset 50: its batch holds none from there on; index and scan" in result.stdout


def test_a_wrong_index_makes_the_status_1(run, partition):
    assert run("lookup", "--offset", 4, partition).status == 0
    index = partition / f"{0:020d}.index"
    entry = (1).to_bytes(4, "big") + index.read_bytes()[4:8]
    index.write_bytes(entry)
    assert run("lookup", "--offset", 1, partition).status == 1
    result = run("lookup", "--offset", 2, partition)
    assert result.status == 1
    assert "the index leads to offset 3 in" in result.stdout
    assert "see logtool verify" in result.stdout


def test_a_time_without_a_zone_is_utc_and_the_answer_says_so(run, partition):
    exact = run("lookup", "--timestamp", "2023-11-14T22:13:20.004Z", partition)
    assert (exact.status, exact.stderr) == (0, "")
    assert "offset 4" in exact.stdout
    result = run("lookup", "--timestamp", "2023-11-14T22:13:20.004", partition)
    assert result.stdout == exact.stdout
    line = "--timestamp 2023-11-14T22:13:20.004 means 2023-11-14T22:13:20.004Z, in UTC\n"
    assert result.stderr == line
    assert run("lookup", "--timestamp", "2023-11-14", "-q", partition).stderr == ""


def test_a_time_before_the_present_is_no_option(spawn, partition):
    result = spawn("lookup", "--timestamp", "-2h", partition)
    assert result.status == 1  # the records are older
    assert "--timestamp -2h means 20" in result.stderr
    assert "no record has a timestamp of" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "give one of --offset and --timestamp"),
        (("--offset", 1, "--timestamp", 1), "give one of --offset and --timestamp"),
        (("--timestamp", "noon"), "--timestamp noon: expected milliseconds, a time such as"),
        (("--timestamp", "noon"), "today or yesterday; or earliest or latest"),
        (("--timestamp", 2**63), "expected milliseconds, a time such as"),
        (("--offset", 2**63), "--offset"),
        (("--offset", -1), "--offset"),
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(run, partition, arguments, line):
    result = run("lookup", *arguments, partition)
    assert result.status == 2
    assert line in result.stderr.splitlines()[0]


def test_what_is_no_partition_dir_is_one_clear_line(run, partition):
    for path in (partition.parent.parent, partition / "partition.metadata", partition / "none"):
        result = run("lookup", "--offset", 1, path)
        assert result.status == 4
        assert len(result.stderr.splitlines()) == 1
        assert result.stdout == ""
