"""A log that is put together from pieces of other files, read like one file."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.lazy_dataclass import dataclass

_BLOCK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Extract:
    """Bytes of a file, and the inode of the file when it was examined."""

    path: Path
    position: int
    size: int
    inode: int


class Joined:
    """Pieces of files, one behind the other. Nothing of them is kept in memory."""

    def __init__(self, pieces: Iterable[Extract]) -> None:
        self._pieces = tuple(piece for piece in pieces if piece.size)
        self.size = sum(piece.size for piece in self._pieces)

    def cut(self, size: int) -> "Joined":
        """Return its first `size` bytes."""
        return Joined(piece for piece, _ in self._between(0, size))

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from `position`; return the number of bytes that there were."""
        done = 0
        for piece, at in self._between(position, position + len(buffer)):
            with LogFile(piece.path) as file:
                done += _read(file, piece.position, buffer[at : at + piece.size])
        return done

    def blocks(self) -> Iterator[bytes]:
        """Yield its bytes; UnreadableError if a file was replaced since it was examined."""
        for piece in self._pieces:
            if inode(piece.path) != piece.inode:
                raise UnreadableError(piece.path, "was replaced after logtool checked it")
            with LogFile(piece.path) as file:
                for start in range(0, piece.size, _BLOCK):
                    data = bytearray(min(_BLOCK, piece.size - start))
                    _read(file, piece.position + start, memoryview(data))
                    yield bytes(data)

    def _between(self, start: int, stop: int) -> Iterator[tuple[Extract, int]]:
        """Yield the parts of its pieces between two positions, with their distance from `start`."""
        at = 0
        for piece in self._pieces:
            low, high = max(start, at), min(stop, at + piece.size)
            if low < high:
                part = Extract(piece.path, piece.position + low - at, high - low, piece.inode)
                yield part, low - start
            at += piece.size

    def __enter__(self) -> "Joined":
        return self

    def __exit__(self, *error: object) -> None:
        pass


def inode(path: Path) -> int:
    """Return the inode of the file at a path; UnreadableError without a file."""
    try:
        return path.stat().st_ino
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error


def _read(file: LogFile, position: int, buffer: memoryview) -> int:
    count = file.read_into(buffer, position)
    if count < len(buffer):
        raise UnreadableError(file.path, "became shorter while logtool read it")
    return count
