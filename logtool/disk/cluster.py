"""The cluster that a log dir belongs to, by its ``meta.properties``."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError, UsageError
from logtool.formats import meta_properties
from logtool.formats.names import FileKind


def read_id(log_dir: Path) -> str | None:
    """Return the id of the cluster of a log dir; None where nothing says it.

    Raises UnreadableError where the file is there and cannot be read.
    """
    try:
        content = files.read_small(log_dir / FileKind.META_PROPERTIES.value)
    except UnreadableError as error:
        if error.missing:
            return None
        raise
    return meta_properties.parse(content).properties.get("cluster.id")


def refuse_several(paths: Iterable[Path]) -> None:
    """Raise UsageError where paths are of different clusters: log dirs, or what lies in them.

    What is read from them is joined by names that each cluster has for itself. A file that is not
    there or cannot be read says nothing here: `verify` tells of it.
    """
    first: tuple[Path, str] | None = None
    for path in paths:
        found = _id_around(path)
        if found is None:
            continue
        if first is None:
            first = path, found
        elif found != first[1]:
            text = f"{path} is of cluster {found}, and {first[0]} of {first[1]}: give one cluster"
            raise UsageError(f"{text} at a time")


def _id_around(path: Path) -> str | None:
    """Return what a log dir says, or that which a partition dir or a file of one lies in."""
    for place in (path, *path.resolve().parents[:2]):
        with suppress(UnreadableError):
            if found := read_id(place):
                return found
    return None
