"""Control records spelled out: transaction markers and KRaft's own messages.

KRaft's are an int16 version and a message in the encoding of `logtool.formats.messages.flexible`.
Source: ``ControlRecordUtils`` and the schemas ``LeaderChangeMessage``, ``SnapshotHeaderRecord``,
``SnapshotFooterRecord``, ``KRaftVersionRecord``, ``VotersRecord`` (Kafka 4.x).
"""

from collections.abc import Callable
from typing import Any

from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.formats.messages.flexible import Reader

Fields = dict[str, Any]


def decode(key: bytes | None, value: bytes | None) -> Fields:
    """Return ``version``, ``type``, ``name`` and, where they are known, the fields in ``data``.

    FormatError when a broker could not read it. An unknown type has no data.
    """
    control = control_record.parse(key, value)
    data: Fields | None = None
    if control.type in control_record.END_TRANSACTION:
        data = {
            "version": int.from_bytes((value or b"")[:2], "big"),
            "coordinatorEpoch": control.coordinator_epoch,
        }
    elif control.type in _MESSAGES and value is not None:
        reader = Reader(value, "the control record")
        version = reader.number(2)
        data = {"version": version, **_MESSAGES[control.type](reader, version)}
    return {"version": control.version, "type": control.type, "name": control.name, "data": data}


def name_of(key: bytes | None, value: bytes | None) -> str | None:
    """Return Kafka's word for the type of a control record, None where it does not decode."""
    try:
        name: str = decode(key, value)["name"]
    except FormatError:
        return None
    return name


def _snapshot_header(reader: Reader, version: int) -> Fields:
    return {"lastContainedLogTimestamp": reader.number(8)}


def _snapshot_footer(reader: Reader, version: int) -> Fields:
    return {}


def _kraft_version(reader: Reader, version: int) -> Fields:
    return {"kRaftVersion": reader.number(2)}


def _leader_change(reader: Reader, version: int) -> Fields:
    def voter(source: Reader) -> Fields:
        fields: Fields = {"voterId": source.int32()}
        if version >= 1:
            fields["voterDirectoryId"] = source.uuid()
        source.tagged()
        return fields

    leader = reader.int32()
    return {
        "leaderId": leader,
        "voters": list(reader.array(voter)),
        "grantingVoters": list(reader.array(voter)),
    }


def _voters(reader: Reader, version: int) -> Fields:
    return {"voters": list(reader.array(_voter))}


def _voter(reader: Reader) -> Fields:
    fields: Fields = {
        "voterId": reader.int32(),
        "voterDirectoryId": reader.uuid(),
        "endpoints": list(reader.array(_endpoint)),
    }
    fields["kRaftVersionFeature"] = {
        "minSupportedVersion": reader.number(2),
        "maxSupportedVersion": reader.number(2),
    }
    reader.tagged()
    reader.tagged()
    return fields


def _endpoint(reader: Reader) -> Fields:
    fields: Fields = {
        "name": reader.string(),
        "host": reader.string(),
        "port": reader.number(2, signed=False),
    }
    reader.tagged()
    return fields


_MESSAGES: dict[int, Callable[[Reader, int], Fields]] = {
    control_record.LEADER_CHANGE: _leader_change,
    control_record.SNAPSHOT_HEADER: _snapshot_header,
    control_record.SNAPSHOT_FOOTER: _snapshot_footer,
    control_record.KRAFT_VERSION: _kraft_version,
    control_record.KRAFT_VOTERS: _voters,
}
