"""The oldest open transaction of a log, as its broker knows it after a start.

The newest snapshot that can be read has the producers up to its offset; the batches behind it are
replayed by their headers. After a stop in order the newest snapshot stands at the log end, and no
batch is read. Without any snapshot, such a start forgets all producers.

Source: ``UnifiedLog.rebuildProducerState``, ``ProducerStateManager.firstUnstableOffset``
(Kafka 3.9 and 4.x).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import transaction_index
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.loading import producers
from logtool.log import producer_state
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.producer_state import NONE, Producer, ProducerState
from logtool.retention.logs import LiveLog
from logtool.retention.segments import LogSegments

_SMALL = 64 * 1024
"""Bytes from which on a snapshot is read with care."""


@dataclass(frozen=True, slots=True)
class OldestTransaction:
    """An open transaction."""

    producer_id: int
    first_offset: int
    """First offset of it; the log start where that is larger."""


class AbortedTransactions:
    """The aborted transactions in the transaction indexes of a log."""

    def __init__(self, indexes: Iterable[File]) -> None:
        """Read the indexes; UnreadableError."""
        self._ranges: dict[int, list[tuple[int, int]]] = {}
        """Last and first offset of each transaction, by producer."""
        for file in indexes:
            found = transaction_index.parse(file.read_listed())
            columns = (found.producer_ids, found.last_offsets, found.first_offsets)
            for producer, last, first in zip(*(one.tolist() for one in columns), strict=True):
                self._ranges.setdefault(producer, []).append((last, first))

    def mask(self, offset: Column, producer_id: Column) -> Column:
        """Return where a batch or record of a transaction at `offset` is in an aborted one."""
        found = np.zeros(len(offset), np.bool_)
        for producer, ranges in self._ranges.items():
            rows = np.flatnonzero(producer_id == producer)
            if not len(rows):
                continue
            last, first = np.array(sorted(ranges)).T
            at = np.searchsorted(last, offset[rows])
            inside = at < len(last)
            rows, at = rows[inside], at[inside]
            found[rows] = first[at] <= offset[rows]
        return found


def oldest(one: LiveLog) -> OldestTransaction | UnreadableError | None:
    """Return the open transaction that begins first; None if no transaction is open."""
    log = one.log
    if one.home.clean and log.columns.log_start < log.snapshot == log.end:
        found = _in_snapshot(f"{one.path}/{log.snapshot:020d}.snapshot")
    else:
        found = None
    if found is None:
        try:
            found = _first(_state(one.listed, log, clean=one.home.clean).producers)
        except UnreadableError as error:
            return error
    if not found:
        return None
    first, producer_id = found
    return OldestTransaction(producer_id, max(first, log.columns.log_start))


def _in_snapshot(path: str) -> tuple[int, ...] | None:
    """Return first offset and producer id of the oldest open transaction in a small snapshot.

    Empty if no transaction is open; None if a broker does not take the snapshot, or if it has to be
    read with care.
    """
    try:
        data = files.glance(path, _SMALL)[0]
    except OSError:
        return None
    return None if len(data) == _SMALL else _in_content(data)


@lru_cache(maxsize=256)
def _in_content(data: bytes) -> tuple[int, ...] | None:
    """Do the same for the content of a snapshot: many logs have equal ones."""
    known = producers.decode(data)
    return None if known is None else _first(known)


def _first(known: Mapping[int, Producer]) -> tuple[int, ...]:
    """Return first offset and producer id of the oldest open transaction; empty without one."""
    found = [
        (producer.transaction_first_offset, producer_id)
        for producer_id, producer in known.items()
        if producer.transaction_first_offset != NONE
    ]
    return min(found, default=())


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
