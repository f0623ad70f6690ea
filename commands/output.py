"""The only module that prints: data on stdout, everything for people on stderr.

A command opens a `Report`, hands it JSON-ready objects as they are found, and leaves. After
Ctrl-C, an input that cannot be read or a bug, the report is still closed with its summary, so that
a script never takes a part for the whole.
"""

import contextlib
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from logtool.commands.printing import fitting, terminal, text
from logtool.commands.printing.interrupts import Interrupts
from logtool.commands.printing.progress import ProgressBar, ProgressLines
from logtool.commands.printing.streams import discard_stdout, problem_of_stdout, utf8_stream
from logtool.commands.printing.writers import (
    Columns,
    DelimitedWriter,
    JsonWriter,
    LineWriter,
    NdjsonWriter,
    Object,
    TableWriter,
    Writer,
)
from logtool.disk import expanded
from logtool.errors import (
    LogtoolError,
    NothingMatchedError,
    UnreadableError,
    UnwritableError,
    UsageError,
    is_unfinished,
    signal_of,
)
from logtool.exits import Exit
from logtool.findings import Severity
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import Summary
from logtool.running.workers import OutOfTimeError
from logtool.schemas.printed import ERROR, SUMMARY

if TYPE_CHECKING:
    from logtool.log.inputs import GivenPaths
    from logtool.running.run import Progress

Item = TypeVar("Item")
Line = tuple[str, str | None]
"""A line for people, and one of `terminal.STYLES` or None."""
FLUSH_SECONDS = 0.2
_OF_AUTOMQ = "flavour: automq; partitions as they are after the recovery of the WAL"


class OutputError(LogtoolError):
    """An output that cannot be written, for a reason other than a closed pipe."""


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """The shared options about printing."""

    format: str = "table"
    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    progress: bool | None = None
    """None: a bar if stderr is a terminal."""
    csv_safe: bool = False
    """True if no cell of CSV and TSV may be taken for a formula."""
    csv_escaped: bool = False
    """True if a row of CSV and TSV is one line, with escapes in its cells."""
    summary_to_stdout: bool = False
    """True if totals and next commands follow the data, and do not go to stderr."""
    fields: tuple[str, ...] = ()
    """Fields of the rows to print; all if there is no name."""
    wide: bool = False
    """True if tables have all columns, also on a terminal that is too narrow for them."""

    @property
    def escapes_cells(self) -> bool:
        """Return whether cells of CSV and TSV are escaped: those on a terminal always are."""
        return self.csv_escaped or terminal.is_terminal()


@dataclass(frozen=True, slots=True)
class View:
    """The look of the objects of one command in each format."""

    schema: str
    columns: Columns
    """Columns of CSV and TSV, the same for every row."""
    layout: Callable[[Object], Columns | str | None]
    """For tables: the columns of an object, a line between tables, or None to leave it out."""
    lines: Mapping[str, Callable[[Object], str | None]] = field(default_factory=dict)
    """Formats that are lines of text of the command's own."""
    row_types: frozenset[str] = frozenset()
    """Types of object that are rows of CSV and TSV; errors of other types go to stderr."""
    sparse: bool = False
    """True if so little is printed that a progress bar may stay below it on one terminal."""
    limits: Callable[[Writer], Writer] = lambda writer: writer
    """Returns a writer of JSON that leaves out what --fields does not name."""
    of_redpanda: str = "flavour: redpanda; offsets are Raft's, and epochs are terms"
    """First line of a table about directories of Redpanda."""


class Printer(ABC, Generic[Item]):
    """Prints the items of one job in a report, and counts for the last lines."""

    @abstractmethod
    def show(self, item: Item) -> None:
        """Print one item, or keep it for `finish`."""

    def finish(self) -> None:
        """Print the items that `show` kept, by default nothing; the report is still open."""
        return

    def last_lines(self) -> Iterable[Line]:
        """Return the lines for people that follow the data, by default none."""
        return ()


