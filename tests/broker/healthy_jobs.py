"""Jobs of `healthy.Workload`: each writes to one topic in one round, drawn from a seed."""

from __future__ import annotations

import random
import time
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
    """Return records of a compacted topic: keys that come again, some of them deleted."""
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
    """Return how many records the batches of a writer have."""
    return tuple(rng.choice((1, 1, 2, 5, 12)) for _ in range(5))


def codec(rng: random.Random) -> str:
    return rng.choice(("none", "none", "gzip", "snappy", "lz4", "zstd"))


def fill(load: Workload, topic: str, rng: random.Random) -> None:
    """Push what was written out of the active segment, with keys that the next round replaces."""
    start = now_ms()
    content = [
        Message(f"filler-{number % 40}".encode(), workloads.text(rng, 250), start)
        for number in range(rng.choice((40, 60, 90)))
    ]
    load.writer().batches(topic, content, (rng.choice((1, 5, 12)),))


def plain_keys(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write keys with a producer that has no id."""
    writer = load.writer(codec(rng))
    # The same keys in each round: what was there before goes as a whole.
    content = keyed(rng, rng.choice((20, 60, 150)), rng.choice((1, 8, 60)))
    writer.batches(topic.name, content, sizes(rng))
    fill(load, topic.name, rng)


def idempotent_keys(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Write keys with producers that have an id; each is new in each round."""
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
    """Let each transaction be of a producer of its own, and small."""
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
    """Write records whose timestamps go up and down, years ahead or back: segments roll by that."""
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
    """Write, and delete records up to somewhere."""
    records(load, topic, rng)
    admin = AdminClient({"bootstrap.servers": load.node.bootstrap})
    consumer = workloads.consumer(load.node.bootstrap, "offsets", "classic")
    low, high = consumer.get_watermark_offsets(TopicPartition(topic.name, 0), load.patience)
    consumer.close()
    target = rng.choice((high, rng.randint(low, high), rng.randint(low, high)))
    for future in admin.delete_records([TopicPartition(topic.name, 0, target)]).values():
        future.result(load.patience)


def grouped(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Read with groups of each protocol that commit, over and over, and within transactions."""
    for partition in range(topic.partitions):
        load.writer().batches(topic.name, loose(rng, 60), (8,), partition)
    protocols = ["classic"] + (["consumer"] if major(load.node.version) >= 4 else [])
    for protocol in protocols:
        consumer = workloads.consumer(load.node.bootstrap, f"{topic.name}-{protocol}", protocol)
        consumer.subscribe([topic.name])
        _read(consumer, 60 * topic.partitions)
        consumer.close()
    writer = workloads.transactional(load.node.bootstrap, f"{topic.name}-tx")
    consumer = workloads.consumer(load.node.bootstrap, f"{topic.name}-tx", "classic")
    offsets = [TopicPartition(topic.name, number, 4) for number in range(topic.partitions)]
    for finish in (writer.producer.commit_transaction, writer.producer.abort_transaction):
        writer.producer.begin_transaction()
        metadata = consumer.consumer_group_metadata()
        writer.producer.send_offsets_to_transaction(offsets, metadata, 30)
        finish(load.patience)
    consumer.close()


def _read(consumer: Any, count: int) -> None:
    seen = 0
    deadline = time.monotonic() + 120
    while seen < count:
        if time.monotonic() > deadline:
            raise HarnessError(f"a group read {seen} of {count} records")
        part = consumer.consume(20, timeout=1.0)
        seen += len(part)
        if part:
            consumer.commit(asynchronous=False)


def shared(load: Workload, topic: Topic, rng: random.Random) -> None:
    """Read with a share group, which keeps its state in a log of its own."""
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({"bootstrap.servers": load.node.bootstrap, "group.id": topic.name})
    consumer.subscribe([topic.name])
    writer = load.writer()
    seen = 0
    deadline = time.monotonic() + 120
    # A share group starts at the end of the log, so it has to be there before the records are.
    while seen < 60:
        if time.monotonic() > deadline:
            raise HarnessError(f"the share group read {seen} records")
        writer.batches(topic.name, loose(rng, 20), (7,))
        seen += len(consumer.poll(timeout=1.0) or ())
    consumer.commit_sync()
    consumer.close()


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
    """Write in the first round only: the partition is about to move, slowly."""
    if load.rounds == 1:
        load.writer().batches(topic.name, loose(rng, 6000), (20,))
