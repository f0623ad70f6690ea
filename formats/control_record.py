"""Control records: end-transaction markers and KRaft's own.

Key: int16 version, int16 type. Values::

    0 ABORT, 1 COMMIT     int16 version, int32 coordinator_epoch
    2 LEADER_CHANGE       int16 version, int32 leader_id, voters, granting voters   (flexible)
    3 SNAPSHOT_HEADER     int16 version, int64 last_contained_log_timestamp         (flexible)
    4 SNAPSHOT_FOOTER     int16 version                                             (flexible)
    5 KRAFT_VERSION       int16 version, int16 k_raft_version                       (flexible)
    6 KRAFT_VOTERS        int16 version, voters                                     (flexible)

An unknown type is a value, not damage: a broker ignores it. Source: ``ControlRecordType``,
``EndTransactionMarker``, ``ControlRecordUtils`` (Kafka 3.9 and 4.x).
"""

import struct
from dataclasses import replace

import numpy as np

from logtool.errors import FormatError
from logtool.formats import _kernels
from logtool.formats.record_batch import HEADER_SIZE
from logtool.lazy_dataclass import dataclass

ABORT, COMMIT, LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = range(
    7
)
NAMES = (
    "ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION",
    "KRAFT_VOTERS",
)  # fmt: skip
END_TRANSACTION = (ABORT, COMMIT)

KEY = struct.Struct(">hh")
END_MARKER = struct.Struct(">hi")


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """The first record of a control batch."""

    version: int
    """Version of the key."""
    type: int
    coordinator_epoch: int = -1
    """Coordinator epoch of an end-transaction marker, else -1."""
    timestamp_delta: int = 0
    """Milliseconds to the batch's base timestamp."""

    @property
    def name(self) -> str:
        """Return Kafka's word for the type."""
        return name(self.type)


def name(kind: int) -> str:
    """Return Kafka's word for a type, or ``UNKNOWN(N)``."""
    return NAMES[kind] if 0 <= kind < len(NAMES) else f"UNKNOWN({kind})"


def parse(key: bytes | memoryview | None, value: bytes | memoryview | None) -> ControlRecord:
    """Decode one control record; FormatError when a broker could not read it."""
    if key is None or len(key) < KEY.size:
        size = "null" if key is None else f"{len(key)} bytes"
        raise FormatError(f"control record key is {size}, but at least {KEY.size} bytes are needed")
    version, kind = KEY.unpack_from(key)
    if version < 0:
        raise FormatError(f"control record key has version {version}")
    if kind not in END_TRANSACTION:
        return ControlRecord(version, kind)
    if value is None or len(value) < END_MARKER.size:
        size = "null" if value is None else f"{len(value)} bytes"
        raise FormatError(
            f"end-transaction marker value is {size}, but at least {END_MARKER.size} "
            "bytes are needed"
        )
    marker_version, coordinator_epoch = END_MARKER.unpack_from(value)
    if marker_version < 0:
        raise FormatError(f"end-transaction marker has version {marker_version}")
    return ControlRecord(version, kind, coordinator_epoch)


def parse_batch(batch: memoryview) -> ControlRecord:
    """Decode the first record of a whole, uncompressed control batch (header included)."""
    rows = np.empty((1, _kernels.RECORD_COLUMNS), np.int64)
    payload = batch[HEADER_SIZE:]
    _, position, reason = _kernels.decode_records(payload, 0, len(payload), 1, rows, 0)
    if reason != _kernels.DONE:
        raise FormatError("the record of this control batch does not decode", position)
    key_at, key_size, value_at, value_size = rows[0, 5:9].tolist()
    control = parse(
        None if key_size < 0 else payload[key_at : key_at + key_size],
        None if value_size < 0 else payload[value_at : value_at + value_size],
    )
    return replace(control, timestamp_delta=int(rows[0, 3]))


def encode_end_transaction(*, commit: bool, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Return (key, value) of an end-transaction marker."""
    return KEY.pack(0, COMMIT if commit else ABORT), END_MARKER.pack(0, coordinator_epoch)
