"""What `doctor` answers, as plain data: one object for each question, with how grave it is."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from logtool.disk.in_use import Holder
from logtool.lazy_dataclass import dataclass
from logtool.startup.duration import Duration
from logtool.startup.partition import PartitionForecast

NEARLY_FULL, FULL = 90, 99
"""Per cent of a file system from which on it is worth a warning, and an error."""


class State(StrEnum):
    """How an answer is to be taken; the order of definition is the order of weight."""

    GOOD = "good"
    INFO = "info"
    """Worth knowing."""
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one code, or actions of one kind: how many, and the first of them."""

    name: str
    """The code, or the action."""
    state: State
    count: int
    path: Path | None
    position: int | None
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "name": self.name,
            "state": str(self.state),
            "count": self.count,
            "path": None if self.path is None else str(self.path),
            "position": self.position,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Damage:
    """What `verify` finds, and how much it has looked at."""

    state: State
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
    findings: tuple[int, int, int]
    """Errors, warnings and infos."""
    groups: Sequence[Group] = ()
    """The worst first."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        errors, warnings, infos = self.findings
        return {
            "type": "damage",
            "state": str(self.state),
            "complete": self.complete,
            "partitions": self.partitions,
            "segments": self.segments,
            "looked_at_segments": self.looked_at,
            "checked_segments": self.checked,
            "log_bytes": self.log_bytes,
            "checked_bytes": self.checked_bytes,
            "unreadable": self.unreadable,
            "findings": {"error": errors, "warning": warnings, "info": infos},
            "groups": [group.as_json() for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class NextStart:
    """What the next start of the broker does, as `plan` says it."""

    state: State
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
    groups: Sequence[Group] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        time = self.time
        return {
            "type": "start",
            "state": str(self.state),
            "complete": self.complete,
            "refuses": self.refuses,
            "partitions": self.partitions,
            "partitions_not_reached": self.not_reached,
            "partitions_not_loaded": self.not_loaded,
            "segments": self.segments,
            "recovered_segments": self.recovered_segments,
            "changed_files": self.changed_files,
            "lost_records": self.lost_records,
            "losing_partitions": list(self.losing),
            "offline_log_dirs": self.offline,
            "read_bytes": self.read_bytes,
            "seconds": None if time is None else round(time.seconds, 3),
            "seconds_low": None if time is None else round(time.seconds_low, 3),
            "seconds_high": None if time is None else round(time.seconds_high, 3),
            "bytes_per_second": None if time is None else round(time.rates.usual),
            "groups": [group.as_json() for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class HighWatermark:
    """Which partitions end below their high watermark, so that acknowledged records are gone."""

    state: State
    known: int
    """Partitions with a row in replication-offset-checkpoint."""
    below: Sequence[PartitionForecast] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "high_watermark",
            "state": str(self.state),
            "partitions_known": self.known,
            "below": [
                {
                    "path": str(one.request.path),
                    "topic": one.request.topic,
                    "partition": one.request.partition,
                    "high_watermark": one.request.high_watermark,
                    "log_end_offset": one.log_end,
                    "lost_acknowledged": one.lost_acknowledged,
                }
                for one in self.below
            ],
        }


@dataclass(frozen=True, slots=True)
class BrokerState:
    """Whether a broker holds a log dir, and how the last one left it."""

    path: Path
    state: State
    holder: Holder | None
    clean: bool | None
    """None of Redpanda, which says it of each log by itself."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        holder = self.holder
        return {
            "type": "broker",
            "state": str(self.state),
            "path": str(self.path),
            "in_use": holder is not None,
            "pid": holder.pid if holder and holder.pid else None,
            "command": holder.command if holder and holder.command else None,
            "clean": self.clean,
        }


@dataclass(frozen=True, slots=True)
class Identity:
    """What meta.properties of a log dir says; None for what it does not say."""

    path: Path
    version: int | None
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "path": str(self.path),
            "version": self.version,
            "node_id": self.node_id,
            "cluster_id": self.cluster_id,
            "directory_id": self.directory_id,
        }


@dataclass(frozen=True, slots=True)
class Versions:
    """Who wrote the log dirs, and the release whose start is foretold."""

    state: State
    kafka: str
    """The release whose start is foretold."""
    shown: str | None
    """The release of the broker that registered last; None where nothing tells it."""
    metadata_version: int | None
    """The highest ``metadata.version`` that it supported; None likewise."""
    mode: str | None
    """``kraft`` or ``zookeeper``; None where nothing tells it."""
    identities: Sequence[Identity] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "versions",
            "state": str(self.state),
            "kafka": self.kafka,
            "kafka_shown": self.shown,
            "metadata_version": self.metadata_version,
            "mode": self.mode,
            "meta_properties": [one.as_json() for one in self.identities],
        }


@dataclass(frozen=True, slots=True)
class Disk:
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
    def state(self) -> State:
        """Return how full it is."""
        used = max(self.used_percent, self.inodes_percent or 0)
        if used >= FULL:
            return State.ERROR
        if used >= NEARLY_FULL:
            return State.WARNING
        return State.INFO if self.read_only else State.GOOD

    @property
    def used_percent(self) -> int:
        """Return the share that is used, rounded up as df does."""
        return _percent(self.used, self.used + self.available)

    @property
    def inodes_percent(self) -> int | None:
        """Return the share of inodes that is used, rounded up; None where none are counted."""
        return _percent(self.inodes - self.free_inodes, self.inodes) if self.inodes else None

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "disk",
            "state": str(self.state),
            "paths": [str(path) for path in self.paths],
            "total_bytes": self.total,
            "used_bytes": self.used,
            "available_bytes": self.available,
            "used_percent": self.used_percent,
            "inodes_percent": self.inodes_percent,
            "read_only": self.read_only,
            "log_dir_bytes": self.logs,
        }


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
    def state(self) -> State:
        """Return whether it suffices."""
        short = self.allowed is not None and self.needed > self.allowed
        return State.WARNING if short else State.GOOD

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "limit",
            "state": str(self.state),
            "name": self.name,
            "needed": self.needed,
            "allowed": self.allowed,
            "pid": self.pid,
        }


@dataclass(frozen=True, slots=True)
class Next:
    """The one command to run next."""

    command: str
    """As a shell takes it."""
    reason: str
    """What it is for."""

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {"type": "next", "command": self.command, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Component:
    """One piece of what logtool runs on."""

    name: str
    found: bool
    version: str | None = None
    detail: str | None = None
    state: State = State.GOOD

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        return {
            "type": "component",
            "state": str(self.state),
            "name": self.name,
            "found": self.found,
            "version": self.version,
            "detail": self.detail,
        }


Answer = Damage | NextStart | HighWatermark | BrokerState | Versions | Disk | Limit | Next
