"""``logtool groups``: groups, offsets, history, sizes and commands that restore offsets."""

import json
import os
import re
import shutil
import subprocess

import pytest
from answers import last_line, numbers
from damage import damage_file, flip
from group_records import FIRST_MS, OffsetsLog, data_log
from metadata_records import batch, log_dir_of, partition, topic
from processes import without_rights
from verification import small_log_dir

OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
DAY_MS = 86_400_000
EMPTY = {"protocolType": "consumer", "generation": 3, "protocol": None, "leader": None}


@pytest.fixture
def running(scenario):
    return scenario("4.3.1/running")


@pytest.fixture
def home(tmp_path):
    """A log dir with a group for each thing that may be wrong."""
    log = OffsetsLog()
    log.commit("behind", "orders", 0, 40, topicId=NEW)
    log.commit("far", "orders", 0, 150, topicId=NEW)
    log.commit("moved", "orders", 0, 60, topicId=OLD)
    log.commit("fine", "orders", 0, 60, topicId=NEW)
    log.commit("fine", "nowhere", 3, 7)
    log.commit("fine", "orders", 0, 70, producer_id=7)
    log.commit("fine", "orders", 0, 99, producer_id=8)
    log.end_transaction(8, commit=False)
    data_log(tmp_path, "orders-0", 100, first=50, topic_id=NEW)
    log.write(tmp_path)
    return tmp_path


