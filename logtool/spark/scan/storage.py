"""The Parquet files of tables, which tasks write under their final names.

Each file has a random name, so that a task that is repeated, or runs twice at once, disturbs
nothing. Only files that a finished task reported to the driver come into the manifest of the run.
"""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from logtool.lazy_dataclass import dataclass
from logtool.schemas import arrow, parquet_options
from logtool.schemas.arrow import Payload
from logtool.spark.scan import manifest
from logtool.spark.scan.manifest import TableFile
from logtool.spark.scan.store import store_at, translated

ROW_GROUP_ROWS = 256 * 1024
ROW_GROUP_BYTES = 64 * 1024 * 1024
"""Limits of a row group, in rows and in bytes of memory; either one ends it."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The place of a run under way; the object is sent to executors."""

    output: str
    run_id: str
    token: str
    """Token of its owner."""
    payload: Payload = Payload.FULL
    """The parts of keys and values in the table of records."""
    unsynced: list[str] | None = None
    """List for the names of files that are made durable later; None: each is made so at once."""

    @property
    def path(self) -> str:
        """Return the directory of its files below the output."""
        return manifest.data_of(self.run_id, self.token)

    @contextlib.contextmanager
    def writer(self, table: str, schema: Any = None) -> Iterator["ParquetWriter"]:
        """Yield the writer of one part of a table; UnwritableError on failure.

        No file is made without a row.
        """
        writer = ParquetWriter(self, table, schema or arrow.schema(table, self.payload))
        yield writer
        writer.close()


class ParquetWriter:
    """One Parquet file under way; `parts` has it once it is closed."""

    def __init__(self, staging: Staging, table: str, schema: Any) -> None:
        self.parts: list[TableFile] = []
        self.table = table
        self._staging = staging
        self._schema = schema
        self.path = f"{staging.path}/{table}/part-{uuid.uuid4().hex}.parquet"
        """Path below the output."""
        self._ready: list[Any] = []
        self._rows = self._bytes = self._written = 0
        self._file: Any = None
        self._writer: Any = None

    @property
    def target(self) -> str:
        """Return the full path or URL of the file."""
        return f"{self._staging.output}/{self.path}"

    def write(self, rows: Any) -> None:
        """Take a record batch of the table's schema."""
        if not rows.num_rows:
            return
        self._ready.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            with translated(self.target):
                self._flush()

    def close(self, *, also_empty: bool = False) -> None:
        """Close the file; without rows no file is made, unless `also_empty` is set."""
        with translated(self.target):
            if also_empty or self._rows:
                self._flush()
            if not self._writer:
                return
            self._writer.close()
            size = self._file.tell()
            self._file.close()
            if self._staging.unsynced is None:
                store_at(self._staging.output).sync(self.path)
            else:
                self._staging.unsynced.append(self.path)
        self._writer = None
        self.parts.append(
            TableFile(table=self.table, path=self.path, rows=self._written, size=size)
        )

    def _flush(self) -> None:
        self._open()
        self._writer.write_table(pa.Table.from_batches(self._ready, self._schema))
        self._written += self._rows
        self._ready, self._rows, self._bytes = [], 0, 0

    def _open(self) -> None:
        if not self._writer:
            # The directory of a run that was given up is gone, and a task that still runs must not
            # make it again. An object store has no directories.
            self._file = store_at(self._staging.output).stream(self.path)
            self._writer = self._format()

    def _format(self) -> Any:
        options = parquet_options.options(self._schema.names)
        return parquet.ParquetWriter(self._file, self._schema, **options)
