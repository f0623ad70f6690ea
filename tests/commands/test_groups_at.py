"""``logtool groups --at``: the state at a moment, and the commands that restore it."""

import re

import pytest
from answers import numbers
from group_records import FIRST_MS, OffsetsLog, data_log


@pytest.fixture
def home(tmp_path):
    log = OffsetsLog()
    log.commit("billing", "orders", 0, 10)
    log.commit("billing", "orders", 0, 70)
    log.commit("billing", "orders", 0, None)
    log.commit("late", "orders", 0, 90)
    data_log(tmp_path, "orders-0", 100)
    log.write(tmp_path)
    return tmp_path


def offsets(found):
    return {one["group"]: one["offset"] for one in found.of_type("offset")}


@pytest.mark.parametrize(
    ("after", "expected"),
    [(-1, {}), (0, {"billing": 10}), (1, {"billing": 70}), (2, {}), (3, {"late": 90})],
)
def test_the_offsets_are_those_of_the_moment(run, home, after, expected):
    found = run("groups", "--at", FIRST_MS + after, "-f", "ndjson", home)
    assert (found.status, offsets(found)) == (0, expected)
    plan = run("groups", "--restore-plan", "--at", FIRST_MS + after, "-f", "ndjson", home)
    commands = [one["command"] for one in plan.of_type("restore") if one["command"]]
    restored = [re.findall(r"orders,0,(\d+)", one) for one in commands]
    assert restored == [[str(offset)] for offset in expected.values()]


def test_a_partition_without_an_offset_at_the_moment_keeps_the_later_one(run, tmp_path):
    log = OffsetsLog()
    log.commit("billing", "orders", 0, 10)
    log.commit("billing", "orders", 1, 20)
    log.commit("billing", "orders", 2, 30)
    log.commit("billing", "orders", 2, None)
    log.commit("billing", "orders", 0, 40)
    log.commit("new", "orders", 0, 50)
    log.write(tmp_path)
    words = ("groups", "--restore-plan", "--at", FIRST_MS, "--bootstrap-server", "b:1", tmp_path)
    old, new = run(*words, "-f", "ndjson").of_type("restore")
    assert ("orders,0,10" in old["command"], old["later"]) == (True, ["orders-1=20"])
    assert old["removal"] == (
        "kafka-consumer-groups.sh --bootstrap-server b:1 --group billing --delete-offsets "
        "--topic orders:1"
    )
    assert (new["group"], new["command"], new["later"]) == ("new", None, ["orders-0=50"])
    lines = [line.strip() for line in run(*words).lines]
    commands = [line for line in lines if line and not line.startswith("#")]
    assert [line.split()[0] for line in commands] == ["printf"]
    assert f"# {old['removal']}" in lines
    assert f"# {new['removal']}" in lines
    at_end = run("groups", "--restore-plan", "-f", "ndjson", tmp_path).of_type("restore")
    assert [(one["later"], one["removal"]) for one in at_end] == [([], None)] * 2


def test_a_plan_for_a_moment_names_what_it_sets_back(run, tmp_path):
    log = OffsetsLog()
    for number, offset in enumerate((10, 20, 30, 95)):
        log.commit("g", "orders", number, offset)
    for number, offset in enumerate((70, 20, 5, 99)):
        log.commit("g", "orders", number, offset)
    data_log(tmp_path, "orders-0", 100, first=40)
    data_log(tmp_path, "orders-3", 90)
    log.write(tmp_path)
    words = ("groups", "--restore-plan", "--at", FIRST_MS + 3, tmp_path)
    (plan,) = run(*words, "-f", "ndjson").of_type("restore")
    # Kafka's tool commits the log start instead of 10, and the log end instead of 95.
    assert plan["sets_back"] == ["orders-0=70:40", "orders-3=99:90"]
    assert plan["outside"] == ["orders-0=10", "orders-3=95"]
    command, *comments = [line.strip() for line in run(*words).lines if line]
    assert (command, [line[0] for line in comments]) == (plan["command"], ["#", "#"])
    assert [numbers(line) for line in comments] == [[70, 40, 30], [99, 90, 9]]
    (now,) = run("groups", "--restore-plan", "-f", "ndjson", tmp_path).of_type("restore")
    assert now["sets_back"] == []


def test_of_many_set_backs_a_comment_counts_the_last(run, tmp_path):
    log = OffsetsLog()
    for offset in (10, 20):
        for number in range(13):
            log.commit("g", "orders", number, offset)
    log.write(tmp_path)
    words = ("groups", "--restore-plan", "--at", FIRST_MS + 12, tmp_path)
    (plan,) = run(*words, "-f", "ndjson").of_type("restore")
    comments = [line for line in run(*words).lines if line.startswith(" #")]
    assert (len(plan["sets_back"]), len(comments)) == (13, 11)
    assert numbers(comments[-1]) == [3]


def test_expiry_is_computed_at_the_moment(run, home):
    (offset,) = run("groups", "--at", FIRST_MS + 1, "-f", "ndjson", home).of_type("offset")
    assert (offset["expired"], offset["lag"]) == (False, 30)
    week = ("--offsets-retention", "1s", "--at", FIRST_MS + 5000)
    (offset,) = run("groups", *week, "-f", "ndjson", home).of_type("offset")
    assert (offset["group"], offset["expired"]) == ("late", True)


def test_records_that_were_compacted_away_are_a_finding(run, home):
    log = home / "__consumer_offsets-0" / f"{0:020d}.log"
    data = log.read_bytes()
    log.write_bytes(data[12 + int.from_bytes(data[8:12], "big") :])
    found = run("groups", "--at", FIRST_MS + 2, "-f", "ndjson", home)
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"]) == (1, "group/compacted")
    assert (finding["first_offset"], finding["last_offset"]) == (0, 2)
    assert run("groups", "-f", "ndjson", home).status == 0


@pytest.mark.parametrize("options", [("--history", "billing"), ("--now", "0")])
def test_at_is_not_combined_with_another_time(run, home, options):
    assert run("groups", "--at", "0", *options, home).status == 2


def test_share_groups_begin_where_they_began_at_the_moment(run, tmp_path):
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    groups = OffsetsLog()
    groups.add(11, {"groupId": "g"}, {"epoch": 1, "metadataHash": 0})
    groups.write(tmp_path)
    states = OffsetsLog("__share_group_state")
    for start in (5, 9):
        states.add(
            0,
            {"groupId": "g", "topicId": topic_id, "partition": 0},
            {
                "snapshotEpoch": 0, "leaderEpoch": 0, "stateBatches": [], "stateEpoch": 0,
                "createTimestamp": 0, "writeTimestamp": 0, "startOffset": start,
            },
        )  # fmt: skip
    states.write(tmp_path)
    for after, start in ((0, 5), (1, 9)):
        found = run("groups", "--at", FIRST_MS + after, "-f", "ndjson", tmp_path)
        assert [one["start_offset"] for one in found.of_type("share-offset")] == [start]
