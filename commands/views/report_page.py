"""A report as one HTML page that needs nothing else: no file, no font, no script from elsewhere."""

from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files

from logtool.commands.printing import text
from logtool.commands.printing.writers import Object
from logtool.commands.views import report_charts
from logtool.commands.views.doctor import ANSWERS, LABELS, sentences
from logtool.commands.views.findings import to_repair
from logtool.commands.views.report_content import MOST_LOGS, Content

_STATES = {"good": "ok", "info": "info", "warning": "warning", "error": "error"}
_NOT_ANSWERS = ("node", "remedy", "next")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(content: Content) -> str:
    """Return the page."""
    parts = (
        _head(content),
        *(_answers(content, node) for node in content.nodes()),
        _findings(content),
        _actions(content),
        _watermarks(content),
        _map(content),
        _timeline(content),
        _unread(content),
    )
    title = _text(f"logtool report: {content.verdict}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{title}</title>\n<style>\n{_file('report.css')}</style>\n</head>\n<body>\n"
        + "".join(part for part in parts if part)
        + f"<script>\n{_file('report.js')}</script>\n</body>\n</html>\n"
    )


@cache
def _file(name: str) -> str:
    return files("logtool.commands.views").joinpath(name).read_text("utf-8")


def _text(value: object) -> str:
    """Return a value as text of the page: nothing in it is markup or a control character."""
    return escape(text.escape(text.cell(value)))


def _path(value: str) -> str:
    """Return a path, which may be broken behind a slash."""
    return f"<code>{_text(value).replace('/', '/<wbr>')}</code>"


def _badge(state: str) -> str:
    return f'<span class="badge {state}">{_STATES.get(state, state)}</span>'


def _section(name: str, title: str, body: str, note: str = "") -> str:
    about = f"<p>{note}</p>" if note else ""
    return f'<section id="{name}">\n<h2>{title}</h2>\n{about}{body}</section>\n'


def _table(
    name: str, columns: Sequence[str], rows: Iterator[str], *, filters: bool, infos: bool = False
) -> str:
    heads = "".join(f'<th scope="col">{column}</th>' for column in columns)
    box = ""
    if filters:
        box = (
            f'<p class="filter"><label>Filter <input type="search" data-for="{name}"></label> '
            + (
                f'<label><input type="checkbox" data-infos="{name}"> infos</label> '
                if infos
                else ""
            )
            + f'<span data-count="{name}"></span></p>'
        )
    return (
        f'{box}<div class="wide"><table id="{name}" class="{"sorted" if filters else ""}">'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>\n"
    )


def _cells(*cells: str | tuple[str, object], kind: str = "") -> str:
    """Return a row; a cell with a number to sort by is a pair of its text and that number."""
    shown = (
        f"<td>{cell}</td>" if isinstance(cell, str) else f'<td data-key="{cell[1]}">{cell[0]}</td>'
        for cell in cells
    )
    return f"<tr{kind and f' class={kind}'}>{''.join(shown)}</tr>\n"


def _head(content: Content) -> str:
    facts = (
        ("Log dirs", " ".join(map(str, content.paths))),
        ("Made", f"{content.made_at} by logtool {content.version}"),
        ("Exit status", content.status),
    )
    rows = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts)
    return (
        f'<header class="{content.state}">\n<h1>{_text(content.verdict)}</h1>\n'
        f"<dl>{rows}</dl>\n</header>\n"
    )


def _answers(content: Content, rows: Sequence[Object]) -> str:
    """Return the answers of `doctor` about one broker, its repairs, and the next command."""
    items = [
        f"<li>{_badge(row['state'])}<strong>{_text(LABELS.get(row['type'], row['type']))}</strong>"
        f"<span>{_text(' '.join(sentences(row)))}</span></li>\n"
        for row in rows
        if row["type"] in ANSWERS and row["type"] not in _NOT_ANSWERS
    ]
    repairs = [
        f"<li>{_text(to_repair(row['findings'], row['remedy'], row['command']))}"
        + (f"<pre>{_text(row['command'])}</pre>" if row["command"] else "")
        + "</li>\n"
        for row in rows
        if row["type"] == "remedy"
    ]
    following = [
        f'<p class="next">Next, {_text(row["reason"])}:</p><pre>{_text(row["command"])}</pre>\n'
        for row in rows
        if row["type"] == "next"
    ]
    node = next((row["node"] for row in rows if row["type"] == "node"), None)
    title = "Summary" if node is None else f"Broker {_text(node)}"
    name = "summary" if node is None else f"broker-{_text(node)}"
    body = "".join(following) + f'<ul class="answers">\n{"".join(items)}</ul>\n'
    if repairs:
        body += f"<h3>Repairs</h3>\n<ul>\n{''.join(repairs)}</ul>\n"
    return _section(name, title, body)


