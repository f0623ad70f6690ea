"""Runs real Kafka brokers on 127.0.0.1.

With KRaft the first node is broker and controller in one process; more brokers can join it. With
ZooKeeper (see ``zookeeper.py``) every node is a broker, and log dirs need no formatting.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from broker.install import (
    HarnessError,
    class_archive,
    fetching,
    install,
    java_command,
    major,
    release,
)
from broker.zookeeper import ZooKeeper
from deadlines import deadline_in
from ports import free_port

CLUSTER_ID = "bG9ndG9vbC10ZXN0cy0wMQ"
"""Every log dir of the harness belongs to this cluster: 16 bytes in URL-safe base64."""

CONTROLLER = re.compile(r"Controller|ExpiredBrokerHeartbeat|Timed out heartbeat")
"""A line of a broker's log that is about its controller."""

CAUSE = re.compile(r"^(\[[^]]*\] (ERROR|FATAL) |Caused by: )")
"""A line of a broker's log that gives an error or its cause."""

CONTROLLER_ID = 1
"""The node that is the controller, and the only one where a single broker is wanted."""

ALONE: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    # The default of 128 MiB is more than the small heap has to give.
    "log.cleaner.dedupe.buffer.size": "4194304",
}
"""Settings of a small broker that runs alone; they do not change the default files on disk."""

BASE_CONFIG: Mapping[str, str] = {
    **ALONE,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # A killed broker may register again once its old registration has timed out, 9 s by default.
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
}
"""``ALONE`` with KRaft."""

ZOOKEEPER_CONFIG: Mapping[str, str] = {
    **ALONE,
    # ZooKeeper forgets a killed broker after this time, 6 or 18 s by default.
    "zookeeper.session.timeout.ms": "2000",
}
"""``ALONE`` with ZooKeeper."""

WITH_SHARE_GROUPS = (4, 2)
"""The first release whose share groups need no setting."""
SHARE_CONFIG: Mapping[str, str] = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""Settings of a release with share groups, in addition to `BASE_CONFIG`."""

_running: weakref.WeakSet[Broker] = weakref.WeakSet()


def format_log_dir(
    version: str,
    log_dirs: Sequence[Path],
    *,
    node_id: int = CONTROLLER_ID,
    extra_config: Mapping[str, str] | None = None,
) -> None:
    """Format log dirs as ``kafka-storage.sh format`` does; node 1 is the only controller.

    Kafka 4 gets a dynamic quorum (kraft.version 1), Kafka 3 a static one (kraft.version 0): these
    are what either release's own quick start makes.
    """
    for log_dir in log_dirs:
        log_dir.mkdir(parents=True, exist_ok=True)
    controller = f"127.0.0.1:{free_port()}"
    config = _config(version, log_dirs, node_id, free_port(), controller, extra_config or {})
    with tempfile.TemporaryDirectory(prefix="logtool-kafka-") as temporary:
        properties = _write_properties(Path(temporary), config)
        arguments = ["format", "-t", CLUSTER_ID, "-c", str(properties)]
        if major(version) >= 4:
            alone = node_id == CONTROLLER_ID
            arguments.append("--standalone" if alone else "--no-initial-controllers")
        run_tool(version, "kafka.tools.StorageTool", *arguments)


def errors_in(log: str) -> list[str]:
    """Return the lines of errors in a broker's log, without those of the controller.

    On a busy machine the controller reports late heartbeats and repeated registrations as
    errors. They say nothing about a file.
    """
    alarms = [line for line in log.splitlines() if " ERROR " in line or " FATAL " in line]
    return [line for line in alarms if not CONTROLLER.search(line)]


def run_tool(version: str, main_class: str, *arguments: str) -> str:
    """Run one of Kafka's command-line classes and return what it printed.

    Raises HarnessError with its output when it fails.
    """
    command = [*java_command(version, main_class, heap="256m", level="WARN"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    if done.returncode != 0:
        raise HarnessError(f"{main_class} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Broker:
    """A broker on existing, formatted log dirs; it may be started again after a stop or a kill.

    Use it as a context manager: the process ends with the block.
    """

    def __init__(
        self,
        version: str,
        log_dirs: Sequence[Path],
        extra_config: Mapping[str, str] | None = None,
        *,
        node_id: int = CONTROLLER_ID,
        controller: str | None = None,
        jvm_options: Sequence[str] = (),
        zookeeper: ZooKeeper | None = None,
        user: int | None = None,
    ) -> None:
        """``controller`` is the ``controller`` of node 1, for every other node.

        ``zookeeper`` is a running one, for a broker that is not to use KRaft. ``user`` is the
        number of the user that it runs as; None for that of the tests.
        """
        self.version = version
        self.log_dirs = [path.resolve() for path in log_dirs]
        self.extra_config = dict(extra_config or {})
        self.jvm_options = tuple(jvm_options)
        self.node_id = node_id
        self.zookeeper = zookeeper
        self.user = user
        self.bootstrap = ""
        # Kept over restarts: other nodes, and the quorum's own records, know it by this address.
        self.controller = controller or f"127.0.0.1:{free_port()}"
        self._process: subprocess.Popen[bytes] | None = None
        self._launched_at = 0
        self._work = tempfile.TemporaryDirectory(prefix="logtool-broker-")
        self._log_path = Path(self._work.name) / "broker.log"

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._work.cleanup()

    @property
    def pid(self) -> int | None:
        """The process id while the broker runs, else None."""
        return self._process.pid if self._process and self._process.poll() is None else None

    @property
    def log(self) -> str:
        """Everything that the broker has logged since it was made, all starts together."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def log_tail(self, lines: int = 40) -> str:
        """Return the errors and their causes since the last launch, and the last lines."""
        logged = self.log[self._launched_at :].splitlines()
        causes = [line for line in logged[:-lines] if CAUSE.search(line)]
        return "\n".join([*causes[:lines], *logged[-lines:]])

    def start(self, timeout: float = 300.0) -> Broker:
        """Start the broker and wait until a client can see it.

        Raises HarnessError, with the tail of the broker's log, when it ends or does not answer
        within ``timeout`` seconds.
        """
        self.launch()
        self.wait_until_ready(timeout)
        return self

    def launch(self) -> None:
        """Start the broker and wait for nothing."""
        if self.pid is not None:
            raise HarnessError("the broker is already running")
        port = free_port()
        config = self.settings(port)
        self._launched_at = len(self.log)
        properties = _write_properties(Path(self._work.name), config)
        if self.user is not None:
            os.chown(self._work.name, self.user, self.user)
        command = java_command(self.version, "kafka.Kafka", heap="512m", level="INFO")
        # Behind those of the harness, so that they win.
        at = command.index("-cp")
        command[at:at] = self.jvm_options
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._work.name,
                # Its own group: a Ctrl-C meant for the tests must not stop the broker first.
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else (),
            )
        _running.add(self)
        self.bootstrap = f"127.0.0.1:{port}"

    def wait_until_ready(self, timeout: float = 300.0) -> None:
        """Wait until a client can see a broker that was launched; fails as `start` does."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        assert self._process is not None
        client = AdminClient({"log_level": 0, "bootstrap.servers": self.bootstrap})
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            code = self._process.poll()
            if code is not None:
                self._process = None
                message = f"the broker ended with {code} while starting:\n{self.log_tail()}"
                raise HarnessError(message)
            try:
                if self.node_id in client.list_topics(timeout=1.0).brokers:
                    return
            except KafkaException:
                time.sleep(0.1)
        self.kill()
        raise HarnessError(f"the broker was not ready after {timeout} s:\n{self.log_tail()}")

    def stop(self, timeout: float = 300.0) -> None:
        """Stop the broker in order (SIGTERM) and wait until it is gone.

        Raises HarnessError when it had to be killed after ``timeout`` seconds.
        """
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            message = f"no orderly stop within {timeout} s:\n{self.log_tail()}"
            raise HarnessError(message) from None
        self._process = None

    def kill(self) -> None:
        """End the broker at once (SIGKILL); nothing happens when it does not run."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def settings(self, port: int) -> dict[str, str]:
        """Return the settings of a start at which clients connect to a port."""
        if self.zookeeper is None:
            return _config(
                self.version, self.log_dirs, self.node_id, port, self.controller, self.extra_config
            )
        # A killed broker is refused for as long as ZooKeeper takes its session for a living one.
        self.zookeeper.wait_until_forgotten(self.node_id)
        return {
            **ZOOKEEPER_CONFIG,
            "broker.id": str(self.node_id),
            "log.dirs": _joined(self.log_dirs),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": self.zookeeper.address,
            **self.extra_config,
        }


