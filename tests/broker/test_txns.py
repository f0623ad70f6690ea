"""What logtool says of a transaction that a client left open, and of offsets by time, is what a
broker says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from broker.kafka import Broker
from broker.topics import Topic

pytestmark = pytest.mark.broker

LOGTOOL = Path(sys.executable).parent / "logtool"
TOPIC = Topic("tx-left.open", "one transaction is left open", config={"segment.bytes": "20000"})


def logtool(*arguments: object) -> tuple[int, list[dict]]:
    command = [str(LOGTOOL), *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["items"]


def test_a_transaction_left_open_by_its_client_is_found_and_pins_the_log(
    broker: Broker, log_dir: Path
) -> None:
    # Not at the top: where confluent-kafka is missing these tests are skipped, not in error.
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
    # With read_committed a broker tells the last stable offset for the end.
    low, stable = consumer.get_watermark_offsets(TopicPartition(TOPIC.name, 0), timeout=30)
    everything = Consumer(asked | {"isolation.level": "read_uncommitted"})
    end = everything.get_watermark_offsets(TopicPartition(TOPIC.name, 0), timeout=30)[1]
    consumer.close()
    everything.close()
    broker.kill()

    status, items = logtool("txns", "--now", now + 60_000, log_dir / f"{TOPIC.name}-0")
    assert status == 0
    (partition,) = [item for item in items if item["type"] == "partition"]
    (transaction,) = [item for item in items if item["type"] == "transaction"]
    assert low == 0
    assert (partition["last_stable_offset"], partition["log_end_offset"]) == (stable, end)
    assert (partition["aborted"], partition["committed"], partition["open"]) == (1, 1, 1)
    assert transaction["first_offset"] == stable == 82
    assert transaction["producer_id"] == partition["pinned_by"]
    assert transaction["abort"].endswith(f"--topic {TOPIC.name} --partition 0 --start-offset 82")
    later = ("txns", "--now", now + 3_600_000)
    assert logtool(*later, log_dir / f"{TOPIC.name}-0")[0] == 1
    # Its coordinator knows of it, and aborts it once it runs again.
    assert logtool(*later, log_dir)[0] == 0
