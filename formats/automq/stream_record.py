"""Records of streams (``StreamRecordBatch``), as they stand in data blocks and in a WAL.

A header of 33 bytes, big-endian, and the payload:

===========  =====  ================================================================================
magic        uint8  0x22
stream_id    int64  -1 for a record of a WAL that carries nothing
epoch        int64  of the stream; -1 together with stream -1
base_offset  int64  its unit depends on the stream
count        int32  offsets that the record covers; negative for a link, whose payload says in which
                    WAL the data is
size         int32  bytes of the payload
payload             in a log stream Kafka's batches with their final offsets
===========  =====  ================================================================================

No checksum covers a record. Source: ``StreamRecordBatchCodec``, ``StreamRecordBatch``
(AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from logtool.lazy_dataclass import dataclass

MAGIC = 0x22
HEADER = np.dtype(
    [
        ("magic", "u1"), ("stream_id", ">i8"), ("epoch", ">i8"), ("base_offset", ">i8"),
        ("count", ">i4"), ("size", ">i4"),
    ]
)  # fmt: skip
HEADER_SIZE = HEADER.itemsize
NO_STREAM = -1
_SIZE = struct.Struct(">i")
_SIZE_AT = HEADER_SIZE - _SIZE.size
_PACK = struct.Struct(">BqqqiI")

Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """One record."""

    stream_id: int
    epoch: int
    base_offset: int
    count: int
    payload: bytes

    @property
    def end_offset(self) -> int:
        """Return the offset behind the record."""
        return self.base_offset + abs(self.count)


@dataclass(frozen=True, slots=True, eq=False)
class StreamRecords:
    """Records as int64 columns of one length, in the order of the bytes."""

    data: memoryview
    """Bytes in which the positions count."""
    position: Column
    """Position of the header."""
    stream_id: Column
    epoch: Column
    base_offset: Column
    count: Column
    """Count as stored: negative for a link."""
    size: Column
    """Bytes of the payload."""

    def __len__(self) -> int:
        return len(self.position)

    @property
    def end_offset(self) -> Column:
        """Return the offset behind each record."""
        return self.base_offset + np.abs(self.count)

    def payload(self, row: int) -> memoryview:
        """Return the payload of one record."""
        start = int(self.position[row]) + HEADER_SIZE
        return self.data[start : start + int(self.size[row])]

    def record(self, row: int) -> StreamRecord:
        """Return one record."""
        return StreamRecord(
            int(self.stream_id[row]),
            int(self.epoch[row]),
            int(self.base_offset[row]),
            int(self.count[row]),
            bytes(self.payload(row)),
        )


@dataclass(frozen=True, slots=True)
class Fault:
    """The first place at which AutoMQ's reader stops."""

    position: int
    text: str
    """Expected and found values."""


def parse(
    data: bytes | memoryview, start: int = 0, stop: int | None = None
) -> tuple[StreamRecords, Fault | None]:
    """Read the records from `start` to `stop`, and the fault at which they end early."""
    view = memoryview(data)
    stop = len(view) if stop is None else stop
    found: list[int] = []
    fault = None
    while start < stop:
        if stop - start < HEADER_SIZE:
            left = stop - start
            fault = Fault(start, f"expected the {HEADER_SIZE} bytes of a header, found {left}")
        elif view[start] != MAGIC:
            fault = Fault(start, f"expected magic 0x{MAGIC:02x}, found 0x{view[start]:02x}")
        else:
            (size,) = _SIZE.unpack_from(view, start + _SIZE_AT)
            left = stop - start - HEADER_SIZE
            if not 0 <= size <= left:
                fault = Fault(start, f"expected a payload of at most {left} bytes, found {size}")
        if fault:
            break
        found.append(start)
        start += HEADER_SIZE + size
    return at(view, found), fault


def encode(record: StreamRecord) -> bytes:
    """Return the bytes of a record."""
    return (
        _PACK.pack(
            MAGIC,
            record.stream_id,
            record.epoch,
            record.base_offset,
            record.count,
            len(record.payload),
        )
        + record.payload
    )


def concat(parts: Sequence[StreamRecords]) -> StreamRecords:
    """Return the records of all parts, which are of one `data`, in order."""
    if len(parts) == 1:
        return parts[0]
    names = ("position", "stream_id", "epoch", "base_offset", "count", "size")
    if not parts:
        return at(memoryview(b""), [])
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return StreamRecords(parts[0].data, *columns)


def at(view: memoryview, found: Sequence[int]) -> StreamRecords:
    """Return the records whose headers stand at the positions `found`; all must be whole."""
    positions = np.array(found, np.int64)
    # Every byte begins a header here; picking some of them copies those alone.
    count = max(len(view) - HEADER_SIZE + 1, 0)
    everywhere: NDArray[np.void] = np.ndarray(
        (count,), HEADER, np.frombuffer(view, np.uint8).data if count else b"", strides=(1,)
    )
    rows = everywhere[positions]
    columns = (rows[name].astype(np.int64) for name in HEADER.names or () if name != "magic")
    return StreamRecords(view, positions, *columns)
