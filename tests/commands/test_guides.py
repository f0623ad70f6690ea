import re

import pytest
from readme import ROOT

from logtool.commands.program import guides, roff
from logtool.findings import catalogue

MARKDOWN = {
    "a title is left out": ("# logtool-x: about x\n", []),
    "a section": ("## On a -host\n", [".SH ON A \\-HOST"]),
    "a part of it": ("### Inside\n", [".SS Inside"]),
    "a paragraph is one line": ("one\ntwo\n", [".PP", "one two"]),
    "a line that looks like a request": (".log files\n", [".PP", "\\&.log files"]),
    "a quote at its start": ("'tis\n", [".PP", "\\&\\(aqtis"]),
    "fonts": ("`--a` **b** *c*\n", [".PP", "\\fB\\-\\-a\\fR \\fBb\\fR \\fIc\\fR"]),
    "a comment is left out": ("<!-- run -->\n", []),
    "what stands as it is": (
        "```console\n$ a\n  .b\n```\n",
        [".PP", ".RS 4", ".nf", "$ a", "  .b", ".fi", ".RE"],
    ),
    "a list": ("- a\n- b\n", [".IP \\(bu 2", "a", ".IP \\(bu 2", "b"]),
    "a numbered list": ("1. a\n2. b\n", [".IP 1. 4", "a", ".IP 2. 4", "b"]),
    "a second paragraph of an item": ("- a\n\n  b\n", [".IP \\(bu 2", "a", ".PP", "b"]),
    "a link to a guide is its name": (
        "see [that](logtool-trust.md#more).\n",
        [".PP", "see \\fBlogtool\\-trust\\fR(7)."],
    ),
    "another link is its words": ("[REPORT](../tests/R.md)\n", [".PP", "REPORT"]),
    "a table": (
        "| a | b |\n| --- | --- |\n| c | " + "d" * 29 + " |\n",
        [".PP", ".TS", "lb lb", "l lx.", "a\tT{", "b", "T}", "c\tT{", "d" * 29, "T}", ".TE"],
    ),
}


@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_becomes_roff(name):
    text, lines = MARKDOWN[name]
    assert roff.from_markdown(text) == lines


def test_the_guide_of_findings_has_a_section_for_each_code():
    sections = re.findall(r"^### (.+)$", guides.made()["logtool-findings"], re.M)
    assert sections == list(catalogue())


def test_the_guide_of_formats_has_a_section_for_each_module_that_names_its_source():
    sections = re.findall(r"^## (.+)$", guides.made()["logtool-formats"], re.M)
    modules = [
        ("Redpanda: " if path.parent.name == "redpanda" else "") + path.stem.replace("_", " ")
        for path in (ROOT / "formats").rglob("*.py")
        if not path.name.startswith("_") and "Source:" in path.read_text()
    ]
    assert sorted(sections) == sorted(modules)


def test_the_guide_of_formats_shows_the_fields_of_a_batch_in_their_columns():
    text = guides.made()["logtool-formats"]
    rows = [line.split() for line in text.splitlines()]
    (epoch,) = (row for row in rows if row[:2] == ["12", "leader_epoch"])
    assert (epoch[2], epoch[-1]) == ("int32", "(partitionLeaderEpoch)")
    assert any(row[:2] == ["position", "int32"] for row in rows)


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "man").glob("*.md")))
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
