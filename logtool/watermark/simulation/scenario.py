"""Scenarios of replication: read from TOML, and played event by event.

A scenario says who the replicas are, who leads first, and what happens::

    title = "One record"
    truncation = "leader-epoch"        # or "high-watermark"
    replicas = [1, 2]
    leader = 1
    replica_lag_time_max_ms = 30000
    min_insync_replicas = 1
    checkpoint_high_watermarks = true  # false: only by the event `checkpoint`
    start = [                          # without it, all logs are empty
      { replica = 1, log_end_offset = 15, high_watermark = 8 },
      { replica = 2, log_end_offset = 10, high_watermark = 8, remote_log_end_offset = 8 },
    ]
    events = [
      { produce = ["m0", "m1"] },
      { produce = ["m2"], acks = "all" },            # "0", "1" or "all"
      { produce = ["m3"], transaction = "t" },       # which it begins, if it is not open
      { commit = "t" },                # or abort: the marker
      { fetch = 2, most = 1 },         # records; without it, all that there are
      { fetch = 2, response = "lost" },
      { wait = 30001 },                # milliseconds
      { checkpoint = 2 },
      { crash = 1, unflushed = 1 },    # records that had not reached the disk
      { notice = 1 },                  # the controller takes it out of sync, and elects another
      { restart = 1 },
      { elect = 2, unclean = true },   # a replica that is not in sync
    ]

Only ``replicas``, ``leader`` and ``events`` must be there.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from logtool.errors import UsageError
from logtool.lazy_dataclass import dataclass
from logtool.watermark.simulation import consumer
from logtool.watermark.simulation.node import SimulatedNode, SimulatedRecord
from logtool.watermark.simulation.producer import Acks, Request
from logtool.watermark.simulation.state_machine import (
    DEFAULT_LAG_MS,
    ImpossibleError,
    Replication,
    SubStep,
    TruncationRule,
)

_SETTINGS: dict[str, type] = {
    "title": str, "about": str, "truncation": str, "replicas": list, "leader": int,
    "replica_lag_time_max_ms": int, "min_insync_replicas": int, "checkpoint_high_watermarks": bool,
    "start": list, "events": list,
}  # fmt: skip
_EVENTS: dict[str, tuple[type, dict[str, type]]] = {
    "produce": (list, {"acks": str, "transaction": str}),
    "commit": (str, {}),
    "abort": (str, {}),
    "fetch": (int, {"response": str, "most": int}),
    "crash": (int, {"unflushed": int}),
    "restart": (int, {}),
    "notice": (int, {}),
    "elect": (int, {"unclean": bool}),
    "wait": (int, {}),
    "checkpoint": (int, {}),
}
"""Type of the value of each event, and of its options."""
_ACKS = tuple(map(str, Acks))
_START: dict[str, type] = {
    "replica": int, "log_end_offset": int, "high_watermark": int, "remote_log_end_offset": int,
}  # fmt: skip
_LONGEST = 10_000
"""Records with which a log begins."""
_TIMED = ("produce", "commit", "abort", "wait")
"""Events that are not those of a replica."""


@dataclass(frozen=True, slots=True)
class ScenarioEvent:
    """One thing that happens."""

    name: str
    value: Any
    """Names of records or of a transaction, milliseconds or a node id."""
    options: Mapping[str, Any]

    def __str__(self) -> str:
        value = " ".join(self.value) if isinstance(self.value, list) else str(self.value)
        options = (
            name if given is True else f"{name} {given}" for name, given in self.options.items()
        )
        return ", ".join([f"{self.name} {value}", *options])


@dataclass(frozen=True, slots=True)
class Scenario:
    """Scenario to play."""

    title: str
    about: str
    start: Callable[[TruncationRule | None], Replication]
    """Makes the replicas; a rule that is given wins over that of the scenario."""
    events: tuple[ScenarioEvent, ...]


@dataclass(frozen=True, slots=True)
class NumberedSubStep:
    """One thing that is done for an event, and its place among these."""

    step: int
    event: str
    number: int
    done: SubStep

    @property
    def records(self) -> str:
        """Return the names of the records that are written or sent."""
        return " ".join(self.done.records)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """One replica behind one event."""

    step: int
    event: str
    time_ms: int
    node: int
    role: str
    """``leader``, ``follower`` or ``down``."""
    leader_epoch: int | None
    log_end_offset: int
    remote_log_end_offset: int | None
    """Log end offset that the leader knows; None for the leader itself, and if it is unknown."""
    high_watermark: int
    last_stable_offset: int
    in_sync: bool
    looked_at: str | None
    """Occasion on which the leader looked at its high watermark; None for other replicas."""
    answers: str
    """Answers of this step, given by the leader only."""
    records: str
    """Names of the records in the log."""
    read_uncommitted: str | None
    """Names of the records that such a consumer gets; None if the replica serves no consumer."""
    read_committed: str | None


@dataclass(frozen=True, slots=True)
class DecidedRequest:
    """A produce request whose answer an event decided."""

    step: int
    event: str
    request: Request


@dataclass(frozen=True, slots=True)
class Divergence:
    """A follower that holds other records than the leader."""

    node: int
    from_offset: int


@dataclass(frozen=True, slots=True)
class SimulationVerdict:
    """The result of a simulation."""

    truncation: TruncationRule
    committed_offset: int
    lost_offsets: list[int]
    """Offsets of committed records that the leader does not have."""
    acknowledged_lost: list[str]
    """Names of records likewise that were acknowledged."""
    waiting: list[str]
    """Names of the records of each produce request without an answer."""
    diverged: list[Divergence]

    @property
    def is_bad(self) -> bool:
        """Return whether records are lost or logs differ."""
        return bool(self.lost_offsets or self.acknowledged_lost or self.diverged)


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """The replicas behind one event, the first step being their start."""

    number: int
    event: str
    replicas: Replication
    """The machine itself, which goes on with the next step."""
    occasion: str | None
    """On which the leader looked at its high watermark; no event makes it look twice."""
    trace: tuple[SubStep, ...] = ()
    """Actions done for the event, in order."""
    answered: tuple[Request, ...] = ()
    """Produce requests whose answer this event decided."""

    def sub_steps(self) -> Iterator[NumberedSubStep]:
        """Yield each thing that was done for the event, in order."""
        for number, one in enumerate(self.trace, 1):
            yield NumberedSubStep(self.number, self.event, number, one)

    def states(self) -> Iterator[ReplicaState]:
        """Yield each replica as it is now."""
        all_of_them = self.replicas
        for number, node in all_of_them.nodes.items():
            remote = all_of_them.remote.get(number)
            leads = number == all_of_them.leader
            serves = leads and node.up
            yield ReplicaState(
                step=self.number,
                event=self.event,
                time_ms=all_of_them.now_ms,
                node=number,
                role="down" if not node.up else "leader" if leads else "follower",
                leader_epoch=node.epochs.rows[-1][0] if node.epochs.rows else None,
                log_end_offset=node.log_end,
                remote_log_end_offset=remote.log_end if remote and not leads else None,
                high_watermark=node.high_watermark,
                last_stable_offset=consumer.last_stable_offset(node.log, node.high_watermark),
                in_sync=number in all_of_them.in_sync,
                looked_at=self.occasion if leads else None,
                answers="; ".join(map(str, self.answered)) if leads else "",
                records=" ".join(record.name for record in node.log),
                read_uncommitted=_seen(consumer.read_uncommitted, node) if serves else None,
                read_committed=_seen(consumer.read_committed, node) if serves else None,
            )

    def answers(self) -> Iterator[DecidedRequest]:
        """Yield each request whose producer gets an answer in this step, or never will."""
        for request in self.answered:
            yield DecidedRequest(self.number, self.event, request)


def _seen(view: Callable[[Sequence[SimulatedRecord], int], list[str]], node: SimulatedNode) -> str:
    return " ".join(view(node.log, node.high_watermark))


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the program."""
    folder = files("logtool.watermark.simulation") / "scenarios"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if ".toml" in p.name)


