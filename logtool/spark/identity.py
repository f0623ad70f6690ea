"""The log dir, broker and partition that a path belongs to, from its name and meta.properties.

For a partition of Redpanda the log dir is here the folder of its topic.
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
    """Return the identity of the files in a partition dir, which may have any name."""
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
    """Return the identity of a path: a partition dir, one of `log_dirs`, or a file in either."""
    if root := _by_text(log_dirs).get(str(path)):
        return _of_root(root)
    # A log dir may have a name that a partition could have: broker-1.
    for one in (path,) if path.parent in log_dirs else (path.parent, path):
        if _partition(one):
            return place_of_dir(one)
    return _of_root(path.parent)


@lru_cache(maxsize=8)
def _by_text(log_dirs: frozenset[Path]) -> dict[str, Path]:
    """Return log dirs by their text: a bucket and the log dir made from it are different paths."""
    return {str(path): path for path in log_dirs}


def _partition(path: Path) -> PartitionDirectory | None:
    """Return the partition that the name of a folder gives, in Kafka's or Redpanda's form."""
    directory = names.parse_directory(path.name)
    if isinstance(directory, PartitionDirectory):
        return directory
    return redpanda_dir.directory(path)


@lru_cache(maxsize=4096)
def node_id(log_dir: Path) -> int | None:
    """Return the id of the broker that a log dir belongs to; None if the log dir has no id."""
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
