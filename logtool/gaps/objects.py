"""What is printed of gaps: JSON-ready objects."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from logtool.formats.record_batch import HEADER_SIZE
from logtool.gaps.follower import stretches
from logtool.gaps.ghosts import RFC_OVERHEAD, Ghosts, harmless, of
from logtool.gaps.kafka_view import NO_VIEW
from logtool.gaps.rounds import batches, rounds
from logtool.gaps.run import Result
from logtool.gaps.table import Kind, Reason
from logtool.times import rfc3339

Object = dict[str, Any]
_GHOSTS = (
    "losses", "ghosts", "ghosts_of_losses", "ghost_bytes", "ghost_bytes_by_rfc", "log_bytes"
)  # fmt: skip
_SUMS = ("offsets", "visible", "control", "aborted", "missing")


def partition_object(result: Result, ghosts: Ghosts) -> Object:
    """Return the object of a partition: from its log start to its log end."""
    ledger, listed, kafka = result.ledger, result.subject.partition, result.kafka or NO_VIEW
    held = sum(end - start for part in result.parts for start, end in part.stretches)
    return {
        "type": "partition",
        "path": str(listed.path),
        "topic": listed.topic,
        "partition": listed.number,
        "log_start_offset": ledger.log_start,
        "log_end_offset": ledger.log_end,
        "first_visible_offset": ledger.first_visible,
        "last_visible_offset": ledger.last_visible,
        "offsets": ledger.offsets,
        "visible": ledger.visible,
        "control": ledger.control,
        "aborted": ledger.aborted,
        "missing": ledger.missing,
        "missing_share": _share(ledger.missing, ledger.offsets),
        "reasons": {
            str(reason): {"gaps": gaps, "offsets": offsets}
            for reason, (gaps, offsets) in ledger.reasons().items()
        },
        "losses": ledger.losses,
        "ghosts": len(ghosts),
        "ghosts_of_losses": len(ghosts) - len(harmless(ghosts, ledger)),
        "ghost_bytes": ghosts.bytes,
        "ghost_bytes_by_rfc": ghosts.rfc_bytes,
        "log_bytes": held,
        "ghost_share": _share(ghosts.bytes, held),
        "cleanup_policy": result.subject.facts.cleaning.policy,
        "damages": ledger.damages,
        "overlaps": ledger.overlaps,
        "kafka_log_start_offset": kafka.of(ledger.log_start),
        "kafka_log_end_offset": kafka.of(ledger.log_end),
        "kafka_offsets_from": kafka.source,
        "kafka_offsets_unknown": kafka.hidden,
    }


def gap_objects(result: Result, ghosts: Ghosts, *, losses_only: bool = False) -> Iterator[Object]:
    """Yield the gaps of a partition by offset: all, or those that may mean loss."""
    ledger, listed = result.ledger, result.subject.partition
    gaps, kafka = ledger.gaps, result.kafka or NO_VIEW
    filled = np.bincount(ghosts.gap, minlength=len(gaps))
    verdict_of = ledger.verdict
    if losses_only:
        rows = ledger.having([reason for reason in Reason if reason.is_loss])
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
            "kind": Kind(kind).label,
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
        told = by_checkpoint.exact[begin:end].all()
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
            "checkpoint_leader_epochs": by_checkpoint.epoch[begin:end].tolist() if told else [],
            "reason": str(reason),
            "loss": reason.is_loss,
            "size": HEADER_SIZE,
            "size_by_rfc": RFC_OVERHEAD,
        }


def stretch_objects(result: Result, ghosts: Ghosts, follower_end: int) -> Iterator[Object]:
    """Yield what a follower whose log ends at an offset would be sent, in order."""
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


def round_objects(result: Result, ghosts: Ghosts, start: int, most: int) -> Iterator[Object]:
    """Yield the rounds of at most `most` bytes for a follower whose log ends at `start`."""
    listed, ledger = result.subject.partition, result.ledger
    begin = max(start, ledger.log_start)
    for one in rounds(batches(result), ghosts, start=begin, most=most):
        base_before, last_before = one.before or (None, None)
        base, last = one.after
        columns = (one.ghosts.first_offset, one.ghosts.last_offset, one.ghosts.epoch)
        yield {
            "type": "round",
            "path": str(listed.path),
            "topic": listed.topic,
            "partition": listed.number,
            "round": one.number,
            "start_offset": one.start_offset,
            "first_offset": one.first_offset,
            "last_offset": one.last_offset,
            "batches": one.batches,
            "size": one.size,
            "ghosts": [
                {"first_offset": first, "last_offset": last, "leader_epoch": epoch}
                for first, last, epoch in zip(*(c.tolist() for c in columns), strict=True)
            ],
            "base_batch_offset_before": base_before,
            "last_batch_offset_before": last_before,
            "base_batch_offset": base,
            "last_batch_offset": last,
        }


class Totals:
    """Adds up partitions: all of them, and by topic."""

    def __init__(self) -> None:
        self.all = _zero("")
        self._topics: dict[str, Object] = {}

    def add(self, partition: Object) -> None:
        """Count one partition; one whose directory names no topic is of none."""
        name = partition["topic"]
        totals = [self.all]
        if name is not None:
            totals.append(self._topics.setdefault(name, _zero(name)))
        for total in totals:
            total["partitions"] += 1
            for key in (*_SUMS, *_GHOSTS):
                total[key] += partition[key]
            total["ghost_share"] = _share(total["ghost_bytes"], total["log_bytes"])
            for reason, counts in partition["reasons"].items():
                of_reason = total["reasons"].setdefault(reason, {"gaps": 0, "offsets": 0})
                for key in of_reason:
                    of_reason[key] += counts[key]
            total["missing_share"] = _share(total["missing"], total["offsets"])

    def topics(self) -> list[Object]:
        """Return the topics by name."""
        return [self._topics[name] for name in sorted(self._topics)]


def _zero(topic: str) -> Object:
    sums = dict.fromkeys(_SUMS, 0)
    return {
        "type": "topic",
        "topic": topic,
        "partitions": 0,
        **sums,
        "missing_share": 0,
        "reasons": {},
        **dict.fromkeys(_GHOSTS, 0),
        "ghost_share": 0,
    }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _known(value: int) -> int | None:
    return None if value < 0 else value
