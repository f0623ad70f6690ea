"""Directories and files that exist nowhere: pieces of other files, shown as a directory.

An `AssembledPath` stands for a `Path`, as a `RemotePath` does, and is listed and read by the same
functions of `logtool.disk.files`. The tree behind it says which files a directory has.
"""

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from logtool.disk.files import LogFile
from logtool.disk.remote import RemotePath
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass


class Pieces(Protocol):
    """Bytes that are read at positions."""

    size: int

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""


@dataclass(frozen=True, slots=True)
class AssembledFile:
    """The content of one file: bytes, pieces of others, or the whole of another."""

    content: bytes | Pieces | Path
    size: int
    mtime_ms: int = 0

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start` up to `stop`, fewer where the file ends."""
        content, stop = self.content, min(stop, self.size)
        if isinstance(content, bytes):
            return content[start:stop]
        data = bytearray(max(0, stop - start))
        if isinstance(content, Path | RemotePath):
            with LogFile(content, self.size) as file:
                return bytes(data[: file.read_into(memoryview(data), start)])
        return bytes(data[: content.read_into(memoryview(data), start)])


Entries = Mapping[str, AssembledFile | None]
"""Files of a directory by name; None for a directory."""


class AssembledTree(ABC):
    """The directories below an `AssembledPath`, as a file system of fsspec."""

    protocol = "assembled"
    flavour = "kafka"
    """Name of the flavour of the files."""
    places: Sequence[Path] = ()
    """Directories that hold the files it is made of."""

    @abstractmethod
    def entries(self, folder: str) -> Entries:
        """Return the content of a directory by its path, empty for the top; FileNotFoundError."""

    def ls(self, own: str, detail: bool = True) -> list[dict[str, Any]]:
        """Return the entries of a directory."""
        return [_info(name, file) for name, file in self.entries(own).items()]

    def info(self, own: str) -> dict[str, Any]:
        """Return the entry of a path."""
        return _info(own, self._entry(own))

    def cat_file(self, own: str, start: int, end: int) -> bytes:
        """Return a range of bytes of a file."""
        file = self._entry(own)
        if file is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        return file.read(start, end)

    def problems_of(self, folder: str) -> Sequence[UnreadableError]:
        """Return why parts of a directory that was listed are missing, by default nothing."""
        return ()

    def note(self, folder: str, problems: Sequence[UnreadableError]) -> None:
        """Take the problems of a directory that another process listed."""
        return

    def problems(self) -> Iterator[UnreadableError]:
        """Yield why parts of the directories that were listed are missing, by default nothing."""
        return iter(())

    def shown(self, own: str) -> str | None:
        """Return the name under which a path is printed; None for that below the place."""
        return None

    def invalidate_cache(self, own: str) -> None:
        """Keep everything: the tree is what its objects were when it was read."""
        return

    def _entry(self, own: str) -> AssembledFile | None:
        folder, _, name = own.rpartition("/")
        if not own:
            return None
        try:
            return self.entries(folder)[name]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None


def _info(name: str, file: AssembledFile | None) -> dict[str, Any]:
    if file is None:
        return {"name": name, "type": "directory", "size": 0}
    return {"name": name, "type": "file", "size": file.size, "mtime": file.mtime_ms / 1000}


class AssembledPath(RemotePath):
    """A path in a tree; it prints as a path below the place that the tree is made from."""

    __slots__ = ("_own", "_tree")

    def __init__(self, tree: AssembledTree, place: str, own: str = "") -> None:
        self._tree, self._own = tree, own
        self._top, self._url = len(place), f"{place}/{own}" if own else place

    @property
    def tree(self) -> AssembledTree:
        """Return the tree that the path is in."""
        return self._tree

    @property
    def parent(self) -> "AssembledPath":
        """Return the directory it is in."""
        return self._at(self._own.rpartition("/")[0])

    def __truediv__(self, name: str) -> "AssembledPath":
        return self._at(f"{self._own}/{name}" if self._own else name)

    def system(self) -> tuple[AssembledTree, str]:
        """Return the tree, and the path in it."""
        return self._tree, self._own

    def _at(self, own: str) -> "AssembledPath":
        return AssembledPath(self._tree, self._url[: self._top], own)

    def __str__(self) -> str:
        return self._tree.shown(self._own) or self._url

    def __repr__(self) -> str:
        return f"AssembledPath({self._url!r})"
