"""Output of trim: a row for each directory that loses files, and the sums."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from logtool.actions import Action
from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.program import parsing
from logtool.commands.views import actions
from logtool.commands.views.leftovers import short_name, undelete_lines
from logtool.disk import shell
from logtool.errors import LogtoolError, UsageError
from logtool.exits import Exit
from logtool.lazy_dataclass import dataclass
from logtool.retention import settings as retention_settings
from logtool.running.summary import ActionSummary
from logtool.schemas.columns import Column, Kind, Table, Way, count, offset, size
from logtool.schemas.document import Document
from logtool.schemas.printed import ACTION, UNDO
from logtool.space.freeing import parse_offsets_file
from logtool.space.trimming import TrimItem, TrimmedDirectory, TrimOptions, TrimRun

_LEFTOVERS = "the files wait to be deleted"
_NO_LOSS = "no offset is lost"
TRIMMED: Final = Table("trimmed", "directory", (
    Column("kind", Kind.STRING, "what is removed: files that the broker removes by itself, or "
           "segments", words=("leftovers", "segments")),
    Column("path", Kind.PATH, "the partition dir"),
    Column("topic", Kind.STRING, "name of the topic"),
    Column("partition", Kind.INT32, "number of the partition"),
    count("segments", "segments that are removed"),
    count("files", "files that are removed"),
    size("bytes", "bytes of the blocks that the files take"),
    offset("log_start_offset", "log start offset before", _LEFTOVERS),
    offset("new_log_start_offset", "log start offset with which a broker starts afterwards",
           _LEFTOVERS),
    count("lost_offsets", "offsets that are lost; compaction and transactions leave fewer records"),
    offset("first_offset", "first offset that is lost", _NO_LOSS),
    offset("last_offset", "last offset that is lost", _NO_LOSS),
), note="One partition dir that loses files.", type="trimmed",
    made_from="logtool.space.trimming:TrimmedDirectory")  # fmt: skip
TOTAL: Final = Table("total", "run", (
    count("directories", "directories that lose files"),
    count("segments", "segments that are removed"),
    count("files", "files that are removed"),
    size("bytes", "bytes of the blocks that the files take"),
    count("lost_offsets", "offsets that are lost"),
    size("wanted_bytes", "bytes of --free", null="there is no --free"),
    Column("accept_loss", Kind.STRINGS, "partitions that --accept-loss has to name"),
    Column("removed", Kind.BOOL, "whether the files were removed"),
), note="The sum of all directories.", type="total",
    made_from="logtool.commands.views.trim:TrimTotal")  # fmt: skip
DOCUMENT: Final = Document(
    name="trim",
    title="Objects that logtool trim prints",
    tables=(TRIMMED, TOTAL, ACTION, UNDO),
)
SCHEMA = DOCUMENT.schema


def run(
    inputs: options.LocalInputs,
    printing: options.Printing,
    *,
    free: str | None,
    offsets_file: Path | None,
    apply: bool,
    accept_loss: Sequence[str],
    undo_dir: Path | None,
) -> Exit:
    """Remove segments, or print what would be removed; return the exit status."""
    if (free is None) == (offsets_file is None):
        raise UsageError("give either --free SIZE or --offsets-file FILE")
    chosen, given = printing.settings(), inputs.of_one_broker()
    wanted = None if free is None else parsing.parse_size("--free", free)
    view = View(
        schema=SCHEMA,
        columns=columns(*TRIMMED.names(Way.CSV)),
        layout=_layout(),
        row_types=frozenset({TRIMMED.name}),
        sparse=True,
    )
    summary = ActionSummary()
    report = Report(settings=chosen, view=view, summary=summary, inputs=given)
    job = TrimRun(
        given.paths,
        TrimOptions(
            at_ms=parsing.now_ms(),
            free_bytes=wanted,
            offsets={} if offsets_file is None else parse_offsets_file(offsets_file),
            static=inputs.broker.take(*retention_settings.FROM_FILE),
            apply=apply,
            accepted=frozenset(
                parsing.parse_topic_partition("--accept-loss", name) for name in accept_loss
            ),
            undo_dir=undo_dir,
            command=shell.join(["logtool", *sys.argv[1:]]),
        ),
        given.selection,
    )
    return report.consume(job, TrimPrinter(report, summary, job, wanted, apply=apply))


@dataclass(slots=True)
class TrimTotal:
    """The sums of a run."""

    wanted_bytes: int | None
    directories: int = 0
    segments: int = 0
    files: int = 0
    bytes: int = 0
    lost_offsets: int = 0
    accept_loss: list[str] = field(default_factory=list)
    removed: bool = False


class TrimPrinter(Printer[TrimItem]):
    """Prints directories and errors, and adds the directories up."""

    def __init__(
        self, report: Report, summary: ActionSummary, job: TrimRun, wanted: int | None, *,
        apply: bool,
    ) -> None:  # fmt: skip
        self._report, self._summary, self._job, self._apply = report, summary, job, apply
        self._total = TrimTotal(wanted)
        self._command = job.command
        self._deleted = False
        """True if a directory loses files that waits to be deleted."""
        self._finished = False
        """True if an earlier plan is finished, or is to be finished, first."""

    def show(self, item: TrimItem) -> None:
        """Print one directory, one earlier plan, or why something was not done."""
        total = self._total
        if isinstance(item, LogtoolError):
            self._report.not_done(item)
        elif isinstance(item, Action):
            self._finished = True
            self._report.item(ACTION.row(item))
        elif isinstance(item, TrimmedDirectory):
            total.directories += 1
            total.segments += item.segments
            total.files += item.files
            total.bytes += item.bytes
            total.lost_offsets += item.lost_offsets
            self._deleted |= item.path.name.endswith("-delete")
            total.accept_loss += self._job.losing([item])
            self._report.item(TRIMMED.row(item))

    def finish(self) -> None:
        """Print the sums and the undo directories."""
        job, total, summary = self._job, self._total, self._summary
        total.removed = job.is_done
        summary.partitions = max(job.partitions, total.directories, int(self._finished))
        short = total.wanted_bytes is not None and total.bytes < total.wanted_bytes
        if self._apply:
            summary.to_do = short and not self._finished
        else:
            summary.to_do = total.directories > 0 or self._finished
        self._report.item(TOTAL.row(total))
        for place in job.undo_dirs:
            self._report.item(actions.undo_object(place))

    def last_lines(self) -> Iterator[Line]:
        """Yield the sums, the loss, and the way to go on."""
        total, summary = self._total, self._summary
        if self._finished:
            done = "was finished" if self._apply else "has to be finished"
            yield f"an earlier command {done} first; run this command again for more", "warning"
            return
        if not total.directories:
            yield f"{text.state(summary)}nothing to remove", None
            return
        freed = text.size(total.bytes)
        if total.wanted_bytes is not None and total.bytes < total.wanted_bytes:
            freed += f" of the {text.size(total.wanted_bytes)}"
        where = text.count(total.directories, "directory", "directories")
        if summary.unfinished:
            yield (
                f"{text.state(summary)}{freed} in {where} to remove; only part is removed",
                "error",
            )
            return
        verb = "were removed" if total.removed else "would be removed"
        yield f"{freed} in {where} {verb}", None
        if total.lost_offsets:
            verb = "are lost" if total.removed else "would be lost"
            yield f"{text.count(total.lost_offsets, 'offset')} {verb}", "warning"
        if self._deleted and not total.removed:
            yield from undelete_lines(self._report.inputs.paths if self._report.inputs else ())
        if not total.removed and not self._apply:
            accept = (shell.option("--accept-loss", name) for name in total.accept_loss)
            yield "nothing was written; to do it, with DIR on another disk:", None
            yield f"  {' '.join([self._command, '--apply --undo-dir DIR', *accept])}", None
        elif not total.removed:
            yield f"{text.state(summary)}nothing was written", None
        elif self._report.settings.format in ("csv", "tsv", "markdown"):
            for place in self._job.undo_dirs:
                yield actions.undo_line(place), None


def _layout() -> Callable[[Object], Columns | str | None]:
    rows = keep(_TRIMMED, "remove", "in", "bytes", "lost")

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == TRIMMED.name:
            return rows
        if obj["type"] == UNDO.name:
            return actions.undo_line(obj["path"])
        if obj["type"] == ACTION.name:
            return f"{obj['action']} {text.escape(obj['path'])}: {text.escape(obj['reason'])}"
        return None

    return layout


def _start(obj: Object) -> str:
    new = obj["new_log_start_offset"]
    return "" if new is None else f"{new:,}"


def _lost(obj: Object) -> str:
    first, last = obj["first_offset"], obj["last_offset"]
    return "" if first is None else text.offsets(first, last)


_TRIMMED: Sequence[TableColumn] = (
    TableColumn("remove", lambda obj: obj["kind"]),
    TableColumn("in", lambda obj: short_name(obj["path"])),
    TableColumn("bytes", lambda obj: text.size(obj["bytes"])),
    TableColumn("segments", lambda obj: obj["segments"] or ""),
    TableColumn("log start", _start),
    TableColumn("lost", _lost),
)
