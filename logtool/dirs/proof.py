"""Whether a copy of a partition may be deleted: other copies must hold every batch that it has.

A batch counts as held where another copy has one of the same offsets, leader epoch, CRC and size.
Counts as another copy what is a live one of the same topic id: what a broker deletes or puts aside
by itself is no proof, and neither is damage, nor a copy that cannot be read to its end. What
compaction rewrote is another batch: of what no copy holds, `replaced` looks at the records.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any

import numpy as np

from logtool.diff.copy import Batches, WholeCopy
from logtool.diff.pair import compare
from logtool.diff.sources import ListedCopy
from logtool.diff.together import read_groups
from logtool.dirs import replaced
from logtool.dirs.outcomes import Source
from logtool.dirs.replaced import Replaced
from logtool.errors import UnreadableError
from logtool.formats.columns import runs
from logtool.formats.names import DirectoryKind, FileKind, FileState
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.metadata.settings import Settings
from logtool.running.run import Run

_IDENTITY = ("base_offset", "last_offset", "leader_epoch", "crc", "size")
"""The columns of which the digest is made, big-endian int64 one batch after the other."""


@dataclass(frozen=True, slots=True)
class Held:
    """Which batches of the copy another one holds."""

    copy: WholeCopy
    ranges: tuple[tuple[int, int], ...]
    """First and last offset of what it is the first to hold."""
    batches: int

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "path": self.copy.path,
            "node": self.copy.node,
            "batches": self.batches,
            "ranges": [list(span) for span in self.ranges],
        }


@dataclass(frozen=True, slots=True)
class Only:
    """Offsets that no other copy is known to hold."""

    first_offset: int
    last_offset: int | None
    """None: to an end that is not known."""
    batches: int
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return the JSON of the contract."""
        return {
            "first_offset": self.first_offset,
            "last_offset": self.last_offset,
            "batches": self.batches,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Proof:
    """The answer for one copy."""

    copy: WholeCopy
    kind: DirectoryKind
    held: tuple[Held, ...]
    only: tuple[Only, ...]
    """Empty where the copy may be deleted."""
    digest: str
    """SHA-256 of its batches; see `_IDENTITY`."""
    no_proof: tuple[tuple[str, str], ...] = field(default=())
    """Other directories and why they prove nothing."""
    replaced: Replaced | None = None
    """What compaction took from the other copies and replaced."""

    @property
    def may_delete(self) -> bool:
        """Return whether other copies hold every batch, or have replaced it by compaction."""
        return not self.only

    def as_json(self) -> dict[str, Any]:
        """Return the JSON object of the contract."""
        copy = self.copy
        return {
            "type": "proof",
            "path": copy.path,
            "topic": copy.topic,
            "partition": copy.partition,
            "topic_id": copy.topic_id,
            "kind": self.kind.name.lower(),
            "may_delete": self.may_delete,
            "log_start_offset": copy.log_start,
            "log_end_offset": copy.log_end,
            "batches": len(copy.batches),
            "records": copy.records,
            "bytes": copy.bytes,
            "digest": self.digest,
            "held_by": [held.as_json() for held in self.held],
            "replaced": self.replaced.as_json() if self.replaced else None,
            "only_here": [only.as_json() for only in self.only],
            "no_proof": [{"path": path, "reason": reason} for path, reason in self.no_proof],
        }


@dataclass(frozen=True, slots=True)
class Other:
    """A directory that may hold another copy."""

    listed: ListedCopy
    is_stray: bool
    """Whether the metadata log does not give it to its broker."""
    settings: Settings = field(default_factory=Settings)
    """What is known of its topic."""


def kind_of(listed: ListedCopy) -> DirectoryKind | None:
    """Return what the name of a copy's directory says of it."""
    return getattr(listed.listed.directory, "kind", None) if listed.listed else None


def prove(
    target: ListedCopy, others: Sequence[Other], run: Run
) -> Iterator[UnreadableError | Proof]:
    """Read a copy and the others; yields what cannot be read, then the proof.

    No proof comes where the copy itself cannot be read. OutOfTimeError once time is over.
    """
    no_proof: list[tuple[str, str]] = []
    fit = {}
    for other in others:
        why = _unfit(other)
        if why:
            no_proof.append((str(other.listed.path), why))
        else:
            fit[str(other.listed.path)] = other
    chosen = [other.listed for other in fit.values()]
    run.bytes_total = sum(one.log.size for copy in (target, *chosen) for one in copy.segments)
    for item in read_groups([[target, *chosen]], run):
        if not isinstance(item, list):
            yield item
            continue
        by_path = {copy.path: copy for copy in item}
        own = by_path.pop(str(target.path), None)
        if own is not None:
            kind = kind_of(target) or DirectoryKind.LIVE
            sources = [
                Source(copy, fit[path].listed, fit[path].settings) for path, copy in by_path.items()
            ]
            try:
                yield _judge(Source(own, target), kind, sources, no_proof, run)
            except UnreadableError as error:
                yield error


def _unfit(other: Other) -> str | None:
    """Return why a directory proves nothing, whatever it holds."""
    kind = kind_of(other.listed)
    if kind is DirectoryKind.LIVE:
        assigned = "the metadata log does not give it to its broker, so that it may go itself"
        return assigned if other.is_stray else None
    words = {
        DirectoryKind.DELETE: "a broker is about to delete it",
        DirectoryKind.STRAY: "it is put aside as stray, and may go itself",
        DirectoryKind.FUTURE: "it is on its way to another log dir, and a broker may drop it",
    }
    return words.get(kind) if kind else "its name is not that of a partition"


def _judge(
    own: Source,
    kind: DirectoryKind,
    sources: Sequence[Source],
    no_proof: list[tuple[str, str]],
    run: Run,
) -> Proof:
    copy, table = own.copy, own.copy.batches
    missing = np.ones(len(table), np.bool_)
    fit = [one.copy for one in sources if _is_fit(copy, one.copy, no_proof)]
    for left, right in combinations(tuple(fit), 2):
        at = compare(left, right).diverges_at
        for one, two in ((left, right), (right, left)) if at is not None else ():
            text = f"it and {two.path} diverge at offset {at}: either may be cut off"
            no_proof.append((one.path, text))
            fit = [other for other in fit if other is not one]
    held = []
    for other in fit:
        has = missing & _same(table, other.batches)
        if has.any():
            spans = tuple(_spans(table, has))
            held.append(Held(other, spans, int(has.sum())))
            missing &= ~has
    whole = [one for one in sources if any(one.copy is other for other in fit)]
    answer = replaced.prove(own, missing, whole, run)
    only = [*_only(table, missing, fit, answer), *_damaged(copy, fit), *_beside(own.listed)]
    return Proof(
        copy=copy,
        kind=kind,
        held=tuple(held),
        only=tuple(only),
        digest=digest(table),
        no_proof=tuple(no_proof),
        replaced=answer.replaced,
    )


def _only(
    table: Batches, missing: Column, fit: Sequence[WholeCopy], answer: replaced.Answer
) -> Iterator[Only]:
    """Yield what is missing elsewhere, and what of it no later record has replaced."""
    if answer.replaced is None:
        for first, last, count in _counted(table, missing):
            yield Only(first, last, count, _reason(first, last, fit, answer.notes))
        return
    used = {path for path, _ in answer.replaced.by}
    others = [other for other in fit if other.path not in used]
    for first_row, last_row, why in sorted(answer.stretches):
        first, last = int(table.base_offset[first_row]), int(table.last_offset[last_row])
        more = [_reason(first, last, others, answer.notes)] if others else []
        yield Only(first, last, last_row - first_row + 1, "; ".join([why, *more]))


def _is_fit(copy: WholeCopy, other: WholeCopy, no_proof: list[tuple[str, str]]) -> bool:
    """Return whether a copy is sound and of the same topic; notes why not."""
    if copy.topic_id is None or other.topic_id is None:
        whose = "this copy" if copy.topic_id is None else "it"
        no_proof.append((other.path, f"{whose} has no topic id, so that it may be another topic"))
        return False
    if copy.topic_id != other.topic_id:
        text = f"its topic id is {other.topic_id}, here it is {copy.topic_id}: another topic"
        no_proof.append((other.path, text))
        return False
    if other.real_damages:
        (first, *_) = other.real_damages
        where = f"segment {first.segment} @{first.position}"
        no_proof.append((other.path, f"is damaged in {where}, and a broker may cut off the rest"))
        return False
    return True


def _same(own: Batches, other: Batches) -> Column:
    """Return which batches another copy has too, a bool each."""
    found = np.zeros(len(own), np.bool_)
    if not len(other):
        return found
    at = np.minimum(np.searchsorted(other.base_offset, own.base_offset), len(other) - 1)
    found[:] = True
    for name in _IDENTITY:
        found &= getattr(own, name) == getattr(other, name)[at]
    return found


def _counted(table: Batches, rows: Column) -> Iterator[tuple[int, int, int]]:
    for first, last in runs(rows):
        yield int(table.base_offset[first]), int(table.last_offset[last]), last - first + 1


def _spans(table: Batches, rows: Column) -> Iterator[tuple[int, int]]:
    return ((first, last) for first, last, _ in _counted(table, rows))


def _reason(first: int, last: int, others: Sequence[WholeCopy], notes: Mapping[str, str]) -> str:
    """Return why no other copy holds a stretch of batches."""
    if not others:
        return "no other copy is there"
    parts = []
    for other in others:
        table = other.batches
        inside = (table.last_offset >= first) & (table.base_offset <= last)
        if last < other.log_start:
            text = f"begins at offset {other.log_start}"
        elif first >= other.log_end:
            text = f"ends at offset {other.log_end}"
        elif other.path in notes:
            text = notes[other.path]
        elif inside.any():
            text = "has other batches there"
        else:
            text = "lacks them"
        parts.append(f"{other.path} {text}")
    return "; ".join(parts)


def _damaged(copy: WholeCopy, others: Sequence[WholeCopy]) -> Iterator[Only]:
    """Yield the damage of the copy itself whose offsets no other has sound."""
    for damage in copy.real_damages:
        last = damage.last_offset
        if last is not None and last < damage.first_offset:
            continue
        if last is not None and any(_holds(other, damage.first_offset, last) for other in others):
            continue
        text = f"is damaged here, byte {damage.position} of segment {damage.segment}"
        yield Only(damage.first_offset, last, 0, f"{text}, and no other copy is whole there")


def _beside(listed: ListedCopy) -> Iterator[Only]:
    """Yield what else lies in the directory and may hold records, none of which was looked at.

    Index files and such are made of the log, and a broker deletes .deleted and .cleaned itself.
    """
    found = listed.listed
    if found is None:
        return
    for file in found.leftovers:
        if file.name.kind is FileKind.LOG and file.name.state is FileState.SWAP and file.size:
            text = f"{file.path.name} becomes a segment when a broker starts, and is not judged"
            yield Only(file.name.offset or 0, None, 0, text)
    for path in (*(file.path for file in found.strangers if file.size), *found.odd_entries):
        text = f"{path.name} is no file of a partition, and what it holds is not judged"
        yield Only(0, None, 0, text)


def _holds(other: WholeCopy, first: int, last: int) -> bool:
    """Return whether a copy has sound batches for each offset of a range."""
    table = other.batches
    rows = table[(table.last_offset >= first) & (table.base_offset <= last)]
    whole = len(rows) and int(rows.base_offset[0]) <= first and int(rows.last_offset[-1]) >= last
    return bool(whole and (rows.base_offset[1:] == rows.last_offset[:-1] + 1).all())


def digest(table: Batches) -> str:
    """Return the SHA-256 of the batches as far as copies are compared."""
    columns = np.stack([getattr(table, name) for name in _IDENTITY], axis=1)
    return hashlib.sha256(columns.astype(">i8").tobytes()).hexdigest()
