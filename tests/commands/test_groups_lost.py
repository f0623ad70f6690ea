"""``logtool groups`` where partitions of coordinators have lost records, and states of shares."""

import os
import subprocess

import pytest
from group_records import FIRST_MS, OffsetsLog, data_log
from metadata_records import log_dir_of, partition, topic

from logtool.formats.java_text import partition_of

ORDERS, OFFSETS = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"
STATES = "AAAAAAAAAAAAAAAAAAAABA"
SET, UPDATE = 0, 1
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def checkpoint(home, *rows):
    """Checkpoint high watermarks, before the logs are written."""
    path = home / "replication-offset-checkpoint"
    path.write_text("\n".join(["0", str(len(rows)), *rows, ""]))
    os.utime(path, (FIRST_MS // 1000, FIRST_MS // 1000))


def states(home, *records, number=0):
    """Write share states of the group g in orders-0; each record is a type and its fields."""
    log = OffsetsLog("__share_group_state")
    for kind, start, done, *batches in records:
        fields = {
            "snapshotEpoch": 0, "leaderEpoch": 0, "startOffset": start,
            "deliveryCompleteCount": done,
            "stateBatches": [
                dict(zip(("firstOffset", "lastOffset", "deliveryState", "deliveryCount"), one,
                         strict=True))
                for one in batches
            ],
        }  # fmt: skip
        if kind == SET:
            fields |= {"stateEpoch": 0, "createTimestamp": 0, "writeTimestamp": 0}
        log.add(kind, {"groupId": "g", "topicId": ORDERS, "partition": 0}, fields)
    return log.write(home, number)


@pytest.fixture
def home(tmp_path):
    """A log dir whose groups are g, a share group in partition 1, and b in partition 0."""
    parts = [partition(OFFSETS, number, [1]) for number in range(2)]
    log_dir_of(tmp_path, [topic("__consumer_offsets", OFFSETS), topic("orders", ORDERS), *parts])
    data_log(tmp_path, "orders-0", 100, topic_id=ORDERS)
    (tmp_path / "orders-0/partition.metadata").write_text(f"version: 0\ntopic_id: {ORDERS}\n")
    log = OffsetsLog()
    log.add(11, {"groupId": "g"}, {"epoch": 1, "metadataHash": 0})
    log.write(tmp_path, 1)
    log = OffsetsLog()
    log.commit("b", "orders", 0, 40, topicId=ORDERS)
    log.write(tmp_path, 0)
    states(
        tmp_path,
        (SET, 0, 0),
        (UPDATE, -1, 0, (0, 19, ACKNOWLEDGED, 1), (3, 3, ARCHIVED, 1)),
        (UPDATE, 20, 0, (20, 29, AVAILABLE, 2)),
        (UPDATE, -1, 5, (20, 24, ACKNOWLEDGED, 3)),
        (UPDATE, -1, 9, (25, 25, ARCHIVED, 5), (27, 29, ACKNOWLEDGED, 3)),
    )  # fmt: skip
    return tmp_path


def in_doubt(found):
    return {
        (one["type"], one["group"]): one["in_doubt"]
        for kind in ("group", "offset", "share-offset", "restore")
        for one in found.of_type(kind)
    }


@pytest.mark.parametrize(
    ("rows", "doubtful"),
    [
        (["__consumer_offsets 0 1", "__consumer_offsets 1 1", "__share_group_state 0 5"], set()),
        (["__consumer_offsets 0 3"], {("group", "b"), ("offset", "b")}),
        (["__consumer_offsets 1 2"], {("group", "g")}),
        (["__share_group_state 0 6"], {("share-offset", "g")}),
    ],
)
def test_groups_in_a_partition_that_has_lost_records_are_in_doubt(run, home, rows, doubtful):
    checkpoint(home, *rows)
    found = run("groups", "-f", "ndjson", home)
    marked = in_doubt(found)
    assert len(marked) == 4
    assert {key for key, is_doubtful in marked.items() if is_doubtful} == doubtful
    table = run("groups", home)
    assert ("MAY BE LOST" in table.stdout) == any(kind != "group" for kind, _ in doubtful)
    assert (found.status, table.status) == (bool(doubtful), bool(doubtful))


@pytest.mark.parametrize(
    ("name", "number", "is_lost"), [("c", 1, False), ("a", 1, False), ("h", 0, True)]
)
@pytest.mark.parametrize("option", ["--group", "--history"])
def test_a_group_without_records_has_a_coordinator(run, home, option, name, number, is_lost):
    checkpoint(home, "__consumer_offsets 0 3")
    found = run("groups", option, name, home)
    assert found.status == 4
    (line,) = (line for line in found.stderr.splitlines() if "nothing matched" in line)
    assert f"__consumer_offsets-{number}" in line
    assert ("lost" in line) == is_lost
    globbed = run("groups", option, f"{name}*", home)
    (line,) = (line for line in globbed.stderr.splitlines() if "nothing matched" in line)
    assert "__consumer_offsets-" not in line


def test_a_group_without_records_is_named_if_another_has_some(run, home):
    checkpoint(home, "__consumer_offsets 0 3")
    found = run("groups", "--group", "b", "--group", "h", home)
    assert found.status == 1
    assert sum("group h" in line for line in found.stderr.splitlines()) == 1


def test_a_lost_segment_is_named_by_the_snapshot_that_is_left_of_it(run, home):
    checkpoint(home, "__share_group_state 0 6")
    states = home / "__share_group_state-0"
    (states / f"{0:020d}.index").write_bytes(b"")
    snapshot = states / f"{5:020d}.snapshot"
    for is_there in (False, True):
        if is_there:
            snapshot.write_bytes(b"")
        found = run("groups", "-f", "ndjson", home)
        (finding,) = found.of_type("finding")
        assert (finding["code"], finding["first_offset"]) == ("group/missing-records", 5)
        assert (snapshot.name in finding["message"]) == is_there


def test_a_share_group_goes_on_behind_the_records_that_are_done(run, home):
    (one,) = run("groups", "-f", "ndjson", home).of_type("share-offset")
    names = ("start_offset", "next_offset", "acknowledged", "archived", "delivered", "lag")
    assert [one[name] for name in names] == [20, 26, 8, 1, 9, 71]
    assert (one["state_partition"], one["in_doubt"]) == (0, False)


def test_the_history_of_a_share_group_has_the_state_of_each_record(run, home):
    found = run("groups", "-f", "ndjson", "--history", "g", home)
    names = ("first_offset", "last_offset", "delivery_state", "deliveries", "again")
    assert [tuple(one[name] for name in names) for one in found.of_type("share-delivery")] == [
        (0, 2, "acknowledged", 1, False),
        (3, 3, "archived", 1, False),
        (4, 19, "acknowledged", 1, False),
        (20, 24, "acknowledged", 3, False),
        (25, 25, "archived", 5, False),
        (26, 26, "available", 2, True),
        (27, 29, "acknowledged", 3, False),
    ]
    assert (len(found.of_type("share-offset")), found.status) == (1, 0)
    assert "4 through 19" in run("groups", "--history", "g", home).stdout


def test_a_share_group_that_was_set_back_delivers_again(run, home):
    states(
        home,
        (SET, 0, 0),
        (UPDATE, -1, 0, (0, 19, ACKNOWLEDGED, 1)),
        (UPDATE, 20, 0, (20, 29, ACKNOWLEDGED, 1)),
        (SET, 10, 0),
    )
    found = run("groups", "-f", "ndjson", "--history", "g", home)
    (one,) = found.of_type("share-offset")
    assert (one["start_offset"], one["next_offset"]) == (10, 10)
    ranges = [(one["first_offset"], one["last_offset"]) for one in found.of_type("share-delivery")]
    assert ranges == [(0, 9)]


def test_a_restore_plan_says_what_is_in_doubt_before_each_command(run, home):
    words = ("groups", "--restore-plan", "--bootstrap-server", "b1:9093")
    whole = run(*words, home)
    assert "IN DOUBT" not in whole.stdout
    assert whole.stdout.count("--execute") == 2
    checkpoint(home, "__consumer_offsets 0 3", "__share_group_state 0 6")
    found = run(*words, home)
    lines = [line.strip() for line in found.lines if line.strip()]
    live = [line for line in lines if not line.startswith("#")]
    (command,) = live
    assert "--group b" in command
    assert lines[lines.index(command) - 1].startswith("# IN DOUBT")
    shares = [line for line in lines if line.startswith("# kafka-share-groups.sh")]
    (share,) = shares
    assert "--group g --reset-offsets --topic orders:0 --to-offset 26 --execute" in share
    assert sum("group/missing-records" in line for line in lines) == 2
    done = subprocess.run(["bash", "-n"], input=found.stdout, text=True, check=False)
    assert done.returncode == 0
    plan = run("groups", "--restore-plan", "-f", "ndjson", home).of_type("restore")
    assert [(one["group"], one["in_doubt"], one["shares_in_doubt"]) for one in plan] == [
        ("b", True, []),
        ("g", False, ["orders-0"]),
    ]


@pytest.mark.parametrize("topic_name", ["__consumer_offsets", "__share_group_state", "orders"])
def test_doctor_and_plan_lead_to_groups_if_groups_may_be_lost(run, home, topic_name):
    (home / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    command = f"logtool groups {home}"
    for row, is_lost in ((f"{topic_name} 0 1", False), (f"{topic_name} 0 150", True)):
        checkpoint(home, row)
        is_named = is_lost and topic_name != "orders"
        doctor = run("doctor", "-f", "ndjson", home)
        assert (command in [one["command"] for one in doctor.of_type("next")]) == is_named
        (summary,) = run("plan", "-f", "ndjson", home).of_type("summary")
        assert (command in summary["next"]) == is_named
        assert (command in run("plan", home).stderr) == is_named


@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_a_start_offset_that_is_not_stored_any_more_is_named(run, tmp_path, is_stored, count):
    ids = (STATES, count), (ORDERS, 1)
    parts = [partition(one, number, [1]) for one, most in ids for number in range(most)]
    log_dir_of(tmp_path, [topic("__share_group_state", STATES), topic("orders", ORDERS), *parts])
    log = OffsetsLog()
    log.add(11, {"groupId": "g"}, {"epoch": 1, "metadataHash": 0})
    orders = {"topicId": ORDERS, "topicName": "orders", "partitions": [0]}
    initialized = {"initializingTopics": [], "initializedTopics": [orders], "deletingTopics": []}
    log.add(15, {"groupId": "g"}, initialized)
    log.write(tmp_path)
    home = partition_of(f"g:{ORDERS}:0", count)
    states(tmp_path, *([(SET, 40, 0)] if is_stored else []), number=home)
    (group,) = run("groups", "-f", "ndjson", tmp_path).of_type("group")
    assert group["lacking"] == ([] if is_stored else ["orders-0"])
    assert ("orders-0" in run("groups", tmp_path).stdout) == (not is_stored)
    if count == 2 and not is_stored:  # Another log dir may have the partition.
        there = tmp_path / f"__share_group_state-{home}"
        there.rename(tmp_path / f"__share_group_state-{1 - home}")
        (group,) = run("groups", "-f", "ndjson", tmp_path).of_type("group")
        assert group["lacking"] == []
