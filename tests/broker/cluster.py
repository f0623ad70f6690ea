"""Several nodes of one cluster that are killed, paused and started one by one.

Node 1 is the controller and holds no topic, so it can elect leaders while any replica is away. A
paused node (SIGSTOP) neither writes nor answers: a copy of its log dir equals the result of a kill
at that moment.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from broker import protocol, workloads
from broker.install import HarnessError
from broker.kafka import CONTROLLER_ID, Broker, format_log_dir, pause


class Cluster:
    """A controller and brokers, each with one log dir; a context manager like `Broker`."""

    def __init__(
        self,
        version: str,
        root: Path,
        brokers: Sequence[int],
        config: Mapping[str, str],
        own_config: Mapping[int, Mapping[str, str]],
    ) -> None:
        """Format the log dirs; ``own_config`` has settings of single nodes on top of ``config``."""
        self.version = version
        self.root = root
        self.brokers = tuple(brokers)
        self.paused: set[int] = set()
        self.nodes: dict[int, Broker] = {}
        nodes = (CONTROLLER_ID, *brokers)
        settings = {node: {**config, **own_config.get(node, {})} for node in nodes}
        _at_once(
            lambda node: format_log_dir(
                version, [self.log_dir(node)], node_id=node, extra_config=settings[node]
            ),
            nodes,
        )
        for node in nodes:
            controller = self.nodes[CONTROLLER_ID].controller if self.nodes else None
            self.nodes[node] = Broker(
                version,
                [self.log_dir(node)],
                settings[node],
                node_id=node,
                controller=controller,
            )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for broker in self.nodes.values():
            broker.__exit__(kind, error, trace)

    def log_dir(self, node: int) -> Path:
        """Return the log dir of a node."""
        return self.root / f"node-{node}"

    def start(self, *nodes: int) -> None:
        """Start nodes at once and wait until clients see each; by default all."""
        _at_once(lambda node: self.nodes[node].start(), nodes or tuple(self.nodes))

    def kill(self, *nodes: int) -> None:
        """End nodes by SIGKILL, paused ones too; by default all."""
        for node in nodes or tuple(self.nodes):
            self.nodes[node].kill()
            self.paused.discard(node)

    def stop(self) -> None:
        """Stop all in order, the controller last."""
        _at_once(lambda node: self.nodes[node].stop(), self.brokers)
        self.nodes[CONTROLLER_ID].stop()

    def pause(self, *nodes: int) -> None:
        """Suspend nodes."""
        for node in nodes:
            pause(self._pid(node))
            self.paused.add(node)

    def resume(self, *nodes: int) -> None:
        """Resume suspended nodes."""
        for node in nodes:
            os.kill(self._pid(node), signal.SIGCONT)
            self.paused.discard(node)

    def _pid(self, node: int) -> int:
        pid = self.nodes[node].pid
        if pid is None:
            raise HarnessError(f"node {node} does not run")
        return pid

    def freeze(self, target: Path) -> list[Path]:
        """Copy the log dirs of nodes that are all dead or paused; return the copies in order."""
        awake = [n for n, one in self.nodes.items() if one.pid and n not in self.paused]
        if awake:
            raise HarnessError(f"nodes {awake} still write")
        shutil.copytree(self.root, target)
        return [target / self.log_dir(node).name for node in self.nodes]

    def bootstrap(self, node: int) -> str:
        """Return the address of one node."""
        return self.nodes[node].bootstrap

    def write(self, node: int, topic: str, part: str, count: int) -> None:
        """Write records through a node, with acks=1 because followers may be away."""
        content = workloads.messages(f"{topic}-{part}", count, workloads.EPOCH_MS)
        workloads.Writer(self.bootstrap(node), acks=1).batches(topic, content, (5, 2))

    @contextlib.contextmanager
    def writing(self, node: int, topic: str) -> Iterator[None]:
        """Write in the background with acks=1; raise its error afterwards."""
        over = threading.Event()

        def run() -> None:
            writer = workloads.Writer(self.bootstrap(node), acks=1)
            content = list(workloads.messages(f"{topic}-on-and-on", 40, workloads.EPOCH_MS))
            while not over.wait(0.01):
                writer.batches(topic, content, (5, 2, 7, 1))

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(run)
            try:
                yield
            finally:
                over.set()
            done.result()

    def offsets(self, node: int, topic: str) -> protocol.Offsets:
        """Return the offsets that a node reports for its replica."""
        return protocol.offsets(self.bootstrap(node), topic)

    def leadership(
        self, node: int, topics: Sequence[str]
    ) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Return leader (-1: none) and in-sync replicas of topics as a node knows them."""
        known = self._admin(node).list_topics(timeout=30).topics
        found = {}
        for topic in topics:
            # This node may not know a topic yet that was just created.
            partition = known[topic].partitions.get(0) if topic in known else None
            isr = tuple(sorted(partition.isrs)) if partition else ()
            found[topic] = (partition.leader if partition else -1, isr)
        return found

    def _admin(self, node: int) -> Any:
        # Imported here: without confluent-kafka these tests are skipped.
        from confluent_kafka.admin import AdminClient

        return AdminClient({"log_level": 0, "bootstrap.servers": self.bootstrap(node)})

    def wait_for_isr(self, node: int, topics: Sequence[str], isr: Sequence[int]) -> None:
        """Wait until a node says that exactly these are in sync."""
        workloads.wait_for(
            lambda: all(one[1] == tuple(isr) for one in self.leadership(node, topics).values()),
            120,
            f"{isr} to be in sync",
        )

    def wait_for_leader(self, node: int, topics: Sequence[str], leaders: Sequence[int]) -> None:
        """Wait until a node knows one of these as leader of each topic."""
        workloads.wait_for(
            lambda: all(one[0] in leaders for one in self.leadership(node, topics).values()),
            120,
            f"one of {leaders} to lead",
        )

    def wait_until_equal(self, topics: Sequence[str], nodes: Sequence[int]) -> None:
        """Wait until replicas have the same log end, and all of it is committed on each."""
        for topic in topics:
            workloads.wait_for(
                lambda topic=topic: self._equal(topic, nodes),  # type: ignore[misc]
                120,
                f"the replicas of {topic} to be equal",
            )

    def _equal(self, topic: str, nodes: Sequence[int]) -> bool:
        try:
            found = [self.offsets(node, topic) for node in nodes]
        except (HarnessError, OSError):
            return False  # not there yet
        return len({end for one in found for end in (one.log_end, one.high_watermark)}) == 1

    def checkpointed(self, node: int, topic: str) -> int | None:
        """Return the high watermark that a node has on disk, None without a row."""
        path = self.log_dir(node) / "replication-offset-checkpoint"
        for line in path.read_text().splitlines()[2:]:
            name, _, offset = line.split()
            if name == topic:
                return int(offset)
        return None


def _at_once(job: Callable[[int], Any], nodes: Sequence[int]) -> None:
    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(job, nodes))
