"""Directories of several brokers, as a command line names them: ``ID=DIR`` or ``DIR``."""

import re
from collections.abc import Callable
from pathlib import Path

from logtool.disk import files
from logtool.lazy_dataclass import dataclass

_WITH_NODE = re.compile(r"([0-9]{1,10})=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class NodeDir:
    """A log dir, a partition dir or a file, and whose it is."""

    path: Path
    node: int | None = None
    """The id of the broker; None: what meta.properties says."""


def parse(text: str, path_of: Callable[[str], Path] = files.path_of) -> NodeDir:
    """Return what a text names; one that is there as it stands is a path as a whole.

    `path_of` makes the path, and raises UsageError for one that the command does not take.
    """
    named = _WITH_NODE.fullmatch(text)
    if named and not Path(text).exists():
        return NodeDir(path_of(named.group(2)), int(named.group(1)))
    return NodeDir(path_of(text))
