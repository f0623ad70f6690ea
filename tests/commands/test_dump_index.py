import shutil

import pytest

from logtool.formats import control_record
from logtool.formats.record import Record


@pytest.fixture
def entries(run):
    """Return a function: the entries that `dump-index` prints."""

    def dumped(*arguments, status=0):
        result = run("dump-index", "-f", "ndjson", *arguments)
        assert result.status == status, result.stderr
        return result.of_type("entry")

    return dumped


def test_the_indexes_of_a_partition_are_printed_without_reading_the_log(entries, partition, log):
    log.write_bytes(b"no log at all")
    offset, time = entries(partition)
    assert (offset["kind"], offset["offset"]) == ("offset-index", 5)
    assert (time["kind"], time["timestamp_ms"]) == ("time-index", 1_700_000_000_005)
    assert offset["batch"] is offset["verdict"] is None


def test_each_entry_stands_next_to_its_batch(entries, partition, log):
    offset, time = entries("--join-log", partition)
    wanted = {
        "position": offset["log_position"],
        "base_offset": 3,
        "last_offset": 5,
        "max_timestamp_ms": 1_700_000_000_005,
        "max_timestamp": "2023-11-14T22:13:20.005Z",
    }
    assert offset["batch"] == time["batch"] == wanted
    assert offset["verdict"] == time["verdict"] == "right"


def offset_entry(offset, position):
    return offset.to_bytes(4, "big") + position.to_bytes(4, "big")


def time_entry(time, offset):
    return (1_700_000_000_000 + time).to_bytes(8, "big") + offset.to_bytes(4, "big")


WRONG = {
    "a position inside a batch": (".index", lambda size: offset_entry(5, size + 1), "no-batch"),
    "an offset before the batch": (".index", lambda size: offset_entry(2, size), "offset"),
    "a timestamp that the batch has not": (
        ".timeindex",
        lambda size: time_entry(9, 5),
        "timestamp",
    ),
    "an offset behind the end": (".timeindex", lambda size: time_entry(9, 99), "no-batch"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_entry_is_reported_and_makes_the_status_1(entries, log, name):
    suffix, make, verdict = WRONG[name]
    size = int.from_bytes(log.read_bytes()[8:12], "big") + 12
    path = log.with_suffix(suffix)
    path.write_bytes(make(size))
    (entry,) = entries("--join-log", path, status=1)
    assert entry["verdict"] == verdict
    assert entries(path, status=0) == [entry | {"batch": None, "verdict": None}]


def test_where_the_log_is_damaged_nothing_is_claimed(entries, damaged_log):
    (entry,) = entries("--join-log", damaged_log.with_suffix(".index"))
    assert (entry["verdict"], entry["batch"]) == ("unknown", None)


def test_an_abort_is_looked_for_at_its_last_offset(entries, log, make_batch):
    def marker(offset, commit):
        key, value = control_record.encode_end_transaction(commit=commit, coordinator_epoch=0)
        return make_batch(offset, [Record(0, 0, key, value)], attributes=0x30, producer_id=7)

    def index_entry(last):
        return bytes(2) + b"".join(n.to_bytes(8, "big") for n in (7, 0, last, last + 1))

    data = make_batch(0, [Record(0)], attributes=0x10, producer_id=7)
    log.write_bytes(data + marker(1, False) + marker(2, True))
    path = log.with_suffix(".txnindex")
    path.write_bytes(b"".join(map(index_entry, (1, 2, 3))))
    found = entries("--join-log", path, status=1)
    assert [e["verdict"] for e in found] == ["right", "no-abort-marker", "no-batch"]
    assert found[0]["batch"]["base_offset"] == 1


def test_a_missing_log_makes_the_join_incomplete(run, log):
    log.unlink()
    result = run("dump-index", "--join-log", "-f", "ndjson", log.with_suffix(".index"))
    assert result.status == 4
    (entry,) = result.of_type("entry")
    assert entry["verdict"] is None
    assert f"{log}: No such file" in result.stderr


def test_the_log_is_read_once_for_all_indexes(entries, log, monkeypatch):
    from logtool.dump import index as dump_index

    opened = []
    real = dump_index.LogFile
    monkeypatch.setattr(dump_index, "LogFile", lambda path: opened.append(path) or real(path))
    assert len(entries("--join-log", log.with_suffix(".timeindex"), log.with_suffix(".index"))) == 2
    assert opened == [log]


def test_deleted_indexes_are_joined_with_the_deleted_log(entries, partition, log):
    for path in (log, log.with_suffix(".index")):
        path.rename(path.with_name(f"{path.name}.deleted"))
    (entry,) = entries("--join-log", f"{log.with_suffix('.index')}.deleted")
    assert entry["verdict"] == "right"


def test_trailing_bytes_are_damage(run, log):
    path = log.with_suffix(".index")
    path.write_bytes(path.read_bytes() + b"\1\2\3")
    result = run("dump-index", path)
    assert (result.status, "offset-index/length" in result.stdout) == (1, True)


def test_other_files_are_refused_by_name_and_logs_are_passed_over(run, partition, log):
    other = partition / "partition.metadata"
    result = run("dump-index", other, log.with_suffix(".index"))
    assert (result.status, result.stderr.startswith(f"logtool: {other}: ")) == (4, True)
    assert run("dump-index", *sorted(partition.glob("0*"))).status == 0
    assert str(log) in run("dump-index", log).stderr


def test_csv_has_the_columns_of_all_three_kinds(run, partition):
    header, first, second = run("dump-index", "--join-log", "-f", "csv", partition).lines
    assert header.count(",") == first.count(",") == second.count(",")
    assert {"verdict", "batch_position", "log_position", "last_stable_offset"} <= set(
        header.split(",")
    )


@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed", "3.9.2/killed"])
def test_every_entry_that_a_broker_wrote_is_right(entries, scenario, tmp_path, name):
    found = entries("--join-log", scenario(name))
    assert len(found) > 100
    assert {e["verdict"] for e in found} == {"right"}


def test_topics_are_chosen(entries, partition):
    shutil.copytree(partition, partition.with_name("bills-0"))
    assert len(entries("--topic", "bills", partition.parent)) == 2
