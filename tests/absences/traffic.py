"""The topics of a base, and what is written to them."""

from __future__ import annotations

import operator
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker import workloads
from broker.install import HarnessError
from broker.topics import Topic

if TYPE_CHECKING:
    from confluent_kafka import Producer

GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"
_DAY_MS = 24 * 3_600_000
_SMALL = {"segment.bytes": "1500", "file.delete.delay.ms": "100"}
_TIMEOUT_MS = 7 * _DAY_MS
"""Timeout of transactions: those that are open stay so until the end of a campaign."""

TOPICS = (
    Topic("plain", "one segment"),
    Topic("segments", "several segments", config=_SMALL),
    Topic("keys", "compacted", config={
        **_SMALL, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}),
    Topic("tx", "transactions, one of them open", config=_SMALL),
    Topic("idem", "producer ids", config=_SMALL),
    Topic("short", "DeleteRecords", config=_SMALL),
    Topic("aged", "retention", config={**_SMALL, "retention.ms": str(_DAY_MS)}),
    Topic("empty", "no record"),
)  # fmt: skip
INTERNAL = Topic(
    GROUPS, "groups", config={**_SMALL, "cleanup.policy": "compact", "compression.type": "producer"}
)
"""Made like the others: since Kafka 4 no setting of the broker gives it small segments."""
SHORT_START = 33
"""Offset up to which records of `short` are deleted."""


