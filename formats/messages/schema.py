"""Tables of fields: the messages, and the fields in each version of a message.

A table is a text. A message begins at the margin, its fields are below it, the fields of a
structure below the field of that structure, each level indented by two more spaces::

    value 2 GroupMetadataValue 0-4 flexible 4+
      leader string 0+ null 0+
      members []struct 0+
        rebalanceTimeout int32 1+ = -1
        classicMemberMetadata struct 0+ null 0+ tag 0 0+ = null

============================  =====================================================================
``value 2 NAME 0-4``          part (``key``, ``value``, or ``data`` if there is only one part),
                              number of the type (``-`` without a number), name, versions
``flexible 4+``               the versions in the flexible encoding; omitted without such versions
``leader string 0+``          name, type and versions of a field; ``[]`` before the type is an array
``null 0+``                   the versions in which the field may be null
``tag 0 0+``                  tag of a field, and the versions in which it is a tagged field
``= -1``                      default of a field, if that is not 0, empty or false
============================  =====================================================================

The facts are those of the message schemas (JSON files below ``common/message``, ``message`` and
``common/metadata``) in the jars of Kafka 4.4.0; ``make messages`` writes the tables from them, and
a test compares them with the jars of 3.9 and 4.x.
"""

from collections import deque
from dataclasses import field
from functools import cache
from pathlib import Path

from logtool.lazy_dataclass import dataclass

ANY = 2**15 - 1
"""The last version where a range is open."""
NO_TYPE = -1
Rows = deque[tuple[int, list[str]]]
"""The lines that are left: how far each is indented, and its words."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions, both ends in it; empty where the first is above the last."""

    first: int = 0
    last: int = -1

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last

    @classmethod
    @cache
    def parse(cls, text: str) -> "VersionRange":
        """Return the versions of ``2``, ``0-4``, ``3+`` or ``none``; else ValueError."""
        if text == "none":
            return cls()
        if text.endswith("+"):
            return cls(int(text[:-1]), ANY)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))


NEVER = VersionRange()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message or of a structure in it."""

    name: str
    """Name as in Kafka's JSON: the first letter is small."""
    type: str
    """``bool``, ``int8`` to ``int64``, ``uint16``, ``uint32``, ``float64``, ``string``, ``bytes``,
    ``uuid`` or ``struct``; of one element where it is an array."""
    versions: VersionRange
    is_array: bool = False
    nullable: VersionRange = NEVER
    tag: int = -1
    tagged: VersionRange = NEVER
    default: str = ""
    """Default as the table has it; empty if it is 0, empty or false."""
    fields: "tuple[Field, ...]" = ()
    """Fields of a structure."""


@dataclass(frozen=True, slots=True, eq=False)
class MessageSchema:
    """A message and its fields; one is equal to itself alone, so that a lookup hashes no field."""

    part: str
    """``key``, ``value`` or ``data``."""
    type: int
    """Type of a record; `NO_TYPE` if it has none."""
    name: str
    versions: VersionRange
    flexible: VersionRange
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class MessageTable:
    """The messages of one topic or file."""

    messages: tuple[MessageSchema, ...]
    _by_type: dict[tuple[str, int], MessageSchema] = field(default_factory=dict)
    _by_name: dict[str, MessageSchema] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_type.update({(one.part, one.type): one for one in self.messages})
        self._by_name.update({one.name: one for one in self.messages})

    def find(self, part: str, kind: int) -> MessageSchema | None:
        """Return the message of a type, None if the table does not have it."""
        return self._by_type.get((part, kind))

    def named(self, name: str) -> MessageSchema:
        """Return the message with a name; KeyError if the table does not have it."""
        return self._by_name[name]


def parse(text: str) -> MessageTable:
    """Return the messages of a table; ValueError if a line is not part of a table."""
    rows: Rows = deque()
    for line in text.splitlines():
        if line and not line.startswith("#"):
            rows.append((len(line) - len(line.lstrip(" ")), line.split()))
    messages = []
    while rows:
        messages.append(_message(rows))
    return MessageTable(tuple(messages))


@cache
def table(name: str) -> MessageTable:
    """Return a table that ships, such as ``consumer_offsets``."""
    # No importlib.resources, which takes longer to import than this module.
    return parse((Path(__file__).parent / "tables" / f"{name}.txt").read_text("utf-8"))


def _message(rows: Rows) -> MessageSchema:
    """Take a message and its fields off the rows."""
    indent, words = rows.popleft()
    if indent or words[0] not in ("key", "value", "data"):
        raise ValueError(f"no message begins with {' '.join(words)!r}")
    part, kind, name, versions, *flexible = words
    return MessageSchema(
        part=part,
        type=NO_TYPE if kind == "-" else int(kind),
        name=name,
        versions=VersionRange.parse(versions),
        flexible=VersionRange.parse(flexible[1]) if flexible else NEVER,
        fields=_fields(rows, 2),
    )


def _fields(rows: Rows, level: int) -> tuple[Field, ...]:
    """Take the fields of one level off the rows, and those below them."""
    found = []
    while rows and rows[0][0] == level:
        _, words = rows.popleft()
        found.append(_field(words, _fields(rows, level + 2)))
    return tuple(found)


def _field(words: list[str], inner: tuple[Field, ...]) -> Field:
    name, kind, versions, *rest = words
    nullable, tag, tagged, default = NEVER, -1, NEVER, ""
    while rest:
        match rest:
            case ["null", text, *rest]:
                nullable = VersionRange.parse(text)
            case ["tag", number, text, *rest]:
                tag, tagged = int(number), VersionRange.parse(text)
            case ["=", default, *rest]:
                pass
            case _:
                raise ValueError(f"the field {name} has {' '.join(rest)!r} at its end")
    return Field(
        name=name,
        type=kind.removeprefix("[]"),
        versions=VersionRange.parse(versions),
        is_array=kind.startswith("[]"),
        nullable=nullable,
        tag=tag,
        tagged=tagged,
        default=default,
        fields=inner,
    )
