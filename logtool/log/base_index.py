"""The base index that Redpanda makes of a segment, from its batches.

The first batch has an entry, and so has a batch of data once `STEP` bytes of batches have gone by
since the last entry. Times are those of data alone: where a segment begins with another batch, the
first batch of data takes the place of its times. The broker then takes the absolute time for the
relative one of the first entry, which is so far off that it is cut to the largest there is; that is
made here, too. Source: ``storage/index_state.cc`` (``maybe_index``), ``storage/segment_index.cc``
(``maybe_track``), ``storage/compaction_reducers.cc`` (``is_compactible``), Redpanda 2024-12-20 and
later. There was no real index next to its real segment to compare this with.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from logtool.formats.record_batch import CONTROL, MAGIC, BatchTable, Column
from logtool.formats.redpanda import base_index, record_batch
from logtool.formats.redpanda.base_index import TIME_OFFSET, BaseIndex, Entries, Flags
from logtool.formats.redpanda.offset_translation import FILTERED
from logtool.formats.redpanda.record_batch import RAFT_DATA, BatchType, RedpandaHeader, header_crc

STEP = 32 * 1024
"""Bytes of batches between two entries."""

_COMPACTED_CONTROL = frozenset(
    {
        BatchType.GROUP_PREPARE_TX,
        BatchType.GROUP_COMMIT_TX,
        BatchType.GROUP_ABORT_TX,
        BatchType.GROUP_FENCE_TX,
    }
)
"""Control batches that compaction looks into as into data."""


class Builder:
    """Takes the batches of one segment in their order, and builds its index."""

    def __init__(self, base_offset: int, *, all_data: bool = False) -> None:
        """Begin an index; `all_data` is for namespaces other than ``kafka``: each type is data."""
        self._base, self._all_data = base_offset, all_data
        self._rows: list[tuple[int, int, int]] = []
        """Offset, time and position of each entry."""
        self._since = self._compactible = 0
        self._last_time = -1
        self._monotonic, self._no_data = True, False
        self._first_time = self._largest_time = 0
        self._last_offset = base_offset
        self.count = 0
        """Batches so far."""

    def add(self, table: BatchTable) -> None:
        """Take the next batches of the segment."""
        if not len(table):
            return
        largest = np.maximum(table.base_timestamp, table.max_timestamp)
        before = np.concatenate(([self._last_time], largest[:-1]))
        self._monotonic &= bool((table.max_timestamp >= before).all())
        self._last_time = int(largest[-1])
        self._last_offset = int(table.last_offset[-1])
        self.count += len(table)
        self._compactible += int(np.maximum(table.record_count, 0)[_is_compactible(table)].sum())
        is_data = table.batch_type == RAFT_DATA
        data = np.arange(len(table)) if self._all_data else np.flatnonzero(is_data)
        begun = bool(self._rows)
        if not begun:
            self._begin(table, is_data=bool(len(data)) and data[0] == 0)
        if self._no_data and len(data):
            first = int(data[0])
            offset, _, position = self._rows[0]
            self._rows[0] = offset, _relative(int(table.max_timestamp[first])), position
            self._first_time = self._largest_time = int(table.base_timestamp[first])
            self._no_data = False
        if len(data):
            self._largest_time = max(self._largest_time, int(largest[data].max()))
        self._step(table, largest, data, start=0 if begun else 1)

    def _begin(self, table: BatchTable, *, is_data: bool) -> None:
        """Take the first batch, which always has an entry."""
        first, newest = int(table.base_timestamp[0]), int(table.max_timestamp[0])
        self._first_time = self._largest_time = first
        self._no_data = not is_data
        time = (max(first, newest) if is_data else newest) - first
        offset = int(table.base_offset[0]) - self._base
        self._rows.append((offset, _relative(time), int(table.position[0])))

    def _step(self, table: BatchTable, largest: Column, data: Column, start: int) -> None:
        """Add an entry for each batch of data, from `start` on, that comes `STEP` bytes later."""
        ends = self._since + np.cumsum(np.where(np.arange(len(table)) < start, 0, table.size))
        behind = 0
        while True:
            far = max(int(np.searchsorted(ends, behind + STEP)), start)
            at = int(np.searchsorted(data, far))
            if at == len(data):
                break
            row = int(data[at])
            offset = int(table.base_offset[row]) - self._base
            time = _relative(int(largest[row]) - self._first_time)
            self._rows.append((offset, time, int(table.position[row])))
            behind = int(ends[row])
        self._since = int(ends[-1]) - behind

    def finish(self, *, recovered: bool = False, before: BaseIndex | None = None) -> bytes:
        """Return the index as a close writes it, or as a start does that has replayed the segment.

        Both drop entries at the last offset: a last batch with one offset loses its entry. Notes of
        compaction in the index `before`, which the start has read, stay.
        """
        rows = np.array(self._rows, np.int64).reshape(-1, 3)
        if recovered:
            rows = rows[rows[:, 0] < self._last_offset - self._base]
        entries = Entries(
            relative_offset=rows[:, 0].astype("<u4"),
            relative_time=rows[:, 1].astype("<u4"),
            position=rows[:, 2].astype("<u8"),
        )
        flags = Flags(
            batch_timestamps_are_monotonic=int(self._monotonic),
            with_offset=1,
            non_data_timestamps=int(self._no_data and len(rows) > 0),
            has_broker_timestamp=0,
            has_num_compactible_records_appended=1,
            num_compactible_records_appended=self._compactible,
            has_clean_compact_timestamp=0,
            may_have_tombstone_records=1,
        )
        if before and before.flags.may_have_tombstone_records is not None:
            flags = replace(
                flags,
                has_clean_compact_timestamp=before.flags.has_clean_compact_timestamp,
                clean_compact_timestamp=before.flags.clean_compact_timestamp,
                may_have_tombstone_records=before.flags.may_have_tombstone_records,
            )
        index = base_index.build(
            entries,
            base_offset=self._base,
            max_offset=self._last_offset,
            base_timestamp=self._first_time,
            max_timestamp=self._largest_time,
            flags=flags,
        )
        return base_index.encode(index)


def header_of(fields: dict[str, int]) -> RedpandaHeader:
    """Return the header of a sound batch from its row in the table of a scan."""
    header = RedpandaHeader(
        header_crc=0,
        size=fields["size"],
        base_offset=fields["base_offset"],
        type=record_batch.signed(fields["batch_type"], 8),
        crc=fields["crc"],
        attributes=fields["attributes"],
        last_offset_delta=record_batch.signed(fields["last_offset"] - fields["base_offset"], 64),
        base_timestamp=fields["base_timestamp"],
        max_timestamp=fields["max_timestamp"],
        producer_id=fields["producer_id"],
        producer_epoch=fields["producer_epoch"],
        base_sequence=fields["base_sequence"],
        record_count=fields["record_count"],
    )
    return replace(header, header_crc=header_crc(header))


def table_of(batches: Sequence[tuple[int, RedpandaHeader]]) -> BatchTable:
    """Return the rows of batches whose positions and headers are known, for a `Builder`."""
    columns = np.array(
        [
            (
                position, header.size, header.base_offset, header.last_offset, -1, MAGIC,
                header.crc, header.attributes, header.base_timestamp, header.max_timestamp,
                header.producer_id, header.producer_epoch, header.base_sequence,
                header.record_count, header.type, -1, -1,
            )
            for position, header in batches
        ],
        np.int64,
    )  # fmt: skip
    return BatchTable(*columns.reshape(len(batches), -1).T)


def _relative(delta: int) -> int:
    """Return a relative time as stored: cut to 32 bits around no difference."""
    return min(max(delta, -TIME_OFFSET), TIME_OFFSET - 1) + TIME_OFFSET


def _is_compactible(table: BatchTable) -> NDArray[np.bool_]:
    kept = np.isin(table.batch_type, [*FILTERED, BatchType.COMPACTION_PLACEHOLDER])
    control = (table.attributes & CONTROL) != 0
    looked_into = np.isin(table.batch_type, list(_COMPACTED_CONTROL))
    found: NDArray[np.bool_] = ~kept & (~control | looked_into)
    return found
