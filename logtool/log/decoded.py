"""Keys and values of brokers' own topics as values for JSON, with what is secret left out.

Source: ``DumpLogSegments`` (its five decoders), ``RecordRedactor``, ``BrokerSecurityConfigs``
(Kafka 4.3); the fields are those of `logtool.formats.messages`.
"""

import base64
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from logtool.errors import FormatError
from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.messages.codec import Value
from logtool.formats.messages.internal_topics import FRAMED_TABLES, TABLES, Decoded
from logtool.formats.messages.secrets import REDACTED, hide, may_hold
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass
from logtool.log.record_table import RecordTable

_STAR = b"*"


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record of one of brokers' own topics, taken apart as far as it can be."""

    topic: str
    key: Value | None = None
    """``type``, ``name``, ``version`` and ``data``; None without a key or for an unknown one."""
    value: Value | None = None
    problem: str | None = None
    """Reason why a broker could not read it, or None."""
    unknown_type: int | None = None
    """Its type, if the type, the version or a part of it is not known: a newer release wrote it."""
    unknown_tags: int = 0
    """Tagged fields that no table knows: their bytes stand under ``unknownTaggedFields``."""


def has_decoder(topic: str | None) -> TypeGuard[str]:
    """Return whether the records of a topic can be decoded."""
    return topic in TABLES


def decode(
    topic: str, key: bytes | None, value: bytes | None, *, secrets: bool = False
) -> DecodedRecord:
    """Decode a record of a topic that has a decoder; `secrets` says whether to show them."""
    shown_key: Value | None = None
    kind: int | None = None
    try:
        if topic in FRAMED_TABLES:
            if value is None:
                return DecodedRecord(topic, problem="the value is null")
            found = internal_topics.decode_framed(topic, value)
            kind, shown = found.type, _shown(found, secrets=secrets)
        else:
            of_key = internal_topics.decode_key(topic, key)
            kind, shown_key = of_key.type, _shown(of_key, secrets=secrets)
            if value is None:
                return DecodedRecord(
                    topic, shown_key, unknown_type=kind if shown_key is None else None
                )
            found = internal_topics.decode_value(topic, kind, value)
            shown = _shown(found, secrets=secrets)
    except FormatError as error:
        if " after the end of " in error.reason and kind is not None:
            # Early-access releases laid some values out differently under the same version.
            return DecodedRecord(topic, shown_key, unknown_type=kind)
        return DecodedRecord(topic, shown_key, problem=f"byte {error.position}: {error.reason}")
    tags = _unknown_tags(shown)
    return DecodedRecord(
        topic, shown_key, shown, unknown_type=kind if shown is None else None, unknown_tags=tags
    )


def _unknown_tags(value: Any) -> int:
    """Return how many tagged fields in a decoded value are not known."""
    if isinstance(value, dict):
        own = len(value.get(codec.UNKNOWN_TAGS, ()))
        return own + sum(_unknown_tags(one) for one in value.values() if _is_nested(one))
    return sum(map(_unknown_tags, value)) if isinstance(value, list) else 0


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict | list)


def _shown(found: Decoded, *, secrets: bool) -> Value | None:
    if found.message is None or found.data is None:
        return None
    data = dict(found.data)
    if not secrets:
        data = hide(found.message.name, data, lambda _: REDACTED)
    if found.message.name == "GroupMetadataValue" and data["protocolType"] == "consumer":
        data["members"] = [_member(one) for one in data["members"]]
    head = {"type": found.type, "name": found.message.name, "version": found.version}
    return {**head, "data": plain(data)}


def without_secrets(value: bytes) -> bytes:
    """Return a record of the metadata log with stars in place of its secrets, byte for byte.

    If its version is not known, if it does not decode, or if Kafka would write it otherwise,
    everything but the frame is starred.
    """
    topic = CLUSTER_METADATA
    try:
        kind, version, at = internal_topics.parse_frame(value)
    except FormatError:
        return value
    message = internal_topics.framed_message(topic, kind)
    if message is None or not may_hold(message.name):
        return value
    hidden = value[:at] + _STAR * (len(value) - at)
    try:
        data = internal_topics.decode_framed(topic, value).data
    except FormatError:
        return hidden
    if data is None:
        return hidden
    masked = hide(message.name, data, _stars)
    if masked == data:
        return value
    shown = value[:at] + codec.encode(message, version, masked)
    return shown if len(shown) == len(value) else hidden


def _stars(secret: bytes | str) -> bytes | str:
    return _STAR * len(secret) if isinstance(secret, bytes) else "*" * len(secret.encode())


def _member(member: Value) -> Value:
    """Return a member of a classic group with what its clients wrote spelled out."""
    spelled = dict(member)
    for field, name in (
        ("subscription", "ConsumerProtocolSubscription"),
        ("assignment", "ConsumerProtocolAssignment"),
    ):
        data = member[field]
        message = schema.table("consumer_protocol").named(name)
        version = min(int.from_bytes(data[:2], "big", signed=True), message.versions.last)
        try:
            # Clients may write more than Kafka's own: what follows is left aside, as Kafka does.
            spelled[field] = codec.decode(message, version, data[2:], whole=False)
        except FormatError:
            continue  # the bytes stay
    return spelled


def plain(value: Any) -> Any:
    """Return a decoded value with bytes in base64, as Kafka's JSON has them."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def redact(records: RecordTable) -> RecordTable:
    """Return the same records with as many stars in place of each secret as it has bytes.

    `dump` prints the records of a metadata log this way.
    """
    of_control = records.of_batches(records.batches.is_control)
    at, size = records.spans.value_position, records.spans.value_length
    rows = np.flatnonzero(~of_control & (size > 0))
    data = bytearray(records.data)
    for start, stop in zip(at[rows].tolist(), (at + size)[rows].tolist(), strict=True):
        data[start:stop] = without_secrets(bytes(data[start:stop]))
    return replace(records, data=memoryview(data))
