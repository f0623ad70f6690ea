"""The values of a block that differ from line to line, as columns of numbers for `_rendering`."""

import numpy as np

from logtool.commands.printing import text
from logtool.dump.values import Values, show_headers
from logtool.formats import _rendering, record
from logtool.formats.record_batch import BatchTable, Column
from logtool.log.records import RecordTable

MARK = "\0"
"""Stands in the place of what differs, or around its name. No path has it, so that its JSON stands
nowhere else, nor does it stand in a cell."""

Cells = dict[str, tuple[int, int]]
"""By the names of an object, in its order: what a value is, and the column that has its number."""

BATCH: Cells = {
    "position": (_rendering.NUMBER, ~0),
    "size": (_rendering.NUMBER, ~1),
    "base_offset": (_rendering.NUMBER, ~2),
    "last_offset": (_rendering.NUMBER, ~3),
    "record_count": (_rendering.NUMBER, ~4),
    "base_timestamp_ms": (_rendering.OPTIONAL, ~5),
    "base_timestamp": (_rendering.TIME, ~5),
    "max_timestamp_ms": (_rendering.OPTIONAL, ~6),
    "max_timestamp": (_rendering.TIME, ~6),
    "delete_horizon_ms": (_rendering.OPTIONAL, ~7),
    "delete_horizon": (_rendering.TIME, ~7),
    "base_sequence": (_rendering.OPTIONAL, ~8),
    "last_sequence": (_rendering.OPTIONAL, ~9),
    "crc": (_rendering.NUMBER, ~10),
}
"""What differs from batch to batch: the columns of `batch_numbers`."""
RECORD: Cells = {
    "batch_position": (_rendering.NUMBER, ~0),
    "offset": (_rendering.NUMBER, 11),
    "timestamp_ms": (_rendering.OPTIONAL, 12),
    "timestamp": (_rendering.TIME, 12),
    "sequence": (_rendering.OPTIONAL, 13),
    "key": (_rendering.VALUE, 5),
    "value": (_rendering.VALUE, 7),
    "headers": (_rendering.HEADERS, 9),
}
"""Columns of `RecordTable.columns`, whose values differ per record, and one of the batch."""
KAFKA_BATCH: Cells = {name: (_rendering.NUMBER, column) for name, (_, column) in BATCH.items()}
"""Columns of Kafka's lines of batches, which show -1 for what there is not."""
KAFKA_RECORD: Cells = {
    "offset": (_rendering.NUMBER, 11),
    "timestamp_ms": (_rendering.NUMBER, 12),
    "key_size": (_rendering.NUMBER, 6),
    "value_size": (_rendering.NUMBER, 8),
    "sequence": (_rendering.NUMBER, 13),
    "headers": (_rendering.HEADERS, 9),
    "key": (_rendering.VALUE, 5),
    "value": (_rendering.VALUE, 7),
}
"""The same of records."""
DELIMITED_RECORD: Cells = RECORD | {"headers": (_rendering.TEXT, 14)}
"""The same where headers are a cell of text, of `header_cells`."""


def batch_numbers(table: BatchTable) -> Column:
    """Return a row of numbers for each batch."""
    horizon = table.has_delete_horizon
    return np.column_stack([
        table.position,
        table.size,
        table.base_offset,
        table.last_offset,
        table.record_count,
        np.where(horizon, -1, table.base_timestamp),
        table.max_timestamp,
        np.where(horizon, table.base_timestamp, -1),
        table.base_sequence,
        table.last_sequence,
        table.crc,
    ])  # fmt: skip


def header_cells(records: RecordTable, values: Values, delimiter: str) -> tuple[bytes, Column]:
    """Return the headers as cells of CSV or TSV, and where that of each record begins and ends."""
    spans = records.spans
    some = np.flatnonzero(spans.header_count)
    cells = [cell(text.cell([]), delimiter).encode()]
    for row in some.tolist():
        at, count = int(spans.header_position[row]), int(spans.header_count[row])
        shown = show_headers(record.parse_headers(records.data, at, count), values)
        cells.append(cell(text.cell(shown), delimiter).encode())
    ends = np.cumsum([len(content) for content in cells])
    which = np.zeros(len(spans), np.int64)
    which[some] = np.arange(1, len(cells))
    starts = ends - [len(content) for content in cells]
    return b"".join(cells), np.column_stack([starts[which], ends[which]])


def cell(value: str, delimiter: str) -> str:
    """Return a value as a cell: nothing in it ends a row, and CSV quotes as `csv` does."""
    escaped = text.escape(value.replace("\\", "\\\\"))
    if delimiter == "," and ("," in escaped or '"' in escaped):
        return '"' + escaped.replace('"', '""') + '"'
    return escaped
