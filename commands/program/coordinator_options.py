"""Options of the commands that read what coordinators wrote: `groups` and `txns`."""

from typing import Annotated, Any

import typer

LOCAL_BROKER = "localhost:9092"
BootstrapServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="What the printed commands connect to; this one connects to nothing.",
        show_default=True,
    ),
]


def now_option(counted: str) -> Any:
    """Return the option --now; its help begins with `counted`, which says what the time is for."""
    return typer.Option(
        "--now",
        metavar="TIME",
        help=f"{counted} to TIME: milliseconds, a time such as 2026-11-22T10:30:00Z (UTC without a "
        "zone), a date or -2h; by default to this moment.",
    )