class Report:
    """The output of one command. Use as a context manager; then ask for `exit_status`."""

    def __init__(
        self,
        settings: OutputSettings,
        view: View,
        summary: Summary,
        inputs: "GivenPaths | None" = None,
    ) -> None:
        """Begin; with `inputs`, a run that finds none of them to look at is incomplete."""
        self.settings = settings
        self.summary = summary
        self.inputs = inputs
        self._closed = False
        self._ended_early = self._nothing_read = False
        """True if the job raised an error, so that later inputs were not read; if none was read."""
        if settings.fields:
            from logtool.commands import chosen_fields

            view = chosen_fields.limited(view, settings.fields)
        self.view = view
        self._out = utf8_stream(sys.stdout)
        self._pipe_closed = False
        self._interrupts = Interrupts()
        self._flushed = time.monotonic()
        self._progress: ProgressBar | None = None
        self._lines: ProgressLines | None = None
        self._notes: list[tuple[str, str | None]] = []
        """Lines for people, kept until the data before them is printed."""
        self._writer: Writer | None = None
        self._wrote = False
        self._unmatched: set[Path] = set()
        """Paths that were already reported as empty of inputs."""

    def item(self, obj: Object) -> None:
        """Print one object in its place."""
        if self._nothing_read and self.settings.format in ("table", "markdown"):
            return
        self._writer = self._writer or self._make_writer()
        tabular = isinstance(self._writer, DelimitedWriter)
        if not tabular or obj["type"] in self.view.row_types:
            self._writer.item(expanded.answer(obj))
        elif obj["type"] == "error":
            error(describe_error(obj))

    def consume(
        self,
        items: Iterable[Item | UnreadableError],
        printer: Printer[Item],
        fail_on: Severity = Severity.WARNING,
    ) -> Exit:
        """Print the items of a job from first to last; return the exit status.

        This opens and closes the report. Inputs that cannot be read are counted and printed here.
        A job may end with UnreadableError, or with OutOfTimeError once time is over.
        """
        shown = False
        with self:
            try:
                for item in items:
                    if isinstance(item, UnreadableError):
                        self.unreadable(item)
                    else:
                        shown = True
                        printer.show(item)
                for problem in self.inputs.late_problems() if self.inputs else ():
                    self.unreadable(problem)
            except UnreadableError as error:
                self._ended_early = True
                self.unreadable(error)
            except OutOfTimeError:
                pass  # the pace of the run has noted it
            paths = self.inputs.paths if self.inputs else None
            self._nothing_read = not shown and self.summary.nothing_read(paths)
            printer.finish()
        if self.summary.partition_list is False:
            self.note("no file here lists the partitions that should exist")
        for message, style in printer.last_lines():
            self.note(message, style)
        return self.exit_status(fail_on)

    def lines(self, content: memoryview) -> None:
        """Print UTF-8 that a command has made of many objects, behind at least one of `item`."""
        self._emit(content)

    def unreadable(self, problem: UnreadableError) -> None:
        """Count and print an input that could not be read: on stderr, and as an object in JSON."""
        self.summary.add(problem)
        if isinstance(problem, NothingMatchedError):
            self._unmatched.add(problem.path)
        if self.settings.format in ("json", "ndjson"):
            matched = not isinstance(problem, NothingMatchedError)
            reason = "unreadable" if matched else "nothing-matched"
            self.item(_error(str(problem.path), reason, problem.reason))
        self._hide_progress()
        config = self.inputs.config if self.inputs else None
        source = config.source_of(problem.path) if config else None
        error(f"{source}: {problem}" if source else str(problem))

    def refused(self, problem: LogtoolError, reason: str = "refused") -> None:
        """Print a refusal, in the form of an input that could not be read."""
        self.summary.unfinished |= is_unfinished(problem)
        if self.settings.format in ("json", "ndjson"):
            self.item(_error(None, reason, str(problem)))
        self._hide_progress()
        error(str(problem))

    def not_done(self, problem: LogtoolError) -> None:
        """Count and print a file that could not be written, or a refusal."""
        if isinstance(problem, UnwritableError):
            self.summary.unwritten += 1
            self.refused(problem, "unwritable")
        else:
            self.summary.refused = True
            self.refused(problem)

    def show_progress(
        self, done: int, total: int, name: Path | str, *, at_once: bool = False
    ) -> None:
        """Update the progress bar; cheap enough to be called often, unless `at_once`."""
        if self._lines:
            self._lines.update(done, total, str(name))
            return
        if self._progress is None:
            self._progress = ProgressBar(sys.stderr, wanted=self._progress_wanted())
        self._progress.update(done, total, str(name), at_once=at_once)

    def starting(self, name: str) -> None:
        """Show at once what a long job waits for, also on a pipe: there a line now and then."""
        wanted = self.settings.progress is not False and not self.settings.quiet
        if wanted and not (self._progress_wanted() and sys.stderr.isatty()):
            self._lines = ProgressLines(sys.stderr, name)
        else:
            self.show_progress(0, 0, name, at_once=True)

    def show(self, progress: "Progress") -> None:
        """Update the progress bar from the progress of a run."""
        done = min(progress.bytes_done, progress.bytes_total)
        self.show_progress(done, progress.bytes_total, expanded.shown(str(progress.path)))

    def note(self, message: str, style: str | None = None) -> None:
        """Print a line for people on stderr, unless -q was given or the reader has gone.

        If nothing matched or was read, no verdict is printed: the error is already printed.
        """
        nothing = self._nothing_read or (self._closed and self.summary.nothing_matched)
        if self.settings.quiet or self._pipe_closed or nothing or expanded.is_useless(message):
            return
        self._hide_progress()
        if self.settings.summary_to_stdout:
            self._notes.append((expanded.shown(message), style))
            if self._closed:
                self._print_notes()
        else:
            width = terminal.width_of(sys.stderr, wide=self.settings.wide)
            message = fitting.folded(text.escape(expanded.shown(message)), width)
            _stderr(terminal.paint(message, style, self.settings.color, sys.stderr))

    def exit_status(self, fail_on: Severity = Severity.WARNING) -> Exit:
        """Return the exit status of the contract; ask after the report is closed."""
        return Exit.CLOSED_PIPE if self._pipe_closed else self.summary.exit_status(fail_on)

    def __enter__(self) -> "Report":
        self._interrupts.catch()
        if config := self.inputs and self.inputs.config:
            for warning in config.warnings:
                self.note(warning, "warning")
            self.note(config.summary_line(), "dim")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            return self._close(error)
        except BrokenPipeError:
            self._pipe_closed = True
            discard_stdout()
            return True
        finally:
            self._interrupts.release()

    def _close(self, error: BaseException | None) -> bool:
        """Print the summary; return whether the exception `error` was handled."""
        self._hide_progress()
        if self._lines:
            self._lines.close()
        if isinstance(error, BrokenPipeError):
            raise error
        if isinstance(error, OutputError):
            return False
        if isinstance(error, UsageError) and not self._wrote:
            return False
        known = error is None or isinstance(error, KeyboardInterrupt | UnreadableError)
        if isinstance(error, KeyboardInterrupt):
            self.summary.ended_by = signal_of(error)
            self.summary.unfinished |= is_unfinished(error)
            for note in getattr(error, "__notes__", ()):  # how to continue the interrupted work
                _stderr(f"logtool: {text.escape(note)}")
        if isinstance(error, UnreadableError):
            self.unreadable(error)
        whole = error is None and not self._ended_early
        if whole and self.inputs and self.summary.has_no_partition:
            for problem in self.inputs.unmatched():
                if problem.path not in self._unmatched:
                    self.unreadable(problem)
        self._closed = True
        last = expanded.answer(SUMMARY.row(self.summary))
        if not known:
            last["complete"] = False
        self._writer = self._writer or self._make_writer()
        self._writer.close(last)
        if isinstance(self._writer, TableWriter) and self._writer.hidden:
            self.note(self._writer.what_is_hidden(), "dim")
        self._print_notes()
        with _writing():
            self._out.flush()
        return known

    def _print_notes(self) -> None:
        """Print the lines for people after the data."""
        notes, self._notes = self._notes, []
        width = terminal.width_of(sys.stdout, wide=self.settings.wide)
        for message, style in notes:
            line = fitting.folded(text.escape(message), width)
            self._emit(terminal.paint(line, style, self.settings.color, sys.stdout) + "\n")

    def _emit(self, chunk: str | memoryview) -> None:
        self._hide_progress()
        self._wrote = True
        with self._interrupts.delayed(), _writing():
            if isinstance(chunk, str):
                self._out.write(chunk)
            else:
                self._out.flush()
                while chunk:  # with PYTHONUNBUFFERED a signal cuts a write short
                    chunk = chunk[self._out.buffer.write(chunk) :]
            if time.monotonic() - self._flushed > FLUSH_SECONDS:
                self._out.flush()
                self._flushed = time.monotonic()

    def _make_writer(self) -> Writer:
        chosen, view = self.settings.format, self.view
        width = terminal.width_of(sys.stdout, wide=self.settings.wide)
        flavour = self.inputs.output_flavour if self.inputs else None
        if flavour and chosen == "table":
            first = _OF_AUTOMQ if flavour == "automq" else view.of_redpanda
            self._emit(f"{fitting.folded(first, width)}\n")
        if chosen in view.lines:
            folds = width if chosen == "table" else None  # another form has readers of its own
            return LineWriter(self._emit, view.lines[chosen], folds)
        if chosen in ("json", "ndjson"):
            kind = JsonWriter if chosen == "json" else NdjsonWriter
            return view.limits(kind(self._emit, view.schema, flavour))
        if chosen in ("csv", "tsv"):
            delimiter = "," if chosen == "csv" else "\t"
            return DelimitedWriter(
                self._emit, view.columns, delimiter,
                escaped=self.settings.escapes_cells, safe=self.settings.csv_safe,
            )  # fmt: skip
        return TableWriter(self._emit, view.layout, markdown=chosen == "markdown", width=width)

    def _progress_wanted(self) -> bool:
        if self.settings.progress is not None:
            return self.settings.progress
        seen = not self.settings.quiet and sys.stderr.isatty()
        return seen and (self.view.sparse or not self._out.isatty())

    def _hide_progress(self) -> None:
        if self._progress:
            self._progress.hide()


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write the output: {error.strerror or error}") from error


