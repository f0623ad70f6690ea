"""The states of a healthy log dir, and the verdict of logtool on each.

`states` takes a broker that has not been started yet through its life and yields at each state, so
the caller can look. It uses only the interface `healthy.Node` of the broker.
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
    # Small indexes give small copies of hundreds of partitions; one topic has the 10 MiB default.
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
    # The throttle of a move works after a fetch: only small fetches leave records for later.
    "replica.fetch.max.bytes": "4096",
}
"""Settings of a broker of the matrix, in addition to those that its release needs to run alone."""


@dataclass
class State:
    """Log dirs at one moment."""

    name: str
    log_dirs: Sequence[Path]
    planned: bool = True
    """True if a broker can start there; a copy with files of different moments does not qualify."""
    at_work: bool = False
    """True if a broker runs on the log dirs."""


@dataclass
class Verdicts:
    """The results of logtool for all states."""

    alarms: list[str] = field(default_factory=list)
    """Every finding above info, and every exit status other than 0."""
    states: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    """Count of findings by code; without an alarm all are of severity info."""
    planned_ends: dict[str, int] = field(default_factory=dict)
    """Log end that `plan` predicted for the latest state, by partition dir."""

    def judge(self, state: State) -> None:
        """Verify the log dirs at each level, and plan a start."""
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
        """Run other commands on the log dirs: a running broker must not look like damage."""
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

    ``rounds`` is the number of rounds before the first kill, and again at the end. ``move`` starts
    to move the only partition of a topic to the other log dir, slowly enough to last.
    """
    load = Workload(node, seed, healthy_topics.subjects(node.version))
    node.start()
    load.create()
    load.round()
    if move:
        move(healthy_topics.MOVING)
    for _ in range(rounds - 1):
        load.round()
    with traffic(load):
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

    A partition whose files changed during the copy is copied again: a file that is renamed between
    two copied files is in neither name.
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
def traffic(load: Workload) -> Iterator[None]:
    """Write in the background until the block has killed the broker."""
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
