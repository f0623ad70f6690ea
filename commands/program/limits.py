"""The option --limits: what the host may give a broker that is to start there."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from logtool.commands.program import parsing
from logtool.errors import UsageError

if TYPE_CHECKING:
    from logtool.node.host_limits import Limits

LimitsOption = Annotated[
    str | None,
    typer.Option(
        "--limits",
        metavar="LIMITS",
        help="Limits of the host on which the broker is to start, where that is another one: "
        "nofile=N, max_map_count=N, heap=SIZE, with a comma between. By default the hard limit of "
        "open files and vm.max_map_count of this one, and a heap of 1G.",
    ),
]
_KEYS = ("nofile", "max_map_count", "heap")


def parse(text: str | None) -> "Limits":
    """Return the limits of this host, with what ``nofile=100000,heap=6G`` says of another.

    UsageError for anything else.
    """
    from logtool.node import host_limits

    limits = host_limits.of_host()
    given: set[str] = set()
    for part in text.split(",") if text is not None else ():
        name, _, value = part.partition("=")
        if name not in _KEYS or name in given:
            raise UsageError(
                f"--limits {text}: expected nofile=N, max_map_count=N or heap=SIZE, each once, "
                "such as nofile=100000,max_map_count=262144"
            )
        given.add(name)
        number = parsing.parse_size("--limits", value)
        if name == "nofile":
            limits = replace(limits, open_files=number)
        elif name == "max_map_count":
            limits = replace(limits, maps=number)
        else:
            limits = replace(limits, heap=number)
    return limits
