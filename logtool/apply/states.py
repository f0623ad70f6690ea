"""Progress of a step, found from the files on disk: there is no other record of it.

A name that a rename sets free is never filled again in one plan, so that a rename is done as soon
as the old name is gone. A file that is neither as before nor as after the step was changed by
another process. For a file that is replaced twice, one step shows what the other cannot:
before the first step, the second is not done either, and after the second, the first is done.
"""

import os
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import zip_longest
from pathlib import Path

from logtool.actions import FileChange
from logtool.apply.dirfd import ZEROS, OpenDir, OpenFile
from logtool.apply.steps import FileAttributes, FileStep
from logtool.errors import RefusedError
from logtool.formats.crc import crc32c
from logtool.lazy_dataclass import dataclass


class FileContent(Enum):
    """Content of the file of a step: before the step, after it, or in between."""

    OLD = "old"
    NEW = "new"
    BETWEEN = "between"
    """Part of what was cut off is back."""


@dataclass(frozen=True, slots=True)
class StepState:
    """A step and its progress."""

    step: FileStep
    path: Path
    """Present path of its file, or the path that a missing one would have."""
    content: FileContent

    @property
    def is_renamed(self) -> bool:
        """Return whether it has its other name already."""
        return self.step.is_renamed and self.path == self.step.after

    @property
    def is_done(self) -> bool:
        """Return whether the whole step was carried out."""
        if self.step.kind is FileChange.RENAME:
            return self.is_renamed
        return self.content is FileContent.NEW and self.is_renamed == self.step.is_renamed

    @property
    def is_untouched(self) -> bool:
        """Return whether the file is as it was before the plan."""
        return self.content is FileContent.OLD and not self.is_renamed


def checksum(blocks: Iterable[bytes]) -> int:
    """Return the CRC-32C of all blocks."""
    value = 0
    for block in blocks:
        value = crc32c(block, value)
    return value


def find(
    steps: Sequence[FileStep], home: OpenDir, undo: OpenDir, *, settled: bool
) -> list[StepState]:
    """Return the state of each step; RefusedError names a file that another process changed.

    `settled` means that everything was carried out: then no step can be half done.
    """
    places = [_place(step, home) for step in steps]
    pairs = list(zip(steps, places, strict=True))
    moved = {path for step, path in pairs if step.is_renamed and path == step.after}
    removed = {step.before for step in steps if step.kind is FileChange.REMOVE}
    contents = [_content(step, path, home, undo, settled, path in moved) for step, path in pairs]
    _link_replaced(steps, contents)
    states = []
    for (step, path), content in zip(pairs, contents, strict=True):
        if content is None:
            raise RefusedError(
                f"{path}: was changed by another process: the file matches neither its state "
                "before the step nor its state after the step; nothing was changed"
            )
        if step.is_renamed and path == step.before and step.after not in removed:
            _refuse_taken(step, home)
        states.append(StepState(step, path, content))
    return states


def _link_replaced(steps: Sequence[FileStep], contents: list[FileContent | None]) -> None:
    """Find the content of a file that is replaced twice from the other of its two steps."""
    last: dict[Path, int] = {}
    for at, step in enumerate(steps):
        if step.kind is not FileChange.REPLACE or step.is_renamed:
            continue
        before = last.get(step.path)
        if before is not None and steps[before].new == step.old:
            if contents[before] is FileContent.OLD and contents[at] is None:
                contents[at] = FileContent.OLD
            elif contents[before] is None and contents[at] is FileContent.NEW:
                contents[before] = FileContent.NEW
        last[step.path] = at


def _place(step: FileStep, home: OpenDir) -> Path:
    if step.after is None or (step.is_renamed and step.before and home.look(step.before)):
        return step.path
    return step.after


def _refuse_taken(step: FileStep, home: OpenDir) -> None:
    if step.after and home.look(step.after):
        raise RefusedError(f"{step.after}: already exists; nothing was changed")


def _content(
    step: FileStep, path: Path, home: OpenDir, undo: OpenDir, settled: bool, holds_another: bool
) -> FileContent | None:
    """Return the content of the file at `path`, None for one that is not of this step."""
    status = home.look(path)
    if step.kind is FileChange.REMOVE and (status is None or holds_another):
        return FileContent.NEW
    if status is None:
        return FileContent.OLD if step.kind is FileChange.CREATE else None
    if step.kind is FileChange.TRUNCATE:
        return _cut_content(step, path, status, home, undo, settled)
    if step.kind in (FileChange.RENAME, FileChange.REMOVE):
        return FileContent.OLD if _is_like(home, path, status, step.old) else None
    is_old = _has_bytes(home, path, status, step.old)
    is_new = _has_bytes(home, path, status, step.new)
    if is_old and is_new and step.old:
        # Old and new bytes are equal: only the mtime shows the difference.
        is_new = status.st_mtime_ns != step.old.mtime_ns
    return FileContent.NEW if is_new else FileContent.OLD if is_old else None


def _cut_content(
    step: FileStep, path: Path, status: os.stat_result, home: OpenDir, undo: OpenDir, settled: bool
) -> FileContent | None:
    old, new = step.old, step.new
    if old is None or new is None:
        return None
    if (status.st_size, status.st_mtime_ns) == (old.size, old.mtime_ns):
        return FileContent.OLD
    # A kill between the cut and the setting of its time leaves the time of the kill.
    if status.st_size == new.size and (not settled or status.st_mtime_ns == new.mtime_ns):
        return FileContent.NEW
    if settled or not new.size <= status.st_size <= old.size:
        return None
    with OpenFile(home, path) as file, OpenFile(undo, saved(undo, step)) as tail:
        begins = _begins(file.blocks(new.size), tail.blocks())
    return FileContent.BETWEEN if begins else None


def saved(undo: OpenDir, step: FileStep) -> Path:
    """Return the file of the undo directory with the old bytes of a step."""
    return undo.path / f"{step.number:06d}.old"


def written(undo: OpenDir, step: FileStep) -> Path:
    """Return the file of the undo directory with the new content of a step."""
    return undo.path / f"{step.number:06d}.new"


def _begins(tail: Iterable[bytes], whole: Iterable[bytes]) -> bool:
    """Return whether `tail` is a prefix of `whole`, then zeros: a write that power loss stopped."""
    ended = False
    for block, expected in zip_longest(tail, whole, fillvalue=b""):
        if ended or not expected.startswith(block):
            same = 0 if ended else _common(block, expected)
            if block[same:] != ZEROS[: len(block) - same]:
                return False
            ended = True
    return True


def _common(first: bytes, second: bytes) -> int:
    """Return the length of the common prefix of two blocks, in bytes."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _is_like(
    home: OpenDir, path: Path, status: os.stat_result, wanted: FileAttributes | None
) -> bool:
    """Return whether a file has the wanted size and mtime, or else the wanted bytes."""
    same = wanted and (status.st_size, status.st_mtime_ns) == (wanted.size, wanted.mtime_ns)
    return bool(same) or _has_bytes(home, path, status, wanted)


def _has_bytes(
    home: OpenDir, path: Path, status: os.stat_result, wanted: FileAttributes | None
) -> bool:
    if wanted is None or wanted.crc32c is None or status.st_size != wanted.size:
        return False
    with OpenFile(home, path) as file:
        return checksum(file.blocks()) == wanted.crc32c
