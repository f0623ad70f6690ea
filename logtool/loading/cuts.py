"""The files of a segment after its recovery, and the batches that a cut removes."""

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
    """Cut the log of a segment to its valid size, and write its new indexes."""
    shadow.truncate(segment.name(FileKind.LOG), result.valid_size)
    shadow.write(segment.name(FileKind.OFFSET_INDEX), result.offset_index)
    shadow.write(segment.name(FileKind.TIME_INDEX), result.time_index)
    write_aborted(shadow, segment, result)


def leave(shadow: Shadow, segment: LoadedSegment, recovery: Recovery, max_index_size: int) -> None:
    """Write the indexes as an interrupted recovery leaves them, with their largest size.

    A broker writes new entries over the old ones from the start; behind them the old entries
    stay (``AbstractIndex.resize`` keeps the bytes of the file).
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
    """Write the transaction index of recovery, if there is one."""
    name = segment.name(FileKind.TRANSACTION_INDEX)
    content = transaction_index(result, exists=name in shadow)
    if content is not None:
        shadow.write(name, content)


def transaction_index(result: Recovered, *, exists: bool) -> bytes | None:
    """Return the transaction index that recovery writes; None if it makes no such file.

    It is written if it `exists`, or if there are entries for it.
    """
    return encode_aborted(result.aborted) if result.aborted or exists else None


def count(shadow: Shadow, segment: LoadedSegment, start: int = 0) -> CutBatches:
    """Count the batches of a log from byte `start` on, sound and unsound ones."""
    lost = CutBatches()
    file = shadow.files[segment.name(FileKind.LOG)]
    tally = LossCount(file, segment.base_offset)
    with file.open() as log:
        chunks = read_batches(log, base_offset=segment.base_offset, start=start, payload=False)
        for chunk in chunks:
            relative = chunk.table.last_offset - segment.base_offset
            is_near = (relative >= 0) & (relative <= MAX_RELATIVE_OFFSET)
            lost.add(chunk.table[is_near])
            # Offsets out of reach are not lost for a reader, who could not fetch them.
            far = chunk.table[~is_near]
            lost.batches += len(far)
            lost.records += far.records if len(far) else 0
            tally.add(chunk, counts=True)
    lost.unsound = tally.finish()
    return lost


def first_behind(shadow: Shadow, segment: LoadedSegment, offset: int) -> int:
    """Return the byte where the first batch begins that reaches `offset`; the size without one.

    Damage counts as such a batch if the batch before it ends at `offset` or later.
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
    """Return the byte of the first batch whose offsets do not follow those before it."""
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
