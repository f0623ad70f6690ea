"""The input and the result of loading a log: plain data."""

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
from logtool.log.producer_state import Producer, ProducerState
from logtool.metadata.releases import NEWEST


class Outcome(StrEnum):
    """The outcome of loading a log."""

    LOADS = "loads"
    REFUSES = "refuses"
    """The broker stops with an uncaught exception."""
    OFFLINE = "offline"
    """The broker takes the log dir offline and goes on without it."""
    UNKNOWN = "unknown"
    """The broker does something that this tool does not simulate."""


class RecoveryReason(StrEnum):
    """The reason for which a segment is recovered."""

    UNFLUSHED = "unflushed"
    NO_INDEX = "no offset index"
    BAD_TRANSACTION_INDEX = "transaction index below the base offset"
    TORN_INDEX = "an index is torn, padded or empty"
    """A broker does not check this."""
    FILLED = "damage in it is replaced by what another copy holds"
    """A broker does not do this."""
    PLAYED_BACK = "behind the offset at which the playback starts"
    """A broker replays it for the producer state."""


@dataclass(frozen=True, slots=True)
class StartConditions:
    """The state of the partition in its log dir, and the settings of the broker."""

    clean: bool
    recovery_point: int = 0
    log_start: int = 0
    """The row in log-start-offset-checkpoint, 0 without one."""
    tiered: bool = False
    """True if the first segments are in remote storage, and the row alone is the log start."""
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

    def log_start_of(self, first: int) -> int:
        """Return the log start offset of a log whose first local segment has this base offset."""
        return self.log_start if self.tiered else max(self.log_start, first)

    @property
    def idle_ms(self) -> int:
        """Return how long a producer may be idle before it is forgotten."""
        return expiration_ms(self.kafka) if self.expiration_ms is None else self.expiration_ms


@dataclass(frozen=True, slots=True)
class Logs:
    """Logs that are put in place before a log is loaded, as no broker does."""

    joined: Mapping[int, Joined] = field(default_factory=dict)
    """Logs by base offset."""
    whole: frozenset[int] = frozenset()
    """Base offsets of logs without damage left: they are recovered even if they were flushed."""


NONE = Logs()


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """One segment that was read from its first byte and given new indexes."""

    base_offset: int
    why: RecoveryReason
    size: int
    """Bytes of the log before the recovery."""
    valid_size: int
    """Bytes of the log that stay."""
    stop: Damage | None = None
    emptied: str | None = None
    """Reason for which the whole segment was emptied; None if it was not."""
    lost: CutBatches = field(default_factory=CutBatches)
    """Batches that are cut."""
    behind: CutBatches = field(default_factory=CutBatches)
    """The batches of `lost` that stand behind damage."""
    batches: int = 0
    records: int = 0
    next_offset: int = 0
    """Offset behind the batches that stay."""
    is_odd: bool = False
    """True if a batch stays that no broker writes; see `logtool.loading.recovery.Recovered`."""
    precise: bool = False
    """True if the segment was cut where a broker would have emptied it or not started."""
    truncated_to: int | None = None
    """The offset to which the log was to be truncated, where that cut it."""
    headers_from: int | None = None
    """The byte from which on its headers were read; None where all of it was read and checked."""


@dataclass(frozen=True, slots=True)
class Playback:
    """The checkpoints of a log that is supplemented, and the start of its playback; all offsets."""

    time_index: int
    """Offset in the last entry of the time index."""
    transaction_index: int
    """Offset up to which aborted transactions are in the transaction indexes."""
    transaction_index_from: str
    """Source of `transaction_index`: ``last-entry``, ``recovery-point`` or ``snapshot``."""
    producer_snapshot: int
    """Offset of the newest snapshot that can be read; the start of the log without one."""
    replayed_from: int
    """Offset of the newest snapshot at or below `starting_offset`, or the start of the log."""

    @property
    def starting_offset(self) -> int:
        """Return the offset behind which producers or transactions may be unknown."""
        return min(self.transaction_index, self.producer_snapshot)


