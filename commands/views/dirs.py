"""Output of log dirs, futures and strays, and of what may be deleted."""

from collections.abc import Iterator
from typing import Final

from logtool.commands import options
from logtool.commands.output import Line, OutputSettings, Printer, Report, View
from logtool.commands.printing import terminal, text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.views.findings import FurtherFindings
from logtool.dirs.directories import AuditedDir, DirsRun, Found
from logtool.dirs.proof import Proof
from logtool.disk import shell
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

_NO_NODE = "not known"
DIRECTORY: Final = Table("directory", "log dir", (
    Column("node", Kind.INT32, "id of the node of the log dir", null=_NO_NODE),
    Column("path", Kind.PATH, "the log dir", null="the log dir was not given"),
    Column("directory_id", Kind.STRING, "id of the log dir in meta.properties, or in the metadata "
           "log if the log dir was not given", null="the log dir has no id"),
    Column("status", Kind.STRING, "state according to the registration of the broker; absent: the "
           "log dir was not given; unidentified: the log dir has no id and others have one; "
           "unregistered: the metadata log does not know its id, and the broker registers it at "
           "its next start; metadata: it holds only the metadata log, and a metadata.log.dir "
           "outside of log.dirs is never registered; unknown: there is no registration",
           words=("online", "cordoned", "offline", "absent", "unidentified", "unregistered",
                  "metadata", "unknown")),
    Column("partitions", Kind.INT64, "live partition dirs in the log dir; if the log dir was not "
           "given, partitions assigned to it", "count"),
    Column("deleting", Kind.INT64, "partition dirs that wait to be deleted", "count"),
    Column("given_as", Kind.PATH, "log dir with the id of an absent one, given for another node",
           null="the log dir is not absent, or was not given for another node"),
    Column("restored", Kind.STRINGS, "lines of the meta.properties that the log dir should have, "
           "if its own has no directory.id and its partitions are exactly those of an absent log "
           "dir"),
), note="A log dir that was given, or that the metadata log names.",
    type="directory", made_from="logtool.dirs.directories:AuditedDir")  # fmt: skip
