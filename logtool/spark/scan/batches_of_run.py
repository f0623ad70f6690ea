"""Batches read from the files that a pass has written, to compare copies whose digests differ."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from logtool.formats.offset_index import MAX_RELATIVE_OFFSET
from logtool.formats.record_batch import MAGIC, Column
from logtool.spark.questions.digests import SPAN_BITS
from logtool.spark.questions.replicas import ComparedColumns
from logtool.spark.scan.store import filesystem

_KEPT: Final = (
    "last_offset", "leader_epoch", "magic", "producer_id", "producer_epoch", "base_sequence",
    "timestamp_type", "transactional", "control",
)  # fmt: skip
"""Columns of a batch that compaction leaves as they are; see `logtool.copies.compare`."""
_CONTENT: Final = ("crc", "size")
_READ: Final = sorted({
    "segment", "base_offset", "record_count", "delete_horizon_ms", *_KEPT, *_CONTENT,
})  # fmt: skip
_MIX, _SHIFT = np.uint64(0xD6E8FEB86659FD93), np.uint64(32)


def look(files: Sequence[str], key: tuple[str, str], ranges: Column) -> ComparedColumns:
    """Return the batches of a partition dir that begin in ranges of offsets.

    Batches with offsets that their segment cannot hold are left out: they are not compared.
    """
    low, end = int(ranges.min()) << SPAN_BITS, (int(ranges.max()) + 1) << SPAN_BITS
    chosen = (
        (pc.field("log_dir") == key[0])
        & (pc.field("directory") == key[1])
        & (pc.field("base_offset") >= low)
        & (pc.field("base_offset") < end)
    )
    parts = [_read(url, chosen, ranges) for url in files]
    return ComparedColumns(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _read(url: str, chosen: Any, ranges: Column) -> ComparedColumns:
    system, path = filesystem(url)
    rows = parquet.read_table(
        path, columns=_READ, filters=chosen, filesystem=system, partitioning=None
    )
    found = {name: _numbers(rows.column(name)) for name in _READ}
    base, segment, magic = found["base_offset"], found["segment"], found["magic"]
    misplaced = (base < segment) & (magic >= MAGIC)
    misplaced |= found["last_offset"] - segment > MAX_RELATIVE_OFFSET
    wanted = np.isin(base >> SPAN_BITS, ranges) & ~misplaced
    cleaned = (found["delete_horizon_ms"] != -1).astype(np.int64)
    kept, content = (_digest([found[name] for name in names]) for names in (_KEPT, _CONTENT))
    columns = (base, found["last_offset"], magic, found["record_count"], kept, content, cleaned)
    return ComparedColumns(*(column[wanted] for column in columns))


def _numbers(column: Any) -> Column:
    """Return a column as int64, -1 for null; a string is 1 if it begins with Log, else 0."""
    if pa.types.is_string(column.type):
        column = pc.starts_with(column, "Log")
    numbers: Column = pc.fill_null(column.cast(pa.int64()), -1).to_numpy()
    return numbers


def _digest(columns: Sequence[Column]) -> Column:
    """Return a digest of each row as int64; different rows have the same once in 2**64."""
    found = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        found = (found ^ column.view(np.uint64)) * _MIX
        found ^= found >> _SHIFT
    digests: Column = found.view(np.int64)
    return digests
