"""Tables and columns: name, type, unit, meaning and null of everything printed or stored.

Each object has one declaration, a `Table`. Its JSON, the header of its CSV, its JSON Schema and its
Parquet and Spark schemas are made from that. `tables` has the tables that are stored, `entries`
what `dump` prints of small files, `printed` what several commands print; an object of one command
is declared in the view of that command.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

from logtool.lazy_dataclass import dataclass


class Kind(StrEnum):
    """The types of columns; `documents` has their types in JSON."""

    STRING = "string"
    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    TIMESTAMP = "timestamp"
    """A moment in UTC, to the millisecond."""
    BINARY = "binary"
    HEADERS = "headers"
    """A list of pairs, ``key`` and ``value``, both binary; a value may be null."""
    KAFKA_HEADERS = "kafka-headers"
    """HEADERS with keys that are strings, as in Spark's own source."""
    NUMBERS = "numbers"
    """A list of numbers."""
    NODES = "nodes"
    """A list of ids of nodes; null for one that is not known."""
    PATH = "path"
    """A path, as text."""
    PATHS = "paths"
    """A list of paths, as text."""
    FLOAT = "float"
    STRINGS = "strings"
    """A list of strings."""
    PAIRS = "pairs"
    """A list of pairs of numbers, such as first and last offsets."""
    COUNTS = "counts"
    """Numbers by name."""
    SETTINGS = "settings"
    """Strings by name."""
    VALUES = "values"
    """Values of any type by name."""
    OBJECT = "object"
    """An object in JSON, and its JSON text in a table, with the keys in `Column.of`. Without
    `Column.of` it is any value of JSON."""


LISTS: Final = frozenset({Kind.NUMBERS, Kind.NODES, Kind.STRINGS, Kind.PAIRS, Kind.PATHS})


class Way(StrEnum):
    """The ways in which rows leave logtool."""

    NDJSON = "ndjson"
    """Lines and documents of JSON."""
    CSV = "csv"
    """CSV and TSV."""
    PARQUET = "parquet"
    """The file of ``dump --format parquet``."""
    SCAN = "scan"
    """The tables that ``scan`` writes."""
    SOURCE = "source"
    """The data source of a Spark session."""
    HISTORY = "history"
    """The list of ``scan --history``, and the table ``_history`` of each run."""


class Payload(StrEnum):
    """The parts of keys and values that records have; each value includes those before it."""

    NONE = "none"
    LENGTH = "length"
    HASH = "hash"
    FULL = "full"

    def includes(self, other: "Payload") -> bool:
        """Return whether records with this payload have all that `other` asks for."""
        levels = list(Payload)
        return levels.index(self) >= levels.index(other)


