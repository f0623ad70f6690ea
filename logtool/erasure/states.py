"""The states of a record that decide whether a consumer gets it, and their marks on records.

A consumer gets no record below the log start, in a file that a broker does not load, or in a
partition dir that waits for its deletion, is stray or is a future copy. A record in a transaction
that was aborted or is open is for consumers with ``isolation.level=read_uncommitted`` alone.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from logtool.disk import files
from logtool.dump.files import Input
from logtool.dump.records import Object
from logtool.erasure.transactions import ABORTED, COMMITTED, OPEN, TransactionEnds
from logtool.errors import UnreadableError
from logtool.formats import names, offset_checkpoint
from logtool.formats.names import (
    DirectoryKind,
    FileKind,
    FileName,
    FileState,
    PartitionDirectory,
    Reception,
)
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.running.workers import Pace


class RecordState(StrEnum):
    """The states of a record; one that every consumer gets has none but `TOMBSTONE`."""

    TOMBSTONE = "tombstone"
    ABORTED = "aborted"
    OPEN = "open-transaction"
    BELOW_START = "below-log-start"
    DELETED_FILE = "deleted-file"
    CLEANED_FILE = "cleaned-file"
    SWAP_FILE = "swap-file"
    OTHER_NAME = "other-name"
    DELETED_PARTITION = "deleted-partition"
    STRAY = "stray"
    FUTURE = "future-copy"


class ReadableBy(StrEnum):
    """The consumers that get a record."""

    ANY = "any-consumer"
    UNCOMMITTED = "read-uncommitted"
    NONE = "no-consumer"


_OF_FILES = {
    FileState.DELETED: RecordState.DELETED_FILE,
    FileState.CLEANED: RecordState.CLEANED_FILE,
    FileState.SWAP: RecordState.SWAP_FILE,
}
_OF_DIRECTORIES = {
    DirectoryKind.DELETE: RecordState.DELETED_PARTITION,
    DirectoryKind.STRAY: RecordState.STRAY,
    DirectoryKind.FUTURE: RecordState.FUTURE,
}
_OF_TRANSACTIONS = {ABORTED: RecordState.ABORTED, OPEN: RecordState.OPEN}
_FOR_EVERYBODY = frozenset({RecordState.TOMBSTONE})
_FOR_UNCOMMITTED = _FOR_EVERYBODY | {RecordState.ABORTED, RecordState.OPEN}


def of_place(name: FileName, directory: PartitionDirectory | None) -> tuple[RecordState, ...]:
    """Return the states that all records of a file have, by its name and its partition dir."""
    found = []
    if directory is not None and directory.kind in _OF_DIRECTORIES:
        found.append(_OF_DIRECTORIES[directory.kind])
    if name.state in _OF_FILES:
        found.append(_OF_FILES[name.state])
    elif name.reception is not Reception.EXACT:
        found.append(RecordState.OTHER_NAME)
    return tuple(found)


def of_record(*, is_tombstone: bool, end: int, is_below_start: bool) -> tuple[RecordState, ...]:
    """Return the states of a record in a file; `end` is that of its transaction."""
    found = [RecordState.TOMBSTONE] if is_tombstone else []
    found += [_OF_TRANSACTIONS[end]] if end in _OF_TRANSACTIONS else []
    return (*found, *([RecordState.BELOW_START] if is_below_start else ()))


def reader(states: Iterable[RecordState]) -> ReadableBy:
    """Return who gets a record from a broker that leads the partition with this copy."""
    found = frozenset(states)
    if found <= _FOR_EVERYBODY:
        return ReadableBy.ANY
    return ReadableBy.UNCOMMITTED if found <= _FOR_UNCOMMITTED else ReadableBy.NONE


@dataclass(frozen=True, slots=True)
class _CopyPlace:
    """A file with records."""

    states: tuple[RecordState, ...]
    log_start: int
    """Log start offset; 0 for a file that no broker loads."""


class Marking:
    """Marks on the records of a dump: their states, in the field ``state``."""

    def __init__(self, logs: Iterable[Input], pace: Pace | None = None) -> None:
        """Take the logs of the dump; markers are read at `pace`."""
        self._logs = {str(log.path): log for log in logs}
        self._ends = TransactionEnds(pace)
        self._places: dict[str, _CopyPlace] = {}
        self._said: set[str] = set()

    def among(self, items: Iterable[Any]) -> Iterator[Any]:
        """Yield the items with marked records, and errors of reading; OutOfTimeError."""
        for item in items:
            if not isinstance(item, dict) or item["type"] != "record":
                yield item
                continue
            log = self._logs[item["path"]]
            place = self._places.get(item["path"])
            if place is None:
                place = self._places[item["path"]] = _place_of(log)
            end = COMMITTED
            if item["transactional"] and log.name.kind is FileKind.LOG:
                try:
                    end = self._ends.of(log.path, log.name, item["offset"], item["producer_id"])
                except UnreadableError as error:
                    if str(error) not in self._said:
                        self._said.add(str(error))
                        yield error
            yield item | {"state": list(_states(item, place, end))}


def _states(record: Object, place: _CopyPlace, end: int) -> Iterator[RecordState]:
    yield from of_record(
        is_tombstone=record["value"] is None,
        end=end,
        is_below_start=record["offset"] < place.log_start,
    )
    yield from place.states


def _place_of(log: Input) -> _CopyPlace:
    if log.name.kind is not FileKind.LOG:
        return _CopyPlace((), 0)
    folder = log.path.parent if files.is_remote(log.path) else log.path.absolute().parent
    directory = names.parse_directory(folder.name)
    if not isinstance(directory, PartitionDirectory):
        return _CopyPlace(of_place(log.name, None), 0)
    states = of_place(log.name, directory)
    return _CopyPlace(states, 0 if states else _log_start(folder, directory))


def _log_start(folder: Path, directory: PartitionDirectory) -> int:
    """Return the log start offset: that of the first segment, or the larger row of the checkpoint.

    The dump reports what cannot be read.
    """
    row = first = 0
    with suppress(UnreadableError):  # A copy of a partition dir alone has no checkpoint.
        data = files.read_small(folder.parent / FileKind.LOG_START_CHECKPOINT)
        row = offset_checkpoint.parse(data).offsets.get((directory.topic, directory.partition), 0)
    with suppress(UnreadableError):
        segments = opening.open_partition(folder, KAFKA).segments
        first = segments[0].base_offset if segments else 0
    return max(row, first)
