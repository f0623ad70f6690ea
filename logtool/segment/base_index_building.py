"""The base index that Redpanda makes of a segment, from its batches.

The first batch has an entry, and so has a batch of data once `STEP` bytes of batches have gone by
since the last entry. Times are those of data alone: where a segment begins with another batch, the
first batch of data takes the place of its times. The broker then takes the absolute time for the
relative one of the first entry, which is so far off that it is cut to the largest there is; that is
made here, too. Source: ``storage/index_state.cc`` (``maybe_index``), ``storage/segment_index.cc``
(``maybe_track``), ``storage/compaction_reducers.cc`` (``is_compactible``), Redpanda 2024-12-20 and
later. There was no real index beside its real segment to hold this against.
"""

from dataclasses import replace

import numpy as np

from logtool.formats.record_batch import CONTROL
from logtool.formats.redpanda import base_index
from logtool.formats.redpanda.base_index import TIME_OFFSET, Entries, Flags
from logtool.formats.redpanda.offset_translation import FILTERED
from logtool.formats.redpanda.record_batch import RAFT_DATA, BatchType, Header, header_crc

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
    """Is told of the batches of one segment in their order."""

    def __init__(self, base_offset: int, *, all_data: bool = False) -> None:
        """Begin; `all_data` in any namespace but ``kafka``, where each type counts as data."""
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

    def add(self, position: int, header: Header) -> None:
        """Take the batch that begins at a byte of the segment."""
        self.count += 1
        first, newest = header.base_timestamp, header.max_timestamp
        self._since += header.size
        self._monotonic &= newest >= self._last_time
        self._last_time = max(first, newest)
        is_data = self._all_data or header.type == RAFT_DATA
        is_first = not self._rows
        if is_data and self._no_data:
            self._rows[0] = (self._rows[0][0], _relative(newest), self._rows[0][2])
        if is_first or (is_data and self._no_data):
            self._first_time = self._largest_time = first
            self._no_data = not is_data
        self._last_offset = header.last_offset
        if is_data:
            newest = max(first, newest)
            self._largest_time = max(self._largest_time, newest)
        if _is_compactible(header):
            self._compactible += max(header.record_count, 0)
        if is_first or (is_data and self._since >= STEP):
            relative = header.base_offset - self._base
            self._rows.append((relative, _relative(newest - self._first_time), position))
            self._since = 0

    def finish(self, *, recovered: bool = False) -> bytes:
        """Return the index as a close writes it, or as a start does that has replayed the segment.

        That drops what begins at the last offset: of a last batch with one offset the entry goes.
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
            non_data_timestamps=int(self._no_data),
            has_broker_timestamp=0,
            has_num_compactible_records_appended=int(self._compactible > 0),
            num_compactible_records_appended=self._compactible or None,
            has_clean_compact_timestamp=0,
            may_have_tombstone_records=1,
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


def header_of(fields: dict[str, int]) -> Header:
    """Return the header of a sound batch from its row in the table of a scan."""
    header = Header(
        header_crc=0,
        size=fields["size"],
        base_offset=fields["base_offset"],
        type=fields["batch_type"],
        crc=fields["crc"],
        attributes=fields["attributes"],
        last_offset_delta=fields["last_offset"] - fields["base_offset"],
        base_timestamp=fields["base_timestamp"],
        max_timestamp=fields["max_timestamp"],
        producer_id=fields["producer_id"],
        producer_epoch=fields["producer_epoch"],
        base_sequence=fields["base_sequence"],
        record_count=fields["record_count"],
    )
    return replace(header, header_crc=header_crc(header))


def _relative(delta: int) -> int:
    """Return a relative time as stored: cut to 32 bits around no difference."""
    return min(max(delta, -TIME_OFFSET), TIME_OFFSET - 1) + TIME_OFFSET


def _is_compactible(header: Header) -> bool:
    if header.type in FILTERED or header.type == BatchType.COMPACTION_PLACEHOLDER:
        return False
    return not header.attributes & CONTROL or header.type in _COMPACTED_CONTROL
