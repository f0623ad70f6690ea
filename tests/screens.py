"""A dozen screens of 80 columns as people see them, kept word for word in ``tests/screens/``.

They are the only tests of wording: all others assert codes, fields, statuses and bytes. After a
change of wording run ``python tests/screens.py``, read the difference, and commit it.
"""

import os
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from terminal import shown_on

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KEPT = HERE / "screens"
WIDTH = 80
SCREENS = {
    "help": ("--help",),
    "doctor": ("doctor", "killed"),
    "verify": ("verify", "killed"),
    "plan": ("plan", "killed"),
    "recover": ("recover", "killed"),
    "stat": ("stat", "--topic", "codec-*", "killed"),
    "gaps": ("gaps", "--topic", "small-segments", "killed"),
    "txns": ("txns", "--open", "--now", "2026-11-21T02:00:00Z", "killed"),
    "groups": ("groups", "java-clients"),
    "watermark": ("watermark", "replicas/node-1", "replicas/node-2", "replicas/node-3"),
    "explain": ("explain", "batch/crc"),
}
"""Arguments of each screen; paths are those of `prepare`."""
_RELEASE = HERE / "data" / "4.3.1"
# What differs from run to run or from machine to machine: times, rates, room, limits, processes.
_VOLATILE = re.compile(
    r"in [\d.]+ (?:ms|s) \([^)]*/s\)|[\d.]+ (?:ms|s)\b|\d[\d.,]* \S+/s|\d+ (?:d|h|min)\b"
    r"|\d+ %|[\d.]+ [KMGT]iB free|of [\d.]+ [KMGT]iB|\d{4}-\d\d-\d\d[T ][\d:.]+Z?"
    r"|(?<=retention deletes )[^;]+"  # What is old enough depends on the day.
    r"|[\d,]+ allowed|\d+ files|\d+ changes|[\d.]+ [KMGT]?i?B\b"
)
_OF_HOST = re.compile(r"^\w+ +(?:disk|limits) .*\n(?: {19}.*\n)*", re.MULTILINE)
"""Answers of doctor about this machine."""


def prepare(home: Path) -> None:
    """Unpack log dirs that real brokers left, and damage one batch of one of them."""
    for name in ("killed", "java-clients", "replicas"):
        with tarfile.open(_RELEASE / f"{name}.tar.xz") as archive:
            archive.extractall(home, filter="tar")
    log = home / "killed/codec-none-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[14000] ^= 1
    log.write_bytes(data)


def screen(arguments: tuple[str, ...], home: Path) -> str:
    """Return the screen of a command on a terminal of 80 columns, and its exit status."""
    environment = {
        **os.environ, "LOGTOOL_CONFIG": "", "PYTHONPATH": str(ROOT), "TERM": "xterm", "TZ": "UTC",
        "NO_COLOR": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "logtool", *arguments]
    if arguments[0] not in ("--help", "explain"):
        command.append("--no-progress")
    status, shown = shown_on(WIDTH, command, environment, home)
    return f"$ logtool {' '.join(arguments)}\n{shown.rstrip()}\nstatus {status}\n"


def steady(text: str) -> str:
    """Return a screen without what differs from run to run, and with each space once.

    A number of another length may fold a line in another place.
    """
    return _VOLATILE.sub("...", " ".join(_OF_HOST.sub("", text).split()))


def main() -> None:
    """Write all screens."""
    shutil.rmtree(KEPT, ignore_errors=True)
    KEPT.mkdir()
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place))
        for name, arguments in SCREENS.items():
            (KEPT / f"{name}.txt").write_text(screen(arguments, Path(place)))


if __name__ == "__main__":
    main()
