"""A segment that the fast check found to be plain, for a caller that counts its batches."""

from collections.abc import Callable
from typing import Any

from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import PlainTotals


@dataclass(frozen=True, slots=True)
class PlainSegment:
    """A segment that is plain; see `logtool.checks.fast_path`."""

    base_offset: int
    table: BatchTable
    """Its batches. The columns are valid until the next segment is looked at."""
    totals: PlainTotals | None
    """None without a batch."""
    log: str
    """Path of the log."""
    bytes: int
    """Bytes of the log."""
    index_bytes: int


OnSegment = Callable[[PlainSegment], None]


def of(
    base: int, path: str, log: bytes, indexes: tuple[bytes, bytes], rows: Any, facts: Any | None
) -> PlainSegment:
    """Return a segment from what `_kernels.plain_segment` left in `rows` and `facts`.

    `facts` is None for a segment without batches.
    """
    totals = (
        None if facts is None else PlainTotals._make(facts.tolist()[: len(PlainTotals._fields)])
    )
    return PlainSegment(
        base_offset=base,
        table=BatchTable(*rows[:, : totals.batches if totals else 0]),
        totals=totals,
        log=path,
        bytes=len(log),
        index_bytes=sum(map(len, indexes)),
    )
