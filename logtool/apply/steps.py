"""Steps of a plan: its changes, put together by file.

A plan may rename a file and then cut it. A `FileStep` has both changes, so that one look at the
file on disk shows after a kill which of them was made.
"""

from collections.abc import Iterable
from pathlib import Path

from logtool.actions import Blocks, Change, FileChange, Stamp
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class FileAttributes:
    """Attributes of a file before or after a step."""

    size: int
    mtime_ns: int
    mode: int
    user: int
    group: int
    crc32c: int | None = None
    """CRC-32C of what the undo directory holds: the whole file or the tail that is cut off."""

    @property
    def stamp(self) -> Stamp:
        """Return the size and the mtime of the file."""
        return Stamp(self.size, self.mtime_ns)


@dataclass(frozen=True, slots=True)
class FileStep:
    """The changes of one file; `before` and `after` differ if it gets another name."""

    number: int
    kind: FileChange
    """Change of its content; RENAME if the content stays."""
    before: Path | None
    """None for a file that is not there yet."""
    after: Path | None
    """None for a file that is removed."""
    old: FileAttributes | None
    """None for a file that is not there yet."""
    new: FileAttributes | None
    """None for a file that is removed or keeps its content."""

    @property
    def path(self) -> Path:
        """Return the path for messages: the old path, or the new one of a created file."""
        path = self.before or self.after
        if path is None:
            raise ValueError(f"step {self.number} has no file")
        return path

    @property
    def is_renamed(self) -> bool:
        """Return whether it gets another name."""
        return None not in (self.before, self.after) and self.before != self.after

    @property
    def paths(self) -> list[Path]:
        """Return every path that the file has before or after the step."""
        return list(dict.fromkeys(p for p in (self.before, self.after) if p is not None))


@dataclass(slots=True)
class Draft:
    """A step that is not saved yet."""

    kind: FileChange
    before: Path | None
    after: Path | None
    seen: Stamp | None
    content: bytes | None = None
    """New content of a file that is created or replaced."""
    blocks: Blocks | None = None
    """New content of a file that is created or replaced, if it is not held in memory."""
    size: int | None = None
    """New size of a file that is cut, in bytes."""
    order: int = 0


def merge(changes: Iterable[Change]) -> list[Draft]:
    """Put the changes of a plan together by file, in the order of the last change of each.

    ValueError for an impossible change (of a file that is gone), and for two changes that no plan
    needs: to remove or rename a created file, and to fill a name that a rename set free.
    """
    drafts: list[Draft] = []
    there: dict[Path, Draft] = {}
    removed: dict[Path, Draft] = {}
    for order, change in enumerate(changes):
        path = change.path
        draft = there.pop(path, None)
        if change.kind is FileChange.CREATE:
            if draft:
                raise ValueError(f"{path} is to be created, but exists")
            # Removed and created is replaced: mode and owner stay.
            draft = removed.pop(path, None)
        elif draft is None and path in removed:
            raise ValueError(f"{path} is to be changed, but does not exist")
        if draft is None:
            is_new = change.kind is FileChange.CREATE
            draft = Draft(
                kind=change.kind, before=None if is_new else path, after=path, seen=change.seen
            )
            drafts.append(draft)
        _add(draft, change)
        draft.order = order
        if draft.after is None:
            removed[path] = draft
        elif there.setdefault(draft.after, draft) is not draft:
            raise ValueError(f"{path} is to get the name {draft.after}, which exists")
    _refuse_refilled(drafts)
    return sorted(drafts, key=lambda draft: draft.order)


def _add(draft: Draft, change: Change) -> None:
    """Add `change` to a draft, after its earlier changes."""
    is_new = draft.before is None
    match change.kind:
        case FileChange.RENAME:
            if change.target is None or change.target.parent != change.path.parent:
                raise ValueError(f"{change.path} gets no name in its directory")
            if is_new:
                raise ValueError(f"{change.path} is created, then renamed")
            draft.after = change.target
        case FileChange.REMOVE:
            if is_new:
                raise ValueError(f"{change.path} is created, then removed")
            draft.kind, draft.after, draft.content, draft.size = FileChange.REMOVE, None, None, None
            draft.blocks = None
        case FileChange.TRUNCATE:
            if change.size is None:
                raise ValueError(f"{change.path} is cut, but has no new size")
            if draft.blocks is not None:
                raise ValueError(f"{change.path} is composed and then cut")
            if draft.content is not None:
                draft.content = draft.content[: change.size]
            else:
                draft.kind = FileChange.TRUNCATE
                draft.size = min(change.size, change.size if draft.size is None else draft.size)
        case FileChange.REPLACE | FileChange.CREATE:
            if change.content is None and change.blocks is None:
                raise ValueError(f"{change.path} gets no content")
            draft.blocks = change.blocks
            draft.kind = FileChange.CREATE if is_new else FileChange.REPLACE
            draft.after, draft.content, draft.size = (
                draft.after or change.path,
                change.content,
                None,
            )


def _refuse_refilled(drafts: list[Draft]) -> None:
    freed = {d.before for d in drafts if d.after is not None and d.before != d.after} - {None}
    for draft in drafts:
        if draft.after in freed and draft.after != draft.before:
            raise ValueError(f"{draft.after} gets another name and new content")
