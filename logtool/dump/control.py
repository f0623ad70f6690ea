"""Control records spelled out: transaction markers and KRaft's own messages.

KRaft's are flexible messages of version 0 or 1: int16 version, fields, tagged fields. Compact
arrays and strings begin with their length plus one as an unsigned varint. Source:
``ControlRecordUtils`` and the schemas ``LeaderChangeMessage``, ``SnapshotHeaderRecord``,
``SnapshotFooterRecord``, ``KRaftVersionRecord``, ``VotersRecord`` (Kafka 4.x).
"""

import base64
from collections.abc import Callable
from typing import Any

from logtool.errors import FormatError
from logtool.formats import control_record

Fields = dict[str, Any]


class _Reader:
    """Reads fields one behind the other; any that does not fit is a FormatError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        piece = self._data[self._position : self._position + size]
        if len(piece) != size:
            raise FormatError("the control record ends inside a field", self._position)
        self._position += size
        return piece

    def number(self, size: int, *, signed: bool = True) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def varint(self) -> int:
        value = shift = 0
        while shift < 35:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise FormatError("a varint of the control record does not end", self._position)

    def string(self) -> str:
        return self.take(max(self.varint() - 1, 0)).decode("utf-8", "replace")

    def uuid(self) -> str:
        return base64.urlsafe_b64encode(self.take(16)).decode("ascii").rstrip("=")

    def array(self, element: Callable[["_Reader"], Fields]) -> list[Fields]:
        found = []
        # An element takes at least its byte of tags, so damage ends the loop soon.
        for _ in range(self.varint() - 1):
            found.append(element(self))
        return found

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.take(self.varint())


def decode(key: bytes | None, value: bytes | None) -> Fields:
    """Return ``version``, ``type``, ``name`` and, where they are known, the fields in ``data``.

    FormatError when a broker could not read it. An unknown type has no data.
    """
    control = control_record.parse(key, value)
    data: Fields | None = None
    if control.type in control_record.END_TRANSACTION:
        data = {"version": int.from_bytes((value or b"")[:2], "big"),
                "coordinatorEpoch": control.coordinator_epoch}  # fmt: skip
    elif control.type in _MESSAGES and value is not None:
        reader = _Reader(value)
        version = reader.number(2)
        data = {"version": version, **_MESSAGES[control.type](reader, version)}
    return {"version": control.version, "type": control.type, "name": control.name, "data": data}


def _snapshot_header(reader: _Reader, version: int) -> Fields:
    return {"lastContainedLogTimestamp": reader.number(8)}


def _snapshot_footer(reader: _Reader, version: int) -> Fields:
    return {}


def _kraft_version(reader: _Reader, version: int) -> Fields:
    return {"kRaftVersion": reader.number(2)}


def _leader_change(reader: _Reader, version: int) -> Fields:
    def voter(source: _Reader) -> Fields:
        fields: Fields = {"voterId": source.number(4)}
        if version >= 1:
            fields["voterDirectoryId"] = source.uuid()
        source.tags()
        return fields

    leader = reader.number(4)
    return {
        "leaderId": leader,
        "voters": reader.array(voter),
        "grantingVoters": reader.array(voter),
    }


def _voters(reader: _Reader, version: int) -> Fields:
    return {"voters": reader.array(_voter)}


def _voter(reader: _Reader) -> Fields:
    fields: Fields = {
        "voterId": reader.number(4),
        "voterDirectoryId": reader.uuid(),
        "endpoints": reader.array(_endpoint),
    }
    fields["kRaftVersionFeature"] = {
        "minSupportedVersion": reader.number(2),
        "maxSupportedVersion": reader.number(2),
    }
    reader.tags()
    reader.tags()
    return fields


def _endpoint(reader: _Reader) -> Fields:
    fields: Fields = {
        "name": reader.string(),
        "host": reader.string(),
        "port": reader.number(2, signed=False),
    }
    reader.tags()
    return fields


_MESSAGES: dict[int, Callable[[_Reader, int], Fields]] = {
    control_record.LEADER_CHANGE: _leader_change,
    control_record.SNAPSHOT_HEADER: _snapshot_header,
    control_record.SNAPSHOT_FOOTER: _snapshot_footer,
    control_record.KRAFT_VERSION: _kraft_version,
    control_record.KRAFT_VOTERS: _voters,
}
