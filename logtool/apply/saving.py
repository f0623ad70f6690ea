"""Saving the bytes that a step needs into the undo directory; the log dir is only read."""

import os
import stat
import time
from collections.abc import Set
from pathlib import Path

from logtool.actions import FileChange, Stamp
from logtool.apply import disk
from logtool.apply.dirfd import BLOCK, MOST_MODE, OpenDir, OpenFile
from logtool.apply.states import checksum, saved, written
from logtool.apply.steps import Draft, FileAttributes, FileStep
from logtool.errors import RefusedError


def save(
    draft: Draft, number: int, home: OpenDir, undo: OpenDir, freed: Set[Path | None]
) -> FileStep:
    """Save the old and the new bytes; RefusedError if a file has changed since it was examined.

    `freed` are the names that other steps of the plan remove.
    """
    step = FileStep(
        number=number, kind=draft.kind, before=draft.before, after=draft.after, old=None, new=None
    )
    for path in step.paths:
        if not path.is_relative_to(home.path):
            raise RefusedError(f"{path}: is not inside {home.path}; nothing was changed")
    if draft.after not in (None, draft.before) and draft.after not in freed:
        _expect(home, draft.after, None)
    old = None if draft.before is None else _save_old(draft, draft.before, home, undo, number)
    new = _save_new(draft, old, home, undo, number)
    return FileStep(
        number=number, kind=draft.kind, before=draft.before, after=draft.after, old=old, new=new
    )


def save_again(
    draft: Draft, number: int, earlier: FileStep, home: OpenDir, undo: OpenDir
) -> FileStep:
    """Save the new bytes of a file that an `earlier` step replaces, too.

    Its old bytes are those that the earlier step writes.
    """
    if earlier.new is None:
        raise ValueError(f"{draft.before} has no replacement")
    step = FileStep(
        number=number,
        kind=draft.kind,
        before=draft.before,
        after=draft.after,
        old=earlier.new,
        new=_save_new(draft, earlier.new, home, undo, number),
    )
    with OpenFile(undo, written(undo, earlier)) as file:
        disk.write_new(undo, saved(undo, step), file.blocks())
    return step


def _expect(home: OpenDir, path: Path | None, seen: Stamp | None) -> None:
    """Raise RefusedError for a file that has changed since it was examined."""
    status = None if path is None else home.look(path)
    stamp = None if status is None else Stamp(status.st_size, status.st_mtime_ns)
    if stamp != seen:
        what = (
            "is gone"
            if not stamp
            else "exists now"
            if not seen
            else "has changed since the plan was made"
        )
        raise RefusedError(f"{path}: the plan is out of date: the file {what}; nothing was changed")


def _save_old(
    draft: Draft, path: Path, home: OpenDir, undo: OpenDir, number: int
) -> FileAttributes:
    if draft.seen is None:
        raise ValueError(f"{path} is to be changed, but was not looked at")
    _expect(home, path, draft.seen)
    crc = None
    target = undo.path / f"{number:06d}.old"
    # Status and bytes come from one descriptor: its name may lead to another file at any time.
    with OpenFile(home, path) as file:
        status = file.status
        mode = stat.S_IMODE(status.st_mode)
        if mode > MOST_MODE:
            text = f"{path}: has the mode {mode:04o}, which no file of a log dir has"
            raise RefusedError(f"{text}; nothing was changed")
        if draft.kind is FileChange.TRUNCATE:
            if draft.size is None or not 0 <= draft.size <= status.st_size:
                raise ValueError(f"{path} is to be cut to {draft.size} of {status.st_size} bytes")
            _, crc = disk.write_new(undo, target, file.blocks(draft.size))
        elif draft.kind is not FileChange.RENAME:
            crc = _keep(file, home, undo, target)
    _expect(home, path, draft.seen)
    return FileAttributes(
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        mode=mode,
        user=status.st_uid,
        group=status.st_gid,
        crc32c=crc,
    )


def _keep(file: OpenFile, home: OpenDir, undo: OpenDir, target: Path) -> int:
    """Keep a whole file under another name, or as a copy; return its CRC-32C."""
    if not disk.link(home, file.path, undo, target):
        return disk.write_new(undo, target, file.blocks(), like=file)[1]
    with OpenFile(undo, target) as kept:
        if not os.path.samestat(kept.status, file.status):
            raise RefusedError(f"{file.path}: was changed by another process; nothing was changed")
        disk.change(target, os.fsync, kept.fd)
        return checksum(kept.blocks())


def _save_new(
    draft: Draft, old: FileAttributes | None, home: OpenDir, undo: OpenDir, number: int
) -> FileAttributes | None:
    now = time.time_ns()
    if draft.kind is FileChange.TRUNCATE and old and draft.size is not None:
        return FileAttributes(
            size=draft.size, mtime_ns=now, mode=old.mode, user=old.user, group=old.group
        )
    content = draft.content
    if draft.after is None:
        return None
    if draft.blocks is not None:
        blocks = draft.blocks.blocks()
    elif content is not None:
        blocks = (content[i : i + BLOCK] for i in range(0, len(content), BLOCK))
    else:
        return None
    size, crc = disk.write_new(undo, undo.path / f"{number:06d}.new", blocks)
    if old:
        return FileAttributes(
            size=size, mtime_ns=now, mode=old.mode, user=old.user, group=old.group, crc32c=crc
        )
    # A new file gets the owner of its directory, so that the broker can open it.
    with home.reach(draft.after) as (fd, _):
        folder = os.fstat(fd)
    mode = stat.S_IMODE(folder.st_mode) & 0o666
    return FileAttributes(
        size=size, mtime_ns=now, mode=mode, user=folder.st_uid, group=folder.st_gid, crc32c=crc
    )
