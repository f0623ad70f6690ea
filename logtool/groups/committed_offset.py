"""The committed offset of one partition by a group, and when it expires.

An offset of a classic group without members expires when the retention has passed since the group
became empty, or since the commit where no such time is known. Offsets of a topic that a member
subscribes to do not expire. Every other offset expires when the retention has passed since its
commit. A commit of value version 1 may have an expiry time of its own. Source:
``ClassicGroup.offsetExpirationCondition``, ``ConsumerGroup``, ``OffsetExpirationConditionImpl``,
``OffsetMetadataManager.cleanupExpiredOffsets`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Iterator

from logtool.disk import shell
from logtool.findings import Finding
from logtool.groups import findings
from logtool.groups.columns import Slots
from logtool.groups.commits import as_text, parse_commit_key
from logtool.groups.ends import Ends, LogEnds
from logtool.groups.membership import CLASSIC, CONSUMER_PROTOCOL, Membership
from logtool.lazy_dataclass import dataclass
from logtool.log.keys import NONE
from logtool.times import rfc3339

RETENTION_MS = 7 * 86_400_000
"""Default of ``offsets.retention.minutes``."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of offsets, and the time at which it is checked."""

    kept_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The committed offset of one partition."""

    group: str
    topic: str
    partition: int
    offset: int
    record_offset: int
    """Offset of the commit in the log of ``__consumer_offsets``."""
    leader_epoch: int | None
    metadata: str
    commit_ms: int
    member: str | None
    """Member that owned the partition at the commit; None where the log does not show it."""
    expires_ms: int | None
    """Time at which it expires, in ms; None if it does not expire."""
    topic_id: str | None
    """Topic id of the commit; None before value version 4 and for commits by name."""
    topic_is: str
    """Relation of that topic to today's topic: `same`, `other`, `gone` or `unknown`."""
    extent: LogEnds | None
    """The partition on these disks; None if these disks do not have it."""
    pending: bool
    """True if an open transaction holds a newer commit."""
    epoch_today: int | None
    """Leader epoch of the partition in the metadata log; None if it is not known."""
    expired: bool
    """True if it may be removed: it has expired, and no transaction holds a newer commit."""
    aborted_offset: int | None = None
    """Offset in the newest record for the partition, if that is a commit in an aborted
    transaction, which does not count; None if it is not."""
    in_doubt: bool = False
    """True if its partition of ``__consumer_offsets`` has lost records, maybe a newer commit."""
    current_topic_id: str | None = None
    """Id of the topic that has this name now; None if it is not known, or no topic has it."""

    @property
    def lag(self) -> int | None:
        """Return the distance to the log end, in offsets; negative beyond the log end."""
        return self.extent.log_end - self.offset if self.extent else None

    @property
    def log_start(self) -> int | None:
        """Return the log start offset on these disks; None if they do not have the partition."""
        return self.extent.log_start if self.extent else None

    @property
    def log_end(self) -> int | None:
        """Return the log end offset on these disks; None if they do not have the partition."""
        return self.extent.log_end if self.extent else None

    @property
    def last_stable(self) -> int | None:
        """Return the last stable offset; None if these disks do not have the partition."""
        return self.extent.last_stable if self.extent else None

    @property
    def committed(self) -> str | None:
        """Return the time of the commit, as text; None if it is out of range of a date."""
        return rfc3339(self.commit_ms)

    @property
    def expires(self) -> str | None:
        """Return the time of expiry, as text; None if there is no such time or date."""
        return rfc3339(self.expires_ms)

    @property
    def stable_lag(self) -> int | None:
        """Return the distance to the last stable offset, 0 beyond it; None if it is not known."""
        return max(0, self.extent.last_stable - self.offset) if self.extent else None

    @property
    def place(self) -> str:
        """Return where the offset lies: `in`, `below-start`, `beyond-end` or `unknown`."""
        if not self.extent:
            return "unknown"
        if self.offset < self.extent.log_start:
            return "below-start"
        return "beyond-end" if self.offset > self.extent.log_end else "in"

    def findings(self) -> Iterator[Finding]:
        """Yield findings about the committed offset."""
        where = f"{self.topic}-{self.partition}"
        name = shell.quote(self.group)
        if self.topic_id and self.topic_is in ("other", "gone"):
            today = self.current_topic_id
            yield findings.other_topic(name, where, self.offset, self.topic_id, today)
            return
        epoch, now = self.leader_epoch, self.epoch_today
        if epoch is not None and now is not None and epoch > now:
            yield findings.epoch_ahead(name, where, self.offset, epoch, now)
        if self.extent and self.place == "below-start":
            then = self._after_start()
            yield findings.below_start(name, where, self.offset, self.extent.log_start, then)
        elif self.extent and self.place == "beyond-end":
            then = self._after_start()
            yield findings.beyond_end(name, where, self.offset, self.extent.log_end, then=then)
        elif self.extent and epoch is not None:
            end = self.extent.end_of_epoch(epoch)
            if end is not None and end < self.offset:
                yield findings.epoch_ended(name, where, self.offset, epoch, end)

    def _after_start(self) -> str:
        """Return where a consumer goes on that begins at this offset outside of the log.

        The text is empty if that is not known: a consumer ignores leaders whose epoch is below
        that of the commit.
        """
        extent, epoch = self.extent, self.leader_epoch
        if extent is None:
            return ""
        ends = extent.log_start, extent.log_end, extent.last_stable
        if epoch is None:
            return findings.after_reset(*ends)
        newest = max([extent.leader_epoch, *(number for number, _ in extent.epochs[-1:])])
        if epoch > (newest if self.epoch_today is None else self.epoch_today):
            return ""
        if self.place == "below-start":
            return findings.after_reset(*ends)
        if not extent.epochs and epoch < newest:
            return ""
        end = extent.end_of_epoch(epoch)
        return findings.after_epoch(epoch, extent.log_end if end is None else end)


