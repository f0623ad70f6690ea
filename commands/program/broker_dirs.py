"""The log dirs of brokers, as `doctor` and `report` take them."""

from typing import Annotated

import typer

from logtool.commands import options
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BrokerLogDirs(options.AnyLocalInputs):
    """Arguments for the directories to read: DIR in place of PATH."""

    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR...",
            help="Log dirs of one broker, or partition dirs; with ID=DIR also those of several "
            "brokers. Default: the log dirs in --broker-config, otherwise the current directory.",
            show_default=False,
        ),
    ] = None
