"""The tables of the pipeline as Arrow has them: their columns are those of `logtool.schemas`."""

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from logtool.schemas import tables
from logtool.schemas.columns import Column, Kind, Payload, Way
from logtool.schemas.documents import described
from logtool.schemas.tables import VERSION
from logtool.times import FIRST_TIME, LAST_TIME

__all__ = ["DEFAULT", "NAMES", "PAYLOAD_OF", "TIME", "VERSION", "VERSION_KEY", "Payload", "schema",
           "with_timestamps"]  # fmt: skip

VERSION_KEY: Final = b"logtool.tables"
TIME: Final = pa.timestamp("ms", "UTC")
NAMES: Final = tuple(name for name, table in tables.ALL.items() if Way.SCAN in table.ways)
"""Tables that `scan` writes."""
DEFAULT: Final = tuple(name for name in NAMES if name != "records")
"""Tables that `scan` writes by default."""
PAYLOAD_OF: Final[Mapping[str, Payload]] = {
    column.name: column.payload
    for column in tables.ALL["records"].columns
    if column.payload is not Payload.NONE
}
"""The payload that a column of ``records`` needs. With less the column does not exist: if it did,
null would mean two things."""
_HEADER: Final = [("key", pa.binary()), ("value", pa.binary())]
_KINDS: Final[Mapping[Kind, Any]] = {
    Kind.STRING: pa.string(),
    Kind.BOOL: pa.bool_(),
    Kind.INT8: pa.int8(),
    Kind.INT16: pa.int16(),
    Kind.INT32: pa.int32(),
    Kind.INT64: pa.int64(),
    Kind.UINT32: pa.uint32(),
    Kind.TIMESTAMP: TIME,
    Kind.BINARY: pa.binary(),
    Kind.HEADERS: pa.list_(pa.struct(_HEADER)),
    Kind.KAFKA_HEADERS: pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    Kind.OBJECT: pa.string(),
    Kind.NUMBERS: pa.list_(pa.int64()),
}


def schema(table: str, payload: Payload = Payload.FULL, way: Way | None = None) -> Any:
    """Return the Arrow schema of a table; each field's metadata has its ``description``.

    `way` is how the rows leave, by default as a table of `scan` or of the data source. With less
    than the full `payload` it lacks the columns that need more.
    """
    known = tables.ALL[table]
    chosen = known.by(way or (Way.SCAN if Way.SCAN in known.ways else Way.SOURCE), payload)
    metadata = {VERSION_KEY: f"{table}/{VERSION}".encode()}
    return pa.schema([_field(column) for column in chosen], metadata=metadata)


def with_timestamps(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row and a timestamp for each ``*_ms``, for `pyarrow.RecordBatch.from_pylist`."""
    stamps = {
        name.removesuffix("_ms"): value
        if value is not None and FIRST_TIME <= value <= LAST_TIME
        else None
        for name, value in row.items()
        if name.endswith("_ms")
    }
    return {**row, **stamps}


def _field(column: Column) -> Any:
    return pa.field(column.name, _KINDS[column.kind], metadata={"description": described(column)})
