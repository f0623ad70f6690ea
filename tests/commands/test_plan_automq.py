"""The start of a node of AutoMQ: equal to what the broker said in its log when it started."""

import json

import pytest
from answers import last_line

from logtool.disk import files
from logtool.log import opening
from logtool.log.inputs import GivenPaths
from logtool.metadata import automq_tree


@pytest.fixture
def home(copy_of):
    return copy_of("automq/broker-crash")


@pytest.fixture
def truth(scenario):
    folder = scenario("automq/broker-crash.expected")
    return json.loads((folder / "truth-recovery-from-broker-log.json").read_text())


def plan(run, home, *more):
    return run("plan", "-f", "ndjson", *more, home / "s3", home / "meta")


def test_the_recovery_of_every_stream_equals_that_of_the_broker(run, home, truth):
    result = plan(run, home)
    assert result.status == 0
    found = {one["stream"]: one for one in result.of_type("stream")}
    assert found.keys() == {one["stream_id"] for one in truth["streams"]}
    for one in truth["streams"]:
        row = found[one["stream_id"]]
        assert row["start_offset"] == one["start_offset"]
        assert row["metadata_end_offset"] == one["kraft_end_offset"]
        assert row["end_offset"] == one["end_offset_after_wal_recovery"]
        assert row["lost_offsets"] == 0
    (wal,) = result.of_type("wal")
    assert (wal["node"], wal["trim_offset"], wal["objects"]) == (1, 9126805504, 18)
    assert (wal["taken_objects"], wal["records"], wal["recovered_records"]) == (18, 27, 27)


def test_the_replay_of_every_partition_equals_that_of_the_broker(run, home, truth):
    found = {f"{one['topic']}-{one['partition']}": one
             for one in plan(run, home).of_type("replay")}  # fmt: skip
    assert found.keys() == truth["partition_meta_loaded"].keys()
    for name, one in truth["partition_meta_loaded"].items():
        row = found[name]
        assert row["log_start_offset"] == one["start_offset"]
        assert row["recovery_point"] == one["recover_offset"]
        assert row["clean"] == one["clean"]
        assert row["snapshot"] == truth["producer_snapshot_loaded"].get(name)
    for one in truth["unclean_recovery_ranges"]:
        row = found[one["partition"]]
        assert (row["replayed_from"], row["log_end_offset"]) == (one["replay_from"], one["log_end"])
    undone = {name: one["undone_log_start"] for name, one in found.items()}
    assert undone == dict.fromkeys(found) | {"orders-0": 250}


def test_a_stopped_node_replays_nothing(run, scenario):
    result = plan(run, scenario("automq/broker-clean"))
    assert result.status == 0
    assert {one["replayed_from"] for one in result.of_type("replay")} == {None}
    assert result.of_type("stream") == []


def the_wal(home):
    return sorted((home / "s3").rglob("wal/*"), key=lambda one: int(one.name.partition("-")[0]))


def test_records_behind_a_gap_are_lost(run, home):
    the_wal(home)[-4].unlink()
    result = plan(run, home)
    (wal,) = result.of_type("wal")
    assert (result.status, wal["dropped_objects"], wal["fault"]) == (1, 3, None)
    assert any(one["lost_offsets"] for one in result.of_type("stream"))


def test_the_last_lines_say_what_is_lost_and_the_next_command(run, home):
    verify = f"logtool verify {home}/s3 {home}/meta"
    sound = run("plan", home / "s3", home / "meta")
    assert verify not in sound.stderr
    assert plan(run, home).of_type("summary")[0]["next"] == []
    the_wal(home)[-4].unlink()
    result = run("plan", home / "s3", home / "meta")
    assert result.stderr.splitlines()[-2].endswith(f": {verify}")
    streams = [one for one in plan(run, home).of_type("stream") if one["lost_offsets"]]
    assert {(one["topic"], one["lost_offsets"]) for one in streams} == {
        ("__automq_cluster_events", 4), ("ledger", 4),
    }  # fmt: skip
    verdict = last_line(result)
    assert " 8 offsets " in verdict
    assert verdict.endswith(": __automq_cluster_events-0, ledger-0")
    assert plan(run, home).of_type("summary")[0]["next"] == [verify]


def test_a_damaged_wal_stops_the_node(run, home):
    path = the_wal(home)[-1]
    path.write_bytes(path.read_bytes()[:-1] + b"\x99")
    result = plan(run, home)
    (wal,) = result.of_type("wal")
    assert result.status == 1
    assert path.name in wal["fault"]


def test_only_the_selected_partitions_are_replayed(run, home):
    result = plan(run, home, "--topic", "orders", "--partition", 0)
    assert [one["recovery_point"] for one in result.of_type("replay")] == [412]


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
def test_the_other_forms_have_the_same_partitions(run, home, form):
    result = run("plan", "-f", form, home / "s3", home / "meta")
    assert result.status == 0
    assert "ledger" in result.stdout


def test_other_ways_of_recovery_do_not_exist(run, home):
    assert plan(run, home, "--strategy", "supplement").status == 2


def test_supplement_starts_each_replay_where_automqs_broker_did(run, home, truth, tmp_path):
    """The files are AutoMQ's own: its indexes, its snapshots and its recovery points."""
    (path,) = automq_tree.join(GivenPaths((home / "s3", home / "meta"))).paths
    listed = opening.open_log_dir(path)
    folders = [folder for folder, _ in listed.partitions if "__cluster" not in folder.name]
    in_folders = [one for folder in folders for one in opening.open_partition(folder).files()]
    for file in (*listed.files.values(), *in_folders):
        below = file.path.parent.name if file in in_folders else "."
        target = tmp_path / "log-dir" / below / file.path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files.read_small(file.path))
    result = run("plan", "--strategy", "supplement", "-f", "ndjson", tmp_path / "log-dir")
    found = {f"{one['topic']}-{one['partition']}": one for one in result.of_type("partition")}
    replays = {f"{one['topic']}-{one['partition']}": one
               for one in plan(run, home).of_type("replay")}  # fmt: skip
    assert len(truth["unclean_recovery_ranges"]) == 11
    for one in truth["unclean_recovery_ranges"]:
        row = found[one["partition"]]
        assert row["playback"]["replayed_from"] == one["replay_from"]
        assert row["log_end_offset"] == one["log_end"]
        assert row["bytes_applied"] == replays[one["partition"]]["replayed_bytes"]
