"""The view of the catalogue of findings: a list of all entries, or a page about one."""

import textwrap
from typing import Final

from logtool.commands.output import View
from logtool.commands.printing.writers import Object, columns
from logtool.schemas.columns import Column, Kind, Table, Way
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

WIDTH = 88

_RULE = Table("rule", "code of a finding", (
    Column("code", Kind.STRING, "code of the finding", pattern=FINDING["code"].pattern),
    Column("severity", Kind.STRING, "how bad it is", words=FINDING["severity"].words),
    Column("broker", Kind.STRING, "whether a broker does something about it at its next start",
           words=FINDING["broker"].words),
    Column("title", Kind.STRING, "the finding in one line"),
    Column("meaning", Kind.STRING, "the rule, and how the damage comes about"),
    Column("broker_does", Kind.STRING, "how a broker deals with it"),
    Column("action", Kind.STRING, "how a person deals with it"),
    Column("redpanda", Kind.STRING, "differences in a directory of Redpanda",
           null="it does not occur there"),
), note="One entry of the catalogue.", type="rule", made_from="logtool.findings:Rule")  # fmt: skip
DOCUMENT: Final = Document(name="explain", title="What logtool explain prints", tables=(_RULE,))
SCHEMA = DOCUMENT.schema
_LIST = columns("code", "severity", "broker", "title")


def make(*, one: bool) -> View:
    """Return the view of `explain`: `one` entry as a whole, or the list of all."""
    return View(
        schema=SCHEMA,
        columns=columns(*_RULE.names(Way.CSV)) if one else _LIST,
        layout=lambda _: _LIST,
        lines={"table": _page} if one else {},
        row_types=frozenset({"rule"}),
    )


def _page(obj: Object) -> str:
    """Return the whole entry as a person reads it."""
    blocks = [
        f"{obj['code']}: {obj['title']}",
        f"Severity: {obj['severity']}. A broker notices: {obj['broker']}.",
    ]
    sections = ("meaning", "broker_does", "action", "redpanda")
    titles = ("What it means", "What a broker does", "What to do", "What Redpanda does")
    for title, key in zip(titles, sections, strict=True):
        if obj[key] is not None:
            blocks.append(f"{title}\n{_filled(obj[key])}")
    return "\n\n".join(blocks)


def _filled(paragraphs: str) -> str:
    filled = [
        textwrap.fill(
            " ".join(p.split()),
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for p in paragraphs.split("\n\n")
    ]
    return "\n\n".join(filled)
