"""Damage of a log with its file and the offsets that may stand there."""

from collections.abc import Iterator
from pathlib import Path

from logtool.errors import FormatError
from logtool.formats import record_batch
from logtool.formats.record_batch import BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk, Source
from logtool.log.damage import Damage, DamageReason, entry_size
from logtool.log.dir import Segment
from logtool.log.record_table import Unread
from logtool.log.records import one_batch

_FRONT = 26
"""Bytes that the smallest entry of any magic has."""


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """Bytes of a log that are no sound batch, or a sound batch whose records do not decode."""

    path: Path
    position: int
    """First byte in the file."""
    length: int
    """Bytes."""
    reason: str
    """``incomplete``, ``size``, ``magic``, ``crc``, ``header``, ``zeros``, or ``records`` for a
    sound batch whose records do not decode, or exceed the limit of memory for one batch."""
    message: str
    """Expected and found values."""
    first_offset: int
    """First offset that may stand there."""
    last_offset: int | None
    """Last offset that may stand there; None where nothing follows in the partition."""


class DamageError(FormatError):
    """Damage in a log that was opened with ``damage="raise"``; `damage` says where."""

    def __init__(self, damage: DamagedBytes) -> None:
        super().__init__(damage.message, damage.position, damage.path)
        self.damage = damage


def of_records(part: Unread, path: Path) -> DamagedBytes:
    """Return a batch whose records cannot be read as damage of the log `path`."""
    return DamagedBytes(
        path=path,
        position=part.position,
        length=part.size,
        reason="records",
        message=part.reason,
        first_offset=part.first_offset,
        last_offset=part.last_offset,
    )


def chunks_and_damage(
    segment: Segment, source: Source, *, payload: bool = True
) -> Iterator[Chunk | DamagedBytes]:
    """Yield the chunks of sound batches in order, and the damage between them.

    `source` is the opened log of the segment. UnreadableError.
    """
    waiting: list[Damage] = []
    expected = segment.base_offset
    for chunk in segment.batches(source, payload=payload):
        if chunk.damage:
            waiting.append(chunk.damage)  # until the offset behind it is known
            continue
        end = int(chunk.table[:1].first_offset[0])
        yield from (_located(one, segment, expected, end) for one in waiting)
        waiting.clear()
        expected = int(chunk.table.last_offset[-1]) + 1
        yield chunk
    end_offset = segment.next_base_offset
    yield from (_located(one, segment, expected, end_offset) for one in waiting)


def framed(segment: Segment, source: Source, damage: DamagedBytes) -> BatchTable:
    """Return the header of a damaged batch of Kafka, or no row.

    There is a row if a CRC is wrong and the size field frames exactly the damage. Other fields of
    that header may be wrong.
    """
    head = memoryview(bytearray(_FRONT))
    source.read_into(head, damage.position)
    is_framed = entry_size(head) == damage.length <= LARGEST_BUFFERED_BATCH
    if damage.reason != DamageReason.CRC or not is_framed or segment.flavour.has_raft_offsets:
        return record_batch.empty_table()
    data = memoryview(bytearray(damage.length))
    source.read_into(data, damage.position)
    return one_batch(data, damage.position).table


def _located(damage: Damage, segment: Segment, first: int, end: int | None) -> DamagedBytes:
    return DamagedBytes(
        path=segment.log.path,
        position=damage.position,
        length=damage.length,
        reason=str(damage.reason),
        message=damage.message,
        first_offset=first,
        last_offset=None if end is None else end - 1,
    )
