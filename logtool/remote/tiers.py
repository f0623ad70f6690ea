"""Log dirs with the remote segments of their partitions, as if both parts were one log.

In a partition dir, the remote segments in which a broker finds offsets below the first local
segment come in front of the local ones; all other files are those of the log dir. The rules are
those of `logtool.remote.lineage`: the leader epochs of the local copy lead to the segments. A
partition without a local copy is in the first log dir, see `logtool.remote.alone`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.disk.assembled import AssembledFile, AssembledTree, Entries
from logtool.errors import UnreadableError
from logtool.formats import names, wording
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.log import opening
from logtool.log.file import describe
from logtool.log.kafka import KAFKA
from logtool.metadata.log_start import is_tiered
from logtool.remote import alone, local
from logtool.remote.lineage import NOWHERE, UNKNOWN, PartitionLineage
from logtool.remote.loading import PartitionId
from logtool.remote.local import LocalCopy
from logtool.remote.stored import TierPiece, TierStore, pieces_of, segment_files


class TieredTree(AssembledTree):
    """A log dir with the remote part of its partitions, which is read when they are listed.

    Without a log dir, all partitions are in remote storage alone.
    """

    def __init__(self, home: Path | None, store: TierStore) -> None:
        self._home, self._store = home, store
        self.places = (*([home] if home else []), *store.prefixes)
        self._is_first = home is None or home == store.homes[0]
        self._entries: dict[str, Entries] = {}
        self._problems: dict[str, Sequence[UnreadableError]] = {}
        self._shown: dict[str, str] = {}

    def __reduce__(self) -> tuple[type, tuple[Path | None, TierStore]]:
        return TieredTree, (self._home, self._store)

    def entries(self, folder: str) -> Entries:
        """Return the files of the log dir, or of a directory in it."""
        if folder not in self._entries:
            self._entries[folder] = self._read(folder)
        return self._entries[folder]

    def problems(self) -> Iterator[UnreadableError]:
        """Yield why remote parts of the partitions that were listed are missing."""
        if self._is_first:
            yield from self._store.problems
        for folder in sorted(self._problems):
            yield from self._problems[folder]

    def problems_of(self, folder: str) -> Sequence[UnreadableError]:
        """Return the problems of a directory that was listed."""
        return self._problems.get(folder, ())

    def note(self, folder: str, problems: Sequence[UnreadableError]) -> None:
        """Take the problems of a directory that another process listed."""
        self._problems[folder] = problems

    def shown(self, own: str) -> str | None:
        """Return the path of the object that a file is; None for files of the log dir."""
        if own in self._shown:
            return self._shown[own]
        folder, _, name = own.partition("/")
        if folder not in self._alone:
            return None
        place = self._store.place_of(self._alone[folder])
        return str(place / name if name else place)

    @cached_property
    def _alone(self) -> Mapping[str, PartitionId]:
        """The directories of partitions without a local copy."""
        if not self._is_first:
            return {}
        there = {entry.name for home in self._store.homes for entry in files.list_dir(home)}
        return {
            f"{topic}-{number}": partition_id
            for (topic, number), partition_id in self._store.partition_ids.items()
            if f"{topic}-{number}" not in there
        }

    @cached_property
    def _log_starts(self) -> Mapping[TopicPartition, int]:
        assert self._home
        rows = opening.open_log_dir(self._home, KAFKA).rows(FileKind.LOG_START_CHECKPOINT)
        return {key: max(row.offset, 0) for key, row in rows.items()}

    def _read(self, folder: str) -> Entries:
        if folder in self._alone:
            return self._read_alone(folder, self._alone[folder])
        if self._home is None:
            if folder:
                raise FileNotFoundError
            return dict.fromkeys(self._alone)
        place = self._home
        for part in folder.split("/") if folder else ():
            place = place / part
        there = {entry.name: _passed_on(place, entry) for entry in files.list_dir(place)
                 if files.is_dir(entry) or entry.is_file(follow_symlinks=False)}  # fmt: skip
        if not folder:
            return {**there, **dict.fromkeys(self._alone)}
        key = _partition_of(folder)
        if key is None or folder in self._problems:
            return there
        problems: list[UnreadableError] = []
        try:
            row = self._log_starts.get(key)
            copy = local.read(place, KAFKA, row or 0)
            partition_id = self._store.partition_ids.get(key)
            if partition_id and _is_empty(copy, partition_id):
                return self._read_alone(folder, partition_id, row, there)
            there = {**self._remote(key, copy, place, problems), **there}
        except UnreadableError as error:
            problems.append(error)
        self._problems[folder] = problems
        return there

    def _read_alone(
        self,
        folder: str,
        partition_id: PartitionId,
        log_start: int | None = None,
        there: Entries | None = None,
    ) -> Entries:
        """Return the files of a partition of which no record is local, with those `there`."""
        log = alone.read(self._store, folder, partition_id, log_start)
        found = self._files(folder, partition_id, log.pieces, log.problems)
        self._problems[folder] = log.problems
        if there is not None and not found:
            return there
        others = {name: file for name, file in (there or {}).items() if not _is_of_segment(name)}
        return {**others, **log.small_files(), **found}

    def _remote(
        self, key: TopicPartition, copy: LocalCopy, place: Path, problems: list[UnreadableError]
    ) -> Entries:
        """Return the files of the remote part of a partition."""
        lineage = self._lineage(key, copy, place, problems)
        if lineage is None:
            return {}
        offsets = range(copy.log_start, copy.local_start)
        pieces = pieces_of(lineage.found, offsets, copy.epochs, copy.log_end)
        remote = lineage.remote
        return self._files(place.name, (remote.topic_id, remote.number), pieces, problems)

    def _files(
        self,
        folder: str,
        partition_id: PartitionId,
        pieces: Sequence[TierPiece],
        problems: list[UnreadableError],
    ) -> Entries:
        """Return the files of pieces, as far as they can be had."""
        found: dict[str, AssembledFile | None] = {}
        for piece in pieces:
            try:
                files_of = list(segment_files(self._store, folder, partition_id, piece))
            except UnreadableError as error:
                problems.append(error)
                continue
            for name, content, shown in files_of:
                found[name] = content
                if shown is not None:
                    self._shown[f"{folder}/{name}"] = shown
        return found

    def _lineage(
        self, key: TopicPartition, copy: LocalCopy, place: Path, problems: list[UnreadableError]
    ) -> PartitionLineage | None:
        """Return both parts of a partition; None if it has no remote part, or a problem has."""
        topic, number = key
        store = self._store
        image = store.lineage.image
        topic_id = copy.topic_id or (image.topics.get(topic) if image else None)
        known = image is not None and topic in image.topics
        if topic_id is None or (known and not is_tiered(image, topic)):
            return None
        there = store.partitions.get((topic_id, number))
        if there is None:
            expected = known or (topic_id, number) in store.segments
            if expected and copy.log_start < copy.local_start:
                text = f"{wording.offsets(copy.log_start, copy.local_start - 1)} are in no local "
                text += "segment, and no record in the given log dirs names a remote segment"
                problems.append(UnreadableError(place, text))
            return None
        lineage = PartitionLineage(*there, copy)
        problems += [
            UnreadableError(place, f"{wording.offsets(one.first_offset, one.last_offset)} are in "
                                   "no local segment and in no remote segment that brokers use")
            for one in lineage.ranges if one.place in (NOWHERE, UNKNOWN)
        ]  # fmt: skip
        return lineage


def _partition_of(folder: str) -> TopicPartition | None:
    """Return topic and number of a partition dir of the log dir; None for another directory."""
    directory = names.parse_directory(folder) if folder and "/" not in folder else None
    if not isinstance(directory, names.PartitionDirectory) or not directory.exact:
        return None
    is_live = directory.kind is DirectoryKind.LIVE
    return (directory.topic, directory.partition) if is_live else None


def _is_empty(copy: LocalCopy, partition_id: PartitionId) -> bool:
    """Return whether a copy of this partition has no record."""
    return copy.log_end <= copy.local_start and copy.topic_id in (None, partition_id[0])


def _is_of_segment(name: str) -> bool:
    return names.parse_partition_file(name).kind in names.SEGMENT_KINDS


def _passed_on(place: Path, entry: files.Entry) -> AssembledFile | None:
    """Return a file of the log dir as it is; None for a directory."""
    if files.is_dir(entry):
        return None
    described = describe(place, entry, names.parse_partition_file(entry.name))
    size, mtime_ns = (described.size, described.mtime_ns) if described else (0, 0)
    return AssembledFile(place / entry.name, size, mtime_ns // 1_000_000)
