"""The values of a block that differ from line to line, as columns of numbers for `rendering`."""

import numpy as np

from logtool.commands.printing import text
from logtool.dump.blocks import Block, Records
from logtool.dump.values import Values, show_headers
from logtool.formats import record
from logtool.formats.record_batch import BatchTable, Column
from logtool.formats.rendering import HEADERS, NUMBER, OPTIONAL, TIME, VALUE

Fields = dict[str, tuple[int, tuple[Column, ...]]]
"""By the names of an object, in its order: what a value is, and the numbers that it takes."""


def batch_fields(table: BatchTable) -> Fields:
    """Return what differs from batch to batch."""
    horizon = table.has_delete_horizon
    base = np.where(horizon, -1, table.base_timestamp)
    horizon = np.where(horizon, table.base_timestamp, -1)
    return {
        "position": (NUMBER, (table.position,)),
        "size": (NUMBER, (table.size,)),
        "base_offset": (NUMBER, (table.base_offset,)),
        "last_offset": (NUMBER, (table.last_offset,)),
        "record_count": (NUMBER, (table.record_count,)),
        "base_timestamp_ms": (OPTIONAL, (base,)),
        "base_timestamp": (TIME, (base,)),
        "max_timestamp_ms": (OPTIONAL, (table.max_timestamp,)),
        "max_timestamp": (TIME, (table.max_timestamp,)),
        "delete_horizon_ms": (OPTIONAL, (horizon,)),
        "delete_horizon": (TIME, (horizon,)),
        "base_sequence": (OPTIONAL, (table.base_sequence,)),
        "last_sequence": (OPTIONAL, (table.last_sequence,)),
        "crc": (NUMBER, (table.crc,)),
    }


def record_fields(block: Block, records: Records) -> Fields:
    """Return what differs from record to record."""
    table = records.table
    return {
        "batch_position": (NUMBER, (np.repeat(block.batches.position, records.counts),)),
        "offset": (NUMBER, (records.offset,)),
        "timestamp_ms": (OPTIONAL, (records.timestamp,)),
        "timestamp": (TIME, (records.timestamp,)),
        "sequence": (OPTIONAL, (records.sequence,)),
        "key": (VALUE, (table.key_position, table.key_length)),
        "value": (VALUE, (table.value_position, table.value_length)),
        "headers": (HEADERS, (table.header_position, table.header_count)),
    }


def header_cells(
    records: Records, values: Values, delimiter: str
) -> tuple[bytes, tuple[Column, Column]]:
    """Return the headers as cells of CSV or TSV, and where that of each record begins and ends."""
    table = records.table
    some = np.flatnonzero(table.header_count)
    cells = [cell(text.cell([]), delimiter).encode()]
    for row in some.tolist():
        at, count = int(table.header_position[row]), int(table.header_count[row])
        shown = show_headers(record.parse_headers(records.data, at, count), values)
        cells.append(cell(text.cell(shown), delimiter).encode())
    ends = np.cumsum([len(content) for content in cells])
    which = np.zeros(len(table), np.int64)
    which[some] = np.arange(1, len(cells))
    return b"".join(cells), ((ends - [len(content) for content in cells])[which], ends[which])


def cell(value: str, delimiter: str) -> str:
    """Return a value as a cell: nothing in it ends a row, and CSV quotes as `csv` does."""
    escaped = text.escape(value.replace("\\", "\\\\"))
    if delimiter == "," and ("," in escaped or '"' in escaped):
        return '"' + escaped.replace('"', '""') + '"'
    return escaped
