"""What a start of Redpanda does to the segments of one log.

====================================  ============================================================
a segment is replayed                 where its base index is missing or cannot be read, or reaches
                                      into the next segment; where there is none such, the last one
                                      is, unless a clean stop left it so and its index can be read
of those, a file of no byte           is removed with its index
a replay                              reads the file from its first byte up to the first header of
                                      zeros, wrong CRC, or batch that the file does not hold
no batch is read                      the file gets another name, ``.cannotrecover``, and is never
                                      read again; its base index stays
else                                  the file is cut behind the last batch, its base index is made
                                      anew, its compaction index is removed
====================================  ============================================================

A sound batch whose offset is below that of its segment's name ends the process when it is replayed.
No other segment is looked into. What follows a segment that is cut stays, so that offsets are
missing in the middle of the log, and nothing says so. Releases since August 2026 put into the name
of a segment they give up why the replay stopped, and whether it was the last one: that form is
taken where such a file lies beside it. Source: ``storage/segment_set.cc``,
``storage/log_replayer.cc``, ``storage/segment_index.cc`` (Redpanda 1c6cff34ea, 2024-12-20; the
names: ``replay_stop_reason`` of 2026). No start of a real broker was there to hold this against.
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
    """What the data directory says of a log: plain data for a worker."""

    data_dir: Path
    """Whose lock counts."""
    clean_segment: str | None = None
    """The file name that a clean stop left last, by the kvstore."""
    start_offset: int | None = None
    """The Raft offset at which the log begins for its readers, by the kvstore."""
    everything: bool = False
    """Whether every segment is to be replayed, as no broker does."""


class ReplayReason(StrEnum):
    """Why a segment is replayed."""

    NO_INDEX = "it has no base index"
    BAD_INDEX = "its base index cannot be read"
    OVERLAP = "its base index reaches into the next segment"
    LAST = "it is the last one, and no clean stop names it"
    ASKED = "asked for"


class SegmentOutcome(StrEnum):
    """What becomes of a segment."""

    STAYS = "stays"
    """It is not read."""
    REMOVED = "removed"
    GIVEN_UP = "given up"
    REPLAYED = "replayed"


@dataclass(slots=True)
class UnreplayedTail:
    """What stands behind the byte at which a replay stops."""

    batches: int = 0
    """Sound ones."""
    records: int = 0
    bad_batches: int = 0
    """Those whose header can be believed by its own CRC, and of which the file holds all."""
    bad_records: int = 0
    offsets: list[int] = field(default_factory=list)
    """First and last of each."""

    def add(self, table: BatchTable) -> None:
        """Count sound batches."""
        if len(table):
            self.batches += len(table)
            self.records += table.records
            self.offsets += [int(table.base_offset.min()), int(table.last_offset.max())]


@dataclass(slots=True)
class Replayed:
    """What comes of one segment."""

    segment: Segment
    fate: SegmentOutcome = SegmentOutcome.STAYS
    why: str = ""
    valid_size: int = 0
    """Bytes that stay."""
    next_offset: int | None = None
    """Behind its last batch, or what its index names as that; None where it holds none."""
    stop: Damage | None = None
    """What ended the replay before the file; None where only zeros follow, or nothing."""
    believed: BaseIndex | None = None
    """Its base index, where the start can read it."""
    new_index: bytes = b""
    refusal: str = ""
    """Why the process ends while it replays the segment."""
    lost: UnreplayedTail = field(default_factory=UnreplayedTail)
    batches: int = 0
    records: int = 0

    @property
    def index(self) -> File | None:
        """Return its base index, where there is one."""
        return self.segment.indexes.get(INDEX)

    @property
    def only_zeros(self) -> bool:
        """Return whether nothing but zeros stands behind what stays."""
        return self.stop is None and self.valid_size < self.segment.log.size


def segments(listed: Partition) -> list[Segment]:
    """Return the segments that a start opens: it reads no copy of one from tiered storage."""
    return [
        one
        for one in listed.segments
        if names.parse_partition_file(one.log.path.name).kind is RedpandaFileKind.SEGMENT
    ]


def load(
    listed: Partition, start: RedpandaStart, on_bytes: Callable[[int], None]
) -> list[Replayed]:
    """Return what becomes of each segment, in their order; UnreadableError."""
    found = [Replayed(one) for one in segments(listed)]
    _choose(found, start)
    all_data = listed.path.absolute().parent.parent.name != KAFKA_NAMESPACE
    for one in found:
        if one.fate is SegmentOutcome.REPLAYED:
            _replay(one, all_data, on_bytes)
    return found


def _choose(found: Sequence[Replayed], start: RedpandaStart) -> None:
    """Say of each segment whether it is replayed, and of an empty one that it is removed."""
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
        found[number].fate, found[number].why = SegmentOutcome.REMOVED, "holds no byte"
        found[number].next_offset = None
        del marked[number]
    left = [number for number, one in enumerate(found) if one.fate is not SegmentOutcome.REMOVED]
    if not marked and left:
        marked = {left[-1]: ReplayReason.LAST}
    for number, why in marked.items():
        if found[number].segment.log.path.name != clean:
            found[number].fate, found[number].why = SegmentOutcome.REPLAYED, str(why)


def _replay(one: Replayed, all_data: bool, on_bytes: Callable[[int], None]) -> None:
    """Read a segment as the start does, and what stands behind the place where that stops."""
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
        text += f"below the {least} with which its segment, which is to be replayed, begins: "
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
        # What the file ends in was never answered.
        if not HEADER_SIZE <= header.size <= end - position:
            return
        if header.header_crc != record_batch.header_crc(header) or header.record_count < 0:
            return
        lost.bad_batches += 1
        lost.bad_records += header.record_count
        lost.offsets += [header.base_offset, header.last_offset]
        position += header.size


def given_up_name(one: Replayed, listed: Partition, *, is_last: bool) -> str:
    """Return the name that a segment gets in which nothing can be read."""
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
    """Yield the segments by which offsets go missing that the log goes on behind, with these."""
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
