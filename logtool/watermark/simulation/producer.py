"""Answers to a producer: acks 0, 1 and all.

With acks=0 the producer waits for no answer. With acks=1 the leader answers once its own log has
the records. With acks=all it answers once its high watermark has passed them, so that every
replica in sync has them; if fewer are in sync than ``min.insync.replicas``, the leader writes
nothing and answers with an error.
If they become too few afterwards, the high watermark does not rise and the answer waits (before
3.7 it rose, and the answer was NOT_ENOUGH_REPLICAS_AFTER_APPEND, which is not modelled); the
timeout that ends such a wait in a broker (``request.timeout.ms`` of the producer) is not modelled.
Source: ``Partition.appendRecordsToLeader``, ``Partition.checkEnoughReplicasReachOffset``,
``ReplicaManager.delayedProduceRequestRequired`` (Kafka 3.9 and 4.x).
"""

from enum import StrEnum

from logtool.lazy_dataclass import dataclass
from logtool.watermark.simulation.node import SimulatedRecord


class Acks(StrEnum):
    """Values of acks: the replicas whose write a producer waits for."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class ProduceAnswer(StrEnum):
    """Answers to a producer; the errors have the names of Kafka's protocol."""

    ACKNOWLEDGED = "acknowledged"
    NOT_AWAITED = "not awaited"
    NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS"
    """Nothing was written."""
    NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
    """It was written, and another leads before it was committed."""
    LEADER_GONE = "the leader is gone"
    """The connection ended before there was an answer."""


@dataclass(slots=True)
class Request:
    """One produce request."""

    acks: Acks
    records: tuple[SimulatedRecord, ...]
    offset: int
    """Offset of the first record; the log end if nothing was written."""
    answer: ProduceAnswer | None = None
    """None while the producer waits."""

    def __str__(self) -> str:
        return f"{self.names}: {self.answer or 'waits'}"

    @property
    def names(self) -> str:
        """Return the names of its records."""
        return " ".join(record.name for record in self.records)

    @property
    def end(self) -> int:
        """Return the offset behind its last record: what the high watermark has to reach."""
        return self.offset + len(self.records)
