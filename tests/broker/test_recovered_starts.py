"""Starts of a broker on a log dir that logtool recovered and marked clean.

The broker must not recover it, and consumers must read the same records as from a copy that a
broker recovered.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.command import objects, of_type, succeed
from broker.consuming import consumed
from broker.install import KAFKA_4
from broker.kafka import Broker
from broker.topics import TOPICS
from processes import wait_for

from logtool.formats.names import CLUSTER_METADATA
from logtool.log import opening

pytestmark = pytest.mark.broker

KEEPING = {"log.retention.ms": "-1"}
"""The records are old: with the default, retention deletes them 30 s after the start."""

HALF_A_BATCH = 40


def logs(log_dir: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield topic, partition and last log of each partition with data."""
    for path, directory in opening.open_log_dir(log_dir).partitions:
        last = max(path.glob("*.log"))
        if directory.topic != CLUSTER_METADATA and last.stat().st_size:
            yield directory.topic, directory.partition, last


def tear(log_dir: Path) -> list[str]:
    """Damage the end of every other log as a crash does; return the options to accept losses."""
    options = []
    for number, (topic, partition, log) in enumerate(logs(log_dir)):
        data = log.read_bytes()
        if number % 4 == 0:
            log.write_bytes(data + data[:HALF_A_BATCH])
        elif number % 4 == 2:
            log.write_bytes(data[:-1] + bytes([data[-1] ^ 0xFF]))
            options += ["--accept-loss", f"{topic}-{partition}"]
    return options


def is_stable(broker: Broker, topic: str) -> bool:
    """Return whether partition 0 has no open transaction; without a group, which adds topics."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    asked = TopicPartition(topic, 0)
    ends = {
        admin.list_offsets({asked: OffsetSpec.latest()}, isolation_level=isolation)[asked]
        .result()
        .offset
        for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
    }
    return len(ends) == 1


def recovered(broker: Broker) -> list[str]:
    """Return the recovered segments in the broker's log, without those of the metadata log."""
    lines = [line for line in broker.log.splitlines() if "Recovering unflushed segment" in line]
    return [line for line in lines if CLUSTER_METADATA not in line]


def write_and_kill(broker: Broker) -> None:
    """Let a broker write, wait until all transactions have their markers, and kill it."""
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads

    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
    workloads.write_codecs(broker.bootstrap)
    workloads.write_idempotent(broker.bootstrap)
    workloads.write_transactions(broker.bootstrap, 8)
    # A transaction ends for its producer before its markers are written. After a start without
    # the markers the coordinator of 4.3.1 may note the transaction as complete and never write them
    # ("these partitions are likely deleted already"), so the transaction stays open.
    wait_for(lambda: is_stable(broker, "tx.mixed"))
    broker.kill()


def partitions_of(log_dir: Path) -> list[tuple[str, int]]:
    """Return the partitions of the topics of this test."""
    return [
        (topic, partition) for topic, partition, _ in logs(log_dir) if not topic.startswith("__")
    ]


def test_a_broker_does_not_recover_it_and_consumers_read_the_kept_records(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    write_and_kill(broker)
    accept = tear(log_dir)
    assert accept
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    wanted = partitions_of(log_dir)

    succeed("recover", "--apply", "--mark-clean", *accept, log_dir)
    # verify reports the accepted losses if the broker had checkpointed a high watermark.
    errors = [one for one in objects("verify", log_dir) if one.get("severity") == "error"]
    given_up = {word for word in accept if not word.startswith("--")}
    for one in errors:
        assert one["code"] == "checkpoint/high-watermark-beyond-end"
        assert f"{one['topic']}-{one['partition']}" in given_up
    with (
        Broker(broker.version, [log_dir], KEEPING) as ours,
        Broker(broker.version, [copy], KEEPING) as theirs,
    ):
        ours.start()
        theirs.start()
        assert recovered(ours) == []
        assert "Skipping recovery" in ours.log
        assert recovered(theirs)
        found = consumed(ours, wanted, "read_uncommitted")
        assert found == consumed(theirs, wanted, "read_uncommitted")
        assert sum(map(len, found.values())) > 1000

        committed = consumed(ours, wanted, "read_committed")
        assert committed == consumed(theirs, wanted, "read_committed")
        assert sum(map(len, committed.values())) > 1000


def files_of(log_dir: Path) -> dict[str, bytes]:
    """Return the files of all partitions with data of the topics of this test."""
    folders = [log.parent for topic, _, log in logs(log_dir) if not topic.startswith("__")]
    found = (path for folder in folders for path in folder.iterdir())
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


@pytest.mark.parametrize("kafka_version", [KAFKA_4], indirect=True)
def test_trust_log_leaves_the_files_that_a_recovery_by_a_broker_leaves(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    write_and_kill(broker)
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    wanted = partitions_of(log_dir)
    way = ("--strategy", "supplement", "--trust-log", "--mark-clean", "--apply")
    said = of_type(objects("recover", *way, log_dir, statuses=(0,)), "partition")
    assert all(one["distrust"] is None for one in said)
    assert sum(one["playback"]["bytes_saved"] for one in said) > 0

    with (
        Broker(broker.version, [log_dir], KEEPING) as ours,
        Broker(broker.version, [copy], KEEPING) as theirs,
    ):
        ours.start()
        theirs.start()
        assert recovered(ours) == []
        assert recovered(theirs)
        for isolation in ("read_uncommitted", "read_committed"):
            found = consumed(ours, wanted, isolation)
            assert found == consumed(theirs, wanted, isolation)
            assert sum(map(len, found.values())) > 1000
        ours.stop()
        theirs.stop()
        left = files_of(log_dir)
        assert left.keys() == (expected := files_of(copy)).keys()
        assert [name for name in left if left[name] != expected[name]] == []

        # With more snapshots the broker loads and serves the log, and keeps the newest snapshot.
        succeed("rebuild-index", "--snapshot-every", "3K", "--apply", log_dir)
        before = files_of(log_dir).keys()
        ours.start()
        assert consumed(ours, wanted, "read_committed") == found
        ours.stop()
    gone = before - files_of(log_dir).keys()
    assert len(gone) > 10
    assert before - gone == left.keys()
