"""The reader of the data source: it cuts log dirs into pieces, and reads each as Arrow rows.

This module imports no Spark. `RowFilter` says which rows are wanted, `plan` lists segments and cuts
them into pieces, and `read` returns the rows of one piece. Pieces are plain data, which any
executor can read.

Bytes in which a broker would not look for the wanted rows are not read. By offset: a segment is
left out if its name and that of the next segment exclude the offsets. In a segment, reading begins
at an entry of the offset index, if the batch of the entry is proven to stand there, and ends behind
the last wanted offset. By time: reading begins at an entry of the time index that agrees with its
batch. Batches behind the last entry are read, so an index that is missing, short or wrong costs
time and loses no rows. Batches that stand where a broker would not find them, with offsets outside
their segment or falling inside it, are only sure to be found with ``prune`` off; so is a record
that is later than the largest timestamp in the header of its batch.

Pieces begin at positions in the offset index, but only where a sound batch of the segment stands.
A piece is read as the whole file would be from there, and gives the batches that begin in it: where
a piece ends in damage, it and the piece behind it find the same next batch. Only where so many
bytes look like batches that a scan gives up (`walk.SEARCH_BUDGET`) do pieces find more batches than
a scan of the whole file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, partial
from itertools import compress, pairwise
from math import inf
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from logtool.checks.batches import BatchRules
from logtool.disk import files
from logtool.disk.files import LogFile
from logtool.errors import LimitError, UnreadableError, UsageError
from logtool.formats import compression
from logtool.formats.names import FileKind
from logtool.formats.record_batch import MAGIC, BatchTable
from logtool.lazy_dataclass import dataclass
from logtool.log.arrow_rows import PartitionIdentity, batch_rows, record_rows
from logtool.log.dir import Partition, Segment
from logtool.log.index_entries import SparseEntries
from logtool.log.selection import OffsetTimeRange
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.identity import place_of_dir
from logtool.spark.segment_totals import SegmentTotals
from logtool.spark.source import finding_rows, kafka_table, kafka_times, listing, question_rows
from logtool.spark.source.bundles import OPENING, bundle_size, bundled
from logtool.spark.source.loss import report_loss
from logtool.spark.source.read_tasks import CheckTask, QuestionTask, ReadTask, Task
from logtool.spark.source.seek import batch_at, start_of
from logtool.spark.source.wanted import EVERYTHING, RowFilter

TABLES: Final = (
    "batches", "records", "segments", *question_rows.TABLES, finding_rows.NAME, kafka_table.NAME,
)  # fmt: skip

_ROWS_AT_ONCE, _BYTES_AT_ONCE = 32_768, 16 * 1024 * 1024
"""Rows and bytes, of which either is enough for a record batch to be yielded."""

_LISTED = frozenset({
    *PartitionIdentity._fields, "segment", "next_segment", "log_bytes", "offset_index_bytes",
    "time_index_bytes", "transaction_index_bytes", "modified_ms", "modified",
})  # fmt: skip
"""Columns of ``segments`` for which no log is read."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options by which every piece is read."""

    table: str
    columns: tuple[str, ...]
    wanted: RowFilter = EVERYTHING
    prune: bool = True
    payload: Payload = Payload.NONE
    limit: int = compression.DEFAULT_LIMIT
    """Bytes that one batch may decompress to."""
    show_secrets: bool = False
    """True to leave the secrets in records of a metadata log; False for stars in their place."""
    fail_on_data_loss: bool = True
    """True if a log that was listed and cannot be read is an error; False for a warning."""

    @property
    def reads_logs(self) -> bool:
        """Return whether logs must be read, and not only listed."""
        return self.table != "segments" or not _LISTED.issuperset(self.columns)


