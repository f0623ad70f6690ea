"""Partitions and segments to read: batches as columns, records as objects or as a table of Arrow.

Every method reads the files again. A caller that wants flat memory reads segment by segment.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from logtool.disk.files import LogFile
from logtool.errors import UsageError
from logtool.formats.names import CLUSTER_METADATA
from logtool.log import batch_columns, damaged_bytes
from logtool.log.batch_columns import BatchColumns
from logtool.log.chunk import Chunk
from logtool.log.damaged_bytes import DamagedBytes, DamageError, chunks_and_damage
from logtool.log.decoded import redact
from logtool.log.dir import Partition, Segment
from logtool.log.record_objects import LogRecord, log_records
from logtool.log.record_table import Unread
from logtool.log.records import records

DEFAULT_COLUMNS = ("offset", "timestamp", "key", "value", "headers")


class _Readable:
    """Segments of one partition that are read in the same way."""

    path: Path
    topic: str | None
    partition: int | None

    def __init__(self, listed: Partition, segments: Sequence[Segment], **how: bool) -> None:
        self.path, self.topic, self.partition = listed.path, listed.topic, listed.number
        self._listed, self._segments, self._how = listed, segments, how
        self._shows_secrets = how["shows_secrets"]

    def batches(self) -> BatchColumns:
        """Return the headers of all batches, whose CRCs are compared."""
        return batch_columns.of_segments(self._segments, self._report)

    def records(self, *, control: bool = False) -> Iterator[LogRecord]:
        """Yield all records in order, those of aborted transactions too.

        With `control` the control records are among them. Records before damage inside a batch come
        before the damage.
        """
        hides = self.topic == CLUSTER_METADATA and not self._shows_secrets
        for _, chunk, source in self._chunks(control=control):
            for part in records(chunk, source=source):
                if isinstance(part, Unread):
                    self._report(damaged_bytes.of_records(part, source.path))
                else:
                    yield from log_records(redact(part) if hides else part)

    def records_table(
        self, columns: Sequence[str] = DEFAULT_COLUMNS, *, control: bool = False
    ) -> Any:
        """Return a `pyarrow.Table` of all records; `logtool schema records` lists the columns.

        UsageError without pyarrow, and for a column that does not exist.
        """
        return self.records_reader(columns, control=control).read_all()

    def records_reader(
        self, columns: Sequence[str] = DEFAULT_COLUMNS, *, control: bool = False
    ) -> Any:
        """Return the same as a `pyarrow.RecordBatchReader`, which reads while it is read."""
        try:
            from logtool.log import arrow_table
        except ModuleNotFoundError as error:
            text = "columns of records need pyarrow: pip install 'kafka-logtool[parquet]'"
            raise UsageError(text) from error
        return arrow_table.of_records(
            self._chunks(control=control), columns, topic=self.topic, partition=self.partition,
            show_secrets=self._shows_secrets,
            on_unread=lambda path, part: self._report(damaged_bytes.of_records(part, path)),
        )  # fmt: skip

    def damage(self) -> tuple[DamagedBytes, ...]:
        """Return all damage as values, also inside of batches; the whole log is read for that."""
        found: list[DamagedBytes] = []
        for _, chunk, source in self._chunks(control=True, take=found.append):
            for part in records(chunk, source=source):
                if isinstance(part, Unread):
                    found.append(damaged_bytes.of_records(part, source.path))
        return tuple(found)

    def _chunks(
        self, *, control: bool, take: Callable[[DamagedBytes], None] | None = None
    ) -> Iterator[tuple[Segment, Chunk, LogFile]]:
        """Yield sound batches with their bytes; `take` is called for damage, else see `_report`."""
        for segment in self._segments:
            with segment.log.open() as source:
                for item in chunks_and_damage(segment, source):
                    if isinstance(item, DamagedBytes):
                        (take or self._report)(item)
                        continue
                    hidden = item.table.is_control
                    if control or not hidden.any():
                        yield segment, item, source
                    elif not hidden.all():
                        yield segment, item.with_table(item.table[~hidden]), source

    def _report(self, damage: DamagedBytes) -> None:
        if self._how["raises"]:
            raise DamageError(damage)


class OpenedSegment(_Readable):
    """One segment of a partition; `path` is its log, `size` the bytes of it."""

    base_offset: int
    size: int
    is_active: bool

    def __init__(self, listed: Partition, segment: Segment, **how: bool) -> None:
        super().__init__(listed, [segment], **how)
        self.path = segment.log.path
        self.base_offset, self.size = segment.base_offset, segment.log.size
        self.is_active = segment.is_active


class OpenedPartition(_Readable):
    """One partition dir, as it was listed when it was opened; `flavour` is kafka or redpanda."""

    flavour: str

    def __init__(self, listed: Partition, **how: bool) -> None:
        super().__init__(listed, listed.segments, **how)
        self.flavour = str(listed.flavour.name)

    def segments(self) -> tuple[OpenedSegment, ...]:
        """Return the segments by base offset."""
        return tuple(OpenedSegment(self._listed, one, **self._how) for one in self._segments)
