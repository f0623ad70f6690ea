"""The order of the start, and the commands that lose least.

A leader is chosen by what runs: while the best replica of a partition is the only one that is up,
no other can be elected. If it is not the one that the controllers kept in sync, a person requests
an unclean election, which takes a replica that is up. The others then start and cut their ends.
Source: ``kafka-leader-election.sh``, ``ReplicationControlManager.electLeader`` (Kafka 3.9, 4.3).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from logtool.actions import Action
from logtool.cluster.controllers import Controllers
from logtool.cluster.partitions import PartitionOutlook
from logtool.cluster.volumes import Volume
from logtool.disk import shell
from logtool.formats import names, wording
from logtool.formats.names import FileKind
from logtool.lazy_dataclass import dataclass
from logtool.metadata.image import DIRECTORY
from logtool.quorum import giving

MOST_SAVED = 20
"""Partitions whose cut records the steps save one by one; the others are counted."""
_AGAIN = (
    "run 'logtool cluster' again: what is still to be saved, and who should lead, depends on the "
    "logs that the steps above have filled"
)
_UNREAD = (
    "check the bytes of the logs below the recovery points: no start reads them, and the answers "
    "above do not rest on them. Fill what is damaged before the start"
)
_SERVER = "--bootstrap-server HOST:9092"


@dataclass(frozen=True, slots=True)
class Step:
    """One step for a person."""

    number: int
    text: str
    command: str | None = None
    """Command line for a shell; None if the step has none."""
    file_name: str | None = None
    """Name of a file that the command reads; None if it reads none."""
    file: str | None = None
    """Content of that file."""
    starts: tuple[int, ...] = ()
    """Nodes that the step starts."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A node that starts before other brokers, and the partitions that it shall lead."""

    node: int | None
    leads: tuple[PartitionOutlook, ...]
    gives_up: tuple[PartitionOutlook, ...]
    """Partitions of which it holds a replica that loses more than another one."""


def waves(partitions: Iterable[PartitionOutlook]) -> list[Wave]:
    """Return the nodes that start first, one after the other; empty if the order is no matter."""
    left = [one for one in partitions if one.is_disputed]
    found = []
    while left:
        nodes = sorted({leader.node for one in left for leader in one.leaders}, key=str)
        node = max(nodes, key=lambda node: _served(left, node))
        holding = [one for one in left if node in [leader.node for leader in one.leaders]]
        leads = tuple(one for one in holding if _is_best(one, node))
        gives_up = tuple(one for one in holding if not _is_best(one, node))
        found.append(Wave(node, leads, gives_up))
        left = [one for one in left if one not in holding]
    return found


def _is_best(one: PartitionOutlook, node: int | None) -> bool:
    best = one.best
    return best is not None and any(
        leader.node == node and leader.cost == best.cost for leader in one.leaders
    )


def _served(left: Sequence[PartitionOutlook], node: int | None) -> tuple[int, int]:
    """Return a key by which the node that is best for most partitions is the largest."""
    mine = [one for one in left if _is_best(one, node)]
    ends = [leader.log_end for one in mine for leader in one.leaders if leader.node == node]
    return len(mine), sum(ends)


def steps(
    volumes: Sequence[Volume],
    controllers: Controllers | None,
    refusals: Sequence[tuple[int | None, Action]],
    partitions: Sequence[PartitionOutlook],
    verify: str | None = None,
) -> list[Step]:
    """Return the steps in their order; `verify` reads the logs that neither we nor a start read.

    While replicas are to be filled, there is no step of the start: who leads, and what is then cut,
    depends on the logs after the fills.
    """
    order = waves(partitions)
    repairs = list(_repairs(partitions))
    saving = [] if repairs else list(_saving(partitions, order))
    made = [
        *_volumes(volumes, controllers),
        *repairs,
        *_refusals(refusals, volumes),
        *_quorum(controllers),
        *_strays(partitions, controllers),
        *saving,
        *([_draft(_AGAIN)] if repairs else []),
        *([_draft(_UNREAD, verify)] if verify and not repairs else []),
        *([] if repairs else _start(volumes, controllers, order)),
    ]
    if saving:
        text = "produce the saved records to their topics, as 'Produce a range again' shows"
        made.append(_draft(text, "logtool man recipes | man -l -"))
    return [replace(one, number=number) for number, one in enumerate(made, 1)]


def _draft(text: str, command: str | None = None, starts: Iterable[int] = ()) -> Step:
    return Step(0, text, command, starts=tuple(starts))


