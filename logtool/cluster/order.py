"""The order of the start: the nodes that start first, the elections, and the new disks.

A leader is chosen by what runs: while the best replica of a partition is the only one that is up,
no other can be elected. If it is not the one that the controllers kept in sync, an operator
requests an unclean election, which takes a replica that is up. The others then start and cut their
ends. A node that is controller and broker in one process starts with the controllers. A node with a
new disk makes empty logs, and may lead with them, so that the elections come before it starts. A
voter without a metadata log starts last: as a new voter if the metadata log has the voters.
Source: ``kafka-leader-election.sh``, ``ReplicationControlManager.electLeader`` (Kafka 3.9, 4.3),
``kafka-storage.sh``, ``kafka-metadata-quorum.sh`` (Kafka 4.3).
"""

import json
from collections.abc import Iterable, Iterator, Sequence, Set

from logtool.cluster.controllers import Controllers
from logtool.cluster.partitions import PartitionOutlook
from logtool.cluster.volumes import Volume
from logtool.formats import wording
from logtool.lazy_dataclass import dataclass

_SERVER = "--bootstrap-server HOST:9092"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One step for an operator."""

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
    """A node that starts before other brokers, and the partitions that it should lead."""

    node: int | None
    leads: tuple[PartitionOutlook, ...]
    gives_up: tuple[PartitionOutlook, ...]
    """Partitions of which it holds a replica that loses more than another one."""


def waves(partitions: Iterable[PartitionOutlook]) -> list[Wave]:
    """Return the nodes that start first, one after the other; empty if any order will do.

    A partition of which an absent volume may hold a longer copy waits for that volume.
    """
    left = [one for one in partitions if one.is_disputed and not one.is_held_back]
    found = []
    while left:
        nodes = {leader.node for one in left for leader in one.leaders} - {None}
        if not nodes:
            break
        node = max(sorted(nodes, key=str), key=lambda node: _served(left, node))
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


def _served(left: Sequence[PartitionOutlook], node: int | None) -> tuple[bool, int, int, int]:
    """Return a key by which the node that is best for most partitions is the largest.

    A node that would lead others with an empty log comes later: they then cut all they have.
    """
    mine = [one for one in left if _is_best(one, node)]
    ends = [leader.log_end for one in mine for leader in one.leaders if leader.node == node]
    return bool(mine), -len(_empty_on(left, node)), len(mine), sum(ends)


def _empty_on(found: Iterable[PartitionOutlook], node: int | None) -> list[PartitionOutlook]:
    """Return the partitions that a node may lead with an empty log, though another has records."""
    return [
        one
        for one in found
        if not _is_best(one, node)
        and any(it.node == node and it.is_new and it.may_be_elected for it in one.leaders)
    ]


def draft(text: str, command: str | None = None, starts: Iterable[int] = ()) -> Step:
    """Return a step without its number."""
    return Step(0, text, command, starts=tuple(starts))


def start(
    volumes: Sequence[Volume],
    controllers: Controllers | None,
    order: Sequence[Wave],
    partitions: Iterable[PartitionOutlook],
) -> Iterator[Step]:
    """Yield the steps of the start; new disks are formatted before their nodes start."""
    waiting = [one for one in volumes if one.status == "empty" and one.node is not None]
    if (controllers is None and waiting) or (controllers and not controllers.may_win):
        yield draft("run 'logtool cluster' again once a controller can be elected")
        return
    lost = _lost_voters(volumes, controllers)
    formatted: set[int | None] = set()
    for one in _starts(volumes, controllers, order, lost, _short(volumes, partitions)):
        for node in one.starts:
            disks = [it for it in waiting if it.node == node]
            if disks and node not in formatted:
                formatted.add(node)
                yield _formatting(node, disks, controllers)
        yield one
    for node in lost:
        if controllers:
            disks = [one for one in waiting if one.node == node]
            yield from _new_voter(node, disks, controllers)


def _short(volumes: Sequence[Volume], partitions: Iterable[PartitionOutlook]) -> set[int | None]:
    """Return the nodes that lack a volume, and would make empty logs in its place.

    They may lead with these, though the volume holds records.
    """
    absent = {one.node for one in volumes if one.status == "absent" and one.partitions}
    return absent | {
        leader.node
        for one in partitions
        if one.may_be_longer
        for leader in one.leaders
        if leader.is_new and leader.may_be_elected
    }


def _lost_voters(volumes: Sequence[Volume], controllers: Controllers | None) -> list[int]:
    """Return the voters that have a new disk in place of their metadata log."""
    missing = controllers.quorum.missing_nodes if controllers else ()
    new = {one.node for one in volumes if one.status == "empty"}
    return [one for one in missing if one in new]


def _formatting(node: int, disks: Sequence[Volume], controllers: Controllers | None) -> Step:
    named = ", ".join(str(one.path) for one in disks)
    return draft(
        f"format {named} of node {node}, not before the steps above: the node does not start "
        "without it, and begins with empty logs there. Its other log dirs stay as they are",
        _format_command(disks[0], controllers),
    )


def _format_command(disk: Volume, controllers: Controllers | None) -> str:
    words = ["kafka-storage.sh format -t", disk.cluster_id or "CLUSTER_ID"]
    words.append(f"-c node-{disk.node}.properties --ignore-formatted")
    if controllers and controllers.quorum.keep.kraft_version > 0:
        words.append("--no-initial-controllers")
    return " ".join(words)


def _new_voter(node: int, disks: Sequence[Volume], controllers: Controllers) -> Iterator[Step]:
    """Yield the steps that bring back a voter which has lost its metadata log."""
    named = ", ".join(str(one.path) for one in disks)
    is_dynamic = controllers.quorum.keep.kraft_version > 0
    why = (
        ", with a new directory id. With its old directory id it would vote with an empty log, and "
        "may elect a controller that lacks records. Then start the node"
        if is_dynamic
        else ", and start the node"
    )
    yield draft(
        f"when the other nodes serve: format {named} of node {node}, which has lost its metadata "
        f"log{why}",
        _format_command(disks[0], controllers),
        starts=(node,),
    )
    old = next((it for it in controllers.quorum.missing if it.node == node), None)
    if is_dynamic and old and old.directory_id:
        tool = f"kafka-metadata-quorum.sh {_SERVER}"
        yield draft(
            f"remove node {node} with its old directory id from the voters",
            f"{tool} remove-controller --controller-id {node} "
            f"--controller-directory-id {old.directory_id}",
        )
        yield draft(
            f"add node {node} with its new directory id to the voters",
            f"kafka-metadata-quorum.sh --command-config node-{node}.properties {_SERVER} "
            "add-controller",
        )


def _starts(
    volumes: Sequence[Volume],
    controllers: Controllers | None,
    order: Sequence[Wave],
    lost: Sequence[int],
    short: Set[int | None],
) -> Iterator[Step]:
    voters = [one for one in (controllers.voters if controllers else ()) if one not in lost]
    image = controllers.image if controllers else None
    both = [one for one in voters if image and one in image.brokers]
    if barred := [one for one in both if one in short]:
        yield draft(
            f"start nothing before the volumes above are there: {_those('node', barred)} starts "
            "with the controllers, and without these volumes may lead with empty logs"
        )
        return
    is_open = controllers is not None and controllers.may_win and not controllers.is_sure
    if controllers and is_open:
        yield _longest_first(volumes, controllers, voters, both)
    elif controllers and controllers.may_win and order:
        yield draft(f"start {_those('controller', voters)}{_of_both(both)}", starts=voters)
    holding = [one for one in volumes if one.path and (one.partitions or one.status == "empty")]
    nodes = {one.node for one in holding if one.node is not None} - {*lost, *both}
    for number, wave in enumerate(order, 1):
        if wave.node in short:
            continue
        later = [one for one in sorted(nodes) if one not in [it.node for it in order[:number]]]
        yield from _wave(number, wave, later, both)
    left = sorted(nodes - short - {it.node for it in order})
    if left and order:
        yield draft(f"start the others: {_those('broker', left)}", starts=left)
    elif left and is_open:
        yield draft(f"start {_any_order('broker', left)}", starts=left)
    elif left:
        first_ones = _those("controller", voters) if voters else "a controller"
        yield draft(
            f"start {first_ones}{_of_both(both)}; then {_any_order('broker', left)}",
            starts=(*voters, *left),
        )
    elif both and not order and controllers and controllers.is_sure:
        yield draft(f"start {_any_order('node', voters)}", starts=voters)
    if stopped := sorted(nodes & short):
        yield draft(
            f"keep {_those('broker', stopped)} stopped until the volumes above are there"
            ": without them they make empty logs, and may lead with them"
        )


def _longest_first(
    volumes: Sequence[Volume],
    controllers: Controllers,
    voters: Sequence[int],
    both: Sequence[int],
) -> Step:
    """Return the step that gets the controller with the longest metadata log elected."""
    first, *longest = controllers.nodes
    rest = [one for one in voters if one != first]
    behind = [one for one in rest if one not in longest] + longest
    others = (controllers.quorum.majority or 1) - 1
    named = ", ".join(str(one) for one in (first, *behind[:others]))
    return draft(
        f"start the controllers {named} alone first: then node {first} is elected, whose "
        "metadata log is the longest; then start the other controllers"
        f"{_if_not(volumes, first)}{_of_both(both)}",
        starts=(one for one in (first, *behind) if one is not None),
    )


def _of_both(both: Sequence[int]) -> str:
    with_them = "with which, in the same process, starts"
    return f", {with_them} {_those('broker', both)}" if both else ""


def _those(word: str, nodes: Iterable[object]) -> str:
    """Return the word for nodes with their ids: ``broker 1``, or ``brokers 1, 2``."""
    named = [str(one) for one in nodes]
    return f"{word if len(named) == 1 else f'{word}s'} {', '.join(named)}"


def _any_order(word: str, nodes: Sequence[object]) -> str:
    """Return the word for nodes with their ids; several may start in any order."""
    return _those(word, nodes) + (", in any order" if len(nodes) > 1 else "")


def _wave(number: int, wave: Wave, later: Sequence[int], both: Sequence[int]) -> Iterator[Step]:
    """Yield the start of a node that is the best leader, and the election."""
    node, stopped = wave.node, ", ".join(map(str, later))
    count = wording.count(len(wave.leads), "partition")
    begin = f"start broker {node}"
    if node in both:
        begin = f"wait until broker {node} is up, which started with the controllers"
    parts = [begin]
    if later:
        parts[0] += f", and keep {stopped} stopped"
    parts[0] += f": as the leader, broker {node} loses least in {count}"
    if wave.gives_up:
        lost = wording.count(len(wave.gives_up), "partition loses", "partitions lose")
        parts[0] += f"; {lost} with it what another node has"
    for one in later:
        if empty := _empty_on(wave.leads, one):
            parts.append(
                f"Broker {one} must not start before the election: it may lead {named_in(empty)} "
                "with an empty log, and the others would cut all they have"
            )
    for one in both:
        if one != node and (led := [it for it in wave.leads if _leads_badly(it, one)]):
            parts.append(
                f"Broker {one} is a controller too and cannot stay stopped: it may lead "
                f"{named_in(led)} before broker {node}, unless it starts with "
                "process.roles=controller until the election"
            )
    parts.append(
        "Wait until the sessions of the other brokers have ended (broker.session.timeout.ms), and "
        "check which partitions have no leader"
    )
    yield draft(
        ". ".join(parts),
        f"kafka-topics.sh {_SERVER} --describe --unavailable-partitions",
        starts=() if node is None or node in both else (node,),
    )
    elected = [one for one in wave.leads if not one.may_be_longer]
    if elected:
        name = f"election-{number}.json"
        yield Step(
            number=0,
            text=f"elect node {node} where it does not lead yet",
            command=f"kafka-leader-election.sh {_SERVER} --election-type unclean "
            f"--path-to-json-file {name}",
            file_name=name,
            file=_election(elected),
        )


def _leads_badly(one: PartitionOutlook, node: int) -> bool:
    best = one.best
    return best is not None and any(
        it.node == node and it.may_be_elected and it.cost > best.cost for it in one.leaders
    )


def named_in(found: Sequence[PartitionOutlook]) -> str:
    """Return the first partitions by name, and the number of the others."""
    named = ", ".join(f"{one.topic}-{one.partition}" for one in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{named}{more}"


def _if_not(volumes: Sequence[Volume], first: int | None) -> str:
    """Return which nodes are ahead if another controller is elected."""
    ahead = {one.node for one in volumes for it in one.ahead_of if it != first}
    named = ", ".join(sorted(map(str, ahead)))
    return f". If another one is elected, nodes are ahead: {named}" if ahead else ""


def _election(leads: Sequence[PartitionOutlook]) -> str:
    """Return the file for ``kafka-leader-election.sh --path-to-json-file``."""
    named = [{"topic": one.topic, "partition": one.partition} for one in leads]
    return json.dumps({"partitions": named})
