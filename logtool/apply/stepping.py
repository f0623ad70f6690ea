"""One step forward or back, from wherever it stands; and how it is told to people."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from logtool.apply import disk
from logtool.apply.states import Content, Found, checksum, saved, written
from logtool.apply.steps import Look, Step
from logtool.errors import RefusedError
from logtool.formats import names
from logtool.formats.names import FileKind, PartitionDirectory
from logtool.plan import Action, Kind

SUFFIX = ".logtool-tmp"
"""Of a file that gets its name when it is whole: nothing to a broker, in the root and below."""


def carry_out(found: Found, undo_dir: Path) -> None:
    """Bring the file of a step to what it shall be; names are not durable yet."""
    step, path = found.step, found.path
    _clear(step)
    if step.kind is Kind.REMOVE:
        if found.content is Content.OLD:
            disk.remove(path)
        return
    if step.after and path != step.after and step.is_renamed:
        disk.rename(path, step.after)
        path = step.after
    if step.new is None:
        return
    if step.kind is Kind.TRUNCATE:
        # Once more where it is cut already: a kill may have come before that was durable.
        disk.cut(path, step.new.size, step.new.mtime_ns)
    elif found.content is not Content.NEW:
        _put(written(undo_dir, step), path, step.new, may_link=False)


def undo(found: Found, undo_dir: Path) -> None:
    """Bring the file of a step back to what it was; names are not durable yet."""
    step, path = found.step, found.path
    _clear(step)
    if step.old is None:
        disk.remove(path)
        return
    if step.kind is Kind.TRUNCATE and found.content is Content.OLD:
        disk.sync_file(path)
    elif found.content is not Content.OLD:
        if step.kind is Kind.TRUNCATE and step.new:
            tail = disk.read_blocks(saved(undo_dir, step))
            disk.append(path, step.new.size, tail, step.old.mtime_ns)
        else:
            _put(saved(undo_dir, step), path, step.old, may_link=True)
    if found.is_renamed and step.before:
        disk.rename(path, step.before)


def check_saved(found: Sequence[Found], undo_dir: Path) -> None:
    """Refuse to undo with anything but the very bytes that were saved."""
    for item in found:
        step = item.step
        if item.content is Content.OLD or step.old is None or step.old.crc32c is None:
            continue
        path = saved(undo_dir, step)
        if checksum(disk.read_blocks(path)) != step.old.crc32c:
            raise RefusedError(f"{path}: is not what was saved there; nothing was touched")


def actions(found: Found) -> Iterator[Action]:
    """Yield what is still to be done to carry out a step."""
    step = found.step
    if step.is_renamed and not found.is_renamed:
        yield _told(step, Kind.RENAME, "gets its other name", found.path, target=step.after)
    if step.kind is Kind.RENAME or found.content is Content.NEW:
        return
    path = step.after or found.path
    old, new = step.old, step.new
    if step.kind is Kind.TRUNCATE and old and new:
        reason = f"cut from {old.size} to {new.size} bytes"
        yield _told(step, Kind.TRUNCATE, reason, path, new.size, old.size - new.size)
    else:
        size = new.size if new else old.size if old else None
        yield _told(step, step.kind, f"{step.kind}d", path, length=size)


def undo_actions(found: Found) -> Iterator[Action]:
    """Yield what is still to be done to undo a step."""
    step = found.step
    old, new = step.old, step.new
    if old is None:
        if found.content is not Content.OLD:
            yield _told(
                step, Kind.REMOVE, "was created", found.path, length=new.size if new else None
            )
        return
    if found.content is not Content.OLD:
        if step.kind is Kind.TRUNCATE and new:
            reason = f"was cut from {old.size} to {new.size} bytes"
            yield _told(step, "append", reason, found.path, new.size, old.size - new.size)
        else:
            gone = step.kind is Kind.REMOVE
            reason = "was removed" if gone else "has other content"
            word = Kind.CREATE if gone else Kind.REPLACE
            yield _told(step, word, reason, found.path, length=old.size)
    if found.is_renamed and step.after:
        reason = f"was renamed from {step.path.name}"
        yield _told(step, Kind.RENAME, reason, step.after, target=step.before)


def _told(
    step: Step, action: str, reason: str, path: Path,
    position: int | None = None, length: int | None = None, target: Path | None = None,
) -> Action:  # fmt: skip
    home = names.parse_directory(path.parent.name)
    is_root = names.parse_root_file(step.path.name).kind is not FileKind.UNKNOWN
    of_partition = None if is_root or not isinstance(home, PartitionDirectory) else home
    return Action(
        action, path, reason,
        topic=of_partition.topic if of_partition else None,
        partition=of_partition.partition if of_partition else None,
        segment=names.parse_partition_file(step.path.name).offset if of_partition else None,
        position=position, length=length, target=target,
    )  # fmt: skip


def _put(source: Path, path: Path, look: Look, *, may_link: bool) -> None:
    """Let `path` be a file like `source`: written under another name, then renamed."""
    temporary = _temporary(path)
    if not (may_link and disk.link(source, temporary)):
        disk.write_new(temporary, disk.read_blocks(source))
    disk.dress(temporary, look.mode, (look.user, look.group), look.mtime_ns)
    disk.rename(temporary, path)
    # Where both are names of one file already, a rename does nothing.
    disk.remove(temporary)


def _clear(step: Step) -> None:
    """Remove what a kill left of a file that was being written."""
    for path in step.paths:
        disk.remove(_temporary(path))


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + SUFFIX)
