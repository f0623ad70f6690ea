"""The sums of one segment, for the columns of the table ``segments``."""

import numpy as np

from logtool.checks.report import SegmentReport
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.damage import DamageReason


@dataclass(slots=True)
class SegmentTotals:
    """The numbers that the table ``segments`` has of one segment, or of a piece of it."""

    read: bool = False
    batches: int = 0
    records: int = 0
    transactional_batches: int = 0
    control_batches: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None
    first_leader_epoch: int | None = None
    last_leader_epoch: int | None = None
    batch_bytes: int = 0
    largest_batch_bytes: int = 0
    damaged_ranges: int = 0
    damaged_bytes: int = 0
    unused_bytes: int = 0

    def count(self, chunk: Chunk, *, active: bool) -> None:
        """Add a chunk."""
        damage, table = chunk.damage, chunk.table
        if damage:
            if damage.reason is DamageReason.ZEROS and active and not damage.resynchronised:
                self.unused_bytes += damage.length
            else:
                self.damaged_ranges += 1
                self.damaged_bytes += damage.length
        if not len(table):
            return
        plain = chunk.plain
        # The base timestamp is not set where the batch was stamped by a broker, nor behind a
        # tombstone; `logtool stat` counts in this way, too.
        newest, oldest = table.max_timestamp, table.base_timestamp
        stamped = table.is_log_append_time | table.has_delete_horizon
        times = np.concatenate((np.where(stamped, newest, oldest), newest))
        times = times[times >= 0]
        if len(times):
            self.first_timestamp_ms = _least(self.first_timestamp_ms, int(times.min()))
            self.last_timestamp_ms = _largest(self.last_timestamp_ms, int(times.max()))
        if plain:
            self.records += plain.records
        else:
            self.records += table.records
            self.transactional_batches += int(table.is_transactional.sum())
            self.control_batches += int(table.is_control.sum())
        self.batches += len(table)
        self.batch_bytes += int(table.size.sum())
        self.largest_batch_bytes = max(self.largest_batch_bytes, int(table.size.max()))
        known = table.leader_epoch[table.leader_epoch >= 0]
        if len(known):
            if self.first_leader_epoch is None:
                self.first_leader_epoch = int(known[0])
            self.last_leader_epoch = int(known[-1])

    def complete(self, report: SegmentReport, *, read: bool) -> None:
        """Take the offsets of the report; `read` is False if not all of the log could be read."""
        self.read = read
        self.first_offset, self.last_offset = report.first_offset, report.last_offset

    def add(self, other: "SegmentTotals") -> None:
        """Add the next piece of the same segment."""
        self.read &= other.read
        if self.first_offset is None:
            self.first_offset, self.first_leader_epoch = (
                other.first_offset,
                other.first_leader_epoch,
            )
        self.last_offset = _largest(self.last_offset, other.last_offset)
        self.first_timestamp_ms = _least(self.first_timestamp_ms, other.first_timestamp_ms)
        self.last_timestamp_ms = _largest(self.last_timestamp_ms, other.last_timestamp_ms)
        if other.last_leader_epoch is not None:
            self.last_leader_epoch = other.last_leader_epoch
        self.largest_batch_bytes = max(self.largest_batch_bytes, other.largest_batch_bytes)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_SUMS = ("batches", "records", "transactional_batches", "control_batches", "batch_bytes",
         "damaged_ranges", "damaged_bytes", "unused_bytes")  # fmt: skip


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _largest(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)
