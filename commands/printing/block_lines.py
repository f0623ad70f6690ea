"""Blocks of a dump as NDJSON, CSV and TSV: the bytes that its objects would give, made at once.

What is the same for many objects comes from the object path: one object is written with marks in
the place of the values that vary, and cut there. The compiled loop of `rendering` puts the values
between the pieces, with no Python object for a record or one of its values.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from logtool.commands.printing import text
from logtool.commands.printing.block_columns import (
    Fields,
    batch_fields,
    cell,
    header_cells,
    record_fields,
)
from logtool.commands.printing.writers import Columns, Object
from logtool.dump.blocks import Block
from logtool.dump.log import batch_objects
from logtool.dump.records import record_object
from logtool.dump.values import Values
from logtool.formats import rendering
from logtool.formats.record_batch import BatchTable, Column

_MARK = "\0"
"""No path has it, so that its JSON stands nowhere else, nor does it stand in a cell."""
_MOST_KINDS = 4096
_BUFFER = 1024 * 1024
"""Bytes of lines that are printed at once; more only where a single line needs it."""
_ENCODINGS = {
    Values.UTF8: rendering.UTF8,
    Values.HEX: rendering.HEX,
    Values.BASE64: rendering.BASE64,
    Values.LEN: rendering.SIZE,
}
BatchKind = tuple[int, ...]
Pieces = list[bytes]
Templates = tuple[bytes, Column, Column]
"""Texts, where they are cut, and the cells between them: see `rendering.render`."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The lines of all batches of a block, or of all its records."""

    fields: Fields
    kinds: Column
    """Of each line, the kind of its batch."""
    example: Callable[[Object], Object]
    """Returns an object of the sort for a batch."""

    def fill(self, values: npt.NDArray[np.int64], first_kind: int) -> None:
        """Write the rows of numbers that `rendering.render` takes."""
        values[:, 0] = self.kinds + first_kind
        columns = (column for _, numbers in self.fields.values() for column in numbers)
        for number, column in enumerate(columns, 1):
            values[:, number] = column

    def ops(self) -> list[int]:
        """Return what each number of a row is."""
        codes: list[int] = []
        for op, numbers in self.fields.values():
            codes += [op, *[rendering.NOTHING] * (len(numbers) - 1)]
        return codes

    def cut(self, line: str, mark: str) -> Pieces:
        """Return what stands before each number of a line with marks, and behind the last."""
        *pieces, last = line.encode("utf-8", "backslashreplace").split(mark.encode())
        found: Pieces = []
        for piece, (_, numbers) in zip(pieces, self.fields.values(), strict=True):
            found += [piece, *[b""] * (len(numbers) - 1)]
        return [*found, last]


