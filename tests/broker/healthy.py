"""Traffic that leaves a healthy log dir.

`Workload` writes to a running broker; the caller starts it and chooses its release. A seed
determines the traffic. The broker cleans the records of a round in later rounds, so the rarest
states need several rounds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from broker import workloads
from broker.topics import Topic
from broker.workloads import Writer


class Node(Protocol):
    """The parts of a broker that the traffic uses."""

    version: str
    log_dirs: list[Path]
    bootstrap: str

    def start(self) -> object:
        """Start it and wait until clients see it."""

    def stop(self) -> None:
        """Stop it in order."""

    def kill(self) -> None:
        """End it at once."""


Job = Callable[["Workload", Topic, random.Random], None]


@dataclass(frozen=True)
class Subject:
    """A topic and the job that writes to it in each round."""

    topic: Topic
    job: Job
    since: tuple[int, int] = (0, 0)
    """The first release that takes part."""
    lively: bool = False
    """True if the background traffic also writes to the topic."""

    @property
    def compacted(self) -> bool:
        """Return whether the cleaner works on it."""
        return "compact" in self.topic.config.get("cleanup.policy", "")


@dataclass
class Workload:
    """The requests of clients to one broker, round by round."""

    node: Node
    seed: str
    subjects: Sequence[Subject]
    rounds: int = 0
    patience: float = 30.0
    """Time in seconds that a client waits for the broker."""
    open_writers: dict[str, list[Writer]] = field(default_factory=dict)
    """Transactional writers by topic; they live as long as the broker runs."""

    def create(self) -> None:
        """Create the topics; once for a log dir."""
        topics = [subject.topic for subject in self.subjects]
        workloads.create_topics(self.node.bootstrap, self.node.version, topics)

    def round(self, *, leave_open: bool = False) -> None:
        """Write to every topic, and wait until the cleaner has cleaned the compacted topics.

        With ``leave_open`` leave transactions open and wait for nothing.
        """
        self.rounds += 1
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(self._write, subject) for subject in self.subjects]
        for job in jobs:
            job.result()
        if leave_open:
            for topic, writers in self.open_writers.items():
                for number, writer in enumerate(writers[:2]):
                    writer.producer.begin_transaction()
                    content = workloads.messages(f"open-{topic}-{number}", 6, workloads.now_ms())
                    writer.batch(topic, [one for one in content if one.key is not None])
            return
        for subject in self.subjects:
            if subject.compacted:
                self.wait_for_cleaner(subject.topic.name)

    def rng(self, name: str) -> random.Random:
        """Return the random generator of this round for a purpose."""
        return random.Random(f"{self.seed}-{self.rounds}-{name}")

    def forget_clients(self) -> None:
        """Drop the clients of a broker that is gone."""
        for writers in self.open_writers.values():
            for writer in writers:
                writer.producer.purge()
        self.open_writers.clear()

    def transactional(self, topic: str, count: int) -> list[Writer]:
        """Return the transactional writers of a topic."""
        if topic not in self.open_writers:
            names = [f"{topic}-{number}" for number in range(count)]
            self.open_writers[topic] = [
                workloads.transactional(self.node.bootstrap, name) for name in names
            ]
        return self.open_writers[topic]

    def writer(self, codec: str = "none", **config: Any) -> Writer:
        """Return a producer that waits no longer than `patience`."""
        writer = Writer(self.node.bootstrap, codec, **config)
        writer.patience = self.patience
        return writer

    def folder(self, topic: str, partition: int = 0) -> Path:
        """Return the directory of a partition."""
        name = f"{topic}-{partition}"
        return next(path / name for path in self.node.log_dirs if (path / name).is_dir())

    def wait_for_cleaner(self, topic: str) -> None:
        """Wait until every segment below the active one was cleaned."""
        if len(list(self.folder(topic).glob("*.log"))) == 1:
            return  # the active segment, which is never cleaned
        workloads.wait_for_cleaner(self.folder(topic).parent, topic, 0)

    def _write(self, subject: Subject) -> None:
        subject.job(self, subject.topic, self.rng(subject.topic.name))
