"""Directories and prefixes of object stores whose content is known by names."""

import re
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import rsm_names
from logtool.log.kafka import holds_partition_files, is_root_file

_HASH = re.compile(r"[0-9a-f]{8,16}|[0-9A-F]{32}|reservation", re.ASCII)
"""First part of the keys in a bucket of AutoMQ; `logtool.formats.automq.names` knows all parts."""
AUTOMQ_NAMESPACE = "_kafka_"
"""Beginning of the second part of these keys."""
_DEPTH, _MOST_OPENED = 4, 3
"""Folders above objects of tiered storage, and folders of one that are looked into for objects."""


def is_bucket(path: Path) -> bool:
    """Return whether a directory has objects of AutoMQ, by names alone; False if it has no list."""
    try:
        folders = [entry for entry in files.list_dir(path) if _HASH.fullmatch(entry.name)]
        below = [one.name for entry in folders[:1] for one in files.list_dir(path / entry.name)]
    except UnreadableError:
        return False
    return any(name.startswith(AUTOMQ_NAMESPACE) for name in below)


def is_tier(path: Path) -> bool:
    """Return whether objects of tiered storage lie below a directory, by names alone."""
    try:
        found = [entry.name for entry in files.list_dir(path)]
        if holds_partition_files(found) or any(map(is_root_file, found)):
            return False
        real = files.real_path(path)
        return _is_above_objects(path, (real.parent.name, real.name), _DEPTH)
    except UnreadableError:
        return False


def _is_above_objects(path: Path, parents: tuple[str, ...], depth: int) -> bool:
    entries = files.list_dir(path)
    for entry in entries:
        key = "/".join([*parents, entry.name])
        if any(rsm_names.parse(plugin, key) for plugin in rsm_names.Plugin):
            return True
    folders = [entry.name for entry in entries if files.is_dir(entry)][:_MOST_OPENED]
    return depth > 0 and any(
        _is_above_objects(path / one, (*parents, one), depth - 1) for one in folders
    )
