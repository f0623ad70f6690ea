"""Log dirs that fsspec reaches by a URL, such as ``s3://bucket/broker-1``: listed, read by ranges.

A URL is passed as a `RemotePath`, which joins, prints, compares and pickles like the `Path` it
stands for, and holds only its text. Only this module and `logtool.disk.files` use the file system
behind it. It is not a `UPath`: that of hdfs loses its host and its parts, and joining takes forty
times as long.
Endpoint and credentials are found as fsspec and its file systems find them: for s3 the ``AWS_*``
variables with ``AWS_ENDPOINT_URL``, for all the files in ``~/.config/fsspec``. Nothing of fsspec is
imported, nor this module, before a URL is given. Every error of a library becomes an
`UnreadableError` of one line.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import total_ordering
from pathlib import Path, PurePosixPath
from typing import Any, cast

from logtool.errors import UnreadableError, UsageError
from logtool.lazy_dataclass import dataclass

READ_AHEAD = 8 * 1024 * 1024
"""Most bytes of one request when each read begins at the end of the last one."""
LEAST_READ = 256 * 1024
"""Bytes of one request for a single position: they take no longer than the round trip."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_LOCAL = ("file", "local")
_TIMES = ("mtime", "LastModified", "last_modified", "created")
_MISSING = "No such file or directory"


def parse(text: str) -> Path:
    """Return the path that a text names; UsageError for a URL of no installed file system.

    A ``file://`` URL is the local path in it.
    """
    scheme = _URL.match(text)
    if not scheme:
        return Path(text)
    if scheme[1].lower() in _LOCAL:
        return Path(text[scheme.end() :])
    try:
        import fsspec
    except ModuleNotFoundError as error:
        wants = f"{text} needs {error.name}: pip install 'kafka-logtool[remote]'"
        raise UsageError(wants) from error
    try:
        fsspec.get_filesystem_class(scheme[1])
        return cast(Path, RemotePath(text))
    except ImportError as error:
        if scheme[1] in ("s3", "s3a"):
            wants = f"{text} needs s3fs: pip install 'kafka-logtool[remote]'"
            raise UsageError(wants) from error
        raise UsageError(f"{text}: {describe(error)}") from error
    except ValueError as error:
        raise UsageError(f"{text}: {describe(error)}") from error


@total_ordering
class RemotePath:
    """Stand-in for a `Path` that is a URL: the methods of it that need no file system.

    The bucket or host has no name: it is its own parent, like the root of a `Path`.
    """

    __slots__ = ("_top", "_url")

    def __init__(self, url: str) -> None:
        top = url.find("/", url.index("://") + 3)
        self._top = top if top >= 0 else len(url)
        self._url = url[: self._top] + url[self._top :].rstrip("/")

    @property
    def name(self) -> str:
        """Return the text behind the last slash."""
        return self._url[self._top :].rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """Return the end of the name from the last dot on; empty without one."""
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> "RemotePath":
        """Return the directory it is in."""
        return RemotePath(self._url[: self._top] + self._url[self._top :].rpartition("/")[0])

    @property
    def parents(self) -> tuple["RemotePath", ...]:
        """Return all directories it is in, the nearest first."""
        parent = self.parent
        return () if parent == self else (parent, *parent.parents)

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self._url}/{name}")

    def with_name(self, name: str) -> "RemotePath":
        """Return the path of another name in the same directory as this path."""
        return self.parent / name

    def absolute(self) -> "RemotePath":
        """Return itself: there is no current directory."""
        return self

    def resolve(self) -> "RemotePath":
        """Return itself: only the file system behind the URL knows its links."""
        return self

    def system(self) -> tuple[Any, str]:
        """Return the file system of fsspec behind the URL, and the path in it."""
        import fsspec

        system, own = fsspec.core.url_to_fs(self._url)
        return system, own

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"RemotePath({self._url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._url == other._url

    def __lt__(self, other: "RemotePath") -> bool:
        return self._url < other._url

    def __hash__(self) -> int:
        return hash(self._url)