def _volumes(volumes: Sequence[Volume], controllers: Controllers | None) -> Iterator[Step]:
    for one in volumes:
        if one.status == "absent":
            where = f" (directory id {one.directory_id})" if one.directory_id else ""
            replicas = wording.count(one.partitions, "replica")
            yield _draft(f"find the volume of node {one.node}{where}, which has {replicas}")
        elif one.status == "ahead" and one.path and controllers and controllers.has_majority:
            # The name of a partition would make the current directory look like a log dir.
            log, away = one.path / DIRECTORY, f"node-{one.node}.metadata-log"
            source = controllers.leader.path
            text = f"give node {one.node} the metadata log of the controllers"
            yield _draft(
                f"{text}: {one.path} {one.detail}",
                f"mv {shell.path(log)} {shell.path(away)} && "
                f"cp -a {shell.path(source)} {shell.path(log)} && "
                f"rm {shell.path(log / FileKind.QUORUM_STATE.value)}",
            )
        elif one.double_of and one.path:
            yield _draft(
                f"do not start with {one.path}: it {one.detail}. Keep its logs until damage in "
                f"{one.double_of} is filled from them ('logtool recover --fill-from')",
                shell.join(["logtool", "diff", str(one.double_of), str(one.path)]),
            )
        elif one.is_wrong:
            why = one.detail or f"is {one.status}"
            yield _draft(f"do not start with {one.path}: it {why}")


def _repairs(partitions: Iterable[PartitionOutlook]) -> Iterator[Step]:
    """Yield the commands that fill replicas from other copies."""
    jobs = [(one, repair) for one in partitions for repair in one.repairs]
    for one, repair in jobs[:MOST_SAVED]:
        source: object = f"node {repair.source_node}"
        if repair.source_node == repair.node:
            source = repair.source.parent
        if repair.records:
            cut = wording.count(repair.records, "sound record")
            why = f"the start would cut {cut} behind damage"
        elif repair.missing:
            lost = wording.count(repair.missing, "offset")
            why = f"its log has lost {lost} between two segments, and no broker notices"
        else:
            known = wording.count(repair.offsets, "offset")
            why = f"its log has lost its end, and that copy has {known} of it"
        yield _draft(
            f"fill {one.topic}-{one.partition} of node {repair.node} from {source}: {why}",
            f"logtool recover --apply --fill-from {shell.path(repair.source)} "
            f"{shell.path(repair.path)}",
        )
    if len(jobs) > MOST_SAVED:
        more = wording.count(len(jobs) - MOST_SAVED, "more replica")
        yield _draft(f"fill {more} in the same way; the next run names them")


def _refusals(
    refusals: Sequence[tuple[int | None, Action]], volumes: Sequence[Volume]
) -> Iterator[Step]:
    for node, action in refusals:
        if action.action == "discard":
            yield _draft(f"before node {node} starts: {action.path} {action.reason}")
            continue
        places = [one.path for one in volumes if one.path]
        homes = [one for one in places if one in (action.path, *action.path.parents)]
        if node is not None:
            homes = [one.path for one in volumes if one.node == node and one.path] or homes
        yield _draft(
            f"node {node} does not start: {action.path}: {action.reason}",
            shell.join(["logtool", "doctor", *map(str, homes)]),
        )


def _quorum(controllers: Controllers | None) -> Iterator[Step]:
    if controllers is None:
        yield _draft(
            "give the volume of a controller too: without a metadata log it is not known what the "
            "brokers should hold"
        )
    elif controllers.has_majority is None:
        yield _draft(
            "name the voters with --broker-config: no copy of the metadata log names them",
            controllers.command,
        )
    elif not controllers.has_majority:
        missing = ", ".join(map(str, controllers.quorum.missing_nodes))
        if copying := controllers.quorum.copying:
            more = wording.count(controllers.behind, "offset")
            yield _draft(
                f"if the voters {missing} are lost, give a controller the metadata log of node "
                f"{controllers.quorum.keep.node}, which has {more} more",
                copying,
            )
        yield _draft(
            f"no controller can be elected without the voters {missing}: find them, or give the "
            "remaining copy other voters",
            controllers.quorum.command or controllers.command,
        )
    elif controllers.quorum.voters_are_behind:
        yield from _giving(controllers)
    elif controllers.quorum.is_grave:
        yield _draft("look at the copies of the metadata log first", controllers.command)


def _giving(controllers: Controllers) -> Iterator[Step]:
    """Yield the commands that give the metadata log of a broker to the voters that lack it."""
    quorum = controllers.quorum
    kinds = ", ".join(f"{one.count:,} {one.record}" for one in quorum.unvoted)
    lost = "; ".join(giving.described(giving.losses(quorum)))
    for number, one in enumerate(quorum.lacking):
        span = wording.offsets(one.first_offset, one.last_offset)
        why = (
            f"it lacks {span} too"
            if number
            else f"no given voter has {kinds}. If these controllers start without it, this is "
            f"lost: {lost or 'nothing that the topics and settings show'}"
        )
        yield _draft(
            f"give node {one.copy.node} the metadata log of node {quorum.keep.label}, which does "
            f"not vote, before any node starts: {why}",
            one.command,
        )
    yield _draft("run 'logtool cluster' again: the steps below are those without the copies above")


def _strays(
    partitions: Iterable[PartitionOutlook], controllers: Controllers | None
) -> Iterator[Step]:
    """Yield a step if copies become strays, because the metadata log does not have them.

    A topic that was made again, or a copy without a topic id, is no sign of an old metadata log.
    """
    if controllers is None or controllers.quorum.lacking:
        return
    count = sum(len(one.strays) for one in partitions if one.topic_id is None)
    if count:
        yield _draft(
            f"look for a metadata log that has {wording.count(count, 'partition dir')}: with the "
            f"one of node {controllers.leader.node} they get names that end in -stray",
            controllers.command,
        )


