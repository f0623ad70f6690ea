"""The store of an output: files of this system, or objects that fsspec reaches behind a URL.

Names are those below the output, with slashes. Runs rest on one operation: `create` makes a whole
file appear under a name, for exactly one of the processes that try it at the same time. On this
system that is a hard link to a file that is durable already, on S3 a put with ``If-None-Match: *``.
Errors within `translated` become an `UnwritableError` of one line.
"""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.fs

from logtool.disk import files, remote
from logtool.errors import LogtoolError, UnwritableError, UsageError

_WITHOUT_DIRECTORIES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"})
"""Protocols of fsspec whose files need no directory to be in."""
_SYNCS_AT_ONCE = 16
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV, errno.ENOSYS)


class StoredName(NamedTuple):
    """A name in a directory."""

    name: str
    is_dir: bool


class Store(Protocol):
    """The files of one output."""

    def entries(self, folder: str) -> list[StoredName]:
        """Return the names in a directory, sorted; an empty list if it does not exist."""

    def files(self, folder: str) -> list[str]:
        """Return the names of all files below a directory."""

    def read(self, name: str) -> bytes:
        """Return a whole file; FileNotFoundError without one."""

    def put(self, name: str, data: bytes) -> None:
        """Write a whole file, which need not be durable; an older file is replaced atomically."""

    def create(self, name: str, data: bytes) -> bool:
        """Write a whole file and make it durable; False, and no change, if the name exists."""

    def stream(self, name: str) -> Any:
        """Open a new file for Arrow to write; its directory is made, but not the parent of that."""

    def sync(self, name: str) -> None:
        """Make the bytes of a file durable that `stream` wrote; its name is not durable yet."""

    def sync_all(self, names: Sequence[str], folder: str) -> None:
        """Make the bytes of files durable, and all names in `folder` and in its directories."""

    def copy(self, source: str, target: str) -> None:
        """Give a file that never changes a second name; FileNotFoundError if it does not exist."""

    def make_dir(self, folder: str) -> None:
        """Make a directory and its parents, if the store has directories."""

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""

    def delete_tree(self, folder: str) -> None:
        """Remove a directory with everything in it, if it exists."""

    def probe(self) -> None:
        """Write a file and remove it, to find out whether the output can be made."""

    def exists(self) -> bool:
        """Return whether the output exists; one without directories needs a file in it."""


