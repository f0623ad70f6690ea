"""The guides: pages of section 7 of the manual, made from the Markdown in ``man/``.

Most are written by hand. Two are made from the source: the file formats from what the modules of
`logtool.formats` say of them, and the findings from the catalogue.
"""

import importlib
import pkgutil
import re

from logtool import formats
from logtool.commands.program import manual, roff
from logtool.findings import REACTIONS, Rule, catalogue

_TITLE = re.compile(r"# (logtool[a-z-]*): (.+)\n")
_BORDER = re.compile(r"[=-]+( +[=-]+)*")

_FINDINGS = """\
# logtool-findings: every finding that logtool reports

<!-- `logtool generate` makes this page from logtool/catalogue.toml. -->

A finding has a code, which scripts may rely on, and a severity. An `error` means that records are
unreadable, are lost or will be lost, or that a broker will not start. A `warning` means an
inconsistency that loses no record. An `info` is legal, but worth knowing.

A broker notices a problem at one of four occasions: `always` at its next start, `if-unclean` only
at a start after an unclean shutdown, `never`, and `refuses-to-start`.

The remedy says how the problem is mended. `broker`: the next start mends it. `recover`: `logtool
recover --apply` mends it without loss, with `--full` if the segment lies below the recovery point.
`checkpoint`: `logtool checkpoint rebuild --apply` mends it; `partition.metadata`, if another file
of the log dir has the topic id. `loss`: mending it costs records, which `--accept-loss` has to
allow; another copy may have them. `replica`: another copy is needed. `none`: nothing is to be
mended, or an operator mends it by hand.

A section says what the next start of a broker does, what retention and the log cleaner do, what a
follower does, and what a consumer does. Where a part is missing, the problem changes nothing there.

`logtool explain CODE` prints one of the sections below."""

_FORMATS = """\
# logtool-formats: the files of a log directory, byte by byte

<!-- `logtool generate` makes this page from the docstrings of the modules in formats/. -->

Each section describes one file, and names its source: a class and a release of Kafka. Integers are
big-endian and signed, unless a table shows another type.

Sections with a name that begins with Redpanda describe its files, with little-endian integers.
Batches, segments and base indexes (version 9) were compared with files that Redpanda wrote, all
other files only with its source code. `logtool dump` prints segments and base indexes. All commands
read segments, except commands about files that Redpanda does not have; these commands report it.
`verify`, `lookup`, `plan` and `sanity` also read base indexes."""


def made() -> dict[str, str]:
    """Return the Markdown of the guides that are made from the source, by name."""
    return {"logtool-formats": _formats(), "logtool-findings": _findings()}


def summary(name: str, text: str) -> str:
    """Return the summary in the first line of the guide `name`.

    Raises:
        ValueError: the first line is not ``# NAME: SUMMARY``.

    """
    match = _TITLE.match(text)
    if not match or match[1] != name:
        raise ValueError(f"{name}.md does not begin with '# {name}: SUMMARY'")
    return match[2]


def render(name: str, text: str, others: list[str], date: str) -> str:
    """Return the man page of the guide `name`, with the date of the release.

    Args:
        name: the name of the guide.
        text: its Markdown.
        others: the names of all guides.
        date: the date of the newest release.

    Raises:
        ValueError: the first line is not ``# NAME: SUMMARY``.

    """
    see_also = [("logtool", 1), *((other, 7) for other in others if other != name)]
    lines = [
        "'\\\" t",
        *manual.heading(name, 7, date),
        ".SH NAME",
        f"{roff.escape(name)} \\- {roff.escape(summary(name, text))}",
        ".SH DESCRIPTION",
        *roff.from_markdown(text),
        ".SH SEE ALSO",
        ", ".join(f"\\fB{roff.escape(page)}\\fR({section})" for page, section in see_also),
    ]
    return "\n".join(lines) + "\n"


def _findings() -> str:
    lines = [_FINDINGS]
    area = ""
    for rule in catalogue().values():
        if rule.code.split("/")[0] != area:
            area = rule.code.split("/")[0]
            lines += ["", f"## {area}"]
        lines += _finding(rule)
    return "\n".join(lines) + "\n"


def _finding(rule: Rule) -> list[str]:
    parts = (
        ("What it means", rule.meaning),
        *((f"What {REACTIONS[role]}", text) for role, text in rule.broker_does.items()),
        ("What to do", rule.action),
        *((("What Redpanda does", rule.redpanda),) if rule.redpanda else ()),
    )
    lines = ["", f"### {rule.code}", "", _sentence(rule.title)]
    lines += [
        f"Severity: `{rule.severity}`. A broker notices: `{rule.broker}`. Remedy: `{rule.remedy}`."
    ]
    for heading, text in parts:
        lines += ["", f"**{heading}.** {' '.join(text.split())}"]
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _formats() -> str:
    lines = [_FORMATS]
    for module in _modules():
        first, _, rest = (importlib.import_module(module).__doc__ or "").strip().partition("\n")
        room, _, name = module.removeprefix(f"{formats.__name__}.").rpartition(".")
        heading = name.replace("_", " ")
        if room == "redpanda":  # whose files have the names that Kafka's have
            heading = f"Redpanda: {heading}"
        lines += ["", f"## {heading}", "", first.replace("``", "`"), *_markdown(rest)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _modules() -> list[str]:
    """Return the modules that describe a file, the module about names first."""
    modules = pkgutil.walk_packages(formats.__path__, f"{formats.__name__}.")
    public = [m.name for m in modules if "._" not in m.name and not m.ispkg]
    described = [name for name in public if "Source:" in str(importlib.import_module(name).__doc__)]
    return sorted(described, key=lambda name: (name != f"{formats.__name__}.names", name))


def _markdown(docstring: str) -> list[str]:
    """Return a docstring as Markdown: its tables and literal blocks as they are, fenced."""
    lines: list[str] = []
    for block in re.split(r"\n\n+(?! )", docstring.strip("\n")):
        rows = block.split("\n")
        if _BORDER.fullmatch(rows[0]):
            lines += ["", "```", *_aligned(rows), "```"]
            continue
        prose, _, below = block.partition("::\n\n")
        lines += ["", *prose.replace("``", "`").split("\n")]
        if below:
            lines[-1] += ":"
            lines += ["", "```", *(row.removeprefix("    ") for row in below.split("\n")), "```"]
    return lines


def _aligned(rows: list[str]) -> list[str]:
    """Return the rows of a table without quotes, each column as wide as it then must be."""
    starts = [m.start() for m in re.finditer("[=-]+", rows[0])]
    ends = [*starts[1:], max(map(len, rows))]
    spans = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    cells = [
        None if _BORDER.fullmatch(row) else [row[span].strip().replace("`", "") for span in spans]
        for row in rows
    ]
    filled = [row for row in cells if row is not None]
    widths = [max(map(len, column)) for column in zip(*filled, strict=True)]
    made = []
    for row in cells:
        words = ["-" * width for width in widths] if row is None else row
        made.append("  ".join(map(str.ljust, words, widths)).rstrip())
    return made
