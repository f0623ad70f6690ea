"""A run of ``doctor --environment``: the parts of what logtool runs on, each with its state."""

from collections.abc import Iterator
from itertools import chain

from logtool.commands.output import OutputSettings, Report, View
from logtool.commands.printing.writers import Columns, TableColumn, columns
from logtool.commands.program import settings as own
from logtool.commands.views.doctor_tables import COMPONENT, DOCUMENT
from logtool.commands.views.rows import RowPrinter
from logtool.doctor.answers import Component, Gravity
from logtool.doctor.environment import components
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.running.summary import Summary

_ROWS = columns("name", "found", "version", "detail", "state")
_SHOWN: Columns = (
    TableColumn("what", lambda obj: obj["name"]),
    TableColumn("version", lambda obj: obj["version"] or ("yes" if obj["found"] else "no")),
    TableColumn("detail", lambda obj: obj["detail"]),
)
_VIEW = View(
    schema=DOCUMENT.schema,
    columns=_ROWS,
    layout=lambda obj: _SHOWN if obj["type"] == "component" else None,
    row_types=frozenset({"component"}),
)


def run(settings: OutputSettings) -> Exit:
    """Print the components that logtool uses, and the user's defaults; return the exit status."""
    report = Report(settings, _VIEW, Summary())
    return report.consume(chain(components(), _own_settings()), RowPrinter(report, COMPONENT.row))


def _own_settings() -> Iterator[Component]:
    """Yield the user's own defaults, each with where it comes from."""
    file = own.path()
    there = file is not None and file.exists()
    detail = str(file) if there else f"{file}, which does not exist" if file else "switched off"
    problem, found = None, {}
    try:
        found = own.load()
    except UsageError as error:
        problem = Component("settings", False, None, str(error), Gravity.ERROR)
    yield problem or Component("settings", there, None, detail)
    for name in own.SETTINGS:
        one = found.get(name)
        value, source = (str(one.value), f"from {one.source}") if one else (None, "not set")
        yield Component(f"setting {name}", one is not None, value, source)
    for variable in sorted(
        own.variables().keys() - {own.variable_of(name) for name in own.SETTINGS}
    ):
        yield Component(variable, True, None, "is not a setting of logtool", Gravity.WARNING)
