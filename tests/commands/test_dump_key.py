"""`dump --key` finds a key in every file, and says what is special about each record."""

import csv
import io
import json

import pytest
from verification import small_log_dir

KEYS, PENDING, MIDDLE = "compacted.keys-0", "deleted-pending-0", "deleted-records.mid-0"
DOOMED = "doomed-topic.v1_x-0.4557ba7c994041f1b8724aaeb5a514aa-delete"
MIXED = "tx.mixed-0"
KEY = "key-0001"


@pytest.fixture
def small(scenario, tmp_path):
    """Return a log dir with segments, files and a directory that wait to be deleted."""
    kept = (KEYS, PENDING, MIDDLE, DOOMED)
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", *kept)


def places(result):
    return sorted((one["path"], one["offset"]) for one in result.of_type("record"))


def states(result):
    """Return the states of the records by partition dir, name of the file and offset."""
    return {
        (*one["path"].rsplit("/", 2)[1:], one["offset"]): one["state"]
        for one in result.of_type("record")
    }


def search(run, *arguments, key=KEY):
    result = run("dump", "-f", "ndjson", "--key", key, *arguments)
    assert result.status == 0, result.stderr
    return result


def test_a_key_is_found_in_every_file_of_a_directory(run, small):
    logs = sorted(path for path in small.glob("*/*") if ".log" in path.suffixes)
    assert any(path.suffix == ".deleted" for path in logs)
    expected = places(search(run, *logs))
    assert places(search(run, small)) == expected
    document = json.loads(run("dump", "--json", "--count", "--key", KEY, small).stdout)
    assert document["items"][-1]["records"] == len(expected)


def test_offsets_and_topics_also_select_files_that_wait_to_be_deleted(run, small):
    found = search(run, "--topic", "deleted-pending", "--offset", "..60", small)
    assert {path.rsplit(".", 1)[-1] for path, _ in places(found)} == {"deleted"}
    assert {offset for _, offset in places(found)} == {5, 40}


def test_each_record_has_its_state(run, small):
    found = states(search(run, small))
    for (home, file, _), state in found.items():
        expected = {DOOMED: ["deleted-partition"]}.get(home, [])
        assert state == (["deleted-file"] if file.endswith(".deleted") else expected)
    middle = states(search(run, small / MIDDLE, key="key-0041"))
    assert {offset < 77 for *_, offset in middle} == {True, False}  # The log starts at 77.
    for (*_, offset), state in middle.items():
        assert state == (["below-log-start"] if offset < 77 else [])


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (".cleaned", "cleaned-file"),
        (".swap", "swap-file"),
        ("-stray", "stray"),
        ("-future", "future-copy"),
    ],
)
def test_leftovers_of_a_job_and_directories_put_aside(run, small, end, expected):
    if end.startswith("."):
        log = small / MIDDLE / f"{0:020d}.log"
        log.rename(f"{log}{end}")
    else:
        (small / MIDDLE).rename(small / f"{MIDDLE}.{'a' * 32}{end}")
    found = states(search(run, "--topic", "deleted-records.mid", small))
    assert set(map(tuple, found.values())) == {(expected,)}


def test_tombstones_are_marked(run, small):
    result = run("dump", "-f", "ndjson", "--records", small / KEYS)
    values = {one["offset"]: (one["key"]["utf8"], one["value"]) for one in result.of_type("record")}
    key = next(key for key, value in values.values() if value is None)
    for (*_, offset), state in states(search(run, small / KEYS, key=key)).items():
        assert ("tombstone" in state) == (values[offset][1] is None)


def markers(run, folder):
    """Return offset and type of the markers of each producer, as the batches have them."""
    found = {}
    for one in run("dump", "-f", "ndjson", folder).of_type("batch"):
        if one["control_type"]:
            found.setdefault(one["producer_id"], []).append(
                (one["base_offset"], one["control_type"])
            )
    return found


def every_record(run, folder):
    """Return the states of all records with a key, by offset, and the records themselves."""
    records = {
        one["offset"]: one
        for one in run("dump", "-f", "ndjson", "--records", folder).of_type("record")
        if not one["control"] and one["key"]
    }
    keys = {one["key"]["utf8"] for one in records.values()}
    given = [word for key in sorted(keys) for word in ("--key", key)]
    found = run("dump", "-f", "ndjson", *given, folder).of_type("record")
    return {one["offset"]: one["state"] for one in found}, records


def test_the_next_marker_of_the_producer_decides(run, scenario):
    folder = scenario("4.3.1/clean") / MIXED
    found, records = every_record(run, folder)
    by_producer = markers(run, folder)
    words = {"COMMIT": [], "ABORT": ["aborted"], None: ["open-transaction"]}
    expected = {}
    for offset, one in records.items():
        known = by_producer.get(one["producer_id"], ())
        end = next((kind for at, kind in known if at > offset), None)
        expected[offset] = words[end] if one["transactional"] else []
        expected[offset] = ["tombstone"] * (one["value"] is None) + expected[offset]
    assert found == expected
    assert {word for state in found.values() for word in state} >= {"aborted", "open-transaction"}


def test_records_are_not_produced_again_from_files_that_wait_to_be_deleted(run, small):
    every = places(search(run, small / PENDING))
    live = [path for path, _ in every if not path.endswith(".deleted")]
    result = run("dump", "-f", "kcat", "--key", KEY, small / PENDING)
    assert len(result.stdout.splitlines()) == len(live) < len(every), result.stderr
    assert "logtool retention --key" in result.stderr
    assert "logtool retention --key" not in run("dump", "--key", KEY, small).stderr


def test_other_searches_have_no_state(run, small):
    result = run("dump", "-f", "ndjson", "--grep", f"^{KEY}$", small)
    assert places(result) == places(search(run, small))
    assert all("state" not in one for one in result.of_type("record"))


def test_the_state_is_a_cell(run, small):
    rows = list(csv.DictReader(io.StringIO(run("dump", "-f", "csv", "--key", KEY, small).stdout)))
    assert [json.loads(row["state"]) for row in rows] == list(states(search(run, small)).values())
    fields = run("dump", "-f", "csv", "--key", KEY, "--fields", "offset,state", small)
    assert fields.stdout.splitlines()[0] == "offset,state"


def test_a_table_has_the_states_at_80_columns(run, small, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run("dump", "--key", KEY, small / PENDING)
    assert "deleted-file" in result.stdout
    assert all(len(line) <= 80 or "/" in line for line in result.stdout.splitlines())
    heads = [line for line in result.stdout.splitlines() if line.startswith("offset ")]
    assert {"state" in head.split() for head in heads} == {True, False}
