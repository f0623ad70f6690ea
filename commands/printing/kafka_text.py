"""The lines of Kafka's own dump tool (``DumpLogSegments`` of Kafka 4.4), from the same objects.

Left out on purpose: what it says about other files on stderr, and its mistakes about damage: it
stops at the first damaged batch, `dump` does not.
"""

import base64
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from logtool.commands.printing import text
from logtool.commands.printing.block_lines import MARK
from logtool.commands.printing.writers import Object
from logtool.formats import control_record
from logtool.formats.messages.internal_topics import FRAMED_TABLES, transaction_state

_EMPTY = "OptionalLong.empty"
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT = "\ufffd".encode()
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_ESCAPE = re.compile(r"\\u00[01][0-9a-f]")
_OR_MINUS = ("base_sequence", "last_sequence", "max_timestamp_ms")
_OF_BATCHES = (
    *_OR_MINUS, "base_offset", "last_offset", "record_count", "delete_horizon_ms", "position",
    "size", "crc",
)  # fmt: skip
_OF_RECORDS = ("offset", "timestamp_ms", "sequence")
_WORDS = {
    control_record.LEADER_CHANGE: "LeaderChange: ",
    control_record.SNAPSHOT_HEADER: "SnapshotHeader ",
    control_record.SNAPSHOT_FOOTER: "SnapshotFooter ",
    control_record.KRAFT_VERSION: "KRaftVersion ",
    control_record.KRAFT_VOTERS: "KRaftVoters ",
}


def render(obj: Object, *, metadata: bool = True, contents: bool = True) -> str | None:
    """Return the lines of one object; None where Kafka's tool prints nothing on stdout.

    Records are printed without `metadata`, such as offset and timestamp, or without their
    `contents` where so asked.
    """
    kind = obj["type"]
    if kind == "file":
        return _file(obj)
    if kind == "batch":
        return _batch(obj) if obj["magic"] >= 2 else _legacy_batch(obj)
    if kind == "record":
        return _record(obj, metadata=metadata, contents=contents)
    if kind == "entry":
        return _entry(obj)
    if obj["reason"] == "incomplete":
        name = Path(obj["path"]).name
        return f"Found {obj['length']} invalid bytes at the end of {name}"
    return None


def render_safely(obj: Object, *, metadata: bool = True, contents: bool = True) -> str | None:
    """Return the same for a terminal: with control characters escaped, which Kafka's tool is not.

    A line end in a value is escaped too.
    """
    line = render(obj, metadata=metadata, contents=contents)
    if line is not None and obj["type"] == "file":
        return "\n".join(map(text.escape, line.split("\n")))
    return None if line is None else text.escape(line)


def batch_pattern(batch: Object) -> str:
    """Return the line of a batch of magic 2 with names between `MARK` in the place of numbers."""
    varies = [name for name in _OF_BATCHES if batch[name] is not None or name in _OR_MINUS]
    return _batch({**batch, **{name: _marked(name) for name in varies}})


def record_pattern(record: Object, *, contents: bool, decoded: bool = False) -> str:
    """Return that of a record of magic 2; what closes a list of headers belongs to it.

    The contents of a `decoded` record are one value.
    """
    named = {name: _marked(name) for name in _OF_RECORDS}
    line = _metadata({**record, **named}, *map(_marked, ("key_size", "value_size", "headers")))
    line = line.removesuffix("]")
    if contents and decoded:
        return line + _marked("contents")
    return f"{line} key: {_marked('key')} payload: {_marked('value')}" if contents else line


def _marked(name: str) -> str:
    return f"{MARK}{name}{MARK}"


def _file(obj: Object) -> str | None:
    lines = [f"Dumping {obj['path']}"]
    kind, size = obj["kind"], obj["size"]
    if kind == "log":
        lines.append(f"Log starting offset: {obj['base_offset'] or 0}")
    elif kind == "kraft-snapshot":
        lines.append(f"Snapshot end offset: {obj['base_offset']}, epoch: {obj['epoch']}")
    elif kind == "bootstrap-checkpoint":
        lines.append("KRaft bootstrap snapshot")
    elif kind == "offset-index" and size < 8:
        lines.append(f"{obj['path']} is empty.")
    elif kind == "offset-index" and obj["entries"] == 0:
        # Kafka's tool takes the first slot of the padding for an entry.
        lines.append(f"offset: {obj['base_offset'] or 0} position: 0")
    elif kind == "time-index" and obj["entries"] == 0 and size >= 12:
        lines.append(f"timestamp: 0 offset: {obj['base_offset'] or 0}")
    elif kind not in ("offset-index", "time-index", "transaction-index", "producer-snapshot"):
        return None
    return "\n".join(lines)


