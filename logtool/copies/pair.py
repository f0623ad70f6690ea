"""What two copies of a partition are to each other: the same, behind, compacted, or diverged."""

from enum import StrEnum

from logtool.copies.batches import CopyBatch
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


@dataclass(frozen=True, slots=True)
class CopyPair:
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
    left_batch: CopyBatch | None = None
    """At the divergence, or the first behind it; None where there is none."""
    right_batch: CopyBatch | None = None
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

    @property
    def first_offset(self) -> int | None:
        """Return the first offset that both may have."""
        return self.common[0] if self.common else None

    @property
    def end_offset(self) -> int | None:
        """Return the end of what both may have."""
        return self.common[1] if self.common else None
