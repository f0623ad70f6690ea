"""Directories that one release wrote, and their start with another release.

A directory is written by a release at one ``metadata.version``, with a static or a dynamic quorum,
as a node that is broker and controller or controller alone. `start` copies it and starts it with
any release.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broker.install import HarnessError, free_port, release
from broker.kafka import CLUSTER_ID, CONTROLLER_ID, Broker, run_tool
from broker.topics import Topic

WRITERS = ("3.3.2", "3.7.2", "3.9.2", "4.1.1", "4.2.1", "4.3.1", "4.4.0")
"""The releases that write directories, and start them."""
OLDEST_LEVEL = "3.3-IV3"
"""The ``metadata.version`` that every one of them offers."""
STARTED = "Kafka Server started"
ORDERS = Topic("orders", "two partitions", partitions=2)
_WITH_DYNAMIC_QUORUM = (3, 9)
"""The first release that knows a dynamic quorum."""
_NAMED = re.compile(r"(Exception|Error)\b[^\n]*")


@dataclass(frozen=True)
class Written:
    """A directory, by what wrote it."""

    writer: str
    oldest: bool = False
    """True with the oldest ``metadata.version``, False with the default of the release."""
    dynamic: bool = False
    """True with kraft.version 1."""
    features: tuple[str, ...] = ()
    """Other levels, such as ``eligible.leader.replicas.version=0``."""
    controller_only: bool = False

    @property
    def name(self) -> str:
        """Return the name of its directory."""
        parts = [
            self.writer,
            "oldest" if self.oldest else "newest",
            f"kraft{int(self.dynamic)}",
            *(one.replace("=", "") for one in self.features),
            *(["controller"] if self.controller_only else []),
        ]
        return "-".join(parts)


def all_written() -> Iterator[Written]:
    """Yield every directory of the campaign."""
    for writer in WRITERS:
        is_dynamic = release(writer) >= (4,)
        yield Written(writer, dynamic=is_dynamic)
        if writer != WRITERS[0]:
            yield Written(writer, oldest=True)
    yield Written("3.9.2", dynamic=True)
    for writer in ("4.1.1", "4.3.1", "4.4.0"):
        yield Written(writer)
        yield Written(writer, features=("eligible.leader.replicas.version=0",), dynamic=True)
    for writer in ("3.3.2", "3.7.2", "3.9.2", "4.1.1", "4.3.1", "4.4.0"):
        yield Written(writer, dynamic=release(writer) >= (4,), controller_only=True)
    yield Written("4.4.0", features=("share.version=1",), dynamic=True)


class Node(Broker):
    """A node whose quorum is that of its directory, and not the usual one of its release."""

    def __init__(self, written: Written, version: str, home: Path) -> None:
        super().__init__(version, [home])
        self.written = written

    def settings(self, port: int) -> dict[str, str]:
        """Return the settings; a release without dynamic quorums gets a static one."""
        found = super().settings(port)
        for name in ("controller.quorum.bootstrap.servers", "controller.quorum.voters"):
            found.pop(name, None)
        if self.written.dynamic and release(self.version) >= _WITH_DYNAMIC_QUORUM:
            found["controller.quorum.bootstrap.servers"] = self.controller
        else:
            found["controller.quorum.voters"] = f"{CONTROLLER_ID}@{self.controller}"
        if self.written.controller_only:
            found["process.roles"] = "controller"
            found["listeners"] = f"CONTROLLER://{self.controller}"
            if release(self.version) < (4,):
                del found["broker.heartbeat.interval.ms"], found["broker.session.timeout.ms"]
        return found

    def wait_until_started(self, timeout: float = 60.0) -> bool:
        """Wait until the node has started, and return True; False if its process ends.

        Raises HarnessError if it does neither within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if STARTED in self.log:
                return True
            if self.pid is None:
                return False
            time.sleep(0.1)
        raise HarnessError(f"neither started nor ended after {timeout} s:\n{self.log_tail()}")


def write(written: Written, root: Path) -> Path:
    """Return the directory; it is made the first time that it is asked for."""
    home = root / written.name
    if home.is_dir():
        return home
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".writing-") as temporary:
        made = Path(temporary) / "log-dir"
        made.mkdir()
        with Node(written, written.writer, made) as node:
            _format(node, Path(temporary))
            node.launch()
            if not node.wait_until_started():
                raise HarnessError(f"{written.name} does not start:\n{node.log_tail()}")
            if not written.controller_only:
                _fill(node)
            node.stop()
        made.rename(home)
    return home


def _format(node: Node, temporary: Path) -> None:
    written, settings = node.written, node.settings(free_port())
    properties = temporary / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    words = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
    if written.oldest:
        words += ["--release-version", OLDEST_LEVEL]
    if written.dynamic:
        words.append("--standalone")
        if release(written.writer) < (4,):
            words += ["--feature", "kraft.version=1"]
    for one in written.features:
        words += ["--feature", one]
    run_tool(written.writer, "kafka.tools.StorageTool", *words)


def _fill(node: Node) -> None:
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import workloads

    node.wait_until_ready()
    workloads.create_topics(node.bootstrap, node.version, [ORDERS])
    writer = workloads.Writer(node.bootstrap)
    writer.batches(ORDERS.name, workloads.messages("orders", 40, workloads.EPOCH_MS), [10])


@dataclass(frozen=True)
class Start:
    """The outcome of a start."""

    starts: bool
    errors: tuple[str, ...] = ()
    """The first lines of the log that name an exception or an error."""


def start(written: Written, home: Path, version: str) -> Start:
    """Start a release on a copy of the directory."""
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".starting-") as temporary:
        copy = Path(temporary) / "log-dir"
        shutil.copytree(home, copy)
        with Node(written, version, copy) as node:
            node.launch()
            starts = node.wait_until_started()
            log = node.log
    errors = [line.strip() for line in log.splitlines() if _NAMED.search(line)]
    return Start(starts, () if starts else tuple(dict.fromkeys(errors))[:12])
