"""Proof that a copy of a partition may be deleted: other copies must hold every batch of it.

A batch counts as held if another copy has a batch with equal offsets, leader epoch, CRC and size.
Only a live copy of the same topic id counts as another copy: a copy that a broker deletes or puts
aside by itself proves nothing, and neither does a damaged copy, nor one that cannot be read to its
end. A batch that compaction rewrote is another batch; for batches that no copy holds, `superseded`
compares the records.
"""

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import combinations

import numpy as np

from logtool.copies.batches import CopyBatches
from logtool.copies.compare import Pairs
from logtool.copies.copy import Copy, CopyReading, WholeCopy
from logtool.copies.copy_readers import Blocks, read_groups, side_by_side
from logtool.copies.merge import stretches
from logtool.copies.pair import CopyPair
from logtool.copies.sources import ListedCopy
from logtool.copies.verdict import Fillings
from logtool.dirs import superseded
from logtool.dirs.holdings import IDENTITY, CoveredRange, Holdings
from logtool.dirs.superseded import Candidate, KeyProof, Superseded
from logtool.dirs.transaction_outcomes import OutcomeSource
from logtool.errors import UnreadableError
from logtool.formats.names import CLUSTER_METADATA, DirectoryKind
from logtool.lazy_dataclass import dataclass
from logtool.node.settings import Settings
from logtool.running.run import Run


@dataclass(frozen=True, slots=True)
class StoredElsewhere:
    """The batches of the copy that another copy holds."""

    copy: Copy
    ranges: tuple[tuple[int, int], ...]
    """First and last offsets of the batches that no copy before it holds."""
    batches: int


@dataclass(frozen=True, slots=True)
class Only:
    """Offsets that no other live copy is known to hold."""

    first_offset: int
    last_offset: int | None
    """None: to the end, which is not known."""
    batches: int
    reason: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """A directory that proves nothing."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class MetadataVerdict:
    """State of a copy in an undamaged metadata log."""

    status: str
    """``assigned``, ``moved``, ``removed`` or ``unknown``."""
    offset: int
    """Offset of the RemoveTopicRecord if the topic was removed, else the end of the log."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The result for one copy."""

    copy: Copy
    kind: DirectoryKind
    stored: tuple[StoredElsewhere, ...]
    only: tuple[Only, ...]
    """Empty if the copy may be deleted."""
    digest: str
    """SHA-256 of its batches; see `IDENTITY`."""
    no_proof: tuple[Unproven, ...] = field(default=())
    """Other directories, each with the reason why it proves nothing."""
    replaced: Superseded | None = None
    """Batches that compaction removed from the other copies and replaced there."""
    metadata: MetadataVerdict | None = None
    """State of the copy in the metadata log; None if the metadata log does not show it."""

    @property
    def may_delete(self) -> bool:
        """Return whether other copies hold every batch, or a replacement after compaction."""
        return not self.only

    @property
    def metadata_status(self) -> str | None:
        """Return the state of the copy in the metadata log; None if it is not known."""
        return self.metadata.status if self.metadata else None

    @property
    def metadata_offset(self) -> int | None:
        """Return the offset of that state in the metadata log; None if it is not known."""
        return self.metadata.offset if self.metadata else None

    @property
    def kind_name(self) -> str:
        """Return the kind of the directory by its name: live, delete, future or stray."""
        return self.kind.name.lower()


@dataclass(frozen=True, slots=True)
class Other:
    """A directory that may hold another copy."""

    listed: ListedCopy
    is_stray: bool
    """True if the metadata log does not assign it to its broker."""
    settings: Settings = field(default_factory=Settings)
    """Known settings of its topic."""


def prove(
    target: ListedCopy,
    others: Sequence[Other],
    run: Run,
    metadata: MetadataVerdict | None = None,
) -> Iterator[UnreadableError | Proof]:
    """Read a copy and the others; yield errors of reading, then the proof.

    `metadata` is the state of the copy in the metadata log.

    There is no proof if the copy itself cannot be read. OutOfTimeError once the time is over.
    """
    no_proof: list[Unproven] = []
    fit = {}
    for other in others:
        why = _unfit(other)
        if why:
            no_proof.append(Unproven(str(other.listed.path), why))
        else:
            fit[str(other.listed.path)] = other
    group = [target, *(other.listed for other in fit.values())]
    run.bytes_total = sum(one.log.size for copy in group for one in copy.segments)
    found = yield from side_by_side(group, run, partial(_compared, target))
    if found is None:
        return
    sources = [fit[copy.path] for copy in found.copies[1:]]
    try:
        for item in _judge(target, sources, found, no_proof, run):
            yield replace(item, metadata=metadata) if isinstance(item, Proof) else item
    except UnreadableError as error:
        yield error


