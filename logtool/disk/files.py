"""Opening and reading files of a data directory: read-only by construction.

Every open is O_RDONLY, does not follow a symbolic link in the last component and never blocks on
a pipe. A failed read raises `UnreadableError`. `logtool.disk.remote` reads a path that is a URL.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeVar, cast

from logtool.errors import UnreadableError

if TYPE_CHECKING:
    from logtool.disk import remote
    from logtool.disk.mapped import MappedRange

Entry: TypeAlias = "os.DirEntry[str] | remote.RemoteEntry"
T = TypeVar("T")

SMALL_FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of the largest file that is read whole: six times the largest default index."""

_READ_AT_ONCE = 128 * 1024
"""Bytes of a file that is read before reading ahead makes a difference."""
_ZEROS = bytes(256 * 1024)
_PADDING = 64
"""Zeros that are read behind the last other byte, because an entry may end with zeros."""
_LEAST_MAPPED = 512 * 1024
"""Bytes for which a mapping costs less than a copy."""
MOST_MAPPED = 32 * 1024 * 1024
"""Bytes of files that are mapped at once, which count as memory of the process. With 8 MiB a pass
over batches of 16 KiB takes a twelfth more processor time: closing a mapping flushes a cache."""
_LEAST_SHARE = 8 * 1024 * 1024
"""Mapped bytes that each thread may have at least, for any number of threads."""
_NAME = attrgetter("name")
_MOST_LISTINGS = 100
"""Times that a directory is listed again: cleaning changes names some twenty times in a row."""
CHANGED = "user.logtool.changed"
"""Extended attribute with the ``ctime`` of the file that an expanded one stands for, in ns."""
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags with which every file is opened."""


def path_of(text: str) -> Path:
    """Return the path that a text names, also by a URL; UsageError for a URL of no known kind."""
    if "://" not in text:
        return Path(text)
    from logtool.disk import remote  # it takes a while

    return remote.parse(text)


def text_of(path: Path | str) -> str:
    """Return a path as text that a table can hold: bytes that are no UTF-8 are escaped."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_remote(path: Path) -> bool:
    """Return whether a path stands for a URL, which the system itself cannot open."""
    # A `RemotePath` is not a Path, although the types say so.
    return not isinstance(cast(object, path), Path)


def is_assembled(path: Path) -> bool:
    """Return whether a path stands for pieces of other files; see `logtool.disk.assembled`."""
    # That module takes a while to import, and few runs need it.
    return is_remote(path) and hasattr(path, "tree")


def real_path(path: Path) -> Path:
    """Return a path without links; a URL as it is."""
    return path if is_remote(path) else path.resolve()


def open_readonly(path: Path) -> int:
    """Return a file descriptor for reading a regular file of this system."""
    if is_remote(path):
        raise UnreadableError(path, "is not a local file; only local files can be opened")
    return _open(path)[0]


def read_small(path: Path, limit: int = SMALL_FILE_LIMIT) -> bytes:
    """Return the whole content of a file of at most `limit` bytes."""
    if is_remote(path):
        data: bytes = _remote().read(path, 0, limit + 1)
        if len(data) > limit:
            raise UnreadableError(path, f"is larger than the limit of {limit:,} bytes")
        return data
    with LogFile(path) as file:
        hold_to_limit(path, file.size, limit)
        return file.read(0, file.size)


def glance(path: str, most: int) -> tuple[bytes, os.stat_result]:
    """Return the first `most` bytes of a local file in one read, and its status; OSError.

    This is for many small files: an error has no message, and another function reports it.
    """
    fd = os.open(path, READ_ONLY)
    try:
        return os.read(fd, most), os.fstat(fd)
    finally:
        os.close(fd)


def hold_to_limit(path: Path, size: int, limit: int = SMALL_FILE_LIMIT) -> None:
    """Raise UnreadableError for a file that is too large to be read whole."""
    if size > limit:
        raise UnreadableError(path, f"is {size:,} bytes, more than the limit of {limit:,}")


def list_dir(path: Path) -> Sequence[Entry]:
    """Return the entries of a directory, sorted by name."""
    if is_remote(path):
        listed: Sequence[Entry] = _remote().list_dir(path)
        return listed
    return _scan(path)


def _scan(path: Path) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=_NAME)
    except OSError as error:
        raise _unreadable(path, error, None) from error


def files_below(path: Path) -> Iterator[tuple[str, int]]:
    """Yield path below a directory and size of every file there; UnreadableError."""
    if is_remote(path):
        yield from _remote().find(path)
        return
    yield from _files_below(path, "")


