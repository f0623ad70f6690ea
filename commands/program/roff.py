"""Roff, in which man pages are written: text made safe for it, and Markdown turned into it.

The guides in ``man/`` are Markdown. Markdown-it-py parses them into tokens, and each kind of token
becomes the macros of man(7) or tbl(1) that look like it. Comments, which mark the blocks that the
tests run, are left out.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

_WIDE = 28
"""A column of a table with a longer cell than this is broken into lines."""

_FONTS = {"strong_open": "\\fB", "em_open": "\\fI", "strong_close": "\\fR", "em_close": "\\fR"}
_GUIDE = re.compile(r"(?:man/)?(logtool(?:-[a-z]+)*)\.md(?:#.*)?")


def escape(text: str) -> str:
    """Escape backslashes, minus signs, and text that looks like a request."""
    return _no_request(_escape(text))


def preformatted(text: str) -> list[str]:
    """Return lines that stand as they are, indented."""
    return [".PP", ".RS 4", ".nf", *(escape(line) for line in text.splitlines()), ".fi", ".RE"]


def from_markdown(text: str) -> list[str]:
    """Return the lines of roff for Markdown; the title, which is no section, is left out."""
    from markdown_it import MarkdownIt

    tokens = iter(MarkdownIt("commonmark").enable("table").parse(text))
    lines: list[str] = []
    items = 0
    after_mark = False
    for token in tokens:
        if token.type == "heading_open":
            heading = _inline(next(tokens))
            if token.tag != "h1":
                lines.append(f".SH {heading.upper()}" if token.tag == "h2" else f".SS {heading}")
        elif token.type in ("ordered_list_open", "bullet_list_open"):
            items = 0
        elif token.type == "list_item_open":
            items += 1
            lines.append(f".IP {items}. 4" if token.markup == "." else ".IP \\(bu 2")
            after_mark = True
        elif token.type == "paragraph_open":
            lines += [_inline(next(tokens))] if after_mark else [".PP", _inline(next(tokens))]
            after_mark = False
        elif token.type in ("fence", "code_block"):
            lines += preformatted(token.content)
        elif token.type == "table_open":
            lines += _table(_rows(tokens))
    return lines


def _escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def _no_request(line: str) -> str:
    return f"\\&{line}" if line.startswith((".", "\\(aq")) else line


def _rows(tokens: "Iterator[Token]") -> list[list[str]]:
    """Return the cells of a table by row, the head first, and leave `tokens` behind its end."""
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_inline(token))
    return rows


def _table(rows: list[list[str]]) -> list[str]:
    broken = [max(map(_width, column)) > _WIDE for column in zip(*rows, strict=True)]
    lines = [".PP", ".TS", " ".join("lb" for _ in broken)]
    lines.append(" ".join("lx" if column else "l" for column in broken) + ".")
    for row in rows:
        cells = [f"T{{\n{cell}\nT}}" if b else cell for cell, b in zip(row, broken, strict=True)]
        lines += "\t".join(cells).split("\n")
    return [*lines, ".TE"]


def _width(cell: str) -> int:
    return len(re.sub(r"\\(f.|&|\(..|)", "", cell))


def _inline(token: "Token") -> str:
    """Return the text of a paragraph, a heading or a cell on one line."""
    made: list[str] = []
    children = iter(token.children or ())
    for child in children:
        if child.type == "text":
            made.append(_escape(child.content))
        elif child.type == "code_inline":
            made.append(f"\\fB{_escape(child.content)}\\fR")
        elif child.type in ("softbreak", "hardbreak"):
            made.append(" ")
        elif child.type == "link_open":
            guide = _GUIDE.fullmatch(str(child.attrGet("href")))
            if guide:
                # The name of the page is printed, not the text of the link.
                made.append(f"\\fB{_escape(guide[1])}\\fR(7)")
                while child.type != "link_close":
                    child = next(children)
        else:
            made.append(_FONTS.get(child.type, ""))
    return _no_request("".join(made))
