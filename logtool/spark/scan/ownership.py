"""Whose a run under way is, and whether that process still lives.

A run has a file of its own beside its data that tells the process it belongs to. The process writes
that file anew every `BEAT_SECONDS`. On the same machine
the process itself is looked for; of one elsewhere only that file is known, and a run counts as
given up once it has not been written for `SILENT_SECONDS`.
"""

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import psutil

from logtool.errors import LogtoolError
from logtool.lazy_dataclass import dataclass

BEAT_SECONDS: Final = 30
SILENT_SECONDS: Final = 900
"""Long enough for clocks that differ by minutes, and for a store that is away for a while."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that a run belongs to."""

    token: str
    """Random; names the directory of the run's files."""
    host: str
    machine: str
    """Tells machines, their starts and their containers apart: process ids count inside one."""
    pid: int
    process_started: float
    """Seconds since 1970: a process id is used again by another process."""
    began: float
    """When the run began, seconds since 1970."""
    seen: float
    """When the process last said that it lives, seconds since 1970."""

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, as the owner of a new run."""
        now, token = time.time(), secrets.token_hex(8)
        _HELD.add(token)
        return cls(
            token=token,
            host=socket.gethostname(),
            machine=_machine(),
            pid=os.getpid(),
            process_started=psutil.Process().create_time(),
            began=now,
            seen=now,
        )

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """Return the owner in the text of its file; None where that is none."""
        with suppress(ValueError, TypeError):
            owner = cls(**json.loads(text))
            if all(type(getattr(owner, name)) in (int, float) for name in _NUMBERS):
                return owner
        return None

    def text(self) -> str:
        """Return the text of its file, as of now."""
        return json.dumps(asdict(replace(self, seen=time.time())))

    def lives(self) -> bool:
        """Return whether the process may still work on its run."""
        if self.machine == _machine() and self.pid == os.getpid():
            return self.token in _HELD
        if self.machine == _machine():
            with suppress(psutil.Error):
                process = psutil.Process(self.pid)
                same = abs(process.create_time() - self.process_started) < 1
                return same and process.status() != psutil.STATUS_ZOMBIE
            return False
        return time.time() - self.seen < SILENT_SECONDS

    def is_near(self) -> bool:
        """Return whether the process is, or was, one of this machine: then `lives` is certain."""
        return self.machine == _machine()

    def __str__(self) -> str:
        """Return the process in words."""
        return f"process {self.pid} on {self.host}"


_HELD: Final[set[str]] = set()
"""Tokens of the runs of this process that it has not given up."""


def release(token: str) -> None:
    """Take note that this process does no more for a run, even where its files remain."""
    _HELD.discard(token)


_NUMBERS = ("pid", "process_started", "began", "seen")


class Heart:
    """Says from time to time that a run lives, until it is stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        """Begin at once, in a thread; what `beat` raises of this program's is left to the run."""
        self._stopped = threading.Event()
        self._beat = beat
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a beat that is under way; more than once is as good as once."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            with suppress(LogtoolError):
                self._beat()


def _machine() -> str:
    """Return what the process ids of this process belong to."""
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(known)
