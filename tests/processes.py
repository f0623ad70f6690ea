"""Runs of logtool without the rights of root, or while another process has a lock."""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from deadlines import deadline_in

_PR_CAPBSET_DROP = 24
_PR_CAPBSET_READ = 23
_OVER_MODES = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH of capabilities(7): with them no mode binds root."""

_HOLD = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.lockf(file, fcntl.LOCK_EX)
print(flush=True)
sys.stdin.read()
"""


def give_up_rights() -> None:
    """Let the modes of files bind the program that this process begins, also where root runs it.

    It stays the owner of its files, so the interpreter may lie anywhere: what it must not read
    has a mode that denies its owner, too.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _OVER_MODES:
        if libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1 and os.geteuid() == 0:
            assert libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0, ctypes.get_errno()


def without_rights(*arguments: object) -> tuple[int, str, str]:
    """Run a command line without the rights of root; returns its status and what it said."""
    command = [sys.executable, "-m", "logtool", *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, preexec_fn=give_up_rights
    )
    return done.returncode, done.stdout, done.stderr


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition holds; fails where it does not within a time that is long enough."""
    end = deadline_in(seconds)
    while not condition():
        assert time.monotonic() < end, f"it did not come about within {seconds} s"
        time.sleep(0.01)


def children_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the children of a process that may end at any moment: none where it has ended."""
    with suppress(psutil.NoSuchProcess):  # ZombieProcess is one of it
        return process.children()
    return []


def command_of(process: psutil.Process) -> str:
    """Return the command line of a process that may end at any moment: "" where it has ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def kill_family(pid: int) -> list[psutil.Process]:
    """Kill a process, then all that it started; returns all of them."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
        for one in family:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        return family
    return []


def wait_until_caught(pid: int, number: signal.Signals) -> None:
    """Wait until a process has a handler for a signal, which would end it before."""

    def caught() -> bool:
        words = Path(f"/proc/{pid}/status").read_text().split()
        return bool(int(words[words.index("SigCgt:") + 1], 16) >> (number - 1) & 1)

    wait_for(caught)


def interrupted(
    *line: object,
    environment: dict[str, str],
    number: signal.Signals = signal.SIGINT,
    before: Callable[[], object] | None = None,
) -> tuple[int, list[str], str]:
    """Send a signal to a command that has begun to print; returns its status and all that it said.

    It cannot have come to its end then: it prints into a small pipe of which one byte was read.
    `before` is called in the process before the command begins.
    """
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command = [sys.executable, "-m", "logtool", *map(str, line)]
    with (
        subprocess.Popen(
            command, stdout=writing, stderr=subprocess.PIPE, text=True, env=environment,
            preexec_fn=before,
        ) as process,
        os.fdopen(reading) as stream,
    ):  # fmt: skip
        os.close(writing)
        first = os.read(reading, 1)
        assert first, "it ended and printed nothing"
        process.send_signal(number)
        said = first.decode() + stream.read()
        _, errors = process.communicate(timeout=100)
    return process.returncode, said.splitlines(), errors


@contextmanager
def locked_by_a_process(lock: Path) -> Iterator[int]:
    """Let another process lock a file of a log dir, as a broker does; yields its id."""
    command = [sys.executable, "-c", _HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        try:
            yield holder.pid
        finally:
            holder.communicate()


def killed_at(number: int, job: Callable[[], object], folder: Path) -> bool:
    """Let a process die at its n-th call that changes something in a folder; False at its end."""
    child = os.fork()
    if not child:
        calls, beginning, fsync = 0, str(folder), os.fsync

        def die(*_: object) -> None:
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)

        def seen(event: str, arguments: tuple[object, ...]) -> None:
            is_change = event in ("open", "os.remove", "os.rename")
            if is_change and str(arguments[0]).startswith(beginning):
                die()

        sys.addaudithook(seen)
        os.fsync = lambda fd: (die(), fsync(fd))[1]
        try:
            job()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0
