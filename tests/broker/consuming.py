"""Records that a consumer reads from partitions, and the start and end of a partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from broker.kafka import Broker
from deadlines import deadline_in

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

Place = tuple[str, int]
Records = dict[Place, list[tuple[int, bytes | None, bytes | None]]]


def consumed(broker: Broker, wanted: list[Place], isolation: str) -> Records:
    """Return (offset, key, value) of every record that a consumer reads."""
    found = messages(broker, wanted, isolation)
    return {
        place: [(one.offset(), one.key(), one.value()) for one in of_place]
        for place, of_place in found.items()
    }


def messages(
    broker: Broker | str, wanted: list[Place], isolation: str = "read_uncommitted"
) -> dict[Place, list[Message]]:
    """Return every message that a consumer reads from partitions of a broker, or its address."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": broker if isinstance(broker, str) else broker.bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False, "isolation.level": isolation, "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    found: dict[Place, list[Message]] = {key: [] for key in wanted}
    consumer.assign([TopicPartition(*key, 0) for key in wanted])
    left = set(wanted)
    while left:
        message = consumer.poll(30)
        assert message is not None, f"nothing more of {left}"
        key = message.topic(), message.partition()
        if message.error():
            assert message.error().name() == "_PARTITION_EOF", message.error()
            left.discard(key)
        else:
            found[key].append(message)
    consumer.close()
    return found


def ends(consumer: Consumer, topic: str, partition: int, patience: float = 60) -> tuple[int, int]:
    """Return the start and the end of a partition, as its leader reports them to this consumer.

    A broker names itself as leader in its metadata a moment before it leads. The request is
    repeated after a refusal, as clients do, for ``patience`` seconds; then the refusal is raised
    (KafkaException).
    """
    from confluent_kafka import KafkaException, TopicPartition

    place = TopicPartition(topic, partition)
    deadline = deadline_in(patience)
    while True:
        try:
            low, high = consumer.get_watermark_offsets(place, timeout=30)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return low, high
