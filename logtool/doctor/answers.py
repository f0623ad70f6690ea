"""The answers of `doctor`, as plain data: one object for each question, with its gravity."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from logtool.disk.in_use import Holder
from logtool.lazy_dataclass import dataclass
from logtool.running.remedies import RemedyCount
from logtool.running.summary import SeverityCounts
from logtool.startup.duration import Duration
from logtool.startup.partition import PartitionForecast

NEARLY_FULL, FULL = 90, 99
"""Per cent of a file system that is used: from these on a warning, and an error."""


class Gravity(StrEnum):
    """Gravity of an answer; the order of definition is the order of weight."""

    GOOD = "good"
    INFO = "info"
    """Worth knowing."""
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ExaminedNode:
    """The broker that the answers after this object are about."""

    node: int
    paths: Sequence[Path]


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one code, or actions of one kind: their number, and the first of them."""

    name: str
    """Code of the findings, or kind of the actions."""
    state: Gravity
    count: int
    path: Path | None
    position: int | None
    message: str
    partitions: Sequence[str] = ()
    """All partitions of the findings or actions, as TOPIC-NUMBER."""


@dataclass(frozen=True, slots=True)
class DamageAnswer:
    """The findings of `verify`, and the extent of its checks."""

    state: Gravity
    complete: bool
    """True if every batch was checked, and everything could be read."""
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
    """Groups of findings, the worst first."""


@dataclass(frozen=True, slots=True)
class NextStart:
    """The effects of the broker's next start, as `plan` predicts them."""

    state: Gravity
    complete: bool
    """True if all partitions were loaded, and everything could be read."""
    refuses: bool
    """True if the broker does not start, as far as is known."""
    partitions: int
    not_reached: int
    """Partitions for which there was no time."""
    not_loaded: int
    """Partitions that a broker does not load."""
    metadata_log: bool
    """True if a log dir holds the metadata log, which these numbers leave out."""
    segments: int
    recovered_segments: int
    cause: str | None
    """Why recovery begins at the first segment of logs, in words that follow "because"; None if no
    recovery point is missing."""
    changed_files: int
    """Files that are cut, rebuilt, renamed or removed."""
    lost_records: int
    losing: Sequence[str]
    """Partitions that lose records."""
    purged: int
    """Directories that end in -delete, and that the broker deletes after its start."""
    reappearing: int
    """Partitions with deleted records that are readable again."""
    offline: int
    """Log dirs that the broker starts without."""
    read_bytes: int
    """Bytes of log that the broker reads."""
    time: Duration | None
    """Time that the broker needs to read them; None if too little was read here for a rate."""
    groups: Sequence[FindingGroup] = ()
    """Groups of actions, the worst first."""

    @property
    def seconds(self) -> float | None:
        """Return the seconds at the usual rate; None if no rate is known."""
        return None if self.time is None else self.time.seconds

    @property
    def seconds_low(self) -> float | None:
        """Return the seconds at the fastest rate that is likely; None if no rate is known."""
        return None if self.time is None else self.time.seconds_low

    @property
    def seconds_high(self) -> float | None:
        """Return the seconds at the slowest rate that is likely; None if no rate is known."""
        return None if self.time is None else self.time.seconds_high

    @property
    def bytes_per_second(self) -> float | None:
        """Return the usual rate in bytes a second; None if no rate is known."""
        return None if self.time is None else self.time.rates.usual


@dataclass(frozen=True, slots=True)
class KeptDirty:
    """A compacted partition that an open transaction keeps from being cleaned."""

    path: Path
    producer_id: int | None
    first_offset: int | None
    """First offset of the transaction."""


@dataclass(frozen=True, slots=True)
class FutureStamped:
    """A partition that a timestamp in the future keeps from retention."""

    path: Path
    base_offset: int
    """Base offset of the segment with that timestamp."""
    until_ms: int
    """Time at which retention deletes the segment, in ms."""
    until: str | None
    """`until_ms` in UTC; None where a calendar has no such time."""


@dataclass(frozen=True, slots=True)
class DeletedEarly:
    """A partition that loses segments too early, because their timestamps are in seconds."""

    path: Path
    segments: int
    first_offset: int
    last_offset: int | None
    """None if the log goes as a whole, and its end is not known."""
    newest_ms: int
    """Time that the largest timestamp of these segments means, in ms."""
    newest: str | None
    """`newest_ms` in UTC."""
    age_ms: int
    """Age of that record at the start, in ms."""


@dataclass(frozen=True, slots=True)
class UncleanablePartition:
    """A compacted partition that the cleaner gives up because of damage."""

    path: Path
    """The .log file with the damage."""
    position: int


@dataclass(frozen=True, slots=True)
class SoonAfterStart:
    """The first round of retention after the start, and partitions that stay as they are."""

    state: Gravity
    delay_ms: int | None
    """Time from the start to that round; None, as all that follows, for too many partitions."""
    segments: int | None
    bytes: int | None
    partitions: int | None
    """Partitions of which it deletes segments."""
    oldest: str | None
    """Topic and number of the partition with the oldest of these."""
    kept: Sequence[KeptDirty]
    future_stamped: Sequence[FutureStamped]
    early: Sequence[DeletedEarly]
    uncleanable: Sequence[UncleanablePartition]
    cleaner_off: bool
    """True if the broker's own file switches the log cleaner off."""
    command: str
    """Command that lists the segments, or the partitions that are not compacted."""


