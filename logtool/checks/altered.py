"""Files that a tool changed while they were copied: line ends, pointers of git-lfs, logs left out.

Each fault has one cause for a whole log dir and hundreds of consequences. `verify` reports the
cause once, and leaves the consequences out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.findings import Finding, Severity
from logtool.formats import wording
from logtool.formats.names import DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.log.batches import read_batches
from logtool.log.dir import Partition

Item = Finding | UnreadableError

_POINTER = b"version https://git-lfs.github.com/spec/"
_LARGEST_POINTER = 1024
"""Bytes that a pointer of git-lfs has at most, by its specification."""
_FIRST_LOOK = 64 * 1024
"""Bytes of these that are read first: nearly always they show that no tool put in line ends."""
_WINDOW = 4 * 1024 * 1024
"""Bytes that are read from a damaged batch on; most batches are smaller."""
_KINDS = (".log", ".index", ".timeindex")
TEXTS = {
    "data-dir/line-ends": "a text tool put the byte 0D before each byte 0A; without these bytes 0D "
                          "the first damaged batch of each partition is sound",
    "data-dir/pointers": "git-lfs left pointers of text in place of the files",
    "data-dir/without-logs": "not one .log is there, but indexes or producer snapshots are: the "
                             "copy left the logs out",
}  # fmt: skip
"""Reason by the code of a finding."""


class AlteredFiles:
    """The partitions of one log dir that a tool changed, and the findings that this explains."""

    def __init__(self, *, alone: bool) -> None:
        """Take True for `alone` if a partition dir is checked without its log dir."""
        self._alone = alone
        self._altered: dict[str, list[Path]] = {}
        """Partitions by the code of their finding."""
        self._without_log: list[Path] = []
        self._waiting: list[Item] = []
        """Findings about partitions without a log, for as long as no partition has a log."""
        self._has_log = False

    def seen(self, partition: Partition, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items of a partition that no change by a tool explains."""
        if not partition.flavour.has_checkpoints:
            yield from items
            return
        if partition.segments:
            yield from self.sound()
        elif not self._has_log and _had_log(partition):
            self._waiting += items
            self._without_log.append(partition.path)
            return
        code = None
        for item in items:
            if code is None and isinstance(item, Finding) and item.severity is not Severity.INFO:
                code = None if item.path is None else cause(item.path, item.position)
                if code:
                    self._altered.setdefault(code, []).append(partition.path)
            if code is None or isinstance(item, UnreadableError):
                yield item

    def sound(self) -> Iterator[Item]:
        """Yield the findings that waited, because a partition has a log."""
        self._has_log = True
        yield from self._waiting
        self._waiting = []

    def finish(self, *, whole: bool) -> Iterator[Item]:
        """Yield one finding for each cause; `whole` says that every partition was seen."""
        for code, text in TEXTS.items():
            if paths := self._altered.get(code):
                yield Finding(code, _text(text, paths), path=self._place(paths))
        if whole and len(self._without_log) > 1 and not self._has_log:
            yield from (one for one in self._waiting if isinstance(one, UnreadableError))
            text = _text(TEXTS["data-dir/without-logs"], self._without_log)
            yield Finding("data-dir/without-logs", text, path=self._place(self._without_log))
        else:
            yield from self._waiting

    def _place(self, paths: list[Path]) -> Path:
        """Return the path of a finding about these partitions: their log dir, if it is checked."""
        return paths[0] if self._alone else paths[0].parent


def _text(cause: str, paths: list[Path]) -> str:
    """Return the message about partitions with one cause."""
    return f"{wording.count(len(paths), 'partition')}, first {paths[0].name}: {cause}"


def _had_log(partition: Partition) -> bool:
    """Return whether other files show that a partition in use had a log."""
    kind = getattr(partition.directory, "kind", None)
    return kind is DirectoryKind.LIVE and bool(partition.orphans or partition.snapshots)


def cause(path: Path, position: int | None) -> str | None:
    """Return the code of the change that explains damage of a log or an index; None for no change.

    `position` is the first damaged byte.
    """
    if not path.name.endswith(_KINDS):
        return None
    try:
        with LogFile(path) as file:
            if file.size <= _LARGEST_POINTER and file.read(0, file.size).startswith(_POINTER):
                return "data-dir/pointers"
            if not path.name.endswith(".log") or position is None:
                return None
            size = max(0, file.size - position)
            head = file.read(position, min(_FIRST_LOOK, size))
            if head.count(b"\n") > head.count(b"\r\n"):
                return None
            data = file.read(position, min(_WINDOW, size))
    except UnreadableError:
        return None
    ends = data.count(b"\r\n")
    if not ends or ends < data.count(b"\n"):
        return None
    return "data-dir/line-ends" if _begins_soundly(data.replace(b"\r\n", b"\n")) else None


def _begins_soundly(data: bytes) -> bool:
    """Return whether a sound batch begins at the first byte."""
    for chunk in read_batches(_Bytes(data, len(data)), base_offset=0, payload=False):
        return len(chunk.table) > 0 and int(chunk.table.position[0]) == 0
    return False


@dataclass(slots=True)
class _Bytes:
    """A log in memory."""

    data: bytes
    size: int = field(default=0)

    def read_into(self, buffer: memoryview, position: int) -> int:
        piece = self.data[position : position + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)
