"""The kvstores of a Redpanda data directory: the state of the logs, as its cores keep it.

A start loads the snapshot and replays the segments behind it. Segments that begin at or below the
end of the snapshot, and none of which begins exactly there, are old and deleted. From the one that
begins there each batch must begin where the one before it ends, or the process ends; the same if
the last segment begins above the end of the snapshot. Source: ``storage/kvstore.cc``
(``replay_segments_in_thread``; Redpanda 1c6cff34ea, 2024-12-20).
"""

import struct
from dataclasses import field
from pathlib import Path

from logtool.disk.files import LogFile
from logtool.errors import FormatError, UnreadableError
from logtool.formats.record_batch import HEADER_SIZE
from logtool.formats.redpanda import kvstore, snapshot
from logtool.formats.redpanda.kvstore import State
from logtool.formats.redpanda.names import RedpandaFileKind
from logtool.formats.redpanda.record_batch import BatchType, RedpandaBatch
from logtool.lazy_dataclass import dataclass
from logtool.log import opening, redpanda_dir
from logtool.log.base_index import header_of
from logtool.log.chunk import Chunk
from logtool.log.dir import Segment

DIRECTORY = Path("redpanda", "kvstore")
"""In the data directory; below it one folder for each core."""

_LAST_OFFSET = struct.Struct("<q")
_LARGEST_SNAPSHOT = 256 * 1024 * 1024
"""Bytes of a snapshot that are read: it holds a few values for each log."""


@dataclass(slots=True)
class Kvstores:
    """The content of the stores of all cores."""

    states: list[State] = field(default_factory=list)
    problems: list[tuple[Path, str]] = field(default_factory=list)
    """Each file that could not be read, and the reason: the rest of the file is not known."""
    refusals: list[tuple[Path, str]] = field(default_factory=list)
    """Each file that stops the start of the broker, and the reason."""

    def clean_segment(self, namespace: str, topic: str, number: int) -> str | None:
        """Return the file name of the segment that a clean stop of a log left last, if any."""
        found = (kvstore.clean_segment(one, namespace, topic, number) for one in self.states)
        return next((name for name in found if name is not None), None)

    def start_offset(self, namespace: str, topic: str, number: int) -> int | None:
        """Return the Raft offset at which a log begins for its readers, where one is stored."""
        found = (kvstore.start_offset(one, namespace, topic, number) for one in self.states)
        return max((offset for offset in found if offset is not None), default=None)


def read(data_dir: Path) -> Kvstores:
    """Read all kvstores of a data directory; there may be none."""
    stores = Kvstores()
    for folder, _ in redpanda_dir.partitions(data_dir / DIRECTORY):
        _read(folder, stores)
    return stores


def read_one(folder: Path) -> Kvstores:
    """Read the kvstore of one core."""
    stores = Kvstores()
    _read(folder, stores)
    return stores


def _read(folder: Path, stores: Kvstores) -> None:
    state: State = {}
    try:
        last = _snapshot(folder / RedpandaFileKind.SNAPSHOT, state, stores)
        _log(folder, state, last, stores)
    except UnreadableError as error:
        stores.problems.append((error.path, error.reason))
    stores.states.append(state)


def _snapshot(path: Path, state: State, stores: Kvstores) -> int | None:
    """Take the pairs of a snapshot; return the last log offset that it covers.

    -1 without a snapshot, or if it does not store that offset; None if it is not sound.
    """
    try:
        with LogFile(path) as file:
            stored = snapshot.parse(file.read(0, min(file.size, _LARGEST_SNAPSHOT)))
    except UnreadableError as error:
        if error.missing:
            return -1
        raise
    batch = kvstore.parse_snapshot(stored.payload)
    sound = stored.header_crc_holds and stored.metadata_crc_holds
    if not sound or batch is None or not batch.crc_holds:
        stores.refusals.append((path, "is not a sound snapshot of a kvstore"))
        return None
    kvstore.replay(state, batch.pairs)
    whole = len(stored.metadata) >= _LAST_OFFSET.size
    return int(_LAST_OFFSET.unpack_from(stored.metadata)[0]) if whole else -1


def _log(folder: Path, state: State, last: int | None, stores: Kvstores) -> None:
    """Apply the batches behind offset `last` (None: all), up to what is damaged or missing."""
    found = [one for one in opening.open_partition(folder).segments if _has_batch(one, stores)]
    if last is None:
        last = found[0].base_offset - 1 if found else -1
    end = last + 1
    first = next((at for at, one in enumerate(found) if one.base_offset == end), None)
    if first is None:
        if found and found[-1].base_offset > end:
            text = f"begins at offset {found[-1].base_offset}, and no segment begins at {end}"
            stores.refusals.append((found[-1].log.path, f"{text}, where the snapshot ends"))
        return
    for segment in found[first:]:
        if segment.base_offset != end:
            text = f"begins at offset {segment.base_offset}, but the segment before it ends at"
            stores.refusals.append((segment.log.path, f"{text} {end}"))
            return
        with segment.log.open() as log:
            for chunk in segment.batches(log):
                if chunk.damage:
                    if segment.is_active and not chunk.damage.resynchronised:
                        return  # what a kill has torn
                    text = f"byte {chunk.damage.position}: {chunk.damage.message}"
                    stores.problems.append((log.path, text))
                    break
                for row in range(len(chunk.table)):
                    if int(chunk.table.base_offset[row]) != end:
                        text = f"byte {int(chunk.table.position[row])}: the batch begins at offset"
                        text = f"{text} {int(chunk.table.base_offset[row])}, expected {end}"
                        stores.refusals.append((log.path, text))
                        return
                    end = int(chunk.table.last_offset[row]) + 1
                _apply(chunk, state, last, stores, log.path)


def _has_batch(segment: Segment, stores: Kvstores) -> bool:
    """Return whether a segment begins with a sound batch; a start puts aside one that does not."""
    with segment.log.open() as log:
        first = next(iter(segment.batches(log)), None)
    if first is None or first.damage is None:
        return first is not None and len(first.table) > 0
    if not segment.is_active or first.damage.resynchronised:
        text = f"byte {first.damage.position}: {first.damage.message}"
        stores.problems.append((segment.log.path, text))
    return False


def _apply(chunk: Chunk, state: State, last: int, stores: Kvstores, path: Path) -> None:
    table = chunk.table
    for row in range(len(table)):
        if table.batch_type[row] != BatchType.KVSTORE or table.last_offset[row] <= last:
            continue
        batch = RedpandaBatch(header_of(table.row(row)), bytes(chunk.batch(row)[HEADER_SIZE:]))
        try:
            kvstore.replay(state, kvstore.pairs(batch))
        except FormatError as error:
            stores.problems.append((path, f"byte {int(table.position[row])}: {error}"))
