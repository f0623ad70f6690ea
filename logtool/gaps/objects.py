"""The objects that are printed about gaps.

There may be as many gaps, ghosts and stretches as batches. To save time, they are JSON-ready
objects; their keys are the keys of their tables in the view.
"""

from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from logtool.formats.record_batch import HEADER_SIZE
from logtool.gaps.follower_fetches import Round, batches, rounds, stretches
from logtool.gaps.ghosts import RFC_OVERHEAD, Ghosts, harmless, of
from logtool.gaps.kafka_offsets import NO_VIEW, KafkaView
from logtool.gaps.ledger import ReasonCounts
from logtool.gaps.run import Result
from logtool.gaps.table import GapPlace, GapReason
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.times import rfc3339

Object = dict[str, Any]


@dataclass(frozen=True)
class PartitionGaps:
    """The sums of a partition, from its log start to its log end."""

    result: Result
    ghosts: Ghosts

    @property
    def listed(self) -> Partition:
        """Return the partition as its directory was listed."""
        return self.result.subject.partition

    @property
    def kafka(self) -> KafkaView:
        """Return its Kafka offsets, if they are not the log's own offsets."""
        return self.result.kafka or NO_VIEW

    @cached_property
    def missing(self) -> int:
        """Return the number of offsets from the log start on that are not on disk."""
        return self.result.ledger.missing

    @property
    def missing_share(self) -> float:
        """Return the missing offsets as a share of all."""
        return _share(self.missing, self.result.ledger.offsets)

    @cached_property
    def reasons(self) -> dict[GapReason, ReasonCounts]:
        """Return the numbers of gaps and of missing offsets for each reason."""
        return self.result.ledger.reasons()

    @property
    def ghost_count(self) -> int:
        """Return the number of ghosts that would fill its gaps."""
        return len(self.ghosts)

    @cached_property
    def losses(self) -> int:
        """Return the number of gaps that may mean loss."""
        return self.result.ledger.losses

    @cached_property
    def ghosts_of_losses(self) -> int:
        """Return the number of ghosts that would fill gaps that may mean loss."""
        return len(self.ghosts) - len(harmless(self.ghosts, self.result.ledger))

    @property
    def ghost_bytes(self) -> int:
        """Return the size of its ghosts."""
        return self.ghosts.bytes

    @property
    def ghost_bytes_by_rfc(self) -> int:
        """Return the size of its ghosts by the RFC."""
        return self.ghosts.rfc_bytes

    @property
    def log_bytes(self) -> int:
        """Return the size of the sound batches."""
        return self.result.batch_bytes

    @property
    def ghost_share(self) -> float:
        """Return the size of its ghosts as a share of the size of the sound batches."""
        return _share(self.ghost_bytes, self.log_bytes)

    @property
    def kafka_log_start_offset(self) -> int | None:
        """Return the Kafka offset of the log start; None if it has none, or it is not known."""
        return self.kafka.of(self.result.ledger.log_start)

    @property
    def kafka_log_end_offset(self) -> int | None:
        """Return the Kafka offset of the log end; None if it has none, or it is not known."""
        return self.kafka.of(self.result.ledger.log_end)


@dataclass(frozen=True, slots=True)
class PartitionRound:
    """A round of the recovery of a follower of one partition."""

    listed: Partition
    one: Round


@dataclass(slots=True)
class TopicGaps:
    """The sums of the partitions of a topic."""

    topic: str
    partitions: int = 0
    offsets: int = 0
    visible: int = 0
    control: int = 0
    aborted: int = 0
    missing: int = 0
    reasons: dict[GapReason, ReasonCounts] = field(default_factory=dict)
    losses: int = 0
    ghost_count: int = 0
    ghosts_of_losses: int = 0
    ghost_bytes: int = 0
    ghost_bytes_by_rfc: int = 0
    log_bytes: int = 0

    def add(self, one: PartitionGaps) -> None:
        """Count one partition."""
        ledger = one.result.ledger
        self.partitions += 1
        self.offsets += ledger.offsets
        self.visible += ledger.visible
        self.control += ledger.control
        self.aborted += ledger.aborted
        self.missing += one.missing
        self.losses += one.losses
        self.ghost_count += one.ghost_count
        self.ghosts_of_losses += one.ghosts_of_losses
        self.ghost_bytes += one.ghost_bytes
        self.ghost_bytes_by_rfc += one.ghost_bytes_by_rfc
        self.log_bytes += one.log_bytes
        for reason, counts in one.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, ReasonCounts()) + counts

    @property
    def missing_share(self) -> float:
        """Return the missing offsets as a share of all."""
        return _share(self.missing, self.offsets)

    @property
    def ghost_share(self) -> float:
        """Return the size of the ghosts as a share of the size of the sound batches."""
        return _share(self.ghost_bytes, self.log_bytes)


