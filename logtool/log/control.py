"""Control records: transaction markers, and KRaft's own messages spelled out.

The value is an int16 version and a message of the table ``control_records``. Source:
``ControlRecordUtils``, ``EndTransactionMarker`` (Kafka 4.3).
"""

from typing import TYPE_CHECKING

import numpy as np

from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.formats.record_batch import BatchTable

if TYPE_CHECKING:
    from logtool.formats.messages.codec import Value

Marker = tuple[int, int, bool]
"""Record offset, producer id, and whether the transaction is committed."""
_MESSAGES = {
    control_record.LEADER_CHANGE: "LeaderChangeMessage",
    control_record.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    control_record.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    control_record.KRAFT_VERSION: "KRaftVersionRecord",
    control_record.KRAFT_VOTERS: "VotersRecord",
}


def decode(key: bytes | None, value: bytes | None) -> "Value":
    """Return ``version``, ``type``, ``name`` and, where they are known, the fields in ``data``.

    FormatError when a broker could not read it. An unknown type has no data.
    """
    control = control_record.parse(key, value)
    data: Value | None = None
    if control.type in control_record.END_TRANSACTION:
        data = {
            "version": int.from_bytes((value or b"")[:2], "big"),
            "coordinatorEpoch": control.coordinator_epoch,
        }
    elif control.type in _MESSAGES and value is not None:
        data = _decode(_MESSAGES[control.type], value)
    return {"version": control.version, "type": control.type, "name": control.name, "data": data}


def _decode(name: str, value: bytes) -> "Value":
    """Return the fields of one of KRaft's messages; the first field is its version."""
    from logtool.formats.messages import codec, schema

    message = schema.table("control_records").named(name)
    version = int.from_bytes(value[:2], "big", signed=True)
    # A newer version is read as the newest that is known; where it is another, bytes are left over.
    return codec.decode(message, min(version, message.versions.last), value)


def name_of(key: bytes | None, value: bytes | None) -> str | None:
    """Return Kafka's word for the type of a control record, None where it does not decode."""
    try:
        name: str = decode(key, value)["name"]
    except FormatError:
        return None
    return name


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
