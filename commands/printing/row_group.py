"""Records of many blocks on their way into one row group of a Parquet file."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from logtool.dump.blocks import Block, Origin
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import BatchTable, Column
from logtool.log import arrow_columns
from logtool.log.arrow_rows import RECORD_COLUMNS, constant, whole
from logtool.log.records import RecordTable

_OF_FILES: Final = ("path", "topic", "partition", "segment")
_NOTHING: Final = ("control_type", "control_record", "control_error", "crc")
"""Columns that are null for every record of a block."""
_CONTENT: Final = ("key", "value", "headers")
_HEADER_SIZE: Final = 64
"""Bytes that a header takes besides while it is encoded: its levels, and where it begins."""
_SIZES: Final = ("key_length", "value_length", "header_count")
_TIMES: Final = ("CreateTime", "LogAppendTime")


def packed(schema: Any) -> Any:
    """Return the schema with text as numbers of words, which an encoder need not look up again."""
    word = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [field.with_type(word) if pa.types.is_string(field.type) else field for field in schema]
    )


class RowGroup:
    """Takes blocks, and makes a table of their records.

    Keys, values and headers become columns block by block, as their bytes are soon gone. All else
    is only gathered, and becomes columns for all blocks at once.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        apart = {*_OF_FILES, *_NOTHING, *_CONTENT, "timestamp_type"}
        self._plain = [name for name in schema.names if name not in apart]
        self._clear()

    def _clear(self) -> None:
        self.rows = self.size = 0
        self._origins: list[Origin] = []
        self._batches: list[BatchTable] = []
        self._counts: list[Column] = []
        """Records of each batch, block by block."""
        self._numbers: dict[str, list[Column]] = defaultdict(list)
        self._content: dict[str, list[Any]] = {name: [] for name in _CONTENT}

    def add(self, block: Block, records: RecordTable) -> None:
        """Take a block that has these records; `size` grows by the bytes that they take."""
        spans = records.spans
        self.rows += len(spans)
        self.size += int(spans.size.sum()) + _HEADER_SIZE * int(spans.header_count.sum())
        self._origins.append(block.origin)
        self._batches.append(block.batches)
        self._counts.append(records.counts)
        for name in ("offset", "timestamp", "sequence"):
            self._numbers[name].append(getattr(records, name))
        for name in _SIZES:
            self._numbers[name].append(getattr(spans, name).copy())
        some = whole(records)
        for name, parts in self._content.items():
            parts.append(RECORD_COLUMNS[name](some))

    def take(self) -> Any:
        """Return a table of all that it took, and forget it."""
        batches, counts = _joined(self._batches), np.concatenate(self._counts)
        some = whole(self._records(batches, counts))
        columns = {name: RECORD_COLUMNS[name](some) for name in self._plain}
        columns |= self._of_files()
        stamped = some.of_batch(batches.is_log_append_time.astype(np.int32))
        columns["timestamp_type"] = arrow_columns.numbered(stamped, _TIMES)
        for name in _NOTHING:
            columns[name] = constant(None, self._schema.field(name).type, self.rows)
        for name, parts in self._content.items():
            columns[name] = pa.chunked_array(parts, self._schema.field(name).type)
        self._clear()
        chosen = [columns[name] for name in self._schema.names]
        return pa.Table.from_arrays(chosen, schema=self._schema)

    def _records(self, batches: BatchTable, counts: Column) -> RecordTable:
        """Return the numbers of all records; where they stand in bytes that are gone is no more."""
        gone = np.empty(0, np.int64)
        known = {name: np.concatenate(parts) for name, parts in self._numbers.items()}
        sizes = {field.name: known.pop(field.name, gone) for field in fields(RecordSpans)}
        return RecordTable(memoryview(b""), batches, counts, RecordSpans(**sizes), **known)

    def _of_files(self) -> dict[str, Any]:
        counts = [int(counts.sum()) for counts in self._counts]
        found = {}
        for name in _OF_FILES:
            values = [getattr(origin, name) for origin in self._origins]
            kind = self._schema.field(name).type
            found[name] = _repeated(
                [str(one) if isinstance(one, Path) else one for one in values], counts, kind
            )
        return found


def _repeated(values: Sequence[Any], counts: Sequence[int], kind: Any) -> Any:
    """Return each of the values so many times as `counts` says."""
    if pa.types.is_dictionary(kind):
        codes, texts = arrow_columns.codes(values)
        return arrow_columns.numbered(np.repeat(codes, counts), texts)
    if len(set(values)) == 1:
        return constant(values[0], kind, sum(counts))
    missing = np.repeat([value is None for value in values], counts)
    return arrow_columns.numbers(
        np.repeat([value or 0 for value in values], counts), str(kind), missing
    )


def _joined(parts: Sequence[BatchTable]) -> BatchTable:
    names = [field.name for field in fields(BatchTable)]
    return BatchTable(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
