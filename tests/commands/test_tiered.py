"""Commands that show the log start offset of a topic with segments in remote storage."""

from pathlib import Path

import metadata_records
import pytest

from logtool.formats import record, record_batch
from logtool.metadata.image import DIRECTORY

TOPIC_ID = "bG9ndG9vbC10ZXN0cy10MQ"


def log_dir(home: Path, *, tiered: bool) -> Path:
    """Write a log dir: t-0 has a local batch with offset 500, and row 105 for its log start."""
    setting = metadata_records.config(2, "t", "remote.storage.enable", str(tiered).lower())
    metadata_records.log_dir_of(
        home,
        [metadata_records.topic("t", TOPIC_ID), metadata_records.partition(TOPIC_ID, 0, (1,))],
        [setting],
    )
    assert (home / DIRECTORY).is_dir()
    (home / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (home / "log-start-offset-checkpoint").write_text("0\n1\nt 0 105\n")
    path = home / "t-0"
    path.mkdir()
    batch = record_batch.encode(
        record.encode([record.Record(0, value=b"v")]), base_offset=500, last_offset_delta=0,
        record_count=1, leader_epoch=0,
    )  # fmt: skip
    (path / f"{500:020d}.log").write_bytes(batch)
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    return home


@pytest.mark.parametrize(("tiered", "start"), [(True, 105), (False, 500)])
def test_the_log_start_is_not_that_of_the_local_segments(
    run, tmp_path: Path, *, tiered: bool, start: int
) -> None:
    home = log_dir(tmp_path, tiered=tiered)
    (replica,) = run("watermark", "-f", "ndjson", "--topic", "t", home).of_type("replica")
    assert (replica["log_start_offset"], replica["local_log_start_offset"]) == (start, 500)
    (found,) = run("lookup", "-f", "ndjson", "--offset", "200", home / "t-0").of_type("lookup")
    assert (found["log_start_offset"], found["local_log_start_offset"]) == (start, 500)
    (gaps,) = run("gaps", "-f", "ndjson", "--topic", "t", home).of_type("partition")
    assert (gaps["log_start_offset"], gaps["missing"], gaps["visible"]) == (start, 0, 1)


def test_offsets_in_remote_storage_are_not_lost(run, tmp_path: Path) -> None:
    home = log_dir(tmp_path, tiered=True)
    result = run("gaps", "-f", "ndjson", "--topic", "t", home)
    gaps = {gap["reason"]: (gap["first_offset"], gap["last_offset"])
            for gap in result.of_type("gap")}  # fmt: skip
    assert gaps == {"retention": (0, 104), "remote": (105, 499)}
    assert result.status == 0


def planned(run, home: Path, *words: object):
    """Return the forecast of the partition, and what its start does about remote storage."""
    result = run("plan", "-f", "ndjson", *words, home)
    (partition,) = result.of_type("partition")
    return partition, [one for one in result.of_type("action") if one["action"] == "tiered"]


@pytest.mark.parametrize(("tiered", "start"), [(True, 105), (False, 500)])
def test_a_start_keeps_the_log_start_and_the_snapshots_of_a_tiered_log(
    run, tmp_path: Path, *, tiered: bool, start: int
) -> None:
    home = log_dir(tmp_path, tiered=tiered)
    partition, actions = planned(run, home)
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (start, 501)
    assert len(actions) == tiered


def test_a_file_of_the_broker_without_remote_storage_counts(run, tmp_path: Path) -> None:
    home, config = log_dir(tmp_path, tiered=True), tmp_path / "server.properties"
    config.write_text(f"node.id=1\nprocess.roles=broker\nlog.dirs={home}\n")
    partition, actions = planned(run, home, "--broker-config", config)
    assert (partition["log_start_offset"], actions) == (500, [])


def test_a_leader_without_a_local_log_is_named(run, tmp_path: Path) -> None:
    home = log_dir(tmp_path, tiered=True)
    for path in (home / "t-0").glob("*.log"):
        path.unlink()
    partition, actions = planned(run, home)
    assert (partition["log_start_offset"], partition["log_end_offset"], len(actions)) == (
        105, 105, 1,
    )  # fmt: skip