def plan(
    paths: Sequence[Path],
    asked: ReadOptions,
    bundle_bytes: int | None = None,
    min_bundles: int | None = None,
) -> list[list[ReadTask]]:
    """Return the pieces to read, in bundles of about equal bytes, in the order of the paths.

    UnreadableError for a path that does not exist or holds nothing of Kafka, UsageError if no
    partition matches, LostDataError for an unreadable partition dir below a path.
    """
    wanted, given = asked.wanted, listing.expanded(paths)
    places = [
        place
        for path in given
        for place in listing.partitions(path, wanted, fails=asked.fail_on_data_loss)
    ]
    if not places and not wanted.takes_all:
        raise UsageError(listing.no_match(paths))
    if asked.table == kafka_table.NAME:
        places = _for_consumers(places)
        there = {(one.topic or "", -1 if one.number is None else one.number) for one, _ in places}
        if missing := wanted.missing(there):
            raise UsageError(f"the table kafka has no topic or partition {', '.join(missing)}")
    starts = cache(partial(kafka_table.log_starts, fails=asked.fail_on_data_loss))
    wholes = [
        piece for found, some in places for piece in _of_partition(found, some, asked, starts)
    ]
    if len(given) > 1:
        wholes = _without_doubles(wholes)
    reads = asked.reads_logs

    def cost(piece: ReadTask) -> int:
        return (piece.size if reads else 0) + OPENING

    size = bundle_size(sum(map(cost, wholes)), bundle_bytes, min_bundles)
    if asked.table == "segments":
        return bundled(wholes, size, cost)
    return bundled((piece for whole in wholes for piece in cut(whole, size, asked)), size, cost)


def cut(whole: ReadTask, size: int, asked: ReadOptions) -> list[ReadTask]:
    """Return the pieces of a segment that may have wanted rows, of about `size` bytes, in order."""
    count = round(whole.log.size / size)
    if count < 2 or whole.index_bytes[0] is None:
        return [whole]
    low, high, since = _limits(whole, asked)
    edges: list[tuple[int, BatchTable]] = []
    begin = 0
    with suppress(UnreadableError), whole.open() as log:
        for position in _edges(whole, count):
            batch = batch_at(log, whole.segment, position)
            if batch is not None:
                edges.append((position, batch))
        begin = start_of(whole, log, low, since)
    pieces = []
    for number in range(len(edges) + 1):
        start, first = edges[number - 1] if number else (0, None)
        stop, behind = edges[number] if number < len(edges) else (None, None)
        if stop is not None and stop <= begin:
            continue
        if behind is not None and behind.base_offset[0] <= low:
            continue
        # The first offset of a wrapper of magic 0 or 1 is only known once it is decompressed.
        if first is not None and first.magic[0] >= MAGIC and first.base_offset[0] > high:
            break
        pieces.append(replace(whole, start=max(start, begin), stop=stop))
    return pieces


def read_all(pieces: Iterable[Task], asked: ReadOptions) -> Iterator[Any]:
    """Yield the wanted rows of pieces, as `read` does; LostDataError for a log that is unreadable.

    If the options allow a loss, a warning names the log, and the rows before the position of the
    error are returned.
    """
    for piece in pieces:
        try:
            yield from read(piece, asked)
        except UnreadableError as error:
            report_loss(str(error), fails=asked.fail_on_data_loss)


def read(piece: Task, asked: ReadOptions) -> Iterator[Any]:
    """Yield the wanted rows of one piece as `pyarrow.RecordBatch`es of the wanted columns.

    UnreadableError, behind the rows before its position, for a log that cannot be read or is
    shorter than it was when it was listed; it may be longer. UsageError for a batch that
    decompresses to more than the limit.
    """
    if isinstance(piece, CheckTask):
        yield from finding_rows.rows_of(piece, asked.columns, asked.limit)
        return
    if isinstance(piece, QuestionTask):
        fails = asked.fail_on_data_loss
        yield from question_rows.rows_of(piece, asked.table, asked.columns, fails=fails)
        return
    if asked.table == "segments":
        rows: Iterator[Any] = _segment_rows(piece, asked)
    else:
        rows = _log_rows(piece, asked)
    try:
        yield from (some for some in rows if some.num_rows)
    except LimitError as error:
        raise UsageError(
            f"{piece.path()}: {error}; raise the option maxDecompressedBytes, or exclude "
            "the batch with endingOffsets and startingOffsets"
        ) from None


