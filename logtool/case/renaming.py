"""Names that stand for others in a case file, each of as many bytes as the name has.

So no file changes its size and no batch its place. One name has the same replacement everywhere in
a case file: ``topic-0001`` where there is room, otherwise what fits. Topics of brokers themselves
keep their names, and so does what is no name: numbers, and the words that Kafka puts into names of
files and directories.
"""

import json
import re
from collections import Counter
from itertools import count
from string import ascii_letters, digits

from logtool.disk.unfinished import WORK
from logtool.errors import RefusedError
from logtool.formats import names
from logtool.formats.messages.internal_topics import TABLES
from logtool.formats.names import REMOTE_INDEX_CACHE, FileKind, PartitionDirectory, Reception

TOPIC, GROUP, TRANSACTION, CLIENT, HOST, RACK, USER, OTHER = (
    "topic", "group", "txn", "client", "host", "rack", "user", "name",
)  # fmt: skip
"""Kinds of names; the replacement of a long name begins with its kind."""
_SCHEMA = "logtool.case-names/1"
_LEGAL = frozenset(f"{ascii_letters}{digits}._-")
_DIGITS = f"{digits}{ascii_letters}-_"
_MOST_TRIES = 10_000
_BLOCKS = {2: (0xC0, 256), 3: (0x4E00, 20_000), 4: (0x1F300, 700)}
"""First character and number of those that stand for a character of 2, 3 and 4 bytes."""
_WORD = re.compile(r"[^\W_]+")
_FIELD = re.compile(rb"[^ \t\n\x0b\f\r]+")
_NUMBER = re.compile(rb"[+-]?[0-9]+")
_KEPT_TOPICS = frozenset({*TABLES, ".", ".."})
_KEPT_WORDS = frozenset(
    {
        "cache", "checkpoint", "cleaned", "cleaner", "cleanshutdown", "delete", "deleted", "epoch",
        "found", "future", "index", "kafka", "leader", "lock", "log", "logtool", "lost", "meta",
        "metadata", "offset", "part", "partition", "point", "properties", "quorum", "recovery",
        "remote", "replication", "snapshot", "start", "state", "stray", "swap", "timeindex", "tmp",
        "txnindex", "undo", "unfinished",
    }
)  # fmt: skip


class Renaming:
    """The names of one case file, and their replacements."""

    def __init__(self) -> None:
        self.starred = 0
        """Number of records that lost everything, because they do not decode."""
        self._new: dict[tuple[str, str], str] = {}
        self._used: set[tuple[str, str]] = set()
        self._numbers: Counter[str] = Counter()

    def name(self, kind: str, text: str) -> str:
        """Return the replacement of a name; RefusedError if too many names are as short."""
        if not text:
            return text
        found = self._new.get((kind, text))
        if found is None:
            found = self._new[kind, text] = self._next(kind, text)
            self._used.add((kind, found))
        return found

    def topic(self, text: str) -> str:
        """Return the replacement of the name of a topic; RefusedError as for `name`."""
        return text if text in _KEPT_TOPICS else self.name(TOPIC, text)

    def directory(self, name: str) -> str:
        """Return the name of a directory, which may be that of a partition; RefusedError."""
        parsed = names.parse_directory(name)
        if name == REMOTE_INDEX_CACHE:
            return name
        if isinstance(parsed, PartitionDirectory):
            return self.topic(parsed.topic) + name[len(parsed.topic) :]
        return self._words(name)

    def file(self, name: str) -> str:
        """Return the name of a file; those that Kafka writes stay. RefusedError."""
        of_kafka = (
            names.parse_root_file(name), names.parse_partition_file(name),
            names.parse_remote_index(name),
        )  # fmt: skip
        if any(
            one.kind is not FileKind.UNKNOWN and one.reception is Reception.EXACT
            for one in of_kafka
        ):
            return name
        return self._words(name)

    def checkpoint(self, data: bytes) -> bytes:
        """Return an offset checkpoint with other topics, also where its lines are damaged."""
        return b"".join(map(self._line, re.split(rb"([\r\n]+)", data)))

    def encode(self) -> bytes:
        """Return each name with its replacement, as JSON."""
        rows = [
            {"kind": kind, "name": text, "replacement": new}
            for (kind, text), new in sorted(self._new.items())
        ]
        return json.dumps({"schema": _SCHEMA, "names": rows}, indent=1).encode("ascii")

    def _line(self, line: bytes) -> bytes:
        of_row = len(_FIELD.findall(line)) > 1

        def replaced(found: re.Match[bytes]) -> bytes:
            is_first = of_row and found.start() == len(line) - len(line.lstrip())
            if _NUMBER.fullmatch(found[0]) and not is_first:
                return found[0]
            text = found[0].decode("utf-8", "surrogateescape")
            return self.topic(text).encode("utf-8", "surrogateescape")

        return _FIELD.sub(replaced, line)

    def _words(self, name: str) -> str:
        """Return a name that no broker writes, with other words between the same marks."""
        if name == WORK:
            return name
        return _WORD.sub(
            lambda found: (
                found[0]
                if found[0] in _KEPT_WORDS or found[0].isdigit()
                else self.name(OTHER, found[0])
            ),
            name,
        )

    def _next(self, kind: str, text: str) -> str:
        self._numbers[kind] += 1
        first = self._numbers[kind]
        for number in count(first):
            new = _shaped(kind, text, number)
            if new != text and (kind, new) not in self._used:
                return new
            if kind == TOPIC and not _replaceable(text):
                return text
            if number > first + _MOST_TRIES:
                break
        raise RefusedError(f"too many names of {len(text)} characters: they cannot be replaced")


def _replaceable(text: str) -> bool:
    """Return whether a topic has more than marks that no topic may have."""
    return any(char in _LEGAL or not char.isascii() for char in text)


def _shaped(kind: str, text: str, number: int) -> str:
    """Return replacement `number`; a character that no topic may have becomes one like it."""
    if kind != TOPIC:
        return _plain(kind, len(text.encode("utf-8", "surrogateescape")), number)
    size = sum(char in _LEGAL for char in text)
    plain = iter(_plain(kind, size, number))
    return "".join(next(plain) if char in _LEGAL else _other(char, number) for char in text)


def _plain(kind: str, size: int, number: int) -> str:
    shown = str(number)
    for prefix in (kind if kind == OTHER else f"{kind}-", kind[0]):
        if len(prefix) + len(shown) <= size:
            return prefix + shown.rjust(size - len(prefix), "0")
    found, those = "", ascii_letters if kind == OTHER else _DIGITS
    for _ in range(size):
        number, rest = divmod(number, len(those))
        found = those[rest] + found
    return found


def _other(char: str, number: int) -> str:
    if char.isascii():
        return char
    if "\ud800" <= char <= "\udfff":
        return "\udcff"  # a byte that is not UTF-8
    first, many = _BLOCKS[len(char.encode())]
    return chr(first + number % many)