def read(name: str) -> Scenario:
    """Read a file, or a scenario that comes with the program; UsageError for anything else."""
    try:
        if name in shipped():
            text = (files("logtool.watermark.simulation") / "scenarios" / f"{name}.toml").read_text(
                "utf-8"
            )
        else:
            text = Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{name}: {reason}; there are {', '.join(shipped())}") from error
    try:
        return parse(text)
    except (UsageError, ValueError, RecursionError) as error:  # too long numbers, deep nesting
        raise UsageError(f"{name}: {error}") from error


def parse(text: str) -> Scenario:
    """Return the scenario that TOML describes; UsageError where it makes no sense."""
    given = tomllib.loads(text)
    _check(given, _SETTINGS, "")
    missing = [name for name in ("replicas", "leader", "events") if name not in given]
    nodes = given.get("replicas", [])
    if missing:
        raise UsageError(f"{missing[0]} is missing")
    if not all(type(node) is int for node in nodes) or len(set(nodes)) < len(nodes):
        raise UsageError("replicas are not different numbers")
    if given["leader"] not in nodes:
        raise UsageError(f"leader {given['leader']} is not one of the replicas")
    rules = [str(rule) for rule in TruncationRule]
    chosen = given.get("truncation", TruncationRule.LEADER_EPOCH)
    if chosen not in rules:
        raise UsageError(f"truncation is {chosen!r}, expected {' or '.join(rules)}")
    events = tuple(_event(number, event, nodes) for number, event in enumerate(given["events"], 1))

    begin = _start(given["start"], nodes) if "start" in given else None

    def start(rule: TruncationRule | None) -> Replication:
        made = Replication(
            nodes,
            given["leader"],
            rule=rule or TruncationRule(chosen),
            lag_ms=given.get("replica_lag_time_max_ms", DEFAULT_LAG_MS),
            min_in_sync=given.get("min_insync_replicas", 1),
            checkpoints=given.get("checkpoint_high_watermarks", True),
        )
        if begin:
            made.begin_with(begin)
        return made

    return Scenario(
        title=given.get("title", ""),
        about=given.get("about", "").strip(),
        start=start,
        events=events,
    )


