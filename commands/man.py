"""``logtool man``: the pages of the manual, for every kind of installation."""

import difflib
import sys
from pathlib import Path
from typing import Annotated

import typer

from logtool.errors import UnreadableError, UsageError

Page = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PAGE]...",
        help="A command, for example verify or checkpoint show, or a guide, for example recipes.",
        show_default=False,
    ),
]
_HOMES = (
    Path(__file__).resolve().parents[1] / "man",  # a clone
    Path(sys.prefix) / "share" / "man",
    Path.home() / ".local" / "share" / "man",  # pip install --user
)
"""Directories that may hold the manual pages; the first that exists is used."""


def man(page: Page = None) -> None:
    """Print a page of the manual, or list the pages.

    The page is printed in roff, the input format of man(1). A system package of logtool installs
    the pages where man(1) finds them. In a virtual environment, or after pipx install, use this
    command to read them.

    Examples:
      logtool man
      logtool man verify | man -l -
      logtool man recipes | man -l -

    Exit status:
      0    the page was printed, or the pages were listed
      2    the page does not exist
      4    the pages are not installed

    """
    from logtool.commands import output

    pages = _pages()
    if not page:
        lines = [f"{name}({path.suffix[1:]})  {_summary(path)}" for name, path in pages.items()]
        output.plain("\n".join(lines))
        return
    wanted = "-".join(page)
    name = next((one for one in (wanted, f"logtool-{wanted}") if one in pages), None)
    if name is None:
        near = difflib.get_close_matches(f"logtool-{wanted}", pages, 1)
        hint = f"; did you mean {near[0]}?" if near else "; 'logtool man' lists the pages"
        raise UsageError(f"unknown page {wanted!a}{hint}")
    output.plain(pages[name].read_text("utf-8"))


def _pages() -> dict[str, Path]:
    """Return the files of the pages by their names; UnreadableError where none are installed."""
    for home in _HOMES:
        found = {path.stem: path for path in _files(home)}
        if "logtool" in found:
            return found
    raise UnreadableError(
        _HOMES[1], "contains no man pages of logtool; the package did not install them"
    )


def _summary(path: Path) -> str:
    """Return the text after the name in the section NAME."""
    line = path.read_text("utf-8").partition(".SH NAME\n")[2].partition("\n")[0]
    return line.partition(" \\- ")[2].replace("\\", "")


def _files(home: Path) -> list[Path]:
    found = [*home.glob("logtool*.[17]"), *home.glob("man[17]/logtool*.[17]")]
    return sorted(found, key=lambda path: path.stem)
