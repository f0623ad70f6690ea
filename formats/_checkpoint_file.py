"""The grammar that the offset checkpoints and the leader epoch checkpoint share.

======  ====================================================================
line 1  version: 0
line 2  count: the number of lines that follow
others  one entry each, its fields separated by white space
======  ====================================================================

UTF-8. A file of 0 bytes and a file of only the first line are legal and hold no entry. Numbers
stand alone: no white space around those of the first two lines. White space before the first field
makes one field more, white space after the last is harmless, an empty line is an entry without
fields. Source: ``CheckpointFile`` (Kafka 4.0.0-SNAPSHOT, 1eb7644349c).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from logtool.findings import Finding
from logtool.formats.java_text import SPACE, Line, parse_int, split, split_lines
from logtool.formats.refusal import Refusal
from logtool.lazy_dataclass import dataclass

VERSION = 0

_SPACES = re.compile(f"{SPACE}+")


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """The lines of a checkpoint and what the first two say."""

    lines: tuple[Line, ...]
    """Every line with its bytes: the whole file."""

    @property
    def version(self) -> int | None:
        """Return the version; None where line 1 is missing or no number."""
        return _number(self.lines[:1])

    @property
    def count(self) -> int | None:
        """Return the promised number of entries; None where line 2 is missing or no number."""
        return _number(self.lines[1:2])

    @property
    def entries(self) -> tuple[Line, ...]:
        """Return the lines of the entries, the malformed ones included."""
        return self.lines[2:]


def parse(data: bytes) -> CheckpointFile:
    """Split `data` into lines. Never fails."""
    return CheckpointFile(split_lines(data))


def encode(file: CheckpointFile) -> bytes:
    """Return the bytes `parse` was given; the two are exact inverses."""
    return b"".join(line.raw for line in file.lines)


def build(entries: Collection[str]) -> CheckpointFile:
    """Return the file that Kafka writes for the text of `entries`."""
    lines = [str(VERSION), str(len(entries)), *entries]
    return parse("".join(f"{line}\n" for line in lines).encode("utf-8"))


def check(
    file: CheckpointFile, area: str, fields: str, malformed: Collection[int]
) -> Iterator[Finding]:
    """Yield every broken rule of the grammar, in file order.

    `area` begins the codes, `fields` says what an entry should hold, `malformed` are the numbers
    of the entry lines that could not be read. Neighbouring malformed lines are one finding.
    """
    if file.lines and file.version != VERSION:
        yield line_finding(f"{area}/version", file.lines[0], f"version {VERSION}")
    if len(file.lines) > 1 and file.count != len(file.entries):
        yield line_finding(
            f"{area}/count",
            file.lines[1],
            f"a count of {len(file.entries)}, the number of the following lines",
        )
    for first, last in _runs(line for line in file.entries if line.number in malformed):
        more = f" (and so on up to line {last.number})" if last is not first else ""
        yield Finding(
            f"{area}/malformed-line",
            f"line {first.number}: expected {fields}, found {first.quoted}{more}",
            position=first.position,
            length=last.position + len(last.raw) - first.position,
        )


def refusal(
    file: CheckpointFile,
    unread: Sequence[Line],
    fields: str,
    readers: Sequence[Callable[[str], int | None] | None],
) -> Refusal | None:
    """Return where Kafka's reader gives up; None where it takes the file.

    `unread` are the entries that could not be read. `readers` has for each field of an entry what
    reads its number, None for a word. A number of an entry that cannot be read is no I/O error, and
    neither is a negative count. Source: ``CheckpointFile.CheckpointReadBuffer`` (Kafka 3.3 to 3.9).
    """
    for line in (*file.lines[:2], *unread):
        # Characters are decoded ahead of the lines.
        if line.text is None:
            return _refused(line, "UTF-8", is_io_error=True)
    for line, expected in zip(file.lines, (f"version {VERSION}", "a count"), strict=False):
        if parse_int(line.text or "") is None:
            return _refused(line, expected, is_io_error=True)
        if line.number == 1 and file.version != VERSION:
            return _refused(line, expected, is_io_error=True)
    if len(file.lines) < 2:
        return None
    if (file.count or 0) < 0:
        return _refused(file.lines[1], "a count of at least 0", is_io_error=False)
    for line in unread:
        words = split_fields(line)
        if len(words) != len(readers):
            return _refused(line, fields, is_io_error=True)
        for reader, word in zip(readers, words, strict=True):
            if reader and reader(word) is None:
                return _refused(line, fields, is_io_error=False)
    if file.count != len(file.entries):
        expected = f"a count of {len(file.entries)}, the number of the following lines"
        return _refused(file.lines[1], expected, is_io_error=True)
    return None


def _refused(line: Line, expected: str, *, is_io_error: bool) -> Refusal:
    text = f"line {line.number}: expected {expected}, found {line.quoted}"
    return Refusal(text, line.position, is_io_error)


def split_fields(line: Line) -> list[str]:
    """Return the fields of an entry as Kafka's reader sees them; none where it is not UTF-8."""
    text = line.text
    return [] if text is None else split(text, _SPACES)


def line_finding(code: str, line: Line, expected: str) -> Finding:
    """Return the finding for one line: what was `expected`, and the line as it is."""
    return Finding(
        code,
        f"line {line.number}: expected {expected}, found {line.quoted}",
        position=line.position,
        length=len(line.raw),
    )


def _number(lines: tuple[Line, ...]) -> int | None:
    text = lines[0].text if lines else None
    return None if text is None else parse_int(text)


def _runs(lines: Iterable[Line]) -> Iterator[tuple[Line, Line]]:
    first = last = None
    for line in lines:
        if last and line.number == last.number + 1:
            last = line
            continue
        if first and last:
            yield first, last
        first = last = line
    if first and last:
        yield first, last
