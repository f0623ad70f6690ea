"""The start of the playback of a log: the three checkpoints of AutoMQ's AKIP-2.

Each of them is the offset up to which a file is complete. The one of the time index is the
offset of its last entry. The one of the producer state is the offset of the newest snapshot that
can be read. A transaction index has entries only where transactions were aborted, so its last entry
says little: its checkpoint is the largest of that offset, the recovery point, up to which it
was flushed, and the newest snapshot, for a broker enters the transactions that ended before it
takes one (``UnifiedLog.append`` and ``roll``, Kafka 4.3). If the file is torn, only the last entry
in front of that place counts, even if more was flushed.
"""

from collections.abc import Sequence
from dataclasses import field, replace

from logtool.formats import producer_snapshot, time_index
from logtool.formats import transaction_index as txn_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading.producers import decode
from logtool.loading.result import Playback, StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.dir import Partition
from logtool.log.producer_state import Producer


@dataclass(slots=True)
class Marks:
    """The checkpoints of a log, and the producers to begin with."""

    playback: Playback
    producers: dict[int, Producer] | None = None
    """Producers of the snapshot at `playback.replayed_from`; None without a snapshot."""
    unreadable: list[int] = field(default_factory=list)
    """The offsets of newer snapshots, none of which can be read."""


def found(partition: Partition, start: StartConditions) -> Playback:
    """Return the start of the playback of a log, by its files on disk."""
    shadow = Shadow(partition.path, partition.files())
    segments = [LoadedSegment(shadow, segment.base_offset) for segment in partition.segments]
    return marks(shadow, segments, start).playback


def marks(shadow: Shadow, segments: Sequence[LoadedSegment], start: StartConditions) -> Marks:
    """Return the start of the playback of a log; only indexes and snapshots are read."""
    first = start.log_start_of(segments[0].base_offset if segments else 0)
    begin = first
    if segments and (len(segments) == 1 or segments[1].base_offset > start.recovery_point):
        # A broker recovers the first segment from its first byte, wherever the log starts in it.
        begin = segments[0].base_offset
    snapshots = shadow.snapshots()
    sound: list[int] = []
    known: dict[int, dict[int, Producer]] = {}
    unreadable: list[int] = []
    entered, source, torn = _entered(shadow, segments, start.recovery_point)
    for offset in reversed(snapshots.offsets):
        if offset <= first:
            break
        producers = _sound(shadow.files[snapshots[offset]].read(), offset)
        if producers is None:
            unreadable += [] if sound else [offset]
            continue
        sound.append(offset)
        known = {offset: producers}
        if not torn or offset <= entered:
            break
    newest = sound[0] if sound else first
    if not torn and newest > entered:
        entered, source = newest, "snapshot"
    playback = Playback(
        time_index=_last_time(shadow, segments, first),
        transaction_index=entered,
        transaction_index_from=source,
        producer_snapshot=newest,
        replayed_from=begin,
    )
    for offset, producers in known.items():
        if offset <= playback.starting_offset:
            return Marks(replace(playback, replayed_from=offset), producers, unreadable)
    return Marks(playback, None, unreadable)


def _sound(data: bytes, offset: int) -> dict[int, Producer] | None:
    """Return the producers of a snapshot, None where it cannot be read or breaks a rule."""
    if any(producer_snapshot.check(producer_snapshot.parse(data), end_offset=offset)):
        return None
    return decode(data)


def _entered(
    shadow: Shadow, segments: Sequence[LoadedSegment], recovery_point: int
) -> tuple[int, str, bool]:
    """Return up to where transactions are entered, what says so, and whether a file is torn."""
    last = segments[0].base_offset if segments else 0
    for segment in segments:
        name = segment.name(FileKind.TRANSACTION_INDEX)
        if name not in shadow:
            continue
        data = shadow.files[name].read()
        count = whole_entries(data, segment.base_offset)
        if count:
            last = int(txn_index.parse(data).last_offsets[count - 1])
        if count * txn_index.ENTRY_SIZE < len(data):
            return max(last, segment.base_offset), "last-entry", True
    if recovery_point >= last:
        return recovery_point, "recovery-point", False
    return last, "last-entry", False


def whole_entries(data: bytes, base_offset: int) -> int:
    """Return how many entries of a transaction index stand before one that breaks a rule."""
    index = txn_index.parse(data)
    findings = txn_index.check(index, base_offset=base_offset)
    broken = [(finding.position or 0) // txn_index.ENTRY_SIZE for finding in findings]
    return min([len(index), *broken])


def _last_time(shadow: Shadow, segments: Sequence[LoadedSegment], none: int) -> int:
    """Return the offset in the last entry of the newest time index that has one."""
    for segment in reversed(segments):
        name = segment.name(FileKind.TIME_INDEX)
        data = shadow.files[name].read_entries() if name in shadow else b""
        index = time_index.parse(data)
        findings = time_index.check(index)
        broken = [(finding.position or 0) // time_index.ENTRY_SIZE for finding in findings]
        count = min([len(index), *broken])
        if count:
            return int(index.offsets(segment.base_offset)[count - 1])
    return none
