"""The segments that are in the given directories, by their names, sizes and times alone."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import LogDir, Partition, Segment
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection


@dataclass(frozen=True, slots=True)
class ListedSegment:
    """A segment as a listing showed it: some columns of `logtool.scrub.tables`."""

    path: bytes
    base_offset: int
    size: int
    files: str
    active: bool


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """A partition dir and its segments."""

    home: bytes
    topic: bytes | None
    number: int | None
    segments: Sequence[ListedSegment]


@dataclass(frozen=True, slots=True)
class SegmentListing:
    """The partition dirs of a run that are selected, and the names of all."""

    partitions: Sequence[ListedPartition]
    homes: frozenset[bytes]
    """The partition dirs that are there, selected or not, also those that cannot be read."""
    log_dirs: frozenset[bytes]
    """The log dirs that could be listed."""


def list_segments(
    paths: Sequence[Path], selection: Selection, flavour: Flavour | None = None
) -> SegmentListing:
    """Return the segments of log dirs and partition dirs; paths that cannot be read are left out.

    They are reported where their files are checked.
    """
    partitions: list[ListedPartition] = []
    homes: set[bytes] = set()
    log_dirs: set[bytes] = set()
    for path in paths:
        found = inputs.open_path(path, list(paths), flavour)
        if isinstance(found, LogDir):
            log_dirs.add(os.fsencode(path))
            homes.update(os.fsencode(home) for home, _ in found.partitions)
            chosen = [home for home, one in found.partitions if selection.takes(one)]
            partitions += _listed(opening.try_partitions(chosen, found.flavour))
        elif found is PathKind.PARTITION_DIR:
            homes.add(os.fsencode(path))
            partitions += _listed([opening.try_partition(path, flavour)])
    return SegmentListing(partitions, frozenset(homes), frozenset(log_dirs))


def home_of(path: bytes) -> bytes:
    """Return the directory in which a path lies."""
    return path.rpartition(b"/")[0]


def identity_of(segment: Segment) -> str:
    """Return the state of the files of a segment: the column ``files``."""
    log = segment.log
    indexes = {str(kind): file.size for kind, file in sorted(segment.indexes.items())}
    return json.dumps([log.identity, log.size, log.mtime_ns, indexes])


def _listed(
    partitions: Iterator[Partition | UnreadableError] | Sequence[Partition | UnreadableError],
) -> Iterator[ListedPartition]:
    for partition in partitions:
        if isinstance(partition, UnreadableError):
            continue
        topic = partition.topic
        yield ListedPartition(
            home=os.fsencode(partition.path),
            topic=None if topic is None else os.fsencode(topic),
            number=partition.number,
            segments=[
                ListedSegment(
                    path=os.fsencode(segment.log.path),
                    base_offset=segment.base_offset,
                    size=segment.log.size,
                    files=identity_of(segment),
                    active=segment.is_active,
                )
                for segment in partition.segments
            ],
        )
