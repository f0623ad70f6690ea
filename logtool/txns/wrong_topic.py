"""Batches that a client wrote to the wrong topic (KAFKA-19012), or that a log has twice.

The CRC of a batch does not cover the topic. A Java client from 2.8 on could send the buffer of one
partition to another one, where the leader accepts it if it knows nothing of the producer. Then two
partitions of different topics hold a batch with one producer id, epoch, first sequence and CRC, and
in one of them the batch does not continue the sequence of its producer. Both must still be there.
Batches without a producer id are not judged, because equal ones may have been sent on purpose.

A client that sends the same records to two topics on purpose writes equal batches too. These
continue the sequence in both topics, so nothing is reported about them. Nor is anything about a
batch that a broker took for another topic because it happens to continue the sequence there, or is
the first one of its producer in both. Where compaction or retention may have removed the batches
before, nothing is reported either.

A log that has such a batch twice is never sound: the leader refuses a batch of a producer that it
already has, as long as it knows the producer, and a producer that begins its sequence again writes
other timestamps, and so another CRC. Copies with the same offsets are of one append.

With LogAppendTime the leader writes the time of the append into the header, so that the CRCs of two
appends differ. The batches are then compared without that time and without the CRC. A leader that
compresses the records again changes more of them: such a batch is not found.

A whole segment with the batches of another partition is one finding, see `segment_twins`: the file
was put in the wrong directory, and no client did it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from logtool.checks import foreign_segments
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats import wording
from logtool.formats.names import DirectoryKind, PartitionDirectory
from logtool.formats.record_batch import SEQUENCES, BatchTable, Column, concat, empty_table
from logtool.lazy_dataclass import dataclass
from logtool.loading.header_walk import headers
from logtool.loading.segment_twins import PlacedSegment, SegmentTwin, places_of, twins
from logtool.log import inputs, opening
from logtool.log.dir import Partition, Segment
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.selection import Selection
from logtool.running.run import Run
from logtool.running.workers import OutOfTimeError

CODE = "batch/other-topic"
TWICE = "batch/twice"
_PRIMES = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5)
_LARGEST_SIZE = 2**31
_CRC_END, _TIME, _AFTER_TIME = 21, 35, 43
"""Bytes of a batch: behind the CRC, and the place and the end of the largest timestamp."""
_KINDS = frozenset({DirectoryKind.LIVE, DirectoryKind.DELETE, DirectoryKind.STRAY})


@dataclass(frozen=True, slots=True)
class _Place:
    """One partition dir."""

    path: Path
    directory: PartitionDirectory


@dataclass(frozen=True, slots=True)
class _Suspect:
    """One batch that a partition of another topic has too."""

    place: _Place
    segment: Segment
    position: int
    first_offset: int
    last_offset: int
    key: tuple[int, int, int, int]
    """Producer id, epoch, first sequence and CRC; with LogAppendTime the number of `_content`."""
    continues: bool | None
    """True if the batch before or behind it continues the sequence of the producer, False if the
    sequence breaks at it, None if neither is there."""
    log_begins_ms: int
    """Timestamp of the first batch in the log; the largest number if offsets are missing before the
    suspect."""
    before_ms: int | None
    """Timestamp of the batch before it in the sequence of the producer; None without one."""

    def would_have_it(self, before_ms: int | None) -> bool:
        """Return whether the log reaches back to a time, and has all batches since then."""
        return before_ms is not None and self.log_begins_ms <= before_ms

    @property
    def name(self) -> str:
        """Return topic and partition."""
        return f"{self.place.directory.topic}-{self.place.directory.partition}"


class WrongTopics:
    """One run over log dirs and partition dirs: iterate for findings and errors of reading.

    It takes 8 bytes of memory for each batch of an idempotent producer.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        selection: Selection | None = None,
        run: Run | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        self._paths, self._flavour = paths, flavour
        self._selection = selection or Selection()
        self._run = run or Run()

    def __iter__(self) -> Iterator[Finding | UnreadableError]:
        places: list[_Place] = []
        hashes: list[Column] = []
        try:
            for place in self._places():
                if isinstance(place, UnreadableError):
                    yield place
                    continue
                places.append(place)
                hashes.append(np.concatenate([_NONE, *map(_hashes, self._tables(place))]))
            wanted = np.concatenate([_in_two_topics(places, hashes), *map(_repeated, hashes)])
            found: list[_Suspect] = []
            for place, own in zip(places, hashes, strict=True):
                if np.isin(own, wanted).any():
                    found += self._suspects(place, wanted)
        except OutOfTimeError:
            return
        repeats = _repeats(found)
        again = {id(one) for one, _ in repeats}
        yield from _findings([one for one in found if id(one) not in again])
        yield from (_twice(one, before) for one, before in repeats)
        try:
            yield from self._foreign_segments(places)
        except OutOfTimeError:
            return

    def _foreign_segments(self, places: Sequence[_Place]) -> Iterator[Finding]:
        """Yield the segments that hold the batches of another partition, each as a whole."""
        every: list[PlacedSegment] = []
        for place in places:
            listed = opening.try_partition(place.path, KAFKA)
            if isinstance(listed, Partition):
                every += places_of((place.directory.topic, place.directory.partition), listed)
        for one in twins(every):
            self._run.budget.pace.spend(0)
            command = None
            if len(self._paths) > 1:
                command = foreign_segments.comparison(one.wrong.key[0], self._paths)
            yield _twin(one, command)

    def _places(self) -> Iterator[_Place | UnreadableError]:
        for one in inputs.open_each(self._paths, self._flavour):
            if isinstance(one, UnreadableError):
                yield one
                continue
            try:
                chosen = one.chosen(self._selection)
            except UnreadableError as error:
                yield error
                continue
            for folder, directory in chosen:
                if directory.kind in _KINDS:
                    yield _Place(folder, directory)

    def _tables(self, place: _Place) -> Iterator[BatchTable]:
        """Yield the batches of idempotent producers in a partition."""
        for _, table in self._segments(place):
            yield table[_is_judged(table)]

    def _segments(self, place: _Place) -> Iterator[tuple[Segment, BatchTable]]:
        """Yield the headers of a partition; a segment that cannot be read has none.

        The check of the segments, which comes before, reports why it cannot be read.
        """
        listed = opening.try_partition(place.path, KAFKA)
        for segment in listed.segments if isinstance(listed, Partition) else ():
            try:
                for table in headers(segment):
                    self._run.budget.pace.spend(0)
                    yield segment, table
            except UnreadableError:
                continue

    def _suspects(self, place: _Place, wanted: Column) -> Iterator[_Suspect]:
        """Yield the batches of a partition whose hashes are wanted."""
        parts = list(self._segments(place))
        table = concat([part for _, part in parts]) if parts else empty_table()
        owner = np.repeat(np.arange(len(parts)), [len(part) for _, part in parts])
        # Where offsets are missing in between, compaction may have removed a batch.
        gaps = np.cumsum(
            np.concatenate(([0], table.base_offset[1:] != table.last_offset[:-1] + 1))
            if len(table)
            else _NONE
        )
        rows = np.flatnonzero(_is_judged(table))
        for row in rows[np.isin(_hashes(table[rows]), wanted)].tolist():
            continues, before = _continues(table, gaps, rows, row)
            segment = parts[int(owner[row])][0]
            yield _Suspect(
                place=place,
                segment=segment,
                position=int(table.position[row]),
                first_offset=int(table.base_offset[row]),
                last_offset=int(table.last_offset[row]),
                key=_key(table, row, segment),
                continues=continues,
                log_begins_ms=_NEVER if gaps[row] else int(table.max_timestamp[0]),
                before_ms=None if before is None else int(table.max_timestamp[before]),
            )