@pytest.fixture
def damaged(copy_of):
    home = copy_of("4.3.1/running")
    log = home / "__consumer_offsets-0" / f"{0:020d}.log"
    damage_file(log, flip, log.stat().st_size // 3)
    return home


def offsets(found):
    return {(one["group"], one["topic"], one["partition"]): one for one in found.of_type("offset")}


@pytest.mark.parametrize("options", [[], ["--history", "fine"], ["--restore-plan"]])
def test_a_batch_of_which_only_a_part_was_written_is_named(run, tmp_path, options):
    log = OffsetsLog()
    log.commit("fine", "orders", 0, 60)
    file = log.write(tmp_path) / f"{0:020d}.log"
    size = file.stat().st_size
    log.commit("fine", "orders", 0, 70)
    log.write(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    found = run("groups", "-f", "ndjson", *options, tmp_path)
    assert found.status == 0
    (one,) = found.of_type("finding")
    assert (one["code"], one["severity"], one["path"]) == ("log/torn-tail", "info", str(file))
    assert (one["position"], one["length"]) == (size, len(whole) - size - 5)
    assert (one["first_offset"], one["last_offset"]) == (1, 1)
    (tmp_path / ".kafka_cleanshutdown").touch()
    found = run("groups", "-f", "ndjson", *options, tmp_path)
    (one,) = found.of_type("finding")
    assert (found.status, one["code"], one["severity"]) == (1, "log/torn-tail-clean", "error")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    file.write_bytes(whole[: size + 15])
    (one,) = run("groups", "-f", "ndjson", *options, tmp_path).of_type("finding")
    assert (one["code"], one["first_offset"]) == ("log/torn-tail", None)
    file.write_bytes(whole[:size])
    assert run("groups", "-f", "ndjson", *options, tmp_path).of_type("finding") == []


def test_groups_of_a_broker_with_their_offsets(run, running):
    found = run("groups", "-f", "ndjson", running)
    assert found.status == 0
    states = {one["group"]: (one["group_type"], one["state"]) for one in found.of_type("group")}
    assert states == {
        "group-classic": ("classic", "Empty"),
        "group-tx": ("classic", "Empty"),
        "group.gone": ("classic", "Dead"),
        "group_next": ("consumer", "Empty"),
    }
    of_group = offsets(found)
    assert len(of_group) == 6
    read = of_group["group_next", "groups.input", 1]
    assert (read["offset"], read["lag"], read["topic_is"]) == (200, 0, "same")
    assert read["member"] == "cBjuZVKUTD6mqxe3aatyiw"
    # The transaction that was aborted committed 42 again.
    assert of_group["group-tx", "groups.input", 0]["record_offset"] == 22
    assert of_group["group-tx", "groups.input", 0]["lag"] == 158


def test_a_person_sees_groups_and_the_last_offsets_of_deleted_ones(run, running):
    found = run("groups", running)
    assert found.lines[0].startswith("group-classic: classic, Empty, ")
    assert numbers(found.lines[0])[:2] == [0, 2]  # members, generation
    assert "group.gone: classic, Dead" in found.stdout
    assert numbers(last_line(found)) == [3, 6, 1]  # groups, committed offsets, removed groups


def test_a_share_group_has_state_and_start_offsets(run, scenario):
    found = run("groups", "-f", "ndjson", scenario("4.3.1/java-clients"))
    (group,) = found.of_type("group")
    assert (group["group_type"], group["state"], group["offsets"]) == ("share", "Empty", 0)
    names = (
        "topic", "partition", "start_offset", "delivered", "acknowledged", "next_offset",
        "log_end_offset", "lag", "place",
    )  # fmt: skip
    assert [tuple(one[name] for name in names) for one in found.of_type("share-offset")] == [
        ("shared.input", 0, 180, 20, 20, 200, 200, 0, "in"),
        ("shared.input", 1, None, None, 0, None, 0, None, "unknown"),
    ]


def share_state(home, *records):
    """Write share states of the group g and the topic OLD: types and fields, or tombstones."""
    log = OffsetsLog("__share_group_state")
    for kind, fields in records:
        key = {"groupId": "g", "topicId": OLD, "partition": 0}
        common = {"snapshotEpoch": 0, "leaderEpoch": 0, "stateBatches": []}
        stateful = {"stateEpoch": 0, "createTimestamp": 0, "writeTimestamp": 0} if kind == 0 else {}
        log.add(kind, key, None if fields is None else common | stateful | fields)
    return log.write(home)


@pytest.fixture
def sharing(tmp_path):
    log = OffsetsLog()
    log.add(11, {"groupId": "g"}, {"epoch": 1, "metadataHash": 0})
    log.write(tmp_path)
    cluster(tmp_path, topic("orders", OLD))
    data_log(tmp_path, "orders-0", 100, topic_id=OLD)
    return tmp_path


SET, UPDATE = 0, 1


@pytest.mark.parametrize(
    ("records", "start", "lag"),
    [
        ([(SET, {"startOffset": 40, "deliveryCompleteCount": 5})], 40, 55),
        ([(SET, {"startOffset": 40, "deliveryCompleteCount": 5}),
          (UPDATE, {"startOffset": -1, "deliveryCompleteCount": 7})], 40, 53),
        ([(SET, {"startOffset": 40, "deliveryCompleteCount": 5}),
          (UPDATE, {"startOffset": 60, "deliveryCompleteCount": 0})], 60, 40),
        ([(SET, {"startOffset": 40})], 40, None),
        ([(SET, {"startOffset": -1})], None, None),
    ],
    ids=["set", "update without start", "update", "older release", "not initialized"],
)  # fmt: skip
def test_updates_change_where_a_share_group_begins(run, sharing, records, start, lag):
    share_state(sharing, *records)
    found = run("groups", "-f", "ndjson", sharing)
    (one,) = found.of_type("share-offset")
    assert (found.status, one["start_offset"], one["lag"]) == (0, start, lag)


def test_a_share_group_beyond_the_end_of_a_log_is_a_finding(run, sharing):
    share_state(sharing, (SET, {"startOffset": 130}))
    found = run("groups", "-f", "ndjson", sharing)
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"]) == (1, "group/offset-beyond-end")
    assert "orders-0" in finding["message"]
    assert numbers(finding["message"]) == [130, 100]


def test_damage_in_the_state_of_share_groups_is_a_finding(run, sharing):
    home = share_state(sharing, (SET, {"startOffset": 40}), (UPDATE, {"startOffset": 50}),
                       (SET, {"startOffset": 60}))  # fmt: skip
    (one,) = run("groups", "-f", "ndjson", sharing).of_type("share-offset")
    assert one["start_offset"] == 60
    damage_file(home / f"{0:020d}.log", flip, 70)
    found = run("groups", "-f", "ndjson", sharing)
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"]) == (1, "group/missing-records")
    assert (finding["topic"], finding["position"]) == ("__share_group_state", 0)
    share_state(sharing, (SET, {"startOffset": 40}), (SET, None))
    assert not run("groups", "-f", "ndjson", sharing).of_type("share-offset")


def test_offsets_that_lead_nowhere_are_findings(run, home):
    found = run("groups", "-f", "ndjson", home)
    assert found.status == 1
    assert [one["code"] for one in found.of_type("finding")] == [
        "group/offset-below-start", "group/offset-beyond-end", "group/other-topic-id",
    ]  # fmt: skip
    places = {key: (one["place"], one["topic_is"]) for key, one in offsets(found).items()}
    assert places == {
        ("behind", "orders", 0): ("below-start", "same"),
        ("far", "orders", 0): ("beyond-end", "same"),
        ("moved", "orders", 0): ("in", "other"),
        ("fine", "orders", 0): ("in", "same"),
        ("fine", "nowhere", 3): ("unknown", "unknown"),
    }
    assert run("groups", "--group", "fine", home).status == 0
    assert run("groups", "--fail-on", "error", home).status == 0


@pytest.mark.parametrize(
    ("named", "expected"), [("orders", ("other", [OLD, NEW])), ("payments", ("gone", [OLD]))]
)
def test_a_commit_for_another_topic_names_each_id_once(run, tmp_path, named, expected):
    log = OffsetsLog()
    log.commit("moved", "orders", 0, 60, topicId=OLD)
    log.write(tmp_path)
    data_log(tmp_path, "orders-0", 100, topic_id=OLD)
    cluster(tmp_path, topic(named, NEW))
    found = run("groups", "-f", "ndjson", tmp_path)
    (finding,) = (one for one in found.of_type("finding") if one["code"] == "group/other-topic-id")
    ids = [one for one in re.findall(r"[A-Za-z0-9_-]{22}", finding["message"]) if one[0] == "A"]
    assert (offsets(found)["moved", "orders", 0]["topic_is"], ids) == expected


def test_a_commit_in_an_open_transaction_is_named_and_does_not_count(run, home):
    found = run("groups", "-f", "ndjson", "--group", "fine", home)
    one = offsets(found)["fine", "orders", 0]
    assert (one["offset"], one["lag"], one["pending"]) == (60, 40, True)
    (pending,) = found.of_type("pending")
    assert (pending["producer_id"], pending["offset"], pending["record_offset"]) == (7, 70, 5)
    (line,) = (line for line in run("groups", home).lines if " transaction " in line)
    assert (numbers(line)[:2], " orders-0" in line) == ([7, 70], True)


def test_the_last_stable_offset_is_that_before_an_open_transaction(run, scenario, tmp_path):
    home = tmp_path / "data"
    home.mkdir()
    log = OffsetsLog()
    log.commit("g", "tx.mixed", 0, 300)
    log.write(home)
    (home / "tx.mixed-0").mkdir()
    for file in (scenario("4.3.1/killed") / "tx.mixed-0").iterdir():
        (home / "tx.mixed-0" / file.name).write_bytes(file.read_bytes())
    (one,) = run("groups", "-f", "ndjson", home).of_type("offset")
    assert (one["last_stable_offset"], one["stable_lag"]) == (336, 36)
    assert one["log_end_offset"] > 336


@pytest.mark.parametrize(
    ("value", "expires_ms"),
    [
        ({"currentStateTimestamp": FIRST_MS + DAY_MS}, FIRST_MS + 8 * DAY_MS),
        ({"currentStateTimestamp": -1}, FIRST_MS + 7 * DAY_MS),
        ({"protocolType": "", "currentStateTimestamp": FIRST_MS + DAY_MS}, FIRST_MS + 7 * DAY_MS),
    ],
    ids=["empty since", "empty, old record", "only commits"],
)
def test_the_expiry_of_offsets_of_a_classic_group(run, tmp_path, value, expires_ms):
    log = OffsetsLog()
    log.commit("g", "t", 0, 5)
    log.add(2, {"group": "g"}, {**EMPTY, **value, "members": []}, version=3)
    log.write(tmp_path)
    (one,) = run("groups", "-f", "ndjson", tmp_path / "__consumer_offsets-0").of_type("offset")
    assert one["expires_ms"] == expires_ms
    for now, expired in ((expires_ms - 1, False), (expires_ms, True)):
        found = run("groups", "-f", "ndjson", "--now", now, tmp_path / "__consumer_offsets-0")
        assert found.of_type("offset")[0]["expired"] is expired


def test_history_of_a_group(run, running, scenario):
    events = run("groups", "-f", "ndjson", "--history", "group-tx", running).of_type("event")
    assert [(one["record_offset"], one["event"]) for one in events] == [
        (22, "transactional-commit"), (23, "transactional-commit"), (24, "committed"),
        (25, "transactional-commit"), (26, "transactional-commit"), (27, "aborted"),
    ]  # fmt: skip
    dump = scenario("4.3.1/running.expected") / "batches/__consumer_offsets-0"
    markers = re.findall(
        r"baseOffset: (?:24|27) .* CreateTime: (\d+)", (dump / f"{0:020d}.log.txt").read_text()
    )
    assert [one["time_ms"] for one in events][2::3] == list(map(int, markers))
    rows = run("groups", "-f", "csv", "--history", "group.gone", running).rows
    assert [row["event"] for row in rows[-3:]] == ["delete-offset"] * 2 + ["GroupMetadata"]
    assert [row["state"] for row in rows[:3]] == ["Empty", "Stable", "Stable"]


def test_sizes_begin_with_the_group_that_takes_most(run, running):
    groups = run("groups", "-f", "ndjson", "--sizes", running).of_type("group")
    assert [one["group"] for one in groups][:2] == ["group_next", "group.gone"]
    gone = groups[1]
    assert (gone["records"], gone["superseded_records"]) == (14, 11)
    assert 0 < gone["superseded_bytes"] < gone["bytes"]
    assert "1.0 of 1.1 KiB" in run("groups", "--sizes", running).stdout


def test_the_commands_that_restore_can_be_run(run, home, tmp_path):
    words = ("groups", "--restore-plan", "--bootstrap-server", "b1:9093")
    found = run(*words, home)
    lines = [line for line in found.lines if line]
    assert [line.split("--group ")[1].split()[0] for line in lines] == [
        "behind", "far", "fine",
    ]  # fmt: skip
    # The offset of "moved" is of a deleted topic.
    assert numbers(last_line(found))[-1] == 1
    command = lines[-1].replace("kafka-consumer-groups.sh", "echo")
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [
        "--bootstrap-server", "b1:9093", "--group", "fine", "--reset-offsets", "--from-file",
        "offsets-3.csv", "--execute",
    ]  # fmt: skip
    assert (tmp_path / "offsets-3.csv").read_text() == "nowhere,3,7\norders,0,60\n"


def test_damage_is_a_finding_and_the_rest_is_shown(run, home):
    damage_file(home / "__consumer_offsets-0" / f"{0:020d}.log", flip, 70)  # in the first batch
    found = run("groups", "-f", "ndjson", home)
    assert found.status == 1
    first = found.of_type("finding")[0]
    assert (first["code"], first["position"]) == ("group/missing-records", 0)
    assert {one["group"] for one in found.of_type("group")} == {"far", "fine", "moved"}


def test_a_record_that_no_coordinator_can_read_is_a_finding(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "t", 0, 5)
    log.raw(b"\0\1\0\1g", b"\0\0")
    found = run("groups", "-f", "ndjson", log.write(tmp_path))
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"], finding["first_offset"]) == (
        1, "group/unreadable-record", 1,
    )  # fmt: skip
    assert len(found.of_type("offset")) == 1


def test_a_group_that_is_removed_with_its_member_is_a_finding(run, tmp_path):
    log = OffsetsLog()
    log.add(3, {"groupId": "g"}, {"epoch": 1})
    log.add(8, {"groupId": "g", "memberId": "member-1"}, {
        "memberEpoch": 1, "previousMemberEpoch": 0, "state": 0, "assignedPartitions": [],
        "partitionsPendingRevocation": [],
    })  # fmt: skip
    log.add(3, {"groupId": "g"}, None)
    log.commit("h", "t", 0, 5)
    found = run("groups", "-f", "ndjson", log.write(tmp_path))
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"], finding["first_offset"]) == (
        1, "group/refused-record", 2,
    )  # fmt: skip
    assert "group g" in finding["message"]
    assert "member-1" in finding["message"]
    assert [one["group"] for one in found.of_type("offset")] == ["h"]


