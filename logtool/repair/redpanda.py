"""Salvage of partitions of Redpanda: sound batches in its form, in segments with its names.

Segments that a start has given up (``.cannotrecover``) are read, too. The output has the folders of
a data directory, so that a partition can be put in the place of the damaged one. Each segment gets
a base index, with which a start trusts it; offsets may be missing between batches.

Other copies are used as for Kafka's logs (`logtool.repair.filling`), and the proof is stronger
here: by the rules of Raft two logs that hold a batch of one offset and one term are equal up to
there. The terms are in the names of segments, in place of a ``leader-epoch-checkpoint``.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.apply import disk
from logtool.apply.dirfd import OpenDir
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats import wording
from logtool.formats.redpanda import names
from logtool.formats.redpanda.names import KAFKA_NAMESPACE, RedpandaFileKind
from logtool.lazy_dataclass import dataclass
from logtool.log import inputs, opening, redpanda_dir
from logtool.log.base_index import Builder
from logtool.log.batches import read_batches
from logtool.log.dir import Partition
from logtool.log.file import File
from logtool.log.inputs import PathKind
from logtool.log.redpanda import REDPANDA, given_up_segments
from logtool.log.selection import Selection
from logtool.repair.ranges import Kept, Part, Rejected, RejectReason
from logtool.repair.reading import LogToRead
from logtool.repair.saved import SavedPartition, saved


def partitions(path: Path, selection: Selection) -> Iterator[Partition | UnreadableError]:
    """Yield the partitions of a path, and errors for those that cannot be listed."""
    try:
        kind = inputs.kind_of(path, REDPANDA, redpanda=True)
        if kind is PathKind.FILE:
            raise UnreadableError(path, "is not a data directory and not a directory in one")
        folders = [path]
        if kind is PathKind.LOG_DIR:
            found = opening.open_log_dir(path, REDPANDA).partitions
            folders = [folder for folder, directory in found if selection.takes(directory)]
    except UnreadableError as error:
        yield error
        return
    for folder in folders:
        listed = opening.try_partition(folder, REDPANDA)
        gone = isinstance(listed, UnreadableError) and files.has_vanished(listed)
        if folder == path or not gone:
            yield listed


def pieces(listed: Partition) -> list[LogToRead]:
    """Return the segments to be read, by offset: those of the log, and those given up."""
    logs = [segment.log for segment in listed.segments] + given_up_segments(listed)
    logs.sort(key=lambda file: (file.name.offset or 0, file.name.epoch or 0))
    bases = [file.name.offset or 0 for file in logs]
    ends: list[int | None] = [
        next((base for base in bases[number + 1 :] if base > bases[number]), None)
        for number in range(len(bases))
    ]
    return [LogToRead(*one, REDPANDA) for one in zip(logs, bases, ends, strict=True)]


def missing(listed: Partition) -> list[Rejected]:
    """Return the segments that are gone, by base indexes that are left of them."""
    text = "the segment is missing, but one of its indexes is left"
    there = {base_and_term(piece.log) for piece in pieces(listed)}
    return [
        Rejected(
            path=listed.path / names.format_segment(*base_and_term(file)),
            position=0,
            length=0,
            kind=RejectReason.MISSING,
            reason=text,
            first_offset=file.name.offset,
        )
        for file in listed.orphans
        if base_and_term(file) not in there
    ]


def ordered(found: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts of a log, with rejects for offsets that an earlier segment holds."""
    end = -1
    for part in found:
        if isinstance(part, Kept) and part.first.base_offset <= end:
            text = f"{wording.count(part.batches, 'sound batch', 'sound batches')} of "
            text += wording.offsets(part.first.base_offset, part.last.last_offset)
            text += ", which another segment holds"
            yield Rejected(part.path, part.position, part.size, RejectReason.OVERLAP, text)
            continue
        if isinstance(part, Kept):
            end = part.last.last_offset
        yield part


