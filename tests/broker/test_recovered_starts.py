"""A log dir that logtool recovered and marked clean: a broker takes it as it is, consumers read on.

The same log dir, recovered by a broker of its own, says what there is to be read.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.consuming import consumed
from broker.install import KAFKA_4
from broker.kafka import Broker
from broker.topics import TOPICS
from processes import wait_for

from logtool.formats.names import CLUSTER_METADATA
from logtool.log import opening

pytestmark = pytest.mark.broker

LOGTOOL = Path(sys.executable).parent / "logtool"
HALF_A_BATCH = 40


def logtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(LOGTOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def logs(log_dir: Path) -> Iterator[tuple[str, int, Path]]:
    """Yield topic, partition and last log of each partition with data."""
    for path, directory in opening.open_log_dir(log_dir).partitions:
        last = max(path.glob("*.log"))
        if directory.topic != CLUSTER_METADATA and last.stat().st_size:
            yield directory.topic, directory.partition, last


def tear(log_dir: Path) -> list[str]:
    """Damage the end of every other log as a crash does; returns the options to accept it."""
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
    """Whether partition 0 has no open transaction; asked without a group, which makes topics."""
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
    """Return what the broker logged of its own recovery; the metadata log knows no marker."""
    lines = [line for line in broker.log.splitlines() if "Recovering unflushed segment" in line]
    return [line for line in lines if CLUSTER_METADATA not in line]


def write_and_kill(broker: Broker) -> None:
    """Let a broker write, wait until all transactions have their markers, and kill it."""
    # Not at the top: where confluent-kafka is missing these tests are skipped, not in error.
    from broker import workloads

    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, TOPICS)
    workloads.write_codecs(broker.bootstrap)
    workloads.write_idempotent(broker.bootstrap)
    workloads.write_transactions(broker.bootstrap, 8)
    # A transaction ends for its producer before its markers are written. If 4.3.1 starts on one
    # without them, its coordinator may count it as complete and never write them ("these partitions
    # are likely deleted already"), whoever recovered the log: it then stays open for good.
    wait_for(lambda: is_stable(broker, "tx.mixed"))
    broker.kill()


def partitions_of(log_dir: Path) -> list[tuple[str, int]]:
    """Return the partitions whose topics are our own."""
    return [
        (topic, partition) for topic, partition, _ in logs(log_dir) if not topic.startswith("__")
    ]


def test_a_broker_takes_it_as_it_is_and_consumers_read_what_is_left(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    write_and_kill(broker)
    accept = tear(log_dir)
    assert accept
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    wanted = partitions_of(log_dir)

    done = logtool("recover", "--apply", "--mark-clean", *accept, log_dir)
    assert done.returncode == 0, done.stderr
    # Where the broker had time to checkpoint a high watermark, verify tells what was given up.
    said = logtool("verify", "-f", "ndjson", log_dir).stdout.splitlines()
    errors = [one for one in map(json.loads, said) if one.get("severity") == "error"]
    given_up = {word for word in accept if not word.startswith("--")}
    for one in errors:
        assert one["code"] == "checkpoint/high-watermark-beyond-end"
        assert f"{one['topic']}-{one['partition']}" in given_up
    with Broker(broker.version, [log_dir]) as ours, Broker(broker.version, [copy]) as theirs:
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
    """Return the files of all partitions with data whose topics are our own."""
    folders = [log.parent for topic, _, log in logs(log_dir) if not topic.startswith("__")]
    found = (path for folder in folders for path in folder.iterdir())
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}


@pytest.mark.parametrize("kafka_version", [KAFKA_4], indirect=True)
def test_a_log_dir_that_was_trusted_ends_as_one_that_a_broker_recovered(
    broker: Broker, log_dir: Path, tmp_path: Path
) -> None:
    write_and_kill(broker)
    copy = tmp_path / "copy"
    shutil.copytree(log_dir, copy)
    wanted = partitions_of(log_dir)
    way = ("--strategy", "supplement", "--trust-log", "--mark-clean", "--apply")
    done = logtool("recover", *way, "-f", "ndjson", log_dir)
    assert done.returncode == 0, done.stderr
    said = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "partition"]
    assert all(one["distrust"] is None for one in said)
    assert sum(one["playback"]["bytes_saved"] for one in said) > 0

    with Broker(broker.version, [log_dir]) as ours, Broker(broker.version, [copy]) as theirs:
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

        # More frequent snapshots: the broker loads with them, serves, and keeps the newest one.
        done = logtool("rebuild-index", "--snapshot-every", "3K", "--apply", log_dir)
        assert done.returncode == 0, done.stderr
        before = files_of(log_dir).keys()
        ours.start()
        assert consumed(ours, wanted, "read_committed") == found
        ours.stop()
    gone = before - files_of(log_dir).keys()
    assert len(gone) > 10
    assert before - gone == left.keys()
