"""Folders of a data directory of Redpanda that cannot be listed, or that are no namespaces."""

import shutil
from pathlib import Path

import pytest
import redpanda_files as rp
from surveying import SURVEYING

JUDGING = {
    "plan": ["plan"],
    "recover": ["recover"],
    "watermark": ["watermark"],
    "doctor": ["doctor"],
    "groups": ["groups"],
}
"""Commands that judge a start, or which replica has what."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a data directory with the topics keys and orders, and a copy of it as OTHER."""
    log = rp.log()
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": log, "0-1-v1.base_index": index(log)})
    (folder.parents[1] / "keys" / "0_30").mkdir(parents=True)
    for file in folder.iterdir():
        shutil.copy(file, folder.parents[1] / "keys" / "0_30")
    shutil.copytree(folder.parents[2], tmp_path / "OTHER")
    monkeypatch.chdir(tmp_path)
    return folder.parents[2]


def index(log: bytes) -> bytes:
    return rp.index(0, 18, (0, 0)) if log else b""


@pytest.mark.parametrize("below", ["kafka", "kafka/orders", "kafka/orders/0_22"])
@pytest.mark.parametrize("name", [*SURVEYING, *JUDGING])
def test_a_folder_that_cannot_be_listed_is_not_taken_for_empty(run, data, lock_up, name, below):
    command, *options = (SURVEYING | JUDGING)[name]
    lock_up(data / below)
    result = run(command, *options, data)
    if name == "groups" and below.endswith("0_22"):
        return  # No partition of that topic is looked into.
    assert result.stderr.count(f"{below}: Permission denied") == 1
    assert result.status == 4


@pytest.mark.parametrize("name", SURVEYING)
def test_a_partition_that_goes_meanwhile_is_not_missed(run, data, lock_up, name):
    command, *options = SURVEYING[name]
    lock_up(data / "kafka" / "orders" / "0_22", missing=True)
    result = run(command, *options, data)
    assert "No such file" not in result.stderr
    assert result.status == 0


@pytest.mark.parametrize("name", ["stat", "gaps", "plan", "watermark"])
def test_the_rest_of_the_data_directory_is_looked_at(run, data, lock_up, name):
    lock_up(data / "kafka" / "orders")
    objects = run(name, "-f", "ndjson", data).objects
    kind = "replica" if name == "watermark" else "partition"
    assert [one["topic"] for one in objects if one["type"] == kind] == ["keys"]


def test_rebuild_index_goes_on_behind_a_folder_that_cannot_be_listed(run, data, lock_up):
    (data / "kafka" / "orders" / "0_22" / "0-1-v1.base_index").write_bytes(b"")
    lock_up(data / "kafka" / "keys")
    result = run("rebuild-index", "-f", "ndjson", data)
    assert [Path(one["path"]).parent.name for one in result.of_type("action")] == ["0_22"]
    assert result.status == 4


def test_lookup_takes_the_topic_that_is_there(run, data, lock_up):
    lock_up(data / "kafka" / "keys")
    assert run("lookup", "--offset", 3, "--topic", "orders", data).status == 0
    result = run("lookup", "--offset", 3, "--topic", "keys", data)
    assert result.status == 4
    assert "kafka/keys: Permission denied" in result.stderr


@pytest.mark.parametrize("name", [*SURVEYING, *JUDGING])
@pytest.mark.parametrize("folder", ["lost+found", "cloud_storage_cache"])
def test_what_is_no_namespace_is_not_looked_into(run, data, lock_up, name, folder):
    """A root of a file system has a lost+found that only root may list."""
    command, *options = (SURVEYING | JUDGING)[name]
    (data / folder).mkdir()
    lock_up(data / folder)
    result = run(command, *options, data)
    assert "Permission denied" not in result.stderr
    # `groups` reports that there is no topic __consumer_offsets.
    assert result.status in ((4,) if name == "groups" else (0, 1))


@pytest.mark.parametrize("name", ["verify", "stat", "gaps", "plan", "dump"])
@pytest.mark.parametrize("below", [".", "kafka/orders/0_22"])
def test_logs_of_kafka_in_a_partition_of_redpanda_hide_nothing_of_it(run, data, name, below):
    """They were put there by hand: no folder of Kafka's is called 0_22."""
    shutil.rmtree(data / "kafka" / "keys")
    folder = data / "kafka" / "orders" / "0_22"
    (folder / "00000000000000000000.log").write_bytes(bytes(61))
    result = run(name, "-f", "ndjson", data / below)
    assert result.status == 0
    assert result.objects[0]["flavour"] == "redpanda"
    assert result.objects[-1]["segments"] == 1
