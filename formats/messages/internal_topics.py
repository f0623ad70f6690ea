"""Records of the topics that brokers keep for themselves.

Group, transaction and share coordinator: the key is an int16 type and a message of version 0, the
value an int16 version and a message of that type; a null value is a tombstone. Metadata log and
remote log metadata: there is no key, and the value is a frame of three unsigned varints (frame
version 1, type, version) and the message. In the metadata log of AutoMQ there are records of types
500 and above, too. Source: ``CoordinatorRecordSerde``, ``AbstractApiMessageSerde``,
``BytesApiMessageSerde`` (Kafka 3.9 and 4.3), ``common/metadata`` (AutoMQ f1ce98ec8981, 2026-08-21).
"""

import struct

from logtool.errors import FormatError
from logtool.formats.messages import codec, schema
from logtool.formats.messages.codec import Value
from logtool.formats.messages.schema import MessageSchema
from logtool.formats.names import CLUSTER_METADATA
from logtool.lazy_dataclass import dataclass

COORDINATOR_TABLES = {
    "__consumer_offsets": "consumer_offsets",
    "__transaction_state": "transaction_state",
    "__share_group_state": "share_group_state",
}
FRAMED_TABLES = {
    CLUSTER_METADATA: "cluster_metadata",
    "__remote_log_metadata": "remote_log_metadata",
}
TABLES = COORDINATOR_TABLES | FRAMED_TABLES
"""The table of fields of each topic."""
TRANSACTION_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
"""By the number in ``transactionStatus``: ``TransactionState.stateName``."""
AUTOMQ_TABLE = "automq_metadata"
"""The table of the records that AutoMQ adds to the metadata log."""
FIRST_AUTOMQ_TYPE = 500
FRAME_VERSION = 1
_SHORT = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A key or a value, taken apart."""

    type: int
    version: int
    message: MessageSchema | None
    """None where the type is unknown."""
    data: Value | None
    """None where the type or its version is unknown: of a newer or an early-access release."""


def transaction_state(status: int) -> str | None:
    """Return Kafka's name of a ``transactionStatus``; None if no release knows the number."""
    return TRANSACTION_STATES[status] if 0 <= status < len(TRANSACTION_STATES) else None


def decode_key(topic: str, key: bytes | None) -> Decoded:
    """Decode a key of a coordinator's topic; FormatError where a broker could not read it."""
    if key is None or len(key) < _SHORT.size:
        raise FormatError(f"the key is {'null' if key is None else f'{len(key)} bytes'}")
    (kind,) = _SHORT.unpack_from(key)
    message = schema.table(COORDINATOR_TABLES[topic]).find("key", kind)
    return _decoded(kind, 0, message, key, _SHORT.size)


def decode_value(topic: str, kind: int, value: bytes) -> Decoded:
    """Decode a value of a coordinator's topic by the type in its key; FormatError as above."""
    if len(value) < _SHORT.size:
        raise FormatError(f"the value is {len(value)} bytes")
    (version,) = _SHORT.unpack_from(value)
    message = schema.table(COORDINATOR_TABLES[topic]).find("value", kind)
    return _decoded(kind, version, message, value, _SHORT.size)


def parse_frame(value: bytes) -> tuple[int, int, int]:
    """Return type, version and where the message begins; FormatError as above."""
    numbers, at = [], 0
    try:
        for _ in range(3):
            number, at = codec.varint(value, at)
            numbers.append(number)
    except IndexError:
        raise FormatError("the value ends inside its frame", len(value)) from None
    frame_version, kind, version = numbers
    if frame_version != FRAME_VERSION:
        raise FormatError(f"frame version is {frame_version}, but only {FRAME_VERSION} exists")
    return kind, version, at


def framed_message(topic: str, kind: int) -> MessageSchema | None:
    """Return the message of a type in the metadata log or remote log metadata, None if unknown."""
    is_automq = topic == CLUSTER_METADATA and kind >= FIRST_AUTOMQ_TYPE
    return schema.table(AUTOMQ_TABLE if is_automq else FRAMED_TABLES[topic]).find("value", kind)


def decode_framed(topic: str, value: bytes) -> Decoded:
    """Decode a value of the metadata log or of remote log metadata; FormatError as above."""
    kind, version, at = parse_frame(value)
    message = framed_message(topic, kind)
    return _decoded(kind, version, message, value, at)


def _decoded(
    kind: int, version: int, message: MessageSchema | None, data: bytes, at: int
) -> Decoded:
    if message is None or version not in message.versions:
        return Decoded(kind, version, message, None)
    try:
        value = codec.decode(message, version, data[at:])
    except FormatError as error:
        raise FormatError(error.reason, error.position + at) from None
    return Decoded(kind, version, message, value)
