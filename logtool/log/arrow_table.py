"""Records of a log as a stream of columns of Arrow; needs pyarrow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from logtool.disk.files import LogFile
from logtool.errors import UsageError
from logtool.log.arrow_rows import PartitionIdentity, record_rows
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment
from logtool.log.record_table import Unread
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload

_OF_LOG_DIRS = frozenset({"log_dir", "node_id", "directory"})
"""Columns of the table ``records`` that only a scan of several log dirs fills."""


def of_records(
    chunks: Iterable[tuple[Segment, Chunk, LogFile]],
    columns: Sequence[str],
    *,
    topic: str | None,
    partition: int | None,
    show_secrets: bool,
    on_unread: Callable[[Path, Unread], None],
) -> Any:
    """Return a `pyarrow.RecordBatchReader` of chunks' records; UsageError for an unknown column.

    The chunks are read while the reader is; an error of theirs is one of the reader.
    """
    whole = arrow.schema("records", Payload.FULL)
    known = [name for name in whole.names if name not in _OF_LOG_DIRS]
    if wrong := [name for name in columns if name not in known]:
        raise UsageError(f"unknown column {wrong[0]!r}; the columns are {', '.join(known)}")
    place = PartitionIdentity("", None, topic, partition, None)

    def rows() -> Iterator[Any]:
        for segment, chunk, source in chunks:
            yield from record_rows(
                place, segment.base_offset, chunk, Payload.FULL, columns, file=source,
                show_secrets=show_secrets, on_unread=partial(on_unread, source.path),
            )  # fmt: skip

    schema = pa.schema([whole.field(name) for name in columns], metadata=whole.metadata)
    return pa.RecordBatchReader.from_batches(schema, rows())
