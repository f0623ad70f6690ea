"""Plays a recipe on a terminal, as an operator would, and keeps what is shown.

``python tests/recipes/playing.py`` plays all of them, writes the screens into ``screens/`` and the
time of each into ``REPORT.md``. Read the difference before you commit it. The tests compare the
numbers, paths, codes and commands of a screen with those of the kept one, and no other words.
"""

import os
import re
import shlex
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from recipes.incidents import INCIDENTS  # noqa: E402
from terminal import shown_on  # noqa: E402

SCREENS = HERE / "screens"
WIDTH = 80
OTHER_WIDTHS = (60, 140, 220)
IN_OTHER_WIDTHS = ("03-best-replica", "04-stuck-last-stable-offset", "07-slow-recovery")
"""The recipes with the widest tables, which are played on other terminals too."""
WITHOUT_BAR = ("cleaner", "retention")
"""The commands that show no progress."""
COLOURED = "02-corrupt-record"
# What differs from run to run or from machine to machine: how long reading took, room on the disk,
# limits of the machine, blocks of its file system, where a directory of a test is, what is old
# enough for retention, and how old a transaction is.
_VOLATILE = re.compile(
    r"in [\d.,]+ (us|ms|s) \([^)]*/s\)|\d+ % used.*|\S*/data\.logtool-undo-\S+"
    r"|\d[\d,]* (needed|allowed)[^.\n]*|[\d.]+ [KM]iB +[\d.]+ %|(?<=retention deletes )[^;]+"
    r"|(?<=open for )[^;]+"
)
_PARAGRAPH = re.compile(r"^\S.*(?:\n {2,}\S.*)*", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FIGURE = re.compile(r"[^\s,;:()]*[\d/][^\s,;:()]*")


@dataclass
class Played:
    """The screen, the number of commands and the time of a recipe."""

    screen: str
    commands: int
    seconds: float


def recipe(name: str) -> Path:
    """Return the script of a recipe."""
    return HERE / f"{name}.sh"


def play(name: str, width: int = WIDTH, *, coloured: bool = False) -> Played:
    """Make the directory of an incident and type the commands of its recipe there."""
    screen, commands, seconds = [], 0, 0.0
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    environment |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= {"LOGTOOL_CONFIG": ""}
    environment |= {"TERM": "xterm-256color"} if coloured else {"NO_COLOR": "1", "TERM": "xterm"}
    with tempfile.TemporaryDirectory(prefix="logtool-recipe-") as work:
        INCIDENTS[name](Path(work))
        for line in recipe(name).read_text().splitlines():
            if line.startswith("#"):
                continue
            words = shlex.split(line)
            if words[0] == "logtool":
                words += [] if words[1] in WITHOUT_BAR else ["--no-progress"]
                commands += 1
            begun = time.perf_counter()
            status, shown = shown_on(width, words, environment, Path(work))
            seconds += time.perf_counter() - begun
            screen.append(f"$ {line}\n{shown}exit status {status}\n")
    return Played("\n".join(screen), commands, seconds)


def steady(screen: str) -> str:
    """Return a screen without what differs from run to run; what wraps with it is one line."""

    def masked(match: re.Match[str]) -> str:
        paragraph = match.group()
        joined = re.sub(r"\s*\n\s+", " ", paragraph)
        return _VOLATILE.sub("...", joined) if _VOLATILE.search(joined) else paragraph

    return _PARAGRAPH.sub(masked, screen)


def figures(screen: str) -> list[Counter[str]]:
    """Return the numbers, paths and codes of each command of a screen, and its exit status."""
    blocks = re.split(r"^\$ ", _COLOUR.sub("", screen), flags=re.MULTILINE)
    return [Counter(_FIGURE.findall(block)) for block in blocks]


def said(name: str) -> list[str]:
    """Return the words that a recipe promises to show."""
    lines = recipe(name).read_text().splitlines()
    return [line.removeprefix("# Shows: ") for line in lines if line.startswith("# Shows: ")]


def screens() -> list[tuple[str, int, bool]]:
    """Return recipe, width and whether in colour of each screen that is kept."""
    wide = [(name, width, False) for name in IN_OTHER_WIDTHS for width in OTHER_WIDTHS]
    return [*((name, WIDTH, False) for name in INCIDENTS), (COLOURED, WIDTH, True), *wide]


def kept(name: str, width: int, coloured: bool) -> Path:
    """Return where a screen is kept."""
    return SCREENS / f"{name}.{width}{'.colour' if coloured else ''}.txt"


def main() -> None:
    SCREENS.mkdir(exist_ok=True)
    lines = [
        "# What the recipes took",
        "",
        "Written by `python tests/recipes/playing.py`. A recipe is a script of the commands that",
        "answer one incident, on a directory of a real broker of 4.3.1; `screens/` holds what an",
        "operator sees.",
        "",
        "| incident | commands | seconds |",
        "| --- | --- | --- |",
    ]
    for name, width, coloured in screens():
        played = play(name, width, coloured=coloured)
        kept(name, width, coloured).write_text(steady(played.screen))
        if (width, coloured) == (WIDTH, False):
            title = recipe(name).read_text().splitlines()[0].removeprefix("# Incident: ")
            lines.append(f"| [{title}]({name}.sh) | {played.commands} | {played.seconds:.1f} |")
    (HERE / "REPORT.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
