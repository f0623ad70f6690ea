"""Partitions and segments to read: batches as columns, records as objects or as a table of Arrow.

Every method reads the files again. A caller that wants flat memory reads segment by segment.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from logtool.disk.files import LogFile
from logtool.errors import FormatError, UsageError
from logtool.formats import record_batch
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log import damaged_bytes
from logtool.log.chunk import Chunk
from logtool.log.damaged_bytes import DamagedBytes, chunks_and_damage
from logtool.log.decoded import redact
from logtool.log.dir import Partition, Segment
from logtool.log.record_objects import LogRecord, log_records
from logtool.log.record_table import Unread
from logtool.log.records import records

DEFAULT_COLUMNS = ("offset", "timestamp", "key", "value", "headers")


class DamageError(FormatError):
    """Damage in a log that was opened with ``damage="raise"``; `damage` says where."""

    def __init__(self, damage: DamagedBytes) -> None:
        super().__init__(damage.message, damage.position, damage.path)
        self.damage = damage


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """Batches as NumPy columns of one length, in the order of the log."""

    table: BatchTable
    """Positions, offsets, times, producers and more of the headers, int64; -1 for none."""
    segment: Column
    """Base offset of the segment, int64."""
    crc_valid: Column
    """bool; False for a damaged batch of Kafka that its size field still frames: other columns of
    that row may be wrong. Damage of other kinds has no row."""
    damage: tuple[DamagedBytes, ...]
    """All damage but that inside of sound batches."""

    def __len__(self) -> int:
        return len(self.table)


class _Readable:
    """Segments of one partition that are read in the same way."""

    path: Path
    topic: str | None
    partition: int | None

    def __init__(self, listed: Partition, segments: Sequence[Segment], **how: bool) -> None:
        self.path, self.topic, self.partition = listed.path, listed.topic, listed.number
        self._listed, self._segments, self._how = listed, segments, how
        self._raises, self._shows_secrets = how["raises"], how["shows_secrets"]

    def batches(self) -> BatchColumns:
        """Return the headers of all batches, whose CRCs are compared."""
        tables, bases, valid = [record_batch.empty_table()], [], []
        damage: list[DamagedBytes] = []
        for segment in self._segments:
            with segment.log.open() as source:
                for item in chunks_and_damage(segment, source, payload=False):
                    is_sound = isinstance(item, Chunk)
                    if isinstance(item, Chunk):
                        table = item.table
                    else:
                        self._report(item, damage.append)
                        table = damaged_bytes.framed(segment, source, item)
                    tables.append(table)
                    bases.append(np.full(len(table), segment.base_offset, np.int64))
                    valid.append(np.full(len(table), is_sound))
        return BatchColumns(
            table=record_batch.concat(tables),
            segment=np.concatenate([*bases, np.empty(0, np.int64)]),
            crc_valid=np.concatenate([*valid, np.empty(0, np.bool_)]),
            damage=tuple(damage),
        )

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
        try:
            from logtool.log import arrow_table
        except ModuleNotFoundError as error:
            text = "records_table() needs pyarrow: pip install 'kafka-logtool[parquet]'"
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

    def _report(
        self, damage: DamagedBytes, take: Callable[[DamagedBytes], None] | None = None
    ) -> None:
        if self._raises:
            raise DamageError(damage)
        if take:
            take(damage)


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
