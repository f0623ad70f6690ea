"""Scenarios with several nodes or several log dirs: replicas, -stray and -future directories."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from broker import workloads
from broker.install import release
from broker.kafka import BASE_CONFIG, Broker, format_log_dir, run_tool
from broker.scenarios import SMALL, Scenario
from broker.topics import Topic

IN_SYNC = Topic("replica.in-sync", "the same on node 2 and node 3", replicas=(2, 3))
LAGGING = Topic("replica.lagging", "node 3 lacks the last batches of node 2", replicas=(2, 3))
DIVERGED = Topic(
    "replica.diverged",
    "unclean leader election: after a common start the two nodes hold different batches",
    replicas=(2, 3),
    config={"unclean.leader.election.enable": "true"},
)
FETCHED = Topic("replica.fetched-at-once", "node 3 fetched most of it at once", replicas=(2, 3))
STRAY = Topic("replica.stray", "deleted while node 3 was down: a -stray directory", replicas=(2, 3))
REPLICATED = (IN_SYNC, LAGGING, DIVERGED, FETCHED, STRAY)

MOVING = Topic("moving.topic", "on its way to the other log dir: a -future directory")
STAYING = Topic("staying.topic", "spread over both log dirs", partitions=4)


def replicas(version: str, work: Path) -> Iterator[Scenario]:
    """Make the log dirs of a controller and of two brokers whose replicas diverge."""
    root = work / "replicas"
    dirs = [root / f"node-{node}" for node in (1, 2, 3)]
    for node, log_dir in enumerate(dirs, 1):
        format_log_dir(version, [log_dir], node_id=node, extra_config=SMALL)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Broker(version, dirs[:1], SMALL))
        second, third = (
            stack.enter_context(
                Broker(version, [dirs[node - 1]], SMALL, node_id=node, controller=first.controller)
            )
            for node in (2, 3)
        )
        _part_ways(first, second, third, dirs)
    notes = (
        "node-1 is the controller (and holds no topic); node-2 and node-3 hold the replicas",
        "replica.lagging-0: node-3 ends earlier, its batches are those of node-2",
        "replica.diverged-0: same start, then other batches; node-3 has the higher leader epoch",
        "replica.fetched-at-once-0: on node-3 one append of many batches, which got no index"
        " entry up to 3.9.0, and later one for each interval",
        "replica.stray-0: a -stray directory on node-3",
        "node-1 stopped in order, node-2 and node-3 were killed",
    )
    about = "Log dirs of three nodes of one cluster; two of them hold the same topics."
    yield Scenario("replicas", version, root, about, notes, REPLICATED, {**BASE_CONFIG, **SMALL})


def two_log_dirs(version: str, work: Path) -> Iterator[Scenario]:
    """Make the log dirs of a broker that was stopped while it moved a partition between them."""
    root = work / "two-log-dirs"
    dirs = [root / "dir-1", root / "dir-2"]
    # The throttle works after a fetch: only small fetches leave records for later.
    config = {**SMALL, "replica.fetch.max.bytes": "4096"}
    format_log_dir(version, dirs, extra_config=config)
    with Broker(version, dirs, config) as broker:
        broker.start()
        workloads.create_topics(broker.bootstrap, version, [MOVING, STAYING])
        writer = workloads.Writer(broker.bootstrap)
        for partition in range(STAYING.partitions):
            content = workloads.messages(f"staying-{partition}", 40, workloads.EPOCH_MS)
            writer.batches(STAYING.name, content, (7,), partition)
        content = workloads.messages("moving", 600, workloads.EPOCH_MS)
        writer.batches(MOVING.name, content, (5,))
        move(broker, MOVING.name, work)
        broker.stop()
    notes = (
        "moving.topic-0: live in one log dir, a -future directory with less data in the other",
        "each log dir has its own meta.properties, clean marker and checkpoint files",
        "__cluster_metadata-0 is in dir-1 only",
    )
    about = "One broker with two log dirs, stopped in order while a partition was on the move."
    topics = (MOVING, STAYING)
    yield Scenario("two-log-dirs", version, root, about, notes, topics, {**BASE_CONFIG, **config})


def _part_ways(first: Broker, leader: Broker, follower: Broker, dirs: Sequence[Path]) -> None:
    for broker in (first, leader, follower):
        broker.start()
    workloads.create_topics(first.bootstrap, first.version, REPLICATED)
    for topic in REPLICATED:
        _write(first, topic, "common", 120)
    _wait_until_equal(dirs[1], dirs[2], REPLICATED)

    # Node 3 misses a large part of one topic, and the end of another.
    follower.stop()
    _write(first, FETCHED, "missed", 600)
    workloads.delete_topic(first.bootstrap, dirs[1], STRAY.name)
    follower.start()
    _wait_until_equal(dirs[1], dirs[2], [FETCHED])
    stray = f"{STRAY.name}-0.*-stray"
    workloads.wait_for(lambda: any(dirs[2].glob(stray)), 60, "the -stray directory")

    # Now node 2 and then node 3 writes alone; node 3 leads after an unclean election. Node 3 is
    # stopped in order: after a kill the next start would rebuild the indexes of this scenario.
    follower.stop()
    _write(first, LAGGING, "late", 60)
    _write(first, DIVERGED, "lost", 80)
    leader.kill()
    follower.start()
    _write(first, DIVERGED, "won", 50)
    follower.kill()
    first.stop()


def _write(broker: Broker, topic: Topic, part: str, count: int) -> None:
    content = workloads.messages(f"{topic.name}-{part}", count, workloads.EPOCH_MS)
    # acks=1: a leader may wait long for a follower that was killed just after it caught up.
    workloads.Writer(broker.bootstrap, acks=1).batches(topic.name, content, (5, 2))


def _wait_until_equal(left: Path, right: Path, topics: Sequence[Topic]) -> None:
    def sizes(log_dir: Path, topic: Topic) -> list[int]:
        return [path.stat().st_size for path in sorted(log_dir.glob(f"{topic.name}-0/*.log"))]

    for topic in topics:
        workloads.wait_for(
            lambda topic=topic: sizes(left, topic) == sizes(right, topic),  # type: ignore[misc]
            60,
            f"node 3 to catch up with {topic.name}",
        )


def move(broker: Broker, topic: str, work: Path) -> None:
    """Start to move a topic's only partition to the other log dir, too slowly to finish."""
    here = next(log_dir for log_dir in broker.log_dirs if (log_dir / f"{topic}-0").is_dir())
    there = next(log_dir for log_dir in broker.log_dirs if log_dir != here)
    target = {
        "topic": topic,
        "partition": 0,
        "replicas": [broker.node_id],
        "log_dirs": [str(there.resolve())],
    }
    reassign(broker, [target], work, throttle=500)
    future = f"{topic}-0.*-future/*.log"
    workloads.wait_for(
        lambda: any(path.stat().st_size for path in there.glob(future)), 60, "the first copy"
    )


def reassign(
    broker: Broker, partitions: Sequence[Mapping[str, object]], work: Path, *, throttle: int
) -> None:
    """Run ``kafka-reassign-partitions.sh``, whose class moved with Kafka 3.6."""
    plan = work / "reassignment.json"
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    package = (
        "org.apache.kafka.tools.reassign" if release(broker.version) >= (3, 6) else "kafka.admin"
    )
    run_tool(
        broker.version, f"{package}.ReassignPartitionsCommand",
        "--bootstrap-server", broker.bootstrap, "--reassignment-json-file", str(plan),
        "--replica-alter-log-dirs-throttle", str(throttle), "--execute",
    )  # fmt: skip
