"""Files for partition dirs that lack what remote storage has: leader epochs, and local segments.

leader-epoch-checkpoint of a tiered log has the leader epochs since the log start. Those up to the
last remote segment came with it, and the others are those of the local batches. A segment that is
missing between local ones comes whole, with its indexes: a broker that finds a log without an
offset index recovers it, and drops the producer snapshots behind it. Brokers of 4.3.1 with such
files kept and served all remote segments.
"""

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.apply.output_tree import OutputTree
from logtool.disk.assembled import AssembledFile
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.log import opening
from logtool.remote import alone, coverage
from logtool.remote.lineage import HIDDEN, PartitionLineage
from logtool.remote.loading import PartitionId
from logtool.remote.local import LocalCopy
from logtool.remote.segments import RemoteSegment
from logtool.remote.stored import TierPiece, TierStore, segment_files

PLACE = "files"
"""The folder of the output with files for partition dirs that exist."""
_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value
_BLOCK = 1024 * 1024
_NEEDED = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


@dataclass(slots=True)
class MendedPartition:
    """Files that were written for a partition dir."""

    topic: str
    topic_id: str
    number: int
    of: Path
    """The partition dir that lacks them."""
    path: Path
    """The new directory with the files."""
    leader_epochs: tuple[tuple[int, int], ...] = ()
    """The new leader epochs, each with its first offset; empty if the present file is right."""
    replaces: Path | None = None
    """The present leader-epoch-checkpoint that must make way; None without one."""
    segments: list[tuple[int, int]] = field(default_factory=list)
    """First and last offset of each segment."""
    files: list[str] = field(default_factory=list)
    """Names of the files."""


def mend(
    store: TierStore, tree: OutputTree, output: Path, topic: str, copy: LocalCopy,
    partition_id: PartitionId,
) -> Iterator[MendedPartition | UnreadableError]:  # fmt: skip
    """Write what a partition dir lacks and remote storage has; yield it, and errors."""
    folder = f"{topic}-{partition_id[1]}"
    found = MendedPartition(
        topic, partition_id[0], partition_id[1], copy.path, output / PLACE / folder
    )
    new: dict[str, AssembledFile] = {}
    try:
        if needs_epochs(store, partition_id, copy):
            found.leader_epochs, data = _epochs(store, folder, partition_id, copy)
            new[_EPOCHS] = AssembledFile(data, len(data))
            present = copy.path / _EPOCHS
            found.replaces = present if present.exists() else None
    except UnreadableError as error:
        yield error
    for segment in hidden(store, partition_id, copy):
        if isinstance(segment, UnreadableError):
            yield segment
            continue
        span = segment.start_offset, segment.end_offset
        try:
            new |= _files(store, folder, partition_id, segment)
            found.segments.append(span)
        except UnreadableError as error:
            yield error
    if not new:
        return
    place = Path(PLACE, folder)
    for name, file in new.items():
        tree.write(place / name, _blocks(file))
        found.files.append(name)
    tree.complete(place)
    yield found


def needs_epochs(store: TierStore, partition_id: PartitionId, copy: LocalCopy) -> bool:
    """Return whether a copy lacks leader epochs that it must have.

    A broker that was killed may have deleted all that was in remote storage alone, with its epochs.
    """
    is_there = not copy.file_epochs or _has_remote_part(store, partition_id, copy)
    return copy.lacks_remote_epochs and is_there


def _has_remote_part(store: TierStore, partition_id: PartitionId, copy: LocalCopy) -> bool:
    """Return whether remote segments begin below the local ones; True if no record is known."""
    there = store.partitions.get(partition_id)
    if there is None:
        return True
    segments = there[0].segments.values()
    return any(one.is_readable and one.start_offset < copy.local_start for one in segments)


def _blocks(file: AssembledFile) -> Iterator[bytes]:
    for start in range(0, file.size, _BLOCK):
        yield file.read(start, start + _BLOCK)


def _epochs(
    store: TierStore, folder: str, partition_id: PartitionId, copy: LocalCopy
) -> tuple[tuple[tuple[int, int], ...], bytes]:
    """Return the leader epochs of a log with a remote part, and the file; UnreadableError."""
    is_remote = _has_remote_part(store, partition_id, copy)
    remote: coverage.Epochs = ()
    if is_remote:
        remote = alone.read(store, folder, partition_id, copy.log_start).epochs
    rows = EpochCache(remote)
    if is_remote and (not rows.rows or rows.rows[0][1] > copy.log_start):
        text = f"the leader epochs of {folder} from {copy.log_start} on are in no object and in no "
        raise UnreadableError(store.place_of(partition_id), f"{text}record of a remote segment")
    tables = [chunk.table for one in opening.open_partition(copy.path).segments
              for chunk in one.batches(payload=False) if len(chunk.table)]  # fmt: skip
    for table in tables:
        rows.add(table)
    rows.truncate_from_end(copy.log_end)
    if not rows.rows:
        raise UnreadableError(copy.path, "its batches have no leader epochs")
    starts = np.array([start for _, start in rows.rows])
    known = np.array([epoch for epoch, _ in rows.rows])
    for table in tables:
        at = np.searchsorted(starts, table.base_offset, side="right") - 1
        wrong = (at < 0) | (known[at] != table.leader_epoch)
        if wrong.any():
            row = int(wrong.argmax())
            text = f"the batch at offset {table.base_offset[row]} has leader epoch "
            text += f"{table.leader_epoch[row]}, which does not fit those of the remote segments, "
            text += ", ".join(f"{epoch} from {first}" for epoch, first in remote)
            raise UnreadableError(copy.path, text)
    return tuple(rows.rows), rows.encode()


def hidden(
    store: TierStore, partition_id: PartitionId, copy: LocalCopy
) -> Iterator[RemoteSegment | UnreadableError]:
    """Yield the remote segments in the holes of a local log; an error for one that does not fit."""
    there = store.partitions.get(partition_id)
    if there is None or not copy.holes:
        return
    lineage = PartitionLineage(*there, copy)
    for offsets in lineage.joined(HIDDEN):
        for segment in lineage.segments_in(offsets):
            if segment.start_offset in offsets and segment.end_offset in offsets:
                yield segment
                continue
            text = (
                f"segment {segment.segment_id} has "
                f"{wording.offsets(segment.start_offset, segment.end_offset)}, which are not only "
                f"those of the hole, {wording.offsets(offsets.start, offsets.stop - 1)}"
            )
            yield UnreadableError(copy.path, text)


def _files(
    store: TierStore, folder: str, partition_id: PartitionId, segment: RemoteSegment
) -> dict[str, AssembledFile]:
    """Return the log and the indexes of a segment by their names; UnreadableError."""
    piece = TierPiece(segment, segment.start_offset, segment.end_offset)
    new = {name: file for name, file, _ in segment_files(store, folder, partition_id, piece)}
    lacking = [f"{kind}" for kind in _NEEDED if f"{segment.start_offset:020d}{kind}" not in new]
    if lacking:
        text = f"segment {segment.segment_id} of {folder} has no {' and no '.join(lacking)}"
        raise UnreadableError(store.place_of(partition_id), text)
    return new
