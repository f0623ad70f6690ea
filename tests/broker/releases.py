"""Directories that one release wrote, and their start with another release.

A directory is written by a release at one ``metadata.version``, with a static or a dynamic quorum,
by a node that is broker and controller, or either alone. `start` copies it and starts any
release on the copy; `predicted` asks logtool.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from broker.install import HarnessError, minor, release
from broker.kafka import CLUSTER_ID, CONTROLLER_ID, Broker, run_tool
from broker.topics import Topic
from ports import free_port

from logtool.metadata import releases
from logtool.node.options import StartOptions
from logtool.startup.releases import ReleaseStart, of_all_releases

WRITERS = ("3.3.2", "3.7.2", "3.9.2", "4.1.1", "4.2.1", "4.3.1", "4.4.0")
"""The releases that write directories; those of `RELEASES` start them."""
OLDEST_LEVEL = "3.3-IV3"
"""The ``metadata.version`` that every one of them offers."""
STARTED = "Kafka Server started"
ORDERS = Topic("orders", "two partitions", partitions=2)
_WITH_DYNAMIC_QUORUM = (3, 9)
_PATIENCE = 30.0
"""Seconds after which a node that has neither started nor ended counts as one that waits."""
_NAMED = re.compile(r"(Exception|Error)\b|Unable to register broker")
_CAUSES = {
    "quorum-state": re.compile(r"QuorumStateData: unable|Unknown data version of"),
    "record": re.compile(r"Failed to deserialize record|Can't read version|Unknown metadata id"
                         r"|Unknown control record|garbage"
                         # 3.8 at the records of kraft.version 1 in a snapshot.
                         r"|Next offset -1 must be"),
    "level": re.compile(r"No MetadataVersion with|but this (controller|broker) only supports"
                        # The release knows the level, does not offer it, and waits for ever.
                        r"|controller returned error UNSUPPORTED_VERSION"),
}  # fmt: skip
"""By the causes of `ReleaseStart`: what the node logs."""


@dataclass(frozen=True)
class Written:
    """A directory, by what wrote it."""

    writer: str
    level: str = ""
    """Name of the ``metadata.version`` that it was formatted with; empty: the newest."""
    raised: bool = False
    """True if the running node then raised ``metadata.version`` to the newest."""
    dynamic: bool = False
    """True with kraft.version 1."""
    features: tuple[str, ...] = ()
    """Other levels, such as ``eligible.leader.replicas.version=0``."""
    controller_only: bool = False
    broker_only: bool = False
    """True for the log dir of a broker whose controller is another node, of the same release."""

    @property
    def name(self) -> str:
        """Return the name of its directory."""
        parts = [
            self.writer,
            self.level or "newest",
            *(["raised"] if self.raised else []),
            f"kraft{int(self.dynamic)}",
            *(one.replace(".version=", "") for one in self.features),
            *(["controller"] if self.controller_only else []),
            *(["broker"] if self.broker_only else []),
        ]
        return "-".join(parts)


def all_written() -> Iterator[Written]:
    """Yield every directory of the campaign."""
    for writer in WRITERS:
        yield Written(writer, dynamic=release(writer) >= (4,))
        if writer != WRITERS[0]:
            yield Written(writer, OLDEST_LEVEL)
            yield Written(writer, OLDEST_LEVEL, raised=True)
            yield Written(writer, dynamic=release(writer) >= (4,), controller_only=True)
    yield Written("3.9.2", dynamic=True)
    for writer in ("4.1.1", "4.3.1", "4.4.0"):
        yield Written(writer)
        yield Written(writer, features=("eligible.leader.replicas.version=0",), dynamic=True)
    for level in ("3.7-IV4", "3.9-IV0", "4.0-IV3", "4.1-IV1", "4.2-IV1", "4.3-IV0"):
        yield Written("4.4.0", level)
    yield Written("4.4.0", "4.2-IV1", dynamic=True)
    yield Written("4.4.0", features=("share.version=1",), dynamic=True)
    yield Written("3.9.2", broker_only=True)
    for writer in ("4.3.1", "4.4.0"):
        yield Written(writer, dynamic=True, broker_only=True)


class Node(Broker):
    """A node whose quorum is that of its directory, and not the usual one of its release."""

    def __init__(
        self, written: Written, version: str, home: Path, controller: Node | None = None
    ) -> None:
        """``controller`` is the other node, for a node with the role of a broker alone."""
        super().__init__(
            version, [home], node_id=CONTROLLER_ID + 1 if controller else CONTROLLER_ID,
            controller=controller.controller if controller else None,
        )  # fmt: skip
        self.written = written

    def __enter__(self) -> Node:
        return self

    def settings(self, port: int) -> dict[str, str]:
        """Return the settings; a release without dynamic quorums gets a static one."""
        found = super().settings(port)
        for name in ("controller.quorum.bootstrap.servers", "controller.quorum.voters"):
            found.pop(name, None)
        if self.written.dynamic and release(self.version) >= _WITH_DYNAMIC_QUORUM:
            found["controller.quorum.bootstrap.servers"] = self.controller
        else:
            found["controller.quorum.voters"] = f"{CONTROLLER_ID}@{self.controller}"
        if self.written.controller_only and self.node_id == CONTROLLER_ID:
            found["process.roles"] = "controller"
            found["listeners"] = f"CONTROLLER://{self.controller}"
        return found

    def wait_until_started(self) -> bool:
        """Wait until the node has started, and return True.

        Return False if its process ends, or if it does neither within `_PATIENCE`.
        """
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            if STARTED in self.log:
                return True
            if self.pid is None:
                return False
            time.sleep(0.1)
        return False


def write(written: Written, root: Path) -> Path:
    """Return the directory; it is made the first time that it is asked for."""
    home = root / written.name
    if home.is_dir():
        return home
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".writing-") as temporary:
        made = Path(temporary) / "log-dir"
        with _controller(written, made, Path(temporary)) as controller:
            log_dir(written, made).mkdir(parents=True)
            with Node(written, written.writer, log_dir(written, made), controller) as node:
                _format(node, Path(temporary))
                _launch(node)
                if not written.controller_only:
                    _fill(node)
                if written.raised:
                    _raise(node)
                node.stop()
        made.rename(home)
    return home


def log_dir(written: Written, home: Path) -> Path:
    """Return the log dir that other releases start on."""
    return home / "broker" if written.broker_only else home


@contextmanager
def _controller(written: Written, home: Path, work: Path | None = None) -> Iterator[Node | None]:
    """Yield the controller of a node with the role of a broker alone; `work` to format it."""
    if not written.broker_only:
        yield None
        return
    with Node(replace(written, controller_only=True), written.writer, home / "controller") as node:
        if work:
            node.log_dirs[0].mkdir(parents=True)
            _format(node, work)
        _launch(node)
        yield node
        node.stop()


def _launch(node: Node) -> None:
    node.launch()
    if not node.wait_until_started():
        raise HarnessError(f"{node.written.name} does not start:\n{node.log_tail()}")


def _format(node: Node, temporary: Path) -> None:
    written, settings = node.written, node.settings(free_port())
    properties = temporary / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    words = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
    if written.level:
        words += ["--release-version", written.level]
    if written.dynamic and node.node_id != CONTROLLER_ID:
        words.append("--no-initial-controllers")
    elif written.dynamic:
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


def _raise(node: Node) -> None:
    """Raise ``metadata.version`` to the newest level of the release."""
    newest = releases.supported()[minor(node.version)].offers[releases.METADATA_VERSION].last
    words = ["--bootstrap-server", node.bootstrap, "upgrade", "--metadata"]
    command = "org.apache.kafka.tools.FeatureCommand"
    run_tool(node.version, command, *words, releases.feature_name(newest))


@dataclass(frozen=True)
class Start:
    """The outcome of a start."""

    starts: bool
    cause: str | None = None
    """Cause of a refusal, as in `ReleaseStart`; None if it starts, or for another error."""
    error: str = ""
    """The line of the log that shows the cause."""


def start(written: Written, home: Path, version: str) -> Start:
    """Start a release on a copy of the directory."""
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".starting-") as temporary:
        copy = Path(temporary) / "log-dir"
        shutil.copytree(home, copy)
        with (
            _controller(written, copy) as controller,
            Node(written, version, log_dir(written, copy), controller) as node,
        ):
            node.launch()
            starts = node.wait_until_started()
            log = node.log
            node.kill()
    if starts:
        return Start(starts=True)
    lines = [line.strip() for line in log.splitlines() if _NAMED.search(line)]
    for line in lines:
        for cause, pattern in _CAUSES.items():
            if pattern.search(line):
                return Start(starts=False, cause=cause, error=line)
    return Start(starts=False, error=lines[0] if lines else "")


def predicted(home: Path) -> dict[str, ReleaseStart]:
    """Return the prediction of logtool for a log dir and each release, by its minor release."""
    found = {}
    for one in of_all_releases([home], StartOptions()):
        if not isinstance(one, ReleaseStart):
            raise one
        found[one.kafka] = one
    return found


def difference(expected: ReleaseStart, seen: Start) -> str | None:
    """Return how a start differs from the prediction; None if it does not."""
    if (expected.outcome == "starts") != seen.starts:
        return f"predicted: {expected.outcome}, {expected.reason}; seen: {seen}"
    if not seen.starts and expected.cause != seen.cause:
        return f"predicted: {expected.cause}, {expected.reason}; seen: {seen.cause}, {seen.error}"
    return None
