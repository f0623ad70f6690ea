"""`verify --wrong-topic` finds the batch that a broker took for another topic, and nothing else.

The bytes that reach the broker are those of KAFKA-19012: the batch of one partition, with its
producer id, sequence and CRC, in a request for a partition of another topic. They come from this
test, or from a Java client that has the fault, see ``ReusedBuffers.java``.
"""

from __future__ import annotations

import socket
import subprocess
import threading
from pathlib import Path

import pytest
from broker import protocol, workloads
from broker.install import KAFKA_PER_APPEND, java_command
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic

from logtool.findings import Finding
from logtool.log import opening
from logtool.txns.wrong_topic import WrongTopics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

ORDERS, PAYMENTS = Topic("orders", "written by one client"), Topic("payments", "by another")
AUDITS = [Topic(f"audit-{name}", "the same records, from one client") for name in "ab"]


def batch_of(log_dir: Path, topic: str, number: int) -> bytes:
    """Return the bytes of a batch of partition 0, with the base offset that a client sends."""
    (segment,) = opening.open_partition(log_dir / f"{topic}-0").segments
    rows = [
        (int(position), int(size))
        for chunk in segment.batches(payload=False)
        for position, size in zip(chunk.table.position, chunk.table.size, strict=True)
    ]
    position, size = rows[number]
    data = segment.log.path.read_bytes()[position : position + size]
    return bytes(8) + data[8:]


def test_the_batch_that_a_broker_took_for_another_topic_is_found(
    kafka_version: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with Broker(kafka_version, [home], {}) as broker:
        format_log_dir(kafka_version, [home])
        broker.start()
        at = broker.bootstrap
        workloads.create_topics(at, kafka_version, [ORDERS, PAYMENTS, *AUDITS])
        clients = {
            name: workloads.Writer(at, enable_idempotence=True) for name in ("orders", "payments")
        }
        for topic in ("orders", "payments", "orders", "payments"):
            content = workloads.messages(topic, 20, workloads.EPOCH_MS)
            clients[topic].batches(topic, content, (5, 2))
        for audit in AUDITS:
            content = workloads.messages("audit", 20, workloads.EPOCH_MS)
            clients["orders"].batches(audit.name, content, (5, 2))
        protocol.produce(at, "payments", None, batch_of(home, "orders", 3))
        clients["payments"].batches("payments", workloads.messages("more", 9, 0), (3,))
        broker.stop()
    found = list(WrongTopics([home]))
    assert all(isinstance(one, Finding) for one in found), found
    (one,) = (item for item in found if isinstance(item, Finding))
    assert (one.code, one.topic, one.partition) == ("batch/other-topic", "payments", 0)
    assert (one.first_offset, one.last_offset) == (40, 41)


LATE, EARLY = "late", "early"
"""The topic whose batches expire in the client, and the topic that gets their buffers."""
PARTITIONS = 40
PROGRAM = Path(__file__).with_name("ReusedBuffers.java")


class Proxy:
    """Passes bytes between clients and a broker, and waits in one direction when asked to."""

    def __init__(self) -> None:
        self._listening = socket.socket()
        # With a large buffer the kernel takes the whole request.
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listening.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.requests, self.answers, self.passed = (threading.Event() for _ in range(3))
        self.requests.set()
        self.answers.set()

    def serve(self, broker: str) -> None:
        """Serve connections to a broker in the background."""
        self._listening.listen()
        threading.Thread(target=self._accept, args=(broker,), daemon=True).start()

    def _accept(self, broker: str) -> None:
        host, port = broker.split(":")
        while True:
            client, _ = self._listening.accept()
            try:
                server = socket.create_connection((host, int(port)))
            except OSError:
                client.close()  # the broker has ended
                continue
            for source, target, gate in (
                (client, server, self.requests), (server, client, self.answers)
            ):  # fmt: skip
                pump = threading.Thread(target=self._pump, args=(source, target, gate), daemon=True)
                pump.start()

    def _pump(self, source: socket.socket, target: socket.socket, gate: threading.Event) -> None:
        try:
            while gate.wait() and (data := source.recv(4096)):
                gate.wait()
                target.sendall(data)
                if gate is self.requests:
                    self.passed.set()
        except OSError:
            pass  # one of the two has closed the connection
        source.close()
        target.close()

    def obey(self, client: subprocess.Popen[str]) -> None:
        """Do what a client asks for, until it ends."""
        assert client.stdout
        assert client.stdin
        for line in client.stdout:
            match line.strip():
                case "hold the answers":
                    self.answers.clear()
                    self.passed.clear()
                case "wait for the request":
                    assert self.passed.wait(30)
                case "read nothing more and let the answers go":
                    self.requests.clear()
                    self.answers.set()
                case "read on":
                    self.requests.set()
            client.stdin.write("done\n")
            client.stdin.flush()


def wrong_batches(log_dir: Path, topic: str, other: str) -> set[tuple[str, int, int]]:
    """Return topic, partition and offset of the batches whose records say the other topic."""
    found = set()
    for number in range(PARTITIONS + 1):
        (segment,) = opening.open_partition(log_dir / f"{topic}-{number}").segments
        data = segment.log.path.read_bytes()
        for chunk in segment.batches(payload=False):
            table = chunk.table
            for at, size, offset in zip(table.position, table.size, table.base_offset, strict=True):
                if f"for {other} ".encode() in data[int(at) : int(at + size)]:
                    found.add((topic, number, int(offset)))
    return found


def test_batches_of_a_client_that_used_buffers_again_are_found_and_nothing_else(
    kafka_version: str, tmp_path: Path
) -> None:
    homes = [tmp_path / f"node-{node}" for node in (1, 2)]
    proxy = Proxy()
    through = {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}
    topics = [
        Topic(LATE, "on node 2", partitions=PARTITIONS + 1, replicas=(2,)),
        Topic(EARLY, "on node 1", partitions=PARTITIONS, replicas=(1,)),
    ]
    with (
        Broker(kafka_version, homes[:1], {}) as first,
        Broker(kafka_version, homes[1:], through, node_id=2, controller=first.controller) as second,
    ):
        format_log_dir(kafka_version, homes[:1])
        format_log_dir(kafka_version, homes[1:], node_id=2)
        first.start()
        second.launch()
        proxy.serve(second.bootstrap)
        second.wait_until_ready()
        workloads.create_topics(first.bootstrap, kafka_version, topics)
        other = workloads.Writer(first.bootstrap)
        for number in range(PARTITIONS):
            other.batches(LATE, workloads.messages("other", 1, workloads.now_ms()), (1,), number)
        command = java_command(KAFKA_PER_APPEND, str(PROGRAM), heap="256m", level="ERROR")
        client = subprocess.Popen(
            [*command, first.bootstrap, LATE, EARLY, str(PARTITIONS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        with client:
            proxy.obey(client)
        assert client.returncode == 0
        second.stop()
        first.stop()
    wrong = wrong_batches(homes[1], LATE, EARLY)
    assert len(wrong) > 1
    found = list(WrongTopics(homes))
    assert all(isinstance(one, Finding) and one.code == "batch/other-topic" for one in found), found
    assert {
        (one.topic, one.partition, one.first_offset) for one in found if isinstance(one, Finding)
    } == wrong
