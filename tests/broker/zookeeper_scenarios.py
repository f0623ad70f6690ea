"""Scenarios of brokers with ZooKeeper, with older message formats and older indexes.

Releases before 2.0 put the first offset of an append into the offset index. Releases before 2.1 do
not know zstd, and releases before 2.8 write no partition.metadata.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

from broker import workloads
from broker.install import KAFKA_2, release
from broker.kafka import ZOOKEEPER_CONFIG, Broker
from broker.scenarios import SMALL, Scenario
from broker.topics import TOPICS, Topic
from broker.workloads import EPOCH_MS, Message, Writer
from broker.zookeeper import ZooKeeper

OLD_CODECS = ("none", "gzip", "snappy", "lz4")
"""Codecs of messages of magic 0 and 1."""

_SEGMENTED = {"segment.bytes": "9000"}
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "8192",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "500",
}
OLD_TOPICS = (
    *(Topic(f"old-{codec}", f"batches compressed with {codec}", config=_SEGMENTED)
      for codec in OLD_CODECS),
    Topic("old-dense", "every codec in turn, an index entry for every append",
          config={"index.interval.bytes": "0", **_SEGMENTED}),
    Topic("old-compacted", "cleaned twice, with tombstones", config=_COMPACTED),
    Topic("groups.input", "read by a consumer group", partitions=2),
)  # fmt: skip
APPEND_TIME = Topic(
    "old-append-time",
    "timestamps set by the broker",
    config={"message.timestamp.type": "LogAppendTime"},
)
NEW_NAMES = ("tx.mixed", "idempotent_writes", "compacted-tx", "deleted-records.mid")
"""Topics of the other scenarios that need magic 2."""


def formats(version: str) -> dict[str, str]:
    """Return the scenarios of a release, and the message format of each; "" is its own."""
    older = {"magic-0": "0.9.0.1", "magic-1": "0.10.2"} if version == KAFKA_2 else {}
    return {"zookeeper": "", **(older or {"magic-1": "0.10.2"})}


def of_zookeeper(version: str, work: Path, name: str) -> Iterator[Scenario]:
    """Write all topics that the message format allows with one broker, and stop or kill it."""
    root = work / name
    message_format = formats(version)[name]
    settings = {"log.message.format.version": message_format} if message_format else {}
    if message_format:
        settings["inter.broker.protocol.version"] = message_format
    config = {**SMALL, **settings}
    topics = [*OLD_TOPICS]
    if message_format != "0.9.0.1":
        topics.append(APPEND_TIME)
    if not message_format:
        topics += [topic for topic in TOPICS if topic.name in NEW_NAMES]
    killed = name == "magic-1"
    with ZooKeeper() as zookeeper, Broker(version, [root], config, zookeeper=zookeeper) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, topics)
        _write(broker, root, topics, headers=not message_format)
        if killed:
            broker.kill()
        else:
            broker.stop()
    shown = f"log.message.format.version {message_format}" if message_format else "magic 2"
    end = "SIGKILL" if killed else "orderly stop"
    notes = (
        "meta.properties of version 0; no partition.metadata; no metadata log",
        "old-compacted-0: gaps; old-dense-0: wrappers of every codec" if message_format
        else "compacted-tx-0: aborted records removed; empty batches",
        "offset index entries name the first offset of an append" if release(version) < (2, 0)
        else "offset index entries name the last offset of an append",
    )  # fmt: skip
    about = f"A broker with ZooKeeper, {shown}; {end}."
    settings = {**ZOOKEEPER_CONFIG, **config}
    yield Scenario(name, version, root, about, notes, tuple(topics), settings)


def _write(broker: Broker, root: Path, topics: list[Topic], *, headers: bool) -> None:
    bootstrap = broker.bootstrap
    names = {topic.name for topic in topics}
    for codec in OLD_CODECS:
        content = _content(f"old-{codec}", 120, headers=headers)
        Writer(bootstrap, codec).batches(f"old-{codec}", content, (1, 12, 3, 30))
        part = _content(f"dense-{codec}", 60, headers=headers)
        Writer(bootstrap, codec).batches("old-dense", part, (1, 2, 9, 4))
    for partition in range(2):
        content = _content(f"groups.input-{partition}", 200, headers=headers)
        Writer(bootstrap).batches("groups.input", content, (8, 3), partition)
    workloads.read_with_group(bootstrap, "group-old", "classic")
    if APPEND_TIME.name in names:
        for codec in ("none", "lz4"):
            content = _content(f"append-{codec}", 60, headers=headers)
            Writer(bootstrap, codec).batches(APPEND_TIME.name, content, (1, 9, 25))
    for turn in range(2):
        _write_compacted(bootstrap, root, turn)
    if "tx.mixed" in names:
        workloads.write_transactions(bootstrap, rounds=6)
        content = workloads.messages("idempotent", 200, workloads.now_ms())
        Writer(bootstrap, "lz4", enable_idempotence=True).batches(
            "idempotent_writes", content, (5, 20)
        )
        workloads.write_compacted_transactions(bootstrap, root)
        content = workloads.messages("deleted-records.mid", 200, EPOCH_MS)
        Writer(bootstrap).batches("deleted-records.mid", content, (6, 2, 10))
        workloads.delete_records_up_to(bootstrap, {"deleted-records.mid": 77})


def _content(name: str, count: int, *, headers: bool) -> Iterator[Message]:
    """Yield ordinary records; a broker refuses headers for a topic of an older message format."""
    for message in workloads.messages(name, count, EPOCH_MS):
        kept = message.headers if headers else None
        yield Message(message.key, message.value, message.timestamp, kept)


def _write_compacted(bootstrap: str, root: Path, turn: int) -> None:
    """Write keys twice, delete some, and wait until the cleaner has cleaned the topic."""
    topic = "old-compacted"
    rng = random.Random(f"{topic}-{turn}")
    keys = [f"key-{number:03d}".encode() for number in range(60)]
    for codec in ("none", "gzip", "lz4"):
        content = [Message(key, workloads.text(rng, 90), EPOCH_MS + turn) for key in keys]
        Writer(bootstrap, codec).batches(topic, content, (10, 25, 1))
    gone = [Message(key, None, EPOCH_MS + turn) for key in keys[turn * 10 : turn * 10 + 15]]
    Writer(bootstrap, "snappy").batches(topic, gone, (7, 30))
    # Keys of their own push all of the above out of the active segment.
    filler = [
        Message(f"{turn}-{n}".encode(), workloads.text(rng, 200), EPOCH_MS) for n in range(60)
    ]
    Writer(bootstrap).batches(topic, filler, (6,))
    workloads.wait_for_cleaner(root, topic, 0)


def builders(version: str, work: Path) -> Mapping[str, Iterator[Scenario]]:
    """Return the builder of each scenario of a release with ZooKeeper, by name."""
    return {name: of_zookeeper(version, work, name) for name in formats(version)}
