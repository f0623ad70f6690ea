"""Blocks of a dump as NDJSON, CSV and TSV: the bytes that its objects would give, made at once.

What is the same for many objects comes from the object path: one object is written with marks in
the place of the values that vary, and cut there. Between the pieces go columns of text, and one
join makes a whole block: for each record nothing is done but what only that record can need.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any

from logtool.commands import text
from logtool.commands.block_columns import (
    Cells,
    Json,
    Texts,
    batch_columns,
    record_columns,
)  # fmt: skip
from logtool.commands.writers import Columns, Object
from logtool.dump.blocks import Block
from logtool.dump.log import batch_objects
from logtool.dump.records import record_object
from logtool.dump.values import Values

_MARK = "\0"
"""No path has it, so that its JSON stands nowhere else."""
_MOST_KINDS = 4096
_MOST_JOINED = 128
"""Lines: fewer than 128 KiB, as a rule, which an allocator keeps. More it takes from the system and
gives back each time, and that costs more than to fill it."""


class NdjsonLines:
    """A line for each batch, and behind it one for each of its records."""

    def __init__(self, values: Values) -> None:
        self._style = Json(values)
        self._batches = _Kinds(lambda batch: batch)
        self._records = _Kinds(_a_record)

    def __call__(self, block: Block) -> Iterator[str]:
        """Yield the lines of one block."""
        columns = batch_columns(block.batches, self._style)
        pieces = self._batches.pieces(block, lambda obj: _cut(obj, columns))
        lines = map("".join, _rows(_weave(pieces, columns.values()), len(block.batches)))
        # What is quoted in bulk leaves DEL as it is; see `text.to_json`.
        for content in self._with_records(block, lines) if block.records else _joined(lines, 1):
            yield content.replace("\x7f", "\\u007f") if "\x7f" in content else content

    def _with_records(self, block: Block, lines: Iterable[str]) -> Iterator[str]:
        records = block.records
        assert records is not None
        columns = record_columns(records, self._style)
        pieces = self._records.pieces(block, lambda obj: _cut(obj, ["batch_position", *columns]))
        counts = records.counts.tolist()
        start, end, *others = pieces
        places = list(map(str, block.batches.position.tolist()))
        starts = map("".join, _rows([start, places, end], len(block.batches)))
        heads, left = _heads(lines, starts, counts)
        woven = _weave(["", *(_spread(piece, counts) for piece in others)], columns.values())
        rows = _rows([heads, *woven[1:]], len(heads))
        yield from _joined(chain.from_iterable(rows), len(woven))
        yield left


class DelimitedLines:
    """A row for each batch, or with records for each record alone."""

    def __init__(self, values: Values, columns: Columns, delimiter: str) -> None:
        self._style = Cells(values, delimiter)
        self._columns = columns
        self._delimiter = delimiter
        self._batches = _Kinds(lambda batch: batch)
        self._records = _Kinds(_a_record)

    def __call__(self, block: Block) -> Iterator[str]:
        """Yield the rows of one block."""
        found = batch_columns(block.batches, self._style)
        count = len(block.batches)
        kinds = self._batches
        counts = None
        if block.records:
            counts = block.records.counts.tolist()
            positions, count = found["position"], len(block.records.table)
            found = record_columns(block.records, self._style)
            found["batch_position"] = _spread(positions, counts)
            kinds = self._records
        cells = kinds.pieces(block, self._cells)
        if counts is not None:
            cells = [_spread(piece, counts) for piece in cells]
        columns = [found.get(c.title, piece) for c, piece in zip(self._columns, cells, strict=True)]
        rows = _rows(columns, count)
        lines = map(self._delimiter.join, rows)
        yield from _joined(chain.from_iterable(zip(lines, repeat("\n"), strict=False)), 2)

    def _cells(self, obj: Object) -> list[str]:
        return [self._style.cell(text.cell(column.value(obj))) for column in self._columns]


class _Kinds:
    """What lines of one kind have in common: those of batches that differ in what varies alone."""

    def __init__(self, make: Callable[[Object], Object]) -> None:
        self._make = make
        self._known: dict[tuple[Any, ...], list[str]] = {}
        self._path: object = None

    def pieces(self, block: Block, cut: Callable[[Object], list[str]]) -> list[Texts]:
        """Return each piece of the lines: for all batches, or for each."""
        table = block.batches
        if block.path != self._path or len(self._known) > _MOST_KINDS:
            self._path = block.path
            self._known.clear()
        names = ("attributes", "leader_epoch", "producer_id", "producer_epoch")
        keys = list(zip(*(getattr(table, name).tolist() for name in names), strict=True))
        for row, key in enumerate(keys):
            if key not in self._known:
                (batch,) = batch_objects(block.path, table[row : row + 1])
                self._known[key] = cut(self._make(batch))
        if len(set(keys)) == 1:
            return list(self._known[keys[0]])
        return [list(piece) for piece in zip(*(self._known[key] for key in keys), strict=True)]


def _a_record(batch: Object) -> Object:
    return record_object(dict(batch), 0, 0, None, None, [])


def _cut(obj: Object, varying: Iterable[str]) -> list[str]:
    """Return the line of an object without the values that vary: the pieces around them."""
    line = text.to_json({**obj, **dict.fromkeys(varying, _MARK)}) + "\n"
    return line.split(text.to_json(_MARK))  # type: ignore[arg-type]


def _weave(pieces: Sequence[Texts], columns: Iterable[Texts]) -> list[Texts]:
    """Return the pieces with the columns between them; what is the same for all rows is joined."""
    woven: list[Texts] = []
    for part in chain.from_iterable(zip(pieces, [*columns, ""], strict=True)):
        if isinstance(part, str) and woven and isinstance(woven[-1], str):
            woven[-1] += part
        else:
            woven.append(part)
    return woven


def _rows(columns: Iterable[Texts], count: int) -> Iterator[tuple[str, ...]]:
    return zip(*(repeat(c, count) if isinstance(c, str) else c for c in columns), strict=True)


def _joined(parts: Iterable[str], width: int) -> Iterator[str]:
    """Yield the text of some lines at a time, each of which is `width` parts."""
    left = iter(parts)
    while content := "".join(islice(left, _MOST_JOINED * width)):
        yield content


def _spread(piece: Texts, counts: list[int]) -> Texts:
    """Return for each record what there is for each batch."""
    if isinstance(piece, str):
        return piece
    return list(chain.from_iterable(map(repeat, piece, counts)))


def _heads(lines: Iterable[str], starts: Iterable[str], counts: list[int]) -> tuple[list[str], str]:
    """Return what each record begins with: the first of a batch with the line of the batch.

    And the lines of batches with no records at the end.
    """
    heads: list[str] = []
    pending = ""
    for line, start, count in zip(lines, starts, counts, strict=True):
        pending += line
        if count:
            heads.append(pending + start)
            heads += [start] * (count - 1)
            pending = ""
    return heads, pending
