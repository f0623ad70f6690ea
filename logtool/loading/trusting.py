"""Recovery of a log whose storage is trusted to hold what was written, as AutoMQ's AKIP-2 has it.

No CRC is computed. The log is played back from an offset up to which producers and transactions
are known (`replay_start`), and only the headers of its batches are read (`header_walk`). Segments
below that offset are not opened, unless the end of an index is visibly missing. If the files
contradict each other, the whole log is recovered by `supplement`, which checks it.
"""

from collections.abc import Callable
from dataclasses import replace

from logtool.formats import names
from logtool.formats import transaction_index as txn_index
from logtool.formats.names import DirectoryKind, FileKind
from logtool.loading.header_recovery import Played
from logtool.loading.header_walk import ContradictionError, HeaderWalk
from logtool.loading.index_building import InvalidOffsetError
from logtool.loading.index_prefix import seems_whole
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.loading.loader import Loader, load
from logtool.loading.producers import ProducerManager
from logtool.loading.recovery import (
    OffsetOverflowError,
    encode_aborted,
    replay,
)
from logtool.loading.replay_start import Marks, marks, whole_entries
from logtool.loading.result import LoadResult, RecoveredSegment, RecoveryReason, StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import OccupiedError
from logtool.loading.splitting import TooLargeError
from logtool.loading.supplement import supplement
from logtool.log.dir import Partition
from logtool.log.producer_state import AbortedTransaction

_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value


def trust(
    partition: Partition, start: StartConditions, on_bytes: Callable[[int], None] = lambda _: None
) -> LoadResult:
    """Recover a log without checking it; the disk is not touched.

    If the files contradict each other, return the result of `supplement`, with the reason in
    `distrust`. UnreadableError as with `load`.
    """
    going = getattr(partition.directory, "kind", None) is DirectoryKind.DELETE
    if start.clean or going:
        return load(partition, start, on_bytes)
    loader = Loader(partition=partition, start=start, on_bytes=on_bytes, strategy=_Trusting)
    try:
        loader.run()
    except (
        ContradictionError,
        InvalidOffsetError,
        OccupiedError,
        OffsetOverflowError,
        OfflineError,
        StartFailsError,
        TooLargeError,
    ) as error:
        loaded = supplement(partition, start, on_bytes)
        loaded.distrust = str(error)
        return loaded
    return loader.loaded


