r"""Records as lines from which a command-line producer writes equal records.

``kcat -P`` splits its input at one delimiter and each part at another; ``-Z`` turns empty keys and
values into null. ``kafka-console-producer.sh`` reads lines of UTF-8: headers, key and value between
tabs, with a text that stands for null. Neither takes a timestamp, and kcat takes no headers of a
single record. A record that would be produced wrongly is refused: every record is checked before
the first line is written.

Source: ``producer_run`` of kcat 1.7.1; ``org.apache.kafka.tools.LineMessageReader`` of Kafka 4.x.
"""

from abc import ABC, abstractmethod
from typing import NoReturn

from logtool.disk import shell
from logtool.dump.records import Object
from logtool.errors import RefusedError

NULL_MARKER = "__NULL__"
_ENDS = (b"\n", b"\x1e", b"\x1e\x02\x1d\x03\x1c")
"""Possible ends of a record for kcat. The first byte of each occurs in it only once, so that a
text without an end, followed by it, contains it only at its own end."""
_SEPARATORS = (b"\t", b"\x1f", b"\x1f\x02\x1d\x03\x1c")
"""Possible delimiters between key and value; no part of one begins like an end."""
_USUAL_SIZE = 900_000
"""Bytes of the largest record that kcat sends without a setting for larger ones."""


class Export(ABC):
    """Lines for a producer: call `look` for each record, `settle` once, then `line` for each."""

    def __init__(self) -> None:
        self.records = 0
        self.transactional = 0
        self.topics: dict[str | None, None] = {}
        self.partitions: dict[tuple[str | None, int | None], None] = {}

    def look(self, obj: Object) -> None:
        """Take a record into account; RefusedError if the producer cannot write it."""
        self.records += 1
        self.transactional += obj["transactional"]
        self.topics[obj["topic"]] = None
        self.partitions[obj["topic"], obj["partition"]] = None

    def settle(self) -> None:  # noqa: B027 - most have nothing to choose
        """Choose what depends on all records; RefusedError if no choice suits all of them."""

    @abstractmethod
    def line(self, obj: Object) -> bytes:
        """Return the bytes of a record with its end."""

    @abstractmethod
    def command(self) -> str:
        """Return the command that reads the lines."""

    def _refuse(self, where: str, why: str) -> NoReturn:
        raise RefusedError(
            f"{where}: {why}; nothing was written. '--records --format ndjson --values base64' "
            "prints any record; the script produce-again in the guide logtool-recipes produces it"
        )

    def _target(self) -> str:
        topic = next(iter(self.topics), None) if len(self.topics) == 1 else None
        return topic or "TOPIC"


