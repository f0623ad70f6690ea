"""Rows and no more."""

from collections.abc import Callable

from logtool.commands.output import Item, Printer, Report
from logtool.commands.printing.writers import Object


class RowPrinter(Printer[Item]):
    """Prints each item as the object that `row` makes of it."""

    def __init__(self, report: Report, row: Callable[[Item], Object]) -> None:
        self._report = report
        self._row = row

    def show(self, item: Item) -> None:
        """Print one item."""
        self._report.item(self._row(item))
