"""The place where the Kafka offsets of a log of Redpanda begin, by the files next to it.

In the namespace ``kafka`` a Kafka offset is the Raft offset without the delta, see
`logtool.formats.redpanda.offset_translation`. The delta is 0 at offset 0. Where a log begins behind
it, the snapshot of Raft has the delta, or a kvstore of the data directory, in which the maps of
all logs lie under the numbers of their Raft groups. Only the log of the cluster has the group of a
log. So a map is used if all that it says of the offsets of this log holds for the batches that are
there, at least one of them, and if no other such map contradicts it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from logtool.disk.files import LogFile
from logtool.errors import UnreadableError
from logtool.formats.record_batch import BatchTable
from logtool.formats.redpanda import offset_translation, snapshot
from logtool.formats.redpanda.kvstore import Keyspace
from logtool.formats.redpanda.names import KAFKA_NAMESPACE, RedpandaFileKind
from logtool.formats.redpanda.offset_translation import FILTERED, OffsetMap, Translation
from logtool.lazy_dataclass import dataclass
from logtool.log import kvstore, opening, redpanda_dir
from logtool.log.dir import Partition

Ranges = Sequence[tuple[int, int]]
"""(base offset, last offset) of batches that have no Kafka offset, in order."""

_LARGEST_METADATA = 1024 * 1024
"""Bytes of a snapshot that are read for its metadata, which is far smaller."""
_MAP = b"\0"
"""The kind of a map among the keys of its keyspace, in front of the group."""


@dataclass(frozen=True, slots=True)
class KafkaStart:
    """A Raft offset at which the delta is known."""

    offset: int
    delta: int
    """Raft offsets below it that are no Kafka offsets."""
    source: str
    """Name of the file that the delta was read from, for messages."""


def filtered(table: BatchTable) -> list[tuple[int, int]]:
    """Return the batches of a table that have no Kafka offset."""
    rows = np.flatnonzero(np.isin(table.batch_type, list(FILTERED)))
    return list(
        zip(table.base_offset[rows].tolist(), table.last_offset[rows].tolist(), strict=True)
    )


def in_kafka(folder: Path) -> bool:
    """Return whether the folder of a partition lies where Kafka offsets differ from Raft's."""
    return folder.absolute().parent.parent.name == KAFKA_NAMESPACE


def known(folder: Path, first: int, ranges: Callable[[], Ranges]) -> KafkaStart | None:
    """Return where Kafka offsets of a log are known, or None; its first segment begins at `first`.

    `ranges` returns the batches of the log without a Kafka offset; it is called only if needed.
    """
    if not in_kafka(folder):
        return None
    if first == 0:
        return KafkaStart(0, 0, "the start of the log")
    return of_snapshot(folder) or _of_kvstore(folder, first, ranges)


def translation(listed: Partition, ranges: Ranges) -> tuple[str, Translation] | None:
    """Return the source of the Kafka offsets of a log, and their translation; None without one.

    `ranges` are its batches that have no Kafka offset.
    """
    if not listed.segments:
        return None
    first = listed.segments[0].base_offset
    start = known(listed.segments[0].log.path.parent, first, lambda: ranges)
    if start is None:
        return None
    delta = start.delta
    delta -= sum(last - base + 1 for base, last in ranges if first <= base < start.offset)
    return start.source, Translation(ranges, start=first, start_delta=delta)


def unknown(listed: Partition) -> str:
    """Return the text that says that the Kafka offsets of a log are not known."""
    first = listed.segments[0].base_offset if listed.segments else 0
    text = "neither the Raft snapshot nor the kvstore has the number of offsets below "
    return f"{text}{first} are Kafka's"


def of_snapshot(folder: Path) -> KafkaStart | None:
    """Return the delta in the snapshot of Raft in a folder; None if no snapshot is sound."""
    try:
        with LogFile(folder / RedpandaFileKind.SNAPSHOT) as file:
            stored = snapshot.parse(file.read(0, _LARGEST_METADATA))
    except UnreadableError:
        return None
    if not stored.header_crc_holds or not stored.metadata_crc_holds:
        return None
    raft = snapshot.raft_metadata(stored.metadata)
    if raft is None or raft.log_start_delta is None:
        return None
    return KafkaStart(raft.last_included_index + 1, raft.log_start_delta, "the Raft snapshot")


def ranges_in(listed: Partition) -> list[tuple[int, int]]:
    """Read from the headers of a log its batches without a Kafka offset; UnreadableError."""
    found: list[tuple[int, int]] = []
    for segment in listed.segments:
        for chunk in segment.batches(payload=False):
            found += filtered(chunk.table)
    return found


def _of_kvstore(folder: Path, first: int, ranges: Callable[[], Ranges]) -> KafkaStart | None:
    data_dir = folder.absolute().parents[2]
    maps = _maps(data_dir, tuple(_stamps(data_dir)))
    if not maps:
        return None
    there = ranges()
    deltas = {delta for one in maps if (delta := _fitting(one, first, there)) is not None}
    return KafkaStart(first, deltas.pop(), "the kvstore") if len(deltas) == 1 else None


def _fitting(stored: OffsetMap, first: int, there: Ranges) -> int | None:
    """Return the delta at `first` by a map of some log, if the map holds for this log."""
    (base, length), *elements = stored.elements or ((offset_translation.FIRST_OF_A_WHOLE_LOG, 1),)
    start = max(base + length, first)
    within = [(at, at + size - 1) for at, size in elements if at >= start]
    if not within:
        return None
    last = within[-1][1]
    # Neighbours may be one element or several: what counts is which offsets they take together.
    if _offsets(within) != _offsets([one for one in there if start <= one[0] <= last]):
        return None
    kafka = Translation.of_map(stored).to_kafka(start)
    before = sum(one[1] - one[0] + 1 for one in there if first <= one[0] < start)
    return None if kafka is None else start - kafka - before


def _offsets(ranges: Ranges) -> list[list[int]]:
    """Return ranges with neighbours joined."""
    joined: list[list[int]] = []
    for first, last in ranges:
        if joined and joined[-1][1] + 1 == first:
            joined[-1][1] = last
        else:
            joined.append([first, last])
    return joined


def _stamps(data_dir: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of the files of the kvstores, which differ once one changes."""
    for folder, _ in redpanda_dir.partitions(data_dir / kvstore.DIRECTORY):
        try:
            for file in opening.open_partition(folder).files():
                yield str(file.path), file.size, file.mtime_ns
        except UnreadableError:
            continue


@lru_cache(maxsize=1)
def _maps(data_dir: Path, stamps: tuple[tuple[str, int, int], ...]) -> tuple[OffsetMap, ...]:
    """Return the maps in the kvstores of a data directory, whose files have these stamps."""
    if not stamps:
        return ()
    values = (
        value
        for state in kvstore.read(data_dir).states
        for (keyspace, key), value in state.items()
        if keyspace == Keyspace.OFFSET_TRANSLATOR and key[:1] == _MAP
    )
    parsed = (offset_translation.parse_map(value) for value in values)
    return tuple(one for one in parsed if one is not None)
