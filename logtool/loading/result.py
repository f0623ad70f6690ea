"""What loading a log needs to be told, and what comes of it: plain data."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from logtool.disk.joined import Joined
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass
from logtool.loading.index_building import INDEX_INTERVAL, MAX_INDEX_SIZE
from logtool.loading.producers import expiration_ms
from logtool.loading.recovery import CutBatches
from logtool.loading.shadow import Shadow
from logtool.log.damage import Damage
from logtool.metadata.releases import NEWEST


class Outcome(StrEnum):
    """How the loading of a log ends."""

    LOADS = "loads"
    REFUSES = "refuses"
    """The broker stops with an uncaught exception."""
    OFFLINE = "offline"
    """The broker takes the log dir offline and goes on without it."""
    UNKNOWN = "unknown"
    """It does something that is not carried out here."""


class RecoveryReason(StrEnum):
    """Why a segment is recovered."""

    UNFLUSHED = "unflushed"
    NO_INDEX = "no offset index"
    BAD_TRANSACTION_INDEX = "transaction index below the base offset"
    TORN_INDEX = "an index is torn, padded or empty"
    """No broker looks."""
    FILLED = "damage in it is replaced by what another copy holds"
    """No broker looks."""
    PLAYED_BACK = "behind the offset at which the playback starts"
    """A broker replays it for the producer state."""


@dataclass(frozen=True, slots=True)
class StartConditions:
    """What the log dir says of the partition, and the settings of the broker."""

    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    now_ms: int = 0
    index_interval: int = INDEX_INTERVAL
    max_index_size: int = MAX_INDEX_SIZE
    kafka: tuple[int, int] = NEWEST
    """Version of the broker."""
    cut_precisely: bool = False
    """Not as a broker: where one empties a segment, only what is bad is cut."""

    truncate_to: int | None = None
    """Not as a broker: the offset from which on nothing of the log is to stay."""
    expiration_ms: int | None = None
    """``producer.id.expiration.ms``; None: the default of the version."""

    @property
    def idle_ms(self) -> int:
        """Return how long a producer may be idle before it is forgotten."""
        return expiration_ms(self.kafka) if self.expiration_ms is None else self.expiration_ms


@dataclass(frozen=True, slots=True)
class Logs:
    """Logs that are put in place before a log is loaded, as no broker does."""

    joined: Mapping[int, Joined] = field(default_factory=dict)
    """By base offset."""
    whole: frozenset[int] = frozenset()
    """Those in which no damage is left: they are recovered wherever they stand."""


NONE = Logs()


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """One segment that was read from its first byte and given new indexes."""

    base_offset: int
    why: RecoveryReason
    size: int
    """Bytes of its log before."""
    valid_size: int
    """Bytes that stay."""
    stop: Damage | None = None
    emptied: str | None = None
    """Why the whole segment went, or would have."""
    lost: CutBatches = field(default_factory=CutBatches)
    """Sound batches that go."""
    behind: CutBatches = field(default_factory=CutBatches)
    """Those of them that stand behind damage."""
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    """Behind what stays."""
    precise: bool = False
    """Whether it was cut where a broker would have emptied it."""
    truncated_to: int | None = None
    """The offset to which the log was to be truncated, where that cut it."""
    headers_from: int | None = None
    """The byte from which on its headers were read; None where all of it was read and checked."""


@dataclass(frozen=True, slots=True)
class Playback:
    """From where on a log is played back when what is there is supplemented; all are offsets."""

    time_index: int
    """In the last entry of the time index."""
    transaction_index: int
    """Up to which the transactions that were aborted are entered."""
    transaction_index_from: str
    """What says so: ``last-entry``, ``recovery-point`` or ``snapshot``."""
    producer_snapshot: int
    """Of the newest snapshot that can be read; the start of the log without one."""
    replayed_from: int
    """Of the newest snapshot at or below `starting_offset`, or the start of the log."""

    @property
    def starting_offset(self) -> int:
        """Return the offset behind which producers or transactions may be unknown."""
        return min(self.transaction_index, self.producer_snapshot)


@dataclass(frozen=True, slots=True)
class Zombie:
    """One segment that is not of this log any more."""

    base_offset: int
    size: int
    batches: int
    records: int
    last_offset: int
    leader_epoch: int
    """The latest of its batches."""
    log_epoch: int
    """That of the log at its base offset."""
    since: int
    """Offset from which on the log is in that epoch."""
    next_base_offset: int | None
    """Of the segment behind it; None where the log ends with it."""

    @property
    def reason(self) -> str:
        """Return what it is, in words."""
        held = wording.offsets(self.base_offset, self.last_offset)
        return (
            f"holds {held} of leader epoch {self.leader_epoch}, but the log is in epoch "
            f"{self.log_epoch} from offset {self.since} on: a truncation had removed this segment, "
            "and it came back"
        )

    @property
    def served(self) -> str:
        """Return what a broker makes of it, in words."""
        end = self.next_base_offset
        if end is None:
            return f"a broker takes it for the end of the log and appends behind {self.last_offset}"
        last = min(self.last_offset, end - 1)
        asked = wording.offsets(self.base_offset, last)
        return f"a broker gives its records to readers who ask for {asked}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two segments that hold the same offsets, or epochs that go down, with no decision."""

    base_offset: int
    """Of the segment behind, from which a broker serves what is in both."""
    size: int
    reason: str


@dataclass(slots=True)
class LoadResult:
    """What came of it."""

    shadow: Shadow
    outcome: Outcome = Outcome.LOADS
    reason: str = ""
    """Why it does not load."""
    segment: int | None = None
    """Where it does not load."""
    recovered: list[RecoveredSegment] = field(default_factory=list)
    removed: dict[int, CutBatches] = field(default_factory=dict)
    """Segments that go as a whole, by base offset."""
    zombies: dict[int, Zombie] = field(default_factory=dict)
    """Segments of a past that was truncated away, by base offset; those of them in `removed` go."""
    overlaps: list[Overlap] = field(default_factory=list)
    """Segments of which leader epochs do not say whether they are right."""
    split: dict[int, list[int]] = field(default_factory=dict)
    """Base offsets of the segments that one was split into, by its base offset."""
    wiped: bool = False
    """Whether all of them went because the log ends before it starts."""
    log_start: int = 0
    log_end: int = 0
    recovery_point: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    topic_id: str | None = None
    """That of ``partition.metadata``; None where there is no such file."""
    bytes_scanned: int = 0
    bytes_replayed: int = 0
    """Read once more for the producer state."""
    bytes_applied: int = 0
    """Of the batches that were applied to the producer state, whenever they were read."""
    records_applied: int = 0
    producers: int = 0
    """Of which something is known at the end of the log."""
    truncated: bool = False
    """Whether segments went because the log was to end before them."""
    out_of_reach: bool = False
    """Whether a broker does not start for a batch whose offset is out of reach of its segment."""
    supplemented: bool = False
    """Whether what could be believed of the indexes was kept, as no broker does."""
    trusted: bool = False
    """Whether no CRC was compared, and headers alone were read."""
    distrust: str = ""
    """Why the log was checked although it was to be trusted."""
    playback: Playback | None = None
    """Where what is there is supplemented."""