def test_of_several_copies_the_furthest_without_damage_is_taken(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "t", 0, 5)
    behind = log.write(tmp_path / "one")
    log.commit("g", "t", 0, 6)
    ahead = [log.write(tmp_path / name) for name in ("two", "three")]
    homes = [path.parent for path in (behind, *ahead)]
    for home in homes:
        (home / "meta.properties").write_text("version=1\n")
    (used,) = run("groups", "-f", "ndjson", *homes).of_type("partition")
    assert used["path"] == str(ahead[0])
    assert [one["log_end_offset"] for one in used["other_copies"]] == [2, 1]
    damage_file(ahead[0] / f"{0:020d}.log", flip, 70)
    found = run("groups", "-f", "ndjson", *homes)
    assert found.of_type("partition")[0]["path"] == str(ahead[1])
    assert [one["offset"] for one in found.of_type("offset")] == [6]
    assert found.status == 0


def test_topics_and_partitions_choose_offsets(run, running):
    found = run("groups", "-f", "ndjson", "--partition", "1", running)
    assert {one["partition"] for one in found.of_type("offset")} == {1}
    assert not run("groups", "-f", "ndjson", "--topic", "x*", running).of_type("offset")


def test_only_one_of_sizes_and_restore_plan_is_allowed(run, running):
    assert run("groups", "--sizes", "--restore-plan", running).status == 2


