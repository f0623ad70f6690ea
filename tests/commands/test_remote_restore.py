"""New partition dirs for tiered partitions whose local copies are lost."""

import shutil
from pathlib import Path

import aiven_objects
import pytest
from changes import everything

from logtool.formats import leader_epoch_checkpoint


@pytest.fixture
def tiers(copy_of) -> Path:
    """Return a folder with `data`, in which the copies of two partitions are lost, and `objects`.

    One of them has an empty directory.
    """
    home = copy_of("tiered/4.3.1")
    for name in ("aged-0", "aged-1"):
        shutil.rmtree(home / "data" / name)
    (home / "data" / "aged-0").mkdir()
    return home


def restore(run, output, *words):
    """Return the partitions by name, and the result."""
    found = run("remote", "restore", "--output", output, "-f", "ndjson", *words)
    partitions = {f"{one['topic']}-{one['partition']}": one
                  for one in found.of_type("restored-partition")}  # fmt: skip
    return partitions, found


def epochs(path: Path) -> list[list[int]]:
    data = (path / "leader-epoch-checkpoint").read_bytes()
    return [list(row) for row in leader_epoch_checkpoint.parse(data).epochs]


def test_lost_partitions_get_an_empty_log_with_leader_epochs(run, tiers, tmp_path):
    before = everything(tiers)
    found, result = restore(run, tmp_path / "back", tiers / "objects", tiers / "data")
    assert (found.keys(), result.status) == ({"aged-0", "aged-1"}, 0)
    assert everything(tiers) == before
    assert found["aged-0"]["replaces"] == str(tiers / "data" / "aged-0")
    assert found["aged-1"]["replaces"] is None
    for name, one in found.items():
        path = tmp_path / "back" / "partitions" / name
        assert (one["path"], one["replicas"], one["segments"]) == (str(path), [1], 9)
        assert (one["first_offset"], one["end_offset"], one["has_producers"]) == (0, 9, True)
        assert one["high_watermark"] == 10  # record 9 was in the local segment alone
        assert one["leader_epochs"] == epochs(path) == [[0, 0], [2, 6]]
        assert {file.name: file.stat().st_size > 0 for file in path.iterdir()} == {
            **dict.fromkeys((f"{9:020d}.log", f"{9:020d}.index", f"{9:020d}.timeindex"), False),
            f"{9:020d}.snapshot": True, "leader-epoch-checkpoint": True,
            "partition.metadata": True,
        }  # fmt: skip
    assert sorted(one.name for one in (tmp_path / "back").iterdir()) == ["partitions"]


def test_the_directories_keep_a_start_from_losing_the_segments(run, tiers, tmp_path):
    def lost():
        actions = run("plan", "-f", "ndjson", tiers / "data").of_type("action")
        return {(one["topic"], one["partition"]) for one in actions if one["action"] == "lost"}

    assert lost() == {("aged", 0), ("aged", 1)}
    restore(run, tmp_path / "back", tiers / "objects", tiers / "data")
    (tiers / "data" / "aged-0").rmdir()
    for path in (tmp_path / "back" / "partitions").iterdir():
        shutil.copytree(path, tiers / "data" / path.name)
    assert lost() == set()


def test_without_log_dirs_every_partition_with_objects_counts_as_lost(run, tiers, tmp_path):
    found, result = restore(run, tmp_path / "back", tiers / "objects")
    assert found.keys() == {
        f"{name}-0" for name in ("aborted", "aged", "kept", "sized", "timed")
    } | {"aged-1"}
    assert {tuple(one["replicas"]) for one in found.values()} == {()}
    assert result.status == 0
    assert epochs(tmp_path / "back" / "partitions" / "aged-1") == [[0, 0], [2, 6]]


def test_objects_of_aiven_have_all_that_is_needed(run, tiers, tmp_path):
    bucket = aiven_objects.write(tiers / "objects", tmp_path / "bucket", "aged")
    found, result = restore(run, tmp_path / "back", bucket, tiers / "data")
    assert (found.keys(), result.status) == ({"aged-0", "aged-1"}, 0)
    assert {(one["end_offset"], one["has_producers"]) for one in found.values()} == {(9, True)}


def test_a_hole_and_a_bad_snapshot_are_reported_and_the_rest_is_written(run, tiers, tmp_path):
    hole = next(tiers.glob("objects/aged-0-*/*2-*.log"))
    hole.unlink()
    for path in tiers.glob("objects/aged-1-*/*8-*.snapshot"):
        path.write_bytes(b"bad")
    found, result = restore(run, tmp_path / "back", tiers / "objects")
    assert result.status == 4
    places = {Path(one["path"]).parent for one in result.of_type("error")}
    assert places >= {hole.parent, path.parent}
    assert {name: found[name]["has_producers"] for name in ("aged-0", "aged-1")} == {
        "aged-0": True, "aged-1": False,
    }  # fmt: skip


def test_what_is_there_stays(run, tiers, tmp_path):
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "mine").touch()
    for output in (tmp_path / "back", tiers / "data" / "back"):
        found, result = restore(run, output, tiers / "objects", tiers / "data")
        assert (found, result.status) == ({}, 5)
    assert [one.name for one in (tmp_path / "back").iterdir()] == ["mine"]


def test_without_the_objects_nothing_is_written(run, tiers, tmp_path):
    found, result = restore(run, tmp_path / "back", tmp_path / "nosuch", tiers / "data")
    assert (found, result.status) == ({}, 4)
    assert not (tmp_path / "back").exists()


def test_nothing_matches(run, tiers, tmp_path):
    found, result = restore(run, tmp_path / "back", "--topic", "nosuch", tiers / "objects")
    assert (found, result.status) == ({}, 4)
    assert result.of_type("error")[0]["reason"] == "nothing-matched"


def test_verify_and_plan_name_the_deletion_and_the_command_against_it(run, tiers):
    (tiers / "data" / "aged-0").rmdir()
    found = run("verify", "-f", "ndjson", tiers / "data").of_type("finding")
    actions = run("plan", "-f", "ndjson", tiers / "data").of_type("action")
    texts = [one["message"] for one in found if one["code"] == "partition/lost"]
    texts += [one["reason"] for one in actions if one["action"] == "lost"]
    assert len(texts) == 4
    assert all("DELETES" in one and "remote restore" in one for one in texts)
