"""Directories and prefixes of object stores whose content is known by names."""

import re
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import rsm_names
from logtool.formats.rsm_names import Plugin
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
    return plugin_of(path) is not None


def plugin_of(path: Path) -> Plugin | None:
    """Return the storage plugin that wrote the first object below a directory, by names alone.

    None if no such object lies below it, and if it cannot be listed.
    """
    try:
        found = [entry.name for entry in files.list_dir(path)]
        if holds_partition_files(found) or any(map(is_root_file, found)):
            return None
        real = files.real_path(path)
        return _above_objects(path, (real.parent.name, real.name), _DEPTH)
    except UnreadableError:
        return None


def _above_objects(path: Path, parents: tuple[str, ...], depth: int) -> Plugin | None:
    entries = files.list_dir(path)
    for entry in entries:
        key = "/".join([*parents, entry.name])
        for plugin in Plugin:
            if rsm_names.parse(plugin, key):
                return plugin
    folders = [entry.name for entry in entries if files.is_dir(entry)] if depth else []
    below = (
        _above_objects(path / one, (*parents, one), depth - 1) for one in folders[:_MOST_OPENED]
    )
    return next((plugin for plugin in below if plugin), None)
