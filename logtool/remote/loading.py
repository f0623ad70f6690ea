"""One partition of ``__remote_log_metadata``: its records as events of remote segments, in order.

A broker whose consumer of the topic cannot read a record stops that consumer, and learns nothing
more of remote segments until it is started again (``ConsumerTask.ingestRecords``, Kafka 4.2). This
module reports such a record and goes on.
"""

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.errors import FormatError
from logtool.findings import Finding
from logtool.formats.messages import remote_log
from logtool.formats.messages.remote_log import TOPIC, RemoteEvent
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition, Segment
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import records
from logtool.remote import findings
from logtool.remote.segments import RemotePartition
from logtool.times import rfc3339

_MOST_REPORTED = 20
"""Largest number of unreadable records that are reported one by one."""
PartitionId = tuple[str, int]
"""Id of a topic, and the number of a partition."""


@dataclass(slots=True)
class MetadataLog:
    """Content of one copy of a partition of the topic."""

    listed: Partition
    log_start: int = 0
    log_end: int = 0
    leader_epoch: int = -1
    """Leader epoch of the last batch; -1 without one."""
    batches: int = 0
    records: int = 0
    log_bytes: int = 0
    unknown_records: int = 0
    """Records of a type or version that is not known."""
    keyed_records: int = 0
    tombstones: int = 0
    unreadable_records: int = 0
    first_ms: int | None = None
    """Timestamp of the first record, in ms; None without a record."""
    last_ms: int | None = None
    """Largest timestamp, in ms; None without a record."""
    partitions: dict[PartitionId, RemotePartition] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    is_cut: bool = False
    """True if the log has records after the moment of the load."""
    _keys: dict[bytes, tuple[PartitionId, str]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """Return the partition dir."""
        return self.listed.path

    @property
    def number(self) -> int:
        """Return the number of the partition."""
        return self.listed.number or 0

    @property
    def first(self) -> str | None:
        """Return the timestamp of the first record in UTC; None if no calendar has it."""
        return rfc3339(self.first_ms)

    @property
    def last(self) -> str | None:
        """Return the largest timestamp in UTC; None if no calendar has it."""
        return rfc3339(self.last_ms)

    @property
    def missing_records(self) -> int:
        """Return the number of offsets from 0 to the log end without a record that was read."""
        return max(0, self.log_end - self.records)

    @property
    def is_whole(self) -> bool:
        """Return whether every record since offset 0 was read and is understood."""
        return not (self.missing_records or self.unknown_records or self.unreadable_records)

    @property
    def rank(self) -> tuple[int, int, int]:
        """Return the numbers by which copies of a partition are compared."""
        return self.leader_epoch, self.log_end, -len(self.findings)

    def take(
        self, offset: int, key: bytes | None, value: bytes | None, path: Path, base: int
    ) -> None:
        """Apply the record at `offset`, in the log `path` with this base offset."""
        self.keyed_records += key is not None
        if value is None and key is not None:
            self.tombstones += 1
            owner = self._keys.get(key)
            if owner:
                self.partitions[owner[0]].forget(owner[1])
            return
        event = None
        try:
            if value is None:
                raise FormatError("key and value are null")
            event = remote_log.parse(value)
        except FormatError as error:
            self._unreadable(findings.unreadable_record(offset, error.reason), path, base)
            return
        if event is None:
            self.unknown_records += 1
            return
        self._apply(event, offset, key)

    def _apply(self, event: RemoteEvent, offset: int, key: bytes | None) -> None:
        partition_id = (event.topic_id, event.partition)
        partition = self.partitions.get(partition_id)
        if partition is None:
            partition = RemotePartition(event.topic, event.topic_id, event.partition)
            self.partitions[partition_id] = partition
        partition.take(event, offset, is_keyed=key is not None)
        if partition.first_record is None:
            partition.first_record = offset
        if key is not None and event.segment_id is not None:
            self._keys[key] = partition_id, event.segment_id

    def _unreadable(self, finding: Finding, path: Path, base: int) -> None:
        self.unreadable_records += 1
        if self.unreadable_records <= _MOST_REPORTED:
            self.add(finding, path, base)

    def add(self, finding: Finding, path: Path, base: int) -> None:
        """Keep a finding about a segment of this log."""
        self.findings.append(finding.placed(path, topic=TOPIC, partition=self.number, segment=base))


def load(
    listed: Partition, on_bytes: Callable[[int], None], *, at_ms: int | None = None
) -> MetadataLog:
    """Read a partition dir of the topic; UnreadableError where a file cannot be read.

    With `at_ms`, reading ends before the first record with a later timestamp, in ms.
    """
    log = MetadataLog(listed)
    if listed.segments:
        log.log_start = log.log_end = listed.segments[0].base_offset
    for segment in listed.segments:
        log.log_end = max(log.log_end, segment.base_offset)
        for chunk in segment.batches():
            if chunk.damage and not _is_torn(chunk.damage, segment):
                damage = chunk.damage
                found = findings.damaged(damage.message, damage.position, damage.length)
                log.add(found, segment.log.path, segment.base_offset)
            _read(log, chunk, segment, at_ms)
            on_bytes(int(chunk.table.size.sum()))
            if log.is_cut:
                return log
    return log


def _read(log: MetadataLog, chunk: Chunk, segment: Segment, at_ms: int | None) -> None:
    path, base = segment.log.path, segment.base_offset
    table = chunk.table
    if not len(table):
        return
    log.batches += len(table)
    log.log_bytes += int(table.size.sum())
    log.leader_epoch = max(log.leader_epoch, int(table.leader_epoch[-1]))
    log.records += table[table.is_control].records
    for part in records(chunk, np.flatnonzero(~table.is_control)):
        if isinstance(part, Unread):
            log.add(findings.damaged(part.reason, part.position, part.size), path, base)
            continue
        if at_ms is not None and (later := np.flatnonzero(part.timestamp > at_ms)).size:
            part = part.first(int(later[0]))
            log.is_cut = True
        _take(log, part, path, base)
        if log.is_cut:
            return
    log.log_end = max(log.log_end, int(table.last_offset.max()) + 1)


def _take(log: MetadataLog, table: RecordTable, path: Path, base: int) -> None:
    if not len(table.offset):
        return
    log.records += len(table.offset)
    log.log_end = max(log.log_end, int(table.offset[-1]) + 1)
    if log.first_ms is None:
        log.first_ms = int(table.timestamp[0])
    log.last_ms = max(int(table.timestamp.max()), log.last_ms or 0)
    for row, offset in enumerate(table.offset.tolist()):
        log.take(offset, table.key(row), table.value(row), path, base)


def _is_torn(damage: Damage, segment: Segment) -> bool:
    """Return whether damage at the end of the active segment is merely an unfinished write."""
    unwritten = damage.reason in (DamageReason.INCOMPLETE, DamageReason.ZEROS)
    return segment.is_active and unwritten and not damage.resynchronised