@pytest.mark.parametrize("words", [("--group", "nosuch"), ("--history", "nosuch")])
def test_a_missing_group_is_no_answer(run, running, words):
    found = run("groups", *words, "--json", running)
    assert found.status == 4
    (error,) = (one for one in found.items if one["type"] == "error")
    assert (error["path"], error["reason"]) == (str(running), "nothing-matched")
    assert f"{running}: " in found.stderr
    assert " ".join(words) in found.stderr


@pytest.mark.parametrize("words", [(), ("--group", "g"), ("--history", "g"), ("--restore-plan",)])
@pytest.mark.parametrize("inner", ["", "orders-0"])
def test_no_partition_of_the_topic_is_no_answer(run, tmp_path, words, inner):
    data_log(tmp_path, "orders-0", 100, first=50, topic_id=NEW)
    path = tmp_path / inner
    found = run("groups", *words, path)
    assert (found.status, found.stdout) == (4, "")
    (line,) = found.stderr.splitlines()
    assert line.startswith(f"logtool: {path}: ")
    assert "__consumer_offsets" in line
    (error,) = run("groups", *words, "--json", path).items
    assert (error["type"], error["reason"]) == ("error", "nothing-matched")


def test_one_log_dir_of_a_broker_may_be_without_groups(run, running, tmp_path):
    data_log(tmp_path, "orders-0", 100, first=50, topic_id=NEW)
    found = run("groups", tmp_path, running)
    assert (found.status, numbers(last_line(found))) == (0, [3, 6, 1])


