"""A segment with offsets out of reach of its base offset is split, as a broker does while it loads.

Each part begins with a batch that the part before it could not take. The rules are those of
``LocalLog.splitOverflowedSegment`` (Kafka 3.3 to 4.3).
"""

from logtool.formats.names import FileKind
from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.loading.index_building import IndexBuilder
from logtool.loading.kafka_reading import StartFailsError, first_offset, headers
from logtool.loading.result import StartConditions
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import Shadow, ShadowFile
from logtool.log.batches import read_batches

MOST_BYTES = 256 * 1024 * 1024
"""A larger segment is not split: its parts are held in memory."""


class TooLargeError(Exception):
    """A broker splits the segment; here it is too large for that."""


def can_be_split(segment: LoadedSegment) -> bool:
    """Return whether a broker splits a segment in which a batch is out of reach.

    It asks the last batch only, and does not start where that is in reach.
    """
    base, end = segment.base_offset, segment.next_offset()
    return base < end and end - 1 - base > MAX_RELATIVE_OFFSET


def split(
    shadow: Shadow, segment: LoadedSegment, start: StartConditions, why: str, *, opened: bool
) -> list[int]:
    """Put the parts of a segment in its place and return their base offsets.

    `why` is what could not be done without it: where the last batch is in reach, a broker refuses
    to split, and does not start. A segment that is not `opened` yet is not one that a broker
    removes: its files stay unless a part has their names. A split looks for a batch up to the last
    byte of the log, so that a broker does not start either where the log ends in an unfinished
    batch; with `cut_precisely` those bytes stay in the last part, whose recovery cuts them.
    """
    if not can_be_split(segment):
        raise StartFailsError(why)
    if segment.size > MOST_BYTES:
        raise TooLargeError(f"a broker splits the segment: {why}")
    data = shadow.files[segment.name(FileKind.LOG)].read(0, segment.size)
    starts: list[tuple[int, int]] = []
    end = 0
    log = ShadowFile(None, len(data), data)
    for header in headers(log, 0, len(data)):
        reach = header.last_offset - starts[-1][1] if starts else -1
        if not 0 <= reach <= MAX_RELATIVE_OFFSET:
            starts.append((header.position, first_offset(log, header)))
        end = header.position + header.size
    if end < len(data) and not start.cut_precisely:
        raise StartFailsError(
            f"{why}, and the segment cannot be split: behind byte {end} of "
            f"{segment.name(FileKind.LOG)} no batch is complete (NoSuchElementException)"
        )
    if opened:
        for name in list(segment.files()):
            shadow.remove(name)
    # Each part is one append, and up to 3.8 no append adds more than one entry, behind the first.
    interval = start.index_interval if start.kafka >= (3, 9) else len(data)
    ends = [position for position, _ in starts[1:]] + [len(data)]
    for (position, offset), stop in zip(starts, ends, strict=True):
        _write(shadow, LoadedSegment(shadow, offset), data[position:stop], interval)
    return [offset for _, offset in starts]


def _write(shadow: Shadow, part: LoadedSegment, data: bytes, interval: int) -> None:
    log = ShadowFile(None, len(data), data)
    indexes = IndexBuilder(part.base_offset, interval)
    with log.open() as file:
        for chunk in read_batches(file, base_offset=part.base_offset, payload=False):
            if len(chunk.table):
                indexes.add(chunk.table)
    offsets, times = indexes.finish(len(data))
    shadow.write(part.name(FileKind.LOG), data)
    shadow.write(part.name(FileKind.OFFSET_INDEX), offsets)
    shadow.write(part.name(FileKind.TIME_INDEX), times)
