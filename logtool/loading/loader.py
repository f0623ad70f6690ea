"""The loading of one log, step by step as a broker does it, on a shadow of its directory.

The steps and their order are those of ``LogLoader.load`` (Kafka 3.9 and 4.3): leftovers of
interrupted cleaning, opening of each segment, recovery of the unflushed ones, leader epochs,
producer state. A fault that would stop a broker ends the loading, and the result says why.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace

from logtool.formats import names, partition_metadata, transaction_index
from logtool.formats.names import DirectoryKind, FileKind, FileState
from logtool.loading import cuts, epochs, leftovers, old_segments
from logtool.loading.epochs import EpochCache
from logtool.loading.index_building import InvalidOffsetError
from logtool.loading.kafka_reading import OfflineError, StartFailsError
from logtool.loading.producers import ProducerManager
from logtool.loading.recovery import OffsetOverflowError, Recovered, Recovery
from logtool.loading.result import (
    NONE,
    LoadResult,
    Logs,
    Outcome,
    RecoveredSegment,
    RecoveryReason,
    StartConditions,
)
from logtool.loading.segments import LoadedSegment, check_index_sizes
from logtool.loading.shadow import OccupiedError, Shadow
from logtool.loading.splitting import TooLargeError, can_be_split, split
from logtool.loading.strategy import RebuildStrategy, RecoveryStrategy
from logtool.loading.truncating import LogTruncation, live_behind
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition

MAX_OFFSET = 2**63 - 1
"""A segment at this base offset is never recovered: the range of those that are ends before it."""
_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value
_TOPIC_ID = FileKind.PARTITION_METADATA.value


def load(
    partition: Partition,
    start: StartConditions,
    on_bytes: Callable[[int], None] = lambda _: None,
    logs: Logs = NONE,
) -> LoadResult:
    """Load a log as a broker would; the disk is not touched.

    UnreadableError where this process cannot read a file: a broker may be able to.
    """
    return carry_out(Loader(partition, start, on_bytes, RebuildStrategy, logs))


def carry_out(loader: "Loader") -> LoadResult:
    """Run a loader, and return its result with the outcome, also after an error of the log."""
    loaded = loader.loaded
    try:
        loader.run()
    except (StartFailsError, InvalidOffsetError) as error:
        loaded.outcome, loaded.reason = Outcome.REFUSES, str(error)
    except TooLargeError as error:
        loaded.outcome, loaded.reason = Outcome.UNKNOWN, str(error)
    except (OfflineError, OccupiedError) as error:
        loaded.outcome, loaded.reason = Outcome.OFFLINE, str(error)
    return loaded


class Loader:
    """One log while it is loaded."""

    def __init__(
        self,
        partition: Partition,
        start: StartConditions,
        on_bytes: Callable[[int], None],
        strategy: Callable[["Loader"], RecoveryStrategy],
        logs: Logs = NONE,
    ) -> None:
        self._found = partition
        self.start = start
        self.on_bytes = on_bytes
        odd = [path.name for path in partition.odd_entries]
        self.shadow = Shadow(partition.path, partition.files(), odd)
        self._logs = logs
        self.segments: list[LoadedSegment] = []
        self.epochs = EpochCache()
        self._aborted = False
        """True if the last recovery found aborted transactions, and so made an index for them."""
        self._truncation = LogTruncation(self.shadow, start)
        self.loaded = LoadResult(self.shadow, log_start=start.log_start)
        self.manager = self.new_manager()
        """Manager of the log's own producer state; each recovery of a segment makes another one."""
        self._strategy = strategy(self)

    def run(self) -> None:
        """Take all steps; raise the error that ends a start."""
        loaded, start = self.loaded, self.start
        for base, joined in self._logs.joined.items():
            self.shadow.join(names.format_partition_file(base, FileKind.LOG), joined)
        self._read_epochs()
        leftovers.reject_odd_entries(self._found)
        swaps = leftovers.drop_temporaries(self.shadow)
        leftovers.finish_swaps(self.shadow, swaps, start)
        self._splitting(self._open_segments)
        if getattr(self._found.directory, "kind", None) is DirectoryKind.DELETE:
            # It is opened once more and forgotten as if it were empty; no index is looked at, and
            # so none is made.
            if not self.segments:
                self.segments.append(self._new_segment(0, kinds=(FileKind.LOG,)))
        else:
            self._drop_zombies()
            if not start.clean:
                self._splitting(self._recover)
            loaded.log_end = self._log_end()
            check_index_sizes(self.shadow, self.segments[-1], start.max_index_size)
        self.epochs.truncate_from_end(loaded.log_end)
        loaded.log_start = start.log_start_of(self.segments[0].base_offset)
        loaded.local_log_start = max(start.log_start, self.segments[0].base_offset)
        valid = start.clean and not loaded.wiped
        point = loaded.log_end if valid else min(start.recovery_point, loaded.log_end)
        loaded.recovery_point = max(point, loaded.log_start)
        self.epochs.truncate_from_start(start.log_start)
        self._write_epochs()
        loaded.overlaps += old_segments.overlaps(self.shadow, self.segments, loaded)
        self._strategy.settle_producers()
        self._read_topic_id()

    def find_first_unstable(self, manager: ProducerManager) -> None:
        """Find the batch where the oldest open transaction begins; raises as a broker does."""
        offset = manager.state.oldest_open(none=self.loaded.log_end)
        if offset < self.loaded.log_end:
            offset = max(offset, self.loaded.log_start)
            segments = [s for s in self.segments if s.base_offset <= offset]
            if segments:
                segments[-1].reader().find(offset)

    def count_replay(self, manager: ProducerManager) -> None:
        """Add the bytes and records that a manager replayed to the totals of the result."""
        self.loaded.bytes_replayed += manager.bytes_replayed
        self.loaded.bytes_applied += manager.bytes_replayed
        self.loaded.records_applied += manager.records_replayed

    def _splitting(self, step: Callable[[], None]) -> None:
        """Do a step, again after each segment that had to be split for it."""
        while True:
            try:
                step()
                return
            except OffsetOverflowError as error:
                segment = self._segment(self.loaded.segment or 0)
                if not can_be_split(segment):
                    self.loaded.out_of_reach = True
                    if self.start.cut_precisely:
                        self._cut_out_of_reach(segment, error)
                        continue
                opened = segment.base_offset in (s.base_offset for s in self.segments)
                bases = split(self.shadow, segment, self.start, str(error), opened=opened)
                if opened and segment.base_offset not in bases:
                    self.manager.delete(segment.base_offset)
                self.loaded.split[segment.base_offset] = bases
                gone = {segment.base_offset, *bases}
                self.segments = [s for s in self.segments if s.base_offset not in gone]
                self.segments += [self._segment(base) for base in bases]
                self.segments.sort(key=lambda one: one.base_offset)

    def _cut_out_of_reach(self, segment: LoadedSegment, error: OffsetOverflowError) -> None:
        """Cut a segment at a batch for which a broker would not start; nothing stays behind it."""
        behind = live_behind(self.shadow, segment.base_offset)
        self._remove([self._segment(base) for base in behind])
        self._truncation.cut_at(segment, error)
        if all(one.base_offset != segment.base_offset for one in self.segments):
            # It was recovered because it had no index, and has to be recovered again.
            for kind in names.INDEX_KINDS:
                if segment.name(kind) in self.shadow:
                    self.shadow.remove(segment.name(kind))

    def _segment(self, base_offset: int, state: FileState = FileState.LIVE) -> LoadedSegment:
        return LoadedSegment(
            shadow=self.shadow, base_offset=base_offset, state=state, kafka=self.start.kafka
        )

    def _read_epochs(self) -> None:
        if _EPOCHS not in self.shadow:
            self.shadow.write(_EPOCHS, b"")
        try:
            self.epochs = epochs.read(self.shadow.files[_EPOCHS].read())
        except (StartFailsError, OfflineError) as error:
            raise type(error)(f"{_EPOCHS}: {error}") from error

    def _read_topic_id(self) -> None:
        """Read ``partition.metadata`` where there is one, as the log does once it is loaded."""
        if any(path.name == _TOPIC_ID for path in self._found.odd_entries):
            raise OfflineError(f"{_TOPIC_ID} is not a file")
        if _TOPIC_ID not in self.shadow:
            return
        metadata = partition_metadata.parse(self.shadow.files[_TOPIC_ID].read())
        refusal = partition_metadata.refusal(metadata, self.start.kafka)
        if refusal:
            error = OfflineError if refusal.is_io_error else StartFailsError
            raise error(f"{_TOPIC_ID}: {refusal.message}")
        self.loaded.topic_id = metadata.topic_id

    def _write_epochs(self) -> None:
        self.loaded.epochs = self.epochs.rows
        if self.epochs.changed:
            self.shadow.write(_EPOCHS, self.epochs.encode())
            if f"{_EPOCHS}.tmp" in self.shadow:
                self.shadow.remove(f"{_EPOCHS}.tmp")

    def new_manager(self, *, is_sole: bool = False) -> ProducerManager:
        """Return a manager that knows no producer; `is_sole` as in `ProducerManager`."""
        start = self.start
        return ProducerManager(
            self.shadow, start.now_ms, start.idle_ms, start.kafka, is_sole=is_sole
        )

    def _open_segments(self) -> None:
        self.segments.clear()
        for name in list(self.shadow):
            file = names.parse_partition_file(name)
            if file.state is not FileState.LIVE or file.offset is None:
                continue
            segment = self._segment(file.offset)
            if file.kind in names.INDEX_KINDS and segment.name(FileKind.LOG) not in self.shadow:
                self.shadow.remove(name)
            elif file.kind is FileKind.LOG:
                self._open(segment)

    def _open(self, segment: LoadedSegment) -> None:
        self.loaded.segment = segment.base_offset
        if segment.name(FileKind.LOG) not in self.shadow:
            # A name with fewer digits: a broker opens the one it would write itself.
            self.shadow.write(segment.name(FileKind.LOG), b"")
        why = self._strategy.needs_recovery(segment)
        time_index = segment.name(FileKind.TIME_INDEX)
        if why:
            recovered = self._strategy.recover(segment, why)
            self.loaded.recovered.append(self._truncation.with_cut(recovered))
        elif time_index not in self.shadow:
            self.shadow.write(time_index, b"")
        at = bisect_left(self.segments, segment.base_offset, key=lambda one: one.base_offset)
        same = at < len(self.segments) and self.segments[at].base_offset == segment.base_offset
        self.segments[at : at + same] = [segment]
        self.loaded.segment = None

    def needs_recovery(self, segment: LoadedSegment) -> RecoveryReason | None:
        """Return why a broker recovers a segment when it opens it.

        StartFailsError for an index of a version that is not known.
        """
        if segment.base_offset in self._logs.whole:
            return RecoveryReason.FILLED
        if segment.name(FileKind.OFFSET_INDEX) not in self.shadow:
            return RecoveryReason.NO_INDEX
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if name in self.shadow:
            index = transaction_index.parse(self.shadow.files[name].read())
            for version, last_offset in zip(index.versions, index.last_offsets, strict=True):
                if version >> 8 > 0:
                    raise StartFailsError(
                        f"{name}: version {version >> 8}, but the highest known version is 0"
                    )
                if last_offset < segment.base_offset:
                    return RecoveryReason.BAD_TRANSACTION_INDEX
        return None

    def read_segment(
        self, segment: LoadedSegment, why: RecoveryReason, recovery: Recovery
    ) -> RecoveredSegment:
        """Read a segment by the rules of recovery; raises as `Recovery.run` does."""
        log = self.shadow.files[segment.name(FileKind.LOG)]
        self.loaded.bytes_scanned += log.size
        try:
            result, lost, behind = recovery.run(log, self.on_bytes)
        except OffsetOverflowError:
            cuts.leave(self.shadow, segment, recovery, self.start.max_index_size)
            raise
        finally:
            self._aborted = bool(recovery.result.aborted)
        end = segment.base_offset if result.end_offset is None else result.end_offset
        return RecoveredSegment(
            base_offset=segment.base_offset,
            why=why,
            size=log.size,
            valid_size=result.valid_size,
            stop=result.stop,
            lost=lost,
            behind=behind,
            batches=result.batches,
            records=result.records,
            next_offset=end,
            is_odd=result.is_odd,
        )

    def _drop_zombies(self) -> None:
        """Find segments that a truncation had removed; with `cut_precisely` they are removed."""
        loaded = self.loaded
        loaded.zombies, loaded.overlaps = old_segments.find(
            self.shadow, self.segments, self.epochs.rows
        )
        if self.start.cut_precisely:
            self._remove([s for s in self.segments if s.base_offset in loaded.zombies])

    def _recover(self) -> None:
        """Truncate the log if that was asked for, and recover the unflushed segments."""
        gone = self._truncation.behind(self.segments)
        self.loaded.truncated |= bool(gone)
        self._remove(gone)
        self._truncation.cut(self.segments)
        self.recover_from(self.start.recovery_point)
        self._strategy.finish()

    def recover_from(self, point: int) -> None:
        """Recover from the segment of an offset on; all segments behind a cut are removed."""
        floor = max((s.base_offset for s in self.segments if s.base_offset <= point), default=point)
        unflushed = [s for s in self.segments if floor <= s.base_offset < MAX_OFFSET]
        for number, segment in enumerate(unflushed):
            if not self._strategy.is_done(segment) and self._recover_unflushed(segment):
                self._remove(unflushed[number + 1 :])
                return

    def _recover_unflushed(self, segment: LoadedSegment) -> bool:
        """Recover a segment; returns whether it is cut."""
        self.loaded.segment = segment.base_offset
        try:
            recovered = self._strategy.recover(segment, RecoveryReason.UNFLUSHED)
        except InvalidOffsetError as error:
            cut = self._cut if self.start.cut_precisely else self._empty
            recovered = cut(segment, str(error))
        except OccupiedError as error:
            # An I/O error of any kind; up to 3.9 it takes the log dir offline.
            if self.start.kafka < (4, 0):
                raise
            recovered = self._empty(segment, str(error))
        is_cut = recovered.valid_size < recovered.size
        self.loaded.recovered.append(self._truncation.with_cut(recovered))
        self.loaded.segment = None
        return is_cut

    def _empty(self, segment: LoadedSegment, why: str) -> RecoveredSegment:
        size = self.shadow.files[segment.name(FileKind.LOG)].size
        lost = cuts.count(self.shadow, segment)
        cuts.write(self.shadow, segment, Recovered())
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if self._aborted and name not in self.shadow:
            self.shadow.write(name, b"")
        emptied = RecoveredSegment(
            base_offset=segment.base_offset,
            why=RecoveryReason.UNFLUSHED,
            size=size,
            valid_size=0,
            emptied=why,
            lost=lost,
            next_offset=segment.base_offset,
        )
        self._strategy.take_emptied(segment, emptied)
        return emptied

    def _cut(self, segment: LoadedSegment, why: str) -> RecoveredSegment:
        """Cut a segment where its offsets go backwards; the batches before that stay."""
        log = segment.name(FileKind.LOG)
        size = self.shadow.files[log].size
        position = cuts.first_unordered(self.shadow, segment)
        lost = cuts.count(self.shadow, segment, position)
        self.shadow.truncate(log, position)
        recovered = self._strategy.recover(segment, RecoveryReason.UNFLUSHED)
        text = f"{why}; this batch is the first one out of order"
        stop = Damage(
            position=position, length=0, reason=DamageReason.SIZE, message=text, resynchronised=True
        )
        return replace(recovered, size=size, stop=stop, lost=lost, behind=lost, precise=True)

    def _remove(self, segments: Sequence[LoadedSegment]) -> None:
        for segment in segments:
            self.loaded.removed[segment.base_offset] = cuts.count(self.shadow, segment)
            for name in list(segment.files()):
                self.shadow.remove(name)
            self.manager.delete(segment.base_offset)
        gone = frozenset(segment.base_offset for segment in segments)
        self.segments = [s for s in self.segments if s.base_offset not in gone]

    def _log_end(self) -> int:
        """Return the log end offset; a log that ends before it starts is removed as a whole."""
        start = self.start.log_start
        if self.segments:
            end = self.segments[-1].next_offset()
            if end >= start:
                return end
            self.loaded.wiped = True
            self._remove(list(self.segments))
            self.epochs.clear()
            self.manager.start_at(start)
        self.segments.append(self._new_segment(start))
        return start

    def _new_segment(
        self, base_offset: int, kinds: Sequence[FileKind] = names.SEGMENT_KINDS[:3]
    ) -> LoadedSegment:
        segment = self._segment(base_offset)
        for kind in kinds:
            self.shadow.write(segment.name(kind), b"")
        return segment