@dataclass(frozen=True, slots=True)
class OpenTransactionsAnswer:
    """The transactions that are open after the start, with the accounts of their coordinators."""

    state: Gravity
    complete: bool
    """True if all partitions were loaded, and all coordinators here could be read."""
    partitions: int
    """Partitions whose last stable offset an open transaction holds back."""
    open: int
    """All open transactions, those that hang too."""
    hanging: int
    """Transactions that no coordinator ends."""
    unknown: int
    """Old transactions of which the coordinator's state is lost or not here."""
    marker_lost: int
    """Committed transactions whose markers are lost."""
    oldest: str | None
    """Topic and number of the partition of the oldest one; None if no age is known."""
    oldest_offset: int | None
    """First offset of that transaction."""
    age_ms: int | None
    """Age of that transaction."""
    command: str
    """Command that lists the open transactions."""
    stuck: Sequence[str] = ()
    """Partitions with transactions that hang or are unknown, as topic-partition."""


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Partitions that end below their high watermark, so that acknowledged records are gone."""

    state: Gravity
    known: int
    """Partitions with a row in replication-offset-checkpoint."""
    below: Sequence[PartitionForecast] = ()
    not_reached: int = 0
    """Partitions for which there was no time."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """State of a log dir: the broker that holds it, and how the last one stopped."""

    path: Path
    state: Gravity
    holder: Holder | None
    clean: bool | None
    """True after a clean stop; None for Redpanda, which marks each log by itself."""

    @property
    def in_use(self) -> bool:
        """Return whether a process holds the log dir."""
        return self.holder is not None

    @property
    def pid(self) -> int | None:
        """Return the id of that process; None without one, or if the system does not say."""
        return (self.holder and self.holder.pid) or None

    @property
    def command(self) -> str | None:
        """Return the name of its program; None without one, or if the system does not say."""
        return (self.holder and self.holder.command) or None


@dataclass(frozen=True, slots=True)
class Identity:
    """Values in meta.properties of a log dir; None for a value that is not there."""

    path: Path
    version: int | None
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class VersionsAnswer:
    """Releases and identities that wrote the log dirs, and the release whose start is predicted."""

    state: Gravity
    kafka: str
    """Release whose start is predicted."""
    shown: str | None
    """Release of the node that registered last; None if the files do not show it."""
    metadata_version: int | None
    """The highest ``metadata.version`` of that node; None if the files do not show it."""
    written_by: str | None
    """Releases that can have written the log dirs, such as ``2.8 to 3.9``; None if not known."""
    evidence: Sequence[str]
    """Facts that bound these releases."""
    finalized: Mapping[str, int]
    """Level of each feature in the metadata log; empty without one."""
    finalized_name: str | None
    """Kafka's name of the finalized ``metadata.version``; None without one."""
    mode: str | None
    """``kraft`` or ``zookeeper``; None if the files do not show it."""
    identities: Sequence[Identity] = ()


@dataclass(frozen=True, slots=True)
class OldFormats:
    """Partitions with batches of magic 0 or 1, which librdkafka 2.5 to 2.15 misreads."""

    state: Gravity
    complete: bool
    """True if every batch was checked, and everything could be read."""
    partitions: Sequence[str]
    """Names of their directories."""
    newest_reader: str
    """Newest known release of Kafka; its brokers and Java clients still read them."""


@dataclass(frozen=True, slots=True)
class DiskAnswer:
    """The file system of one or more log dirs. Bytes and inodes as this user may use them."""

    paths: Sequence[Path]
    total: int
    used: int
    available: int
    inodes: int
    """Inodes in all; 0 if the file system counts none."""
    free_inodes: int
    read_only: bool
    logs: int
    """Bytes of the files in the log dirs, by their size."""

    @property
    def state(self) -> Gravity:
        """Return the gravity of its use."""
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
        """Return the percentage of inodes in use, rounded up; None if none are counted."""
        return _percent(self.inodes - self.free_inodes, self.inodes) if self.inodes else None


def _percent(part: int, whole: int) -> int:
    return -(-part * 100 // whole) if whole else 100


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of a process, and the number that a broker needs."""

    name: str
    """``open-files`` or ``max-map-count``."""
    needed: int
    allowed: int | None
    """Most that the process may have; None without a limit, or if the system does not say."""
    pid: int | None = None
    """Id of the process that has the limit; None for this process, or for all processes."""

    @property
    def state(self) -> Gravity:
        """Return the gravity: a warning if the limit is too low."""
        short = self.allowed is not None and self.needed > self.allowed
        return Gravity.WARNING if short else Gravity.GOOD


@dataclass(frozen=True, slots=True)
class ControllersAnswer:
    """The voters, where the nodes that were given cannot elect a controller."""

    voters: tuple[int, ...]
    missing: tuple[int, ...]
    """Voters whose log dirs were not given."""
    command: str
    """Command that compares the copies of the metadata log."""
    state: Gravity = Gravity.WARNING


@dataclass(frozen=True, slots=True)
class Next:
    """The one command to run next."""

    command: str
    """Command line for a shell."""
    reason: str
    """Purpose of the command."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component of the environment of logtool."""

    name: str
    found: bool
    version: str | None = None
    detail: str | None = None
    state: Gravity = Gravity.GOOD


Answer = (
    ExaminedNode
    | DamageAnswer
    | NextStart
    | SoonAfterStart
    | OpenTransactionsAnswer
    | HighWatermark
    | BrokerState
    | VersionsAnswer
    | OldFormats
    | DiskAnswer
    | Limit
    | RemedyCount
    | ControllersAnswer
    | Next
)