ASSIGNMENT: Final = Table("assignment", "live replica that is not in its assigned log dir", (
    Column("node", Kind.INT32, "id of the node of the log dir"),
    Column("path", Kind.PATH, "the partition dir"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    Column("directory_id", Kind.STRING, "id of the log dir that holds the replica",
           null="the log dir has no id"),
    Column("assigned", Kind.STRING, "id of the log dir to which the metadata log assigns the "
           "replica"),
    Column("status", Kind.STRING, "elsewhere: assigned to another log dir; other values: the "
           "assignment names no log dir",
           words=("elsewhere", "unassigned", "lost", "migrating")),
), note="A live replica that is not in the log dir to which the metadata log assigns it.",
    type="assignment", made_from="logtool.dirs.directories:Assignment")  # fmt: skip
_NO_LIVE = "the log dirs of the broker have no live copy"
FUTURE: Final = Table("future", "future copy, for a move to another log dir", (
    Column("path", Kind.STRING, "the directory of the copy", value="copy.path"),
    Column("topic", Kind.STRING, "name of the topic", value="copy.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="copy.partition"),
    Column("live", Kind.STRING, "the directory of the live copy that the broker copies",
           null=_NO_LIVE, value="live_path"),
    Column("status", Kind.STRING, "progress of the copy; abandoned: there is no live copy; ahead: "
           "it ends beyond the end of the live copy, where the broker cuts it",
           words=("caught-up", "catching-up", "abandoned", "diverged", "damaged", "ahead")),
    Column("assigned", Kind.BOOL, "whether the metadata log already assigns the partition to this "
           "log dir"),
    Column("log_start_offset", Kind.INT64, "start of the log of the copy",
           "offset", value="copy.log_start"),
    Column("log_end_offset", Kind.INT64, "end of the log of the copy",
           "offset", value="copy.log_end"),
    Column("live_log_end_offset", Kind.INT64, "end of the log of the live copy", "offset",
           _NO_LIVE, value="live_log_end"),
    Column("behind", Kind.INT64, "offsets by which the copy is behind the live copy",
           "count", _NO_LIVE),
    Column("ahead", Kind.INT64, "offsets of the copy beyond the end of the live copy",
           "count", _NO_LIVE),
    Column("superset", Kind.BOOL, "whether the copy holds everything that the live copy holds",
           null=_NO_LIVE),
    Column("diverges_at", Kind.INT64, "first offset at which the copy diverges from the live copy",
           "offset", f"the copies do not diverge, or {_NO_LIVE}"),
), note="A future copy: a broker makes it to move the partition to another log dir.",
    type="future", made_from="logtool.dirs.directories:FutureCopy")  # fmt: skip
_STORED = Table("held", "copy that holds some of the batches", (
    Column("path", Kind.STRING, "the directory of the copy", value="copy.path"),
    Column("node", Kind.INT32, "id of the node of the log dir", null=_NO_NODE, value="copy.node"),
    Column("batches", Kind.INT64, "batches that this copy is the first to hold", "count"),
    Column("ranges", Kind.PAIRS, "ranges of these batches, each with its first and last offset",
           "offset"),
), note="The first copy that holds these batches.",
    made_from="logtool.dirs.proof:StoredElsewhere")  # fmt: skip
_COMPACTED = Table("compacted", "copy that was compacted", (
    Column("path", Kind.STRING, "the directory of the copy"),
    Column("evidence", Kind.STRING, "evidence that the copy was compacted"),
), note="A copy that was compacted.", made_from="logtool.dirs.superseded:Compacted")  # fmt: skip
_REPLACED = Table("replaced", "copy with batches that compaction replaced elsewhere", (
    Column("batches", Kind.INT64, "batches that no copy holds and that were replaced", "count"),
    Column("ranges", Kind.PAIRS, "ranges of these batches, each with its first and last offset",
           "offset"),
    Column("keys", Kind.INT64, "keys whose last record is in batches that no copy holds", "count"),
    Column("held", Kind.INT64, "keys whose last record a copy holds", "count",
           value="stored"),
    Column("later", Kind.INT64, "keys for which a copy holds a later record", "count"),
    Column("deleted", Kind.INT64, "keys whose last record is a tombstone, and that have been "
           "removed", "count"),
    Column("by", Kind.OBJECT, "copies that were compacted", of=_COMPACTED, many=True),
), note="Batches that no other copy holds, but that compaction replaced; shown key by key.",
    made_from="logtool.dirs.superseded:Superseded")  # fmt: skip
_ONLY = Table("only", "range of offsets that no other copy is known to hold", (
    Column("first_offset", Kind.INT64, "first offset", "offset"),
    Column("last_offset", Kind.INT64, "last offset", "offset", "the end of the range is not known"),
    Column("batches", Kind.INT64, "batches of the range; 0 if the range is damaged or was not read",
           "count"),
    Column("reason", Kind.STRING, "why no other copy is known to hold these offsets"),
), note="Offsets that no other copy is known to hold.",
    made_from="logtool.dirs.proof:Only")  # fmt: skip
_UNPROVEN = Table("unproven", "directory that cannot serve as proof", (
    Column("path", Kind.STRING, "the directory"),
    Column("reason", Kind.STRING, "why the directory cannot serve as proof"),
), note="A directory that cannot serve as proof.",
    made_from="logtool.dirs.proof:Unproven")  # fmt: skip
PROOF: Final = Table("proof", "copy that was judged", (
    Column("path", Kind.STRING, "the directory of the copy", value="copy.path"),
    Column("topic", Kind.STRING, "name of the topic", value="copy.topic"),
    Column("partition", Kind.INT32, "number of the partition", value="copy.partition"),
    Column("topic_id", Kind.STRING, "topic id in partition.metadata of the copy",
           null="there is no partition.metadata",
           value="copy.topic_id"),
    Column("kind", Kind.STRING, "kind of directory according to its name", value="kind_name",
           words=("live", "delete", "future", "stray")),
    Column("may_delete", Kind.BOOL, "whether the copy may be deleted"),
    Column("metadata", Kind.STRING, "state of the copy in the metadata log. assigned: it is a "
           "replica of its broker; moved: its topic exists, but the partition has no replica on "
           "its broker; removed: the metadata log shows that the topic was removed; unknown: "
           "the metadata log does not have its topic id, so that the topic was removed before the "
           "snapshot, or is newer than the end of the metadata log",
           null="no log dir has a whole metadata log, or the copy has no topic id",
           value="metadata_status", words=("assigned", "moved", "removed", "unknown")),
    Column("metadata_offset", Kind.INT64, "offset of the record that removed the topic, else the "
           "end of the metadata log", "offset", "as for metadata"),
    Column("log_start_offset", Kind.INT64, "start of the log of the copy",
           "offset", value="copy.log_start"),
    Column("log_end_offset", Kind.INT64, "end of the log of the copy",
           "offset", value="copy.log_end"),
    Column("batches", Kind.INT64, "sound batches", "count", value="copy.tally.batches"),
    Column("records", Kind.INT64, "records in the sound batches", "count", value="copy.records"),
    Column("bytes", Kind.INT64, "bytes of the .log files", "bytes", value="copy.bytes"),
    Column("digest", Kind.STRING, "SHA-256 of base offset, last offset, leader epoch, CRC and size "
           "of each batch, as big-endian int64"),
    Column("held_by", Kind.OBJECT, "copies that hold batches of this copy",
           value="stored", of=_STORED,
           many=True),
    Column("replaced", Kind.OBJECT, "batches that no other copy holds, but that compaction "
           "replaced",
           null="the keys cannot serve as proof, or no batch needed this proof", of=_REPLACED),
    Column("only_here", Kind.OBJECT, "offsets that no other copy is known to hold; empty if the "
           "copy may be deleted", value="only", of=_ONLY, many=True),
    Column("no_proof", Kind.OBJECT, "directories that cannot serve as proof",
           of=_UNPROVEN, many=True),
), note="The proof that a copy may be deleted: a live copy must hold every batch of the copy, or "
        "compaction must have replaced the batch there.",
    type="proof", made_from="logtool.dirs.proof:Proof")  # fmt: skip
DOCUMENT: Final = Document(
    name="dirs",
    title="Objects that logtool dirs prints",
    tables=(DIRECTORY, ASSIGNMENT, FUTURE, PROOF, FINDING),
)
SCHEMA = DOCUMENT.schema
_ROWS = keep(columns(
    "type", "node", "path", "topic", "partition", "directory_id", "assigned", "status",
    "partitions", "deleting", "live", "log_start_offset", "log_end_offset", "behind", "superset",
    "may_delete", "metadata", "batches", "records", "bytes", "digest",
), "type", "path", "status", "may_delete")  # fmt: skip
_STYLES = {"online": "good", "caught-up": "good", "catching-up": "info", "cordoned": "info",
           "unknown": "info", "unassigned": "info", "migrating": "info", "metadata": "good",
           "unregistered": "info"}  # fmt: skip
_VERDICTS = {
    "moved": "the metadata log up to offset {} has the topic, but no replica of this partition on "
             "this broker",
    "removed": "the metadata log shows at offset {} that the topic was removed: all of its "
               "brokers delete their copies",
    "unknown": "the metadata log up to offset {} does not have the topic id of this copy: the "
               "topic was removed, or it is newer than that offset",
}  # fmt: skip
_MOST_RANGES = 8


def run(inputs: options.Inputs, running: options.Running, printing: options.Printing) -> Exit:
    """Print the log dirs of brokers, with what lies in the wrong place; return the exit status."""
    settings, sources = printing.settings(), inputs.node_dirs()
    given = inputs.of_one_cluster([source.path for source in sources])
    summary = ActionSummary()
    report = Report(settings=settings, view=make(settings), summary=summary, inputs=given)
    static = inputs.broker.of_node()
    job = DirsRun(sources, given.selection, running.run(report), static)
    return report.consume(job, AuditPrinter(report, summary, job))


def make(settings: OutputSettings, schema: str = SCHEMA) -> View:
    """Return the view of `dirs` or of `may-delete`."""
    types = ("directory", "assignment", "future", "proof")
    return View(
        schema=schema,
        columns=_ROWS,
        layout=lambda obj: _ROWS if obj["type"] in types else None,
        lines={"table": lambda obj: _line(obj, settings)},
        row_types=frozenset(types),
        sparse=True,
    )


class ProofPrinter(Printer[Found]):
    """Prints what is found, and counts what a person should look at."""

    def __init__(self, report: Report, summary: ActionSummary) -> None:
        self._report = report
        self._summary = summary
        self._further = FurtherFindings(report)
        self._directories = self._strays = self._grave = 0

    def show(self, item: Found) -> None:
        """Print one item."""
        summary = self._summary
        if isinstance(item, Finding):
            self._further.take(item)
            self._grave += item.severity is not Severity.INFO
            summary.to_do |= item.severity is not Severity.INFO
            return
        self._report.item(DOCUMENT.row(item))
        if isinstance(item, AuditedDir):
            self._directories += 1
            summary.partitions += item.partitions if item.path else 0
        if isinstance(item, Proof):
            self._strays += 1
            summary.partitions += not self._directories
            summary.segments += item.copy.segments
            summary.batches += item.copy.tally.batches
            summary.records += item.copy.records
            summary.bytes += item.copy.bytes
            # A stray is something to do even where it may go; one that was asked about is not.
            summary.to_do |= not item.may_delete or self._directories > 0
        elif item.is_grave:
            self._grave += 1
            summary.to_do = True


class AuditPrinter(ProofPrinter):
    """Prints all log dirs of brokers, compared with the metadata log."""

    def __init__(self, report: Report, summary: ActionSummary, job: DirsRun) -> None:
        super().__init__(report, summary)
        self._job = job

    def finish(self) -> None:
        """Count a metadata log that ends early."""
        self._summary.to_do |= self._damage is not None

    @property
    def _damage(self) -> str | None:
        return self._job.image.damage if self._job.image else None

    def last_lines(self) -> Iterator[Line]:
        """Yield a line if the metadata log is missing or damaged, and the line with the counts."""
        if self._job.image is None:
            why = "the expected log dirs and the assignments of partitions are not known"
            yield f"the log dirs have no metadata log: {why}", "warning"
        elif damage := self._damage:
            why = "the metadata log cannot be read to its end; some assignments may be outdated"
            yield f"{why}: {damage}", "error"
        yield from self._further.last_lines()
        count = text.count(self._directories, "log dir")
        strays = text.count(self._strays, "stray")
        line = f"{text.state(self._summary)}{count}, {strays}, {self._grave} with problems"
        yield line, "error" if self._summary.to_do else None


def _line(obj: Object, settings: OutputSettings) -> str | None:
    kind = obj["type"]
    if kind == "proof":
        return "\n".join(_proof(obj, settings))
    if kind not in ("directory", "assignment", "future"):
        return None
    style = _STYLES.get(obj["status"], "error")
    status = terminal.paint_stdout(f"{obj['status']:<12}", style, settings.color)
    words = {"directory": _directory, "assignment": _assignment, "future": _future}
    return f"{status} {words[str(kind)](obj)}"


def _directory(obj: Object) -> str:
    place = "not given" if obj["path"] is None else text.escape(obj["path"])
    if obj["given_as"]:
        place = f"given for another node, {text.escape(obj['given_as'])}"
    node = "" if obj["node"] is None else f", node {obj['node']}"
    deleting = f", {obj['deleting']} to be deleted" if obj["deleting"] else ""
    count = text.count(obj["partitions"], "partition")
    line = f"{place}: directory id {obj['directory_id'] or 'none'}{node}, {count}{deleting}"
    if obj["restored"]:
        line += (
            "; its partitions are those of an absent log dir: before the node starts, write its "
            f"meta.properties: printf '%s\\n' {shell.join(obj['restored'])} > "
            f"{shell.path(obj['path'])}/meta.properties"
        )
    return line


def _assignment(obj: Object) -> str:
    place = obj["directory_id"] or "a log dir without an id"
    where = f"lies in {place}, the metadata log assigns it to {obj['assigned']}"
    return f"  {text.escape(obj['path'])}: {where}"


def _future(obj: Object) -> str:
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    line = f"  {text.escape(obj['path'])}: {extent}"
    if obj["live"] is None:
        return f"{line}; the log dirs of the broker have no live copy"
    whole = "holds all of" if obj["superset"] else "does not hold all of"
    behind = f", {text.count(obj['behind'], 'offset')} behind" if obj["behind"] else ""
    line += f"; {whole} {text.escape(obj['live'])}{behind}"
    if obj["diverges_at"] is not None:
        line += f"; the copies diverge at offset {obj['diverges_at']}"
    if obj["status"] == "ahead":
        line += (
            f"; the broker cuts the last {text.count(obj['ahead'], 'offset')}, which the live copy "
            "lacks, and then replaces the live copy"
        )
    becomes = (
        "becomes the live copy at the next start, because the partition is assigned to this log dir"
    )
    return f"{line}; {becomes}" if obj["assigned"] else line


def _proof(obj: Object, settings: OutputSettings) -> list[str]:
    yes = bool(obj["may_delete"])
    answer = terminal.paint_stdout(
        "may be deleted" if yes else "MUST STAY", "good" if yes else "error", settings.color
    )
    what = "" if obj["kind"] == "live" else f" ({obj['kind']})"
    extent = text.extent(obj["log_start_offset"], obj["log_end_offset"])
    counts = f"{text.count(obj['batches'], 'batch', 'batches')}, {text.size(obj['bytes'])}"
    lines = [f"{answer}: {text.escape(obj['path'])}{what}: {extent}, {counts}"]
    if obj["metadata"] in _VERDICTS:
        lines.append("  " + _VERDICTS[obj["metadata"]].format(obj["metadata_offset"]))
    if yes and not obj["batches"]:
        lines.append("  the copy holds no batch")
    for keeper in obj["held_by"]:
        spans = [text.through(*span) for span in keeper["ranges"][:_MOST_RANGES]]
        more = ", ..." if len(keeper["ranges"]) > _MOST_RANGES else ""
        count = text.count(keeper["batches"], "batch", "batches")
        lines.append(f"  {text.escape(keeper['path'])} holds {count}: {', '.join(spans)}{more}")
    if obj["replaced"] and obj["replaced"]["batches"]:
        lines += _replaced(obj["replaced"])
    for only in obj["only_here"]:
        last = "the end" if only["last_offset"] is None else only["last_offset"]
        count = text.count(only["batches"], "batch", "batches")
        span = text.offsets(only["first_offset"], last)
        lines.append(f"  not in a live copy: {span}, {count}: {text.escape(only['reason'])}")
    for other in obj["no_proof"]:
        lines.append(
            f"  not used as proof: {text.escape(other['path'])}: {text.escape(other['reason'])}"
        )
    if yes:
        lines.append(f"  SHA-256 of the batches: {obj['digest']}")
    return lines


def _replaced(obj: Object) -> list[str]:
    ranges = obj["ranges"]
    spans = [text.through(*span) for span in ranges[:_MOST_RANGES]]
    more = ", ..." if len(ranges) > _MOST_RANGES else ""
    count = text.count(obj["batches"], "batch", "batches")
    found = {
        "held": "held",
        "later": "replaced there by a later record",
        "deleted": "deleted there by a tombstone",
    }
    parts = [f"{obj[name]:,} {words}" for name, words in found.items() if obj[name]]
    lines = [
        f"  compacted elsewhere, {count}: {', '.join(spans)}{more}; of the last records of "
        f"{text.count(obj['keys'], 'key')}: {', '.join(parts) or 'none'}"
    ]
    for one in obj["by"]:
        lines.append(f"    by {text.escape(one['path'])}: {text.escape(one['evidence'])}")
    return lines
