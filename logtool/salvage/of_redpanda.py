"""Salvage of partitions of Redpanda: sound batches in its form, in segments with its names.

Segments that a start has given up (``.cannotrecover``) are read, too. The output has the folders of
a data directory, so that a partition can be put in the place of the damaged one. Each segment gets
a base index, with which a start believes it; offsets may be missing between batches.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from logtool.apply import disk
from logtool.apply.held import HeldDir
from logtool.disk import log_dir, partition
from logtool.disk.files import LogFile
from logtool.disk.log_dir import PathKind, Selection
from logtool.disk.partition import File, Partition
from logtool.errors import UnreadableError
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import KAFKA_NAMESPACE, FileKind
from logtool.salvage.parts import Extent, Part, Reject
from logtool.salvage.reading import Piece
from logtool.segment.base_index_building import Builder, header_of
from logtool.segment.walk import scan

Object = dict[str, Any]


def is_one(path: Path) -> bool:
    """Return whether Redpanda wrote what lies at a path, as far as it can be looked at."""
    with suppress(UnreadableError):
        return log_dir.is_redpanda(path)
    return False


def partitions(path: Path, selection: Selection) -> Iterator[Partition | UnreadableError]:
    """Yield the partitions that a path stands for, and why some cannot be listed."""
    try:
        kind = log_dir.classify(path, redpanda=True)
        if kind is PathKind.FILE:
            raise UnreadableError(path, "is no data directory and no folder in one")
        folders = [path]
        if kind is PathKind.LOG_DIR:
            found = log_dir.read(path).partitions
            folders = [folder for folder, directory in found if selection.takes(directory)]
    except UnreadableError as error:
        yield error
        return
    for folder in folders:
        yield partition.read_or_error(folder)


def pieces(listed: Partition) -> list[Piece]:
    """Return the segments to be read, by offset: those of the log, and those given up."""
    given_up = [file for file in listed.others if _kind(file) is FileKind.CANNOT_RECOVER]
    logs = [segment.log for segment in listed.segments] + given_up
    logs.sort(key=lambda file: (file.name.offset or 0, file.name.epoch or 0))
    bases = [file.name.offset or 0 for file in logs]
    ends: list[int | None] = [
        next((base for base in bases[number + 1 :] if base > bases[number]), None)
        for number in range(len(bases))
    ]
    return [Piece(*one) for one in zip(logs, bases, ends, strict=True)]


def place_of(listed: Partition) -> str:
    """Return where a partition lies in a data directory."""
    return "/".join(("", "", *listed.path.resolve().parts)[-3:]).lstrip("/")


def write(home: HeldDir, folder: Path, piece: Piece, extents: Iterator[bytes]) -> None:
    """Write a segment into a folder, and its base index."""
    term = piece.log.name.epoch or 0
    target = folder / names.format_segment(piece.base_offset, term)
    disk.write_new(home, target, extents)
    all_data = folder.parent.parent.name != KAFKA_NAMESPACE
    builder = Builder(piece.base_offset, all_data=all_data)
    with LogFile(target) as log:
        for chunk in scan(log, base_offset=piece.base_offset, payload=False):
            for row in range(len(chunk.table)):
                fields = chunk.table.row(row)
                builder.add(fields["position"], header_of(fields))
    disk.write_new(home, target.with_suffix(FileKind.BASE_INDEX), [builder.finish()])


def about(listed: Partition, parts: Sequence[Part], target: Path) -> Object:
    """Return what is said of one partition."""
    extents = [part for part in parts if isinstance(part, Extent)]
    rejects = [part for part in parts if isinstance(part, Reject)]
    return {
        "type": "partition",
        "path": str(listed.path),
        "target": str(target),
        "topic": listed.topic,
        "partition": listed.number,
        "log_start_offset": extents[0].first.base_offset if extents else 0,
        "log_end_offset": extents[-1].last.last_offset + 1 if extents else 0,
        "segments": len({extent.path for extent in extents}),
        "batches": sum(extent.batches for extent in extents),
        "records": sum(extent.records for extent in extents),
        "bytes": sum(extent.size for extent in extents),
        "filled_batches": 0,
        "filled_bytes": 0,
        "rejects": len(rejects),
        "rejected_bytes": sum(one.length for one in rejects),
        "outcome": "loads",
        "reason": None,
    }


def _kind(file: File) -> FileKind:
    return names.parse_partition_file(file.path.name).kind
