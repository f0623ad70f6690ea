"""Outcomes of the transactions of a copy, batch by batch, by the markers of the copy."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import IntEnum

import numpy as np

from logtool.copies.batches import CopyBatches
from logtool.copies.copy import WholeCopy
from logtool.copies.sources import ListedCopy
from logtool.formats.record_batch import CONTROL, MAGIC, TRANSACTIONAL, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.control import Marker, markers
from logtool.node.settings import Settings
from logtool.running.run import Run

_DATA, _MARKER, _QUESTION = range(3)


class TransactionOutcome(IntEnum):
    """Outcome of the transaction of a batch."""

    COUNTS = 0
    """The batch is in no transaction, or in a committed one."""
    ABORTED = 1
    OPEN = 2


@dataclass(frozen=True, slots=True)
class OutcomeSource:
    """A copy, its segments, and the known settings of its topic."""

    copy: WholeCopy
    listed: ListedCopy
    settings: Settings = field(default_factory=Settings)


def markers_of(source: OutcomeSource, run: Run) -> list[Marker]:
    """Return the markers of a copy in order, from the segments that have control batches."""
    table = source.copy.batches
    holders = set(table.segment[table.attributes & CONTROL != 0].tolist())
    found = []
    for segment in source.listed.segments:
        if segment.base_offset in holders:
            for chunk in segment.batches(payload=False):
                run.budget.pace.spend(int(chunk.table.size.sum()))
                found += markers(chunk.table)
    return found


def _is_data_of_transaction(table: CopyBatches) -> Column:
    mask: Column = (table.magic >= MAGIC) & (
        table.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL
    )
    return mask


def fates_of(table: CopyBatches, ends: Sequence[Marker]) -> Column:
    """Return the `TransactionOutcome` of each batch: the next marker of its producer decides."""
    fates = np.zeros(len(table), np.int8)
    rows = np.flatnonzero(_is_data_of_transaction(table))
    if not len(rows):
        return fates
    offsets, producers, commits = (np.array(list(one), np.int64) for one in _columns(ends))
    producer = np.concatenate([table.producer_id[rows], producers])
    offset = np.concatenate([table.base_offset[rows], offsets])
    fate = np.where(commits == 1, TransactionOutcome.COUNTS, TransactionOutcome.ABORTED)
    fate = np.concatenate([np.full(len(rows), TransactionOutcome.OPEN), fate])
    order = np.lexsort((offset, producer))
    count = len(order)
    is_marker = order >= len(rows)
    at = np.where(is_marker, np.arange(count), count)
    following = np.minimum.accumulate(at[::-1])[::-1]
    has_end = following < count
    following = np.minimum(following, count - 1)
    has_end &= producer[order][following] == producer[order]
    result = np.empty(count, np.int8)
    result[order] = np.where(has_end, fate[order][following], TransactionOutcome.OPEN)
    fates[rows] = result[: len(rows)]
    return fates


def left_open(table: CopyBatches, ends: Sequence[Marker], asked: CopyBatches) -> Column:
    """Return a mask of the markers whose producer has an open transaction there in another copy.

    `asked` are batches of markers, `table` and `ends` the batches and markers of the other copy.
    """
    data = np.flatnonzero(_is_data_of_transaction(table))
    offsets, producers, _ = (np.array(list(one), np.int64) for one in _columns(ends))
    producer = np.concatenate([table.producer_id[data], producers, asked.producer_id])
    offset = np.concatenate([table.base_offset[data], offsets, asked.base_offset])
    kind = np.repeat([_DATA, _MARKER, _QUESTION], [len(data), len(ends), len(asked)])
    order = np.lexsort((kind, offset, producer))
    at = np.where(kind[order] != _QUESTION, np.arange(len(order)), -1)
    before = np.maximum.accumulate(at)
    is_open = (before >= 0) & (producer[order][before] == producer[order])
    is_open &= kind[order][before] == _DATA
    result = np.empty(len(order), np.bool_)
    result[order] = is_open
    return result[len(data) + len(ends) :]


def _columns(ends: Sequence[Marker]) -> Iterator[tuple[int, ...]]:
    return iter(zip(*ends, strict=True)) if ends else iter(((), (), ()))