def pause(pid: int, timeout: float = 60.0) -> None:
    """Suspend a process (SIGSTOP), and wait until none of its threads runs any more.

    Raises HarnessError if one still runs after ``timeout`` seconds.
    """
    os.kill(pid, signal.SIGSTOP)
    deadline = deadline_in(timeout)
    while not _is_paused(pid):
        if time.monotonic() > deadline:
            raise HarnessError(f"process {pid} was not suspended within {timeout} s")
        time.sleep(0.01)


def _is_paused(pid: int) -> bool:
    """Return whether all threads of a process are stopped, or have ended."""
    states = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name before the state may hold spaces and brackets.
            states.append((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return set(states) <= {"T", "Z", "X"}


def share_classes(version: str) -> None:
    """Keep the loaded classes of a broker of a release in an archive, unless there is one.

    With it a start takes about half of the time of the processor. Releases before 3.3 go without.
    """
    target = class_archive(version)
    if target.exists() or release(version) < (3, 3):
        return
    install(version)  # before the lock below, which it takes too
    with fetching(target) as temporary:
        if target.exists():
            return
        made = temporary / "classes.jsa"
        format_log_dir(version, [temporary / "log-dir"])
        option = f"-XX:ArchiveClassesAtExit={made}"
        with Broker(version, [temporary / "log-dir"], jvm_options=[option]) as broker:
            broker.start()
            broker.stop()
        made.rename(target)


def _config(
    version: str,
    log_dirs: Sequence[Path],
    node_id: int,
    port: int,
    controller: str,
    extra: Mapping[str, str],
) -> dict[str, str]:
    config = dict(BASE_CONFIG)
    config["node.id"] = str(node_id)
    config["log.dirs"] = _joined(log_dirs)
    config["listeners"] = f"PLAINTEXT://127.0.0.1:{port}"
    config["process.roles"] = "broker"
    if node_id == CONTROLLER_ID:
        config["listeners"] += f",CONTROLLER://{controller}"
        config["process.roles"] += ",controller"
    if major(version) >= 4:
        config["controller.quorum.bootstrap.servers"] = controller
    else:
        config["controller.quorum.voters"] = f"{CONTROLLER_ID}@{controller}"
    return {**config, **extra}


def _joined(log_dirs: Sequence[Path]) -> str:
    return ",".join(str(path.resolve()) for path in log_dirs)


def _write_properties(folder: Path, config: Mapping[str, str]) -> Path:
    path = folder / "server.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in sorted(config.items())))
    return path


@atexit.register
def _kill_all() -> None:
    for broker in list(_running):
        broker.kill()
