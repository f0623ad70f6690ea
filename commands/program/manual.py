"""Man pages in roff, made from the commands: the docstring, the options, the shared sections."""

import re

from logtool import __version__
from logtool.commands.program import roff, settings
from logtool.commands.program.command_tree import Command, Param

DATE = "2025-01-01"
"""Date of every page, fixed so that the same commands make the same pages."""

_SECTIONS = {"Examples:": "EXAMPLES", "Exit status:": "EXIT STATUS"}
_STATUS = re.compile(r"(\d+) +(.*)")


def page_name(command: Command) -> str:
    """Return the name of a command's page, which is that of its file without ``.1``."""
    return "-".join(["logtool", *command.name.split()])


def render(command: Command, others: list[Command], guides: list[str]) -> str:
    """Return the page of `command`; `others` are all commands, `guides` names of section 7."""
    name = page_name(command)
    lines = [
        f'.TH {name.upper()} 1 "{DATE}" "logtool {__version__}" "logtool manual"',
        ".SH NAME",
        f"{roff.escape(name)} \\- {roff.escape(_lower_first(command.summary))}",
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
    lines += [
        ".SH ENVIRONMENT",
        *_environment(),
        ".SH FILES",
        *_files(),
        ".SH SEE ALSO",
        *_see_also(command, others, guides),
    ]
    return "\n".join(lines) + "\n"


def _synopsis(command: Command) -> list[str]:
    words = ["\\fBlogtool\\fR", *([f"\\fB{roff.escape(command.name)}\\fR"] if command.name else [])]
    words.append("[\\fIOPTION\\fR]...")
    if not command.name:
        words.append("\\fICOMMAND\\fR [\\fIARGUMENT\\fR]...")
    for param in command.params:
        if param.positional:
            words.append(f"[\\fI{roff.escape(param.names[0].strip('[].'))}\\fR]")
            words[-1] += "..." if param.repeatable else ""
    return [" ".join(words)]


def _description(command: Command) -> list[str]:
    lines: list[str] = []
    for block in command.help.split("\n\n"):
        if block.split("\n")[0] in _SECTIONS:
            continue
        lines += [".PP", roff.escape(" ".join(block.split()))]
    return lines


def _commands(commands: list[Command]) -> list[str]:
    lines = []
    for command in commands:
        lines += [
            ".TP",
            f"\\fB{roff.escape(page_name(command))}\\fR(1)",
            roff.escape(f"{command.summary}."),
        ]
    return lines


def _param(param: Param) -> list[str]:
    if param.positional:
        more = "..." if param.repeatable else ""
        head = f"\\fI{roff.escape(param.names[0].strip('[].'))}\\fR{more}"
    else:
        value = "" if param.metavar is None else f" \\fI{roff.escape(param.metavar)}\\fR"
        head = ", ".join(f"\\fB{roff.escape(name)}\\fR" for name in param.names) + value
    default = f" The default is {param.default}." if param.default else ""
    return [".TP", head, roff.escape(param.help + default)]


def _blocks(command: Command, section: str) -> list[str]:
    """Return a section of the docstring: statuses as a list, examples as they are."""
    for block in command.help.split("\n\n"):
        title, *rows = block.split("\n")
        if _SECTIONS.get(title) != section:
            continue
        lines = [f".SH {section}"]
        if section == "EXAMPLES":
            return [*lines, ".nf", *(roff.escape(row.strip()) for row in rows), ".fi"]
        for row in rows:
            match = _STATUS.match(row.strip())
            if match:
                lines += [".TP", f"\\fB{match[1]}\\fR", roff.escape(match[2])]
            else:
                lines.append(roff.escape(row.strip()))
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
        ".TP",
        ", ".join(f"\\fB{settings.variable_of(name)}\\fR" for name in settings.SETTINGS),
        "What the option of that name is where the command line does not give it and the command "
        "has it. Such a variable counts before the file of settings.",
        ".TP",
        f"\\fB{settings.FILE_VARIABLE}\\fR",
        "The file of settings. If it is empty, none is read: a script that wants the defaults sets "
        "it so.",
    ]


def _files() -> list[str]:
    return [
        ".TP",
        "\\fI$XDG_CONFIG_HOME/logtool/config.toml\\fR, or below \\fI~/.config\\fR",
        'Settings of your own, one on each line, such as max\\-rate = "200M", under the names of '
        "their options. An unknown name or a bad value ends every command with status 2.",
    ]


def _see_also(command: Command, others: list[Command], guides: list[str]) -> list[str]:
    names = ["logtool", *(page_name(other) for other in others)]
    pages = [f"\\fB{roff.escape(name)}\\fR(1)" for name in names if name != page_name(command)]
    pages += [f"\\fB{roff.escape(name)}\\fR(7)" for name in guides]
    return [", ".join(pages)]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
