"""``logtool lookup``: the place of an offset or of a timestamp, by the index and by a scan."""

import pytest
from answers import numbers


@pytest.fixture
def mixed(scenario):
    return scenario("4.3.1/killed") / "tx.mixed-0"


def asked(run, *words):
    """Return the status and the object of a lookup."""
    result = run("lookup", *words, "--json")
    return result.status, result.items[0]


def test_a_person_sees_where_an_offset_is_by_both_ways(run, mixed):
    result = run("lookup", "--offset", 500, mixed)
    assert result.status == 0
    assert result.lines[0].startswith(f"{mixed}: ")
    assert numbers(result.lines[0]) == [500]
    index, scan = (line.split() for line in result.lines[3:])
    assert (index[0], scan[0]) == ("index", "scan")
    assert index[1:] == scan[1:]
    assert index[1] == f"{416:020d}.log"


def test_json_has_the_question_the_answer_and_both_places(run, mixed):
    question, index, scan = run("lookup", "--timestamp", 1795224776390, "--json", mixed).items
    assert question["asked"] == "timestamp"
    assert question["asked_timestamp"] == "2026-11-21T01:32:56.390Z"
    assert question["found"] is question["agree"] is True
    assert {**index, "by": "scan"} == scan
    assert (index["offset"], index["record"], index["segment"]) == (891, 6, 803)


def test_a_time_is_milliseconds_or_rfc_3339(run, mixed):
    one = run("lookup", "--timestamp", 1795224776390, "-f", "csv", mixed)
    other = run("lookup", "--timestamp", "2026-11-21T01:32:56.390Z", "-f", "csv", mixed)
    assert one == other
    assert [row["offset"] for row in one.rows] == ["891", "891"]


def test_the_ends_can_be_asked_for(run, mixed):
    for end, offset in (("earliest", 0), ("latest", 2003)):
        result = run("lookup", "--timestamp", end, "--json", mixed)
        question, *places = result.items
        assert (result.status, question["agree"]) == (0, True)
        assert [place["offset"] for place in places] == [offset, offset]
        assert offset in numbers(run("lookup", "--timestamp", end, mixed).lines[0])


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("--offset", 2003), "2003"),
        (("--timestamp", "2030-01-01T00:00:00Z"), "2030-01-01T00:00:00.000Z"),
        (("--timestamp", 2**63 - 1), "9223372036854775807"),
    ],
)
def test_a_question_outside_of_the_log_is_one_line_and_status_1(run, mixed, words, number):
    status, answer = asked(run, *words, mixed)
    assert (status, answer["found"], answer["log_end_offset"]) == (1, False, 2003)
    (line,) = run("lookup", *words, mixed).lines
    assert number in line


def test_below_the_log_start_nothing_is_there(run, scenario):
    path = scenario("4.3.1/clean") / "deleted-records.mid-0"
    status, answer = asked(run, "--offset", 76, path)
    assert (status, answer["found"], answer["log_start_offset"]) == (1, False, 77)
    assert {76, 77} <= set(numbers(run("lookup", "--offset", 76, path).lines[0]))


@pytest.mark.parametrize(
    ("name", "offset", "later"), [("compacted-tx-0", 0, True), ("compacted.keys-0", 50, False)]
)
def test_an_offset_without_a_record_leads_to_the_next_one_or_to_its_batch(
    run, scenario, name, offset, later
):
    result = run("lookup", "--offset", offset, "--json", scenario("4.3.1/clean") / name)
    assert result.status == 0
    question, *places = result.items
    assert (question["found"], question["agree"]) == (True, True)
    for place in places:
        assert (place["offset"] is not None and place["offset"] > offset) == later
        assert place["last_offset"] >= offset


def test_a_wrong_index_makes_the_status_1(run, partition):
    assert run("lookup", "--offset", 4, partition).status == 0
    index = partition / f"{0:020d}.index"
    entry = (1).to_bytes(4, "big") + index.read_bytes()[4:8]
    index.write_bytes(entry)
    assert run("lookup", "--offset", 1, partition).status == 1
    result = run("lookup", "--offset", 2, "--json", partition)
    question, by_index, _ = result.items
    assert (result.status, question["agree"], by_index["base_offset"]) == (1, False, 3)
    assert "logtool verify" in run("lookup", "--offset", 2, partition).stdout


def test_a_time_without_a_zone_is_utc_and_a_line_shows_it(run, partition):
    exact = run("lookup", "--timestamp", "2023-11-14T22:13:20.004Z", partition)
    assert (exact.status, exact.stderr) == (0, "")
    assert 4 in numbers(exact.lines[0])
    result = run("lookup", "--timestamp", "2023-11-14T22:13:20.004", partition)
    assert result.stdout == exact.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("--timestamp 2023-11-14T22:13:20.004 ")
    assert " 2023-11-14T22:13:20.004Z" in line
    assert run("lookup", "--timestamp", "2023-11-14", "-q", partition).stderr == ""


def test_a_time_before_the_present_is_no_option(spawn, partition):
    result = spawn("lookup", "--timestamp", "-2h", "--json", partition)
    assert result.status == 1  # the records are older
    assert result.stderr.startswith("--timestamp -2h ")
    assert " 20" in result.stderr  # the year
    assert result.items[0]["found"] is False


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((), ("--offset", "--timestamp")),
        (("--offset", 1, "--timestamp", 1), ("--offset", "--timestamp")),
        (("--timestamp", "noon"), ("--timestamp noon: ", "yesterday", "earliest", "latest")),
        (("--timestamp", 2**63), (f"--timestamp {2**63}: ",)),
        (("--offset", 2**63), ("--offset",)),
        (("--offset", -1), ("--offset",)),
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(run, partition, arguments, parts):
    result = run("lookup", *arguments, partition)
    assert result.status == 2
    for part in parts:
        assert part in result.stderr.splitlines()[0]


def test_a_path_that_is_no_partition_dir_is_one_line(run, partition):
    for path in (partition.parent.parent, partition / "partition.metadata", partition / "none"):
        result = run("lookup", "--offset", 1, path)
        assert result.status == 4
        (line,) = result.stderr.splitlines()
        assert str(path) in line
        assert result.stdout == ""
