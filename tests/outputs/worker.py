"""Run command lines with one tree: ``python -m outputs.worker``, started by `outputs.__main__`.

It reads a case from each line of standard input and answers with a line: the statuses, and the
digests of what was printed and written. The contents go into a store of contents.

Every command line runs in a child that is forked off this process, in which all modules are loaded
and no command ever ran: nothing of one command line can reach the next.

`STEADY` is all that is not as it is on an ordinary day.
"""

# These bind the real clock when they are imported, and are to keep it.
import concurrent.futures  # noqa: F401
import datetime
import hashlib
import importlib
import json
import os
import pkgutil
import queue  # noqa: F401
import re
import resource
import selectors  # noqa: F401
import shutil
import signal
import stat
import subprocess  # noqa: F401
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import psutil

NOW_NS = 1_795_435_200 * 10**9
"""2026-11-23T12:00:00Z, a day later than the newest file of the inputs."""
_STEP_NS = 5 * 10**6
A_WHILE = 120
"""Seconds after which a command line is killed: its status is then -14."""
STEADY = {
    "clock": "ages count to now, and names of undo directories hold a time: the clocks time and "
    "monotonic stand still at NOW_NS",
    "stopwatch": "sanity, plan and doctor measure durations and rates: each reading of "
    "perf_counter and thread_time in a thread is a step later than the one before it",
    "page cache": "plan says what of the logs is not in the page cache: all of them are",
    "usage": "sanity prints page faults and bytes read from the disk: these are left out",
    "file system": "doctor prints how full the disk is, and salvage wants room: half of 1 TiB",
    "fsync": "no run waits until a disk has what was written, which would take most of the time",
    "processors": "how many threads there are without -j: 2",
    "limits": "doctor and plan compare the limit of open files with what a broker needs: 4096",
    "tree": "doctor --environment and tracebacks name the directory of logtool: TREE stands for it",
    "mtimes": "what a command wrote has the time of this moment: it is recorded as new; an older "
    "time is recorded",
}
"""All that is made steady, or is recorded otherwise than it is, and why."""


def make_steady() -> None:
    """Replace clocks and other varying values for all later imports."""
    second = NOW_NS // 10**9

    class Standing(datetime.datetime):
        """A datetime whose now is always the same."""

        __slots__ = ()

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Standing":
            return cls.fromtimestamp(second, tz)

    datetime.datetime = Standing  # type: ignore[misc]
    for name in ("time", "monotonic"):
        setattr(time, name, lambda: float(second))
        setattr(time, f"{name}_ns", lambda: NOW_NS)
    steps = threading.local()

    def stepping_ns() -> int:
        steps.count = getattr(steps, "count", 0) + 1
        return int(steps.count) * _STEP_NS

    time.perf_counter_ns = stepping_ns
    time.perf_counter = time.thread_time = lambda: stepping_ns() / 1e9
    room = SimpleNamespace(
        f_frsize=4096, f_bsize=4096, f_blocks=2**28, f_bfree=2**27, f_bavail=2**27, f_files=2**26,
        f_ffree=2**25, f_favail=2**25, f_flag=0, f_namemax=255,
    )  # fmt: skip
    os.statvfs = lambda path: room  # type: ignore[assignment,return-value]
    os.sched_getaffinity = lambda pid: {0, 1}
    nothing = resource.getrusage(resource.RUSAGE_SELF)
    resource.getrusage = lambda who: resource.struct_rusage([0.0] * len(nothing))
    os.fsync = os.fdatasync = lambda fd: None
    used = SimpleNamespace(read_bytes=0)
    psutil.Process.io_counters = lambda self: used  # type: ignore
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))


def load(tree: Path) -> Callable[[list[str]], int]:
    """Import all of logtool from `tree`; returns the function that runs a command line."""
    import logtool

    for module in pkgutil.walk_packages(logtool.__path__, "logtool."):
        if not {"pipeline", "spark"} & set(module.name.split(".")) and not module.name.endswith(
            "__main__"
        ):
            importlib.import_module(module.name)
    from logtool import cli

    for name, one in list(sys.modules.items()):
        if name.partition(".")[0] == "logtool":
            home = Path(one.__file__ or "").resolve()
            assert home.is_relative_to(tree.resolve()), f"{name} comes from {home}, not from {tree}"
            if hasattr(one, "resident"):
                setattr(one, "resident", lambda data: -1)  # noqa: B010
    return cli.run