EVERY_WAY: Final = frozenset(Way) - {Way.HISTORY}
"""Ways that have the rows of one log."""
JSON: Final = frozenset({Way.NDJSON})
TABLES: Final = frozenset({Way.SCAN, Way.SOURCE})
DUMP: Final = EVERY_WAY - TABLES
PRINTED: Final = DUMP - {Way.PARQUET}
"""The ways of what is printed and not stored."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind
    meaning: str
    unit: str | None = None
    null: str | None = None
    """Meaning of null; None where the column is never null."""
    words: tuple[str, ...] = ()
    """Every value that it takes, where these are few; of a list, every value in it."""
    pattern: str | None = None
    """A regular expression that every text matches."""
    ways: frozenset[Way] = EVERY_WAY
    """The ways that have the column."""
    payload: Payload = Payload.NONE
    """The least payload with which a table of records has the column; `dump` always has it."""
    value: str | None = None
    """The attribute of the engine object, with dots for attributes of its parts; None: `name`."""
    of: "Table | None" = None
    """The table of the objects in an OBJECT."""
    many: bool = False
    """True for a list of objects."""
    by_name: bool = False
    """True for objects by name; `words` are then all the names."""
    always: int | None = None
    """The number that it always is."""
    digits: int | None = None
    """Decimals to which a number is rounded; None: it is printed as it is."""

    def read(self, value: Any) -> Any:
        """Return the JSON value of an attribute."""
        if value is None:
            return None
        if self.of is not None and self.by_name:
            return {str(name): self.of.row(one) for name, one in value.items()}
        if self.of is not None:
            return [self.of.row(one) for one in value] if self.many else self.of.row(value)
        if self.digits is not None:
            return round(value, self.digits) if self.digits else round(value)
        if self.kind is Kind.PATH:
            return str(value)
        if self.kind is Kind.PATHS:
            return [str(path) for path in value]
        if self.kind is Kind.PAIRS:
            return [list(pair) for pair in value]
        return list(value) if self.kind in LISTS else value

    @property
    def is_plain(self) -> bool:
        """Return whether its JSON value is the attribute as it is."""
        changed = self.kind in LISTS or self.kind is Kind.PATH
        return self.of is None and self.digits is None and not changed

    @property
    def least(self) -> int | None:
        """Return 0 where no smaller number makes sense."""
        return 0 if self.unit in ("bytes", "byte", "count") or self.kind is Kind.UINT32 else None


@dataclass(frozen=True)
class Table:
    """One table, or one type of object that is printed."""

    name: str
    each: str
    """The thing that a row describes, for a sentence that begins with "a row for each"."""
    columns: tuple[Column, ...]
    ways: frozenset[Way] = PRINTED
    """The ways that have the table."""
    note: str = ""
    """A note for readers; the description in the JSON Schema of an object."""
    type: str | None = None
    """The value of the key ``type`` of an object that is printed; None: it has no such key."""
    made_from: str = ""
    """The class of the engine whose objects are the rows, as module:name; "" for rows that are not
    made from objects of one class."""

    def row(self, obj: Any) -> dict[str, Any]:
        """Return the JSON object of an object of the engine; every column is a key."""
        row: dict[str, Any] = {} if self.type is None else {"type": self.type}
        row.update(zip(self._names, self._values(obj), strict=True))
        for name, read in self._readers:
            row[name] = read(row[name])
        return row

    def make(self, **values: Any) -> dict[str, Any]:
        """Return the JSON object of `values`, one for each column; TypeError for other names."""
        if tuple(values) != self._names:
            raise TypeError(f"{self.name}: expected {self._names}, found {tuple(values)}")
        row = {column.name: column.read(values[column.name]) for column in self.columns}
        return row if self.type is None else {"type": self.type, **row}

    def names(self, way: Way) -> tuple[str, ...]:
        """Return the names of the columns that it has in one of the ways."""
        return tuple(column.name for column in self.by(way))

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def _values(self) -> Callable[[Any], tuple[Any, ...]]:
        get = attrgetter(*(column.value or column.name for column in self.columns))
        return get if len(self.columns) > 1 else lambda obj: (get(obj),)

    @cached_property
    def _readers(self) -> list[tuple[str, Callable[[Any], Any]]]:
        return [(column.name, column.read) for column in self.columns if not column.is_plain]

    def parts(self) -> Iterator["Table"]:
        """Yield the tables of the objects in its columns, the innermost first.

        A table that is used twice comes twice.
        """
        for column in self.columns:
            if column.of is not None:
                yield from column.of.parts()
                yield column.of

    def by(self, way: Way, payload: Payload = Payload.FULL) -> tuple[Column, ...]:
        """Return the columns that it has in one of the ways, in their order."""
        return tuple(
            column
            for column in self.columns
            if way in column.ways & self.ways
            and (way not in TABLES or payload.includes(column.payload))
        )

    def __getitem__(self, name: str) -> Column:
        """Return the column of a name; KeyError for an unknown name."""
        return next((one for one in self.columns if one.name == name), None) or _missing(name)


def offset(name: str, meaning: str, null: str | None = None, value: str | None = None) -> Column:
    """Return the column of an offset."""
    return Column(name, Kind.INT64, meaning, "offset", null, value=value)


def count(name: str, meaning: str, value: str | None = None, *, null: str | None = None) -> Column:
    """Return the column of a number of things."""
    return Column(name, Kind.INT64, meaning, "count", null, value=value)


def size(name: str, meaning: str, value: str | None = None, *, null: str | None = None) -> Column:
    """Return the column of a number of bytes."""
    return Column(name, Kind.INT64, meaning, "bytes", null, value=value)


def timed(name: str, meaning: str, null: str | None) -> Iterable[Column]:
    """Return the two columns of a time: its milliseconds, and a timestamp made from these."""
    stamp = name.removesuffix("_ms")
    why = (
        "out of the range of calendar dates"
        if null is None
        else f"{null}, or out of the range of calendar dates"
    )
    return (
        Column(name, Kind.INT64, meaning, "ms since 1970", null),
        Column(stamp, Kind.TIMESTAMP, f"{name} as a timestamp", "UTC", why),
    )


def _missing(name: str) -> Column:
    raise KeyError(name)
