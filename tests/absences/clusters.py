"""The nodes of a base, started on the same log dirs again and again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from broker.install import HarnessError
from broker.kafka import CONTROLLER_ID, Broker, format_log_dir
from ports import free_port


@dataclass(frozen=True)
class Layout:
    """The nodes of a cluster and their log dirs; node 1 is the only controller."""

    name: str
    nodes: Mapping[int, Sequence[str]]
    """Names of the log dirs of each node; the first one has the metadata log."""
    controller_alone: bool = False
    """True if node 1 is no broker."""
    judged: int = CONTROLLER_ID
    """The node from which something is removed."""

    @property
    def dirs(self) -> list[str]:
        """All log dirs."""
        return [name for names in self.nodes.values() for name in names]


LAYOUTS = {
    one.name: one
    for one in (
        Layout("one", {1: ("a",)}),
        Layout("two-dirs", {1: ("a", "b")}),
        Layout("broker", {1: ("c",), 2: ("a", "b")}, controller_alone=True, judged=2),
        Layout("controller", {1: ("c",), 2: ("a", "b")}, controller_alone=True, judged=1),
        Layout("three", {1: ("a",), 2: ("b",), 3: ("d",)}, judged=2),
    )
}


class Cluster:
    """The running nodes of a layout; use it as a context manager."""

    def __init__(self, version: str, layout: Layout, root: Path, config: Mapping[str, str]) -> None:
        controller = f"127.0.0.1:{free_port()}"
        self.layout = layout
        self.root = root
        self._stack = ExitStack()
        self.nodes = {
            node: Broker(
                version, self.dirs(node), self._own(node, controller, config), node_id=node,
                controller=controller,
            )
            for node in layout.nodes
        }  # fmt: skip

    def __enter__(self) -> Cluster:
        for broker in self.nodes.values():
            self._stack.enter_context(broker)
        return self

    def __exit__(self, *of_error: object) -> None:
        self._stack.close()

    def dirs(self, node: int) -> list[Path]:
        """Return the log dirs of a node."""
        return [self.root / name for name in self.layout.nodes[node]]

    @property
    def judged(self) -> Broker:
        """The node from which something is removed."""
        return self.nodes[self.layout.judged]

    @property
    def client(self) -> Broker:
        """A broker for clients to connect to."""
        first = 2 if self.layout.controller_alone else CONTROLLER_ID
        return self.nodes[first]

    def format(self) -> None:
        """Format all log dirs."""
        for node, broker in self.nodes.items():
            format_log_dir(
                broker.version, self.dirs(node), node_id=node, extra_config=broker.extra_config
            )

    def start(self, timeout: float = 90) -> None:
        """Start all nodes; raise HarnessError when one ends or does not answer."""
        for broker in self.nodes.values():
            broker.launch()
        for node, broker in self.nodes.items():
            if self.layout.controller_alone and node == CONTROLLER_ID:
                continue
            broker.wait_until_ready(timeout)
        if any(broker.pid is None for broker in self.nodes.values()):
            raise HarnessError("a node ended with an error while starting")

    def stop(self) -> None:
        """Stop all nodes in order, the controller last."""
        for broker in reversed(self.nodes.values()):
            broker.stop()

    def kill(self) -> None:
        """Kill all nodes."""
        for broker in self.nodes.values():
            broker.kill()

    @property
    def log(self) -> str:
        """Everything that the judged node has logged."""
        return self.judged.log

    def properties(self) -> str:
        """Return the judged node's own file, as its starts have it."""
        config = self.judged.settings(9092)
        return "".join(f"{key}={value}\n" for key, value in sorted(config.items()))

    def _own(self, node: int, controller: str, config: Mapping[str, str]) -> dict[str, str]:
        if node == CONTROLLER_ID and self.layout.controller_alone:
            listeners = {"process.roles": "controller", "listeners": f"CONTROLLER://{controller}"}
            return {**config, **listeners}
        return dict(config)


_ERROR = re.compile(
    r"^(?:Caused by: )?((?:[a-z]+\.)+[A-Za-z.]*(?:Exception|Error)[^\n]*)", re.MULTILINE
)


def first_error(log: str) -> str:
    """Return the line with the first exception that a broker logged; empty without one."""
    found = _ERROR.search(log)
    return found[1] if found else ""
