"""Records of brokers' own topics with other names in them, of the same size.

Every text in a record is a name unless it is known to be none: a newer release has fields that no
table knows, and so a record that does not decode loses all but its type.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from logtool.case.renaming import (
    CLIENT,
    GROUP,
    HOST,
    OTHER,
    RACK,
    TRANSACTION,
    USER,
    Renaming,
)
from logtool.errors import FormatError
from logtool.formats import control_record
from logtool.formats.messages import codec, internal_topics, schema
from logtool.formats.messages.codec import UNKNOWN_TAGS, Value
from logtool.formats.messages.schema import Field, MessageSchema
from logtool.formats.messages.settings import is_sensitive
from logtool.formats.names import CLUSTER_METADATA

Replace = Callable[[str, str, Value], str]
"""Returns the text for a field, of a name and a text, in a structure."""
_STAR = b"*"
_SHORT = 2
"""Bytes of a type or a version in front of a message."""
_TOPIC_TYPE, _GROUP_TYPE, _CLIENT_METRICS_TYPE, _GROUP_SETTINGS_TYPE = 2, 3, 16, 32
_ACL_TYPES = {_GROUP_TYPE: GROUP, 5: TRANSACTION, 7: USER}
"""``ResourceType``, for which a topic is 2, too."""
_SETTING_TYPES = {_CLIENT_METRICS_TYPE: OTHER, _GROUP_SETTINGS_TYPE: GROUP}
"""``ConfigResource.Type``."""
_QUOTA_TYPES = {"user": USER, "client-id": CLIENT, "ip": HOST}
_KEPT_LISTENERS = frozenset(
    {
        "BROKER", "CLIENT", "CONTROLLER", "EXTERNAL", "INTERNAL", "PLAINTEXT", "REPLICATION",
        "SASL_PLAINTEXT", "SASL_SSL", "SSL",
    }
)  # fmt: skip
_HARMLESS = re.compile(
    r"-?\d+(?:\.\d+)?(?:E-?\d+)?|true|false|\*|\d+:\d+(?:,\d+:\d+)*|\d\.\d+(?:-IV\d+)?"
    r"|(?:compact|delete)(?:,(?:compact|delete))*|CreateTime|LogAppendTime"
    r"|none|producer|uncompressed|gzip|snappy|lz4|zstd"
)
"""Values of settings that cannot be a name."""


def metadata(renaming: Renaming, value: bytes) -> bytes:
    """Return a record of the metadata log with other names; RefusedError as `Renaming.name`."""
    try:
        kind, version, at = internal_topics.parse_frame(value)
    except FormatError:
        renaming.starred += 1
        return _STAR * len(value)
    message = internal_topics.framed_message(CLUSTER_METADATA, kind)
    return value[:at] + _renamed(renaming, message, version, value[at:])


def control(renaming: Renaming, key: bytes, value: bytes) -> bytes:
    """Return the value of a control record with other hosts of voters."""
    try:
        kind = control_record.parse(key, value).type
    except FormatError:
        return value
    if kind != control_record.KRAFT_VOTERS:
        return value
    message = schema.table("control_records").named("VotersRecord")
    return _renamed(renaming, message, int.from_bytes(value[:_SHORT], "big", signed=True), value)


def state(renaming: Renaming, key: bytes, value: bytes | None) -> tuple[bytes, bytes | None]:
    """Return a record of ``__transaction_state`` with other transactional ids and topics."""
    table = schema.table(internal_topics.COORDINATOR_TABLES["__transaction_state"])
    kind = int.from_bytes(key[:_SHORT], "big", signed=True)
    new_key = _renamed(renaming, table.find("key", kind), 0, key[_SHORT:])
    if value is not None:
        version = int.from_bytes(value[:_SHORT], "big", signed=True)
        message = table.find("value", kind)
        value = value[:_SHORT] + _renamed(renaming, message, version, value[_SHORT:])
    return key[:_SHORT] + new_key, value


def _renamed(renaming: Renaming, message: MessageSchema | None, version: int, data: bytes) -> bytes:
    """Return a message with other names; stars if it does not decode, which is counted."""
    if message is not None and version in message.versions:
        with suppress(FormatError):
            found = codec.decode(message, version, data)
            put = partial(_REPLACED.get(message.name, _any), renaming)
            new = codec.encode(message, version, _struct(message.fields, found, put))
            if len(new) == len(data):
                return new
    renaming.starred += 1
    return _STAR * len(data)


def _struct(fields: tuple[Field, ...], value: Value, replace: Replace) -> Value:
    new = dict(value)
    for one in fields:
        if one.type not in ("string", "bytes", "struct") or new.get(one.name) is None:
            continue
        found = new[one.name]
        each = [_field(one, part, value, replace) for part in (found if one.is_array else [found])]
        new[one.name] = each if one.is_array else each[0]
    for tag, data in new.get(UNKNOWN_TAGS, {}).items():
        new[UNKNOWN_TAGS] = new[UNKNOWN_TAGS] | {tag: _STAR * len(data)}
    return new


def _field(one: Field, found: object, above: Value, replace: Replace) -> object:
    if isinstance(found, str):
        return replace(one.name, found, above)
    if isinstance(found, bytes):
        return _STAR * len(found)
    return _struct(one.fields, found, replace) if isinstance(found, dict) else found


def _any(renaming: Renaming, name: str, text: str, above: Value) -> str:
    """Return the replacement of a text by the name of its field."""
    if name == "host":
        return _host(renaming, text)
    if name == "rack":
        return renaming.name(RACK, text)
    if name == "transactionalId":
        return renaming.name(TRANSACTION, text)
    if name in ("topic", "topicName"):
        return renaming.topic(text)
    if name == "name" and "port" in above:  # of an endpoint
        return text if text in _KEPT_LISTENERS else renaming.name(OTHER, text)
    if name == "name" and ("maxSupportedVersion" in above or "featureLevel" in above):
        return text
    return renaming.name(OTHER, text)


def _topic_record(renaming: Renaming, name: str, text: str, above: Value) -> str:
    return renaming.topic(text)


def _config(renaming: Renaming, name: str, text: str, above: Value) -> str:
    if name == "name":
        return renaming.name(OTHER, text) if is_sensitive(text) else text
    if name == "value":
        is_plain = _HARMLESS.fullmatch(text) or is_sensitive(above["name"])
        return text if is_plain else renaming.name(OTHER, text)
    return _resource(renaming, text, above, _SETTING_TYPES)


def _resource(renaming: Renaming, text: str, above: Value, kinds: dict[int, str]) -> str:
    kind = above["resourceType"]
    if kind == _TOPIC_TYPE:
        return renaming.topic(text) if text != "*" else text
    if kind not in kinds and (text.isdigit() or text == "kafka-cluster"):
        return text
    return text if text == "*" else renaming.name(kinds.get(kind, OTHER), text)


def _acl(renaming: Renaming, name: str, text: str, above: Value) -> str:
    if name == "host":
        return _host(renaming, text)
    if name == "principal":
        return _principal(renaming, name, text, above)
    return _resource(renaming, text, above, _ACL_TYPES)


def _quota(renaming: Renaming, name: str, text: str, above: Value) -> str:
    if name != "entityName":
        return text if name == "key" or text in _QUOTA_TYPES else renaming.name(OTHER, text)
    return renaming.name(_QUOTA_TYPES.get(above["entityType"], OTHER), text)


def _user(renaming: Renaming, name: str, text: str, above: Value) -> str:
    return renaming.name(USER, text)


def _principal(renaming: Renaming, name: str, text: str, above: Value) -> str:
    if name == "tokenId":
        return text  # stars
    kind, colon, user = text.partition(":")
    return (
        f"{kind}:{user if user == '*' else renaming.name(USER, user)}"
        if colon
        else (renaming.name(USER, text))
    )


def _host(renaming: Renaming, text: str) -> str:
    return text if text == "*" else renaming.name(HOST, text)


_REPLACED: dict[str, Callable[[Renaming, str, str, Value], str]] = {
    "TopicRecord": _topic_record,
    "ConfigRecord": _config,
    "AccessControlEntryRecord": _acl,
    "ClientQuotaRecord": _quota,
    "UserScramCredentialRecord": _user,
    "RemoveUserScramCredentialRecord": _user,
    "DelegationTokenRecord": _principal,
    "RemoveDelegationTokenRecord": _principal,
}
"""Functions for messages whose texts are of more than one kind."""
