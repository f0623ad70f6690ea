"""Files that have to be rebuilt in one partition: those that `verify` finds bad, or all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from logtool.checks.partition import Item
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.findings import Broker, Finding, Severity
from logtool.formats import names, offset_index
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Partition, Segment

FileKey = tuple[FileKind, int]
"""A file by its kind and the offset in its name."""

KINDS = {
    "offset": FileKind.OFFSET_INDEX,
    "time": FileKind.TIME_INDEX,
    "transaction": FileKind.TRANSACTION_INDEX,
    "snapshot": FileKind.PRODUCER_SNAPSHOT,
}
"""Kinds of files that can be built, by their words on the command line."""
_AREAS = {
    "offset-index": FileKind.OFFSET_INDEX,
    "time-index": FileKind.TIME_INDEX,
    "transaction-index": FileKind.TRANSACTION_INDEX,
    "producer-snapshot": FileKind.PRODUCER_SNAPSHOT,
}
OTHERWISE = "recovery of the log writes it differently"
"""Reason for a sound file to be built."""
WITH_OFFSETS = "recovery writes it together with the offset index, which is missing"
"""Reason for a transaction index that no rule finds bad.

Verify does not miss the entry of an aborted transaction without records: no reader needs it.
"""
_PADDED = "/preallocated"
_BEHIND = "transaction-index/behind"
"""Finding that is normal after a kill, but recovery writes the index otherwise."""
_NOT_WRITTEN = "/not-written"
"""End of the finding for a missing active index, which is normal: the start makes it."""
_ORPHAN = "partition/orphan-index"


@dataclass(frozen=True, slots=True)
class FileChoice:
    """Choice of the files to be built."""

    kinds: frozenset[FileKind] = frozenset(KINDS.values())
    everything: bool = False
    """True to build also sound files that recovery would write otherwise."""
    snapshot_every: int | None = None
    """Bytes of log between additional producer snapshots; None: only those of a broker."""

    def takes(self, key: FileKey, only: frozenset[FileKey] | None) -> bool:
        """Return whether a file is meant, of those `only` that were named."""
        return key[0] in self.kinds and (only is None or key in only)


@dataclass(slots=True)
class PartitionFindings:
    """Findings of `verify` in a partition, as far as they matter here."""

    bad: dict[FileKey, list[Finding]] = field(default_factory=dict)
    damage: dict[int, Finding] = field(default_factory=dict)
    """The first error of each log that has one, by base offset."""
    orphans: dict[FileKey, Path] = field(default_factory=dict)
    unread: dict[FileKey, UnreadableError] = field(default_factory=dict)


def sort_findings(items: Iterable[Item], *, clean: bool) -> PartitionFindings:
    """Sort the findings of `verify` by file.

    Zeros behind the entries of an active index are normal, unless a broker will take the log as it
    is (`clean`): then they count as entries.
    """
    judgement = PartitionFindings()
    for item in items:
        name = names.parse_partition_file(item.path.name) if item.path else None
        if name is None or name.offset is None:
            continue
        key = name.kind, name.offset
        if isinstance(item, UnreadableError):
            judgement.unread[key] = item
            continue
        area = item.code.partition("/")[0]
        if area in _AREAS:
            padded = clean and item.code.endswith(_PADDED)
            wanting = item.code == _BEHIND or item.code.endswith(_NOT_WRITTEN)
            if item.severity is not Severity.INFO or padded or wanting:
                judgement.bad.setdefault((_AREAS[area], name.offset), []).append(item)
        elif item.code == _ORPHAN and item.path:
            judgement.orphans[key] = item.path
        elif _ends_log(item):
            first = judgement.damage.setdefault(name.offset, item)
            if (item.position or 0) < (first.position or 0):
                judgement.damage[name.offset] = item
    return judgement


def _ends_log(finding: Finding) -> bool:
    """Return whether recovery would end the log there, or fail."""
    area = finding.code.partition("/")[0]
    noticed = finding.broker is not Broker.NEVER or area == "log"
    return area in ("batch", "log") and noticed and finding.severity is Severity.ERROR


def select(
    partition: Partition,
    judged: PartitionFindings,
    wanted: FileChoice,
    only: frozenset[FileKey] | None,
    needed_snapshots: Iterable[int],
) -> dict[FileKey, str]:
    """Return the files to be built, each with the reason."""
    chosen: dict[FileKey, str] = {key: _why(findings) for key, findings in judged.bad.items()}
    for segment in partition.segments:
        if FileKind.OFFSET_INDEX not in segment.indexes:
            key = FileKind.TRANSACTION_INDEX, segment.base_offset
            chosen.setdefault(key, WITH_OFFSETS)
    there = {file.name.offset for file in partition.snapshots}
    for offset in needed_snapshots:
        if offset not in there:
            chosen[FileKind.PRODUCER_SNAPSHOT, offset] = no_snapshot_text(offset)
    if wanted.everything:
        for key in _all(partition):
            chosen.setdefault(key, OTHERWISE)
    return {
        key: why
        for key, why in sorted(chosen.items(), key=lambda item: (item[0][1], item[0][0]))
        if wanted.takes(key, only) and key not in judged.unread
    }


def no_snapshot_text(offset: int) -> str:
    """Return the reason for a producer snapshot that does not exist yet."""
    return f"there is no producer snapshot at offset {offset}"


def needed_snapshots(
    bases: Sequence[int], *, clean: bool, log_start: int, log_end: int | None
) -> list[int]:
    """Return the offsets of the producer snapshots that a broker would write itself.

    These are the bases of the last two segments, and the end of a log that was stopped cleanly
    (``UnifiedLog.rebuildProducerState``, Kafka 3.9 and 4.3), but not the start of the log.
    `bases` are the base offsets of the segments, by offset.
    """
    if not bases:
        return []
    start = max(log_start, bases[0])
    offsets = list(bases[-2:])
    if clean and log_end is not None:
        offsets.append(log_end)
    return [offset for offset in dict.fromkeys(offsets) if offset > start]


def frequent_offsets(partition: Partition, every: int) -> dict[int, int]:
    """Return the bases of all segments and offsets about `every` bytes of log apart in them.

    Each comes with the base of its segment. They are for additional producer snapshots, with which
    less of a log has to be replayed. A broker takes one at the base of a segment. In between, a
    snapshot may be at the end of any batch: each entry of an offset index names such a place, so
    that they are known before the log is read. A broker that starts deletes all but the newest of
    them, and keeps that one only if it is behind the base of the last segment
    (``ProducerStateManager.removeStraySnapshots``, Kafka 3.9 and 4.3).
    """
    found: dict[int, int] = {}
    for segment in partition.segments:
        base = segment.base_offset
        found |= dict.fromkeys((base, *_offsets_inside(segment, every)), base)
    return found


def _offsets_inside(segment: Segment, every: int) -> Iterator[int]:
    """Yield the offsets behind the first index entry of each stretch of a segment."""
    file = segment.indexes.get(FileKind.OFFSET_INDEX)
    index = offset_index.parse(files.read_small(file.path) if file else b"")
    ends = index.offsets(segment.base_offset) + 1
    positions = index.positions.astype(np.int64)
    last = 0
    while len(rows := np.flatnonzero(positions >= last + every)):
        last = int(positions[rows[0]])
        if segment.next_base_offset is None or ends[rows[0]] < segment.next_base_offset:
            yield int(ends[rows[0]])


def frequent_snapshots(
    judged: PartitionFindings, chosen: Mapping[FileKey, str], more: Mapping[int, int]
) -> dict[FileKey, str]:
    """Return the snapshots of `more`, offsets with their segments, that are reliable.

    Only a sound index is trusted for the end of a batch. And a snapshot implies that the
    transaction indexes before it are complete: so it must not be behind a bad one.
    """
    behind = min(
        (key[1] for key in judged.bad.keys() - chosen if key[0] is FileKind.TRANSACTION_INDEX),
        default=2**63,
    )
    return {
        (FileKind.PRODUCER_SNAPSHOT, offset): "requested by --snapshot-every"
        for offset, base in more.items()
        if offset <= behind and (offset == base or (FileKind.OFFSET_INDEX, base) not in judged.bad)
    }


def _all(partition: Partition) -> Iterator[FileKey]:
    for segment in partition.segments:
        for kind in names.INDEX_KINDS:
            yield kind, segment.base_offset
    for file in partition.snapshots:
        yield FileKind.PRODUCER_SNAPSHOT, file.name.offset or 0


def _why(findings: list[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return findings[0].message + more
