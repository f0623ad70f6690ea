"""Producers and transactions: how they are read and look, and the last line about them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Columns, Object, below, columns, keep
from logtool.commands.printing.writers import TableColumn as Shown
from logtool.commands.program import parsing
from logtool.commands.views.txns_tables import COORDINATOR, DOCUMENT, PRODUCER, TRANSACTION
from logtool.exits import Exit
from logtool.log.producer_state import NONE, Producer
from logtool.running.summary import ActionSummary
from logtool.schemas.tables import FINDING
from logtool.txns.objects import AgeBase, PrintedProducer, PrintedTransaction, printed_entry
from logtool.txns.open_transactions import MAX_AGE_MS, PartitionTransactions
from logtool.txns.run import TransactionsRun

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
_OPEN = ("open", "hanging", "unknown", "marker-lost")
_MORE = "more"
"""Type of a line for people below the transactions of a partition."""
_EPOCH = Shown("epoch", lambda obj: obj["producer_epoch"])
_WHAT_TO_DO = (
    Shown("what_to_do", lambda obj: obj["advice"] or _by_command(obj)),
    below("command", lambda obj: None if obj["advice"] else obj["abort"] or obj["ask"]),
)
_TRANSACTION_TABLE = keep((
    *columns("state", "producer_id"),
    _EPOCH,
    *columns("first_offset", "last_offset", "started"),
    Shown("age", lambda obj: _age(obj["age_ms"])),
    *_WHAT_TO_DO,
), "state", "producer_id", "epoch", "first_offset", "age")  # fmt: skip
_JOINED_TABLE = keep((
    *columns("state"),
    Shown("transactional_id", lambda obj: _said(obj, "transactional_id")),
    *columns("producer_id"),
    _EPOCH,
    *columns("first_offset"),
    Shown("coordinator", lambda obj: _said(obj, "state") or _said(obj, "relation")),
    *columns("last_offset", "started"),
    Shown("age", lambda obj: _age(obj["age_ms"])),
    *_WHAT_TO_DO,
), "state", "transactional_id", "producer_id", "epoch", "what_to_do")  # fmt: skip
"""Columns of an open transaction that was compared with its coordinators. The first offset gives
way to a long text: the heading has that of the oldest transaction, and the command to abort one."""
_COORDINATOR_TABLE = keep((
    *columns("transactional_id", "state", "producer_id"),
    _EPOCH,
    Shown("age", lambda obj: _age(obj["age_ms"])),
    *columns("open", "committed", "aborted", "nothing", "not_here"),
    Shown("what_to_do", lambda obj: obj["contradiction"] or obj["advice"]),
), "transactional_id", "state", "producer_id", "epoch", "what_to_do")  # fmt: skip


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
        is_now_given=now is not None,
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
        if kind == _MORE:
            return f"  {text.escape(obj['line'])}"
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
        self._damaged = self._unread = 0

    def show(self, item: PartitionTransactions) -> None:
        """Print one partition, in a table maybe later: its findings, transactions, producers."""
        self._damaged += item.damaged
        self._unread += item.unread
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
        self._summary.to_do = any(
            self._states[one] for one in ("hanging", "unknown", "marker-lost")
        )
        for objects in self._later:
            self._print(objects)
        for finding in self._joining.findings():
            self._summary.add(finding)
            self._report.item(FINDING.row(finding))
        entries = self._joining.joined(every=self._every)
        self._print(COORDINATOR.row(printed_entry(one, self._moment)) for one in entries)

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
        more: list[str] = []
        for transaction in transactions:
            row = TRANSACTION.row(PrintedTransaction(audited, transaction, self._moment))
            more += _more(row)
            yield row
        if self._in_table:
            yield from ({"type": _MORE, "line": line} for line in dict.fromkeys(more))
        for producer_id, producer in producers.items():
            yield PRODUCER.row(PrintedProducer(audited, producer_id, producer))

    def last_lines(self) -> Iterator[Line]:
        """Yield the last lines for people, each with its style."""
        if self._left_out:
            count = text.count(self._left_out, "producer")
            yield f"{count} without transactions not shown (--all shows them)", "dim"
        if self._damaged:
            where = text.count(self._damaged, "partition")
            yield f"{where} with damage: a marker may be lost; see logtool verify", "warning"
        if self._unread:
            where = text.count(self._unread, "partition")
            yield f"{where} not read as a whole: a marker there is not known", "warning"
        if not self._job.is_listed:
            missing = "transactions in absent partitions of __transaction_state are not known"
            yield f"no file here lists the partitions that should exist: {missing}", "warning"
        if unknown := self._states["unknown"]:
            lost = "is lost or not here" if self._joining.is_there else "was not read"
            ones = text.count(unknown, "open transaction")
            yield f"{ones}: the coordinator's state {lost}, so not known to hang or not", "warning"
        if committed := self._states["marker-lost"]:
            ones = text.count(committed, "committed transaction")
            yield f"{ones} without the marker, which the log has lost: do not abort", "warning"
        hanging = self._states["hanging"]
        parts = [
            text.count(self._summary.partitions, "partition"),
            f"{sum(self._states[one] for one in _OPEN):,} open",
            f"{hanging:,} hanging",
            f"{self._states['aborted']:,} aborted",
            f"{self._states['committed']:,} committed",
        ]
        findings = sum(self._summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        complete = self._summary.complete
        style = "good" if complete and not (hanging or findings) else "warning"
        yield text.state(self._summary) + ", ".join(parts), style


def _more(row: Object) -> Iterator[str]:
    """Yield the lines below the row of a transaction; a finding has the reason of a hanging one."""
    lines = row["reason"] if row["state"] == "unknown" else None, row["describe"]
    yield from filter(None, (*lines, row["after_restart"]))


def _is_transactional(producer: Producer) -> bool:
    """Return whether the log shows that a producer has begun or ended a transaction."""
    return producer.coordinator_epoch != NONE or producer.transaction_first_offset != NONE


def _heading(obj: Object) -> str:
    stable = f"last stable offset {obj['last_stable_offset']}"
    if obj["pinned_by"] is not None:
        stable += f", held back by producer {obj['pinned_by']}"
    later = obj["last_stable_offset_later"]
    if later != obj["last_stable_offset"]:
        where = "the log end" if later == obj["log_end_offset"] else later
        stable += f", and moves to {where} by itself"
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


def _by_command(obj: Object) -> str | None:
    """Return the effect of the command of an open transaction; None without a command."""
    if _said(obj, "may_be_committed") and obj["state"] == "hanging":
        return "ask the cluster; save its records before you abort it"
    return "abort it" if obj["abort"] else "ask the cluster" if obj["ask"] else None


def _age(age_ms: int | None) -> str | None:
    """Return an age for people."""
    return None if age_ms is None else text.duration(max(age_ms, 0) / 1000)


def _said(obj: Object, key: str) -> Any:
    """Return a field of the coordinators' entry for an open transaction; None without an entry."""
    return (obj.get("coordinator") or {}).get(key)
