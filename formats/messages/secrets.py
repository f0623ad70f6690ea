"""Secrets in metadata records, such as passwords and SCRAM keys, shown only on request.

Source: ``RecordRedactor`` (Kafka 4.3). `settings` knows the settings that are no secret. AutoMQ has
no such list: the value of ``__automq_node/<id>`` holds the URI of the node's object store with the
access key and the secret key (``NodeControlManager``; AutoMQ f1ce98ec8981).
"""

from collections.abc import Callable
from typing import Any

from logtool.formats.messages.codec import Value
from logtool.formats.messages.settings import is_sensitive

REDACTED = "(redacted)"
FIELDS: dict[str, tuple[str, ...]] = {
    "UserScramCredentialRecord": ("salt", "storedKey", "serverKey"),
    "DelegationTokenRecord": ("tokenId",),
    "RemoveDelegationTokenRecord": ("tokenId",),
}
"""Fields that are secret, by message."""
_CONFIG, _KEY_VALUES = "ConfigRecord", "KVRecord"
_PLAIN_KEYS = ("_kafka_", "__automq_topic_deletion/")
"""Beginnings of the keys of AutoMQ whose values are no secret; others are of plugins, too."""


def may_hold(name: str) -> bool:
    """Return whether a message with this name may hold a secret."""
    return name in FIELDS or name in (_CONFIG, _KEY_VALUES)


def hide(name: str, data: Value, mask: Callable[[Any], Any]) -> Value:
    """Return the fields of a message with the mask of each secret in its place."""
    if name == _KEY_VALUES:
        pairs = [
            one if one["key"].startswith(_PLAIN_KEYS) else one | {"value": mask(one["value"])}
            for one in data["keyValues"]
        ]
        return data | {"keyValues": pairs}
    hidden = FIELDS.get(name, ())
    if name == _CONFIG and is_sensitive(data["name"]):
        hidden = ("value",)
    return data | {field: mask(data[field]) for field in hidden if data[field] is not None}