class OffsetMaker:
    """Maker of the committed offsets of a group."""

    def __init__(
        self,
        group: str,
        slots: Slots,
        membership: Membership | None,
        ends: Ends,
        retention: Retention,
        pending: set[tuple[str, int]],
    ) -> None:
        self._group = group
        self._slots = slots
        self._membership = membership
        self._ends = ends
        self._retention = retention
        self._pending = pending

    def make(self, slot: int) -> CommittedOffset:
        """Return the committed offset of a slot that is live."""
        slots = self._slots
        _, topic, number = parse_commit_key(slots.key(slot))
        extent = self._ends.extent(topic, number)
        id_number = int(slots.topic_id[slot])
        topic_id = None if id_number == NONE else slots.topic_ids[id_number]
        record_offset = int(slots.record_offset[slot])
        epoch = int(slots.leader_epoch[slot])
        today = self._ends.topic_id(topic) or (extent.topic_id if extent else None)
        topic_is = self._topic_is(topic, topic_id, today)
        owner = None
        if self._membership:
            keys = [(one, number) for one in (topic, topic_id, today) if one]
            owner = self._membership.owner(keys, record_offset)
        expires_ms = self._expires(slot, topic)
        is_over = expires_ms is not None and expires_ms <= self._retention.now_ms
        pending = (topic, number) in self._pending
        return CommittedOffset(
            group=self._group,
            topic=topic,
            partition=number,
            offset=int(slots.offset[slot]),
            record_offset=record_offset,
            leader_epoch=None if epoch == NONE else epoch,
            metadata=as_text(slots.metadata.get(slot, b"")),
            commit_ms=int(slots.commit_timestamp[slot]),
            member=owner,
            expires_ms=expires_ms,
            topic_id=topic_id,
            topic_is=topic_is,
            extent=extent,
            epoch_today=self._ends.leader_epoch(topic, number),
            pending=pending,
            expired=is_over and not pending,
            aborted_offset=slots.aborted_offset(slot),
            # A log dir may still hold the partition of a topic that the metadata log lacks.
            current_topic_id=None if topic_is == "gone" else today,
        )

    def _topic_is(self, topic: str, topic_id: str | None, today: str | None) -> str:
        if self._ends.is_gone(topic):
            return "gone"
        if topic_id is None or today is None:
            return "unknown"
        return "same" if topic_id == today else "other"

    def _expires(self, slot: int, topic: str) -> int | None:
        own = self._slots.expire_timestamps.get(slot)
        committed = int(self._slots.commit_timestamp[slot])
        group = self._membership
        base = committed
        if group and group.subscribes(topic):
            return None
        if group and group.type == CLASSIC and group.protocol_type is not None:
            if not group.members:
                base = committed if group.state_timestamp is None else group.state_timestamp
            elif group.protocol_type != CONSUMER_PROTOCOL:
                return None
        return base + self._retention.kept_ms if own is None else own
