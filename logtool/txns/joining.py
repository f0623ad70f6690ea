"""Open transactions joined with the entries of their coordinators, in both directions.

A transaction that an entry lists ends by itself: the coordinator aborts it after its timeout, or
writes the markers that it has decided on, as soon as it runs. No coordinator ends a transaction
that no entry lists: it hangs if the log dir shows that the entry is not the older one of the two,
or that no replica has a newer entry, else if it is old. An entry may list a partition without
records, which is legal: a producer adds a partition to a transaction before it writes the first
record.

A leader refuses a marker whose epoch is older than that of its producer in the partition, and the
coordinator then gives up until it is loaded again. From transaction version 2 on the epoch goes up
with each end, and leaders of 4.2 and later refuse an equal one too, unless nothing is open: then it
was written before, and only its answer was lost. Builds between the two changes (KAFKA-19446 and
KAFKA-19999), none of them a release, refuse that one as well.
Source: ``ProducerAppendInfo.checkProducerEpoch`` (4.0.0 through 4.3.1),
``TransactionMarkerRequestCompletionHandler``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import control_record
from logtool.lazy_dataclass import dataclass
from logtool.log.flavour import Flavour
from logtool.log.producer_state import NONE, Marker, Producer
from logtool.txns import findings
from logtool.txns.coordinator import (
    PREPARE_COMMIT,
    TOPIC,
    Account,
    CoordinatorLog,
    LostEntries,
    Relation,
    TopicNumber,
    TransactionalId,
    read_each,
)
from logtool.txns.evidence import (
    TransactionEvidence,
    is_committed,
    is_counted,
    is_older,
    marker_before,
)
from logtool.txns.open_transactions import (
    MAX_AGE_MS,
    PartitionTransactions,
    Transaction,
    TransactionState,
)
from logtool.txns.reasons import why

_VERSION_2 = 2
"""Transaction version from which on the epoch goes up with each end."""
_MARKER_EPOCHS_V2 = (0, 1)
"""Distances of the epoch of a marker below the epoch of its entry. A marker that an administrator
wrote has the epoch of the records."""


class PartState(StrEnum):
    """The state of the transaction of an entry in one of its partitions."""

    OPEN = "open"
    """The transaction has records and no marker in the partition."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    NOTHING = "nothing"
    """The transaction has no record and no marker in the partition."""
    NOT_HERE = "not-here"
    """The partition was not looked at."""


@dataclass(frozen=True, slots=True)
class PartOfEntry:
    """One partition that an entry lists."""

    topic: str
    partition: int
    state: PartState


@dataclass(frozen=True, slots=True)
class NewerEpoch:
    """An epoch of a producer in the log of a partition."""

    epoch: int
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class JoinedEntry:
    """An entry with the state of its transaction in each of its partitions."""

    entry: TransactionalId
    parts: dict[TopicNumber, PartState]
    refused: bool = False
    """True if a leader refuses the marker of the transaction."""
    newer: NewerEpoch | None = None
    """The newest epoch of its producer in the logs, if it is newer than that of the entry."""

    def count(self, part: PartState) -> int:
        """Return the number of partitions in which the transaction has a state."""
        return sum(one is part for one in self.parts.values())

    @property
    def open(self) -> int:
        """Return the number of partitions in which the transaction is open."""
        return self.count(PartState.OPEN)

    @property
    def committed(self) -> int:
        """Return the number of partitions in which the transaction is committed."""
        return self.count(PartState.COMMITTED)

    @property
    def aborted(self) -> int:
        """Return the number of partitions in which the transaction is aborted."""
        return self.count(PartState.ABORTED)

    @property
    def nothing(self) -> int:
        """Return the number of partitions in which the transaction has no record and no marker."""
        return self.count(PartState.NOTHING)

    @property
    def not_here(self) -> int:
        """Return the number of partitions of the entry that were not looked at."""
        return self.count(PartState.NOT_HERE)

    @property
    def partitions(self) -> list[PartOfEntry]:
        """Return the partitions of the entry with the state of the transaction in each."""
        return [PartOfEntry(*place, part) for place, part in self.parts.items()]


