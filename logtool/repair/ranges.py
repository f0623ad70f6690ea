"""Parts of a log that is salvaged: stretches of sound batches, and rejects."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable
from logtool.formats.redpanda import names as redpanda_names
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.log.file import File


class BatchKey(NamedTuple):
    """One batch as it is compared between copies: equal edges are the same batch of one log."""

    base_offset: int
    last_offset: int
    size: int
    crc: int
    leader_epoch: int
    magic: int
    start: int
    """First offset of the batch; see `BatchTable.first_offset`."""


class RejectReason(StrEnum):
    """Reason why bytes are not taken over."""

    DAMAGE = "damage"
    """No sound batch."""
    UNREADABLE = "unreadable"
    """The disk cannot read them."""
    ORDER = "order"
    """Sound batches whose offsets or leader epochs contradict the others."""
    OVERLAP = "overlap"
    """Sound batches of offsets that the next segment holds."""
    ZOMBIE = "zombie"
    """A segment that a truncation had removed."""
    MISSING = "missing"
    """A log that is gone while its indexes are there."""
    FOREIGN = "foreign"
    """Sound batches of another partition."""


FILLABLE = frozenset({*RejectReason} - {RejectReason.ZOMBIE})


@dataclass(frozen=True, slots=True)
class Kept:
    """Sound batches, one behind the other in one file, with rising offsets."""

    path: Path
    position: int
    size: int
    first: BatchKey
    last: BatchKey
    batches: int
    records: int
    """Number of records, without batches whose count is not known."""
    filled: bool = False
    """True if the batches are from another copy."""

    @property
    def end(self) -> int:
        """Return the byte behind it."""
        return self.position + self.size


@dataclass(frozen=True, slots=True)
class Rejected:
    """Bytes that are not taken over."""

    path: Path
    position: int
    length: int
    kind: RejectReason
    reason: str
    first_offset: int | None = None
    """First offset that can have been in it; None if it is not known."""
    last_offset: int | None = None
    filled_from: Path | None = None
    """The copy that has the batches that were here; None without one."""
    proof: str | None = None
    """Proof that the copy is of the same log, or the reason why no copy was used."""
    is_given: bool = True
    """True if its bytes can be read, at least in part; False for a log without permission."""
    is_torn: bool = False
    """True if it is an incomplete batch or zeros, with nothing sound behind it in the file."""

    def refused(self, reasons: Sequence[str]) -> "Rejected":
        """Return the reject with more reasons why no other copy was used."""
        return replace(self, proof="; ".join([*([self.proof] if self.proof else []), *reasons]))


Part = Kept | Rejected


def edge(table: BatchTable, row: int) -> BatchKey:
    """Return the key of one row of a table."""
    return BatchKey(
        int(table.base_offset[row]),
        int(table.last_offset[row]),
        int(table.size[row]),
        int(table.crc[row]),
        int(table.leader_epoch[row]),
        int(table.magic[row]),
        int(table.first_offset[row]),
    )


def extent(path: Path, table: BatchTable, *, filled: bool = False) -> Kept:
    """Return the extent of rows that lie one behind the other."""
    position, counts = int(table.position[0]), table.record_count
    return Kept(
        path=path,
        position=position,
        size=int(table.position[-1] + table.size[-1]) - position,
        first=edge(table, 0),
        last=edge(table, -1),
        batches=len(table),
        records=int(counts[counts > 0].sum()),
        filled=filled,
    )


def is_dense(extent: Kept) -> bool:
    """Return whether there is a record for each offset."""
    return extent.records == extent.last.last_offset - extent.first.start + 1


def missing(folder: Path, base: int, text: str, term: int | None = None) -> Rejected:
    """Return the reject for a missing log from an offset on; for Redpanda with its `term`."""
    if term is None:
        name = names.format_partition_file(base, FileKind.LOG)
    else:
        name = redpanda_names.format_segment(base, term)
    return Rejected(folder / name, 0, 0, RejectReason.MISSING, text)


def continued(log: Partition, first: int, last: int, copy: Path, proof: str | None) -> Rejected:
    """Return the reject for offsets behind the end of a log that are taken from a copy."""
    one = missing(log.path, first, "the log ends here, but another copy continues")
    if log.segments:
        end = log.segments[-1].log
        one = replace(one, path=end.path, position=end.size)
    return replace(one, first_offset=first, last_offset=last, filled_from=copy, proof=proof)


def foreign(log: File, reason: str, first: int, last: int) -> Rejected:
    """Return the reject for a log with batches of another partition, with its offsets."""
    text = f"the segment seems to hold batches of another partition: {reason}"
    return Rejected(log.path, 0, log.size, RejectReason.FOREIGN, text, first, last)


def with_gaps(found: Sequence[Part], folder: Path) -> Iterator[Part]:
    """Yield the parts, and rejects for missing offsets between segments of a log without gaps.

    Such offsets were in a segment that is gone, or at the end of one.
    """
    dense = all(is_dense(part) for part in found if isinstance(part, Kept))
    before: Part | None = None
    for part in found:
        if dense and isinstance(part, Kept) and isinstance(before, Kept):
            end = before.last.last_offset + 1
            if part.path != before.path and part.first.start > end:
                term = redpanda_names.parse_partition_file(before.path.name).term
                yield missing(
                    folder, end, "a whole segment is missing, or the end of a segment", term
                )
        yield part
        before = part
