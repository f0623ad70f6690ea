"""The oldest open transaction of a log, as its broker knows it after a start.

The newest snapshot that can be read has the producers up to its offset; the batches behind it are
replayed by their headers. After a stop in order the newest snapshot stands at the log end, and no
batch is read. Without any snapshot, such a start forgets all producers.

Source: ``UnifiedLog.rebuildProducerState``, ``ProducerStateManager.firstUnstableOffset``
(Kafka 3.9 and 4.x).
"""

import numpy as np

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass
from logtool.loading import producers
from logtool.log import producer_state
from logtool.log.dir import Partition
from logtool.log.producer_state import NONE, ProducerState
from logtool.retention.segments import LogSegments


@dataclass(frozen=True, slots=True)
class OldestTransaction:
    """An open transaction."""

    producer_id: int
    first_offset: int
    """First offset of it; the log start where that is larger."""


def oldest(
    partition: Partition, log: LogSegments, *, clean: bool
) -> OldestTransaction | UnreadableError | None:
    """Return the open transaction that begins first; None if no transaction is open."""
    try:
        state = _state(partition, log, clean=clean)
    except UnreadableError as error:
        return error
    found = [
        (producer.transaction_first_offset, producer_id)
        for producer_id, producer in state.producers.items()
        if producer.transaction_first_offset != NONE
    ]
    if not found:
        return None
    first, producer_id = min(found)
    return OldestTransaction(producer_id, max(first, log.columns.log_start))


def _state(partition: Partition, log: LogSegments, *, clean: bool) -> ProducerState:
    """Return the producers at the log end; UnreadableError."""
    state, begin = ProducerState(), log.columns.log_start
    if clean and not partition.snapshots:
        return state
    for file in reversed(partition.snapshots):
        offset = file.name.offset or 0
        if offset <= begin or offset > log.end:
            continue
        known = producers.decode(files.read_small(file.path))
        if known is not None:
            state.producers, begin = known, offset
            break
    if clean and begin >= log.end:
        return state
    for segment in partition.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= begin:
            continue
        for chunk in segment.batches(payload=False):
            if chunk.damage is not None:
                return state  # A start cuts the log here.
            rows = np.flatnonzero(chunk.table.base_offset >= begin)
            state.apply(producer_state.significant(chunk.table[rows]))
    return state
