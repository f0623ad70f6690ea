"""Log dirs with the remote segments of their partitions, as if both parts were one log.

In a partition dir, the remote segments in which a broker finds offsets below the first local
segment come in front of the local ones, as files with the names that they had there. Of a segment
that brokers read in part, the log has those batches alone, and no index. All other files are those
of the log dir. The rules are those of `logtool.remote.lineage`: the leader epochs of the local copy
lead to the segments.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.disk.assembled import AssembledFile, AssembledTree, Entries
from logtool.errors import UnreadableError
from logtool.formats import names, wording
from logtool.formats.names import DirectoryKind, FileKind, TopicPartition
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.dir import Segment
from logtool.log.file import File, describe
from logtool.log.kafka import KAFKA
from logtool.metadata.log_start import is_tiered
from logtool.remote import contents, coverage, local, objects
from logtool.remote.contents import ENCRYPTED, Piece, SegmentContent
from logtool.remote.lineage import NOWHERE, UNKNOWN, PartitionLineage
from logtool.remote.loading import MetadataLog, PartitionId
from logtool.remote.local import LocalCopy
from logtool.remote.objects import ObjectSet, RemoteObject
from logtool.remote.run import RemoteLineage
from logtool.remote.segments import RemotePartition, RemoteSegment

_INDEXES = ("index", "timeindex", "txnindex")


@dataclass(frozen=True, slots=True)
class TierPiece:
    """Offsets of a remote segment that come in front of the local segments, both included."""

    segment: RemoteSegment
    first: int
    last: int

    @property
    def is_whole(self) -> bool:
        """Return whether these are all offsets of the segment."""
        return self.first <= self.segment.start_offset and self.last >= self.segment.end_offset


class TierStore:
    """The objects below some prefixes, and the records of remote segments in log dirs."""

    def __init__(self, prefixes: Sequence[Path], homes: Sequence[Path]) -> None:
        self.prefixes, self.homes = prefixes, homes
        self.problems: list[UnreadableError] = []
        """Problems of the objects and records as a whole; filled."""

    def __reduce__(self) -> tuple[type, tuple[Sequence[Path], Sequence[Path]]]:
        return TierStore, (self.prefixes, self.homes)  # another process reads them itself

    @cached_property
    def objects(self) -> dict[tuple[PartitionId, str], tuple[Plugin, ObjectSet]]:
        """Return the objects by partition and segment id."""
        found: dict[tuple[PartitionId, str], tuple[Plugin, ObjectSet]] = {}
        for prefix in self.prefixes:
            for plugin in Plugin:
                try:
                    listed = [one for one in objects.listed(plugin, prefix)
                              if isinstance(one, RemoteObject)]  # fmt: skip
                except UnreadableError as error:
                    self.problems.append(error)
                    break
                for group in objects.grouped(listed):
                    key = group.name.partition_id, group.name.segment_id
                    if LOG in group.objects or key not in found:
                        found[key] = plugin, group
        return found

    @cached_property
    def lineage(self) -> RemoteLineage:
        """Return the records of remote segments, which are read at the first call."""
        lineage = RemoteLineage(self.homes)
        self.problems += [one for one in lineage.logs() if isinstance(one, UnreadableError)]
        return lineage

    @cached_property
    def partitions(self) -> Mapping[PartitionId, tuple[RemotePartition, MetadataLog]]:
        """Return the partitions that have records of remote segments."""
        return {(one[0].topic_id, one[0].number): one for one in self.lineage.partitions()}

    def holds(self, partition_id: PartitionId) -> bool:
        """Return whether an object of a partition is there."""
        return any(one == partition_id for one, _ in self.objects)


class TieredTree(AssembledTree):
    """A log dir with the remote part of its partitions, which is read when they are listed."""

    def __init__(self, home: Path, store: TierStore) -> None:
        self._home, self._store = home, store
        self.places = (home, *store.prefixes)
        self._entries: dict[str, Entries] = {}
        self._problems: dict[str, Sequence[UnreadableError]] = {}
        self._shown: dict[str, str] = {}

    def __reduce__(self) -> tuple[type, tuple[Path, TierStore]]:
        return TieredTree, (self._home, self._store)

    def entries(self, folder: str) -> Entries:
        """Return the files of the log dir, or of a directory in it."""
        if folder not in self._entries:
            place = self._home
            for part in folder.split("/") if folder else ():
                place = place / part
            there = {entry.name: _passed_on(place, entry) for entry in files.list_dir(place)
                     if files.is_dir(entry) or entry.is_file(follow_symlinks=False)}  # fmt: skip
            key = _partition_of(folder)
            if key is not None and folder not in self._problems:
                problems: list[UnreadableError] = []
                there = {**self._remote(folder, place, key, problems), **there}
                self._problems[folder] = problems
            self._entries[folder] = there
        return self._entries[folder]

    def problems(self) -> Iterator[UnreadableError]:
        """Yield why remote parts of the partitions that were listed are missing."""
        if self._home == self._store.homes[0]:
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
        """Return the path of the object that a file is; None for other files."""
        return self._shown.get(own)

    @cached_property
    def _log_starts(self) -> Mapping[TopicPartition, int]:
        rows = opening.open_log_dir(self._home, KAFKA).rows(FileKind.LOG_START_CHECKPOINT)
        return {key: max(row.offset, 0) for key, row in rows.items()}

    def _remote(
        self, folder: str, place: Path, key: TopicPartition, problems: list[UnreadableError]
    ) -> dict[str, AssembledFile | None]:
        """Return the files of the remote part of a partition."""
        try:
            copy = local.read(place, KAFKA, self._log_starts.get(key, 0))
            lineage = self._lineage(key, copy, place, problems)
        except UnreadableError as error:
            problems.append(error)
            return {}
        found: dict[str, AssembledFile | None] = {}
        if lineage is None:
            return found
        for piece in _pieces(lineage):
            try:
                found |= self._files(folder, lineage.remote, piece)
            except UnreadableError as error:
                problems.append(error)
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
            expected = known or store.holds((topic_id, number))
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

    def _files(
        self, folder: str, remote: RemotePartition, piece: TierPiece
    ) -> dict[str, AssembledFile | None]:
        """Return the files of a piece; UnreadableError if they cannot be had."""
        segment = piece.segment
        stored = self._store.objects.get(((remote.topic_id, remote.number), segment.segment_id))
        missed = f"{wording.offsets(piece.first, piece.last)} of {folder} cannot be read"
        if stored is None or LOG not in stored[1].objects:
            text = f"{missed}: the log of segment {segment.segment_id} is not there"
            raise UnreadableError(self._store.prefixes[0], text)
        plugin, group = stored
        result = SegmentContent()
        there = contents.pieces(plugin, group, result)
        if LOG not in there:
            why = "the segment is encrypted, and logtool has no key"
            if result.content != ENCRYPTED:
                why = "; ".join(one.message for one in result.findings
                                if not isinstance(one, UnreadableError))  # fmt: skip
                why = why or "its manifest is not there"
            raise UnreadableError(group.path, f"{missed}: {why}")
        log = there[LOG]
        if log.size != segment.size:
            text = f"{missed}: the log has {log.size:,} bytes, but by the records {segment.size:,}"
            raise UnreadableError(group.path, text)
        when = max(segment.max_timestamp_ms, 0)
        base = segment.start_offset
        if not piece.is_whole:
            base, content = _cut(log, piece)
            return {_name(base, LOG): AssembledFile(content, content.size, when)}
        found: dict[str, AssembledFile | None] = {}
        for kind in (LOG, *_INDEXES):
            if kind in there:
                name = _name(base, kind)
                found[name] = AssembledFile(there[kind].path, there[kind].size, when)
                if not there[kind].packed and not there[kind].shift:
                    self._shown[f"{folder}/{name}"] = str(there[kind].source)
        return found


class _Range:
    """A range of bytes of a log."""

    def __init__(self, piece: Piece, start: int, stop: int) -> None:
        self._piece, self._start, self.size = piece, start, max(stop - start, 0)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        count = max(0, min(len(buffer), self.size - position))
        with files.LogFile(self._piece.path, self._piece.size) as file:
            return file.read_into(buffer[:count], self._start + position)


def _pieces(lineage: PartitionLineage) -> list[TierPiece]:
    """Return the parts of remote segments with offsets that are not local, in order."""
    copy = lineage.local
    assert copy is not None
    found: list[TierPiece] = []
    at = copy.log_start
    for one in lineage.found:
        first, last = max(one.first, at), min(one.last, copy.local_start - 1)
        if first > last:
            continue
        at = last + 1
        if found and found[-1].segment is one.segment and found[-1].last + 1 == first:
            found[-1] = TierPiece(one.segment, found[-1].first, last)
        else:
            found.append(TierPiece(one.segment, first, last))
    if found and coverage.is_in_lineage(found[0].segment, copy.epochs, copy.log_end):
        # As with local segments, the one that holds the log start is there from its beginning.
        found[0] = TierPiece(found[0].segment, found[0].segment.start_offset, found[0].last)
    return found


def _cut(log: Piece, piece: TierPiece) -> tuple[int, _Range]:
    """Return the batches of a piece as part of the log, and the offset of the first one."""
    name = names.parse_partition_file(_name(piece.segment.start_offset, LOG))
    file = File(path=log.path, name=name, size=log.size, mtime_ns=0)
    segment = Segment(piece.segment.start_offset, file, {}, 2**63 - 1, KAFKA)
    base, start, stop = piece.first, log.size, log.size
    for chunk in segment.batches(payload=False):
        table = chunk.table
        inside = (table.last_offset >= piece.first) & (table.base_offset <= piece.last)
        if inside.any():
            row = int(inside.argmax())
            if start == log.size:
                base, start = int(table.base_offset[row]), int(table.position[row])
        behind = table.base_offset > piece.last
        if behind.any():
            stop = int(table.position[int(behind.argmax())])
            break
    return base, _Range(log, start, stop)


def _name(base: int, kind: str) -> str:
    return f"{base:020d}.{kind}"


def _partition_of(folder: str) -> TopicPartition | None:
    """Return topic and number of a partition dir of the log dir; None for another directory."""
    directory = names.parse_directory(folder) if folder and "/" not in folder else None
    if not isinstance(directory, names.PartitionDirectory) or not directory.exact:
        return None
    is_live = directory.kind is DirectoryKind.LIVE
    return (directory.topic, directory.partition) if is_live else None


def _passed_on(place: Path, entry: files.Entry) -> AssembledFile | None:
    """Return a file of the log dir as it is; None for a directory."""
    if files.is_dir(entry):
        return None
    described = describe(place, entry, names.parse_partition_file(entry.name))
    size, mtime_ns = (described.size, described.mtime_ns) if described else (0, 0)
    return AssembledFile(place / entry.name, size, mtime_ns // 1_000_000)
