"""The groups of options in the help and in man pages, by the names of the options.

Typer has `rich_help_panel` for this, which only the help that Rich renders shows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Option = TypeVar("Option")
OWN = "Options"
"""Title of the options that belong to one command."""
GROUPS = {
    "Selection": (
        "--files-from", "--null", "--topic", "--exclude-topic", "--partition", "--sample",
        "--group", "--flavour", "--offset", "--timestamp", "--producer", "--key", "--value",
        "--header", "--grep", "--json-path",
    ),
    "Limits": (
        "--limit", "--max-batch-memory", "--max-bytes", "--max-duration", "--max-rate", "--jobs",
    ),
    "Broker": (
        "--broker-config", "--kafka-version", "--bootstrap-server", "--index-interval-bytes",
        "--index-size-max-bytes", "--limits", "--offsets-retention", "--read-rate",
        "--recovery-threads",
    ),
    "Safety": ("--apply", "--accept-loss", "--undo-dir"),
    "Output": (
        "--output", "--format", "--json", "--fields", "--csv-safe", "--csv-escaped", "--wide",
        "--color", "--show-secrets", "--max-findings", "--fail-on", "--progress",
        "--metrics-file",
        "--summary-to-stdout", "--quiet", "--verbose", "--help",
    ),
}  # fmt: skip
"""Names of options by the title of their group, in the order of the help."""
_TITLES = {name: title for title, names in GROUPS.items() for name in names}


def grouped(
    options: Iterable[Option], names_of: Callable[[Option], Iterable[str]]
) -> Iterator[tuple[str, list[Option]]]:
    """Yield the title and the options of each group that has any, the command's own first."""
    found: dict[str, list[Option]] = {title: [] for title in (OWN, *GROUPS)}
    for option in options:
        title = next((_TITLES[name] for name in names_of(option) if name in _TITLES), OWN)
        found[title].append(option)
    yield from ((title, options) for title, options in found.items() if options)
