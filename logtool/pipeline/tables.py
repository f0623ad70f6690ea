"""The tables of the pipeline: names, columns, types, units, and the version of it all.

A column never changes its meaning; one that is added raises `VERSION`. Offsets are Kafka's,
positions are bytes in a file, times are milliseconds since 1970, null is "none".
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import pyarrow as pa

VERSION: Final = 2
"""Of all tables together; stands in the metadata of every file and in the record of each run."""
VERSION_KEY: Final = b"logtool.tables"


class Payload(StrEnum):
    """How much of keys and values the rows of records tell; each tells also what is before it."""

    NONE = "none"
    LENGTH = "length"
    HASH = "hash"
    FULL = "full"

    def tells(self, other: "Payload") -> bool:
        """Return whether what `other` asks for is told."""
        levels = list(Payload)
        return levels.index(self) >= levels.index(other)


PAYLOAD_OF: Final[Mapping[str, Payload]] = {
    "key_length": Payload.LENGTH, "value_length": Payload.LENGTH, "key_hash": Payload.HASH,
    "value_hash": Payload.HASH, "key": Payload.FULL, "value": Payload.FULL,
}  # fmt: skip
"""Columns of ``records`` that are only there with so much of keys and values: else null would mean
two things."""

_Column = tuple[str, Any, str]

_DIR: tuple[_Column, ...] = (
    (
        "log_dir",
        pa.string(),
        "the log dir as it was given, absolute, or what holds the partition dir",
    ),
    ("node_id", pa.int32(), "node id or broker id of its meta.properties"),
    ("topic", pa.string(), "null where the directory's name tells none"),
    ("partition", pa.int32(), "partition number"),
    ("directory", pa.string(), "name of the partition dir: tells -future, -delete, -stray"),
)
_SEGMENT: tuple[_Column, ...] = (
    *_DIR, ("segment", pa.int64(), "base offset of the segment"),
)  # fmt: skip
_PRODUCER: tuple[_Column, ...] = (
    ("producer_id", pa.int64(), "null: none"),
    ("producer_epoch", pa.int16(), "null: none"),
)

_TABLES: Final[Mapping[str, tuple[_Column, ...]]] = {
    "segments": (
        *_SEGMENT,
        ("next_segment", pa.int64(), "base offset of the segment behind; null: the active one"),
        ("log_bytes", pa.int64(), "size of the .log as it was listed, bytes"),
        ("offset_index_bytes", pa.int64(), "null: there is none"),
        ("time_index_bytes", pa.int64(), "null: there is none"),
        ("transaction_index_bytes", pa.int64(), "null: there is none"),
        ("modified_ms", pa.int64(), "mtime of the .log"),
        ("read", pa.bool_(), "whether the .log was read from start to end"),
        ("batches", pa.int64(), "sound batches"),
        ("records", pa.int64(), "records in sound batches"),
        ("transactional_batches", pa.int64(), ""),
        ("control_batches", pa.int64(), ""),
        ("first_offset", pa.int64(), "base offset of the first sound batch"),
        ("last_offset", pa.int64(), "largest offset"),
        ("first_timestamp_ms", pa.int64(), ""),
        ("last_timestamp_ms", pa.int64(), ""),
        ("first_leader_epoch", pa.int32(), "of the first batch that has one"),
        ("last_leader_epoch", pa.int32(), "of the last batch that has one"),
        ("batch_bytes", pa.int64(), "bytes of sound batches"),
        ("largest_batch_bytes", pa.int64(), ""),
        ("damaged_ranges", pa.int64(), "ranges of bytes that are no sound batch"),
        ("damaged_bytes", pa.int64(), "bytes in them"),
        ("unused_bytes", pa.int64(), "zeros at the end of an active segment"),
    ),
    "batches": (
        *_SEGMENT,
        ("position", pa.int64(), "byte in the .log where it begins"),
        ("size", pa.int32(), "bytes of the whole entry"),
        ("base_offset", pa.int64(), "equal to last_offset for magic 0 and 1"),
        ("last_offset", pa.int64(), ""),
        ("record_count", pa.int32(), "null for magic 0 and 1, which store none"),
        ("magic", pa.int8(), ""),
        ("codec", pa.int8(), "0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd"),
        ("crc", pa.uint32(), "as stored; CRC-32C for magic 2, CRC-32 before; it is right"),
        ("leader_epoch", pa.int32(), "null: unknown"),
        ("timestamp_type", pa.int8(), "0 CreateTime, 1 LogAppendTime"),
        ("base_timestamp_ms", pa.int64(), "null: none, or a delete horizon took its place"),
        ("max_timestamp_ms", pa.int64(), "null: none"),
        ("delete_horizon_ms", pa.int64(), "null: none"),
        *_PRODUCER,
        ("base_sequence", pa.int32(), "null: none"),
        ("last_sequence", pa.int32(), "null: none; wraps behind 2147483647"),
        ("transactional", pa.bool_(), ""),
        ("control", pa.bool_(), ""),
        ("control_type", pa.int16(), "0 ABORT, 1 COMMIT, 2 LEADER_CHANGE, ...; null: no control"),
        ("coordinator_epoch", pa.int32(), "of a transaction marker; null: none"),
    ),
    "records": (
        *_SEGMENT,
        ("batch_position", pa.int64(), "byte in the .log where its batch begins"),
        ("offset", pa.int64(), ""),
        ("timestamp_ms", pa.int64(), "null: none"),
        *_PRODUCER,
        ("sequence", pa.int32(), "null: none"),
        ("transactional", pa.bool_(), ""),
        ("control", pa.bool_(), ""),
        ("header_count", pa.int32(), ""),
        ("key_length", pa.int32(), "bytes; null: a null key"),
        ("value_length", pa.int32(), "bytes; null: a null value"),
        ("key_hash", pa.uint32(), "CRC-32C of the key; null: a null key"),
        ("value_hash", pa.uint32(), "CRC-32C of the value; null: a null value"),
        ("key", pa.binary(), "null: a null key"),
        ("value", pa.binary(), "null: a null value"),
    ),
    "gaps": (
        *_DIR,
        ("first_offset", pa.int64(), "first offset that no sound batch covers"),
        ("last_offset", pa.int64(), "last one"),
        ("missing", pa.int64(), "offsets in between"),
        ("kind", pa.string(), "head, between-batches or between-segments"),
        ("reason", pa.string(), "as `logtool gaps` says"),
        ("evidence", pa.string(), "what the reason rests on"),
        ("before_segment", pa.int64(), "segment of the batch before; null: none"),
        ("after_segment", pa.int64(), "segment of the batch behind, or the last one, if empty"),
        ("damaged", pa.bool_(), "whether bytes that are no sound batch lie there"),
    ),
    "producers": (
        *_DIR,
        *_PRODUCER,
        ("first_offset", pa.int64(), "base offset of its first batch with data"),
        ("last_offset", pa.int64(), "of its last batch with data"),
        ("first_sequence", pa.int32(), "of its first batch; null: it has none"),
        ("last_sequence", pa.int32(), "of its last batch; null: it has none"),
        ("batches", pa.int64(), "with data"),
        ("records", pa.int64(), "in them"),
        ("first_timestamp_ms", pa.int64(), "base timestamp of its first batch; null: none"),
        ("last_timestamp_ms", pa.int64(), "largest of its last batch; null: none"),
        ("sequence_breaks", pa.int64(), "batches whose first sequence number is not the one behind "
                                          "the last of the batch before"),
    ),
    "transactions": (
        *_DIR,
        *_PRODUCER,
        ("first_offset", pa.int64(), "base offset of its first batch"),
        ("last_offset", pa.int64(), "of its marker; while it is open, of its last batch"),
        ("outcome", pa.string(), "committed, aborted or open"),
        ("batches", pa.int64(), "with data"),
        ("records", pa.int64(), "in them"),
        ("first_timestamp_ms", pa.int64(), "base timestamp of its first batch; null: none"),
        ("last_timestamp_ms", pa.int64(), "of the marker; while it is open, of its last batch"),
        ("coordinator_epoch", pa.int32(), "of the marker; null: it is open"),
    ),
    "findings": (
        *_DIR,
        ("segment", pa.int64(), "base offset; null: it is not about one segment"),
        ("number", pa.int64(), "rises in the order in which `logtool verify` tells them"),
        ("severity", pa.string(), "error, warning or info; unreadable: it could not be looked at"),
        ("code", pa.string(), "see `logtool explain`; null: unreadable"),
        ("broker", pa.string(), "what a broker does: always, if-unclean, never, refuses-to-start"),
        ("path", pa.string(), ""),
        ("position", pa.int64(), "byte in the file"),
        ("length", pa.int64(), "bytes affected"),
        ("first_offset", pa.int64(), ""),
        ("last_offset", pa.int64(), ""),
        ("message", pa.string(), "what was expected and what was found"),
    ),
    "replicas": (
        *_DIR,
        ("copies", pa.int32(), "log dirs of this run that hold the partition, each a row"),
        ("first_offset", pa.int64(), "of this copy; null: it is empty"),
        ("last_offset", pa.int64(), "of this copy; null: it is empty"),
        ("last_leader_epoch", pa.int32(), "of the last batch; null: it is empty"),
        ("batches", pa.int64(), "sound ones"),
        ("shared_batches", pa.int64(), "of these, how many every other copy has too, the same in "
                                       "CRC, size and all that no CRC covers"),
        ("diverges_at", pa.int64(), "least offset at which another copy has a batch that is not "
                                    "the same, nor what compaction leaves of it, or one that "
                                    "overlaps; null: nowhere"),
        ("only_here", pa.int64(), "batches at offsets where no other copy has one, inside the "
                                  "range of offsets of all copies: lost, damaged or compacted "
                                  "there"),
        ("behind", pa.int64(), "offsets that the copy with the largest log end is ahead"),
    ),
}  # fmt: skip

NAMES: Final = tuple(_TABLES)
DEFAULT: Final = tuple(name for name in NAMES if name != "records")
"""What `scan` writes when it is not told."""


def schema(table: str, payload: Payload = Payload.FULL) -> Any:
    """Return the Arrow schema of a table; each field's metadata has its ``description``.

    With less than the full `payload` it lacks the columns that this does not tell.
    """
    fields = [
        pa.field(name, kind, metadata={"description": text} if text else None)
        for name, kind, text in _TABLES[table]
        if payload.tells(PAYLOAD_OF.get(name, Payload.NONE))
    ]
    return pa.schema(fields, metadata={VERSION_KEY: f"{table}/{VERSION}".encode()})


def described() -> dict[str, list[tuple[str, str, str]]]:
    """Return name, Arrow type and description of every column of every table."""
    return {
        table: [(name, str(kind), text) for name, kind, text in columns]
        for table, columns in _TABLES.items()
    }
