"""A dump as one Parquet file: a table of batches, or of records.

The columns are the fields of the NDJSON objects under the same names, without ``type``; null is
null there too. What differs: keys and values are ``binary``, headers ``list<struct<key: binary,
value: binary>>``, ``control`` is its JSON as a string. ``*_ms`` is milliseconds since 1970 as they
are stored, the column of that name without ``_ms`` the same as a timestamp in UTC, null where no
calendar has it. Files and damage are no rows: damage goes to stderr and makes the exit status 1.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from logtool.commands import output
from logtool.commands.writers import Object
from logtool.dump.blocks import Block, Records
from logtool.dump.log import batch_objects
from logtool.formats import record
from logtool.formats.names import PartitionDirectory, parse_directory
from logtool.formats.record_batch import Column

ROW_GROUP_ROWS = 128 * 1024
ROW_GROUP_SIZE = 64 * 1024 * 1024
"""Bytes in memory after which a row group is written, whatever its rows."""

_TIME = pa.timestamp("ms", "UTC")
_SPAN = [("timestamp_ms", pa.int64()), ("timestamp", _TIME)]
_PRODUCER = [
    ("leader_epoch", pa.int32()), ("producer_id", pa.int64()), ("producer_epoch", pa.int16()),
]  # fmt: skip
_HEADERS = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
BATCHES = pa.schema([
    ("path", pa.string()), ("position", pa.int64()), ("size", pa.int64()), ("magic", pa.int8()),
    ("base_offset", pa.int64()), ("last_offset", pa.int64()), ("record_count", pa.int32()),
    ("codec", pa.string()), ("timestamp_type", pa.string()),
    *((f"base_{name}", kind) for name, kind in _SPAN),
    *((f"max_{name}", kind) for name, kind in _SPAN),
    ("delete_horizon_ms", pa.int64()), ("delete_horizon", _TIME), *_PRODUCER,
    ("base_sequence", pa.int32()), ("last_sequence", pa.int32()), ("transactional", pa.bool_()),
    ("control", pa.bool_()), ("attributes", pa.int16()), ("crc", pa.uint32()),
    ("crc_valid", pa.bool_()),
])  # fmt: skip
RECORDS = pa.schema([
    ("path", pa.string()), ("batch_position", pa.int64()), ("offset", pa.int64()),
    ("timestamp_type", pa.string()), *_SPAN, *_PRODUCER, ("transactional", pa.bool_()),
    ("sequence", pa.int32()), ("crc", pa.uint32()), ("control", pa.string()),
    ("control_error", pa.string()), ("key", pa.binary()), ("value", pa.binary()),
    ("headers", _HEADERS),
])  # fmt: skip


def refusal(target: Path, paths: Sequence[Path]) -> str | None:
    """Return why `target` must not be written, or None."""
    if os.path.lexists(target):
        return f"{target} exists"
    for folder in target.absolute().resolve().parents:
        for path in paths:
            place = path.absolute().resolve()
            if place == folder or (folder in place.parents and _is_home(folder, place)):
                return f"{target} lies in {folder}, which is dumped"
    return None


def _is_home(folder: Path, place: Path) -> bool:
    """Return whether `folder` above `place` is a log dir, or the partition dir of that file."""
    if (folder / "meta.properties").exists():
        return True
    named = isinstance(parse_directory(folder.name), PartitionDirectory)
    return named and place.parent == folder and place.is_file()


class ParquetFile:
    """Takes objects and blocks; writes beside the target and renames at the end."""

    def __init__(self, target: Path, *, records: bool) -> None:
        self._target = target
        self._kind = "record" if records else "batch"
        self._schema = RECORDS if records else BATCHES
        self._rows: list[dict[str, Any]] = []
        self._ready: list[pa.RecordBatch] = []

    @contextlib.contextmanager
    def open(self) -> Iterator["ParquetFile"]:
        """Write what is given meanwhile, and OutputError; on any exception nothing is left."""
        try:
            with self._written():
                yield self
        except OSError as error:
            raise output.OutputError(f"cannot write {self._target}: {error.strerror}") from error

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        name = self._target.with_name(f".{self._target.name}.{os.getpid()}.part")
        file = name.open("xb")
        try:
            with file, parquet.ParquetWriter(file, self._schema, compression="zstd") as writer:
                self._writer = writer
                yield
                self._flush()
                writer.close()
                file.flush()
                os.fsync(file.fileno())
            # A link does not replace what another has made there meanwhile.
            os.link(name, self._target)
        finally:
            name.unlink()
        folder = os.open(self._target.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def item(self, obj: Object) -> None:
        """Take an object: only batches, or records, are rows; damage is told on stderr."""
        if obj["type"] == "error":
            output.error(output.describe_error(obj))
        elif obj["type"] == self._kind:
            self._rows.append(_row(obj))
            if len(self._rows) >= 4096:
                self._take_rows()

    def block(self, block: Block) -> Iterable[memoryview]:
        """Take a block; there is nothing to print."""
        self._take_rows()
        if block.records:
            self._add(_record_columns(block, block.records))
        else:
            rows = [_row(obj) for obj in batch_objects(block.path, block.batches)]
            self._add(pa.RecordBatch.from_pylist(rows, self._schema))
        return ()

    def _take_rows(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._add(pa.RecordBatch.from_pylist(rows, self._schema))

    def _add(self, batch: Any) -> None:
        self._ready.append(batch)
        if (
            sum(some.num_rows for some in self._ready) >= ROW_GROUP_ROWS
            or sum(some.nbytes for some in self._ready) >= ROW_GROUP_SIZE
        ):
            self._flush()

    def _flush(self) -> None:
        self._take_rows()
        if self._ready:
            ready, self._ready = self._ready, []
            self._writer.write_table(pa.Table.from_batches(ready, self._schema))


def _row(obj: Object) -> dict[str, Any]:
    row = dict(obj)
    for name in obj:
        if name.endswith("_ms"):
            time = name.removesuffix("_ms")
            row[time] = None if obj[time] is None else obj[name]
    if obj["type"] == "record":
        row["control"] = None if obj["control"] is None else json.dumps(obj["control"])
        row["headers"] = [{"key": key, "value": value} for key, value in obj["headers"]]
    return row


def _record_columns(block: Block, records: Records) -> Any:
    """Return the records of a block as columns; the same as `_row` of each."""
    table, count = records.table, len(records.table)

    def of_batch(column: Column) -> Column:
        return np.repeat(column, records.counts)

    def nullable(column: Column, kind: Any) -> Any:
        return pa.array(column, mask=column == -1).cast(kind)

    nothing = {name: pa.nulls(count, RECORDS.field(name).type)
               for name in ("crc", "control", "control_error")}  # fmt: skip
    names = np.where(block.batches.is_log_append_time, "LogAppendTime", "CreateTime").astype(object)
    columns = nothing | {
        "path": pa.repeat(str(block.path), count),
        "batch_position": pa.array(of_batch(block.batches.position)),
        "offset": pa.array(records.offset),
        "timestamp_type": pa.array(of_batch(names), pa.string()),
        "timestamp_ms": nullable(records.timestamp, pa.int64()),
        "timestamp": nullable(records.timestamp, _TIME),
        "transactional": pa.array(of_batch(block.batches.is_transactional)),
        "sequence": nullable(records.sequence, pa.int32()),
        "key": _binary(records.data, table.key_position, table.key_length),
        "value": _binary(records.data, table.value_position, table.value_length),
        "headers": _headers(records),
    }
    for name, kind in _PRODUCER:
        columns[name] = nullable(of_batch(getattr(block.batches, name)), kind)
    return pa.RecordBatch.from_arrays([columns[name] for name in RECORDS.names], schema=RECORDS)


def _binary(data: memoryview, at: Column, size: Column) -> Any:
    content = bytes(data)
    return pa.array(
        [content[first : first + count] if count >= 0 else None
         for first, count in zip(at.tolist(), size.tolist(), strict=True)], pa.binary(),
    )  # fmt: skip


def _headers(records: Records) -> Any:
    table = records.table
    return pa.array(
        [
            [{"key": key, "value": value}
             for key, value in record.parse_headers(records.data, at, count)] if count else []
            for at, count in zip(
                table.header_position.tolist(), table.header_count.tolist(), strict=True
            )
        ], _HEADERS,
    )  # fmt: skip
