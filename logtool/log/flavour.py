"""The flavours of a log dir, Kafka, Redpanda and AutoMQ, and all that this package asks of one.

The objects are `logtool.log.kafka.KAFKA`, `logtool.log.redpanda.REDPANDA` and
`logtool.log.automq.AUTOMQ`; only `logtool.log.opening` knows all. A log dir, a partition and a
segment carry theirs, so that every process that has a segment reads it in the same way.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from logtool.disk.files import Entry
    from logtool.formats.names import FileKind, FileName
    from logtool.log.dir import LogDir, Partition
    from logtool.log.walk.forms import Form


class FlavourName(StrEnum):
    """The values of ``--flavour``."""

    KAFKA = "kafka"
    REDPANDA = "redpanda"
    AUTOMQ = "automq"


class Flavour(Protocol):
    """The software that wrote a directory.

    Each object is pickled as the name of a module's variable: another process has the same object,
    and ``is`` holds there as it does here.
    """

    name: FlavourName
    lock: str
    """The name of the file that a running broker locks."""
    index_kinds: frozenset["FileKind"]
    """Kinds of the indexes that each segment has, or may have."""
    has_raft_offsets: bool
    """True if the offsets in a log count Raft's own batches, so that clients have lower ones."""
    has_checkpoints: bool
    """True if a log dir has Kafka's small files: meta.properties, the checkpoints, the marker of a
    clean shutdown; in a partition dir, leader-epoch-checkpoint."""

    def holds(self, path: Path, entries: Sequence[str]) -> bool:
        """Return whether it wrote something in the directory `path`, which has these names."""

    def log_dir(self, path: Path, entries: "Sequence[Entry]") -> "LogDir":
        """Return the log dir that these directory entries make."""

    def partition(self, path: Path, entries: "Sequence[Entry]") -> "Partition":
        """Return the partition that these directory entries make."""

    def file_name(self, name: str) -> "FileName":
        """Return the parsed name of a file in a partition dir."""

    def form(self, log: Path) -> "Form":
        """Return the form of the batch headers in a log; the name of Redpanda's holds the term."""
