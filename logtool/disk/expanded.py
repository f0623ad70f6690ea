"""Directories into which case files were expanded, and the places that answers name instead.

A file in such a directory is ``CASE.tar.zst:/PLACE`` for people and scripts. The commands that read
case files take such a place, so that a printed command can be pasted; one of another command is
left out.
"""

from pathlib import Path
from typing import Any

from logtool.disk import shell

COMMANDS = ("verify", "plan", "gaps", "txns", "watermark", "diff", "stat")
"""The commands that take a case file."""
_WRITING = (" --apply", " --output", " --digest")
_TOOL = "logtool "
_HOMES: dict[str, str] = {}
"""The case file of each directory, as it was given."""


def add(home: Path, case: Path) -> None:
    """Let answers name places in a case file, and not the directory with its content."""
    _HOMES[str(home)] = str(case)


def is_expanded(path: Path) -> bool:
    """Return whether a path lies in a case file that was expanded."""
    return any(home in str(path) for home in _HOMES)


def shown(text: str) -> str:
    """Return a text or a command with places in case files."""
    for home, case in _HOMES.items():
        if home in text:
            text = _command(text, home, case) if _TOOL in text else _plain(text, home, case)
    return text


def is_useless(text: str) -> bool:
    """Return whether a text has a command that cannot be run on the case file that it names."""
    if _TOOL not in text or not any(home in text for home in _HOMES):
        return False
    word = text.partition(_TOOL)[2].partition(" ")[0]
    return word not in COMMANDS or any(option in text for option in _WRITING)


def answer(value: Any) -> Any:
    """Return a value of an answer with places in case files, and without commands of no use."""
    if not _HOMES:
        return value
    if isinstance(value, str):
        return None if value.startswith(_TOOL) and is_useless(value) else shown(value)
    if isinstance(value, dict):
        return {name: answer(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [new for one in value if (new := answer(one)) is not None or one is None]
    return str(answer(str(value))) if isinstance(value, Path) else value


def _plain(text: str, home: str, case: str) -> str:
    return text.replace(f"{home}/", f"{case}:/").replace(home, case)


def _command(text: str, home: str, case: str) -> str:
    """Return a command in which the place is quoted, unless it is within quotes already."""
    first, *others = text.split(home)
    for other in others:
        place = f"{case}:" if other.startswith("/") else case
        first += (place if first.endswith("'") else shell.path(place)) + other
    return first
