"""Log dirs, partitions and segments as the listings of their directories show them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from logtool.disk import files
from logtool.formats import names, offset_checkpoint
from logtool.formats.compression import DEFAULT_LIMIT
from logtool.formats.names import (
    BadDirectory,
    DirectoryKind,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
    TopicPartition,
)
from logtool.formats.offset_checkpoint import OffsetRow
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk, Inspect, PlainWalk, Source
from logtool.log.file import File, describe, is_file
from logtool.log.flavour import Flavour
from logtool.log.walk.forms import KAFKA_FORM

OFFSET_CHECKPOINTS = (
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.REPLICATION_CHECKPOINT,
    FileKind.LOG_START_CHECKPOINT,
    FileKind.CLEANER_CHECKPOINT,
)

OF_TODAY = (DirectoryKind.LIVE, DirectoryKind.FUTURE)
"""Partition directories that a broker writes to; their rows bear the plain name."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that share one base offset; `log` is there, an index may be missing."""

    base_offset: int
    log: File
    indexes: dict[FileKind, File]
    next_base_offset: int | None
    """Base offset of the segment behind it; None for the active segment."""
    flavour: Flavour

    @property
    def is_active(self) -> bool:
        """Return whether a broker would append to this segment."""
        return self.next_base_offset is None

    def hold_to_store(self) -> None:
        """Raise UnreadableError if the log is behind a URL and was replaced since it was listed.

        Call it after the last read: then all bytes are from the listed log. An active segment is
        not asked for, because a program that copies a growing log replaces it. One request.
        """
        if not self.is_active:
            self.log.hold_to_store()

    def batches(
        self,
        source: Source | None = None,
        *,
        start: int = 0,
        stop: int | None = None,
        payload: bool = True,
        limit: int = DEFAULT_LIMIT,
        inspect: Inspect | None = None,
        plain_walk: PlainWalk | None = None,
        last_offset: int | None = None,
    ) -> Iterator[Chunk]:
        """Yield sound batches and damage of the log in file order; UnreadableError.

        `source` has the bytes of the log where the caller has opened it already. The other
        arguments are those of `logtool.log.batches.read_batches`; `limit` is its `unpack_limit`. A
        `plain_walk` is used for the form of Kafka alone.
        """
        form = self.flavour.form(self.log.path)
        with nullcontext(source) if source is not None else self.log.open() as log:
            yield from read_batches(
                log,
                base_offset=self.base_offset,
                form=form,
                start=start,
                stop=stop,
                payload=payload,
                unpack_limit=limit,
                inspect=inspect,
                plain_walk=plain_walk if form is KAFKA_FORM else None,
                last_offset=last_offset,
            )


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition dir: its segments in order, and the files next to them."""

    path: Path
    flavour: Flavour
    directory: PartitionDirectory | BadDirectory
    segments: tuple[Segment, ...]
    """By base offset."""
    orphans: tuple[File, ...]
    """Index files with no log of their base offset, by that offset."""
    snapshots: tuple[File, ...]
    """Producer snapshots by offset."""
    kraft_snapshots: tuple[File, ...]
    fixed: dict[FileKind, File]
    """The files whose whole name is fixed, such as leader-epoch-checkpoint."""
    leftovers: tuple[File, ...]
    """``.deleted``, ``.cleaned``, ``.swap``, ``.part`` and ``.tmp`` files."""
    strangers: tuple[File, ...]
    """Files whose name Kafka does not write."""
    odd_entries: tuple[Path, ...]
    """Directories, pipes, devices, links of other names: nothing that a broker reads."""
    others: tuple[File, ...] = ()
    """Snapshots, compaction indexes and segments that a start of Redpanda has given up."""

    @property
    def topic(self) -> str | None:
        """Return the topic; None where the directory has no name of a partition."""
        return getattr(self.directory, "topic", None)

    @property
    def number(self) -> int | None:
        """Return the partition number; None where the directory has no name of a partition."""
        return getattr(self.directory, "partition", None)

    @property
    def is_metadata_log(self) -> bool:
        """Return whether this is the KRaft metadata log."""
        return self.topic == names.CLUSTER_METADATA

    def coming_logs(self) -> Iterator[File]:
        """Yield the ``.log.swap`` files of a committed cleaning, which a start makes segments of.

        A broker that was killed before the last rename of the cleaning leaves them
        (``JLocalLog.replaceSegments``).
        """
        dropped = names.uncommitted_swaps(file.name for file in self.leftovers)
        for file in self.leftovers:
            is_log = file.name.kind is FileKind.LOG and file.name.state is FileState.SWAP
            if is_log and file.name.name not in dropped:
                yield file

    def files(self) -> Iterator[File]:
        """Yield every regular file, segment by segment and then the rest."""
        for segment in self.segments:
            yield segment.log
            yield from segment.indexes.values()
        for group in (self.orphans, self.snapshots, self.kraft_snapshots, self.leftovers):
            yield from group
        yield from self.fixed.values()
        yield from self.strangers
        yield from self.others


@dataclass(frozen=True, slots=True)
class LogDir:
    """One entry of ``log.dirs``, or a data directory of Redpanda: names, and nothing read."""

    path: Path
    """With Redpanda it may also be a namespace, a topic or a partition in a data directory."""
    flavour: Flavour
    partitions: tuple[tuple[Path, PartitionDirectory], ...]
    """By topic and partition."""
    latest: tuple[tuple[Path, PartitionDirectory], ...]
    """`partitions` without those of a deleted topic of the same name, which Redpanda keeps."""
    bad_directories: tuple[tuple[Path, BadDirectory], ...]
    """Directories that stop a broker."""
    files: dict[FileKind, File]
    """The files of the root that Kafka writes."""
    leftovers: tuple[File, ...]
    """``.tmp`` files of an interrupted rewrite."""
    strangers: tuple[File, ...]
    odd_entries: tuple[Path, ...]
    """Links, devices and the like."""
    has_index_cache: bool = False
    """True if the directory ``remote-log-index-cache`` is there."""

    @property
    def is_clean(self) -> bool:
        """Return whether the clean-shutdown marker is there."""
        return FileKind.CLEAN_SHUTDOWN in self.files

    def broker_offsets(self, kind: FileKind) -> dict[TopicPartition, int] | Refusal:
        """Read one offset checkpoint as a broker does: the offsets, or the place where it gives up.

        A missing file has no offsets. UnreadableError.
        """
        file = self.files.get(kind)
        if file is None:
            return {}
        checkpoint = offset_checkpoint.parse(files.read_small(file.path))
        return offset_checkpoint.refusal(checkpoint) or checkpoint.offsets

    def rows(self, kind: FileKind) -> dict[TopicPartition, OffsetRow]:
        """Read the rows of one offset checkpoint; a missing file has none. UnreadableError.

        A row counts wherever it can be read, also in a file that a broker does not take.
        """
        file = self.files.get(kind)
        if file is None:
            return {}
        return offset_checkpoint.parse(files.read_small(file.path)).by_partition


def own_name(path: Path) -> str:
    """Return the directory's name, also for ``.`` and for a path that ends in ``..``."""
    return path.name if path.name not in ("", "..") else path.resolve().name


