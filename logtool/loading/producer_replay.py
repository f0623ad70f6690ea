"""The producer state of a log whose indexes are supplemented, replayed from where it has to be.

The replay makes the entries that the transaction indexes lack. It needs the state in front of their
markers, so it begins with the newest snapshot in front of the first missing entry; if no entry is
missing, with the newest of all. A snapshot is used only if it fits the log that was read.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from logtool.formats import producer_snapshot
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable, concat
from logtool.loading.index_prefix import ValidPrefix, is_behind
from logtool.loading.kafka_reading import StartFailsError
from logtool.loading.producers import ProducerManager, decode
from logtool.loading.recovery import encode_aborted, replay
from logtool.loading.result import LoadResult, StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.log.producer_state import Producer

_NO_LIMIT = 2**63


class ProducerReplay:
    """The replay through the segments of a log, some of which were read already.

    No snapshot from behind `sound_end` is used.
    """

    def __init__(
        self,
        loaded: LoadResult,
        start: StartConditions,
        segments: Sequence[LoadedSegment],
        readings: Mapping[int, ValidPrefix],
        sound_end: int,
    ) -> None:
        self._loaded = loaded
        self._start = start
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self._readings = {base: readings[base] for base in self._bases if base in readings}
        self._inside = set[int]().union(*(reading.inside for reading in self._readings.values()))
        """The offsets of snapshots that fall inside a batch."""
        self._sound_end = sound_end
        self.begin: int | None = None
        """Offset of the snapshot with which the replay begins; None without one."""

    def run(self, manager: ProducerManager) -> None:
        """Replay, write missing entries and snapshots, and delete snapshots that do not stay."""
        loaded = self._loaded
        for reading in self._readings.values():
            if reading.recovery.unreadable:
                raise StartFailsError(reading.recovery.unreadable)
        self.begin = self._choose(manager)
        befores, ends = [-1, *self._bases[:-1]], [*self._bases[1:], loaded.log_end]
        for segment, before, end in zip(self._segments, befores, ends, strict=True):
            if self.begin is None or end > self.begin:
                self._enter(segment.base_offset, before, manager)
                self._replay(segment, manager)
        _take_snapshot(loaded.log_end, manager)
        for offset in manager.offsets:
            if offset <= loaded.log_start:
                manager.delete(offset)
        manager.remove_strays(self._bases)

    # Snapshots

    def _choose(self, manager: ProducerManager) -> int | None:
        """Begin with the newest snapshot in front of every missing entry, and return its offset.

        Newer ones need only be believable, and those that are not go; so do older ones in what
        was read.
        """
        missing = min(
            (reading.first_missing() for reading in self._readings.values()), default=_NO_LIMIT
        )
        first_read = min(self._readings, default=_NO_LIMIT)
        manager.begin(self._loaded.log_start, {})
        begin = None
        for offset in reversed(manager.offsets):
            if begin is not None and offset < first_read:
                break
            producers = self._believed(offset, manager)
            wanted = begin is None and offset <= missing
            if producers is None or (wanted and self._is_behind(offset, producers)):
                manager.delete(offset)
            elif wanted:
                manager.begin(offset, producers)
                begin = offset
        return begin

    def _believed(self, offset: int, manager: ProducerManager) -> dict[int, Producer] | None:
        """Return the producers of a snapshot, or None where it does not fit the log."""
        if not self._start.log_start < offset <= min(self._loaded.log_end, self._sound_end):
            return None
        if offset in self._inside:
            return None
        # Between the bases, only a log that was read shows whether a batch begins there.
        behind = bisect_right(self._bases, offset)
        base = self._bases[behind - 1] if behind else None
        if offset != base and base not in self._readings:
            return None
        data = manager.read(offset)
        if any(producer_snapshot.check(producer_snapshot.parse(data), end_offset=offset)):
            return None
        return decode(data)

    def _is_behind(self, offset: int, producers: Mapping[int, Producer]) -> bool:
        parts: list[BatchTable] = []
        for base in sorted(self._readings):
            rows = self._readings[base].rows
            known = (rows.last_offset >= self._loaded.log_start) & (rows.last_offset < offset)
            parts.append(rows[known])
        return is_behind(producers, concat(parts), self._start.idle_ms)

    # Segments

    def _enter(self, base: int, before: int, manager: ProducerManager) -> None:
        """Come to the base of a segment; that in front of it has the base `before`."""
        if base > manager.map_end:
            # Unless segments overlap.
            if all(producer.last_offset < base for producer in manager.state.producers.values()):
                _take_snapshot(base, manager)
            manager.map_end = base
            if {before, base} <= self._readings.keys():
                # A broker that recovers one after the other begins with the snapshot in between.
                manager.forget_expired()
        elif self.begin is None:
            # At the log start, a broker has no snapshot and begins without producers.
            manager.state.producers.clear()

    def _replay(self, segment: LoadedSegment, manager: ProducerManager) -> None:
        """Replay a segment from where the snapshot was taken, or from its start."""
        reading = self._readings.get(segment.base_offset)
        if reading is None:
            log = segment.reader()
            position = log.find(manager.map_end)
            if position is not None:
                manager.replay(log, position, segment.size)
            return
        rows, result = reading.rows, reading.recovery.result
        size, records = result.valid_size, result.records
        if self.begin is not None and self.begin > segment.base_offset:
            rows = rows[rows.last_offset >= self.begin]
            size_before, records_before = reading.before(self.begin)
            size, records = size - size_before, records - records_before
        self._loaded.bytes_applied += size
        self._loaded.records_applied += records
        aborted = replay(manager.state, rows, ())
        new = [transaction for transaction in aborted if transaction.last_offset > reading.covered]
        if new:
            name = segment.name(FileKind.TRANSACTION_INDEX)
            self._loaded.shadow.write(name, reading.kept_aborts + encode_aborted(new))


def _take_snapshot(offset: int, manager: ProducerManager) -> None:
    """Write a snapshot unless a believable one is there."""
    manager.map_end = offset
    if offset not in manager.offsets:
        manager.take_snapshot()
