"""The encodings of the columns of tables in Parquet files."""

from collections.abc import Sequence
from typing import Any

_ROWS_AT_ONCE = 16 * 1024
"""Rows that one call of an encoder takes: with the default, 1024, a file takes an eighth more
time."""
_RISING = frozenset({
    "position", "batch_position", "base_offset", "last_offset", "offset", "first_offset",
    "base_timestamp_ms", "base_timestamp", "max_timestamp_ms", "max_timestamp", "timestamp_ms",
    "timestamp", "base_sequence", "last_sequence",
    "sequence",
})  # fmt: skip
"""Columns whose differences are small: half the time and a seventh of the size of dictionaries."""
_TEXTS = frozenset({
    "key", "value", "message", "evidence", "headers.list.element.key", "headers.list.element.value",
})  # fmt: skip
"""Columns of bytes and long texts, nearly all of a file: half the size is worth the time. Other
columns are small once they are encoded, and a compressor takes longer to start on them than to run.
"""
_RANDOM = frozenset({
    "crc", "key_hash", "value_hash", "key", "value", "message", "evidence",
    "headers.list.element.value",
})  # fmt: skip
"""Columns in which hardly any value comes twice."""
_LEAVES = {"headers": ("headers.list.element.key", "headers.list.element.value")}
"""Columns that are stored as several."""
_ASKED_FOR = frozenset({
    "log_dir", "node_id", "topic", "partition", "directory", "segment", "base_offset",
    "first_offset", "last_offset", "offset", "timestamp_ms", "timestamp", "max_timestamp_ms",
    "max_timestamp", "last_timestamp_ms", "last_timestamp", "producer_id", "severity", "code",
})  # fmt: skip
"""Columns by which readers skip parts of files: statistics with their least and largest values are
written."""


def options(columns: Sequence[str]) -> dict[str, Any]:
    """Return the options of a `pyarrow.parquet.ParquetWriter` for columns of these names."""
    names = {leaf for column in columns for leaf in _LEAVES.get(column, (column,))}
    compression = {name: "zstd" if name in _TEXTS else "snappy" for name in names}
    return {
        "compression": compression | dict.fromkeys(names & {"crc"}, "none"),
        "compression_level": dict.fromkeys(sorted(names & _TEXTS), 1) or None,
        "use_dictionary": sorted(names - _RISING - _RANDOM),
        "column_encoding": dict.fromkeys(sorted(names & _RISING), "DELTA_BINARY_PACKED"),
        "write_statistics": sorted(names & _ASKED_FOR),
        "write_batch_size": _ROWS_AT_ONCE,
    }
