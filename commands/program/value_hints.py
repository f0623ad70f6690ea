"""Values that a shell can offer as completions: words, topics of the given directories, files."""

from logtool.commands.program.command_tree import Command, Param
from logtool.lazy_dataclass import dataclass
from logtool.metadata import releases
from logtool.schemas import entries, tables
from logtool.schemas.columns import Way
from logtool.watermark.simulation import scenario

_SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class ValueHint:
    """Values that an option or argument can take; empty if they are not known."""

    words: tuple[str, ...] = ()
    several: bool = False
    """True if several of the words may be given, with commas between them."""
    topics: bool = False
    """True if the value is a topic with partition dirs in the directories of the command line, or
    in the current directory if those have none."""
    files: bool = False


NOTHING = ValueHint()
FILES = ValueHint(files=True)


def of_option(param: Param) -> ValueHint:
    """Return the possible values of an option."""
    if param.choices:
        return ValueHint(words=param.choices)
    if "--tables" in param.names:
        scanned = (name for name, table in tables.ALL.items() if Way.SCAN in table.ways)
        return ValueHint(words=tuple(scanned), several=True)
    if "--kafka-version" in param.names:
        return ValueHint(words=tuple(releases.text(one) for one in releases.supported()))
    if {"--topic", "--exclude-topic"} & set(param.names):
        return ValueHint(topics=True)
    return FILES if param.metavar in ("FILE", "DIR") else NOTHING


def of_argument(command: Command) -> ValueHint:
    """Return the possible arguments of a command."""
    if command.name == "watermark simulate":
        return ValueHint(words=tuple(scenario.shipped()), files=True)
    if command.name == "schema":
        return ValueHint(words=(*tables.ALL, *entries.ALL))
    if command.name == "completion":
        return ValueHint(words=_SHELLS)
    return FILES
