"""Changes that the records make for which `cluster_metadata` has no class of its own.

Each function changes an image, and returns the reason if a broker's or controller's own classes
throw: see `logtool.metadata.replay`. Source: ``ClusterDelta``, ``ClusterControlManager``,
``FeaturesDelta``, ``ClientQuotasDelta``, ``AclsDelta``, ``ScramDelta``, ``DelegationTokenDelta``
(Kafka 3.9 to 4.4).
"""

from collections.abc import Callable
from dataclasses import replace

from logtool.formats.messages.codec import Value
from logtool.metadata import releases
from logtool.metadata.releases import METADATA_VERSION
from logtool.metadata.state import MetadataImage, QuotaEntity

_FENCING = {1: True, 0: None, -1: False}
"""``BrokerRegistrationFencingChange``"""
_SHUTDOWN = {1: True, 0: None}
"""``BrokerRegistrationInControlledShutdownChange``"""
_SECURITY_PROTOCOLS = range(4)
"""``SecurityProtocol``"""
_NO_PRODUCER_ID = -1
_LISTS = ("endPoints", "features")
KRAFT_VERSION_FEATURE = "kraft.version"


def _register_broker(image: MetadataImage, data: Value) -> None:
    there = {"inControlledShutdown": False, "logDirs": [], "cordonedLogDirs": []}
    changes = {name: value for name, value in data.items() if value is not None}
    image.brokers[data["brokerId"]] = {"rack": None, **there, **_ordered(changes)}


def _ordered(data: Value) -> Value:
    """Return a registration with endpoints and features sorted: their order has no meaning."""
    by_name = {name: {one["name"]: one for one in data[name]} for name in _LISTS}
    lists = {name: [ones[key] for key in sorted(ones)] for name, ones in by_name.items()}
    return data | lists


def _unregister_broker(image: MetadataImage, data: Value) -> None:
    image.brokers.pop(data["brokerId"], None)


def _registration(image: MetadataImage, node: int, epoch: int, does: str) -> Value | str:
    """Return the registration of a broker, or the reason why its record does not apply."""
    known = image.brokers.get(node)
    if known is None:
        return f"broker {node} is {does}, but is not registered"
    if known["brokerEpoch"] != epoch:
        own = known["brokerEpoch"]
        return f"broker {node} is {does} in epoch {epoch}, but is registered with epoch {own}"
    return known


def _fence(*, fenced: bool) -> Callable[[MetadataImage, Value], str | None]:
    def apply(image: MetadataImage, data: Value) -> str | None:
        does = "fenced" if fenced else "unfenced"
        known = _registration(image, data["id"], data["epoch"], does)
        if isinstance(known, str):
            return known
        image.brokers[data["id"]] = {**known, "fenced": fenced}
        return None

    return apply


def _change_broker(image: MetadataImage, data: Value) -> str | None:
    known = _registration(image, data["brokerId"], data["brokerEpoch"], "changed")
    if isinstance(known, str):
        return known
    fenced, shutdown = data.get("fenced", 0), data.get("inControlledShutdown", 0)
    for name, value, meaning in (
        ("fenced", fenced, _FENCING), ("inControlledShutdown", shutdown, _SHUTDOWN),
    ):  # fmt: skip
        if value not in meaning:
            return (
                f"broker {data['brokerId']} is changed, with {name} {value}, which is not a "
                "valid value"
            )
    changes = {
        "fenced": _FENCING[fenced],
        "inControlledShutdown": _SHUTDOWN[shutdown],
        "logDirs": data.get("logDirs") or None,
        "cordonedLogDirs": data.get("cordonedLogDirs"),
    }
    change = {name: value for name, value in changes.items() if value is not None}
    image.brokers[data["brokerId"]] = known | change
    return None


def _register_controller(image: MetadataImage, data: Value) -> str | None:
    for endpoint in data["endPoints"]:
        if endpoint["securityProtocol"] not in _SECURITY_PROTOCOLS:
            kind = endpoint["securityProtocol"]
            node = data["controllerId"]
            return f"controller {node} registers security protocol {kind}, which does not exist"
    image.controllers[data["controllerId"]] = _ordered(data)
    return None


