"""Directories of Redpanda: which partitions, segments and indexes lie in one.

A data directory holds ``<namespace>/<topic>/<partition>_<revision>``. What names say stands in
`logtool.formats.redpanda.names`; here they become the names of Kafka's kinds, so that a partition
is listed as one of Kafka.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import names as kafka_names
from logtool.formats.names import DirectoryKind, FileState, PartitionDirectory, Reception
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import RedpandaFileKind, RedpandaFileName
from logtool.lazy_dataclass import dataclass

READ_KINDS = (
    RedpandaFileKind.SEGMENT,
    RedpandaFileKind.TIERED_SEGMENT,
    RedpandaFileKind.CANNOT_RECOVER,
    RedpandaFileKind.BASE_INDEX,
)
"""The files that are read: segments, also those that a start gave up, and their base indexes."""

LEVELS = 3
"""Folders between a data directory and the files of a partition."""
_FIRST = 16
"""Folders of each level that are looked into to find out whether there are partitions below."""


_KINDS = {
    RedpandaFileKind.SEGMENT: (kafka_names.FileKind.LOG, FileState.LIVE),
    RedpandaFileKind.TIERED_SEGMENT: (kafka_names.FileKind.LOG, FileState.LIVE),
    RedpandaFileKind.BASE_INDEX: (kafka_names.FileKind.REDPANDA_BASE_INDEX, FileState.LIVE),
    RedpandaFileKind.STAGING: (kafka_names.FileKind.UNKNOWN, FileState.CLEANED),
    RedpandaFileKind.PARTIAL_SNAPSHOT: (kafka_names.FileKind.UNKNOWN, FileState.PARTIAL),
}
"""Kafka's kind and state of each kind of Redpanda file. Other Redpanda files are UNKNOWN."""


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """One file of a partition."""

    path: Path
    name: RedpandaFileName
    topic: str | None
    """None if the names of the folders above do not show it."""
    partition: int | None


def place(path: Path) -> SegmentPlace | None:
    """Return the place of a segment or base index by its path; None for a file of another kind."""
    name = names.parse_partition_file(path.name)
    if name.kind not in READ_KINDS:
        return None
    folder = path.absolute().parent
    directory = names.parse_partition_directory(folder.name)
    if directory is None:
        return SegmentPlace(path, name, None, None)
    return SegmentPlace(path, name, folder.parent.name, directory.partition)


def term_of(path: Path) -> int | None:
    """Return the term in the name of a segment; None for the name of any other file."""
    name = names.parse_partition_file(path.name)
    return name.term if name.kind in names.SEGMENTS else None


def is_data_dir(entries: Sequence[str]) -> bool:
    """Return whether a directory with these entries is a data directory."""
    return names.is_data_dir(entries)


def is_partition(path: Path, entries: Sequence[str]) -> bool:
    """Return whether a directory with these entries is a partition's, by its name or a segment."""
    return directory(path) is not None or _holds_segment(entries)


def is_surely_partition(path: Path, entries: Sequence[str]) -> bool:
    """Return whether name and segment both say so: no folder of Kafka's has such a name."""
    return directory(path) is not None and _holds_segment(entries)


def _holds_segment(entries: Sequence[str]) -> bool:
    return any(
        names.parse_partition_file(name).kind
        in (RedpandaFileKind.SEGMENT, RedpandaFileKind.TIERED_SEGMENT)
        for name in entries
    )


def file_name(text: str) -> kafka_names.FileName:
    """Return the parsed name of a file of a partition, with the kind that Kafka's files have."""
    name = names.parse_partition_file(text)
    kind, state = _KINDS.get(name.kind, (kafka_names.FileKind.UNKNOWN, FileState.LIVE))
    known = name.kind is not RedpandaFileKind.UNKNOWN
    return kafka_names.FileName(
        name=text,
        kind=kind,
        state=state,
        reception=Reception.EXACT if known else Reception.IGNORED,
        offset=name.base_offset,
        epoch=name.term,
    )


def directory(path: Path) -> PartitionDirectory | None:
    """Return the partition of a folder; None if the names of the folders above do not show it."""
    folder = path.absolute()
    named = names.parse_partition_directory(folder.name)
    if named is None:
        return None
    return PartitionDirectory(
        name=folder.name,
        kind=DirectoryKind.LIVE,
        topic=folder.parent.name,
        partition=named.partition,
        unique_id=None,
        exact=True,
    )


