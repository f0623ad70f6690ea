"""``logtool generate``: write the man pages and shell completions from the commands."""

from pathlib import Path
from typing import Annotated

import typer

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The root of the repository.", show_default=False)
]


def generate(directory: Directory) -> None:
    """Write man/ and completions/ below DIR from the commands themselves.

    Examples:
      logtool generate .

    Exit status:
      0    the files were written

    """
