"""The writers, one for each format, that make text of the objects of a command.

A writer gets JSON-ready objects one by one and at last the summary, and calls `emit` with text.
Every text is made from the same object as the JSON.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from logtool.commands.printing import fitting, text
from logtool.lazy_dataclass import dataclass

Object = Mapping[str, Any]
Emit = Callable[[str], None]

BLOCK_ROWS = 500
BLOCK_CHARACTERS = 1_000_000
"""Rows of a table that are laid out together, and about how long they are in all: what a table
holds in memory."""
_NARROW = re.compile("[ -~\u2581-\u2588]*")
"""Text that is one column wide for each character: ASCII, and the bars of small charts."""
_MOST_NAMED = 6
"""Columns that the line about hidden ones names; the names of more would not be read."""
WIDEST = 1000
"""Characters of the longest cell that others in its column are aligned with."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column of a table."""

    title: str
    value: Callable[[Object], object]
    kept: bool = False
    """True if it stays on a narrow terminal, where others give way, the rightmost first."""
    where_said: bool = False
    """True if it stays only where a row has a value in it."""
    if_any: bool = False
    """True if a table has it only where a row has a value in it, at any width."""
    below: bool = False
    """True if its values are commands: they stand whole below a table that does not fit."""


Columns = Sequence[TableColumn]


def keep(chosen: Columns, *titles: str, where_said: Sequence[str] = ()) -> Columns:
    """Return the columns, marked so that a narrow terminal shows only those with these titles.

    There, a column in `where_said` is shown only if a row has a value in it.
    """
    return tuple(
        replace(one, kept=one.title in (*titles, *where_said), where_said=one.title in where_said)
        for one in chosen
    )


def below(title: str, value: Callable[[Object], object]) -> TableColumn:
    """Return a column of commands, which stand below a table that does not fit a terminal."""
    return TableColumn(title, value, below=True)


def columns(*keys: str) -> tuple[TableColumn, ...]:
    """Return columns that show the values of `keys` under their own names."""
    return tuple(TableColumn(key, _getter(key)) for key in keys)


def moment(obj: Object, key: str, milliseconds: str | None = None) -> object:
    """Return the time `key` of an object, or its milliseconds where no calendar has the time.

    `milliseconds` is the key of these, by default ``<key>_ms``.
    """
    date = obj.get(key)
    return obj.get(milliseconds or f"{key}_ms") if date is None else date


class Writer(Protocol):
    """Turns objects into text."""

    def item(self, obj: Object) -> None:
        """Take the next object."""

    def close(self, summary: Object) -> None:
        """Take the summary, the last object."""


def _head(schema: str, flavour: str | None) -> Object:
    """Return the first keys of an answer: the schema, and the flavour if it is not Kafka's."""
    return {"schema": schema} if flavour is None else {"schema": schema, "flavour": flavour}


class NdjsonWriter:
    """One JSON object a line; the first carries the schema, the last is the summary."""

    def __init__(self, emit: Emit, schema: str, flavour: str | None = None) -> None:
        self._emit = emit
        self._first: Object = _head(schema, flavour)

    def item(self, obj: Object) -> None:
        """Write the object."""
        self._emit(text.to_json({**self._first, **obj}) + "\n")
        self._first = {}

    def close(self, summary: Object) -> None:
        """Write the summary."""
        self.item(summary)


class JsonWriter:
    """One JSON document, written piece by piece: the items and the summary."""

    def __init__(self, emit: Emit, schema: str, flavour: str | None = None) -> None:
        self._emit = emit
        first = {**_head(schema, flavour), "type": "document"}
        self._before = text.to_json(first)[:-1] + ', "items": [\n'

    def item(self, obj: Object) -> None:
        """Write the object as the next item."""
        self._emit(self._before + text.to_json(obj))
        self._before = ",\n"

    def close(self, summary: Object) -> None:
        """Write the end of the document."""
        start = self._before if self._before != ",\n" else ""
        self._emit(f'{start}\n],\n"summary": {text.to_json(summary)}}}\n')


