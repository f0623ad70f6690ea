"""The JSON objects of groups, of their offsets and of what happened to them."""

from typing import TYPE_CHECKING, Any

from logtool.dump.values import or_null
from logtool.times import rfc3339

if TYPE_CHECKING:
    from logtool.groups.history import Event
    from logtool.groups.judging import CommittedOffset, GroupState, PendingCommit
    from logtool.groups.membership import Member
    from logtool.groups.run import OffsetsPartition
    from logtool.groups.sharing import ShareOffset


def group(state: "GroupState") -> dict[str, Any]:
    """Return the JSON object of a group."""
    membership = state.membership
    sizes = state.sizes
    return {
        "type": "group",
        "group": state.name,
        "group_type": state.type,
        "state": state.state,
        "members": len(state.members),
        "epoch": membership.epoch if membership else None,
        "protocol_type": membership.protocol_type if membership else None,
        "protocol": membership.protocol if membership else None,
        "leader": membership.leader if membership else None,
        "state_ms": membership.state_timestamp if membership else None,
        "state_since": rfc3339(membership.state_timestamp) if membership else None,
        "offsets_partition": state.offsets_partition,
        "offsets": len(state.offsets),
        "pending": len(state.pending),
        "records": sizes.records,
        "bytes": sizes.bytes,
        "superseded_records": sizes.superseded_records,
        "superseded_bytes": sizes.superseded_bytes,
        "only_sizes": False,
    }


def partition(item: "OffsetsPartition") -> dict[str, Any]:
    """Return the JSON object of a partition of the topic that was read."""
    loaded = item.loaded
    return {
        "type": "partition",
        "path": str(loaded.listed.path),
        "topic": loaded.listed.topic,
        "partition": loaded.listed.number,
        "first_offset": loaded.first_offset,
        "log_end_offset": loaded.end_offset,
        "leader_epoch": or_null(loaded.leader_epoch),
        "records": loaded.records,
        "bytes": loaded.bytes,
        "keys": len(loaded.slots),
        "unknown_records": loaded.unknown_records,
        "unreadable_records": loaded.wrong_records,
        "other_copies": [
            {
                "path": str(one.listed.path),
                "log_end_offset": one.extent.log_end,
                "leader_epoch": or_null(one.extent.leader_epoch),
            }
            for one in item.others
        ],
    }


def member(state: "GroupState", member: "Member") -> dict[str, Any]:
    """Return the JSON object of a member of a group."""
    names = state.topic_names
    assigned = sorted((names.get(topic, topic), number) for topic, number in member.assigned)
    return {
        "type": "member",
        "group": state.name,
        "member": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rack_id": member.rack_id,
        "epoch": or_null(member.epoch),
        "topics": None if member.topics is None else list(member.topics),
        "regular_expression": member.regular_expression,
        "assigned": [f"{topic}-{number}" for topic, number in assigned],
    }


def offset(state: "GroupState", one: "CommittedOffset", now_ms: int) -> dict[str, Any]:
    """Return the JSON object of a committed offset; what has expired is counted to `now_ms`."""
    extent = one.extent
    return {
        "type": "offset",
        "group": state.name,
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "log_start_offset": extent.log_start if extent else None,
        "log_end_offset": extent.log_end if extent else None,
        "last_stable_offset": extent.last_stable if extent else None,
        "lag": one.lag,
        "stable_lag": one.stable_lag,
        "place": one.place,
        "topic_id": one.topic_id,
        "topic_is": one.topic_is,
        "member": one.member,
        "commit_ms": one.commit_ms,
        "committed": rfc3339(one.commit_ms),
        "expires_ms": one.expires_ms,
        "expires": rfc3339(one.expires_ms),
        "expired": one.expires_ms is not None and one.expires_ms <= now_ms and not one.pending,
        "pending": one.pending,
        "metadata": one.metadata,
        "leader_epoch": one.leader_epoch,
        "record_offset": one.record_offset,
    }


def share(state: "GroupState", one: "ShareOffset") -> dict[str, Any]:
    """Return the JSON object of where a share group begins in a partition."""
    extent, share = one.extent, one.state
    return {
        "type": "share-offset",
        "group": state.name,
        "topic": one.topic,
        "topic_id": one.topic_id,
        "partition": one.partition,
        "start_offset": share.start_offset,
        "delivered": share.delivered,
        "log_start_offset": extent.log_start if extent else None,
        "log_end_offset": extent.log_end if extent else None,
        "lag": one.lag,
        "place": one.place,
        "leader_epoch": share.leader_epoch,
        "written_ms": share.written_ms,
        "written": rfc3339(share.written_ms),
        "record_offset": share.record_offset,
    }


def pending(state: "GroupState", one: "PendingCommit") -> dict[str, Any]:
    """Return the JSON object of a commit in an open transaction."""
    return {
        "type": "pending",
        "group": state.name,
        "topic": one.topic,
        "partition": one.partition,
        "offset": one.offset,
        "producer_id": one.producer_id,
        "commit_ms": one.commit_ms,
        "committed": rfc3339(one.commit_ms),
        "metadata": one.metadata,
        "record_offset": one.record_offset,
    }


def event(event: "Event") -> dict[str, Any]:
    """Return the JSON object of what happened to a group."""
    return {
        "type": "event",
        "record_offset": event.record_offset,
        "time_ms": event.time_ms,
        "time": rfc3339(event.time_ms),
        "event": event.what,
        "deleted": event.deleted,
        "topic": event.topic,
        "partition": event.partition,
        "offset": event.offset,
        "member": event.member,
        "producer_id": event.producer_id,
        "state": event.state,
        "members": event.members,
        "epoch": event.epoch,
    }
