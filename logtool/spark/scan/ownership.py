"""The process that a run under way belongs to, and a test whether that process is alive.

Each run has a file, next to its data, that names the process it belongs to. The process writes that
file again every `BEAT_SECONDS`. A process of this machine is looked up by its id. Of a process on
another machine only the file is known, and its run counts as given up once the file has not been
written for `SILENT_SECONDS`.
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
"""Long enough for clocks that differ by minutes, and for a store that is down for a while."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that a run belongs to."""

    token: str
    """Random text in the name of the directory of the run's files."""
    host: str
    machine: str
    """Identity of the machine, its boot and its container: process ids are unique inside these."""
    pid: int
    process_started: float
    """Start of the process, seconds since 1970: the system gives process ids out again."""
    began: float
    """Start of the run, seconds since 1970."""
    seen: float
    """Last time at which the process wrote this file, seconds since 1970."""

    @classmethod
    def here(cls) -> "Owner":
        """Return this process, as the owner of a new run."""
        now, token = time.time(), secrets.token_hex(8)
        _OWNED.add(token)
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
        """Parse the text of an owner's file; None if it is not one."""
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
            return self.token in _OWNED
        if self.machine == _machine():
            with suppress(psutil.Error):
                process = psutil.Process(self.pid)
                same = abs(process.create_time() - self.process_started) < 1
                return same and process.status() != psutil.STATUS_ZOMBIE
            return False
        return time.time() - self.seen < SILENT_SECONDS

    def is_near(self) -> bool:
        """Return whether the process ran on this machine, so that `lives` is certain."""
        return self.machine == _machine()

    def __str__(self) -> str:
        """Return the process id and the host in words."""
        return f"process {self.pid} on {self.host}"


_OWNED: Final[set[str]] = set()
"""Tokens of the runs of this process that it has not given up."""


def release(token: str) -> None:
    """Record that this process has ended its work on a run, even if files remain."""
    _OWNED.discard(token)


_NUMBERS = ("pid", "process_started", "began", "seen")


class Heart:
    """A thread that calls `beat` every `BEAT_SECONDS`, until it is stopped."""

    def __init__(self, beat: Callable[[], None]) -> None:
        """Start the thread; it ignores a LogtoolError of `beat`, which the run itself meets."""
        self._stopped = threading.Event()
        self._beat = beat
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait for a beat that is under way; further calls do nothing."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(BEAT_SECONDS):
            with suppress(LogtoolError):
                self._beat()


def _machine() -> str:
    """Return the host, the boot and the container inside which process ids are unique."""
    known = [socket.gethostname()]
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(known)
