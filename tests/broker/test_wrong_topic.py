"""`verify --wrong-topic` finds the batch that a broker took for another topic, and nothing else.

The bytes that reach the broker are those of KAFKA-19012: the batch of one partition, with its
producer id, sequence and CRC, in a request for a partition of another topic.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from broker import protocol, workloads
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic

from logtool.findings import Finding
from logtool.log import opening
from logtool.txns.wrong_topic import WrongTopics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

ORDERS, PAYMENTS = Topic("orders", "written by one client"), Topic("payments", "by another")
AUDITS = [Topic(f"audit-{name}", "the same records, from one client") for name in "ab"]


def batch_of(log_dir: Path, topic: str, number: int) -> bytes:
    """Return the bytes of a batch of partition 0, with the base offset that a client sends."""
    (segment,) = opening.open_partition(log_dir / f"{topic}-0").segments
    rows = [
        (int(position), int(size))
        for chunk in segment.batches(payload=False)
        for position, size in zip(chunk.table.position, chunk.table.size, strict=True)
    ]
    position, size = rows[number]
    data = segment.log.path.read_bytes()[position : position + size]
    return bytes(8) + data[8:]


def test_the_batch_that_a_broker_took_for_another_topic_is_found(
    kafka_version: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with Broker(kafka_version, [home], {}) as broker:
        format_log_dir(kafka_version, [home])
        broker.start()
        at = broker.bootstrap
        workloads.create_topics(at, kafka_version, [ORDERS, PAYMENTS, *AUDITS])
        clients = {
            name: workloads.Writer(at, enable_idempotence=True) for name in ("orders", "payments")
        }
        for topic in ("orders", "payments", "orders", "payments"):
            content = workloads.messages(topic, 20, workloads.EPOCH_MS)
            clients[topic].batches(topic, content, (5, 2))
        for audit in AUDITS:
            content = workloads.messages("audit", 20, workloads.EPOCH_MS)
            clients["orders"].batches(audit.name, content, (5, 2))
        protocol.produce(at, "payments", None, batch_of(home, "orders", 3))
        clients["payments"].batches("payments", workloads.messages("more", 9, 0), (3,))
        broker.stop()
    found = list(WrongTopics([home]))
    assert all(isinstance(one, Finding) for one in found), found
    (one,) = (item for item in found if isinstance(item, Finding))
    assert (one.code, one.topic, one.partition) == ("batch/other-topic", "payments", 0)
    assert (one.first_offset, one.last_offset) == (40, 41)
