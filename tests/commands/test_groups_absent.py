"""`groups` and `txns` where partitions, offsets or segments are not in the log dirs."""

import pytest
from group_records import FIRST_MS, OffsetsLog, data_log
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
NEXT, ANOTHER = "AAAAAAAAAAAAAAAAAAAABA", "AAAAAAAAAAAAAAAAAAAABQ"


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
    topic_id_file(home / f"__consumer_offsets-{number}", OFFSETS)


def topic_id_file(partition_dir, topic_id):
    (partition_dir / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


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


def node(home, number=1):
    home.mkdir(exist_ok=True)
    (home / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n")


@pytest.mark.parametrize(
    ("there", "checkpoint", "expected"),
    [
        ([0, 2], None, [("group/absent-partitions", 1)]),
        ([], None, [("group/absent-partitions", None)]),
        ([0, 1, 2], None, []),
        # Created just before the broker stopped: the checkpoint has a row of each that it had.
        ([0, 2], "0\n2\n__consumer_offsets 0 1\n__consumer_offsets 2 1\n", []),
        ([0, 2], "0\n1\n__consumer_offsets 1 7\n", [("group/absent-partitions", 1)]),
    ],
)
def test_partitions_of_the_topic_that_the_node_should_have(
    run, tmp_path, there, checkpoint, expected
):
    node(tmp_path)
    cluster(tmp_path, 3)
    for number in there:
        group_log(tmp_path, number)
    if checkpoint:
        (tmp_path / "replication-offset-checkpoint").write_text(checkpoint)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (codes(found), found.status) == (expected, bool(expected))


def test_transactions_and_share_groups_in_absent_partitions_are_not_known(run, tmp_path):
    node(tmp_path)
    cluster(
        tmp_path, 4, topic("__transaction_state", NEXT), partition(NEXT, 0, [1]),
        topic("__share_group_state", ANOTHER), partition(ANOTHER, 0, [1]),
    )  # fmt: skip
    for number in range(4):
        group_log(tmp_path, number)
    found = run("txns", "-f", "ndjson", tmp_path)
    assert codes(found) == [("transaction-state/absent-partitions", 0)]
    assert found.status == 1
    assert codes(run("groups", "-f", "ndjson", tmp_path)) == []
    log = OffsetsLog()
    log.add(11, {"groupId": "g"}, {"epoch": 1, "metadataHash": 0})
    log.write(tmp_path, 3)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert codes(found) == [("group/absent-partitions", 0)]
    OffsetsLog("__share_group_state").write(tmp_path)
    topic_id_file(tmp_path / "__share_group_state-0", ANOTHER)
    assert codes(run("groups", "-f", "ndjson", tmp_path)) == []


@pytest.mark.parametrize("command", ["groups", "txns"])
def test_without_a_list_of_partitions_it_is_said_that_there_is_none(run, tmp_path, command):
    group_log(tmp_path, 0, 5)
    alone = run(command, tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\n__consumer_offsets 0 1\n")
    listed = run(command, tmp_path)
    assert (alone.status, listed.status) == (0, 0)
    assert len(alone.stderr.splitlines()) == len(listed.stderr.splitlines()) + 1


@pytest.mark.parametrize("row", [3, 9])
def test_a_leader_epoch_proves_that_the_topic_lost_its_end(run, tmp_path, row):
    node(tmp_path)
    cluster(tmp_path, 1)
    group_log(tmp_path, 0, 5, 6, 7)
    epochs = tmp_path / "__consumer_offsets-0" / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n2\n0 0\n1 {row}\n")
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (codes(found), found.status) == ([("group/absent-end", 0)] * (row > 3), row > 3)


@pytest.mark.parametrize("stray", [False, True])
def test_a_partition_that_its_broker_puts_aside_keeps_no_group(run, tmp_path, stray):
    node(tmp_path)
    cluster(tmp_path, 1)
    group_log(tmp_path, 0, 5)
    metadata = tmp_path / "__consumer_offsets-0" / "partition.metadata"
    if stray:
        metadata.unlink()
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (codes(found), found.status) == ([("group/put-aside", 0)] * stray, stray)


def test_another_node_has_the_partition(run, tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    node(one)
    cluster(one, 2)
    group_log(one, 0, 5, group="x")
    assert codes(run("groups", "-f", "ndjson", one)) == [("group/absent-partitions", 1)]
    node(two, 2)
    group_log(two, 1, 5, group="y")
    found = run("groups", "-f", "ndjson", one, two)
    assert (codes(found), found.status) == ([], 0)


def test_rows_of_a_checkpoint_name_absent_partitions_without_a_metadata_log(run, tmp_path):
    group_log(tmp_path, 0, 5)
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    rows = tmp_path / "replication-offset-checkpoint"
    rows.write_text("0\n2\n__consumer_offsets 0 1\n__consumer_offsets 1 9\n")
    found = run("groups", "-f", "ndjson", tmp_path)
    assert codes(found) == [("group/absent-partitions", 1)]
    rows.write_text("0\n2\n__consumer_offsets 0 1\n__consumer_offsets 1 0\n")
    assert codes(run("groups", "-f", "ndjson", tmp_path)) == []


def test_removed_offsets_of_groups(run, tmp_path):
    log = OffsetsLog()
    for offset in (40, 50, None):
        log.commit("expired", "orders", 0, offset)
    log.commit("streams", "orders", 1, 7, producer_id=9)
    log.end_transaction(9, commit=True)
    log.commit("streams", "orders", 1, None)
    log.add(2, {"group": "streams"}, None)
    log.commit("partly", "orders", 0, 60)
    log.commit("partly", "orders", 1, 61)
    log.commit("partly", "orders", 1, None)
    log.commit("compacted", "orders", 0, None)
    log.commit("back", "orders", 0, 1)
    log.commit("back", "orders", 0, None)
    log.commit("back", "orders", 0, 2)
    log.write(tmp_path)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert shown(found, "removed-offset") == [
        ("expired", 50), ("partly", 61), ("streams", 7),
    ]  # fmt: skip
    assert shown(found) == [("back", 2), ("partly", 60)]
    assert (codes(found), found.status) == ([], 0)
    one = found.of_type("removed-offset")[0]
    assert (one["commit_ms"], one["record_offset"]) == (FIRST_MS + 1, 2)
    assert "expired" in run("groups", tmp_path).stdout
    plans = run("groups", "-f", "ndjson", "--restore-plan", tmp_path).of_type("restore")
    assert [(one["group"], one["offsets"], one["removed_left_out"]) for one in plans] == [
        ("back", 1, 0), ("expired", 0, 1), ("partly", 1, 1), ("streams", 0, 1),
    ]  # fmt: skip


def test_removed_offsets_of_deleted_topics_are_left_out_of_a_group_with_others(run, tmp_path):
    cluster(tmp_path, 1, partition(ORDERS, 0, [1]))
    log = OffsetsLog()
    for group in ("partly", "expired"):
        log.commit(group, "orders", 0, 60)
        log.commit(group, "deleted", 0, 70)
        log.commit(group, "deleted", 0, None)
    log.commit("expired", "orders", 0, None)
    log.commit("partly", "orders", 1, 80)
    log.commit("partly", "orders", 1, None)
    log.write(tmp_path, 0)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert shown(found, "removed-offset") == [("expired", 70), ("expired", 60), ("partly", 80)]


@pytest.mark.parametrize(
    ("epoch", "rows", "expected"),
    [
        (0, "0 0\n", []),
        (0, "0 0\n1 50\n", [("group/epoch-ended", 0)]),
        (1, "0 0\n1 50\n", [("group/epoch-ahead", 0)]),
        (0, "0 0\n1 100\n", []),  # begins at the log end: a broker drops the row
        (0, "0 0\nx 50\n", []),
    ],
)
def test_the_leader_epoch_of_a_commit(run, tmp_path, epoch, rows, expected):
    cluster(tmp_path, 4, partition(ORDERS, 0, [1]))
    log = OffsetsLog()
    log.commit("g", "orders", 0, 60, leaderEpoch=epoch)
    log.write(tmp_path, 3)
    data_log(tmp_path, "orders-0", 100)
    text = f"0\n{rows.count(chr(10))}\n{rows}"
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_text(text)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert (codes(found), found.status) == (expected, bool(expected))


def test_restore_plan_names_groups_whose_metadata_it_leaves_out(run, tmp_path):
    log = OffsetsLog()
    log.commit("with", "orders", 0, 60, metadata="m")
    log.commit("with", "orders", 1, 61)
    log.commit("without-any", "orders", 0, 60)
    log.write(tmp_path)
    found = run("groups", "-f", "ndjson", "--restore-plan", tmp_path)
    counts = [(one["group"], one["metadata_left_out"]) for one in found.of_type("restore")]
    assert counts == [("with", 1), ("without-any", 0)]
    notes = run("groups", "--restore-plan", tmp_path).stderr
    assert ("with" in notes.split(), "without-any" in notes.split()) == (True, False)


def test_topics_of_a_streams_group(run, tmp_path):
    part = {
        "subtopologyId": "0", "sourceTopics": ["orders"], "sourceTopicRegex": [],
        "stateChangelogTopics": [], "repartitionSinkTopics": ["by-key"],
        "repartitionSourceTopics": [], "copartitionGroups": [],
    }  # fmt: skip
    again = {"name": "by-key", "partitions": 1, "replicationFactor": 1, "topicConfigs": []}
    other = {**part, "subtopologyId": "1", "sourceTopics": [], "repartitionSourceTopics": [again]}
    log = OffsetsLog()
    log.add(17, {"groupId": "s"}, {"epoch": 1, "metadataHash": 0, "validatedTopologyEpoch": 1})
    log.add(23, {"groupId": "s"}, {"epoch": 1, "subtopologies": [part, other]})
    log.commit("classic", "orders", 0, 1)
    log.write(tmp_path)
    found = run("groups", "-f", "ndjson", tmp_path)
    topics = [(one["group"], one["source_topics"]) for one in found.of_type("group")]
    assert topics == [("classic", None), ("s", ["by-key", "orders"])]
