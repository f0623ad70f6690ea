"""Commands that are imported when they run; the help of the program has only their summaries.

The function of a command is found by its name: `dump-index` is `dump_index` in the module
`logtool.commands.dump_index`, and `watermark simulate` is `simulate` in that of `watermark`. A
module with commands of its own has them in `app`.
"""

import importlib
import inspect
import re
import textwrap
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import typer
import typer.core
import typer.main


class LazyGroup(typer.core.TyperGroup):
    """A group of such commands; a subclass lists the commands of one group."""

    summaries: Mapping[str, str] = {}
    """The first line of the docstring of each, by its name, in the order of the help."""
    hidden_names: Collection[str] = ()
    sections: Mapping[str, Collection[str]] = {}
    """The names of the commands by the title under which the help lists them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(self.summaries, self.hidden_names)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names; Typer's own looks at each command."""
        return list(self.summaries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of commands with their whole summaries, folded where they are long."""
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.summaries[name]) for name in names])


class GroupedCommand(typer.core.TyperCommand):
    """A command whose help shows its options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options of each group."""
        from logtool.commands.program.option_groups import grouped

        params = self.get_params(ctx)
        arguments = [one for one in params if one.param_type_name == "argument"]
        options = [one for one in params if one.param_type_name == "option"]
        groups = [("Arguments", arguments), *grouped(options, lambda one: one.opts)]
        for title, members in groups:
            records = [one.get_help_record(ctx) for one in members]
            if rows := [record for record in records if record is not None]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def new_app(**settings: Any) -> typer.Typer:
    """Return an application that prints as all of logtool does."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


def add(
    app: typer.Typer, name: str, function: Callable[..., None], *, hidden: bool = False
) -> None:
    """Add a command to an application; its help is the docstring of the function."""
    app.command(name, cls=GroupedCommand, help=help_text(function), hidden=hidden)(function)


STATUSES = {
    2: "usage error",
    4: "incomplete: an input could not be read, or nothing matched",
    6: "--max-duration ran out, and nothing was found in what was checked",
    130: "interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)",
}
"""The texts of exit statuses that mean the same in many commands."""
_SHARED_STATUS = re.compile(r"^  (\d+)(?: +\.\.\.|$)", re.MULTILINE)
_BLOCKS = ("Examples:", "Exit status:")
_TERM = re.compile(r"(  \S+  +)(\S.*)")
_WIDTH = 74
"""Columns of a folded row, which the help indents by 4."""
INDENT = "  "
"""Indentation of the paragraphs below a sub-heading."""


def help_text(function: Callable[..., None]) -> str:
    """Return the docstring of a command for Typer, which leaves its indented blocks alone.

    A line with an exit status alone gets its text from `STATUSES`; three dots after the status
    stand for that text. The paragraphs after a line that ends with a colon and stands alone, which
    is a sub-heading, are indented.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    text = _SHARED_STATUS.sub(lambda one: f"  {one[1]:<4} {STATUSES[int(one[1])]}", text)
    blocks = []
    indent = ""
    for block in text.split("\n\n"):
        literal = "\n  " in block or block.startswith("  ")
        if is_heading(block):
            indent = INDENT
        elif block.startswith(_BLOCKS):
            indent = ""
            block = _folded(block)
        elif literal:
            block = textwrap.indent(_folded(block), indent)
        else:  # the formatter wraps the rest as the first line
            block = indent + block
        # A line of \b makes the help formatter leave a paragraph alone.
        blocks.append(f"\b\n{block}" if literal else block)
    return "\n\n".join(blocks)


def _folded(block: str) -> str:
    """Return a block with its rows of a term and a text, such as exit statuses, folded."""
    title, _, rest = block.rpartition(":\n") if block.startswith(_BLOCKS[1]) else ("", "", block)
    rows = [_TERM.fullmatch(row) for row in re.sub(r"\n {4,}", " ", rest).split("\n")]
    lines = [f"{title}:"] if title else []
    for row in rows:
        if row is None:
            return block
        after = " " * len(row[1])
        lines += textwrap.wrap(
            row[2], _WIDTH, initial_indent=row[1], subsequent_indent=after,
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip
    return "\n".join(lines)


def is_heading(block: str) -> bool:
    """Return whether a block of a docstring is a sub-heading."""
    return block.endswith(":") and "\n" not in block


class _Commands(UserDict[str, Any]):
    """Commands by name, each imported when it is taken."""

    def __init__(self, names: Collection[str], hidden: Collection[str]) -> None:
        super().__init__(dict.fromkeys(names))
        self._hidden = hidden

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            self.data[name] = _load(name, name in self._hidden)
        return self.data[name]


def _load(name: str, hidden: bool) -> Any:
    words = name.replace("-", "_").split()
    module = importlib.import_module(f"logtool.commands.{words[0]}")
    app = getattr(module, "app", None)
    if app is None:
        function = getattr(module, words[-1])
        app = new_app()
        add(app, name, function, hidden=hidden)
    return typer.main.get_command(app)
