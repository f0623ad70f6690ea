"""The summary of each stretch that one task read, for the questions: one row, or a few if long.

A stretch is a segment or a piece of one. Its row has its edges, the sums of its batches, and lists:
the gaps between its batches, its producers, its parts of transactions, and digests of its batches
by ranges of offsets. Lists of more than `MOST` entries go on in further rows, which have nothing
else. So a log of many batches is a few rows. The questions across segments and brokers are answered
from these; batches are read again only where the digests of copies differ.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from logtool.disk.files import LogFile
from logtool.formats import compression
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.log.arrow_rows import PartitionIdentity
from logtool.log.chunk import LARGEST_BUFFERED_BATCH, Chunk
from logtool.spark.questions.digests import RangeRows, Ranges
from logtool.spark.questions.gap_rows import EDGES, GapRows
from logtool.spark.questions.producer_rows import ProducerRows, ProducerSums, TransactionSums

MOST: Final = 65_536
"""Most entries of a list in one row."""
_BYTES_AT_ONCE: Final = 16 * 1024 * 1024
"""Bytes of wrappers that are decompressed together."""


class Inner(NamedTuple):
    """Gaps between the batches of one stretch, by rows."""

    first_offset: Column
    last_offset: Column
    damaged: Column
    """1 where damage lies right before the batch behind."""


LISTS: Final[Mapping[str, Any]] = {
    "inner": Inner, "producers": ProducerSums, "transactions": TransactionSums, "ranges": Ranges,
}  # fmt: skip
"""The lists of a stretch: columns of int64; the column ``directory`` of sums is always 0 here."""


def _entries(kind: Any) -> Any:
    return pa.list_(pa.struct([(name, pa.int64()) for name in kind._fields]))


STRETCHES: Final = pa.schema(
    [
        *EDGES,
        ("number", pa.int32()),  # of the row; those behind the first only go on with lists
        ("sound_batches", pa.int64()),  # misplaced ones too, as in the table segments
        ("sound_first_offset", pa.int64()),
        ("sound_last_offset", pa.int64()),
        ("sound_last_leader_epoch", pa.int64()),
        ("file", pa.string()),  # of the table batches that has its batches; null: none does
        *((name, _entries(kind)) for name, kind in LISTS.items()),
    ]
)


@dataclass(slots=True)
class RangeSummary:
    """The summary of one stretch."""

    edge: dict[str, Any]
    """Values by the names of `STRETCHES`."""
    lists: dict[str, tuple[Column, ...]] = field(default_factory=dict)
    """The lists that are asked for and not empty."""

    def rows(self) -> Iterator["RangeSummary"]:
        """Yield the rows of the stretch, nearly always one."""
        count = max((len(columns[0]) for columns in self.lists.values()), default=0)
        for number in range(max(1, -(-count // MOST))):
            some = slice(number * MOST, (number + 1) * MOST)
            yield RangeSummary(
                self.edge | {"number": number},
                {
                    name: tuple(column[some] for column in columns)
                    for name, columns in self.lists.items()
                },
            )


class StretchRows:
    """A `ChunkConsumer` that adds up the chunks of one stretch."""

    def __init__(
        self,
        asked: frozenset[str],
        place: PartitionIdentity,
        segment: int,
        next_segment: int | None,
        start_position: int = 0,
        limit: int = compression.DEFAULT_LIMIT,
    ) -> None:
        """Begin a stretch; `asked` are names in `LISTS`, the other arguments are for `GapRows`."""
        self._asked = asked
        self._gaps = GapRows(
            place=place,
            segment=segment,
            next_segment=next_segment,
            start_position=start_position,
            limit=limit,
        )
        self._producers = ProducerRows()
        self._ranges = RangeRows()
        self.stretch = RangeSummary({})
        """The stretch without the fields that only its reader knows."""

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk; batches that are misplaced count as damage."""
        self._gaps.feed(chunk)
        table = chunk.table if chunk.misplaced is None else chunk.table[~chunk.misplaced]
        if not len(table):
            return
        if "producers" in self._asked:
            self._producers.add_data(table)
        if "transactions" in self._asked and not chunk.plain:
            self._producers.add_transactions(table)
        if "ranges" in self._asked:
            self._ranges.add(table)

    def finish(self) -> None:
        """Make `stretch` from the chunks."""
        self._gaps.finish()
        gaps = self._gaps.inner
        producers, transactions = self._producers.finish()
        found = {
            "inner": Inner(gaps[0], gaps[1], gaps[3]) if gaps.shape[1] else None,
            "producers": producers,
            "transactions": transactions,
            "ranges": self._ranges.finish(),
        }
        lists = {name: one for name, one in found.items() if one is not None}
        asked = {name: one for name, one in lists.items() if name in self._asked}
        self.stretch = RangeSummary(self._gaps.edge, dict(asked))


def with_wrappers(chunk: Chunk, open_log: Callable[[], LogFile]) -> Iterator[Chunk]:
    """Yield a chunk, in parts with their bytes where it has wrappers of magic 0 and 1.

    The headers of these wrappers do not have their first offset. `open_log` opens the log; it is
    called only for such a chunk.
    """
    table = chunk.table
    if chunk.plain or len(chunk.data) or not table.is_wrapper.any():
        yield chunk
        return
    with open_log() as log:
        number = (table.end_position - int(table.position[0])) // _BYTES_AT_ONCE
        for one in np.unique(number):
            rows = number == one
            some = table[rows]
            start, size = int(some.position[0]), int(some.size.sum())
            data = memoryview(bytearray(min(size, LARGEST_BUFFERED_BATCH)))
            data = data[: log.read_into(data, start)]
            misplaced = None if chunk.misplaced is None else chunk.misplaced[rows]
            yield replace(chunk, table=some, data=data, data_position=start, misplaced=misplaced)


def as_rows(stretches: Sequence[RangeSummary]) -> Any:
    """Return stretches as a `pyarrow.RecordBatch` of `STRETCHES`."""
    rows = [row for one in stretches for row in one.rows()]
    edges = pa.RecordBatch.from_pylist([row.edge for row in rows], _EDGES)
    columns = [
        _as_lists(rows, name, kind) if (kind := LISTS.get(name)) else edges.column(name)
        for name in STRETCHES.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=STRETCHES)


_EDGES = pa.schema([one for one in STRETCHES if one.name not in LISTS])


def _as_lists(rows: Sequence[RangeSummary], name: str, kind: Any) -> Any:
    empty = tuple(np.empty(0, np.int64) for _ in kind._fields)
    found = [row.lists.get(name, empty) for row in rows]
    ends = np.cumsum([0, *(len(columns[0]) for columns in found)])
    entries = pa.StructArray.from_arrays(
        [pa.array(np.concatenate(parts).astype(np.int64)) for parts in zip(*found, strict=True)],
        kind._fields,
    )
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), entries)


def lists_of(table: Any, name: str) -> tuple[Any, Column]:
    """Return a list of all rows of a table of `STRETCHES` as one, and the row of each entry.

    The list is of the class in `LISTS`.
    """
    column = table.column(name).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    entries = column.flatten()
    kind = LISTS[name]
    found = kind(*(entries.field(one).to_numpy() for one in kind._fields))
    sizes = column.value_lengths().fill_null(0).to_numpy()
    return found, np.repeat(np.arange(len(column)), sizes)
