"""Recovery of one segment from its headers: index entries stay, and missing ones are added."""

from collections.abc import Iterable

import numpy as np

from logtool.findings import Finding
from logtool.formats import offset_index, time_index
from logtool.formats.names import FileKind
from logtool.formats.record_batch import BatchTable
from logtool.loading.header_walk import ContradictionError
from logtool.loading.index_building import IndexBuilder
from logtool.loading.loader import Loader
from logtool.loading.lost_records import LossCount, Unsound
from logtool.loading.recovery import CutBatches
from logtool.loading.result import RecoveredSegment, RecoveryReason
from logtool.loading.segments import LoadedSegment
from logtool.loading.shadow import ShadowFile
from logtool.log.batches import read_batches
from logtool.log.damage import Damage, DamageReason

_EPOCHS = FileKind.LEADER_EPOCH_CHECKPOINT.value


class Played:
    """A segment of which headers are read: the caller feeds them, then calls `recovered`."""

    def __init__(self, loader: Loader, segment: LoadedSegment, log: ShadowFile) -> None:
        self._loader = loader
        self._segment = segment
        self._log = log
        start = loader.start
        self.indexes = IndexBuilder(segment.base_offset, start.index_interval, start.max_index_size)
        files = loader.shadow.files
        there = [
            files[name].read_entries() if (name := segment.name(kind)) in files else b""
            for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        ]
        self._offsets = offset_index.parse(there[0])
        self._count = _sound(
            offset_index.check(self._offsets, log_size=log.size),
            len(self._offsets),
            offset_index.ENTRY_SIZE,
        )
        kept = self._kept(there[1])
        offsets, times = there[0][: kept[0] * 8], there[1][: kept[1] * 12]
        self._resumed = self.indexes.resume(offsets, times)
        """The byte where the batch of the last entry that stays begins; -1 without one."""
        self._known = kept[0] and int(self._offsets.relative_offsets[kept[0] - 1])
        self._end = segment.base_offset
        self._batches = self._records = 0

    def _kept(self, data: bytes) -> tuple[int, int]:
        """Return how many entries of the offset index and of the time index stay.

        The last entry of the time index is built again, because it may be the closing one, and with
        it the offset entries behind the time entry in front: from there on the largest timestamp is
        known.
        """
        times = time_index.parse(data)
        count = _sound(time_index.check(times), len(times), time_index.ENTRY_SIZE)
        offsets = self._offsets.relative_offsets[: self._count]
        if not count:
            return 0, 0
        kept = int(np.searchsorted(offsets, times.relative_offsets[count - 1], "left"))
        if not kept:
            return 0, 0
        stay = np.searchsorted(times.relative_offsets[:count], offsets[kept - 1], "right")
        return (kept, int(stay)) if stay else (0, 0)

    def position(self, offset: int | None) -> int:
        """Return the byte at which to begin, so that no batch from `offset` on is left out."""
        if offset is None or offset <= self._segment.base_offset:
            return max(self._resumed, 0) if offset is None else 0
        relative = offset - self._segment.base_offset
        before = int(np.searchsorted(self._offsets.relative_offsets[: self._count], relative))
        return min(max(self._resumed, 0), int(self._offsets.positions[before - 1]) if before else 0)

    def take(self, table: BatchTable) -> None:
        """Take the next batches."""
        if int(table.position[0]) <= self._resumed <= int(table.position[-1]):
            row = int(np.searchsorted(table.position, self._resumed))
            last = self._segment.base_offset + self._known
            if table.position[row] != self._resumed or table.base_offset[row] > last:
                name = self._segment.name(FileKind.OFFSET_INDEX)
                raise ContradictionError(
                    f"{name}: no batch of offset {last} is at the position in the entry"
                )
        epochs = self._loader.epochs
        latest = epochs.rows[-1][0] if epochs.rows else -1
        if table.position[0] > 0 and not self._batches and int(table.leader_epoch[0]) > latest:
            raise ContradictionError(f"{_EPOCHS} lacks leader epoch {table.leader_epoch[0]}")
        epochs.add(table)
        new = table[table.position > self._resumed]
        if len(new):
            self.indexes.add(new)
        self._end = int(table.last_offset[-1]) + 1
        self._batches += len(table)
        self._records += table.records

    def recovered(self, valid: int, from_byte: int, end: int | None) -> RecoveredSegment:
        """Return the recovered segment, which is whole up to byte `valid`."""
        stop, lost = None, CutBatches()
        if valid < self._log.size:
            name = self._segment.name(FileKind.LOG)
            if end is not None:
                raise ContradictionError(f"{name}: no batch begins at byte {valid}")
            stop, lost.unsound = self._unfinished(valid, name)
        return RecoveredSegment(
            base_offset=self._segment.base_offset,
            why=RecoveryReason.UNFLUSHED,
            size=self._log.size,
            valid_size=valid,
            stop=stop,
            lost=lost,
            batches=self._batches,
            records=self._records,
            next_offset=self._end,
            headers_from=from_byte,
        )

    def _unfinished(self, position: int, name: str) -> tuple[Damage, list[Unsound]]:
        """Return the unfinished append or the zeros at the end; ContradictionError if neither."""
        tally = LossCount(self._log, self._end)
        chunks = []
        with self._log.open() as file:
            base = self._segment.base_offset
            for chunk in read_batches(file, base_offset=base, start=position, payload=False):
                tally.add(chunk, counts=True)
                chunks.append(chunk.damage)
        if (
            len(chunks) == 1
            and chunks[0]
            and chunks[0].reason in (DamageReason.INCOMPLETE, DamageReason.ZEROS)
        ):
            return chunks[0], tally.finish()
        raise ContradictionError(f"{name}: no batch begins at byte {position}")


def _sound(findings: Iterable[Finding], count: int, entry_size: int) -> int:
    """Return how many entries stand before the first that breaks a rule."""
    return min([count, *((finding.position or 0) // entry_size for finding in findings)])
