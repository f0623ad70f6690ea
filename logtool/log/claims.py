"""Claims: what the files of a log dir say should exist, compared with what exists.

A file makes a claim when it names a partition, or an offset of its log, that a broker had when it
wrote the file. A revocation is a later fact that ends such a claim, such as a directory that is
being deleted. A claim that no fact ends stands, and is unmet if the partition is absent, or if its
log begins above or ends below the offset of the claim.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass


class ClaimKind(StrEnum):
    """Kind of file that makes a claim. The order of definition is the order of strength."""

    REPLICA = "replica"
    """The metadata log gives the partition to the node."""
    HIGH_WATERMARK = "high watermark"
    RECOVERY_POINT = "recovery point"
    LOG_START = "log start offset"
    CLEANER_OFFSET = "cleaner offset"
    LEADER_EPOCH = "start of a leader epoch at"
    FIRST_EPOCH = "start of the first leader epoch at"
    PRODUCER_SNAPSHOT = "producer snapshot for"
    SEGMENT_NAME = "index of a segment from"


ENDS = frozenset({
    ClaimKind.HIGH_WATERMARK, ClaimKind.RECOVERY_POINT, ClaimKind.LOG_START,
    ClaimKind.CLEANER_OFFSET, ClaimKind.LEADER_EPOCH, ClaimKind.PRODUCER_SNAPSHOT,
    ClaimKind.SEGMENT_NAME,
})  # fmt: skip
"""Kinds whose offset a log reaches: each lies at or below the log end offset of a sound log."""
STARTS = frozenset({ClaimKind.LOG_START, ClaimKind.FIRST_EPOCH, ClaimKind.SEGMENT_NAME})
"""Kinds whose offset a log holds: a sound log begins at or below it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Place of a claim or of a revocation."""

    path: Path
    line: int | None = None
    """Line of a text file, from 1."""
    position: int | None = None
    """Position in the file, in bytes."""

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        return f"{self.path}{line}"


@dataclass(frozen=True, slots=True)
class Claim:
    """Statement of one file: a partition exists, or its log reaches or holds an offset."""

    about: TopicPartition
    kind: ClaimKind
    evidence: Evidence
    offset: int = 0
    """Offset that the log reaches or holds; 0 for a claim of existence alone."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """Fact that ends the claims of some kinds about one partition."""

    about: TopicPartition
    evidence: Evidence
    kinds: frozenset[ClaimKind] = frozenset(ClaimKind)


@dataclass(frozen=True, slots=True)
class Presence:
    """State of a partition on the disk; offsets are those of its log."""

    exists: bool
    end: int | None = None
    """Log end offset; None if it is not known."""
    start: int | None = None
    """Base offset of the first segment; None if it is not known."""


def standing(facts: Iterable[Claim | Revocation]) -> list[Claim]:
    """Return the claims that nothing revokes: the strongest kind first, then the largest offset."""
    claims: list[Claim] = []
    revoked: set[tuple[TopicPartition, ClaimKind]] = set()
    for fact in facts:
        if isinstance(fact, Claim):
            claims.append(fact)
        else:
            revoked.update((fact.about, kind) for kind in fact.kinds)
    order = list(ClaimKind)
    return sorted(
        (one for one in claims if (one.about, one.kind) not in revoked),
        key=lambda one: (order.index(one.kind), -one.offset),
    )


def unmet(claims: Iterable[Claim], there: Presence) -> Iterator[Claim]:
    """Yield the claims about one partition that its state on the disk does not meet."""
    for claim in claims:
        ends_below = claim.kind in ENDS and there.end is not None and there.end < claim.offset
        begins_above = (
            claim.kind in STARTS and there.start is not None and there.start > claim.offset
        )
        if not there.exists or ends_below or begins_above:
            yield claim
