"""Request to load one partition, apart from the code that answers it."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.formats import names
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.lazy_dataclass import dataclass
from logtool.loading.result import StartConditions
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.node.options import StartOptions
from logtool.node.surroundings import Surroundings
from logtool.startup.strays import StrayOutcome

if TYPE_CHECKING:
    from logtool.checks.compaction import Cleaning
    from logtool.node.settings import Settings
    from logtool.startup.redpanda_start import RedpandaStart


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """One partition to be loaded: plain data for a worker."""

    path: Path
    start: StartConditions
    topic: str | None = None
    partition: int | None = None
    high_watermark: int | None = None
    flushed: int | None = None
    """Row of the partition in recovery-point-offset-checkpoint."""
    fate: StrayOutcome | None = None
    """Fate of a directory that the broker's metadata log does not know, once it is loaded; None
    for any other directory."""
    assumed: StartOptions = field(default_factory=StartOptions)
    """Assumptions about the broker, and options for the extent of the answer."""
    around: Surroundings | None = None
    """Facts from outside of its directory; None for a log of Redpanda."""
    cleaning: "Cleaning | None" = None
    """Offset up to which the log was cleaned; None if it is not known."""
    settings: "Settings | None" = field(default=None, repr=False)
    """Settings of the topics of the broker; None if they are not known."""
    redpanda: "RedpandaStart | None" = None
    """Facts from the data directory, if Redpanda wrote the log."""

    @property
    def key(self) -> tuple[str | None, int | None]:
        """Return topic and partition."""
        return self.topic, self.partition

    @property
    def is_deleted(self) -> bool:
        """Return whether the directory waits to be deleted."""
        found = names.parse_directory(self.path.name)
        return isinstance(found, PartitionDirectory) and found.kind is DirectoryKind.DELETE

    @property
    def flavour(self) -> Flavour:
        """Return the flavour of the log."""
        return REDPANDA if self.redpanda else KAFKA

    @property
    def log_dir(self) -> Path:
        """Return the log dir of the partition; of Redpanda the data directory."""
        return self.redpanda.data_dir if self.redpanda else self.path.parent
