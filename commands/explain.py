"""``logtool explain``: meaning of findings, and actions. Reads no data."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="[CODE]", help="Code of a finding, for example batch/crc.", show_default=False
    ),
]


@spread
def explain(
    *,
    code: Code = None,
    printing: Annotated[options.Printing, Without("progress", "quiet", "verbose")],
) -> None:
    """Explain a finding: its meaning, what a broker does about it, and what to do.

    Without a code, the command lists all codes, each with its severity and whether a broker notices
    the problem.

    Examples:
      logtool explain
      logtool explain batch/crc

    Exit status:
      0    the code was explained, or the codes were listed
      2    the code does not exist

    """
    from logtool.commands.views.explain import run

    raise typer.Exit(run(code, printing))