class Kcat(Export):
    """Lines for ``kcat -P -K``."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, str] = {}
        """Place of the first null or empty key, and of the first null or empty value."""
        self._ends = list(_ENDS)
        self._separators = list(_SEPARATORS)
        self._after_no_key = list(_SEPARATORS)
        """Delimiters that occur in no value without a key."""
        self._largest = 0
        self._nulls = False

    def look(self, obj: Object) -> None:
        """Take a record into account; RefusedError for one with headers."""
        super().look(obj)
        where, key, value = place(obj), obj["key"], obj["value"]
        if obj["headers"]:
            self._refuse(where, "it has headers, but kcat gives the same headers to all records")
        for name, content in (("key", key), ("value", value)):
            if not content:
                self._first.setdefault(f"{'null' if content is None else 'empty'} {name}", where)
        if key is None and value == b"":
            self._first.setdefault("nothing", where)
        key, value, has_key = key or b"", value or b"", key is not None
        self._ends = [end for end in self._ends if end not in key and end not in value]
        self._separators = [one for one in self._separators if one not in key]
        if not has_key:
            self._after_no_key = [one for one in self._after_no_key if one not in value]
        if not (self._ends and self._separators):
            self._refuse(where, "every delimiter that kcat supports occurs in a record up to it")
        self._largest = max(self._largest, len(key) + len(value))

    def settle(self) -> None:
        """Choose delimiters, and whether kcat turns empty keys and values into null."""
        first = self._first
        empty = first.get("empty value") or first.get("empty key")
        self._nulls = "null value" in first or ("null key" in first and not empty)
        if self._nulls and empty:
            null = first["null value"]
            self._refuse(
                empty,
                (
                    f"the option with which kcat reads the null at {null} also turns "
                    "empty keys and values into null"
                ),
            )
        if self._nulls:
            return
        if "nothing" in first:
            self._refuse(
                first["nothing"], ("kcat skips records without a key and with an empty value")
            )
        if "null key" in first:
            self._separators = [one for one in self._separators if one in self._after_no_key]
        if not self._separators:
            self._refuse(first["null key"], "kcat finds a key in every value with its delimiter")

    def line(self, obj: Object) -> bytes:
        """Return key, delimiter and value; without a key the value alone, unless -Z is given."""
        key, value, end = obj["key"], obj["value"] or b"", self._ends[0]
        if key is None and not self._nulls:
            return value + end
        return (key or b"") + self._separators[0] + value + end

    def command(self) -> str:
        """Return kcat with the delimiters that were chosen."""
        one = len(self.partitions) == 1
        number = next(iter(self.partitions))[1] if one else None
        parts = ["kcat -P -b HOST:PORT -t", shell.quote(self._target())]
        parts += [] if number is None else [f"-p {number}"]
        parts += ["-K", shell.quote(_escaped(self._separators[0]))]
        parts += ["-D", shell.quote(_escaped(self._ends[0]))]
        parts += ["-Z"] if self._nulls else []
        if self._largest > _USUAL_SIZE:
            parts.append(f"-X message.max.bytes={self._largest + 100_000}")
        return " ".join(parts)


class ConsoleProducer(Export):
    """Lines for ``kafka-console-producer.sh`` with ``parse.key`` and ``parse.headers``."""

    def look(self, obj: Object) -> None:
        """Take a record into account; RefusedError for one that cannot be a line of text."""
        super().look(obj)
        self._say(obj)

    def line(self, obj: Object) -> bytes:
        """Return headers, key and value with tabs between them."""
        return self._say(obj)

    def command(self) -> str:
        """Return the producer with the properties that the lines need."""
        reader = ("parse.key=true", "parse.headers=true", f"null.marker={NULL_MARKER}")
        tool, topic = "kafka-console-producer.sh", shell.option("--topic", self._target())
        properties = (f"--reader-property {one}" for one in reader)
        return " ".join([tool, "--bootstrap-server HOST:PORT", topic, *properties])

    def _say(self, obj: Object) -> bytes:
        where = place(obj)
        pairs = []
        for name, value in obj["headers"]:
            said = self._text(where, "the name of a header", name, b"\t,:")
            content = self._text(where, "the value of a header", value, b"\t,")
            pairs.append(said + b":" + content)
        headers = b",".join(pairs) if pairs else NULL_MARKER.encode()
        key = self._text(where, "its key", obj["key"], b"\t")
        value = self._text(where, "its value", obj["value"], b"")
        return b"\t".join((headers, key, value)) + b"\n"

    def _text(self, where: str, what: str, content: bytes | None, forbidden: bytes) -> bytes:
        marker = NULL_MARKER.encode()
        if content is None:
            return marker
        if content == marker:
            self._refuse(where, f"{what} is {NULL_MARKER}, which stands for null")
        try:
            content.decode()
        except UnicodeDecodeError:
            self._refuse(where, f"{what} is not UTF-8, but the console producer reads text")
        for octet in b"\n\r" + forbidden:
            if octet in content:
                named = _NAMES[octet]
                self._refuse(where, f"{what} has a {named}, at which the console producer ends it")
        return content


_NAMES = {10: "line feed", 13: "carriage return", 9: "tab", 44: "comma", 58: "colon"}


def place(obj: Object) -> str:
    """Return the place of a record as text."""
    if obj["offset"] is None:
        return f"{obj['path']}: Raft offset {obj['raft_offset']}"
    return f"{obj['path']}: offset {obj['offset']}"


def _escaped(delimiter: bytes) -> str:
    named = {10: "\\n", 9: "\\t"}
    return "".join(named.get(octet, f"\\x{octet:02x}") for octet in delimiter)
