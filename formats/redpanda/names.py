"""Names in a Redpanda data directory: what a file or folder is.

=======================================================  =========================================
in the data directory
=======================================================  =========================================
``pid.lock``                                             locked while a broker runs; holds its pid
``.redpanda_data_dir``                                   marks a data directory
``startup_log``, ``config_cache.yaml``                   the state of the broker
``cloud_storage_cache``, ``syschecks``, ...              no namespaces
``<namespace>/<topic>/<partition>_<revision>``           a partition; ``_part`` behind it: a
                                                         download that was not ended
``redpanda/controller/0_<revision>``                     the log of the cluster
``redpanda/kvstore/<shard>_0``                           what one core remembers
-------------------------------------------------------  -----------------------------------------
in a partition
-------------------------------------------------------  -----------------------------------------
``<base offset>-<term>-v1.log``                          a segment
``... .base_index``, ``... .compaction_index``           its indexes
``... .staging``, ``... .log.compaction...``             what compaction did not end; never read
``... .log.cannotrecover``,                              a segment in which a start found no
``... .log.<reason>.<tail|mid_log>.cannotrecover``       sound batch; never read again
``snapshot``                                             that of Raft, or of the kvstore
``*.snapshot``                                           that of a state machine
``abort.idx.<first>.<last>``                             ranges of aborted transactions
``<name>.partial.<milliseconds>.<4 characters>``         a snapshot that was not ended
=======================================================  =========================================

Numbers are decimal and not padded, so names do not sort as offsets do. A broker takes any one
character before ``log``, and no version but ``v1``. In tiered storage a segment is
``<base>-<committed>-<size>-<term>-v1.log.<archiver's term>``. Source: ``storage/fs_utils.cc``,
``storage/segment_utils.cc``, ``storage/segment_set.cc``, ``cloud_storage/remote_path_provider.cc``
(Redpanda 1c6cff34ea, 2024-12-20; the second form of ``.cannotrecover`` is of 2026).
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from logtool.lazy_dataclass import dataclass

DATA_DIR_MARKER = ".redpanda_data_dir"
LOCK = "pid.lock"
OTHER_FOLDERS = frozenset(
    {
        "cloud_storage_cache",
        "cloud_storage_inventory",
        "crash_reports",
        "lost+found",
        "syschecks",
    }
)
"""Folders of a data directory that are no namespaces."""
KAFKA_NAMESPACE = "kafka"
"""The namespace whose Raft offsets are not its Kafka offsets."""
LARGEST = 2**63 - 1
"""Largest value of any number in a name."""


class RedpandaFileKind(StrEnum):
    """Kind of a file of a partition. The value is its suffix or its whole name."""

    SEGMENT = ".log"
    BASE_INDEX = ".base_index"
    COMPACTION_INDEX = ".compaction_index"
    STAGING = ".staging"
    """Output of compaction, for any of these kinds, that was not renamed yet."""
    CANNOT_RECOVER = ".cannotrecover"
    TIERED_SEGMENT = "-v1.log."
    """A copy of a segment from tiered storage."""
    SNAPSHOT = "snapshot"
    STATE_MACHINE_SNAPSHOT = ".snapshot"
    PARTIAL_SNAPSHOT = ".partial."
    ABORTED_TRANSACTIONS = "abort.idx."
    UNKNOWN = ""


SEGMENTS = (
    RedpandaFileKind.SEGMENT,
    RedpandaFileKind.TIERED_SEGMENT,
    RedpandaFileKind.CANNOT_RECOVER,
)
"""Kinds of files that hold batches. A start gave up recovery of the last kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedpandaFileName:
    """Parts of the name of a file."""

    name: str
    kind: RedpandaFileKind
    base_offset: int | None = None
    """A Raft offset: where the segment begins, or the first of aborted transactions."""
    term: int | None = None
    """Term of every batch in the segment."""
    last_offset: int | None = None
    """Last offset of a segment from tiered storage or of aborted transactions."""
    reason: str | None = None
    """Why a segment could not be recovered, where its name says so."""
    at_tail: bool | None = None
    """True if that segment was the last one; None if its name does not say."""


@dataclass(frozen=True, slots=True)
class RedpandaPartitionDirectory:
    """Parts of the name of a partition's folder."""

    partition: int
    revision: int
    """Offset in the log of the cluster at which the partition was created."""
    is_download: bool
    """True if it is a recovery from tiered storage that did not end."""