@dataclass(frozen=True, slots=True)
class RemoteEntry:
    """An entry of a listing, with the methods of `os.DirEntry`."""

    name: str
    kind: str
    """``file`` or ``directory``; anything else is neither."""
    size: int
    mtime_ns: int
    """Time of storing, in ns; 0 if the listing does not have it."""
    etag: str | None = None
    """The store's tag for the content, which differs for any other content; None without one."""

    def is_dir(self) -> bool:
        """Return whether it is a directory."""
        return self.kind == "directory"

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it can be read."""
        return self.kind == "file"

    def is_symlink(self) -> bool:
        """Return False: only the file system behind the URL knows its links."""
        return False


def list_dir(path: Path) -> list[RemoteEntry]:
    """Return the entries of a directory, sorted by name, from a new listing and no cache."""
    system, own = _system(path)
    with _translated(path):
        try:
            infos = system.ls(own, detail=True)
        finally:
            system.invalidate_cache(own)
        # A directory may have an empty object of its own name there; a file lists itself.
        itself = [info for info in infos if info["name"].strip("/") == own.strip("/")]
        if any(info["type"] == "file" and info["size"] for info in itself):
            raise NotADirectoryError("Not a directory")
        entries = [_entry(info) for info in infos if info not in itself]
    return sorted(entries, key=lambda entry: entry.name)


def find(path: Path) -> list[tuple[str, int]]:
    """Return key below `path` and size of every file below it, from one listing in pages."""
    system, own = _system(path)
    with _translated(path):
        try:
            found = system.find(own, detail=True)
        finally:
            system.invalidate_cache(own)
    top = len(own.strip("/")) + 1
    return [(name.strip("/")[top:], info.get("size") or 0) for name, info in sorted(found.items())]


def look(path: Path) -> RemoteEntry:
    """Return the entry of a path itself, without listing a directory."""
    system, own = _system(path)
    with _translated(path):
        return _entry(system.info(own))


def read(path: Path, start: int, stop: int) -> bytes:
    """Return the bytes from `start` up to `stop`, fewer where the file ends: one request."""
    system, own = _system(path)
    # Else Arrow opens a stream for a range from 0 on, which has no limit.
    more = {"seekable": True} if system.protocol == "hdfs" else {}
    with _translated(path):
        try:
            return bytes(system.cat_file(own, start=start, end=stop, **more))
        except OSError as error:
            if error.errno == errno.EINVAL:  # s3: the file ends before the range begins
                return b""
            raise


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    data: memoryview

    @property
    def stop(self) -> int:
        return self.start + len(self.data)


class RemoteFile:
    """A file read at positions, through the last two blocks of it that were fetched.

    It keeps two, because a sequential reader goes on a little before the end of the last block,
    with the batch that was cut there.
    """

    def __init__(self, path: Path, size: int | None) -> None:
        self._path = path
        self._blocks = [_Block(0, memoryview(b""))]
        if size is None:
            entry = look(path)
            if entry.kind != "file":
                raise UnreadableError(path, "is not a regular file")
            size = entry.size
        self.size = size
        """Size in bytes as listed, or less after a read found an earlier end."""

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill `buffer` from byte `position`; returns how many bytes the file still had."""
        done = 0
        while done < len(buffer) and position + done < self.size:
            piece = self._cached(position + done, len(buffer) - done)
            buffer[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def close(self) -> None:
        """Release the blocks."""
        self._blocks.clear()

    def _cached(self, position: int, size: int) -> memoryview:
        """Return at most `size` bytes from `position` on; empty only if the file ended early."""
        for block in self._blocks:
            if block.start <= position < block.stop:
                break
        else:
            block = self._fetch(position, size)
        at = position - block.start
        return block.data[at : at + size]

    def _fetch(self, position: int, size: int) -> "_Block":
        """Return a new block with the byte at `position`."""
        last = self._blocks[-1]
        goes_on = 0 < position == last.stop
        start = position if goes_on or size >= LEAST_READ else position - position % LEAST_READ
        ahead = min(READ_AHEAD, 4 * len(last.data)) if goes_on else LEAST_READ
        stop = min(self.size, max(start + ahead, position + size))
        block = _Block(start, memoryview(read(self._path, start, stop)))
        self._blocks = [last, block]
        if block.stop < stop:
            self.size = block.stop
        return block


def _system(path: Path) -> tuple[Any, str]:
    """Return the file system of a path, and the path in it."""
    with _translated(path):
        return cast(RemotePath, path).system()


def _entry(info: dict[str, Any]) -> RemoteEntry:
    name = info["name"].rstrip("/").rpartition("/")[2]
    if info["type"] == "file" and info.get("size") is None:
        raise ValueError(f"the size of {name} is not known")
    times = (info[key] for key in _TIMES if info.get(key) is not None)
    etag = info.get("ETag") or info.get("etag")
    return RemoteEntry(
        name=name,
        kind=info["type"],
        size=info.get("size") or 0,
        mtime_ns=_nanoseconds(next(times, None)),
        etag=None if etag is None else str(etag),
    )


def _nanoseconds(time: object) -> int:
    if isinstance(time, datetime):
        time = time.timestamp()
    return int(time * 1e9) if isinstance(time, int | float) else 0


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn any error of a file system's library into one line that names the path."""
    try:
        yield
    except UnreadableError:  # it names the file that it is about
        raise
    except Exception as error:
        missing = isinstance(error, FileNotFoundError)
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        # Any other text names what is missing, such as the bucket.
        unnamed = missing and (" " not in said or said == "Not Found")
        reason = _MISSING if unnamed else describe(error)
        raise UnreadableError(path, reason, missing=missing) from error


def describe(error: BaseException) -> str:
    """Return an error of a file system's library as one line.

    An error that a store answered comes with the operation and the code: ``GetObject: AccessDenied
    (403): Access Denied``.
    """
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    line = " ".join(text.split()) or type(error).__name__
    cause: BaseException | None = error
    while cause is not None and not hasattr(cause, "operation_name"):
        cause = cause.__cause__
    if cause is None:
        return line
    answer = getattr(cause, "response", {})
    given = answer.get("Error", {})
    code, said = given.get("Code", type(cause).__name__), given.get("Message", line)
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    number = "" if status is None or str(status) == code else f" ({status})"
    return f"{cause.operation_name}: {code}{number}: {' '.join(said.split())}"
