"""A scenario written by Kafka's own clients, whose compressors and protocols differ."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from broker import workloads
from broker.install import major
from broker.kafka import BASE_CONFIG, SHARE_CONFIG, Broker, format_log_dir, run_tool
from broker.scenarios import SMALL, Scenario
from broker.topics import CODECS, Topic

CODEC_TOPICS = tuple(Topic(f"java-{codec}", f"Java producer, {codec}") for codec in CODECS)
TX_TOPIC = Topic("java-tx", "transactions of a Java producer (Kafka 4: transaction version 2)")
SHARED = Topic("shared.input", "read by a share group", partitions=2)


def java_clients(version: str, work: Path) -> Iterator[Scenario]:
    """Write with Java producers, for each codec and in transactions; read with a share group."""
    root = work / "java-clients"
    newer = major(version) >= 4
    config = {**SMALL, **(SHARE_CONFIG if newer else {})}
    topics = (*CODEC_TOPICS, TX_TOPIC, *((SHARED,) if newer else ()))
    format_log_dir(version, [root], extra_config=config)
    with Broker(version, [root], config) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, topics)
        payloads = work / "payloads.txt"
        rng = random.Random("java")
        lines = [workloads.text(rng, rng.choice((10, 80, 300))) for _ in range(200)]
        payloads.write_bytes(b"\n".join(lines) + b"\n")
        for codec, topic in zip(CODECS, CODEC_TOPICS, strict=True):
            _produce(broker, topic, payloads, f"compression.type={codec}", "batch.size=4000")
        _produce(broker, TX_TOPIC, payloads, "transactional.id=java-tx", throughput=400)
        if newer:
            share(broker.bootstrap)
        broker.stop()
    notes = ["java-tx-0: several committed transactions, see __transaction_state"]
    if newer:
        notes += [
            "transaction version 2: the producer epoch goes up with every transaction",
            "__share_group_state-0: state of a share group",
            "__consumer_offsets-0 and -1: records of a share group's coordinator",
        ]
    about = "Written by Java producers; on Kafka 4 also read by a share group. Orderly stop."
    config = {**BASE_CONFIG, **config}
    yield Scenario("java-clients", version, root, about, tuple(notes), topics, config)


def _produce(
    broker: Broker, topic: Topic, payloads: Path, *settings: str, throughput: int = -1
) -> None:
    transaction = [text for text in settings if text.startswith("transactional.id=")]
    arguments = ["--topic", topic.name, "--num-records", "300", "--throughput", str(throughput)]
    arguments += ["--payload-file", str(payloads)]
    if transaction:
        arguments += ["--transaction-duration-ms", "100"]
    arguments += ["--producer-props", f"bootstrap.servers={broker.bootstrap}", *settings]
    run_tool(broker.version, "org.apache.kafka.tools.ProducerPerformance", *arguments)


def share(bootstrap: str) -> None:
    """Read `SHARED` as a share group, while it is written, and commit."""
    writer = workloads.Writer(bootstrap)

    def write() -> None:
        writer.batches(SHARED.name, workloads.messages("shared", 20, workloads.EPOCH_MS), (7,))

    workloads.read_with_share_group(bootstrap, "group-share", SHARED.name, write)
