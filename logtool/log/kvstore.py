"""The kvstores of a Redpanda data directory: the state of the logs, as its cores keep it."""

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
        state: State = {}
        try:
            last = _snapshot(folder / RedpandaFileKind.SNAPSHOT, state, stores)
            _log(folder, state, last, stores)
        except UnreadableError as error:
            stores.problems.append((error.path, error.reason))
        stores.states.append(state)
    return stores


def _snapshot(path: Path, state: State, stores: Kvstores) -> int:
    """Take the pairs of a snapshot; return the last log offset that it covers.

    -1 if the file is missing, is not sound, or does not store that offset.
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
        stores.problems.append((path, "is not a sound snapshot of a kvstore"))
        return -1
    kvstore.replay(state, batch.pairs)
    whole = len(stored.metadata) >= _LAST_OFFSET.size
    return int(_LAST_OFFSET.unpack_from(stored.metadata)[0]) if whole else -1


def _log(folder: Path, state: State, last: int, stores: Kvstores) -> None:
    """Apply the batches behind offset `last`, up to what is damaged."""
    for segment in opening.open_partition(folder).segments:
        with segment.log.open() as log:
            for chunk in segment.batches(log):
                if chunk.damage:
                    if segment.is_active and not chunk.damage.resynchronised:
                        break  # what a kill has torn
                    text = f"byte {chunk.damage.position}: {chunk.damage.message}"
                    stores.problems.append((log.path, text))
                    break
                _apply(chunk, state, last, stores, log.path)


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
