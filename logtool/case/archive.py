"""The members of a case file: a tar archive of directories and files in frames.

Times are kept to the nanosecond, as pax records. A reader takes nothing but directories and files,
with paths that stay where they belong; FormatError for anything else.
"""

import tarfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from logtool.case.frames import FrameReader, FrameWriter
from logtool.errors import FormatError
from logtool.lazy_dataclass import dataclass

_BLOCK = tarfile.BLOCKSIZE
_PIECE = 1024 * 1024
_MOST_PAX = 64 * 1024
_LONGEST_PATH = 4096
_ENCODING, _ERRORS = "utf-8", "surrogateescape"
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CaseMember:
    """A directory or a file of an archive."""

    place: str
    """Path in the archive."""
    size: int = 0
    """Bytes."""
    mtime_ns: int = 0
    changed_ns: int | None = None
    """Time of the last change of its status (``ctime``); None: the file may be a copy."""
    is_dir: bool = False


class ArchiveWriter:
    """Writes members to a file, one after the other."""

    def __init__(self, file: BinaryIO) -> None:
        self._frames = FrameWriter(file)

    def add(
        self, member: CaseMember, blocks: Iterable[bytes | bytearray | memoryview] = ()
    ) -> None:
        """Write a member; where its content ends too early, or with an error, zeros follow.

        The error is raised once the member is whole. ValueError for content that is too long.
        """
        info = tarfile.TarInfo(member.place)
        info.type = tarfile.DIRTYPE if member.is_dir else tarfile.REGTYPE
        info.mode = 0o755 if member.is_dir else 0o644
        info.size, info.mtime = member.size, member.mtime_ns // _SECOND
        if not member.is_dir:
            info.pax_headers = {"mtime": _text(member.mtime_ns)}
            if member.changed_ns is not None:
                info.pax_headers["ctime"] = _text(member.changed_ns)
        self._frames.write(info.tobuf(tarfile.PAX_FORMAT, _ENCODING, _ERRORS))
        written = 0
        try:
            for block in blocks:
                written += len(block)
                if written > member.size:
                    raise ValueError(f"{member.place} has more than {member.size} bytes")
                self._frames.write(block)
        finally:
            while written < member.size:
                rest = bytes(min(_PIECE, member.size - written))
                self._frames.write(rest)
                written += len(rest)
            self._frames.write(bytes(-member.size % _BLOCK))

    def flush(self) -> None:
        """Write everything that waits."""
        self._frames.flush()

    def close(self) -> None:
        """Write the end of the archive."""
        self._frames.write(bytes(2 * _BLOCK))
        self._frames.flush()


class ArchiveReader:
    """Reads the members of a case file in order; FormatError where it is damaged."""

    def __init__(self, file: BinaryIO) -> None:
        self._frames = FrameReader(file)
        self._left = 0
        """Bytes of the last member, and behind it, that were not read yet."""
        self._padding = 0

    def members(self) -> Iterator[CaseMember]:
        """Yield each member; its `blocks` can be read before the next one is asked for."""
        while True:
            for _ in self.blocks():
                pass
            self._skip(self._padding)
            self._padding = 0
            pax: dict[str, str] = {}
            head = self._exactly(_BLOCK)
            if not any(head):
                if any(self._exactly(_BLOCK)):
                    raise FormatError("the archive does not end", self._frames.position)
                return
            info = self._info(head)
            if info.type == tarfile.XHDTYPE:
                if not 0 < info.size <= _MOST_PAX:
                    raise FormatError("a pax header is too large", self._frames.position)
                pax = _pax(self._exactly(info.size))
                self._skip(-info.size % _BLOCK)
                info = self._info(self._exactly(_BLOCK))
            member = self._member(info, pax)
            self._left, self._padding = member.size, -member.size % _BLOCK
            yield member

    def blocks(self) -> Iterator[memoryview]:
        """Yield the content of the last member; each block is good until the next."""
        while self._left:
            data = self._frames.read(self._left)
            if not len(data):
                raise FormatError("the archive ends in a file", self._frames.position)
            self._left -= len(data)
            yield data

    def _info(self, head: bytes) -> tarfile.TarInfo:
        try:
            return tarfile.TarInfo.frombuf(head, _ENCODING, _ERRORS)
        except tarfile.HeaderError as error:
            text = f"no member of an archive begins here: {error}"
            raise FormatError(text, self._frames.position) from error

    def _member(self, info: tarfile.TarInfo, pax: dict[str, str]) -> CaseMember:
        try:
            size = int(pax.get("size", info.size))
            mtime_ns = _nanoseconds(pax.get("mtime", str(info.mtime)))
            changed_ns = _nanoseconds(pax["ctime"]) if "ctime" in pax else None
        except ValueError as error:
            raise FormatError("a pax header has no number", self._frames.position) from error
        place = pax.get("path", info.name).rstrip("/")
        if info.type not in (tarfile.REGTYPE, tarfile.DIRTYPE):
            raise FormatError(f"{place!a} is no file and no directory", self._frames.position)
        is_dir = info.type == tarfile.DIRTYPE
        if size < 0 or (is_dir and size) or max(abs(mtime_ns), abs(changed_ns or 0)) >= 2**63:
            raise FormatError(f"{place!a} has an impossible size or time", self._frames.position)
        if not is_safe(place):
            raise FormatError(f"{place[:80]!a} is not a path in an archive", self._frames.position)
        return CaseMember(place, size, mtime_ns, changed_ns, is_dir)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._frames.read(size - len(data))
            if not len(part):
                raise FormatError("the archive ends too early", self._frames.position)
            data += bytes(part)
        return data

    def _skip(self, size: int) -> None:
        if size:
            self._exactly(size)


def is_safe(place: str) -> bool:
    """Return whether a path leads to a place below the directory that it is joined to."""
    parts = place.split("/")
    return (
        0 < len(place) <= _LONGEST_PATH
        and "\0" not in place
        and all(part not in ("", ".", "..") for part in parts)
    )


def _text(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, _SECOND)
    return f"{seconds}.{rest:09d}"


def _nanoseconds(text: str) -> int:
    """Return a time of a pax record in ns; ValueError."""
    seconds, _, rest = text.partition(".")
    return int(seconds) * _SECOND + int(rest[:9].ljust(9, "0"))


def _pax(data: bytes) -> dict[str, str]:
    """Return the records of a pax header: ``LENGTH KEY=VALUE`` and a line end each."""
    found = {}
    at = 0
    while at < len(data):
        number, _, _ = data[at : at + 8].partition(b" ")
        if not number.isdigit() or not len(number) + 1 < int(number) <= len(data) - at:
            raise FormatError("a pax header has no length", at)
        end = at + int(number)
        key, _, value = data[at + len(number) + 1 : end - 1].partition(b"=")
        found[key.decode(_ENCODING, _ERRORS)] = value.decode(_ENCODING, _ERRORS)
        at = end
    return found
