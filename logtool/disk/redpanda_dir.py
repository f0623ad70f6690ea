"""Directories of Redpanda: which segments and indexes lie in one, in the order of the log.

A data directory holds ``<namespace>/<topic>/<partition>_<revision>``. What names say stands in
`logtool.formats.redpanda.names`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from logtool.disk import files
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import FileKind, FileName

READ_KINDS = (
    FileKind.SEGMENT,
    FileKind.TIERED_SEGMENT,
    FileKind.CANNOT_RECOVER,
    FileKind.BASE_INDEX,
)
"""The files that are read: segments, also those that a start gave up, and their base indexes."""

_LEVELS = 3
"""Folders between a data directory and the files of a partition."""


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a partition."""

    path: Path
    name: FileName
    topic: str | None
    """None where the folders above do not tell."""
    partition: int | None


def place(path: Path) -> Place | None:
    """Return what the path of a file says; None where the name is no segment's or base index's."""
    name = names.parse_partition_file(path.name)
    if name.kind not in READ_KINDS:
        return None
    folder = path.absolute().parent
    directory = names.parse_partition_directory(folder.name)
    if directory is None:
        return Place(path, name, None, None)
    return Place(path, name, folder.parent.name, directory.partition)


def is_one(entries: list[str]) -> bool:
    """Return whether a directory with these entries is a data directory or a partition's."""
    return names.is_data_dir(entries) or any(
        names.parse_partition_file(name).kind in READ_KINDS for name in entries
    )


def places(path: Path) -> list[Place]:
    """Return the files of `READ_KINDS` of a data directory, of a partition's, or the one given.

    There is none where it is none of these. Segments come by offset and not by name, each with its
    index behind it. UnreadableError for a directory that cannot be listed.
    """
    if not files.leads_to_dir(path):
        alone = place(path)
        return [alone] if alone else []
    entries = files.list_dir(path)
    levels = _LEVELS if names.is_data_dir([entry.name for entry in entries]) else 0
    return list(_places(path, levels))


def _places(path: Path, levels: int) -> Iterator[Place]:
    entries = files.list_dir(path)
    inside = (place(path / e.name) for e in entries if e.is_file(follow_symlinks=False))
    yield from sorted((one for one in inside if one), key=_order)
    if levels == 0:
        return
    for entry in entries:
        if files.is_dir(entry):
            yield from _places(path / entry.name, levels - 1)


def _order(one: Place) -> tuple[int, int, int, str]:
    name = one.name
    return name.base_offset or 0, name.term or 0, READ_KINDS.index(name.kind), name.name
