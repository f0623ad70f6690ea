"""A real pseudo-terminal of some width, for what commands show to people."""

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

ROWS = 40
LOGTOOL = str(Path(sys.executable).parent / "logtool")


def shown_on(
    width: int, command: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None
) -> tuple[int, str]:
    """Run a command on a terminal of `width` columns; return its status and what it showed."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, width, 0, 0))
    process = subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env=dict(environment), cwd=cwd
    )
    os.close(its)
    shown = b""
    with contextlib.suppress(OSError):  # how Linux reports that the other end is closed
        while read := os.read(ours, 65536):
            shown += read
    os.close(ours)
    return process.wait(timeout=60), shown.decode().replace("\r\n", "\n")
