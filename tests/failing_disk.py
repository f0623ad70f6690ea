"""A file system that fails as a disk does: a directory, mounted read-only, with unreadable bytes.

It speaks the kernel's FUSE protocol, so that a read goes the way that it goes on any disk: through
the page cache, which asks for pages and fails for all of one; through memory maps, whose reader
gets a SIGBUS; and past the cache. Source: ``include/uapi/linux/fuse.h`` of Linux, version 7.12 of
the protocol.
"""

import ctypes
import errno
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_READ_ONLY, _NO_SUID, _NO_DEV, _DETACH = 1, 2, 4, 2
_ADMIN = 21
_REQUEST = struct.Struct("<IIQQ16x")
"""Length, operation, unique number and node; who asks is not looked at."""
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _STATFS = 1, 2, 3, 14, 15, 17
_RELEASE, _FLUSH, _INIT, _OPENDIR, _READDIR, _RELEASEDIR, _BATCH_FORGET = 18, 25, 26, 27, 28, 29, 42
_LONGEST = 128 * 1024
_HOUR = 3600


def may_mount() -> bool:
    """Return whether this process may mount a file system of its own."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    is_admin = bool(int(status["CapEff"], 16) >> _ADMIN & 1)
    return is_admin and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextmanager
def failing_disk(source: Path, target: Path, bad: Mapping[str, range]) -> Iterator[Path]:
    """Mount the flat directory `source` at `target`; reads that touch a byte of `bad` fail.

    `bad` has bytes by the name of the file.
    """
    target.mkdir(parents=True)
    places = [f"{name}:{at.start}:{at.stop}" for name, at in bad.items()]
    command = [sys.executable, __file__, str(source), str(target), *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            assert server.stdout.readline() == "mounted\n"
            yield target
        finally:
            libc().umount2(os.fsencode(target), _DETACH)
            server.kill()


def libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class Server:
    """The program that answers the kernel."""

    def __init__(self, source: Path, target: str, bad: Mapping[str, range]) -> None:
        self._source, self._bad = source, bad
        self._names = ["", "", *sorted(path.name for path in source.iterdir())]
        """By number of the node: 1 is the directory."""
        self._device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other"
        flags = _READ_ONLY | _NO_SUID | _NO_DEV
        if libc().mount(b"failing", os.fsencode(target), b"fuse", flags, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")

    def run(self) -> None:
        """Answer until it is unmounted."""
        while request := self._next():
            _, operation, unique, node = _REQUEST.unpack_from(request)
            if operation in (_FORGET, _BATCH_FORGET):
                continue
            failed, answer = 0, b""
            try:
                answer = self._answer(operation, node, request[_REQUEST.size :])
            except OSError as error:
                failed = error.errno or errno.EIO
            head = struct.pack("<IiQ", 16 + len(answer), -failed, unique)
            os.write(self._device, head + answer)

    def _next(self) -> bytes:
        try:
            return os.read(self._device, 2 * _LONGEST)
        except OSError:
            return b""

    def _answer(self, operation: int, node: int, body: bytes) -> bytes:
        if operation == _INIT:
            version = (7, 12, _LONGEST, 0, 12, 9, _LONGEST)
            return struct.pack("<IIIIHHI", *version)
        if operation == _LOOKUP:
            name = os.fsdecode(body.rstrip(b"\0"))
            if name not in self._names[2:]:
                raise OSError(errno.ENOENT, name)
            number = self._names.index(name)
            return struct.pack("<QQQQQ", number, 0, _HOUR, _HOUR, 0) + self._look(number)
        if operation == _GETATTR:
            return struct.pack("<QQ", _HOUR, 0) + self._look(node)
        if operation in (_OPEN, _OPENDIR):
            return bytes(16)
        if operation == _READ:
            _, position, size = struct.unpack_from("<QQI", body)
            return self._read(self._names[node], position, size)
        if operation == _READDIR:
            _, position, size = struct.unpack_from("<QQI", body)
            return self._entries(position, size)
        if operation == _STATFS:
            return struct.pack("<QQQQQIIII24x", 1, 0, 0, 1, 0, 4096, 255, 4096, 0)
        if operation in (_RELEASE, _RELEASEDIR, _FLUSH):
            return b""
        raise OSError(errno.ENOSYS, "")

    def _look(self, node: int) -> bytes:
        found = (self._source / self._names[node]).stat()
        times = *[int(found.st_mtime)] * 3, *[found.st_mtime_ns % 10**9] * 3
        return struct.pack(
            "<QQQQQQIIIIIIIIII", node, found.st_size, found.st_size // 512 + 1, *times,
            found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0,
        )  # fmt: skip

    def _read(self, name: str, position: int, size: int) -> bytes:
        bad = self._bad.get(name, range(0))
        if max(bad.start, position) < min(bad.stop, position + size):
            raise OSError(errno.EIO, name)
        with (self._source / name).open("rb") as file:
            return os.pread(file.fileno(), size, position)

    def _entries(self, position: int, size: int) -> bytes:
        found = b""
        for node, name in list(enumerate(self._names))[max(position, 2) :]:
            encoded = os.fsencode(name)
            entry = struct.pack("<QQII", node, node + 1, len(encoded), 8) + encoded
            entry += bytes(-len(entry) % 8)
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


def main(source: str, target: str, *places: str) -> None:
    bad = {}
    for place in places:
        name, start, stop = place.split(":")
        bad[name] = range(int(start), int(stop))
    server = Server(Path(source), target, bad)
    sys.stdout.write("mounted\n")
    sys.stdout.flush()
    server.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
