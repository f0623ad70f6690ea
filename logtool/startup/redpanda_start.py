"""A start of Redpanda on the segments of one log.

====================================  ============================================================
a segment is replayed                 if its base index is missing or cannot be read, or reaches
                                      into the next segment; if there is no such segment, the last
                                      one is, unless a clean stop left it so and its index can be
                                      read
a file of no byte among those         is removed with its index
a replay                              reads the file from its first byte up to the first header of
                                      zeros, wrong CRC, or batch that the file does not hold
if no batch is read                   the file gets another name, ``.cannotrecover``, and is never
                                      read again; its base index stays
else                                  the file is cut behind the last batch, its base index is
                                      rebuilt, its compaction index is removed
====================================  ============================================================

A sound batch whose offset is below that of its segment's name ends the process when it is replayed.
No other segment is read. The segments after one that is cut stay, so that offsets are missing in
the middle of the log, and nothing reports that. Releases since August 2026 put into the name of a
segment that they give up why the replay stopped, and whether it was the last one: that form is
used if the directory holds such a file. Source: ``storage/segment_set.cc``,
``storage/log_replayer.cc``, ``storage/segment_index.cc`` (Redpanda 1c6cff34ea, 2024-12-20; the
names: ``replay_stop_reason`` of 2026). This was not compared with the start of a real broker.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from pathlib import Path

import numpy as np

from logtool.checks.base_index import fault_of
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.formats import names as kafka_names
from logtool.formats.record_batch import BatchTable
from logtool.formats.redpanda import base_index, names, record_batch
from logtool.formats.redpanda.base_index import BaseIndex
from logtool.formats.redpanda.names import KAFKA_NAMESPACE, RedpandaFileKind
from logtool.formats.redpanda.record_batch import HEADER_SIZE
from logtool.lazy_dataclass import dataclass
from logtool.log.base_index import Builder
from logtool.log.damage import Damage, DamageReason
from logtool.log.dir import Partition, Segment
from logtool.log.file import File

INDEX = kafka_names.FileKind.REDPANDA_BASE_INDEX


@dataclass(frozen=True, slots=True)
class RedpandaStart:
    """Facts about a log from the data directory: plain data for a worker."""

    data_dir: Path
    """Data directory of the log; its lock shows whether a broker is running."""
    clean_segment: str | None = None
    """File name of the segment that a clean stop left last, from the kvstore."""
    start_offset: int | None = None
    """Raft offset at which the log begins for its readers, from the kvstore."""
    everything: bool = False
    """True if every segment is to be replayed, which no broker does."""


class ReplayReason(StrEnum):
    """Why a segment is replayed."""

    NO_INDEX = "it has no base index"
    BAD_INDEX = "its base index cannot be read"
    OVERLAP = "its base index reaches into the next segment"
    LAST = "it is the last one, and no clean stop names it"
    ASKED = "asked for"


class SegmentOutcome(StrEnum):
    """The fate of a segment."""

    STAYS = "stays"
    """The segment is not read."""
    REMOVED = "removed"
    GIVEN_UP = "given up"
    REPLAYED = "replayed"


@dataclass(slots=True)
class UnreplayedTail:
    """Batches behind the byte at which a replay stops."""

    batches: int = 0
    """Sound batches."""
    records: int = 0
    bad_batches: int = 0
    """Unsound batches that are whole in the file and whose header matches its own CRC."""
    bad_records: int = 0
    offsets: list[int] = field(default_factory=list)
    """First and last offset of each batch, or of each group of sound batches."""

    def add(self, table: BatchTable) -> None:
        """Count sound batches."""
        if len(table):
            self.batches += len(table)
            self.records += table.records
            self.offsets += [int(table.base_offset.min()), int(table.last_offset.max())]


@dataclass(slots=True)
class Replayed:
    """Result of a start for one segment."""

    segment: Segment
    fate: SegmentOutcome = SegmentOutcome.STAYS
    why: str = ""
    valid_size: int = 0
    """Bytes of the log that stay."""
    next_offset: int | None = None
    """Offset after its last batch, or after the last one by its index; None without a batch."""
    stop: Damage | None = None
    """Damage at which the replay stopped; None if only zeros follow, or nothing."""
    believed: BaseIndex | None = None
    """Base index of the segment, if the start can read it."""
    new_index: bytes = b""
    refusal: str = ""
    """Why the process ends during the replay of the segment; empty if it does not."""
    lost: UnreplayedTail = field(default_factory=UnreplayedTail)
    batches: int = 0
    records: int = 0

    @property
    def index(self) -> File | None:
        """Return the file of its base index; None without one."""
        return self.segment.indexes.get(INDEX)

    @property
    def only_zeros(self) -> bool:
        """Return whether only zeros follow the bytes that stay."""
        return self.stop is None and self.valid_size < self.segment.log.size


def segments(listed: Partition) -> list[Segment]:
    """Return the segments that a start opens: it reads no copies from tiered storage."""
    return [
        one
        for one in listed.segments
        if names.parse_partition_file(one.log.path.name).kind is RedpandaFileKind.SEGMENT
    ]


def load(
    listed: Partition, start: RedpandaStart, on_bytes: Callable[[int], None]
) -> list[Replayed]:
    """Return the result for each segment, in their order; UnreadableError."""
    found = [Replayed(one) for one in segments(listed)]
    _choose(found, start)
    all_data = listed.path.absolute().parent.parent.name != KAFKA_NAMESPACE
    for one in found:
        if one.fate is SegmentOutcome.REPLAYED:
            _replay(one, all_data, on_bytes)
    return found


def _choose(found: Sequence[Replayed], start: RedpandaStart) -> None:
    """Mark each segment that is replayed, and each empty one that is removed."""
    clean = start.clean_segment
    marked: dict[int, str] = {}
    for number, one in enumerate(found):
        index = None if one.index is None else base_index.parse(files.read_small(one.index.path))
        fault = None if index is None else fault_of(index)
        if isinstance(index, BaseIndex) and not fault:
            one.believed, one.next_offset = index, index.max_offset + 1
        else:
            says = f"it {fault}" if fault and fault.startswith(("is ", "has ")) else fault
            marked[number] = (
                ReplayReason.NO_INDEX if index is None else f"{ReplayReason.BAD_INDEX}: {says}"
            )
            clean = None if one.segment.log.path.name == clean else clean
        before = found[number - 1] if number else None
        reach = before.next_offset if before else None
        if reach is not None and reach > one.segment.base_offset:
            marked.setdefault(number - 1, ReplayReason.OVERLAP)
    if start.everything:
        clean = None
        marked = {number: marked.get(number, ReplayReason.ASKED) for number in range(len(found))}
    for number in [number for number in marked if not found[number].segment.log.size]:
        found[number].fate, found[number].why = SegmentOutcome.REMOVED, "has no bytes"
        found[number].next_offset = None
        del marked[number]
    left = [number for number, one in enumerate(found) if one.fate is not SegmentOutcome.REMOVED]
    if not marked and left:
        marked = {left[-1]: ReplayReason.LAST}
    for number, why in marked.items():
        if found[number].segment.log.path.name != clean:
            found[number].fate, found[number].why = SegmentOutcome.REPLAYED, str(why)


def _replay(one: Replayed, all_data: bool, on_bytes: Callable[[int], None]) -> None:
    """Replay a segment as the start does, and count the batches behind the place of the stop."""
    builder = Builder(one.segment.base_offset, all_data=all_data)
    one.next_offset, at = None, 0
    with one.segment.log.open() as log:
        for chunk in one.segment.batches(log, payload=False):
            on_bytes(chunk.end_position - at)
            at = chunk.end_position
            table = chunk.table
            if chunk.damage:
                one.stop = one.stop or chunk.damage
                _count_bad(chunk.damage, log, one.lost)
            elif one.stop:
                one.lost.add(table)
            else:
                one.refusal = one.refusal or _refusal(one, table)
                builder.add(table)
                one.valid_size = at
                one.next_offset = int(table.last_offset[-1]) + 1
                one.batches += len(table)
                one.records += table.records
        on_bytes(log.size - at)
    if one.batches:
        one.new_index = builder.finish(recovered=True, before=one.believed)
    else:
        one.fate = SegmentOutcome.GIVEN_UP


def _refusal(one: Replayed, table: BatchTable) -> str:
    """Return why a replay ends the process: an index takes no offset below its own base offset."""
    least = one.believed.base_offset if one.believed else one.segment.base_offset
    for row in np.flatnonzero(table.base_offset < least)[:1].tolist():
        text = f"the batch at byte {table.position[row]} has offset {table.base_offset[row]}, "
        text += f"below {least}, the first offset of its segment, which is to be replayed: "
        return f"{text}an assertion in index_state.cc fails, and the process ends"
    return ""


def _count_bad(damage: Damage, log: LogFile, lost: UnreplayedTail) -> None:
    """Count the batches in a damaged range whose headers are as they were written."""
    position, end = damage.position, damage.position + damage.length
    while position + HEADER_SIZE <= end:
        head = log.read(position, HEADER_SIZE)
        if len(head) < HEADER_SIZE:
            return
        header = record_batch.parse(head)
        # A batch cut off at the end of the file was never acknowledged.
        if not HEADER_SIZE <= header.size <= end - position:
            return
        if header.header_crc != record_batch.header_crc(header) or header.record_count < 0:
            return
        lost.bad_batches += 1
        lost.bad_records += header.record_count
        lost.offsets += [header.base_offset, header.last_offset]
        position += header.size


def given_up_name(one: Replayed, listed: Partition, *, is_last: bool) -> str:
    """Return the new name of a segment in which no batch can be read."""
    name = one.segment.log.path.name
    others = [names.parse_partition_file(file.path.name) for file in listed.others]
    if not any(other.reason for other in others):
        return f"{name}{RedpandaFileKind.CANNOT_RECOVER}"
    place = "tail" if is_last else "mid_log"
    return f"{name}.{_reason(one.stop)}.{place}{RedpandaFileKind.CANNOT_RECOVER}"


def _reason(stop: Damage | None) -> str:
    if stop is None or stop.reason is DamageReason.ZEROS:
        return "zeroed_batch_header"
    if stop.reason is DamageReason.INCOMPLETE:
        return "truncated_batch"
    return "record_crc_mismatch" if stop.reason is DamageReason.CRC else "header_crc_mismatch"


def holes(found: Sequence[Replayed]) -> Iterator[tuple[Replayed, int, int]]:
    """Yield the segments that leave a hole in the log, each with its first and last offset."""
    gone = (SegmentOutcome.GIVEN_UP, SegmentOutcome.REMOVED)
    for number, one in enumerate(found):
        rest = [other for other in found[number + 1 :] if other.fate not in gone]
        cut = one.fate is SegmentOutcome.GIVEN_UP or (
            one.fate is SegmentOutcome.REPLAYED and one.stop
        )
        if not rest or not cut:
            continue
        first = one.segment.base_offset if one.fate is SegmentOutcome.GIVEN_UP else one.next_offset
        end = rest[0].segment.base_offset
        if first is not None and first < end:
            yield one, first, end - 1
