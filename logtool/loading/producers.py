"""The producer state of a log and its snapshots, kept as a broker keeps them while it loads.

The rules are those of ``ProducerStateManager`` and ``UnifiedLog.rebuildProducerState`` (Kafka 3.9
and 4.3): when a snapshot is read, when one is written, and which are deleted.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

import numpy as np

from logtool.disk import files
from logtool.formats import producer_snapshot
from logtool.formats.crc import crc32c
from logtool.loading.kafka_reading import IndexedLog, StartFailsError
from logtool.loading.recovery import replay
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.file import File
from logtool.log.producer_state import (
    NONE,
    AbortedTransaction,
    CommittedTransaction,
    Producer,
    ProducerState,
)
from logtool.metadata.releases import NEWEST

_EXPIRATION_MS = 86_400_000
"""Default of ``producer.id.expiration.ms``."""
_TRANSACTIONAL_ID_EXPIRATION_MS = 604_800_000
"""Default of ``transactional.id.expiration.ms``, which was for producer ids too up to 3.3."""
_CRC_START = 6
_IN_JAVA = (3, 5)
"""Release since which ``ProducerStateManager`` is a class of Java, no longer of Scala."""


def expiration_ms(kafka: tuple[int, int]) -> int:
    """Return how long a producer may be idle, by default, before a release of Kafka forgets it."""
    return _EXPIRATION_MS if kafka >= (3, 4) else _TRANSACTIONAL_ID_EXPIRATION_MS


class ProducerManager:
    """The producers up to `map_end`, and the snapshots next to the log."""

    def __init__(
        self,
        shadow: Shadow,
        now_ms: int,
        expiration_ms: int,
        kafka: tuple[int, int] = NEWEST,
        *,
        is_sole: bool = False,
    ) -> None:
        """Take the files; `is_sole` if no other manager changes snapshots while this one is used.

        Then the listing of the snapshots is not copied, which takes long for many segments.
        """
        self._shadow = shadow
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self._kafka = kafka
        self._most = 0
        """Largest number of producers that were known before the state was dropped."""
        self.state = ProducerState()
        self.map_end = 0
        """Offset, exclusive: the state is that of the batches before it."""
        self._snapshot_end = 0
        self._snapshots = shadow.snapshots(copied=not is_sole)
        self.bytes_replayed = self.records_replayed = 0

    @property
    def offsets(self) -> list[int]:
        """Return the offsets of the snapshots, in order."""
        return list(self._snapshots.offsets)

    def read(self, offset: int) -> bytes:
        """Return the snapshot file of an offset."""
        return self._shadow.files[self._snapshots[offset]].read()

    def take_snapshot(self) -> None:
        """Write a snapshot unless the last one is as new."""
        if self.map_end <= self._snapshot_end:
            return
        name = f"{self.map_end:020d}.snapshot"
        self._shadow.write(name, encode(self.state, self._kafka, self._most))
        self._snapshots.add(self.map_end, name)
        self._snapshot_end = self.map_end

    def delete(self, offset: int) -> None:
        """Delete the snapshot of an offset if there is one."""
        name = self._snapshots.get(offset)
        if name is None:
            return
        if name in self._shadow:
            self._shadow.remove(name)
        self._snapshots.remove(offset)

    def start_at(self, offset: int) -> None:
        """Drop all producers and snapshots, and begin at `offset`."""
        self._note_most()
        self.state = ProducerState()
        for one in self.offsets:
            self.delete(one)
        self._snapshot_end = 0
        self.map_end = offset

    def remove_strays(self, bases: Sequence[int]) -> None:
        """Delete snapshots at no segment's base, except the newest if behind the last base."""
        self._snapshots = self._shadow.snapshots()
        known = frozenset(bases)
        stray = None
        for offset in self.offsets:
            if offset not in known:
                if stray is not None:
                    self.delete(stray)
                stray = offset
        if stray is not None and bases and stray < max(bases):
            self.delete(stray)

    def rebuild(
        self, segments: Sequence[LoadedSegment], log_start: int, end: int, *, clean: bool
    ) -> None:
        """Bring the state to offset `end` by a snapshot and a replay of the batches behind it."""
        targets = [*(segment.base_offset for segment in segments[-2:]), end]
        if clean and not self._snapshots:
            for offset in targets:
                self.map_end = offset
                self.take_snapshot()
            return
        empty = not self.state.producers and self.map_end >= end
        self._truncate_and_reload(log_start, end)
        if end > self.map_end and not empty:
            self._replay(segments, targets, log_start, end)
        self.map_end = end
        self.take_snapshot()

    def _truncate_and_reload(self, log_start: int, end: int) -> None:
        offsets = self._snapshots.offsets
        for offset in (
            *offsets[: bisect_right(offsets, log_start)],
            *offsets[bisect_right(offsets, max(end, log_start)) :],
        ):
            self.delete(offset)
        if end != self.map_end:
            self._note_most()
            self.state = ProducerState()
            self._load(log_start)
        else:
            self.map_end = max(self.map_end, log_start)
            self._snapshot_end = (self._snapshots.offsets or [log_start])[-1]

    def _load(self, log_start: int) -> None:
        """Take the newest snapshot that can be read; those that cannot are deleted."""
        while self._snapshots:
            offset = self._snapshots.offsets[-1]
            producers = decode(self.read(offset))
            if producers is not None:
                self.begin(offset, producers)
                return
            self.delete(offset)
        self._snapshot_end = self.map_end = log_start

    def begin(self, offset: int, producers: dict[int, Producer]) -> None:
        """Begin with the state of a snapshot."""
        self._note_most()
        self.state.producers = producers
        self._snapshot_end = self.map_end = offset
        self.forget_expired()

    def _note_most(self) -> None:
        """Note the number of producers before they are dropped: a hash table keeps its size."""
        self._most = max(self._most, len(self.state.producers))

    def forget_expired(self) -> None:
        """Drop producers that were idle for too long, as each reading of a snapshot does."""
        self.state.producers = {
            producer_id: producer
            for producer_id, producer in self.state.producers.items()
            if not self._is_expired(producer)
        }

    def _is_expired(self, producer: Producer) -> bool:
        idle = producer.transaction_first_offset == NONE
        return idle and self._now_ms - producer.timestamp >= self._expiration_ms

    def _replay(
        self, segments: Sequence[LoadedSegment], targets: Sequence[int], log_start: int, end: int
    ) -> None:
        up_to_end = bisect_right(segments, end, key=_base)
        last = segments[up_to_end - 1].base_offset if up_to_end else None
        first = max(bisect_right(segments, self.map_end, key=_base) - 1, 0)
        for segment in segments[first : bisect_left(segments, end, key=_base)]:
            start = max(segment.base_offset, self.map_end, log_start)
            self.map_end = start
            if segment.base_offset in targets:
                self.take_snapshot()
            log = segment.reader()
            stop = segment.size
            if segment.base_offset == last:
                found = log.find(end)
                stop = segment.size if found is None else found
            begin = log.find(start)
            if begin is not None:
                self.replay(log, begin, stop)

    def replay(self, log: IndexedLog, begin: int, stop: int) -> None:
        """Replay the batches of a log from byte `begin` to `stop`.

        StartFailsError where two transactions that end there begin at one offset: a broker notes
        all that begin, by that offset, before it takes out those that end
        (``UnifiedLog.loadProducersFromRecords``, ``ProducerStateManager.completeTxn``).
        """
        ended: list[AbortedTransaction | CommittedTransaction] = []
        committed: list[CommittedTransaction] = []
        self.state.committed = committed
        for chunk in log.batches(begin, stop):
            self.bytes_replayed += int(chunk.table.size.sum())
            self.records_replayed += chunk.table.records
            table = chunk.table
            readable = chunk.control_errors[0][0] if chunk.control_errors else len(table)
            ended += replay(
                self.state,
                table[:readable],
                plain=chunk.plain,
                control_times=chunk.control_times,
            )
            if readable < len(table):
                reason = chunk.control_errors[0][1].reason
                offset = int(table.base_offset[readable])
                raise StartFailsError(f"control record at offset {offset}: {reason}")
        self.state.committed = None
        for offset, count in Counter(one.first_offset for one in (*ended, *committed)).items():
            if count > 1:
                raise StartFailsError(f"the transaction that begins at offset {offset} ends twice")


