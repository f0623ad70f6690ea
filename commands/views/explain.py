"""The view of the catalogue of findings: a list of all entries, or a page about one."""

import difflib
import shutil
import textwrap
from typing import Final

from logtool.commands import options
from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns, keep
from logtool.commands.views.rows import RowPrinter
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.findings import REACTIONS, Rule, catalogue
from logtool.running.summary import Summary
from logtool.schemas.columns import Column, Kind, Table, Way
from logtool.schemas.document import Document
from logtool.schemas.tables import FINDING

WIDEST = 88
"""Columns of a page, at most: longer lines are hard to read."""

_RULE = Table("rule", "code of a finding", (
    Column("code", Kind.STRING, "code of the finding", pattern=FINDING["code"].pattern),
    Column("severity", Kind.STRING, "severity of the finding", words=FINDING["severity"].words),
    Column("broker", Kind.STRING, "whether a broker reacts to the finding at its next start",
           words=FINDING["broker"].words),
    FINDING["remedy"],
    Column("title", Kind.STRING, "the finding in one line"),
    Column("meaning", Kind.STRING, "the rule, and how the damage comes about"),
    *(Column(role, Kind.STRING, f"what {words} about the finding", null="it changes nothing")
      for role, words in REACTIONS.items()),
    Column("action", Kind.STRING, "what an operator should do"),
    Column("redpanda", Kind.STRING, "what Redpanda does, if it differs",
           null="the finding does not occur in a directory of Redpanda"),
), note="One entry of the catalogue.", type="rule", made_from="logtool.findings:Rule")  # fmt: skip
DOCUMENT: Final = Document(
    name="explain", title="Objects that logtool explain prints", tables=(_RULE,)
)
_LIST = columns("code", "severity", "broker", "remedy", "title")
_NARROW = keep(_LIST, "code", "title")


def run(code: str | None, printing: options.Printing) -> Exit:
    """Print the entry of a code, or the list of all; return the exit status.

    UsageError where there is no such code.
    """
    rules = [_find(code)] if code is not None else list(catalogue().values())
    view = make(one=code is not None)
    report = Report(settings=printing.settings(), view=view, summary=Summary())
    return report.consume(rules, RowPrinter(report, DOCUMENT.row))


def make(*, one: bool) -> View:
    """Return the view of `explain`: `one` entry as a whole, or the list of all."""
    return View(
        schema=DOCUMENT.schema,
        columns=columns(*_RULE.names(Way.CSV)) if one else _LIST,
        layout=lambda _: _NARROW,
        lines={"table": _page} if one else {},
        row_types=frozenset({"rule"}),
    )


def _find(code: str) -> Rule:
    known = catalogue()
    if code in known:
        return known[code]
    near = difflib.get_close_matches(code, known, n=3) or [c for c in known if code in c][:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see 'logtool explain'"
    raise UsageError(f"there is no finding with the code {text.quote(code)}{hint}")


def _page(obj: Object) -> str:
    """Return the whole entry as a person reads it."""
    blocks = [
        f"{obj['code']}: {obj['title']}",
        f"Severity: {obj['severity']}. A broker notices: {obj['broker']}. Remedy: {obj['remedy']}.",
    ]
    sections = {
        "meaning": "What it means",
        **{role: f"What {words}" for role, words in REACTIONS.items()},
        "action": "What to do",
        "redpanda": "What Redpanda does",
    }
    for key, title in sections.items():
        if obj[key] is not None:
            blocks.append(f"{title}\n{_filled(obj[key])}")
    return "\n\n".join(blocks)


def _filled(paragraphs: str) -> str:
    """Return paragraphs as wide as the terminal; 80 columns wide without a terminal."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    filled = [
        textwrap.fill(
            " ".join(p.split()),
            width,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for p in paragraphs.split("\n\n")
    ]
    return "\n\n".join(filled)
