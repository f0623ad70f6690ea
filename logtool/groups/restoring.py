"""The commands that commit the offsets of groups again, with Kafka's own tools.

Each group has one command: ``--reset-offsets --from-file`` takes lines of topic, partition and
offset, and commits them for the group of ``--group``, with empty metadata and without a leader
epoch. The group must have no members. It need not exist: the commit creates it.

The start offsets of a share group can be set only one by one, and the states of its records are
lost then: these commands are for a person. Source: ``ConsumerGroupCommand`` and ``CsvUtils``
(Kafka 3.9 and 4.3), ``ShareGroupCommand`` (4.4).
"""

from collections.abc import Iterator, Sequence

from logtool.disk import shell
from logtool.groups.committed_offset import CommittedOffset
from logtool.groups.membership import SHARE, STREAMS
from logtool.groups.state import GroupState
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SetBack:
    """A partition for which the command commits a smaller offset than the present one."""

    place: str
    """Topic and partition, as TOPIC-NUMBER."""
    present: int
    """The committed offset at the end of the log of ``__consumer_offsets``."""
    restored: int
    """The offset that Kafka's tool commits: it does not go below the log start."""

    def __str__(self) -> str:
        return f"{self.place}={self.present}:{self.restored}"


@dataclass(frozen=True, slots=True)
class Restore:
    """The command that commits the offsets of one group again."""

    group: GroupState
    offsets: Sequence[CommittedOffset]
    left_out: int
    """Number of offsets of deleted topics: they would be applied to a new topic of that name."""
    removed_left_out: int
    """Number of removed offsets that the command does not commit."""
    command: str | None
    """None if there is nothing to restore."""
    removal: str | None = None
    """Command that removes the offsets that the group committed later for other partitions."""
    share_commands: Sequence[str] = ()
    """Commands that set the start offsets of a share group."""

    @property
    def metadata_count(self) -> int:
        """Return the number of its offsets with metadata: the file has no column for it."""
        return sum(bool(one.metadata) for one in self.offsets)

    @property
    def offset_count(self) -> int:
        """Return how many offsets the command commits."""
        return len(self.offsets)

    @property
    def outside(self) -> list[str]:
        """Return the offsets that lie outside of the log, each as TOPIC-NUMBER=OFFSET.

        Kafka's tool commits the log end or the log start instead, and warns
        (``ConsumerGroupCommand.checkOffsetsRange``).
        """
        return [
            f"{one.topic}-{one.partition}={one.offset}"
            for one in self.offsets
            if one.place in ("below-start", "beyond-end")
        ]

    @property
    def later(self) -> list[str]:
        """Return the partitions that keep their present offset, each as TOPIC-NUMBER=OFFSET."""
        return [f"{one.topic}-{one.partition}={one.offset}" for one in self.group.later]

    @property
    def sets_back(self) -> list[str]:
        """Return the partitions that are set back, each as TOPIC-NUMBER=PRESENT:RESTORED."""
        return list(map(str, self.set_backs()))

    @property
    def shares_in_doubt(self) -> list[str]:
        """Return the partitions of a share group whose newer states may be lost."""
        return [f"{one.topic or one.topic_id}-{one.partition}" for one in self.group.shares
                if one.in_doubt]  # fmt: skip

    def set_backs(self) -> Iterator[SetBack]:
        """Yield the partitions whose present committed offset is larger than the restored one."""
        present = {(one.topic, one.partition): one.offset for one in self.group.present}
        for one in self.offsets:
            now, restored = present.get((one.topic, one.partition)), one.offset
            if one.extent:
                restored = min(max(restored, one.extent.log_start), one.extent.log_end)
            if now is not None and now > restored:
                yield SetBack(f"{one.topic}-{one.partition}", now, restored)

    @property
    def is_empty(self) -> bool:
        """Return True if there is nothing to do and nothing to say about the group."""
        is_still = self.command is None and self.removal is None and not self.removed_left_out
        return is_still and not self.share_commands


def plan(group: GroupState, bootstrap: str, number: int, *, removed: bool = False) -> Restore:
    """Return the command for a group; no command if there is nothing to restore.

    With `removed`, the command commits the removed offsets, and no other. `number` is part of the
    name of the file that the command writes.
    """
    tool = "kafka-streams-groups.sh" if group.type == STREAMS else "kafka-consumer-groups.sh"
    start = f"{tool} --bootstrap-server {shell.quote(bootstrap)} "
    start += shell.option("--group", group.name)
    topic_option = "--input-topic" if group.type == STREAMS else "--topic"
    places = " ".join(
        shell.option(topic_option, f"{one.topic}:{one.partition}") for one in group.later
    )
    removal = f"{start} --delete-offsets {places}" if group.later else None
    offsets = group.restorable if removed else group.offsets
    chosen = [one for one in offsets if one.topic_is not in ("other", "gone")]
    left_out = len(offsets) - len(chosen)
    if group.type == SHARE:
        chosen = []
    begin = f"kafka-share-groups.sh --bootstrap-server {shell.quote(bootstrap)} "
    begin += f"{shell.option('--group', group.name)} --reset-offsets"
    share_commands = [
        f"{begin} {shell.option('--topic', f'{one.topic}:{one.partition}')} "
        f"--to-offset {one.next_offset} --execute"
        for one in group.shares
        if one.topic and one.next_offset is not None
    ]
    # The name of a topic has no character that is special in CSV or in a shell.
    lines = " ".join(shell.quote(f"{one.topic},{one.partition},{one.offset}") for one in chosen)
    file = f"offsets-{number}.csv"
    command = (
        f"printf '%s\\n' {lines} > {file} && {start} --reset-offsets --from-file {file} --execute"
    )
    return Restore(
        group=group,
        offsets=chosen,
        left_out=left_out,
        removed_left_out=0 if removed else group.removed_count,
        command=command if chosen else None,
        removal=removal,
        share_commands=() if removed else share_commands,
    )
