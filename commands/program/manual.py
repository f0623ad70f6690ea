"""Man pages in roff, made from the commands: the docstring, the options, the shared sections."""

import re
import textwrap

from logtool import __version__
from logtool.commands.program import roff, settings
from logtool.commands.program.command_tree import Command, Param
from logtool.commands.program.lazy_group import INDENT
from logtool.commands.program.option_groups import OWN, grouped

_SECTIONS = {"Examples:": "EXAMPLES", "Exit status:": "EXIT STATUS"}
_TERM = re.compile(r"(\S+)  +(\S.*)")
_STATUS = re.compile(r"(\d+) +(.*)")


def page_name(command: Command) -> str:
    """Return the name of a command's page, which is that of its file without ``.1``."""
    return "-".join(["logtool", *command.name.split()])


def heading(name: str, section: int, date: str) -> list[str]:
    """Return the first lines of a page: its name, section and date, and the ragged margin.

    Names of files, options and pages are not hyphenated.
    """
    title = f'.TH {name.upper()} {section} "{date}" "logtool {__version__}" "logtool manual"'
    return [title, ".nh", ".ad l"]


def render(command: Command, others: list[Command], guides: list[str], date: str) -> str:
    """Return the page of `command`, with the date of the release.

    `others` are all commands, and `guides` the names of pages of section 7.
    """
    name = page_name(command)
    lines = [
        *heading(name, 1, date),
        ".SH NAME",
        f"{roff.escape(name)} \\- {roff.escape(_lower_first(command.summary))}",
        ".SH SYNOPSIS",
        *_synopsis(command),
        ".SH DESCRIPTION",
        *_paragraphs(command.parts[""]),
        *_blocks(command, "EXAMPLES"),
    ]
    if not command.name:
        lines += [".SH COMMANDS", *_commands(others)]
    positional = [param for param in command.params if param.positional]
    if positional:
        lines += [".SH ARGUMENTS", *(line for param in positional for line in _param(param))]
    lines += [".SH OPTIONS", *_options(command)]
    lines += _blocks(command, "EXIT STATUS") + _notes(command)
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
            name = f"\\fI{roff.escape(param.names[0].strip('[].'))}\\fR"
            words.append(name if param.required else f"[{name}]")
            words[-1] += "..." if param.repeatable else ""
    return [" ".join(words)]


def _notes(command: Command) -> list[str]:
    """Return the text under sub-headings, in a section of its own; nothing without sub-headings."""
    titled = [(title, blocks) for title, blocks in command.parts.items() if title]
    lines = [".SH NOTES"] if titled else []
    for title, blocks in titled:
        lines += [f".SS {roff.escape(title)}", *_paragraphs(blocks)]
    return lines


def _paragraphs(blocks: list[str]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        if block.startswith(INDENT):
            lines += _listed(textwrap.dedent(block))
        elif block.split("\n")[0] not in _SECTIONS:
            lines += [".PP", roff.escape(" ".join(block.split()))]
    return lines


def _listed(block: str) -> list[str]:
    """Return an indented block: rows of a term and its text as a list, all else as it is."""
    rows = re.sub(r"\n +", " ", block).split("\n")
    terms = [_TERM.fullmatch(row) for row in rows]
    lines: list[str] = []
    for term in terms:
        if term is None:
            return roff.preformatted(block)
        lines += [".TP", f"\\fB{roff.escape(term[1])}\\fR", roff.escape(term[2])]
    return lines


def _options(command: Command) -> list[str]:
    lines: list[str] = []
    for title, options in grouped(command.options, lambda param: param.names):
        lines += [f".SS {title}"] if title != OWN else []
        lines += [line for param in options for line in _param(param)]
    return lines


def _commands(commands: list[Command]) -> list[str]:
    lines = []
    section = ""
    for command in commands:
        if command.section != section:
            section = command.section
            lines.append(f".SS {roff.escape(section)}")
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
        metavar = roff.escape(param.metavar or "").replace("|", "|\\:")  # a line may break there
        value = f" \\fI{metavar}\\fR" if metavar else ""
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
        "If set and not empty, the output has no colour, except with \\fB\\-\\-color always\\fR.",
        ".TP",
        "\\fBTERM\\fR",
        "If dumb, the output has no colour, except with \\fB\\-\\-color always\\fR.",
        ".TP",
        ", ".join(f"\\fB{settings.variable_of(name)}\\fR" for name in settings.SETTINGS),
        "Default of the option with that name, in each command that has the option. A variable "
        "takes precedence over the settings file.",
        ".TP",
        f"\\fB{settings.FILE_VARIABLE}\\fR",
        "Path of the settings file. If the variable is set and empty, no settings file is read: a "
        "script that needs the built-in defaults sets it to an empty value.",
    ]


def _files() -> list[str]:
    return [
        ".TP",
        "\\fI$XDG_CONFIG_HOME/logtool/config.toml\\fR, or \\fI~/.config/logtool/config.toml\\fR",
        "Settings file (TOML). Each line sets the default of the option with that name, for "
        'example max\\-rate = "200M". An unknown name or a bad value ends every command with '
        "status 2.",
    ]


def _see_also(command: Command, others: list[Command], guides: list[str]) -> list[str]:
    near = [one for one in others if command.section in ("", one.section)]
    names = ["logtool", *(page_name(one) for one in near)]
    pages = [f"\\fB{roff.escape(name)}\\fR(1)" for name in names if name != page_name(command)]
    pages += [f"\\fB{roff.escape(name)}\\fR(7)" for name in guides]
    return [", ".join(pages)]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