class _Trusting:
    """The strategy that reads only headers, from the start of the playback on."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        loader.loaded.supplemented = loader.loaded.trusted = True
        self._marks: Marks
        self._manager: ProducerManager
        self._end: int | None = None
        """Offset behind the last batch of the segment that was played back last."""

    def needs_recovery(self, segment: LoadedSegment) -> RecoveryReason | None:
        """Return None: missing entries are added when all segments are known."""
        return None

    def is_done(self, segment: LoadedSegment) -> bool:
        """Return True: no segment is read by the rules of a broker."""
        return True

    def recover(self, segment: LoadedSegment, why: RecoveryReason) -> RecoveredSegment:
        """Raise ContradictionError: the strategy recovers no segment."""
        raise ContradictionError(f"the whole of {segment.name(FileKind.LOG)} has to be read")

    def take_emptied(self, segment: LoadedSegment, emptied: RecoveredSegment) -> None:
        """Do nothing: the strategy recovers no segment, and so empties no segment."""

    def finish(self) -> None:
        """Play back the segments behind the starting offset; mend the indexes in front of it."""
        loader = self._loader
        shadow, segments = loader.shadow, loader.segments
        if segments and _EPOCHS not in shadow.before:
            raise ContradictionError(f"{_EPOCHS} does not exist")
        self._marks = marks(shadow, segments, loader.start)
        playback = loader.loaded.playback = self._marks.playback
        self._manager = loader.new_manager()
        self._manager.begin(playback.replayed_from, self._marks.producers or {})
        for offset in self._marks.unreadable:
            self._manager.delete(offset)
        ends: list[int | None] = [*(segment.base_offset for segment in segments[1:]), None]
        for segment, end in zip(segments, ends, strict=False):  # there may be no segment
            if end is None or end > playback.replayed_from:
                self._enter(segment.base_offset)
            elif self._is_whole(segment):
                continue
            self._play(segment, end)

    def settle_producers(self) -> None:
        """Take a snapshot at the end of the log; delete those that no broker keeps."""
        loader, loaded, manager = self._loader, self._loader.loaded, self._manager
        least = max(loaded.log_start, self._marks.playback.replayed_from)
        if loaded.wiped or loaded.log_end < least:
            raise ContradictionError(f"the log ends at {loaded.log_end}, before it starts")
        point = loader.start.recovery_point
        if point > loaded.log_end:
            raise ContradictionError(
                f"the log ends at {loaded.log_end}, but was flushed up to {point}"
            )
        self._take_snapshot(loaded.log_end)
        for offset in manager.offsets:
            if offset <= loaded.log_start:
                manager.delete(offset)
        manager.remove_strays([segment.base_offset for segment in loader.segments])
        loaded.take_producers(manager.state)
        loader.find_first_unstable(manager)

    def _is_whole(self, segment: LoadedSegment) -> bool:
        """Return whether a segment has an offset index, and the ends of its indexes look whole."""
        files = self._loader.shadow.files
        found = {kind: files.get(segment.name(kind)) for kind in names.INDEX_KINDS}
        indexes = {kind: file for kind, file in found.items() if file}
        log = files[segment.name(FileKind.LOG)]
        return FileKind.OFFSET_INDEX in indexes and seems_whole(log, indexes)

    def _enter(self, base: int) -> None:
        """Come to the base of a segment that is played back."""
        if base > self._manager.map_end:
            unflushed = base > self._loader.start.recovery_point
            if unflushed and self._end is not None and self._end < base:
                # A broker took a snapshot at the end of the last segment, and began with that.
                self._manager.forget_expired()
            self._take_snapshot(base)
            if unflushed:
                # A broker that recovers the segment in front begins again with its snapshot.
                self._manager.forget_expired()

    def _take_snapshot(self, offset: int) -> None:
        self._manager.map_end = offset
        if offset not in self._manager.offsets:
            self._manager.take_snapshot()

    def _play(self, segment: LoadedSegment, end: int | None) -> None:
        """Read the headers of a segment as far as they are needed, and add what is missing."""
        loader, begin = self._loader, self._marks.playback.replayed_from
        log = loader.shadow.files[segment.name(FileKind.LOG)]
        one = Played(loader, segment, log)
        played = end is None or end > begin
        from_byte = one.position(begin if played else None)
        aborted: list[AbortedTransaction] = []
        size = 0
        with log.open() as file:
            headers = HeaderWalk(file, segment.base_offset, segment.name(FileKind.LOG))
            for table in headers.tables(from_byte):
                one.take(table)
                rows = table[table.last_offset >= begin]
                if played and len(rows):
                    if rows.base_offset[0] < begin and self._marks.producers is not None:
                        raise ContradictionError(f"the snapshot of {begin} is inside a batch")
                    aborted += replay(self._manager.state, rows)
                    size += int(rows.size.sum())
                    loader.loaded.records_applied += rows.records
        loader.on_bytes(headers.bytes_read)
        loader.loaded.bytes_scanned += headers.bytes_read
        loader.loaded.bytes_applied += size
        recovered = one.recovered(headers.end, from_byte, end)
        self._end = recovered.next_offset
        if end is not None and recovered.next_offset > end:
            raise ContradictionError(f"{segment.name(FileKind.LOG)} reaches into the next segment")
        self._write(segment, one, recovered, aborted if played else None)
        unflushed = end is None or end > loader.start.recovery_point
        why = (
            RecoveryReason.UNFLUSHED
            if unflushed
            else RecoveryReason.PLAYED_BACK
            if played
            else RecoveryReason.TORN_INDEX
        )
        loader.loaded.recovered.append(replace(recovered, why=why))

    def _write(
        self,
        segment: LoadedSegment,
        one: "Played",
        recovered: RecoveredSegment,
        aborted: list[AbortedTransaction] | None,
    ) -> None:
        shadow = self._loader.shadow
        if recovered.valid_size < recovered.size:
            shadow.truncate(segment.name(FileKind.LOG), recovered.valid_size)
        offsets, times = one.indexes.finish(recovered.valid_size)
        shadow.write(segment.name(FileKind.OFFSET_INDEX), offsets)
        shadow.write(segment.name(FileKind.TIME_INDEX), times)
        name = segment.name(FileKind.TRANSACTION_INDEX)
        before = shadow.files[name].read() if name in shadow else None
        count = whole_entries(before or b"", segment.base_offset)
        kept = (before or b"")[: count * txn_index.ENTRY_SIZE]
        there = txn_index.parse(kept).last_offsets.tolist()
        found = [transaction.last_offset for transaction in aborted or ()]
        begin = self._marks.playback.replayed_from
        if aborted is not None and not {at for at in there if at >= begin} <= set(found):
            raise ContradictionError(f"{name} has an entry without its marker")
        new = [one for one in aborted or () if not there or one.last_offset > there[-1]]
        if before is not None or new:
            shadow.write(name, kept + encode_aborted(new))
