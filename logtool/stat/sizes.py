"""The use of the disk: names and sizes alone, so that no file is opened.

The directory says the size of a file; the space that it takes up is that of its real blocks. An
index that a broker has preallocated has a size of 10 MiB and takes up nothing, and a sparse or
compressed file takes up less than its size.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.names import INDEX_KINDS, DirectoryKind, FileKind, FileState
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Totals of files, in bytes."""

    segments: int = 0
    files: int = 0
    log_bytes: int = 0
    index_bytes: int = 0
    other_bytes: int = 0
    """Bytes of snapshots, checkpoints, and files of other names."""
    going_bytes: int = 0
    """Bytes of files and partitions that wait to be deleted; they are also in the totals above."""
    disk_bytes: int = 0
    """Real blocks of all files, in bytes."""
    disk_log_bytes: int = 0
    disk_index_bytes: int = 0
    unknown_files: int = 0
    """Files behind a URL, whose blocks are not known: they count with their size."""

    @property
    def bytes(self) -> int:
        """Return the bytes of all files, by their sizes."""
        return self.log_bytes + self.index_bytes + self.other_bytes

    @property
    def known_disk_bytes(self) -> int | None:
        """Return the bytes of the blocks of all files; None if those of a file are not known."""
        return None if self.unknown_files else self.disk_bytes

    @property
    def known_disk_log_bytes(self) -> int | None:
        """Return the bytes of the blocks of the logs; None if those of a file are not known."""
        return None if self.unknown_files else self.disk_log_bytes

    @property
    def known_disk_index_bytes(self) -> int | None:
        """Return the bytes of the blocks of the indexes; None if those of a file are not known."""
        return None if self.unknown_files else self.disk_index_bytes


@dataclass(frozen=True, slots=True)
class SizesOf:
    """The sizes of a partition, a topic or everything, with its name."""

    sizes: FileSizes
    path: Path | None = None
    topic: str | None = None
    partition: int | None = None
    partitions: int = 0
    topics: int = 0


def merged(parts: Iterable[FileSizes]) -> FileSizes:
    """Return the sum of the parts."""
    total: Counter[str] = Counter()
    for part in parts:
        for one in fields(part):
            total[one.name] += getattr(part, one.name)
    return FileSizes(**total)


def of_partition(found: Partition) -> FileSizes:
    """Return the totals of the files of a partition dir."""
    goes = getattr(found.directory, "kind", None) is DirectoryKind.DELETE
    each = (_of_file(file, goes=goes) for file in found.files())
    return merged([FileSizes(segments=len(found.segments)), *each])


def _of_file(file: File, *, goes: bool) -> FileSizes:
    size, kind = file.size, file.name.kind
    taken = size if file.allocated is None else file.allocated
    is_log, is_index = kind is FileKind.LOG, kind in INDEX_KINDS
    return FileSizes(
        files=1,
        log_bytes=size if is_log else 0,
        index_bytes=size if is_index else 0,
        other_bytes=0 if is_log or is_index else size,
        going_bytes=size if goes or file.name.state is FileState.DELETED else 0,
        disk_bytes=taken,
        disk_log_bytes=taken if is_log else 0,
        disk_index_bytes=taken if is_index else 0,
        unknown_files=file.allocated is None,
    )


@dataclass(slots=True)
class Weighing:
    """One run over paths: iterate over partitions with their sizes, and errors of listing."""

    paths: Sequence[Path]
    selection: Selection
    run: Run
    flavour: Flavour | None = None
    """The value of ``--flavour``; None to go by the names in each directory."""

    def __iter__(self) -> Iterator[tuple[Partition, FileSizes] | UnreadableError]:
        for path in files.each_once(self.paths):
            try:
                for folder, flavour in self._folders(path):
                    self.run.budget.pace.spend(0)
                    found = opening.try_partition(folder, flavour)
                    if isinstance(found, Partition):
                        yield found, of_partition(found)
                    elif folder == path or not files.has_vanished(found):
                        yield found
            except UnreadableError as error:
                yield error
            except OutOfTimeError:
                return

    def _folders(self, path: Path) -> list[tuple[Path, Flavour | None]]:
        kind = inputs.kind_of(path, self.flavour, redpanda=True)
        if kind is PathKind.FILE:
            raise UnreadableError(path, "expected a log dir or a partition dir")
        if kind is PathKind.PARTITION_DIR:
            return [(path, self.flavour)]
        root = opening.open_log_dir(path, self.flavour)
        return [(one, root.flavour) for one, name in root.partitions if self.selection.takes(name)]
