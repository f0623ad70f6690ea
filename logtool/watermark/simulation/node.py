"""The log of one replica in the `state_machine`, and what its leader knows of it."""

from collections.abc import Iterable
from dataclasses import field

from logtool.lazy_dataclass import dataclass
from logtool.loading.epochs import EpochCache
from logtool.watermark.simulation.truncation import LogState


@dataclass(frozen=True, slots=True)
class SimulatedRecord:
    """One record; two with the same name and epoch are the same."""

    name: str
    epoch: int
    transaction: str = ""
    """The transaction that it belongs to; empty for none."""
    marker: str = ""
    """commit or abort, of what decides the transaction; empty for a record of a producer."""


@dataclass(slots=True)
class SimulatedNode:
    """One replica."""

    node: int
    log: list[SimulatedRecord] = field(default_factory=list)
    epochs: EpochCache = field(default_factory=EpochCache)
    high_watermark: int = 0
    checkpointed: int = 0
    """The high watermark that is on disk."""
    up: bool = True
    follows: int = -1
    """Leader epoch for which it has cut its log."""

    @property
    def log_end(self) -> int:
        """Return the offset that is written next."""
        return len(self.log)

    @property
    def state(self) -> LogState:
        """Return the state of the log that the truncation rules use."""
        return LogState(self.epochs.rows, self.log_end, self.high_watermark)

    def append(self, records: Iterable[SimulatedRecord]) -> None:
        """Write behind the end."""
        for record in records:
            self.epochs.assign(record.epoch, self.log_end)
            self.log.append(record)

    def cut(self, offset: int) -> None:
        """Drop what lies at `offset` and behind."""
        del self.log[offset:]
        self.epochs.truncate_from_end(offset)
        self.high_watermark = min(self.high_watermark, self.log_end)


@dataclass(slots=True)
class Remote:
    """Knowledge that a leader has of a follower."""

    log_end: int | None = None
    """None until it fetches."""
    caught_up_ms: int = 0
    """Time at which the follower last had all that the leader had, in ms."""
    fetched_ms: int = 0
    leader_end: int = 0
    """Log end of the leader when it last fetched."""
