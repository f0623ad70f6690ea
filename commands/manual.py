"""Man pages in roff, made from the commands: the docstring, the options, the shared sections."""

import re

from logtool import __version__
from logtool.commands.command_tree import Command, Param

DATE = "2025-01-01"
"""Of every page: fixed, so that the same commands make the same pages."""

_SECTIONS = {"Examples:": "EXAMPLES", "Exit status:": "EXIT STATUS"}
_STATUS = re.compile(r"(\d+) +(.*)")


def page_name(command: Command) -> str:
    """Return the name of a command's page, which is that of its file without ``.1``."""
    return "-".join(["logtool", *command.name.split()])


def render(command: Command, others: list[Command]) -> str:
    """Return the page of `command`; `others` are all commands, for the page of the program."""
    name = page_name(command)
    lines = [
        f'.TH {name.upper()} 1 "{DATE}" "logtool {__version__}" "logtool manual"',
        ".SH NAME",
        f"{_roff(name)} \\- {_roff(_lower_first(command.summary))}",
        ".SH SYNOPSIS",
        *_synopsis(command),
        ".SH DESCRIPTION",
        *_description(command),
    ]
    if not command.name:
        lines += [".SH COMMANDS", *_commands(others)]
    positional = [param for param in command.params if param.positional]
    if positional:
        lines += [".SH ARGUMENTS", *(line for param in positional for line in _param(param))]
    lines += [".SH OPTIONS", *(line for param in command.options for line in _param(param))]
    lines += _blocks(command, "EXIT STATUS") + _blocks(command, "EXAMPLES")
    lines += [".SH ENVIRONMENT", *_environment(), ".SH SEE ALSO", *_see_also(command, others)]
    return "\n".join(lines) + "\n"


def _synopsis(command: Command) -> list[str]:
    words = ["\\fBlogtool\\fR", *([f"\\fB{_roff(command.name)}\\fR"] if command.name else [])]
    words.append("[\\fIOPTION\\fR]...")
    if not command.name:
        words.append("\\fICOMMAND\\fR [\\fIARGUMENT\\fR]...")
    for param in command.params:
        if param.positional:
            words.append(f"[\\fI{_roff(param.names[0].strip('[]'))}\\fR]")
            words[-1] += "..." if param.repeatable else ""
    return [" ".join(words)]


def _description(command: Command) -> list[str]:
    lines: list[str] = []
    for block in command.help.split("\n\n"):
        if block.split("\n")[0] in _SECTIONS:
            continue
        lines += [".PP", _roff(" ".join(block.split()))]
    return lines


def _commands(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        lines += [
            ".TP",
            f"\\fB{_roff(page_name(command))}\\fR(1)",
            _roff(f"{command.summary}."),
        ]
    return lines


def _param(param: Param) -> list[str]:
    if param.positional:
        more = "..." if param.repeatable else ""
        head = f"\\fI{_roff(param.names[0].strip('[]'))}\\fR{more}"
    else:
        value = "" if param.metavar is None else f" \\fI{_roff(param.metavar)}\\fR"
        head = ", ".join(f"\\fB{_roff(name)}\\fR" for name in param.names) + value
    default = f" The default is {param.default}." if param.default else ""
    return [".TP", head, _roff(param.help + default)]


def _blocks(command: Command, section: str) -> list[str]:
    """Return a section of the docstring: statuses as a list, examples as they are."""
    for block in command.help.split("\n\n"):
        title, *rows = block.split("\n")
        if _SECTIONS.get(title) != section:
            continue
        lines = [f".SH {section}"]
        if section == "EXAMPLES":
            return [*lines, ".nf", *(_roff(row.strip()) for row in rows), ".fi"]
        for row in rows:
            found = _STATUS.match(row.strip())
            if found:
                lines += [".TP", f"\\fB{found[1]}\\fR", _roff(found[2])]
            else:
                lines.append(_roff(row.strip()))
        return lines
    return []


def _environment() -> list[str]:
    return [
        ".TP",
        "\\fBNO_COLOR\\fR",
        "If set and not empty, there is no colour unless \\fB\\-\\-color always\\fR asks for it.",
        ".TP",
        "\\fBTERM\\fR",
        "If it is dumb, there is no colour either.",
    ]


def _see_also(command: Command, others: list[Command]) -> list[str]:
    names = ["logtool", *(page_name(other) for other in others)]
    pages = [f"\\fB{_roff(name)}\\fR(1)" for name in names if name != page_name(command)]
    return [", ".join(pages)]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _roff(text: str) -> str:
    """Escape backslashes, minus signs that must stay such, and what looks like a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped.startswith((".", "\\(aq")) else escaped
