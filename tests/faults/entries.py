"""The list of seeded faults, and how one is applied to a tree."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("faults.toml")
FOLDERS = ("logtool", "commands", "formats")
"""Folders with code that a fault may change."""
COMPILED = tuple(
    f"formats/{name}.py" for name in ("_kernels", "_rendering", "_mapped", "_offset_commits")
)
"""Files that are compiled: Python does not read the text of these files."""


class EntryError(Exception):
    """An entry of the list does not fit the tree."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A change of the code that makes something wrong."""

    name: str
    file: str
    """Path below the root of the tree."""
    old: str
    """Text that occurs once in the file."""
    new: str
    """Text that replaces the old text."""
    wrong: str
    """One sentence: the wrong behaviour."""
    tests: tuple[str, ...]
    """Paths of the test files that notice the fault."""

    def faulty(self, root: Path) -> str:
        """Return the text of the file with the fault.

        Raises:
            EntryError: if the file does not hold the old text exactly once, the fault changes
                nothing, or the file or a test file is missing.
        """
        path = root / self.file
        if not path.is_file():
            raise EntryError(f"{self.name}: there is no file {self.file}")
        for test in self.tests:
            if not (root / test).is_file():
                raise EntryError(f"{self.name}: there is no file {test}")
        if not self.tests:
            raise EntryError(f"{self.name}: no test file is listed")
        text = path.read_text("utf-8")
        count = text.count(self.old)
        if count != 1:
            raise EntryError(f"{self.name}: the old text occurs {count} times in {self.file}")
        if self.old == self.new:
            raise EntryError(f"{self.name}: the new text is the old text")
        return text.replace(self.old, self.new)


def load(path: Path = LIST) -> list[Fault]:
    """Return the faults of a list; EntryError if two have the same name or a key is wrong."""
    faults: dict[str, Fault] = {}
    for entry in tomllib.loads(path.read_text("utf-8"))["fault"]:
        fault = _parsed(entry)
        if fault.name in faults:
            raise EntryError(f"{fault.name}: two entries have this name")
        faults[fault.name] = fault
    return list(faults.values())


def _parsed(entry: dict[str, Any]) -> Fault:
    try:
        return Fault(**(entry | {"tests": tuple(entry["tests"])}))
    except (KeyError, TypeError) as error:
        raise EntryError(f"{entry.get('name', 'an entry without a name')}: {error}") from error


@contextmanager
def applied(fault: Fault, tree: Path, number: int) -> Iterator[None]:
    """Apply a fault to a tree, and restore the file at the end.

    `number` is different for each fault that is applied to the tree. Python takes a compiled file
    for up to date if size and mtime (in seconds) of the source are unchanged: so each fault gives
    the file another mtime.
    """
    path = tree / fault.file
    text, status = path.read_bytes(), path.stat()
    later = status.st_mtime_ns + (number + 1) * 1_000_000_000
    try:
        path.write_text(fault.faulty(tree), "utf-8")
        os.utime(path, ns=(later, later))
        yield
    finally:
        path.write_bytes(text)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
