"""What a log is made of when it is salvaged: stretches of sound batches, and what stays behind."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAGIC, BatchTable, Column
from logtool.formats.redpanda import names as redpanda_names
from logtool.lazy_dataclass import dataclass


class BatchKey(NamedTuple):
    """One batch as it is compared between copies: equal edges are the same batch of one log."""

    base_offset: int
    last_offset: int
    size: int
    crc: int
    leader_epoch: int
    magic: int
    start: int
    """With which offset it begins; see `starts`."""


class RejectReason(StrEnum):
    """Why bytes are not taken over."""

    DAMAGE = "damage"
    """No sound batch."""
    UNREADABLE = "unreadable"
    """The disk gives them no more."""
    ORDER = "order"
    """Sound batches whose offsets or leader epochs contradict the others."""
    OVERLAP = "overlap"
    """Sound batches of offsets that the next segment holds."""
    ZOMBIE = "zombie"
    """A segment that a truncation had removed."""
    MISSING = "missing"
    """A log that is gone while its indexes are there."""


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
    """As far as they are known."""
    filled: bool = False
    """Whether it is from another copy."""

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
    """Of the offsets that can have been in it; None where that is not known."""
    last_offset: int | None = None
    filled_from: Path | None = None
    """The copy that has what was here."""
    proof: str | None = None
    """Why that is the same log, or why nothing was taken from another copy."""
    is_given: bool = True
    """Whether its bytes can be read, as far as the disk gives them; not so without permission."""

    def refused(self, reasons: Sequence[str]) -> "Rejected":
        """Return it with more reasons why nothing was taken from another copy."""
        return replace(self, proof="; ".join([*([self.proof] if self.proof else []), *reasons]))


Part = Kept | Rejected


def edge(table: BatchTable, row: int) -> BatchKey:
    """Return one row of a table as it is compared."""
    return BatchKey(
        int(table.base_offset[row]),
        int(table.last_offset[row]),
        int(table.size[row]),
        int(table.crc[row]),
        int(table.leader_epoch[row]),
        int(table.magic[row]),
        int(starts(table)[row]),
    )


def starts(table: BatchTable) -> Column:
    """Return the first offset of each batch, int64.

    A wrapper of magic 0 or 1 tells its last one alone; it begins as many records before.
    """
    counted = (table.magic < MAGIC) & (table.record_count > 0)
    return np.where(counted, table.last_offset - table.record_count + 1, table.base_offset)


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
    """Return what says that a log from an offset on is not there; of Redpanda it has a `term`."""
    if term is None:
        name = names.format_partition_file(base, FileKind.LOG)
    else:
        name = redpanda_names.format_segment(base, term)
    return Rejected(folder / name, 0, 0, RejectReason.MISSING, text)


def with_gaps(found: Sequence[Part], folder: Path) -> Iterator[Part]:
    """Yield the parts; where offsets between segments lack in a log that lacks no other, that, too.

    That is a segment that is gone, or the end of one.
    """
    dense = all(is_dense(part) for part in found if isinstance(part, Kept))
    before: Part | None = None
    for part in found:
        if dense and isinstance(part, Kept) and isinstance(before, Kept):
            end = before.last.last_offset + 1
            if part.path != before.path and part.first.start > end:
                term = redpanda_names.parse_partition_file(before.path.name).term
                yield missing(folder, end, "a whole segment is gone, or the end of one", term)
        yield part
        before = part
