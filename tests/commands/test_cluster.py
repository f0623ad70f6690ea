"""``logtool cluster``: volumes of a real cluster, in the right and in the wrong places."""

import os
import shlex
import shutil
import subprocess

import pytest
from crc32c import crc32c
from damage import flip
from metadata_logs import NO_OP, data, directory_id, log_dir, registration, voters_batch

from logtool.apply import outside
from logtool.log import opening

WHOLE = ("replica.fetched-at-once", "replica.in-sync", "replica.lagging")
"""Topics whose only replica in sync has every record."""


@pytest.fixture
def nodes(scenario):
    """Return the log dirs of a controller and two brokers; node 3 was away, then led."""
    home = scenario("4.3.1/replicas")
    return [f"{node}={home / f'node-{node}'}" for node in (1, 2, 3)]


@pytest.fixture
def changed(copy_of):
    """Return the same log dirs, as copies that may be changed."""
    home = copy_of("4.3.1/replicas")
    return [home / f"node-{node}" for node in (1, 2, 3)]


def states(result):
    return {one["node"]: one["status"] for one in result.of_type("volume")}


def partitions(result):
    return {one["topic"]: one for one in result.of_type("partition")}


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_the_exit_status_is_1_if_a_leader_loses_records(run, nodes, format):
    assert run("cluster", "-f", format, *nodes).status == 1


def test_the_volumes_controllers_and_partitions_are_named(run, nodes):
    result = run("cluster", "-f", "ndjson", *nodes)
    assert states(result) == dict.fromkeys((1, 2, 3), "online")
    (controllers,) = result.of_type("controllers")
    assert (controllers["may_win"], controllers["has_majority"]) == ([1], True)
    found = partitions(result)
    for topic in WHOLE:
        assert (found[topic]["status"], found[topic]["elected"]) == ("in-order", [2]), topic
    diverged = found["replica.diverged"]
    assert (diverged["status"], diverged["elected"], diverged["best_leader"]) == (
        "loses", [2, 3], 2
    )  # fmt: skip
    by_node = {one["node"]: one for one in diverged["leaders"]}
    # The common part of the two logs ends at offset 120.
    assert (by_node[2]["acknowledged_lost"], by_node[3]["acknowledged_lost"]) == (50, 80)
    assert [(one["node"], one["offset"]) for one in by_node[3]["cuts"]] == [(2, 120)]
    (verdict,) = result.of_type("cluster")
    assert (verdict["start"], verdict["losing"], verdict["strays"]) == ("in-order", 1, 0)


def test_the_steps_save_what_is_cut_and_elect_the_best_leader(run, nodes):
    found = run("cluster", "-f", "ndjson", *nodes).of_type("step")
    saving = [one["command"] for one in found if "--missing-in" in (one["command"] or "")]
    (words,) = map(shlex.split, saving)
    saved = run(*words[1 : words.index(">")])
    # The records of node 3 that node 2, the better leader, does not have.
    assert len(saved.of_type("record")) == 50
    assert all("base64" in one["value"] for one in saved.of_type("record"))
    (elects,) = (one for one in found if one["file"])
    assert '"replica.diverged"' in elects["file"]
    # Save, start the controllers, start and elect node 2, start node 3, produce what was saved.
    assert [one["number"] for one in found if one["command"] is None] == [2, 5]
    assert (found[-1]["number"], found[-1]["command"]) == (6, "logtool man recipes | man -l -")


def test_the_whole_cluster_in_order_is_status_0(run, nodes):
    result = run("cluster", "-f", "ndjson", "--topic", "*in-sync", *nodes)
    assert result.status == 0
    (verdict,) = result.of_type("cluster")
    assert (verdict["start"], verdict["partitions"]) == ("start", 1)


def test_a_missing_volume_makes_the_answer_incomplete(run, nodes):
    result = run("cluster", "-f", "ndjson", *nodes[:2])
    assert result.status == 4
    assert states(result)[3] == "absent"
    assert result.objects[-1]["complete"] is False
    diverged = partitions(result)["replica.diverged"]
    # With unclean elections, node 2 leads even if node 3 was in sync last.
    assert (diverged["missing"], diverged["may_be_leaderless"]) == ([3], False)
    (leader,) = diverged["leaders"]
    assert (leader["node"], leader["may_be_lost"]) == (2, None)