_NONE = np.empty(0, np.uint64)
_NEVER = 2**63 - 1


def _is_judged(table: BatchTable) -> Column:
    return (table.producer_id >= 0) & (table.base_sequence >= 0) & ~table.is_control


def _hashes(table: BatchTable) -> Column:
    """Return a uint64 for each batch from producer id, epoch, first sequence and content.

    For the content stands the CRC; with LogAppendTime, which changes it, the size and the time of
    the first record, which the leader leaves as they are.
    """
    stable = table.base_timestamp * _LARGEST_SIZE + table.size
    content = np.where(table.is_log_append_time, stable, table.crc)
    columns = table.producer_id, table.producer_epoch, table.base_sequence, content
    found = np.zeros(len(table), np.uint64)
    for column, prime in zip(columns, _PRIMES, strict=True):
        found = (found ^ column.astype(np.uint64)) * np.uint64(prime)
        found ^= found >> np.uint64(29)
    return found


def _repeated(hashes: Column) -> Column:
    """Return the hashes that occur more than once in a partition."""
    found, counts = np.unique(hashes, return_counts=True)
    return found[counts > 1]


def _in_two_topics(places: Sequence[_Place], hashes: Sequence[Column]) -> Column:
    """Return the hashes that occur in two topics."""
    numbers: dict[str, int] = {}
    topics = [numbers.setdefault(one.directory.topic, len(numbers)) for one in places]
    sizes = list(map(len, hashes))
    every = np.concatenate([_NONE, *hashes])
    order = np.argsort(every, kind="stable")
    topic = np.repeat(np.array(topics, np.int64), sizes)[order]
    same = every[order][1:] == every[order][:-1]
    return np.unique(every[order][1:][same & (topic[1:] != topic[:-1])])


