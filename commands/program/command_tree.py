"""The commands as plain data, for what is generated from them: man pages and completions."""

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Param:
    """An option or a positional argument."""

    names: tuple[str, ...]
    """Names of an option, short before long; the metavar of an argument."""
    metavar: str | None
    """None for a flag."""
    choices: tuple[str, ...]
    help: str
    default: str | None
    positional: bool
    repeatable: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand, or the program itself with an empty name."""

    name: str
    """Two words for a command of a group, such as ``checkpoint show``."""
    help: str
    params: tuple[Param, ...]

    @property
    def summary(self) -> str:
        """Return the first sentence of the help, without its full stop."""
        first = " ".join(self.help.split("\n\n")[0].split())
        return first.rstrip(".")

    @property
    def options(self) -> tuple[Param, ...]:
        """Return the options."""
        return tuple(param for param in self.params if not param.positional)


def read_tree(group: Any) -> tuple[Command, list[Command]]:
    """Return the program and its visible subcommands, in the order of the help.

    `group` is the command that `typer.main.get_command` makes of an application. A group in it is
    no command: its own are.
    """
    return Command("", _help(group), tuple(_params(group, None))), list(_commands(group))


def _commands(group: Any, before: str = "") -> Iterator[Command]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{before}{name} ")
        elif not command.hidden:
            params = tuple(_params(command, inspect.unwrap(command.callback)))
            yield Command(f"{before}{name}", _help(command), params)


def _help(command: Any) -> str:
    return str(command.help or "").replace("\b\n", "")


def _params(command: Any, function: Callable[..., object] | None) -> Iterator[Param]:
    # Choices come from the function's own defaults: Typer keeps them in other places from release
    # to release.
    signature = inspect.signature(function).parameters if function else {}
    for param in command.params:
        positional = param.param_type_name == "argument"
        if not positional and "--help" in param.opts:
            continue
        default = signature[param.name].default if param.name in signature else None
        choices = tuple(str(c.value) for c in type(default)) if isinstance(default, Enum) else ()
        flag = not positional and bool(getattr(param, "is_flag", False))
        names = (param.metavar,) if positional else (*param.opts, *param.secondary_opts)
        yield Param(
            names=tuple(sorted(names, key=lambda name: name.startswith("--"))),
            metavar=None if flag else param.metavar or "|".join(choices) or "VALUE",
            choices=choices,
            help=param.help or "",
            default=str(default.value) if isinstance(default, Enum) else None,
            positional=positional,
            repeatable=bool(getattr(param, "multiple", False)) or param.nargs == -1,
        )
    yield Param(
        names=("-h", "--help"),
        metavar=None,
        choices=(),
        help="Show the help and exit.",
        default=None,
        positional=False,
        repeatable=False,
    )