class Store:
    """Contents by their digests, each once."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def put(self, content: bytes) -> str:
        """Keep a content; returns its digest."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        path = self.home / digest[:2] / digest
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{digest}.{os.getpid()}")
            part.write_bytes(zlib.compress(content, 1))
            part.rename(path)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the content of a digest."""
        return zlib.decompress((self.home / digest[:2] / digest).read_bytes())


class Ended(NamedTuple):
    """The end of a function that ran in its own child."""

    status: int
    stdout: bytes
    stderr: bytes
    usage: resource.struct_rusage


def in_child(function: Callable[[], int]) -> Ended:
    """Run a function in its own child; return its status, its output and what it used."""
    both = [os.memfd_create(name) for name in ("stdout", "stderr")]
    child = os.fork()
    if not child:
        status = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(both[0], 1)
            os.dup2(both[1], 2)
            signal.alarm(A_WHILE)
            status = int(function())
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    _, waited, usage = os.wait4(child, 0)
    printed = []
    for fd in both:
        with os.fdopen(fd, "rb") as file:
            file.seek(0)
            printed.append(file.read())
    return Ended(os.waitstatus_to_exitcode(waited), printed[0], printed[1], usage)


def run_case(
    run: Callable[[list[str]], int], case: dict[str, Any], store: Store, tree: Path
) -> dict[str, Any]:
    """Run the command lines of a case with a tree; return their recorded results."""
    # Only the code: the inputs and the Python of both trees stand under one of them.
    code = re.compile(re.escape(os.fsencode(tree)) + rb"(?=/(logtool|commands|formats)\b)")
    directory = Path(case["directory"]) if case["directory"] else None
    if directory:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if case["copied"]:
            copy(Path(case["copied"]), directory / Path(case["copied"]).name)
    began = _real_time_ns()
    results = [in_child(lambda: as_typed(run, words)) for words in case["words"]]  # noqa: B023
    recorded = {
        "name": case["name"],
        "status": " ".join(str(one.status) for one in results),
        "stdout": store.put(code.sub(b"TREE", b"".join(one.stdout for one in results))),
        "stderr": store.put(code.sub(b"TREE", b"".join(one.stderr for one in results))),
        "files": {},
    }
    if directory:
        recorded["files"] = {
            str(path.relative_to(directory)): _of_file(path, began, store)
            for path in sorted(directory.rglob("*"))
        }
        shutil.rmtree(directory)
    return recorded


def as_typed(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command line as if it was typed."""
    sys.argv = ["logtool", *words]
    return run(words)


def copy(source: Path, target: Path) -> None:
    """Copy a file or a directory with all that is in it, if it exists."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, copy_function=_copy_file)
    elif source.exists():
        shutil.copy2(source, target)


def _copy_file(source: str, target: str) -> None:
    """Copy a file with its times; a pipe becomes another pipe."""
    if stat.S_ISFIFO(os.lstat(source).st_mode):
        os.mkfifo(target)
        shutil.copystat(source, target)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _of_file(path: Path, began: int, store: Store) -> str:
    """Return mode, mtime and digest of a file that a command left; of a directory no digest."""
    status = path.lstat()
    when = "new" if status.st_mtime_ns >= began else str(status.st_mtime_ns)
    if stat.S_ISLNK(status.st_mode):
        content = os.fsencode(path.readlink())
    elif not stat.S_ISREG(status.st_mode):
        return f"{status.st_mode:o} {when}"
    elif path.suffix == ".parquet":
        content = b"".join(in_child(lambda: _print_table(path))[1:3])
    else:
        content = path.read_bytes()
    return f"{status.st_mode:o} {when} {store.put(content)}"


def _print_table(path: Path) -> int:
    """Print the columns of a table and its rows."""
    import pyarrow.parquet

    # Neither read_table nor timestamps as objects: both import pandas, which never ends where the
    # clock stands still.
    table = pyarrow.parquet.ParquetFile(path).read(use_threads=False)
    for number, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            values = table.column(number).cast(pyarrow.int64())
            table = table.set_column(number, f"{field.name}: {field.type}", values)
    sys.stdout.write(f"{table.schema.to_string()}\n")
    for row in table.to_pylist():
        sys.stdout.write(f"{row}\n")
    return 0


def _real_time_ns() -> int:
    """Return the time by a file system, which has no other clock than the real one; a moment
    earlier, since its clock ticks."""
    path = Path(f"../work/clock-{os.getpid()}")
    path.touch()
    os.utime(path)
    return path.stat().st_mtime_ns - 10**7


def main() -> None:
    """Answer each case on standard input."""
    tree, contents = Path(sys.argv[1]), Path(sys.argv[2])
    make_steady()
    run = load(tree)
    store = Store(contents)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        answers.write(json.dumps(run_case(run, json.loads(line), store, tree)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
