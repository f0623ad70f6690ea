"""Result of the comparison of two copies: the same, behind, compacted, or diverged."""

from enum import StrEnum

from logtool.copies.batches import CopyBatch
from logtool.copies.copy import Copy
from logtool.lazy_dataclass import dataclass


class Status(StrEnum):
    """Relation of two copies of a partition, or of all its copies, to each other.

    If several of these are true, the gravest counts; the order is from the gravest down.
    """

    OTHER_TOPIC = "other-topic"
    """Their topic ids differ: the topic was deleted and created again between them."""
    DIVERGED = "diverged"
    DAMAGED = "damaged"
    """A batch of one copy is damaged in the other."""
    UNREAD = "unread"
    """A part of one copy cannot be read."""
    MISSING = "missing"
    """A batch of one copy is not in the other, without a sign of compaction."""
    COMPACTED = "compacted"
    """They differ only by compaction at different times."""
    DISJOINT = "disjoint"
    """They have no offset in common."""
    BEHIND = "behind"
    """One ends, or begins, later than the other; their common batches are the same."""
    SAME = "same"
    ALONE = "alone"
    """There is only one copy."""

    @property
    def is_grave(self) -> bool:
        """Return whether data is at stake."""
        return self in (Status.OTHER_TOPIC, Status.DIVERGED, Status.DAMAGED, Status.MISSING)


@dataclass(frozen=True, slots=True)
class Lacks:
    """Batches of the other copy that one of two copies lacks, as counts."""

    compacted: int = 0
    """Batches that compaction removed, or left with fewer records."""
    damaged: int = 0
    missing: tuple[tuple[int, int], ...] = ()
    """Offset ranges of batches whose absence is not explained."""
    before: int = 0
    """Batches below its first offset."""
    behind: int = 0
    """Batches from its log end on."""

    def __bool__(self) -> bool:
        return bool(self.compacted or self.damaged or self.missing or self.before or self.behind)


@dataclass(frozen=True, slots=True)
class CopyPair:
    """Two copies, and the result of their comparison."""

    left: Copy
    right: Copy
    status: Status
    common: tuple[int, int] | None = None
    """First offset and end of the range that both may have; None without a common range."""
    equal: int = 0
    """Number of batches that are the same byte for byte."""
    rewritten: int = 0
    """Number of batches that compaction left in different forms in the two copies."""
    diverges_at: int | None = None
    left_batch: CopyBatch | None = None
    """Batch at the divergence, or the first after it; None without one."""
    right_batch: CopyBatch | None = None
    left_different: int = 0
    """Number of batches of the left copy from the divergence on that the right one does not have,
    as far as both reach."""
    right_different: int = 0
    meets_at: int | None = None
    """Offset behind the last difference from which on the batches are the same again; None without
    such an offset."""
    left_lacks: Lacks = Lacks()
    """Batches that the left copy lacks below the divergence, if there is a divergence."""
    right_lacks: Lacks = Lacks()
    common_epoch: tuple[int, int] | None = None
    """The last common entry of the epoch chains."""
    epochs_diverge_at: int | None = None
    """Offset from which the epoch chains differ; None if they do not."""

    @property
    def comparable(self) -> bool:
        """Return whether both have one history, so that one can show what the other lacks."""
        return self.status not in (Status.OTHER_TOPIC, Status.DIVERGED)

    @property
    def first_offset(self) -> int | None:
        """Return the first offset that both may have; None without a common range."""
        return self.common[0] if self.common else None

    @property
    def end_offset(self) -> int | None:
        """Return the end of the range that both may have; None without a common range."""
        return self.common[1] if self.common else None
