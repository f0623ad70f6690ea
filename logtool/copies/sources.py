"""The copies of partitions in log dirs, partition dirs and digests, before they are read."""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from logtool.copies import digest
from logtool.copies.digest import Digest
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats import leader_epoch_checkpoint
from logtool.formats.names import DirectoryKind, FileKind, PartitionDirectory, TopicPartition
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening
from logtool.log.dir import OF_TODAY, OFFSET_CHECKPOINTS, LogDir, Partition, Segment
from logtool.log.flavour import Flavour
from logtool.log.inputs import PathKind
from logtool.log.selection import Selection
from logtool.node.identity import identify, listed_topic_id
from logtool.node.lost_end import with_stale_watermark


@dataclass(frozen=True, slots=True)
class ListedCopy:
    """A copy that is not read yet: a directory, or a partition of a digest."""

    key: TopicPartition
    node: int | None
    path: Path
    kind: DirectoryKind | None = None
    """The kind of its directory by the name; None if the name is not that of a partition."""
    listed: Partition | None = None
    rows: dict[FileKind, int] = field(default_factory=dict)
    """Its offsets in the checkpoints of its log dir."""
    saved: tuple[Digest, int] | None = None
    given: bool = False
    """True if the given path is its directory, not its log dir."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments that are to be read."""
        return self.listed.segments if self.listed else ()

    def with_files(self, flavour: Flavour) -> "ListedCopy":
        """Return the copy with the files of its directory; `flavour` is that of its log dir.

        UnreadableError.
        """
        if self.listed or self.saved:
            return self
        return replace(self, listed=opening.open_partition(self.path, flavour))


def find(
    path: Path,
    node: int | None,
    selection: Selection,
    *,
    kinds: Sequence[DirectoryKind] = OF_TODAY,
    flavour: Flavour | None = None,
    files_later: bool = False,
) -> Iterator[ListedCopy | UnreadableError]:
    """Yield the copies in a source; UnreadableError if the path is not a source.

    In a log dir only directories of these `kinds` are used. With `files_later` the files of a copy
    in a log dir are not looked at, only whether its directory can be read: see
    `ListedCopy.with_files`.
    """
    kind = inputs.kind_of(path, flavour, redpanda=True)
    if kind is PathKind.FILE:
        saved = digest.read(path)
        for number, place in enumerate(saved.partitions):
            key = place["topic"], place["partition"]
            directory = PartitionDirectory("", DirectoryKind.LIVE, *key, None, exact=True)
            if selection.takes(directory):
                yield ListedCopy(key=key, node=node, path=path, saved=(saved, number))
    elif kind is PathKind.LOG_DIR:
        home = _LogDir(opening.open_log_dir(path, flavour), node)
        yield from home.unread
        for folder, directory in home.root.partitions:
            if directory.kind in kinds and selection.takes(directory):
                listed = None
                try:
                    if files_later and not files.is_remote(folder):
                        files.hold_to_readable(folder)
                    else:
                        listed = opening.open_partition(folder, home.root.flavour)
                    yield home.copy(
                        folder, (directory.topic, directory.partition), directory.kind, listed
                    )
                except UnreadableError as error:
                    if not files.has_vanished(error):
                        yield error
    else:
        listed = opening.open_partition(path, flavour)
        try:
            home = _LogDir(opening.open_log_dir(path.resolve().parent, flavour), node)
        except UnreadableError:
            home = _LogDir(
                LogDir(
                    path=path,
                    flavour=listed.flavour,
                    partitions=(),
                    latest=(),
                    bad_directories=(),
                    files={},
                    leftovers=(),
                    strangers=(),
                    odd_entries=(),
                ),
                node,
            )  # a partition dir without a log dir
        yield from home.unread
        key = listed.topic or path.resolve().name, listed.number or 0
        yield replace(
            home.copy(path, key, getattr(listed.directory, "kind", None), listed), given=True
        )


class _LogDir:
    """A log dir with its node and its checkpoints, as far as they can be read."""

    def __init__(self, found: LogDir, node: int | None) -> None:
        self.root = found
        self.unread: list[UnreadableError] = []
        """Errors of its files that could not be read, which count as absent."""
        known = identify(found)
        self._node = known.node_id if node is None else node
        if known.unread:
            self.unread.append(known.unread)
        self._rows = {kind: self._read(kind) for kind in OFFSET_CHECKPOINTS}

    def copy(
        self,
        folder: Path,
        key: TopicPartition,
        kind: DirectoryKind | None,
        listed: Partition | None,
    ) -> ListedCopy:
        """Return one of its partitions."""
        rows = {kind: rows[key].offset for kind, rows in self._rows.items() if key in rows}
        return ListedCopy(
            key=key, node=self._node, path=folder, kind=kind, listed=listed, rows=rows
        )

    def _read(self, kind: FileKind) -> dict[TopicPartition, OffsetRow]:
        of_watermarks = kind is FileKind.REPLICATION_CHECKPOINT
        stale = with_stale_watermark(self.root) if of_watermarks else frozenset()
        try:
            return {key: row for key, row in self.root.rows(kind).items() if key not in stale}
        except UnreadableError as error:
            self.unread.append(error)
            return {}


def place_of(copy: ListedCopy) -> dict[str, Any]:
    """Return the fields of a copy that do not come from its segments."""
    fixed = copy.listed.fixed if copy.listed else {}
    epochs: tuple[tuple[int, int], ...] = ()
    if file := fixed.get(FileKind.LEADER_EPOCH_CHECKPOINT):
        epochs = tuple(leader_epoch_checkpoint.parse(files.read_small(file.path)).epochs)
    return {
        "topic": copy.key[0],
        "partition": copy.key[1],
        "path": str(copy.path),
        "node": copy.node,
        "topic_id": listed_topic_id(copy.listed) if copy.listed else None,
        "high_watermark": copy.rows.get(FileKind.REPLICATION_CHECKPOINT),
        "cleaner_offset": copy.rows.get(FileKind.CLEANER_CHECKPOINT),
        "epochs": epochs,
    }
