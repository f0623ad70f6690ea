"""State of a cluster from a broker's metadata log, read offline.

The image is that of ``MetadataImage``: the newest KRaft snapshot that is whole, and the records of
``__cluster_metadata-0`` behind it. The high watermark is not on disk: all records are read, so that
the controllers may never have committed the last ones. And a broker that starts first fetches what
it missed: the image is what it knew before.
Source: ``MetadataLoader``, ``MetadataBatchLoader``, ``RecordsSnapshotReader`` (Kafka 3.9 and 4.x).
"""

from contextlib import suppress
from pathlib import Path

from logtool.disk import files
from logtool.errors import FormatError, NothingMatchedError, UnreadableError
from logtool.formats import control_record, kraft_snapshot, wording
from logtool.formats.names import CLUSTER_METADATA, FileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.inputs import PathKind
from logtool.metadata import reading
from logtool.metadata.reading import Control, MetadataEntry
from logtool.metadata.replay import ImageReplay, Watcher
from logtool.metadata.state import MetadataImage, Problem

__all__ = [
    "DIRECTORY", "MetadataImage", "Problem", "Until", "has_log", "read", "read_any",
    "read_snapshot", "snapshot_end",
]  # fmt: skip
DIRECTORY = f"{CLUSTER_METADATA}-0"
NO_FOOTER = "no snapshot footer"
"""Damage of a snapshot that a node does not notice: it checks the header alone."""


