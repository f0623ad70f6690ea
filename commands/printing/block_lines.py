"""Blocks of a dump in the formats for programs: what its objects would give, at once.

What is the same for many objects comes from the object path: one object is written with marks in
the place of the values that vary, and cut there. The compiled loop of `_rendering` puts the values
between the pieces, with no Python object for a record or one of its values.

That loop runs without the interpreter's lock, while the next data is read and decoded.
"""

import contextlib
import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from logtool.commands.printing import text
from logtool.commands.printing.writers import Columns, Object
from logtool.dump.blocks import Block
from logtool.dump.log import batch_objects
from logtool.dump.records import record_object
from logtool.dump.values import Values, show_headers
from logtool.formats import _rendering, record
from logtool.formats.record_batch import BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.record_table import RecordTable
from logtool.running.ahead import OneAhead

MARK = "\0"
"""Stands in the place of what differs, or around its name. No path has it, so that its JSON stands
nowhere else, nor does it stand in a cell."""
Cells = dict[str, tuple[int, int]]
"""By the names of an object, in its order: what a value is, and the column that has its number."""
_BATCH: Cells = {
    "position": (_rendering.NUMBER, ~0),
    "size": (_rendering.NUMBER, ~1),
    "base_offset": (_rendering.NUMBER, ~2),
    "last_offset": (_rendering.NUMBER, ~3),
    "record_count": (_rendering.NUMBER, ~4),
    "base_timestamp_ms": (_rendering.OPTIONAL, ~5),
    "base_timestamp": (_rendering.TIME, ~5),
    "max_timestamp_ms": (_rendering.OPTIONAL, ~6),
    "max_timestamp": (_rendering.TIME, ~6),
    "delete_horizon_ms": (_rendering.OPTIONAL, ~7),
    "delete_horizon": (_rendering.TIME, ~7),
    "base_sequence": (_rendering.OPTIONAL, ~8),
    "last_sequence": (_rendering.OPTIONAL, ~9),
    "crc": (_rendering.NUMBER, ~10),
}
"""Values that differ from batch to batch: the columns of `_batch_numbers`."""
_RECORD: Cells = {
    "batch_position": (_rendering.NUMBER, ~0),
    "offset": (_rendering.NUMBER, 11),
    "timestamp_ms": (_rendering.OPTIONAL, 12),
    "timestamp": (_rendering.TIME, 12),
    "sequence": (_rendering.OPTIONAL, 13),
    "key": (_rendering.VALUE, 5),
    "value": (_rendering.VALUE, 7),
    "headers": (_rendering.HEADERS, 9),
}
"""Columns of `RecordTable.columns`, whose values differ per record, and one of the batch."""
_KAFKA_BATCH: Cells = {name: (_rendering.NUMBER, column) for name, (_, column) in _BATCH.items()}
"""Columns of Kafka's lines of batches, which show -1 for what there is not."""
_KAFKA_RECORD: Cells = {
    "offset": (_rendering.NUMBER, 11),
    "timestamp_ms": (_rendering.NUMBER, 12),
    "key_size": (_rendering.NUMBER, 6),
    "value_size": (_rendering.NUMBER, 8),
    "sequence": (_rendering.NUMBER, 13),
    "headers": (_rendering.HEADERS, 9),
    "key": (_rendering.VALUE, 5),
    "value": (_rendering.VALUE, 7),
    "contents": (_rendering.TEXT, 14),
}
"""Values that differ from record to record; `contents` are those of `Contents`."""
_DELIMITED_RECORD: Cells = _RECORD | {"headers": (_rendering.TEXT, 14)}
"""Cells of records whose headers are a cell of text, of `_header_cells`."""
_MOST_KINDS = 4096
_AT_ONCE = 4 * 1024 * 1024
"""Bytes of lines that are printed at once; more only where a single line needs it."""
_MOST = 4 * _AT_ONCE
"""Bytes of lines that are held, twice; more only where a single line needs it. What no line comes
to takes no memory."""
_NONE = -1
"""In the place of a kind: there is no such line."""
_ENCODINGS = {
    Values.UTF8: _rendering.UTF8,
    Values.HEX: _rendering.HEX,
    Values.BASE64: _rendering.BASE64,
    Values.LEN: _rendering.SIZE,
}
Item = TypeVar("Item")
BatchKind = tuple[int, ...]
Pieces = list[bytes]
Patterns = tuple[Callable[[Object], str], Callable[[Object], str]]
"""Functions that return Kafka's line of a batch, and of a record, with names between marks."""
Contents = Callable[[Block], tuple[bytes, Column]]
"""A function that returns texts of the commits in a block, and where that of each record begins and
ends."""
Line = tuple[list[tuple[int, int]], Pieces]
"""The cells of a line, and what stands before each and behind the last."""
Templates = tuple[bytes, Column]
"""Texts, and the cells of each kind of line behind them: see `_rendering.render`."""


