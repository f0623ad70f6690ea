"""The plan that keeps replicas from the leadership which lose more than others."""

from collections.abc import Iterator, Sequence

from logtool.commands.printing import text
from logtool.disk import shell
from logtool.log import inputs
from logtool.log.inputs import NodeDir, PathKind
from logtool.watermark.replica_group import Election, ReplicaGroup

_MOST_ELECTIONS = 10
"""Partitions for which a person is shown the command of an election."""
_ELECT = "kafka-leader-election.sh --bootstrap-server HOST:9092 --election-type unclean"


def plan_lines(groups: Sequence[ReplicaGroup], places: Sequence[NodeDir]) -> Iterator[str]:
    """Yield one plan for all groups in which some nodes should not lead; nothing without any.

    A node starts only once: where no node is the best leader of all groups, `cluster` has the plan.
    """
    if not groups:
        return
    where = text.count(len(groups), "partition")
    if len(groups) == 1:
        where = f"{text.escape(groups[0].topic)}-{groups[0].partition}"
    stopped = {node for one in groups for node in one.keep_stopped}
    named = ", ".join(sorted(map(str, stopped)))
    who, them = ("node", "it") if len(stopped) == 1 else ("nodes", "them")
    verb = "is" if len(stopped) == 1 else "are"
    most = max(one.acknowledged_lost for group in groups for one in group.choices
               if one.replica.node in group.keep_stopped)  # fmt: skip
    yield (
        f"{where}: if {who} {named} {verb} up, controllers may elect {them}, and up to "
        f"{text.count(most, 'acknowledged record')} of a partition are lost"
    )
    node = _best_of_all(groups)
    unclean = [one for one in groups if not _is_clean(one, node)]
    if node is None or len(unclean) > _MOST_ELECTIONS:
        why = "one order of the start, with its elections"
        if node is None:
            why = f"no node is the best leader of all of them; {why}"
        yield f"{why}: {_cluster(places)}"
    elif not unclean:
        yield f"start node {node} alone first"
    else:
        yield f"start node {node} without {who} {named}, and request an unclean election:"
        for one in unclean:
            topic = shell.option("--topic", one.topic)
            yield f"  {_ELECT} {topic} --partition {one.partition}"


def _best_of_all(groups: Sequence[ReplicaGroup]) -> int | None:
    """Return the node that loses least as the leader of each group; None without one."""
    best = [{one.replica.node for one in group.choices if not group.loses_more(one)}
            for group in groups]  # fmt: skip
    common = set.intersection(*best) - {None}
    wanted = [one.best_leader for one in groups if one.best_leader in common]
    return wanted[0] if wanted else next(iter(sorted(common, key=str)), None)


def _is_clean(group: ReplicaGroup, node: int | None) -> bool:
    return any(
        one.replica.node == node and one.standing.election is Election.CLEAN
        for one in group.choices
    )


def _cluster(places: Sequence[NodeDir]) -> str:
    """Return the command that prints the order; DIR stands for log dirs that were not given."""
    if any(inputs.kind_of(one.path) is not PathKind.LOG_DIR for one in places):
        return "logtool cluster DIR..."
    words = [shell.path(one.path) if one.node is None else f"{one.node}={shell.path(one.path)}"
             for one in places]  # fmt: skip
    return " ".join(["logtool cluster", *words])
