"""The loading of one log, step by step as a broker does it, on a shadow of its directory.

The steps and their order are those of ``LogLoader.load`` (Kafka 3.9 and 4.3): leftovers of
interrupted cleaning, opening of each segment, recovery of the unflushed ones, leader epochs,
producer state. What a broker would not survive ends it, and the outcome says why.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from logtool import scan
from logtool.formats import names, offset_index, partition_metadata, time_index, transaction_index
from logtool.formats.names import DirectoryKind, FileKind, FileState, Reception
from logtool.loading import epochs
from logtool.loading.epochs import EpochCache
from logtool.loading.producers import ProducerManager, expiration_ms
from logtool.loading.reading import OfflineError, StartFailsError
from logtool.loading.recovery import (
    INDEX_INTERVAL,
    MAX_INDEX_SIZE,
    InvalidOffsetError,
    Lost,
    OffsetOverflowError,
    Recovered,
    Recovery,
    encode_aborted,
)
from logtool.loading.segments import NEWEST, LoadedSegment
from logtool.loading.shadow import OccupiedError, Shadow
from logtool.loading.splitting import TooLargeError, split
from logtool.loading.unsound import Tally
from logtool.partition import Partition
from logtool.scan import Damage, Reason

MAX_OFFSET = 2**63 - 1
"""A segment at this base offset is never recovered: the range of those that are ends before it."""
_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value
_TOPIC_ID = FileKind.PARTITION_METADATA.value


class Outcome(StrEnum):
    """How the loading of a log ends."""

    LOADS = "loads"
    REFUSES = "refuses"
    """The broker stops with an uncaught exception."""
    OFFLINE = "offline"
    """The broker takes the log dir offline and goes on without it."""
    UNKNOWN = "unknown"
    """It does something that is not carried out here."""


class Why(StrEnum):
    """Why a segment is recovered."""

    UNFLUSHED = "unflushed"
    NO_INDEX = "no offset index"
    BAD_TRANSACTION_INDEX = "transaction index below the base offset"
    TORN_INDEX = "an index is torn, padded or empty"
    """No broker looks."""


@dataclass(frozen=True, slots=True)
class Start:
    """What the log dir says of the partition, and the settings of the broker."""

    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    now_ms: int = 0
    index_interval: int = INDEX_INTERVAL
    max_index_size: int = MAX_INDEX_SIZE
    kafka: tuple[int, int] = NEWEST
    """Version of the broker."""
    cut_precisely: bool = False
    """Not as a broker: where one empties a segment, only what is bad is cut."""

    expiration_ms: int | None = None
    """``producer.id.expiration.ms``; None: the default of the version."""

    @property
    def idle_ms(self) -> int:
        """Return how long a producer may be idle before it is forgotten."""
        return expiration_ms(self.kafka) if self.expiration_ms is None else self.expiration_ms


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """One segment that was read from its first byte and given new indexes."""

    base_offset: int
    why: Why
    size: int
    """Bytes of its log before."""
    valid_size: int
    """Bytes that stay."""
    stop: Damage | None = None
    emptied: str | None = None
    """Why the whole segment went, or would have."""
    lost: Lost = field(default_factory=Lost)
    """Sound batches that go."""
    behind: Lost = field(default_factory=Lost)
    """Those of them that stand behind damage."""
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    """Behind what stays."""
    precise: bool = False
    """Whether it was cut where a broker would have emptied it."""


@dataclass(slots=True)
class Loaded:
    """What came of it."""

    shadow: Shadow
    outcome: Outcome = Outcome.LOADS
    reason: str = ""
    """Why it does not load."""
    segment: int | None = None
    """Where it does not load."""
    recovered: list[RecoveredSegment] = field(default_factory=list)
    removed: dict[int, Lost] = field(default_factory=dict)
    """Segments that go as a whole, by base offset."""
    split: dict[int, list[int]] = field(default_factory=dict)
    """Base offsets of the segments that one was split into, by its base offset."""
    wiped: bool = False
    """Whether all of them went because the log ends before it starts."""
    log_start: int = 0
    log_end: int = 0
    recovery_point: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    topic_id: str | None = None
    """That of ``partition.metadata``; None where there is no such file."""
    bytes_scanned: int = 0
    bytes_replayed: int = 0
    """Read once more for the producer state."""
    bytes_applied: int = 0
    """Of the batches that were applied to the producer state, whenever they were read."""
    records_applied: int = 0
    supplemented: bool = False
    """Whether what could be believed of the indexes was kept, as no broker does."""


def load(
    found: Partition, start: Start, on_bytes: Callable[[int], None] = lambda _: None
) -> Loaded:
    """Load a log as a broker would; the disk is not touched.

    UnreadableError where a file cannot be read: that is no word about what a broker would do.
    """
    return carry_out(Loader(found, start, on_bytes))


def carry_out(loader: "Loader") -> Loaded:
    """Run a loader to its end, whatever ends it."""
    loaded = loader.loaded
    try:
        loader.run()
    except StartFailsError as error:
        loaded.outcome, loaded.reason = Outcome.REFUSES, str(error)
    except TooLargeError as error:
        loaded.outcome, loaded.reason = Outcome.UNKNOWN, str(error)
    except InvalidOffsetError as error:
        loaded.outcome, loaded.reason = Outcome.REFUSES, str(error)
    except (OfflineError, OccupiedError) as error:
        loaded.outcome, loaded.reason = Outcome.OFFLINE, str(error)
    return loaded


class Loader:
    """One log while it is loaded."""

    def __init__(self, found: Partition, start: Start, on_bytes: Callable[[int], None]) -> None:
        self._found = found
        self._start = start
        self._on_bytes = on_bytes
        odd = [path.name for path in found.odd_entries]
        self._shadow = Shadow(found.path, found.files(), odd)
        self._segments: list[LoadedSegment] = []
        self._epochs = EpochCache()
        self._aborted = False
        """Whether the last recovery found aborted transactions, and so made an index for them."""
        self.loaded = Loaded(self._shadow, log_start=start.log_start)

    def run(self) -> None:
        """Take all steps; raises what ends a start."""
        loaded, start = self.loaded, self._start
        self._read_epochs()
        manager = self._manager()
        self._reject_odd_entries()
        self._finish_swaps(self._drop_temporaries())
        self._splitting(self._open_segments, manager)
        if getattr(self._found.directory, "kind", None) is DirectoryKind.DELETE:
            # It is opened once more and forgotten as if it were empty.
            if not self._segments:
                self._segments.append(self._new_segment(0))
        else:
            if not start.clean:
                self._splitting(lambda: self._recover(manager), manager)
            loaded.log_end = self._log_end(manager)
            self._grow_indexes(self._segments[-1])
        self._epochs.truncate_from_end(loaded.log_end)
        loaded.log_start = max(start.log_start, self._segments[0].base_offset)
        valid = start.clean and not loaded.wiped
        point = loaded.log_end if valid else min(start.recovery_point, loaded.log_end)
        loaded.recovery_point = max(point, loaded.log_start)
        self._epochs.truncate_from_start(start.log_start)
        self._write_epochs()
        self._settle_producers(manager)
        self._read_topic_id()

    def _settle_producers(self, manager: ProducerManager) -> None:
        """Bring the producer state and its snapshots to the end of the log."""
        loaded = self.loaded
        manager.remove_strays([segment.base_offset for segment in self._segments])
        manager.rebuild(self._segments, loaded.log_start, loaded.log_end, clean=self._start.clean)
        self._count_replay(manager)
        self._find_first_unstable(manager)

    def _find_first_unstable(self, manager: ProducerManager) -> None:
        """Look for where the oldest open transaction begins, and do not survive what is there."""
        offset = manager.state.oldest_open(none=self.loaded.log_end)
        if offset < self.loaded.log_end:
            offset = max(offset, self.loaded.log_start)
            segments = [s for s in self._segments if s.base_offset <= offset]
            if segments:
                segments[-1].reader().find(offset)

    def _count_replay(self, manager: ProducerManager) -> None:
        self.loaded.bytes_replayed += manager.bytes_replayed
        self.loaded.bytes_applied += manager.bytes_replayed
        self.loaded.records_applied += manager.records_replayed

    def _splitting(self, step: Callable[[], None], manager: ProducerManager) -> None:
        """Do a step, again after each segment that had to be split for it."""
        while True:
            try:
                step()
                return
            except OffsetOverflowError as error:
                segment = self._segment(self.loaded.segment or 0)
                opened = segment.base_offset in (s.base_offset for s in self._segments)
                bases = split(self._shadow, segment, self._start, str(error), opened=opened)
                if opened and segment.base_offset not in bases:
                    manager.delete(segment.base_offset)
                self.loaded.split[segment.base_offset] = bases
                gone = {segment.base_offset, *bases}
                self._segments = [s for s in self._segments if s.base_offset not in gone]
                self._segments += [self._segment(base) for base in bases]
                self._segments.sort(key=lambda one: one.base_offset)

    def _segment(self, base_offset: int, state: FileState = FileState.LIVE) -> LoadedSegment:
        return LoadedSegment(self._shadow, base_offset, state, kafka=self._start.kafka)

    def _read_epochs(self) -> None:
        if _EPOCHS not in self._shadow:
            self._shadow.write(_EPOCHS, b"")
        try:
            self._epochs = epochs.read(self._shadow.files[_EPOCHS].read())
        except (StartFailsError, OfflineError) as error:
            raise type(error)(f"{_EPOCHS}: {error}") from error

    def _read_topic_id(self) -> None:
        """Read ``partition.metadata`` where there is one, as the log does once it is loaded."""
        if any(path.name == _TOPIC_ID for path in self._found.odd_entries):
            raise OfflineError(f"{_TOPIC_ID} is no file")
        if _TOPIC_ID not in self._shadow:
            return
        metadata = partition_metadata.parse(self._shadow.files[_TOPIC_ID].read())
        refusal = partition_metadata.refusal(metadata, self._start.kafka)
        if refusal:
            error = OfflineError if refusal.is_io_error else StartFailsError
            raise error(f"{_TOPIC_ID}: {refusal.message}")
        self.loaded.topic_id = metadata.topic_id

    def _write_epochs(self) -> None:
        self.loaded.epochs = self._epochs.rows
        if self._epochs.changed:
            self._shadow.write(_EPOCHS, self._epochs.encode())
            if f"{_EPOCHS}.tmp" in self._shadow:
                self._shadow.remove(f"{_EPOCHS}.tmp")

    def _manager(self) -> ProducerManager:
        return ProducerManager(self._shadow, self._start.now_ms, self._start.idle_ms)

    def _reject_odd_entries(self) -> None:
        for path in self._found.odd_entries:
            kind = names.parse_partition_file(path.name).kind
            if kind in names.INDEX_KINDS:
                raise OfflineError(f"{path.name} is no file")

    # Leftovers

    def _drop_temporaries(self) -> list[str]:
        """Delete what an interrupted job left; returns the files of a swap that was committed."""
        swaps: dict[str, int] = {}
        cleaned: dict[str, int] = {}
        for name in self._shadow:
            file = names.parse_partition_file(name)
            if file.reception is Reception.STOPS_BROKER:
                raise StartFailsError(f"the name {name} has no offset")
            if name.endswith(FileState.DELETED) and not name.endswith(".checkpoint.deleted"):
                self._shadow.remove(name)
            elif file.state is FileState.CLEANED:
                cleaned[name] = file.offset or 0
            elif file.state is FileState.SWAP:
                swaps[name] = file.offset or 0
        least = min(cleaned.values(), default=2**63)
        for name in [*(n for n, offset in swaps.items() if offset >= least), *cleaned]:
            self._shadow.remove(name)
        return [name for name, offset in swaps.items() if offset < least]

    def _finish_swaps(self, swaps: Sequence[str]) -> None:
        """Put the new segments in the place of the old ones that they were made of."""
        low, high = 2**63, -1
        for name in swaps:
            file = names.parse_partition_file(name)
            if file.kind is not FileKind.LOG:
                continue
            segment = self._segment(file.offset or 0, FileState.SWAP)
            index = segment.name(FileKind.OFFSET_INDEX)
            low = min(low, segment.base_offset)
            high = max(high, segment.next_offset())
            if index not in self._shadow:
                # Made by the look for the next offset: full of zeros, and renamed with the rest.
                self._shadow.write(index, bytes(self._start.max_index_size // 8 * 8))
        for name in list(self._shadow):
            offset = names.parse_partition_file(name).offset
            if not name.endswith(FileState.SWAP) and offset is not None and low <= offset < high:
                self._shadow.remove(name)
        for name in list(self._shadow):
            if name.endswith(FileState.SWAP):
                self._shadow.rename(name, name.removesuffix(FileState.SWAP))

    # Segments

    def _open_segments(self) -> None:
        self._segments.clear()
        for name in list(self._shadow):
            file = names.parse_partition_file(name)
            if file.state is not FileState.LIVE or file.offset is None:
                continue
            segment = self._segment(file.offset)
            if file.kind in names.INDEX_KINDS and segment.name(FileKind.LOG) not in self._shadow:
                self._shadow.remove(name)
            elif file.kind is FileKind.LOG:
                self._open(segment)

    def _open(self, segment: LoadedSegment) -> None:
        self.loaded.segment = segment.base_offset
        if segment.name(FileKind.LOG) not in self._shadow:
            # A name with fewer digits: a broker opens the one it would write itself.
            self._shadow.write(segment.name(FileKind.LOG), b"")
        why = self._needs_recovery(segment)
        time_index = segment.name(FileKind.TIME_INDEX)
        if why:
            recovered = self._recover_segment(segment, why)
            self.loaded.recovered.append(recovered)
        elif time_index not in self._shadow:
            self._shadow.write(time_index, b"")
        at = bisect_left(self._segments, segment.base_offset, key=lambda one: one.base_offset)
        same = at < len(self._segments) and self._segments[at].base_offset == segment.base_offset
        self._segments[at : at + same] = [segment]
        self.loaded.segment = None

    def _needs_recovery(self, segment: LoadedSegment) -> Why | None:
        if segment.name(FileKind.OFFSET_INDEX) not in self._shadow:
            return Why.NO_INDEX
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if name in self._shadow:
            index = transaction_index.parse(self._shadow.files[name].read())
            for version, last_offset in zip(index.versions, index.last_offsets, strict=True):
                if version >> 8 > 0:
                    raise StartFailsError(f"{name}: version {version >> 8}, at most 0 is known")
                if last_offset < segment.base_offset:
                    return Why.BAD_TRANSACTION_INDEX
        return None

    def _recover_segment(self, segment: LoadedSegment, why: Why) -> RecoveredSegment:
        start = self._start
        manager = self._manager()
        manager.rebuild(self._segments, start.log_start, segment.base_offset, clean=False)
        self._count_replay(manager)
        recovery = Recovery(
            segment.base_offset, producers=manager.state, epochs=self._epochs,
            interval=start.index_interval, max_index_size=start.max_index_size,
        )  # fmt: skip
        recovered = self._read_segment(segment, why, recovery)
        result = recovery.result
        self._write_segment(segment, result)
        self.loaded.bytes_applied += result.valid_size
        self.loaded.records_applied += result.records
        if result.next_offset is not None:
            manager.map_end = result.next_offset
        manager.take_snapshot()
        return recovered

    def _read_segment(
        self, segment: LoadedSegment, why: Why, recovery: Recovery
    ) -> RecoveredSegment:
        log = self._shadow.files[segment.name(FileKind.LOG)]
        self.loaded.bytes_scanned += log.size
        try:
            result, lost, behind = recovery.run(log, self._on_bytes)
        except OffsetOverflowError:
            self._leave(segment, recovery)
            raise
        finally:
            self._aborted = bool(recovery.result.aborted)
        end = segment.base_offset if result.end_offset is None else result.end_offset
        return RecoveredSegment(
            segment.base_offset, why, log.size, result.valid_size, result.stop, lost=lost,
            behind=behind, batches=result.batches, records=result.records, next_offset=end,
        )  # fmt: skip

    def _write_segment(self, segment: LoadedSegment, result: Recovered) -> None:
        self._shadow.truncate(segment.name(FileKind.LOG), result.valid_size)
        self._shadow.write(segment.name(FileKind.OFFSET_INDEX), result.offset_index)
        self._shadow.write(segment.name(FileKind.TIME_INDEX), result.time_index)
        self._write_aborted(segment, result)

    def _leave(self, segment: LoadedSegment, recovery: Recovery) -> None:
        """Leave indexes as they are in the middle of a recovery, as long as they can be.

        New entries were written over the old ones from the start; behind them the old ones still
        stand (``AbstractIndex.resize`` keeps what the file holds).
        """
        offsets, times = recovery.indexes
        most = self._start.max_index_size
        for kind, content, entry in (
            (FileKind.OFFSET_INDEX, offsets, offset_index.ENTRY_SIZE),
            (FileKind.TIME_INDEX, times, time_index.ENTRY_SIZE),
        ):
            name, size = segment.name(kind), most // entry * entry
            old = self._shadow.files[name].read() if name in self._shadow else b""
            self._shadow.write(name, (content + old[len(content) : size]).ljust(size, b"\0"))
        self._write_aborted(segment, recovery.result)

    def _write_aborted(self, segment: LoadedSegment, result: Recovered) -> None:
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if result.aborted or name in self._shadow:
            self._shadow.write(name, encode_aborted(result.aborted))

    def _recover(self, manager: ProducerManager) -> None:
        """Recover what was not flushed."""
        self._recover_from(self._start.recovery_point, manager)

    def _recover_from(self, point: int, manager: ProducerManager) -> None:
        """Recover from the segment of an offset on; behind one that is cut nothing stays."""
        bases = [segment.base_offset for segment in self._segments]
        floor = max((base for base in bases if base <= point), default=point)
        unflushed = [s for s in self._segments if floor <= s.base_offset < MAX_OFFSET]
        for number, segment in enumerate(unflushed):
            if self._recover_unflushed(segment):
                self._remove(unflushed[number + 1 :], manager)
                return

    def _recover_unflushed(self, segment: LoadedSegment) -> bool:
        """Recover a segment; returns whether it is cut."""
        self.loaded.segment = segment.base_offset
        try:
            recovered = self._recover_segment(segment, Why.UNFLUSHED)
        except InvalidOffsetError as error:
            cut = self._cut if self._start.cut_precisely else self._empty
            recovered = cut(segment, str(error))
        except OccupiedError as error:
            # An I/O error of any kind; up to 3.9 it takes the log dir offline.
            if self._start.kafka < (4, 0):
                raise
            recovered = self._empty(segment, str(error))
        self.loaded.recovered.append(recovered)
        self.loaded.segment = None
        return recovered.valid_size < recovered.size

    def _grow_indexes(self, active: LoadedSegment) -> None:
        """Hold the active segment's indexes against the size to which a broker grows them."""
        for kind, entry in (
            (FileKind.OFFSET_INDEX, offset_index),
            (FileKind.TIME_INDEX, time_index),
        ):
            file = self._shadow.files.get(active.name(kind))
            used = file.size // entry.ENTRY_SIZE * entry.ENTRY_SIZE if file else 0
            most = self._start.max_index_size // entry.ENTRY_SIZE * entry.ENTRY_SIZE
            if used > most:
                raise StartFailsError(f"{active.name(kind)} holds {used} bytes, at most {most} fit")

    def _empty(self, segment: LoadedSegment, why: str) -> RecoveredSegment:
        log = segment.name(FileKind.LOG)
        size = self._shadow.files[log].size
        lost = self._count(segment)
        self._write_segment(segment, Recovered())
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if self._aborted and name not in self._shadow:
            self._shadow.write(name, b"")
        return RecoveredSegment(segment.base_offset, Why.UNFLUSHED, size, 0,
                                emptied=why, lost=lost,
                                next_offset=segment.base_offset)  # fmt: skip

    def _cut(self, segment: LoadedSegment, why: str) -> RecoveredSegment:
        """Cut a segment where its offsets go backwards; what stands before that stays."""
        log = segment.name(FileKind.LOG)
        size = self._shadow.files[log].size
        position = self._first_unordered(segment)
        lost = self._count(segment, position)
        self._shadow.truncate(log, position)
        recovered = self._recover_segment(segment, Why.UNFLUSHED)
        text = f"{why}; this is the first batch out of order"
        stop = Damage(position, 0, Reason.SIZE, text, resynchronised=True)
        return replace(recovered, size=size, stop=stop, lost=lost, behind=lost, precise=True)

    def _first_unordered(self, segment: LoadedSegment) -> int:
        """Return the byte where the first batch begins that does not follow those before it."""
        end = segment.base_offset
        with self._shadow.files[segment.name(FileKind.LOG)].open() as log:
            for chunk in scan.scan(log, base_offset=segment.base_offset, payload=False):
                if chunk.damage:
                    return chunk.damage.position
                ends = np.maximum.accumulate(np.concatenate(([end], chunk.table.last_offset + 1)))
                wrong = np.flatnonzero(chunk.table.base_offset < ends[:-1])
                if len(wrong):
                    return int(chunk.table.position[wrong[0]])
                end = int(ends[-1])
            return log.size

    def _count(self, segment: LoadedSegment, start: int = 0) -> Lost:
        """Return what a log holds from byte `start` on that is sound."""
        lost = Lost()
        file = self._shadow.files[segment.name(FileKind.LOG)]
        tally = Tally(file, segment.base_offset)
        with file.open() as log:
            chunks = scan.scan(log, base_offset=segment.base_offset, start=start, payload=False)
            for chunk in chunks:
                lost.add(chunk.table)
                tally.feed(chunk, counts=True)
        lost.unsound = tally.finish()
        return lost

    def _remove(self, segments: Sequence[LoadedSegment], manager: ProducerManager) -> None:
        for segment in segments:
            self.loaded.removed[segment.base_offset] = self._count(segment)
            for name in list(segment.files()):
                self._shadow.remove(name)
            manager.delete(segment.base_offset)
        gone = frozenset(segment.base_offset for segment in segments)
        self._segments = [s for s in self._segments if s.base_offset not in gone]

    def _log_end(self, manager: ProducerManager) -> int:
        """Return the log end offset; a log that ends before it starts is given up as a whole."""
        start = self._start.log_start
        if self._segments:
            end = self._segments[-1].next_offset()
            if end >= start:
                return end
            self.loaded.wiped = True
            self._remove(list(self._segments), manager)
            self._epochs.clear()
            manager.start_at(start)
        self._segments.append(self._new_segment(start))
        return start

    def _new_segment(self, base_offset: int) -> LoadedSegment:
        segment = self._segment(base_offset)
        for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
            self._shadow.write(segment.name(kind), b"")
        return segment