def test_without_a_copy_a_node_in_sync_leads_with_an_empty_log(run, changed):
    for home in changed[1:]:
        shutil.rmtree(home / "replica.diverged-0")
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 1
    found = partitions(result)["replica.diverged"]
    assert (found["status"], {*found["elected"]}, found["missing"]) == ("no-copy", {2, 3}, [2, 3])
    assert {(one["is_new"], one["may_be_lost"]) for one in found["leaders"]} == {(True, None)}
    only = run("cluster", "-f", "ndjson", "--topic", "*in-sync", *changed)
    assert {*partitions(only)} == {"replica.in-sync"}


def test_without_the_controller_no_controller_is_elected(run, nodes):
    result = run("cluster", "-f", "ndjson", *nodes[1:])
    assert result.status == 4
    (controllers,) = result.of_type("controllers")
    assert (controllers["has_majority"], controllers["missing"]) == (False, [1])
    (verdict,) = result.of_type("cluster")
    assert verdict["start"] == "do-not-start"


def test_strays_of_an_old_metadata_log_lead_to_a_newer_one(run, tmp_path):
    home = log_dir(tmp_path, 1, voters_batch(0, (1,)))
    (home / "orders-0").mkdir()
    result = run("cluster", "-f", "ndjson", home)
    assert partitions(result)["orders"]["strays"] == [1]
    (controllers,) = result.of_type("controllers")
    assert controllers["command"] in [one["command"] for one in result.of_type("step")]


def test_without_a_majority_a_step_gives_the_copy_other_voters(run, tmp_path):
    home = log_dir(tmp_path, 1, voters_batch(0, (1, 2, 3)))
    result = run("cluster", "-f", "ndjson", home)
    commands = [shlex.split(one["command"] or "") for one in result.of_type("step")]
    inner = home / "__cluster_metadata-0"
    voters = "1@controller-1.invalid:9091"
    assert ["logtool", "quorum", "--voters", voters, str(inner)] in commands


def test_without_a_majority_a_step_gives_a_controller_the_copy_of_a_broker(run, tmp_path):
    begin = voters_batch(0, (1, 2, 3))
    homes = [log_dir(tmp_path, 1, begin), log_dir(tmp_path, 7, begin, data(2, NO_OP))]
    result = run("cluster", "--controller", "7", "-f", "ndjson", *homes)
    (controllers,) = result.of_type("controllers")
    assert (controllers["node"], controllers["behind"]) == (1, 1)
    assert controllers["not_assumed"]
    (quorum,) = run("quorum", "-f", "ndjson", *homes).of_type("quorum")
    commands = [one["command"] for one in result.of_type("step")]
    first, second = map(commands.index, (quorum["copying"], quorum["command"]))
    assert first < second


def test_a_volume_under_another_node_is_swapped(run, nodes):
    swapped = [nodes[0], nodes[1].replace("2=", "3=", 1), nodes[2].replace("3=", "2=", 1)]
    result = run("cluster", "-f", "ndjson", *swapped)
    assert result.status == 1
    found = {one["node"]: (one["status"], one["given_node"]) for one in result.of_type("volume")}
    assert (found[2], found[3]) == (("swapped", 3), ("swapped", 2))
    # The rest is judged as if each volume were in its place.
    whole = partitions(run("cluster", "-f", "ndjson", *nodes))
    assert partitions(result) == whole


def test_a_volume_of_another_cluster_takes_no_part(run, changed):
    meta = changed[2] / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=", "cluster.id=x"))
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 4  # the volume of node 3 is missing
    named = [one["status"] for one in result.of_type("volume") if one["node"] == 3]
    assert named == ["other-cluster", "absent"]
    assert partitions(result)["replica.in-sync"]["missing"] == [3]