def test_a_person_sees_where_records_are_missing(run, damaged):
    found = run("groups", damaged)
    assert found.status == 1
    (line,) = (line for line in found.lines if "group/missing-records" in line)
    severity, code, path, position = line.split()[:4]
    assert (severity, code) == ("ERROR", "group/missing-records")
    assert path == str(damaged / "__consumer_offsets-0" / f"{0:020d}.log")
    assert position.startswith("@")


def test_a_partition_that_may_not_be_read_is_named_and_the_others_are_shown(running, tmp_path):
    names = ("__consumer_offsets-0", "__consumer_offsets-1")
    home = small_log_dir(running, tmp_path / "data", *names)
    shut = home / names[0]
    shut.chmod(0)
    status, stdout, stderr = without_rights("groups", "-f", "ndjson", home)
    shut.chmod(0o755)
    assert status == 4
    assert stderr.count(f"{shut}: Permission denied") == 1
    objects = [json.loads(line) for line in stdout.splitlines()]
    assert {one["group"] for one in objects if one["type"] == "group"} == {"group_next"}


JOINING = {
    "groups": "groups {} {}",
    "groups of a partition": "groups {} {}/__consumer_offsets-0",
    "txns": "txns {} {}",
    "txns of a log": "txns {} {}/groups.input-0/00000000000000000000.log",
    "metadata show": "metadata show {} {}",
    "metadata diff": "metadata diff {}/__cluster_metadata-0 {}",
    "dirs": "dirs {} {}",
    "dirs of two brokers": "dirs 1={} 2={}",
    "may-delete": "may-delete {}/groups.input-0 --among {}",
}


