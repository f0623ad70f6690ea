"""Compares what `plan` says of a start with remote storage with what a broker does at it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from broker import consuming, tiered
from broker.command import run
from broker.conftest import runnable
from broker.install import KAFKA_3, KAFKA_4, HarnessError, minor
from broker.kafka import Broker

if TYPE_CHECKING:
    from confluent_kafka import Message

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

RELEASES = [KAFKA_4, pytest.param(KAFKA_3, marks=pytest.mark.long)]
CACHE = "remote-log-index-cache"
CHECKPOINTS = (
    "log-start-offset-checkpoint", "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)  # fmt: skip


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def home(release: str, copy_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a folder with the log dir `data` of a broker that stopped, and its `remote`."""
    if release != KAFKA_4:
        tiered.run(runnable(release), tmp_path)
        return tmp_path
    found = copy_of(f"tiered/{release}")
    (found / "remote").mkdir()
    (found / "objects").rename(found / "remote" / "kafka-tiered-storage")
    return found


def planned(release: str, home: Path) -> list[dict[str, Any]]:
    """Return the actions of a start."""
    version = ".".join(map(str, minor(release)))
    done = run("plan", "--kafka-version", version, "-f", "ndjson", home / "data")
    return [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "action"]


def broker_of(release: str, home: Path) -> Broker:
    version = runnable(release)
    return Broker(version, [home / "data"], tiered.settings(version, home / "remote"))


def test_the_files_of_the_index_cache_that_a_start_removes(release: str, home: Path) -> None:
    cache = home / "data" / CACHE
    cache.mkdir(exist_ok=True)
    for segment, kinds in (("B", ("index",)), ("C", ("index", "timeindex", "txnindex"))):
        for kind in kinds:
            (cache / f"9_AAAAAAAAAAAAAAAAAAAA{segment}w.{kind}").touch()
    for name in ("7_AAAAAAAAAAAAAAAAAAAACQ.index.deleted", "9_AAAAAAAAAAAAAAAAAAAACw.index.tmp"):
        (cache / name).touch()
    before = {path.name for path in cache.iterdir()}
    gone = {
        Path(one["path"]).name for one in planned(release, home)
        if one["action"] == "remove" and Path(one["path"]).parent == cache
    }  # fmt: skip
    with broker_of(release, home) as broker:
        broker.start()
        broker.stop()
    after = {path.name for path in cache.iterdir()}
    assert gone
    assert before - after == gone


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("note", b""),
        ("9_AAAAAAAAAAAAAAAAAAAABw.timeindex", b"x"),
        ("x_AAAAAAAAAAAAAAAAAAAABw", b""),
    ],
    ids=["name", "size", "offset"],
)
def test_a_file_of_the_index_cache_that_stops_a_start(
    release: str, home: Path, name: str, content: bytes
) -> None:
    cache = home / "data" / CACHE
    cache.mkdir(exist_ok=True)
    (cache / name).write_bytes(content)
    if name != "note":
        base = name.partition(".")[0]
        for kind in ("index", "timeindex", "txnindex"):
            (cache / f"{base}.{kind}").touch()
    refusals = [one for one in planned(release, home) if one["action"] == "refuse"]
    assert [Path(one["path"]).parent for one in refusals] == [cache]
    with broker_of(release, home) as broker, pytest.raises(HarnessError):
        broker.start()


def test_a_leader_without_a_local_log_deletes_the_remote_segments(release: str, home: Path) -> None:
    shutil.rmtree(home / "data" / "aged-1")
    for path in (home / "data" / "aged-0").iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    lost = {(one["topic"], one["partition"]) for one in planned(release, home)
            if one["action"] == "lost"}  # fmt: skip
    assert lost == {("aged", 0), ("aged", 1)}
    kept = tiered.objects(home / "remote", "kept")
    assert len(tiered.objects(home / "remote", "aged")) == 18
    with broker_of(release, home) as broker:
        broker.start()
        tiered.wait(lambda: not tiered.objects(home / "remote", "aged"), broker, "still there")
        broker.stop()
    assert tiered.objects(home / "remote", "kept") == kept


def lose_epochs(home: Path) -> Path:
    """Remove leader-epoch-checkpoint of aged-0, most of which is in remote storage alone."""
    file = home / "data" / "aged-0" / "leader-epoch-checkpoint"
    file.unlink()
    return file


def of_aged_0(home: Path) -> set[int]:
    """Return the first offsets of the segments of aged-0 in remote storage."""
    return {first for number, first in tiered.objects(home / "remote", "aged") if number == 0}


def test_a_leader_without_the_leader_epochs_deletes_the_remote_segments(
    release: str, home: Path
) -> None:
    lose_epochs(home)
    lost = {(one["topic"], one["partition"]) for one in planned(release, home)
            if one["action"] == "lost"}  # fmt: skip
    assert lost == {("aged", 0)}
    assert of_aged_0(home) == set(range(9))
    kept = tiered.objects(home / "remote", "kept")
    with broker_of(release, home) as broker:
        broker.start()
        tiered.wait(lambda: not of_aged_0(home), broker, "still there")
        broker.stop()
    assert tiered.objects(home / "remote", "kept") == kept


