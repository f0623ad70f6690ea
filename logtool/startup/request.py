"""What is asked of the load of one partition, apart from what answers it."""

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.lazy_dataclass import dataclass
from logtool.loading.result import StartConditions
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.node.options import StartOptions
from logtool.startup.strays import StrayOutcome

if TYPE_CHECKING:
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
    """Its row of recovery-point-offset-checkpoint."""
    fate: StrayOutcome | None = None
    """What a broker does with the directory once it is loaded, and its metadata log does not know
    it."""
    assumed: StartOptions = field(default_factory=StartOptions)
    """What is assumed of the broker, and how much of the answer is wanted."""
    redpanda: "RedpandaStart | None" = None
    """What the data directory says, where Redpanda wrote the log."""

    @property
    def flavour(self) -> Flavour:
        """Return the flavour of the log."""
        return REDPANDA if self.redpanda else KAFKA

    @property
    def log_dir(self) -> Path:
        """Return the log dir that it lies in."""
        return self.redpanda.data_dir if self.redpanda else self.path.parent
