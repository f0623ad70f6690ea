"""Ranges of a log that are no sound batch: what is wrong with them, and how that is said."""

from enum import StrEnum

from logtool.formats import _kernels, wording
from logtool.formats.record_batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MIN_ENTRY_SIZE
from logtool.lazy_dataclass import dataclass

LONGEST_STUB = 20
"""Bytes that no walk looks at: less than a size, a magic and a CRC field."""


class DamageReason(StrEnum):
    """The fault at a place where a sound batch should begin."""

    INCOMPLETE = "incomplete"
    """The file ends before the batch does."""
    SIZE = "size"
    """The size field is impossible."""
    MAGIC = "magic"
    """No format has this magic byte."""
    CRC = "crc"
    HEADER = "header"
    """The CRC that a header of Redpanda has of its own does not hold."""
    ZEROS = "zeros"
    """Zero bytes only."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A range of bytes that is no sound batch."""

    position: int
    length: int
    reason: DamageReason
    message: str
    """A sentence with what was expected and what was found."""
    resynchronised: bool
    """True if a sound batch begins right behind the damage."""
    framed: bool = False
    """True if the size field still frames exactly this one batch."""


_REASONS = {
    _kernels.BAD_SIZE: DamageReason.SIZE,
    _kernels.BAD_MAGIC: DamageReason.MAGIC,
    _kernels.BAD_CRC: DamageReason.CRC,
    _kernels.BAD_HEADER: DamageReason.HEADER,
}


def reason_of(stop: int) -> DamageReason:
    """Return the damage reason for a stop code of `_kernels.walk_batches`."""
    return _REASONS[stop]


def entry_size(head: bytes | memoryview) -> int | None:
    """Return the bytes of the entry that `head` begins by its size field; None if it has none."""
    if len(head) < LOG_OVERHEAD:
        return None
    size = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True) + LOG_OVERHEAD
    return size if size >= MIN_ENTRY_SIZE else None


def describe(head: bytes, reason: DamageReason, left: int) -> str:
    """Return the expected and the found value as text, for damage that begins with `head`.

    `left` is the number of bytes from the start of the damage to the end of the file.
    """
    size = int.from_bytes(head[8:LOG_OVERHEAD], "big", signed=True)
    if reason is DamageReason.INCOMPLETE:
        if left <= LONGEST_STUB:
            return f"the last {wording.count(left, 'byte')} cannot hold the header of a batch"
        whose = f"{size + LOG_OVERHEAD:,} bytes{_offsets_in(head)}"
        return f"of a batch of {whose} only {left:,} are there"
    if reason is DamageReason.SIZE:
        return f"size field holds {size}, but at least {HEADER_SIZE - LOG_OVERHEAD} is needed"
    if reason is DamageReason.MAGIC:
        return f"magic byte is {head[16]}, but only 0, 1 and 2 exist"
    at = 17 if head[16] == MAGIC else 12
    kind = "CRC-32C" if head[16] == MAGIC else "CRC-32"
    return f"{kind} does not match the stored {int.from_bytes(head[at : at + 4], 'big')}"


def _offsets_in(head: bytes) -> str:
    """Return the offsets in a header of magic 2 as text; an empty text without a whole header."""
    if len(head) < HEADER_SIZE or head[16] != MAGIC:
        return ""
    first = int.from_bytes(head[:8], "big", signed=True)
    last = first + int.from_bytes(head[23:27], "big", signed=True)
    return f" ({wording.offsets(first, last)})" if 0 <= first <= last else ""
