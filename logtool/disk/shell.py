"""Quoting for a shell: a printed command can be pasted, even with odd file names."""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path


def quote(word: str) -> str:
    r"""Return a word as bash, zsh and ksh read it back.

    One with control characters, or with bytes that are not UTF-8, becomes ``$'...'`` with escapes,
    so that it is one line and harmless to a terminal.
    """
    if word.isprintable():
        return shlex.quote(word)
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


def _escaped(char: str) -> str:
    if char in "'\\":
        return "\\" + char
    if char.isprintable():
        return char
    # Octal, of three digits: a hexadecimal escape would swallow a digit that follows it.
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(char))
