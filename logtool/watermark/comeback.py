"""The leaders that controllers may elect while the brokers of a partition come back.

A controller that becomes active gives every broker a new session. A broker cannot register before
its old session has ended, and then one of two things comes first: the controller fences the broker,
or the broker registers. Which of them, and in what order for several brokers, is a race. A broker
counts as active until it is fenced or registers, so that one whose process has not started yet may
be elected in the meantime. `leaders_after` tries every order.

Without eligible leader replicas (ELR) the last member of the ISR stays in it. With them it does
not, and a broker that registers after an unclean stop leaves both the ISR and the ELR.
Source: ``ReplicationControlManager.maybeFenceOneStaleBroker``, ``handleBrokerShutdown``,
``handleBrokerUnfenced``, ``PartitionChangeBuilder.build``, ``ClusterControlManager.registerBroker``
(Kafka 4.3.1).
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from logtool.formats.messages.cluster_metadata import NO_LEADER, PartitionRecord
from logtool.lazy_dataclass import dataclass


class _Phase(IntEnum):
    """The state of one broker, as the active controller sees it."""

    OLD = 0
    """Active by its registration of before the start."""
    FENCED = 1
    REGISTERED = 2
    """Registered again, and fenced until it has caught up."""
    ACTIVE = 3


@dataclass(frozen=True, slots=True)
class Start:
    """One partition before a start of its cluster, and the brokers that take part."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: frozenset[int]
    last_known: tuple[int, ...]
    """Last known leader: one node, or none."""
    leader: int
    least_in_sync: int
    has_elr: bool
    coming: frozenset[int]
    """Nodes that start."""
    unclean: frozenset[int]
    """Nodes whose last stop was unclean."""
    fenced: frozenset[int]
    """Nodes that are fenced in the metadata log, or not registered."""


@dataclass(frozen=True, slots=True)
class _State:
    isr: tuple[int, ...]
    elr: frozenset[int]
    last_known: tuple[int, ...]
    leader: int
    phases: tuple[tuple[int, _Phase], ...]


def leaders_after(
    state: PartitionRecord,
    least_in_sync: int,
    *,
    has_elr: bool,
    coming: frozenset[int],
    unclean: frozenset[int],
    fenced: frozenset[int] = frozenset(),
) -> frozenset[int]:
    """Return the nodes that lead a partition in one of the orders; `NO_LEADER` if none may lead.

    `coming` are the nodes that start, `unclean` those whose last stop was unclean, `fenced` those
    that are fenced in the metadata log. Unclean elections are not counted, except that of the last
    known leader, which needs no setting.
    """
    members = frozenset((*state.isr, *state.elr, *state.last_known_elr))
    return _leaders_after(
        Start(
            replicas=tuple(one for one in state.replicas if one in members),
            isr=state.isr,
            elr=frozenset(state.elr),
            last_known=state.last_known_elr,
            leader=state.leader,
            least_in_sync=least_in_sync,
            has_elr=has_elr,
            coming=coming & members,
            unclean=unclean & members,
            fenced=fenced & members,
        )
    )


@lru_cache(maxsize=4096)
def _leaders_after(start: Start) -> frozenset[int]:
    # A member that was active would lead.
    first = [
        (node, _Phase.FENCED if start.leader < 0 or node in start.fenced else _Phase.OLD)
        for node in start.replicas
    ]
    begin = _State(start.isr, start.elr, start.last_known, start.leader, tuple(first))
    found: set[int] = set()
    seen, waiting = {begin}, [begin]
    while waiting:
        state = waiting.pop()
        after = [*_next(start, state)]
        if not after:
            found.add(state.leader)
        fresh = {*after} - seen
        seen |= fresh
        waiting += fresh
    return frozenset(found)


def _next(start: Start, state: _State) -> Iterator[_State]:
    """Yield the states after each event that may come next; none at the end of the start."""
    for node, phase in state.phases:
        without = tuple(one for one in state.isr if one != node)
        if phase is _Phase.OLD:
            fenced = _set(state, node, _Phase.FENCED)
            yield _changed(start, fenced, without) if node in state.isr else fenced
        if phase in (_Phase.OLD, _Phase.FENCED) and node in start.coming:
            registered = _set(state, node, _Phase.REGISTERED)
            is_unclean = start.has_elr and node in start.unclean
            if node in state.isr or (is_unclean and node in state.elr):
                registered = _changed(start, registered, without, node if is_unclean else None)
            yield registered
        if phase is _Phase.REGISTERED:
            unfenced = _set(state, node, _Phase.ACTIVE)
            yield _changed(start, unfenced, state.isr) if state.leader < 0 else unfenced


def _set(state: _State, node: int, phase: _Phase) -> _State:
    phases = tuple((one, phase if one == node else old) for one, old in state.phases)
    return _State(state.isr, state.elr, state.last_known, state.leader, phases)


def _changed(
    start: Start, state: _State, isr: tuple[int, ...], unclean: int | None = None
) -> _State:
    """Return a state after a change of its ISR, with the election that follows."""
    active = {node for node, phase in state.phases if phase in (_Phase.OLD, _Phase.ACTIVE)}
    elr = state.elr
    if start.has_elr:
        is_enough = len(isr) >= start.least_in_sync
        elr = frozenset() if is_enough else (elr | {*state.isr}) - {*isr} - {unclean}
    valid = active & ({*isr} or elr)
    leader, last_known = NO_LEADER, state.last_known
    if valid:
        leader = state.leader if state.leader in valid else _first(start, valid)
        if leader != state.leader and leader in elr:
            isr, elr = (leader,), elr - {leader}
    elif start.has_elr and not isr and not elr and len(last_known) == 1 and {*last_known} <= active:
        (leader,) = isr = last_known
    if leader != state.leader:
        if leader >= 0:
            last_known = ()
        elif not last_known:
            last_known = (state.leader,)
    return _State(isr if isr or start.has_elr else state.isr, elr, last_known, leader, state.phases)


def _first(start: Start, valid: set[int]) -> int:
    return next(node for node in start.replicas if node in valid)
