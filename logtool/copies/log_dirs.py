"""Two log dirs compared apart from the batches: directories, checkpoints and the other files.

A broker builds indexes and producer snapshots from the log; they are not compared.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import meta_properties, names, offset_checkpoint, wording
from logtool.formats.names import DirectoryKind, FileKind, FileState
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir
from logtool.log.file import File
from logtool.log.selection import Selection

_BLOCK = 1 << 20
_OF_THE_LOG = frozenset({FileKind.LOG, FileKind.LEADER_EPOCH_CHECKPOINT})
_BUILT = frozenset({*names.INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT})
Spend = Callable[[Path, int], None]
"""Called with a path and the bytes that were read of it."""


class DifferenceKind(StrEnum):
    """The kinds of differences between two log dirs."""

    ABSENT = "absent"
    ROWS = "rows"
    PROPERTIES = "properties"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class LogDirDifference:
    """A file or directory that only one of two log dirs has, or that differs between them."""

    kind: DifferenceKind
    path: Path
    """The file or directory in the log dir that has it."""
    other: Path
    """Its place in the other log dir."""
    count: int
    """Rows, properties or files that differ."""
    message: str


def differences(
    left: LogDir, right: LogDir, selection: Selection, spend: Spend
) -> Iterator[LogDirDifference | UnreadableError]:
    """Yield the differences apart from the batches of partitions.

    A selection of partitions leaves out the files of the log dirs themselves.
    """
    mine, others = _folders(left, selection), _folders(right, selection)
    yield from _absent(left.path, right.path, mine, others)
    for name in sorted(mine.keys() & others.keys()):
        try:
            yield from _of_folder(left, right, name, mine[name], spend)
        except UnreadableError as error:
            yield error
    if selection != Selection():
        return
    here, there = _root_files(left), _root_files(right)
    yield from _absent(left.path, right.path, here, there)
    for name in sorted(here.keys() & there.keys()):
        try:
            yield from _of_file(here[name], there[name], spend)
        except UnreadableError as error:
            yield error


def _folders(root: LogDir, selection: Selection) -> dict[str, DirectoryKind | None]:
    """Return the directories by name; live partitions are compared elsewhere, if absent too."""
    found: dict[str, DirectoryKind | None] = {
        path.name: directory.kind
        for path, directory in root.partitions
        if selection.takes(directory)
    }
    if selection == Selection():
        found |= {path.name: None for path, _ in root.bad_directories}
        found |= {path.name: None for path in root.odd_entries}
    return found


def _root_files(root: LogDir) -> dict[str, File]:
    listed = [*root.files.values(), *root.leftovers, *root.strangers]
    return {one.path.name: one for one in listed if one.path.name != root.flavour.lock}


def _absent(
    left: Path, right: Path, mine: Mapping[str, object], others: Mapping[str, object]
) -> Iterator[LogDirDifference]:
    for has, lacks, home, place in (mine, others, left, right), (others, mine, right, left):
        for name in sorted(has.keys() - lacks.keys()):
            if has[name] is not DirectoryKind.LIVE:
                text = f"only in {home}"
                yield LogDirDifference(DifferenceKind.ABSENT, home / name, place / name, 1, text)


def _of_folder(
    left: LogDir, right: LogDir, name: str, kind: DirectoryKind | None, spend: Spend
) -> Iterator[LogDirDifference]:
    """Yield the difference of one directory that both log dirs have, once for all its files."""
    if kind is None:  # not the directory of a partition
        return
    both = [
        {
            file.path.name: file
            for file in opening.open_partition(root.path / name, root.flavour).files()
            if not _is_left_out(file, kind)
        }
        for root in (left, right)
    ]
    wrong = sorted(both[0].keys() ^ both[1].keys()) + [
        one
        for one in sorted(both[0].keys() & both[1].keys())
        if not _is_equal(both[0][one], both[1][one], spend)
    ]
    if wrong:
        text = f"{wording.count(len(wrong), 'file')} differ, such as {wrong[0]}"
        paths = left.path / name, right.path / name
        yield LogDirDifference(DifferenceKind.BYTES, *paths, len(wrong), text)


def _is_left_out(file: File, kind: DirectoryKind) -> bool:
    """Return whether a broker builds the file, or whether its batches were compared."""
    if file.name.state is not FileState.LIVE:
        return False
    compared = _OF_THE_LOG if kind in (DirectoryKind.LIVE, DirectoryKind.FUTURE) else frozenset()
    return file.name.kind in _BUILT | compared


def _of_file(left: File, right: File, spend: Spend) -> Iterator[LogDirDifference]:
    """Yield the difference of a file that both log dirs have."""
    if _is_equal(left, right, spend):
        return
    paths, kind = (left.path, right.path), left.name.kind
    is_live = left.name.state is FileState.LIVE
    if kind in OFFSET_CHECKPOINTS and is_live:
        both = [offset_checkpoint.parse(files.read_small(path)) for path in paths]
        rows = both[0].offsets.items() ^ both[1].offsets.items()
        wrong = sorted({key for key, _ in rows})
        if wrong:
            topic, number = wrong[0]
            text = f"{wording.count(len(wrong), 'row')} differ, such as {topic}-{number}"
            yield LogDirDifference(DifferenceKind.ROWS, *paths, len(wrong), text)
        refused = [offset_checkpoint.refusal(one) for one in both]
        if refused[0] != refused[1] and not wrong:
            text = "the rows are the same, but a broker does not take one of the files"
            yield LogDirDifference(DifferenceKind.ROWS, *paths, 0, text)
    elif kind is FileKind.META_PROPERTIES and is_live:
        metas = [meta_properties.parse(files.read_small(path)) for path in paths]
        pairs = metas[0].properties.items() ^ metas[1].properties.items()
        keys = sorted({key for key, _ in pairs})
        if keys or metas[0].unread != metas[1].unread:
            text = f"{', '.join(keys) or 'the part that cannot be read'} differ"
            yield LogDirDifference(DifferenceKind.PROPERTIES, *paths, len(keys), text)
    else:
        yield LogDirDifference(DifferenceKind.BYTES, *paths, 1, "the bytes differ")


def _is_equal(left: File, right: File, spend: Spend) -> bool:
    """Return whether two files have the same bytes."""
    with left.open() as one, right.open() as two:
        if one.size != two.size:
            return False
        for position in range(0, one.size, _BLOCK):
            blocks = [file.read(position, _BLOCK) for file in (one, two)]
            spend(left.path, sum(map(len, blocks)))
            if blocks[0] != blocks[1]:
                return False
    return True
