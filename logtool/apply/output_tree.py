"""The directory that a command with ``--output`` makes, safe against a kill at any moment.

    DIR/logtool-unfinished/            what is not complete, and `run.ndjson`
    DIR/logtool-unfinished/run.ndjson  the command line, and each name in DIR that the run has made

Everything is written below ``logtool-unfinished``, made durable, and renamed to the same path below
DIR when it is complete. The folder is removed when the run ends. It lies in DIR, so that no log dir
below DIR ever holds it: an unknown folder in a log dir stops a broker. A run of the same command
replaces what a killed run left, and nothing else: a name that the killed run did not note is a
reason to refuse.
"""

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from logtool.apply import disk, outside, unfinished
from logtool.apply.dirfd import OpenDir
from logtool.disk import files, shell
from logtool.disk.unfinished import WORK
from logtool.errors import LogtoolError, RefusedError
from logtool.formats import wording

_RUN = "run.ndjson"
_FIRST = "run.ndjson.new"


class OutputTree:
    """A new directory whose files and folders get their places when they are complete."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        self.path = path.resolve()
        self.work = self.path / WORK
        """Folder of what is not complete; the paths below it are those below `path`."""
        self._command = command or shell.join(["logtool", *sys.argv[1:]])
        self._home: OpenDir | None = None
        self._lock: OpenDir | None = None
        self._made: set[str] = set()
        self._begun = False

    def check(self, log_dirs: Iterable[Path]) -> None:
        """Raise RefusedError if it is in use, not empty, or in a log dir.

        What a killed run of the same command left is removed.
        """
        for log_dir in log_dirs:
            outside.check_place(self.path, log_dir)
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise RefusedError(f"{self.path}: exists and is not a directory")
        names = {entry.name for entry in files.list_dir(self.path)}
        if WORK in names:
            try:
                self._take_over(names - {WORK})
            except BaseException:
                self.close()  # What it holds is not of this run: it is left alone.
                raise
        elif names:
            raise RefusedError(f"{self.path}: is not empty; use a new directory")

    def folder(self, place: Path) -> OpenDir:
        """Return a folder for what is not complete, made if needed; `place` is below `path`."""
        self._begin()
        assert self._lock
        return _made(self._lock, self.work, place)

    def final(self, place: Path) -> OpenDir:
        """Return a folder with its final name, made if needed; `place` is below `path`."""
        self._begin()
        assert self._home
        if place.parts:
            self._note(place.parts[0])
        return _made(self._home, self.path, place)

    def write(self, place: Path, blocks: Iterable[bytes]) -> int:
        """Write a file that is not complete before `complete` is called, for it or its folder.

        Return its size.
        """
        home, path = self.folder(place.parent), self.work / place
        try:
            return disk.write_new(home, path, blocks)[0]
        except BaseException:
            with suppress(LogtoolError, OSError):
                disk.remove(home, path)
            raise

    def complete(self, place: Path) -> Path:
        """Give a file or folder its final name, durably, and return this name."""
        source, target = self.work / place, self.path / place
        home = self.final(place.parent)
        self._note(place.parts[0])
        assert self._home
        if source.is_dir():
            self._sync(source)
        disk.rename(self._home, source, target)
        disk.sync_dir(home, target.parent)
        return target

    def finish(self) -> None:
        """Remove the folder of what is not complete: the run has come to its end."""
        if self._home and self._lock:
            self._clear()
            disk.remove(self._lock, self.work / _RUN)
            disk.remove_dir(self._home, self.work)
            disk.sync_dir(self._home, self.path)
        self._begun = False
        self.close()

    def close(self) -> None:
        """Let go of the directory; what is not complete stays."""
        for one in (self._lock, self._home):
            if one:
                one.close()
        self._lock = self._home = None

    def _sync(self, folder: Path) -> None:
        assert self._lock
        for inner in sorted(folder.rglob("*")):
            if inner.is_dir():
                disk.sync_dir(self._lock, inner)
        disk.sync_dir(self._lock, folder)

    def _begin(self) -> None:
        """Make the directory and the folder for what is not complete, and note the command."""
        if self._begun:
            return
        home = self._open()
        if self._lock is None:
            self._take_lock(home)
        assert self._lock
        if not (self.work / _RUN).exists():
            disk.remove(self._lock, self.work / _FIRST)
            disk.write_new(self._lock, self.work / _FIRST, [_line({"command": self._command})])
            disk.rename(self._lock, self.work / _FIRST, self.work / _RUN)
            disk.sync_dir(self._lock, self.work)
        self._begun = True

    def _open(self) -> OpenDir:
        if self._home is None:
            parent = OpenDir(self.path.parent)
            exists = self.path.exists()
            self._home = OpenDir(self.path, parent) if exists else disk.make_dir(parent, self.path)
        return self._home

    def _take_lock(self, home: OpenDir) -> None:
        exists = self.work.exists()
        self._lock = OpenDir(self.work, home) if exists else disk.make_dir(home, self.work)
        if not unfinished.lock(self._lock.fd):
            raise RefusedError(f"{self.path}: another run of logtool writes there")

    def _note(self, name: str) -> None:
        """Note a name in the directory before it is made."""
        if name in self._made:
            return
        assert self._lock
        size = (self.work / _RUN).stat().st_size
        disk.append(self._lock, self.work / _RUN, size, [_line({"made": name})])
        self._made.add(name)

    def _take_over(self, names: set[str]) -> None:
        """Remove what a killed run of the same command left of its output."""
        home = self._open()
        self._take_lock(home)
        lines = self._noted()
        if not lines:
            if not names:
                self._clear()
                return
            assert self._lock
            if not self._lock.names():
                disk.remove_dir(home, self.work)
                raise RefusedError(f"{self.path}: is not empty: an earlier run has completed it")
        command = lines[0].get("command") if lines else None
        if command != self._command:
            text = f"{self.path}: holds the unfinished output of another command"
            raise RefusedError(f"{text}; use a new directory, or run: {command or 'logtool'}")
        made = {str(line["made"]) for line in lines[1:] if "made" in line}
        if strange := sorted(names - made):
            text = f"{wording.count(len(strange), 'name')} that no run of logtool has noted"
            raise RefusedError(f"{self.path}: holds {text} (first: {strange[0]}); use a new one")
        self._clear()
        # A kill while they are removed must leave nothing incomplete with a final name.
        assert self._lock
        for name in sorted(names):
            disk.rename(home, self.path / name, self.work / name)
        disk.sync_dir(home, self.path)
        self._clear()
        disk.remove(self._lock, self.work / _RUN)
        disk.sync_dir(self._lock, self.work)

    def _noted(self) -> list[dict[str, object]]:
        """Return the lines of the run that has noted them; a torn line is left out."""
        found: list[dict[str, object]] = []
        with suppress(OSError, ValueError, LogtoolError):
            for line in files.read_small(self.work / _RUN).splitlines(keepends=True):
                one = json.loads(line) if line.endswith(b"\n") else None
                found += [one] if isinstance(one, dict) else []
        return found

    def _clear(self) -> None:
        """Remove everything that is not complete, but for the notes of the run."""
        assert self._lock
        for name in self._lock.names():
            if name != _RUN:
                disk.remove_tree(self._lock, self.work / name)


def _made(home: OpenDir, root: Path, place: Path) -> OpenDir:
    """Return a folder below an open directory, made if it does not exist."""
    for folder in (*reversed(place.parents[:-1]), place) if place.parts else ():
        path = root / folder
        home = OpenDir(path, home) if path.exists() else disk.make_dir(home, path)
    return home


def _line(content: dict[str, str]) -> bytes:
    return json.dumps(content).encode() + b"\n"
