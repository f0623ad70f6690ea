"""Carrying out and undoing one step, from any progress; and the actions that report it."""

import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

from logtool.actions import Action, FileChange
from logtool.apply import disk
from logtool.apply.dirfd import OpenDir, OpenFile
from logtool.apply.states import FileContent, StepState, checksum, saved, written
from logtool.apply.steps import FileAttributes, FileStep
from logtool.errors import RefusedError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory

SUFFIX = ".logtool-tmp"
"""Suffix of a file that is not whole yet; a broker ignores it in a log dir and below."""


def carry_out(state: StepState, home: OpenDir, undo_dir: OpenDir) -> None:
    """Change the file of a step to its new state; names are not durable yet."""
    step, path = state.step, state.path
    _clear(step, home)
    if step.kind is FileChange.REMOVE:
        if state.content is FileContent.OLD:
            disk.remove(home, path)
        return
    if step.after and path != step.after and step.is_renamed:
        disk.rename(home, path, step.after)
        path = step.after
    if step.new is None:
        return
    if step.kind is FileChange.TRUNCATE:
        # Again if it is cut already: a kill may have come before that was durable.
        if not disk.cut(home, path, step.new.size, step.new.mtime_ns):
            with OpenFile(home, path) as file:
                _write_over(home, path, file.blocks(0, step.new.size), step.new, file)
    elif state.content is not FileContent.NEW:
        with OpenFile(undo_dir, written(undo_dir, step)) as source, ExitStack() as stack:
            like = stack.enter_context(OpenFile(home, path)) if step.old else None
            _write_over(home, path, source.blocks(), step.new, like)


def undo(state: StepState, home: OpenDir, undo_dir: OpenDir) -> None:
    """Change the file of a step back to its old state; names are not durable yet."""
    step, path = state.step, state.path
    _clear(step, home)
    if step.old is None:
        disk.remove(home, path)
        return
    if step.kind is FileChange.TRUNCATE and state.content is FileContent.OLD:
        disk.sync_file(home, path)
    elif state.content is not FileContent.OLD:
        with OpenFile(undo_dir, saved(undo_dir, step)) as source:
            if step.kind is FileChange.TRUNCATE and step.new:
                _put_tail_back(home, path, source, step.new, step.old)
            else:
                _put_back(home, path, undo_dir, source, step.old)
    if state.is_renamed and step.before:
        disk.rename(home, path, step.before)


def check_saved(states: Sequence[StepState], undo_dir: OpenDir) -> None:
    """Raise RefusedError if the saved bytes have changed since they were saved."""
    for item in states:
        if item.content is not FileContent.OLD:
            _check(saved(undo_dir, item.step), item.step.old, undo_dir)


def check_written(states: Sequence[StepState], undo_dir: OpenDir) -> None:
    """Raise RefusedError if the new content of a file has changed since it was written."""
    for item in states:
        if item.content is not FileContent.NEW:
            _check(written(undo_dir, item.step), item.step.new, undo_dir)


def _check(path: Path, look: FileAttributes | None, undo_dir: OpenDir) -> None:
    if look is None or look.crc32c is None:
        return
    with OpenFile(undo_dir, path) as source:
        if checksum(source.blocks()) != look.crc32c:
            text = f"{path}: differs from the bytes that logtool saved there; nothing was changed"
            raise RefusedError(text)


def actions(state: StepState) -> Iterator[Action]:
    """Yield the actions that are left to carry out a step."""
    step = state.step
    if step.is_renamed and not state.is_renamed:
        yield _action_of(
            step, FileChange.RENAME, "gets its other name", state.path, target=step.after
        )
    if step.kind is FileChange.RENAME or state.content is FileContent.NEW:
        return
    path = step.after or state.path
    old, new = step.old, step.new
    if step.kind is FileChange.TRUNCATE and old and new:
        reason = f"cut from {old.size:,} to {new.size:,} bytes"
        yield _action_of(step, FileChange.TRUNCATE, reason, path, new.size, old.size - new.size)
    else:
        size = new.size if new else old.size if old else None
        yield _action_of(step, step.kind, f"{step.kind}d", path, length=size)


