"""``logtool explain``: what a finding means and what to do about it. Reads no data."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.commands.program.spread import Without, spread

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
    from logtool.commands.views.explain import run

    raise typer.Exit(run(code, printing))
