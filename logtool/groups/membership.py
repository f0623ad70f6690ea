"""Type, state and members of groups, replayed record by record as their coordinator does.

Records that a coordinator would refuse to load are reported, and applied all the same: the newer
record counts. A coordinator refuses the tombstone of a group or member that still has members or
a part in the target assignment; compaction can leave such tombstones
(``GroupMetadataManager.replay`` of 4.3; KAFKA-21102). States are those after a load, as
``ClassicGroup``, ``ConsumerGroup``, ``ShareGroup`` and ``StreamsGroup`` derive them (Kafka 3.9
and 4.3): a rebalance that was under way leaves no record.
"""

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

from logtool.errors import FormatError
from logtool.formats.messages import codec, schema
from logtool.formats.messages.codec import Value
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
CONSUMER_PROTOCOL = "consumer"
_MOST_OWNERS = 8
"""Number of changes of owner that are kept for each partition."""
_STABLE = {8: 0, 14: 0, 22: 1}
"""``MemberState.STABLE`` by record type: of the package ``modern``, and last of ``streams``."""
_TYPES = {
    2: CLASSIC, 3: CONSUMER, 4: CONSUMER, 5: CONSUMER, 6: CONSUMER, 7: CONSUMER, 8: CONSUMER,
    10: SHARE, 11: SHARE, 12: SHARE, 13: SHARE, 14: SHARE, 15: SHARE, 16: CONSUMER, 17: STREAMS,
    19: STREAMS, 20: STREAMS, 21: STREAMS, 22: STREAMS, 23: STREAMS,
}  # fmt: skip
_EPOCH_RECORDS = (3, 11, 17)
_MEMBER_RECORDS = (5, 10, 19)
_TARGET_RECORDS = (6, 12, 20)
_SHARE_PARTITIONS = 15
_TARGET_PARTS = (7, 13, 21)
_CURRENT_RECORDS = (8, 14, 22)
_TOPOLOGY, _REGULAR_EXPRESSION, _CLASSIC = 23, 16, 2

Partition = tuple[str, int]
"""Topic name or topic id, and partition number."""


@dataclass(slots=True)
class Member:
    """One member of a group."""

    member_id: str
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rack_id: str | None = None
    topics: tuple[str, ...] | None = None
    """Topics that it subscribes to; None where they cannot be read."""
    regular_expression: str | None = None
    epoch: int = NONE
    is_reconciled: bool = False
    """True if its state is STABLE."""
    has_left: bool = False
    """True if its epoch was removed: the member may be removed only after that."""
    assigned: frozenset[Partition] = frozenset()
    """By topic name in a classic group, by subtopology in a streams group, else by topic id."""


@dataclass(slots=True)
class Membership:
    """A group according to its records, without its commits."""

    type: str
    epoch: int = NONE
    """The generation, in a classic group."""
    assignment_epoch: int = NONE
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    state_timestamp: int | None = None
    """Time at which a classic group got its state, in ms."""
    topology_epoch: int | None = None
    validated_topology_epoch: int = NONE
    source_topics: frozenset[str] = frozenset()
    """Source topics of the topology of a streams group."""
    members: dict[str, Member] = field(default_factory=dict)
    targets: set[str] = field(default_factory=set)
    """Members with a part in the target assignment."""
    resolved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Topics by regular expression."""
    shares: frozenset[Partition] = frozenset()
    """Partitions of a share group for which its coordinator had a start offset stored."""
    owners: dict[Partition, list[tuple[int, str | None]]] = field(default_factory=dict)
    """The last owners of a partition, each with the record offset since which; None: no owner."""

    @property
    def state(self) -> str:
        """Return the state after a load, in Kafka's word."""
        if not self.members:
            return "Empty"
        if self.type in (CLASSIC, SHARE):
            return "Stable"
        not_validated = self.topology_epoch != self.validated_topology_epoch
        if self.type == STREAMS and (self.topology_epoch is None or not_validated):
            return "NotReady"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(
            one.is_reconciled and one.epoch == self.assignment_epoch
            for one in self.members.values()
        )
        return "Stable" if settled else "Reconciling"

    def subscribes(self, topic: str) -> bool:
        """Return whether a member reads the topic, so that its offsets do not expire."""
        if topic in self.source_topics:
            return bool(self.members)
        of_members = [one.topics for one in self.members.values()]
        if self.type == CLASSIC and None in of_members:
            return self.protocol_type == CONSUMER_PROTOCOL
        by_expression = any(
            topic in self.resolved.get(one.regular_expression or "", ())
            for one in self.members.values()
        )
        return by_expression or any(topic in (topics or ()) for topics in of_members)

    def owner(self, partitions: Iterable[Partition], record_offset: int) -> str | None:
        """Return the member that owned one of these just before a record; None if not known."""
        for one in partitions:
            for since, member in reversed(self.owners.get(one, ())):
                if since < record_offset:
                    if member is not None:
                        return member
                    break
        return None