def play(scenario: Scenario, rule: TruncationRule | None = None) -> Iterator[ScenarioStep]:
    """Yield the start and what each event makes of it; UsageError for one that cannot happen."""
    replicas = scenario.start(rule)
    yield ScenarioStep(number=0, event="start", replicas=replicas, occasion=None)
    done = len(replicas.trace)
    for number, event in enumerate(scenario.events, 1):
        seen = len(replicas.tries)
        open_before = [one for one in replicas.requests if one.answer is None]
        known = len(replicas.requests)
        try:
            happen(replicas, event)
        except ImpossibleError as error:
            raise UsageError(f"event {number}, {event}: {error}") from error
        occasion = next((str(occasion) for occasion, *_ in replicas.tries[seen:]), None)
        trace, done = tuple(replicas.trace[done:]), len(replicas.trace)
        asked = (*open_before, *replicas.requests[known:])
        yield ScenarioStep(
            number=number,
            event=str(event),
            replicas=replicas,
            occasion=occasion,
            trace=trace,
            answered=tuple(one for one in asked if one.answer is not None),
        )


def happen(replicas: Replication, event: ScenarioEvent) -> None:
    """Let one event happen; ImpossibleError where it cannot."""
    options = dict(event.options)
    if event.name == "fetch":
        options["answered"] = options.pop("response", "arrives") != "lost"
    if "acks" in options:
        options["acks"] = Acks(options["acks"])
    getattr(replicas, event.name)(event.value, **options)


def verdict(replicas: Replication) -> SimulationVerdict:
    """Return the result of the simulated replication."""
    return SimulationVerdict(
        truncation=replicas.rule,
        committed_offset=len(replicas.committed),
        lost_offsets=replicas.lost(),
        acknowledged_lost=replicas.acknowledged_lost(),
        waiting=[one.names for one in replicas.requests if one.answer is None],
        diverged=[Divergence(node, offset) for node, offset in replicas.diverged().items()],
    )


def _event(number: int, given: object, nodes: list[int]) -> ScenarioEvent:
    """Return one event of a scenario; UsageError if `given` is not an event."""
    if not isinstance(given, dict):
        raise UsageError(f"event {number} is {given!r}, expected a table")
    names = [name for name in given if name in _EVENTS]
    if len(names) != 1:
        raise UsageError(f"event {number} needs one of {', '.join(_EVENTS)}")
    name, value = names[0], given[names[0]]
    kind, options = _EVENTS[name]
    _check(given, {name: kind, **options}, f"event {number}: ")
    if name not in _TIMED and value not in nodes:
        raise UsageError(f"event {number}: {value} is not one of the replicas")
    if given.get("response", "lost") != "lost":
        raise UsageError(f"event {number}: response can only be 'lost'")
    if given.get("acks", Acks.ALL) not in list(Acks):
        raise UsageError(f"event {number}: acks can only be {', '.join(map(repr, _ACKS))}")
    if "" in (given.get("transaction"), given.get("commit"), given.get("abort")):
        raise UsageError(f"event {number}: a transaction needs a name")
    if min((one for one in given.values() if type(one) is int), default=0) < 0:
        raise UsageError(f"event {number}: a number must not be negative")
    if name == "produce" and not all(type(record) is str for record in value):
        raise UsageError(f"event {number}: records must be names in quotes")
    return ScenarioEvent(name, value, {key: one for key, one in given.items() if key != name})


def _start(rows: list[Any], nodes: list[int]) -> dict[int, tuple[int, int, int | None]]:
    """Return log end, high watermark and remote log end of each replica, as it begins."""
    found: dict[int, tuple[int, int, int | None]] = dict.fromkeys(nodes, (0, 0, None))
    for row in rows:
        if not isinstance(row, dict):
            raise UsageError(f"start has {row!r}, expected a table")
        _check(row, _START, "start: ")
        node = row.get("replica")
        if node not in found:
            raise UsageError(f"start: {node} is not one of the replicas")
        end, mark = row.get("log_end_offset", 0), row.get("high_watermark", 0)
        known = row.get("remote_log_end_offset")
        if not 0 <= mark <= end <= _LONGEST or not 0 <= (known or 0) <= end:
            reason = "expected 0 <= high_watermark and remote_log_end_offset <= log_end_offset"
            raise UsageError(f"start of replica {node}: {reason} <= {_LONGEST}")
        found[node] = end, mark, known
    return found


def _check(given: Mapping[str, Any], known: Mapping[str, type], place: str) -> None:
    for name, value in given.items():
        if name not in known:
            raise UsageError(f"{place}{name} is not known; expected {', '.join(known)}")
        if type(value) is not known[name]:
            raise UsageError(f"{place}{name} is {value!r}, expected {known[name].__name__}")
