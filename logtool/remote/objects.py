"""Objects of remote segments below a prefix, by segment."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from logtool.disk import files
from logtool.errors import NothingMatchedError
from logtool.formats import rsm_names
from logtool.formats.rsm_names import LOG, Plugin, RemoteObjectName
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """One object."""

    path: Path
    size: int
    name: RemoteObjectName


@dataclass(slots=True)
class ObjectSet:
    """The objects of one segment in one place, by their suffixes."""

    name: RemoteObjectName
    """The name of one of them."""
    objects: dict[str, RemoteObject]

    @property
    def path(self) -> Path:
        """Return the path of the log, or else of the first object."""
        return (self.objects.get(LOG) or next(iter(self.objects.values()))).path

    @property
    def bytes(self) -> int:
        """Return the size of all objects."""
        return sum(one.size for one in self.objects.values())


def listed(plugin: Plugin, prefix: Path) -> Iterator[RemoteObject | tuple[Path, int]]:
    """Yield the objects below a prefix, and path and size of everything else; UnreadableError.

    The prefix may be the folder of a topic or of a partition.
    """
    for path, key, size in _below(prefix):
        name = rsm_names.parse(plugin, key)
        yield RemoteObject(path, size, name) if name else (path, size)


def by_plugin(prefix: Path) -> dict[Plugin, list[RemoteObject]]:
    """Return the objects below a prefix by the plugin that writes such names; UnreadableError."""
    found: dict[Plugin, list[RemoteObject]] = {plugin: [] for plugin in Plugin}
    for path, key, size in _below(prefix):
        for plugin, objects in found.items():
            if name := rsm_names.parse(plugin, key):
                objects.append(RemoteObject(path, size, name))
    return found


def require_written_by(plugin: Plugin, prefix: Path) -> None:
    """Raise NothingMatchedError if only another plugin has written below a prefix."""
    written = [one for one, found in by_plugin(prefix).items() if found]
    if written and plugin not in written:
        text = f"nothing matched: the objects are of the plugin {written[0]}, not {plugin}: use "
        raise NothingMatchedError(prefix, f"{text}--rsm {written[0]}")


def _below(prefix: Path) -> Iterator[tuple[Path, str, int]]:
    """Yield path, key and size of all below a prefix; the key has the folders that it ends with."""
    real = files.real_path(prefix)
    above = "/".join([real.parent.name, real.name])
    for key, size in files.files_below(prefix):
        path = prefix
        for part in key.split("/"):
            path = path / part
        yield path, f"{above}/{key}", size


def grouped(objects: Iterable[RemoteObject]) -> list[ObjectSet]:
    """Return the segments that objects make, by topic, partition, offset and segment id."""
    found: dict[tuple[str, str, int, int, str, str], ObjectSet] = {}
    for one in objects:
        name = one.name
        key = (name.topic, name.topic_id, name.partition, name.base_offset, name.segment_id)
        parent = str(one.path.parent)
        made = found.setdefault((*key, parent), ObjectSet(name, {}))
        made.objects[name.kind] = one
    return [found[key] for key in sorted(found)]
