"""The commands that commit the offsets of groups again, with Kafka's own tools.

One command for each group: ``--reset-offsets --from-file`` takes lines of topic, partition and
offset, which ``--group`` makes those of that group. It needs a group without members. Source:
``ConsumerGroupCommand`` and ``CsvUtils`` (Kafka 3.9 and 4.3).
"""

from collections.abc import Sequence

from logtool.disk import shell
from logtool.groups.committed_offset import CommittedOffset
from logtool.groups.membership import SHARE, STREAMS
from logtool.groups.state import GroupState
from logtool.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Restore:
    """How to commit the offsets of one group again."""

    group: GroupState
    offsets: Sequence[CommittedOffset]
    left_out: int
    """Offsets of a topic that is no more: they would be applied to its successor."""
    command: str | None
    """None where nothing is left to restore."""

    @property
    def offset_count(self) -> int:
        """Return how many offsets the command commits."""
        return len(self.offsets)


def plan(group: GroupState, bootstrap: str, number: int) -> Restore:
    """Return the command for a group, which has none where it has nothing to restore.

    `number` makes the name of the file that the command writes.
    """
    chosen = [one for one in group.offsets if one.topic_is not in ("other", "gone")]
    left_out = len(group.offsets) - len(chosen)
    if group.type == SHARE or not chosen:
        return Restore(group=group, offsets=(), left_out=left_out, command=None)
    tool = "kafka-streams-groups.sh" if group.type == STREAMS else "kafka-consumer-groups.sh"
    # A topic has no character that CSV or a shell would take for another.
    lines = " ".join(shell.quote(f"{one.topic},{one.partition},{one.offset}") for one in chosen)
    file = f"offsets-{number}.csv"
    command = (
        f"printf '%s\\n' {lines} > {file} && {tool} "
        f"--bootstrap-server {shell.quote(bootstrap)} {shell.option('--group', group.name)} "
        f"--reset-offsets --from-file {file} --execute"
    )
    return Restore(
        group=group,
        offsets=chosen,
        left_out=left_out,
        command=command,
    )
