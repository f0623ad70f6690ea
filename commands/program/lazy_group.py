"""Commands that are imported when they run: the help of the program knows them by their summaries.

The function of a command is found by its name: `dump-index` is `dump_index` in the module
`logtool.commands.dump_index`, and `watermark simulate` is `simulate` in that of `watermark`. A
module with commands of its own has them in `app`.
"""

import importlib
import inspect
import re
from collections import UserDict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import typer
import typer.core
import typer.main


class LazyGroup(typer.core.TyperGroup):
    """A group of such commands; a class of each group says which."""

    summaries: Mapping[str, str] = {}
    """The first line of the docstring of each, by its name, in the order of the help."""
    hidden_names: Collection[str] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(self.summaries, self.hidden_names)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names; Typer's own looks at each command."""
        return list(self.summaries)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands with their whole summaries, folded where they are long."""
        names = [name for name in self.summaries if name not in self.hidden_names]
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summaries[name]) for name in names])


def new_app(**settings: Any) -> typer.Typer:
    """Return an application that prints as all of logtool does."""
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **settings
    )


STATUSES = {
    2: "the command line makes no sense",
    4: "incomplete: some input could not be read, or nothing matched",
    6: "--max-duration ran out; nothing said of the rest",
    130: "interrupted by Ctrl-C (143 by SIGTERM, 129 by SIGHUP)",
}
"""The texts of exit statuses that mean the same in many commands."""
_BARE_STATUS = re.compile(r"^  (\d+)$", re.MULTILINE)


def help_text(function: Callable[..., None]) -> str:
    """Return the docstring of a command for Typer, which leaves its indented blocks alone.

    A line with an exit status alone gets its text from `STATUSES`.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    text = _BARE_STATUS.sub(lambda found: f"{found[0]:<6} {STATUSES[int(found[1])]}", text)
    blocks = text.split("\n\n")
    # A line of \b makes the help formatter leave a paragraph alone.
    return "\n\n".join(f"\b\n{b}" if "\n  " in b or b.startswith("  ") else b for b in blocks)


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
        app.command(name, help=help_text(function), hidden=hidden)(function)
    return typer.main.get_command(app)
