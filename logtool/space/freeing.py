"""The cheapest way to free a number of bytes: files that wait to be deleted, then segments.

Segments are proposed in the order in which retention deletes them anyway, each log from its oldest
segment on, and never the active segment. A running broker deletes them when it is asked to delete
the records below an offset; it refuses that for internal topics, and for a topic whose
cleanup.policy has no delete. Source: ``ReplicaManager.deleteRecordsOnLocalLog``,
``Partition.deleteRecordsOnLeader`` (Kafka 3.9).
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

from logtool.disk import files
from logtool.errors import UsageError
from logtool.formats.names import INTERNAL_TOPICS, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.retention.run import PartitionRetention
from logtool.space.usage import FREE_OF_COST, DirectoryUsage
from logtool.times import rfc3339

HIGH_WATERMARK = -1
"""The offset that stands for the high watermark (``DeleteRecordsRequest.HIGH_WATERMARK``)."""


class StepKind(StrEnum):
    """The kinds of bytes that a step frees."""

    LEFTOVERS = "leftovers"
    """Files that the broker removes by itself when it starts."""
    SEGMENTS = "segments"
    """Segments that retention deletes later."""


@dataclass(frozen=True, slots=True)
class FreeingStep:
    """Bytes to remove from one directory."""

    kind: StepKind
    path: Path
    topic: str | None
    partition: int | None
    bytes: int
    """Bytes of the blocks that it frees."""
    segments: int = 0
    before_offset: int | None = None
    """Records below this offset go; None for leftovers."""
    deleted_ms: int | None = None
    """Time at which retention deletes the last of them, in ms."""

    @property
    def deleted(self) -> str | None:
        """Return that time in UTC."""
        return rfc3339(self.deleted_ms)


@dataclass(frozen=True, slots=True)
class CandidateSegment:
    """A closed segment that retention deletes at some time."""

    deleted_ms: int
    log: int
    """Number of the log, in the order of the run."""
    row: int
    bytes: int
    """Bytes of the blocks of the files that go with it."""


def leftovers(usages: Iterable[DirectoryUsage]) -> list[FreeingStep]:
    """Return a step for each directory that has bytes which cost no record, the largest first."""
    steps = []
    for usage in usages:
        freed = sum(usage.kinds[kind].disk for kind in FREE_OF_COST if kind in usage.kinds)
        if freed:
            steps.append(FreeingStep(StepKind.LEFTOVERS, usage.path, usage.topic, None, freed))
    return sorted(steps, key=lambda step: (-step.bytes, step.path))


def candidates(number: int, log: PartitionRetention) -> list[CandidateSegment]:
    """Return the closed segments of one log that retention deletes, the oldest first.

    UnreadableError if the partition dir cannot be listed.
    """
    if not log.limits.deletes or log.directory.topic in INTERNAL_TOPICS:
        return []
    found: list[CandidateSegment] = []
    gone: list[list[File]] = []
    for row, segment in enumerate(log.segments[:-1]):
        if segment.deleted_ms is None:
            break
        gone = gone or removed_files(log.listed)
        if row < len(gone):  # a broker that runs may have deleted segments
            found.append(CandidateSegment(segment.deleted_ms, number, row, blocks(gone[row])))
    return found


def removed_files(partition: Partition) -> list[list[File]]:
    """Return for each segment the files that go with it when the oldest segments are deleted.

    These are its log and indexes, and the snapshots and indexes without a log that lie below the
    next segment.
    """
    segments = partition.segments
    bases = [one.base_offset for one in segments]
    found = [[one.log, *one.indexes.values()] for one in segments]
    for file in (*partition.orphans, *partition.snapshots) if found else ():
        found[max(0, bisect_right(bases, file.name.offset or 0) - 1)].append(file)
    return found


def blocks(gone: Iterable[File]) -> int:
    """Return the bytes of the blocks of files, or their sizes where blocks are not known."""
    return sum(one.size if one.allocated is None else one.allocated for one in gone)


def segment_steps(
    logs: Sequence[PartitionRetention], among: Iterable[CandidateSegment], wanted: int
) -> list[FreeingStep]:
    """Return a step for each log, which together free at least `wanted` bytes if all can."""
    rows: dict[int, int] = {}
    freed: dict[int, int] = {}
    latest: dict[int, int] = {}
    for one in sorted(among, key=lambda one: (one.deleted_ms, one.log, one.row)):
        if wanted <= 0:
            break
        wanted -= one.bytes
        rows[one.log] = one.row + 1
        freed[one.log] = freed.get(one.log, 0) + one.bytes
        latest[one.log] = one.deleted_ms
    return [
        FreeingStep(
            StepKind.SEGMENTS, logs[log].path,
            logs[log].directory.topic, logs[log].directory.partition,
            freed[log], count, logs[log].log.columns.base_offset[count], latest[log],
        )
        for log, count in rows.items()
    ]  # fmt: skip


def offsets_file(steps: Iterable[FreeingStep]) -> str | None:
    """Return the file for ``kafka-delete-records.sh --offset-json-file``; None without a row.

    Source: ``DeleteRecordsCommand.parseOffsetJsonStringWithoutDedup`` (Kafka 3.9), version 1.
    """
    rows = [
        {"topic": step.topic, "partition": step.partition, "offset": step.before_offset}
        for step in steps
        if step.before_offset is not None
    ]
    return json.dumps({"partitions": rows, "version": 1}) if rows else None


def parse_offsets_file(path: Path) -> dict[TopicPartition, int]:
    """Return the offsets in a file for ``kafka-delete-records.sh --offset-json-file``.

    UsageError for another content, UnreadableError. Source:
    ``DeleteRecordsCommand.parseOffsetJsonStringWithoutDedup`` (Kafka 3.9), version 1.
    """
    found: dict[TopicPartition, int] = {}
    try:
        document = json.loads(files.read_small(path))
        version, rows = document.get("version", 1), document["partitions"]
        for row in rows:
            topic, number, offset = row["topic"], row["partition"], row["offset"]
            sound = isinstance(topic, str) and type(number) is type(offset) is int
            if not sound or offset < HIGH_WATERMARK or (topic, number) in found:
                raise UsageError(f"--offsets-file {path}: {json.dumps(row)}: not an offset, or not "
                                 "the only one of its partition")  # fmt: skip
            found[topic, number] = offset
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"--offsets-file {path}: is not a file for kafka-delete-records.sh: {error}"
        ) from error
    if version != 1 or not found:
        text = "has no partitions" if version == 1 else f"has version {version!r}; expected 1"
        raise UsageError(f"--offsets-file {path}: {text}")
    return found
