"""A dump as one Parquet file: a table of batches, or of records.

The columns are those of `logtool.schemas`, made of blocks by the code that makes those of the
pipeline. Files and damage are no rows: damage goes to stderr and makes the exit status 1.
"""

import base64
import contextlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from logtool.apply import unfinished
from logtool.commands import output
from logtool.commands.printing.writers import Object
from logtool.dump.blocks import Block, Origin
from logtool.errors import RefusedError, UnwritableError
from logtool.formats.names import PartitionDirectory, parse_directory
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import BatchTable, Column
from logtool.log import arrow_columns
from logtool.log.arrow_rows import RECORD_COLUMNS, batch_columns, constant, whole
from logtool.log.record_table import RecordTable
from logtool.schemas import arrow, parquet_options
from logtool.schemas.columns import Way

ROW_GROUP_ROWS = 64 * 1024
ROW_GROUP_SIZE = 8 * 1024 * 1024
"""Bytes of records, or of rows in memory, after which a row group is written.
Memory is some times that, and 90 MB that Python and Arrow take."""
_OF_FILES: Final = ("path", "topic", "partition", "segment")
_NOTHING: Final = ("control_type", "control_record", "control_error", "crc")
"""Columns that are null for every record of a block."""
_CONTENT: Final = ("key", "value", "headers")
_HEADER_SIZE: Final = 64
"""Bytes that a header takes besides while it is encoded: its levels, and where it begins."""
_SIZES: Final = ("key_length", "value_length", "header_count")
_TIMES: Final = ("CreateTime", "LogAppendTime")

BATCHES = arrow.schema("batches", way=Way.PARQUET)
RECORDS = arrow.schema("records", way=Way.PARQUET)


def refusal(target: Path, paths: Sequence[Path]) -> str | None:
    """Return why `target` must not be written, or None."""
    if os.path.lexists(target):
        return f"{target} exists"
    for folder in target.absolute().resolve().parents:
        for path in paths:
            place = path.absolute().resolve()
            if place == folder or (folder in place.parents and _is_home(folder, place)):
                return f"{target} lies in {folder}, which this command dumps"
    return None


def _is_home(folder: Path, place: Path) -> bool:
    """Return whether `folder` above `place` is a log dir, or the partition dir of that file."""
    if (folder / "meta.properties").exists():
        return True
    named = isinstance(parse_directory(folder.name), PartitionDirectory)
    return named and place.parent == folder and place.is_file()


def packed(schema: Any) -> Any:
    """Return the schema with text as numbers of words, which an encoder need not look up again."""
    word = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [field.with_type(word) if pa.types.is_string(field.type) else field for field in schema]
    )


