"""The entries of ``__transaction_state``: each transactional id as its coordinator left it.

For a key the last record counts, and a null value deletes the key, compacted or not; the producer
ids of earlier records are kept, because such a producer may have left a transaction open.
Source: ``TransactionLog``, ``TransactionMetadata``, ``TransactionState``,
``TransactionStateManager.loadTransactionMetadata`` (Kafka 3.9 and 4.3).
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np

from logtool.disk.files import LogFile
from logtool.errors import FormatError, UnreadableError
from logtool.findings import Finding
from logtool.formats.messages import internal_topics
from logtool.formats.messages.codec import Value
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition, Segment
from logtool.log.flavour import Flavour
from logtool.log.producer_state import NONE
from logtool.log.record_table import RecordTable, Unread
from logtool.log.records import records
from logtool.txns import findings

TOPIC: Final = "__transaction_state"
_STATES = internal_topics.TRANSACTION_STATES
ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT = _STATES[1:5]
ACTIVE = frozenset({*_STATES[1:4], *_STATES[6:]})
"""States in which a transaction is not over."""
_HEAD = struct.Struct(">hq")
"""Version and producer id: what every known version of a value begins with."""
_STATUS = struct.Struct(">6xb")
"""Epoch and timeout, and then the state: what follows `_HEAD` in every known version."""
_DECIDED = (2, 3)
"""Numbers of PrepareCommit and PrepareAbort."""
_KNOWN_VERSIONS = (0, 1)
_TRANSACTIONAL_ID = b"\x00\x00"
"""First bytes of a key of the only known type."""
_LEFT_BEHIND = (DamageReason.INCOMPLETE, DamageReason.ZEROS)
TopicNumber = tuple[str, int]


@dataclass(frozen=True, slots=True)
class TransactionalId:
    """One transactional id. Times are in ms; an id that does not exist is -1."""

    transactional_id: str
    path: Path
    """Directory of the partition with the entry."""
    number: int
    """Number of the partition with the entry."""
    offset: int
    state: str
    producer_id: int
    producer_epoch: int
    """In PREPARE states that of the markers; transaction version 2 raises it there."""
    previous_producer_id: int
    next_producer_id: int
    next_producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    last_update_ms: int | None
    transaction_version: int
    """Transaction version of the client: 2 gives each transaction its own epoch."""
    partitions: frozenset[TopicNumber]

    @property
    def is_active(self) -> bool:
        """Return whether its transaction is not over."""
        return self.state in ACTIVE

    @property
    def is_prepared(self) -> bool:
        """Return whether it is decided how it ends, and the markers are being written."""
        return self.state in (PREPARE_COMMIT, PREPARE_ABORT)

    @property
    def times_out_ms(self) -> int | None:
        """Return when its coordinator aborts it; None where it does not."""
        waits = self.state == ONGOING and self.started_ms is not None
        if not waits or self.started_ms is None or self.timeout_ms == findings.NO_TIMEOUT:
            return None
        return self.started_ms + self.timeout_ms


class Relation(StrEnum):
    """The account of the coordinators of an open transaction."""

    LISTED = "listed"
    """An entry has its producer id and this partition: it will be ended."""
    NOT_LISTED = "not-listed"
    """A transactional id has or had its producer id, and no open transaction here."""
    NO_ENTRY = "no-entry"
    """No entry of the whole topic has its producer id."""
    NOT_HERE = "not-here"
    """No entry that could be read has it, but some partitions of the topic are elsewhere."""


@dataclass(frozen=True, slots=True)
class LostEntries:
    """The entries that a partition of the topic has lost at its end."""

    number: int
    """Number of the partition."""
    offsets: range
    elsewhere: tuple[int, ...] | None
    """Nodes whose replicas may have the entries; None if no metadata names the replicas."""


@dataclass(frozen=True, slots=True)
class Account:
    """The relation of one open transaction to the entries of the coordinators."""

    relation: Relation
    transactional_id: str | None = None
    entry: TransactionalId | None = None
    """The last one of this id; None where its key is known alone, or nothing."""
    refused: bool = False
    """True if the leader of the partition refuses the marker that would end the transaction."""
    after_marker: int | None = None
    """Offset of a marker that shows that the transaction began after that of a complete entry."""
    is_older: bool = False
    """True if the entry has an older epoch than the transaction: newer entries are lost."""
    is_counted: bool = False
    """True if the batches account for every lost entry, so that none of them ends it."""
    lost: LostEntries | None = None
    """The entries that the log of the entry has lost."""
    committed_at: int | None = None
    """Offset of the entry that committed the transaction, whose marker the partition has lost."""

    @property
    def will_end(self) -> bool:
        """Return whether its client or its coordinator ends the transaction."""
        return self.relation is Relation.LISTED and self.entry is not None and not self.refused

    @property
    def ends_by_itself(self) -> bool:
        """Return whether the coordinator ends the transaction even if its client does not."""
        entry = self.entry if self.will_end else None
        return entry is not None and (entry.is_prepared or entry.times_out_ms is not None)

    @property
    def may_be_committed(self) -> bool:
        """Return whether an abort may lose records that the coordinator has committed.

        The entry is committed, and the transaction may be the one of the entry, without a marker.
        Or a lost entry may have committed the transaction.
        """
        if self.relation is not Relation.NOT_LISTED or self.entry is None:
            return False
        if self.is_older:
            return not self.is_counted
        return self.entry.state == COMPLETE_COMMIT and self.after_marker is None


@dataclass(slots=True)
class CoordinatorLog:
    """One copy of a partition of the topic, read to its end."""

    path: Path
    number: int
    leader_epoch: int = NONE
    """Leader epoch of the last batch."""
    end_offset: int = 0
    high_watermark: int | None = None
    """From replication-offset-checkpoint of the log dir."""
    newest_ms: int = NONE
    """Largest timestamp in it, by the clocks of the brokers that led it."""
    latest: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """Offset and value by key."""
    earlier: dict[int, bytes] = field(default_factory=dict)
    """Key by producer id: of records that a later one replaced."""
    decisions: dict[int, tuple[int, bytes, bytes]] = field(default_factory=dict)
    """Offset, key and value of the last record by producer id that decided on a transaction."""
    newer: set[int] = field(default_factory=set)
    """Offsets of records whose type or version is not known."""
    is_whole: bool = True
    """True if the whole log could be read."""
    lost: range | None = None
    """Offsets of acknowledged entries that the log has lost at its end."""
    is_clean: bool = False
    """True if its broker stopped in order."""
    is_lost_exactly: bool = False
    """True if the log ended where `lost` ends; else it may have been longer."""
    is_whole_before: bool = True
    """True if everything before the lost end could be read."""
    copies: list[tuple[Path, int]] = field(default_factory=list)
    """Directory and log end of each copy that was read."""
    findings: list[Finding] = field(default_factory=list)

    def take(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Take the next record."""
        if key is None or key[:2] != _TRANSACTIONAL_ID:
            try:
                if internal_topics.decode_key(TOPIC, key).data is None:
                    self.newer.add(offset)
            except FormatError as error:
                self._add(findings.unreadable_record(offset, error.reason))
            return
        before = self.latest.pop(key, None)
        if before and len(before[1]) >= _HEAD.size:
            version, producer_id = _HEAD.unpack_from(before[1])
            if version in _KNOWN_VERSIONS:
                self.earlier[producer_id] = key
        if value is not None:
            self.latest[key] = (offset, value)
            if len(value) >= _HEAD.size + _STATUS.size:
                version, producer_id = _HEAD.unpack_from(value)
                (status,) = _STATUS.unpack_from(value, _HEAD.size)
                if version in _KNOWN_VERSIONS and status in _DECIDED:
                    self.decisions[producer_id] = (offset, key, value)

    def entries(self) -> Iterator[TransactionalId]:
        """Yield the latest entry of each id; a record that cannot be read adds to `findings`."""
        for key, (offset, value) in self.latest.items():
            entry = self._decoded(key, offset, value)
            if entry:
                yield entry

    def find(self, transactional_id: str) -> TransactionalId | None:
        """Return the entry of a transactional id."""
        name = transactional_id.encode()
        key = _TRANSACTIONAL_ID + len(name).to_bytes(2, "big") + name
        return self._decoded(key, *self.latest[key]) if key in self.latest else None

    def decision_on(self, producer_id: int) -> TransactionalId | None:
        """Return the last entry of a producer id that decided how a transaction ends."""
        found = self.decisions.get(producer_id)
        return self._decoded(found[1], found[0], found[2]) if found else None

    def name_of(self, producer_id: int) -> str | None:
        """Return the transactional id that had a producer id before."""
        key = self.earlier.get(producer_id)
        if key is None:
            return None
        try:
            data = internal_topics.decode_key(TOPIC, key).data
        except FormatError:
            return None
        return None if data is None else str(data["transactionalId"])

    def damage(self, damage: Damage, segment: Segment) -> None:
        """Add damage between the batches, unless it is a tail that an unclean stop leaves."""
        at_end = segment.is_active and damage.position + damage.length >= segment.log.size
        if not (at_end and damage.reason in _LEFT_BEHIND):
            text = damage.message
            self._add(findings.damaged(text, damage.position, damage.length), segment)

    def unread(self, batch: Unread, segment: Segment) -> None:
        """Add a batch whose records cannot be read."""
        self._add(findings.damaged(batch.reason, batch.position, batch.size), segment)

    def lose_end(self, lost: range, was: str) -> None:
        """Take that these offsets are not there any more; `was` says what shows where they ended.

        They were acknowledged, or the broker had flushed them.
        """
        self.lost, self.is_whole_before = lost, self.is_whole and not self.newer
        self._add(findings.lost_end(lost, was))

    @property
    def has_lost_end(self) -> bool:
        """Return whether the log has lost acknowledged entries at its end."""
        return self.lost is not None

    def _decoded(self, key: bytes, offset: int, value: bytes) -> TransactionalId | None:
        try:
            found_key = internal_topics.decode_key(TOPIC, key)
            found = internal_topics.decode_value(TOPIC, found_key.type, value)
        except FormatError as error:
            self._add(findings.unreadable_record(offset, error.reason))
            return None
        if found.data is None or found_key.data is None:
            self.newer.add(offset)
            self.is_whole = False
            return None
        return self._entry(found_key.data["transactionalId"], offset, found.data)

    def _entry(self, transactional_id: str, offset: int, data: Value) -> TransactionalId:
        status = data["transactionStatus"]
        listed = data["transactionPartitions"] or ()
        return TransactionalId(
            transactional_id=transactional_id,
            path=self.path,
            number=self.number,
            offset=offset,
            state=internal_topics.transaction_state(status) or str(status),
            producer_id=data["producerId"],
            producer_epoch=data["producerEpoch"],
            previous_producer_id=data.get("previousProducerId", NONE),
            next_producer_id=data.get("nextProducerId", NONE),
            next_producer_epoch=data.get("nextProducerEpoch", NONE),
            timeout_ms=data["transactionTimeoutMs"],
            started_ms=_time(data["transactionStartTimestampMs"]),
            last_update_ms=_time(data["transactionLastUpdateTimestampMs"]),
            transaction_version=data.get("clientTransactionVersion", 0),
            partitions=frozenset(
                (topic["topic"], number) for topic in listed for number in topic["partitionIds"]
            ),
        )

    def _add(self, finding: Finding, segment: Segment | None = None) -> None:
        self.is_whole = False
        path = segment.log.path if segment else self.path
        base = segment.base_offset if segment else None
        placed = finding.placed(path, topic=TOPIC, partition=self.number, segment=base)
        if placed not in self.findings:  # an entry may be looked at again
            self.findings.append(placed)


