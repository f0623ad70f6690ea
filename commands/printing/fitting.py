"""Tables as wide as a terminal: which columns are shown, which texts are wrapped, and records.

A number, a size and a time are never broken. Texts are broken between words, paths and long names
behind a slash, a dot, a hyphen or an underscore that a letter follows, names of records between
their words.
"""

import re
import textwrap
from collections.abc import Sequence

from logtool.lazy_dataclass import dataclass

GAP = 2
"""Characters between two columns."""
NARROW = 60
"""Columns of a terminal below which a row is a record: a line for each value."""
_LEAST_TEXT = 20
"""Characters that a column of texts keeps before another column gives way."""
_LONGEST = 1000
"""Characters of one cell that are wrapped; what is longer is cut, and says so."""
_BREAK = re.compile(r"(?<=\s)(?=\S)|(?<=[/._-])(?<!\d{20}\.)(?=[^\W\d]|/)")
"""The places at which a cell may be broken; the name of a segment stays whole."""
_NAME = re.compile(r"(?:[A-Z][a-z]{2,}){2,}(?: [a-z]+)?")
"""A name such as ``ConsumerGroupTargetAssignmentMember``, of the records of brokers."""
_HUMP = re.compile(rf"{_BREAK.pattern}|(?<=[a-z])(?=[A-Z])")
"""The places at which such a name may be broken, too: it takes half of a terminal."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""The parts of a painted text that a terminal does not show."""
_PROGRAM = r"(?:logtool|kafka-[a-z-]+\.sh|kcat|printf|echo|ls|cp|mv|rm) "
"""The beginning of a command to be copied."""
_WHOLE = re.compile(rf"(?: {{2,}})?(?:{_PROGRAM}|# )| \S")
"""The beginning of a line that is never folded."""
_BEFORE_COMMAND = re.compile(rf"(?:(?<=:) | {{2,}})(?={_PROGRAM})")
"""The end of a text before a command to be copied."""
_SILENT = {"", "0", "false"}
"""Cells that say nothing: a column of them gives way before others."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The fit of a block of rows to a width."""

    shown: tuple[int, ...]
    """The columns that are shown, from 0, in their order."""
    widths: tuple[int, ...]
    """Width of each shown column, in characters; its texts are wrapped to it."""
    as_records: bool
    """True if not even the columns that must be shown fit next to each other."""


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Return the lines of a table of plain cells, as tabulate lays it out: title, rule, rows.

    Each character is one column wide; `right` says which columns are aligned there. Tabulate, which
    knows every other cell, takes longer to import than most tables take to be printed.
    """
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    gap = " " * GAP
    return [
        gap.join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        ).rstrip()
        for cells in (titles, rule, *rows)
    ]


def fits(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether a block of rows fits into `width` characters as it is."""
    return _total([max(map(len, column)) for column in zip(titles, *rows, strict=True)]) <= width


def fit(
    titles: Sequence[str], rows: Sequence[Sequence[str]], kept: Sequence[bool], width: int
) -> Fit:
    """Choose the columns of a block of rows for `width` characters.

    Columns give way, the rightmost first: those that say nothing and are not `kept`, the others
    that are not, those that are and say nothing. No empty one that is not kept stands where one
    that says something gave way. Then texts are wrapped.
    """
    cells = range(len(titles))
    natural = [max([len(titles[i]), *(len(row[i]) for row in rows)]) for i in cells]
    least = [max([len(titles[i]), *(_least(row[i]) for row in rows)]) for i in cells]
    least = [min(natural[i], least[i]) for i in cells]
    silent = [all(row[i] in _SILENT for row in rows) for i in cells]
    empty = [not any(row[i] for row in rows) for i in cells]
    yielding = sorted(
        (i for i in cells if silent[i] or not kept[i]),
        key=lambda i: (kept[i], not silent[i], not empty[i], -i),
    )
    shown, gone = list(cells), []
    for i in yielding:
        if _total([least[i] for i in shown]) <= width:
            break
        shown.remove(i)
        gone.append(i)
    for i in reversed(gone):  # a narrow one may fit that went before a wide one did
        if empty[i] and not kept[i] and not all(silent[k] or k in shown for k in gone):
            continue
        if _total([least[k] for k in (*shown, i)]) <= width:
            shown = sorted((*shown, i))
    widths = [natural[i] for i in shown]
    while (over := _total(widths) - width) > 0:
        # The widest gives first, down to the next one or as far as it can.
        room = [have - least[i] for have, i in zip(widths, shown, strict=True)]
        at = max(range(len(shown)), key=lambda k: (room[k] > 0, widths[k]))
        if room[at] <= 0:
            break
        widths[at] -= min(over, room[at])
    narrow = width < NARROW and len(shown) < len(titles)
    return Fit(tuple(shown), tuple(widths), as_records=narrow or _total(widths) > width)


def wrapped(value: str, width: int) -> str:
    """Return a cell as lines of at most `width` characters, where it can be broken."""
    if len(value) > _LONGEST:
        value = f"{value[:_LONGEST]}... ({len(value):,} characters, see --wide)"
    if len(value) <= width:
        return value
    return "\n".join(_lines(value, width))


def folded(lines: str, width: int | None, indent: int = 2) -> str:
    """Return lines of text, each folded between words, with all but its first line indented.

    A line that begins with a command, with # as a comment of a script does, or with one space as
    the row of a chart does, is left as it is: what is copied from a terminal must be what was
    printed. No path is broken, for the same reason, and a command at the end of a line stands on a
    line of its own.
    """
    if width is None:
        return lines
    return "\n".join(_folded(line, width, " " * indent) for line in lines.split("\n"))


def _folded(line: str, width: int, indent: str) -> str:
    if len(_STYLE.sub("", line)) <= width or _WHOLE.match(line):
        return line
    bare = line.lstrip(" ")
    before = line[: len(line) - len(bare)]
    text, *command = _BEFORE_COMMAND.split(bare, maxsplit=1)
    filled = textwrap.fill(
        text, width, initial_indent=before, subsequent_indent=before + indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return f"{filled}\n{before}{indent}{command[0]}" if command else filled


def record(titles: Sequence[str], row: Sequence[str], width: int) -> str:
    """Return a row as lines of title and value; values that are empty are left out."""
    left = max(map(len, titles)) + GAP
    lines = []
    for title, value in zip(titles, row, strict=True):
        if value:
            inner = wrapped(value, max(width - left, _LEAST_TEXT)).split("\n")
            lines += [f"{title:<{left}}{inner[0]}", *(" " * left + more for more in inner[1:])]
    return "\n".join(lines)


def _least(cell: str) -> int:
    """Return how narrow a cell may become: its longest part fits, and short texts stay whole."""
    return min(len(cell), max([_LEAST_TEXT, *(len(part.rstrip()) for part in _parts(cell))]))


def _parts(cell: str) -> list[str]:
    """Return the pieces of a cell between which a line may break."""
    return (_HUMP if _NAME.fullmatch(cell) else _BREAK).split(cell)


def _lines(value: str, width: int) -> list[str]:
    lines, line = [], ""
    for part in _parts(value):
        if line and len(line) + len(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
    return [*lines, line.rstrip()]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)