class DelimitedWriter:
    """CSV (RFC 4180 with LF) or TSV: one header for the whole stream, then one row an object.

    With `escaped`, a row is a line: see `text.delimited`. With `safe`, a text that a spreadsheet
    would take for a formula has an apostrophe before it.
    """

    def __init__(
        self,
        emit: Emit,
        chosen: Columns,
        delimiter: str,
        *,
        escaped: bool = False,
        safe: bool = False,
    ) -> None:
        self._emit = emit
        self._escaped = escaped
        self._safe = safe
        self._columns = chosen
        self._delimiter = delimiter
        self._row([column.title for column in chosen])

    def item(self, obj: Object) -> None:
        """Write one row."""
        values = [column.value(obj) for column in self._columns]
        self._row([text.safe_cell(value) if self._safe else text.cell(value) for value in values])

    def close(self, summary: Object) -> None:
        """Write nothing: the summary is not a row."""

    def _row(self, cells: Sequence[str]) -> None:
        line = self._delimiter.join(
            text.delimited(value, self._delimiter, escaped=self._escaped) for value in cells
        )
        # A line without anything is no row to a reader of CSV.
        self._emit((line or '""') + "\n")


class TableWriter:
    """A table for people or a Markdown one, block by block; a new kind of object starts a new one.

    A time that no calendar has is shown as its milliseconds (`moment`).

    `layout` gives the columns of an object, or a line of text that stands between tables. With a
    `width`, that of a terminal, no line is longer: columns give way (`hidden` has their titles),
    texts are wrapped, and in the end a row becomes a record of several lines. Only a command, which
    is pasted, is never broken.
    """

    def __init__(
        self,
        emit: Emit,
        layout: Callable[[Object], Columns | str | None],
        *,
        markdown: bool,
        width: int | None = None,
    ) -> None:
        self.hidden: dict[str, None] = {}
        """The titles of columns that gave way, in their order."""
        self._emit = emit
        self._layout = layout
        self._markdown = markdown
        self._width = None if markdown else width
        self._columns: Columns = ()
        self._rows: list[list[str]] = []
        self._characters = 0
        self._started = False
        self._behind_a_table = False

    def item(self, obj: Object) -> None:
        """Add a row, or write a line between tables."""
        chosen = self._layout(obj)
        if chosen is None:
            return
        if isinstance(chosen, str):
            self._flush()
            self._columns = ()
            self._emit(("\n" if self._started else "") + fitting.folded(chosen, self._width) + "\n")
            self._started = True
            if self._markdown:
                self._emit("\n")
            return
        full = len(self._rows) >= BLOCK_ROWS or self._characters >= BLOCK_CHARACTERS
        if chosen is not self._columns or full:
            self._flush()
            self._behind_a_table = bool(self._columns) and chosen is not self._columns
            self._columns = chosen
        self._rows.append([self._cell(text.cell(_for_people(obj, column))) for column in chosen])
        self._characters += sum(map(len, self._rows[-1]))

    def close(self, summary: Object) -> None:
        """Write the rows that are left."""
        self._flush()

    def what_is_hidden(self) -> str:
        """Return the line about columns that a terminal has no room for."""
        found = f"{text.count(len(self.hidden), 'column')} not shown (--wide shows all)"
        named = ", ".join(self.hidden)
        return found if len(self.hidden) > _MOST_NAMED else f"{found}: {named}"

    def _flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows, self._characters = self._rows, [], 0
        shown = [
            place
            for place, column in enumerate(self._columns)
            if not column.if_any or any(row[place] for row in rows)
        ]
        columns = [self._columns[place] for place in shown]
        if len(shown) < len(self._columns):
            rows = [[row[place] for place in shown] for row in rows]
        titles = [column.title for column in columns]
        is_whole = self._width is None
        lines = self._whole(titles, rows) if is_whole else self._fitted(columns, titles, rows)
        if self._behind_a_table and lines[0]:
            lines.insert(0, "")  # without it, Markdown takes both for one table
        self._behind_a_table = False
        self._emit("\n".join(lines) + "\n")
        self._started = True

    def _whole(self, titles: list[str], rows: list[list[str]]) -> list[str]:
        """Return all columns; only a very long cell is not aligned."""
        aligned = [[cell[:WIDEST] for cell in row] for row in rows]
        heading, rule, *lines = self._table(titles, aligned)
        done = [heading, rule]
        for row, line in zip(rows, lines, strict=True):
            wide = any(len(cell) > WIDEST for cell in row)
            done.append(self._unaligned(row) if wide else line)
        return done

    def _fitted(self, columns: Columns, titles: list[str], rows: list[list[str]]) -> list[str]:
        """Return the columns that fit the width of the terminal."""
        assert self._width is not None
        places, commands = list(range(len(titles))), list[str]()
        if not fitting.fits(titles, rows, self._width):
            aside = [i for i in places if columns[i].below]
            commands = [f"  {row[i]}" for row in rows for i in aside if row[i]]
            places = [i for i in places if i not in aside]
        titles, rows = [titles[i] for i in places], [[row[i] for i in places] for row in rows]
        shown = [columns[i] for i in places]
        return [*self._narrowed(titles, rows, shown, self._width), *dict.fromkeys(commands)]

    def _narrowed(
        self, titles: list[str], rows: list[list[str]], shown: Columns, width: int
    ) -> list[str]:
        """Return these columns, of which some give way, or records."""
        kept = [
            one.kept and not (one.where_said and not any(row[i] for row in rows))
            for i, one in enumerate(shown)
        ]
        chosen = fitting.fit(titles, rows, kept, width)
        if chosen.as_records:
            found = [fitting.record(titles, row, width) for row in rows]
            return [*([""] if self._started else []), "\n\n".join(found)]
        self.hidden |= dict.fromkeys(t for i, t in enumerate(titles) if i not in chosen.shown)
        places = list(zip(chosen.shown, chosen.widths, strict=True))
        cells = [[fitting.wrapped(row[i], width) for i, width in places] for row in rows]
        return self._table([titles[i] for i in chosen.shown], cells)

    def _table(self, titles: list[str], rows: list[list[str]]) -> list[str]:
        right = [_is_numeric(rows, i) for i in range(len(titles))]
        if not self._markdown and all(map(_is_plain, (titles, *rows))):
            return fitting.table(titles, rows, right)
        import tabulate

        # Its documented switch for columns as narrow as their content.
        tabulate.MIN_PADDING = 0
        table = tabulate.tabulate(
            rows,
            titles,
            tablefmt="github" if self._markdown else "simple",
            disable_numparse=True,
            preserve_whitespace=True,
            colalign=["right" if one else "left" for one in right],
        )
        return [line.rstrip() for line in table.split("\n")]

    def _unaligned(self, row: list[str]) -> str:
        """Return a row with a very long cell, for which no other is made as wide."""
        return f"| {' | '.join(row)} |" if self._markdown else "  ".join(row).rstrip()

    def _cell(self, value: str) -> str:
        escaped = text.escape(value)
        return escaped.replace("|", "\\|") if self._markdown else escaped


class LineWriter:
    """Text of a command's own: `render` returns the lines of an object, or None for nothing.

    With a `width` lines are folded to it.
    """

    def __init__(
        self, emit: Emit, render: Callable[[Object], str | None], width: int | None = None
    ) -> None:
        self._emit = emit
        self._render = render
        self._width = width

    def item(self, obj: Object) -> None:
        """Write the lines of the object."""
        lines = self._render(obj)
        if lines is not None:
            self._emit(fitting.folded(lines, self._width) + "\n")

    def close(self, summary: Object) -> None:
        """Write nothing: people read the summary on stderr."""


def _for_people(obj: Object, column: TableColumn) -> object:
    value = column.value(obj)
    return moment(obj, column.title) if value is None else value


def _getter(key: str) -> Callable[[Object], object]:
    return lambda obj: obj.get(key)


def _is_plain(cells: list[str]) -> bool:
    """Return whether each cell is one line of characters that are one column wide."""
    return all(map(_NARROW.fullmatch, cells))


def _is_numeric(rows: list[list[str]], index: int) -> bool:
    """Return whether a column holds numbers alone, which are easier to compare right-aligned."""
    return all(row[index].lstrip("-").isdigit() or not row[index] for row in rows)
