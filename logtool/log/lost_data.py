"""A damaged batch that held data alone, by its header: no marker is lost with it."""

from typing import NamedTuple

import numpy as np

from logtool.formats.record_batch import (
    CONTROL,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    SEQUENCES,
)
from logtool.log.chunk import Source

_MARKER_SIZE = 78
"""Bytes of a batch with an end-transaction marker."""


class LostData(NamedTuple):
    """A damaged batch of data, as far as its header shows."""

    producer_id: int
    epoch: int
    base_sequence: int
    records: int

    def continues(self, epoch: int, last_sequence: int) -> bool:
        """Return whether it goes on behind a producer's batch: its id is then not damaged."""
        is_next = (last_sequence + 1) % SEQUENCES == self.base_sequence
        return self.epoch == epoch and is_next

    @property
    def is_plain(self) -> bool:
        """Return whether no field of its header names a producer."""
        return self.producer_id == self.epoch == self.base_sequence == -1


def lost_data(log: Source, place: range, offsets: range) -> LostData | None:
    """Return the batch that damage at these bytes was; None if it may have been another one.

    Its header must fill the bytes, and the offsets between the sound batches around it.
    """
    data = bytearray(HEADER_SIZE)
    if log.read_into(memoryview(data), place.start) < HEADER_SIZE:
        return None
    header = np.frombuffer(bytes(data), HEADER, 1)[0]
    records = int(header["record_count"])
    is_data = (
        header["magic"] == MAGIC
        and not int(header["attributes"]) & CONTROL
        and int(header["batch_length"]) + LOG_OVERHEAD == len(place)
        and int(header["base_offset"]) == offsets.start
        and int(header["last_offset_delta"]) + 1 == records == len(offsets)
        and (records > 1 or len(place) != _MARKER_SIZE)
    )
    if not is_data:
        return None
    names = "producer_id", "producer_epoch", "base_sequence"
    producer_id, epoch, base_sequence = (int(header[name]) for name in names)
    return LostData(producer_id, epoch, base_sequence, records)