class LocalStore:
    """An output on this system."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def entries(self, folder: str) -> list[StoredName]:
        """Return the names in a directory, sorted; an empty list if it does not exist."""
        try:
            with os.scandir(self._root / folder) as found:
                return sorted(
                    StoredName(one.name, one.is_dir(follow_symlinks=False)) for one in found
                )
        except FileNotFoundError:
            return []

    def files(self, folder: str) -> list[str]:
        """Return the names of all files below a directory."""
        names = []
        for one in self.entries(folder):
            name = f"{folder}/{one.name}"
            names += self.files(name) if one.is_dir else [name]
        return names

    def read(self, name: str) -> bytes:
        """Return a whole file; FileNotFoundError without one."""
        return (self._root / name).read_bytes()

    def put(self, name: str, data: bytes) -> None:
        """Write a whole file, which need not be durable; an older file is replaced atomically."""
        target = self._root / name
        try:
            with _temporary(target, data, durable=False) as temporary:
                temporary.replace(target)
        except FileNotFoundError:
            if not target.parent.exists():
                raise
            self.put(name, data)  # another process removed the temporary file as left over

    def create(self, name: str, data: bytes) -> bool:
        """Write a whole file and make it durable; False, and no change, if the name exists."""
        target = self._root / name
        with _temporary(target, data) as temporary:
            try:
                target.hardlink_to(temporary)
            except FileExistsError:
                return False
            except OSError as error:
                # Of two processes that get here at once the later wins: a file system without
                # links, such as FAT, has nothing better that keeps files whole in a power cut.
                if error.errno not in _NO_LINKS:
                    raise
                if target.exists():
                    return False
                temporary.replace(target)
        _sync(target.parent)
        return True

    def stream(self, name: str) -> Any:
        """Open a new file for Arrow to write; its directory is made, but not the parent of that."""
        target = self._root / name
        target.parent.mkdir(exist_ok=True)
        return pa.fs.LocalFileSystem().open_output_stream(str(target))

    def sync(self, name: str) -> None:
        """Make the bytes of a file durable that `stream` wrote; its name is not durable yet."""
        _sync(self._root / name)

    def sync_all(self, names: Sequence[str], folder: str) -> None:
        """Make the bytes of files durable, and all names in `folder` and in its directories."""
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:  # together: the disk takes them as one
            list(pool.map(self.sync, names))
        below = [f"{folder}/{one.name}" for one in self.entries(folder) if one.is_dir]
        for one in (*below, folder, folder.rpartition("/")[0], ""):
            _sync(self._root / one)

    def copy(self, source: str, target: str) -> None:
        """Give a file that never changes a second name; FileNotFoundError if it does not exist."""
        path = self._root / target
        path.parent.mkdir(exist_ok=True)
        try:
            path.hardlink_to(self._root / source)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            path.write_bytes(self.read(source))
            _sync(path)

    def make_dir(self, folder: str) -> None:
        """Make a directory and its parents."""
        (self._root / folder).mkdir(parents=True, exist_ok=True)

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self._root / name).unlink(missing_ok=True)

    def delete_tree(self, folder: str) -> None:
        """Remove a directory with everything in it, if it exists."""
        for one in self.entries(folder):
            name = f"{folder}/{one.name}"
            if one.is_dir:
                self.delete_tree(name)
            else:
                self.delete(name)
        with contextlib.suppress(FileNotFoundError):
            (self._root / folder).rmdir()

    def probe(self) -> None:
        """Write a file and remove it, and the directories that were made for it."""
        root = self._root.absolute()
        made = [folder for folder in (root, *root.parents) if not folder.exists()]
        try:
            root.mkdir(parents=True, exist_ok=True)
            with _temporary(root / "probe", b"", durable=False):
                pass
        finally:
            for folder in made:
                with contextlib.suppress(OSError):  # Another process uses it.
                    folder.rmdir()

    def exists(self) -> bool:
        """Return whether the directory exists."""
        return self._root.is_dir()


@contextlib.contextmanager
def _temporary(target: Path, data: bytes, *, durable: bool = True) -> Iterator[Path]:
    """Write a file next to a path, and remove it at the end if it still exists."""
    path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        yield path
    finally:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make a file, or the names in a directory, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class RemoteStore:
    """An output behind a URL: operations that S3 does in one request take one."""

    def __init__(self, system: Any, root: str) -> None:
        self._system = system
        self._root = root
        protocol = system.protocol
        known = {protocol} if isinstance(protocol, str) else set(protocol)
        self._has_directories = not known & _WITHOUT_DIRECTORIES

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    @contextlib.contextmanager
    def _named(self, name: str) -> Iterator[str]:
        """Yield the place of an object, and note its URL in an error."""
        try:
            yield self._at(name)
        except Exception as error:
            error.add_note(self._system.unstrip_protocol(self._at(name)))
            raise

    def entries(self, folder: str) -> list[StoredName]:
        """Return the names in a directory, sorted; an empty list if it does not exist."""
        path = self._at(folder)
        try:
            with self._named(folder):
                found = self._system.ls(path, detail=True)
        except FileNotFoundError:
            return []
        finally:
            self._system.invalidate_cache(path)
        named = ((one["name"].strip("/"), one["type"]) for one in found)
        return sorted(
            StoredName(name.rpartition("/")[2], kind == "directory")
            for name, kind in named
            if name != path.strip("/")
        )

    def files(self, folder: str) -> list[str]:
        """Return the names of all files below a directory."""
        path = self._at(folder)
        try:
            found = self._system.find(path)
        except FileNotFoundError:
            return []
        finally:
            self._system.invalidate_cache(path)
        return [f"{folder}/{name[len(path) :].strip('/')}" for name in found]

    def read(self, name: str) -> bytes:
        """Return a whole file; FileNotFoundError without one."""
        with self._named(name) as path:
            return bytes(self._system.cat_file(path))

    def put(self, name: str, data: bytes) -> None:
        """Write a whole file, which need not be durable; an older file is replaced atomically."""
        self._make_room(name)
        with self._named(name) as path:
            self._system.pipe_file(path, data)

    def create(self, name: str, data: bytes) -> bool:
        """Write a whole file and make it durable; False, and no change, if the name exists."""
        self._make_room(name)
        try:
            with self._named(name) as path:
                self._system.pipe_file(path, data, mode="create")
        except FileExistsError:
            return False
        except (NotImplementedError, TypeError):
            # The store, or its library, has no such put: of two at once both would succeed.
            if self._system.exists(self._at(name)):
                return False
            self._system.pipe_file(self._at(name), data)
        except OSError as error:
            if "PreconditionFailed" not in f"{error!r} {error.__cause__!r}":
                raise
            return False
        return True

    def stream(self, name: str) -> Any:
        """Open a new file for Arrow to write."""
        self._make_room(name)
        handler = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(self._system))
        return handler.open_output_stream(self._at(name))

    def sync(self, name: str) -> None:
        """Do nothing: what the store has taken is durable."""

    def sync_all(self, names: Sequence[str], folder: str) -> None:
        """Do nothing: what the store has taken is durable."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file inside the store; FileNotFoundError if it does not exist."""
        self._make_room(target)
        with self._named(source):
            self._system.cp_file(self._at(source), self._at(target))

    def make_dir(self, folder: str) -> None:
        """Make a directory and its parents, if the store has directories."""
        if self._has_directories:
            self._system.makedirs(self._at(folder), exist_ok=True)

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._at(name))

    def delete_tree(self, folder: str) -> None:
        """Remove a directory with everything in it, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._system.rm(self._at(folder), recursive=True)

    def probe(self) -> None:
        """Write an object and remove it."""
        name = f".{secrets.token_hex(4)}.tmp"
        self.put(name, b"")
        with contextlib.suppress(PermissionError):  # A store may allow no removal.
            self.delete(name)

    def exists(self) -> bool:
        """Return whether there is anything in it."""
        return bool(self.entries(""))

    def _make_room(self, name: str) -> None:
        if self._has_directories:
            self.make_dir(name.rpartition("/")[0])


def store_at(url: str) -> Store:
    """Return the store of a path or URL; UsageError for neither."""
    if "://" not in url:
        return LocalStore(url.rstrip("/") or "/")
    system, path = _behind(url)
    return RemoteStore(system, path.rstrip("/"))


def filesystem(url: str) -> tuple[Any, str]:
    """Return Arrow's file system of a path or URL, and the path in it; UsageError for neither."""
    if "://" not in url:
        return pa.fs.LocalFileSystem(), url.rstrip("/") or "/"
    system, path = _behind(url)
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(system)), path.rstrip("/")


@lru_cache(maxsize=64)
def _behind(url: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        text = f"{url} needs fsspec: pip install 'kafka-logtool[remote]'"
        raise UsageError(text) from error
    try:
        # Other processes change the files: no listing may be cached.
        system, path = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise UsageError(f"{url}: {error}") from error
    return system, path


@contextlib.contextmanager
def translated(place: str) -> Iterator[None]:
    """Raise UnwritableError of one line for an error of a file system; behind a URL for any error.

    The library of S3 has its own errors for missing credentials and for a lost connection.
    """
    try:
        yield
    except (LogtoolError, pa.ArrowException):
        raise
    except Exception as error:
        if not isinstance(error, OSError) and "://" not in place:
            raise
        named = getattr(error, "__notes__", ())
        raise UnwritableError(
            files.path_of(named[0] if named else place), remote.describe(error)
        ) from error
