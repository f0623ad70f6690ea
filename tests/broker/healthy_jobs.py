"""Jobs of `healthy.Workload`: each writes to one topic in one round, drawn from a seed."""

from __future__ import annotations

import random
from typing import Any

from broker import workloads
from broker.healthy import Workload
from broker.install import HarnessError, major
from broker.topics import Topic
from broker.workloads import Message, now_ms
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

DAY_MS = 86_400_000


def keyed(rng: random.Random, count: int, keys: int, *, tombstones: float = 0.15) -> list[Message]:
    """Return records of a compacted topic with repeated keys, some of them tombstones."""
    found = []
    start = now_ms()
    for number in range(count):
        value = workloads.text(rng, rng.choice((5, 40, 120, 300)))
        gone = rng.random() < tombstones
        headers: Any = [("trace", rng.randbytes(4)), ("none", None)] if rng.random() < 0.1 else None
        key = f"key-{rng.randrange(keys):04d}".encode()
        found.append(Message(key, None if gone else value, start + number, headers))
    return found


def loose(rng: random.Random, count: int, *, spread_ms: int = 0) -> list[Message]:
    """Return records of a topic that is not compacted: null keys, headers, odd timestamps."""
    content = list(workloads.messages(str(rng.random()), count, now_ms()))
    if not spread_ms:
        return content
    return [
        Message(one.key, one.value, one.timestamp + rng.randrange(spread_ms), one.headers)
        for one in content
    ]


def sizes(rng: random.Random) -> tuple[int, ...]:
    """Return the numbers of records in the batches of a writer."""
    return tuple(rng.choice((1, 1, 2, 5, 12)) for _ in range(5))


def codec(rng: random.Random) -> str:
    return rng.choice(("none", "none", "gzip", "snappy", "lz4", "zstd"))


def fill(load: Workload, topic: str, rng: random.Random) -> None:
    """Fill the active segment with keys that the next round replaces."""
    start = now_ms()
    content = [
        Message(f"filler-{number % 40}".encode(), workloads.text(rng, 250), start)
        for number in range(rng.choice((40, 60, 90)))
    ]
    load.writer().batches(topic, content, (rng.choice((1, 5, 12)),))


def plain_keys(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write keys with a producer without an id."""
    writer = load.writer(codec(rng))
    # Each round uses the same keys, so the cleaner removes all earlier records.
    content = keyed(rng, rng.choice((20, 60, 150)), rng.choice((1, 8, 60)))
    writer.batches(topic.name, content, sizes(rng))
    fill(load, topic.name, rng)


def idempotent_keys(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write keys with producers with ids, new ones in each round."""
    for _ in range(3):
        writer = load.writer(codec(rng), enable_idempotence=True)
        writer.batches(topic.name, keyed(rng, rng.choice((1, 30, 60)), 30), sizes(rng))
    fill(load, topic.name, rng)


def transactions(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Commit and abort transactions of several producers that overlap, and plain ones between."""
    writers = load.transactional(topic.name, 3)
    plain = load.writer()
    for _ in range(rng.choice((3, 6))):
        chosen = rng.sample(writers, rng.choice((1, 2, 3)))
        for writer in chosen:
            writer.producer.begin_transaction()
        for _ in range(rng.choice((1, 2, 4))):
            writer = rng.choice(chosen)
            writer.batches(topic.name, keyed(rng, rng.choice((1, 4, 15)), 30), sizes(rng))
            if rng.random() < 0.3:
                plain.batch(topic.name, keyed(rng, rng.choice((1, 10)), 20))
        for writer in chosen:
            if rng.random() < 0.5:
                writer.producer.abort_transaction(load.patience)
            else:
                writer.producer.commit_transaction(load.patience)
    if rng.random() < 0.7:
        fill(load, topic.name, rng)
    else:
        big = [Message(b"filler-0", workloads.text(rng, 2500), now_ms())]
        for _ in range(5):
            plain.batch(topic.name, big)


def short_transactions(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write small transactions, each with its own producer."""
    for number in range(4):
        name = f"{topic.name}-{number}"
        writer = workloads.transactional(load.node.bootstrap, name, codec(rng))
        for _ in range(rng.choice((1, 2))):
            writer.producer.begin_transaction()
            writer.batch(topic.name, keyed(rng, rng.choice((1, 3, 12)), 10))
            if rng.random() < 0.6:
                writer.producer.abort_transaction(load.patience)
            else:
                writer.producer.commit_transaction(load.patience)
    fill(load, topic.name, rng)


def records(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write records of all kinds in batches of all sizes."""
    writer = load.writer(codec(rng))
    writer.batches(topic.name, loose(rng, rng.choice((40, 150))), sizes(rng))


def odd_times(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write records with timestamps years ahead or back, so that segments roll by time."""
    writer = load.writer(codec(rng))
    content = [
        Message(one.key, one.value, one.timestamp + rng.choice((-800, -1, 0, 1, 400)) * DAY_MS)
        for one in loose(rng, 60)
    ]
    writer.batches(topic.name, content, sizes(rng))


def rolled_by_time(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write records minutes apart to a topic whose segments last seconds."""
    writer = load.writer(codec(rng))
    writer.batches(topic.name, loose(rng, 40, spread_ms=600_000), sizes(rng))


def big_batches(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write a batch of 5 MB between small ones."""
    writer = load.writer("none", batch_size=6_000_000)
    records(load, topic, rng)
    start = now_ms()
    content = [Message(b"k%d" % number, rng.randbytes(100_000), start) for number in range(50)]
    writer.batch(topic.name, content)
    records(load, topic, rng)


def shortened(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write records, and delete records up to a random offset."""
    records(load, topic, rng)
    admin = AdminClient({"bootstrap.servers": load.node.bootstrap})
    consumer = workloads.consumer(load.node.bootstrap, "offsets", "classic")
    low, high = consumer.get_watermark_offsets(TopicPartition(topic.name, 0), load.patience)
    consumer.close()
    target = rng.choice((high, rng.randint(low, high), rng.randint(low, high)))
    for future in admin.delete_records([TopicPartition(topic.name, 0, target)]).values():
        future.result(load.patience)


def grouped(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Read and commit with groups of each protocol, and commit offsets in transactions."""
    for partition in range(topic.partitions):
        load.writer().batches(topic.name, loose(rng, 60), (8,), partition)
    protocols = ["classic"] + (["consumer"] if major(load.node.version) >= 4 else [])
    for protocol in protocols:
        workloads.read_with_group(
            load.node.bootstrap, f"{topic.name}-{protocol}", protocol, topic.name,
            60 * topic.partitions,
        )  # fmt: skip
    offsets = [TopicPartition(topic.name, number, 4) for number in range(topic.partitions)]
    name = f"{topic.name}-tx"
    workloads.commit_in_transactions(load.node.bootstrap, name, name, offsets)


def shared(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Read with a share group, whose state is in its own log."""
    writer = load.writer()

    def write() -> None:
        writer.batches(topic.name, loose(rng, 20), (7,))

    workloads.read_with_share_group(load.node.bootstrap, topic.name, topic.name, write)


def spread(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write a little to many partitions."""
    writer = load.writer()
    for partition in rng.sample(range(topic.partitions), topic.partitions // 3):
        for message in loose(rng, 3):
            writer.producer.produce(topic.name, key=message.key, value=message.value,
                                    partition=partition)  # fmt: skip
    if writer.producer.flush(60):
        raise HarnessError(f"could not write to {topic.name}")


def once(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write in the first round only, before the partition moves slowly."""
    if load.rounds == 1:
        load.writer().batches(topic.name, loose(rng, 6000), (20,))
