"""Volumes of different moments, put together, judged by `cluster`, and started."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker.install import major
from broker.volumes import BROKERS, MOMENTS, Copies, Fleet, rewrite_meta

KINDS = (
    "skewed", "near", "missing", "swapped", "other-cluster", "controllers-behind",
    "controllers-ahead", "controller-gone",
)  # fmt: skip
OTHER_CLUSTER = "bG9ndG9vbC10ZXN0cy0wMg"
_CUT = re.compile(r"\[UnifiedLog partition=(\S+-\d+), dir=[^]]+\] Truncating to offset (\d+)")
_STRAY = re.compile(r"(.+)\.[0-9a-f]{32}-stray")
Answer = list[dict[str, Any]]


@dataclass(frozen=True)
class Situation:
    """The moments of the volumes, and what is wrong with them."""

    number: int
    kind: str
    moments: Mapping[int, int]
    """Moment of the volume of each node that is given."""
    swapped: tuple[int, ...] = ()
    """Two brokers that get the volume of each other."""
    foreign: tuple[int, ...] = ()
    """Brokers whose volume says another cluster."""

    @property
    def name(self) -> str:
        """Return a name for a report."""
        ages = ", ".join(f"{node}:{moment}" for node, moment in self.moments.items())
        return f"{self.number} {self.kind} ({ages})"

    @property
    def starting(self) -> tuple[int, ...]:
        """Return the brokers that are expected to join."""
        away = {*self.swapped, *self.foreign}
        return tuple(node for node in BROKERS if node in self.moments and node not in away)


def situation(number: int, controllers: tuple[int, ...], moments: int = MOMENTS) -> Situation:
    """Return a situation by its number, the same at every call; its volumes are of `moments`."""
    rng = random.Random(f"{number} {len(controllers)}")
    kind = KINDS[number % len(KINDS)]
    if kind == "controller-gone" and len(controllers) < 3:
        kind = "skewed"
    newest = rng.randrange(1, moments)
    ages = {node: rng.randrange(max(0, newest - 2), newest + 1) for node in BROKERS}
    if kind == "near":
        ages = dict.fromkeys(BROKERS, newest)
    own = {node: max(ages.values()) for node in controllers}
    if kind == "controllers-behind":
        own = {node: max(0, min(ages.values()) - (node != controllers[0])) for node in controllers}
    elif kind == "controllers-ahead":
        own = dict.fromkeys(controllers, min(moments - 1, max(ages.values()) + 1))
    elif kind == "controller-gone":
        del own[rng.choice(controllers)]
    brokers = rng.sample(BROKERS, 2)
    if kind == "missing":
        del ages[brokers[0]]
    return Situation(
        number=number,
        kind=kind,
        moments={**own, **ages},
        swapped=tuple(sorted(brokers)) if kind == "swapped" else (),
        foreign=(brokers[0],) if kind == "other-cluster" else (),
    )


def restore(copies: Copies, of: Situation, work: Path) -> dict[int, Path]:
    """Copy the volumes of a situation; return the volume that each node gets."""
    homes = {}
    for node, moment in of.moments.items():
        homes[node] = work / f"node-{node}"
        shutil.copytree(copies.volume(moment, node), homes[node])
        if node in of.foreign:
            rewrite_meta(homes[node], {"cluster.id": OTHER_CLUSTER})
    if of.swapped:
        one, other = of.swapped
        homes[one], homes[other] = homes[other], homes[one]
    return homes


def predicted(
    copies: Copies, homes: Mapping[int, Path], controller: int | None = None
) -> tuple[int, Answer]:
    """Return the exit status and the objects of ``logtool cluster``.

    The one who won counts if several controllers may win, and their metadata logs differ.
    """
    command = [sys.executable, "-m", "logtool", "cluster", "-f", "ndjson"]
    command += [] if controller is None else ["--controller", str(controller)]
    command += ["--kafka-version", ".".join(copies.version.split(".")[:2])]
    if copies.version.startswith("3."):
        file = next(iter(homes.values())).parent / "cluster.properties"
        voters = ",".join(f"{node}@{where}" for node, where in copies.addresses.items())
        file.write_text(f"controller.quorum.voters={voters}\n")
        command += ["--broker-config", str(file)]
    command += [f"{node}={home}" for node, home in homes.items()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 4):
        raise AssertionError(f"status {done.returncode}: {done.stderr}")
    answer = [json.loads(line) for line in done.stdout.splitlines()]
    if not answer or answer[-1]["type"] != "summary":
        raise AssertionError(f"no summary: {done.stderr}")
    return done.returncode, answer


def mend(homes: Mapping[int, Path], answer: Answer) -> int:
    """Give nodes the metadata log of the controllers as the steps say; return their number."""
    commands = [one["command"] for one in answer if one["type"] == "step" and one["command"]]
    moves = [one for one in commands if one.startswith("mv ")]
    for command in moves:
        subprocess.run(command, shell=True, check=True, cwd=next(iter(homes.values())).parent)
    return len(moves)


@dataclass
class Seen:
    """The outcome of a real start."""

    leaders: dict[str, int] = field(default_factory=dict)
    """Leader by partition; -1 for none."""
    cuts: dict[tuple[str, int], int] = field(default_factory=dict)
    """Offset to which a broker cut a partition last."""
    strays: set[tuple[str, int]] = field(default_factory=set)
    joined: set[int] = field(default_factory=set)
    """Brokers that clients saw at the end."""
    ended: set[int] = field(default_factory=set)
    """Nodes whose process ended by itself."""
    at_rest: bool = False
    """False if time was over before all that run had joined and nothing changed any more."""
    controller: int | None = None
    """Leader in the quorum-state of the controllers."""
    is_disturbed: bool = False
    """True if another process had taken the port of a node."""

    def to_json(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return {
            "leaders": self.leaders,
            "cuts": [[*key, offset] for key, offset in sorted(self.cuts.items())],
            "strays": sorted(self.strays),
            "joined": sorted(self.joined),
            "controller": self.controller,
            "ended": sorted(self.ended),
        }


def from_json(row: Mapping[str, Any]) -> Seen:
    """Return the outcome that `Seen.to_json` wrote."""
    return Seen(
        leaders=row["leaders"],
        cuts={(name, node): offset for name, node, offset in row["cuts"]},
        strays={(name, node) for name, node in row["strays"]},
        joined={*row["joined"]},
        controller=row["controller"],
        ended={*row.get("ended", ())},
        at_rest=True,
    )


def start(copies: Copies, of: Situation, homes: Mapping[int, Path], deadline_s: float) -> Seen:
    """Start all nodes of a situation at once, wait until they are at rest, and kill them."""
    fleet = Fleet(copies.version, homes[min(homes)].parent, copies.controllers, copies.addresses)
    seen = Seen()
    try:
        fleet.launch(*(node for node in fleet.all_nodes if node in homes), log_dirs=homes)
        _rest(fleet, of, seen, time.monotonic() + deadline_s)
        for node, broker in fleet.nodes.items():
            seen.ended |= set() if broker.pid else {node}
            seen.is_disturbed |= "Address already in use" in broker.log
            for name, offset in _CUT.findall(broker.log):
                seen.cuts[name, node] = int(offset)
    finally:
        fleet.stop()
    for node, home in homes.items():
        for path in home.iterdir():
            if found := _STRAY.fullmatch(path.name):
                seen.strays.add((found[1], node))
    for node in copies.controllers:
        if node in homes:
            state = homes[node] / "__cluster_metadata-0" / "quorum-state"
            leader = json.loads(state.read_text()).get("leaderId", -1)
            seen.controller = leader if leader >= 0 else seen.controller
    return seen


def _rest(fleet: Fleet, of: Situation, seen: Seen, deadline: float) -> None:
    """Wait until nothing changes: all that run joined, and each leader has its followers."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    before: object = None
    since = time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(1)
        running = {node for node in of.starting if fleet.nodes[node].pid}
        if not running:
            seen.joined, seen.leaders, seen.at_rest = set(), {}, True
            return
        try:
            known = AdminClient({"log_level": 0, "bootstrap.servers": fleet.bootstrap})
            seen.joined = {*known.list_topics(timeout=5).brokers}
            found = fleet.partitions()
        except KafkaException:
            continue
        seen.leaders = {name: leader for name, (leader, _) in found.items()}
        if found != before:
            before, since = found, time.monotonic()
        whole = seen.joined == running and bool(found)
        follows = all(
            leader < 0 or {*in_sync} >= _replicas(name, running)
            for name, (leader, in_sync) in found.items()
        )
        has_leaders = all(leader >= 0 for leader, _ in found.values())
        still = time.monotonic() - since
        if whole and follows and still > (4 if has_leaders else 15):
            seen.at_rest = True
            return


