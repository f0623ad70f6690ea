"""The leader epochs of one partition, kept as a broker keeps them.

The rules are those of ``LeaderEpochFileCache`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Iterable

import numpy as np

from logtool.formats import leader_epoch_checkpoint
from logtool.formats.record_batch import MAGIC, BatchTable
from logtool.loading.kafka_reading import OfflineError, StartFailsError


class EpochCache:
    """The rows (leader epoch, start offset) of ``leader-epoch-checkpoint``, in order."""

    def __init__(self, rows: Iterable[tuple[int, int]] = ()) -> None:
        self.rows: list[tuple[int, int]] = []
        for epoch, start_offset in rows:
            self.assign(epoch, start_offset)
        self.changed = False
        """True if a broker writes the file again."""

    def assign(self, epoch: int, start_offset: int) -> None:
        """Begin an epoch at an offset; rows that contradict it are dropped."""
        if self.rows and self.rows[-1][0] == epoch and start_offset >= self.rows[-1][1]:
            return
        while self.rows and (self.rows[-1][0] >= epoch or self.rows[-1][1] >= start_offset):
            self.rows.pop()
        self.rows.append((epoch, start_offset))
        self.changed = True

    def add(self, table: BatchTable) -> None:
        """Begin the epochs of batches that are later than the latest row, as recovery does."""
        epochs = table.leader_epoch
        latest = self.rows[-1][0] if self.rows else -1
        if not len(table) or int(epochs.max()) <= latest:
            return
        epochs = np.where(table.magic >= MAGIC, epochs, -1)
        before = np.maximum.accumulate(np.concatenate(([latest], epochs)))[:-1]
        for row in np.flatnonzero(epochs > before).tolist():
            # An epoch that begins before the latest one takes its place.
            if not self.rows or int(epochs[row]) > self.rows[-1][0]:
                self.assign(int(epochs[row]), int(table.base_offset[row]))

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that begin at or behind the end of the log."""
        while self.rows and self.rows[-1][1] >= end_offset:
            self.rows.pop()
            self.changed = True

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the epochs before the log start; the current epoch there begins at it."""
        current = None
        while self.rows and self.rows[0][1] <= start_offset:
            current = self.rows.pop(0)[0]
        if current is not None:
            self.rows.insert(0, (current, start_offset))
            self.changed = True

    def clear(self) -> None:
        """Drop all epochs."""
        self.rows.clear()
        self.changed = True

    def encode(self) -> bytes:
        """Return the file that a broker writes."""
        return leader_epoch_checkpoint.encode(leader_epoch_checkpoint.build(self.rows))


def read(data: bytes) -> EpochCache:
    """Return the epochs of a ``leader-epoch-checkpoint``; raise an error if a broker cannot.

    A number that cannot be read or is negative stops the broker (StartFailsError); any other fault
    takes the log dir offline (OfflineError; ``CheckpointFile``).
    """
    checkpoint = leader_epoch_checkpoint.parse(data)
    refusal = leader_epoch_checkpoint.refusal(checkpoint)
    if refusal:
        raise (OfflineError if refusal.is_io_error else StartFailsError)(refusal.message)
    rows = checkpoint.rows
    if any(row.leader_epoch < 0 or row.start_offset < 0 for row in rows):
        raise StartFailsError("an epoch or an offset is negative")
    return EpochCache((row.leader_epoch, row.start_offset) for row in rows)
