"""Runs of the installed command `logtool`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOGTOOL = Path(sys.executable).parent / "logtool"
Object = dict[str, Any]


def run(
    *arguments: object, cwd: Path | None = None, text: bool = True
) -> subprocess.CompletedProcess[Any]:
    """Run a command line of logtool."""
    command = [str(LOGTOOL), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=text, check=False)


def succeed(*arguments: object) -> str:
    """Run a command line that must end with status 0; return its output."""
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def objects(*arguments: object, statuses: tuple[int, ...] = (0, 1)) -> list[Object]:
    """Run a command line with one of the statuses; return its output as JSON objects."""
    done = run(*arguments, "-f", "ndjson")
    assert done.returncode in statuses, done.stderr
    return list(map(json.loads, done.stdout.splitlines()))


def of_type(found: list[Object], kind: str) -> list[Object]:
    """Return the objects with a value of the field `type`."""
    return [one for one in found if one["type"] == kind]