def undo_actions(state: StepState) -> Iterator[Action]:
    """Yield the actions that are left to undo a step."""
    step = state.step
    old, new = step.old, step.new
    if old is None:
        if state.content is not FileContent.OLD:
            yield _action_of(
                step, FileChange.REMOVE, "was created", state.path, length=new.size if new else None
            )
        return
    if state.content is not FileContent.OLD:
        if step.kind is FileChange.TRUNCATE and new:
            reason = f"was cut from {old.size:,} to {new.size:,} bytes"
            yield _action_of(step, "append", reason, state.path, new.size, old.size - new.size)
        else:
            gone = step.kind is FileChange.REMOVE
            reason = "was removed" if gone else "has other content"
            word = FileChange.CREATE if gone else FileChange.REPLACE
            yield _action_of(step, word, reason, state.path, length=old.size)
    if state.is_renamed and step.after:
        reason = f"was renamed from {step.path.name}"
        yield _action_of(step, FileChange.RENAME, reason, step.after, target=step.before)


def _action_of(
    step: FileStep,
    action: str,
    reason: str,
    path: Path,
    position: int | None = None,
    length: int | None = None,
    target: Path | None = None,
) -> Action:
    home = names.parse_directory(path.parent.name)
    is_root = names.parse_root_file(step.path.name).kind is not FileKind.UNKNOWN
    of_partition = None if is_root or not isinstance(home, PartitionDirectory) else home
    return Action(
        action=action,
        path=path,
        reason=reason,
        topic=of_partition.topic if of_partition else None,
        partition=of_partition.partition if of_partition else None,
        segment=names.parse_partition_file(step.path.name).offset if of_partition else None,
        position=position,
        length=length,
        target=target,
    )


def _put_tail_back(
    home: OpenDir, path: Path, tail: OpenFile, new: FileAttributes, old: FileAttributes
) -> None:
    """Append its tail to a file that was cut; a file with other names is copied first."""
    if not disk.append(home, path, new.size, tail.blocks(), old.mtime_ns):
        with OpenFile(home, path) as file:
            whole = chain(file.blocks(0, new.size), tail.blocks())
            _write_over(home, path, whole, replace(old, crc32c=None), file)


def _put_back(
    home: OpenDir, path: Path, undo_dir: OpenDir, source: OpenFile, old: FileAttributes
) -> None:
    """Put the saved file back at `path`: the file itself if it is unchanged, else a copy."""
    if not _looks_like(source, old) or not disk.link(undo_dir, source.path, home, _temporary(path)):
        _write_over(home, path, source.blocks(), old, source)
        return
    disk.rename(home, _temporary(path), path)
    # If both are names of one file already, a rename does nothing.
    disk.remove(home, _temporary(path))


def _looks_like(file: OpenFile, look: FileAttributes) -> bool:
    """Return whether a file has these attributes: one with other names must not be changed."""
    status = file.status
    return look == FileAttributes(
        size=status.st_size,
        mtime_ns=status.st_mtime_ns,
        mode=stat.S_IMODE(status.st_mode),
        user=status.st_uid,
        group=status.st_gid,
        crc32c=look.crc32c,
    )


def _write_over(
    home: OpenDir, path: Path, blocks: Iterable[bytes], look: FileAttributes, like: OpenFile | None
) -> None:
    """Replace `path` with a new file, which is written under another name, then renamed."""
    temporary = _temporary(path)
    size, crc = disk.write_new(home, temporary, blocks, look, like)
    if size != look.size or look.crc32c not in (None, crc):
        disk.remove(home, temporary)
        raise RefusedError(f"{path}: its saved bytes were changed meanwhile")
    disk.rename(home, temporary, path)


def _clear(step: FileStep, home: OpenDir) -> None:
    """Remove an incomplete file that a kill left behind."""
    for path in step.paths:
        disk.remove(home, _temporary(path))


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)
