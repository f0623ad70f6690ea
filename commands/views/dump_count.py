"""How the counts of `dump --count` look."""

from collections.abc import Iterator

from logtool.commands import output
from logtool.commands.output import Line, Printer, Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object, TableColumn, columns, keep
from logtool.commands.views import dump_notes
from logtool.commands.views.dump_tables import COUNT, DOCUMENT
from logtool.dump.counting import PartitionCount, TotalCount
from logtool.dump.stream import Dump
from logtool.schemas.columns import Way

_ROWS = columns("type", *COUNT.names(Way.CSV))
_TABLE = keep((
    TableColumn("topic", lambda obj: obj["topic"]),
    *columns("partition", "records", "path"),
), "topic", "partition", "records")  # fmt: skip


def make(*, verbose: bool) -> View:
    """Return the view of the counts; a table leaves out partitions without one unless `verbose`."""

    def layout(obj: Object) -> Columns | str | None:
        if obj["type"] == "count":
            return _TABLE if obj["records"] or verbose else None
        if obj["type"] == "total":
            partitions = text.count(obj["partitions"], "partition")
            return f"{text.count(obj['records'], 'record')} in {partitions}"
        if obj["reason"] == "unreadable":
            return None
        return text.escape(f"!! {obj['reason']}: {output.describe_error(obj)}")

    return View(
        schema=DOCUMENT.schema,
        columns=_ROWS,
        layout=layout,
        row_types=frozenset({"count", "total"}),
    )


class CountPrinter(Printer[Object | PartitionCount | TotalCount]):
    """Prints counts, and in the end what was read."""

    def __init__(self, report: Report, job: Dump) -> None:
        self._report = report
        self._job = job

    def show(self, item: Object | PartitionCount | TotalCount) -> None:
        """Print a count, or an error in its place."""
        self._report.item(item if isinstance(item, dict) else DOCUMENT.row(item))

    def last_lines(self) -> Iterator[Line]:
        """Yield what is not known here, and what was read."""
        return dump_notes.last_lines(self._report, self._job)
