"""Two log dirs compared apart from the batches: directories, checkpoints and the other files.

The indexes and producer snapshots of a partition are compared for any two copies of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import meta_properties, names, offset_checkpoint, wording
from logtool.formats.names import DirectoryKind, FileKind, FileState, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import OFFSET_CHECKPOINTS, LogDir, Partition
from logtool.log.file import File
from logtool.log.selection import Selection

_BLOCK = 1 << 20
_OF_THE_LOG = frozenset({FileKind.LOG, FileKind.LEADER_EPOCH_CHECKPOINT})
_PREALLOCATED = frozenset({FileKind.OFFSET_INDEX, FileKind.TIME_INDEX})
_BUILT = frozenset({*names.INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT, FileKind.REDPANDA_BASE_INDEX})
_REBUILT = "a broker can rebuild it from the log"
_REBUILT_WITH_SEGMENT: Final = {
    FileKind.TRANSACTION_INDEX: "a broker rebuilds it only when it recovers the segment, and may "
    "refuse to start before that; logtool rebuild-index rebuilds it",
}
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
    position: int | None = None
    """First byte that differs; None unless a file that both have was compared byte by byte."""


def built_differences(
    left: Partition, right: Partition, spend: Spend
) -> Iterator[LogDirDifference | UnreadableError]:
    """Yield each index and producer snapshot that differs between two copies of a partition.

    Zeros at the end of an offset or time index are no difference, nor is an absent file that is
    empty in the other copy: a broker preallocates these indexes, and writes a transaction index
    only if a transaction is aborted.
    """
    mine, others = _built_files(left), _built_files(right)
    for name in sorted(mine.keys() | others.keys()):
        try:
            if name in mine and name in others:
                yield from _of_built(mine[name], others[name], spend)
                continue
            has, lacks = (mine, right) if name in mine else (others, left)
            file = has[name]
            if file.size:
                text = f"only in {file.path.parent}; {_rebuilding(file)}"
                yield LogDirDifference(DifferenceKind.ABSENT, file.path, lacks.path / name, 1, text)
        except UnreadableError as error:
            yield error


def _built_files(partition: Partition) -> dict[str, File]:
    return {
        file.path.name: file
        for file in partition.files()
        if file.name.kind in _BUILT and file.name.state is FileState.LIVE
    }


def _of_built(left: File, right: File, spend: Spend) -> Iterator[LogDirDifference]:
    at = _first_difference(left, right, spend)
    if at is not None:
        text = f"the bytes differ from byte {at} on; {_rebuilding(left)}"
        kind = DifferenceKind.BYTES
        yield LogDirDifference(kind, left.path, right.path, 1, text, position=at)


def _rebuilding(file: File) -> str:
    return _REBUILT_WITH_SEGMENT.get(file.name.kind, _REBUILT)


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
        if _first_difference(both[0][one], both[1][one], spend) is not None
    ]
    if wrong:
        text = f"{wording.count(len(wrong), 'file differs', 'files differ')}, the first {wrong[0]}"
        paths = left.path / name, right.path / name
        yield LogDirDifference(DifferenceKind.BYTES, *paths, len(wrong), text)


def _is_left_out(file: File, kind: DirectoryKind) -> bool:
    """Return whether the file is compared with the copies of its partition."""
    is_copy = kind in (DirectoryKind.LIVE, DirectoryKind.FUTURE)
    return is_copy and file.name.state is FileState.LIVE and file.name.kind in _OF_THE_LOG | _BUILT


def _of_file(left: File, right: File, spend: Spend) -> Iterator[LogDirDifference]:
    """Yield the difference of a file that both log dirs have."""
    at = _first_difference(left, right, spend)
    if at is None:
        return
    paths, kind = (left.path, right.path), left.name.kind
    is_live = left.name.state is FileState.LIVE
    if kind in OFFSET_CHECKPOINTS and is_live:
        both = [offset_checkpoint.parse(files.read_small(path)) for path in paths]
        rows = both[0].offsets.items() ^ both[1].offsets.items()
        wrong = {key for key, _ in rows}
        if wrong:
            text = "; ".join(_of_rows(both[0].offsets, both[1].offsets, *paths))
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
        text = f"the bytes differ from byte {at} on"
        yield LogDirDifference(DifferenceKind.BYTES, *paths, 1, text, position=at)


def _of_rows(
    left: Mapping[TopicPartition, int], right: Mapping[TopicPartition, int], one: Path, two: Path
) -> Iterator[str]:
    """Yield how the rows of a checkpoint differ: missing ones, then others."""
    for lacking, has, path in (left, right, one), (right, left, two):
        if gone := sorted(has.keys() - lacking.keys()):
            count = wording.count(len(gone), "row is", "rows are")
            yield f"{count} missing in {path.parent}{_first(gone)}"
    if other := sorted(key for key in left.keys() & right.keys() if left[key] != right[key]):
        count = wording.count(len(other), "row differs", "rows differ")
        yield f"{count}{_first(other)}: {left[other[0]]} and {right[other[0]]}"


def _first(keys: Sequence[TopicPartition]) -> str:
    topic, number = keys[0]
    return f", {'the first' if len(keys) > 1 else 'that'} of {topic}-{number}"


def _first_difference(left: File, right: File, spend: Spend) -> int | None:
    """Return the first byte at which two files differ; None if they are the same.

    Zeros at the end of an offset or time index do not count.
    """
    with left.open() as one, right.open() as two:
        if left.name.kind in _PREALLOCATED:
            contents = [file.read_unpadded(file.size).rstrip(b"\0") for file in (one, two)]
            spend(left.path, sum(map(len, contents)))
            return _first_unequal(*contents)
        for position in range(0, max(one.size, two.size), _BLOCK):
            blocks = [file.read(position, _BLOCK) for file in (one, two)]
            spend(left.path, sum(map(len, blocks)))
            at = _first_unequal(*blocks)
            if at is not None:
                return position + at
    return None


def _first_unequal(left: bytes, right: bytes) -> int | None:
    if left == right:
        return None
    size = min(len(left), len(right))
    one, two = (np.frombuffer(data, np.uint8, size) for data in (left, right))
    unequal = np.flatnonzero(one != two)
    return int(unequal[0]) if len(unequal) else size
