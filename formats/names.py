r"""Names in a log directory: what a file or folder is, and what a broker makes of its name.

=================================================================  =============================
in a directory of ``log.dirs``
=================================================================  =============================
``<topic>-<partition>``                                            a partition
``<topic>-<partition>.<32 hex>-delete``                            a partition to be deleted
``<topic>-<partition>.<32 hex>-future``                            a copy from another log dir
``<topic>-<partition>.<32 hex>-stray``                             a partition put aside
``meta.properties``, ``.lock``, ``*-offset-checkpoint``, ...       the state of the log dir
``remote-log-index-cache/<offset>_<uuid>.<index>``                 an index of a remote segment
-----------------------------------------------------------------  -----------------------------
in a partition
-----------------------------------------------------------------  -----------------------------
``<20 digits>.log``, ``.index``, ``.timeindex``, ``.txnindex``,    a segment by base offset,
``.snapshot``, each also ``.deleted``, ``.cleaned``, ``.swap``     or what a job makes of it
``leader-epoch-checkpoint``, ``partition.metadata``,               the state of the partition
``quorum-state``, KRaft snapshots
=================================================================  =============================

A broker recognises the files of a partition by the end of the name and reads the number up to the
first ``.``: a stray ``foo.log`` stops it, a stray ``foo.txt`` does not. In the root every folder
must be a partition and unknown files are ignored. Source: ``LocalLog.parseTopicPartitionName``,
``LogFileUtils``, ``LogLoader.removeTempFilesAndCollectSwapFiles``, ``RemoteIndexCache``,
``Topic`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache
from itertools import product

from logtool.formats import kraft_snapshot
from logtool.formats.java_text import NOT_SPACE, parse_int, parse_long, parse_uuid
from logtool.formats.kraft_snapshot import SnapshotState
from logtool.lazy_dataclass import dataclass

REMOTE_INDEX_CACHE = "remote-log-index-cache"
CLUSTER_METADATA = "__cluster_metadata"
CONSUMER_OFFSETS = "__consumer_offsets"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, "__transaction_state", SHARE_GROUP_STATE})
COORDINATORS_OF_GROUPS = frozenset({CONSUMER_OFFSETS, SHARE_GROUP_STATE})
"""Topics in which coordinators store groups: their members, committed offsets and start offsets."""
TOPIC_MAX_SIZE = 249
NAME_MAX_SIZE = 255

TopicPartition = tuple[str, int]
"""A topic and the number of a partition: the key of every offset checkpoint."""


class FileKind(StrEnum):
    """The format of a file. The value is its suffix or its whole name."""

    LOG = ".log"
    OFFSET_INDEX = ".index"
    TIME_INDEX = ".timeindex"
    TRANSACTION_INDEX = ".txnindex"
    PRODUCER_SNAPSHOT = ".snapshot"
    KRAFT_SNAPSHOT = ".checkpoint"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    PARTITION_METADATA = "partition.metadata"
    QUORUM_STATE = "quorum-state"
    META_PROPERTIES = "meta.properties"
    BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
    LOCK = ".lock"
    CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
    RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
    REPLICATION_CHECKPOINT = "replication-offset-checkpoint"
    LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
    CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
    REDPANDA_SEGMENT = "redpanda-segment"
    """Named otherwise, see `logtool.formats.redpanda.names`; so is the next."""
    REDPANDA_BASE_INDEX = "redpanda-base-index"
    AUTOMQ_OBJECT = "automq-object"
    """An object in a bucket of AutoMQ, of any kind."""
    UNKNOWN = ""


class FileState(StrEnum):
    """State of a file by its last suffix. The value is that suffix."""

    LIVE = ""
    DELETED = ".deleted"
    CLEANED = ".cleaned"
    SWAP = ".swap"
    PARTIAL = ".part"
    TEMPORARY = ".tmp"


class Reception(StrEnum):
    """Reaction of a broker to a name when it starts."""

    EXACT = "exact"
    """The name Kafka writes."""
    ACCEPTED = "accepted"
    """Not a name Kafka writes, but the number can be read; the broker opens the name that Kafka
    writes for the number, which may be another file."""
    STOPS_BROKER = "stops-broker"
    """The suffix is Kafka's and the number cannot be read: an uncaught exception."""
    ERASED = "erased"
    """Not a name Kafka writes, but it ends in ``.deleted``: removed at the next start."""
    IGNORED = "ignored"
    """Nothing to Kafka."""


