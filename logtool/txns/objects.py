"""The objects that are printed about producers, transactions and coordinators."""

from logtool.lazy_dataclass import dataclass
from logtool.log.producer_state import NONE, Producer
from logtool.times import rfc3339
from logtool.txns.coordinator import ONGOING, TOPIC, Account, TransactionalId
from logtool.txns.joining import JoinedEntry
from logtool.txns.open_transactions import (
    PartitionTransactions,
    Transaction,
    TransactionState,
    abort_command,
    ask_command,
    describe_command,
    terminate_command,
)
from logtool.txns.reasons import advice, advice_on, after_restart, older_than_the_log, reason


@dataclass(frozen=True, slots=True)
class AgeBase:
    """The time that ages are counted to, and the broker that commands are for."""

    now_ms: int
    bootstrap: str


@dataclass(frozen=True, slots=True)
class PrintedState:
    """The state of the entry of a transactional id; all None where there is no entry."""

    state: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    started_ms: int | None = None
    age_ms: int | None = None
    timeout_ms: int | None = None
    times_out_ms: int | None = None
    last_update_ms: int | None = None

    @property
    def started(self) -> str | None:
        """Return `started_ms` as a timestamp."""
        return rfc3339(self.started_ms)

    @property
    def times_out(self) -> str | None:
        """Return `times_out_ms` as a timestamp."""
        return rfc3339(self.times_out_ms)

    @property
    def last_update(self) -> str | None:
        """Return `last_update_ms` as a timestamp."""
        return rfc3339(self.last_update_ms)


@dataclass(frozen=True, slots=True)
class PrintedAccount:
    """The account of the coordinators of an open transaction."""

    account: Account
    entry: PrintedState


@dataclass(frozen=True, slots=True)
class PrintedTransaction:
    """A transaction of a partition."""

    audited: PartitionTransactions
    one: Transaction
    moment: AgeBase

    @property
    def started(self) -> str | None:
        """Return the time of its first record as a timestamp."""
        return rfc3339(self.one.started_ms)

    @property
    def advice(self) -> str | None:
        """Return a line on how the transaction ends without intervention; None if it does not."""
        return advice(self.one, self.moment.now_ms)

    @property
    def abort(self) -> str | None:
        """Return the command that aborts it; None where that may lose committed records.

        None too where the transaction is not known to hang.
        """
        place = self._place
        if not self._is_to_abort or place is None or self.advice:
            return None
        return abort_command(self.moment.bootstrap, *place, self.one.first_offset)

    @property
    def ask(self) -> str | None:
        """Return the command that asks a cluster if it hangs; None where the files answer that."""
        place = self._place
        if not self.one.is_open or self._is_to_abort or place is None or self.advice:
            return None
        return ask_command(self.moment.bootstrap, *place)

    @property
    def describe(self) -> str | None:
        """Return the command that shows what the coordinator knows; None where `ask` is None."""
        account = self.one.account
        if self.ask is None or account is None or account.transactional_id is None:
            return None
        return describe_command(self.moment.bootstrap, account.transactional_id)

    @property
    def reason(self) -> str | None:
        """Return why it hangs, or what is missing to know it; None if it is neither."""
        return reason(self.one)

    @property
    def after_restart(self) -> str | None:
        """Return the effect of a start of its application while it hangs; None if not known."""
        return after_restart(self.one, self.audited.topic, self.audited.partition)

    @property
    def _is_to_abort(self) -> bool:
        """Return whether the transaction hangs, and has no record that is known as committed."""
        account = self.one.account
        hangs = self.one.state is TransactionState.HANGING
        return hangs and not (account and account.may_be_committed)

    @property
    def _place(self) -> tuple[str, int] | None:
        """Return topic and partition for the tools of Kafka; None where they do not apply."""
        topic, partition = self.audited.topic, self.audited.partition
        # The tool of Kafka takes the offset of a client, and the log has Raft's.
        if self.audited.flavour.has_raft_offsets or topic is None or partition is None:
            return None
        return topic, partition

    @property
    def coordinator(self) -> PrintedAccount | None:
        """Return the coordinators' account of the transaction; None if no coordinator was asked."""
        account = self.one.account
        if account is None:
            return None
        entry = account.entry
        known = PrintedState() if entry is None else state_of(entry, self.moment.now_ms)
        return PrintedAccount(account, known)


