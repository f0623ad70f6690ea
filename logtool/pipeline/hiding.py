"""Records of a metadata log without what is secret: stars stand in the place of its bytes."""

from dataclasses import replace

import numpy as np

from logtool.dump.blocks import Records
from logtool.dump.decoding import without_secrets
from logtool.formats.record_batch import BatchTable


def hidden(batches: BatchTable, records: Records) -> Records:
    """Return the same records with as many stars in place of each secret as it has bytes.

    It is what `dump` prints of them: the records are of a metadata log.
    """
    of_control = np.repeat(batches.is_control, records.counts)
    at, size = records.table.value_position, records.table.value_length
    rows = np.flatnonzero(~of_control & (size > 0))
    data = bytearray(records.data)
    for start, stop in zip(at[rows].tolist(), (at + size)[rows].tolist(), strict=True):
        data[start:stop] = without_secrets(bytes(data[start:stop]))
    return replace(records, data=memoryview(data))