def settings(partitions: int) -> dict[str, str]:
    """Return the settings of a broker that writes a base."""
    return {
        "log.index.size.max.bytes": "8192",
        "offsets.topic.num.partitions": str(partitions),
        "transaction.state.log.num.partitions": str(max(4, partitions // 2)),
        "transaction.max.timeout.ms": str(_TIMEOUT_MS),
        "log.cleaner.backoff.ms": "100",
        "log.initial.task.delay.ms": "300",
        "log.retention.check.interval.ms": "500",
        "log.flush.offset.checkpoint.interval.ms": "1000",
        "log.flush.start.offset.checkpoint.interval.ms": "1000",
        "replica.high.watermark.checkpoint.interval.ms": "1000",
        "log.segment.delete.delay.ms": "1000",
    }


def settings_of_starts(partitions: int) -> dict[str, str]:
    """Return the settings of a broker whose start is judged: nothing is cleaned or deleted."""
    return {
        **settings(partitions),
        "log.cleaner.enable": "false",
        "log.initial.task.delay.ms": "3600000",
        "log.segment.delete.delay.ms": "3600000",
    }


def java_hash(text: str) -> int:
    """Return ``Utils.abs(text.hashCode())``, by which a coordinator is chosen."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    value -= (value & 0x80000000) << 1
    return 0 if value == -(2**31) else abs(value)


def names_for(prefix: str, partitions: int) -> list[str]:
    """Return one name for each partition of a coordinator's topic."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        name = f"{prefix}-{number}"
        found.setdefault(java_hash(name) % partitions, name)
        number += 1
    return [found[partition] for partition in range(partitions)]


@dataclass
class Traffic:
    """Clients that write to all partitions of a base."""

    bootstrap: str
    partitions: int
    _open: list[Producer] = field(default_factory=list)

    @property
    def groups(self) -> list[str]:
        """One group for each partition of `GROUPS`."""
        return names_for("group", self.partitions)

    def create(self, version: str, replicas: int) -> None:
        """Create the topics."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wanted = [
            NewTopic(one.name, 4 if one.name == "empty" else self.partitions, replicas,
                     config=one.config_for(version))
            for one in (*TOPICS, INTERNAL)
        ]  # fmt: skip
        for future in admin.create_topics(wanted, operation_timeout=60).values():
            future.result(60)

    def first_half(self) -> None:
        """Write before the restart in the middle."""
        self._rounds("plain", 6)
        for name in ("segments", "short"):
            self._rounds(name, 10)
        self._rounds("idem", 10, enable_idempotence=True)
        for turn in range(3):
            self._rounds("keys", 5, label=f"keys-{turn}", keys=12)
        old = int(time.time() * 1000) - 3 * _DAY_MS
        self._rounds("aged", 6, label="aged-old", start_ms=old)
        self._transactions(0)

    def second_half(self) -> None:
        """Write after the restart, and leave a transaction open."""
        for name in ("plain", "segments", "short", "aged"):
            self._rounds(name, 6, label=f"{name}-second")
        self._rounds("idem", 6, label="idem-second", enable_idempotence=True)
        self._transactions(1)
        self._rounds("keys", 5, label="keys-last", keys=12)

    def dirty(self) -> None:
        """Write what the cleaner does not clean, because it is written behind it."""
        self._rounds("keys", 5, label="keys-dirty", keys=8)

    def leave_open(self) -> None:
        """Begin a transaction in each partition of `tx`, with plain records behind it."""
        producer = self._transactional("left-open")
        producer.begin_transaction()
        self._round(producer, "tx", "open", 0, 5)
        self._open.append(producer)
        self._rounds("tx", 2, label="tx-behind")

    def commit(self, turns: int = 12) -> None:
        """Commit offsets of every group, some times."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for turn in range(turns):
            futures: list[Any] = []
            for number, group in enumerate(self.groups):
                places = [TopicPartition("plain", number, 5 + turn),
                          TopicPartition("segments", number, 20 + turn)]  # fmt: skip
                wanted = [ConsumerGroupTopicPartitions(group, places)]
                futures += admin.alter_consumer_group_offsets(wanted).values()
            for future in futures:
                future.result(60)

    def delete_records(self) -> None:
        """Delete the first records of every partition of `short`."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        wanted = [TopicPartition("short", number, SHORT_START) for number in range(self.partitions)]
        for future in admin.delete_records(wanted).values():
            future.result(60)

    def _transactions(self, half: int) -> None:
        """Write transactions, two of three of which are committed, by many producers."""
        count = max(4, self.partitions // 2)
        for number, name in enumerate(names_for("tx", count)):
            producer = self._transactional(name)
            producer.begin_transaction()
            if number < 6:
                self._round(producer, "tx", f"tx-{half}-{number}", 0, 5)
            else:
                self._round(producer, "tx", f"tx-{half}-{number}", 0, 2, [number])
            if number % 3 == 1:
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)

    def _transactional(self, name: str) -> Producer:
        writer = workloads.transactional(self.bootstrap, name, transaction_timeout_ms=_TIMEOUT_MS)
        return writer.producer

    def _rounds(
        self, topic: str, rounds: int, *, label: str = "", keys: int = 0,
        start_ms: int | None = None, **config: Any,
    ) -> None:  # fmt: skip
        writer = workloads.Writer(self.bootstrap, **config)
        for turn in range(rounds):
            self._round(
                writer.producer, topic, label or topic, turn, 5, keys=keys, start_ms=start_ms
            )

    def _round(
        self, producer: Producer, topic: str, label: str, turn: int, count: int,
        chosen: Sequence[int] | None = None, *, keys: int = 0, start_ms: int | None = None,
    ) -> None:  # fmt: skip
        """Write one batch to each partition."""
        failures: list[str] = []

        def delivered(error: Any, _: Any) -> None:
            if error is not None:
                failures.append(str(error))

        now = start_ms or workloads.now_ms()
        for partition in range(self.partitions) if chosen is None else chosen:
            rng = random.Random(f"{label}-{turn}-{partition}")
            for number in range(count):
                key = f"{label}-{turn}-{number}"
                if keys:
                    key = f"key-{rng.randrange(keys)}"
                value = f"{label} {turn} {number} ".encode() + rng.randbytes(30).hex().encode()
                producer.produce(topic, key=key.encode(), value=value, partition=partition,
                                 timestamp=now + number, on_delivery=delivered)  # fmt: skip
        if producer.flush(120) or failures:
            raise HarnessError(f"could not write to {topic}: {failures[:1]}")


def wait_for_checkpoints(dirs: Sequence[Path]) -> None:
    """Wait until the brokers have written their high watermarks again.

    The log start offsets do not change any more, and 4.3.1 then leaves their checkpoint as it is.
    """
    written = [one for path in dirs for one in path.glob("replication-offset-checkpoint")]

    def are_newer(before: Sequence[int]) -> bool:
        return all(map(operator.lt, before, map(_written_ns, written)))

    # The first write may have begun before the last record.
    for _ in range(2):
        before = list(map(_written_ns, written))
        workloads.wait_for(partial(are_newer, before), 60, "checkpoints")


def _written_ns(path: Path) -> int:
    return path.stat().st_mtime_ns


def wait_until_settled(dirs: Sequence[Path]) -> None:
    """Wait until retention, DeleteRecords and the cleaner have done what they will do."""

    def found(topic: str) -> Iterator[Path]:
        for log_dir in dirs:
            yield from log_dir.glob(f"{topic}-*")

    def begins(topic: str) -> bool:
        return all(not (path / f"{0:020}.log").exists() for path in found(topic))

    for topic in ("aged", "short"):
        workloads.wait_for(partial(begins, topic), 120, f"{topic} to begin later")
    for path in found("keys"):
        workloads.wait_for_cleaner(path.parent, "keys", int(path.name.rpartition("-")[2]))
    gone = "*.deleted"
    workloads.wait_for(
        lambda: not any(any(path.glob(gone)) for topic in TOPICS for path in found(topic.name)),
        60, "deleted segments to go",
    )  # fmt: skip
