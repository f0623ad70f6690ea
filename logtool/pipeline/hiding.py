"""Records of a metadata log without what is secret: stars stand in the place of its bytes."""

from dataclasses import replace

import numpy as np

from logtool.dump.decoding import without_secrets
from logtool.log.records import RecordTable


def hidden(records: RecordTable) -> RecordTable:
    """Return the same records with as many stars in place of each secret as it has bytes.

    It is what `dump` prints of them: the records are of a metadata log.
    """
    of_control = records.of_batches(records.batches.is_control)
    at, size = records.spans.value_position, records.spans.value_length
    rows = np.flatnonzero(~of_control & (size > 0))
    data = bytearray(records.data)
    for start, stop in zip(at[rows].tolist(), (at + size)[rows].tolist(), strict=True):
        data[start:stop] = without_secrets(bytes(data[start:stop]))
    return replace(records, data=memoryview(data))