def read_each(
    dirs: Iterable[tuple[Path, Flavour]], spend: Callable[[int], None] = lambda _: None
) -> Iterator[CoordinatorLog | UnreadableError]:
    """Yield the log of each partition of the topic, of several copies only the furthest.

    `spend` is called with the bytes that were read, and may end it with an error. A partition dir
    or segment that cannot be read yields its `UnreadableError`.
    """
    best: dict[int, CoordinatorLog] = {}
    copies: dict[int, list[tuple[Path, int]]] = {}
    for path, flavour in dirs:
        listed = opening.try_partition(path, flavour)
        if isinstance(listed, UnreadableError):
            yield listed
            continue
        log = CoordinatorLog(path=path, number=listed.number or 0)
        yield from _read(log, listed, spend)
        log.copies = copies.setdefault(log.number, [])
        log.copies.append((path, log.end_offset))
        other = best.get(log.number)
        if other is None or _far(other) < _far(log):
            best[log.number] = log
    yield from (best[number] for number in sorted(best))


def _far(log: CoordinatorLog) -> tuple[int, int]:
    return log.leader_epoch, log.end_offset


def _read(
    log: CoordinatorLog, listed: Partition, spend: Callable[[int], None]
) -> Iterator[UnreadableError]:
    for segment in listed.segments:
        try:
            with segment.log.open() as file:
                _read_segment(log, segment, file, spend)
        except UnreadableError as error:
            log.is_whole = False
            yield error