@pytest.mark.parametrize("name", JOINING)
def test_log_dirs_of_several_clusters_are_not_joined(run, running, tmp_path, name):
    names = "__consumer_offsets-0", "groups.input-0", "__cluster_metadata-0"
    text = (running / "meta.properties").read_text()
    (own,) = re.findall(r"(?m)^cluster\.id=(.*)$", text)
    homes = [small_log_dir(running, tmp_path / folder, *names) for folder in ("own", "other")]
    for home, cluster in zip(homes, (own, "another"), strict=True):
        (home / "meta.properties").write_text(text.replace(own, cluster))
    arguments = JOINING[name].format(*homes).split()
    found = run(*arguments, "--json")
    assert (found.status, found.stdout) == (2, "")
    line, _ = found.stderr.splitlines()
    for part in (*map(str, homes), own, "another"):
        assert part in line
    (homes[1] / "meta.properties").unlink()
    found = run(*arguments)
    assert found.status != 2
    assert "another" not in found.stderr


def test_a_history_marks_set_backs_and_names_the_commits_that_a_marker_ends(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "orders", 0, 60)
    log.commit("g", "orders", 1, 10)
    log.commit("g", "orders", 0, 900, producer_id=7)
    log.commit("other", "orders", 1, 900, producer_id=7)
    log.end_transaction(7, commit=False)
    log.commit("g", "orders", 0, 70)  # above the one that counts
    log.commit("g", "orders", 0, 90, producer_id=8)
    log.commit("g", "orders", 1, 20, producer_id=8)
    log.commit("g", "orders", 1, 30)  # behind the one of the transaction, which does not count
    log.end_transaction(8, commit=True)
    log.commit("g", "orders", 0, 80)
    log.commit("g", "orders", 1, 25)
    log.commit("g", "orders", 1, None)
    log.commit("g", "orders", 1, 5)
    log.write(tmp_path)
    events = run("groups", "-f", "ndjson", "--history", "g", tmp_path).of_type("event")
    ended = {one["record_offset"]: (one["event"], one["ended"]) for one in events if one["ended"]}
    assert ended == {4: ("aborted", [2]), 9: ("committed", [6, 7])}
    back = {one["record_offset"]: one["set_back"] for one in events if one["set_back"] is not None}
    assert back == {10: 10, 11: 5}


def test_a_restore_plan_names_what_lies_outside_of_the_log(run, home):
    plans = run("groups", "-f", "ndjson", "--restore-plan", home).of_type("restore")
    outside = {one["group"]: one["outside"] for one in plans if one["outside"]}
    assert outside == {"behind": ["orders-0=40"], "far": ["orders-0=150"]}
    assert all(one["outside"][0].replace("-0=", ",0,") in one["command"]
               for one in plans if one["outside"])  # fmt: skip


def test_a_history_shows_where_it_lacks_records(run, damaged):
    found = run("groups", "-f", "ndjson", "--history", "group-tx", damaged)
    assert (found.status, len(found.of_type("event"))) == (1, 6)
    (finding,) = found.of_type("finding")
    assert finding["code"] == "group/missing-records"
    groups = run("groups", "-f", "ndjson", damaged).of_type("finding")
    assert finding["position"] in [one["position"] for one in groups]


def test_a_history_is_read_from_the_copy_without_damage(run, running, damaged):
    whole = run("groups", "--history", "group-classic", running)
    for paths in ((damaged, running), (running, damaged)):
        found = run("groups", "--history", "group-classic", *paths)
        assert (found.status, found.stdout) == (0, whole.stdout)


def test_a_history_shows_records_that_remove_something(run, tmp_path):
    log = OffsetsLog()
    log.add(3, {"groupId": "g"}, {"epoch": 1})
    log.commit("g", "t", 0, 5)
    log.commit("g", "t", 0, None)
    log.add(3, {"groupId": "g"}, None)
    home = log.write(tmp_path)
    lines = run("groups", "--history", "g", home).lines
    events = [re.split(r"\s{2,}", line.strip())[2] for line in lines[2:]]
    assert [event.split()[0] for event in events] == [
        "ConsumerGroupMetadata", "commit", "delete-offset", "ConsumerGroupMetadata",
    ]  # fmt: skip
    assert events[0] != events[3]
    rows = run("groups", "-f", "csv", "--history", "g", home).rows
    assert [row["deleted"] for row in rows] == ["false", "false", "true", "true"]