@dataclass(frozen=True, slots=True)
class PrintedProducer:
    """A producer of a partition."""

    audited: PartitionTransactions
    producer_id: int
    one: Producer

    @property
    def last_sequence(self) -> int | None:
        """Return the last sequence number; None without one."""
        value = self.one.last_sequence
        return None if value == NONE else value

    @property
    def last_offset(self) -> int | None:
        """Return the last offset with data; None without one."""
        value = self.one.last_offset
        return None if value == NONE else value

    @property
    def last_timestamp_ms(self) -> int | None:
        """Return the time of the last batch or marker; None without one."""
        value = self.one.timestamp
        return None if value == NONE else value

    @property
    def last_timestamp(self) -> str | None:
        """Return the time of the last batch or marker as a timestamp; None without one."""
        value = self.one.timestamp
        return None if value == NONE else rfc3339(value)

    @property
    def coordinator_epoch(self) -> int | None:
        """Return the epoch of the coordinator of the last marker; None without a marker."""
        value = self.one.coordinator_epoch
        return None if value == NONE else value

    @property
    def transaction_first_offset(self) -> int | None:
        """Return the first offset of the open transaction; None if no transaction is open."""
        value = self.one.transaction_first_offset
        return None if value == NONE else value


@dataclass(frozen=True, slots=True)
class PrintedEntry:
    """An entry of the coordinators with how its transaction stands in its partitions."""

    joined: JoinedEntry
    moment: AgeBase
    now: PrintedState
    topic: str = TOPIC

    @property
    def previous_producer_id(self) -> int | None:
        """Return the previous producer id of the transactional id; None without one."""
        return _known(self.joined.entry.previous_producer_id)

    @property
    def next_producer_id(self) -> int | None:
        """Return the next producer id of the transactional id; None without one."""
        return _known(self.joined.entry.next_producer_id)

    @property
    def next_producer_epoch(self) -> int | None:
        """Return the epoch of the next producer id; None without one."""
        return _known(self.joined.entry.next_producer_epoch)

    @property
    def advice(self) -> str | None:
        """Return a line on how the transaction ends; None if the entry has none to end."""
        return advice_on(self.joined.entry, self.moment.now_ms, refused=self.joined.refused)

    @property
    def log_epoch(self) -> int | None:
        """Return the newest epoch of its producer in the logs, if that is newer than its own."""
        return self.joined.newer.epoch if self.joined.newer else None

    @property
    def log_epoch_in(self) -> str | None:
        """Return the partition of `log_epoch`, as topic-partition."""
        newer = self.joined.newer
        return f"{newer.topic}-{newer.partition}" if newer else None

    @property
    def contradiction(self) -> str | None:
        """Return a line on the newer epoch in the logs; None without one."""
        newer = self.joined.newer
        if newer is None:
            return None
        return older_than_the_log(self.joined.entry, newer.epoch, newer.topic, newer.partition)

    @property
    def terminate(self) -> str | None:
        """Return the command that has its coordinator abort it; None where it is not ongoing."""
        entry = self.joined.entry
        if entry.state != ONGOING:
            return None
        return terminate_command(self.moment.bootstrap, entry.transactional_id)


def printed_entry(joined: JoinedEntry, moment: AgeBase) -> PrintedEntry:
    """Return the printed object of a transactional id."""
    return PrintedEntry(joined, moment, state_of(joined.entry, moment.now_ms))


def state_of(entry: TransactionalId, now_ms: int) -> PrintedState:
    """Return how an entry stands."""
    return PrintedState(
        state=entry.state,
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        started_ms=entry.started_ms,
        age_ms=None if entry.started_ms is None else now_ms - entry.started_ms,
        timeout_ms=entry.timeout_ms,
        times_out_ms=entry.times_out_ms,
        last_update_ms=entry.last_update_ms,
    )


def _known(value: int) -> int | None:
    return None if value == NONE else value
