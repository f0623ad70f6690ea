"""The files of partition dirs that may hold records, and the records with a key in each.

Every file with the name of a log counts, in partition dirs of every kind: live segments, files that
a start removes (``.deleted``, ``.cleaned``, ``.swap``), and logs of other names. `logtool.dump`
reads them, so that a key is found wherever ``dump --key`` finds it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from logtool.dump.blocks import Block
from logtool.dump.files import unloaded_logs
from logtool.dump.log import Filter
from logtool.dump.records import Object
from logtool.dump.selecting import RecordContent
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.formats.names import FileName, PartitionDirectory
from logtool.formats.record_batch import Column
from logtool.lazy_dataclass import dataclass
from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.running.run import Progress
from logtool.running.summary import Summary

_NONE = -1


@dataclass(frozen=True, slots=True)
class RecordFile:
    """One file that may hold records."""

    path: Path
    name: FileName
    directory: PartitionDirectory
    is_segment: bool
    """True if a broker that loads the partition dir takes the file as a segment."""


@dataclass(frozen=True, slots=True)
class KeyRecords:
    """Records with the key as columns of equal length."""

    offset: Column
    timestamp: Column
    """Milliseconds; -1 for none."""
    is_tombstone: Column
    horizon: Column
    """Delete horizon of the batch, in ms; -1 for none."""
    producer_id: Column
    """Producer of the transaction that the record is in; -1 for none."""

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.offset)

    def rows(self, which: Column) -> "KeyRecords":
        """Return the records that a mask or an index array selects."""
        return KeyRecords(*(getattr(self, name)[which] for name in KeyRecords.__slots__))


def joined(parts: Iterable[KeyRecords]) -> KeyRecords:
    """Return the records of several parts, of which there is at least one."""
    known = list(parts)
    return KeyRecords(
        *(np.concatenate([getattr(one, name) for one in known]) for name in KeyRecords.__slots__)
    )


def listed(
    directories: Iterable[tuple[Path, PartitionDirectory]],
) -> Iterator[RecordFile | UnreadableError]:
    """Yield the files of partition dirs that may hold records, and errors of listing."""
    for folder, directory in directories:
        found = opening.try_partition(folder, KAFKA)
        if isinstance(found, UnreadableError):
            yield found
            continue
        for segment in found.segments:
            yield RecordFile(segment.log.path, segment.log.name, directory, True)
        for file in unloaded_logs(found):
            yield RecordFile(file.path, file.name, directory, False)


class KeySearch:
    """A search for a key in files: iterate to get the errors, then ask for `found`."""

    def __init__(self, key: bytes | None, summary: Summary, progress: Progress) -> None:
        """Search for a key, None for records without one; the summary counts what is read."""
        self._key, self._summary, self._progress = key, summary, progress
        self.found: dict[Path, KeyRecords] = {}

    def among(self, files: Iterable[RecordFile]) -> Iterator[Object | UnreadableError]:
        """Read the files; yield damage, and the errors of reading."""
        job = Dump(
            paths=[file.path for file in files],
            chosen=Filter(records=True, content=RecordContent(keys=(self._key,)), secrets=True),
            in_blocks=True,
            summary=self._summary,
            progress=self._progress,
        )
        parts: dict[Path, list[KeyRecords]] = {}
        batch: Object = {}
        for item in job:
            if isinstance(item, UnreadableError):
                yield item
            elif isinstance(item, Block):
                parts.setdefault(item.origin.path, []).append(_of_block(item))
            elif item["type"] == "error":
                yield item
            elif item["type"] == "batch":
                batch = item
            elif item["type"] == "record":
                parts.setdefault(Path(item["path"]), []).append(_of_record(batch, item))
        self.found.update((path, joined(some)) for path, some in parts.items())


def _of_block(block: Block) -> KeyRecords:
    records, batches = block.records, block.batches
    assert records
    horizon = np.where(batches.has_delete_horizon, batches.base_timestamp, _NONE)
    producer = np.where(batches.is_transactional, batches.producer_id, _NONE)
    return KeyRecords(
        offset=records.offset,
        timestamp=records.timestamp,
        is_tombstone=records.spans.value_length < 0,
        horizon=records.of_batches(horizon),
        producer_id=records.of_batches(producer),
    )


def _of_record(batch: Object, record: Object) -> KeyRecords:
    def number(value: int | None) -> Column:
        return np.array([_NONE if value is None else value])

    return KeyRecords(
        offset=number(record["offset"]),
        timestamp=number(record["timestamp_ms"]),
        is_tombstone=np.array([record["value"] is None]),
        horizon=number(batch["delete_horizon_ms"]),
        producer_id=number(record["producer_id"] if record["transactional"] else None),
    )