@dataclass(frozen=True, slots=True)
class _Sort:
    """The lines of batches, or those of records."""

    cells: Cells
    example: Callable[[Object], Object]
    """Returns an object of the sort for a batch."""
    pattern: Callable[[Object], str] | None = None
    """One of `Patterns`."""

    def cut(self, line: str, mark: str) -> Line:
        """Return a line that has marks in the place of all cells, in their order."""
        pieces = line.encode("utf-8", "backslashreplace").split(mark.encode())
        assert len(pieces) == len(self.cells) + 1
        return list(self.cells.values()), pieces

    def cut_pattern(self, line: str) -> Line:
        """Return a line that has the names of some cells between marks."""
        parts = line.split(MARK)
        return [self.cells[name] for name in parts[1::2]], [one.encode() for one in parts[::2]]


class _Lines:
    """The lines of one block, as far as they are not yet written."""

    def __init__(
        self, block: Block, templates: Templates, kinds: Column, encoding: int, delimiter: int
    ) -> None:
        """Begin with the first; `kinds` and what else there is are those of `_rendering.render`."""
        self.texts, self.cells = templates
        self.kinds, self.encoding, self.delimiter = kinds, encoding, delimiter
        self.heads = _batch_numbers(block.batches)
        self.data, self.rows = memoryview(b""), np.empty((0, 0), np.int64)
        self.ends = np.zeros(len(kinds), np.int64)
        if block.records:
            self.data, self.rows = block.records.data, block.records.columns()
            self.ends = np.cumsum(block.records.counts)
        self._memo = np.empty((self.cells.shape[1], 3), np.int64)
        self._batch = self._line = 0

    def add(self, texts: bytes, places: Column) -> None:
        """Give each record a text, from and up to a place in `texts`: two more columns."""
        self.rows = np.column_stack([self.rows, places + len(self.texts)])
        self.texts += texts

    @property
    def done(self) -> bool:
        """Return whether all are written."""
        return self._batch == len(self.kinds)

    def write(self, out: memoryview) -> int:
        """Write those for which there is room; returns how many bytes they take."""
        self._batch, self._line, size = _rendering.render(
            self.data, self.heads, self.rows, self.ends, self.kinds, self._batch, self._line,
            self.texts, self.cells, self.encoding, self.delimiter, out, self._memo,
        )  # fmt: skip
        return size


