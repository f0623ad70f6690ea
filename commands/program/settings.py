"""Defaults of the user: variables ``LOGTOOL_*`` and a TOML file.

The command line takes precedence over the variable, and the variable over the file. The file is
``config.toml`` in the directory ``logtool`` of ``$XDG_CONFIG_HOME``, or of ``~/.config`` without
that variable. The variable ``LOGTOOL_CONFIG`` names another file; if it is empty, no file is read.
A setting has the name of its option: ``max-rate = "200M"`` in the file is
``LOGTOOL_MAX_RATE=200M`` and ``--max-rate 200M``. Options that let a command write, lose records
or choose a directory cannot be set here.

Nothing is imported before there is a file or a variable.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass

PREFIX = "LOGTOOL_"
FILE_VARIABLE = "LOGTOOL_CONFIG"
NOT_SETTINGS = frozenset({FILE_VARIABLE, "LOGTOOL_KERNELS", "LOGTOOL_REQUIRE_KERNELS"})
"""Variables with the same prefix that are not settings."""
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_MOST = 1024 * 1024
"""Bytes of the largest file that is read."""


def _word(*allowed: str) -> Callable[[object], object]:
    def checked(value: object) -> object:
        if value not in allowed:
            raise ValueError(f"one of {', '.join(allowed)}")
        return value

    return checked


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    text = value.lower() if isinstance(value, str) else None
    if text not in _YES + _NO:
        raise ValueError("true or false")
    return text in _YES


def _number(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 10**9:
        raise ValueError("a whole number of at least 1")
    return value


def _size(value: object) -> object:
    from logtool.commands.program.parsing import parse_size

    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    try:
        parse_size("", text)
    except UsageError:
        raise ValueError("a size such as 4096, 200M or 1.5G") from None
    return text


SETTINGS: Mapping[str, Callable[[object], object]] = {
    "format": _word("table", "json", "ndjson", "csv", "tsv", "markdown"),
    "color": _word("auto", "always", "never"),
    "wide": _flag,
    "progress": _flag,
    "jobs": _number,
    "max-rate": _size,
    "max-batch-memory": _size,
    "read-rate": _size,
}
"""Checks by name. Each returns the value in the form of the option, or raises a ValueError whose
text is the expected value."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it comes from."""

    value: Any
    source: str
    """The variable, or the file with the line."""


def path() -> Path | None:
    """Return the path of the settings file; None if no file is read."""
    named = os.environ.get(FILE_VARIABLE)
    if named is not None:
        return Path(named) if named else None
    home = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    if not home.is_absolute():  # as the convention asks
        try:
            home = Path("~/.config").expanduser()
        except RuntimeError:  # a user without a home, as in a container
            return None
    return home / "logtool" / "config.toml"


def variables() -> dict[str, str]:
    """Return the variables that may be settings: all of the prefix, by name."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith(PREFIX) and name not in NOT_SETTINGS
    }


def variable_of(name: str) -> str:
    """Return the variable of a setting: ``LOGTOOL_MAX_RATE`` of ``max-rate``."""
    return PREFIX + name.upper().replace("-", "_")


def load() -> dict[str, Setting]:
    """Return the settings by name; UsageError in one line for a wrong setting."""
    file = path()
    found = {} if file is None else _of_file(file)
    given = variables()
    for name in SETTINGS:
        variable = variable_of(name)
        if given.get(variable):  # an empty one is as good as none
            found[name] = Setting(_checked(name, given[variable], variable), variable)
    return found


def _of_file(file: Path) -> dict[str, Setting]:
    """Return the settings in a file; empty if the default file does not exist."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST + 1)
    except FileNotFoundError as error:
        if FILE_VARIABLE not in os.environ:
            return {}
        raise UsageError(f"{FILE_VARIABLE}: cannot read {file}: {error.strerror}") from error
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror or error}") from error
    import tomllib

    if len(data) > _MOST:
        raise UsageError(f"{file}: is larger than 1 MiB; this does not look like a settings file")
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file}: is not valid TOML: {error}") from error
    except RecursionError as error:
        raise UsageError(
            f"{file}: is nested too deeply; this does not look like a settings file"
        ) from error
    found = {}
    for name, value in table.items():
        where = f"{file}:{_line_of(name, text)}"
        if name not in SETTINGS:
            known = ", ".join(SETTINGS)
            raise UsageError(f"{where}: unknown setting {name}; expected one of {known}")
        found[name] = Setting(_checked(name, value, where), where)
    return found


def _checked(name: str, value: object, where: str) -> object:
    try:
        return SETTINGS[name](value)
    except ValueError as error:
        # The name of a variable already identifies its setting.
        of = "" if where == variable_of(name) else f" {name}:"
        raise UsageError(f"{where}:{of} expected {error}, found {_shown(value)}") from None


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _line_of(name: str, text: str) -> int:
    """Return the line on which a key of the file stands."""
    import re

    key = re.compile(rf"""\s*\[*\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    lines = text.splitlines()
    return next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)


def defaults(group: Any, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the settings as Typer takes defaults, for the command of a command line.

    A setting is left out where the command has no option for it, where it is a format that the
    command does not know, and where it contradicts an option of the command line.
    """
    values = {name.replace("-", "_"): one.value for name, one in load().items()}
    command, words = group, []
    for word in arguments:
        if word not in getattr(command, "commands", ()):
            break
        command = command.commands[word]
        words.append(word)
    own = {param.name: param for param in command.params} if words and values else {}
    kept: dict[str, Any] = {
        name: value
        for name, value in values.items()
        if name in own
        and (name != "format" or value in _choices(own[name]))
        and not _gives_way(name, value, arguments)
    }
    for word in reversed(words):
        kept = {word: kept}
    return kept


def _gives_way(name: str, value: object, arguments: Sequence[str]) -> bool:
    """Return whether an option of the command line contradicts the setting."""
    if name == "format":
        cells = not {"--csv-safe", "--csv-escaped"}.isdisjoint(arguments)
        rows = cells and value not in ("csv", "tsv")
        return rows or "--json" in arguments
    if name in ("jobs", "max_rate"):
        before = zip(("", *arguments), arguments, strict=False)
        return "--engine=spark" in arguments or ("--engine", "spark") in before
    return False


def _choices(param: Any) -> frozenset[str]:
    """Return the words that an option takes, as texts: Typer may keep them as enum members."""
    choices = getattr(param.type, "choices", ())
    return frozenset(str(getattr(one, "value", one)) for one in choices)
