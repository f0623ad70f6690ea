"""Logs that have lost their end, by the offsets that their log dir has checkpointed.

A checkpointed offset is never above the log end of a running broker, and a broker that is killed
leaves its logs as they are. But a running broker's log dir that is copied file by file may have a
checkpoint that was written after the log was copied, and a checkpoint may belong to an older topic
of that name: a broker writes it some seconds after it created the topic again.
"""

from collections.abc import Mapping
from contextlib import suppress

from logtool.disk import files, in_use
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.log.dir import LogDir, Partition
from logtool.log.file import File
from logtool.node.identity import topic_id_of

_TOLERANCE_NS = 2_000_000_000
"""Coarsest time stamps of the file systems in use; no broker creates a topic that quickly."""


def has_lost_end(root: LogDir, checkpoint: File, newest_log: File | None, made_ns: int) -> bool:
    """Return whether nothing but a loss explains that a log ends below a checkpointed offset.

    `newest_log` is the youngest segment of the partition, and `made_ns` the time of its
    partition.metadata, 0 without one.

    True after a clean stop; where the checkpoint is not younger than the log, so that it was not
    written while the log dir was copied; and in an original log dir, one that is no copy.
    """
    log = newest_log
    if root.is_clean or log is None or checkpoint.mtime_ns <= log.mtime_ns:
        return True
    if files.is_remote(root.path) or in_use.holder(root.path):
        return False
    meta = root.files.get(FileKind.META_PROPERTIES)
    # meta.properties is older than all other files, unless a copy was made without times.
    has_times = meta is None or meta.mtime_ns + _TOLERANCE_NS < checkpoint.mtime_ns
    is_older_topic = made_ns > checkpoint.mtime_ns
    # The log alone does not show it: a log that is copied while it grows is as young as its copy.
    is_copy = any(_is_copy(file) for file in (log, checkpoint, meta) if file)
    return has_times and not is_older_topic and not is_copy


def watermarks(root: LogDir) -> dict[TopicPartition, int]:
    """Return the high watermarks in the checkpoint of a log dir.

    Raises UnreadableError where the checkpoint cannot be read.
    """
    rows, stale = root.rows(FileKind.REPLICATION_CHECKPOINT), with_stale_watermark(root)
    return {key: row.offset for key, row in rows.items() if key not in stale}


def with_stale_watermark(root: LogDir) -> frozenset[TopicPartition]:
    """Return the partitions whose high watermark may be that of a deleted topic of the same name.

    A broker writes high watermarks every five seconds, and removes no row when it deletes a log. If
    it is killed before that, the row of a new topic is that of its predecessor, whose directory
    still waits to be deleted. After a clean stop all rows are of today.
    """
    if root.is_clean:
        return frozenset()
    going: dict[TopicPartition, set[str | None]] = {}
    for path, one in root.partitions:
        if one.kind is DirectoryKind.DELETE:
            going.setdefault((one.topic, one.partition), set()).add(topic_id_of(path))
    return frozenset(
        (one.topic, one.partition)
        for path, one in root.partitions
        if one.kind is DirectoryKind.LIVE
        and (one.topic, one.partition) in going
        and going[one.topic, one.partition] - {topic_id_of(path)}
    )


def lost(
    root: LogDir, known: Mapping[TopicPartition, int], listed: Partition, end: int
) -> range | None:
    """Return the offsets that a log has lost at its end, by the `watermarks` of its log dir.

    None where the log reaches its watermark, or where a copy or an older topic may explain it.
    """
    watermark = known.get((listed.topic or "", listed.number or 0))
    checkpoint = root.files.get(FileKind.REPLICATION_CHECKPOINT)
    if watermark is None or checkpoint is None or watermark <= end:
        return None
    newest = max((one.log for one in listed.segments), key=lambda log: log.mtime_ns, default=None)
    made = listed.fixed.get(FileKind.PARTITION_METADATA)
    made_ns = made.mtime_ns if made else 0
    return range(end, watermark) if has_lost_end(root, checkpoint, newest, made_ns) else None


def _is_copy(file: File) -> bool:
    """Return whether the modification time of a file was set, as a copy with times sets it."""
    with suppress(OSError):
        return file.path.stat().st_ctime_ns > file.mtime_ns + _TOLERANCE_NS
    return False
