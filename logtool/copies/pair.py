"""What two copies of a partition are to each other: the same, behind, compacted, or diverged."""

from enum import StrEnum
from typing import Any

from logtool.copies.copy import Copy
from logtool.lazy_dataclass import dataclass


class Status(StrEnum):
    """How two copies of a partition, or all of its copies, relate to each other.

    Where several of these hold, the gravest counts, which is the one that stands first.
    """

    OTHER_TOPIC = "other-topic"
    """Their topic ids differ: the topic was deleted and made anew between them."""
    DIVERGED = "diverged"
    DAMAGED = "damaged"
    """A batch that one has is damaged in the other."""
    MISSING = "missing"
    """A batch that one has is not in the other, and nothing shows that it was compacted."""
    COMPACTED = "compacted"
    """They differ as compaction at different times leaves them."""
    DISJOINT = "disjoint"
    """They have no offset in common."""
    BEHIND = "behind"
    """One ends, or begins, later than the other; what both have is the same."""
    SAME = "same"
    ALONE = "alone"
    """There is one copy only."""

    @property
    def is_grave(self) -> bool:
        """Return whether data is at stake."""
        return self in (Status.OTHER_TOPIC, Status.DIVERGED, Status.DAMAGED, Status.MISSING)


@dataclass(frozen=True, slots=True)
class Lacks:
    """What one of the two copies lacks that the other has; counts of batches."""

    compacted: int = 0
    """Gone, or with fewer records."""
    damaged: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    """Offset ranges for which nothing accounts."""
    before: int = 0
    """Below its first offset."""
    behind: int = 0
    """From its log end on."""

    def __bool__(self) -> bool:
        return bool(self.compacted or self.damaged or self.missing or self.before or self.behind)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "compacted": self.compacted,
            "damaged": self.damaged,
            "missing": [list(span) for span in self.missing],
            "before": self.before,
            "behind": self.behind,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """Two copies compared."""

    left: Copy
    right: Copy
    status: Status
    common: tuple[int, int] | None = None
    """First offset and end of what both may have."""
    equal: int = 0
    """Batches that are the same byte for byte."""
    rewritten: int = 0
    """Batches that compaction left in two shapes."""
    diverges_at: int | None = None
    left_batch: dict[str, int] | None = None
    """At the divergence, or the first behind it; None where there is none."""
    right_batch: dict[str, int] | None = None
    left_lacks: Lacks = Lacks()
    """Below the divergence, if there is one."""
    right_lacks: Lacks = Lacks()
    common_epoch: tuple[int, int] | None = None
    """The last entry that the epoch chains share."""
    epochs_diverge_at: int | None = None
    """Offset from which on the epoch chains differ."""

    @property
    def comparable(self) -> bool:
        """Return whether what one has says something of the other."""
        return self.status not in (Status.OTHER_TOPIC, Status.DIVERGED)

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "pair",
            "topic": self.left.topic,
            "partition": self.left.partition,
            "left": self.left.label,
            "right": self.right.label,
            "status": str(self.status),
            "first_offset": self.common[0] if self.common else None,
            "end_offset": self.common[1] if self.common else None,
            "left_end_offset": self.left.log_end,
            "right_end_offset": self.right.log_end,
            "equal_batches": self.equal,
            "rewritten_batches": self.rewritten,
            "diverges_at": self.diverges_at,
            "left_batch": _shown(self.left_batch),
            "right_batch": _shown(self.right_batch),
            "left_lacks": self.left_lacks.as_json(),
            "right_lacks": self.right_lacks.as_json(),
            "common_epoch": list(self.common_epoch) if self.common_epoch else None,
            "epochs_diverge_at": self.epochs_diverge_at,
        }


def _shown(batch: dict[str, int] | None) -> dict[str, int] | None:
    keys = (
        "segment",
        "position",
        "size",
        "base_offset",
        "last_offset",
        "leader_epoch",
        "crc",
        "record_count",
    )
    return None if batch is None else {key: batch[key] for key in keys}
