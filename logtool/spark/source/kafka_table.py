"""The table ``kafka`` of the data source: what ``spark.read.format("kafka")`` would read.

It has exactly the columns and types of Spark's own source, and its values: no headers are null, and
a record without a time has that of one millisecond before 1970.

A consumer is not given all records on the disk. This table has the records that a consumer is given
with ``read_uncommitted``, which is Spark's default:

- control records (the markers of transactions, and those of KRaft) never come; records of aborted
  transactions do, and those of open ones
- only live directories of partitions count (no ``-future``, ``-delete``, ``-stray``), and not the
  metadata log ``__cluster_metadata``, which no consumer reads; the table ``records`` has it
- records below the log start in the log dir's ``log-start-offset-checkpoint`` are left out

One difference cannot be seen on the disk: a broker gives consumers no records from the high
watermark on. This table takes the end of the log for the high watermark, so the last records of a
replicated log may be in it before any consumer was given them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from logtool.disk import files
from logtool.errors import UnreadableError, UsageError
from logtool.formats import names, offset_checkpoint, record
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory
from logtool.formats.record_batch import BatchTable
from logtool.log.arrow_rows import RECORD_COLUMNS, PartitionIdentity, Recipe, Slice, as_times
from logtool.schemas import arrow
from logtool.spark.source.loss import report_loss

NAME: Final = "kafka"
_METADATA_LOG = "__cluster_metadata"
_NO_TYPE, _CREATE_TIME, _LOG_APPEND_TIME = -1, 0, 1


def takes(place: PartitionIdentity) -> bool:
    """Return whether consumers read the log in a directory."""
    found = names.parse_directory(place.directory or "")
    return (
        isinstance(found, PartitionDirectory)
        and found.kind is DirectoryKind.LIVE
        and found.topic != _METADATA_LOG
    )


def log_starts(log_dir: Path, *, fails: bool) -> Mapping[tuple[str, int], int]:
    """Return the offsets at which partitions begin, from the checkpoint of a log dir.

    Empty without a checkpoint. LostDataError, or with `fails` False a warning, for one that cannot
    be read.
    """
    path = log_dir / FileKind.LOG_START_CHECKPOINT
    try:
        data = files.read_small(path)
    except UnreadableError as error:
        if not error.missing or _is_listed(path):
            report_loss(str(error), fails=fails, effect="records below the log start may come")
        return {}
    return offset_checkpoint.parse(data).offsets


def _is_listed(path: Path) -> bool:
    """Return whether a listing has a file; False if there is no listing."""
    with suppress(UnreadableError):
        return any(entry.name == path.name for entry in files.list_dir(path.parent))
    return False


def check_copies(places: Sequence[PartitionIdentity]) -> None:
    """Raise UsageError if two log dirs have the same partition: a consumer reads one copy."""
    seen: dict[tuple[str | None, int | None], PartitionIdentity] = {}
    for place in places:
        other = seen.setdefault((place.topic, place.partition), place)
        if other.log_dir != place.log_dir:
            raise UsageError(
                f"{place.directory} is in {other.log_dir} and in {place.log_dir}: the "
                "table kafka shows one copy of each partition, so give the log dirs of "
                "only one broker"
            )


def visible(table: BatchTable) -> BatchTable:
    """Return the batches that a consumer is given."""
    control = table.is_control
    return table[~control] if control.any() else table


def _timestamp(some: Slice) -> Any:
    times = some.cut(some.records.timestamp)
    return as_times(times, np.zeros(len(times), np.bool_))


def _timestamp_type(some: Slice) -> Any:
    stamped = np.where(some.batches.is_log_append_time, _LOG_APPEND_TIME, _CREATE_TIME)
    kinds = np.where(some.batches.magic == 0, _NO_TYPE, stamped)
    return pa.array(some.of_batch(kinds).astype(np.int32))


def _headers(some: Slice) -> Any:
    spans, kind = some.records.spans, arrow.schema(NAME).field("headers").type
    counts, at = some.cut(spans.header_count), some.cut(spans.header_position)
    if not counts.any():
        return pa.nulls(len(counts), kind)
    return pa.array(
        [
            _pairs(some.records.data, first, count) if count else None
            for first, count in zip(at.tolist(), counts.tolist(), strict=True)
        ],
        kind,
    )


def _pairs(data: memoryview, at: int, count: int) -> list[dict[str, Any]]:
    return [
        {"key": key.decode("utf-8", "replace"), "value": value}
        for key, value in record.parse_headers(data, at, count)
    ]


_COLUMNS: Final[Mapping[str, Callable[[Slice], Any]]] = {
    **{name: RECORD_COLUMNS[name] for name in ("key", "value", "offset")},
    "timestamp": _timestamp,
    "timestampType": _timestamp_type,
    "headers": _headers,
}
RECIPE: Final = Recipe(NAME, _COLUMNS)