def _read_segment(
    log: CoordinatorLog, segment: Segment, file: LogFile, spend: Callable[[int], None]
) -> None:
    for chunk in segment.batches(file):
        spend(int(chunk.table.size.sum()))
        if len(chunk.table):
            log.leader_epoch = int(chunk.table.leader_epoch[-1])
            log.end_offset = int(chunk.table.last_offset[-1]) + 1
            log.newest_ms = max(log.newest_ms, int(chunk.table.max_timestamp.max()))
        if chunk.damage:
            log.damage(chunk.damage, segment)
        for found in records(chunk, np.flatnonzero(~chunk.table.is_control), source=file):
            if isinstance(found, Unread):
                log.unread(found, segment)
            else:
                _take(log, found)


def _take(log: CoordinatorLog, table: RecordTable) -> None:
    data, spans = table.data, table.spans
    for offset, key, key_size, value, value_size in zip(
        table.offset.tolist(),
        spans.key_position.tolist(),
        spans.key_length.tolist(),
        spans.value_position.tolist(),
        spans.value_length.tolist(),
        strict=True,
    ):
        log.take(
            offset,
            None if key_size < 0 else bytes(data[key : key + key_size]),
            None if value_size < 0 else bytes(data[value : value + value_size]),
        )


def _time(value: int) -> int | None:
    return None if value < 0 else value
