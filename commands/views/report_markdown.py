"""A report as Markdown, short enough for a ticket."""

from collections.abc import Iterator, Sequence

from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views.doctor import ANSWERS, LABELS, sentences
from logtool.commands.views.findings import to_repair
from logtool.commands.views.report_content import Content

_MOST_ROWS = 50
"""Findings and actions that are listed."""
_NOT_ANSWERS = ("node", "remedy", "next")


def ticket(content: Content) -> str:
    """Return the text."""
    return "\n".join(_lines(content)) + "\n"


def _lines(content: Content) -> Iterator[str]:
    yield f"# {_text(content.verdict)}"
    yield ""
    yield f"logtool {content.version}, {content.made_at}, exit status {content.status}:"
    yield from (f"- {_code(path)}" for path in content.paths)
    for rows in content.nodes():
        yield from _answers(rows)
    findings = content.rows_of("finding")
    worst = [row for row in findings if row["severity"] != "info"]
    yield from _table(
        f"Findings ({len(worst):,} errors and warnings, {len(findings) - len(worst):,} infos)",
        ("severity", "code", "place", "byte", "finding"),
        [
            (row["severity"], _code(row["code"]), _code(content.relative(row["path"])),
             _text(row["position"]), _text(row["message"]))
            for row in sorted(worst, key=lambda row: row["severity"])
        ],
    )  # fmt: skip
    yield from _table(
        "Next start",
        ("action", "file", "records lost", "reason"),
        [
            (_code(row["action"]), _code(content.relative(row["path"])),
             _text(row["lost_records"]), _text(row["reason"]))
            for row in content.rows_of("action")
        ],
    )  # fmt: skip
    yield from _table(
        "Logs that end below their high watermark",
        ("partition", "high watermark", "log end after the start"),
        [
            (_code(one.request.path.name), _text(one.request.high_watermark), _text(one.log_end))
            for one in content.forecasts
            if one.lost_acknowledged
        ],
    )
    if content.unread:
        yield from ("", "## Not read", "")
        yield from (f"- {_text(one)}" for one in content.unread)


def _answers(rows: Sequence[Object]) -> Iterator[str]:
    node = next((row["node"] for row in rows if row["type"] == "node"), None)
    yield from ("", "## Summary" if node is None else f"## Broker {node}", "")
    for row in rows:
        if row["type"] == "remedy":
            words = to_repair(row["findings"], row["remedy"], row["command"])
            yield f"- {_text(words)}" + (f": {_code(row['command'])}" if row["command"] else "")
        elif row["type"] in ANSWERS and row["type"] not in _NOT_ANSWERS:
            label = LABELS.get(row["type"], row["type"])
            yield f"- **{label}** ({row['state']}): {_text(' '.join(sentences(row)))}"
    for row in rows:
        if row["type"] == "next":
            yield f"- Next, {_text(row['reason'])}: {_code(row['command'])}"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield from ("", f"## {title}", "")
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for row in rows[:_MOST_ROWS]:
        yield f"| {' | '.join(row)} |"
    if len(rows) > _MOST_ROWS:
        yield f"\n{len(rows) - _MOST_ROWS:,} more rows are not listed."


def _text(value: object) -> str:
    """Return a value as text: nothing in it is markup, a cell's end or a control character."""
    shown = text.escape(text.cell(value))
    return "".join(f"\\{char}" if char in r"\`*_{}[]<>#|~" else char for char in shown)


def _code(value: object) -> str:
    """Return a value between backticks, as many as it needs."""
    shown = text.escape(str(value)).replace("|", "\\|")
    longest = max((len(run) for run in shown.split() if set(run) == {"`"}), default=0)
    fence = "`" * (longest + 1 if "`" not in shown else longest + 2)
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
