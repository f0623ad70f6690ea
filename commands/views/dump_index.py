"""A run of ``dump-index``: the indexes, with what they point at."""

from collections.abc import Iterator

from logtool.commands import options
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.views.dump_layouts import Layouts, row_types
from logtool.commands.views.dump_notes import summary_lines
from logtool.commands.views.dump_tables import INDEX_DOCUMENT
from logtool.dump.index import IndexDump
from logtool.dump.records import Object
from logtool.exits import Exit
from logtool.formats.names import INDEX_KINDS, FileKind


def run(inputs: options.AnyInputs, printing: options.Printing, *, join_log: bool) -> Exit:
    """Print the entries of indexes, each with its batch of the log if `join_log`."""
    given = inputs.resolved()
    job = IndexDump(
        paths=given.paths,
        selection=given.selection,
        join_log=join_log,
        flavour=given.flavour,
    )
    layouts = Layouts(joined=join_log)
    of_redpanda = (FileKind.REDPANDA_BASE_INDEX,) if given.output_flavour else ()
    view = View(
        schema=INDEX_DOCUMENT.schema,
        columns=layouts.delimited((*INDEX_KINDS, *of_redpanda)),
        layout=layouts.table,
        row_types=row_types(records=False),
    )
    report = Report(settings=printing.settings(), view=view, summary=job.summary, inputs=given)
    job.progress.on_progress = report.show
    return report.consume(job, IndexPrinter(report))


class IndexPrinter(Printer[Object]):
    """Prints entries as they are, and in the end what was read."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def show(self, item: Object) -> None:
        """Print one object."""
        self._report.item(item)

    def last_lines(self) -> Iterator[Line]:
        """Yield the counts of dumped data, but only with -v, after damage or after an interrupt."""
        return summary_lines(self._report)
