"""Rules for a partition of Redpanda: its names, terms and snapshot, and gaps in its log.

Valid are zeros behind the last batch, because room is reserved ahead; placeholders that compaction
leaves for the last batch of a segment; a segment whose name is below its first batch, which a
follower writes that was sent ghost batches; a CRC of 0. A gap in a log that was never compacted is
a fault: Raft leaves no gaps, but a start of Redpanda that cuts a segment in the middle of a log
leaves one. Source: ``storage/segment_set.cc``, ``storage/disk_log_appender.cc``,
``storage/compaction_reducers.cc`` (Redpanda 1c6cff34ea, 2024-12-20).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from logtool.checks import file_names
from logtool.checks.report import SegmentReport
from logtool.disk import shell
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import FileKind
from logtool.formats.redpanda import kvstore, names, snapshot
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.formats.redpanda.snapshot import RaftSnapshot
from logtool.log import kvstore as stored
from logtool.log.dir import Partition, Segment
from logtool.log.redpanda import given_up_segments, is_compacted, is_reserved_room

_LARGEST_SNAPSHOT = 256 * 1024 * 1024
"""Bytes of a snapshot that are read: a kvstore rolls at 16 MiB, Raft's metadata are smaller."""


def check_names(partition: Partition) -> Iterator[Finding]:
    """Yield the findings of the names in the directory of a partition."""
    for file in partition.strangers:
        text = "is not a Redpanda file"
        yield Finding("partition/unknown-file", text, path=file.path)
    yield from file_names.check_leftovers(partition)
    for file in partition.orphans:
        text = "has no segment next to it"
        yield Finding("partition/orphan-index", text, path=file.path, segment=file.name.offset)
    for path in partition.odd_entries:
        text = "is not a regular file; a broker ignores it"
        yield Finding("partition/unknown-file", text, path=path)
    for file in given_up_segments(partition):
        name = names.parse_partition_file(file.path.name)
        why = f" ({name.reason})" if name.reason else ""
        if is_reserved_room(file):
            text = f"holds only {wording.size(file.size)} of zeros{why}: Redpanda reserved room, "
            text += "but wrote no batch"
            code = "log/given-up-room"
        else:
            text = f"the broker found no sound batch in it{why} at a start, and never reads its "
            text += f"{wording.size(file.size)} again; logtool dump shows what the file holds"
            code = "log/cannot-recover"
        yield Finding(code, text, path=file.path, segment=name.base_offset)
    for segment in partition.segments:
        is_open = segment.is_active and segment.log.path.name.endswith(
            ".log"
        )  # Not of tiered storage.
        if is_open and FileKind.REDPANDA_BASE_INDEX not in segment.indexes:
            text = "has no base index: Redpanda writes it when it closes or flushes the segment"
            finding = Finding("base-index/not-written", text)
            yield finding.placed(segment.log.path, segment=segment.base_offset)
    if not partition.segments:
        yield Finding("partition/empty", "holds no segment", path=partition.path)