def _batch(obj: Object) -> str:
    horizon = obj["delete_horizon_ms"]
    return (
        f"baseOffset: {obj['base_offset']} lastOffset: {obj['last_offset']}"
        f" count: {obj['record_count']} baseSequence: {_or_minus(obj['base_sequence'])}"
        f" lastSequence: {_or_minus(obj['last_sequence'])}"
        f" producerId: {_or_minus(obj['producer_id'])}"
        f" producerEpoch: {_or_minus(obj['producer_epoch'])}"
        f" partitionLeaderEpoch: {_or_minus(obj['leader_epoch'])}"
        f" isTransactional: {_bool(obj['transactional'])} isControl: {_bool(obj['control'])}"
        f" deleteHorizonMs: {_EMPTY if horizon is None else f'OptionalLong[{horizon}]'}"
        f" {_tail(obj)}"
    )


def _legacy_batch(obj: Object) -> str:
    return f"offset: {obj['last_offset']} {_tail(obj)}"


def _tail(obj: Object) -> str:
    return (
        f"position: {obj['position']}"
        f" {_time_type(obj)}: {_or_minus(obj['max_timestamp_ms'])} size: {obj['size']}"
        f" magic: {obj['magic']} compresscodec: {obj['codec']} crc: {obj['crc']}"
        f" isvalid: {_bool(obj['crc_valid'])}"
    )


def _record(obj: Object, *, metadata: bool, contents: bool) -> str:
    control = obj["control_record"] is not None
    content = _contents(obj) if contents and not control else ""
    if not metadata:
        return f"|{content}" if content else ""
    names = ",".join(_text(name) for name, _ in obj["headers"])
    head = _metadata(obj, _size(obj["key"]), _size(obj["value"]), names)
    return head + (_control(obj["control_record"]) if control else content)


def _metadata(obj: Object, key_size: int | str, value_size: int | str, names: str) -> str:
    line = (
        f"| offset: {obj['offset']} {_time_type(obj)}: {_or_minus(obj['timestamp_ms'])}"
        f" keySize: {key_size} valueSize: {value_size}"
    )
    if obj["crc"] is not None:
        line += f" isValid: true crc: {obj['crc']}"
    else:
        line += f" sequence: {_or_minus(obj['sequence'])} headerKeys: [{names}]"
    return line


def _contents(obj: Object) -> str:
    """Return the text after the metadata of a record: key and payload, plain or decoded."""
    if "decoded" in obj:
        return _decoded(obj)
    key, value = obj["key"], obj["value"]
    line = "" if key is None else f" key: {_text(key)}"
    return line if value is None else f"{line} payload: {_text(value)}"


def _decoded(obj: Object) -> str:
    """Return the decoded key and payload, or the error, of a record in one of brokers' topics."""
    offset, decoded = obj["offset"], obj["decoded"]
    if decoded.topic in FRAMED_TABLES:
        if decoded.value is None:
            reason = decoded.problem or "the type or version is not known"
            return f" payload: Error at {offset}, skipping. {reason}"
        shown = decoded.value
        if shown["name"] in _REMOTE:
            return f" payload: {_REMOTE[shown['name']](shown['data'])}"
        kind = _CAPITAL.sub("_", shown["name"]).upper()
        whole = {"type": kind, "version": shown["version"], "data": shown["data"]}
        return f" payload: {java_json(whole)}"
    if decoded.problem:
        return f" key: Error at offset {offset}, skipping. {decoded.problem}"
    if decoded.unknown_type is not None:
        kind = decoded.unknown_type
        return f" key: Unknown record type {kind} at offset {offset}, skipping."
    key = java_json({"type": str(decoded.key["type"]), "data": decoded.key["data"]})
    if decoded.value is None:
        return f" key: {key} payload: <DELETE>"
    data = decoded.value["data"]
    if "transactionStatus" in data:
        status = data["transactionStatus"]
        state = transaction_state(status)
        if state is None:
            return f" key: Error at offset {offset}, skipping. No transaction state {status}"
        data = {**data, "transactionStatus": state}
    value = {"version": str(decoded.value["version"]), "data": data}
    return f" key: {key} payload: {java_json(value)}"


def _remote_segment(data: Object) -> str:
    epochs = sorted((one["leaderEpoch"], one["offset"]) for one in data["segmentLeaderEpochs"])
    return (
        f"RemoteLogSegmentMetadata{{{_segment_id(data)}, startOffset={data['startOffset']},"
        f" endOffset={data['endOffset']}, brokerId={data['brokerId']},"
        f" maxTimestampMs={data['maxTimestampMs']}, eventTimestampMs={data['eventTimestampMs']},"
        f" segmentLeaderEpochs={{{', '.join(f'{epoch}={offset}' for epoch, offset in epochs)}}},"
        f" segmentSizeInBytes={data['segmentSizeInBytes']}, {_custom(data)},"
        f" state={_name(_SEGMENT_STATES, data['remoteLogSegmentState'])},"
        f" txnIdxEmpty={_bool(data.get('txnIndexEmpty', False))}}}"
    )


