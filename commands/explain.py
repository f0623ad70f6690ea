"""``logtool explain``: what a finding means and what to do about it. Reads no data."""

import difflib
import textwrap
from typing import Annotated, Any

import typer

from logtool.commands import options
from logtool.commands.output import Report, View
from logtool.commands.printing import text
from logtool.commands.printing.writers import Object, columns
from logtool.commands.program.spread import Without, spread
from logtool.errors import UsageError
from logtool.findings import Rule, catalogue
from logtool.running.summary import Summary

SCHEMA = "logtool.explain/1"
WIDTH = 88

Code = Annotated[
    str | None,
    typer.Argument(
        metavar="[CODE]", help="The code of a finding, such as batch/crc.", show_default=False
    ),
]

_LIST = columns("code", "severity", "broker", "title")
_ALL = (*_LIST, *columns("meaning", "broker_does", "action", "redpanda"))


@spread
def explain(
    *,
    code: Code = None,
    printing: Annotated[options.Printing, Without("progress", "quiet", "verbose")],
) -> None:
    """Explain what a finding means, what a broker does about it, and what to do.

    Without a code it lists every code, with its severity and whether a broker notices.

    Examples:
      logtool explain
      logtool explain batch/crc

    Exit status:
      0    the code was explained
      2    there is no such code

    """
    rules = [_find(code)] if code is not None else list(catalogue().values())
    lines = {"table": _page} if code is not None else {}
    view = View(
        schema=SCHEMA,
        columns=_LIST if code is None else _ALL,
        layout=lambda _: _LIST,
        lines=lines,
        row_types=_ROW_TYPES,
    )
    with Report(settings=printing.settings(), view=view, summary=Summary()) as report:
        for rule in rules:
            report.item(_as_json(rule))
    raise typer.Exit(report.exit_status())


_ROW_TYPES = frozenset({"rule"})


def _find(code: str) -> Rule:
    known = catalogue()
    if code in known:
        return known[code]
    near = difflib.get_close_matches(code, known, n=3) or [c for c in known if code in c][:3]
    hint = f"; did you mean {' or '.join(near)}?" if near else "; see 'logtool explain'"
    raise UsageError(f"there is no code {text.quote(code)}{hint}")


def _as_json(rule: Rule) -> dict[str, Any]:
    return {
        "type": "rule",
        "code": rule.code,
        "severity": str(rule.severity),
        "broker": str(rule.broker),
        "title": rule.title,
        "meaning": rule.meaning,
        "broker_does": rule.broker_does,
        "action": rule.action,
        "redpanda": rule.redpanda,
    }


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
