"""Logs that have lost their end, by the offsets that their log dir has checkpointed.

A checkpointed offset is never above the log end of a running broker, and a broker that is killed
leaves its logs as they are. But a running broker's log dir that is copied file by file may have a
checkpoint that was written after the log was copied, and a checkpoint may belong to an older topic
of that name: a broker writes it some seconds after it created the topic again.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from logtool.disk import files, in_use
from logtool.errors import UnreadableError
from logtool.formats import offset_index
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import LogDir, Partition
from logtool.log.file import File
from logtool.node.identity import topic_id_of

_TOLERANCE_NS = 2_000_000_000
"""Coarsest time stamps of the file systems in use; no broker creates a topic that quickly."""


@dataclass(frozen=True, slots=True)
class EndWitness:
    """An offset checkpoint, and the facts about its log dir that distinguish a loss from a copy."""

    log_dir: Path
    checkpoint: File
    meta: File | None = None
    """The file meta.properties, which is older than all others; None without it."""
    is_clean: bool = False
    """True if the broker stopped in order."""


def witness(root: LogDir, kind: FileKind) -> EndWitness | None:
    """Return the checkpoint of a kind as a witness; None if the log dir lacks it."""
    checkpoint = root.files.get(kind)
    meta = root.files.get(FileKind.META_PROPERTIES)
    return EndWitness(root.path, checkpoint, meta, root.is_clean) if checkpoint else None


def has_lost_end(one: EndWitness, newest_log: File | None, made_ns: int, partition: Path) -> bool:
    """Return whether nothing but a loss explains that a log ends below a checkpointed offset.

    `newest_log` is the youngest segment of the partition, `made_ns` the time of its
    partition.metadata, 0 without one, and `partition` its directory.

    True after a clean stop; where the checkpoint is not younger than the log, so that it was not
    written while the log dir was copied; in an original log dir, one that is no copy; and where the
    broker had begun a further segment, as a copy of a running broker's log would show it.
    """
    log, checkpoint, meta = newest_log, one.checkpoint, one.meta
    if one.is_clean or log is None or checkpoint.mtime_ns <= log.mtime_ns:
        return True
    if has_closed_end(partition):
        return True
    if files.is_remote(one.log_dir) or in_use.holder(one.log_dir):
        return False
    # meta.properties is older than all other files, unless a copy was made without times.
    has_times = meta is None or meta.mtime_ns + _TOLERANCE_NS < checkpoint.mtime_ns
    is_older_topic = made_ns > checkpoint.mtime_ns
    # The log alone does not show it: a log that is copied while it grows is as young as its copy.
    is_copy = any(_is_copy(file) for file in (log, checkpoint, meta) if file)
    return has_times and not is_older_topic and not is_copy


def lost_offsets(one: EndWitness | None, listed: Partition, end: int, offset: int) -> range | None:
    """Return the offsets that a log has lost at its end, by an `offset` in a checkpoint.

    None where the log reaches the offset, or where a copy or an older topic may explain it.
    """
    if one is None or offset <= end:
        return None
    newest = max((each.log for each in listed.segments), key=lambda log: log.mtime_ns, default=None)
    made = listed.fixed.get(FileKind.PARTITION_METADATA)
    is_lost = has_lost_end(one, newest, made.mtime_ns if made else 0, listed.path)
    return range(end, offset) if is_lost else None


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
    if watermark is None:
        return None
    return lost_offsets(witness(root, FileKind.REPLICATION_CHECKPOINT), listed, end, watermark)


def left_of_segment(partition: Path, end: int, *, clean: bool) -> str | None:
    """Return the name of a file that is left of a lost segment at the log end; None without one.

    A broker makes a producer snapshot when it begins a segment. A snapshot of a `clean` stop lies
    at the log end too; after the next start the indexes of the segment before it have room again.
    """
    with suppress(UnreadableError):
        listed = opening.open_partition(partition)
        found = [file for file in listed.orphans if (file.name.offset or 0) >= end]
        is_begun = any(one.base_offset == end for one in listed.segments)
        if not (clean or is_begun) and has_closed_end(partition):
            found += [file for file in listed.snapshots if file.name.offset == end]
        return found[0].path.name if found else None
    return None


def has_closed_end(partition: Path) -> bool:
    """Return whether the last segment of a partition dir is not the one that a broker wrote to.

    A broker cuts the unused room of the indexes when it rolls a segment or stops. Before it had
    made the .log of a segment, it had no index of that segment.
    """
    try:
        listed = opening.open_partition(partition)
        last = listed.segments[-1]
        index = last.indexes.get(FileKind.OFFSET_INDEX)
        if any((file.name.offset or 0) > last.base_offset for file in listed.orphans):
            return True
        if index is None:
            return False
        with index.open() as file:
            room = offset_index.ENTRY_SIZE
            return any(file.read(max(0, index.size - room), room)) or not index.size
    except (UnreadableError, IndexError):
        return False


def _is_copy(file: File) -> bool:
    """Return whether the modification time of a file was set, as a copy with times sets it."""
    with suppress(OSError):
        return files.changed_ns(file.path) > file.mtime_ns + _TOLERANCE_NS
    return False
