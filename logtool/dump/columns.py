"""Records as columns, and their keys as numbers: for who looks at the records of whole logs."""

from collections.abc import Iterator, Sequence

import numpy as np

from logtool.dump.blocks import NOWHERE, Block, cut
from logtool.errors import FormatError
from logtool.formats import compression, control_record, legacy_batch, record
from logtool.formats.offset_commits import fill_table, intern_keys
from logtool.formats.record_batch import HEADER_SIZE, MAGIC, BatchTable, Column
from logtool.lazy_dataclass import dataclass
from logtool.log.chunk import Chunk

NONE = -1
Marker = tuple[int, int, bool]
"""Record offset, producer id, and whether the transaction is committed."""
_FIRST_ROOM, _FIRST_BYTES, _FIRST_TABLE = 1024, 64 * 1024, 4096
_GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records of batches that hold data as int64 columns, and the bytes of their positions."""

    data: memoryview
    offset: Column
    timestamp: Column
    """Milliseconds; -1 none."""
    producer_id: Column
    """-1 for what is in no transaction."""
    size: Column
    key_position: Column
    key_length: Column
    """-1 is null."""
    value_position: Column
    value_length: Column
    """-1 is null."""

    def __len__(self) -> int:
        return len(self.offset)

    def key(self, row: int) -> bytes | None:
        """Return the key of a record."""
        return _content(self.data, self.key_position[row], self.key_length[row])

    def value(self, row: int) -> bytes | None:
        """Return the value of a record."""
        return _content(self.data, self.value_position[row], self.value_length[row])


@dataclass(frozen=True, slots=True)
class Unread:
    """A batch, or a record in it, that cannot be read, and why."""

    position: int
    """Byte of the batch in the log."""
    size: int
    first_offset: int
    last_offset: int
    reason: str


class Keys:
    """Numbers, from 0 on, for the keys of records: a slot for each."""

    def __init__(self) -> None:
        self.count = 0
        self.keys: Column = np.empty(_FIRST_BYTES, np.uint8)
        """The keys of all slots, one behind the other; behind them there is room for more."""
        self.key_end: Column = np.empty(0, np.int64)
        """Where the key of each slot ends in `keys`; it begins where that before ends."""
        self._table = np.full(_FIRST_TABLE, NONE, np.int32)
        """Finds the slot of a key by its hash; see `intern_keys`."""
        self._lengthen(_FIRST_ROOM)

    def __len__(self) -> int:
        return self.count

    def key(self, slot: int) -> bytes:
        """Return the bytes of a key."""
        start = int(self.key_end[slot - 1]) if slot else 0
        return self.keys[start : int(self.key_end[slot])].tobytes()

    def intern(self, data: memoryview, position: Column, length: Column) -> Column:
        """Return the slot of each key in `data`, a new one where it was not there."""
        found = np.empty(len(position), np.int64)
        row = 0
        while True:
            row, self.count = intern_keys(
                data,
                position,
                length,
                row,
                self.keys.data,
                self.key_end,
                self.count,
                self._table,
                found,
            )
            if row == len(found):
                return found
            self._make_room(int(length[row]))

    def _make_room(self, key_size: int) -> None:
        """Make room for one more key of so many bytes, and for many more."""
        count = self.count
        used = int(self.key_end[count - 1]) if count else 0
        if count == len(self.key_end):
            self._lengthen(int(count * _GROWTH))
        if used + key_size > len(self.keys):
            keys = np.empty(int(used * _GROWTH) + key_size, np.uint8)
            keys[:used] = self.keys[:used]
            self.keys = keys
        if 2 * count + 2 > len(self._table):
            self._table = np.full(4 * len(self._table), NONE, np.int32)
            fill_table(self.keys.data, self.key_end, count, self._table)

    def _lengthen(self, room: int) -> None:
        """Make room for so many slots; whoever keeps more columns lengthens them as well."""
        self.key_end = lengthened(self.key_end, self.count, room, 0)


def lengthened(column: Column, count: int, room: int, empty: int) -> Column:
    """Return the first `count` rows of a column with room for more, which hold `empty`."""
    longer = np.full(room, empty, column.dtype)
    longer[:count] = column[:count]
    return longer


def read_records(chunk: Chunk, limit: int) -> Iterator[RecordColumns | Unread]:
    """Yield the records of the data batches of a chunk, in order; `limit` as of `compression`."""
    rows = np.flatnonzero(~chunk.table.is_control)
    for some, block in cut(NOWHERE, chunk, rows, records=True, unpack_limit=limit):
        if block is not None:
            yield _of_block(block)
            continue
        for row in some.tolist():
            yield from _of_batch(chunk, row, limit)


def markers(table: BatchTable) -> list[Marker]:
    """Return the markers of transactions among batches, in order."""
    ends = (control_record.ABORT, control_record.COMMIT)
    rows = np.flatnonzero(table.is_control & np.isin(table.control_type, ends))
    columns = (table.last_offset[rows], table.producer_id[rows], table.control_type[rows])
    commit = control_record.COMMIT
    return [
        (offset, producer_id, kind == commit)
        for offset, producer_id, kind in zip(*(one.tolist() for one in columns), strict=True)
    ]


def _of_block(block: Block) -> RecordColumns:
    records = block.records
    assert records
    table = records.table
    return RecordColumns(
        data=records.data,
        offset=records.offset,
        timestamp=records.timestamp,
        producer_id=np.repeat(block.batches.producer_id, records.counts),
        size=table.size,
        key_position=table.key_position,
        key_length=table.key_length,
        value_position=table.value_position,
        value_length=table.value_length,
    )


def _of_batch(chunk: Chunk, row: int, limit: int) -> Iterator[RecordColumns | Unread]:
    """Yield the records of a batch that is in no block."""
    table, batch = chunk.table, chunk.batch(row)
    place = (
        int(table.position[row]), int(table.size[row]),
        int(table.base_offset[row]), int(table.last_offset[row]),
    )  # fmt: skip
    if len(batch) < table.size[row]:
        yield Unread(*place, reason="the batch is too large to be read")
        return
    try:
        if table.magic[row] < MAGIC:
            yield _of_messages(list(legacy_batch.parse_messages(batch, limit)))
            return
        payload = compression.decompress(int(table.codec[row]), batch[HEADER_SIZE:], limit)
        for found, damage in record.parse_slices(payload, int(table.record_count[row])):
            count = len(found)
            yield RecordColumns(
                data=payload,
                offset=table.base_offset[row] + found.offset_delta,
                timestamp=table.base_timestamp[row] + found.timestamp_delta,
                producer_id=np.full(count, table.producer_id[row]),
                size=found.size,
                key_position=found.key_position,
                key_length=found.key_length,
                value_position=found.value_position,
                value_length=found.value_length,
            )
            if damage:
                raise damage
    except FormatError as error:
        yield Unread(*place, reason=error.reason)


def _of_messages(messages: Sequence[legacy_batch.Message]) -> RecordColumns:
    """Return messages of magic 0 and 1 in the same columns."""
    contents = [text for one in messages for text in (one.key, one.value)]
    lengths = np.array([NONE if text is None else len(text) for text in contents], np.int64)
    ends = np.cumsum(np.maximum(lengths, 0))
    starts = (ends - np.maximum(lengths, 0)).reshape(-1, 2)
    pairs = lengths.reshape(-1, 2)
    return RecordColumns(
        data=memoryview(b"".join(text or b"" for text in contents)),
        offset=np.array([one.offset for one in messages], np.int64),
        timestamp=np.array([one.timestamp for one in messages], np.int64),
        producer_id=np.full(len(messages), NONE, np.int64),
        size=np.maximum(pairs, 0).sum(axis=1),
        key_position=starts[:, 0],
        key_length=pairs[:, 0],
        value_position=starts[:, 1],
        value_length=pairs[:, 1],
    )


def _content(data: memoryview, position: int, length: int) -> bytes | None:
    return None if length < 0 else bytes(data[position : position + length])
