"""Rules for the files of a log dir: the checkpoints and the clean marker, against the logs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from logtool.disk import files, in_use, shell
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import CLUSTER_METADATA, FileKind, PartitionDirectory, TopicPartition
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.log.dir import LogDir
from logtool.log.flavour import Flavour

if TYPE_CHECKING:
    from logtool.checks.report import PartitionSummary
from logtool.node import lost_end

Checkpoints = Mapping[FileKind, Mapping[TopicPartition, OffsetRow]]
"""The rows of each readable checkpoint, by (topic, partition)."""

MARKER_TOLERANCE_NS = 2_000_000_000
"""Coarsest time stamps of the file systems in use."""


def check_in_use(log_dir: Path, flavour: Flavour) -> Iterator[Finding]:
    """Yield a finding if a broker holds the directory: files may then change during the check."""
    holder = in_use.holder(log_dir)
    if holder:
        who = f"process {holder.pid}" if holder.pid else "a process that logtool cannot see"
        name = f" ({holder.command})" if holder.command else ""
        text = f"{who}{name} has locked {flavour.lock}: files may change while logtool reads them"
        yield Finding("data-dir/in-use", text, path=log_dir)


def check_partition_offsets(
    root: LogDir, key: TopicPartition, facts: "PartitionSummary", checkpoints: Checkpoints
) -> Iterator[Finding]:
    """Compare the checkpointed offsets of one live partition with its log."""
    rows = {kind: checkpoint[key] for kind, checkpoint in checkpoints.items() if key in checkpoint}
    # A negative offset breaks a rule of the file itself.
    rows = {kind: row for kind, row in rows.items() if row.offset >= 0}
    first, end = facts.first_base_offset, facts.log_end_offset
    if first is None or end is None:
        return
    start_row = rows.get(FileKind.LOG_START_CHECKPOINT)
    start = max(first, start_row.offset if start_row else 0)
    if start_row and start_row.offset > end:
        text = f"log start offset {start_row.offset}, but the log ends at {end}"
        yield _at(root, FileKind.LOG_START_CHECKPOINT, start_row, "log-start-beyond-end", text)
        return
    watermark = rows.get(FileKind.REPLICATION_CHECKPOINT)
    if watermark and watermark.offset > end and key not in lost_end.with_stale_watermark(root):
        yield from _beyond_end(root, FileKind.REPLICATION_CHECKPOINT, watermark, facts, end)
    if watermark and watermark.offset < start:
        rule = "high-watermark-below-start" if root.is_clean else "high-watermark-behind"
        text = f"high watermark {watermark.offset}, but the log starts at {start}"
        yield _at(root, FileKind.REPLICATION_CHECKPOINT, watermark, rule, text)
    recovery = rows.get(FileKind.RECOVERY_POINT_CHECKPOINT)
    if recovery and recovery.offset > end:
        yield from _beyond_end(root, FileKind.RECOVERY_POINT_CHECKPOINT, recovery, facts, end)
    elif recovery and root.is_clean and recovery.offset < end:
        text = f"recovery point {recovery.offset} after a clean stop, but the log ends at {end}"
        yield _at(root, FileKind.RECOVERY_POINT_CHECKPOINT, recovery, "recovery-point-behind", text)
    cleaner = rows.get(FileKind.CLEANER_CHECKPOINT)
    if cleaner and not start <= cleaner.offset <= end:
        text = f"cleaner offset {cleaner.offset}, but the log starts at {start} and ends at {end}"
        yield _at(root, FileKind.CLEANER_CHECKPOINT, cleaner, "cleaner-out-of-range", text)


_ENDS = {
    FileKind.REPLICATION_CHECKPOINT: ("high-watermark", "high watermark", "acknowledged"),
    FileKind.RECOVERY_POINT_CHECKPOINT: ("recovery-point", "recovery point", "flushed"),
}


def _beyond_end(
    root: LogDir, kind: FileKind, row: OffsetRow, facts: "PartitionSummary", end: int
) -> Iterator[Finding]:
    """Yield the finding for an offset of a checkpoint behind the end of its log.

    A broker that runs may have written a checkpoint after the log was read.
    """
    rule, name, were = _ENDS[kind]
    text = f"{name} {row.offset}, but the log ends at {end}"
    witness = lost_end.witness(root, kind)
    home = root.path / f"{row.topic}-{row.partition}"
    if witness is None or lost_end.has_lost_end(witness, facts.newest_log, facts.made_ns, home):
        count = row.offset - end
        offsets = "offset that was" if count == 1 else "offsets that were"
        text += f": the log has lost {count:,} {offsets} {were}, from {end} onwards"
        if left := lost_end.left_of_segment(home, end, clean=root.is_clean):
            text += f"; a segment file seems to be gone: {left} is left of the segment"
        yield _at(root, kind, row, f"{rule}-beyond-end", text)
    elif files.is_remote(root.path) or not in_use.holder(root.path):
        text += (
            ", and the checkpoint is newer: the log has lost its end, unless the log dir was "
            "copied while its broker ran"
        )
        yield _at(root, kind, row, f"{rule}-ahead", text)


def check_rows(root: LogDir, checkpoints: Checkpoints) -> Iterator[Finding]:
    """Yield rows of partitions that the directory does not hold."""
    there = {(d.topic, d.partition) for _, d in root.partitions}
    for kind, checkpoint in checkpoints.items():
        for row in checkpoint.values():
            if (row.topic, row.partition) not in there:
                text = f"has a row of {row.topic}-{row.partition}, which is not in this directory"
                yield _at(root, kind, row, "unknown-partition", text)


def check_missing_rows(
    root: LogDir, key: TopicPartition, facts: "PartitionSummary", checkpoints: Checkpoints
) -> Iterator[Finding]:
    """Yield a finding if a partition with data has no recovery point: it then counts as 0.

    A broker writes the file every minute and when it stops. So a log dir without it is that of a
    broker that was killed in its first minute, or somebody deleted the file. A directory without
    meta.properties holds copies of partitions.
    """
    kind = FileKind.RECOVERY_POINT_CHECKPOINT
    file, rows = root.files.get(kind), checkpoints.get(kind)
    is_there = file or FileKind.META_PROPERTIES in root.files
    if not facts.log_end_offset or not is_there or (file and (rows is None or key in rows)):
        return
    name = f"{key[0]}-{key[1]}"
    text = f"has no row of {name}, which has data: its recovery point counts as 0"
    if file is None:
        text = f"{kind.value} is missing, and {name} has data: its recovery point counts as 0"
    yield Finding(
        "checkpoint/no-recovery-point",
        text,
        topic=key[0],
        partition=key[1],
        path=file.path if file else root.path,
    )


def last_clean_ns(root: LogDir) -> int | None:
    """Return the mtime in ns up to which a log is not younger than the clean-shutdown marker.

    None without a marker, and where times prove nothing. meta.properties is always older than the
    marker: where it looks newer, as in a copy without time stamps, the times are not those of the
    broker; nor are they behind a URL, where they are those of the copy.
    """
    marker = root.files.get(FileKind.CLEAN_SHUTDOWN)
    meta = root.files.get(FileKind.META_PROPERTIES)
    if files.is_remote(root.path) or not marker:
        return None
    if meta and meta.mtime_ns > marker.mtime_ns + MARKER_TOLERANCE_NS:
        return None
    return marker.mtime_ns + MARKER_TOLERANCE_NS


def check_marker(root: LogDir, all_facts: Sequence["PartitionSummary"]) -> Iterator[Finding]:
    """Yield a finding if a log changed after the clean-shutdown marker was written.

    A log without a byte does not count: no recovery finds anything in it.
    """
    last_ns = last_clean_ns(root)
    filled = (one for one in all_facts if one.newest_log and one.newest_log.size)
    newest = max(filled, key=lambda facts: facts.newest_log_mtime_ns, default=None)
    if last_ns is None or not newest or not newest.newest_log:
        return
    if newest.newest_log_mtime_ns > last_ns:
        marker = root.files[FileKind.CLEAN_SHUTDOWN]
        late_ns = newest.newest_log_mtime_ns - marker.mtime_ns
        text = (
            f"{newest.newest_log.path} changed {wording.duration(late_ns / 1000000000.0)} "
            "after the broker wrote the marker"
        )
        yield Finding("clean-shutdown/stale", text, path=marker.path)


def key_of(directory: PartitionDirectory) -> TopicPartition | None:
    """Return the key of a partition's rows in checkpoints; None for the metadata log."""
    return None if directory.topic == CLUSTER_METADATA else (directory.topic, directory.partition)


def offset(checkpoints: Checkpoints, kind: FileKind, key: TopicPartition | None) -> int | None:
    """Return the offset of a partition in a checkpoint; None without a row, or without a key."""
    row = checkpoints.get(kind, {}).get(key) if key else None
    return row.offset if row else None


def _at(root: LogDir, kind: FileKind, row: OffsetRow, rule: str, text: str) -> Finding:
    path = root.files[kind].path
    return Finding(
        f"checkpoint/{rule}",
        f"line {row.line.number}: {row.topic}-{row.partition}: {text}",
        position=row.line.position,
        length=len(row.line.raw),
        path=path,
        topic=row.topic,
        partition=row.partition,
        next=f"logtool dump {shell.path(path)}",
    )
