"""The steps of `logtool cluster`, carried out as an operator does."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from broker import workloads
from broker.command import run
from broker.consuming import messages
from broker.kafka import run_tool
from broker.situations import Answer
from broker.volumes import BROKERS, PLAIN, Copies, Fleet
from damage import flip

from logtool.log.opening import open_partition

_RECIPES = Path(__file__).resolve().parents[2] / "man" / "logtool-recipes.md"
_CLASSES = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
}
Values = dict[str, Counter[bytes]]


def values_in(homes: Mapping[int, Path]) -> Values:
    """Return how often a volume has each value at most, by topic; values are random bytes."""
    found: Values = {one.name: Counter() for one in PLAIN}
    for topic, values in found.items():
        for home in homes.values():
            if (home / f"{topic}-0").exists():
                values |= _values(home / f"{topic}-0")
    return found


def _values(partition: Path) -> Counter[bytes]:
    done = run("dump", "--records", "--values", "base64", "-f", "ndjson", partition)
    lines = map(json.loads, done.stdout.splitlines())
    return Counter(
        base64.b64decode(one["value"]["base64"]) for one in lines if one["type"] == "record"
    )


def values_at(bootstrap: str) -> Values:
    """Return how often a consumer reads each value, by topic."""
    found = messages(bootstrap, [(one.name, 0) for one in PLAIN])
    return {topic: Counter(one.value() for one in read) for (topic, _), read in found.items()}


def damage(homes: Mapping[int, Path], node: int, partition: str) -> Path:
    """Flip a byte of the last batch but one that another volume also has; return the directory.

    The volumes were copied at different moments, and share only the first batches. Those next to
    the damage prove that both are one log.
    """
    own = _batches(homes[node] / partition)
    others = [
        _batches(home / partition)
        for one, home in homes.items()
        if one != node and (home / partition).is_dir()
    ]
    shared = [key for key in own if any(key in other for other in others)]
    log, end = own[shared[-2]]
    log.write_bytes(flip(log.read_bytes(), end - 1))
    return log.parent


def _batches(partition: Path) -> dict[tuple[int, int], tuple[Path, int]]:
    """Return the file of each batch and the byte behind it, by its offset and CRC."""
    found = {}
    for segment in open_partition(partition).segments:
        for chunk in segment.batches(payload=False):
            table = chunk.table
            columns = (table.base_offset, table.crc, table.position + table.size)
            for offset, crc, end in zip(*(one.tolist() for one in columns), strict=True):
                found[offset, crc] = segment.log.path, end
    return found


def commands(answer: Answer) -> list[str]:
    """Return the commands of the steps."""
    return [one["command"] for one in answer if one["type"] == "step" and one["command"]]


@contextmanager
def carried_out(
    copies: Copies, homes: Mapping[int, Path], answer: Answer, work: Path
) -> Iterator[str]:
    """Carry out the steps; yield the bootstrap servers of the cluster that runs then."""
    fleet = Fleet(copies.version, work, copies.controllers, copies.addresses)
    shell = _Shell(work)
    try:
        for step in (one for one in answer if one["type"] == "step"):
            _launch(fleet, homes, step["starts"])
            if step["file"]:
                (work / step["file_name"]).write_text(step["file"])
            command = step["command"] or ""
            if command.startswith("kafka-"):
                _run_tool(fleet, command, work)
            elif "man recipes" in command:
                _wait_for_leaders(fleet)
                shell.produce(fleet.bootstrap)
            elif command:
                shell.run(command)
        _wait_for_leaders(fleet)
        yield fleet.bootstrap
    finally:
        fleet.stop()


def _launch(fleet: Fleet, homes: Mapping[int, Path], nodes: Sequence[int]) -> None:
    """Start nodes; wait until clients see the brokers that run, and no others."""
    fleet.launch(*nodes, log_dirs=homes)
    running = {*BROKERS} & fleet.nodes.keys()
    if running & {*nodes}:
        workloads.wait_for(lambda: _seen(fleet) == running, 240, f"{running} to be all brokers")


def _seen(fleet: Fleet) -> set[int]:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        known = AdminClient({"log_level": 0, "bootstrap.servers": fleet.bootstrap})
        return {*known.list_topics(timeout=5).brokers}
    except KafkaException:
        return set()


def _wait_for_leaders(fleet: Fleet) -> None:
    def led() -> bool:
        return all(leader >= 0 for leader, _ in fleet.partitions().values())

    workloads.wait_for(led, 240, "a leader of each partition")


def _run_tool(fleet: Fleet, command: str, work: Path) -> None:
    name, *arguments = shlex.split(command)
    file = {one: str(work / one) for one in arguments if (work / one).is_file()}
    server = {"HOST:9092": fleet.bootstrap}
    run_tool(fleet.version, _CLASSES[name], *((server | file).get(one, one) for one in arguments))


class _Shell:
    """A shell in which `logtool` is a command, and the script of the recipe is saved."""

    def __init__(self, work: Path) -> None:
        self._work = work
        tools = work / "tools"
        tools.mkdir()
        (tools / "logtool").write_text(f'#!/bin/sh\nexec {sys.executable} -m logtool "$@"\n')
        (tools / "logtool").chmod(0o755)
        self._path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        blocks = re.findall(r"```python\n(.*?)```", _RECIPES.read_text(), re.DOTALL)
        (self._script,) = (one for one in blocks if one.startswith('"""Produce the records'))
        self._saved: list[Path] = []

    def run(self, command: str) -> None:
        """Run a command of a step."""
        done = subprocess.run(
            command, shell=True, check=False, cwd=self._work, env=self._path, text=True,
            capture_output=True,
        )  # fmt: skip
        # A command that only looks ends with 1 if it finds what the step is about.
        looks = command.startswith(("logtool quorum ", "logtool plan ", "logtool verify "))
        assert done.returncode in ((0, 1) if looks else (0,)), (command, done.stdout, done.stderr)
        if " > " in command:
            self._saved.append(self._work / shlex.split(command)[-1])

    def produce(self, bootstrap: str) -> None:
        """Produce the saved records to their topics."""
        for file in self._saved:
            topic = file.name.partition(".node-")[0].rpartition("-")[0]
            with file.open() as saved:
                command = [sys.executable, "-c", self._script, bootstrap, topic]
                subprocess.run(command, stdin=saved, check=True)