class DirectoryKind(StrEnum):
    """Purpose of a partition directory. The value is its suffix."""

    LIVE = ""
    DELETE = "-delete"
    FUTURE = "-future"
    STRAY = "-stray"


@dataclass(frozen=True, slots=True)
class FileName:
    """Parts of the name of a file."""

    name: str
    kind: FileKind
    state: FileState
    reception: Reception
    offset: int | None = None
    """Base offset of the segment; exclusive end offset of a snapshot."""
    epoch: int | None = None
    """Epoch of a KRaft snapshot."""
    segment_uuid: str | None = None
    """Uuid of a file of the remote index cache."""


@dataclass(frozen=True, slots=True)
class PartitionDirectory:
    """Parts of the name of a partition directory."""

    name: str
    kind: DirectoryKind
    topic: str
    partition: int
    unique_id: str | None
    """Text between the last dot and the suffix; None for a live directory."""
    exact: bool
    """True if Kafka writes exactly this name."""
    unlisted: bool = False
    """True if it is a folder of Redpanda above partitions that could not be listed."""

    @property
    def topic_may_be_cut(self) -> bool:
        """Return whether the topic may be a prefix: Kafka cuts these names to 255 characters."""
        cut = self.kind in (DirectoryKind.DELETE, DirectoryKind.STRAY)
        return cut and len(self.name) == NAME_MAX_SIZE


@dataclass(frozen=True, slots=True)
class BadDirectory:
    """A name that is no partition's: a broker that meets such a directory does not start."""

    name: str
    reason: str


SEGMENT_KINDS = (
    FileKind.LOG,
    FileKind.OFFSET_INDEX,
    FileKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX,
)
"""The files of a segment; only these are ever ``.cleaned`` or ``.swap``."""
INDEX_KINDS = SEGMENT_KINDS[1:]

_NUMBERED_KINDS = (*SEGMENT_KINDS, FileKind.PRODUCER_SNAPSHOT)
_PLAIN_KINDS = {str(kind): kind for kind in _NUMBERED_KINDS}
_PARTITION_KINDS = (
    FileKind.LEADER_EPOCH_CHECKPOINT,
    FileKind.PARTITION_METADATA,
    FileKind.QUORUM_STATE,
)
_ROOT_KINDS = (
    FileKind.META_PROPERTIES,
    FileKind.BOOTSTRAP_CHECKPOINT,
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
    FileKind.LOG_START_CHECKPOINT,
    FileKind.CLEANER_CHECKPOINT,
)
_UNREPLACED_KINDS = (FileKind.LOCK, FileKind.CLEAN_SHUTDOWN)
_SEGMENT_STATES = (FileState.DELETED, FileState.CLEANED, FileState.SWAP)
_SNAPSHOT_STATES = {
    SnapshotState.COMPLETE: FileState.LIVE,
    SnapshotState.PARTIAL: FileState.PARTIAL,
    SnapshotState.DELETED: FileState.DELETED,
}
_PREFIX = re.compile(r"[0-9]{20}")
_PLAIN = re.compile(r"(0[0-9]{19})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
"""Nearly every name in a directory: a zero in front makes it a number that a long can hold."""
_SUFFIXES = DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY
_UNIQUE_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIXED = re.compile(rf"{NOT_SPACE}+-{NOT_SPACE}+\.{NOT_SPACE}+-(?:delete|future|stray)")
_REMOTE = re.compile(r"([^_]+)_([^.]+)(\.index|\.timeindex|\.txnindex)(|\.deleted|\.tmp)")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]+")


