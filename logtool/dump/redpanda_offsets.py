"""Kafka offsets of the batches of Redpanda, as far as the files beside them tell.

In the namespace ``kafka`` a batch has a Kafka offset below its Raft offset: see
`logtool.formats.redpanda.offset_translation`. What is between them is known from offset 0 on, and
behind the offset at which Raft took a snapshot; it is carried from one segment to the next. Behind
damage or a missing segment it is not known, and nothing is guessed.
"""

from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats.redpanda import snapshot
from logtool.formats.redpanda.names import KAFKA_NAMESPACE, FileKind
from logtool.formats.redpanda.offset_translation import FILTERED
from logtool.formats.redpanda.record_batch import Header

Offsets = tuple[int | None, int | None]
"""The first and the last Kafka offset of a batch; None where it has none, or none is known."""

_LARGEST_METADATA = 1024 * 1024
"""Bytes of a snapshot that are read for its metadata, which is far smaller."""


class KafkaOffsets:
    """Is told of segments and batches in the order of the log, and tells their Kafka offsets."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._snapshot: tuple[int, int] | None = None
        """A Raft offset, and the delta of what begins there."""
        self._end: int | None = None
        """The Raft offset that comes next; None behind damage."""
        self._delta: int | None = None
        """Raft offsets below `_end` that are no Kafka offsets; None if nobody knows."""

    def begin(self, path: Path, base_offset: int) -> None:
        """Take notice of a segment."""
        folder = path.absolute().parent
        if folder != self._folder:
            in_kafka = folder.parent.parent.name == KAFKA_NAMESPACE
            self._folder, self._end = folder, None
            self._snapshot = _of_snapshot(folder) if in_kafka else None
        if base_offset != self._end:
            self._delta = None
        if base_offset == 0 and folder.parent.parent.name == KAFKA_NAMESPACE:
            self._delta = 0
        self._end = base_offset

    def lose(self) -> None:
        """Take notice of damage: a batch may be gone that had no Kafka offset."""
        self._end = self._delta = None

    def of(self, header: Header) -> Offsets:
        """Return the first and the last Kafka offset of the next batch."""
        base, last = header.base_offset, header.last_offset
        if self._end is None or base < self._end:
            self._delta = None
        elif self._snapshot and self._end <= self._snapshot[0] <= base:
            self._delta = self._snapshot[1]
        self._end = last + 1
        if self._delta is None:
            return None, None
        if header.type in FILTERED:
            self._delta += last - base + 1
            return None, None
        return base - self._delta, last - self._delta


def _of_snapshot(folder: Path) -> tuple[int, int] | None:
    """Return what the snapshot of Raft in a folder tells; None where there is none to believe."""
    try:
        with LogFile(folder / FileKind.SNAPSHOT) as file:
            stored = snapshot.parse(file.read(0, _LARGEST_METADATA))
    except UnreadableError:
        return None
    if not stored.header_crc_holds or not stored.metadata_crc_holds:
        return None
    raft = snapshot.raft_metadata(stored.metadata)
    if raft is None or raft.log_start_delta is None:
        return None
    return raft.last_included_index + 1, raft.log_start_delta
