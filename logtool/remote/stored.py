"""The files of remote segments, as the objects below some prefixes have them.

They have the names that they had in the partition dir. Of a segment that is not needed to its ends
the log has those batches alone, and no index.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from logtool.disk import files
from logtool.disk.assembled import AssembledFile
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.formats import names, wording
from logtool.formats.names import TopicPartition
from logtool.formats.rsm_names import LOG, Plugin
from logtool.lazy_dataclass import dataclass
from logtool.log.dir import Segment
from logtool.log.file import File
from logtool.log.kafka import KAFKA
from logtool.remote import contents, coverage, objects
from logtool.remote.contents import ENCRYPTED, Piece, SegmentContent
from logtool.remote.loading import MetadataLog, PartitionId
from logtool.remote.objects import ObjectSet
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
            try:
                listed = objects.by_plugin(prefix)
            except UnreadableError as error:
                self.problems.append(error)
                continue
            for plugin, of_plugin in listed.items():
                for group in objects.grouped(of_plugin):
                    key = group.name.partition_id, group.name.segment_id
                    if LOG in group.objects or key not in found:
                        found[key] = plugin, group
        return found

    @cached_property
    def lineage(self) -> RemoteLineage:
        """Return the records of remote segments, which are read at the first call."""
        lineage = RemoteLineage(self.homes)
        # A partition that lacks records has a problem of its own.
        self.problems += [one for one in lineage.logs() if isinstance(one, UnreadableError)
                          and not isinstance(one, NothingMatchedError)]  # fmt: skip
        return lineage

    @cached_property
    def partitions(self) -> Mapping[PartitionId, tuple[RemotePartition, MetadataLog]]:
        """Return the partitions that have records of remote segments."""
        return {(one[0].topic_id, one[0].number): one for one in self.lineage.partitions()}

    @cached_property
    def segments(self) -> Mapping[PartitionId, Sequence[tuple[Plugin, ObjectSet]]]:
        """Return the objects by partition, by their first offsets."""
        found: dict[PartitionId, list[tuple[Plugin, ObjectSet]]] = {}
        for (partition_id, _), one in self.objects.items():
            found.setdefault(partition_id, []).append(one)
        return found

    def place_of(self, partition_id: PartitionId) -> Path:
        """Return the folder of the objects of a partition, the prefix without one."""
        groups = self.segments.get(partition_id)
        return groups[0][1].path.parent if groups else self.prefixes[0]

    @cached_property
    def partition_ids(self) -> Mapping[TopicPartition, PartitionId]:
        """Return the partitions that have objects, or records of segments that can be read.

        With a whole metadata image, those of deleted topics are left out. Without one, two topics
        of the same name are a problem, and none of them is in the result.
        """
        found: dict[TopicPartition, set[PartitionId]] = {}
        for groups in self.segments.values():
            name = groups[0][1].name
            found.setdefault((name.topic, name.partition), set()).add(name.partition_id)
        for key, (remote, _) in self.partitions.items():
            if any(one.is_readable for one in remote.segments.values()):
                found.setdefault((remote.topic, remote.number), set()).add(key)
        image = self.lineage.today
        chosen: dict[TopicPartition, PartitionId] = {}
        for (topic, number), ids in sorted(found.items()):
            if image:  # of today: others are of deleted topics
                ids &= {(image.topics.get(topic, ""), number)}
            if len(ids) > 1:
                named = " and ".join(sorted(topic_id for topic_id, _ in ids))
                text = f"objects of several topics have the name {topic}-{number}: those with the "
                text += f"ids {named}; give the folder of one, or the log dir of a controller"
                self.problems.append(UnreadableError(self.prefixes[0], text))
            elif ids:
                chosen[topic, number] = ids.pop()
        return chosen


def segment_files(
    store: TierStore, folder: str, partition_id: PartitionId, piece: TierPiece
) -> Iterator[tuple[str, AssembledFile, str | None]]:
    """Yield name and content of each file of a piece, and the path of the object that it is.

    That is None where the content is not a whole object. UnreadableError if a piece has no log that
    can be read.
    """
    segment = piece.segment
    stored = store.objects.get((partition_id, segment.segment_id))
    missed = f"{wording.offsets(piece.first, piece.last)} of {folder} cannot be read"
    if stored is None or LOG not in stored[1].objects:
        text = f"{missed}: the log of segment {segment.segment_id} is not there"
        raise UnreadableError(store.prefixes[0], text)
    plugin, group = stored
    result = SegmentContent()
    there = contents.pieces(plugin, group, result)
    if LOG not in there:
        raise UnreadableError(group.path, f"{missed}: {reason_unread(result)}")
    log = there[LOG]
    if log.size != segment.size:
        text = f"{missed}: the log has {log.size:,} bytes, but by the records {segment.size:,}"
        raise UnreadableError(group.path, text)
    when = max(segment.max_timestamp_ms, 0)
    base = segment.start_offset
    if not piece.is_whole:
        base, content = _cut(log, piece)
        yield _name(base, LOG), AssembledFile(content, content.size, when), None
        return
    for kind in (LOG, *_INDEXES):
        if kind in there:
            one = there[kind]
            shown = None if one.packed or one.shift else str(one.source)
            yield _name(base, kind), AssembledFile(one.path, one.size, when), shown


def reason_unread(result: SegmentContent) -> str:
    """Return why the objects of a segment give no log."""
    if result.content == ENCRYPTED:
        return "the segment is encrypted, and logtool has no key"
    texts = (one.message for one in result.findings if not isinstance(one, UnreadableError))
    return "; ".join(texts) or "its manifest is not there"


def log_of(base: int, log: Piece) -> Segment:
    """Return the log of a segment, without indexes."""
    name = names.parse_partition_file(_name(base, LOG))
    file = File(path=log.path, name=name, size=log.size, mtime_ns=0)
    return Segment(base, file, {}, 2**63 - 1, KAFKA)


class _Range:
    """A range of bytes of a log."""

    def __init__(self, piece: Piece, start: int, stop: int) -> None:
        self._piece, self._start, self.size = piece, start, max(stop - start, 0)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        count = max(0, min(len(buffer), self.size - position))
        with files.LogFile(self._piece.path, self._piece.size) as file:
            return file.read_into(buffer[:count], self._start + position)


def pieces_of(
    found: Sequence[coverage.FoundRange], offsets: range, epochs: coverage.Epochs, log_end: int
) -> list[TierPiece]:
    """Return the parts of remote segments with these offsets, in order.

    `found` are the ranges that are found by the leader epochs of a log that ends at `log_end`; the
    first of the offsets is its log start.
    """
    pieces: list[TierPiece] = []
    at = offsets.start
    for one in found:
        first, last = max(one.first, at), min(one.last, offsets.stop - 1)
        if first > last:
            continue
        at = last + 1
        if pieces and pieces[-1].segment is one.segment and pieces[-1].last + 1 == first:
            pieces[-1] = TierPiece(one.segment, pieces[-1].first, last)
        else:
            pieces.append(TierPiece(one.segment, first, last))
    if pieces and coverage.is_in_lineage(pieces[0].segment, epochs, log_end):
        # As with local segments, the one that holds the log start is there from its beginning.
        pieces[0] = TierPiece(pieces[0].segment, pieces[0].segment.start_offset, pieces[0].last)
    return pieces


def _cut(log: Piece, piece: TierPiece) -> tuple[int, _Range]:
    """Return the batches of a piece as part of the log, and the offset of the first one."""
    segment = log_of(piece.segment.start_offset, log)
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
