"""The Java of this host: the one other program that logtool starts, only to ask its version."""

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from logtool.lazy_dataclass import dataclass

_A_WHILE = 30
"""Seconds after which logtool stops to wait for the version of a Java."""


@dataclass(frozen=True, slots=True)
class Java:
    """The Java that Spark would start."""

    program: str
    version: str | None
    """The version that it prints, such as ``17.0.15`` or ``1.8.0_392``; None if it prints none."""

    @property
    def major(self) -> int | None:
        """Return the number of the release: 8 for ``1.8.0_392``."""
        found = re.match(r"(?:1\.)?(\d+)", self.version or "")
        return int(found[1]) if found else None


def find() -> Java | None:
    """Return the Java of JAVA_HOME, else the first on the PATH; None without either."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if program is None:
        return None
    said = ""
    with suppress(OSError, subprocess.TimeoutExpired):
        said = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, timeout=_A_WHILE
        ).stderr
    found = re.search(r'version "([^"]+)"', said)
    return Java(program, found[1] if found else None)


def missing() -> str:
    """Return where `find` found none."""
    home = os.environ.get("JAVA_HOME")
    return f"JAVA_HOME={home} has no java" if home else "there is no java on the PATH"
