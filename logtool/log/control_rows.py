"""Content of control batches in the rows of a table, which their headers do not have."""

from collections.abc import Callable

import numpy as np

from logtool.errors import FormatError
from logtool.formats import control_record, record_batch
from logtool.formats.record_batch import BatchTable


def fill_control(
    table: BatchTable,
    data: memoryview,
    base: int,
    batch: Callable[[memoryview], memoryview] = lambda content: content,
    times: dict[int, int] | None = None,
) -> list[tuple[int, FormatError]]:
    """Decode the first record of each control batch into the table; return what is unreadable.

    `base` is the file position of ``data[0]``; each error comes with the number of its row. `batch`
    returns the bytes of a batch with Kafka's header. `times` gets the time of a record, by the
    position of its batch, where that is not the largest timestamp of the header. A broker reads the
    records of a control batch unless its header counts 0, and fails at a count below that.
    """
    errors = []
    marked = table.is_control & (table.record_count != 0)
    if marked.any() and (table.batch_type >= 0).any():
        # Other batches of Redpanda have that flag, too, and hold no control record of Kafka.
        from logtool.formats.redpanda.record_batch import RAFT_DATA

        marked &= (table.batch_type < 0) | (table.batch_type == RAFT_DATA)
    for row in np.flatnonzero(marked):
        start = int(table.position[row]) - base
        try:
            count = int(table.record_count[row])
            if count < 0:
                raise FormatError(f"control batch with a record count of {count}")
            content = batch(data[start : start + int(table.size[row])])
            control = control_record.parse_batch(content)
        except FormatError as error:
            # A broker does not look into control batches of no producer, those of KRaft.
            if table.producer_id[row] > record_batch.NO_PRODUCER_ID:
                # Not the one that was raised: its frames would keep `data` from being given up.
                errors.append((int(row), FormatError(error.reason, error.position)))
            continue
        table.control_type[row] = control.type
        table.coordinator_epoch[row] = control.coordinator_epoch
        if times is not None and not table.is_log_append_time[row]:
            time = int((table.base_timestamp[row : row + 1] + control.timestamp_delta)[0])
            if time != table.max_timestamp[row]:
                times[int(table.position[row])] = time
    return errors