_SEGMENT = re.compile(r"([0-9]+)-([0-9]+)-v1(.*)", re.ASCII | re.DOTALL)
_LOG = re.compile(r".log", re.DOTALL)
_CANNOT_RECOVER = re.compile(r".log(?:\.([^.]+)\.(tail|mid_log))?\.cannotrecover", re.DOTALL)
_STAGED = re.compile(r"\.(?:log|compaction_index)\.staging|\.log\.compaction\..+", re.DOTALL)
_TIERED = re.compile(r"([0-9]+)-([0-9]+)-[0-9]+-([0-9]+)-v1\.log\.[0-9]+", re.ASCII)
_ABORTED = re.compile(r"abort\.idx\.([0-9]+)\.([0-9]+)", re.ASCII)
_PARTIAL = re.compile(r".+\.partial\.[0-9]+\..{4}", re.ASCII | re.DOTALL)
_PARTITION = re.compile(r"([0-9]+)_([0-9]+)(_part)?", re.ASCII)
_INDEXES = {
    str(kind): kind for kind in (RedpandaFileKind.BASE_INDEX, RedpandaFileKind.COMPACTION_INDEX)
}


def parse_partition_directory(name: str) -> RedpandaPartitionDirectory | None:
    """Read the name of a folder of a topic; None where it is no partition's."""
    match = _PARTITION.fullmatch(name)
    if not match:
        return None
    partition, revision = int(match[1]), int(match[2])
    if partition >= 2**31 or revision > LARGEST:
        return None
    return RedpandaPartitionDirectory(partition, revision, match[3] is not None)


def parse_partition_file(name: str) -> RedpandaFileName:
    """Read the name of a file of a partition."""
    match = _SEGMENT.fullmatch(name)
    if match and max(int(match[1]), int(match[2])) <= LARGEST:
        return _segment_file(name, int(match[1]), int(match[2]), match[3])
    match = _TIERED.fullmatch(name)
    if match and max(map(int, match.groups())) <= LARGEST:
        return RedpandaFileName(
            name=name,
            kind=RedpandaFileKind.TIERED_SEGMENT,
            base_offset=int(match[1]),
            last_offset=int(match[2]),
            term=int(match[3]),
        )
    match = _ABORTED.fullmatch(name)
    if match:
        return RedpandaFileName(
            name=name,
            kind=RedpandaFileKind.ABORTED_TRANSACTIONS,
            base_offset=int(match[1]),
            last_offset=int(match[2]),
        )
    if _PARTIAL.fullmatch(name):
        return RedpandaFileName(name=name, kind=RedpandaFileKind.PARTIAL_SNAPSHOT)
    if name == RedpandaFileKind.SNAPSHOT:
        return RedpandaFileName(name=name, kind=RedpandaFileKind.SNAPSHOT)
    if name.endswith(RedpandaFileKind.STATE_MACHINE_SNAPSHOT):
        return RedpandaFileName(name=name, kind=RedpandaFileKind.STATE_MACHINE_SNAPSHOT)
    return RedpandaFileName(name=name, kind=RedpandaFileKind.UNKNOWN)


def format_segment(
    base_offset: int, term: int, kind: RedpandaFileKind = RedpandaFileKind.SEGMENT
) -> str:
    """Return the name that a broker gives to a segment or one of its indexes."""
    return f"{base_offset}-{term}-v1{kind}"


def is_data_dir(names: Sequence[str]) -> bool:
    """Return whether a directory with these entries is a data directory of Redpanda."""
    return DATA_DIR_MARKER in names or {"redpanda", LOCK} <= set(names)


def _segment_file(name: str, base_offset: int, term: int, behind: str) -> RedpandaFileName:
    reason, at_tail = None, None
    failed = _CANNOT_RECOVER.fullmatch(behind)
    if failed:
        kind, reason = RedpandaFileKind.CANNOT_RECOVER, failed[1]
        at_tail = None if failed[2] is None else failed[2] == "tail"
    elif _STAGED.fullmatch(behind):
        kind = RedpandaFileKind.STAGING
    elif behind in _INDEXES:
        kind = _INDEXES[behind]
    else:
        kind = RedpandaFileKind.SEGMENT if _LOG.fullmatch(behind) else RedpandaFileKind.UNKNOWN
    known = kind is not RedpandaFileKind.UNKNOWN
    return RedpandaFileName(
        name=name,
        kind=kind,
        base_offset=base_offset if known else None,
        term=term if known else None,
        reason=reason,
        at_tail=at_tail,
    )