def test_a_leader_with_restored_leader_epochs_and_segments_serves_all_records(
    release: str, home: Path, tmp_path: Path
) -> None:
    data, remote = home / "data", home / "remote"
    file = lose_epochs(home)
    for kind in ("log", "index", "timeindex"):
        (data / "kept-0" / f"{3:020d}.{kind}").unlink()
    done = run("remote", "restore", "--output", tmp_path / "back", "-f", "ndjson",
               remote / "kafka-tiered-storage", data)  # fmt: skip
    assert done.returncode == 0
    commands = [line for line in done.stderr.splitlines() if line.startswith("  cp ")]
    assert len(commands) == 2
    for line in commands:
        subprocess.run(["sh", "-c", line], check=True)
    assert file.exists()
    assert not [one for one in planned(release, home) if one["action"] in ("lost", "lacks")]
    before = {topic: tiered.objects(remote, topic) for topic in ("aged", "kept")}
    places = [("aged", 0), ("kept", 0)]
    with broker_of(release, home) as broker:
        broker.start()
        read: dict[tuple[str, int], list[Message]] = {}
        tiered.wait(partial(consumed, broker, places, read), broker, "not readable")
        for place in places:
            assert [each.offset() for each in read[place]] == list(range(10))
        # Once a segment more was copied, the broker has looked at all of them.
        for topic, number in places:
            tiered.fill_partition(broker, topic, [int(time.time() * 1000)] * 3, number)
        for topic, known in before.items():
            tiered.wait(partial(copied_since, remote, topic, known), broker, "no copy")
            assert tiered.objects(remote, topic) >= known
        broker.stop()


@pytest.mark.parametrize("rows", ["kept", "gone"])
def test_a_leader_with_a_restored_partition_dir_keeps_the_remote_segments(
    release: str, home: Path, tmp_path: Path, rows: str
) -> None:
    """Two lost dirs, an empty one, one with a log start above 0, and one with transactions."""
    data, remote = home / "data", home / "remote"
    lost = {"aged-0", "aged-1", "sized-0", "aborted-0"}
    ends = {name: max(tiered.local(data, name)) for name in lost}
    snapshots = {
        name: (data / name / f"{end:020d}.snapshot").read_bytes() for name, end in ends.items()
    }
    for name in lost:
        shutil.rmtree(data / name)
    (data / "aged-0").mkdir()
    for name in CHECKPOINTS if rows == "gone" else ():
        (data / name).unlink()

    done = run("remote", "restore", "--output", tmp_path / "back", "-f", "ndjson",
               remote / "kafka-tiered-storage", data)  # fmt: skip
    restored = {f"{one['topic']}-{one['partition']}": one
                for one in map(json.loads, done.stdout.splitlines())
                if one["type"] == "restored-partition"}  # fmt: skip
    assert done.returncode == 0
    assert restored.keys() == lost
    commands = [line for line in done.stderr.splitlines() if line.startswith(("  mv ", "  cp "))]
    assert len(commands) == 2
    for line in commands:
        subprocess.run(["sh", "-c", line], check=True)
    for name, one in restored.items():
        end = one["end_offset"]
        assert (data / name / f"{end:020d}.snapshot").read_bytes() == snapshots[name]
    assert not [one for one in planned(release, home) if one["action"] == "lost"]

    before = {topic: tiered.objects(remote, topic) for topic in ("aged", "sized", "aborted")}
    with broker_of(release, home) as broker:
        broker.start()
        places = [(one["topic"], one["partition"]) for one in restored.values()]
        read: dict[tuple[str, int], list[Message]] = {}
        tiered.wait(partial(consumed, broker, places, read), broker, "not readable")
        for one in restored.values():
            # Each record of `aborted` is in a transaction of its own, with a marker behind it.
            step = 2 if one["topic"] == "aborted" else 1
            offsets = [each.offset() for each in read[one["topic"], one["partition"]]]
            assert offsets == list(range(one["first_offset"], one["end_offset"], step))
        # Once a segment more was copied, the broker has looked at all of them.
        for topic, number in (("aged", 0), ("aged", 1), ("sized", 0), ("aborted", 0)):
            tiered.fill_partition(broker, topic, [int(time.time() * 1000)] * 3, number)
        for topic, known in before.items():
            tiered.wait(partial(copied_since, remote, topic, known), broker, "no copy")
            # Retention goes on: of `sized` it deletes the oldest segments.
            assert topic == "sized" or tiered.objects(remote, topic) >= known
        broker.stop()


def consumed(
    broker: Broker, places: list[tuple[str, int]], read: dict[tuple[str, int], list[Message]]
) -> bool:
    """Read partitions into `read`; return False if the broker refuses a fetch.

    It does until it has read the metadata of the remote segments (3.9.2: UNKNOWN_SERVER_ERROR).
    """
    try:
        read.update(consuming.messages(broker, places))
    except AssertionError:
        return False
    return True


def copied_since(remote: Path, topic: str, known: set[tuple[int, int]]) -> bool:
    """Return whether segments were copied that are not among the known ones."""
    return len(tiered.objects(remote, topic) - known) >= 2
