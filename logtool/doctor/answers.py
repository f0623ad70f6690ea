"""What `doctor` answers, as plain data: one object for each question, with how grave it is."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from logtool.disk.in_use import Holder
from logtool.lazy_dataclass import dataclass
from logtool.running.summary import SeverityCounts
from logtool.startup.duration import Duration
from logtool.startup.partition import PartitionForecast

NEARLY_FULL, FULL = 90, 99
"""Per cent of a file system from which on it is worth a warning, and an error."""


class Gravity(StrEnum):
    """How an answer is to be taken; the order of definition is the order of weight."""

    GOOD = "good"
    INFO = "info"
    """Worth knowing."""
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one code, or actions of one kind: how many, and the first of them."""

    name: str
    """The code, or the action."""
    state: Gravity
    count: int
    path: Path | None
    position: int | None
    message: str


@dataclass(frozen=True, slots=True)
class DamageAnswer:
    """What `verify` finds, and how much it has looked at."""

    state: Gravity
    complete: bool
    """Whether every batch was checked, and everything could be read."""
    partitions: int
    segments: int
    looked_at: int
    """Segments that were looked at quickly: names, sizes, indexes and the end of the log."""
    checked: int
    """Segments of which every batch was checked."""
    log_bytes: int
    checked_bytes: int
    unreadable: int
    """Inputs that could not be read."""
    findings: SeverityCounts
    groups: Sequence[FindingGroup] = ()
    """The worst first."""


@dataclass(frozen=True, slots=True)
class NextStart:
    """What the next start of the broker does, as `plan` says it."""

    state: Gravity
    complete: bool
    """Whether all partitions were looked at, and everything could be read."""
    refuses: bool
    """Whether the broker does not start, as far as is known."""
    partitions: int
    not_reached: int
    """Partitions for which there was no time."""
    not_loaded: int
    """Partitions that a broker does not load."""
    segments: int
    recovered_segments: int
    changed_files: int
    """Files that are cut, rebuilt, renamed or removed."""
    lost_records: int
    losing: Sequence[str]
    """Partitions that lose records."""
    offline: int
    """Log dirs that the broker starts without."""
    read_bytes: int
    """Bytes of log that the broker reads."""
    time: Duration | None
    """How long that takes; None where too little was read here to tell."""
    groups: Sequence[FindingGroup] = ()
    """The worst first."""

    @property
    def seconds(self) -> float | None:
        """Return how long it takes at the usual rate; None where that is not known."""
        return None if self.time is None else self.time.seconds

    @property
    def seconds_low(self) -> float | None:
        """Return how long it takes at the fastest rate that is likely; None likewise."""
        return None if self.time is None else self.time.seconds_low

    @property
    def seconds_high(self) -> float | None:
        """Return how long it takes at the slowest rate that is likely; None likewise."""
        return None if self.time is None else self.time.seconds_high

    @property
    def bytes_per_second(self) -> float | None:
        """Return the usual rate; None likewise."""
        return None if self.time is None else self.time.rates.usual


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Which partitions end below their high watermark, so that acknowledged records are gone."""

    state: Gravity
    known: int
    """Partitions with a row in replication-offset-checkpoint."""
    below: Sequence[PartitionForecast] = ()


@dataclass(frozen=True, slots=True)
class BrokerState:
    """Whether a broker holds a log dir, and how the last one left it."""

    path: Path
    state: Gravity
    holder: Holder | None
    clean: bool | None
    """None of Redpanda, which says it of each log by itself."""

    @property
    def in_use(self) -> bool:
        """Return whether a process holds the log dir."""
        return self.holder is not None

    @property
    def pid(self) -> int | None:
        """Return the id of that process; None without it, and where the system does not say."""
        return (self.holder and self.holder.pid) or None

    @property
    def command(self) -> str | None:
        """Return the name of its program; None likewise."""
        return (self.holder and self.holder.command) or None


@dataclass(frozen=True, slots=True)
class Identity:
    """What meta.properties of a log dir says; None for what it does not say."""

    path: Path
    version: int | None
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class VersionsAnswer:
    """Who wrote the log dirs, and the release whose start is foretold."""

    state: Gravity
    kafka: str
    """The release whose start is foretold."""
    shown: str | None
    """The release of the broker that registered last; None where nothing tells it."""
    metadata_version: int | None
    """The highest ``metadata.version`` that it supported; None likewise."""
    mode: str | None
    """``kraft`` or ``zookeeper``; None where nothing tells it."""
    identities: Sequence[Identity] = ()


@dataclass(frozen=True, slots=True)
class DiskAnswer:
    """The file system of one or more log dirs. Bytes and inodes as this user may have them."""

    paths: Sequence[Path]
    total: int
    used: int
    available: int
    inodes: int
    """0 where the file system counts none."""
    free_inodes: int
    read_only: bool
    logs: int
    """Bytes of the files in the log dirs, by their size."""

    @property
    def state(self) -> Gravity:
        """Return how full it is."""
        used = max(self.used_percent, self.inodes_percent or 0)
        if used >= FULL:
            return Gravity.ERROR
        if used >= NEARLY_FULL:
            return Gravity.WARNING
        return Gravity.INFO if self.read_only else Gravity.GOOD

    @property
    def used_percent(self) -> int:
        """Return the share that is used, rounded up as df does."""
        return _percent(self.used, self.used + self.available)

    @property
    def inodes_percent(self) -> int | None:
        """Return the share of inodes that is used, rounded up; None where none are counted."""
        return _percent(self.inodes - self.free_inodes, self.inodes) if self.inodes else None


def _percent(part: int, whole: int) -> int:
    return -(-part * 100 // whole) if whole else 100


@dataclass(frozen=True, slots=True)
class Limit:
    """How many of something one process may have, against how many a broker needs."""

    name: str
    """``open-files`` or ``max-map-count``."""
    needed: int
    allowed: int | None
    """None: without a limit, or the system does not tell."""
    pid: int | None = None
    """Of the process that the limit was read of; None: of this one, or of all."""

    @property
    def state(self) -> Gravity:
        """Return whether it suffices."""
        short = self.allowed is not None and self.needed > self.allowed
        return Gravity.WARNING if short else Gravity.GOOD


@dataclass(frozen=True, slots=True)
class Next:
    """The one command to run next."""

    command: str
    """As a shell takes it."""
    reason: str
    """What it is for."""


@dataclass(frozen=True, slots=True)
class Component:
    """One piece of what logtool runs on."""

    name: str
    found: bool
    version: str | None = None
    detail: str | None = None
    state: Gravity = Gravity.GOOD


Answer = (
    DamageAnswer
    | NextStart
    | HighWatermark
    | BrokerState
    | VersionsAnswer
    | DiskAnswer
    | Limit
    | Next
)
