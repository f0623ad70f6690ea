"""What a column is: its name, type, unit and meaning, when it is null, and where it is to be had.

Pure data, so that everything which prints, writes or reads a table can take it from here. `tables`
has the columns of every table, `entries` those of what `dump` prints of small files.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from logtool.lazy_dataclass import dataclass


class Kind(StrEnum):
    """The types that columns have; `documents` has what they are in JSON."""

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
    """The same with keys that are strings, as Spark's own source has it."""
    NUMBERS = "numbers"
    """A list of numbers."""
    OBJECT = "object"
    """What JSON has as an object, and a table as its JSON text."""


class Way(StrEnum):
    """How rows leave logtool."""

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
    """What ``scan --history`` lists, and the table ``_history`` of each run."""


class Payload(StrEnum):
    """How much of keys and values the rows of records tell; each tells also what is before it."""

    NONE = "none"
    LENGTH = "length"
    HASH = "hash"
    FULL = "full"

    def tells(self, other: "Payload") -> bool:
        """Return whether what `other` asks for is told."""
        levels = list(Payload)
        return levels.index(self) >= levels.index(other)


EVERY_WAY: Final = frozenset(Way) - {Way.HISTORY}
"""In which there are the rows of one log."""
JSON: Final = frozenset({Way.NDJSON})
TABLES: Final = frozenset({Way.SCAN, Way.SOURCE})
DUMP: Final = EVERY_WAY - TABLES


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind
    meaning: str
    unit: str | None = None
    null: str | None = None
    """What null says; None where the column is never null."""
    words: tuple[str, ...] = ()
    """Every value that it takes, where these are few."""
    pattern: str | None = None
    """A regular expression that every text matches."""
    ways: frozenset[Way] = EVERY_WAY
    """How it is to be had."""
    payload: Payload = Payload.NONE
    """How much of keys and values a table of records must tell to have it; `dump` always does."""

    @property
    def least(self) -> int | None:
        """Return 0 where no smaller number makes sense."""
        return 0 if self.unit in ("bytes", "byte", "count") or self.kind is Kind.UINT32 else None


@dataclass(frozen=True, slots=True)
class Table:
    """One table, or one type of object that is printed."""

    name: str
    row: str
    """What a row is, for a sentence that begins with "a row for each"."""
    columns: tuple[Column, ...]
    ways: frozenset[Way]
    """How it is to be had."""
    note: str = ""

    def by(self, way: Way, payload: Payload = Payload.FULL) -> tuple[Column, ...]:
        """Return the columns that it has in one of the ways, in their order."""
        return tuple(
            column
            for column in self.columns
            if way in column.ways & self.ways
            and (way not in TABLES or payload.tells(column.payload))
        )

    def __getitem__(self, name: str) -> Column:
        """Return the column of a name; KeyError where there is none."""
        return next((one for one in self.columns if one.name == name), None) or _missing(name)


def timed(name: str, meaning: str, null: str | None) -> Iterable[Column]:
    """Return a time twice: as milliseconds, as they are stored, and as a timestamp."""
    stamp = name.removesuffix("_ms")
    why = "no calendar has it" if null is None else f"{null}, or no calendar has it"
    return (
        Column(name, Kind.INT64, meaning, "ms since 1970", null),
        Column(stamp, Kind.TIMESTAMP, f"{name} as a timestamp", "UTC", why),
    )


def _missing(name: str) -> Column:
    raise KeyError(name)
