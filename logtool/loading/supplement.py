"""Recovery that supplements what is there, where a broker throws it away and writes it anew.

The log is checked as a broker does and ends where it would end. But of each index what can be
believed stays and what is missing goes behind it; and the producer state is not replayed through
all that was read. The idea is that of AutoMQ's AKIP-2. Its checkpoint of the transaction index, up
to which no entry is missing, is here the recovery point, for that is raised only when the index was
flushed, or the last entry.
"""

from bisect import bisect_right
from collections.abc import Callable

from logtool.formats import names
from logtool.formats.names import DirectoryKind, FileKind
from logtool.loading.believable import Reading, seems_whole
from logtool.loading.loader import (
    Loaded,
    Loader,
    RecoveredSegment,
    Start,
    Why,
    carry_out,
    load,
)
from logtool.loading.producers import ProducerManager
from logtool.loading.reading import StartFailsError
from logtool.loading.recovery import InvalidOffsetError, OffsetOverflowError
from logtool.loading.replaying import Replay
from logtool.loading.segments import LoadedSegment
from logtool.partition import Partition


def supplement(
    found: Partition, start: Start, on_bytes: Callable[[int], None] = lambda _: None
) -> Loaded:
    """Recover a log from what is there; the disk is not touched.

    A log that was stopped in order, or that is being deleted, is loaded as by a broker. A recovery
    point that is missing counts as 0, as with a broker. UnreadableError as with `load`.
    """
    going = getattr(found.directory, "kind", None) is DirectoryKind.DELETE
    if start.clean or going:
        return load(found, start, on_bytes)
    return carry_out(_Supplementer(found, start, on_bytes))


class _Supplementer(Loader):
    def __init__(self, found: Partition, start: Start, on_bytes: Callable[[int], None]) -> None:
        super().__init__(found, start, on_bytes)
        self.loaded.supplemented = True
        self._readings: dict[int, Reading] = {}
        """Of the segments that were read, by base offset."""
        self._point = start.recovery_point
        self._sound_end = 2**63
        """Where the first segment was cut: what stands behind it followed something else."""

    def _needs_recovery(self, segment: LoadedSegment) -> Why | None:
        try:
            return super()._needs_recovery(segment)
        except StartFailsError:
            # An entry of an unknown version is as good as none.
            return Why.BAD_TRANSACTION_INDEX

    def _recover(self, manager: ProducerManager) -> None:
        super()._recover(manager)
        if self._segments and self._segments[-1].next_offset() < self._point:
            # What was flushed is gone, so that nothing counts as flushed.
            self._point = 0
            self._recover_from(0, manager)
        for segment in self._segments:
            if segment.base_offset not in self._readings:
                self._mend(segment)

    def _recover_unflushed(self, segment: LoadedSegment) -> bool:
        # One that was read when it was opened was cut then, and what follows it stays.
        known = segment.base_offset in self._readings
        return not known and super()._recover_unflushed(segment)

    def _recover_segment(self, segment: LoadedSegment, why: Why) -> RecoveredSegment:
        reading = self._reading(segment)
        recovered = self._read_segment(segment, why, reading)
        self._take(segment, reading, recovered)
        return recovered

    def _empty(self, segment: LoadedSegment, why: str) -> RecoveredSegment:
        emptied = super()._empty(segment, why)
        self._take(segment, Reading(segment.base_offset, {}), emptied)
        return emptied

    def _mend(self, segment: LoadedSegment) -> None:
        """Supplement the indexes of a flushed segment whose log no broker would read.

        Of a log that cannot be read to its end they stay as they are: an index that is short is
        worse than none.
        """
        shadow = self._shadow.files
        names_of = {kind: segment.name(kind) for kind in names.INDEX_KINDS}
        indexes = {kind: shadow[name] for kind, name in names_of.items() if name in shadow}
        if seems_whole(shadow[segment.name(FileKind.LOG)], indexes):
            return
        reading = self._reading(segment, recover=False)
        try:
            recovered = self._read_segment(segment, Why.TORN_INDEX, reading)
        except (InvalidOffsetError, OffsetOverflowError, StartFailsError):
            return
        if reading.result.stop is None:
            self._take(segment, reading, recovered)
            self.loaded.recovered.append(recovered)

    def _reading(self, segment: LoadedSegment, *, recover: bool = True) -> Reading:
        offsets = self._shadow.snapshots().offsets
        cuts = offsets[bisect_right(offsets, segment.base_offset) :]
        indexes = {
            kind: self._shadow.files[segment.name(kind)].read()
            for kind in names.INDEX_KINDS
            if segment.name(kind) in self._shadow
        }
        return Reading(
            segment.base_offset, indexes, cuts, epochs=self._epochs if recover else None,
            interval=self._start.index_interval, max_index_size=self._start.max_index_size,
        )  # fmt: skip

    def _take(self, segment: LoadedSegment, reading: Reading, recovered: RecoveredSegment) -> None:
        """Cut a segment and its indexes to what can be believed, the first two made whole."""
        base, shadow = segment.base_offset, self._shadow
        # Behind a cut, transactions may have begun in what is gone.
        reading.believe_aborts(self._point, none=base >= self._sound_end)
        if recovered.valid_size < recovered.size:
            shadow.truncate(segment.name(FileKind.LOG), recovered.valid_size)
            self._sound_end = min(self._sound_end, recovered.next_offset)
        shadow.write(segment.name(FileKind.OFFSET_INDEX), reading.offset_index())
        shadow.write(segment.name(FileKind.TIME_INDEX), reading.time_index())
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if name in shadow:
            shadow.write(name, reading.kept_aborts)
        self._readings[base] = reading

    def _settle_producers(self, _: ProducerManager) -> None:
        manager = self._manager()
        Replay(self.loaded, self._start, self._segments, self._readings, self._sound_end).run(
            manager
        )
        self._count_replay(manager)
        self._find_first_unstable(manager)
