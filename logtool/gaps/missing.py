"""The gaps of a partition as objects, one for each range of offsets: for the Python library."""

from pathlib import Path

from logtool.gaps.run import Result
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class GapRange:
    """Offsets that are missing, for one reason."""

    first_offset: int
    last_offset: int | None
    """None if the end is not known."""
    missing: int
    """Number of offsets that are missing in the range."""
    reason: str
    """Reason as `logtool gaps` names it, such as ``compaction`` or ``damage``."""
    is_loss: bool
    """True if records may be lost."""
    evidence: str


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """Gaps of one partition."""

    path: Path
    topic: str | None
    partition: int | None
    log_start_offset: int
    log_end_offset: int
    gaps: tuple[GapRange, ...]


def missing_offsets(result: Result) -> MissingOffsets:
    """Return the gaps of a partition that was read."""
    ledger, listed = result.ledger, result.subject.partition
    columns = (ledger.gaps.first_offset, ledger.gaps.last_offset, ledger.gaps.missing)
    rows = zip(*(one.tolist() for one in (*columns, ledger.verdict)), strict=True)
    gaps = tuple(
        GapRange(
            first_offset=first,
            last_offset=None if last < 0 else last,
            missing=missing,
            reason=str(ledger.verdicts[number].reason),
            is_loss=ledger.verdicts[number].reason.is_loss,
            evidence=ledger.verdicts[number].evidence,
        )
        for first, last, missing, number in rows
    )
    return MissingOffsets(
        path=listed.path,
        topic=listed.topic,
        partition=listed.number,
        log_start_offset=ledger.log_start,
        log_end_offset=ledger.log_end,
        gaps=gaps,
    )
