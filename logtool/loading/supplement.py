"""Recovery that supplements the indexes, where a broker deletes them and builds them again.

The log is checked as by a broker and ends at the same place. But the valid entries of each index
stay and only missing ones are added, and the producer state is not replayed through the whole log.
The idea is that of AutoMQ's AKIP-2. Its checkpoint of the transaction index, up to which no entry
is missing, is here the recovery point, which a broker raises only after it flushed the index, or
the last entry.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from logtool.formats import names
from logtool.formats.names import DirectoryKind, FileKind
from logtool.loading.index_building import InvalidOffsetError
from logtool.loading.index_prefix import ValidPrefix, seems_whole
from logtool.loading.kafka_reading import StartFailsError
from logtool.loading.loader import Loader, carry_out, load
from logtool.loading.producer_replay import ProducerReplay
from logtool.loading.recovery import OffsetOverflowError
from logtool.loading.replay_start import found
from logtool.loading.result import LoadResult, RecoveredSegment, RecoveryReason, StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.log.dir import Partition


def supplement(
    partition: Partition, start: StartConditions, on_bytes: Callable[[int], None] = lambda _: None
) -> LoadResult:
    """Recover a log by supplementing its files; the disk is not touched.

    A log that was stopped cleanly, or that is being deleted, is loaded as by a broker. A missing
    recovery point counts as 0, as with a broker. UnreadableError as with `load`.
    """
    going = getattr(partition.directory, "kind", None) is DirectoryKind.DELETE
    if start.clean or going:
        return load(partition, start, on_bytes)
    loader = Loader(partition=partition, start=start, on_bytes=on_bytes, strategy=_Supplement)
    loader.loaded.playback = found(partition, start)
    return carry_out(loader)


class _Supplement:
    """The strategy that keeps valid index entries and adds missing ones."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        loader.loaded.supplemented = True
        self._readings: dict[int, ValidPrefix] = {}
        """The segments that were read, by base offset."""
        self._point = loader.start.recovery_point
        self._sound_end = 2**63
        """Offset of the first cut; snapshots and transaction entries behind it are not used."""

    def needs_recovery(self, segment: LoadedSegment) -> RecoveryReason | None:
        """Return why a broker would recover a segment, or would stop at it."""
        try:
            return self._loader.needs_recovery(segment)
        except StartFailsError:
            # An entry of an unknown version counts as missing.
            return RecoveryReason.BAD_TRANSACTION_INDEX

    def is_done(self, segment: LoadedSegment) -> bool:
        """Return whether the segment was read before; if it was cut, the next ones stay."""
        return segment.base_offset in self._readings

    def recover(self, segment: LoadedSegment, why: RecoveryReason) -> RecoveredSegment:
        """Read a segment, and keep the index entries that its log does not contradict."""
        reading = self._reading(segment)
        recovered = self._loader.read_segment(segment, why, reading.recovery)
        self._take(segment, reading, recovered)
        return recovered

    def take_emptied(self, segment: LoadedSegment, emptied: RecoveredSegment) -> None:
        """Note that no index entry of a segment is valid."""
        self._take(segment, ValidPrefix(segment.base_offset, {}), emptied)

    def finish(self) -> None:
        """Mend indexes of flushed segments; recover all segments if flushed bytes are lost."""
        loader = self._loader
        if loader.segments and loader.segments[-1].next_offset() < self._point:
            # Flushed bytes are lost, so nothing counts as flushed.
            self._point = 0
            loader.recover_from(0)
        for segment in loader.segments:
            if segment.base_offset not in self._readings:
                self._mend(segment)

    def settle_producers(self) -> None:
        """Replay producers from the newest snapshot that the log does not contradict."""
        loader = self._loader
        manager = loader.new_manager()
        replay = ProducerReplay(
            loaded=loader.loaded,
            start=loader.start,
            segments=loader.segments,
            readings=self._readings,
            sound_end=self._sound_end,
        )
        replay.run(manager)
        if loader.loaded.playback:
            begin = loader.loaded.log_start if replay.begin is None else replay.begin
            loader.loaded.playback = replace(loader.loaded.playback, replayed_from=begin)
        loader.count_replay(manager)
        loader.loaded.take_producers(manager.state)
        loader.find_first_unstable(manager)

    def _mend(self, segment: LoadedSegment) -> None:
        """Supplement the indexes of a flushed segment whose log no broker would read.

        If the log cannot be read to its end, the indexes stay unchanged: a short index is worse
        than a missing one.
        """
        shadow = self._loader.shadow.files
        names_of = {kind: segment.name(kind) for kind in names.INDEX_KINDS}
        indexes = {kind: shadow[name] for kind, name in names_of.items() if name in shadow}
        if seems_whole(shadow[segment.name(FileKind.LOG)], indexes):
            return
        reading = self._reading(segment, recover=False)
        try:
            recovered = self._loader.read_segment(
                segment, RecoveryReason.TORN_INDEX, reading.recovery
            )
        except (InvalidOffsetError, OffsetOverflowError, StartFailsError):
            return
        if reading.recovery.result.stop is None:
            self._take(segment, reading, recovered)
            self._loader.loaded.recovered.append(recovered)

    def _reading(self, segment: LoadedSegment, *, recover: bool = True) -> ValidPrefix:
        offsets = self._loader.shadow.snapshots().offsets
        cuts = offsets[bisect_right(offsets, segment.base_offset) :]
        indexes = {
            kind: self._loader.shadow.files[segment.name(kind)].read_entries()
            for kind in names.INDEX_KINDS
            if segment.name(kind) in self._loader.shadow
        }
        start = self._loader.start
        return ValidPrefix(
            base_offset=segment.base_offset,
            indexes=indexes,
            cuts=cuts,
            epochs=self._loader.epochs if recover else None,
            interval=start.index_interval,
            max_index_size=start.max_index_size,
        )

    def _take(
        self, segment: LoadedSegment, reading: ValidPrefix, recovered: RecoveredSegment
    ) -> None:
        """Cut a segment and its indexes to their valid part; complete offset and time index."""
        base, shadow = segment.base_offset, self._loader.shadow
        # Behind a cut, transactions may have begun in batches that are gone.
        reading.believe_aborts(self._point, none=base >= self._sound_end)
        if recovered.valid_size < recovered.size:
            shadow.truncate(segment.name(FileKind.LOG), recovered.valid_size)
            self._sound_end = min(self._sound_end, recovered.next_offset)
        indexes = {
            FileKind.OFFSET_INDEX: reading.offset_index(),
            FileKind.TIME_INDEX: reading.time_index(),
        }
        if segment.name(FileKind.TRANSACTION_INDEX) in shadow:
            indexes[FileKind.TRANSACTION_INDEX] = reading.kept_aborts
        for kind, content in indexes.items():
            name = segment.name(kind)
            size = shadow.files[name].size if name in shadow else None
            if size != len(content) or not reading.is_there(kind, content):
                shadow.write(name, content)
        reading.let_go()
        self._readings[base] = reading
