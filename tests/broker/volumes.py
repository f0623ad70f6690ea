"""A cluster under load whose volumes are copied one by one, at several moments.

A node is paused while its volume is copied, so that the copy is that of one moment, as a snapshot
of a volume is. Between the moments a topic is made again, and brokers are killed and come back.
"""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from broker import workloads
from broker.install import HarnessError, major
from broker.kafka import BASE_CONFIG, CLUSTER_ID, Broker, pause, run_tool
from broker.scenarios import SMALL
from broker.topics import Topic
from ports import free_port

BROKERS = (11, 12, 13)
MOMENTS = 7
"""Moments at which the volumes of all nodes are copied."""
CONFIG: Mapping[str, str] = {
    **SMALL,
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
    # A broker that gets no processor for a moment stays registered.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
}
UNCLEAN = {"unclean.leader.election.enable": "true"}
PLAIN = (
    Topic("plain.a", "led by 11", replicas=(11, 12, 13)),
    Topic("plain.b", "led by 12", replicas=(12, 13, 11)),
    Topic("plain.c", "led by 13, two in sync", replicas=(13, 11, 12),
          config={"min.insync.replicas": "2"}),
    Topic("pair", "on two brokers", replicas=(12, 13)),
    Topic("unclean", "may be led by any replica", replicas=(11, 13), config=UNCLEAN),
)  # fmt: skip
TRANSACTIONS = Topic("tx", "written in transactions", replicas=(13, 12, 11))
AGAIN = Topic("again", "deleted and made again", replicas=(11, 12, 13))
TOPICS = (*PLAIN, TRANSACTIONS, AGAIN)


def directory_id(node: int) -> str:
    """Return the directory id of the volume of a node."""
    return base64.urlsafe_b64encode(b"logtool-dirs--%02d" % node).decode().rstrip("=")