@dataclass(frozen=True, slots=True)
class _Copy:
    """The data kept for the furthest copy of a partition."""

    far: tuple[int, int]
    path: Path
    open: dict[int, Transaction]
    markers: dict[int, Marker]
    """Last markers of the producers of active entries."""
    producers: dict[int, Producer]
    """States of the producers of active entries."""


@dataclass(slots=True)
class Joining:
    """The entries of all coordinators on these disks; partitions are handed to `account`."""

    logs: list[CoordinatorLog] = field(default_factory=list)
    homes: Sequence[Path] = ()
    """Log dirs whose metadata gives the number of partitions of the topic."""
    absent: list[Finding] = field(default_factory=list)
    """Findings about absent partitions of the topic."""
    _active: list[TransactionalId] = field(default_factory=list)
    _active_ids: set[int] = field(default_factory=set)
    _by_producer: dict[int, tuple[CoordinatorLog, str]] = field(default_factory=dict)
    """Log and transactional id of the entry of each producer id."""
    _newest: dict[int, NewerEpoch] = field(default_factory=dict)
    """Newest epoch of each producer id that an entry has, in the logs that were looked at."""
    _copies: dict[TopicNumber, _Copy] = field(default_factory=dict)
    _incomplete: bool | None = None
    _evidence: TransactionEvidence = field(default_factory=TransactionEvidence)

    def read(
        self, dirs: Iterable[tuple[Path, Flavour]], spend: Callable[[int], None] = lambda _: None
    ) -> Iterator[UnreadableError]:
        """Read the partition dirs of the topic; yields what cannot be read.

        `spend` is called with the bytes that were read.
        """
        for log in read_each(dirs, spend):
            if isinstance(log, UnreadableError):
                self._incomplete = True
                yield log
                continue
            self.logs.append(log)
            for entry in log.entries():
                where = log, entry.transactional_id
                self._by_producer[entry.producer_id] = where
                for other in (entry.previous_producer_id, entry.next_producer_id):
                    self._by_producer.setdefault(other, where)
                if entry.is_active:
                    self._active.append(entry)
                    self._active_ids.add(entry.producer_id)

    @property
    def is_there(self) -> bool:
        """Return whether there is a partition of the topic at all."""
        return bool(self.logs)

    def account(self, audited: PartitionTransactions) -> PartitionTransactions:
        """Return a partition whose open transactions have the account of their coordinators.

        A transaction that an entry lists does not hang, however old it is. Where the entry may be
        elsewhere, or lost, it is not known whether the transaction hangs.
        """
        if not self.is_there or audited.topic is None or audited.partition is None:
            unknown = [one.without_account for one in audited.transactions]
            return replace(audited, transactions=unknown)
        place = audited.topic, audited.partition
        accounted = [
            self._accounted(one, place, audited) if one.is_open else one
            for one in audited.transactions
        ]
        accounted.sort(
            key=lambda one: (not one.is_open, one.is_open and one.state is TransactionState.OPEN)
        )
        copy = _Copy(
            far=(audited.leader_epoch, audited.end_offset),
            path=audited.path,
            open={one.producer_id: one for one in accounted if one.is_open},
            markers={
                producer_id: audited.markers[producer_id]
                for producer_id in self._active_ids & audited.markers.keys()
            },
            producers={
                producer_id: audited.producers[producer_id]
                for producer_id in self._active_ids & audited.producers.keys()
            },
        )
        for producer_id in self._by_producer.keys() & audited.producers.keys():
            epoch, before = audited.producers[producer_id].epoch, self._newest.get(producer_id)
            if before is None or before.epoch < epoch:
                self._newest[producer_id] = NewerEpoch(epoch, *place)
        known = self._copies.get(place)
        if known is None or known.far < copy.far:
            self._copies[place] = copy
        return replace(audited, transactions=accounted)

    def _accounted(
        self, one: Transaction, place: TopicNumber, audited: PartitionTransactions
    ) -> Transaction:
        account = self._account_of(one, place, audited)
        entry, listed = account.entry, account.relation is Relation.LISTED
        if listed and _refuses(audited.producers.get(one.producer_id), entry):
            account, listed = replace(account, refused=True), False
        at_rest = True
        if account.relation is Relation.NOT_HERE:
            one = one.without_account
        if account.relation is Relation.NOT_LISTED and entry:
            account = replace(account, after_marker=marker_before(one, audited.markers, entry))
            log = next(log for log in self.logs if log.path == entry.path)
            # A copy of a running broker is of several moments.
            at_rest = log.is_clean or (log.high_watermark or 0) <= log.end_offset
            decision = log.decision_on(one.producer_id) if log.is_whole else None
            if decision and is_committed(one, audited, entry, decision):
                account = replace(account, committed_at=decision.offset)
                return replace(one, account=account, state=TransactionState.MARKER_LOST)
            # What is known of an unclean stop may be of different moments: then the age decides.
            at_one_stop = log.is_clean and log.path.parent == audited.path.parent
            if (account.lost and at_one_stop) or self._evidence.shows_hanging(
                one, audited, log, entry
            ):
                one = replace(one, state=TransactionState.HANGING)
        if listed:
            return replace(one, account=account, state=TransactionState.OPEN)
        return replace(one.unless_listed if at_rest else one, account=account)

    def _account_of(
        self, one: Transaction, place: TopicNumber, audited: PartitionTransactions
    ) -> Account:
        log, name = self._by_producer.get(one.producer_id, (None, None))
        if log is None or name is None:
            return self._account_of_earlier(one.producer_id)
        entry = log.find(name)
        lists = entry and entry.producer_id == one.producer_id and place in entry.partitions
        if lists and entry and entry.is_active:
            return Account(Relation.LISTED, name, entry)
        older = entry is not None and is_older(entry, one)
        known = Account(Relation.NOT_LISTED, name, entry, is_older=older)
        if log.lost is None:
            return known
        elsewhere = self._evidence.elsewhere(log, self.homes)
        lost = LostEntries(log.number, log.lost, elsewhere)
        if entry and older and self._evidence.is_settled(audited, log, self.homes):
            return replace(known, lost=lost, is_counted=is_counted(one, audited, log, entry))
        return replace(known, relation=Relation.NOT_HERE, lost=lost)  # a newer entry may list it

    def _account_of_earlier(self, producer_id: int) -> Account:
        for log in self.logs:
            name = log.name_of(producer_id)
            if name is not None:
                return Account(Relation.NOT_LISTED, name, log.find(name))
        return Account(Relation.NOT_HERE if self._lacks_entries() else Relation.NO_ENTRY)

    def _lacks_entries(self) -> bool:
        """Return whether an entry may stand where nothing was read."""
        if self._incomplete is None:
            here = {log.number for log in self.logs}
            self._incomplete = not all(log.is_whole for log in self.logs) or not any(
                numbers <= here for numbers in map(self._evidence.numbers, self.homes) if numbers
            )
        return self._incomplete

    def joined(self, *, every: bool = False) -> Iterator[JoinedEntry]:
        """Yield the entries whose transaction is not over, or with `every` all.

        Of those that list partitions, only where one of them was looked at.
        """
        for log in self.logs:
            found = log.entries() if every else (e for e in self._active if e.path == log.path)
            for entry in sorted(found, key=lambda entry: entry.transactional_id):
                parts = {place: self._part(entry, place) for place in sorted(entry.partitions)}
                if not parts or any(part is not PartState.NOT_HERE for part in parts.values()):
                    refused = any(_refuses(self._producer(entry, one), entry) for one in parts)
                    newest = self._newest.get(entry.producer_id)
                    is_newer = newest is not None and newest.epoch > entry.producer_epoch
                    yield JoinedEntry(entry, parts, refused, newest if is_newer else None)

    def _producer(self, entry: TransactionalId, place: TopicNumber) -> Producer | None:
        copy = self._copies.get(place)
        return copy.producers.get(entry.producer_id) if copy else None

    def _part(self, entry: TransactionalId, place: TopicNumber) -> PartState:
        copy = self._copies.get(place)
        if copy is None:
            return PartState.NOT_HERE
        if entry.producer_id in copy.open:
            return PartState.OPEN
        marker = copy.markers.get(entry.producer_id)
        if marker is None or not entry.is_prepared or not _ends(marker, entry):
            return PartState.NOTHING
        return PartState.COMMITTED if marker.type == control_record.COMMIT else PartState.ABORTED

    def findings(self) -> Iterator[Finding]:
        """Yield the findings on the topic, open transactions, and the markers of prepared ones."""
        yield from self.absent
        for log in self.logs:
            yield from log.findings
            if log.newer:
                newer = findings.newer(len(log.newer))
                yield newer.placed(log.path, topic=TOPIC, partition=log.number)
        for (topic, number), copy in sorted(self._copies.items()):
            for finding in _abandoned(copy.open.values()):
                yield finding.placed(copy.path, topic=topic, partition=number)
        for entry in self._active:
            if entry.is_prepared:
                yield from self._outcomes(entry)
                yield from self._unwritten(entry)

    def _outcomes(self, entry: TransactionalId) -> Iterator[Finding]:
        """Yield where a marker says other than its entry."""
        other = PartState.ABORTED if entry.state == PREPARE_COMMIT else PartState.COMMITTED
        for topic, number in sorted(entry.partitions):
            if self._part(entry, (topic, number)) is not other:
                continue
            copy = self._copies[topic, number]
            marker = copy.markers[entry.producer_id]
            name = control_record.name(marker.type)
            finding = findings.other_outcome(
                entry.transactional_id, entry.state, name, marker.offset
            )
            yield finding.placed(copy.path, topic=topic, partition=number)

    def _unwritten(self, entry: TransactionalId) -> Iterator[Finding]:
        """Yield where its marker is refused, or was written long before and still is to be."""
        newest = max(log.newest_ms for log in self.logs)
        waited = 0 if entry.last_update_ms is None else newest - entry.last_update_ms
        for topic, number in sorted(entry.partitions):
            producer = self._producer(entry, (topic, number))
            if producer is None:
                continue
            known = entry.transactional_id, entry.state, entry.producer_epoch
            copy = self._copies[topic, number]
            marker = copy.markers.get(entry.producer_id)
            if _refuses(producer, entry):
                first = producer.transaction_first_offset
                finding = findings.marker_refused(*known, producer.epoch, first)
            elif (
                marker is not None
                and entry.transaction_version >= _VERSION_2
                and marker.producer_epoch == entry.producer_epoch
                and waited > MAX_AGE_MS
            ):
                finding = findings.marker_repeated(*known, marker.offset, waited)
            else:
                continue
            yield finding.placed(copy.path, topic=topic, partition=number)


