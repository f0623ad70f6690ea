"""Three controllers whose names only their own hosts file resolves.

Node 1 is also a broker and holds the topics; nodes 2 and 3 are controllers only. The log dirs of a
killed cluster can be started again with other names and ports.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broker.kafka import BASE_CONFIG, CLUSTER_ID, Broker, run_tool
from ports import free_port

NODES = (1, 2, 3)
DIRECTORY_IDS = {node: f"bG9ndG9vbC1kaXJzLS0w{node}Q" for node in NODES}
FEATURES: Sequence[str] = ("--feature", "kraft.version=1")


def name_of(node: int) -> str:
    """Return the name of a controller, which nothing but the hosts file resolves."""
    return f"controller-{node}.invalid"


@dataclass
class Quorum:
    """The log dirs of three controllers, and the addresses at which they are found."""

    version: str
    root: Path
    dynamic: bool = True
    addresses: dict[int, str] = field(default_factory=dict)
    """``host:port`` of each controller."""
    nodes: dict[int, Broker] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.addresses = self.addresses or {n: f"{name_of(n)}:{free_port()}" for n in NODES}
        self.hosts = self.root / "hosts"
        self.hosts.write_text("".join(f"127.0.0.1 {name_of(node)}\n" for node in NODES))

    def log_dir(self, node: int) -> Path:
        """Return the log dir of a node."""
        return self.root / f"node-{node}"

    def voters(self, nodes: Sequence[int] = NODES) -> str:
        """Return the voters as ``controller.quorum.voters`` has them."""
        return ",".join(f"{node}@{self.addresses[node]}" for node in nodes)

    def format(self) -> None:
        """Format one log dir with the tool of the release, which needs a JVM, and copy it."""
        first = self.log_dir(1)
        first.mkdir()
        config = {**self.config(1), "node.id": "1", "log.dirs": str(first)}
        config |= {"process.roles": "broker,controller"}
        arguments = ["format", "-t", CLUSTER_ID]
        if self.dynamic:
            initial = ",".join(
                f"{node}@{self.addresses[node]}:{DIRECTORY_IDS[node]}" for node in NODES
            )
            arguments += ["--initial-controllers", initial]
        with tempfile.TemporaryDirectory(prefix="logtool-quorum-") as temporary:
            properties = Path(temporary) / "server.properties"
            properties.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
            run_tool(self.version, "kafka.tools.StorageTool", *arguments, "-c", str(properties))
        for node in NODES[1:]:
            shutil.copytree(first, self.log_dir(node))
        for node in NODES:
            meta = self.log_dir(node) / "meta.properties"
            lines = [_own(line, node) for line in meta.read_text().splitlines()]
            meta.write_text("".join(f"{line}\n" for line in lines))

    def config(self, node: int) -> dict[str, str]:
        """Return the settings of a node without its log dir."""
        port = self.addresses[node].rpartition(":")[2]
        client = f"PLAINTEXT://127.0.0.1:{free_port()},"
        listeners = f"{client if node == 1 else ''}CONTROLLER://127.0.0.1:{port}"
        config = {
            **BASE_CONFIG,
            "process.roles": "broker,controller" if node == 1 else "controller",
            "listeners": listeners,
            "advertised.listeners": f"{client if node == 1 else ''}CONTROLLER://{self.addresses[node]}",
            "controller.quorum.election.timeout.ms": "300",
            "controller.quorum.election.backoff.max.ms": "300",
        }
        if self.dynamic:
            config["controller.quorum.bootstrap.servers"] = ",".join(self.addresses.values())
        else:
            config["controller.quorum.voters"] = self.voters(tuple(self.addresses))
        return config

    def launch(self, *nodes: int, resolving: bool = True) -> None:
        """Start nodes and wait for nothing; without `resolving` their names do not resolve."""
        for node in nodes:
            config = self.config(node)
            options = [f"-Djdk.net.hosts.file={self.hosts}"] if resolving else []
            broker = Broker(
                self.version, [self.log_dir(node)], config, node_id=node, jvm_options=options
            )
            self.nodes[node] = broker
            broker.launch()
            if node == 1:
                broker.bootstrap = config["listeners"].split(",")[0].removeprefix("PLAINTEXT://")

    def kill(self, *nodes: int) -> None:
        """End nodes by SIGKILL; by default all."""
        for node in nodes or tuple(self.nodes):
            self.nodes.pop(node).__exit__(None, None, None)


def _own(line: str, node: int) -> str:
    own: Mapping[str, str] = {"node.id": str(node), "directory.id": DIRECTORY_IDS[node]}
    key = line.partition("=")[0]
    return f"{key}={own[key]}" if key in own else line
