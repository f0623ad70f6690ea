"""The commands as plain data, for the generators of man pages and completions."""

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from logtool.commands.program.lazy_group import INDENT, is_heading
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
    required: bool = False
    """True if a command line without it is refused."""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand, or the program itself with an empty name."""

    name: str
    """Two words for a command of a group, such as ``checkpoint show``."""
    help: str
    params: tuple[Param, ...]
    section: str = ""
    """Title under which the help of the program lists the command; empty for the program."""

    @property
    def summary(self) -> str:
        """Return the first sentence of the help, without its full stop."""
        first = " ".join(self.help.split("\n\n")[0].split())
        return first.rstrip(".")

    @property
    def parts(self) -> dict[str, list[str]]:
        """Return the blocks of the help by the sub-heading above them, without their indentation.

        The blocks before the first sub-heading have an empty one; so have examples and statuses.
        """
        found: dict[str, list[str]] = {"": []}
        heading = ""
        for block in self.help.split("\n\n"):
            if is_heading(block):
                heading = block.rstrip(":")
                found[heading] = []
                continue
            if heading and block.startswith(INDENT):
                block = "\n".join(line.removeprefix(INDENT) for line in block.split("\n"))
            else:
                heading = ""
            found[heading].append(block)
        return found

    @property
    def options(self) -> tuple[Param, ...]:
        """Return the options."""
        return tuple(param for param in self.params if not param.positional)


def read_tree(group: Any) -> tuple[Command, list[Command]]:
    """Return the program and its visible subcommands, in the order of the help.

    `group` is the command that `typer.main.get_command` makes of an application. A group in it is
    no command: its own are.
    """
    sections = {name: title for title, names in group.sections.items() for name in names}
    program = Command("", _help(group), tuple(_params(group, None)))
    return program, list(_commands(group, sections))


def _commands(group: Any, sections: dict[str, str], before: str = "") -> Iterator[Command]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, sections, f"{before}{name} ")
        elif not command.hidden:
            params = tuple(_params(command, inspect.unwrap(command.callback)))
            section = sections[before.strip() or name]
            yield Command(f"{before}{name}", _help(command), params, section)


def _help(command: Any) -> str:
    return str(command.help or "").replace("\b\n", "")


def _params(command: Any, function: Callable[..., object] | None) -> Iterator[Param]:
    signature = inspect.signature(function).parameters if function else {}
    for param in command.params:
        positional = param.param_type_name == "argument"
        if not positional and "--help" in param.opts:
            continue
        default = signature[param.name].default if param.name in signature else None
        # Typer keeps choices as texts or as enum members, from release to release.
        kept = getattr(param.type, "choices", ())
        choices = tuple(str(getattr(one, "value", one)) for one in kept)
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
            required=bool(param.required),
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
