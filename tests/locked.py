"""Print the part of requirements.lock that some of the project's requirements need, for pip.

``locked.py run build`` names the groups: ``run`` is what logtool itself depends on, ``build`` is
what building it takes, every other name is an extra of pyproject.toml. With ``--instead FILE``,
the releases of FILE stand for those of the lock. With ``--names``, the requirements themselves are
printed as pyproject.toml has them, to be locked.

pip holds files to their hashes only where each requirement has one, so that a part of the lock is
a file of its own. Which packages belong to it stands in the lock: each entry says after ``# via``
who asked for it. Needs the standard library alone, for it runs before anything is installed.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_PIN = re.compile(r"([A-Za-z0-9._-]+)==")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*(?:\[([^]]*)\])?")
_ITSELF = "kafka-logtool"


@dataclass
class Entry:
    """One release in a lock: its lines as pip reads them, and who asked for it."""

    name: str
    lines: list[str] = field(default_factory=list)
    via: set[str] = field(default_factory=set)


def parse(lock: str) -> list[Entry]:
    """Return the entries of a lock that ``uv pip compile --generate-hashes`` wrote."""
    entries: list[Entry] = []
    for line in lock.splitlines():
        if pin := _PIN.match(line):
            entries.append(Entry(normal(pin[1])))
        if not entries:
            continue
        comment = line.strip().removeprefix("#").removeprefix(" ").removeprefix("via").strip()
        if not line.strip().startswith("#"):
            entries[-1].lines.append(line)
        elif comment:
            entries[-1].via.add(normal(comment.split()[0]))
    return entries


def direct(project: dict[str, Any], groups: Iterable[str]) -> set[str]:
    """Return the names of the packages that groups of a pyproject.toml ask for."""
    found: set[str] = set()
    for group in groups:
        for requirement in _requirements(project, group):
            if match := _REQUIREMENT.match(requirement):
                name = normal(match[1])
                extras = [extra.strip() for extra in (match[2] or "").split(",") if extra.strip()]
                found |= direct(project, extras) if name == _ITSELF else {name}
    return found


def needed(entries: Iterable[Entry], names: set[str]) -> list[Entry]:
    """Return the entries of `names`, and of all that these ask for."""
    entries, wanted = list(entries), set(names)
    while more := {one.name for one in entries if one.via & wanted} - wanted:
        wanted |= more
    if missing := wanted - {one.name for one in entries}:
        raise SystemExit(f"not in the lock: {', '.join(sorted(missing))}; run: make lock")
    return [one for one in entries if one.name in wanted]


def main(arguments: list[str]) -> None:
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="+", metavar="GROUP")
    parser.add_argument("--instead", type=Path, metavar="FILE")
    parser.add_argument("--names", action="store_true")
    given = parser.parse_args(arguments)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    if given.names:
        print(*(one for group in given.groups for one in _requirements(project, group)), sep="\n")
        return
    entries = parse((ROOT / "requirements.lock").read_text())
    others = parse(given.instead.read_text()) if given.instead else []
    names = {one.name for one in others}
    for one in needed(entries, direct(project, given.groups)):
        if one.name not in names:
            print("\n".join(one.lines))
    for one in others:
        print("\n".join(one.lines))


def _requirements(project: dict[str, dict[str, list[str]]], group: str) -> list[str]:
    if group == "build":
        return project["build-system"]["requires"]
    if group == "run":
        return project["project"]["dependencies"]
    return project["project"]["optional-dependencies"][group]  # type: ignore[call-overload]


def normal(name: str) -> str:
    """Return the name of a package as a registry compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