def _refuses(producer: Producer | None, entry: TransactionalId | None) -> bool:
    """Return whether a leader that knows the producer so refuses the marker of an entry."""
    if producer is None or entry is None or not entry.is_prepared:
        return False
    is_open = producer.transaction_first_offset != NONE
    strict = entry.transaction_version >= _VERSION_2 and is_open
    return producer.epoch > entry.producer_epoch - strict


def _abandoned(transactions: Iterable[Transaction]) -> Iterator[Finding]:
    for one in transactions:
        account = one.account
        gone = account is not None and account.relation is not Relation.LISTED
        if one.state is TransactionState.MARKER_LOST:
            yield findings.marker_lost(one.first_offset, one.producer_id, why(one, account))
        if one.state is TransactionState.HANGING and account and gone:
            yield findings.abandoned(one.first_offset, one.producer_id, why(one, account))


def _ends(marker: Marker, entry: TransactionalId) -> bool:
    """Return whether a marker is of the transaction of an entry, not of one before."""
    behind = entry.producer_epoch - marker.producer_epoch
    if entry.transaction_version >= _VERSION_2 and behind == 0:
        return True
    possible = (
        behind in _MARKER_EPOCHS_V2 if entry.transaction_version >= _VERSION_2 else behind == 0
    )
    return possible and entry.started_ms is not None and marker.timestamp >= entry.started_ms
