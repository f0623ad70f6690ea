"""Content of an image, as entities with a name and a state that can be compared.

Secrets are left out unless they are asked for. Source of the names for numbers:
``ResourceType``, ``PatternType``, ``AclOperation``, ``AclPermissionType``, ``ConfigResource.Type``,
``SecurityProtocol``, ``ScramMechanism`` (Kafka 4.3).
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any, NamedTuple

from logtool.formats.messages import secrets
from logtool.formats.messages.cluster_metadata import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
    OtherRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from logtool.formats.messages.codec import Value
from logtool.formats.messages.settings import is_sensitive
from logtool.lazy_dataclass import dataclass
from logtool.metadata import releases
from logtool.metadata.other_records import entity_of
from logtool.metadata.releases import METADATA_VERSION
from logtool.metadata.state import MetadataImage
from logtool.metadata.streams import ObjectState
from logtool.times import rfc3339

_RESOURCES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
_ACL_RESOURCES = {
    2: "topic", 3: "group", 4: "cluster", 5: "transactional-id", 6: "delegation-token", 7: "user",
}  # fmt: skip
_PATTERNS = {3: "literal", 4: "prefixed"}
_OPERATIONS = {
    2: "all", 3: "read", 4: "write", 5: "create", 6: "delete", 7: "alter", 8: "describe",
    9: "cluster-action", 10: "describe-configs", 11: "alter-configs", 12: "idempotent-write",
    13: "create-tokens", 14: "describe-tokens", 15: "two-phase-commit",
}  # fmt: skip
_PERMISSIONS = {2: "deny", 3: "allow"}
_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_REGISTER_BROKER, _UNREGISTER_BROKER, _FENCE, _UNFENCE, _CHANGE_BROKER = 0, 1, 7, 8, 17
_SCRAM_SECRETS = {"salt": "salt", "stored_key": "storedKey", "server_key": "serverKey"}
_OBJECT_STATES = {state.value: state.name.lower().replace("_", "-") for state in ObjectState}
_DEFAULT = "(default)"


class Key(NamedTuple):
    """Key of an entity."""

    kind: str
    """One of `KINDS`."""
    key: Any
    """Identifier among the entities of the kind; it may be a secret."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity of an image, with its state as in JSON."""

    kind: str
    name: str
    state: dict[str, Any]
    topic: str | None = None
    topic_id: str | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class EntityChange:
    """One changed field of an entity; None for a value that does not exist."""

    field: str
    before: Any
    after: Any


