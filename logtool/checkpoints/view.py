"""The checkpoints of a log dir side by side, as plain dicts: one for each partition or epoch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logtool.checkpoints.edit import Present, content, kind_of, load
from logtool.checkpoints.unflushed import measure
from logtool.checks import root
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import names, recovery_journal, wording
from logtool.formats.names import FileKind, PartitionDirectory, TopicPartition
from logtool.formats.recovery_journal import RecoveryJournal
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import OF_TODAY, OFFSET_CHECKPOINTS, LogDir
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.times import rfc3339

Object = dict[str, Any]
Rows = dict[FileKind, dict[TopicPartition, int]]
"""The offsets of each checkpoint."""
Item = Object | Finding | UnreadableError | str
_COLUMNS = dict(
    zip(
        OFFSET_CHECKPOINTS,
        ("recovery_point", "high_watermark", "log_start_offset", "cleaner_offset"),
        strict=True,
    )
)


_MAY_BE_JOURNAL = (FileKind.RECOVERY_POINT_CHECKPOINT, FileKind.UNKNOWN)
_UNFLUSHED = (
    "log_end_offset",
    "unflushed_bytes",
    "unflushed_records",
    "unflushed_since_ms",
    "unflushed_since",
    "unflushed_age_ms",
    "recovery_bytes",
    "recovery_bytes_if",
)
"""What is null unless the logs were read."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be said of the part of each log that is not flushed."""

    now_ms: int
    """When it is asked, in ms since the epoch: ages are counted to it."""
    segment_bytes: int | None = None
    """Size of segments for which it is said how much a start would read."""


def show(path: Path, selection: Selection, wanted: Wanted | None = None) -> Iterator[Item]:
    """Yield the rows of a log dir, of a partition dir or of one checkpoint.

    Lines that a broker cannot read come as findings, files that cannot be read as errors. With
    `wanted`, the logs of a log dir are read from their recovery points on. What a file is where its
    name does not tell comes as a line of text.
    """
    what = inputs.kind_of(path, lacking="has no checkpoints of offsets")
    if what is PathKind.LOG_DIR:
        yield from _log_dir(opening.open_log_dir(path), selection, wanted)
        return
    if what is PathKind.FILE and kind_of(path) in _MAY_BE_JOURNAL:
        data = content(path)
        if recovery_journal.is_one(data):
            yield from _journal(path, recovery_journal.parse(data))
            return
    file = path / FileKind.LEADER_EPOCH_CHECKPOINT if what is PathKind.PARTITION_DIR else path
    present = load(file)
    if present.stamp is None:
        raise UnreadableError(file, "there is no such file", missing=True)
    yield from _findings(present)
    if present.kind is FileKind.LEADER_EPOCH_CHECKPOINT:
        yield from _epochs(present)
    else:
        rows: Rows = {present.kind: present.value.offsets}
        for topic, number in rows[present.kind]:
            yield _partition(file, topic, number, rows)


def _journal(path: Path, journal: RecoveryJournal) -> Iterator[Item]:
    """Yield what a journal of recovery points comes to."""
    rows: Rows = {FileKind.RECOVERY_POINT_CHECKPOINT: journal.offsets}
    entries = wording.count(len(journal.rows), "entry", "entries")
    partitions = wording.count(len(journal.offsets), "partition")
    yield (
        f"{path}: is a journal of recovery points (KAFKA-615), which no release of Kafka reads: "
        f"{entries} of {partitions}, {journal.set_back:,} set back; the last of each counts"
    )
    for finding in recovery_journal.check(journal):
        yield finding.placed(path)
    for topic, number in journal.offsets:
        yield _partition(path, topic, number, rows)


def _log_dir(home: LogDir, selection: Selection, wanted: Wanted | None) -> Iterator[Item]:
    found: Rows = {}
    for kind in OFFSET_CHECKPOINTS:
        if kind not in home.files:
            continue
        try:
            present = load(home.files[kind].path)
        except UnreadableError as error:
            yield error
            continue
        yield from _findings(present)
        found[kind] = present.value.offsets
    seen = set()
    for path, directory in home.partitions:
        key = directory.topic, directory.partition
        if not selection.takes(directory):
            continue
        has_rows = directory.kind in OF_TODAY and root.key_of(directory)
        rows: Rows = found if has_rows else {}
        if rows:
            seen.add(key)
        obj = _partition(home.path, *key, rows) | {"directory": path.name}
        try:
            present = load(path / FileKind.LEADER_EPOCH_CHECKPOINT)
        except UnreadableError as error:
            yield error
        else:
            yield from _findings(present)
            for epoch, offset in present.value.epochs[-1:]:
                obj |= {"leader_epoch": epoch, "epoch_start_offset": offset}
        if wanted and has_rows and directory.topic != names.CLUSTER_METADATA:
            try:
                obj |= _unflushed(path, obj["recovery_point"] or 0, wanted)
            except UnreadableError as error:
                yield error
        yield obj
    for topic, number in dict.fromkeys(key for rows in found.values() for key in rows):
        named = names.parse_directory(f"{topic}-{number}")
        taken = isinstance(named, PartitionDirectory) and selection.takes(named)
        if (topic, number) not in seen and taken:
            yield _partition(home.path, topic, number, found)


def _partition(path: Path, topic: str, number: int, rows: Rows) -> Object:
    return {
        "type": "partition",
        "path": str(path),
        "topic": topic,
        "partition": number,
        "directory": None,
        **{name: rows.get(kind, {}).get((topic, number)) for kind, name in _COLUMNS.items()},
        "leader_epoch": None,
        "epoch_start_offset": None,
        **dict.fromkeys(_UNFLUSHED),
    }


def _unflushed(path: Path, point: int, wanted: Wanted) -> Object:
    found = measure(opening.open_partition(path), point, wanted.segment_bytes)
    since = found.since_ms
    values = (
        found.log_end,
        found.bytes,
        found.records,
        since,
        rfc3339(since),
        None if since is None else max(0, wanted.now_ms - since),
        found.recovery_bytes,
        found.recovery_bytes_if,
    )
    return dict(zip(_UNFLUSHED, values, strict=True))


def _epochs(present: Present) -> Iterator[Object]:
    rows = present.value.epochs
    for number, (epoch, offset) in enumerate(rows):
        yield {
            "type": "epoch",
            "path": str(present.path),
            "leader_epoch": epoch,
            "start_offset": offset,
            "end_offset": rows[number + 1][1] if number + 1 < len(rows) else None,
        }


def _findings(present: Present) -> Iterator[Finding]:
    for finding in present.findings:
        if finding.code != "checkpoint/empty":
            yield finding.placed(present.path)