class Memberships:
    """The groups of one partition of the topic."""

    def __init__(self) -> None:
        self.groups: dict[str, Membership] = {}
        self.removed: dict[str, int] = {}
        """Offset of the tombstone of a group, by its name."""

    def replay(self, kind: int, key: Value, value: Value | None, offset: int) -> str | None:
        """Apply one record at a record offset; return why a coordinator refuses it, or None."""
        name = key.get("groupId", key.get("group"))
        if kind not in _TYPES or not isinstance(name, str):
            return None
        refused: str | None = None
        if value is None:
            group = self.groups.get(name)
            if group and group.type == _TYPES[kind]:
                refused = _refused(group, kind, key)
            self._tombstone(kind, name, key, offset)
        elif kind == _CLASSIC:
            self.groups[name] = _classic(value, self.groups.get(name), offset)
        else:
            group = self.groups.get(name)
            if group is None or group.type != _TYPES[kind]:
                group = self.groups[name] = Membership(_TYPES[kind])
            _replay(group, kind, key, value, offset)
        return f"group {name}: {refused}" if refused else None

    def _tombstone(self, kind: int, name: str, key: Value, offset: int) -> None:
        group = self.groups.get(name)
        if kind == _CLASSIC or (kind in _EPOCH_RECORDS and group and group.type == _TYPES[kind]):
            self.groups.pop(name, None)
            self.removed[name] = offset
            return
        if group is None or group.type != _TYPES[kind]:
            return
        member = group.members.get(key.get("memberId", ""))
        if kind in _MEMBER_RECORDS and member:
            _own(group, member, frozenset(), offset)
            del group.members[member.member_id]
        elif kind in _CURRENT_RECORDS and member:
            _own(group, member, frozenset(), offset)
            member.epoch, member.is_reconciled, member.has_left = NONE, False, True
        elif kind in _TARGET_PARTS:
            group.targets.discard(key["memberId"])
        elif kind in _TARGET_RECORDS:
            group.assignment_epoch = NONE
        elif kind == _SHARE_PARTITIONS:
            group.shares = frozenset()
        elif kind == _TOPOLOGY:
            group.topology_epoch, group.source_topics = None, frozenset()
        elif kind == _REGULAR_EXPRESSION:
            group.resolved.pop(key["regularExpression"], None)


def _refused(group: Membership, kind: int, key: Value) -> str | None:
    """Return why a coordinator refuses a tombstone; None if it does not."""
    if kind in _MEMBER_RECORDS:
        member = group.members.get(key["memberId"])
        if member and not member.has_left:
            return f"member {member.member_id} is removed, but its epoch still exists"
        if member and member.member_id in group.targets:
            return f"member {member.member_id} is removed, but is in the target assignment"
    elif kind in _EPOCH_RECORDS and group.members:
        return f"the group is removed, but member {min(group.members)} still exists"
    elif kind in (*_EPOCH_RECORDS, *_TARGET_RECORDS) and group.targets:
        what = "the group" if kind in _EPOCH_RECORDS else "the target assignment of the group"
        return f"{what} is removed, but member {min(group.targets)} still has assigned partitions"
    elif kind in _EPOCH_RECORDS and group.assignment_epoch != NONE:
        return "the group is removed, but the epoch of its target assignment still exists"
    return None


