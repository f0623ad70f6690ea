"""The files of a segment as its recovery leaves them, and what goes where a log is cut."""

import numpy as np

from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.loading.lost_records import LossCount
from logtool.loading.recovery import CutBatches, Recovered, Recovery, encode_aborted
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow
from logtool.log.batches import read_batches


def write(shadow: Shadow, segment: LoadedSegment, result: Recovered) -> None:
    """Cut the log of a segment to what is valid, and write its indexes anew."""
    shadow.truncate(segment.name(FileKind.LOG), result.valid_size)
    shadow.write(segment.name(FileKind.OFFSET_INDEX), result.offset_index)
    shadow.write(segment.name(FileKind.TIME_INDEX), result.time_index)
    write_aborted(shadow, segment, result)


def leave(shadow: Shadow, segment: LoadedSegment, recovery: Recovery, max_index_size: int) -> None:
    """Leave indexes as they are in the middle of a recovery, as long as they can be.

    New entries were written over the old ones from the start; behind them the old ones still
    stand (``AbstractIndex.resize`` keeps what the file holds).
    """
    offsets, times = recovery.indexes
    for kind, content, entry in (
        (FileKind.OFFSET_INDEX, offsets, offset_index.ENTRY_SIZE),
        (FileKind.TIME_INDEX, times, time_index.ENTRY_SIZE),
    ):
        name, size = segment.name(kind), max_index_size // entry * entry
        old = shadow.files[name].read() if name in shadow else b""
        shadow.write(name, (content + old[len(content) : size]).ljust(size, b"\0"))
    write_aborted(shadow, segment, recovery.result)


def write_aborted(shadow: Shadow, segment: LoadedSegment, result: Recovered) -> None:
    """Write the transaction index where there is one, or something to be in it."""
    name = segment.name(FileKind.TRANSACTION_INDEX)
    if result.aborted or name in shadow:
        shadow.write(name, encode_aborted(result.aborted))


def count(shadow: Shadow, segment: LoadedSegment, start: int = 0) -> CutBatches:
    """Return what a log holds from byte `start` on that is sound."""
    lost = CutBatches()
    file = shadow.files[segment.name(FileKind.LOG)]
    tally = LossCount(file, segment.base_offset)
    with file.open() as log:
        chunks = read_batches(log, base_offset=segment.base_offset, start=start, payload=False)
        for chunk in chunks:
            relative = chunk.table.last_offset - segment.base_offset
            is_near = (relative >= 0) & (relative <= MAX_RELATIVE_OFFSET)
            lost.add(chunk.table[is_near])
            # Offsets out of reach are no offsets that a reader misses.
            far = chunk.table[~is_near]
            lost.batches += len(far)
            lost.records += far.records if len(far) else 0
            tally.add(chunk, counts=True)
    lost.unsound = tally.finish()
    return lost


def first_behind(shadow: Shadow, segment: LoadedSegment, offset: int) -> int:
    """Return the byte where the first batch begins that reaches `offset`; the size without one.

    Damage is taken for such a batch where all that stands before it ends there.
    """
    end = segment.base_offset
    with shadow.files[segment.name(FileKind.LOG)].open() as log:
        for chunk in read_batches(log, base_offset=segment.base_offset, payload=False):
            if chunk.damage:
                if end >= offset:
                    return chunk.damage.position
                continue
            reaching = np.flatnonzero(chunk.table.last_offset >= offset)
            if len(reaching):
                return int(chunk.table.position[reaching[0]])
            end = int(chunk.table.last_offset[-1]) + 1
        return log.size


def first_unordered(shadow: Shadow, segment: LoadedSegment) -> int:
    """Return the byte where the first batch begins that does not follow those before it."""
    end = segment.base_offset
    with shadow.files[segment.name(FileKind.LOG)].open() as log:
        for chunk in read_batches(log, base_offset=segment.base_offset, payload=False):
            if chunk.damage:
                return chunk.damage.position
            ends = np.maximum.accumulate(np.concatenate(([end], chunk.table.last_offset + 1)))
            wrong = np.flatnonzero(chunk.table.base_offset < ends[:-1])
            if len(wrong):
                return int(chunk.table.position[wrong[0]])
            end = int(ends[-1])
        return log.size