def _saving(partitions: Sequence[PartitionOutlook], order: Sequence[Wave]) -> Iterator[Step]:
    """Yield the commands that save what even the chosen leaders cut.

    Clients cannot produce to internal topics, so that their records are not saved.
    """
    chosen = {id(one): wave.node for wave in order for one in (*wave.leads, *wave.gives_up)}
    jobs: list[tuple[PartitionOutlook, Path, Path, int | None, int]] = []
    for one in partitions:
        if one.topic in names.INTERNAL_TOPICS:
            continue
        node = chosen.get(id(one), one.best_node)
        for leader in [it for it in one.leaders if it.node == node][:1]:
            jobs += [(one, cut.path, leader.path, cut.node, cut.offsets) for cut in leader.cuts]
    for one, old, new, number, offsets in jobs[:MOST_SAVED]:
        name = f"{one.topic}-{one.partition}.node-{number}.ndjson"
        yield _draft(
            f"save the records of {one.topic}-{one.partition} that node {number} cuts: up to "
            f"{wording.count(offsets, 'offset')}",
            f"logtool dump --missing-in {shell.path(new)} --values base64 -f ndjson "
            f"{shell.path(old)} > {shell.path(name)}",
        )
    if len(jobs) > MOST_SAVED:
        more = wording.count(len(jobs) - MOST_SAVED, "more copy", "more copies")
        yield _draft(f"save what {more} cut in the same way; see the partitions above")


def _start(
    volumes: Sequence[Volume], controllers: Controllers | None, order: Sequence[Wave]
) -> Iterator[Step]:
    if controllers and controllers.may_win and not controllers.is_sure:
        others = controllers.quorum.majority or 1
        first, *longest = controllers.nodes
        voters = [one for one in controllers.voters if one != first]
        behind = [one for one in voters if one not in longest] + longest
        named = ", ".join(str(one) for one in (first, *behind[: others - 1]))
        yield _draft(
            f"start the controllers {named} alone first: then node {first} is elected, whose "
            "metadata log is the longest; then start the other controllers"
            f"{_if_not(volumes, first)}",
            starts=(one for one in (first, *behind) if one is not None),
        )
    elif controllers and controllers.may_win and order:
        named = ", ".join(map(str, controllers.voters))
        yield _draft(f"start the controllers: {named}", starts=controllers.voters)
    holding = [one.node for one in volumes if one.path and one.partitions]
    brokers = sorted({node for node in holding if node is not None})
    for number, wave in enumerate(order, 1):
        later = [one for one in brokers if one not in [it.node for it in order[:number]]]
        stopped = ", ".join(map(str, later))
        but = f", and keep {stopped} stopped" if later else ""
        count = wording.count(len(wave.leads), "partition")
        lost = (
            f"; {wording.count(len(wave.gives_up), 'partition loses', 'partitions lose')} with it "
            "what another node has"
            if wave.gives_up
            else ""
        )
        yield _draft(
            f"start broker {wave.node}{but}: as the leader, broker {wave.node} loses least in "
            f"{count}{lost}. Wait until the "
            "sessions of the other brokers have ended (broker.session.timeout.ms), and look which "
            "partitions have no leader",
            f"kafka-topics.sh {_SERVER} --describe --unavailable-partitions",
            starts=() if wave.node is None else (wave.node,),
        )
        name = f"election-{number}.json"
        yield Step(
            number=0,
            text=f"elect node {wave.node} where it does not lead yet",
            command=f"kafka-leader-election.sh {_SERVER} --election-type unclean "
            f"--path-to-json-file {name}",
            file_name=name,
            file=_election(wave.leads),
        )
    first_nodes = {it.node for it in order}
    rest = [one for one in brokers if one not in first_nodes]
    named = ", ".join(map(str, rest))
    if rest and order:
        yield _draft(f"start the other brokers: {named}", starts=rest)
    elif rest and controllers and controllers.may_win and not controllers.is_sure:
        yield _draft(f"start the brokers {named}, in any order", starts=rest)
    elif rest:
        yield _draft(
            f"start the controllers, then the brokers {named}, in any order",
            starts=(*(controllers.voters if controllers else ()), *rest),
        )


def _if_not(volumes: Sequence[Volume], first: int | None) -> str:
    """Return which nodes are ahead if another controller is elected."""
    ahead = {one.node for one in volumes for it in one.ahead_of if it != first}
    named = ", ".join(sorted(map(str, ahead)))
    return f". If another one is elected, nodes are ahead: {named}" if ahead else ""


def _election(leads: Sequence[PartitionOutlook]) -> str:
    """Return the file for ``kafka-leader-election.sh --path-to-json-file``."""
    named = [{"topic": one.topic, "partition": one.partition} for one in leads]
    return json.dumps({"partitions": named})
