"""Input files of a dump: the given paths, with the files of directories in order."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files
from logtool.dump.values import Range
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import names
from logtool.formats.names import (
    DirectoryKind,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.formats.redpanda import names as redpanda_names
from logtool.lazy_dataclass import dataclass
from logtool.log import opening, redpanda_dir
from logtool.log.buckets import AUTOMQ_NAMESPACE, is_bucket
from logtool.log.dir import Partition
from logtool.log.file import File, describe
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind, kind_of
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.log.redpanda_dir import SegmentPlace
from logtool.log.selection import Selection

if TYPE_CHECKING:
    from logtool.dump.state import FileEntries

LOG_KINDS = (FileKind.LOG, FileKind.KRAFT_SNAPSHOT, FileKind.BOOTSTRAP_CHECKPOINT)
REDPANDA_KINDS = (FileKind.REDPANDA_SEGMENT, FileKind.REDPANDA_BASE_INDEX)
"""Files that hold batches."""


@dataclass(frozen=True, slots=True)
class Input:
    """One file to dump."""

    path: Path
    name: FileName
    size: int
    topic: str | None
    partition: int | None
    reader: "Callable[[], FileEntries] | None" = None
    """Function that reads an object of AutoMQ; None for any other file."""

    @property
    def flavour(self) -> Flavour:
        """Return the flavour of the file, by the kind that its directory gave it."""
        return REDPANDA if self.name.kind in REDPANDA_KINDS else KAFKA


def find_inputs(
    paths: Sequence[Path],
    selection: Selection,
    logs_with: Range | None = None,
    flavour: Flavour | None = None,
    *,
    leftovers: bool = False,
) -> tuple[list[Input], list[UnreadableError]]:
    """Return the files that are meant, and errors for the paths that cannot be read.

    With `logs_with` a directory stands only for its logs that may hold an offset of that range, by
    their names; with `leftovers` also for such logs that no broker loads. `flavour` overrules the
    names.
    """
    wanted = None if logs_with is None else _WantedLogs(logs_with, leftovers)
    inputs: list[Input] = []
    unreadable: list[UnreadableError] = []
    for path in paths:
        try:
            inputs += _expand(path, selection, unreadable, wanted, flavour)
        except UnreadableError as error:
            unreadable.append(error)
    return inputs, unreadable


def log_next_to(index: Input) -> Path:
    """Return the path of the log that an index belongs to: of the same segment and state."""
    if index.name.kind is FileKind.REDPANDA_BASE_INDEX:
        return index.path.with_suffix(FileKind.LOG)
    return index.path.with_name(
        index.path.name.removesuffix(index.name.state).removesuffix(index.name.kind)
        + FileKind.LOG
        + index.name.state
    )


def _expand(
    path: Path,
    selection: Selection,
    unreadable: list[UnreadableError],
    wanted: "_WantedLogs | None",
    flavour: Flavour | None,
) -> Iterable[Input]:
    try:
        kind = kind_of(path, flavour)
    except NothingMatchedError:
        if selection == Selection() and is_bucket(path):
            return _of_automq(path)
        found = redpanda_dir.places(path, unreadable)
        if not found:
            raise
        meant = [place for place in found if _is_meant(place, selection, wanted)]
        if not meant:
            raise NothingMatchedError(path, f"nothing matched {selection}") from None
        return [_of_redpanda(place) for place in meant]
    if kind is PathKind.FILE:
        of_automq = _of_automq(path) if AUTOMQ_NAMESPACE in str(path) else []
        try:
            return of_automq or [_single(path)]
        except UnreadableError:
            of_automq = _of_automq(path)  # A WAL on a device or in a file has any name.
            if not of_automq:
                raise
            return of_automq
    if kind is PathKind.PARTITION_DIR:
        return _partition(path, wanted, flavour)
    inputs: list[Input] = []
    content = opening.open_log_dir(path, flavour)
    whole = selection == Selection() and wanted is None
    if whole:
        root = [*content.files.values(), *content.leftovers, *content.strangers]
        inputs += _inputs(root, None, None)
    for place, directory in content.partitions:
        if selection.takes(directory):
            try:
                inputs += _partition(place, wanted, content.flavour)
            except UnreadableError as error:
                if not files.has_vanished(error):
                    unreadable.append(error)
    cache = path / names.REMOTE_INDEX_CACHE
    if whole and files.has_dir(cache):
        inputs += _remote_indexes(cache)
    return inputs


@dataclass(frozen=True, slots=True)
class _WantedLogs:
    """The logs that a directory stands for."""

    offsets: Range
    """Each of them may hold an offset of this range."""
    leftovers: bool
    """True if logs that no broker loads count too."""


def _partition(path: Path, wanted: _WantedLogs | None, flavour: Flavour | None) -> Iterator[Input]:
    listed = opening.open_partition(path, flavour)
    if wanted is None:
        return _inputs(listed.files(), listed.topic, listed.number)
    logs = [
        segment.log
        for segment in listed.segments
        if wanted.offsets.overlaps(segment.base_offset, (segment.next_base_offset or 2**63) - 1)
    ]
    if wanted.leftovers:
        logs += [
            file
            for file in unloaded_logs(listed)
            if wanted.offsets.overlaps(file.name.offset or 0, 2**63 - 1)
        ]
    return _inputs(logs, listed.topic, listed.number)


def unloaded_logs(listed: Partition) -> list[File]:
    """Return the logs that no broker loads: ``.deleted`` and the like, and those of other names."""
    return [
        file for file in (*listed.leftovers, *listed.strangers) if file.name.kind is FileKind.LOG
    ]


def _inputs(found: Iterable[File], topic: str | None, number: int | None) -> Iterator[Input]:
    for file in found:
        if file.name.kind is not FileKind.UNKNOWN:
            yield Input(
                path=file.path, name=file.name, size=file.size, topic=topic, partition=number
            )


def _remote_indexes(cache: Path) -> Iterator[Input]:
    for entry in files.list_dir(cache):
        name = names.parse_remote_index(entry.name)
        if name.kind is not FileKind.UNKNOWN and entry.is_file(follow_symlinks=False):
            file = describe(cache, entry, name)
            if file:
                yield Input(path=file.path, name=name, size=file.size, topic=None, partition=None)


def _single(path: Path) -> Input:
    """Take a file by its name, also one that stands alone or that a broker would not read."""
    name = names.parse_partition_file(path.name, metadata_log=True)
    if name.kind is FileKind.UNKNOWN:
        name = names.parse_root_file(path.name)
    if name.kind is FileKind.UNKNOWN:
        name = names.parse_remote_index(path.name)
    if name.kind is FileKind.UNKNOWN:
        raise UnreadableError(path, "does not have the name of a file of a Kafka data directory")
    # bootstrap.checkpoint ends like a snapshot and has no numbers in its name.
    if path.name.startswith(FileKind.BOOTSTRAP_CHECKPOINT):
        name = names.parse_root_file(path.name)
    directory = names.parse_directory(path.absolute().parent.name)
    size = files.size_at(path)
    if isinstance(directory, PartitionDirectory):
        return Input(
            path=path, name=name, size=size, topic=directory.topic, partition=directory.partition
        )
    return Input(path=path, name=name, size=size, topic=None, partition=None)


def _of_automq(path: Path) -> list[Input]:
    """Return the object of AutoMQ at a path, or those in a bucket."""
    from logtool.dump import automq  # with the formats of AutoMQ

    return [
        Input(
            path=one.path,
            name=FileName(
                name=one.path.name,
                kind=FileKind.AUTOMQ_OBJECT,
                state=FileState.LIVE,
                reception=Reception.IGNORED,
                offset=None,
                epoch=None,
            ),
            size=one.size,
            topic=None,
            partition=None,
            reader=partial(automq.read, one),
        )
        for one in automq.objects_at(path)
    ]


def _is_meant(place: SegmentPlace, selection: Selection, wanted: _WantedLogs | None) -> bool:
    """Return whether a file of a directory is selected; ranges are applied to each batch later."""
    if wanted is not None and place.name.kind is redpanda_names.RedpandaFileKind.BASE_INDEX:
        return False
    directory = PartitionDirectory(
        name=place.path.parent.name,
        kind=DirectoryKind.LIVE,
        topic=place.topic or "",
        partition=-1 if place.partition is None else place.partition,
        unique_id=None,
        exact=True,
    )
    return selection.takes(directory)


def _of_redpanda(place: SegmentPlace) -> Input:
    is_index = place.name.kind is redpanda_names.RedpandaFileKind.BASE_INDEX
    name = FileName(
        name=place.path.name,
        kind=FileKind.REDPANDA_BASE_INDEX if is_index else FileKind.REDPANDA_SEGMENT,
        state=FileState.LIVE,
        reception=Reception.IGNORED,
        offset=place.name.base_offset,
        epoch=place.name.term,
    )
    return Input(
        path=place.path,
        name=name,
        size=files.size_at(place.path),
        topic=place.topic,
        partition=place.partition,
    )
