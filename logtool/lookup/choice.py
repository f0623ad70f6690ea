"""Which partition is meant: a partition dir, or one partition of a log dir by its name."""

from pathlib import Path

from logtool.errors import NothingMatchedError, UsageError
from logtool.formats.names import DirectoryKind
from logtool.log import inputs, opening
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.redpanda import REDPANDA
from logtool.log.selection import Selection

_MOST_NAMED = 3


def partition_of(
    path: Path, topic: str | None, number: int | None, flavour: Flavour | None = None
) -> Path:
    """Return the directory of the partition that is meant.

    A path that is no log dir is returned as it is. UsageError where several partitions of a log
    dir are meant, NothingMatchedError where none is, UnreadableError where it cannot be listed.
    """
    if inputs.kind_of(path, flavour, redpanda=True) is not PathKind.LOG_DIR:
        if topic is not None or number is not None:
            raise UsageError("--topic and --partition are for a log dir, and PATH is none")
        return path
    selection = Selection(
        topics=() if topic is None else (topic,), partitions=() if number is None else (number,)
    )
    listed = opening.open_log_dir(path, flavour)
    chosen = [
        (folder, directory.unlisted)
        for folder, directory in listed.partitions
        if directory.kind is not DirectoryKind.DELETE and selection.takes(directory)
    ]
    # A folder that could not be listed may hold the one that is meant, if none is there that is.
    least = min((unlisted for _, unlisted in chosen), default=False)
    found = [folder for folder, unlisted in chosen if unlisted == least]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NothingMatchedError(path, f"nothing matched {selection}".rstrip())
    # Redpanda's folders are named alike in each topic.
    parts = 2 if listed.flavour is REDPANDA else 1
    shown = ", ".join("/".join(folder.parts[-parts:]) for folder in found[:_MOST_NAMED])
    more = ", ..." if len(found) > _MOST_NAMED else ""
    raise UsageError(
        f"{path}: is a log dir, and {len(found)} of its partitions are meant ({shown}{more}); "
        "name one with --topic and --partition"
    )
