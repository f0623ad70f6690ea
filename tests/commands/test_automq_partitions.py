"""Commands on a bucket of AutoMQ with its metadata log: the answers are those for Kafka's files."""

import json
import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from logtool.disk import files
from logtool.disk.assembled import AssembledPath
from logtool.formats.automq import names
from logtool.log import opening
from logtool.log.inputs import GivenPaths
from logtool.metadata import automq_tree

STATES = {
    "broker-crash": "truth-consumer-after-restart.json",
    "broker-clean": "truth-consumer.json",
}
CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"


@pytest.fixture
def given(scenario):
    home = scenario("automq/broker-crash")
    return home / "s3", home / "meta"


@pytest.fixture
def damaged(copy_of):
    """Return a function that removes an object of a copy, and returns the bucket and the log."""
    home = copy_of("automq/broker-crash")

    def without(number):
        (home / "s3" / names.data_key(CLUSTER, number)).unlink()
        return home / "s3", home / "meta"

    return without


def truth_of(scenario, state):
    return json.loads((scenario(f"automq/{state}.expected") / STATES[state]).read_text())


@pytest.mark.parametrize("state", STATES)
def test_dump_prints_the_records_that_a_consumer_read(run, scenario, state):
    home, truth = scenario(f"automq/{state}"), truth_of(scenario, state)
    result = run("dump", "--records", "-f", "ndjson", home / "s3", home / "meta")
    assert result.status == 0
    found = {}
    for one in result.of_type("record"):
        if not one["control"]:
            name = f"{one['topic']}-{one['partition']}"
            found.setdefault(name, []).append([one["offset"], one["timestamp_ms"]])
    for name, expected in truth.items():
        rows = [row[:2] for row in expected["offset_timestamp_crc32_of_key_value"]]
        assert found.get(name, []) == rows, name


def test_records_are_searched_by_key(run, given):
    found = run("dump", "--topic", "changes", "--key", "k0", "-f", "ndjson", *given)
    offsets = [one["offset"] for one in found.of_type("record")]
    every = run("dump", "--topic", "changes", "--records", "-f", "ndjson", *given)
    wanted = [one["offset"] for one in every.of_type("record") if one["key"]["utf8"] == "k0"]
    assert offsets == wanted != []


def test_records_are_counted_by_partition(run, scenario, given):
    result = run("dump", "--count", "-f", "ndjson", *given)
    counts = {f"{one['topic']}-{one['partition']}": one["records"]
              for one in result.of_type("count")}  # fmt: skip
    assert (counts["orders-0"], counts["orders-1"], counts["empty-0"]) == (730, 130, 0)


def test_stat_counts_what_the_partitions_hold(run, scenario, given):
    truth = truth_of(scenario, "broker-crash")
    result = run("stat", "--exclude-topic", "__*", "-f", "ndjson", *given)
    assert result.objects[0]["flavour"] == "automq"
    rows = {f"{one['topic']}-{one['partition']}": one for one in result.of_type("partition")}
    assert rows.keys() == {name for name in truth if not name.startswith("__")}
    for name, row in rows.items():
        offsets = [one[0] for one in truth[name]["offset_timestamp_crc32_of_key_value"]]
        control = 18 if name == "ledger-0" else 0
        assert row["records"] == len(offsets) + control, name


@pytest.mark.parametrize("state", STATES)
def test_gaps_are_those_of_compaction(run, scenario, state):
    home, truth = scenario(f"automq/{state}"), truth_of(scenario, state)
    result = run("gaps", "-f", "ndjson", home / "s3", home / "meta")
    assert result.status == 0
    gaps = result.of_type("gap")
    assert {(one["topic"], one["reason"]) for one in gaps} == {("changes", "compaction")}
    assert sum(one["missing"] for one in gaps) == 767
    ends = {f"{one['topic']}-{one['partition']}": (one["log_start_offset"], one["log_end_offset"])
            for one in result.of_type("partition")}  # fmt: skip
    for name, one in truth.items():
        assert ends[name] == (one["log_start_offset"], one["log_end_offset"]), name