class BlockLines:
    """NDJSON, with the records of a batch behind it; or CSV or TSV, where records stand alone."""

    def __init__(self, values: Values, columns: Columns = (), delimiter: str = "") -> None:
        self._values = values
        self._columns = columns
        self._delimiter = delimiter
        self._out = bytearray(_BUFFER)
        self._known: dict[BatchKind, list[Pieces]] = {}
        self._origin: object = None
        self._last: tuple[BatchKind, ...] = ()
        self._joined: Templates

    def __call__(self, block: Block) -> Iterator[memoryview]:
        """Yield the lines of one block, some at a time; what is yielded is good until the next."""
        keys, kinds = _kinds(block.batches)
        sorts, texts = self._sorts(block, kinds)
        pieces, cuts, ops = self._templates(block, sorts, keys)
        values = np.empty((sum(len(rows.kinds) for rows in sorts), ops.shape[1] + 1), np.int64)
        at = 0
        for number, rows in enumerate(sorts):
            rows.fill(values[at : at + len(rows.kinds)], number * len(keys))
            at += len(rows.kinds)
        order = np.arange(len(values))
        if len(sorts) > 1 and block.records:
            order = _each_behind_its_own(block.records.counts)
        yield from self._rendered(block, values, order, texts + pieces, cuts + len(texts), ops)

    def _rendered(
        self, block: Block, values: Column, order: Column, texts: bytes, cuts: Column, ops: Column
    ) -> Iterator[memoryview]:
        data = block.records.data if block.records else memoryview(b"")
        encoding, delimiter = _ENCODINGS[self._values], ord(self._delimiter or "\0")
        first = 0
        while first < len(order):
            stop, size = rendering.render(
                data,
                values,
                order,
                first,
                texts,
                cuts,
                ops,
                encoding,
                delimiter,
                memoryview(self._out),
            )
            if stop == first:
                self._out = bytearray(2 * len(self._out))
            else:
                yield memoryview(self._out)[:size]
            first = stop

    def _sorts(self, block: Block, kinds: Column) -> tuple[list[_Rows], bytes]:
        """Return the sorts of lines that a block gives, and what their `TEXT` points into."""
        records, found, texts = block.records, [], b""
        if not (records and self._delimiter):
            found.append(_Rows(self._shown(batch_fields(block.batches)), kinds, _itself))
        if records:
            fields = record_fields(block, records)
            if self._delimiter:
                texts, places = header_cells(records, self._values, self._delimiter)
                fields["headers"] = rendering.TEXT, places
            kinds = np.repeat(kinds, records.counts)
            found.append(_Rows(self._shown(fields), kinds, _a_record))
        return found, texts

    def _shown(self, fields: Fields) -> Fields:
        """Return the fields in the order in which they are printed."""
        if not self._delimiter:
            return fields
        return {c.title: fields[c.title] for c in self._columns if c.title in fields}

    def _templates(
        self, block: Block, sorts: Sequence[_Rows], keys: dict[BatchKind, int]
    ) -> Templates:
        """Return what the lines of each sort and kind have in common; those of one sort first."""
        if block.origin != self._origin or len(self._known) > _MOST_KINDS:
            self._origin, self._last = block.origin, ()
            self._known.clear()
        if (now := tuple(keys)) != self._last:
            for key in keys.keys() - self._known.keys():
                (batch,) = batch_objects(block.origin, block.batches[keys[key] : keys[key] + 1])
                self._known[key] = [self._cut(rows, rows.example(batch)) for rows in sorts]
            self._joined = _join(
                [self._known[key][sort] for sort in range(len(sorts)) for key in keys],
                [rows.ops() for rows in sorts for _ in keys],
            )
            self._last = now
        return self._joined

    def _cut(self, rows: _Rows, obj: Object) -> Pieces:
        if not self._delimiter:
            line = text.to_json({**obj, **dict.fromkeys(rows.fields, _MARK)})
            return rows.cut(line + "\n", '"\\u0000"')
        # The loop writes the encoding and the size of a key or value behind it.
        behind = {f"{name}_{more}" for name in rows.fields for more in ("encoding", "size")}
        cells = [
            _MARK if c.title in rows.fields else cell(text.cell(c.value(obj)), self._delimiter)
            for c in self._columns
            if c.title not in behind
        ]
        return rows.cut(self._delimiter.join(cells) + "\n", _MARK)


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


def _join(lines: Sequence[Pieces], ops: Sequence[list[int]]) -> Templates:
    cuts = np.zeros((len(lines), max(map(len, lines)) + 1), np.int64)
    cells = np.full((len(lines), cuts.shape[1]), rendering.END, np.int64)
    size = 0
    for number, (pieces, of_line) in enumerate(zip(lines, ops, strict=True)):
        ends = np.cumsum([size, *map(len, pieces)])
        cuts[number, : len(ends)] = ends
        cells[number, : len(of_line)] = of_line
        size = int(ends[-1])
    return b"".join(piece for pieces in lines for piece in pieces), cuts, cells


def _each_behind_its_own(counts: Column) -> Column:
    """Return the order of batches, which come first, with the records of each behind it."""
    batches = np.arange(len(counts))
    order = np.empty(len(counts) + int(counts.sum()), np.int64)
    is_record = np.ones(len(order), np.bool_)
    places = batches + np.cumsum(counts) - counts
    is_record[places] = False
    order[places] = batches
    order[is_record] = np.arange(len(counts), len(order))
    return order


def _itself(batch: Object) -> Object:
    return batch


def _a_record(batch: Object) -> Object:
    return record_object(dict(batch), 0, 0, None, None, [])
