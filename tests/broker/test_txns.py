"""`txns` and a broker agree on a transaction that a client left open."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from broker.command import objects, of_type, run
from broker.kafka import Broker
from broker.topics import Topic

pytestmark = pytest.mark.broker

TOPIC = Topic("tx-left.open", "one transaction is left open", config={"segment.bytes": "20000"})


def test_a_transaction_left_open_by_its_client_is_found_and_pins_the_log(
    broker: Broker, log_dir: Path
) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads
    from confluent_kafka import Consumer, TopicPartition

    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [TOPIC])
    now = workloads.now_ms()
    done = workloads.transactional(broker.bootstrap, "done")
    left = workloads.transactional(broker.bootstrap, "left")
    for finish in (done.producer.commit_transaction, done.producer.abort_transaction):
        done.producer.begin_transaction()
        done.batches(TOPIC.name, workloads.messages("done", 40, now), (10,))
        finish(30)
    left.producer.begin_transaction()
    left.batches(TOPIC.name, workloads.messages("left", 30, now), (10,))
    plain = workloads.Writer(broker.bootstrap)
    plain.batches(TOPIC.name, workloads.messages("plain", 300, now), (10,))
    asked: dict[str, Any] = {"bootstrap.servers": broker.bootstrap, "group.id": "unused"}
    consumer = Consumer(asked | {"isolation.level": "read_committed"})
    # With read_committed a broker returns the last stable offset as the end.
    low, stable = consumer.get_watermark_offsets(TopicPartition(TOPIC.name, 0), timeout=30)
    everything = Consumer(asked | {"isolation.level": "read_uncommitted"})
    end = everything.get_watermark_offsets(TopicPartition(TOPIC.name, 0), timeout=30)[1]
    consumer.close()
    everything.close()
    broker.kill()

    folder = log_dir / f"{TOPIC.name}-0"
    # Without the coordinator of its log dir.
    alone = shutil.copytree(folder, log_dir.parent / "alone" / folder.name)
    items = objects("txns", "--now", now + 60_000, alone, statuses=(0,))
    (partition,), (transaction,) = of_type(items, "partition"), of_type(items, "transaction")
    assert low == 0
    assert (partition["last_stable_offset"], partition["log_end_offset"]) == (stable, end)
    assert (partition["aborted"], partition["committed"], partition["open"]) == (1, 1, 1)
    assert transaction["first_offset"] == stable == 82
    assert transaction["producer_id"] == partition["pinned_by"]
    assert transaction["abort"] is None
    assert transaction["ask"].endswith(f"find-hanging --topic {TOPIC.name} --partition 0")
    later = ("txns", "--now", now + 3_600_000)
    assert run(*later, alone).returncode == 1
    # The coordinator knows the transaction and aborts it at its next start.
    for path in (log_dir, folder):
        assert run(*later, path).returncode == 0
