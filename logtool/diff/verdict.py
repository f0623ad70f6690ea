"""All copies of a partition: which is a superset, which are behind, who can fill the damage."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from logtool.diff.copy import Copy, DamagedRange
from logtool.diff.pair import Lacks, Pair, Status, compare
from logtool.lazy_dataclass import dataclass

_ORDER = list(Status)


@dataclass(frozen=True, slots=True)
class Wound:
    """Damage of one copy, and which others hold the same offsets sound."""

    copy: Copy
    damage: DamagedRange
    filled_by: tuple[str, ...]
    partly_by: tuple[str, ...]

    @property
    def loses(self) -> bool:
        """Return whether offsets are missing for it."""
        last = self.damage.last_offset
        return last is None or last >= self.damage.first_offset

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        damage = self.damage
        return {
            "type": "damage",
            "topic": self.copy.topic,
            "partition": self.copy.partition,
            "copy": self.copy.label,
            "path": self.copy.path,
            "segment": damage.segment,
            "position": damage.position,
            "length": damage.length,
            "reason": damage.reason,
            "message": damage.message,
            "torn_tail": damage.tail,
            "first_offset": damage.first_offset if self.loses else None,
            "last_offset": damage.last_offset if self.loses else None,
            "filled_by": list(self.filled_by),
            "partly_filled_by": list(self.partly_by),
        }


@dataclass(frozen=True, slots=True)
class Standing:
    """Which brokers may lead a partition without loss, by the newest metadata log: node ids."""

    in_sync: tuple[int, ...]
    eligible: tuple[int, ...]
    """Eligible leader replicas (KIP-966): they left the ISR with all that is committed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the copies of a partition are to each other."""

    copies: tuple[Copy, ...]
    pairs: tuple[Pair, ...]
    wounds: tuple[Wound, ...]
    status: Status
    superset: tuple[str, ...]
    """Copies that have everything that any has; more than one where they are the same."""
    behind: tuple[str, ...]
    """Copies that end before another does which has the same up to there."""
    standing: Standing | None = None
    """None where no metadata log at hand knows the partition."""
    fixes: tuple[str, ...] = ()
    """The commands that repair damaged copies from others, where these are directories at hand."""

    @property
    def diverges_at(self) -> int | None:
        """Return the first offset at which any two copies diverge."""
        offsets = [pair.diverges_at for pair in self.pairs if pair.diverges_at is not None]
        return min(offsets, default=None)

    @property
    def unfilled(self) -> int:
        """Return how many damaged ranges no copy can fill; an unfinished append is none."""
        return sum(
            wound.loses and not wound.filled_by and not wound.damage.tail for wound in self.wounds
        )

    @property
    def identical(self) -> bool:
        """Return whether each copy has every batch of each other one, and nothing else.

        So any but one of them may go. Leader epochs and log start are compared too; indexes and
        producer snapshots are not, since a broker makes them from the log.
        """
        states = {(copy.log_start, copy.log_end, copy.epochs) for copy in self.copies}
        whole = not any(copy.damages for copy in self.copies)
        return self.status is Status.SAME and len(states) == 1 and whole

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        first = self.copies[0]
        return {
            "type": "partition",
            "topic": first.topic,
            "partition": first.partition,
            "copies": [copy.label for copy in self.copies],
            "status": str(self.status),
            "identical": self.identical,
            "diverges_at": self.diverges_at,
            "superset": list(self.superset),
            "behind": list(self.behind),
            "damaged": [copy.label for copy in self.copies if copy.real_damages],
            "unfilled": self.unfilled,
            "in_sync": list(self.standing.in_sync) if self.standing else None,
            "eligible": list(self.standing.eligible) if self.standing else None,
            "fixes": list(self.fixes),
        }


def judge(copies: Sequence[Copy]) -> Verdict:
    """Compare all copies of one partition with each other."""
    copies = _labelled(copies)
    pairs = tuple(compare(left, right) for left, right in combinations(copies, 2))
    wounds = tuple(_wound(copy, damage, pairs) for copy in copies for damage in copy.damages)
    statuses = [pair.status for pair in pairs]
    if any(copy.real_damages for copy in copies):
        statuses.append(Status.DAMAGED)
    return Verdict(
        copies=copies,
        pairs=pairs,
        wounds=wounds,
        status=min(statuses, key=_ORDER.index, default=Status.ALONE),
        superset=tuple(copy.label for copy in copies if _has_everything(copy, pairs)),
        behind=tuple(
            copy.label for copy in copies if any(one.behind for one in _lacking(copy, pairs))
        ),
    )


def _labelled(copies: Sequence[Copy]) -> tuple[Copy, ...]:
    """Name each copy by its node, and by its path where that is none or not the only one."""
    nodes = [copy.node for copy in copies]
    return tuple(
        replace(
            copy,
            label=copy.path if copy.node is None or nodes.count(copy.node) > 1 else str(copy.node),
        )
        for copy in copies
    )


def _lacking(copy: Copy, pairs: Sequence[Pair]) -> list[Lacks]:
    """Return what the copy lacks of each other one."""
    return [
        pair.left_lacks if copy is pair.left else pair.right_lacks
        for pair in pairs
        if copy is pair.left or copy is pair.right
    ]


def _has_everything(copy: Copy, pairs: Sequence[Pair]) -> bool:
    own = [pair for pair in pairs if copy is pair.left or copy is pair.right]
    return all(pair.comparable for pair in own) and not any(_lacking(copy, pairs))


def _wound(copy: Copy, damage: DamagedRange, pairs: Sequence[Pair]) -> Wound:
    wound = Wound(copy=copy, damage=damage, filled_by=(), partly_by=())
    if not wound.loses:
        return wound
    full: list[str] = []
    partly: list[str] = []
    for pair in pairs:
        if copy is not pair.left and copy is not pair.right:
            continue
        other = pair.right if copy is pair.left else pair.left
        held = _held(other, damage, pair)
        if held:
            (full if held == 2 else partly).append(other.label)
    return Wound(copy=copy, damage=damage, filled_by=tuple(full), partly_by=tuple(partly))


def _held(other: Copy, damage: DamagedRange, pair: Pair) -> int:
    """Return whether the other copy has the damaged offsets sound: 2 all of them, 1 some, 0 none.

    Where its history is another one from there on, it has none.
    """
    if pair.status is Status.OTHER_TOPIC:
        return 0
    first = damage.first_offset
    last = other.log_end - 1 if damage.last_offset is None else damage.last_offset
    if pair.diverges_at is not None and pair.diverges_at <= last:
        return 0
    table = other.batches
    rows = table[(table.last_offset >= first) & (table.base_offset <= last)]
    if not len(rows):
        return 0
    hurt = any(bool(one.overlaps(np.array([first]), np.array([last]))[0]) for one in other.damages)
    whole = int(rows.base_offset[0]) <= first and int(rows.last_offset[-1]) >= last
    gapless = bool((rows.base_offset[1:] == rows.last_offset[:-1] + 1).all())
    # In a compacted log what is not there was meant to go.
    sound = (whole and gapless) or (
        bool(other.compaction_hints) and other.log_start <= first and other.log_end > last
    )
    return 2 if sound and not hurt else 1