def watermark(home, offset):
    """Checkpoint a high watermark of the topic's first partition, before its log is written."""
    text = f"0\n1\n__consumer_offsets 0 {offset}\n"
    (home / "replication-offset-checkpoint").write_text(text)
    os.utime(home / "replication-offset-checkpoint", (FIRST_MS // 1000, FIRST_MS // 1000))


@pytest.mark.parametrize("words", [(), ("--history", "g"), ("--restore-plan",), ("--sizes",)])
def test_a_log_that_ends_below_its_high_watermark_lacks_commits(run, tmp_path, words):
    log = OffsetsLog()
    log.commit("g", "t", 0, 5)
    log.write(tmp_path)
    watermark(tmp_path, 1)
    assert run("groups", *words, tmp_path).status == 0
    watermark(tmp_path, 3)
    found = run("groups", "-f", "ndjson", *words, tmp_path)
    (finding,) = found.of_type("finding")
    assert (found.status, finding["code"]) == (1, "group/missing-records")
    assert {1, 3} <= set(numbers(finding["message"]))
    assert (finding["first_offset"], finding["last_offset"]) == (1, 2)


def test_a_copy_that_goes_as_far_as_any_high_watermark_lacks_nothing(run, tmp_path):
    log = OffsetsLog()
    for folder in ("behind", "whole"):
        log.commit("g", "t", 0, 5)
        log.write(tmp_path / folder)
        watermark(tmp_path / folder, 2)
    behind, whole = tmp_path / "behind", tmp_path / "whole"
    assert run("groups", behind).status == 1
    found = run("groups", "-f", "ndjson", behind, whole)
    assert (found.status, len(found.of_type("offset"))) == (0, 1)


def cluster(home, *records, damaged=False):
    """Write the metadata log of a cluster that knows these records."""
    log = log_dir_of(home, records) / f"{0:020d}.log"
    if damaged:
        log.write_bytes(log.read_bytes() + flip(batch(len(records), topic("x", NEW)), 70))


def test_topics_behind_damage_of_the_metadata_log_are_not_taken_for_others(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "orders", 0, 40, topicId=NEW)
    log.commit("g", "made-later", 0, 40)
    log.write(tmp_path)
    data_log(tmp_path, "orders-0", 100, topic_id=NEW)
    data_log(tmp_path, "made-later-0", 100)
    cluster(tmp_path, topic("orders", OLD))
    sound = run("groups", "-f", "ndjson", tmp_path)
    assert {one["topic_is"] for one in sound.of_type("offset")} == {"other", "gone"}
    shutil.rmtree(tmp_path / "__cluster_metadata-0")
    cluster(tmp_path, topic("orders", OLD), damaged=True)
    found = run("groups", "-f", "ndjson", tmp_path)
    assert [one["topic_is"] for one in found.of_type("offset")] == ["unknown", "same"]
    log = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    assert (str(log) in sound.stderr, str(log) in found.stderr) == (False, True)
    (plan,) = run("groups", "-f", "ndjson", "--restore-plan", tmp_path).of_type("restore")
    assert (plan["offsets"], plan["left_out"]) == (2, 0)


def test_with_an_empty_metadata_log_no_topic_is_gone(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "orders", 0, 40)
    log.write(tmp_path)
    inner = tmp_path / "__cluster_metadata-0"
    inner.mkdir()
    (inner / f"{0:020d}.log").write_bytes(b"")
    (one,) = run("groups", "-f", "ndjson", tmp_path).of_type("offset")
    assert one["topic_is"] == "unknown"


def test_lag_is_counted_in_the_topic_of_today_and_not_in_one_before_of_that_name(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "orders", 0, 40, topicId=NEW)
    log.write(tmp_path / "one")
    cluster(tmp_path / "one", topic("orders", NEW))
    data_log(tmp_path / "one", "orders-0", 60, topic_id=NEW)
    data_log(tmp_path / "two", "orders-0", 900, topic_id=OLD)  # its broker was down meanwhile
    (tmp_path / "two" / "meta.properties").write_text("version=1\n")
    (one,) = run("groups", "-f", "ndjson", tmp_path / "one", tmp_path / "two").of_type("offset")
    assert (one["topic_is"], one["log_end_offset"], one["lag"]) == ("same", 60, 20)


def test_partitions_of_the_topic_that_no_log_dir_has_are_counted(run, tmp_path):
    log = OffsetsLog()
    log.commit("g", "t", 0, 40)
    log.write(tmp_path)
    parts = [partition(NEW, number, [1]) for number in range(3)]
    cluster(tmp_path, topic("__consumer_offsets", NEW), *parts)
    start = "2 partitions of __consumer_offsets "
    assert start in run("groups", tmp_path).stderr
    assert start not in run("groups", tmp_path / "__consumer_offsets-0").stderr