def test_an_offset_and_a_time_are_found_by_index_and_by_scan(run, given):
    place = ("--topic", "orders", "--partition", 0)
    for words in (("--offset", 710), ("--timestamp", "1700000710000")):
        result = run("lookup", *place, *words, "-f", "ndjson", *given)
        assert result.status == 0
        assert [one["offset"] for one in result.of_type("place")] == [710, 710]
    assert run("lookup", *place, "--offset", 730, *given).status == 1
    assert run("lookup", *place, "--offset", 1, *given, "more").status == 2


def test_the_open_transaction_and_the_aborted_ones_are_found(run, given):
    result = run("txns", "--topic", "ledger", "-f", "ndjson", *given)
    (row,) = result.of_type("partition")
    assert (row["open"], row["aborted"], row["committed"]) == (1, 6, 12)
    (entry,) = [one for one in result.of_type("transaction") if one["state"] == "open"]
    assert (entry["first_offset"], row["last_stable_offset"]) == (108, 108)


def test_groups_and_their_lag_are_read(run, given):
    result = run("groups", "-f", "ndjson", *given)
    found = {(one["topic"], one["partition"]): (one["offset"], one["lag"])
             for one in result.of_type("offset")}  # fmt: skip
    assert found == {("orders", 0): (412, 318), ("orders", 1): (100, 30)}


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_the_order_of_the_two_paths_does_not_matter(run, given, order):
    assert run("stat", "--topic", "orders", *given[order]).status == 0


@pytest.mark.parametrize("command", ["stat", "gaps", "txns", "groups"])
def test_a_bucket_without_its_metadata_log_has_no_partitions(run, given, command):
    result = run(command, "-f", "ndjson", given[0])
    (error,) = result.of_type("error")
    assert (result.status, error["reason"]) == (4, "nothing-matched")


def test_the_flavour_needs_both_paths(run, given):
    assert run("stat", "--flavour", "automq", "--topic", "orders", *given).status == 0
    assert run("stat", "--flavour", "automq", given[1]).status == 4


def test_offsets_in_no_object_are_an_error_of_their_partition_alone(run, damaged):
    paths = damaged(1)
    result = run("stat", "-f", "ndjson", *paths)
    assert result.status == 4
    assert all("__auto_balancer_metrics-0" in one["message"] + one["path"]
               for one in result.of_type("error"))  # fmt: skip
    assert run("stat", "--topic", "orders", *paths).status == 0
    losses = [one for one in run("gaps", "-f", "ndjson", *paths).of_type("gap") if one["loss"]]
    assert [(one["first_offset"], one["last_offset"]) for one in losses] == [(2, 4)]


def test_the_files_are_those_of_the_meta_streams(given):
    (path,) = automq_tree.join(GivenPaths(given)).paths
    root = opening.open_log_dir(path)
    assert str(root.flavour.name) == "automq"
    assert not root.is_clean
    folder = next(one for one, _ in root.partitions if one.name == "orders-0")
    listed = opening.open_partition(folder)
    kinds = Counter(file.path.suffix for file in listed.files())
    assert kinds == {".log": 3, ".timeindex": 3, ".snapshot": 2, "": 1, ".metadata": 1}
    assert files.read_small(folder / "leader-epoch-checkpoint") == b"0\n1\n0 250\n"
    again = pickle.loads(pickle.dumps(folder))
    assert isinstance(again, AssembledPath)
    assert files.list_dir(cast(Path, again)) == files.list_dir(folder)
    with pytest.raises(files.UnreadableError) as caught:
        files.size_at(folder / "no-such-file")
    assert caught.value.missing


@pytest.mark.parametrize("state", ["broker-clean"])
def test_a_bucket_of_a_stopped_node_is_clean(scenario, state):
    home = scenario(f"automq/{state}")
    (path,) = automq_tree.join(GivenPaths((home / "s3", home / "meta"))).paths
    assert opening.open_log_dir(path).is_clean


def test_a_bucket_of_another_cluster_stays_a_path_of_its_own(scenario, given, tmp_path):
    shutil.copytree(scenario("automq/made") / "objects", tmp_path / "other")
    paths = (tmp_path / "other", given[1])
    assert automq_tree.join(GivenPaths(paths)).paths == list(paths)
