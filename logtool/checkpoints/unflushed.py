"""What a log holds that is not known to be flushed: from its recovery point to its end."""

import numpy as np

from logtool.lazy_dataclass import dataclass
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition


@dataclass(slots=True)
class Unflushed:
    """What a power failure may take from one log, and what a start after a kill reads of it."""

    log_end: int = 0
    """Offset behind the last sound batch."""
    bytes: int = 0
    """Of the log from the first batch on that ends behind the recovery point; without zeros behind
    the last batch."""
    records: int = 0
    """In the sound batches among them."""
    since_ms: int | None = None
    """Largest timestamp of the first of these batches, in ms since the epoch; None without one."""
    recovery_bytes: int = 0
    """Of the segments that a start after a kill reads, each from its first byte."""
    recovery_bytes_if: int | None = None
    """The same if the log were in segments of another size; None where none was named."""


def measure(listed: Partition, point: int, segment_bytes: int | None = None) -> Unflushed:
    """Return what lies behind the recovery `point` of a log.

    With `segment_bytes`, also how much a start would read if the log on disk were in segments of
    that size from its first byte on: an estimate, as where they would begin and end is not known.
    UnreadableError where a log cannot be read.
    """
    floor = [number for number, one in enumerate(listed.segments) if one.base_offset <= point]
    rest = listed.segments[floor[-1] if floor else 0 :]
    total = sum(segment.log.size for segment in listed.segments)
    found = Unflushed(recovery_bytes=sum(segment.log.size for segment in rest))
    before, begin = total - found.recovery_bytes, None
    for segment in rest:
        found.log_end = max(found.log_end, segment.base_offset)
        for chunk in segment.batches(payload=False):
            damage, table = chunk.damage, chunk.table
            if damage is None:
                found.log_end = max(found.log_end, int(table.last_offset[-1]) + 1)
                if begin is None:
                    table = table[int(np.count_nonzero(table.last_offset < point)) :]
                if not len(table):
                    continue
                position, size = int(table.position[0]), int(table.size.sum())
                found.records += table.records
            elif found.log_end >= point and not _is_padding(damage):
                position, size = damage.position, damage.length
            else:
                continue
            if begin is None:
                begin = before + position
                stamp = int(table.max_timestamp[0]) if len(table) else -1
                found.since_ms = stamp if stamp >= 0 else None
            found.bytes += size
        before += segment.log.size
    if segment_bytes:
        begin = total if begin is None else begin
        found.recovery_bytes_if = total - begin // segment_bytes * segment_bytes
    return found


def _is_padding(damage: Damage) -> bool:
    return damage.reason is DamageReason.ZEROS and not damage.resynchronised
