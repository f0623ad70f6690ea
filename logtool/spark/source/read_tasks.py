"""The pieces of logs that tasks of the data source read: plain data, which is sent to executors."""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.gaps.evidence import Facts
from logtool.lazy_dataclass import dataclass
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.dir import Partition, Segment
from logtool.log.file import File
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.selection import WHOLE, OffsetTimeRange


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A segment, or the bytes `start` to `stop` of its log."""

    place: PartitionIdentity
    folder: Path
    log: File
    """The log as it was listed."""
    segment: int
    next_segment: int | None
    index_bytes: tuple[int | None, ...]
    """Bytes of the offset, the time and the transaction index; None for a missing one."""
    span: OffsetTimeRange = WHOLE
    """Offsets and times that are wanted of its partition."""
    start: int = 0
    stop: int | None = None
    """None for the end that the log has when it is read."""
    flavour: Flavour = KAFKA

    @classmethod
    def of(
        cls, found: Partition, segment: Segment, place: PartitionIdentity, span: OffsetTimeRange
    ) -> "ReadTask":
        """Return the task that reads a listed segment whole."""
        return cls(
            place=place,
            folder=found.path,
            segment=segment.base_offset,
            next_segment=segment.next_base_offset,
            index_bytes=tuple(
                segment.indexes[kind].size if kind in segment.indexes else None
                for kind in names.INDEX_KINDS
            ),
            span=span,
            log=segment.log,
            flavour=found.flavour,
        )

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that are read for it."""
        return (self.log.size if self.stop is None else self.stop) - self.start

    def path(self, kind: FileKind = FileKind.LOG) -> Path:
        """Return the path of a file of the segment."""
        if kind is FileKind.LOG:
            return self.log.path
        return self.folder / names.format_partition_file(self.segment, kind)

    def batches(self, log: LogFile, *, start: int = 0, payload: bool) -> Iterator[Chunk]:
        """Yield sound batches and damage of the log from byte `start` on."""
        form = self.flavour.form(self.path())
        return read_batches(log, base_offset=self.segment, form=form, start=start, payload=payload)

    def open(self, kind: FileKind = FileKind.LOG) -> LogFile:
        """Open a file of the segment that was listed; UnreadableError if another has its name."""
        if kind is not FileKind.LOG:
            return LogFile(self.path(kind), self.index_bytes[names.INDEX_KINDS.index(kind)])
        # A program that copies a growing log puts a longer file in the place of an active segment.
        return self.log.open() if self.next_segment is None else self.log.open_listed()

    def hold_to_listing(self, log: LogFile) -> None:
        """Raise UnreadableError for a log that is shorter than listed, or was replaced meanwhile.

        It is called after the last read, so that no read was from another file.
        """
        size = log.size_now()
        if size < self.log.size:
            text = f"is listed with {self.log.size:,} bytes, but ends after {size:,}"
            raise UnreadableError(self.path(), text)
        if self.next_segment is not None:  # see `open`
            self.log.hold_to_store()


@dataclass(frozen=True, slots=True)
class CheckTask:
    """A partition dir, or one log in it, whose findings are rows of the table ``findings``."""

    folder: Path
    span: OffsetTimeRange = WHOLE
    """Offsets that are wanted of the partition."""
    log: Path | None = None
    """The one log that is meant; None for the whole directory."""


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """All segments of a partition dir, for the tables that are about whole partitions."""

    segments: tuple[ReadTask, ...]
    facts: Facts | None = None
    """Facts for the table ``gaps``; a partition without them has no gaps."""

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that are read for it."""
        return sum(segment.size for segment in self.segments)


@dataclass(frozen=True, slots=True)
class QuestionTask:
    """Partition dirs whose gaps, producers or transactions are rows."""

    partitions: tuple[PartitionTask, ...]


Task = ReadTask | CheckTask | QuestionTask
