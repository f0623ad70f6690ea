"""The records of batches as columns, and the batches whose records cannot be read."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from logtool.errors import FormatError, LimitError
from logtool.formats.legacy_batch import Message
from logtool.formats.record import RecordSpans
from logtool.formats.record_batch import NO_SEQUENCE, BatchTable, Column
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records as int64 columns with one row for each, and the batches that hold them.

    They are all records of some batches, or up to `record.MOST_AT_ONCE` records of one batch. A
    message of magic 0 or 1 is a record without headers. There is no length, so that a table without
    records is not a false value.
    """

    data: memoryview
    """Keys, values and headers; the positions in `spans` count in it."""
    batches: BatchTable
    counts: Column
    """Number of records of each batch."""
    spans: RecordSpans
    offset: Column
    timestamp: Column
    """Milliseconds; -1 for none."""
    sequence: Column
    """-1 for none."""
    crc: Column | None = None
    """CRC stored in messages of magic 0 and 1; None for records of magic 2, which have none."""
    magic: Column | None = None
    """The magic of messages of magic 0 and 1, which may differ from that of their wrapper; None for
    records of magic 2."""
    matrix: Column | None = None
    """The columns of `spans` with offset, timestamp and sequence behind them, where these are the
    columns of one array."""

    def columns(self) -> Column:
        """Return such an array."""
        if self.matrix is not None:
            return self.matrix
        names = RecordSpans.__slots__
        more = (self.offset, self.timestamp, self.sequence)
        return np.column_stack([*(getattr(self.spans, name) for name in names), *more])

    def first(self, count: int) -> "RecordTable":
        """Return the first `count` records; every batch stays, with fewer records or none."""
        spans = {name: getattr(self.spans, name)[:count] for name in RecordSpans.__slots__}
        before = np.cumsum(self.counts) - self.counts
        return replace(
            self,
            counts=np.clip(count - before, 0, self.counts),
            spans=RecordSpans(**spans),
            offset=self.offset[:count],
            timestamp=self.timestamp[:count],
            sequence=self.sequence[:count],
            crc=None if self.crc is None else self.crc[:count],
            magic=None if self.magic is None else self.magic[:count],
            matrix=None if self.matrix is None else self.matrix[:count],
        )

    def of_batches(self, column: Column) -> Column:
        """Return for each record the number that `column` has for its batch."""
        return np.repeat(column, self.counts)

    def key(self, row: int) -> bytes | None:
        """Return the key of a record."""
        return self._bytes(self.spans.key_position[row], self.spans.key_length[row])

    def value(self, row: int) -> bytes | None:
        """Return the value of a record."""
        return self._bytes(self.spans.value_position[row], self.spans.value_length[row])

    def _bytes(self, position: int, length: int) -> bytes | None:
        return None if length < 0 else bytes(self.data[position : position + length])


@dataclass(frozen=True, slots=True)
class Unread:
    """A batch whose records cannot be read, or not to the end, and why."""

    row: int
    """Its row in the table of the chunk."""
    position: int
    """Byte of the batch in the log."""
    size: int
    """Bytes of the batch."""
    first_offset: int
    last_offset: int
    error: FormatError
    """The fault; its position counts in the decompressed records where `in_records`."""
    in_memory: bool = True
    """False: the chunk does not hold the bytes of the batch, as they are too many."""
    in_records: bool = False
    """True: the batch decompresses, and its records decode up to the position of `error`."""

    @property
    def reason(self) -> str:
        """Return the fault in one line."""
        return self.error.reason

    @property
    def beyond_limit(self) -> bool:
        """Return whether it may be sound: it decompresses to more bytes than the limit."""
        return isinstance(self.error, LimitError)


def unread(
    table: BatchTable,
    row: int,
    error: FormatError,
    *,
    in_memory: bool = True,
    in_records: bool = False,
) -> Unread:
    """Return that a batch of a table cannot be read, for what `error` says."""
    return Unread(
        row=row,
        position=int(table.position[row]),
        size=int(table.size[row]),
        first_offset=int(table.base_offset[row]),
        last_offset=int(table.last_offset[row]),
        error=error,
        in_memory=in_memory,
        in_records=in_records,
    )


def table_of_messages(batch: BatchTable, messages: Sequence[Message]) -> RecordTable:
    """Return messages of one entry of magic 0 or 1 as records."""
    count = len(messages)
    contents = [content for one in messages for content in (one.key, one.value)]
    lengths = _column([-1 if content is None else len(content) for content in contents])
    ends = np.cumsum(np.maximum(lengths, 0))
    starts = (ends - np.maximum(lengths, 0)).reshape(-1, 2)
    sizes = lengths.reshape(-1, 2)
    zero = np.zeros(count, np.int64)
    return RecordTable(
        data=memoryview(b"".join(content or b"" for content in contents)),
        batches=batch,
        counts=np.array([count]),
        spans=RecordSpans(
            position=starts[:, 0],
            size=np.maximum(sizes, 0).sum(axis=1),
            attributes=_column([one.attributes for one in messages]),
            timestamp_delta=zero,
            offset_delta=zero,
            key_position=starts[:, 0],
            key_length=sizes[:, 0],
            value_position=starts[:, 1],
            value_length=sizes[:, 1],
            header_position=zero,
            header_count=zero,
        ),
        offset=_column([one.offset for one in messages]),
        timestamp=_column([one.timestamp for one in messages]),
        sequence=np.full(count, NO_SEQUENCE),
        crc=_column([one.crc for one in messages]),
        magic=_column([one.magic for one in messages]),
    )


def _column(numbers: Sequence[int]) -> Column:
    return np.array(numbers, np.int64)
