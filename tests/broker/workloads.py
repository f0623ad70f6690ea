"""Writes the content of the fixtures, the same at every run but for times and ids."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.install import HarnessError, major
from broker.topics import CODECS, TOPICS, Topic
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deadlines import deadline_in

EPOCH_MS = 1_700_000_000_000
"""First timestamp of topics without producer ids; topics with them need `now_ms`."""

_WORDS = (
    *("segment", "offset", "leader", "epoch", "fetch", "batch", "record", "broker", "topic"),
    *("partition", "index", "horizon", "marker", "replica", "quorum", "ledger", "sequence"),
    *("snapshot", "watermark", "tombstone", "compaction", "checkpoint"),
)

Headers = list[tuple[str, str | bytes | None]]


@dataclass(frozen=True)
class Message:
    """One record to produce; ``timestamp`` in ms."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers | None = None


def now_ms() -> int:
    """Return the current time: a broker forgets a producer id after a day without records."""
    return int(time.time() * 1000)


def text(rng: random.Random, size: int) -> bytes:
    """Return about ``size`` bytes of words, which every codec can compress."""
    words: list[str] = []
    length = 0
    while length < size:
        words.append(rng.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words).encode()


def messages(name: str, count: int, start_ms: int, *, keys: int = 50) -> Iterator[Message]:
    """Yield ordinary records: some keyless, some with headers, a few binary values."""
    rng = random.Random(name)
    for number in range(count):
        key = None if rng.random() < 0.1 else f"key-{rng.randrange(keys):04d}".encode()
        binary = rng.random() < 0.05
        size = rng.choice((8, 24, 60, 150))
        value = rng.randbytes(size) if binary else text(rng, size)
        headers: Headers | None = None
        if rng.random() < 0.2:
            headers = [("trace", f"{number:08x}".encode()), ("origin", b"fixture")]
        yield Message(key, value, start_ms + number * 10, headers)


class Writer:
    """A producer that sends batches of exactly the given sizes."""

    def __init__(self, bootstrap: str, codec: str = "none", **config: Any) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": False,
            # Only flush() ends a batch, and it sends the batch at once.
            "linger.ms": 60_000,
            "batch.num.messages": 100_000,
            "batch.size": 4_000_000,
            "message.max.bytes": 8_000_000,
            "log_level": 0,
        }
        # Settings have dots; keyword arguments have underscores.
        settings |= {name.replace("_", "."): value for name, value in config.items()}
        self.producer = Producer(settings)
        self.patience = 30.0

    def batch(self, topic: str, batch: Iterable[Message], partition: int = 0) -> None:
        """Write the messages as one batch and wait until the broker has it."""
        failures: list[str] = []

        def delivered(error: Any, _message: Any) -> None:
            if error is not None:
                failures.append(str(error))

        for message in batch:
            self.producer.produce(
                topic,
                key=message.key,
                value=message.value,
                headers=message.headers,
                timestamp=message.timestamp,
                partition=partition,
                on_delivery=delivered,
            )
        if self.producer.flush(self.patience) or failures:
            raise HarnessError(f"could not write to {topic}: {failures[:1]}")

    def batches(
        self, topic: str, content: Iterable[Message], sizes: Sequence[int], partition: int = 0
    ) -> None:
        """Write the messages in batches whose numbers of records are ``sizes``, over and over."""
        waiting: list[Message] = []
        turn = 0
        for message in content:
            waiting.append(message)
            if len(waiting) == sizes[turn % len(sizes)]:
                self.batch(topic, waiting, partition)
                waiting, turn = [], turn + 1
        if waiting:
            self.batch(topic, waiting, partition)


def transactional(bootstrap: str, name: str, codec: str = "none", **config: Any) -> Writer:
    """Return a writer that has a transactional id and is ready to begin."""
    config = {"transaction_timeout_ms": 900_000} | config
    writer = Writer(bootstrap, codec, enable_idempotence=True, transactional_id=name, **config)
    writer.producer.init_transactions(30)
    return writer