def list_files(
    path: Path, entries: Sequence[files.Entry], name_of: Callable[[str], FileName]
) -> tuple[list[File], tuple[Path, ...]]:
    """Return the files among entries, and the entries that are not files."""
    listed: list[File] = []
    odd = []
    for entry in entries:
        name = name_of(entry.name)
        if not is_file(entry, name):
            odd.append(path / entry.name)
            continue
        file = describe(path, entry, name)
        if file:
            listed.append(file)
    return listed, tuple(odd)


def arrange_partition(
    path: Path,
    flavour: Flavour,
    directory: PartitionDirectory | BadDirectory,
    listed: list[File],
    odd: tuple[Path, ...],
) -> Partition:
    """Return the partition that these files make: segments with their indexes, and the rest."""
    live: dict[FileKind, list[File]] = {}
    leftovers, strangers = [], []
    for file in listed:
        name = file.name
        if name.reception is not Reception.EXACT:
            strangers.append(file)
        elif name.state is not FileState.LIVE:
            leftovers.append(file)
        else:
            live.setdefault(name.kind, []).append(file)

    def of(*kinds: FileKind) -> list[File]:
        chosen = [file for kind in kinds for file in live.get(kind, ())]
        return sorted(chosen, key=_order) if len(chosen) > 1 else chosen

    logs = of(FileKind.LOG)
    indexes: dict[tuple[int, int], dict[FileKind, File]] = {}
    for file in of(*names.INDEX_KINDS, FileKind.REDPANDA_BASE_INDEX):
        indexes.setdefault(_key(file), {})[file.name.kind] = file
    bases = [log.name.offset or 0 for log in logs]
    segments = tuple(
        Segment(
            base_offset=base,
            log=log,
            indexes=indexes.pop(_key(log), {}),
            next_base_offset=after,
            flavour=flavour,
        )
        for base, log, after in zip(bases, logs, [*bases[1:], None], strict=bool(bases))
    )
    return Partition(
        path=path,
        flavour=flavour,
        directory=directory,
        segments=segments,
        orphans=tuple(file for _, group in sorted(indexes.items()) for file in group.values()),
        snapshots=tuple(of(FileKind.PRODUCER_SNAPSHOT)),
        kraft_snapshots=tuple(of(FileKind.KRAFT_SNAPSHOT)),
        fixed={
            f.name.kind: f
            for f in of(
                FileKind.LEADER_EPOCH_CHECKPOINT, FileKind.PARTITION_METADATA, FileKind.QUORUM_STATE
            )
        },
        leftovers=tuple(leftovers),
        strangers=tuple(strangers),
        odd_entries=odd,
    )


def without_files(
    path: Path, flavour: Flavour, directory: PartitionDirectory | BadDirectory
) -> Partition:
    """Return a partition for its names alone, of which no file was listed."""
    return Partition(
        path=path,
        flavour=flavour,
        directory=directory,
        segments=(),
        orphans=(),
        snapshots=(),
        kraft_snapshots=(),
        fixed={},
        leftovers=(),
        strangers=(),
        odd_entries=(),
    )


def _key(file: File) -> tuple[int, int]:
    """Return the key that the files of a segment share: base offset and, for Redpanda, the term."""
    return file.name.offset or 0, file.name.epoch or 0


def _order(file: File) -> tuple[int, int, str]:
    """Return the key by which files of one kind are sorted."""
    return (*_key(file), file.name.name)