def _error(path: str | None, reason: str, message: str) -> Object:
    return ERROR.make(path=path, position=None, length=None, reason=reason, message=message)


def describe_error(obj: Object) -> str:
    """Return an ``error`` object as a line of text."""
    place = obj["path"] if obj["position"] is None else f"{obj['path']} @{obj['position']}"
    length = "" if obj["length"] is None else f" ({text.count(obj['length'], 'byte')})"
    return f"{place}{length}: {obj['message']}"


def error(message: str) -> None:
    """Print an error message on stderr, even with -q."""
    line = f"logtool: {text.escape(expanded.shown(message))}"
    _stderr(fitting.folded(line, terminal.width_of(sys.stderr, wide=False)))


def trouble(message: str) -> None:
    """Print lines on stderr as they are: help, a usage error, a traceback."""
    _stderr(expanded.shown(message))


def plain(content: str) -> None:
    """Print text on stdout as it is, such as a version."""
    out = utf8_stream(sys.stdout)
    out.write(content if content.endswith("\n") else content + "\n")
    out.flush()


def _stderr(message: str) -> None:
    problem_of_stdout()  # what was printed before comes first, if it can
    stream = utf8_stream(sys.stderr)
    with contextlib.suppress(OSError):  # no one reads it; the exit status reports it
        stream.write(message if message.endswith("\n") else message + "\n")
        stream.flush()