def create_topics(bootstrap: str, version: str, topics: Sequence[Topic] = TOPICS) -> None:
    """Create topics and wait until the broker has done so."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [_new_topic(topic, version) for topic in topics]
    for future in admin.create_topics(wanted, operation_timeout=30).values():
        future.result(30)


def _new_topic(topic: Topic, version: str) -> NewTopic:
    config = topic.config_for(version)
    if topic.replicas:
        chosen = [list(topic.replicas)] * topic.partitions
        return NewTopic(topic.name, topic.partitions, replica_assignment=chosen, config=config)
    return NewTopic(topic.name, topic.partitions, 1, config=config)


def write_first_half(bootstrap: str, log_dir: Path, *, edges: bool = True) -> None:
    """Write the records before the restart in the middle; `edges` adds the edge cases."""
    write_codecs(bootstrap)
    if edges:
        write_edges(bootstrap)
        write_big_batches(bootstrap)
    write_idempotent(bootstrap)
    write_segments(bootstrap)
    write_transactions(bootstrap, rounds=12)
    write_compacted(bootstrap, log_dir)


def write_second_half(bootstrap: str, version: str, log_dir: Path) -> list[Writer]:
    """Write the records after the restart.

    Return the writers with an open transaction: keep them until the broker is gone.
    """
    write_compacted(bootstrap, log_dir, generation=2)
    write_compacted_transactions(bootstrap, log_dir)
    write_groups(bootstrap, version)
    delete_records(bootstrap, log_dir)
    write_interleaved(bootstrap)
    for name in ("codec-none", "codec-zstd"):
        later = messages(f"{name}-later", 60, EPOCH_MS + 10_000_000)
        Writer(bootstrap, name.removeprefix("codec-")).batches(name, later, (5, 1, 20))
    return open_transactions(bootstrap)


def write_codecs(bootstrap: str) -> None:
    """Fill the topics that differ in their codecs only, and the one that mixes them."""
    sizes = (1, 2, 7, 30, 3, 80, 1, 15)
    for codec in CODECS:
        topic = f"codec-{codec}"
        writer = Writer(bootstrap, codec)
        for partition in range(3 if codec == "none" else 1):
            content = messages(f"{topic}-{partition}", 300, EPOCH_MS)
            writer.batches(topic, content, sizes, partition)
    writers = [Writer(bootstrap, codec) for codec in CODECS]
    mixed = list(messages("mixed_codecs", 500, EPOCH_MS))
    for number, start in enumerate(range(0, len(mixed), 14)):
        writers[number % len(writers)].batch("mixed_codecs", mixed[start : start + 14])


def write_edges(bootstrap: str) -> None:
    """Write records at the limits of the format, and unusual timestamps."""
    rng = random.Random("edges")
    odd_headers: Headers = [("", b""), ("null", None), ("twice", b"1"), ("twice", b"2")]
    edges = [
        Message(None, None, EPOCH_MS),
        Message(b"", b"", EPOCH_MS),
        Message(None, b"", EPOCH_MS + 1),
        Message(b"", None, EPOCH_MS + 2),
        Message(b"tombstone", None, EPOCH_MS + 3, [("why", b"gone")]),
        Message(b"\x00\xff\xfe", b"\n\r\t\x00 | offset: 1\nbaseOffset: 7", EPOCH_MS + 4),
        Message("ключ-鍵".encode(), "значение 値 \U0001f5ce".encode(), EPOCH_MS + 5),
        Message(b"headers", b"odd", EPOCH_MS + 6, odd_headers),
        Message(b"many", b"headers", EPOCH_MS + 7, [(f"h{n}", bytes([n])) for n in range(130)]),
        Message(b"big", text(rng, 100_000), EPOCH_MS + 8),
        Message(b"k" * 5000, b"long key", EPOCH_MS + 9),
    ]
    writer = Writer(bootstrap)
    writer.batch("headers.and-nulls", edges)
    for codec in CODECS:
        Writer(bootstrap, codec).batches("headers.and-nulls", edges[:9], (1, 4, 4))
    # librdkafka takes 0 for "now", so 1 is the earliest time that a record can have here.
    times = [500, 100, 100, 900, 1, 899, 2_000, 1_999, 3_000, 3_000, 10, 5_000]
    odd = [Message(None, text(rng, 600), EPOCH_MS + delta) for delta in times * 8]
    odd += [Message(None, b"long ago", 1), Message(b"later", text(rng, 50), EPOCH_MS + 1)]
    writer.batches("odd.timestamps", odd, (1, 3, 2, 5))
    writer.batches("log_append_time", messages("log_append_time", 400, EPOCH_MS), (1, 9, 25))
    lz4 = Writer(bootstrap, "lz4")
    lz4.batches("log_append_time", messages("append-lz4", 100, EPOCH_MS), (1, 40, 9))


def write_idempotent(bootstrap: str) -> None:
    """Let three idempotent producers take turns."""
    writers = [
        Writer(bootstrap, codec, enable_idempotence=True) for codec in ("none", "zstd", "lz4")
    ]
    content = list(messages("idempotent_writes", 600, now_ms()))
    for number, start in enumerate(range(0, len(content), 12)):
        part = content[start : start + 12]
        writers[(number * number) % 3].batch("idempotent_writes", part)


def write_segments(bootstrap: str) -> None:
    """Fill the topics with special segments: many, dense indexes, preallocated, deleted."""
    writer = Writer(bootstrap)
    writer.batches("small-segments", messages("small-segments", 900, EPOCH_MS), (3, 1, 5, 2))
    writer.batches("index.dense", messages("index.dense", 450, EPOCH_MS), (1, 2, 3))
    writer.batches("preallocated.log", messages("preallocated.log", 300, EPOCH_MS), (4, 11))
    shortened = ("deleted-records.mid", "deleted_segments", "deleted-pending")
    for topic in (*shortened, "doomed-topic.v1_x"):
        writer.batches(topic, messages(topic, 300, EPOCH_MS), (6, 2, 10))
    for partition in range(2):
        content = messages(f"groups.input-{partition}", 200, EPOCH_MS)
        writer.batches("groups.input", content, (8, 3), partition)


def write_big_batches(bootstrap: str) -> None:
    """Write a few batches of hundreds of records."""
    rng = random.Random("big-batches")
    for codec, size in (("none", 64), ("lz4", 512), ("zstd", 300), ("none", 96), ("gzip", 128)):
        big = [
            Message(f"b{number}".encode(), text(rng, 1024), EPOCH_MS + number)
            for number in range(size)
        ]
        Writer(bootstrap, codec).batch("big-batches", big)


def write_transactions(bootstrap: str, rounds: int, topic: str = "tx.mixed") -> None:
    """Commit and abort transactions in turn; every fourth writes in three batches."""
    writers = [
        transactional(bootstrap, f"fixture-tx-{n}", c) for n, c in enumerate(("none", "lz4"))
    ]
    plain = Writer(bootstrap)
    for number in range(rounds):
        content = list(messages(f"{topic}-{number}", 24, now_ms()))
        writer = writers[number % 2]
        writer.producer.begin_transaction()
        writer.batches(topic, content, (8,) if number % 4 == 3 else (24,))
        if number % 3 == 1:
            writer.producer.abort_transaction(30)
        else:
            writer.producer.commit_transaction(30)
        plain.batch(topic, list(messages(f"{topic}-plain-{number}", 3, now_ms())))


def write_interleaved(bootstrap: str) -> None:
    """Let transactions of three producers overlap in two partitions and end in another order."""
    topic = "tx-interleaved_v2"
    for number in range(4):
        writers = [transactional(bootstrap, f"fixture-overlap-{n}") for n in range(3)]
        for writer in writers:
            writer.producer.begin_transaction()
        for partition in (0, 1):
            for index, writer in enumerate(writers):
                content = list(messages(f"{topic}-{number}-{index}", 10, now_ms()))
                writer.batch(topic, content, partition)
        order = [(number + step) % 3 for step in (2, 0, 1)]
        for index in order:
            if (index + number) % 2:
                writers[index].producer.abort_transaction(30)
            else:
                writers[index].producer.commit_transaction(30)


def open_transactions(bootstrap: str) -> list[Writer]:
    """Begin two transactions, write, and leave them open."""
    writers = [transactional(bootstrap, f"fixture-open-{n}") for n in range(2)]
    for number, writer in enumerate(writers):
        writer.producer.begin_transaction()
        writer.batch("tx.mixed", messages(f"open-{number}", 15, now_ms()))
        writer.batch("tx-interleaved_v2", messages(f"open-i-{number}", 5, now_ms()), number)
    plain = Writer(bootstrap)
    plain.batches("tx.mixed", messages("after-open", 120, now_ms()), (10,))
    return writers


def write_compacted(bootstrap: str, log_dir: Path, generation: int = 1) -> None:
    """Write keys repeatedly, delete some, and wait until the cleaner has cleaned twice.

    All keys of the last batch of the first writer are written again. The cleaner keeps the last
    batch of a producer, so it becomes an empty batch.
    """
    topic = "compacted.keys"
    for turn in range(2):
        label = f"{topic}-{generation}-{turn}"
        first = Writer(bootstrap, "none", enable_idempotence=True)
        second = Writer(bootstrap, "lz4", enable_idempotence=True)
        start = now_ms()
        keys = [f"key-{number:04d}".encode() for number in range(120)]
        rng = random.Random(label)
        for writer in (first, second):
            content = [Message(key, text(rng, 120), start) for key in keys]
            writer.batches(topic, content, (10, 25, 1))
        gone = [Message(key, None, start) for key in keys[turn * 20 : turn * 20 + 30]]
        second.batches(topic, gone, (7, 30))
        # Keys of their own push all of the above out of the active segment.
        filler = [Message(f"{label}-{n}".encode(), text(rng, 200), start) for n in range(90)]
        Writer(bootstrap, "none").batches(topic, filler, (6,))
        wait_for_cleaner(log_dir, topic, 0)


def write_compacted_transactions(bootstrap: str, log_dir: Path) -> None:
    """Commit and abort on a compacted topic whose tombstones and markers soon go away."""
    topic = "compacted-tx"
    writer = transactional(bootstrap, "fixture-compacted")
    for turn in range(3):
        start = now_ms()
        rng = random.Random(f"{topic}-{turn}")
        for part in range(8):
            keys = [f"key-{number:03d}".encode() for number in range(part, 80, 4)]
            writer.producer.begin_transaction()
            writer.batch(topic, [Message(key, text(rng, 90), start) for key in keys])
            if part == 5:
                writer.batch(topic, [Message(key, None, start) for key in keys[:5]])
            if part % 4 == 2:
                writer.producer.abort_transaction(30)
            else:
                writer.producer.commit_transaction(30)
        filler = [Message(f"{topic}-{turn}-{n}".encode(), text(rng, 200), start) for n in range(60)]
        Writer(bootstrap, "none").batches(topic, filler, (6,))
        wait_for_cleaner(log_dir, topic, 0)
        # Longer than delete.retention.ms, so that the next round drops what this one marked.
        time.sleep(0.8)


def write_groups(bootstrap: str, version: str) -> None:
    """Read with consumer groups that commit; delete one of them afterwards."""
    protocols = {"group-classic": "classic", "group.gone": "classic"}
    if major(version) >= 4:
        protocols["group_next"] = "consumer"
    for group, protocol in protocols.items():
        read_with_group(bootstrap, group, protocol)
    offsets = [TopicPartition("groups.input", partition, 42) for partition in range(2)]
    commit_in_transactions(bootstrap, "fixture-groups", "group-tx", offsets)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_consumer_groups(["group.gone"]).values():
        future.result(30)


def commit_in_transactions(
    bootstrap: str, name: str, group: str, offsets: list[TopicPartition]
) -> None:
    """Commit the offsets of a group in a transaction, and in another one that is aborted."""
    writer = transactional(bootstrap, name)
    reader = consumer(bootstrap, group, "classic")
    for finish in (writer.producer.commit_transaction, writer.producer.abort_transaction):
        writer.producer.begin_transaction()
        metadata = reader.consumer_group_metadata()
        writer.producer.send_offsets_to_transaction(offsets, metadata, 30)
        finish(30)
    reader.close()


def read_with_group(
    bootstrap: str, group: str, protocol: str, topic: str = "groups.input", count: int = 400
) -> None:
    """Read records of a topic as a member of a group, commit after each part, and leave."""
    reader = consumer(bootstrap, group, protocol)
    reader.subscribe([topic])
    seen = 0
    deadline = deadline_in(120)
    while seen < count:
        if time.monotonic() > deadline:
            raise HarnessError(f"{group} read {seen} of {count} records")
        part = reader.consume(50, timeout=1.0)
        seen += len(part)
        if part:
            _commit(reader, deadline)
    reader.close()


def _commit(reader: Consumer, deadline: float) -> None:
    """Commit the positions of a consumer until the broker has them.

    A commit of librdkafka that waits for its answer has no time limit, and at times no end.
    """
    wanted = [one for one in reader.position(reader.assignment()) if one.offset >= 0]
    while True:
        reader.commit(offsets=wanted, asynchronous=True)
        found = reader.committed(wanted, timeout=30)
        if [one.offset for one in found] == [one.offset for one in wanted]:
            return
        if time.monotonic() > deadline:
            raise HarnessError(f"a group has committed {found} and not {wanted}")
        time.sleep(0.05)


def read_with_share_group(
    bootstrap: str, group: str, topic: str, write: Callable[[], None]
) -> None:
    """Read 60 records of a topic with a share group, which calls `write` before each poll."""
    # Imported here: older confluent-kafka releases have no share consumer.
    from confluent_kafka import ShareConsumer

    reader = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
    reader.subscribe([topic])
    seen = 0
    deadline = deadline_in(120)
    # A share group starts at the end of the log, so it must exist before the records.
    while seen < 60:
        if time.monotonic() > deadline:
            raise HarnessError(f"the share group read {seen} records")
        write()
        seen += len(reader.poll(timeout=1.0) or ())
    reader.commit_sync()
    reader.close()


def delete_records(bootstrap: str, log_dir: Path) -> None:
    """Move the start of three logs and wait until whole segments below it are gone."""
    bases = sorted(int(path.stem) for path in (log_dir / "deleted_segments-0").glob("*.log"))
    targets = {
        "deleted-records.mid": 77,
        # At a segment's first offset there is nothing left for log-start-offset-checkpoint to say.
        "deleted_segments": bases[4],
        "deleted-pending": 160,
    }
    delete_records_up_to(bootstrap, targets)
    gone = log_dir / "deleted_segments-0"
    pending = log_dir / "deleted-pending-0"
    wait_for(lambda: len(list(gone.glob("0*.log"))) == len(bases) - 4, 60, "deleted segments")
    wait_for(lambda: any(pending.glob("*.log.deleted")), 60, "segments waiting for deletion")


def delete_records_up_to(bootstrap: str, targets: Mapping[str, int]) -> None:
    """Move the start of the first partition of each topic to an offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [TopicPartition(topic, 0, offset) for topic, offset in targets.items()]
    for future in admin.delete_records(wanted).values():
        future.result(30)


