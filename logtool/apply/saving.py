"""Saving what a step needs into the undo directory; the log dir is only read."""

import os
import stat
import time
from collections.abc import Set
from pathlib import Path

from logtool.apply import disk
from logtool.apply.states import checksum, look
from logtool.apply.steps import Draft, Look, Step
from logtool.errors import RefusedError
from logtool.plan import Kind, Stamp


def save(draft: Draft, number: int, log_dir: Path, undo_dir: Path, freed: Set[Path | None]) -> Step:
    """Save the old bytes and the new ones; RefusedError where a file is not as it was judged.

    `freed` are the names that other steps of the plan remove.
    """
    step = Step(number, draft.kind, draft.before, draft.after, None, None)
    for path in step.paths:
        if not path.is_relative_to(log_dir):
            raise RefusedError(f"{path}: does not lie in {log_dir}; nothing was changed")
    if draft.after not in (None, draft.before) and draft.after not in freed:
        _expect(draft.after, None)
    old = None if draft.before is None else _save_old(draft, draft.before, undo_dir, number)
    return Step(
        number, draft.kind, draft.before, draft.after, old, _save_new(draft, old, undo_dir, number)
    )


def _expect(path: Path | None, seen: Stamp | None) -> os.stat_result | None:
    """Return the status of a file that is as it was judged."""
    status = None if path is None else look(path)
    found = None if status is None else Stamp(status.st_size, status.st_mtime_ns)
    if found != seen:
        what = "is gone" if not found else "is there now" if not seen else "has changed since"
        raise RefusedError(f"{path}: the plan is stale: the file {what}; nothing was changed")
    return status


def _save_old(draft: Draft, path: Path, undo_dir: Path, number: int) -> Look:
    if draft.seen is None:
        raise ValueError(f"{path} is changed and was not looked at")
    status = _expect(path, draft.seen)
    if status is None:
        raise ValueError(f"{path} is not there")
    crc = None
    target = undo_dir / f"{number:06d}.old"
    if draft.kind is Kind.TRUNCATE:
        if draft.size is None or not 0 <= draft.size <= status.st_size:
            raise ValueError(f"{path} is cut to {draft.size} of {status.st_size} bytes")
        _, crc = disk.write_new(target, disk.read_blocks(path, draft.size))
    elif draft.kind is not Kind.RENAME:
        if disk.link(path, target):
            disk.sync_file(target)
            crc = checksum(disk.read_blocks(target))
        else:
            _, crc = disk.write_new(target, disk.read_blocks(path))
    _expect(path, draft.seen)
    return Look(
        status.st_size, status.st_mtime_ns, stat.S_IMODE(status.st_mode), status.st_uid,
        status.st_gid, crc,
    )  # fmt: skip


def _save_new(draft: Draft, old: Look | None, undo_dir: Path, number: int) -> Look | None:
    now = time.time_ns()
    if draft.kind is Kind.TRUNCATE and old and draft.size is not None:
        return Look(draft.size, now, old.mode, old.user, old.group)
    if draft.content is None or draft.after is None:
        return None
    content = draft.content
    blocks = (content[i : i + disk.BLOCK] for i in range(0, len(content), disk.BLOCK))
    size, crc = disk.write_new(undo_dir / f"{number:06d}.new", blocks)
    if old:
        return Look(size, now, old.mode, old.user, old.group, crc)
    # A new file belongs to whom its directory belongs to, so that the broker can open it.
    home = draft.after.parent.stat()
    return Look(size, now, stat.S_IMODE(home.st_mode) & 0o666, home.st_uid, home.st_gid, crc)
