"""Files that recovery writes for one segment, and actions where the present ones differ."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path

from logtool.actions import Action, Change, FileChange, Stamp
from logtool.errors import UnreadableError
from logtool.formats import names
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.loading import producers as snapshots
from logtool.loading.cuts import transaction_index
from logtool.loading.index_building import InvalidOffsetError
from logtool.loading.kafka_reading import StartFailsError
from logtool.loading.recovery import OffsetOverflowError, Recovery
from logtool.loading.shadow import ShadowFile
from logtool.log.dir import Partition, Segment
from logtool.log.file import File
from logtool.log.producer_state import ProducerState
from logtool.rebuild.producer_states import Producers
from logtool.rebuild.targets import WITH_OFFSETS, FileKey

IMPOSSIBLE = "impossible"
"""The action of a file that cannot be built."""


@dataclass(frozen=True, slots=True)
class IndexesToBuild:
    """Request for the indexes of one segment."""

    segment: Segment
    reasons: Mapping[FileKind, str]
    """Reason for each index to be built."""
    producers: Producers | None
    """Producers before the segment; None if they are not known."""
    index_interval: int
    max_index_size: int


@dataclass(frozen=True, slots=True)
class Built:
    """The indexes of one segment."""

    piece: IndexesToBuild
    files: Mapping[FileKind, bytes | None] = field(default_factory=dict)
    """Content of each index; None if a broker makes no such file."""
    note: str = ""
    """Text with the end of the indexes, if they do not reach the end of the log."""
    error: UnreadableError | str | None = None
    """Reason why the indexes could not be built, or None."""


def build(piece: IndexesToBuild, on_bytes: Callable[[int], None]) -> Built:
    """Recover one segment in memory, and return the indexes."""
    log, base = piece.segment.log, piece.segment.base_offset
    known = {} if piece.producers is None else dict(piece.producers)
    state = ProducerState({number: replace(producer) for number, producer in known.items()})
    recovery = Recovery(
        base, producers=state, interval=piece.index_interval, max_index_size=piece.max_index_size
    )
    try:
        result, _, _ = recovery.run(ShadowFile(log, log.size), on_bytes)
    except UnreadableError as error:
        return Built(piece, error=error)
    except (InvalidOffsetError, OffsetOverflowError, StartFailsError) as error:
        return Built(piece, error=f"recovery of the log fails: {error}")
    note = ""
    if result.stop:
        note = f"; is sound up to byte {result.valid_size} of {log.size}: {result.stop.message}"
    exists = FileKind.TRANSACTION_INDEX in piece.segment.indexes
    return Built(
        piece=piece,
        files={
            FileKind.OFFSET_INDEX: result.offset_index,
            FileKind.TIME_INDEX: result.time_index,
            FileKind.TRANSACTION_INDEX: transaction_index(result, exists=exists),
        },
        note=note,
    )


def index_actions(built: Built) -> Iterator[Action | UnreadableError]:
    """Yield the actions that give the segment the indexes of recovery."""
    if isinstance(built.error, UnreadableError):
        yield built.error
        return
    segment = built.piece.segment
    for kind, why in built.piece.reasons.items():
        path = segment.log.path.with_name(names.format_partition_file(segment.base_offset, kind))
        if built.error is not None:
            yield Action(action=IMPOSSIBLE, path=path, reason=built.error)
        elif kind is FileKind.TRANSACTION_INDEX and built.piece.producers is None:
            if why is WITH_OFFSETS:
                continue  # no rule found it bad, and the damage is reported itself
            text = (
                "because of damage before this segment, the transactions that were open at "
                "its start are not known"
            )
            yield Action(action=IMPOSSIBLE, path=path, reason=text)
        else:
            content = built.files[kind]
            if content is not None:
                yield from _written(path, segment.indexes.get(kind), content, why + built.note)


def snapshot_actions(
    partition: Partition,
    key: FileKey,
    why: str,
    producers: Producers | None,
    span: range,
    *,
    bad: bool,
) -> Iterator[Action]:
    """Yield the actions for one producer snapshot.

    Outside of `span`, the offsets at which a broker keeps one, a bad one is removed.
    """
    kind, offset = key
    path = partition.path / names.format_partition_file(offset, kind)
    file = next((file for file in partition.snapshots if file.path == path), None)
    if offset not in span:
        if file and bad:
            text = (
                f"{why}; no broker reads this file, because the log starts at "
                f"{span.start - 1} and ends at {span.stop - 1}"
            )
            change = Change(kind=FileChange.REMOVE, path=path, seen=_stamp(file))
            yield Action(
                action=FileChange.REMOVE, path=path, reason=text, length=file.size, change=change
            )
    elif producers is None:
        text = "because of damage before this offset, the state of the producers is not known"
        yield Action(action=IMPOSSIBLE, path=path, reason=text)
    else:
        old = snapshots.decode(ShadowFile(file, file.size).read()) if file and not bad else None
        # The order of the entries has no meaning: a snapshot of the same producers stays.
        if old is None or old != producers:
            content = snapshots.encode(ProducerState(dict(producers)))
            yield from _written(path, file, content, why)


def _written(path: Path, file: File | None, content: bytes, why: str) -> Iterator[Action]:
    if file and file.size == len(content) and ShadowFile(file, file.size).read() == content:
        return
    if file is None and os.path.lexists(path):
        yield Action(
            action=IMPOSSIBLE,
            path=path,
            reason="a file of this name is expected, but is of another kind",
        )
        return
    kind = FileChange.REPLACE if file else FileChange.CREATE
    change = Change(kind=kind, path=path, seen=_stamp(file) if file else None, content=content)
    yield Action(action=kind, path=path, reason=why, length=len(content), change=change)


def _stamp(file: File) -> Stamp:
    return Stamp(file.size, file.mtime_ns)