def base_and_term(file: File) -> tuple[int, int]:
    """Return the parsed name of a segment or its index."""
    return file.name.offset or 0, file.name.epoch or 0


def base_of(part: Part) -> tuple[int, int]:
    """Return the sort key of the parts of a log: base offset and term of the segment."""
    name = names.parse_partition_file(part.path.name)
    return name.base_offset or 0, name.term or 0


def copies(listed: Partition, dirs: Sequence[Path]) -> list[Path]:
    """Return the folders of a partition in other data directories, or among `dirs` themselves.

    The revision in the name of a folder may be another on each broker.
    """
    found = []
    for path in dirs:
        given = path.resolve()
        folders = [folder for folder, _ in redpanda_dir.partitions(given)]
        found += [folder for folder in folders if _same_partition(folder, listed)]
    return found


def _same_partition(folder: Path, listed: Partition) -> bool:
    other, own = folder.resolve(), listed.path.resolve()
    named, ours = (names.parse_partition_directory(one.name) for one in (other, own))
    if named is None or ours is None or other == own or named.partition != ours.partition:
        return False
    return other.parent.parts[-2:] == own.parent.parts[-2:]


def terms(listed: Partition) -> list[tuple[int, int]]:
    """Return (term, base offset) of the segments: each term begins with a new segment."""
    rows: list[tuple[int, int]] = []
    for base, term in (base_and_term(piece.log) for piece in pieces(listed)):
        if not rows or term > rows[-1][0]:
            rows.append((term, base))
    return rows


@dataclass(slots=True)
class NewSegment:
    """One segment to be written."""

    base_offset: int
    term: int
    extents: list[Kept]

    def path(self, folder: Path) -> Path:
        """Return its file in a folder."""
        return folder / names.format_segment(self.base_offset, self.term)


def segments(listed: Partition, parts: Sequence[Part]) -> list[NewSegment]:
    """Return the segments to be written: those of the log, and new ones for other batches.

    A batch of another copy goes to the segment with its offset, if the segment is of its term, or
    else behind the batches before it.
    """
    of_path = {piece.log.path: base_and_term(piece.log) for piece in pieces(listed)}
    own = list(of_path.values())
    made: dict[tuple[int, int], NewSegment] = {}
    last: NewSegment | None = None
    for part in parts:
        if not isinstance(part, Kept):
            continue
        key = of_path.get(part.path)
        if key is None:
            name = names.parse_partition_file(part.path.name)
            first, term = part.first.base_offset, name.term or 0
            at = bisect_right([base for base, _ in own], first) - 1
            if at >= 0 and own[at][1] == term:
                key = own[at]
            elif last and last.term == term and name.base_offset in (None, last.base_offset):
                key = last.base_offset, term
            else:
                key = first, term
        last = made.setdefault(key, NewSegment(*key, []))
        last.extents.append(part)
    return list(made.values())


def place_of(listed: Partition) -> str:
    """Return the path of a partition in a data directory."""
    return "/".join(("", "", *listed.path.resolve().parts)[-3:]).lstrip("/")


def write_index(home: OpenDir, target: Path, segment: NewSegment) -> None:
    """Write the base index of a segment that was written."""
    all_data = target.parent.parent.parent.name != KAFKA_NAMESPACE
    builder = Builder(segment.base_offset, all_data=all_data)
    with LogFile(target) as log:
        form = REDPANDA.form(target)
        for chunk in read_batches(log, base_offset=segment.base_offset, form=form, payload=False):
            builder.add(chunk.table)
    disk.write_new(home, target.with_suffix(RedpandaFileKind.BASE_INDEX), [builder.finish()])


def saved_of(listed: Partition, parts: Sequence[Part], target: Path) -> SavedPartition:
    """Return the object about one partition."""
    extents = [part for part in parts if isinstance(part, Kept)]
    start = extents[0].first.base_offset if extents else 0
    end = extents[-1].last.last_offset + 1 if extents else 0
    return saved((listed.topic, listed.number), (listed.path, target), parts, (start, end))
