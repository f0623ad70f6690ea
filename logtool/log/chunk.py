"""Chunks, the unit in which a log is read: sound batches or one range of damage.

Next to them stand the protocols of what a walk reads from, and of what takes its chunks.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from logtool.errors import FormatError
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.damage import Damage

MOST_ROWS = 24_616
"""Batches in a chunk: 3.3 MB of columns. What Python does for a chunk, and handing the
interpreter's lock from thread to thread, costs more than columns that leave the processor's own
cache: with batches of 200 bytes two threads take an eighth less time than with chunks of 8,200.
It is no power of two, so that the columns do not all want the same place in the cache."""
LARGEST_BUFFERED_BATCH = 64 * 1024 * 1024
"""Bytes; a larger batch is checked without holding it in memory."""


class Source(Protocol):
    """The bytes of a log; `logtool.disk.files.LogFile` is one.

    One that has `map_range` can be read without being copied; see
    `logtool.disk.mapped.MappedRange`. One with a `stretch` gives no longer chunks than that.
    """

    size: int

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""


class PlainTotals(NamedTuple):
    """The sums of plain batches; see `_kernels.plain_facts`."""

    records: int
    largest_batch: int
    """Bytes."""
    max_timestamp: int
    """Milliseconds."""
    timestamps_rise: int
    """1 where no batch has a smaller largest timestamp than one before it, else 0."""
    producers: int
    """0 for none, 1 for one with one epoch, 2 for more."""
    min_timestamp: int
    """The least of the largest timestamps of the batches, in milliseconds."""
    batches: int
    """Number of batches."""


class PlainWalk(Protocol):
    """A walk over plain batches that keeps a row for those at edges alone.

    See `_kernels.walk_plain`; `logtool.checks.edge_walk.EdgeWalk` is one.
    """

    def walk(
        self, data: memoryview, position: int, rows: Column, first: int
    ) -> tuple[int, int, int]:
        """Add to `rows` from `first` on; returns how many, where in `data` and why it ended.

        `position` is that of ``data[0]`` in the file.
        """

    def forget(self) -> None:
        """Take back the last walk: the bytes were not those of the file."""

    def facts(self) -> PlainTotals:
        """Return the sums of the batches since the last walk that began without a row."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of sound batches, or one range of damage and no batches.

    `data` holds the bytes of the batches from file position `data_position` on. They stay as they
    are while somebody holds them; a caller that holds those of one chunk alone costs no memory. A
    batch too large to hold has its header alone there, and without payload there is nothing.
    """

    table: BatchTable
    data: memoryview
    data_position: int
    damage: Damage | None
    control_errors: list[tuple[int, FormatError]]
    """(row, error) for each control batch with a producer id that a broker cannot read."""
    control_times: dict[int, int] = field(default_factory=dict)
    """Timestamps of control records, in ms, by the positions of their batches, where the largest
    timestamp of the header is another. A broker remembers them with a producer."""
    plain: PlainTotals | None = None
    """Set where all batches are plain, and no rule can find anything but at the edges."""
    inspected: list[Any] = field(default_factory=list)
    """The results of the `Inspect` of the scan."""
    suspects: Column | None = None
    """For an `Inspect`: 0 for each batch whose records are known to keep every rule, else 1."""
    at_edges: bool = False
    """True if `table` has only the first and the last batch of each stretch with one leader epoch
    and one producer; the offsets of all batches then follow each other without a gap."""
    misplaced: Column | None = None
    """The batches whose offsets are not the segment's, or do not rise, as a mask; None for none.
    See `logtool.log.order.BatchOrder`. It is not known yet when an `Inspect` is given the chunk."""

    @property
    def batches(self) -> int:
        """Return how many batches there are, which `table` has all of, unless `at_edges`."""
        return self.plain.batches if self.plain else len(self.table)

    @property
    def records(self) -> int:
        """Return how many records the batches hold together."""
        return self.plain.records if self.plain else self.table.records

    @property
    def end_position(self) -> int:
        """Return the byte behind the chunk."""
        if self.damage:
            return self.damage.position + self.damage.length
        return int(self.table.position[-1] + self.table.size[-1])

    def batch(self, row: int) -> memoryview:
        """Return the bytes of one batch."""
        start = int(self.table.position[row]) - self.data_position
        return self.data[start : start + int(self.table.size[row])]

    def stretch(self, rows: slice) -> memoryview:
        """Return the bytes of neighbouring batches; too few if one is too large to hold."""
        some = self.table.position[rows]
        start = int(some[0]) - self.data_position
        return self.data[start : start + int(self.table.size[rows].sum())]

    def with_table(self, table: BatchTable) -> "Chunk":
        """Return a chunk of the batches in `table`, which are some of these, with the same bytes.

        The facts about all batches together are left out, as they do not hold for some of them.
        """
        return Chunk(table, self.data, self.data_position, None, [])


class ChunkConsumer(Protocol):
    """Takes the chunks of one pass over a log. Its results are attributes, complete after `finish`.

    A pass that cannot read a log to its end may leave out `finish`.
    """

    def feed(self, chunk: Chunk) -> None:
        """Take the next chunk, which comes with its bytes if the pass reads them."""

    def finish(self) -> None:
        """Complete the results: no chunk follows."""


Inspect = Callable[[Chunk], list[Any]]
"""Looks at sound batches with their bytes, which may turn to zeros while it does."""