def test_of_two_copies_of_a_volume_the_newer_is_judged(run, changed, tmp_path):
    old = tmp_path / "old"
    shutil.copytree(changed[2], old)
    for log in (old / "__cluster_metadata-0").glob("*.log"):
        log.unlink()
    (old / "__cluster_metadata-0" / f"{0:020d}.log").write_bytes(b"")
    result = run("cluster", "-f", "ndjson", old, *changed)
    assert result.status == 1
    named = {one["path"]: one["status"] for one in result.of_type("volume")}
    assert named[str(old)] == "doubled"
    assert named[str(changed[2])] == "online"


def test_a_directory_id_of_another_node_is_moved(run, changed):
    meta = changed[1] / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=2", "node.id=5"))
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 4
    assert (states(result)[5], states(result)[2]) == ("moved", "absent")


def test_a_topic_that_was_made_again_becomes_a_stray(run, changed):
    file = changed[2] / "replica.in-sync-0" / "partition.metadata"
    old = "AAAAAAAAAAAAAAAAAAAAZw"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], f"topic_id: {old}"]) + "\n")
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 1
    found = partitions(result)["replica.in-sync"]
    assert (found["strays"], found["missing"], found["elected"]) == ([3], [3], [2])
    (other,) = result.of_type("other-topic")
    assert (other["topic"], other["topic_id"], other["nodes"]) == ("replica.in-sync", old, [3])
    assert other["image_id"] == found["topic_id"]


def test_a_node_in_sync_without_a_copy_may_lead_with_an_empty_log(run, changed):
    shutil.rmtree(changed[1] / "replica.in-sync-0")
    result = run("cluster", "-f", "ndjson", "--topic", "replica.in-sync", *changed)
    assert result.status == 1
    found = partitions(result)["replica.in-sync"]
    assert (found["status"], found["missing"], found["away"]) == ("loses", [2], [])
    worst = next(one for one in found["leaders"] if one["node"] == 2)
    assert (worst["is_new"], worst["log_end_offset"], worst["acknowledged_lost"]) == (True, 0, 120)
    assert [(cut["node"], cut["offset"]) for cut in worst["cuts"]] == [(3, 0)]


@pytest.mark.parametrize("chosen", [("--topic", "nosuch"), ("--partition", "99")])
def test_a_selection_without_a_partition_is_incomplete(run, nodes, chosen):
    result = run("cluster", *chosen, *nodes)
    assert result.status == 4
    assert " ".join(chosen) in result.stderr


def test_a_snapshot_that_no_controller_has_is_named_with_the_remedy(run, changed):
    log = changed[1] / "__cluster_metadata-0"
    newest = max(log.glob("*.checkpoint"), default=None)
    assert newest is not None
    newest.rename(log / f"{9999:020d}-{7:010d}.checkpoint")
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 1
    assert states(result)[2] == "ahead"
    assert {one["node"]: one["ahead_of"] for one in result.of_type("volume")}[2] == [1]
    commands = [one["command"] for one in result.of_type("step") if one["command"]]
    (moving,) = (one for one in commands if one.startswith(f"mv -T {log} "))
    # An undo directory may still lie next to the volumes.
    home = log.parents[1]
    subprocess.run(moving, shell=True, check=True, cwd=home)
    assert (home / shlex.split(moving)[2]).is_dir()
    assert not outside.belongs_to_broker(home)
    (verdict,) = result.of_type("cluster")
    assert verdict["start"] == "do-not-start"