def _findings(content: Content) -> str:
    rows = content.rows_of("finding")
    if not rows:
        return _section("findings", "Findings", "<p>There are no findings.</p>\n")
    weights = {"error": 0, "warning": 1, "info": 2}
    body = _table(
        "finding-rows",
        ("Severity", "Code", "Place", "Byte", "Finding", "A broker acts on it"),
        (
            _cells(
                (_badge(row["severity"]), weights[row["severity"]]),
                f"<code>{_text(row['code'])}</code>",
                _path(content.relative(row["path"])),
                ("" if row["position"] is None else f"{row['position']:,}",
                 -1 if row["position"] is None else row["position"]),
                _text(row["message"]),
                _text(row["broker"]),
                kind=row["severity"],
            )
            for row in sorted(rows, key=lambda row: weights[row["severity"]])
        ),
        filters=True,
        infos=True,
    )  # fmt: skip
    count = text.count(len(rows), "finding")
    note = f"{count}. <code>logtool explain CODE</code> explains each code."
    return _section("findings", "Findings", body, note)


def _actions(content: Content) -> str:
    rows = content.rows_of("action")
    if not rows:
        return ""
    body = _table(
        "action-rows",
        ("Action", "File", "Records lost", "Reason"),
        (
            _cells(
                f"<code>{_text(row['action'])}</code>",
                _path(content.relative(row["path"])),
                (f"{row['lost_records']:,}", row["lost_records"]),
                _text(row["reason"]),
            )
            for row in rows
        ),
        filters=True,
    )
    note = (
        "What the broker does at its next start that costs records, refuses the start, or leaves "
        "damage unnoticed. <code>logtool plan</code> lists every file."
    )
    return _section("start", "Next start", body, note)


def _watermarks(content: Content) -> str:
    if not content.forecasts:
        return ""

    def number(value: int | None) -> tuple[str, object]:
        return ("" if value is None else f"{value:,}", -1 if value is None else value)

    body = _table(
        "watermark-rows",
        ("Partition", "Log start", "Recovery point", "High watermark", "Log end after the start",
         "Acknowledged offsets missing", "Records lost at the start", "Outcome"),
        (
            _cells(
                f"<code>{_text(one.request.path.name)}</code>",
                number(one.log_start),
                number(one.request.flushed),
                number(one.request.high_watermark),
                number(one.log_end),
                number(one.lost_acknowledged),
                number(one.lost_records),
                _text(one.outcome),
            )
            for one in content.forecasts
        ),
        filters=True,
    )  # fmt: skip
    return _section("watermarks", "Partitions", body)


def _map(content: Content) -> str:
    logs = content.logs_by_damage()
    if not logs:
        return ""
    rows = (
        _cells(
            f"<code>{_text(log.path.name)}</code>",
            (_text(text.size(log.size)), log.size),
            report_charts.segment_map(log),
        )
        for log in logs[:MOST_LOGS]
    )
    body = _table("map-rows", ("Partition", "Bytes", "Segments"), rows, filters=False)
    legend = (
        '<span class="key kept"></span> not read by the next start '
        '<span class="key read"></span> read by the next start '
        '<span class="key warning"></span> warning <span class="key error"></span> error'
    )
    note = f"Each bar is a log from its first byte to its last. {legend}"
    if len(logs) > MOST_LOGS:
        note += f"<br>The {MOST_LOGS} of {len(logs):,} logs with the most damage, then the largest."
    return _section("map", "Map of segments and damage", body, note)


def _timeline(content: Content) -> str:
    chart = report_charts.timeline(content.logs)
    note = "Bytes of logs by the time at which their segment was written last."
    return _section("timeline", "Timeline", chart, note) if chart else ""


def _unread(content: Content) -> str:
    problems = [f"<li><code>{_text(one)}</code></li>\n" for one in content.unread]
    if not problems:
        return ""
    return _section("unread", "Not read", f"<ul>\n{''.join(problems)}</ul>\n")
