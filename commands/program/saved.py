"""The option of `salvage` and `undelete` that says where they write."""

from pathlib import Path
from typing import Annotated

import typer

from logtool.commands import options

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        parser=options.local_path,
        help="Write what is saved into DIR, which must be new or empty and lie in no log dir.",
    ),
]
