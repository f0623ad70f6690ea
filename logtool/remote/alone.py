"""Partitions without a local copy: their logs, as the objects of their remote segments have them.

With records of the segments, those count that were copied and are not deleted; without records, all
objects do. The leader epochs of the log are those that came with its last segment, which is the one
of the newest leader epoch: a replica without a local log takes them from there too, see
`logtool.startup.tiering`.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

from logtool.disk import files
from logtool.disk.assembled import AssembledFile
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint, partition_metadata, wording
from logtool.formats.messages.remote_log import SegmentState
from logtool.formats.names import FileKind
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.remote import contents, coverage
from logtool.remote.contents import Piece, SegmentContent
from logtool.remote.loading import PartitionId
from logtool.remote.local import tail
from logtool.remote.objects import ObjectSet
from logtool.remote.segments import RemotePartition, RemoteSegment
from logtool.remote.stored import TierPiece, TierStore, log_of, pieces_of, reason_unread

_EPOCHS = "leader_epoch_checkpoint"
_AT_ONCE = 32
"""Segments behind a URL that are looked at at once."""
_NO_RECORD = -1
"""Stands for times and offsets that only records of a segment have."""


@dataclass(slots=True)
class LoneLog:
    """The log of one partition in remote storage."""

    partition_id: PartitionId
    pieces: list[TierPiece] = field(default_factory=list)
    epochs: coverage.Epochs = ()
    """Leader epochs with their first offsets."""
    problems: list[UnreadableError] = field(default_factory=list)

    def small_files(self) -> Mapping[str, AssembledFile]:
        """Return leader-epoch-checkpoint and partition.metadata, as a replica would have them."""
        contents_of = {
            FileKind.LEADER_EPOCH_CHECKPOINT: leader_epoch_checkpoint.encode(
                leader_epoch_checkpoint.build(self.epochs)
            ),
            FileKind.PARTITION_METADATA: partition_metadata.encode(
                partition_metadata.build(self.partition_id[0])
            ),
        }
        return {kind.value: AssembledFile(data, len(data)) for kind, data in contents_of.items()}


def read(
    store: TierStore, folder: str, partition_id: PartitionId, log_start: int | None = None
) -> LoneLog:
    """Return the log of a partition; `log_start` is that of its replica, None if it is not known.

    `folder` is the name of its directory, for the texts of problems.
    """
    log = LoneLog(partition_id)
    known = store.partitions.get(partition_id)
    remote = known[0] if known else _of_objects(store, folder, partition_id, log.problems)
    index = coverage.index(remote)
    readable = [one for one in remote.segments.values() if one.is_readable]
    last = max(readable, key=lambda one: (_last_epoch(one), one.end_offset), default=None)
    if last is None:
        return log
    end = last.end_offset + 1
    log.epochs = tuple(_epochs(store, partition_id, last) or _merged(readable))
    found = list(coverage.along(index, log.epochs, end))
    if not found:
        return log
    start = found[0].first if log_start is None else log_start
    log.pieces = pieces_of(found, range(start, end), log.epochs, end)
    log.problems += [
        UnreadableError(store.place_of(partition_id), f"{wording.offsets(gap.start, gap.stop - 1)} "
                        f"of {folder} are in no remote segment")
        for gap in coverage.gaps(found, start, end)
    ]  # fmt: skip
    return log


def _last_epoch(segment: RemoteSegment) -> int:
    return segment.leader_epochs[-1][0] if segment.leader_epochs else -1


def _merged(segments: list[RemoteSegment]) -> list[tuple[int, int]]:
    """Return the leader epochs that segments have together."""
    rows = sorted(row for one in segments for row in one.leader_epochs)
    return EpochCache(rows).rows


def _epochs(
    store: TierStore, partition_id: PartitionId, segment: RemoteSegment
) -> list[tuple[int, int]]:
    """Return the leader epochs that came with a segment; empty if they cannot be read."""
    plugin, group = store.objects.get((partition_id, segment.segment_id), (None, None))
    if plugin is None or group is None:
        return []
    try:
        rows = _rows(contents.pieces(plugin, group, SegmentContent()).get(_EPOCHS))
    except UnreadableError:
        return []
    # They must lead to the segment itself.
    own = {epoch for epoch, first in rows if first <= segment.end_offset}
    return rows if _last_epoch(segment) in own else []


def _rows(piece: Piece | None) -> list[tuple[int, int]]:
    """Return the rows of a checkpoint of leader epochs; empty if one breaks a rule."""
    parsed = leader_epoch_checkpoint.parse(files.read_small(piece.path)) if piece else None
    if parsed is None or any(leader_epoch_checkpoint.check(parsed)):
        return []
    return list(parsed.epochs)


def _of_objects(
    store: TierStore, folder: str, partition_id: PartitionId, problems: list[UnreadableError]
) -> RemotePartition:
    """Return the segments that the objects of a partition show, all of them as copied."""
    topic = folder.rpartition("-")[0]
    remote = RemotePartition(topic, *partition_id)
    segments = []
    for item in _each(store, folder, partition_id):
        if isinstance(item, UnreadableError):
            problems.append(item)
        else:
            segments.append(item)
    # A copy by a later leader takes the place of earlier ones.
    for one in sorted(segments, key=lambda one: (_last_epoch(one), one.end_offset)):
        remote.segments[one.segment_id] = one
        remote.timeline.append((SegmentState.COPY_FINISHED, one))
    return remote


def _each(
    store: TierStore, folder: str, partition_id: PartitionId
) -> Iterator[RemoteSegment | UnreadableError]:
    """Yield the segments of a partition, and errors; behind URLs several are read at once.

    The time of such a read is mostly that of a round trip.
    """
    given = store.segments.get(partition_id, ())

    def one(stored: tuple[Plugin, ObjectSet]) -> RemoteSegment | UnreadableError:
        try:
            return _segment(*stored, folder)
        except UnreadableError as error:
            return error

    if not any(map(files.is_remote, store.prefixes)):
        yield from map(one, given)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(one, given)


def _segment(plugin: Plugin, group: ObjectSet, folder: str) -> RemoteSegment:
    """Return a segment by its objects; UnreadableError if its offsets are not known."""
    name = group.name
    missed = f"segment {name.segment_id} of {folder} cannot be read"
    if LOG not in group.objects:
        raise UnreadableError(group.path, f"{missed}: its log is not there")
    result = SegmentContent()
    there = contents.pieces(plugin, group, result)
    start, end, when = name.base_offset, None, 0
    epochs: list[tuple[int, int]] = []
    if LOG in there:
        epochs = _rows(there.get(_EPOCHS))
        index = there.get("index")
        end, when = tail(log_of(name.base_offset, there[LOG]), index.path if index else None)
        if end is None:
            raise UnreadableError(group.path, f"{missed}: its log has no batch")
    elif result.manifest_range:
        start, end = result.manifest_range
        epochs = _in_manifest(result)
    if end is None:
        raise UnreadableError(group.path, f"{missed}: {reason_unread(result)}")
    own = [(epoch, max(first, start)) for epoch, first in epochs if first <= end]
    after = [first for _, first in own[1:]]
    kept = tuple(one for row, one in enumerate(own) if row >= len(after) or after[row] > start)
    return RemoteSegment(
        segment_id=name.segment_id,
        start_offset=start,
        end_offset=end,
        size=there[LOG].size if LOG in there else 0,
        max_timestamp_ms=when,
        leader_epochs=kept or ((0, start),),
        broker_id=_NO_RECORD,
        state=SegmentState.COPY_FINISHED,
        record_offset=_NO_RECORD,
        started_ms=_NO_RECORD,
    )


def _in_manifest(result: SegmentContent) -> list[tuple[int, int]]:
    """Return the leader epochs in a manifest; empty if one is no number."""
    segment = result.manifest.segment if result.manifest else None
    given = (segment or {}).get("segmentLeaderEpochs")
    rows = given.items() if isinstance(given, dict) else ()
    found = [(int(epoch), first) for epoch, first in rows
             if epoch.isdecimal() and type(first) is int]  # fmt: skip
    return sorted(found)
