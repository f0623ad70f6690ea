"""Directories that wait to be deleted, in the output of `space` and `trim`."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.commands.output import Line
from logtool.disk import shell
from logtool.formats import names
from logtool.formats.names import DirectoryKind


def short_name(path: str) -> str:
    """Return the name of a partition dir; one that waits to be deleted without its unique id."""
    name = path.rpartition("/")[2]
    directory = names.parse_directory(name)
    if isinstance(directory, names.PartitionDirectory) and directory.kind is DirectoryKind.DELETE:
        return f"{directory.topic}-{directory.partition}-delete"
    return name


def undelete_lines(paths: Sequence[Path]) -> Iterator[Line]:
    """Yield the command that saves what waits to be deleted, which may be the last copy."""
    yield (
        "the directories that end in -delete may be the last copy of a topic that was deleted by "
        "mistake; to save them first:",
        None,
    )
    yield f"  logtool undelete --output undeleted {' '.join(map(shell.path, paths))}", None