def changes(before: Entity | None, after: Entity | None) -> list[EntityChange]:
    """Return the fields that differ, in the order of the state."""
    old, new = (one.state if one else {} for one in (before, after))
    names = dict.fromkeys((*new, *old))
    return [
        EntityChange(name, old.get(name), new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    ]


@dataclass(frozen=True, slots=True)
class EntityView:
    """View of the entities of an image; with `show_secrets` nothing is left out."""

    show_secrets: bool = False
    topic_names: dict[str, str] = field(default_factory=dict)
    """Names of topics that an image may no longer have, by id."""

    def all(self, image: MetadataImage) -> Iterator[tuple[Key, Entity]]:
        """Yield all entities of an image, kind by kind, each in the order of names."""
        for kind, (keys, _) in KINDS.items():
            for key in keys(image):
                found = self.find(image, Key(kind, key))
                if found:
                    yield Key(kind, key), found

    def find(self, image: MetadataImage, key: Key) -> Entity | None:
        """Return one entity; None if the image does not have it."""
        return KINDS[key.kind][1](self, image, key.key)

    def name_of(self, image: MetadataImage, topic_id: str) -> str | None:
        """Return the name of a topic, also of a deleted one."""
        return image.names.get(topic_id) or self.topic_names.get(topic_id)

    def topic(self, image: MetadataImage, topic_id: str) -> Entity | None:
        """Return a topic by its id."""
        name = image.names.get(topic_id)
        if name is None:
            return None
        state = {"topic_id": topic_id, "partitions": len(image.partitions.get(topic_id, ()))}
        return Entity("topic", name, state, name, topic_id)

    def partition(self, image: MetadataImage, key: tuple[str, int]) -> Entity | None:
        """Return a partition by the id of its topic and its number."""
        topic_id, number = key
        known = image.partition(topic_id, number)
        if known is None:
            return None
        state = {
            "leader": known.leader,
            "leader_epoch": known.leader_epoch,
            "partition_epoch": known.partition_epoch,
            "replicas": list(known.replicas),
            "isr": list(known.isr),
            "elr": list(known.elr),
            "last_known_elr": list(known.last_known_elr),
            "adding_replicas": list(known.adding),
            "removing_replicas": list(known.removing),
            "directories": list(known.directories),
            "recovering": bool(known.recovery_state),
        }
        topic = self.name_of(image, topic_id)
        return Entity("partition", f"{topic or topic_id}-{number}", state, topic, topic_id, number)

    def config(self, image: MetadataImage, key: tuple[int, str]) -> Entity | None:
        """Return the settings of a resource by its type and name."""
        kind, name = key
        own = {TOPIC_RESOURCE: image.topic_configs, BROKER_RESOURCE: image.broker_configs}.get(kind)
        settings = image.other_configs.get(key) if own is None else own.get(name)
        if not settings:
            return None
        shown = {
            setting: secrets.REDACTED if self._hides(setting) else value
            for setting, value in sorted(settings.items())
        }
        topic = name if kind == TOPIC_RESOURCE else None
        title = f"{_RESOURCES.get(kind, f'resource {kind}')} {name or _DEFAULT}"
        return Entity("config", title, shown, topic, image.topics.get(topic) if topic else None)

    def _hides(self, setting: str) -> bool:
        return not self.show_secrets and is_sensitive(setting)

    def feature(self, image: MetadataImage, name: str) -> Entity | None:
        """Return a feature by its name."""
        level = image.features.get(name)
        if level is None:
            return None
        state: dict[str, Any] = {"level": level}
        if name == METADATA_VERSION:
            state["release"] = releases.feature_name(level)
        return Entity("feature", name, state)

    def broker(self, image: MetadataImage, node: int) -> Entity | None:
        """Return the registration of a broker."""
        data = image.brokers.get(node)
        if data is None:
            return None
        state = {
            "fenced": data["fenced"],
            "in_controlled_shutdown": data["inControlledShutdown"],
            "broker_epoch": data["brokerEpoch"],
            "incarnation_id": data["incarnationId"],
            "rack": data["rack"],
            "log_dirs": list(data["logDirs"]),
            "cordoned_log_dirs": list(data["cordonedLogDirs"]),
            **_node(data),
        }
        return Entity("broker", str(node), state)

    def controller(self, image: MetadataImage, node: int) -> Entity | None:
        """Return the registration of a controller."""
        data = image.controllers.get(node)
        if data is None:
            return None
        state = {"incarnation_id": data["incarnationId"], **_node(data)}
        return Entity("controller", str(node), state)

    def quorum(self, image: MetadataImage, _: None) -> Entity | None:
        """Return the voters; None with a static quorum, which is not in the log."""
        if image.voters is None and not image.kraft_version:
            return None
        voters = [
            f"{one['voterId']}-{one['voterDirectoryId']}@"
            + ",".join(f"{at['host']}:{at['port']}" for at in one["endpoints"])
            for one in image.voters or ()
        ]
        state = {"kraft_version": image.kraft_version, "voters": voters}
        return Entity("quorum", "quorum", state)

    def quota(self, image: MetadataImage, key: Any) -> Entity | None:
        """Return the quotas of an entity."""
        settings = image.quotas.get(key)
        if not settings:
            return None
        name = ", ".join(f"{kind} {_DEFAULT if one is None else one}" for kind, one in key)
        return Entity("quota", name, dict(sorted(settings.items())))

    def acl(self, image: MetadataImage, acl_id: str) -> Entity | None:
        """Return an ACL by its id."""
        data = image.acls.get(acl_id)
        if data is None:
            return None
        state = {
            "principal": data["principal"],
            "host": data["host"],
            "operation": _named(_OPERATIONS, data["operation"]),
            "permission": _named(_PERMISSIONS, data["permissionType"]),
            "resource_type": _named(_ACL_RESOURCES, data["resourceType"]),
            "resource_name": data["resourceName"],
            "pattern": _named(_PATTERNS, data["patternType"]),
        }
        return Entity("acl", acl_id, state)

    def scram(self, image: MetadataImage, key: tuple[str, int]) -> Entity | None:
        """Return a SCRAM credential of a user."""
        data = image.scram_users.get(key)
        if data is None:
            return None
        state = {"mechanism": _named(_MECHANISMS, key[1]), "iterations": data["iterations"]}
        for name, shown in (
            ("salt", "salt"),
            ("storedKey", "stored_key"),
            ("serverKey", "server_key"),
        ):
            state[shown] = data[name].hex() if self.show_secrets else secrets.REDACTED
        return Entity("scram-credential", key[0], state)

    def token(self, image: MetadataImage, token_id: str) -> Entity | None:
        """Return a delegation token by its id."""
        data = image.tokens.get(token_id)
        if data is None:
            return None
        state = {
            "owner": data["owner"],
            "requester": data["requester"],
            "renewers": data["renewers"],
            "issued": rfc3339(data["issueTimestamp"]),
            "expires": rfc3339(data["expirationTimestamp"]),
            "expires_at_most": rfc3339(data["maxTimestamp"]),
        }
        name = token_id if self.show_secrets else secrets.REDACTED
        return Entity("delegation-token", name, state)

    def producer_ids(self, image: MetadataImage, _: None) -> Entity | None:
        """Return the first free producer id."""
        if image.next_producer_id is None:
            return None
        return Entity("producer-ids", "producer-ids", {"next_producer_id": image.next_producer_id})

    def zk_migration(self, image: MetadataImage, _: None) -> Entity | None:
        """Return the state of the migration from ZooKeeper."""
        if image.zk_migration_state is None:
            return None
        return Entity("zk-migration", "zk-migration", {"state": image.zk_migration_state})

    def wal(self, image: MetadataImage, node_id: int) -> Entity | None:
        """Return the WAL of a node of AutoMQ."""
        found = image.streams.wals.get(node_id)
        if found is None:
            return None
        return Entity("wal", str(node_id), {"epoch": found.epoch, "failover": found.failover})

    def stream(self, image: MetadataImage, stream_id: int) -> Entity | None:
        """Return a stream of AutoMQ by its id."""
        streams = image.streams
        found = streams.streams.get(stream_id)
        if found is None:
            return None
        topic_id, number = found.topic_id, found.partition
        state = {
            "start_offset": found.start_offset,
            "end_offset": streams.end_offsets.get(stream_id, found.start_offset),
            "epoch": found.epoch,
            "open": found.is_open,
            "meta": streams.meta_streams.get((topic_id or "", number or 0)) == stream_id,
            "objects": sorted(streams.stream_objects.get(stream_id, ())),
        }
        topic = self.name_of(image, topic_id) if topic_id else None
        return Entity("stream", str(stream_id), state, topic, topic_id, number)

    def object(self, image: MetadataImage, object_id: int) -> Entity | None:
        """Return an object of AutoMQ by its id."""
        found = image.streams.objects.get(object_id)
        of_node = image.streams.set_objects.get(object_id)
        if found is None:
            return None
        state = {
            "state": _OBJECT_STATES.get(found.state, str(found.state)),
            "size": found.size,
            "composite": found.is_composite,
            "node": of_node.node_id if of_node else None,
            "order": of_node.order_id if of_node else None,
        }
        return Entity("object", str(object_id), state)


def _named(names: dict[int, str], number: int) -> str:
    return names.get(number, str(number))


def _node(data: Value) -> dict[str, Any]:
    features = {
        one["name"]: [one["minSupportedVersion"], one["maxSupportedVersion"]]
        for one in data["features"]
    }
    newest = features.get(METADATA_VERSION, [None, None])[1]
    endpoints = [
        f"{one['name']}://{one['host']}:{one['port']} "
        f"({_named(_PROTOCOLS, one['securityProtocol'])})"
        for one in data["endPoints"]
    ]
    return {
        "endpoints": endpoints,
        "newest_metadata_version": None if newest is None else releases.feature_name(newest),
        "features": features,
    }


def _configured(image: MetadataImage) -> list[tuple[int, str]]:
    return [
        *((TOPIC_RESOURCE, name) for name in sorted(image.topic_configs)),
        *((BROKER_RESOURCE, name) for name in sorted(image.broker_configs)),
        *sorted(image.other_configs),
    ]


def _by_name(image: MetadataImage) -> list[str]:
    return sorted(image.names, key=lambda topic_id: (image.names[topic_id], topic_id))


def _partitions(image: MetadataImage) -> Iterator[tuple[str, int]]:
    nameless = sorted(set(image.partitions) - set(image.names))
    for topic_id in (*_by_name(image), *nameless):
        for number in sorted(image.partitions.get(topic_id, ())):
            yield topic_id, number


def _one(_: MetadataImage) -> tuple[None]:
    return (None,)


KINDS: dict[
    str,
    tuple[
        Callable[[MetadataImage], Any], Callable[[EntityView, MetadataImage, Any], Entity | None]
    ],
] = {
    "quorum": (_one, EntityView.quorum),
    "feature": (lambda image: sorted(image.features), EntityView.feature),
    "controller": (lambda image: sorted(image.controllers), EntityView.controller),
    "broker": (lambda image: sorted(image.brokers), EntityView.broker),
    "topic": (_by_name, EntityView.topic),
    "partition": (_partitions, EntityView.partition),
    "config": (_configured, EntityView.config),
    "quota": (lambda image: sorted(image.quotas, key=str), EntityView.quota),
    "acl": (lambda image: sorted(image.acls), EntityView.acl),
    "scram-credential": (lambda image: sorted(image.scram_users), EntityView.scram),
    "delegation-token": (lambda image: sorted(image.tokens), EntityView.token),
    "producer-ids": (_one, EntityView.producer_ids),
    "zk-migration": (_one, EntityView.zk_migration),
    "wal": (lambda image: sorted(image.streams.wals), EntityView.wal),
    "stream": (lambda image: sorted(image.streams.streams), EntityView.stream),
    "object": (lambda image: sorted(image.streams.objects), EntityView.object),
}
"""Each kind in the order of the view: the functions for its keys and for one entity."""


def of_record(content: Record) -> Key | None:
    """Return the key of the entity of a record; None if it has no entity, or many."""
    match content:
        case TopicRecord(_, topic_id) | RemoveTopicRecord(topic_id):
            return Key("topic", topic_id)
        case PartitionRecord() | PartitionChangeRecord():
            return Key("partition", (content.topic_id, content.partition_id))
        case ConfigRecord():
            return Key("config", (content.resource_type, content.resource_name))
        case OtherRecord() if content.data is not None and content.type in _KEYS:
            kind, key = _KEYS[content.type]
            return Key(kind, key(content.data))
    return None


_KEYS: dict[int, tuple[str, Callable[[Value], Any]]] = {
    _REGISTER_BROKER: ("broker", lambda data: data["brokerId"]),
    _UNREGISTER_BROKER: ("broker", lambda data: data["brokerId"]),
    _FENCE: ("broker", lambda data: data["id"]),
    _UNFENCE: ("broker", lambda data: data["id"]),
    _CHANGE_BROKER: ("broker", lambda data: data["brokerId"]),
    10: ("delegation-token", lambda data: data["tokenId"]),
    11: ("scram-credential", lambda data: (data["name"], data["mechanism"])),
    12: ("feature", lambda data: data["name"]),
    14: ("quota", entity_of),
    15: ("producer-ids", lambda _: None),
    18: ("acl", lambda data: data["id"]),
    19: ("acl", lambda data: data["id"]),
    21: ("zk-migration", lambda _: None),
    22: ("scram-credential", lambda data: (data["name"], data["mechanism"])),
    26: ("delegation-token", lambda data: data["tokenId"]),
    27: ("controller", lambda data: data["controllerId"]),
    29: ("controller", lambda data: data["controllerId"]),
    **dict.fromkeys((501, 502, 503, 504, 505, 506), ("stream", lambda data: data["streamId"])),
    **dict.fromkeys((507, 508, 509, 510), ("object", lambda data: data["objectId"])),
    **dict.fromkeys((513, 514), ("wal", lambda data: data["nodeId"])),
}