def _key(table: BatchTable, row: int, segment: Segment) -> tuple[int, int, int, int]:
    columns = table.producer_id, table.producer_epoch, table.base_sequence, table.crc
    first, second, third, last = (int(column[row]) for column in columns)
    if table.is_log_append_time[row]:
        last = _content(segment, int(table.position[row]), int(table.size[row]), last)
    return first, second, third, last


def _content(segment: Segment, position: int, size: int, crc: int) -> int:
    """Return a negative number for the bytes of a batch that do not depend on its append.

    These are the bytes that the CRC covers, without the largest timestamp. The CRC is returned
    where the batch cannot be read any more.
    """
    try:
        with segment.log.open() as log:
            data = log.read(position, size)
    except UnreadableError:
        return crc
    return -1 - crc32(data[_AFTER_TIME:], crc32(data[_CRC_END:_TIME]))


def _continues(
    table: BatchTable, gaps: Column, rows: Column, row: int
) -> tuple[bool | None, int | None]:
    """Return whether a batch continues the sequence of its producer, see `_Suspect`.

    The second value is the row of the batch before it in the sequence; None without one.
    """
    own = rows[table.producer_id[rows] == table.producer_id[row]]
    at = int(np.searchsorted(own, row))
    before = int(own[at - 1]) if at else None
    near = [] if before is None else [(before, row)]
    near += [(row, int(own[at + 1]))] if at + 1 < len(own) else []
    found: bool | None = None
    for first, second in near:
        if table.producer_epoch[first] != table.producer_epoch[second]:
            continues = int(table.base_sequence[second]) == 0
        else:
            following = (int(table.last_sequence[first]) + 1) % SEQUENCES
            continues = following == int(table.base_sequence[second])
        if continues:
            return True, before if second == row else None
        if gaps[first] == gaps[second]:
            found = False
    return found, None


def _findings(suspects: Sequence[_Suspect]) -> Iterator[Finding]:
    """Yield a finding for each batch that breaks the sequence where another topic has it too."""
    by_key: dict[tuple[int, int, int, int], list[_Suspect]] = {}
    for one in suspects:
        by_key.setdefault(one.key, []).append(one)
    for key, copies in by_key.items():
        wrong = [one for one in copies if one.continues is False]
        # The only batch of its producer there: the one before it would be there as well.
        wrong += [
            one
            for one in copies
            if one.continues is None and any(one.would_have_it(each.before_ms) for each in copies)
        ]
        for one in wrong:
            topic = one.place.directory.topic
            others = [other for other in copies if other.place.directory.topic != topic]
            if not others:
                continue
            right = next((other for other in others if other.continues), None)
            other = right or others[0]
            where = f"{other.name} has at offset {other.first_offset}"
            where += ", where it continues the sequence of the producer" if right else " too"
            text = (
                f"the batch at offset {one.first_offset} breaks the sequence of producer {key[0]} "
                f"(epoch {key[1]}, sequence {key[2]}), and is a batch that {where}: a client wrote "
                "it to the wrong topic"
            )
            yield _placed(one, CODE, text)


def _repeats(suspects: Sequence[_Suspect]) -> list[tuple[_Suspect, _Suspect]]:
    """Return each batch that its own log has before, at another offset, with the first one."""
    first: dict[tuple[Path, tuple[int, int, int, int]], _Suspect] = {}
    pairs = [(one, first.setdefault((one.place.path, one.key), one)) for one in suspects]
    return [(one, before) for one, before in pairs if one.first_offset != before.first_offset]


def _twice(one: _Suspect, before: _Suspect) -> Finding:
    """Return the finding about a batch that its own log has before."""
    producer, epoch, sequence, _ = one.key
    text = (
        f"the batch at offset {one.first_offset} of producer {producer} (epoch {epoch}, "
        f"sequence {sequence}) is in this log before, at offset {before.first_offset}"
    )
    return _placed(one, TWICE, text)


def _twin(one: SegmentTwin, command: str | None) -> Finding:
    """Return the finding about a segment with the batches of another partition."""
    topic, partition = one.wrong.key
    base = one.wrong.segment.base_offset
    number = wording.count(one.batches, "batch", "batches")
    text = (
        f"the segment has the {number} of {one.right.segment.log.path}, where they continue the "
        "sequences of their producers, which they do not here: the file is that of another "
        "partition"
    )
    found = Finding("segment/other-partition", text, None, None, base, one.last_offset)
    return found.placed(
        one.wrong.segment.log.path,
        topic=topic, partition=partition, segment=base, next_command=command,
    )  # fmt: skip


def _placed(one: _Suspect, code: str, text: str) -> Finding:
    """Return the finding about a batch."""
    return Finding(code, text, one.position, None, one.first_offset, one.last_offset).placed(
        one.segment.log.path,
        topic=one.place.directory.topic,
        partition=one.place.directory.partition,
        segment=one.segment.base_offset,
    )