def encode(state: ProducerState, kafka: tuple[int, int] = NEWEST, most: int = 0) -> bytes:
    """Return the snapshot file of a state as a release of Kafka writes it.

    `most` is the largest number of producers that were known before.
    """
    entries = np.zeros(len(state.producers), producer_snapshot.ENTRY)
    most = max(most, len(entries))
    order = producer_snapshot.in_hash_order(list(state.producers), most, scala=kafka < _IN_JAVA)
    for row, producer_id in enumerate(order):
        producer = state.producers[producer_id]
        entries[row] = (
            producer_id,
            producer.epoch,
            producer.last_sequence,
            producer.last_offset,
            producer.offset_delta,
            producer.timestamp,
            producer.coordinator_epoch,
            producer.transaction_first_offset,
        )
    return producer_snapshot.encode(producer_snapshot.build(entries))


def decode(data: bytes) -> dict[int, Producer] | None:
    """Return the producers of a snapshot file, or None where a broker cannot read it."""
    snapshot = producer_snapshot.parse(data)
    whole = snapshot.version == producer_snapshot.VERSION and snapshot.count == len(snapshot)
    if not whole or crc32c(data[_CRC_START:]) != snapshot.crc:
        return None
    producers = {}
    for producer_id, *fields in snapshot.entries.tolist():
        producer = Producer(*fields)
        if producer.last_offset < 0:
            producer.last_offset = producer.last_sequence = NONE
            producer.offset_delta = 0
        if producer.transaction_first_offset < 0:
            producer.transaction_first_offset = NONE
        producers[producer_id] = producer
    return producers


def _base(segment: LoadedSegment) -> int:
    return segment.base_offset


def newest_state(snapshots: Sequence[File], last: int) -> tuple[int, ProducerState]:
    """Return offset and state of the newest sound snapshot up to the offset `last`.

    `snapshots` are in order of their offsets. 0 and an empty state without one; UnreadableError.
    """
    for file in reversed(snapshots):
        offset = file.name.offset or 0
        producers = decode(files.read_small(file.path)) if offset <= last else None
        if producers is not None:
            return offset, ProducerState(producers)
    return 0, ProducerState()