@dataclass(frozen=True, slots=True)
class _Compared:
    """The copy, which is the first, and the others, after all were read."""

    copies: tuple[Copy, ...]
    pairs: Mapping[tuple[int, int], CopyPair]
    holdings: Holdings
    fillings: Fillings
    """Fillings for the damage of the copy."""
    digest: str


def _compared(
    target: ListedCopy,
    listed: Sequence[ListedCopy],
    readings: Sequence[CopyReading],
    blocks: Blocks,
) -> _Compared | None:
    """Return the comparison of the copies; None if the copy itself is not among them."""
    if listed[0] is not target:
        return None
    pairs, holdings = Pairs(readings), Holdings(len(readings) - 1)
    fillings, digest = Fillings(readings[0], len(readings)), hashlib.sha256()
    for tables, over in stretches(blocks):
        pairs.add(tables, over)
        fillings.add(tables)
        holdings.add(tables[0], tables[1:])
        columns = np.stack([getattr(tables[0], name) for name in IDENTITY], axis=1)
        digest.update(columns.astype(">i8").tobytes())
    copies = tuple(reading.copy for reading in readings)
    return _Compared(copies, pairs.finish(copies), holdings, fillings, digest.hexdigest())


def _unfit(other: Other) -> str | None:
    """Return why a directory proves nothing regardless of its content; None if it may."""
    kind = other.listed.kind
    if kind is DirectoryKind.LIVE:
        assigned = "the metadata log does not assign this copy to its broker, which may delete it"
        return assigned if other.is_stray else None
    words = {
        DirectoryKind.DELETE: "a broker is about to delete it",
        DirectoryKind.STRAY: "this copy is set aside as stray, and a broker may delete it",
        DirectoryKind.FUTURE: "this copy is a future replica, and a broker may delete it",
    }
    return words.get(kind) if kind else "its name is not the name of a partition dir"


def _judge(
    target: ListedCopy,
    others: Sequence[Other],
    found: _Compared,
    no_proof: list[Unproven],
    run: Run,
) -> Iterator[UnreadableError | Proof]:
    copy = found.copies[0]
    fit = [
        number for number, other in enumerate(found.copies[1:], 1) if _is_fit(copy, other, no_proof)
    ]
    for left, right in combinations(tuple(fit), 2):
        at = found.pairs[left, right].diverges_at
        for one, two in ((left, right), (right, left)) if at is not None else ():
            text = (
                f"this copy and {found.copies[two].path} diverge at offset {at}: a broker may cut "
                "off either"
            )
            no_proof.append(Unproven(found.copies[one].path, text))
            fit = [other for other in fit if other != one]
    stored = []
    for number in fit:
        spans = found.holdings.taken_by(number - 1)
        if spans:
            ranges = tuple((span.first, span.last) for span in spans)
            count = sum(span.batches for span in spans)
            stored.append(StoredElsewhere(found.copies[number], ranges, count))
    missing = found.holdings.left()
    candidates = []
    for number in fit:
        other, at = others[number - 1], found.pairs[0, number].diverges_at
        candidates.append(Candidate(found.copies[number], other.listed, other.settings, at))
    usable, notes = superseded.usable(copy, candidates)
    answer, wholes = KeyProof((), None, notes), None
    if usable and missing:
        group = [target, *(candidate.listed for candidate in candidates)]
        wholes = yield from _whole(group, found, fit, run)
        if wholes is None:
            return
        rows = np.zeros(copy.tally.batches, np.bool_)
        for span in missing:
            rows[span.rows] = True
        sources = [
            OutcomeSource(whole, candidate.listed, candidate.settings)
            for whole, candidate in zip(wholes[1:], candidates, strict=True)
        ]
        answer = superseded.prove(
            OutcomeSource(wholes[0], target), rows, sources, usable, notes, run
        )
    if wholes and answer.replaced is not None:
        only = _not_replaced(wholes, answer)
    else:
        only = _missing(missing, found, fit, answer.notes)
    yield Proof(
        copy=copy,
        kind=target.kind or DirectoryKind.LIVE,
        stored=tuple(stored),
        only=(*only, *_damaged(found, fit), *_other_files(target)),
        digest=found.digest,
        no_proof=tuple(no_proof),
        replaced=answer.replaced,
    )


def _whole(
    listed: Sequence[ListedCopy], found: _Compared, fit: Sequence[int], run: Run
) -> Generator[UnreadableError, None, list[WholeCopy] | None]:
    """Read the copy and the fit copies again, with all of their batches.

    None, after an error, if a copy changed meanwhile.
    """
    known = [found.copies[number].tally.batches for number in (0, *fit)]
    for item in read_groups([listed], run):
        if isinstance(item, UnreadableError):
            yield item
        elif [len(whole.batches) for whole in item] == known:
            return item
    yield UnreadableError(listed[0].path, "this copy or another copy changed while logtool read it")
    return None


