r"""The identity of a log directory (``meta.properties``): cluster, node and directory.

Java properties: ``key=value`` lines, comments, backslash escapes, Latin-1 with ``\uXXXX``.

================  ================  ================  ==================
key               version 0         version 1         version 2
================  ================  ================  ==================
``version``       0 or missing      1                 2
``broker.id``     optional int32
``node.id``                         required int32    required int32
``cluster.id``    optional          required          optional
``directory.id``  optional UUID     optional UUID     required UUID
================  ================  ================  ==================

Version 2 is younger than Kafka 4.0, which refuses it. A directory id must not be reserved: its high
64 bits zero and its low 64 bits, signed, below 100. Of two lines with one key the last counts.
Source: ``MetaProperties``, ``MetaPropertiesVersion``, ``PropertiesUtils`` (Kafka 4.0.0-SNAPSHOT,
1eb7644349c; version 2 from trunk).
"""

import re
from collections.abc import Iterator

from logtool.findings import Finding
from logtool.formats.java_text import Line, parse_int, parse_uuid, split_lines, uuid_bytes
from logtool.lazy_dataclass import dataclass

REQUIRED_KEYS = {
    0: (),
    1: ("node.id", "cluster.id"),
    2: ("node.id", "directory.id"),
}
"""Required keys of each version."""
FIRST_FREE_DIRECTORY_ID = 100

_ENCODING = "iso-8859-1"
_ORDINARY = re.compile(
    rb"(?:(?:#[^\\\r\n]*|[A-Za-z][A-Za-z0-9._-]*=[A-Za-z0-9_-][A-Za-z0-9._+-]*)\n)*"
)
"""Lines that brokers write, without escapes or continuations: they can be split as they stand."""
_CONTROLS_AND_SPACE = "".join(map(chr, range(ord(" ") + 1)))
"""Characters that Java's ``String.trim`` removes."""


@dataclass(frozen=True, slots=True)
class Property:
    """A comment, an empty line or a key with its value; `line.raw` may span several lines."""

    line: Line
    key: str | None
    value: str | None


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The elements of the file in order, and what cannot be read."""

    elements: tuple[Property, ...]
    unread: bytes = b""
    """Everything from a line with an illegal ``\\u`` on: Java reads nothing at all then."""

    @property
    def properties(self) -> dict[str, str]:
        """Return the value of each key; the last one counts."""
        return {
            element.key: element.value
            for element in self.elements
            if element.key is not None and element.value is not None
        }

    @property
    def version(self) -> int | None:
        """Return the version, 0 if the key is missing; None if the value is not a number."""
        return parse_int(self.properties.get("version", "0").strip(_CONTROLS_AND_SPACE))

    @property
    def node_id(self) -> int | None:
        """Return ``node.id``, or ``broker.id`` in version 0."""
        return parse_int(self.properties.get(_id_key(self), ""))

    @property
    def cluster_id(self) -> str | None:
        """Return ``cluster.id``."""
        return self.properties.get("cluster.id")

    @property
    def directory_id(self) -> str | None:
        """Return ``directory.id`` in the 22 characters Kafka prints."""
        return parse_uuid(self.properties.get("directory.id", ""))


def parse(data: bytes) -> MetaProperties:
    """Split `data` into elements. Never fails; see `check`."""
    if _ORDINARY.fullmatch(data):
        return MetaProperties(_ordinary(data))
    # Here, because it loads what takes as long to import as all formats together.
    import javaproperties

    elements: list[Property] = []
    number, position = 1, 0
    reader = javaproperties.parse(data)
    while True:
        try:
            element = next(reader, None)
        except javaproperties.InvalidUEscapeError:
            return MetaProperties(tuple(elements), bytes(data[position:]))
        if element is None:
            return MetaProperties(tuple(elements))
        line = Line(number, position, element.source.encode(_ENCODING))
        if isinstance(element, javaproperties.KeyValue):
            elements.append(Property(line, element.key, element.value))
        else:
            elements.append(Property(line, None, None))
        number += len(split_lines(line.raw))
        position += len(line.raw)


def _ordinary(data: bytes) -> tuple[Property, ...]:
    elements = []
    position = 0
    for number, raw in enumerate(data.splitlines(keepends=True), start=1):
        line = Line(number, position, raw)
        if raw.startswith(b"#"):
            elements.append(Property(line, None, None))
        else:
            key, _, value = raw[:-1].decode("ascii").partition("=")
            elements.append(Property(line, key, value))
        position += len(raw)
    return tuple(elements)


def encode(meta: MetaProperties) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(element.line.raw for element in meta.elements) + meta.unread


def check(meta: MetaProperties) -> Iterator[Finding]:
    """Yield every broken rule: of the values, then of the keys that are missing."""
    version = meta.version
    if version not in REQUIRED_KEYS:
        yield _finding("version", meta, "version", "version 0, 1 or 2")
    id_key = _id_key(meta)
    if id_key in meta.properties and meta.node_id is None:
        yield _finding("malformed", meta, id_key, f"a number for {id_key}")
    directory_id = meta.directory_id
    if "directory.id" in meta.properties and directory_id is None:
        yield _finding("malformed", meta, "directory.id", "a UUID of 22 characters")
    if directory_id is not None and _is_reserved(directory_id):
        yield _finding(
            "reserved-directory-id", meta, "directory.id", "a directory id that is not reserved"
        )
    size = len(encode(meta))
    if meta.unread:
        (bad, *_) = split_lines(meta.unread)
        yield Finding(
            "meta-properties/malformed",
            f"line {_line_count(meta) + 1}: expected four hex digits after every '\\u', "
            f"found {bad.quoted}",
            position=size - len(meta.unread),
            length=len(meta.unread),
        )
        return  # A missing key may stand in what was not read.
    for key in REQUIRED_KEYS.get(-1 if version is None else version, ()):
        if key not in meta.properties:
            yield Finding(
                "meta-properties/missing-key",
                f"expected {key} in a file of version {version}, found none",
                position=size,
                length=0,
            )


def _id_key(meta: MetaProperties) -> str:
    return "node.id" if meta.version else "broker.id"


def _is_reserved(directory_id: str) -> bool:
    value = uuid_bytes(directory_id)
    half = len(value) // 2
    low = int.from_bytes(value[half:], "big", signed=True)
    return not any(value[:half]) and low < FIRST_FREE_DIRECTORY_ID


def _line_count(meta: MetaProperties) -> int:
    return sum(len(split_lines(element.line.raw)) for element in meta.elements)


def _finding(rule: str, meta: MetaProperties, key: str, expected: str) -> Finding:
    element = next(e for e in reversed(meta.elements) if e.key == key)
    return Finding(
        f"meta-properties/{rule}",
        f"line {element.line.number}: expected {expected}, found {element.value!a}",
        position=element.line.position,
        length=len(element.line.raw),
    )