def _unregister_controller(image: MetadataImage, data: Value) -> str | None:
    if image.controllers.pop(data["controllerId"], None) is None:
        return f"controller {data['controllerId']} is removed, but is not registered"
    return None


def _feature(image: MetadataImage, data: Value) -> str | None:
    name, level = data["name"], data["featureLevel"]
    if name == KRAFT_VERSION_FEATURE:
        return None  # counts only as a control record
    if name == METADATA_VERSION and level > releases.newest_level():
        image.not_understood += 1
    elif name == METADATA_VERSION and level < 1:
        return f"metadata.version becomes {level}, which no release supports"
    image.features.pop(name, None)
    if level:
        image.features[name] = level
    return None


def _quota(image: MetadataImage, data: Value) -> None:
    entity = entity_of(data)
    of_entity = image.quotas.setdefault(entity, {})
    of_entity.pop(data["key"], None)
    if not data["remove"]:
        of_entity[data["key"]] = data["value"]
    if not of_entity:
        del image.quotas[entity]


def entity_of(data: Value) -> QuotaEntity:
    """Return the entity of a ClientQuotaRecord."""
    parts = {one["entityType"]: one["entityName"] for one in data["entity"]}
    return tuple(sorted(parts.items(), key=lambda part: part[0]))


def _producer_ids(image: MetadataImage, data: Value) -> None:
    first = data["nextProducerId"]
    image.next_producer_id = None if first == _NO_PRODUCER_ID else first


def _acl(image: MetadataImage, data: Value) -> None:
    image.acls[data["id"]] = data


def _remove_acl(image: MetadataImage, data: Value) -> str | None:
    if image.acls.pop(data["id"], None) is None:
        return f"ACL {data['id']} is removed, but does not exist"
    return None


def _scram(image: MetadataImage, data: Value) -> None:
    image.scram_users[data["name"], data["mechanism"]] = data


def _remove_scram(image: MetadataImage, data: Value) -> None:
    image.scram_users.pop((data["name"], data["mechanism"]), None)


def _token(image: MetadataImage, data: Value) -> str | None:
    for role, names in (
        ("owner", [data["owner"]]), ("requester", [data["requester"]]),
        ("renewers", data["renewers"]),
    ):  # fmt: skip
        if not all(":" in name for name in names):
            return f"a delegation token has {role} without the form of User:alice"
    image.tokens[data["tokenId"]] = data
    return None


def _remove_token(image: MetadataImage, data: Value) -> None:
    image.tokens.pop(data["tokenId"], None)


def _zk_migration(image: MetadataImage, data: Value) -> None:
    image.zk_migration_state = data["zkMigrationState"]


def _clear_elr(image: MetadataImage, data: Value) -> str | None:
    """Clear the ELR of the partitions of one topic, or of all topics without a name."""
    name = data["topicName"]
    if name and name not in image.topics:
        return f"the ELR of topic {name} is cleared, but the topic does not exist"
    for topic_id in [image.topics[name]] if name else list(image.partitions):
        of_topic = image.partitions.get(topic_id, {})
        for number, state in of_topic.items():
            if state.elr or state.last_known_elr:
                of_topic[number] = replace(
                    state,
                    elr=(),
                    last_known_elr=(),
                    partition_epoch=state.partition_epoch + 1,
                )
    return None


OTHERS: dict[int, Callable[[MetadataImage, Value], str | None]] = {
    0: _register_broker,
    1: _unregister_broker,
    7: _fence(fenced=True),
    8: _fence(fenced=False),
    10: _token,
    11: _scram,
    12: _feature,
    14: _quota,
    15: _producer_ids,
    17: _change_broker,
    18: _acl,
    19: _remove_acl,
    21: _zk_migration,
    22: _remove_scram,
    26: _remove_token,
    27: _register_controller,
    28: _clear_elr,
    29: _unregister_controller,
}
"""Functions for the other records, by type; NoOpRecord (20) does nothing."""
