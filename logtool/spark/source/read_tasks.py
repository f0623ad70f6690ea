"""The pieces of logs that tasks of the data source read: plain data, which is sent to executors."""

from collections.abc import Iterator
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.selection import WHOLE, OffsetTimeRange


@dataclass(frozen=True, slots=True)
class ReadTask:
    """A segment, or the bytes `start` to `stop` of its log."""

    place: PartitionIdentity
    folder: Path
    log_name: str
    segment: int
    next_segment: int | None
    log_bytes: int
    modified_ms: int
    index_bytes: tuple[int | None, ...]
    """Bytes of the offset, the time and the transaction index; None for a missing one."""
    span: OffsetTimeRange = WHOLE
    """Offsets and times that are wanted of its partition."""
    start: int = 0
    stop: int | None = None
    """None for the end that the log has when it is read."""
    flavour: Flavour = KAFKA

    @property
    def size(self) -> int:
        """Return the approximate number of bytes that are read for it."""
        return (self.log_bytes if self.stop is None else self.stop) - self.start

    def path(self, kind: FileKind = FileKind.LOG) -> Path:
        """Return the path of a file of the segment."""
        if kind is FileKind.LOG:
            return self.folder / self.log_name
        return self.folder / names.format_partition_file(self.segment, kind)

    def batches(self, log: LogFile, *, start: int = 0, payload: bool) -> Iterator[Chunk]:
        """Yield sound batches and damage of the log from byte `start` on."""
        form = self.flavour.form(self.path())
        return read_batches(log, base_offset=self.segment, form=form, start=start, payload=payload)

    def open(self, kind: FileKind = FileKind.LOG) -> LogFile:
        """Open a file of the segment that was listed."""
        if kind is FileKind.LOG:
            return LogFile(self.path(), self.log_bytes)
        return LogFile(self.path(kind), self.index_bytes[names.INDEX_KINDS.index(kind)])
