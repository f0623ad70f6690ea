"""Which log dir, broker and partition a path belongs to, from its name and meta.properties.

The log dir of a partition of Redpanda is here what holds it: the folder of its topic.
"""

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from logtool.disk import files
from logtool.errors import FormatError, UnreadableError
from logtool.formats import meta_properties, names
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.log import redpanda_dir
from logtool.log.arrow_rows import PartitionIdentity
from logtool.node.identity import node_of


def place_of_dir(path: Path) -> PartitionIdentity:
    """Return the place of what lies in a partition dir, whatever that is called."""
    if path.name in ("", ".."):
        path = path.resolve()  # a dot has no name of its own
    directory, topic, partition = _partition(path), None, None
    if directory:
        topic, partition = files.text_of(directory.topic), directory.partition
    home = path.parent
    return PartitionIdentity(
        log_dir=files.text_of(home),
        node_id=node_id(home),
        topic=topic,
        partition=partition,
        directory=files.text_of(path.name),
    )


def place_of(path: Path, log_dirs: frozenset[Path] = frozenset()) -> PartitionIdentity:
    """Return the place of anything: a partition dir, a file in it, a log dir, a file of that."""
    if path in log_dirs:
        return _of_root(path)
    # A log dir may have a name that a partition could have: broker-1.
    for one in (path,) if path.parent in log_dirs else (path.parent, path):
        if _partition(one):
            return place_of_dir(one)
    return _of_root(path.parent)


def _partition(path: Path) -> PartitionDirectory | None:
    """Return which partition a folder is of by its name, Kafka's or Redpanda's."""
    directory = names.parse_directory(path.name)
    if isinstance(directory, PartitionDirectory):
        return directory
    return redpanda_dir.directory(path)


@lru_cache(maxsize=4096)
def node_id(log_dir: Path) -> int | None:
    """Return the id of the broker that a log dir belongs to; None where it does not tell."""
    with suppress(UnreadableError, FormatError, ValueError, TypeError):
        data = files.read_small(log_dir / FileKind.META_PROPERTIES)
        return int(node_of(meta_properties.parse(data)) or "")
    return None


def _of_root(log_dir: Path) -> PartitionIdentity:
    return PartitionIdentity(
        log_dir=files.text_of(log_dir),
        node_id=node_id(log_dir),
        topic=None,
        partition=None,
        directory=None,
    )
