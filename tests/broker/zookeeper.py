"""Runs a ZooKeeper on 127.0.0.1 for brokers of the releases that need one.

Maven downloads ZooKeeper 3.5 with Kafka 2.8. It runs on Java 17 and serves brokers from 1.0 on.
Releases before 2.4 have a client of ZooKeeper 3.4, which does not run on Java 17: install.py
replaces it with the newer client.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from broker.install import KAFKA_2, HarnessError, java_command
from deadlines import deadline_in
from ports import free_port

_running: weakref.WeakSet[ZooKeeper] = weakref.WeakSet()


class ZooKeeper:
    """A ZooKeeper with an empty tree, whose data are removed at the end.

    Use it as a context manager around the brokers: the process ends with the block.
    """

    def __init__(self) -> None:
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._work = tempfile.TemporaryDirectory(prefix="logtool-zookeeper-")
        self._log_path = Path(self._work.name) / "zookeeper.log"

    def __enter__(self) -> ZooKeeper:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._work.cleanup()

    @property
    def address(self) -> str:
        """The value of ``zookeeper.connect``."""
        return f"127.0.0.1:{self._port}"

    def start(self, timeout: float = 60.0) -> ZooKeeper:
        """Start it and wait until it answers.

        Raises HarnessError, with its log, after ``timeout`` seconds without an answer.
        """
        work = Path(self._work.name)
        properties = work / "zookeeper.properties"
        properties.write_text(
            f"dataDir={work / 'data'}\nclientPort={self._port}\nclientPortAddress=127.0.0.1\n"
            "tickTime=500\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,dump\n"
        )
        main_class = "org.apache.zookeeper.server.ZooKeeperServerMain"
        command = java_command(KAFKA_2, main_class, heap="128m", level="WARN")
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=work,
                start_new_session=True,
            )
        _running.add(self)
        self._wait(lambda: self._ask("ruok") == "imok", timeout, "an answer")
        return self

    def wait_until_forgotten(self, broker_id: int, timeout: float = 60.0) -> None:
        """Wait until the registration of a broker that is gone has expired."""
        node = f"/brokers/ids/{broker_id}"
        self._wait(lambda: node not in self._ask("dump").split(), timeout, f"the end of {node}")

    def kill(self) -> None:
        """End it at once; nothing happens when it does not run."""
        if self._process is None:
            return
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def _wait(self, ready: Callable[[], bool], timeout: float, what: str) -> None:
        deadline = deadline_in(timeout)
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                if ready():
                    return
            except OSError:
                pass  # It does not listen yet.
            time.sleep(0.05)
        log = self._log_path.read_text(errors="replace")
        self.kill()
        raise HarnessError(f"ZooKeeper: waited for {what}:\n{log}")

    def _ask(self, word: str) -> str:
        """Send one of ZooKeeper's four-letter words and return the answer."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=5) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


@atexit.register
def _kill_all() -> None:
    for zookeeper in list(_running):
        zookeeper.kill()
