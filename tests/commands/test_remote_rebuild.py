"""Buckets of lost clusters: their partitions, and the things that a new cluster lacks."""

import shutil

import aiven_objects
import pytest
from remote_events import ORDERS


@pytest.fixture(scope="module")
def tiers(scenario):
    """Return the folder with `data` and `objects`, which is shared and must not be changed."""
    return scenario("tiered/4.3.1")


def plan(run, *words, rsm="local"):
    """Return the partitions by name, the topics by name, and the status."""
    found = run("remote", "rebuild-plan", "--rsm", rsm, "-f", "ndjson", *words)
    partitions = {f"{one['topic']}-{one['partition']}": one
                  for one in found.of_type("rebuild-partition")}  # fmt: skip
    topics = {one["topic"]: one for one in found.of_type("rebuild-topic")}
    return partitions, topics, found.status


def ends(partitions):
    return {name: (one["first_offset"], one["end_offset"], one["leader_epochs"])
            for name, one in partitions.items()}  # fmt: skip


def test_with_all_log_dirs_nothing_is_lacking(run, tiers):
    partitions, topics, status = plan(run, tiers / "objects", tiers / "data")
    assert status == 0
    assert {tuple(one["lacks"]) for one in partitions.values()} == {()}
    assert (topics["aged"]["partitions"], topics["aged"]["source"]) == (2, "metadata-log")
    assert "local.retention.bytes=1" in topics["aged"]["settings"]


@pytest.mark.parametrize("rsm", ["local", "aiven"])
def test_objects_alone_have_the_offsets_and_lack_all_that_leads_to_them(
    run, tiers, tmp_path, rsm
) -> None:
    known, _, _ = plan(run, "--topic", "aged", tiers / "objects", tiers / "data")
    home = tiers / "objects"
    if rsm == "aiven":
        home = aiven_objects.write(home, tmp_path / "bucket", "aged", encrypt=True)
    partitions, topics, status = plan(run, "--topic", "aged", home, rsm=rsm)
    assert status == 0
    of_offsets = {name: row[:2] for name, row in ends(partitions).items()}
    assert of_offsets == {name: row[:2] for name, row in ends(known).items()}
    if rsm == "local":  # the manifests of the test have another epoch
        assert ends(partitions) == ends(known)
    lacks = ["topic-id", "records", "leader-epochs"]
    assert [one["lacks"] for one in partitions.values()] == [lacks, lacks]
    assert (topics["aged"]["source"], topics["aged"]["settings"]) == ("objects", None)


def lose_records(home):
    for path in home.glob("data/__remote_log_metadata-*"):
        shutil.rmtree(path)


def lose_partition(home):
    shutil.rmtree(home / "data" / "aged-0")


def lose_object(home):
    next(home.glob("objects/aged-0-*/*2-*.log")).unlink()


def lose_metadata(home):
    shutil.rmtree(home / "data" / "__cluster_metadata-0")


LOSSES = {
    lose_records: ["records"], lose_partition: ["leader-epochs"], lose_metadata: ["topic-id"],
    lose_object: ["objects", "offsets"],
}  # fmt: skip


@pytest.mark.parametrize("lose", LOSSES)
def test_each_loss_is_named_and_nothing_else(run, copy_of, lose):
    home = copy_of("tiered/4.3.1")
    lose(home)
    given = ("--topic", "aged", "--partition", "0", home / "objects", home / "data")
    partitions, _, status = plan(run, *given)
    assert (status, partitions["aged-0"]["lacks"]) == (0, LOSSES[lose])


def test_a_bucket_without_objects_is_incomplete(run, tmp_path):
    (tmp_path / f"orders-{ORDERS}").mkdir()
    assert plan(run, tmp_path)[2] == 4


@pytest.mark.parametrize("command", ["verify", "rebuild-plan"])
def test_objects_of_another_plugin_are_one_error(run, tiers, command):
    found = run(
        "remote", command, "--rsm", "aiven", "-f", "ndjson", tiers / "objects", tiers / "data"
    )
    (error, summary) = found.objects
    assert (error["type"], error["reason"], found.status) == ("error", "nothing-matched", 4)
    assert "--rsm local" in error["message"]
    assert summary["type"] == "summary"
