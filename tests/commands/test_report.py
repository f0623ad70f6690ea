"""``logtool report``: the file it writes, and its exit statuses."""

import re
from html.parser import HTMLParser

import pytest
from processes import killed_at
from report_pages import content_of

from logtool.commands.views.report_markdown import ticket
from logtool.commands.views.report_page import page

VOID = {"meta", "input", "wbr", "br"}


class Page(HTMLParser):
    """The texts of a page; an element that is not closed in order raises an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids += [known["id"] or ""] if "id" in known else []
        self.sources += [known[name] or "" for name in ("src", "href") if name in known]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("state", ["damaged", "stopped"])
def test_the_page_has_what_doctor_says(run, request, tmp_path, state):
    home = request.getfixturevalue("cut" if state == "damaged" else "stopped")
    target = tmp_path / "report.html"
    result = run("report", "-f", "ndjson", "--output", target, home)
    doctor = run("doctor", "-f", "ndjson", "--max-duration", "100s", home)
    assert result.status == doctor.status == (state == "damaged")
    kinds = [one["type"] for one in doctor.objects]
    assert [one["type"] for one in result.objects] == kinds
    text = target.read_text("utf-8")
    shown = Page(text)
    assert shown.open == [] and shown.sources == []
    assert len(set(shown.ids)) == len(shown.ids)
    assert {"summary", "findings", "watermarks", "map", "timeline"} <= set(shown.ids)
    assert "url(" not in text and "@import" not in text
    for one in result.objects:
        if one["type"] == "finding":
            assert one["code"] in shown.text and one["message"] in shown.text
        if one["type"] == "next":
            assert one["command"] in shown.text
    errors = [one for one in result.of_type("finding") if one["severity"] == "error"]
    marks = text.count('<rect class="error"')
    assert marks == sum(one["position"] is not None and one["path"].endswith(".log")
                        for one in errors)  # fmt: skip
    assert bool(marks) == (state == "damaged")


def test_a_ticket_has_the_worst_and_says_how_much_more_there_is(run, cut, tmp_path):
    target = tmp_path / "ticket.md"
    result = run("report", "--output", target, cut)
    assert str(target) in result.stderr
    assert result.status == 1
    text = target.read_text("utf-8")
    assert "`batch/crc`" in text and "segment/gap" not in text
    assert str(cut) in text
    rows = ticket(content_of(300)).splitlines()
    assert sum(row.startswith(("| error", "| warning")) for row in rows) == 50
    assert any(row.startswith("150 ") for row in rows)


def test_names_are_neither_markup_nor_the_end_of_a_cell():
    content = content_of(3, "<b>|`$(x)`\x1b[31m")
    shown = Page(page(content))
    assert "<b>|`$(x)`\\x1b[31m" in shown.text
    (row,) = (row for row in ticket(content).splitlines() if "batch/crc" in row)
    assert len(re.findall(r"(?<!\\)\|", row)) == 6
    assert "\x1b" not in row


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_kill_at_any_moment_leaves_a_report_that_is_whole(run, stopped, tmp_path, name):
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / name

    def plain() -> str:
        return re.sub(r"[0-9.]+", "0", target.read_text("utf-8"))  # without times

    assert run("report", "--output", target, stopped).status == 0
    whole, number = plain(), 1
    target.unlink()
    while killed_at(number, lambda: run("report", "--output", target, stopped), folder):
        assert not target.exists() or plain() == whole
        number += 1
    assert number >= 4
    assert plain() == whole
    assert [one.name for one in folder.iterdir()] == [name]


def test_a_report_replaces_an_older_one_and_is_never_in_a_log_dir(run, stopped, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("older")
    first = run("report", "--output", target, stopped)
    assert (first.status, str(target) in first.stderr) == (0, True)
    assert run("report", "-q", "--output", target, stopped).stderr == ""
    assert target.read_text("utf-8").startswith("<!doctype html>")
    assert not target.with_name("report.html.tmp").exists()
    assert run("report", "--output", stopped / "report.html", stopped).status == 5
    assert run("report", "--output", tmp_path / "report.pdf", stopped).status == 2
    assert run("report", stopped).status == 2
    assert run("report", "--output", tmp_path / "no" / "report.html", stopped).status == 4
    result = run("report", "--output", target, stopped, tmp_path / "missing")
    assert result.status == 4
    assert str(tmp_path / "missing") in target.read_text("utf-8")
