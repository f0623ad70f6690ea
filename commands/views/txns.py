"""How producers and transactions look, and the last line about them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from logtool.commands import output
from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Column, Columns, Object, columns, keep
from logtool.commands.views import coordinators
from logtool.commands.views.coordinators import age
from logtool.dump.values import or_null
from logtool.log.producer_state import NONE
from logtool.log.redpanda import REDPANDA
from logtool.schemas.tables import FINDING
from logtool.times import rfc3339

if TYPE_CHECKING:
    from logtool.log.producer_state import Producer
    from logtool.txns.joining import Joining
    from logtool.txns.open_transactions import PartitionTransactions, Transaction

SCHEMA = "logtool.txns/1"
_ROWS = columns(
    "type", "path", "topic", "partition", "state", "producer_id", "producer_epoch",
    "first_offset", "last_offset", "started_ms", "started", "age_ms", "pins_last_stable_offset",
    "abort", "last_sequence", "last_timestamp_ms", "last_timestamp", "coordinator_epoch",
)  # fmt: skip
_ROWS = (
    *_ROWS,
    Column(
        "transactional_id",
        lambda obj: obj.get("transactional_id") or _said(obj, "transactional_id"),
    ),
    Column("coordinator", lambda obj: _said(obj, "relation")),
    Column("coordinator_state", lambda obj: _said(obj, "state")),
    *columns("advice", "open", "committed", "aborted", "nothing", "not_here", "terminate"),
)
_PRODUCER = columns(
    "producer_id", "producer_epoch", "last_sequence", "last_offset", "last_timestamp",
    "coordinator_epoch", "transaction_first_offset",
)  # fmt: skip
_TRANSACTION = keep((
    *columns("state", "producer_id", "producer_epoch", "first_offset", "last_offset", "started"),
    Column("age", lambda obj: age(obj["age_ms"])),
    *columns("abort"),
), "state", "producer_id", "first_offset", "age")  # fmt: skip
_JOINED = keep((
    *columns("state"),
    Column("transactional_id", lambda obj: _said(obj, "transactional_id")),
    Column("coordinator", lambda obj: _said(obj, "state") or _said(obj, "relation")),
    *columns("producer_id", "producer_epoch", "first_offset", "last_offset", "started"),
    Column("age", lambda obj: age(obj["age_ms"])),
    Column("what_to_do", lambda obj: obj["advice"] or obj["abort"]),
), "state", "transactional_id", "first_offset", "what_to_do")  # fmt: skip
"""Of an open transaction whose coordinators were asked."""


def make(settings: OutputSettings) -> View:
    """Return the view of `txns`."""

    def layout(obj: Object) -> Columns | str | None:
        kind = obj["type"]
        if kind == "partition":
            return _heading(obj)
        if kind == "finding":
            return _finding(obj, settings)
        if kind == "transaction":
            return _TRANSACTION if obj["coordinator"] is None else _JOINED
        return {"producer": _PRODUCER, "coordinator": coordinators.ENTRY}.get(kind)

    return View(
        schema=SCHEMA,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset({"producer", "transaction", "coordinator"}),
    )


class Printer:
    """Prints partition after partition, and counts.

    A table is for people: it begins with the partitions that have open transactions, and leaves out
    producers, and partitions, that have nothing to do with transactions.
    """

    def __init__(
        self,
        report: Report,
        bootstrap: str,
        now_ms: int,
        *,
        every: bool = False,
        only_open: bool = False,
    ) -> None:
        self._report = report
        self._bootstrap = bootstrap
        self._now_ms = now_ms
        self._every = every
        self._only_open = only_open
        self._in_table = report.settings.format in ("table", "markdown")
        self._shortened = self._in_table and not every
        self._later: list[list[Object]] = []
        """What a table has of partitions without open transactions."""
        self._left_out = 0
        self.states: Counter[str] = Counter()
        self.damaged = 0

    def show(self, audited: "PartitionTransactions") -> None:
        """Print one partition, in a table maybe later: its findings, transactions, producers."""
        self.damaged += audited.damaged
        self.states.update(transaction.state for transaction in audited.transactions)
        for finding in audited.findings:
            self._report.summary.add(finding)
        objects = list(self._objects(audited))
        if self._shortened and not audited.open:
            self._later.append(objects)
        else:
            self._print(objects)

    def finish(self, joining: "Joining") -> None:
        """Print what was held back, and what the coordinators say of their own."""
        for objects in self._later:
            self._print(objects)
        for finding in joining.findings():
            self._report.summary.add(finding)
            self._report.item(FINDING.row(finding))
        entries = joining.joined(every=self._every)
        self._print(coordinators.of_entry(one, self._bootstrap, self._now_ms) for one in entries)

    def _print(self, objects: Iterable[Object]) -> None:
        for obj in objects:
            self._report.item(obj)

    def _objects(self, audited: "PartitionTransactions") -> Iterator[Object]:
        """Yield what is printed of a partition."""
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
        yield _partition(audited)
        yield from findings
        for transaction in transactions:
            yield _transaction(audited, transaction, self._bootstrap, self._now_ms)
        for producer_id, producer in producers.items():
            yield _producer(audited, producer_id, producer)

    def last_lines(self) -> Iterator[tuple[str, str | None]]:
        """Yield what is said in the end, for people, and its style."""
        if self._left_out:
            count = text.count(self._left_out, "producer")
            yield f"{count} without transactions not shown (--all shows them)", "dim"
        if self.damaged:
            where = text.count(self.damaged, "partition")
            yield f"{where} damaged: a marker may be lost there, see logtool verify", "warning"
        hanging = self.states["hanging"]
        parts = [
            text.count(self._report.summary.partitions, "partition"),
            f"{self.states['open'] + hanging:,} open",
            f"{hanging:,} hanging",
            f"{self.states['aborted']:,} aborted",
            f"{self.states['committed']:,} committed",
        ]
        findings = sum(self._report.summary.codes.values())
        parts += [text.count(findings, "finding")] if findings else []
        complete = self._report.summary.complete
        style = "good" if complete and not (hanging or findings) else "warning"
        yield text.state(self._report.summary) + ", ".join(parts), style


def _partition(audited: "PartitionTransactions") -> dict[str, Any]:
    pinning = next((t for t in audited.open if t.pins), None)
    return {
        "type": "partition",
        "path": str(audited.path),
        "topic": audited.topic,
        "partition": audited.partition,
        "segments": audited.segments,
        "first_offset": audited.start_offset,
        "log_end_offset": audited.end_offset,
        "high_watermark": audited.high_watermark,
        "last_stable_offset": audited.last_stable_offset,
        "pinned_by": pinning.producer_id if pinning else None,
        "producers": len(audited.producers),
        "open": len(audited.open),
        "hanging": sum(t.state == "hanging" for t in audited.open),
        "aborted": sum(t.state == "aborted" for t in audited.transactions),
        "committed": sum(t.state == "committed" for t in audited.transactions),
        "damaged": audited.damaged,
    }


def _transaction(
    audited: "PartitionTransactions", transaction: "Transaction", bootstrap: str, now_ms: int
) -> dict[str, Any]:
    from logtool.txns.joining import advice
    from logtool.txns.open_transactions import abort_command

    command, by_itself = None, advice(transaction.account, now_ms)
    alone = transaction.is_open and by_itself is None and audited.flavour is not REDPANDA
    if alone and audited.topic is not None and audited.partition is not None:
        command = abort_command(
            bootstrap, audited.topic, audited.partition, transaction.first_offset
        )
    return {
        "type": "transaction",
        "path": str(audited.path),
        "topic": audited.topic,
        "partition": audited.partition,
        "state": str(transaction.state),
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "first_offset": transaction.first_offset,
        "last_offset": transaction.last_offset,
        "started_ms": transaction.started_ms,
        "started": rfc3339(transaction.started_ms),
        "age_ms": transaction.age_ms,
        "pins_last_stable_offset": transaction.pins,
        "abort": command,
        "advice": by_itself,
        "coordinator": coordinators.of_account(transaction.account, now_ms),
    }


def _producer(
    audited: "PartitionTransactions", producer_id: int, producer: "Producer"
) -> dict[str, Any]:
    return {
        "type": "producer",
        "path": str(audited.path),
        "topic": audited.topic,
        "partition": audited.partition,
        "producer_id": producer_id,
        "producer_epoch": producer.epoch,
        "last_sequence": or_null(producer.last_sequence),
        "last_offset": or_null(producer.last_offset),
        "last_timestamp_ms": or_null(producer.timestamp),
        "last_timestamp": rfc3339(or_null(producer.timestamp)),
        "coordinator_epoch": or_null(producer.coordinator_epoch),
        "transaction_first_offset": or_null(producer.transaction_first_offset),
    }


def _is_transactional(producer: "Producer") -> bool:
    """Return whether a producer has begun or ended a transaction, as far as the log tells."""
    return producer.coordinator_epoch != NONE or producer.transaction_first_offset != NONE


def _heading(obj: Object) -> str:
    stable = f"last stable offset {obj['last_stable_offset']}"
    if obj["pinned_by"] is not None:
        stable += f", pinned by producer {obj['pinned_by']}"
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
    label = output.paint_stdout(severity.upper(), severity, settings.color)
    return f"{label} {obj['code']}  {text.escape(str(obj['path']))}  {text.escape(obj['message'])}"


def _said(obj: Object, key: str) -> Any:
    """Return what the coordinators say of an open transaction."""
    return (obj.get("coordinator") or {}).get(key)