def _missing(
    missing: Sequence[CoveredRange], found: _Compared, fit: Sequence[int], notes: Mapping[str, str]
) -> Iterator[Only]:
    """Yield the batches that no other copy holds."""
    for span in missing:
        others = [(found.copies[number], span.others[number - 1]) for number in fit]
        why = _reason(span.first, span.last, others, notes)
        yield Only(span.first, span.last, span.batches, why)


def _not_replaced(wholes: Sequence[WholeCopy], answer: KeyProof) -> Iterator[Only]:
    """Yield the batches that no other copy holds, and that no later record replaced."""
    assert answer.replaced
    table = wholes[0].batches
    used = {one.path for one in answer.replaced.by}
    for first_row, last_row, why in sorted(answer.stretches):
        first = int(table[first_row : first_row + 1].first_offset[0])
        last = int(table.last_offset[last_row])
        others = [
            (other, _is_inside(other.batches, first, last))
            for other in wholes[1:]
            if other.path not in used
        ]
        more = [_reason(first, last, others, answer.notes)] if others else []
        yield Only(first, last, last_row - first_row + 1, "; ".join([why, *more]))


def _is_inside(table: CopyBatches, first: int, last: int) -> bool:
    return bool(((table.last_offset >= first) & (table.base_offset <= last)).any())


def _is_fit(copy: Copy, other: Copy, no_proof: list[Unproven]) -> bool:
    """Return whether a copy is sound and of the same topic; add the reason to `no_proof` if not."""
    if copy.topic_id is None or other.topic_id is None:
        whose = "this copy" if copy.topic_id is None else "it"
        text = f"{whose} has no topic id, so the two may be of different topics"
        no_proof.append(Unproven(other.path, text))
        return False
    if copy.topic_id != other.topic_id:
        text = (
            f"its topic id is {other.topic_id}, but the topic id of the copy to delete is "
            f"{copy.topic_id}: a different topic"
        )
        no_proof.append(Unproven(other.path, text))
        return False
    if other.real_damages:
        (first, *_) = other.real_damages
        where = f"segment {first.segment} @{first.position}"
        text = f"is damaged in {where}, and a broker may cut off the rest"
        no_proof.append(Unproven(other.path, text))
        return False
    return True


def _reason(
    first: int, last: int, others: Sequence[tuple[Copy, bool]], notes: Mapping[str, str]
) -> str:
    """Return why no other copy holds a range of batches; `others` says if each has any there."""
    if not others:
        return "there is no other live copy"
    parts = []
    for other, has_some in others:
        if last < other.log_start:
            text = f"begins at offset {other.log_start}"
        elif first >= other.log_end:
            text = f"ends at offset {other.log_end}"
        elif other.path in notes:
            text = notes[other.path]
        elif has_some:
            text = "has other batches there"
        else:
            text = "lacks them"
        parts.append(f"{other.path} {text}")
    return "; ".join(parts)


def _damaged(found: _Compared, fit: Sequence[int]) -> Iterator[Only]:
    """Yield the damage of the copy whose offsets no other copy has sound."""
    for at, damage in enumerate(found.copies[0].damages):
        first, last = damage.first_offset, damage.last_offset
        if damage.tail or (last is not None and last < first):
            continue
        there = [found.fillings.stored(at, number) for number in fit if last is not None]
        if last is not None and any(stored and stored.covers(first, last) for stored in there):
            continue
        text = f"is damaged in this copy at byte {damage.position} of segment {damage.segment}"
        yield Only(first, last, 0, f"{text}, and no other copy is whole there")


def _other_files(listed: ListedCopy) -> Iterator[Only]:
    """Yield other files of the directory that may hold records, which were not read.

    A broker makes index files and the like from the log, and deletes .deleted and .cleaned files.
    """
    found = listed.listed
    if found is None:
        return
    if listed.key[0] == CLUSTER_METADATA:
        text = (
            "this is the metadata log of a node, which needs its own with snapshots and "
            "quorum-state; 'logtool quorum' compares those of all nodes"
        )
        yield Only(0, None, 0, text)
    for file in found.coming_logs():
        if file.size:
            text = (
                f"{file.path.name} becomes a segment when a broker starts; logtool does not "
                "compare its batches"
            )
            yield Only(file.name.offset or 0, None, 0, text)
    for path in (*(file.path for file in found.strangers if file.size), *found.odd_entries):
        text = f"{path.name} is not a file of a partition; logtool does not compare its contents"
        yield Only(0, None, 0, text)
