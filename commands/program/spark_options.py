"""Options of `scan` and `verify` about Spark."""

from typing import Annotated

import typer

from logtool.commands.program import parsing
from logtool.lazy_dataclass import dataclass

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        metavar="URL",
        help="Spark master. Default: this machine, with one core for each processor.",
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="NAME=VALUE",
        help="Spark setting, such as spark.NAME=VALUE; repeatable.",
    ),
]


@dataclass(frozen=True, slots=True)
class Spark:
    """Options for the place where Spark runs."""

    master: Master = None
    conf: Conf = None

    def settings(self) -> dict[str, str]:
        """Return the settings of Spark; UsageError for a text that is not a setting."""
        return parsing.parse_conf(self.conf)