@dataclass
class Fleet:
    """The nodes of a cluster: controllers alone, and brokers; their addresses stay the same."""

    version: str
    root: Path
    controllers: tuple[int, ...]
    addresses: dict[int, str] = field(default_factory=dict)
    """``host:port`` of each controller, which the metadata log has too."""
    nodes: dict[int, Broker] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.addresses = self.addresses or {
            node: f"127.0.0.1:{free_port()}" for node in self.controllers
        }

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """Return the ids of all nodes, the controllers first."""
        return *self.controllers, *BROKERS

    def log_dir(self, node: int) -> Path:
        """Return the volume of a node."""
        return self.root / f"node-{node}"

    def config(self, node: int) -> dict[str, str]:
        """Return the settings of a node that differ from those of a node alone."""
        found = dict(CONFIG)
        if major(self.version) >= 4:
            found["controller.quorum.bootstrap.servers"] = ",".join(self.addresses.values())
        else:
            found["controller.quorum.voters"] = ",".join(
                f"{node}@{address}" for node, address in self.addresses.items()
            )
        if node in self.controllers:
            found["process.roles"] = "controller"
            found["listeners"] = f"CONTROLLER://{self.addresses[node]}"
        return found

    def format(self) -> None:
        """Format the volume of a controller and that of a broker, and copy them for the others."""
        for first, *others in (self.controllers, BROKERS):
            home = self.log_dir(first)
            home.mkdir(parents=True)
            config = {**BASE_CONFIG, "node.id": str(first), "log.dirs": str(home)}
            config |= {
                "process.roles": "broker",
                "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
            }
            config |= self.config(first)
            arguments = ["format", "-t", CLUSTER_ID]
            if major(self.version) >= 4:
                initial = ",".join(
                    f"{node}@{address}:{directory_id(node)}"
                    for node, address in self.addresses.items()
                )
                is_controller = first in self.controllers
                arguments += (
                    ["--initial-controllers", initial]
                    if is_controller
                    else ["--no-initial-controllers"]
                )
            with tempfile.TemporaryDirectory(prefix="logtool-volumes-") as temporary:
                properties = Path(temporary) / "server.properties"
                lines = (f"{key}={value}\n" for key, value in config.items())
                properties.write_text("".join(lines))
                run_tool(self.version, "kafka.tools.StorageTool", *arguments, "-c", str(properties))
            for node in others:
                shutil.copytree(home, self.log_dir(node))
            for node in (first, *others):
                own = {"node.id": str(node), "directory.id": directory_id(node)}
                rewrite_meta(self.log_dir(node), own)

    def launch(self, *nodes: int, log_dirs: Mapping[int, Path] | None = None) -> None:
        """Start nodes and wait for nothing; by default on their own volumes."""
        for node in nodes:
            home = (log_dirs or {}).get(node, self.log_dir(node))
            first = next(iter(self.addresses.values()))
            self.nodes[node] = Broker(
                self.version, [home], self.config(node), node_id=node, controller=first
            )
            self.nodes[node].launch()

    @property
    def bootstrap(self) -> str:
        """Return the addresses of the brokers that run."""
        running = (self.nodes.get(node) for node in BROKERS)
        return ",".join(one.bootstrap for one in running if one and one.pid)

    def stop(self, *nodes: int) -> None:
        """End nodes by SIGKILL; by default all."""
        for node in nodes or tuple(self.nodes):
            self.nodes.pop(node).__exit__(None, None, None)

    def partitions(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        """Return leader (-1: none) and in-sync replicas of each partition, by its name."""
        from confluent_kafka.admin import AdminClient

        known = AdminClient({"log_level": 0, "bootstrap.servers": self.bootstrap})
        found = known.list_topics(timeout=15).topics
        return {
            f"{topic}-{number}": (one.leader, tuple(sorted(one.isrs)))
            for topic, data in found.items()
            for number, one in data.partitions.items()
        }

    def wait_for_isr(self, topics: Sequence[str], nodes: Sequence[int]) -> None:
        """Wait until exactly these replicas of topics are in sync, as far as they hold them."""
        replicas = {one.name: one.replicas for one in TOPICS}

        def in_sync() -> bool:
            found = self.partitions()
            wanted = {name: tuple(sorted({*replicas[name]} & {*nodes})) for name in topics}
            return all(found.get(f"{name}-0", (-1, ()))[1] == isr for name, isr in wanted.items())

        workloads.wait_for(in_sync, 180, f"{nodes} to be in sync")


def rewrite_meta(home: Path, own: Mapping[str, str]) -> None:
    """Replace values in the meta.properties of a log dir."""
    file = home / "meta.properties"
    keys = (line.partition("=")[0] for line in file.read_text().splitlines())
    values = dict(line.partition("=")[::2] for line in file.read_text().splitlines())
    values |= own
    file.write_text("".join(f"{key}={values[key]}\n" if key in values else f"{key}\n"
                            for key in dict.fromkeys(keys)))  # fmt: skip


@dataclass
class Copies:
    """The copies of all volumes at each moment, and the offsets that were acknowledged."""

    root: Path
    version: str
    controllers: tuple[int, ...]
    addresses: dict[int, str]
    acknowledged: dict[str, list[int]] = field(default_factory=dict)
    """Offsets that producers with acks=all got, by topic, rising."""

    def volume(self, moment: int, node: int) -> Path:
        """Return the copy of a volume at a moment."""
        return self.root / f"moment-{moment}" / f"node-{node}"


class Load:
    """Clients that write and read in the background."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.acknowledged: dict[str, list[int]] = {one.name: [] for one in TOPICS}
        self._over = threading.Event()
        jobs = [*(self._plain(one.name) for one in (*PLAIN, AGAIN)), self._transactions, self._read]
        self._threads = [threading.Thread(target=job, daemon=True) for job in jobs]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write and read within the block."""
        for one in self._threads:
            one.start()
        try:
            yield
        finally:
            self._over.set()
            for one in self._threads:
                one.join(90)

    def forget(self, topic: str) -> None:
        """Forget the offsets of a topic that was deleted."""
        self.acknowledged[topic] = []

    def _producer(self, **more: Any) -> Any:
        from confluent_kafka import Producer

        config = {"bootstrap.servers": self.fleet.bootstrap, "acks": "all", "linger.ms": 5}
        return Producer({**config, "log_level": 0, "message.timeout.ms": 30_000, **more})

    def _plain(self, topic: str) -> Callable[[], None]:
        def run() -> None:
            from confluent_kafka import KafkaException

            producer = self._producer()
            rng = random.Random(topic)
            while not self._over.wait(0.05):
                try:
                    for _ in range(rng.randrange(1, 12)):
                        producer.produce(
                            topic, rng.randbytes(60), partition=0, on_delivery=self._delivered
                        )
                except KafkaException:
                    continue  # the topic was deleted, and is made again
                finally:
                    producer.flush(30)

        return run

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged[message.topic()].append(message.offset())

    def _transactions(self) -> None:
        from confluent_kafka import KafkaException

        producer, number = None, 0
        while not self._over.wait(0.1):
            number += 1
            try:
                if producer is None:
                    producer = self._producer(**{"transactional.id": "writer"})
                    producer.init_transactions(30)
                producer.begin_transaction()
                for _ in range(5):
                    producer.produce(TRANSACTIONS.name, b"in a transaction", partition=0)
                producer.flush(30)
                self._over.wait(0.3)
                end = producer.abort_transaction if number % 5 == 0 else producer.commit_transaction
                end(30)
            except KafkaException:
                producer = None  # a broker was killed

    def _read(self) -> None:
        from confluent_kafka import Consumer, KafkaException

        config = {"bootstrap.servers": self.fleet.bootstrap, "group.id": "readers"}
        reader = Consumer({**config, "log_level": 0, "auto.offset.reset": "earliest",
                           "enable.auto.commit": False})  # fmt: skip
        reader.subscribe([one.name for one in PLAIN])
        while not self._over.is_set():
            if reader.consume(200, timeout=0.3):
                try:
                    reader.commit(asynchronous=False)
                except KafkaException:
                    continue
        reader.close()


def collect(version: str, controllers: int, root: Path, moments: int = MOMENTS) -> Copies:
    """Run a cluster under load and copy its volumes at the first moments; return the copies."""
    fleet = Fleet(version, root / "live", tuple(range(1, controllers + 1)))
    fleet.format()
    copies = Copies(root / "copies", version, fleet.controllers, fleet.addresses)
    try:
        fleet.launch(*fleet.all_nodes)
        for node in BROKERS:
            fleet.nodes[node].wait_until_ready(240)
        workloads.create_topics(fleet.bootstrap, version, TOPICS)
        load = Load(fleet)
        with load.running():
            fleet.wait_for_isr([one.name for one in TOPICS], BROKERS)
            for moment in range(moments):
                _between(fleet, load, moment)
                time.sleep(1)
                _copy(fleet, copies, moment)
        copies.acknowledged = {topic: sorted(ones) for topic, ones in load.acknowledged.items()}
    finally:
        fleet.stop()
    shutil.rmtree(fleet.root)
    return copies


def _between(fleet: Fleet, load: Load, moment: int) -> None:
    """Do to the cluster what comes before a moment."""
    plain = [one.name for one in PLAIN]
    if moment == 2:
        home = fleet.log_dir(11)
        workloads.delete_topic(fleet.bootstrap, home, AGAIN.name)
        load.forget(AGAIN.name)
        workloads.create_topics(fleet.bootstrap, fleet.version, [AGAIN])
    elif moment == 3:
        fleet.stop(13)
        fleet.wait_for_isr(plain, (11, 12))
    elif moment == 4:
        fleet.launch(13)
        fleet.wait_for_isr(plain, BROKERS)
    elif moment == 5:
        fleet.stop(12)
        fleet.wait_for_isr(plain, (11, 13))
    elif moment == 6:
        fleet.launch(12)
        fleet.wait_for_isr(plain, BROKERS)


def _copy(fleet: Fleet, copies: Copies, moment: int) -> None:
    """Copy the volume of one node after the other, each while the node is paused."""
    nodes = list(fleet.all_nodes)
    random.Random(moment).shuffle(nodes)
    for node in nodes:
        pid = fleet.nodes[node].pid if node in fleet.nodes else None
        if pid:
            pause(pid)
        try:
            shutil.copytree(fleet.log_dir(node), copies.volume(moment, node))
        finally:
            if pid:
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.4)


def check_copies(copies: Copies) -> None:
    """Raise HarnessError if clients wrote nothing."""
    empty = [topic for topic in (one.name for one in PLAIN) if not copies.acknowledged[topic]]
    if empty:
        raise HarnessError(f"nothing was acknowledged in {empty}")
