"""Output of `retention --key`: a row for each file that holds the key and each end of it there."""

import base64
from collections.abc import Iterator, Sequence

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views.retention_key_tables import COPIES, COPY
from logtool.commands.views.retention_tables import DOCUMENT
from logtool.dump.selecting import parse_bytes
from logtool.erasure.forecast import ErasureOptions, KeyCopy
from logtool.erasure.run import ErasureRun
from logtool.exits import Exit
from logtool.lazy_dataclass import dataclass
from logtool.retention import settings as retention_settings
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.times import rfc3339


def run(
    inputs: options.LocalInputs,
    running: options.Running,
    printing: options.Printing,
    *,
    at: str,
    changed: list[str],
    key: str,
) -> Exit:
    """Print where records with the key lie, and when each is gone; return the exit status."""
    dirs = inputs.node_dirs()
    chosen, given = printing.settings(), inputs.of_one_cluster([one.path for one in dirs])
    start_ms, meaning = parsing.parse_moment("--at", at)
    view = View(
        schema=DOCUMENT.schema,
        columns=columns(*COPY.names(Way.CSV)),
        layout=lambda obj: _SHOWN if obj["type"] == "copy" else _error(obj),
        row_types=frozenset({COPY.name}),
        sparse=True,
    )
    summary = Summary(found=0)
    report = Report(settings=chosen, view=view, summary=summary, inputs=given)
    wanted = parse_bytes("--key", key)
    job = ErasureRun(
        dirs,
        ErasureOptions(
            key=wanted,
            start_ms=start_ms,
            changed=retention_settings.parse_change(changed),
            static=inputs.broker.take(*retention_settings.ALL_FROM_FILE),
        ),
        summary,
        selection=given.selection,
        run=running.run(report),
        flavour=given.flavour,
    )
    total = CopyTotal(ShownKey(wanted), start_ms)
    printer = KeyPrinter(report, job, total, meaning if at != "now" else None)
    return report.consume(job, printer)


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key, as JSON shows it."""

    key: bytes | None

    @property
    def size(self) -> int | None:
        """Return its bytes; None for records without a key."""
        return None if self.key is None else len(self.key)

    @property
    def utf8(self) -> str | None:
        """Return the key as text; None if it is not UTF-8."""
        try:
            return None if self.key is None else self.key.decode()
        except UnicodeDecodeError:
            return None

    @property
    def base64(self) -> str | None:
        """Return the bytes of a key that is not UTF-8."""
        hidden = self.key is None or self.utf8 is not None
        return None if hidden else base64.b64encode(self.key or b"").decode("ascii")


@dataclass(slots=True)
class CopyTotal:
    """The sums of a run."""

    key: ShownKey
    start_ms: int
    copies: int = 0
    records: int = 0
    staying_records: int = 0
    files: int = 0
    hidden: int = 0
    latest_ms: int | None = None
    """The latest time at which a copy that does not stay is gone, in ms."""
    is_whole: bool = False
    """True if everything could be read."""
    topics_known: bool = False

    @property
    def gone_ms(self) -> int | None:
        """Return the time from which on all are gone, in ms."""
        is_known = self.is_whole and not self.staying_records
        return self.latest_ms if is_known else None

    @property
    def gone(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.gone_ms)

    @property
    def start(self) -> str | None:
        """Return the start in UTC."""
        return rfc3339(self.start_ms)


class KeyPrinter(Printer[KeyCopy | Object]):
    """Prints copies as they come, and adds them up."""

    def __init__(
        self, report: Report, job: ErasureRun, total: CopyTotal, meaning: str | None
    ) -> None:
        self._report, self._job, self._total, self._meaning = report, job, total, meaning

    def show(self, item: KeyCopy | Object) -> None:
        """Print one copy, or damage in its place."""
        total = self._total
        if not isinstance(item, KeyCopy):
            total.hidden += 1
            self._report.item(item)
            return
        total.copies += 1
        total.records += item.records
        if item.gone_ms is None:
            total.staying_records += item.records
        else:
            total.latest_ms = max(item.gone_ms, total.latest_ms or item.gone_ms)
        self._report.item(COPY.row(item))

    def finish(self) -> None:
        """Print the sums."""
        total = self._total
        total.files, total.topics_known = self._job.files, self._job.knows_topics
        total.is_whole = self._report.summary.complete and not total.hidden
        self._report.item(COPIES.row(total))

    def last_lines(self) -> Iterator[Line]:
        """Yield the doubts, and how many copies there are until when."""
        total = self._total
        if self._meaning:
            yield self._meaning, "dim"
        if not total.topics_known:
            yield "no metadata log was given: settings of topics are not known", "warning"
        if total.hidden:
            places = text.count(total.hidden, "damaged place")
            yield f"the key may also be in {places}", "error"
        where = f"in {text.count(total.files, 'file')}"
        if not total.copies:
            doubt = "" if total.is_whole else "; not everything could be read"
            yield f"no record with the key was found {where}{doubt}", None
            return
        line = f"{text.count(total.records, 'record')} with the key {where}"
        if total.staying_records:
            line += f"; {text.count(total.staying_records, 'record stays', 'records stay')}"
        elif total.gone_ms is not None:
            line += f"; all are gone at {str(total.gone)[:19].replace('T', ' ')} UTC"
        yield line, None


def _error(obj: Object) -> str | None:
    if obj["type"] != "error" or obj["position"] is None:
        return None
    return text.escape(f"!! {obj['path']}: byte {obj['position']}: {obj['message']}")


def _offsets(obj: Object) -> str:
    first, last = obj["first_offset"], obj["last_offset"]
    return str(first) if first == last else f"{first} to {last}"


def _kind(obj: Object) -> str:
    words = ("tombstone", obj["is_tombstone"]), ("below the log start", obj["is_below_start"])
    return ", ".join(word for word, holds in words if holds)


def _gone(obj: Object) -> str:
    if obj["gone_ms"] is None:
        return "never"
    return str(obj["gone"])[:16].replace("T", " ") if obj["gone"] else "after the year 9999"


_COLUMNS: Sequence[TableColumn] = (
    TableColumn("file", lambda obj: "/".join(obj["path"].rsplit("/", 2)[-2:])),
    TableColumn("records", lambda obj: obj["records"]),
    TableColumn("offsets", _offsets),
    TableColumn("kind", _kind),
    TableColumn("gone", _gone),
    TableColumn("rule", lambda obj: obj["rule"]),
    TableColumn("stays", lambda obj: obj["obstacle"]),
    TableColumn("node", lambda obj: obj["node"]),
)
_SHOWN = keep(_COLUMNS, "file", "records", "offsets", "gone", "stays")