def partitions(path: Path) -> list[tuple[Path, PartitionDirectory]]:
    """Return the partitions of a data directory, of a namespace or of a topic, in order.

    The folder of a partition stands for itself. Any other directory has no partitions.
    A folder above partitions that cannot be listed stands for what lies in it (``unlisted``), so
    that its error is reported when it is read, and it is not taken for empty.
    """
    alone = directory(path)
    if alone:
        return [(path, alone)]
    found = _partitions(path, LEVELS)
    return sorted(found, key=lambda item: (str(item[0].parent), item[1].partition, str(item[0])))


def newest(
    partitions: Sequence[tuple[Path, PartitionDirectory]],
) -> list[tuple[Path, PartitionDirectory]]:
    """Return of the folders of each partition the one of the last revision.

    The others are of a topic of the same name that was deleted.
    """
    last: dict[tuple[Path, int], tuple[int, Path, PartitionDirectory]] = {}
    for path, listed in partitions:
        named = names.parse_partition_directory(path.absolute().name)
        key = path.absolute().parent, listed.partition
        if named and (key not in last or named.revision > last[key][0]):
            last[key] = named.revision, path, listed
    unlisted = [one for one in partitions if one[1].unlisted]
    return [(path, listed) for _, path, listed in last.values()] + unlisted


def holds_partitions(path: Path) -> bool:
    """Return whether there is a partition below a directory, by its first folders."""
    return any(not one.unlisted for _, one in _partitions(path, LEVELS, most=_FIRST))


def data_dir_of(path: Path) -> tuple[Path, Path]:
    """Return the data directory of Redpanda that a path lies in, and the path below it.

    What lies in none, as a copy of one partition, stands for itself. UnreadableError for a file.
    """
    if not files.leads_to_dir(path):
        raise UnreadableError(path, "expected a data directory, or a folder in one")
    if ".." in path.parts:
        path = path.resolve()
    for given in (path, path.resolve()):
        for folder in (given, *given.parents[:LEVELS]):
            entries = [entry.name for entry in files.list_dir(folder)]
            if names.is_data_dir(entries):
                return folder, given
    return path, path


def _partitions(
    path: Path, levels: int, most: int | None = None
) -> Iterator[tuple[Path, PartitionDirectory]]:
    try:
        folders = _folders(path, files.list_dir(path))
    except UnreadableError as error:
        if not files.has_vanished(error):
            yield path, _unlisted(path)
        return
    for folder in folders[:most]:
        named = directory(folder)
        if named:
            yield folder, named
        elif levels > 1:
            yield from _partitions(folder, levels - 1, most)


def _folders(path: Path, entries: Sequence[files.Entry]) -> list[Path]:
    """Return the folders in which partitions may lie."""
    others = names.OTHER_FOLDERS if is_data_dir([entry.name for entry in entries]) else ()
    return [path / one.name for one in entries if files.is_dir(one) and one.name not in others]


def _unlisted(path: Path) -> PartitionDirectory:
    return PartitionDirectory(
        name=path.name,
        kind=DirectoryKind.LIVE,
        topic=path.name,
        partition=0,
        unique_id=None,
        exact=False,
        unlisted=True,
    )


def places(path: Path, unread: list[UnreadableError]) -> list[SegmentPlace]:
    """Return the files of `READ_KINDS` of a data directory or a folder in it, or the one given.

    Any other path has no such files. Segments come by offset and not by name, each with its
    index behind it. What cannot be listed is added to `unread`.
    """
    if not files.leads_to_dir(path):
        alone = place(path)
        return [alone] if alone else []
    entries = files.list_dir(path)
    found = [entry.name for entry in entries]
    whole = not is_partition(path, found) and (names.is_data_dir(found) or holds_partitions(path))
    levels = LEVELS if whole else 0
    return list(_places(path, levels, unread))


def _places(path: Path, levels: int, unread: list[UnreadableError]) -> Iterator[SegmentPlace]:
    try:
        entries = files.list_dir(path)
    except UnreadableError as error:
        if not files.has_vanished(error):
            unread.append(error)
        return
    inside = (place(path / e.name) for e in entries if e.is_file(follow_symlinks=False))
    yield from sorted((one for one in inside if one), key=_order)
    if levels == 0:
        return
    for folder in _folders(path, entries):
        yield from _places(folder, levels - 1, unread)


def _order(one: SegmentPlace) -> tuple[int, int, int, str]:
    name = one.name
    return name.base_offset or 0, name.term or 0, READ_KINDS.index(name.kind), name.name