def _files_below(path: Path, prefix: str) -> Iterator[tuple[str, int]]:
    for entry in list_dir(path):
        if is_dir(entry):
            yield from _files_below(path / entry.name, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, size_at(path / entry.name)


def at_one_moment(path: Path, described: Callable[[Sequence[Entry]], T]) -> T:
    """Return the result of `described` for the entries of a directory that a broker may change.

    A file that is renamed meanwhile may be in the listing under neither name. So a local directory
    is listed until two listings in a row have the same files, the second after `described` is done
    with the first; of one that is never at rest, the last one counts. Files of the same names have
    other inodes once the cleaner has put new ones in their place.
    """
    if is_remote(path):
        return described(list_dir(path))
    left = {True: _MOST_LISTINGS, False: 3}
    entries = _scan(path)
    while True:
        found, before, entries = described(entries), _inodes(entries), _scan(path)
        is_renamed = before.keys() != (now := _inodes(entries)).keys()
        if now == before or not left[is_renamed]:
            return found  # Some file systems give a file a new number each time.
        left[is_renamed] -= 1


def hold_to_readable(path: Path) -> None:
    """Raise UnreadableError if a local directory cannot be listed."""
    _scan(path)


def _inodes(entries: "list[os.DirEntry[str]]") -> dict[str, int]:
    return {one.name: one.inode() for one in entries}


def is_dir(entry: Entry) -> bool:
    """Return whether an entry is a directory or a link to one; a broken link is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _look(path: Path) -> "remote.RemoteEntry":
    """Return the entry that a URL leads to; UnreadableError if nothing is there."""
    found: remote.RemoteEntry = _remote().look(path)
    return found


def _remote() -> ModuleType:
    """Return the module for URLs, which local paths do not need."""
    from logtool.disk import remote

    return remote


def leads_to_dir(path: Path) -> bool:
    """Return whether `path` is a directory or leads to one; UnreadableError if nothing is there."""
    if is_remote(path):
        return _look(path).is_dir()
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        raise UnreadableError(path, error.strerror or str(error)) from error


def has_dir(path: Path) -> bool:
    """Return whether there is a directory at `path` that can be reached."""
    try:
        return leads_to_dir(path)
    except UnreadableError:
        return False


def size_at(path: Path) -> int:
    """Return the size of a file in bytes, of a link its own; UnreadableError without a file."""
    if is_remote(path):
        return _look(path).size
    with translated(path):
        return path.lstat().st_size


def is_replaced(path: Path, mtime_ns: int, etag: str | None) -> bool:
    """Return whether an object behind a URL is another one than a listing showed.

    ETags are compared, or the times of storing if there are no ETags; without either the answer is
    False. UnreadableError if the object is gone. One request.
    """
    now = _look(path)
    if etag is not None and now.etag is not None:
        return etag != now.etag
    return 0 not in (mtime_ns, now.mtime_ns) and mtime_ns != now.mtime_ns


def has_vanished(error: UnreadableError) -> bool:
    """Return whether a file that was listed is gone, as when a broker deletes it.

    No broker deletes files behind a URL: a listed file that is missing there could not be read.
    """
    return error.missing and not is_remote(error.path)


def real(path: Path) -> str:
    """Return the path with all links resolved: two paths with one result are one place."""
    return str(path) if is_remote(path) else os.path.realpath(path)


def each_once(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without those that lead to the same place as one before."""
    return list({real(path): path for path in reversed(paths)}.values())[::-1]


def device_of(path: Path) -> int | None:
    """Return the number of the device of a path; None behind a URL, or if nothing is there."""
    if is_remote(path):
        return None
    try:
        return path.stat().st_dev
    except OSError:
        return None


def changed_ns(path: Path) -> int:
    """Return when the status of a local file last changed (``ctime``), in ns; OSError.

    Of a file that was expanded from a case file, it is that of the file in the log dir.
    """
    with suppress(OSError, ValueError):
        return int(os.getxattr(path, CHANGED, follow_symlinks=False))
    return path.stat().st_ctime_ns


class LogFile:
    """A file that is read at positions, and may grow or shrink meanwhile.

    `size` is its size when it was opened: bytes that are appended later are not read, and if it
    shrank `read_into` returns less than asked. A caller that has a size from a listing gives it as
    `listed`: a URL then costs no request to open, and is taken to be that long.
    """

    stretch: ClassVar[int | None] = None
    """Bytes that a pass reads at most, ahead too, before it asks its pace; None without a rate."""

    def __new__(cls, path: Path, listed: int | None = None) -> "LogFile":
        """Return an object of the class that reads this type of path."""
        return super().__new__(_RemoteFile if is_remote(path) else cls)

    def __init__(self, path: Path, listed: int | None = None) -> None:
        self.path = path
        self._fd, self.size = _open(path)
        if self.size > _READ_AT_ONCE:
            ahead = os.POSIX_FADV_RANDOM if self.stretch else os.POSIX_FADV_SEQUENTIAL
            os.posix_fadvise(self._fd, 0, 0, ahead)

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from byte `position`; return the bytes that the file still had."""
        done = 0
        while done < len(buffer):
            # Bytes before a bad sector are returned first: the error comes at its start. This does
            # not use `translated`, which takes longer than to read a header.
            try:
                count = os.preadv(self._fd, [buffer[done:]], position + done)
            except OSError as error:
                raise _unreadable(self.path, error, position + done) from error
            if count == 0:
                break
            done += count
        return done

    def fileno(self) -> int:
        """Return the descriptor, for a system call that copies from it without reading."""
        return self._fd

    def map_range(self, position: int, size: int) -> "MappedRange | None":
        """Return a mapping of up to `size` bytes, as there is room; None if a copy is better."""
        if size < _LEAST_MAPPED or self.stretch:
            return None
        from logtool.disk.mapped import MappedRange  # few commands read large logs

        try:
            others = len(MappedRange.living)
            share = max(MOST_MAPPED // (others + 1), min(MOST_MAPPED, _LEAST_SHARE))
            return MappedRange(self._fd, position, min(size, share))
        except (OSError, ValueError):  # the file system cannot map, or the file is shorter by now
            return None

    def read(self, position: int, size: int) -> bytes:
        """Return `size` bytes from byte `position` on, fewer where the file ends."""
        data = bytearray(max(0, min(size, self.size_now() - position)))
        return bytes(data[: self.read_into(memoryview(data), position)])

    def read_unpadded(self, size: int) -> bytes:
        """Return the first `size` bytes, without most of the zeros at their end.

        A broker preallocates the indexes of an active segment with 10 MiB each: holes are not
        read, and blocks of zeros are compared in one buffer.
        """
        end = min(self.data_end(), size)
        block = memoryview(bytearray(len(_ZEROS)))
        while end >= len(block):
            self.read_into(block, end - len(block))
            if block.obj != _ZEROS:
                break
            end -= len(block)
        return self.read(0, min(end + _PADDING, size))

    def data_end(self) -> int:
        """Return the start of a hole that lasts to the end, which reads as zeros; or the size."""
        end = 0
        try:
            while end < self.size:
                end = os.lseek(self._fd, os.lseek(self._fd, end, os.SEEK_DATA), os.SEEK_HOLE)
        except OSError as error:  # no data is left, or the file system does not report holes
            return end if error.errno == errno.ENXIO else self.size
        return self.size

    def forget(self, position: int, size: int) -> None:
        """Advise the system that these bytes are not read again and need no page cache."""
        # Mapped bytes stay in the cache; so those mapped at the last call are named again.
        first = max(0, position - MOST_MAPPED)
        os.posix_fadvise(self._fd, first, position - first + size, os.POSIX_FADV_DONTNEED)

    def size_now(self) -> int:
        """Return the size at this moment."""
        return os.fstat(self._fd).st_size

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, if no `with` statement does."""
        os.close(self._fd)


class _RemoteFile(LogFile):
    """A file behind a URL; methods that concern only a local file, such as `forget`, do nothing."""

    def __init__(self, path: Path, listed: int | None = None) -> None:
        from logtool.disk import remote

        self.path = path
        self._window = remote.RemoteFile(path, listed)
        self.size = self._window.size

    def read_into(self, buffer: memoryview, position: int) -> int:
        return self._window.read_into(buffer, position)

    def map_range(self, position: int, size: int) -> None:
        return None

    def read(self, position: int, size: int) -> bytes:
        data = bytearray(max(0, min(size, self._window.size - position)))
        return bytes(data[: self._window.read_into(memoryview(data), position)])

    def read_unpadded(self, size: int) -> bytes:
        return self.read(0, size)

    def data_end(self) -> int:
        return self.size

    def forget(self, position: int, size: int) -> None:
        pass

    def size_now(self) -> int:
        """Return the listed size, or less if a read found the end; no request is made."""
        return self._window.size

    def close(self) -> None:
        self._window.close()


def _open(path: Path) -> tuple[int, int]:
    """Return a file descriptor for reading a regular file, and its size."""
    try:  # `translated` takes longer than to open a file
        fd = os.open(path, READ_ONLY)
    except OSError as error:
        raise _unreadable(path, error, None) from error
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise UnreadableError(path, "is not a regular file")
    return fd, status.st_size


@contextmanager
def translated(path: Path, position: int | None = None) -> Iterator[None]:
    """Turn an OSError into one line that names the file, and the byte that was to be read."""
    try:
        yield
    except OSError as error:
        raise _unreadable(path, error, position) from error


def _unreadable(path: Path, error: OSError, position: int | None) -> UnreadableError:
    if error.errno == errno.ELOOP:
        return UnreadableError(path, "is a symbolic link; logtool does not follow it")
    reason = error.strerror or str(error)
    reason = reason if position is None else f"byte {position}: {reason}"
    return UnreadableError(path, reason, missing=error.errno == errno.ENOENT)
