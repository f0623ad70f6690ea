"""Output of `retention --key`: a row for each file that holds the key and each end of it there."""

import base64
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.program import parsing
from logtool.commands.program.broker_config import BrokerConfig
from logtool.commands.program.node_configs import NodeConfigs
from logtool.commands.views.retention_key_lines import (
    COLUMNS,
    CopyLines,
    moment,
    offsets_in,
    shown_error,
)
from logtool.commands.views.retention_key_tables import COPIES, COPY
from logtool.commands.views.retention_tables import DOCUMENT
from logtool.dump.selecting import parse_bytes
from logtool.erasure.forecast import ErasureOptions, KeyCopy
from logtool.erasure.run import ErasureRun
from logtool.erasure.states import ReadableBy
from logtool.exits import Exit
from logtool.formats.names import TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.retention import settings as retention_settings
from logtool.running.summary import Summary
from logtool.schemas.columns import Way
from logtool.times import rfc3339


def run(
    inputs: options.LocalInputs,
    configs: Sequence[BrokerConfig],
    running: options.Running,
    printing: options.Printing,
    *,
    at: str,
    changed: list[str],
    key: str,
) -> Exit:
    """Print where records with the key lie, and when each is gone; return the exit status."""
    files = NodeConfigs(configs)
    if files and not inputs.paths and inputs.files_from is None and not inputs.null:
        inputs = replace(inputs, paths=files.log_dirs())
    dirs = inputs.node_dirs()
    chosen, given = printing.settings(), inputs.of_one_cluster([one.path for one in dirs])
    given = replace(given, config=files or None)
    start_ms, meaning = parsing.parse_moment("--at", at)
    is_narrow = terminal.width_of(sys.stdout, wide=chosen.wide) is not None
    view = View(
        schema=DOCUMENT.schema,
        columns=columns(*COPY.names(Way.CSV)),
        layout=lambda obj: COLUMNS if obj["type"] == "copy" else shown_error(obj),
        lines={"table": CopyLines().of} if is_narrow else {},
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
        ),
        summary,
        selection=given.selection,
        run=running.run(report),
        flavour=given.flavour,
        static_of=lambda node: files.take(node, retention_settings.ALL_FROM_FILE),
    )
    files.require()
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
    assumed: Mapping[str, str] = field(default_factory=dict)
    """Kafka's defaults on which an end rests, because the file of a broker was not given."""
    assumed_nodes: Sequence[int | None] = ()
    """Ids of these brokers; None for one that is not known."""

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
        self._readable: dict[TopicPartition, dict[int | None, set[int]]] = {}
        """Offsets that a consumer gets, by partition and by the broker that leads it."""

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
        if item.readable_by != ReadableBy.NONE:
            home = item.file.directory
            nodes = self._readable.setdefault((home.topic, home.partition), {})
            nodes.setdefault(item.node, set()).update(item.offsets)
        self._report.item(COPY.row(item))

    def finish(self) -> None:
        """Print the sums."""
        total = self._total
        total.files, total.topics_known = self._job.files, self._job.knows_topics
        total.assumed = dict(sorted(self._job.assumed.items()))
        total.assumed_nodes = self._job.assumed_nodes
        total.is_whole = self._report.summary.complete and not total.hidden
        self._report.item(COPIES.row(total))

    def last_lines(self) -> Iterator[Line]:
        """Yield the doubts, and how many copies there are until when."""
        total = self._total
        if self._meaning:
            yield self._meaning, "dim"
        if not total.topics_known:
            yield "no metadata log was given: settings of topics are not known", "warning"
        if total.assumed:
            yield _assumption(total), "warning"
        for line in self._elections():
            yield line, None
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
            if total.latest_ms is not None:
                line += f", the others are gone at {moment(total.latest_ms)}"
        elif total.gone_ms is not None:
            line += f"; all are gone at {moment(total.gone_ms)}"
        yield line, None

    def _elections(self) -> Iterator[str]:
        """Yield the partitions of which consumers get other records if another broker leads."""
        for (topic, partition), nodes in self._readable.items():
            every = self._job.live_nodes((topic, partition))
            by_node = {node: sorted(nodes.get(node, ())) for node in every}
            if len({tuple(some) for some in by_node.values()}) < 2:
                continue
            parts = [f"{_some(found)} if node {node} leads" for node, found in by_node.items()]
            yield f"{topic}-{partition}: a consumer gets {', and '.join(parts)}"


def _some(offsets: Sequence[int]) -> str:
    return offsets_in(offsets) if offsets else "none"


def _assumption(total: CopyTotal) -> str:
    """Return the line on the settings that were assumed."""
    nodes = [str(node) for node in total.assumed_nodes if node is not None]
    whose = f" of node{'s' * (len(nodes) > 1)} {', '.join(nodes)}" if nodes else ""
    values = ", ".join(f"{name}={value}" for name, value in total.assumed.items())
    return f"no --broker-config{whose} was given: Kafka's defaults are assumed, {values}"
