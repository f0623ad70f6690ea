"""The states in which a healthy log dir is judged, and the verdict of logtool on each.

`states` takes a broker that has not been started yet through its life and stops at each state, so
that the caller can look. It asks nothing of the broker but what `healthy.Node` has.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from broker import healthy_topics, workloads
from broker.healthy import Node, Workload
from broker.install import HarnessError
from confluent_kafka import KafkaException
from verification import verify

from logtool.verify import Level

BROKER_CONFIG = {
    # Small, so that copies of hundreds of partitions are; one topic has the default of 10 MiB.
    "log.index.size.max.bytes": "8192",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.backoff.ms": "100",
    # The cleaner takes batches of 5 MB into its buffers as well.
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.initial.task.delay.ms": "300",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.retention.ms": "-1",
    # The throttle of a move counts after the fact: only small fetches leave something for later.
    "replica.fetch.max.bytes": "4096",
}
"""What a broker of the matrix has beside what its release needs to run alone."""
SHARE_CONFIG = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
"""And that of a release which has share groups."""


@dataclass
class State:
    """Log dirs at one moment."""

    name: str
    log_dirs: Sequence[Path]
    planned: bool = True
    """Whether a broker can start there: a copy of files of different moments is not for that."""
    at_work: bool = False
    """Whether a broker runs on them."""


@dataclass
class Verdicts:
    """What logtool said over all states."""

    alarms: list[str] = field(default_factory=list)
    """Everything above info, and every exit status but 0."""
    states: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    """Codes of what was said, all of it info where there is no alarm."""
    planned_ends: dict[str, int] = field(default_factory=dict)
    """Log end by partition dir, as `plan` foretold it for the latest state."""

    def judge(self, state: State) -> None:
        """Verify the log dirs at each level, and ask what a start would do."""
        self.states += 1
        for level in Level:
            outcome = verify(*state.log_dirs, level=level)
            self.findings += outcome.codes
            where = f"{state.name}, verify --level {level}"
            self.alarms += [f"{where}: {text}" for text in outcome.above_info()]
            self.alarms += [f"{where}: {error}" for error in outcome.unreadable]
            if outcome.exit_status:
                self.alarms.append(f"{where}: exit status {outcome.exit_status}")
        if state.planned:
            self._plan(state)
        if state.at_work:
            self._ask(state)

    def _ask(self, state: State) -> None:
        """Ask what else looks at whole log dirs, and must not take a broker at work for damage."""
        for command in ("plan", "sanity", "gaps", "stat"):
            asked = [sys.executable, "-m", "logtool", command, *map(str, state.log_dirs)]
            done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)
            if done.returncode:
                where = f"{state.name}, {command}: exit status {done.returncode}"
                self.alarms.append(f"{where}: {done.stdout[-400:]} {done.stderr[-800:]}")

    def _plan(self, state: State) -> None:
        command = [sys.executable, "-m", "logtool", "plan", "--json", *map(str, state.log_dirs)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        where = f"{state.name}, plan"
        if done.returncode:
            self.alarms.append(f"{where}: exit status {done.returncode}: {done.stderr[-800:]}")
        items = json.loads(done.stdout)["items"] if done.stdout else []
        partitions = [item for item in items if item["type"] == "partition"]
        for item in partitions:
            if item["outcome"] != "loads" or item["lost_batches"] or item["lost_bytes"]:
                self.alarms.append(f"{where}: {item}")
            stopped = state.name.startswith("stopped")
            if item["clean"] != stopped or (stopped and item["recovered_segments"]):
                self.alarms.append(f"{where}: {item}")
        self.planned_ends = {item["path"]: item["log_end_offset"] for item in partitions}
        if not partitions:
            self.alarms.append(f"{where}: no partition")


def states(
    node: Node, seed: str, work: Path, rounds: int, move: Callable[[str], None] | None
) -> Iterator[State]:
    """Lead a broker through the states, and yield each.

    ``rounds`` is how often everything is written before the first kill, and again at the end; a
    ``move`` begins to move a topic's only partition to the other log dir, so slowly that it lasts.
    """
    load = Workload(node, seed, healthy_topics.subjects(node.version))
    node.start()
    load.create()
    load.round()
    if move:
        move(healthy_topics.MOVING)
    for _ in range(rounds - 1):
        load.round()
    with _traffic(load):
        yield State("running, read live", node.log_dirs, planned=False, at_work=True)
        copies = [copy(path, work / f"copy-{n}") for n, path in enumerate(node.log_dirs)]
        yield State("running, copied", copies, planned=False)
        for path in copies:
            shutil.rmtree(path)
        node.kill()
    load.forget_clients()
    yield _state(node, "killed under traffic")
    node.start()
    load.round()
    load.round(leave_open=True)
    node.kill()
    load.forget_clients()
    yield _state(node, "killed again, with open transactions")
    node.start()
    load.round()
    load.forget_clients()
    node.stop()
    yield _state(node, "stopped")
    node.start()
    for _ in range(rounds):
        load.round()
    yield State("restarted and compacted", node.log_dirs, planned=False, at_work=True)
    load.forget_clients()
    node.stop()
    yield _state(node, "stopped after compaction")


def copy(source: Path, target: Path) -> Path:
    """Copy a log dir that a broker writes to: its own files first, then partition by partition.

    A partition whose files came or went meanwhile is copied again, as whoever wants a whole copy
    has to: what is renamed between two files is in neither.
    """
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_file():
            with suppress(FileNotFoundError):
                shutil.copy2(entry, target)
    for folder in source.iterdir():
        if folder.is_dir():
            workloads.wait_for(lambda one=folder: _copied(one, target / one.name), 60, "a copy")  # type: ignore[misc]
    return target


def _copied(folder: Path, target: Path) -> bool:
    shutil.rmtree(target, ignore_errors=True)
    try:
        before = sorted(folder.iterdir())
        shutil.copytree(folder, target)
        return before == sorted(folder.iterdir())
    except (FileNotFoundError, shutil.Error):
        return not folder.exists()  # the topic was deleted, or the move is over


def _state(node: Node, name: str) -> State:
    return State(name, node.log_dirs)


@contextmanager
def _traffic(load: Workload) -> Iterator[None]:
    """Write on and on in the background, until the block has killed the broker."""
    over = threading.Event()
    done: Counter[str] = Counter()
    subjects = [one for one in load.subjects if one.lively]

    def run(number: int) -> None:
        turn = 0
        while not over.is_set():
            for subject in subjects[number::2]:
                turn += 1
                with suppress(HarnessError, KafkaException, TimeoutError):
                    subject.job(load, subject.topic, load.rng(f"traffic-{turn}"))
                    done[subject.topic.name] += 1
                if over.is_set():
                    return

    load.patience = 2.0
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(run, number) for number in range(2)]
        try:
            workloads.wait_for(lambda: len(done) >= 2, 60, "traffic")
            yield
        finally:
            over.set()
        for job in jobs:
            job.result()
    load.patience = 30.0