def check_segments(partition: Partition, reports: Sequence[SegmentReport]) -> Iterator[Finding]:
    """Yield the faults between segments, and the offsets missing from the log.

    In a kvstore these are the places at which a start ends.
    """
    if _is_kvstore(partition.path):
        for path, reason in stored.read_one(partition.path).refusals:
            if path.name != RedpandaFileKind.SNAPSHOT:  # Whose faults `check_snapshot` reports.
                yield Finding("segment/kvstore-hole", reason, path=path)
        return
    compacted = is_compacted(partition) or any(report.compacted for report in reports)
    pairs = zip(pairwise(partition.segments), pairwise(reports), strict=True)
    for (left, right), (found, behind) in pairs:
        before, after = left.log.name.epoch or 0, right.log.name.epoch or 0
        if after < before:
            text = f"has term {after}, but the segment before it has term {before}"
            finding = Finding("segment/term-order", text)
            yield finding.placed(right.log.path, segment=right.base_offset)
        if not found.scanned or found.changed:
            continue
        if found.next_offset > right.base_offset:
            text = f"ends at offset {found.last_offset}, but the next segment begins at "
            span = (right.base_offset, found.last_offset)
            finding = Finding("segment/overlap", f"{text}{right.base_offset}", None, None, *span)
            yield _placed(partition, left, finding)
        elif found.next_offset < right.base_offset and not found.damaged and not compacted:
            first = behind.first_offset or right.base_offset
            yield _placed(partition, left, _hole(found.next_offset, max(first, right.base_offset)))
    if compacted:
        return
    for number, (segment, report) in enumerate(zip(partition.segments, reports, strict=True)):
        for first, end, position in report.holes:
            # Offsets missing at the head were reported with the end of the segment before.
            earlier = reports[number - 1] if number else None
            if first == segment.base_offset and earlier and earlier.next_offset < first:
                continue
            yield _placed(partition, segment, _hole(first, end, position))


def _hole(first: int, end: int, position: int | None = None) -> Finding:
    text = f"no batch holds {wording.offsets(first, end - 1)}, and nothing shows that this log was "
    text += "ever compacted"
    return Finding("segment/missing", text, position, None, first, end - 1)


def _placed(partition: Partition, segment: Segment, finding: Finding) -> Finding:
    command = f"logtool dump {shell.path(partition.path)} --offset {finding.first_offset}.."
    return finding.placed(segment.log.path, segment=segment.base_offset, next_command=command)


def check_snapshot(partition: Partition) -> Iterator[Finding | UnreadableError]:
    """Yield the fault of the snapshot of a partition, if it has a snapshot and a fault.

    It is a snapshot of Raft or of a kvstore. The CRCs of a Raft snapshot cover the frame and the
    metadata, those of a kvstore snapshot its one batch too. Redpanda does not start if a CRC does
    not match, because nothing can replace the snapshot: in Raft, the log begins at it. Source:
    ``storage/snapshot.cc``, ``storage/kvstore.cc`` (``load_snapshot_from_reader``),
    ``raft/consensus.cc`` (``hydrate_snapshot``; Redpanda 1c6cff34ea, 2024-12-20).
    """
    for file in partition.others:
        if names.parse_partition_file(file.path.name).kind is not RedpandaFileKind.SNAPSHOT:
            continue
        try:
            with file.open() as opened:
                found = snapshot.parse(opened.read(0, min(file.size, _LARGEST_SNAPSHOT)))
        except UnreadableError as error:
            yield error
            continue
        if fault := _snapshot_fault(found) or (
            _kvstore_fault(found) if _is_kvstore(file.path.parent) else None
        ):
            yield Finding("partition/snapshot", fault, 0, path=file.path)


def _is_kvstore(folder: Path) -> bool:
    return folder.absolute().parent.name == "kvstore"


def _snapshot_fault(found: RaftSnapshot) -> str | None:
    if found.header_crc is None:
        return f"holds {wording.count(len(found.payload), 'byte')}, less than a header"
    if not found.header_crc_holds:
        return f"CRC-32C of the header does not match the stored {found.header_crc}"
    if found.version != snapshot.VERSION:
        return f"has version {found.version}, but a broker reads only version {snapshot.VERSION}"
    if len(found.metadata) != found.metadata_size:
        return f"has {len(found.metadata)} of {found.metadata_size} bytes of metadata"
    if not found.metadata_crc_holds:
        return f"CRC-32C of the metadata does not match the stored {found.metadata_crc}"
    return None


def _kvstore_fault(found: RaftSnapshot) -> str | None:
    batch = kvstore.parse_snapshot(found.payload)
    if batch is None:
        return "the batch of keys and values is incomplete"
    return None if batch.crc_holds else "a CRC-32C in the batch of keys and values does not match"
