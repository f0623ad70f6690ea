"""``logtool groups`` where partitions, offsets or segments are not in the log dirs."""

import pytest
from group_records import OffsetsLog, data_log
from metadata_records import config, log_dir_of, partition, topic

ORDERS = "AAAAAAAAAAAAAAAAAAAAAg"


@pytest.mark.parametrize(
    ("remote", "codes", "start"),
    [("true", [], 5), ("false", ["group/offset-below-start"], 50)],
)
def test_a_group_reads_records_in_remote_storage(run, tmp_path, remote, codes, start):
    log_dir_of(
        tmp_path, [topic("orders", ORDERS), config(2, "orders", "remote.storage.enable", remote)]
    )
    log = OffsetsLog()
    log.commit("g", "orders", 0, 20)
    log.write(tmp_path)
    data_log(tmp_path, "orders-0", 100, first=50)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 5\n")
    found = run("groups", "-f", "ndjson", tmp_path)
    (one,) = found.of_type("offset")
    assert (one["log_start_offset"], one["log_end_offset"], one["lag"]) == (start, 100, 80)
    assert [finding["code"] for finding in found.of_type("finding")] == codes
    assert found.status == len(codes)


OFFSETS = "AAAAAAAAAAAAAAAAAAAAAw"


def cluster(home, partitions, *more):
    """Write a metadata log in which __consumer_offsets has a number of partitions on node 1."""
    records = [partition(OFFSETS, number, [1]) for number in range(partitions)]
    topics = topic("__consumer_offsets", OFFSETS), topic("orders", ORDERS)
    log_dir_of(home, [*topics, *records, *more])


def group_log(home, number, *offsets, group="g"):
    log = OffsetsLog()
    for offset in offsets:
        log.commit(group, "orders", 0, offset)
    log.write(home, number)


def shown(found, kind="offset"):
    return [(one["group"], one["offset"]) for one in found.of_type(kind)]


def codes(found):
    return [(one["code"], one["partition"]) for one in found.of_type("finding")]


@pytest.mark.parametrize(
    ("count", "logs", "offsets", "expected"),
    [
        # The hash of "g" is 103: partition 1 of 3 and partition 3 of 5.
        (5, {1: 50, 3: 180}, [("g", 180)], [("group/left-over", 1)]),
        (3, {1: 50, 2: 180}, [("g", 50)], [("group/left-over", 2)]),
        (5, {1: 50, 3: None}, [], [("group/misplaced", 1)]),
        (5, {3: 180}, [("g", 180)], []),
    ],
)  # fmt: skip
def test_a_group_is_read_from_the_partition_that_its_hash_names(
    run, tmp_path, count, logs, offsets, expected
):
    cluster(tmp_path, count)
    for number in range(count):
        group_log(tmp_path, number, *([logs[number]] if logs.get(number) else []))
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (shown(found), codes(found)) == (offsets, expected)
    assert found.status == (expected[:1] == [("group/misplaced", 1)])
    plan = run("groups", "-f", "ndjson", "--restore-plan", tmp_path)
    assert [one["offsets"] for one in plan.of_type("restore")] == [1 for _ in offsets]


def test_without_the_number_of_partitions_the_newest_records_of_a_group_count(run, tmp_path):
    group_log(tmp_path, 0, 10, 170, 180)
    group_log(tmp_path, 1, 40, 50)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (shown(found), codes(found)) == ([("g", 180)], [("group/misplaced", 1)])
    assert found.status == 1
    (plan,) = run("groups", "-f", "ndjson", "--restore-plan", tmp_path).of_type("restore")
    assert "orders,0,180" in plan["command"]


def test_a_metadata_log_older_than_the_log_dirs_does_not_give_the_number(run, tmp_path):
    cluster(tmp_path, 2)
    group_log(tmp_path, 3, 180)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (shown(found), codes(found)) == ([("g", 180)], [])


def test_history_says_which_events_are_left_over(run, tmp_path):
    cluster(tmp_path, 5)
    group_log(tmp_path, 1, 50)
    group_log(tmp_path, 3, 170, 180)
    found = run("groups", "-f", "ndjson", "--history", "g", tmp_path)
    assert [one["offset"] for one in found.of_type("event")] == [50, 170, 180]
    assert (codes(found), found.status) == ([("group/left-over", 1)], 0)
