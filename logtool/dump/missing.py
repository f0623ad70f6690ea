"""The records that one copy of a partition has and another lacks, for ``dump --missing-in``.

An election cuts the log of a replica where it left the history of the new leader. The records from
there on are only in the old copy. Clients may have produced some of them again: then the new leader
has a batch with the same producer id, epoch and sequence numbers, which is how a broker recognises
it too (``ProducerAppendInfo``, Kafka 4.x). Records of a transaction that was aborted, or that is
open at the end of the copy, are not committed.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from logtool.copies.copy import CopyReading
from logtool.copies.copy_readers import Blocks, side_by_side
from logtool.copies.pair import Status
from logtool.copies.sources import ListedCopy, find
from logtool.copies.verdict import CopiesVerdict, judge
from logtool.disk import files
from logtool.dump.records import Object
from logtool.errors import UnreadableError
from logtool.formats.names import CLUSTER_METADATA
from logtool.formats.record_batch import SEQUENCES
from logtool.lazy_dataclass import dataclass
from logtool.loading.producers import newest_state
from logtool.log.dir import Partition
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.producer_state import CommittedTransaction, significant
from logtool.log.selection import Selection
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace

_Producer = tuple[int, int]
"""Producer id and epoch."""
_Span = tuple[int, int]
"""First and last number of a range."""


@dataclass(slots=True)
class MissingRecords:
    """The records of one copy that another copy of the partition lacks, as counts."""

    path: Path
    """The copy that has them."""
    other: Path
    """The copy that lacks them."""
    topic: str
    partition: int
    diverges_at: int | None
    """First offset at which the copies differ; None if one only ends before the other."""
    first_offset: int | None = None
    """Offset of the first record that was printed; None without one."""
    last_offset: int | None = None
    records: int = 0
    """Records that were printed."""
    repeated: int = 0
    """Records that the other copy has at another offset, by producer and sequence."""
    aborted: int = 0
    """Records of aborted transactions."""
    open: int = 0
    """Records of transactions that are open at the end of the copy."""
    headless: int = 0
    """Printed records of transactions that begin before the missing records."""


@dataclass(slots=True)
class _Wanted:
    """The rules for the records of one copy."""

    found: MissingRecords
    ranges: Sequence[tuple[float, float]]
    """Offsets that the other copy lacks, rising."""
    produced: dict[_Producer, list[_Span]]
    """Sequence numbers of the batches that only the other copy has there."""
    committed: dict[int, list[_Span]]
    """Offsets of committed transactions by producer id, the first offset and that of the marker."""
    aborted: dict[int, list[_Span]]

    def takes(self, record: Object) -> bool:
        """Return whether a client would have to produce the record again, and count it."""
        offset, found = record["offset"], self.found
        if record["control"] or not _holds(self.ranges, offset):
            return False
        producer_id = record["producer_id"]
        produced = self.produced.get((producer_id, record["producer_epoch"]), ())
        if _holds(produced, record["sequence"]):
            found.repeated += 1
            return False
        if record["transactional"]:
            if _holds(self.aborted.get(producer_id, ()), offset):
                found.aborted += 1
                return False
            transaction = _holder(self.committed.get(producer_id, ()), offset)
            if transaction is None:
                found.open += 1
                return False
            found.headless += not _holds(self.ranges, transaction[0])
        found.records += 1
        found.first_offset = offset if found.first_offset is None else found.first_offset
        found.last_offset = offset
        return True


def _holder(spans: Sequence[tuple[float, float]], number: float) -> tuple[float, float] | None:
    """Return the one of the rising ranges that has a number; None if none has."""
    at = bisect_right(spans, (number, inf)) - 1
    return spans[at] if at >= 0 and number <= spans[at][1] else None


def _holds(spans: Sequence[tuple[float, float]], number: float) -> bool:
    return _holder(spans, number) is not None


class MissingIn:
    """The filter of ``--missing-in``: call `compare` once, then `takes` for each record."""

    def __init__(
        self,
        paths: Sequence[Path],
        other: Path,
        selection: Selection | None = None,
        *,
        pace: Pace | None = None,
        flavour: Flavour | None = None,
    ) -> None:
        """Take the copies whose records are dumped, and the log dir or partition dir `other`."""
        self._paths, self._other, self._flavour = paths, other, flavour
        self._selection = selection or Selection()
        self._run = Run(budget=Budget(pace=pace or Pace()))
        self._wanted: dict[str, _Wanted] = {}
        """By partition dir."""

    @property
    def found(self) -> list[MissingRecords]:
        """Return the counts for each copy that was compared."""
        return [one.found for one in self._wanted.values()]

    def compare(self) -> Iterator[UnreadableError]:
        """Compare the copies; yields what cannot be read, and copies without a counterpart.

        OutOfTimeError once the time of the pace is over.
        """
        mine = list(self._copies(self._paths))
        theirs = list(self._copies([self._other]))
        for error in (*mine, *theirs):
            if isinstance(error, UnreadableError):
                yield error
        others = {one.key: one for one in theirs if isinstance(one, ListedCopy)}
        if not others and theirs:
            return  # The errors say why.
        given = [one for one in others.values() if one.given]
        for one in mine:
            # No client has written the metadata log of a whole log dir.
            if isinstance(one, UnreadableError) or (
                one.key[0] == CLUSTER_METADATA and not one.given
            ):
                continue
            # A partition dir is compared with any partition, as diff does.
            other = given[0] if given and one.given else others.get(one.key)
            if other is None:
                text = f"has no copy of {one.key[0]}-{one.key[1]}"
                yield UnreadableError(self._other, text, missing=True)
            else:
                yield from self._compare(one, replace(other, key=one.key))

    def takes(self, record: Object) -> bool:
        """Return whether the other copy lacks a record, and it must be produced again."""
        home, _, name = record["path"].rpartition("/")
        wanted = self._wanted.get(home)
        return wanted is not None and name.endswith(".log") and wanted.takes(record)

    def _copies(self, paths: Sequence[Path]) -> Iterator[ListedCopy | UnreadableError]:
        for path in paths:
            try:
                if not files.is_remote(path) and path.is_file():
                    raise UnreadableError(path, "expected a log dir or a partition dir")
                yield from find(path, None, self._selection, flavour=self._flavour)
            except UnreadableError as error:
                yield error

    def _compare(self, one: ListedCopy, other: ListedCopy) -> Iterator[UnreadableError]:
        for copy in (one, other):
            if copy.listed and copy.listed.flavour is not KAFKA:
                yield UnreadableError(copy.path, "--missing-in compares copies of Kafka alone")
                return

        def judged(
            _: Sequence[ListedCopy], readings: Sequence[CopyReading], blocks: Blocks
        ) -> CopiesVerdict:
            return judge(readings, blocks)

        verdict = yield from side_by_side([one, other], self._run, judged)
        if verdict is None or len(verdict.copies) < 2 or not one.listed or not other.listed:
            return
        (pair,) = verdict.pairs
        if pair.status is Status.OTHER_TOPIC:
            yield UnreadableError(one.path, f"belongs to another topic than {other.path}")
            return
        from_offset = pair.right.log_end if pair.diverges_at is None else pair.diverges_at
        lacking: list[tuple[float, float]] = list(pair.right_lacks.missing)
        lacking += [
            (wound.damage.first_offset, from_offset if last is None else last)
            for wound in verdict.wounds
            if wound.copy is verdict.copies[1] and wound.damage.loses
            for last in (wound.damage.last_offset,)
        ]
        ranges = [span for span in lacking if span[0] < from_offset]
        ranges.append((from_offset, inf))
        found = MissingRecords(one.path, other.path, *one.key, diverges_at=pair.diverges_at)
        try:
            first = int(min(span[0] for span in ranges))
            committed, aborted = _transactions(one.listed, first)
            produced = _produced(other.listed, from_offset)
        except UnreadableError as error:
            yield error
            return
        self._wanted[str(one.path)] = _Wanted(found, _joined(ranges), produced, committed, aborted)


def _joined(ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return ranges in rising order, with those that overlap as one."""
    found: list[tuple[float, float]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return found


def _produced(other: Partition, start: int) -> dict[_Producer, list[_Span]]:
    """Return the sequence numbers of the batches of a copy from an offset on.

    Batches of transactions that are not committed there do not count.
    """
    committed, _ = _transactions(other, start)
    found: dict[_Producer, list[_Span]] = {}
    for segment in other.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= start:
            continue
        for chunk in segment.batches(payload=False):
            table = chunk.table
            rows = table[(table.base_offset >= start) & (table.base_sequence >= 0)]
            is_open = [
                transactional and not _holds(committed.get(producer_id, ()), offset)
                for transactional, producer_id, offset in zip(
                    rows.is_transactional.tolist(),
                    rows.producer_id.tolist(),
                    rows.base_offset.tolist(),
                    strict=True,
                )
            ]
            columns = rows.producer_id, rows.producer_epoch, rows.base_sequence, rows.last_sequence
            each = zip(*(column.tolist() for column in columns), is_open, strict=True)
            for producer_id, epoch, first, last, not_there in each:
                if not_there:
                    continue
                spans = found.setdefault((producer_id, epoch), [])
                # After the largest sequence number comes 0.
                spans += [(first, last)] if first <= last else [(first, SEQUENCES - 1), (0, last)]
    return {key: sorted(spans) for key, spans in found.items()}


def _transactions(
    listed: Partition, start: int
) -> tuple[dict[int, list[_Span]], dict[int, list[_Span]]]:
    """Return committed and aborted transactions of a copy that end at an offset or later."""
    since, state = newest_state(listed.snapshots, start)
    ended: list[CommittedTransaction] = []
    state.committed = ended
    aborted: dict[int, list[_Span]] = {}
    for segment in listed.segments:
        if segment.next_base_offset is not None and segment.next_base_offset <= since:
            continue
        for chunk in segment.batches(payload=False):
            rows = significant(chunk.table[chunk.table.base_offset >= since])
            for one in state.apply(rows)[0]:
                aborted.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
    committed: dict[int, list[_Span]] = {}
    for each in ended:
        committed.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
    return committed, aborted
