"""Changes of files on disk as plain data: made by the code that judges, carried out by `apply`.

A `Change` is one file operation with everything that is needed to carry it out. An `Action` is what
is shown to a person: the change, or something that a broker would do without changing a file.
"""

from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from logtool.lazy_dataclass import dataclass


class FileChange(StrEnum):
    """Kinds of change of a file."""

    TRUNCATE = "truncate"
    """It is cut to `size`; what stays is not touched."""
    REPLACE = "replace"
    """It gets other bytes; mode and owner stay."""
    CREATE = "create"
    """It is not there yet."""
    REMOVE = "remove"
    RENAME = "rename"
    """It gets the name of `target` in the same directory; a file of that name is gone by then."""


class Blocks(Protocol):
    """Content that is too large to be held in memory."""

    size: int

    def blocks(self) -> Iterator[bytes]:
        """Yield it; UnreadableError where what it is taken from is gone or has changed."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """State of a file when it was judged."""

    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one file; the changes of a plan are carried out in their order."""

    kind: FileChange
    path: Path
    seen: Stamp | None = None
    """State of the file when it was judged; None if there was no file."""
    content: bytes | None = None
    """New bytes, for REPLACE or CREATE."""
    blocks: Blocks | None = None
    """New bytes, for a log that is put together from others."""
    size: int | None = None
    """Size in bytes that is left, for TRUNCATE."""
    target: Path | None = None
    """New path, for RENAME."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Data that a reader can no longer find once an action was carried out."""

    bytes: int = 0
    batches: int = 0
    """Sound batches, the valid ones behind damage among them."""
    records: int = 0
    """Records in sound batches, and in bad ones as far as their headers show."""
    bad_batches: int = 0
    """Bad batches whose headers can be believed."""
    bad_records: int = 0
    """Records, counted in `records` too, that are in bad batches."""
    first_offset: int | None = None
    last_offset: int | None = None
    batches_behind_damage: int = 0
    """Sound batches that are lost only because of what stands before them."""
    below_high_watermark: bool | None = None
    """True if acknowledged offsets are lost, those of damaged batches included; None if the high
    watermark is not known."""

    only_zeros: bool = False
    """True if only zeros behind the last batch are lost, as a preallocated log has them."""

    def __bool__(self) -> bool:
        """Return whether any record is lost that was written, or that was acknowledged."""
        return self.batches > 0 or self.records > 0 or bool(self.below_high_watermark)


GRAVE = frozenset(
    {
        "refuse",
        "offline",
        "unknown",
        "stray",
        "delete",
        "erase",
        "keep",
        "ignore",
        "unnoticed",
        "hide",
        "discard",
        "lacks",
        "unfilled",
        "diverges",
        "zombie",
        "overlap",
        "absent",
        "lost",
        "ahead",
        "leaderless",
    }
)
"""Actions of a broker, and problems it does not notice, to know of before it starts."""
HINDRANCES = ("refuse", "offline", "ignore")
"""Actions on a log dir as a whole that still apply to the next start after a recovery."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens to a partition or its log dir."""

    action: str
    """`FileChange`, or what a broker does with no file changed, such as ``refuse`` or ``stray``."""
    path: Path
    reason: str
    """One line for people: why, with both numbers."""
    topic: str | None = None
    partition: int | None = None
    segment: int | None = None
    """Base offset of the segment."""
    position: int | None = None
    """Byte from which on something goes."""
    length: int | None = None
    """Bytes that go, or that are written."""
    target: Path | None = None
    offsets: tuple[int | None, int | None] = (None, None)
    """The first and the last of a range that is filled, or cannot be; of what is lost, see `loss`.
    """
    loss: Loss = field(default_factory=Loss)
    change: Change | None = None
    """None for what is no operation on a file, and where nothing is to be carried out."""

    @property
    def is_grave(self) -> bool:
        """Return whether records go, or a person should know of it before a broker starts."""
        cut = self.action == FileChange.TRUNCATE and not self.loss.only_zeros
        return self.action in GRAVE or cut or bool(self.loss)

    @property
    def first_offset(self) -> int | None:
        """Return the first offset that is lost, else that of the range that is filled."""
        lost = self.loss.first_offset
        return self.offsets[0] if lost is None else lost

    @property
    def last_offset(self) -> int | None:
        """Return the last offset that is lost, else that of the range that is filled."""
        lost = self.loss.last_offset
        return self.offsets[1] if lost is None else lost