def _replicas(name: str, running: set[int]) -> set[int]:
    """Return the replicas of a partition on brokers that run."""
    from broker.volumes import TOPICS

    replicas = {f"{one.name}-0": one.replicas for one in TOPICS}
    return {*replicas.get(name, BROKERS)} & running


def lost(copies: Copies, answer: Answer) -> set[int]:
    """Return the nodes that may find no controller, by the prediction.

    With a static quorum they know the controllers from their configuration.
    """
    ahead = {one["node"] for one in answer if one["type"] == "volume" and one["status"] == "ahead"}
    return ahead if major(copies.version) >= 4 else set()


def differences(copies: Copies, of: Situation, answer: Answer, seen: Seen) -> list[str]:
    """Return where the prediction and the start differ, a line each."""
    away = lost(copies, answer)
    up = {*of.starting} - (away - seen.joined)
    found = [*_nodes(of, answer, seen, up)]
    partitions = {
        f"{one['topic']}-{one['partition']}": one for one in answer if one["type"] == "partition"
    }
    strays = {(name, node) for name, one in partitions.items() for node in one["strays"]}
    strays = {one for one in strays if one[1] in up}
    # A node that finds no controller may still rename directories that its own state lacks.
    made = {one for one in seen.strays if one[1] in up}
    if strays != made:
        found.append(f"strays: predicted {sorted(strays)}, seen {sorted(made)}")
    for name, leader in seen.leaders.items():
        if name not in partitions:
            found.append(f"{name}: exists, and was not predicted")
            continue
        found += _partition(copies, up, name, partitions[name], leader, seen)
    return found