class _Room:
    """Bytes for lines, which take no memory where none was ever written."""

    def __init__(self) -> None:
        self._size = 0
        self._make(_MOST)

    def _make(self, size: int) -> None:
        self._bytes = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):  # a kernel without large pages
            self._bytes.madvise(mmap.MADV_HUGEPAGE)

    def fill(self, lines: _Lines) -> None:
        """Write as many lines as there is room for; for one there always is."""
        while not (size := lines.write(memoryview(self._bytes))) and not lines.done:
            self._make(len(self._bytes) * 3 // 2)
        self._size = size

    def pieces(self) -> Iterator[memoryview]:
        """Yield the written lines in pieces of whole lines, few enough to be printed at once.

        In a JSON document, a comma and a line end precede each object; none follows the last.
        """
        first, size, written = 0, self._size, self._bytes
        while first < size:
            end = size
            if size - first > _AT_ONCE:
                end = written.rfind(b"\n", first, first + _AT_ONCE) + 1
                end = end or written.find(b"\n", first + _AT_ONCE, size) + 1 or size
            yield memoryview(written)[first:end]
            first = end


class BlockLines:
    """JSON or Kafka's lines, records behind their batch; or CSV or TSV, where they stand alone.

    A thread of its own writes the lines of a block while the caller prints those of the block
    before and reads the next one, until `close`.
    """

    def __init__(
        self,
        values: Values,
        columns: Columns = (),
        delimiter: str = "",
        patterns: Patterns | None = None,
        contents: Contents | None = None,
        *,
        document: bool = False,
        escaped: bool = False,
    ) -> None:
        """Take how values are shown; with `patterns` it is as Kafka's tool shows them.

        Cells of CSV and TSV are `escaped` or quoted, as by `text.delimited`. In a JSON `document`
        each object follows a comma, as none of them is the first.
        """
        self._document = document
        self._values = values
        self._encoding = _rendering.KAFKA if patterns else _ENCODINGS[values]
        if escaped and self._encoding == _rendering.UTF8:
            self._encoding = _rendering.ESCAPED
        self._cell = partial(text.delimited, delimiter=delimiter, escaped=escaped)
        self._patterns = patterns
        self._contents = contents
        self._columns = columns
        self._delimiter = delimiter
        self._known: dict[BatchKind, list[Line]] = {}
        self._origin: object = None
        self._last: tuple[BatchKind, ...] = ()
        self._joined: Templates
        self._rooms = [_Room(), _Room()]
        """Buffers that are free. With a third one a scan would need a third buffer."""
        self._ahead: OneAhead[None] = OneAhead()
        self._begun: deque[tuple[_Lines, _Room]] = deque()
        """The writes of the thread, each with its target, in order."""

    def among(self, items: Iterable[Item | Block]) -> Iterator[Item | memoryview]:
        """Yield the lines of each block in its place, in pieces, and all other items unchanged.

        A piece is valid until the next one is requested.
        """
        for item in items:
            if isinstance(item, Block):
                yield from self._finish(self._lines(item))
            else:
                yield from self._finish(None)
                yield item
        yield from self._finish(None)

    def close(self) -> None:
        """End the thread; what has begun comes to nothing."""
        self._ahead.close()

    def _finish(self, following: _Lines | None) -> Iterator[memoryview]:
        """Begin with what follows; yield the lines of as much before it as gives it room."""
        if following:
            room = self._rooms.pop()
            self._begun.append((following, room))
            self._ahead.begin(partial(room.fill, following))
        while self._begun and not (following and self._rooms):
            self._ahead.end()
            lines, room = self._begun.popleft()
            yield from room.pieces()
            while not lines.done:  # and the thread is with the next ones
                room.fill(lines)
                yield from room.pieces()
            self._rooms.append(room)

    def _lines(self, block: Block) -> _Lines:
        keys, kinds = _kinds(block.batches)
        of_lines = np.column_stack([kinds, kinds + len(keys)])
        if block.records and self._delimiter:
            of_lines = np.column_stack([np.full(len(kinds), _NONE), kinds])
        templates = self._templates(block, self._sorts(block), keys)
        delimiter = ord(self._delimiter or "\0")
        lines = _Lines(block, templates, of_lines, self._encoding, delimiter)
        if block.commits is not None and self._contents:
            lines.add(*self._contents(block))
        if block.records and self._delimiter:
            lines.add(*_header_cells(block.records, self._values, self._cell))
        return lines

    def _sorts(self, block: Block) -> list[_Sort]:
        """Return the sorts of lines that a block gives."""
        if block.records and self._delimiter:
            return [_Sort(self._shown(_DELIMITED_RECORD), _a_record)]
        if self._patterns:
            of_batch, of_record = self._patterns
            found = [_Sort(_KAFKA_BATCH, _itself, of_batch)]
            return [*found, _Sort(_KAFKA_RECORD, _a_record, of_record)] if block.records else found
        found = [_Sort(self._shown(_BATCH), _itself)]
        return [*found, _Sort(_RECORD, _a_record)] if block.records else found

    def _shown(self, cells: Cells) -> Cells:
        """Return the cells in the order in which they are printed."""
        if not self._delimiter:
            return cells
        return {c.title: cells[c.title] for c in self._columns if c.title in cells}

    def _templates(
        self, block: Block, sorts: Sequence[_Sort], keys: dict[BatchKind, int]
    ) -> Templates:
        """Return the fixed texts and the cells of the lines of each sort and kind, sort by sort."""
        if block.origin != self._origin or len(self._known) > _MOST_KINDS:
            self._origin, self._last = block.origin, ()
            self._known.clear()
        if (now := tuple(keys)) != self._last:
            for key in keys.keys() - self._known.keys():
                (batch,) = batch_objects(block.origin, block.batches[keys[key] : keys[key] + 1])
                self._known[key] = [self._cut(sort, sort.example(batch)) for sort in sorts]
            self._joined = _join(
                [self._known[key][number] for number in range(len(sorts)) for key in keys]
            )
            self._last = now
        return self._joined

    def _cut(self, sort: _Sort, obj: Object) -> Line:
        if sort.pattern:
            return sort.cut_pattern(sort.pattern(obj) + "\n")
        if not self._delimiter:
            line = text.to_json({**obj, **dict.fromkeys(sort.cells, MARK)})
            return sort.cut(f",\n{line}" if self._document else f"{line}\n", '"\\u0000"')
        # The loop writes the encoding and the size of a key or value behind it.
        behind = {f"{name}_{more}" for name in sort.cells for more in ("encoding", "size")}
        cells = [
            MARK if c.title in sort.cells else self._cell(text.cell(c.value(obj)))
            for c in self._columns
            if c.title not in behind
        ]
        return sort.cut(self._delimiter.join(cells) + "\n", MARK)


def _kinds(table: BatchTable) -> tuple[dict[BatchKind, int], Column]:
    """Return the kinds of batches, which differ in what varies alone: a row of each, and whose."""
    names = (
        "attributes",
        "leader_epoch",
        "producer_id",
        "producer_epoch",
        "control_type",
        "coordinator_epoch",
    )
    columns = [getattr(table, name) for name in names]
    if all((column == column[0]).all() for column in columns):
        return {tuple(int(column[0]) for column in columns): 0}, np.zeros(len(table), np.int64)
    rows: dict[BatchKind, int] = {}
    numbers: dict[BatchKind, int] = {}
    kinds = []
    for row, key in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        rows.setdefault(key, row)
        kinds.append(numbers.setdefault(key, len(numbers)))
    return rows, np.array(kinds)


def _join(lines: Sequence[Line]) -> Templates:
    cells = np.zeros((len(lines), max(len(pieces) for _, pieces in lines), 4), np.int64)
    cells[:, :, 0] = _rendering.END
    size = 0
    for number, (of_line, pieces) in enumerate(lines):
        ends = np.cumsum([size, *map(len, pieces)])
        cells[number, : len(of_line), :2] = of_line
        cells[number, : len(pieces), 2] = ends[:-1]
        cells[number, : len(pieces), 3] = ends[1:]
        size = int(ends[-1])
    return b"".join(piece for _, pieces in lines for piece in pieces), cells


def _itself(batch: Object) -> Object:
    return batch


def _a_record(batch: Object) -> Object:
    return record_object(dict(batch), 0, 0, None, None, [])


def _batch_numbers(table: BatchTable) -> Column:
    """Return a row of numbers for each batch."""
    horizon = table.has_delete_horizon
    return np.column_stack([
        table.position,
        table.size,
        table.base_offset,
        table.last_offset,
        table.record_count,
        np.where(horizon, -1, table.base_timestamp),
        table.max_timestamp,
        np.where(horizon, table.base_timestamp, -1),
        table.base_sequence,
        table.last_sequence,
        table.crc,
    ])  # fmt: skip


def _header_cells(
    records: RecordTable, values: Values, cell: Callable[[str], str]
) -> tuple[bytes, Column]:
    """Return the headers as cells of CSV or TSV, and where that of each record begins and ends."""
    spans = records.spans
    some = np.flatnonzero(spans.header_count)
    cells = [cell(text.cell([])).encode()]
    for row in some.tolist():
        at, count = int(spans.header_position[row]), int(spans.header_count[row])
        shown = show_headers(record.parse_headers(records.data, at, count), values)
        cells.append(cell(text.cell(shown)).encode())
    ends = np.cumsum([len(content) for content in cells])
    which = np.zeros(len(spans), np.int64)
    which[some] = np.arange(1, len(cells))
    starts = ends - [len(content) for content in cells]
    return b"".join(cells), np.column_stack([starts[which], ends[which]])
