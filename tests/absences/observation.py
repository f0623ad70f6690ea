"""The view of clients of a running cluster: offsets, records and committed offsets."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from absences.traffic import GROUPS, TOPICS, TRANSACTIONS

NAMES = (*(topic.name for topic in TOPICS), GROUPS, TRANSACTIONS)
ISOLATIONS = ("read_uncommitted", "read_committed")
Seen = dict[str, Any]
"""Offsets and records of one partition: ``start``, ``end``, ``read_uncommitted`` and
``read_committed``, which are lists of [offset, CRC of the record]."""


@dataclass
class View:
    """The view of clients of a cluster."""

    partitions: dict[str, Seen]
    groups: dict[str, dict[str, int]]
    """Committed offset of each group, by partition; one key ``error`` if they cannot be read."""


def look(bootstrap: str, groups: Sequence[str]) -> View:
    """Return the view of clients."""
    places = _places(bootstrap)
    found: dict[str, Seen] = {f"{topic}-{number}": {} for topic, number in places}
    for place, value in _offsets(bootstrap, places).items():
        found[f"{place[0]}-{place[1]}"].update(value)
    for isolation in ISOLATIONS:
        records = _records(bootstrap, found, isolation)
        for name, rows in records.items():
            found[name][isolation] = rows
    return View(found, _committed(bootstrap, groups))


def _places(bootstrap: str, patience: float = 15) -> list[tuple[str, int]]:
    """Return all partitions, once each has a leader, or after some seconds."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    deadline = time.monotonic() + patience
    while True:
        topics = admin.list_topics(timeout=30).topics
        places = [(name, number) for name in NAMES if name in topics
                  for number in sorted(topics[name].partitions)]  # fmt: skip
        waits = any(topics[name].partitions[number].leader < 0 for name, number in places)
        if not waits or time.monotonic() > deadline:
            return places
        time.sleep(0.2)


def _offsets(
    bootstrap: str, places: Sequence[tuple[str, int]], patience: float = 15
) -> dict[tuple[str, int], Seen]:
    """Return start and end of each partition; ``error`` where its leader gives none."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    found: dict[tuple[str, int], Seen] = {place: {} for place in places}
    for name, spec in (("start", OffsetSpec.earliest()), ("end", OffsetSpec.latest())):
        left, deadline = list(places), time.monotonic() + patience
        while left:
            asked = admin.list_offsets(
                {TopicPartition(*place): spec for place in left}, request_timeout=10
            )
            again = []
            for place, future in asked.items():
                key = place.topic, place.partition
                try:
                    found[key][name] = future.result(30).offset
                    found[key].pop("error", None)
                except KafkaException as error:
                    found[key]["error"] = error.args[0].name()
                    again.append(key)
            left = again if time.monotonic() < deadline else []
            if left:
                time.sleep(0.3)
    return found


def _records(bootstrap: str, places: dict[str, Seen], isolation: str) -> dict[str, list[Any]]:
    """Return offset and CRC of the records that a consumer reads, of partitions with offsets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False,
        "isolation.level": isolation, "enable.partition.eof": True, "auto.offset.reset": "error",
        "log_level": 0, "queued.min.messages": 1000, "fetch.wait.max.ms": 20,
        "enable.auto.offset.store": False, "fetch.error.backoff.ms": 50,
        "topic.metadata.refresh.interval.ms": 1000,
    })  # fmt: skip
    found: dict[str, list[Any]] = {}
    left: set[str] = set()
    for name, seen in places.items():
        if "start" in seen and "end" in seen:
            found[name] = []
            if seen["end"] > seen["start"]:
                left.add(name)
    assigned = []
    for name in left:
        topic, _, number = name.rpartition("-")
        assigned.append(TopicPartition(topic, int(number), places[name]["start"]))
    consumer.assign(assigned)
    last = time.monotonic()
    while left and time.monotonic() - last < 10:
        for message in consumer.consume(500, timeout=0.5):
            name = f"{message.topic()}-{message.partition()}"
            if not message.error():
                data = (message.key() or b"") + b"|" + (message.value() or b"")
                found[name].append([message.offset(), zlib.crc32(data)])
                last = time.monotonic()
            elif message.error().name() == "_PARTITION_EOF":
                left.discard(name)
                last = time.monotonic()
            elif name in left and message.error().name() != "_ALL_BROKERS_DOWN":
                places[name].setdefault("unread", message.error().name())
    for name in left:
        places[name].setdefault("unread", "nothing came")
    consumer.close()
    return found


def _committed(bootstrap: str, groups: Iterable[str]) -> dict[str, dict[str, int]]:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    asked = {
        group: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=20
        )[group]
        for group in groups
    }
    found: dict[str, dict[str, int]] = {}
    for group, future in asked.items():
        try:
            rows = future.result(60).topic_partitions or ()
            found[group] = {f"{row.topic}-{row.partition}": row.offset for row in rows
                            if row.offset >= 0}  # fmt: skip
        except KafkaException as error:
            found[group] = {"error": error.args[0].code()}
    return found