def first_offset_at(found: Partition, stamp: int, *, fails: bool = True) -> int | None:
    """Return the first offset of a consumer's record that is not older than a time in ms.

    None without one. UnreadableError for a log that cannot be read; LostDataError, or with `fails`
    False a warning, for a log start that cannot be read.
    """
    asked = ReadOptions(kafka_table.NAME, ("offset",), RowFilter(starting_timestamp=stamp))
    starts = partial(kafka_table.log_starts, fails=fails)
    for piece in _of_partition(found, found.segments, asked, starts):
        for rows in read(piece, asked):
            return int(rows.column(0)[0].as_py())
    return None


def gathered(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield `rows` in fewer record batches."""
    waiting: list[Any] = []
    count = size = 0
    for some in rows:
        waiting.append(some)
        count += some.num_rows
        size += some.nbytes
        if count >= _ROWS_AT_ONCE or size >= _BYTES_AT_ONCE:
            yield from _joined(waiting)
            waiting, count, size = [], 0, 0
    yield from _joined(waiting)


def _joined(waiting: list[Any]) -> Iterator[Any]:
    if len(waiting) < 2:
        yield from waiting
    else:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _without_doubles(wholes: Sequence[ReadTask]) -> list[ReadTask]:
    """Return each segment once, as where a log dir and a partition dir in it are given."""
    real = cache(files.real)
    found: dict[tuple[str, int], ReadTask] = {}
    for piece in wholes:
        found.setdefault((real(piece.folder), piece.segment), piece)
    return list(found.values())


def _for_consumers(
    places: Sequence[tuple[Partition, Sequence[Segment]]],
) -> list[tuple[Partition, Sequence[Segment]]]:
    """Return the partitions in the table ``kafka``; UsageError for Redpanda's, or two copies."""
    for found, _ in places:
        if found.flavour.has_raft_offsets:
            raise UsageError(
                f"{found.path} is a Redpanda log: the table kafka needs Kafka offsets, "
                "but Redpanda logs have Raft offsets; use the table records"
            )
    seen = [place_of_dir(found.path) for found, _ in places]
    taken = [kafka_table.takes(place) for place in seen]
    kafka_table.check_copies(list(compress(seen, taken)))
    return list(compress(places, taken))


def _of_partition(
    found: Partition,
    segments: Sequence[Segment],
    asked: ReadOptions,
    starts: Callable[[Path], Mapping[tuple[str, int], int]],
) -> Iterator[ReadTask]:
    place = place_of_dir(found.path)
    first_at = partial(first_offset_at, fails=asked.fail_on_data_loss)
    wanted = kafka_times.by_offset(asked.wanted, found, first_at)
    span = wanted.span(place.topic, place.partition)
    if asked.table == kafka_table.NAME and place.topic is not None and place.partition is not None:
        begin = starts(found.path.parent).get((place.topic, place.partition), 0)
        span = replace(span, first=max(span.first, begin))
    by_name = asked.prune or asked.table == "segments"
    for segment in segments:
        if not by_name or _may_hold(segment, span):
            yield ReadTask.of(found, segment, place, span)


def _may_hold(segment: Segment, span: OffsetTimeRange) -> bool:
    """Return whether a segment may have offsets of the span, by its name and the next one's."""
    behind = inf if segment.next_base_offset is None else segment.next_base_offset
    return segment.base_offset <= span.last and span.first < behind and span.first <= span.last


def _edges(whole: ReadTask, count: int) -> list[int]:
    """Return the first position in the offset index behind each of the even cuts, if it has one."""
    with whole.open(FileKind.OFFSET_INDEX) as file:
        entries = SparseEntries.of_offsets(file)
        even = [whole.log.size * number // count for number in range(1, count + 1)]
        found = [(entries.at_or_behind(first), stop) for first, stop in pairwise(even)]
    return [int(position) for position, stop in found if position < stop]


def _log_rows(piece: ReadTask, asked: ReadOptions) -> Iterator[Any]:
    with piece.open() as log:
        yield from _rows_in(log, piece, asked)
        piece.hold_to_listing(log)


def _rows_in(log: LogFile, piece: ReadTask, asked: ReadOptions) -> Iterator[Any]:
    records = asked.table != "batches"
    low, high, since = _limits(piece, asked)
    # `cut` has chosen the start of a piece that does not begin at 0.
    start = piece.start or start_of(piece, log, low, since)
    for chunk in piece.batches(log, start=start, payload=records):
        end, table = chunk.end_position, chunk.table
        if piece.stop is not None and end > piece.stop:
            table = table[table.position < piece.stop]
        if len(table) and records:
            wanted = piece.span.of_their_batches(table)
            of_kafka = asked.table == kafka_table.NAME
            some = chunk.with_table(kafka_table.visible(wanted) if of_kafka else wanted)
            yield from record_rows(
                piece.place,
                piece.segment,
                some,
                asked.payload,
                asked.columns,
                asked.limit,
                log,
                piece.span,
                strict=True,
                recipe=kafka_table.RECIPE if of_kafka else None,
                show_secrets=asked.show_secrets,
            )
        elif len(table):
            some_batches = piece.span.of_batches(table)
            yield batch_rows(piece.place, piece.segment, some_batches, asked.columns)
        if piece.stop is not None and end >= piece.stop:
            return
        if len(table) and int(table.base_offset[-1]) > high:
            return


def _limits(piece: ReadTask, asked: ReadOptions) -> tuple[float, float, float]:
    """Return the least and largest offset and the least time by which bytes may be left out."""
    span = piece.span
    return (span.first, span.last, span.since) if asked.prune else (-inf, inf, -inf)


def _segment_rows(piece: ReadTask, asked: ReadOptions) -> Iterator[Any]:
    """Yield the row of the segment, and then raise UnreadableError if its log is unreadable."""
    offset_bytes, time_bytes, transaction_bytes = piece.index_bytes
    row: dict[str, Any] = {
        **piece.place._asdict(),
        "segment": piece.segment,
        "next_segment": piece.next_segment,
        "log_bytes": piece.log.size,
        "offset_index_bytes": offset_bytes,
        "time_index_bytes": time_bytes,
        "transaction_index_bytes": transaction_bytes,
        "modified_ms": piece.log.mtime_ns // 1_000_000,
    }
    error: UnreadableError | None = None
    if asked.reads_logs:
        totals, error = _totals(piece)
        row |= asdict(totals)
    row = arrow.with_timestamps(row)
    schema = arrow.schema("segments")
    chosen = pa.schema([schema.field(name) for name in asked.columns])
    yield pa.RecordBatch.from_pylist([{name: row[name] for name in asked.columns}], chosen)
    if error:
        raise error


def _totals(piece: ReadTask) -> tuple[SegmentTotals, UnreadableError | None]:
    """Return the sums of a segment, and the error if not all of its log could be read."""
    totals, rules = SegmentTotals(), BatchRules(piece.segment)
    failed: UnreadableError | None = None
    try:
        with piece.open() as log:
            for chunk in piece.batches(log, payload=False):
                totals.count(chunk, active=piece.next_segment is None)
                for _ in rules.judge(chunk):
                    pass  # verify reports what is wrong with headers
            piece.hold_to_listing(log)
        totals.read = True
    except UnreadableError as error:
        failed = error
    totals.first_offset, totals.last_offset = rules.first_offset, rules.last_offset
    return totals, failed
