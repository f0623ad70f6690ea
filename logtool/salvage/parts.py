"""What a log is made of when it is salvaged: stretches of sound batches, and what stays behind."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from logtool.formats.record_batch import BatchTable


class Edge(NamedTuple):
    """One batch as it is compared between copies: equal edges are the same batch of one log."""

    base_offset: int
    last_offset: int
    size: int
    crc: int
    leader_epoch: int
    magic: int


class Kind(StrEnum):
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


FILLABLE = frozenset({*Kind} - {Kind.ZOMBIE})


@dataclass(frozen=True, slots=True)
class Extent:
    """Sound batches, one behind the other in one file, with rising offsets."""

    path: Path
    position: int
    size: int
    first: Edge
    last: Edge
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
class Reject:
    """Bytes that are not taken over."""

    path: Path
    position: int
    length: int
    kind: Kind
    reason: str
    first_offset: int | None = None
    """Of the offsets that can have been in it; None where that is not known."""
    last_offset: int | None = None
    filled_from: Path | None = None
    """The copy that has what was here."""
    proof: str | None = None
    """Why that is the same log, or why nothing was taken from another copy."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract, without what is known once it is written."""
        return {
            "type": "reject",
            "path": str(self.path),
            "position": self.position,
            "length": self.length,
            "kind": str(self.kind),
            "reason": self.reason,
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "filled_from": None if self.filled_from is None else str(self.filled_from),
            "proof": self.proof,
        }


Part = Extent | Reject


def edge(table: BatchTable, row: int) -> Edge:
    """Return one row of a table as it is compared."""
    return Edge(
        int(table.base_offset[row]),
        int(table.last_offset[row]),
        int(table.size[row]),
        int(table.crc[row]),
        int(table.leader_epoch[row]),
        int(table.magic[row]),
    )


def extent(path: Path, table: BatchTable, *, filled: bool = False) -> Extent:
    """Return the extent of rows that lie one behind the other."""
    position, counts = int(table.position[0]), table.record_count
    return Extent(
        path=path,
        position=position,
        size=int(table.position[-1] + table.size[-1]) - position,
        first=edge(table, 0),
        last=edge(table, -1),
        batches=len(table),
        records=int(counts[counts > 0].sum()),
        filled=filled,
    )
