"""Everything that a consumer gets of some partitions."""

from __future__ import annotations

from broker.kafka import Broker

Records = dict[tuple[str, int], list[tuple[int, bytes | None, bytes | None]]]


def consumed(broker: Broker, wanted: list[tuple[str, int]], isolation: str) -> Records:
    """Return (offset, key, value) of everything a consumer gets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap, "group.id": "unused",
            "enable.auto.commit": False, "isolation.level": isolation, "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )  # fmt: skip
    found: Records = {key: [] for key in wanted}
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
            found[key].append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found
