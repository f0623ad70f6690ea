"""A broker of Kafka serves the partitions that logtool saved from a bucket of AutoMQ."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.command import succeed
from broker.conftest import runnable
from broker.consuming import messages
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir

pytestmark = pytest.mark.broker

CONFIG = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
PLACES = [("orders", 0), ("orders", 1), ("ledger", 0), ("changes", 0), ("empty", 0)]


def test_a_consumer_reads_the_same_records(scenario: Callable[[str], Path], tmp_path: Path) -> None:
    version = runnable(KAFKA_4)
    from confluent_kafka.admin import AdminClient, NewTopic

    home = scenario("automq/broker-crash")
    truth = json.loads(
        (scenario("automq/broker-crash.expected") / "truth-consumer-after-restart.json").read_text()
    )
    succeed("salvage", "--to", "kafka", "--output", tmp_path / "saved", home / "s3", home / "meta")
    log_dir = tmp_path / "log-dir"
    log_dir.mkdir()
    format_log_dir(version, [log_dir])
    counts = {topic: 1 + max(n for name, n in PLACES if name == topic) for topic, _ in PLACES}
    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        topics = [NewTopic(topic, count, 1) for topic, count in counts.items()]
        for made in admin.create_topics(topics, operation_timeout=60).values():
            made.result(60)
        broker.stop()
    for topic, number in PLACES:
        own = log_dir / f"{topic}-{number}"
        identity = (own / "partition.metadata").read_bytes()
        shutil.rmtree(own)
        shutil.copytree(tmp_path / "saved" / "partitions" / own.name, own)
        (own / "partition.metadata").write_bytes(identity)
    (log_dir / ".kafka_cleanshutdown").unlink()
    with Broker(version, [log_dir], CONFIG) as broker:
        broker.start()
        found = messages(broker, PLACES)
        broker.stop()
    for topic, number in PLACES:
        rows = [
            [
                one.offset(),
                one.timestamp()[1],
                zlib.crc32((one.key() or b"") + (one.value() or b"")),
            ]
            for one in found[topic, number]
        ]
        name = f"{topic}-{number}"
        assert rows == truth[name]["offset_timestamp_crc32_of_key_value"], name
