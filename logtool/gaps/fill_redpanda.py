"""A log of Redpanda as its Raft sends it to a follower: every batch, and ghosts between them.

It is a new directory with the folders of a data directory. A gap before a segment is filled at the
start of that segment, which then has the first offset of the gap in its name, as at the follower:
by the RFC, a gap has the term of the batch after it, and a follower begins a new segment with a new
term. No broker stores ghosts: `verify` reports each. The log without them is what the follower has
on disk.
"""

from pathlib import Path

from logtool.errors import RefusedError
from logtool.formats.redpanda import ghost_batch, names, record_batch
from logtool.gaps import fill
from logtool.gaps.ghosts import Ghosts
from logtool.gaps.run import Result
from logtool.repair import redpanda
from logtool.repair.output import OutputDir


def write(result: Result, ghosts: Ghosts, target: Path, *, stored: bool) -> int:
    """Write the log of a partition into a new directory; return its size in bytes.

    With `stored` it has no ghosts. RefusedError if batches overlap, or if `target` is no place for
    it; UnwritableError if it cannot be written.
    """
    path, ledger = result.subject.partition.path, result.ledger
    if ledger.overlaps:
        raise RefusedError(f"{path}: {ledger.overlaps} batches overlap others")
    output, place = OutputDir(target), Path(redpanda.place_of(result.subject.partition))
    output.check([path], sum(end - start for part in result.parts for start, end in part.stretches))
    waiting: dict[int, list[tuple[int, int, int]]] = {}
    for segment, *insert in fill.placed(result, ghosts):
        waiting.setdefault(segment, []).append((insert[0], insert[1], insert[2]))
    size, ended = 0, False
    try:
        for part in (part for part in result.parts if part.stretches):
            here = waiting.get(part.segment.base_offset, [])
            heads = [first for at, first, _ in here if at == part.stretches[0][0]]
            term = names.parse_partition_file(part.segment.log.path.name).term or 0
            name = place / names.format_segment(min([part.segment.base_offset, *heads]), term)
            encoded = [(at, _encoded(first, last)) for at, first, last in here]
            size += output.write_part(name, fill.of_segment(part, [] if stored else encoded))
        if size:
            output.complete(place)
        ended = True
    finally:
        output.close(ended=ended)
    return size


def _encoded(first: int, last: int) -> bytes:
    """Return the ghosts of a gap, without the time of sending that a broker's ghosts have."""
    return b"".join(record_batch.encode(one.header) for one in ghost_batch.build(first, last))