def parse_directory(name: str) -> PartitionDirectory | BadDirectory:
    """Read the name of a directory of the root as ``LocalLog.parseTopicPartitionName`` does."""
    if "-" not in name:
        return BadDirectory(name, "expected <topic>-<partition>, found no '-'")
    kind = next((k for k in _SUFFIXES if name.endswith(k)), DirectoryKind.LIVE)
    working, unique_id = name, None
    if kind is not DirectoryKind.LIVE:
        if not _SUFFIXED.fullmatch(name):
            return BadDirectory(name, f"expected <topic>-<partition>.<unique id>{kind}")
        working, _, unique_id = name.removesuffix(kind).rpartition(".")
    topic, _, partition_text = working.rpartition("-")
    partition = parse_int(partition_text)
    if not topic:
        return BadDirectory(name, "expected <topic>-<partition>, found no topic")
    if partition is None:
        return BadDirectory(name, f"expected a partition number, found {partition_text!a}")
    exact = partition_text == str(partition) and (
        unique_id is None or _UNIQUE_ID.fullmatch(unique_id) is not None
    )
    return PartitionDirectory(
        name=name, kind=kind, topic=topic, partition=partition, unique_id=unique_id, exact=exact
    )


def parse_partition_file(name: str, *, metadata_log: bool = False) -> FileName:
    """Read the name of a file of a partition.

    `metadata_log` says that the partition is ``__cluster_metadata-0``: only there does a broker
    read the names of KRaft snapshots, and stop at one it cannot read.
    """
    return _partition_file(name, metadata_log)


# Most partitions have files of the same names, and each name is read several times.
@lru_cache(maxsize=1024)
def _partition_file(name: str, metadata_log: bool) -> FileName:
    plain = _PLAIN.fullmatch(name)
    if plain:
        return FileName(
            name=name,
            kind=_PLAIN_KINDS[plain[2]],
            state=FileState.LIVE,
            reception=Reception.EXACT,
            offset=int(plain[1]),
        )
    snapshot = kraft_snapshot.parse(name)
    if snapshot:
        return _snapshot_file(snapshot, metadata_log)
    fixed = _PARTITION_FILES.get(name)
    if fixed:
        return fixed
    state = next((s for s in _SEGMENT_STATES if name.endswith(s)), FileState.LIVE)
    stem = name.removesuffix(state)
    kind = next((k for k in _NUMBERED_KINDS if stem.endswith(k)), FileKind.UNKNOWN)
    if kind is FileKind.UNKNOWN and state is FileState.LIVE:
        return FileName(name=name, kind=kind, state=state, reception=Reception.IGNORED)
    prefix = name.partition(".")[0]
    offset = parse_long(prefix)
    exact = (
        offset is not None
        and _PREFIX.fullmatch(prefix) is not None
        and stem == prefix + kind
        and _occurs(kind, state)
    )
    return FileName(
        name=name, kind=kind, state=state, reception=_reception(exact, state, offset), offset=offset
    )


def parse_root_file(name: str) -> FileName:
    """Read the name of a file in a directory of ``log.dirs``."""
    return _ROOT_FILES.get(name) or FileName(
        name=name, kind=FileKind.UNKNOWN, state=FileState.LIVE, reception=Reception.IGNORED
    )


def uncommitted_swaps(files: Iterable[FileName]) -> set[str]:
    """Return the names of the ``.swap`` files that a broker deletes when it loads the log.

    Files of a job are renamed from the last offset to the first, so that a ``.swap`` at or behind
    the first offset of a ``.cleaned`` belongs to a job that was not committed (KAFKA-6264).
    """
    swaps: dict[str, int] = {}
    least = 2**63
    for file in files:
        if file.offset is not None and file.state is FileState.CLEANED:
            least = min(least, file.offset)
        elif file.offset is not None and file.state is FileState.SWAP:
            swaps[file.name] = file.offset
    return {name for name, offset in swaps.items() if offset >= least}


