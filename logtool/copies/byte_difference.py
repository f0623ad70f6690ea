"""The bytes of damage in one copy, compared with those of another copy at the same offsets."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from logtool.copies.batches import CopyBatch, DamagedRange
from logtool.formats.compression import name as codec_name
from logtool.formats.record_batch import CODEC_MASK, HEADER, HEADER_SIZE, MAGIC
from logtool.formats.redpanda import record_batch as redpanda_batch
from logtool.lazy_dataclass import dataclass
from logtool.log import records
from logtool.log.chunk import LARGEST_BUFFERED_BATCH
from logtool.log.damage import entry_size
from logtool.log.dir import Segment
from logtool.log.record_table import Unread

_BLOCK = 1 << 20
_LEGACY = {"base_offset": 0, "size": 8, "crc": 12, "magic": 16, "attributes": 17, "timestamp": 18}
"""First byte of each field that a message of magic 0 or 1 has in front of its key."""
Spend = Callable[[int], None]
"""Called with the number of bytes that were read."""


@dataclass(frozen=True, slots=True)
class ByteDifference:
    """The first byte at which a damaged batch differs from the same batch in another copy.

    It lies in a field of the header, in a record, or in compressed records, which name none.
    """

    position: int
    """Byte in the log of the damaged copy."""
    header_field: str | None = None
    record_offset: int | None = None
    codec: str | None = None
    """Codec of the records; None for a byte of the header, and for records without compression."""


class CopyBytes:
    """The bytes of the segments of one copy."""

    def __init__(self, segments: Sequence[Segment], spend: Spend) -> None:
        self._segments = {segment.base_offset: segment for segment in segments}
        self._spend = spend

    def read(self, segment: int, position: int, length: int) -> bytes:
        """Return bytes of the segment with this base offset; UnreadableError."""
        with self._segments[segment].log.open() as file:
            data = file.read(position, length)
        self._spend(len(data))
        return data

    def has_raft_offsets(self, segment: int) -> bool:
        """Return whether Redpanda wrote the segment with this base offset."""
        return self._segments[segment].flavour.has_raft_offsets


def has_same(damages: Sequence[DamagedRange], copies: Sequence[CopyBytes]) -> bool:
    """Return whether all copies have the same bytes in these ranges; UnreadableError."""
    for damage in damages:
        for at in range(0, damage.length, _BLOCK):
            size = min(_BLOCK, damage.length - at)
            blocks = [one.read(damage.segment, damage.position + at, size) for one in copies]
            if any(one != other for one, other in pairwise(blocks)):
                return False
    return True


def difference(
    damage: DamagedRange, own: CopyBytes, batch: CopyBatch, other: CopyBytes
) -> ByteDifference | None:
    """Return where the damage first differs from a sound batch of another copy.

    None unless it begins with a batch of the same offset and size. UnreadableError.
    """
    of_redpanda = own.has_raft_offsets(damage.segment)
    is_buffered = batch.size <= min(damage.length, LARGEST_BUFFERED_BATCH)
    if not is_buffered or of_redpanda != other.has_raft_offsets(batch.segment):
        return None
    data = own.read(damage.segment, damage.position, batch.size)
    sound = other.read(batch.segment, batch.position, batch.size)
    if len(data) != len(sound) or not _is_same_batch(damage, data, batch, of_redpanda=of_redpanda):
        return None
    pairs = np.frombuffer(data, np.uint8) != np.frombuffer(sound, np.uint8)
    unequal = np.flatnonzero(pairs)
    if not len(unequal):
        return None
    at = int(unequal[0])
    place = damage.position + at
    if not of_redpanda and sound[16] < MAGIC:
        return _in_message(sound, at, place, batch)
    names = _starts(redpanda_batch.HEADERS if of_redpanda else HEADER)
    if at < HEADER_SIZE:
        return ByteDifference(place, header_field=_field(names, at))
    attributes = sound[names["attributes"] + (0 if of_redpanda else 1)]
    if attributes & CODEC_MASK:
        return ByteDifference(place, codec=codec_name(attributes & CODEC_MASK))
    if of_redpanda:
        head = redpanda_batch.parse(memoryview(sound))
        sound = redpanda_batch.to_kafka(head, term=0) + sound[HEADER_SIZE:]
    return ByteDifference(place, record_offset=_record_at(sound, at))


def _record_at(sound: bytes, at: int) -> int | None:
    """Return the offset of the record that has the byte `at` of a batch; None if none has it."""
    chunk = records.one_batch(memoryview(sound))
    first = int(chunk.table.base_offset[0])
    for spans in records.batch_spans(chunk, 0):
        if isinstance(spans, Unread) or not len(spans):
            return None
        ends = spans.position + spans.size
        row = int(np.searchsorted(ends, at - HEADER_SIZE, side="right"))
        if row < len(spans):
            return first + int(spans.offset_delta[row])
    return None


def _is_same_batch(
    damage: DamagedRange, data: bytes, batch: CopyBatch, *, of_redpanda: bool
) -> bool:
    """Return whether damage begins with a batch of this offset and size, as far as it shows."""
    first = damage.first_offset
    has_size = damage.length == batch.size
    if of_redpanda:
        header = redpanda_batch.parse(memoryview(data))
        first = first if first == batch.base_offset else header.base_offset
        return first == batch.base_offset and (has_size or header.size == batch.size)
    if first != batch.base_offset:
        first = int.from_bytes(data[:8], "big", signed=True)
    return first == batch.base_offset and (has_size or entry_size(data) == batch.size)


def _in_message(sound: bytes, at: int, place: int, batch: CopyBatch) -> ByteDifference:
    """Return the difference in an entry of magic 0 or 1: one message, or a compressed wrapper."""
    key = 18 if sound[16] == 0 else 26
    if at < key:
        return ByteDifference(place, header_field=_field(_LEGACY, at))
    codec = sound[17] & CODEC_MASK
    if codec:
        return ByteDifference(place, codec=codec_name(codec))
    return ByteDifference(place, record_offset=batch.base_offset)


def _starts(header: np.dtype[np.void]) -> dict[str, int]:
    """Return the first byte of each field of a header."""
    return {name: place[1] for name, place in (header.fields or {}).items()}


def _field(starts: Mapping[str, int], at: int) -> str:
    """Return the field of a header that has the byte `at`."""
    return max((start, name) for name, start in starts.items() if start <= at)[1]