def gap_objects(result: Result, ghosts: Ghosts, *, losses_only: bool = False) -> Iterator[Object]:
    """Yield the gaps of a partition by offset: all, or those that may mean loss."""
    ledger, listed = result.ledger, result.subject.partition
    gaps, kafka = ledger.gaps, result.kafka or NO_VIEW
    filled = np.bincount(ghosts.gap, minlength=len(gaps))
    verdict_of = ledger.verdict
    if losses_only:
        rows = ledger.having([reason for reason in GapReason if reason.is_loss])
        gaps, filled, verdict_of = gaps[rows], filled[rows], verdict_of[rows]
    names = (
        "first_offset",
        "last_offset",
        "missing",
        "kind",
        "before_segment",
        "after_segment",
        "position",
        "epoch",
        "before_ms",
        "after_ms",
    )
    columns = [*(getattr(gaps, name) for name in names), verdict_of, filled]
    for first, last, missing, kind, before, after, position, epoch, old, new, number, count in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        verdict = ledger.verdicts[number]
        yield {
            "type": "gap",
            "path": str(listed.path),
            "topic": listed.topic,
            "partition": listed.number,
            "kind": GapPlace(kind).label,
            "first_offset": first,
            "last_offset": _known(last),
            "kafka_first_offset": kafka.of(first),
            "kafka_last_offset": kafka.last_of(last) if last >= 0 else None,
            "missing": missing,
            "reason": str(verdict.reason),
            "loss": verdict.reason.is_loss,
            "evidence": verdict.evidence,
            "before_segment": _known(before),
            "after_segment": _known(after),
            "position": _known(position),
            "leader_epoch": _known(epoch),
            "before_timestamp_ms": _known(old),
            "before_timestamp": rfc3339(_known(old)),
            "after_timestamp_ms": _known(new),
            "after_timestamp": rfc3339(_known(new)),
            "ghosts": count,
            "ghost_bytes": count * HEADER_SIZE,
        }


def ghost_objects(result: Result, ghosts: Ghosts) -> Iterator[Object]:
    """Yield the batches that would fill the gaps of a partition, with the epochs by both rules."""
    listed, ledger = result.subject.partition, result.ledger
    by_checkpoint = of(ledger, result.subject.facts)
    columns = (
        ghosts.first_offset,
        ghosts.last_offset,
        ghosts.epoch,
        ghosts.following_epoch,
        ghosts.exact,
        ledger.verdict[ghosts.gap],
        np.searchsorted(by_checkpoint.last_offset, ghosts.first_offset),
        np.searchsorted(by_checkpoint.first_offset, ghosts.last_offset, "right"),
    )
    for first, last, epoch, following, exact, number, begin, end in zip(
        *(c.tolist() for c in columns), strict=True
    ):
        is_exact = by_checkpoint.exact[begin:end].all()
        reason = ledger.verdicts[number].reason
        yield {
            "type": "ghost",
            "path": str(listed.path),
            "topic": listed.topic,
            "partition": listed.number,
            "first_offset": first,
            "last_offset": last,
            "leader_epoch": epoch,
            "epoch_from": "leader-epoch-checkpoint" if exact else "following-batch",
            "following_leader_epoch": following,
            "checkpoint_leader_epochs": by_checkpoint.epoch[begin:end].tolist() if is_exact else [],
            "reason": str(reason),
            "loss": reason.is_loss,
            "size": HEADER_SIZE,
            "size_by_rfc": RFC_OVERHEAD,
        }


def stretch_objects(result: Result, ghosts: Ghosts, follower_end: int) -> Iterator[Object]:
    """Yield the ranges that a leader would send to a follower, in order."""
    listed, ledger = result.subject.partition, result.ledger
    behind = ledger.last_offset + 1
    verdicts = ledger.verdict[ghosts.gap].tolist()
    for stretch in stretches(
        ghosts, leader_start=ledger.log_start, leader_end=behind, follower_end=follower_end
    ):
        number = int(np.searchsorted(ghosts.last_offset, stretch.first_offset))
        reason = ledger.verdicts[verdicts[number]].reason if stretch.ghost else None
        yield {
            "type": "stretch",
            "path": str(listed.path),
            "topic": listed.topic,
            "partition": listed.number,
            "ghost": stretch.ghost,
            "reason": None if reason is None else str(reason),
            "first_offset": stretch.first_offset,
            "last_offset": stretch.last_offset,
            "without_ghosts_first_offset": stretch.without_first,
            "without_ghosts_last_offset": stretch.without_last,
        }


def partition_rounds(
    result: Result, ghosts: Ghosts, start: int, most: int
) -> Iterator[PartitionRound]:
    """Yield the rounds of at most `most` bytes for a follower whose log ends at `start`."""
    begin = max(start, result.ledger.log_start)
    for one in rounds(batches(result), ghosts, start=begin, most=most):
        yield PartitionRound(result.subject.partition, one)


class GapTotals:
    """Sums of partitions: of all, and by topic."""

    def __init__(self) -> None:
        self.all = TopicGaps("")
        self._topics: dict[str, TopicGaps] = {}

    def add(self, partition: PartitionGaps) -> None:
        """Count one partition; without a topic in its directory name only in the sum of all."""
        self.all.add(partition)
        name = partition.listed.topic
        if name is not None:
            self._topics.setdefault(name, TopicGaps(name)).add(partition)

    def topics(self) -> list[TopicGaps]:
        """Return the topics, ordered by name."""
        return [self._topics[name] for name in sorted(self._topics)]


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _known(value: int) -> int | None:
    return None if value < 0 else value
