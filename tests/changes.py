"""A small log dir, a plan with every kind of change and its expected result; ways to fail.

This module works out the expected result without `logtool.apply`.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sparse
from verification import blocks_of, digest_of, fingerprint, small_log_dir

from logtool.actions import Change, FileChange, Stamp
from logtool.apply import Journal, disk

Tree = dict[str, Any]
SEGMENTS = ("small-segments-0", (0, 42, 77))
OTHER = "codec-none-0"
INDEX = b"\x00\x00\x00\x05\x00\x00\x01\x00" + bytes(1 << 20)


def make_log_dir(source: Path, target: Path) -> Path:
    """Copy two partitions of a log dir, one of them with three segments and an unfinished swap."""
    small_log_dir(source, target, SEGMENTS[0], OTHER)
    home = target / SEGMENTS[0]
    for path in home.iterdir():
        if path.name[:20].isdigit() and int(path.name[:20]) not in SEGMENTS[1]:
            path.unlink()
    (home / f"{0:020d}.timeindex.swap").write_bytes(b"swapped in")
    (home / f"{0:020d}.index").chmod(0o640)
    for path in (*home.iterdir(), home, target / OTHER, target):
        os.utime(path, ns=(1, 1_700_000_000_123_456_789))
    return target


def stamp(path: Path) -> Stamp:
    status = path.stat()
    return Stamp(status.st_size, status.st_mtime_ns)


def change(kind: FileChange, path: Path, **more: Any) -> Change:
    return Change(kind, path, stamp(path) if path.exists() else None, **more)


def all_kinds(log_dir: Path) -> list[list[Change]]:
    """Return a plan in three parts: two partitions and the files of the root."""
    home, other = log_dir / SEGMENTS[0], log_dir / OTHER
    cut = home / f"{42:020d}.log"
    swap = home / f"{0:020d}.timeindex.swap"
    snapshot = other / f"{300:020d}.snapshot"
    renamed = other / f"{301:020d}.snapshot"
    log, moved = other / f"{0:020d}.log", other / f"{0:020d}.log.swap"
    return [
        [
            *(change(FileChange.REMOVE, path) for path in sorted(home.glob(f"{77:020d}.*"))),
            change(FileChange.TRUNCATE, cut, size=cut.stat().st_size // 2),
            change(FileChange.REPLACE, cut.with_suffix(".index"), content=INDEX),
            change(FileChange.CREATE, cut.with_suffix(".txnindex"), content=b"aborted"),
            change(FileChange.REMOVE, swap.with_suffix("")),
            change(FileChange.RENAME, swap, target=swap.with_suffix("")),
        ],
        [
            change(FileChange.RENAME, snapshot, target=renamed),
            Change(FileChange.REPLACE, renamed, stamp(snapshot), b"new snapshot"),
            change(FileChange.TRUNCATE, log, size=100),
            change(FileChange.RENAME, log, target=moved),
        ],
        [
            change(
                FileChange.REPLACE, log_dir / "recovery-point-offset-checkpoint", content=b"0\n0\n"
            ),
            change(FileChange.CREATE, log_dir / ".kafka_cleanshutdown", content=b'{"version":0}'),
        ],
    ]


def expected(before: Tree, log_dir: Path) -> Tree:
    """Return names, modes and bytes that the plan of `all_kinds` makes of a log dir."""
    after = {bytes.fromhex(name).decode(): (row[0], *row[2:]) for name, row in before.items()}
    after = {name: row for name, row in after.items() if f"/{77:020d}." not in name}
    home, other = SEGMENTS[0], OTHER
    segment = f"{home}/{42:020d}"

    def put(name: str, data: bytes, mode: int) -> None:
        after[name] = (mode, len(data), digest_of(blocks_of(data)))

    def pop(name: str) -> int:
        return int(after.pop(name)[0])

    log = (log_dir / f"{segment}.log").read_bytes()
    put(f"{segment}.log", log[: len(log) // 2], pop(f"{segment}.log"))
    put(f"{segment}.index", INDEX, pop(f"{segment}.index"))
    put(f"{segment}.txnindex", b"aborted", 0o100644)
    after[f"{home}/{0:020d}.timeindex"] = after.pop(f"{home}/{0:020d}.timeindex.swap")
    mode = pop(f"{other}/{300:020d}.snapshot")
    put(f"{other}/{301:020d}.snapshot", b"new snapshot", mode)
    log = (log_dir / other / f"{0:020d}.log").read_bytes()
    put(f"{other}/{0:020d}.log.swap", log[:100], pop(f"{other}/{0:020d}.log"))
    checkpoint = "recovery-point-offset-checkpoint"
    put(checkpoint, b"0\n0\n", pop(checkpoint))
    put(".kafka_cleanshutdown", b'{"version":0}', 0o100644)
    return without_dir_sizes(after)


def result(log_dir: Path) -> Tree:
    """Return names, modes and bytes of a log dir, as `expected`."""
    rows = fingerprint(log_dir).items()
    return without_dir_sizes(
        {bytes.fromhex(name).decode(): (row[0], *row[2:]) for name, row in rows}
    )


def without_dir_sizes(tree: Tree) -> Tree:
    """Return a tree in which a directory has no size: that is a matter of the file system."""
    return {name: row if row[-1] else (row[0],) for name, row in tree.items()}


def everything(log_dir: Path) -> Tree:
    """Return names, bytes, modes and mtimes of all files and directories."""
    return {name: row if row[3] else row[:2] for name, row in fingerprint(log_dir).items()}


def prepare(log_dir: Path, undo_dir: Path) -> Journal:
    """Begin and stage the plan of `all_kinds`."""
    journal = Journal.begin(undo_dir, log_dir, "logtool test")
    for part in all_kinds(log_dir):
        journal.stage(part)
    return journal


def carry_out(log_dir: Path, undo_dir: Path) -> None:
    """Do the whole plan of `all_kinds`."""
    journal = prepare(log_dir, undo_dir)
    journal.commit()
    journal.carry_out()


class Place:
    """Fresh copies of one log dir, each under the same name, with room for an undo directory."""

    def __init__(self, template: Path, home: Path) -> None:
        self.template = template
        self.log_dir = home / "data"
        self.undo_dir = home / "undo"
        self.before = everything(template)
        self.after = expected(fingerprint(template), template)

    def reset(self) -> None:
        """Put the log dir back by other means, and remove the undo dir."""
        for path in (self.log_dir, self.undo_dir):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.template, self.log_dir, symlinks=True, copy_function=sparse.copy)

    def do(self) -> None:
        carry_out(self.log_dir, self.undo_dir)

    def finish(self) -> None:
        Journal.open(self.undo_dir).finish()

    def undo(self) -> None:
        Journal.open(self.undo_dir).undo()

    @property
    def is_committed(self) -> bool:
        return (self.undo_dir / "journal.ndjson").exists()

    def assert_untouched(self) -> None:
        assert everything(self.log_dir) == self.before

    def assert_finished(self) -> None:
        assert result(self.log_dir) == self.after


def disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupt() -> None:
    raise KeyboardInterrupt


@contextmanager
def failing(number: int, fault: Callable[[], None]) -> Iterator[list[Path]]:
    """Let the n-th call that changes something fail (1 is the first); yields the files of all."""
    calls: list[Path] = []
    original = disk.change

    def counted(path: Path, call: Callable[..., Any], *arguments: Any) -> Any:
        calls.append(path)
        if len(calls) == number:
            return original(path, fault)
        return original(path, call, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "change", counted)
        patch.setattr(os, "fsync", lambda fd: None)  # a kill loses nothing that was written
        yield calls


def count(job: Callable[[], object]) -> int:
    """Return how many calls of a job change something."""
    with failing(0, lambda: None) as calls:
        job()
    return len(calls)


def killed(number: int, job: Callable[[], None]) -> bool:
    """Do a job in a child that dies just before its n-th change; False if it came to its end."""
    child = os.fork()
    if not child:
        try:
            with failing(number, lambda: os._exit(9)):
                job()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 9), "the child failed otherwise"
    return status == 9


def one(
    place: Place,
    kind: FileChange,
    name: str = "small-segments-0/00000000000000000042.log",
    **more: Any,
) -> Journal:
    """Carry out one change, and return its journal."""
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    journal.stage([change(kind, place.log_dir / name, **more)])
    journal.commit()
    journal.carry_out()
    return journal


def allocated(path: Path) -> int:
    """Return the bytes that a file has on the disk."""
    return path.stat().st_blocks * 512
