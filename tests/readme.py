"""The commands of README.md and of the guides in man/, with what they print.

Blocks behind ``<!-- run -->`` hold commands (``$ ...``) and their output, those behind
``<!-- run on Spark -->`` need Spark. `python tests/readme.py FILE...` runs the blocks of these
files (of all, without a name) and writes the output into them; the tests only compare. Behind
``<!-- doctest on Spark -->`` or ``<!-- doctest -->`` stands a doctest, behind
``<!-- recipe on Spark -->`` a module whose functions a test calls.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "man").glob("*.md"))]

PLAIN, ON_SPARK = "run", "run on Spark"
_BLOCK = r"<!-- {} -->\n```console\n(.*?)```"
_DOCTEST = r"<!-- {} -->\n```python\n(.*?)```"
_RECIPE = re.compile(r"<!-- recipe on Spark -->\n```python\n(.*?)```", re.DOTALL)
# What differs from run to run, or from clone to clone: durations, rates, the age of an edit, and
# what depends on how many producers and segments have expired by now.
_VOLATILE = re.compile(
    r"in [\d.]+ (ms|s) \([^)]*/s\)|changed \d+ d \d+ h after|\"elapsed_s\": [0-9.]+"
    r"|\d+ files are rebuilt|\d+ changes made|(?<=retention deletes )[^;]+"
)


def blocks(text: str, kind: str = PLAIN) -> list[str]:
    """Return the content of the blocks that are to be run."""
    return re.findall(_BLOCK.format(kind), text, re.DOTALL)


def doctests(text: str, kind: str = "doctest on Spark") -> list[str]:
    """Return the content of the doctests."""
    return re.findall(_DOCTEST.format(kind), text, re.DOTALL)


def recipes(text: str) -> list[str]:
    """Return the modules whose functions a test calls."""
    return _RECIPE.findall(text)


def steady(text: str) -> str:
    """Return `text` without what differs from run to run."""
    return _VOLATILE.sub("...", text)


def run(block: str) -> str:
    """Return the block with what its commands print now, to stdout and stderr alike."""
    lines = []
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    for command in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            command,
            shell=True,
            cwd=ROOT,
            env={**environment, "PATH": path, "LOGTOOL_CONFIG": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines.append(f"$ {command}\n{done.stdout.rstrip()}\n")
    return "\n".join(lines)


def main() -> None:
    for document in [Path(name) for name in sys.argv[1:]] or DOCUMENTS:
        text = document.read_text()
        for kind in (PLAIN, ON_SPARK):
            for block in blocks(text, kind):
                text = text.replace(block, run(block))
        document.write_text(text)


if __name__ == "__main__":
    main()
