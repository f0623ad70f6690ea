"""Options of the commands that read the topics of coordinators: `groups` and `txns`."""

from typing import Annotated, Any

import typer

ANY_BROKER = "HOST:9092"
BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="Broker address in the printed commands; logtool itself connects to no broker.",
        show_default=True,
    ),
]


def now_option(counted: str) -> Any:
    """Return the option --now; its help begins with `counted`, which names the use of the time."""
    return typer.Option(
        "--now",
        metavar="TIME",
        help=f"{counted} at TIME: milliseconds, a time such as 2026-11-22T10:30:00Z (UTC without a "
        "zone), a date or -2h. Default: now.",
    )
