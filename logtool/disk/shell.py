"""Quoting for a shell: a printed command can be pasted, even with odd file names."""

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

_MOST_PATHS = 5
"""Partition dirs in a printed command; of more, it has the log dirs."""


def quote(word: str) -> str:
    r"""Return a word as bash, zsh and ksh read it back.

    One with control characters, or with bytes that are not UTF-8, becomes ``$'...'`` with escapes,
    so that it is one line and harmless to a terminal. zsh replaces a word that begins with ``=``
    by the path of a program.
    """
    if word.isprintable():
        return f"'{word}'" if word.startswith("=") and "'" not in word else shlex.quote(word)
    escaped = (_escaped(char) for char in word)
    return "$'" + "".join(escaped) + "'"


def path(where: Path | str) -> str:
    """Return a path as a word that no command takes for an option."""
    text = str(where)
    return quote(f"./{text}" if text.startswith("-") else text)


def option(name: str, value: str) -> str:
    """Return an option with its value, also where that begins with a dash."""
    return f"{name}={quote(value)}" if value.startswith("-") else f"{name} {quote(value)}"


def join(words: Iterable[str]) -> str:
    """Return a command line."""
    return " ".join(map(quote, words))


def partition_dirs(paths: Sequence[Path]) -> str:
    """Return partition dirs as words of a command; the log dirs of more than five."""
    few = len(paths) <= _MOST_PATHS
    return " ".join(map(path, dict.fromkeys(one if few else one.parent for one in paths)))


def _escaped(char: str) -> str:
    # History expansion of an interactive shell finds "!" within $'...', and the end of the word at
    # an escaped quote.
    if char.isprintable() and char not in "'\\!":
        return char
    # Octal, of three digits: a hexadecimal escape would swallow a digit that follows it.
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