def leading_offset(name: str) -> int | None:
    """Return the number in front of the first dot, as ``LogFileUtils.offsetFromFileName`` reads it.

    None without a dot, and where the text in front of it is no number.
    """
    prefix, dot, _ = name.partition(".")
    return parse_long(prefix) if dot else None


def parse_remote_index(name: str) -> FileName:
    """Read the name of a file in ``remote-log-index-cache``: the offset is not padded."""
    match = _REMOTE.fullmatch(name)
    offset = parse_long(match.group(1)) if match else None
    segment_uuid = parse_uuid(match.group(2)) if match else None
    if not match or offset is None or segment_uuid is None:
        return FileName(
            name=name, kind=FileKind.UNKNOWN, state=FileState.LIVE, reception=Reception.IGNORED
        )
    exact = match.group(1) == str(offset) and match.group(2) == segment_uuid
    return FileName(
        name=name,
        kind=FileKind(match.group(3)),
        state=FileState(match.group(4)),
        reception=Reception.EXACT if exact else Reception.ACCEPTED,
        offset=offset,
        segment_uuid=segment_uuid,
    )


def format_offset(offset: int) -> str:
    """Return the 20 digits that begin the name of a segment's files, behind the sign if any."""
    return f"{'-' if offset < 0 else ''}{abs(offset):020d}"


def format_partition_file(offset: int, kind: FileKind, state: FileState = FileState.LIVE) -> str:
    """Return the name of a segment's file or of a producer snapshot."""
    return f"{format_offset(offset)}{kind}{state}"


def topic_fault(topic: str) -> str | None:
    """Return why Kafka would not create a topic of this name; None if it would.

    A broker does not ask this of the directories it finds.
    """
    if topic in ("", ".", ".."):
        return f"expected a name, found {topic!r}"
    if len(topic) > TOPIC_MAX_SIZE:
        return f"expected at most {TOPIC_MAX_SIZE} characters, found {len(topic)}"
    if not _TOPIC.fullmatch(topic):
        return "expected only letters, digits, '.', '_' and '-'"
    return None


def _snapshot_file(snapshot: kraft_snapshot.SnapshotName, metadata_log: bool) -> FileName:
    readable = snapshot.end_offset is not None and snapshot.epoch is not None
    if snapshot.canonical:
        reception = Reception.EXACT
    elif not metadata_log:
        reception = Reception.IGNORED
    else:
        reception = Reception.ACCEPTED if readable else Reception.STOPS_BROKER
    known = snapshot.canonical or metadata_log
    return FileName(
        name=snapshot.name,
        kind=FileKind.KRAFT_SNAPSHOT if known else FileKind.UNKNOWN,
        state=_SNAPSHOT_STATES[snapshot.state] if known else FileState.LIVE,
        reception=reception,
        offset=snapshot.end_offset if known else None,
        epoch=snapshot.epoch if known else None,
    )


def _occurs(kind: FileKind, state: FileState) -> bool:
    if kind is FileKind.PRODUCER_SNAPSHOT:
        return state in (FileState.LIVE, FileState.DELETED)
    return kind is not FileKind.UNKNOWN


def _reception(exact: bool, state: FileState, offset: int | None) -> Reception:
    if exact:
        return Reception.EXACT
    if state is FileState.DELETED:
        return Reception.ERASED
    return Reception.STOPS_BROKER if offset is None else Reception.ACCEPTED


def _fixed_files(
    kinds: Iterable[FileKind], states: Iterable[FileState]
) -> Iterator[tuple[str, FileName]]:
    """Yield the whole names of files of these kinds, as text and parsed."""
    for kind, state in product(kinds, states):
        name = f"{kind}{state}"
        yield name, FileName(name=name, kind=kind, state=state, reception=Reception.EXACT)


_REPLACED = FileState.LIVE, FileState.TEMPORARY
_PARTITION_FILES = dict(_fixed_files(_PARTITION_KINDS, _REPLACED))
_ROOT_FILES = dict(
    (*_fixed_files(_ROOT_KINDS, _REPLACED), *_fixed_files(_UNREPLACED_KINDS, (FileState.LIVE,)))
)