def delete_topic(bootstrap: str, log_dir: Path, topic: str = "doomed-topic.v1_x") -> None:
    """Delete a topic and wait until a broker has renamed its directories in ``log_dir``."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_topics([topic]).values():
        future.result(30)
    wait_for(lambda: any(log_dir.glob(f"{topic}-*-delete")), 30, "the -delete directory")


def wait_for_cleaner(log_dir: Path, topic: str, partition: int) -> None:
    """Wait until everything below the active segment of a partition has been cleaned."""
    folder = log_dir / f"{topic}-{partition}"
    active = max(int(path.stem) for path in folder.glob("*.log"))

    def cleaned() -> bool:
        lines = (log_dir / "cleaner-offset-checkpoint").read_text().splitlines()
        rows = [line.split() for line in lines[2:]]
        return any(
            row[0] == topic and int(row[1]) == partition and int(row[2]) >= active for row in rows
        )

    wait_for(cleaned, 60, f"the cleaner to reach offset {active} of {topic}")


def wait_for(ready: Callable[[], bool], timeout: float, what: str) -> None:
    """Wait until ``ready`` returns true; raise HarnessError after ``timeout`` seconds."""
    deadline = deadline_in(timeout)
    while not ready():
        if time.monotonic() > deadline:
            raise HarnessError(f"waited {timeout} s for {what}")
        time.sleep(0.1)


def consumer(bootstrap: str, group: str, protocol: str) -> Consumer:
    """Return a consumer of a group that reads from the start and commits only on request."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