def test_a_damaged_replica_is_filled_before_the_start(run, changed):
    log = max((changed[2] / "replica.in-sync-0").glob("*.log"))
    log.write_bytes(flip(log.read_bytes(), log.stat().st_size // 2))
    chosen = ("cluster", "-f", "ndjson", "--topic", "replica.in-sync", *changed)
    result = run(*chosen)
    (verdict,) = result.of_type("cluster")
    assert (result.status, verdict["start"], verdict["repairs"]) == (1, "in-order", 1)
    (fill,) = (one for one in result.of_type("step") if "--fill-from" in (one["command"] or ""))
    assert run(*shlex.split(fill["command"])[1:]).status == 0
    (verdict,) = run(*chosen).of_type("cluster")
    assert (verdict["start"], verdict["repairs"]) == ("start", 0)


def test_a_replica_without_its_end_is_filled_before_the_start(run, changed):
    (log,) = (changed[2] / "replica.in-sync-0").glob("*.log")
    sound, status = log.read_bytes(), log.stat()
    (*_, last) = opening.open_partition(log.parent).segments[0].batches(payload=False)
    log.write_bytes(sound[: int(last.table.position[-1])])
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    chosen = ("cluster", "-f", "ndjson", "--topic", "replica.in-sync", *changed)
    result = run(*chosen)
    (verdict,) = result.of_type("cluster")
    assert (result.status, verdict["start"], verdict["repairs"]) == (1, "in-order", 1)
    made = result.of_type("step")
    assert not any(one["starts"] for one in made)
    (fill,) = (one for one in made if "--fill-from" in (one["command"] or ""))
    assert run(*shlex.split(fill["command"])[1:]).status == 0
    assert log.read_bytes() == sound
    (verdict,) = run(*chosen).of_type("cluster")
    assert (verdict["start"], verdict["repairs"]) == ("start", 0)


def test_a_volume_that_takes_no_part_fills_a_damaged_replica(run, changed, tmp_path):
    double = tmp_path / "double"
    shutil.copytree(changed[2], double)
    shutil.rmtree(changed[1] / "replica.in-sync-0")
    log = max((changed[2] / "replica.in-sync-0").glob("*.log"))
    sound = log.read_bytes()
    log.write_bytes(flip(sound, len(sound) // 2))
    chosen = ("cluster", "-f", "ndjson", "--topic", "replica.in-sync", *changed, double)
    result = run(*chosen)
    (doubled,) = (one for one in result.of_type("volume") if one["status"] == "doubled")
    assert (doubled["path"], doubled["double_of"]) == (str(double), str(changed[2]))
    (verdict,) = result.of_type("cluster")
    assert (result.status, verdict["repairs"]) == (1, 1)
    # The double has what the log has lost.
    assert partitions(result)["replica.in-sync"]["nowhere"] == 0
    commands = [shlex.split(one["command"] or "") for one in result.of_type("step")]
    assert ["logtool", "diff", str(changed[2]), str(double)] in commands
    (fill,) = (one for one in commands if "--fill-from" in one)
    assert str(double / "replica.in-sync-0") in fill
    assert run(*fill[1:]).status == 0
    assert log.read_bytes() == sound
    (verdict,) = run(*chosen).of_type("cluster")
    assert verdict["repairs"] == 0


def test_a_copy_that_becomes_a_stray_fills_a_damaged_replica(run, changed):
    # By the metadata log no replica is on node 7.
    meta = changed[1] / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=2", "node.id=7"))
    log = max((changed[2] / "replica.in-sync-0").glob("*.log"))
    log.write_bytes(flip(log.read_bytes(), log.stat().st_size // 2))
    result = run("cluster", "-f", "ndjson", "--topic", "replica.in-sync", *changed)
    assert partitions(result)["replica.in-sync"]["strays"] == [7]
    (fill,) = (one for one in result.of_type("step") if "--fill-from" in (one["command"] or ""))
    assert str(changed[1] / "replica.in-sync-0") in shlex.split(fill["command"])


def test_logs_that_no_start_reads_lead_to_verify(run, copy_of):
    home = copy_of("4.3.1/running")
    result = run("cluster", "-f", "ndjson", home)
    (verdict,) = result.of_type("cluster")
    assert verdict["unread_bytes"] > 0
    assert shlex.split(verdict["verify"]) == ["logtool", "verify", str(home)]
    (summary,) = result.of_type("summary")
    assert summary["next"] == [verdict["verify"]]
    made = [(one["command"], bool(one["starts"])) for one in result.of_type("step")]
    # Nothing starts before these logs were read.
    first = next((n for n, (_, starts) in enumerate(made) if starts), len(made))
    assert (verdict["verify"], False) in made[:first]
    leaders = [it for one in result.of_type("partition") for it in one["leaders"]]
    assert 0 < sum(one["unread_bytes"] for one in leaders) <= verdict["unread_bytes"]


@pytest.mark.parametrize("time", [-1, 0])
def test_a_metadata_log_without_a_time_gives_no_time(run, tmp_path, time):
    batch = bytearray(voters_batch(0, (1,)))
    batch[27:43] = 2 * time.to_bytes(8, "big", signed=True)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    result = run("cluster", "-f", "ndjson", log_dir(tmp_path, 1, bytes(batch)))
    (volume,) = result.of_type("volume")
    assert (volume["metadata_end_offset"], volume["metadata_timestamp_ms"]) == (2, None)
    (verdict,) = result.of_type("cluster")
    assert (verdict["first_timestamp_ms"], verdict["spread_ms"]) == (None, None)


def test_a_partition_dir_is_no_volume(run, changed):
    result = run("cluster", *changed[:2], changed[2] / "replica.in-sync-0")
    assert result.status == 4
    assert "replica.in-sync-0: " in result.stderr


def test_directories_that_the_start_deletes_are_named(run, scenario):
    home = scenario("4.3.1/clean")
    (verdict,) = run("cluster", "-f", "ndjson", f"1={home}").of_type("cluster")
    there = [path for path in home.iterdir() if path.name.endswith("-delete")]
    assert verdict["deleted"] == len(there) == 2
    assert verdict["undelete"] == f"logtool undelete --output back {home}"
    (other,) = run("cluster", "-f", "ndjson", f"1={scenario('4.3.1/formatted')}").of_type("cluster")
    assert (other["deleted"], other["undelete"]) == (0, None)


def test_with_one_voter_absent_steps_give_the_copy_of_a_broker_to_the_others(run, tmp_path):
    begin = voters_batch(0, (1, 2, 3))
    homes = [log_dir(tmp_path, node, begin) for node in (2, 3)]
    broker = log_dir(tmp_path, 9, begin, data(2, registration(9)), data(3, NO_OP))
    result = run("cluster", "-f", "ndjson", *homes, broker)
    (verdict,) = run("quorum", "-f", "ndjson", *homes, broker).of_type("quorum")
    wanted = {one["command"] for one in verdict["lacking"]}
    found = {one["command"] for one in result.of_type("step")}
    assert (len(wanted), wanted <= found) == (2, True)


def test_the_controller_that_is_wanted_is_assumed_though_it_is_behind(run, tmp_path):
    begin = voters_batch(0, (1, 2, 3))
    old = log_dir(tmp_path, 2, begin)
    whole = [log_dir(tmp_path, node, begin, data(2, NO_OP)) for node in (1, 3)]
    result = run("cluster", "-f", "ndjson", "--controller", 2, *whole, old)
    (found,) = result.of_type("controllers")
    assert (found["node"], found["not_assumed"], found["may_win"]) == (2, None, [1, 3])
    assert found["unlikely"]


def steps_of(result):
    return result.of_type("step")


def test_a_volume_without_an_id_is_identified_by_its_partitions(run, changed, tmp_path):
    whole = run("cluster", "-f", "ndjson", *changed)
    meta = changed[1] / "meta.properties"
    known = {line for line in meta.read_text().splitlines() if not line.startswith("#")}
    meta.write_bytes(b"")
    result = run("cluster", "-f", "ndjson", *changed)
    (found,) = (one for one in result.of_type("volume") if one["status"] == "unidentified")
    assert (found["node"], {*found["restored"]}) == (2, known)
    assert partitions(result) == partitions(whole)
    (writing,) = (one for one in steps_of(result) if "meta.properties" in (one["command"] or ""))
    assert writing["number"] == 1
    assert result.of_type("cluster")[0]["start"] == "do-not-start"
    subprocess.run(writing["command"], shell=True, check=True, cwd=tmp_path)
    assert states(run("cluster", "-f", "ndjson", *changed))[2] == "online"


def test_a_volume_that_nothing_identifies_leads_nothing(run, changed):
    (changed[1] / "meta.properties").write_bytes(b"")
    shutil.rmtree(changed[1] / "replica.in-sync-0")  # Its partitions are not all that node 2 had.
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 4
    (found,) = (one for one in result.of_type("volume") if one["status"] == "unidentified")
    assert (found["node"], found["restored"]) == (None, [])
    assert states(result)[2] == "absent"
    shown = partitions(result)
    assert all(one["node"] is not None for it in shown.values() for one in it["leaders"])
    assert all(shown[topic]["may_be_longer"] for topic in WHOLE)
    assert not [one for one in steps_of(result) if one["file"]]
    # With the id it is the volume of node 2, and no other may hold more.
    given = run("cluster", "-f", "ndjson", changed[0], f"2={changed[1]}", changed[2])
    assert partitions(given)[WHOLE[0]]["elected"] == [2]


def test_no_unclean_election_while_a_volume_is_absent(run, nodes):
    result = run("cluster", "-f", "ndjson", nodes[0], nodes[2])
    shown = partitions(result)
    assert (shown[WHOLE[0]]["status"], shown[WHOLE[0]]["may_be_longer"]) == ("leaderless", True)
    assert not [one for one in steps_of(result) if one["file"]]


def test_the_elections_come_before_the_format_of_a_new_disk(run, changed):
    shutil.rmtree(changed[1])
    changed[1].mkdir()
    result = run("cluster", "-f", "ndjson", *changed)
    assert result.status == 1
    assert states(result)[2] == "empty"
    shown = partitions(result)
    for topic in WHOLE:
        assert (shown[topic]["elected"], shown[topic]["best_leader"]) == ([2], 3), topic
        assert {one["node"]: one["is_new"] for one in shown[topic]["leaders"]}[2]
    found = steps_of(result)
    (elects,) = (one for one in found if one["file"])
    assert all(topic in elects["file"] for topic in WHOLE)
    (formats,) = (one for one in found if "kafka-storage" in (one["command"] or ""))
    starts = {node: one["number"] for one in found for node in one["starts"]}
    assert starts[3] < elects["number"] < formats["number"] < starts[2]


def test_a_broker_without_one_of_its_volumes_does_not_start(run, nodes):
    result = run("cluster", "-f", "ndjson", nodes[0], nodes[1])
    assert 3 not in {node for one in steps_of(result) for node in one["starts"]}


def test_a_voter_with_an_empty_disk_is_added_again_last(run, tmp_path):
    begin = voters_batch(0, (1, 2, 3))
    homes = [log_dir(tmp_path, node, begin) for node in (2, 3)]
    (tmp_path / "controller-1").mkdir()
    result = run("cluster", "-f", "ndjson", f"1={tmp_path / 'controller-1'}", *homes)
    assert (result.status, states(result)[1]) == (1, "empty")
    found = steps_of(result)
    commands = [(one["command"] or "").split() for one in found[-3:]]
    assert [set(one) & {"format", "remove-controller", "add-controller"} for one in commands] == [
        {"format"}, {"remove-controller"}, {"add-controller"},
    ]  # fmt: skip
    assert "--no-initial-controllers" in commands[0]
    assert commands[1][-1] == directory_id(1)
    assert 1 not in {node for one in found[:-3] for node in one["starts"]}


def test_an_empty_directory_of_no_node_is_not_judged(run, nodes, tmp_path):
    (tmp_path / "disk").mkdir()
    result = run("cluster", "-f", "ndjson", *nodes, tmp_path / "disk")
    assert (result.status, states(result)[None]) == (4, "unidentified")


def test_a_broker_that_is_a_controller_too_starts_once_with_the_controllers(run, nodes):
    result = run("cluster", "-f", "ndjson", *nodes)
    # Node 1 is both, in one process.
    found = [one["starts"] for one in steps_of(result) if one["starts"]]
    assert found == [[1], [2], [3]]


def test_nothing_starts_while_a_partition_lies_in_a_volume_of_no_node(run, copy_of, tmp_path):
    home = copy_of("4.3.1/killed")
    (tmp_path / "vol").mkdir()
    logs = [path for path in sorted(home.iterdir()) if path.name.endswith("-0")]
    name = next(path.name for path in logs if not path.name.startswith("__"))
    (home / name).rename(tmp_path / "vol" / name)
    result = run("cluster", "-f", "ndjson", home, tmp_path / "vol")
    assert result.status == 4
    (moved,) = (one for one in result.of_type("partition") if one["leaders"][0]["is_new"])
    assert (moved["may_be_longer"], moved["nowhere"]) == (True, 0)
    assert not any(one["starts"] or one["file"] for one in steps_of(result))
