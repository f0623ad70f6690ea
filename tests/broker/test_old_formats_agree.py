"""Clients and the cleaner of Kafka 4 treat batches of magic 0 and 1 as `explain` says."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import workloads
from broker.command import objects, of_type
from broker.conftest import runnable
from broker.consuming import consumed
from broker.install import KAFKA_4, old_client
from broker.kafka import Broker

from logtool.log import opening

pytestmark = pytest.mark.broker

READ = """
import json, sys
import confluent_kafka
bootstrap, topic, fetches = sys.argv[1:]
requests = 0

def count(text):
    global requests
    brokers = json.loads(text)["brokers"].values()
    requests = sum(one["req"].get("Fetch", 0) for one in brokers)

consumer = confluent_kafka.Consumer({
    "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
    "enable.partition.eof": True, "stats_cb": count, "statistics.interval.ms": 100,
})
consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
while requests < int(fetches):
    message = consumer.poll(30)
    if message is None:
        continue
    if not message.error():
        print(json.dumps([message.offset(), message.key() is None and message.value() is None]))
    elif message.error().name() == "_PARTITION_EOF":
        print("null")
        break
"""
"""A program that prints (offset, True if key and value are NULL) of each record.

It prints null at the end of the partition, and ends without it after a number of fetches.
"""
MESSAGES = 2
"""Messages of an old format in the logs that librdkafka reads: it needs a second for each."""
READ_LOGS = {
    "codec-none": "2.8.2/magic-0/old-none-0",
    "codec-snappy": "2.8.2/magic-1/old-none-0",
    "codec-gzip": "2.8.2/magic-1/old-gzip-0",
}
"""By the topic that gets its first messages: a partition with batches of an old format."""
CLEANED_LOGS = {
    "compacted.keys": "2.8.2/magic-0/old-compacted-0",
    "compacted-tx": "2.8.2/magic-1/old-compacted-0",
}
"""By the topic that gets it: a partition with batches of an old format."""
CONFIG = {"log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}


def first_messages(log: bytes) -> bytes:
    """Return the first messages of a log of magic 0 or 1; a wrapper is one message."""
    position = 0
    for _ in range(MESSAGES):
        position += 12 + struct.unpack_from(">i", log, position + 8)[0]
    return log[:position]


def extent(log_dir: Path, topic: str) -> tuple[int, int]:
    """Return the offsets that `verify` names for batches of an old format."""
    (found,) = [one for one in of_type(objects("verify", log_dir / f"{topic}-0"), "finding")
                if one["code"] == "batch/old-format"]  # fmt: skip
    return found["first_offset"], found["last_offset"]


def formats(log_dir: Path, topic: str) -> list[tuple[int, set[tuple[int, bool]]]]:
    """Return the base offset of each segment, and (magic, True with a time) of its batches."""
    found = []
    for segment in opening.open_partition(log_dir / f"{topic}-0").segments:
        tables = [chunk.table for chunk in segment.batches(payload=False)]
        kinds = {(magic, time >= 0) for table in tables
                 for magic, time in zip(table.magic.tolist(), table.max_timestamp.tolist(),
                                        strict=True)}  # fmt: skip
        found.append((segment.base_offset, kinds))
    return found


def read(broker: Broker, topic: str, client: Path, fetches: int) -> list[tuple[int, bool] | None]:
    """Return (offset, True for NULL) of each record, and None at the end of the partition."""
    done = subprocess.run(
        [sys.executable, "-c", READ, broker.bootstrap, topic, str(fetches)],
        env={**os.environ, "PYTHONPATH": str(client)},
        capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [one and tuple(one) for one in map(json.loads, done.stdout.splitlines())]


def test_old_formats_are_misread_and_cleaned_as_said(
    copy_of: Callable[[str], Path], scenario: Callable[[str], Path]
) -> None:
    version = runnable(KAFKA_4)
    log_dir = copy_of(f"{version}/clean")
    for topic, source in {**READ_LOGS, **CLEANED_LOGS}.items():
        for path in (log_dir / f"{topic}-0").iterdir():
            if path.name != "partition.metadata":
                path.unlink()
        name, _, partition = source.rpartition("/")
        for path in (scenario(name) / partition).glob("*.log"):
            shutil.copy(path, log_dir / f"{topic}-0")
    for topic in READ_LOGS:
        first, *others = sorted((log_dir / f"{topic}-0").glob("*.log"))
        first.write_bytes(first_messages(first.read_bytes()))
        for path in others:
            path.unlink()
    for name in (".kafka_cleanshutdown", "cleaner-offset-checkpoint"):
        (log_dir / name).unlink()
    old = {topic: extent(log_dir, topic) for topic in READ_LOGS}
    before = {topic: formats(log_dir, topic) for topic in CLEANED_LOGS}

    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        for topic in (*READ_LOGS, *CLEANED_LOGS):
            now = workloads.now_ms()
            content = [workloads.Message(b"new", b"%d" % one, now) for one in range(20)]
            workloads.Writer(broker.bootstrap).batches(topic, content, (5,))
        seen = {topic: read(broker, topic, old_client(), 3 if topic == "codec-gzip" else 99)
                for topic in READ_LOGS}  # fmt: skip
        whole = {topic: consumed(broker, [(topic, 0)], "read_uncommitted")[topic, 0]
                 for topic in READ_LOGS}  # fmt: skip
        for topic in CLEANED_LOGS:
            workloads.wait_for_cleaner(log_dir, topic, 0)
        broker.stop()

    for topic, records in whole.items():
        begin, end = old[topic]
        assert [offset for offset, *_ in records] == list(range(begin, end + 21))
        assert all(key or value for _, key, value in records)
    for topic in ("codec-none", "codec-snappy"):
        _, end = old[topic]
        assert end == MESSAGES - 1
        assert seen[topic] == [*((offset, offset <= end) for offset in range(end + 21)), None]
    assert seen["codec-gzip"] == []  # it does not get beyond the first wrapper
    for topic, magic in zip(CLEANED_LOGS, (0, 1), strict=True):
        assert set(itertools.chain(*(kinds for _, kinds in before[topic]))) == {(magic, magic > 0)}
        *cleaned, (active, _) = formats(log_dir, topic)
        assert set(itertools.chain(*(kinds for _, kinds in cleaned))) == {(2, magic > 0)}
        assert len(cleaned) >= 4
        assert active >= before[topic][-1][0]
