"""Commands that show the log start offset of a topic with segments in remote storage."""

import shutil
from pathlib import Path

import metadata_records
import pytest

from logtool.formats import record, record_batch
from logtool.metadata.image import DIRECTORY

TOPIC_ID = "bG9ndG9vbC10ZXN0cy10MQ"


def log_dir(home: Path, *, tiered: bool, isr: tuple[int, ...] = (1,)) -> Path:
    """Write a log dir: t-0 has a local batch with offset 500, and row 105 for its log start."""
    home.mkdir(parents=True, exist_ok=True)
    setting = metadata_records.config(2, "t", "remote.storage.enable", str(tiered).lower())
    metadata_records.log_dir_of(
        home,
        [metadata_records.topic("t", TOPIC_ID), metadata_records.partition(TOPIC_ID, 0, isr)],
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


def without_a_log(home: Path, isr: tuple[int, ...], epochs: str | None = None) -> Path:
    """Write the log dir with these replicas in sync, and no record in it."""
    log_dir(home, tiered=True, isr=isr)
    for path in (home / "t-0").glob("*.log"):
        path.unlink()
    if epochs:
        (home / "t-0" / "leader-epoch-checkpoint").write_text(epochs)
    return home


def test_a_leader_without_a_local_log_deletes_the_remote_segments(run, tmp_path: Path) -> None:
    home = without_a_log(tmp_path, (1,))
    partition, actions = planned(run, home)
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (105, 105)
    assert actions == []
    result = run("plan", "-f", "ndjson", home)
    (lost,) = [one for one in result.of_type("action") if one["action"] == "lost"]
    assert (lost["topic"], lost["partition"], result.status) == ("t", 0, 1)


@pytest.mark.parametrize(
    ("isr", "epochs"), [((2,), None), ((1, 2), None), ((1,), "0\n1\n0 0\n")],
    ids=["follower", "either", "leader epochs"],
)  # fmt: skip
def test_other_replicas_without_a_local_log_lose_nothing(
    run, tmp_path: Path, isr: tuple[int, ...], epochs: str | None
) -> None:
    _, actions = planned(run, without_a_log(tmp_path, isr, epochs))
    assert len(actions) == 1


def test_a_missing_directory_of_a_tiered_topic_says_what_becomes_of_its_objects(
    run, tmp_path: Path
) -> None:
    found = {}
    for tiered in (True, False):
        home = log_dir(tmp_path / str(tiered), tiered=tiered)
        (home / "replication-offset-checkpoint").write_text("0\n1\nt 0 501\n")
        shutil.rmtree(home / "t-0")
        actions = run("plan", "-f", "ndjson", home).of_type("action")
        (found[tiered],) = [one["reason"] for one in actions if one["action"] == "lost"]
    assert "remote" in found[True] and "remote" not in found[False]


INDEX_CACHE = "remote-log-index-cache"
SET = "5_AAAAAAAAAAAAAAAAAAAABw"
KINDS = (".index", ".timeindex", ".txnindex")


def of_cache(run, home: Path, *words: object):
    """Return the actions on the index cache by the names of its files."""
    result = run("plan", "-f", "ndjson", *words, home)
    found = {Path(one["path"]).name: one["action"] for one in result.of_type("action")
             if INDEX_CACHE in one["path"]}  # fmt: skip
    assert found.pop(INDEX_CACHE) == "tiered"
    return found


CACHES = {
    "whole": ({SET + kind: b"" for kind in KINDS}, {}),
    "incomplete": ({SET + ".index": b""}, {SET + ".index": "remove"}),
    "length": ({SET + ".index": b"", SET + ".timeindex": b"x", SET + ".txnindex": b""},
               {SET + ".timeindex": "refuse"}),
    "offset": ({f"x{SET}{kind}": b"" for kind in KINDS}, {f"x{SET}.index": "refuse"}),
    "name": ({"lost+found": b""}, {"lost+found": "refuse"}),
    "passing": ({SET + ".index.deleted": b"", SET + ".index.tmp": b""},
                {SET + ".index.deleted": "remove", SET + ".index.tmp": "remove"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CACHES)
def test_the_start_reads_the_index_cache(run, tmp_path: Path, name: str) -> None:
    contents, expected = CACHES[name]
    home = log_dir(tmp_path, tiered=True)
    (home / INDEX_CACHE).mkdir()
    for file, content in contents.items():
        (home / INDEX_CACHE / file).write_bytes(content)
    assert of_cache(run, home) == expected
    found = run("verify", "-f", "ndjson", home).of_type("finding")
    refused = [Path(one["path"]).name for one in found if one["code"] == "data-dir/index-cache"]
    assert refused == [name for name, action in expected.items() if action == "refuse"]
    assert sorted(path.name for path in (home / INDEX_CACHE).iterdir()) == sorted(contents)


def test_releases_before_4_1_leave_deleted_indexes(run, tmp_path: Path) -> None:
    home = log_dir(tmp_path, tiered=True)
    (home / INDEX_CACHE).mkdir()
    (home / INDEX_CACHE / f"{SET}.index.deleted").touch()
    assert of_cache(run, home, "--kafka-version", "4.0") == {}


@pytest.mark.parametrize(
    ("settings", "stops"),
    [("remote.log.storage.system.enable=true\n", True), ("", False)], ids=["on", "off"],
)  # fmt: skip
def test_only_a_broker_with_remote_storage_reads_the_cache(
    run, tmp_path: Path, settings: str, stops: bool
) -> None:
    home = log_dir(tmp_path / "data", tiered=True)
    (home / INDEX_CACHE).mkdir()
    (home / INDEX_CACHE / "note").touch()
    config = tmp_path / "server.properties"
    text = f"node.id=1\nprocess.roles=broker\nlog.dirs={home}\n{settings}"
    config.write_text(text)
    result = run("plan", "-f", "ndjson", "--broker-config", config, home)
    actions = [one for one in result.of_type("action") if INDEX_CACHE in one["path"]]
    assert any(one["action"] == "refuse" for one in actions) is stops
    # The cache of a broker with several log dirs is in the first one.
    config.write_text(text.replace("log.dirs=", f"log.dirs={tmp_path / 'other'},"))
    (tmp_path / "other").mkdir()
    result = run("plan", "-f", "ndjson", "--broker-config", config, home)
    assert not [one for one in result.of_type("action") if INDEX_CACHE in one["path"]]