def _replay(group: Membership, kind: int, key: Value, value: Value, offset: int) -> None:
    """Apply a record with a value to a group of its type."""
    if kind in _EPOCH_RECORDS:
        group.epoch = value["epoch"]
        group.validated_topology_epoch = value.get("validatedTopologyEpoch", NONE)
    elif kind in _TARGET_RECORDS:
        group.assignment_epoch = value["assignmentEpoch"]
    elif kind in _MEMBER_RECORDS:
        member = group.members.setdefault(key["memberId"], Member(key["memberId"]))
        member.instance_id, member.rack_id = value.get("instanceId"), value["rackId"]
        member.client_id, member.client_host = value["clientId"], value["clientHost"]
        member.topics = tuple(value.get("subscribedTopicNames", ()))
        member.regular_expression = value.get("subscribedTopicRegex") or None
    elif kind in _CURRENT_RECORDS:
        member = group.members.setdefault(key["memberId"], Member(key["memberId"]))
        member.epoch, member.is_reconciled = value["memberEpoch"], value["state"] == _STABLE[kind]
        member.has_left = False
        _own(group, member, frozenset(_partitions(value)), offset)
    elif kind in _TARGET_PARTS:
        group.targets.add(key["memberId"])
    elif kind == _SHARE_PARTITIONS:
        group.shares = frozenset(
            (one["topicId"], number)
            for one in value["initializedTopics"]
            for number in one["partitions"]
        )
    elif kind == _TOPOLOGY:
        group.topology_epoch = value["epoch"]
        group.source_topics = frozenset(
            topic
            for part in value["subtopologies"]
            for topic in (
                *part["sourceTopics"],
                *(one["name"] for one in part["repartitionSourceTopics"]),
            )
        )
    elif kind == _REGULAR_EXPRESSION:
        group.resolved[key["regularExpression"]] = tuple(value["topics"])


def _classic(value: Value, before: Membership | None, offset: int) -> Membership:
    """Return a classic group from its record; only the owners are kept from the group before."""
    stamp = value.get("currentStateTimestamp", NONE)
    group = Membership(
        CLASSIC,
        epoch=value["generation"],
        protocol_type=value["protocolType"] or None,
        protocol=value["protocol"],
        leader=value["leader"],
        state_timestamp=None if stamp == NONE else stamp,
        owners=before.owners if before and before.type == CLASSIC else {},
    )
    gone = before.members if before and before.type == CLASSIC else {}
    for content in value["members"]:
        member = Member(
            content["memberId"],
            instance_id=content.get("groupInstanceId"),
            client_id=content["clientId"],
            client_host=content["clientHost"],
            epoch=value["generation"],
            is_reconciled=True,
        )
        assigned: frozenset[Partition] = frozenset()
        if group.protocol_type == CONSUMER_PROTOCOL:
            member.topics = _subscription(content["subscription"])
            assigned = _assignment(content["assignment"])
        if member.member_id in gone:
            member.assigned = gone[member.member_id].assigned
        _own(group, member, assigned, offset)
        group.members[member.member_id] = member
    for member in gone.values():
        if member.member_id not in group.members:
            _own(group, member, frozenset(), offset)
    return group


def _own(group: Membership, member: Member, assigned: frozenset[Partition], offset: int) -> None:
    """Make a member the owner of exactly these partitions from a record offset on."""
    for one in member.assigned - assigned:
        entries = group.owners.get(one)
        if entries and entries[-1][1] == member.member_id:
            _remember(entries, offset, None)
    for one in assigned - member.assigned:
        _remember(group.owners.setdefault(one, []), offset, member.member_id)
    member.assigned = assigned


def _remember(entries: list[tuple[int, str | None]], offset: int, member: str | None) -> None:
    entries.append((offset, member))
    del entries[:-_MOST_OWNERS]


def _partitions(value: Value) -> Iterator[Partition]:
    for one in value.get("assignedPartitions", value.get("activeTasks")) or ():
        for number in one["partitions"]:
            yield one.get("topicId", one.get("subtopologyId", "")), number


def _blob(name: str, data: bytes) -> dict[str, Any] | None:
    """Decode bytes that a client wrote, by the version in them; None where that is impossible."""
    message = schema.table("consumer_protocol").named(name)
    version = min(int.from_bytes(data[:2], "big", signed=True), message.versions.last)
    try:
        return codec.decode(message, version, data[2:], whole=False)
    except FormatError:
        return None


def _subscription(data: bytes) -> tuple[str, ...] | None:
    content = _blob("ConsumerProtocolSubscription", data)
    return None if content is None else tuple(content["topics"])


def _assignment(data: bytes) -> frozenset[Partition]:
    # A member that got nothing may have no bytes at all.
    content = _blob("ConsumerProtocolAssignment", data) if data else None
    if content is None:
        return frozenset()
    pairs = content["assignedPartitions"] or ()
    return frozenset((one["topic"], number) for one in pairs for number in one["partitions"])