class RowGroup:
    """Takes blocks, and makes a table of their records, for one row group.

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


class ParquetFile:
    """Takes objects and blocks; writes next to the target and renames at the end."""

    def __init__(self, target: Path, *, records: bool) -> None:
        self._target = target
        self._kind = "record" if records else "batch"
        self._read_as = RECORDS if records else BATCHES
        self._schema = packed(RECORDS) if records else BATCHES
        self._rows: list[dict[str, Any]] = []
        self._rows_bytes = 0
        self._group = RowGroup(self._schema) if records else None
        self._ready: list[pa.Table] = []
        self._ready_rows = self._ready_bytes = 0

    @contextlib.contextmanager
    def open(self) -> Iterator["ParquetFile"]:
        """Open the file for rows, and complete it at the end; after an exception no file is left.

        OutputError if the file cannot be written.
        """
        try:
            with self._written():
                yield self
        except OSError as error:
            raise output.OutputError(f"cannot write {self._target}: {error.strerror}") from error
        except (UnwritableError, RefusedError) as error:
            raise output.OutputError(f"cannot write the output: {error}") from error

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        # Arrow's own keeps what is given back, a tenth of the process and more.
        pa.set_memory_pool(pa.system_memory_pool())
        _keep_freed_memory()
        with unfinished.new_file(self._target) as file, self._format(file) as writer:
            self._writer = writer
            yield
            self._flush()
            writer.add_key_value_metadata(_metadata(self._read_as))
            writer.close()

    def _format(self, file: BinaryIO) -> Any:
        options = parquet_options.options(self._schema.names)
        return parquet.ParquetWriter(file, self._schema, store_schema=False, **options)

    def item(self, obj: Object) -> None:
        """Take an object: only batches, or records, are rows; damage goes to stderr."""
        if obj["type"] == "error":
            output.error(output.describe_error(obj))
        elif obj["type"] == self._kind:
            self._rows.append(_row(obj))
            self._rows_bytes += sum(len(obj.get(name) or b"") for name in ("key", "value"))
            if len(self._rows) >= 4096 or self._rows_bytes >= ROW_GROUP_SIZE:
                self._take_rows()

    def block(self, block: Block) -> Iterable[memoryview]:
        """Take a block; there is nothing to print."""
        self._take_rows()
        if self._group and block.records:
            self._group.add(block, block.records)
        else:
            self._take_batches(block)
        self._flush_when_full()
        return ()

    def _take_batches(self, block: Block) -> None:
        origin = block.origin
        common = {
            "path": str(origin.path),
            "topic": origin.topic,
            "partition": origin.partition,
            "segment": origin.segment,
            "crc_valid": True,
        }
        rows = batch_columns(common, block.batches, self._schema)
        self._add(pa.Table.from_batches([rows]), rows.nbytes)

    def _take_rows(self) -> None:
        if self._rows:
            rows, self._rows, self._rows_bytes = self._rows, [], 0
            self._take_group()
            columns = [
                arrow_columns.objects([row.get(field.name) for row in rows], field.type)
                for field in self._schema
            ]
            made = pa.Table.from_arrays(columns, schema=self._schema)
            self._add(made, made.nbytes)
            self._flush_when_full()

    def _take_group(self) -> None:
        if self._group and self._group.rows:
            size = self._group.size
            self._add(self._group.take(), size)

    def _add(self, rows: Any, size: int) -> None:
        self._ready.append(rows)
        self._ready_rows += rows.num_rows
        self._ready_bytes += size

    def _flush_when_full(self) -> None:
        rows, size = self._ready_rows, self._ready_bytes
        if self._group:
            rows, size = rows + self._group.rows, size + self._group.size
        if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_SIZE:
            self._flush()

    def _flush(self) -> None:
        self._take_rows()
        self._take_group()
        if self._ready:
            ready, self._ready = self._ready, []
            self._ready_rows = self._ready_bytes = 0
            # The encoder takes indices as they are where there is one list of words.
            self._writer.write_table(pa.concat_tables(ready).unify_dictionaries())


def _keep_freed_memory() -> None:
    """Have the allocator keep what a row group gives back, for the next one.

    The one of glibc gives large pieces back to the system at once, and each of their pages comes
    back at its first use, zeroed. It keeps pieces up to the size of the largest that was ever given
    back, if that was no more than 32 MiB (mallopt(3), M_MMAP_THRESHOLD). This one is never touched,
    and so takes no memory.
    """
    np.empty(31 * 1024 * 1024, np.uint8)


def _metadata(schema: Any) -> dict[str, str]:
    """Return the metadata of a file; Arrow reads columns of words as text, not as dictionaries."""
    found = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    return found | {"ARROW:schema": base64.b64encode(schema.serialize()).decode()}


def _row(obj: Object) -> dict[str, Any]:
    row = arrow.with_timestamps(obj)
    if obj["type"] == "record":
        control = obj["control_record"]
        row["control_record"] = None if control is None else json.dumps(control)
        for name in ("key", "value"):
            row[f"{name}_size"] = None if obj[name] is None else len(obj[name])
        row["header_count"] = len(obj["headers"])
        row["headers"] = [{"key": key, "value": value} for key, value in obj["headers"]]
    return row


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
