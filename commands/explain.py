"""``logtool explain``: what a finding means and what to do about it. Reads no data."""

import difflib
from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.output import Report
from logtool.commands.printing import text
from logtool.commands.program.spread import Without, spread
from logtool.commands.views import explain as views
from logtool.errors import UsageError
from logtool.findings import Rule, catalogue
from logtool.running.summary import Summary

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="[CODE]", help="The code of a finding, such as batch/crc.", show_default=False
    ),
]


@spread
def explain(
    *,
    code: Code = None,
    printing: Annotated[options.Printing, Without("progress", "quiet", "verbose")],
) -> None:
    """Explain what a finding means, what a broker does about it, and what to do.

    Without a code it lists every code, with its severity and whether a broker notices.

    Examples:
      logtool explain
      logtool explain batch/crc

    Exit status:
      0    the code was explained
      2    there is no such code

    """
    rules = [_find(code)] if code is not None else list(catalogue().values())
    view = views.make(one=code is not None)
    with Report(settings=printing.settings(), view=view, summary=Summary()) as report:
        for rule in rules:
            report.item(views.DOCUMENT.row(rule))
    raise typer.Exit(report.exit_status())


def _find(code: str) -> Rule:
    known = catalogue()
    if code in known:
        return known[code]
    near = difflib.get_close_matches(code, known, n=3) or [c for c in known if code in c][:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see 'logtool explain'"
    raise UsageError(f"there is no code {text.quote(code)}{hint}")