@dataclass(frozen=True, slots=True)
class Zombie:
    """One segment that does not belong to this log any more."""

    base_offset: int
    size: int
    batches: int
    records: int
    last_offset: int
    leader_epoch: int
    """Latest leader epoch of its batches."""
    log_epoch: int
    """Leader epoch of the log at the base offset of this segment."""
    since: int
    """Offset from which on the log is in `log_epoch`."""
    next_base_offset: int | None
    """Base offset of the next segment; None where the log ends with this one."""

    @property
    def reason(self) -> str:
        """Return why the segment is a zombie, in words."""
        span = wording.offsets(self.base_offset, self.last_offset)
        return (
            f"holds {span} of leader epoch {self.leader_epoch}, but the log is in epoch "
            f"{self.log_epoch} from offset {self.since} onwards: a truncation had removed "
            "this segment, but the segment has come back"
        )

    @property
    def served(self) -> str:
        """Return how a broker uses the segment, in words."""
        end = self.next_base_offset
        if end is None:
            return (
                "a broker takes this segment for the end of the log and appends after "
                f"{self.last_offset}"
            )
        last = min(self.last_offset, end - 1)
        asked = wording.offsets(self.base_offset, last)
        return f"a broker returns its records to consumers that ask for {asked}"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two segments that hold the same offsets, or epochs that go down; either may be right."""

    base_offset: int
    """Base offset of the second segment, from which a broker serves the offsets in both."""
    size: int
    reason: str


@dataclass(slots=True)
class LoadResult:
    """The result of loading a log."""

    shadow: Shadow
    outcome: Outcome = Outcome.LOADS
    reason: str = ""
    """Reason for which the log does not load, in words."""
    segment: int | None = None
    """Base offset of the segment at which loading ended; None if it was at none."""
    recovered: list[RecoveredSegment] = field(default_factory=list)
    removed: dict[int, CutBatches] = field(default_factory=dict)
    """Segments that are removed as a whole, by base offset."""
    zombies: dict[int, Zombie] = field(default_factory=dict)
    """Segments that a truncation had removed, by base offset; they stay unless in `removed`."""
    overlaps: list[Overlap] = field(default_factory=list)
    """Segments for which leader epochs do not decide whether they are right."""
    split: dict[int, list[int]] = field(default_factory=dict)
    """Base offsets of the segments that one was split into, by its base offset."""
    wiped: bool = False
    """True if all segments were removed because the log ends before it starts."""
    log_start: int = 0
    local_log_start: int = 0
    """First offset of the local segments; above `log_start` for a tiered log."""
    log_end: int = 0
    recovery_point: int = 0
    epochs: list[tuple[int, int]] = field(default_factory=list)
    topic_id: str | None = None
    """Topic id in ``partition.metadata``; None without that file."""
    bytes_scanned: int = 0
    bytes_replayed: int = 0
    """Bytes that were read once more for the producer state."""
    bytes_applied: int = 0
    """Bytes of the batches that were applied to the producer state, at any reading."""
    records_applied: int = 0
    producers: int = 0
    """Number of producers that are known at the end of the log."""
    in_transaction: Mapping[int, Producer] = field(default_factory=dict)
    """Producers whose transaction is open at the end of the log, by their id."""
    truncated: bool = False
    """True if segments were removed because the log was to be truncated before them."""
    out_of_reach: bool = False
    """True if a broker does not start because an offset is out of reach of its segment."""
    supplemented: bool = False
    """True if valid index entries were kept, which no broker does."""
    trusted: bool = False
    """True if no CRC was compared and only headers were read."""
    distrust: str = ""
    """Reason for which the log was checked although it was to be trusted."""
    playback: Playback | None = None
    """Checkpoints and start of the playback; None unless the log is supplemented."""

    def take_producers(self, state: ProducerState) -> None:
        """Take the number of producers and those with an open transaction from a state."""
        self.producers = len(state.producers)
        self.in_transaction = state.in_transaction