def _remote_update(data: Object) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{{_segment_id(data)}, {_custom(data)},"
        f" state={_name(_SEGMENT_STATES, data['remoteLogSegmentState'])},"
        f" eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    )


def _remote_delete(data: Object) -> str:
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_topic_id(data)},"
        f" state={_name(_DELETE_STATES, data['remotePartitionDeleteState'])},"
        f" eventTimestampMs={data['eventTimestampMs']}, brokerId={data['brokerId']}}}"
    )


def _segment_id(data: Object) -> str:
    of = data["remoteLogSegmentId"]
    return (
        f"remoteLogSegmentId=RemoteLogSegmentId{{topicIdPartition={_topic_id(of)}, id={of['id']}}}"
    )


def _topic_id(data: Object) -> str:
    of = data["topicIdPartition"]
    return f"{of['id']}:{of['name']}-{of['partition']}"


def _custom(data: Object) -> str:
    custom = data["customMetadata"]
    if custom is None:
        return "customMetadata=Optional.empty"
    return f"customMetadata=Optional[CustomMetadata{{{len(base64.b64decode(custom))} bytes}}]"


def _name(states: tuple[str, ...], state: int) -> str:
    return states[state] if 0 <= state < len(states) else str(state)


_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)  # fmt: skip
_DELETE_STATES = (
    "DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED",
)  # fmt: skip
_REMOTE: dict[str, Callable[[Object], str]] = {
    "RemoteLogSegmentMetadataRecord": _remote_segment,
    "RemoteLogSegmentMetadataUpdateRecord": _remote_update,
    "RemotePartitionDeleteMetadataRecord": _remote_delete,
}
"""For remote log metadata Kafka's tool prints the text of its classes, not JSON."""


def java_json(value: Any) -> str:
    """Return JSON as Jackson writes it: no spaces, escapes in capitals, numbers as in Java."""
    if isinstance(value, dict):
        return (
            "{"
            + ",".join(f"{java_json(name)}:{java_json(one)}" for name, one in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ",".join(map(java_json, value)) + "]"
    if isinstance(value, float):
        return _double(value)
    made = json.dumps(value, ensure_ascii=False)
    return _ESCAPE.sub(lambda found: found[0][:2] + found[0][2:].upper(), made)


def _double(value: float) -> str:
    """Return a number as ``Double.toString`` does: with an exponent from 1.0E7 on, below 0.001.

    Of the numbers closest to 0 Java prints a digit more, which no quota is.
    """
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' * sign}{figures[0]}.{figures[1:] or '0'}E{exponent + len(digits) - 1}"


def _control(control: dict[str, Any]) -> str:
    kind, data = control["type"], control["data"]
    if kind in control_record.END_TRANSACTION:
        return f" endTxnMarker: {control['name']} coordinatorEpoch: {data['coordinatorEpoch']}"
    if kind in _WORDS:
        return f" {_WORDS[kind]}{java_json(data)}"
    return f" controlType: {control['name'].partition('(')[0]}({kind})"


def _entry(obj: Object) -> str | None:
    kind = obj["kind"]
    if kind == "offset-index":
        return f"offset: {obj['offset']} position: {obj['log_position']}"
    if kind == "time-index":
        return f"timestamp: {obj['timestamp_ms']} offset: {obj['offset']}"
    if kind == "transaction-index":
        return (
            f"version: {obj['version']} producerId: {obj['producer_id']}"
            f" firstOffset: {obj['first_offset']} lastOffset: {obj['last_offset']}"
            f" lastStableOffset: {obj['last_stable_offset']}"
        )
    return _producer(obj) if kind == "producer-snapshot" else None


def _producer(obj: Object) -> str:
    first = obj["current_txn_first_offset"]
    line = (
        f"producerId: {obj['producer_id']} producerEpoch: {obj['producer_epoch']}"
        f" coordinatorEpoch: {obj['coordinator_epoch']}"
        f" currentTxnFirstOffset: {_EMPTY if first is None else f'OptionalLong[{first}]'}"
        f" lastTimestamp: {obj['timestamp_ms']}"
    )
    if obj["last_offset"] is None:
        return line
    return (
        f"{line} firstSequence: {obj['first_sequence']} lastSequence: {obj['last_sequence']}"
        f" lastOffset: {obj['last_offset']} offsetDelta: {obj['offset_delta']}"
        f" timestamp: {obj['timestamp_ms']}"
    )


def _time_type(obj: Object) -> str:
    return obj["timestamp_type"] or "NoTimestampType"


def _text(data: bytes) -> str:
    """Decode as Java does: a surrogate is one replacement character there, three in Python."""
    return _SURROGATE.sub(_REPLACEMENT, data).decode("utf-8", "replace")


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _or_minus(value: int | None) -> int:
    return -1 if value is None else value


def _bool(value: bool) -> str:
    return "true" if value else "false"