@dataclass(frozen=True, slots=True)
class Until:
    """The end of reading, inclusive; by default the end of the log."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def takes(self, entry: MetadataEntry) -> bool:
        """Return whether a record is before the end."""
        late = self.offset is not None and entry.offset > self.offset
        later = self.timestamp_ms is not None and entry.timestamp_ms > self.timestamp_ms
        return not (late or later)

    def takes_snapshot(self, offset: int, timestamp_ms: int) -> bool:
        """Return whether all that a snapshot covers is before the end."""
        late = self.offset is not None and offset > self.offset + 1
        later = self.timestamp_ms is not None and timestamp_ms > self.timestamp_ms
        return not (late or later)


END = Until()


def has_log(path: Path) -> bool:
    """Return whether a path is a log dir with the metadata log, or the directory of that log."""
    return path.name == DIRECTORY or files.has_dir(path / DIRECTORY)


def read(metadata_dir: Path, until: Until = END, watcher: Watcher | None = None) -> MetadataImage:
    """Read ``__cluster_metadata-0``, or that of the log dir given; UnreadableError without one.

    With a `watcher` reading begins as early as the log can be applied from, and the watcher gets
    each record of the log.
    """
    inner = metadata_dir / DIRECTORY
    log = opening.open_partition(inner if files.has_dir(inner) else metadata_dir)
    newest_first = sorted(log.kraft_snapshots, key=_place, reverse=True)
    replay = _snapshot(newest_first if watcher is None else _oldest_first(newest_first, log), until)
    if watcher:
        replay.watcher = watcher
        watcher.begin(replay.image)
    image = replay.image
    image.listed = log
    try:
        for segment in log.segments:
            if segment.next_base_offset is None or segment.next_base_offset > image.offset:
                path, base = segment.log.path, segment.base_offset
                if not _read_log(replay, path, base, until, active=segment.is_active):
                    break
        else:
            _compare_end(image, log, until)
        replay.finish()
    except (FormatError, UnreadableError) as error:
        _note_damage(image, error)
    return image


def read_any(path: Path, until: Until = END, watcher: Watcher | None = None) -> MetadataImage:
    """Read a metadata log from a path: a snapshot, the dir of the log, or its log dir.

    UnreadableError if it cannot be read, NothingMatchedError without a metadata log.
    """
    if inputs.kind_of(path, lacking="Redpanda has no KRaft metadata log") is PathKind.FILE:
        if until != END:
            text = "is a single snapshot; to show an earlier offset, give the directory of the log"
            raise UnreadableError(path, text)
        return read_snapshot(path)
    inner = path / DIRECTORY
    log = opening.open_partition(inner if files.has_dir(inner) else path)
    # A copy may have any name; a file that only controllers write shows what it is.
    is_named_so = log.is_metadata_log or log.topic is None
    is_own = is_named_so or FileKind.QUORUM_STATE in log.fixed
    if not log.kraft_snapshots and not (is_own and log.segments):
        raise NothingMatchedError(path, "holds no metadata log")
    return read(path, until, watcher)


def read_snapshot(path: Path) -> MetadataImage:
    """Read one ``.checkpoint``; `damage` is set if it is not whole. UnreadableError."""
    name = kraft_snapshot.parse(path.name)
    if name is None:
        raise NothingMatchedError(path, "is not a snapshot of a metadata log (.checkpoint)")
    replay = ImageReplay()
    image = replay.image
    try:
        _apply_snapshot(replay, path, END)
    except FormatError as error:
        _note_damage(image, error.at(path))
    image.offset = image.snapshot_offset = name.end_offset or 0
    image.epoch = name.epoch or 0
    image.snapshot = path
    return image


def snapshot_end(log: Partition) -> int:
    """Return the offset below which the newest snapshot covers all; 0 if none is whole."""
    newest = max(log.kraft_snapshots, key=_place, default=None)
    if newest is None:
        return 0
    with suppress(UnreadableError):
        image = read_snapshot(newest.path)
        return 0 if image.damage else image.snapshot_offset
    return 0


def _note_damage(image: MetadataImage, error: FormatError | UnreadableError) -> None:
    image.damage = str(error)
    if isinstance(error, FormatError) and error.path:
        image.damaged_at = error.path, error.position


def _compare_end(image: MetadataImage, log: Partition, until: Until) -> None:
    """Raise FormatError if the newest snapshot covers records behind the end of the log."""
    newest = max(log.kraft_snapshots, key=_place, default=None)
    covered = newest.name.offset or 0 if newest else 0
    is_far_enough = until.offset is not None and until.offset < image.offset
    if image.offset < covered and log.segments and not is_far_enough:
        end = log.segments[-1].log
        text = f"the log ends here, but a snapshot covers all offsets below {covered}"
        raise FormatError(text, end.size, end.path)


def _oldest_first(newest_first: list[File], log: Partition) -> list[File]:
    """Return the snapshots from which the log continues; for a log from 0, one at offset 0."""
    start = log.segments[0].base_offset if log.segments else None
    if start == 0:
        return [file for file in newest_first if not file.name.offset]
    enough = [file for file in newest_first if start and (file.name.offset or 0) >= start]
    return enough[::-1] or newest_first


def _snapshot(snapshots: list[File], until: Until) -> ImageReplay:
    """Return a replay with the first usable snapshot, or an empty one without any."""
    skipped: list[Problem | UnreadableError] = []
    for file in snapshots:
        replay, offset = ImageReplay(), file.name.offset or 0
        try:
            if _apply_snapshot(replay, file.path, until, offset):
                image = replay.image
                image.offset = image.snapshot_offset = offset
                # The last record that the snapshot covers may be the last one of the log.
                image.epoch = file.name.epoch or 0
                image.snapshot, image.skipped = file.path, skipped
                return replay
        except FormatError as error:
            skipped.append(Problem(file.path, error.position, offset, error.reason))
        except UnreadableError as error:
            skipped.append(error)
    replay = ImageReplay()
    replay.image.skipped = skipped
    return replay


def _place(file: File) -> tuple[int, int]:
    return file.name.epoch or 0, file.name.offset or 0


def _apply_snapshot(replay: ImageReplay, path: Path, until: Until, offset: int = 0) -> bool:
    """Apply a snapshot, and return True; FormatError if it is not whole.

    Return False if it covers records behind the end of reading.
    """
    types: list[int | None] = []
    for batch in reading.batches(path, 0):
        first: int | None = None
        for number, entry in enumerate(batch.entries):
            content = entry.content
            if isinstance(content, Control):
                first = content.type if not number else first
                last_ms = content.data.get("lastContainedLogTimestamp", 0)
                if content.type == control_record.SNAPSHOT_HEADER and not until.takes_snapshot(
                    offset, last_ms
                ):
                    return False
            replay.apply(entry)
        types.append(first)
    if types[:1] != [control_record.SNAPSHOT_HEADER]:
        raise FormatError("no snapshot header", 0, path)
    if types[-1] != control_record.SNAPSHOT_FOOTER:
        raise FormatError(NO_FOOTER, 0, path)
    return True


def _read_log(
    replay: ImageReplay, path: Path, base_offset: int, until: Until, *, active: bool
) -> bool:
    """Apply the records of a segment from the image's offset on; FormatError at damage.

    Return False once the end is reached.
    """
    image = replay.image
    for batch in reading.batches(path, base_offset, active=active):
        if batch.last_offset < image.offset:
            continue
        if batch.base_offset > image.offset:
            image.lacks = image.offset, batch.base_offset - 1
            missing = wording.offsets(*image.lacks)
            raise FormatError(f"the metadata log lacks {missing}", batch.position, path)
        for entry in batch.entries:
            if entry.offset < image.offset:
                continue
            if not until.takes(entry):
                return False
            replay.receive(entry)
            image.offset = entry.offset + 1
        image.offset = batch.last_offset + 1
    return True
