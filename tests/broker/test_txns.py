"""`txns` and a broker agree on a transaction that a client left open."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from broker import protocol
from broker.command import Object, objects, of_type, run
from broker.kafka import Broker, run_tool
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


LATE = Topic("tx-late", "a batch comes after the commit of its transaction")
# As before 4.0: a leader accepts batches that the coordinator does not know.
UNVERIFIED = {
    "transaction.partition.verification.enable": "false",
    "replica.high.watermark.checkpoint.interval.ms": "200",
}


def test_a_batch_behind_the_commit_of_its_transaction_hangs_at_once(
    broker: Broker, log_dir: Path
) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads

    broker.extra_config.update(UNVERIFIED)
    broker.start()
    workloads.create_topics(broker.bootstrap, broker.version, [LATE])
    left = workloads.transactional(broker.bootstrap, "left")
    left.producer.begin_transaction()
    left.batches(LATE.name, workloads.messages("left", 10, workloads.now_ms()), (10,))
    done = workloads.transactional(broker.bootstrap, "done")
    done.producer.begin_transaction()
    done.batches(LATE.name, workloads.messages("done", 10, workloads.now_ms()), (10,))
    done.producer.commit_transaction(30)
    (before,) = of_type(objects("txns", "--all", "--topic", LATE.name, log_dir), "partition")
    entries = of_type(objects("txns", "--all", log_dir), "coordinator")
    (entry,) = (one for one in entries if one["transactional_id"] == "done")
    protocol.produce(broker.bootstrap, LATE.name, "done", protocol.batch_of(entry, sequence=10))

    def found() -> list[Object]:
        items = objects("txns", "--open", log_dir, statuses=(0, 1))
        return [one for one in of_type(items, "transaction") if one["state"] == "hanging"]

    workloads.wait_for(lambda: bool(found()), 20, "the high watermarks to show that it hangs")
    broker.kill()
    (partition,) = of_type(objects("txns", "--open", log_dir, statuses=(1,)), "partition")
    (hanging,) = found()
    assert hanging["first_offset"] == before["log_end_offset"] == 21
    assert hanging["coordinator"]["after_marker"] == 20
    assert (partition["last_stable_offset"], partition["last_stable_offset_later"]) == (0, 21)
    broker.start()
    words = shlex.split(str(hanging["abort"]))[3:]
    tool = "org.apache.kafka.tools.TransactionsCommand"
    run_tool(broker.version, tool, "--bootstrap-server", broker.bootstrap, *words)
    broker.stop()
    items = objects("txns", "--all", "--topic", LATE.name, log_dir)
    ended = {one["first_offset"]: one["state"] for one in of_type(items, "transaction")}
    assert ended == {0: "open", 10: "committed", 21: "aborted"}
