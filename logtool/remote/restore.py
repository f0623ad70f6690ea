"""New partition dirs for partitions whose local copies are lost: empty, with the leader epochs.

A leader without the leader epochs of its remote segments deletes them, see
`logtool.startup.tiering`. With them it uses the segments and sets its log start to the first one
(``RLMCopyTask.maybeUpdateLogStartOffsetOnBecomingLeader``). The directory is that of a follower
that has built its state from remote storage: an empty segment behind the last remote offset, the
leader epochs and the producer snapshot that came with the last segment. Source:
``TierStateMachine.buildRemoteLogAuxState`` (Kafka 3.9 and 4.2); brokers of 3.9.2 and 4.3.1 led such
partitions, served all records, and deleted no segment.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from logtool.apply.output_tree import OutputTree
from logtool.disk import files
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import producer_snapshot
from logtool.formats.names import CLUSTER_METADATA, FileKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.selection import Selection
from logtool.node import lost_end
from logtool.node.identity import identify
from logtool.remote import alone, contents, local, mending
from logtool.remote.alone import LoneLog
from logtool.remote.contents import SegmentContent
from logtool.remote.loading import PartitionId
from logtool.remote.local import LocalCopy
from logtool.remote.mending import MendedPartition
from logtool.remote.run import takes
from logtool.remote.segments import RemoteSegment
from logtool.remote.stored import TierStore
from logtool.running.summary import Summary

PLACE = "partitions"
"""The folder of the output with the partition dirs: it has nothing else."""
_SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class RestoredPartition:
    """A partition dir that was written."""

    topic: str
    topic_id: str
    number: int
    replicas: tuple[int, ...]
    """Node ids of its replicas, the preferred one first; empty without a metadata log."""
    first_offset: int
    """First offset in remote storage."""
    end_offset: int
    """Offset behind the last in remote storage, at which the new log begins."""
    high_watermark: int | None
    """The largest one in the checkpoints of the log dirs; None if none has a row of it."""
    leader_epochs: tuple[tuple[int, int], ...]
    """Leader epochs, each with its first offset."""
    segments: int
    """Remote segments that the leader then uses."""
    bytes: int
    """Bytes of their logs."""
    has_producers: bool
    """True if the producer snapshot of the last segment was written."""
    replaces: Path | None
    """The empty partition dir that it takes the place of; None without one."""
    path: Path
    """The new directory."""

    @property
    def lost_offsets(self) -> int:
        """Return how many offsets were acknowledged and are not in remote storage."""
        return max(0, (self.high_watermark or 0) - self.end_offset)


class RestoreRun:
    """One run: iterate for the partition dirs that are written, and for errors."""

    def __init__(
        self,
        prefix: Path,
        homes: Sequence[Path],
        output: Path,
        *,
        selection: Selection | None = None,
        summary: Summary | None = None,
    ) -> None:
        """Take the prefix of the objects, log dirs of the cluster, and the directory to make."""
        self._store = TierStore([prefix], list(homes))
        self._output, self._tree = output, OutputTree(output)
        self._selection = selection or Selection()
        self.summary = summary or Summary()
        self.kept = 0
        """Selected partitions that have a local copy, and need no new directory."""

    def __iter__(self) -> Iterator[RestoredPartition | MendedPartition | UnreadableError]:
        self._tree.check(self._store.homes)
        complete = False
        try:
            for item in self._all():
                if isinstance(item, UnreadableError):
                    self.summary.add(item)
                yield item
            complete = True
        finally:
            if complete:
                self._tree.finish()
            else:
                self._tree.close()

    def log_dir_for(self, restored: Sequence[RestoredPartition]) -> Path | None:
        """Return the one log dir whose broker has a replica of all these; None if it is unclear."""
        found = []
        for home in self._store.homes:
            with suppress(UnreadableError):
                own = identify(opening.open_log_dir(home))
                is_of_all = all(own.node_id in one.replicas for one in restored)
                if is_of_all and not own.has_only_metadata_log:
                    found.append(home)
        return found[0] if len(found) == 1 else None

    def _all(self) -> Iterator[RestoredPartition | MendedPartition | UnreadableError]:
        store, found = self._store, 0
        if unread := list(self._unread_homes()):
            yield from unread  # It may have the copies.
            return
        if not store.objects and store.problems:
            yield from store.problems  # Without the objects a partition has no producer snapshot.
            return
        for (topic, number), partition_id in store.partition_ids.items():
            if not takes(self._selection, topic, number) or topic == CLUSTER_METADATA:
                continue
            found += 1
            self.summary.partitions += 1
            copies = []
            for item in store.lineage.copies(topic, number):
                if isinstance(item, LocalCopy):
                    copies.append(item)
                else:
                    yield item
            if lacking := [one for one in copies if one.topic_id in (None, partition_id[0])
                           and one.log_end > one.local_start
                           and (one.lacks_remote_epochs or one.holes)]:  # fmt: skip
                yield from self._mend(topic, partition_id, lacking)
                continue
            copy = local.best(copies, partition_id[0])
            if copy and (copy.epochs or copy.log_end > copy.local_start):
                self.kept += 1
                continue
            yield from self._partition(topic, partition_id, copy)
        yield from store.problems
        if not found:
            text = "nothing matched: no partition has objects there"
            yield NothingMatchedError(store.prefixes[0], text)

    def _unread_homes(self) -> Iterator[UnreadableError]:
        """Yield why log dirs of the cluster cannot be listed."""
        for home in self._store.homes:
            try:
                opening.open_log_dir(home)
            except UnreadableError as error:
                yield error

    def _mend(
        self, topic: str, partition_id: PartitionId, lacking: Sequence[LocalCopy]
    ) -> Iterator[MendedPartition | UnreadableError]:
        """Write files for the first copy of a partition that lacks some."""
        self.kept += 1
        to_mend = [one for one in lacking
                   if mending.needs_epochs(self._store, partition_id, one)
                   or any(mending.hidden(self._store, partition_id, one))]  # fmt: skip
        for one in to_mend[:1]:
            yield from mending.mend(self._store, self._tree, self._output, topic, one, partition_id)
        for one in to_mend[1:]:
            text = "lacks what remote storage has, too: give this copy in a run of its own"
            yield UnreadableError(one.path, text)

    def _partition(
        self, topic: str, partition_id: PartitionId, copy: LocalCopy | None
    ) -> Iterator[RestoredPartition | UnreadableError]:
        folder = f"{topic}-{partition_id[1]}"
        log = alone.read(self._store, folder, partition_id)
        yield from log.problems
        if not log.pieces:
            return
        segments = {id(one.segment): one.segment for one in log.pieces}
        last = log.pieces[-1].segment
        end = last.end_offset + 1
        snapshot = None
        try:
            snapshot = self._snapshot(partition_id, last)
        except UnreadableError as error:
            yield error
        image = self._store.lineage.image
        of_topic = image.partitions.get(partition_id[0], {}) if image else {}
        state = of_topic.get(partition_id[1])
        yield RestoredPartition(
            topic=topic,
            topic_id=partition_id[0],
            number=partition_id[1],
            replicas=tuple(state.replicas) if state else (),
            first_offset=log.pieces[0].first,
            end_offset=end,
            high_watermark=self._high_watermarks.get((topic, partition_id[1])),
            leader_epochs=tuple(log.epochs),
            segments=len(segments),
            bytes=sum(one.size for one in segments.values()),
            has_producers=snapshot is not None,
            replaces=copy.path if copy else None,
            path=self._write(folder, log, end, snapshot),
        )

    @cached_property
    def _high_watermarks(self) -> Mapping[TopicPartition, int]:
        """Return the largest high watermark of each partition in the checkpoints."""
        found: dict[TopicPartition, int] = {}
        for home in self._store.homes:
            try:
                rows = lost_end.watermarks(opening.open_log_dir(home))
            except UnreadableError as error:
                self._store.problems.append(error)
                continue
            for key, row in rows.items():
                found[key] = max(row, found.get(key, 0))
        return found

    def _snapshot(self, partition_id: PartitionId, last: RemoteSegment) -> bytes | None:
        """Return the producer snapshot that came with a segment; UnreadableError.

        None if no object of the segment has it.
        """
        stored = self._store.objects.get((partition_id, last.segment_id))
        if stored is None:
            return None
        piece = contents.pieces(*stored, SegmentContent()).get(_SNAPSHOT)
        if piece is None:
            return None
        data = files.read_small(piece.path)
        if any(producer_snapshot.check(producer_snapshot.parse(data))):
            raise UnreadableError(piece.source, "is a producer snapshot that no broker reads")
        return data

    def _write(self, folder: str, log: LoneLog, end: int, snapshot: bytes | None) -> Path:
        place = Path(PLACE, folder)
        small = {name: one.read(0, one.size) for name, one in log.small_files().items()}
        empty = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        new = {f"{end:020d}{kind.value}": b"" for kind in empty} | small
        if snapshot is not None:
            new[f"{end:020d}.{_SNAPSHOT}"] = snapshot
        for name, data in new.items():
            self._tree.write(place / name, [data])
        self._tree.complete(place)
        return self._output / place
