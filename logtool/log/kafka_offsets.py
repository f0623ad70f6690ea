"""Kafka offsets of the batches of Redpanda, as far as the files next to them say.

In the namespace ``kafka`` a batch has a Kafka offset below its Raft offset: see
`logtool.formats.redpanda.offset_translation`. The difference is known where `kafka_start` finds it,
and is carried from one segment to the next. Behind damage or a missing segment it is not known, and
nothing is guessed.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

from logtool.errors import UnreadableError
from logtool.formats.record_batch import BatchTable, Column
from logtool.formats.redpanda.offset_translation import FILTERED
from logtool.log import kafka_start, opening

NONE = -1
"""Stands for the Kafka offset of a batch that has none, or whose offset is not known."""


class KafkaOffsets:
    """Takes segments and batches in the order of the log, and returns their Kafka offsets."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._snapshot: tuple[int, int] | None = None
        """A Raft offset, and the delta of the batch that begins there."""
        self._end: int | None = None
        """The Raft offset that comes next; None behind damage."""
        self.delta: int | None = None
        """Raft offsets below the next that are not Kafka offsets; None where that is not known."""

    def begin(self, path: Path, base_offset: int) -> None:
        """Begin a segment."""
        folder = path.absolute().parent
        in_kafka = kafka_start.in_kafka(folder)
        if folder != self._folder:
            self._folder, self._end = folder, None
            self._snapshot = _start_of(folder) if in_kafka else None
        if base_offset != self._end:
            self.delta = None
        if self._snapshot and self._snapshot[0] == base_offset:
            self.delta = self._snapshot[1]
        self._end = base_offset

    def lose(self) -> None:
        """Forget the delta behind damage: a batch without a Kafka offset may be lost there."""
        self._end = self.delta = None

    def add(self, table: BatchTable) -> tuple[Column, Column]:
        """Return the first and the last Kafka offset of each batch, int64; see `NONE`."""
        first, last = (np.full(len(table), NONE, np.int64) for _ in range(2))
        if not len(table):
            return first, last
        base, ends = table.base_offset, table.last_offset + 1
        if self._end is None:
            self.delta, self._end = None, int(base[0])
        before = np.concatenate(([self._end], ends[:-1]))
        known: dict[int, int | None] = {}
        if self._snapshot:
            start, delta = self._snapshot
            rows = np.flatnonzero((before <= start) & (base >= start))
            known |= {int(row): delta for row in rows[:1]}
        known |= {int(row): None for row in np.flatnonzero(base < before)}
        lengths = np.where(np.isin(table.batch_type, list(FILTERED)), ends - base, 0)
        for begin, end in pairwise(sorted({0, *known, len(table)})):
            self.delta = known.get(begin, self.delta)
            if self.delta is None:
                continue
            part = slice(begin, end)
            deltas = self.delta + np.cumsum(lengths[part]) - lengths[part]
            data = lengths[part] == 0
            first[part] = np.where(data, base[part] - deltas, NONE)
            last[part] = np.where(data, ends[part] - 1 - deltas, NONE)
            self.delta += int(lengths[part].sum())
        self._end = int(ends[-1])
        return first, last


def before(path: Path, base_offset: int) -> KafkaOffsets:
    """Return the state at the start of a segment, from which its Kafka offsets are counted.

    The segments before it are read if needed. UnreadableError.
    """
    offsets = KafkaOffsets()
    offsets.begin(path, base_offset)
    if offsets.delta is not None:
        return offsets
    offsets = KafkaOffsets()
    for segment in opening.open_partition(path.parent).segments:
        if segment.base_offset >= base_offset:
            break
        offsets.begin(segment.log.path, segment.base_offset)
        for chunk in segment.batches(payload=False):
            if chunk.damage:
                offsets.lose()
            else:
                offsets.add(chunk.table)
    offsets.begin(path, base_offset)
    return offsets


def _start_of(folder: Path) -> tuple[int, int] | None:
    """Return a Raft offset and the delta there; None where no file says it, or reading fails."""
    try:
        listed = opening.open_partition(folder)
        first = listed.segments[0].base_offset if listed.segments else 0
        start = kafka_start.known(folder, first, lambda: kafka_start.ranges_in(listed))
    except UnreadableError:
        return None
    return None if start is None else (start.offset, start.delta)
