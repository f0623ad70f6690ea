"""Producers and transactions: how they are read and look, and the last line about them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Columns, Object, columns, keep
from logtool.commands.printing.writers import TableColumn as Shown
from logtool.commands.program import parsing
from logtool.exits import Exit
from logtool.log.producer_state import NONE, Producer
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, count, offset, timed
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING
from logtool.txns.objects import AgeBase, PrintedProducer, PrintedTransaction, printed_entry
from logtool.txns.open_transactions import MAX_AGE_MS, PartitionTransactions
from logtool.txns.run import TransactionsRun

_NO_NAME = "the directory is not named TOPIC-NUMBER"
_NO_ENTRY = "no entry is known"
_IN_PLACE = (
    Column("path", Kind.PATH, "the partition dir, or the log", value="audited.path"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME, value="audited.topic"),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME,
           value="audited.partition"),
)  # fmt: skip


_PARTITION = Table("partition", "partition", (
    Column("path", Kind.PATH, "the partition dir, or the log"),
    Column("topic", Kind.STRING, "name of the topic", null=_NO_NAME),
    Column("partition", Kind.INT32, "number of the partition", null=_NO_NAME),
    count("segments", "segments"),
    offset("first_offset", "base offset of the first segment", None, "start_offset"),
    offset("log_end_offset", "end of the log", None, "end_offset"),
    offset("high_watermark", "high watermark in replication-offset-checkpoint",
           "the checkpoint has no row of the partition"),
    offset("last_stable_offset", "offset up to which consumers with read_committed can read once "
           "all records are replicated"),
    Column("pinned_by", Kind.INT64, "id of the producer whose open transaction holds back the last "
           "stable offset", null="no transaction is open"),
    count("producers", "producers known at the end of the log", "producer_count"),
    count("open", "transactions without a marker, including hanging ones", "open_count"),
    count("hanging", "transactions that have been open for longer than a coordinator allows",
          "hanging_count"),
    count("aborted", "transactions that were aborted", "aborted_count"),
    count("committed", "transactions that were committed", "committed_count"),
    Column("damaged", Kind.BOOL, "whether damage may have destroyed a marker"),
), note="One partition: the numbers of producers and transactions in its log.",
    type="partition", made_from="logtool.txns.open_transactions:PartitionTransactions")  # fmt: skip


def _entry_state(of: str, null: str | None) -> tuple[Column, ...]:
    """Return the columns of the state of an entry; with `null` there may be no entry."""

    def null_or(why: str) -> str:
        return why if null is None else f"{null}, or {why}"

    def timed_state(name: str, meaning: str, why: str) -> Iterator[Column]:
        for one in timed(name, meaning, null_or(why)):
            yield replace(one, value=f"{of}.{one.name}")

    return (
        Column("state", Kind.STRING, "state of the entry, as kafka-transactions.sh prints it",
               null=null, value=f"{of}.state"),
        Column("producer_id", Kind.INT64, "id of the producer in the entry", null=null,
               value=f"{of}.producer_id"),
        Column("producer_epoch", Kind.INT16, "epoch of the producer in the entry", null=null,
               value=f"{of}.producer_epoch"),
        *timed_state("started_ms", "time at which the transaction began",
                     "no transaction has begun"),
        Column("age_ms", Kind.INT64, "time since the transaction began", "ms",
               null_or("no transaction has begun"), value=f"{of}.age_ms"),
        Column("timeout_ms", Kind.INT64, "time after which the coordinator aborts a transaction",
               "ms", null, value=f"{of}.timeout_ms"),
        *timed_state("times_out_ms", "time at which the coordinator aborts the transaction",
                     "the entry has no such time"),
        *timed_state("last_update_ms", "time of the last change of the entry",
                     "the entry has no such time"),
    )  # fmt: skip


_ACCOUNT = Table("account", "open transaction that was looked up in __transaction_state", (
    Column("relation", Kind.STRING, "relation of the entries to the transaction; listed: an entry "
           "lists the transaction and the coordinator will end it; not-listed: the entry of the "
           "producer does not list the transaction; no-entry: no entry has the producer; not-here: "
           "the entry may be in a partition of __transaction_state that was not given",
           words=("listed", "not-listed", "no-entry", "not-here"),
           value="account.relation"),
    Column("transactional_id", Kind.STRING, "transactional id of the producer",
           null="not known", value="account.transactional_id"),
    *_entry_state("entry", _NO_ENTRY),
), note="An open transaction according to the entries of __transaction_state.",
    made_from="logtool.txns.objects:PrintedAccount")  # fmt: skip
_TRANSACTION = Table("transaction", "transaction in a partition", (
    *_IN_PLACE,
    Column("state", Kind.STRING, "state of the transaction; hanging: open for longer than a "
           "coordinator allows; unknown: open for as long, but the state of its coordinator was "
           "not read or is lost", words=("open", "hanging", "unknown", "aborted", "committed"),
           value="one.state"),
    Column("producer_id", Kind.INT64, "id of the producer", value="one.producer_id"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer in the first batch",
           null="the first batch is missing", value="one.producer_epoch"),
    offset("first_offset", "first offset of the transaction", None, "one.first_offset"),
    offset("last_offset", "offset of the marker; if the transaction is open, offset of the last "
           "batch",
           "the transaction is open and the last batch is missing", "one.last_offset"),
    Column("started_ms", Kind.INT64, "time of the first record, set by the client",
           "ms since 1970", "the first batch or its time is missing", value="one.started_ms"),
    Column("started", Kind.TIMESTAMP, "started_ms as a timestamp", "UTC",
           "started_ms is null, or outside the range of a timestamp"),
    Column("age_ms", Kind.INT64, "time since the first record", "ms",
           "the transaction has ended, or started_ms is null", value="one.age_ms"),
    Column("pins_last_stable_offset", Kind.BOOL, "whether the transaction holds back the last "
           "stable offset",
           value="one.pins"),
    Column("abort", Kind.STRING, "command line that aborts the transaction on a broker",
           null="the transaction is not known to hang, or no such command is known"),
    Column("ask", Kind.STRING, "command line that asks a running cluster whether the transaction "
           "hangs",
           null="the transaction hangs or has ended, its coordinator will end it, or no such "
           "command is known"),
    Column("advice", Kind.STRING, "how the transaction ends by itself",
           null="the transaction has ended, or it is not known that a coordinator will end it"),
    Column("coordinator", Kind.OBJECT, "entry of the coordinator in __transaction_state",
           null="the transaction has ended, or __transaction_state was not read", of=_ACCOUNT),
), note="One transaction. An open transaction has advice (if its coordinator will end it), the "
        "command that aborts it (if it hangs), or the command that asks a cluster about it.",
    type="transaction", made_from="logtool.txns.objects:PrintedTransaction")  # fmt: skip
_ENTRY_PARTITION = Table("entry_partition", "partition that an entry lists", (
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("state", Kind.STRING, "state of the transaction in the partition; not-here: the "
           "partition was not read",
           words=("open", "committed", "aborted", "nothing", "not-here")),
), made_from="logtool.txns.joining:PartOfEntry")  # fmt: skip
_COORDINATOR = Table("coordinator", "transactional id", (
    Column("path", Kind.PATH, "the partition dir of __transaction_state",
           value="joined.entry.path"),
    Column("topic", Kind.STRING, "name of the topic", words=("__transaction_state",)),
    Column("partition", Kind.INT32, "number of the partition of __transaction_state",
           value="joined.entry.number"),
    offset("offset", "offset of the last record of the transactional id", None,
           "joined.entry.offset"),
    Column("transactional_id", Kind.STRING, "the transactional id",
           value="joined.entry.transactional_id"),
    *_entry_state("now", None),
    Column("previous_producer_id", Kind.INT64, "previous producer id of the transactional id",
           null="the entry has no such value"),
    Column("next_producer_id", Kind.INT64, "next producer id of the transactional id",
           null="the entry has no such value"),
    Column("next_producer_epoch", Kind.INT16, "next producer epoch of the transactional id",
           null="the entry has no such value"),
    Column("transaction_version", Kind.INT16, "transaction version of the client; from 2 on each "
           "transaction has an epoch of its own",
           value="joined.entry.transaction_version"),
    count("open", "partitions in which the transaction is open", "joined.open"),
    count("committed", "partitions in which the transaction is committed", "joined.committed"),
    count("aborted", "partitions in which the transaction is aborted", "joined.aborted"),
    count("nothing", "partitions without a trace of the transaction", "joined.nothing"),
    count("not_here", "partitions that were not read", "joined.not_here"),
    Column("partitions", Kind.OBJECT, "partitions that the entry lists", value="joined.partitions",
           of=_ENTRY_PARTITION, many=True),
    Column("advice", Kind.STRING, "what the coordinator will do to end the transaction",
           null="there is no transaction to end"),
    Column("terminate", Kind.STRING, "command line that makes the coordinator abort the "
           "transaction",
           null="the transaction is not ongoing"),
), note="One transactional id in __transaction_state, from its last record. In each of its "
        "partitions the transaction is open, ended by a marker, or absent, or the "
        "partition was not read.",
    type="coordinator", made_from="logtool.txns.objects:PrintedEntry")  # fmt: skip
_PRODUCER = Table("producer", "producer in a partition", (
    *_IN_PLACE,
    Column("producer_id", Kind.INT64, "id of the producer"),
    Column("producer_epoch", Kind.INT16, "epoch of the producer", value="one.epoch"),
    Column("last_sequence", Kind.INT32, "last sequence number", null="the entry has no such value"),
    offset("last_offset", "last offset with data", "the entry has no such value"),
    *timed("last_timestamp_ms", "time of the last batch or marker", "the entry has no such value"),
    Column("coordinator_epoch", Kind.INT32, "epoch of the coordinator that wrote the last marker",
           null="the producer has no marker"),
    offset("transaction_first_offset", "first offset of the open transaction",
           "no transaction is open"),
), note="The state of one producer at the end of the log.",
    type="producer", made_from="logtool.txns.objects:PrintedProducer")  # fmt: skip
DOCUMENT: Final = Document(
    name="txns",
    title="Objects that logtool txns prints",
    tables=(_PARTITION, _TRANSACTION, _COORDINATOR, _PRODUCER, FINDING),
)
SCHEMA = DOCUMENT.schema
_ROWS = (
    *columns(
        "type", "path", "topic", "partition", "state", "producer_id", "producer_epoch",
        "first_offset", "last_offset", "started_ms", "started", "age_ms",
        "pins_last_stable_offset", "abort", "ask", "last_sequence", "last_timestamp_ms",
        "last_timestamp", "coordinator_epoch",
    ),
    Shown(
        "transactional_id",
        lambda obj: obj.get("transactional_id") or _said(obj, "transactional_id"),
    ),
    Shown("coordinator", lambda obj: _said(obj, "relation")),
    Shown("coordinator_state", lambda obj: _said(obj, "state")),
    *columns("advice", "open", "committed", "aborted", "nothing", "not_here", "terminate"),
)  # fmt: skip
_PRODUCER_TABLE = columns(
    "producer_id", "producer_epoch", "last_sequence", "last_offset", "last_timestamp",
    "coordinator_epoch", "transaction_first_offset",
)  # fmt: skip
_TRANSACTION_TABLE = keep((
    *columns("state", "producer_id", "producer_epoch", "first_offset", "last_offset", "started"),
    Shown("age", lambda obj: _age(obj["age_ms"])),
    Shown("what_to_do", lambda obj: obj["abort"] or obj["ask"]),
), "state", "producer_id", "first_offset", "age")  # fmt: skip
_JOINED_TABLE = keep((
    *columns("state"),
    Shown("transactional_id", lambda obj: _said(obj, "transactional_id")),
    Shown("coordinator", lambda obj: _said(obj, "state") or _said(obj, "relation")),
    *columns("producer_id", "producer_epoch", "first_offset", "last_offset", "started"),
    Shown("age", lambda obj: _age(obj["age_ms"])),
    Shown("what_to_do", lambda obj: obj["advice"] or obj["abort"] or obj["ask"]),
), "state", "transactional_id", "first_offset", "what_to_do")  # fmt: skip
"""Columns of an open transaction that was compared with its coordinators."""
_COORDINATOR_TABLE = keep((
    *columns("transactional_id", "state", "producer_id", "producer_epoch"),
    Shown("age", lambda obj: _age(obj["age_ms"])),
    *columns("open", "committed", "aborted", "nothing", "not_here"),
    Shown("what_to_do", lambda obj: obj["advice"]),
), "transactional_id", "state", "what_to_do")  # fmt: skip


def run(
    inputs: options.AnyInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    every: bool,
    only_open: bool,
    now: str | None,
    max_age: str | None,
    bootstrap: str,
) -> Exit:
    """Print the producers and transactions of partitions; return the exit status.

    `every` adds transactions that are over, and `only_open` leaves out all but open ones.
    """
    settings, summary, given = printing.settings(), ActionSummary(), inputs.of_one_cluster()
    now_ms, meaning = parsing.now_ms(), None
    if now is not None:
        now_ms, meaning = parsing.parse_moment("--now", now)
    report = Report(settings=settings, view=make(settings), summary=summary, inputs=given)
    job = TransactionsRun(
        paths=given.paths,
        now_ms=now_ms,
        max_age_ms=_max_age_ms(max_age),
        selection=given.selection,
        run=running.run(report), summary=summary, flavour=given.flavour,
    )  # fmt: skip
    moment = AgeBase(now_ms, bootstrap)
    printer = TransactionPrinter(report, summary, job, moment, every=every, only_open=only_open)
    if meaning:
        report.note(meaning, "dim")
    return report.consume(job, printer)


def _max_age_ms(max_age: str | None) -> int:
    if max_age is None:
        return MAX_AGE_MS
    return round(parsing.parse_duration("--max-age", max_age) * 1000)


def make(settings: OutputSettings) -> View:
    """Return the view of `txns`."""

    def layout(obj: Object) -> Columns | str | None:
        kind = obj["type"]
        if kind == "partition":
            return _heading(obj)
        if kind == "finding":
            return _finding(obj, settings)
        if kind == "transaction":
            return _TRANSACTION_TABLE if obj["coordinator"] is None else _JOINED_TABLE
        return {"producer": _PRODUCER_TABLE, "coordinator": _COORDINATOR_TABLE}.get(kind)

    return View(
        schema=SCHEMA,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset({"producer", "transaction", "coordinator"}),
    )


class TransactionPrinter(Printer[PartitionTransactions]):
    """Prints partition after partition, and counts.

    A table is for people: it begins with the partitions that have open transactions, and leaves out
    producers, and partitions, that have nothing to do with transactions.
    """

    def __init__(
        self,
        report: Report,
        summary: ActionSummary,
        job: TransactionsRun,
        moment: AgeBase,
        *,
        every: bool,
        only_open: bool,
    ) -> None:
        self._report = report
        self._summary = summary
        self._job = job
        self._joining = job.joining
        self._moment = moment
        self._every = every
        self._only_open = only_open
        self._in_table = report.settings.format in ("table", "markdown")
        self._shortened = self._in_table and not every
        self._later: list[list[Object]] = []
        """Objects of each partition without open transactions, which a table shows later."""
        self._left_out = 0
        self._states: Counter[str] = Counter()
        self._damaged = 0

    def show(self, item: PartitionTransactions) -> None:
        """Print one partition, in a table maybe later: its findings, transactions, producers."""
        self._damaged += item.damaged
        self._states.update(transaction.state for transaction in item.transactions)
        for finding in item.findings:
            self._summary.add(finding)
        objects = list(self._objects(item))
        if self._shortened and not item.open:
            self._later.append(objects)
        else:
            self._print(objects)

    def finish(self) -> None:
        """Print the postponed partitions, then the findings and the entries of the coordinators."""
        self._summary.to_do = self._states["hanging"] + self._states["unknown"] > 0
        for objects in self._later:
            self._print(objects)
        for finding in self._joining.findings():
            self._summary.add(finding)
            self._report.item(FINDING.row(finding))
        entries = self._joining.joined(every=self._every)
        self._print(_COORDINATOR.row(printed_entry(one, self._moment)) for one in entries)

    def _print(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            self._report.item(obj)

    def _objects(self, audited: PartitionTransactions) -> Iterator[Object]:
        """Yield the objects to print for a partition; nothing if it has none worth a place."""
        findings = [FINDING.row(finding) for finding in audited.findings]
        transactions = [one for one in audited.transactions if self._every or one.is_open]
        producers = {} if self._only_open else audited.producers
        if self._shortened:
            there = len(producers)
            producers = {i: one for i, one in producers.items() if _is_transactional(one)}
            self._left_out += there - len(producers)
        news = bool(findings or transactions)
        if not self._only_open:
            always = not self._in_table or self._report.settings.verbose
            # Most topics of most clusters have none of this.
            news |= always or audited.damaged or bool(audited.transactions or producers)
        if not news:
            return
        yield DOCUMENT.row(audited)
        yield from findings
        for transaction in transactions:
            yield _TRANSACTION.row(PrintedTransaction(audited, transaction, self._moment))
        for producer_id, producer in producers.items():
            yield _PRODUCER.row(PrintedProducer(audited, producer_id, producer))

    def last_lines(self) -> Iterator[Line]:
        """Yield the last lines for people, each with its style."""
        if self._left_out:
            count = text.count(self._left_out, "producer")
            yield f"{count} without transactions not shown (--all shows them)", "dim"
        if self._damaged:
            where = text.count(self._damaged, "partition")
            yield f"{where} with damage: a marker may be lost; see logtool verify", "warning"
        if not self._job.is_listed:
            missing = "transactions in absent partitions of __transaction_state are not known"
            yield f"no file here lists the partitions that should exist: {missing}", "warning"
        if unknown := self._states["unknown"]:
            lost = "is lost or not here" if self._joining.is_there else "was not read"
            ones = text.count(unknown, "open transaction")
            yield f"{ones}: the coordinator's state {lost}, so not known to hang or not", "warning"
        hanging = self._states["hanging"]
        parts = [
            text.count(self._summary.partitions, "partition"),
            f"{sum(self._states[one] for one in ('open', 'hanging', 'unknown')):,} open",
            f"{hanging:,} hanging",
            f"{self._states['aborted']:,} aborted",
            f"{self._states['committed']:,} committed",
        ]
        findings = sum(self._summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        complete = self._summary.complete
        style = "good" if complete and not (hanging or findings) else "warning"
        yield text.state(self._summary) + ", ".join(parts), style


def _is_transactional(producer: Producer) -> bool:
    """Return whether the log shows that a producer has begun or ended a transaction."""
    return producer.coordinator_epoch != NONE or producer.transaction_first_offset != NONE


def _heading(obj: Object) -> str:
    stable = f"last stable offset {obj['last_stable_offset']}"
    if obj["pinned_by"] is not None:
        stable += f", held back by producer {obj['pinned_by']}"
    parts = [
        text.extent(obj["first_offset"], obj["log_end_offset"]),
        stable,
        f"{obj['open']} open, {obj['aborted']} aborted, {obj['committed']} committed",
    ]
    if obj["damaged"]:
        parts.append("DAMAGED: a marker may be lost")
    return f"{text.escape(obj['path'])}: {'; '.join(parts)}"


def _finding(obj: Object, settings: OutputSettings) -> str:
    severity = obj["severity"]
    label = terminal.paint_stdout(severity.upper(), severity, settings.color)
    return f"{label} {obj['code']}  {text.escape(str(obj['path']))}  {text.escape(obj['message'])}"


def _age(age_ms: int | None) -> str | None:
    """Return an age for people."""
    return None if age_ms is None else text.duration(max(age_ms, 0) / 1000)


def _said(obj: Object, key: str) -> Any:
    """Return a field of the coordinators' entry for an open transaction; None without an entry."""
    return (obj.get("coordinator") or {}).get(key)