def _nodes(of: Situation, answer: Answer, seen: Seen, up: set[int]) -> list[str]:
    """Compare the volumes and the controllers."""
    found = []
    statuses: dict[int, set[str]] = {}
    for one in answer:
        if one["type"] == "volume" and one["path"]:
            statuses.setdefault(one["node"], set()).add(one["status"])
    for node in of.moments:
        wanted = (
            "swapped" if node in of.swapped else "other-cluster" if node in of.foreign else None
        )
        is_wrong = bool(
            statuses.get(node, set()) & {"swapped", "other-cluster", "moved", "doubled"}
        )
        if (wanted is None and is_wrong) or (wanted and wanted not in statuses.get(node, set())):
            found.append(f"node {node}: predicted {statuses.get(node)}, is {wanted or 'in order'}")
    if ended := seen.ended - ({*BROKERS} - up):
        found.append(f"nodes {sorted(ended)} ended by themselves")
    if seen.joined != up:
        found.append(f"brokers: expected {sorted(up)}, joined {sorted(seen.joined)}")
    (controllers,) = (one for one in answer if one["type"] == "controllers")
    if seen.controller not in controllers["may_win"]:
        found.append(f"controller {seen.controller} won; predicted {controllers['may_win']}")
    return found


def _partition(
    copies: Copies, up: set[int], name: str, one: dict[str, Any], leader: int, seen: Seen
) -> list[str]:
    """Compare the leader, the cuts and the loss of a partition."""
    # A swapped volume, or one of another cluster, is no copy for this start.
    elected = [node for node in one["elected"] if node in up]
    if leader < 0:
        may = one["may_be_leaderless"] or not elected or len(elected) < len(one["elected"])
        return [] if may else [f"{name}: no leader; predicted {elected}"]
    chosen = next((it for it in one["leaders"] if it["node"] == leader), None)
    if leader not in elected or chosen is None:
        return [f"{name}: {leader} leads; predicted {elected}"]
    cuts = {node: offset for (cut, node), offset in seen.cuts.items() if cut == name}
    # A node that finds no controller may still follow, by its own state, until it ends.
    wanted = {cut["node"]: cut["offset"] for cut in chosen["cuts"] if cut["node"] in {*up, *cuts}}
    found = []
    if wanted != cuts:
        found.append(f"{name}: under {leader} cut to {cuts}; predicted {wanted}")
    ends = max(it["log_end_offset"] for it in one["leaders"])
    acknowledged = copies.acknowledged.get(one["topic"], ())
    lost = [at for at in acknowledged if chosen["log_end_offset"] <= at < ends]
    most = chosen["may_be_lost"]
    if most is not None and len(lost) > chosen["acknowledged_lost"] + most:
        found.append(f"{name}: {len(lost)} acknowledged offsets lost; predicted {chosen}")
    return found
