"""The campaign: bases, their cases, outcomes that are kept, and verdicts made from them.

An outcome is appended to a file as soon as it is seen, so that a campaign can be stopped and
continued. What the commands say is asked again at each run, without a broker.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from absences import deletions, outcomes, sayings, verdicts
from absences.bases import Base, Kind, ensure
from absences.deletions import Deletion, PartitionCase
from absences.sayings import Sayings
from absences.traffic import GROUPS
from absences.verdicts import Verdict

Object = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """A case with its verdict."""

    base: str
    case: str
    shape: str
    deletion: str
    verdict: Verdict
    said: Sequence[str] = ()


class Campaign:
    """The cases of one base."""

    def __init__(
        self, kind: Kind, work: Path, chosen: Sequence[Deletion] = deletions.DELETIONS
    ) -> None:
        self.kind = kind
        self.work = work
        self.deadline: float | None = None
        """Monotonic time after which no command is asked any more."""
        self._chosen = chosen
        self.base: Base = ensure(kind, work)
        self._kept = work / f"{self.base.root.name}.jsonl"
        self._outcomes = {one["batch"]: one for one in _lines(self._kept)
                          if one["made"] == self.base.made}  # fmt: skip

    def run_all(self, limit: int | None = None) -> None:
        """Start brokers on all cases, unless their outcome is kept.

        A case at which `plan` has the broker refuse is started alone: it would end all others.
        There are few starts, so that there is no `limit` here.
        """
        cases = self._cases()
        said = self._said([case.name for case in cases])
        alone = [case.name for case in cases if verdicts.refuses(said, case.partition)]
        together = [case.name for case in cases if case.name not in alone]
        for names in (together, *([one] for one in alone)):
            self._run(names)

    def _run(self, names: Sequence[str]) -> None:
        """Start a broker on some cases together; if it does not start, on each half of them."""
        if not names:
            return
        key = _digest(names)
        found = self._outcomes.get(key)
        if found is None:
            with self._home(names) as home, self.base.cluster(home) as cluster:
                starts = outcomes.two_starts(
                    cluster, self.base.control, self.base.groups, self.base.disk
                )
            found = {"batch": key, "made": self.base.made, "cases": list(names), "starts": starts}
            self._keep(found)
        if not all(one["starts"] for one in found["starts"]) and len(names) > 1:
            half = len(names) // 2
            for part in (names[:half], names[half:]):
                self._run(part)

    def judged(self) -> Iterator[Judged]:
        """Yield the verdict on each case, and on the partitions that nothing was removed from."""
        cases = {case.name: case for case in self._cases()}
        if not any(set(found["cases"]) & set(cases) for found in self._outcomes.values()):
            return
        if not (self._may_ask(_digest([])) and self._may_ask(_digest(list(cases)))):
            return
        usual, said = self._said([]), self._said(list(cases))
        touched = {case.partition for case in cases.values()}
        for found in sorted(self._outcomes.values(), key=lambda one: -len(one["cases"])):
            if len(found["cases"]) > 1 and not all(one["starts"] for one in found["starts"]):
                continue  # Each half was started again.
            for name in found["cases"]:
                if name in cases:
                    yield self._judged(cases.pop(name), said, usual, found["starts"])
            if len(found["cases"]) > 1:
                yield from self._untouched(touched, said, usual, found["starts"])
                touched = set(self.base.control.partitions)

    def _untouched(
        self, touched: set[str], said: Sayings, usual: Sayings, starts: Sequence[Object]
    ) -> Iterator[Judged]:
        for name in self.base.control.partitions:
            if name not in touched:
                case = PartitionCase(name, deletions.Deletion("nothing", ()))
                yield self._judged(case, said, usual, starts)

    def _judged(
        self, case: PartitionCase, said: Sayings, usual: Sayings, starts: Sequence[Object]
    ) -> Judged:
        first, *_, second = (self._of_partition(one, case) for one in (*starts, starts[-1]))
        verdict = verdicts.judge(
            case.partition, said, usual, first, second,
            end=self.base.control.partitions[case.partition]["end"],
            unprovable=case.shape in case.deletion.unprovable,
        )  # fmt: skip
        return Judged(self.kind.name, case.name, case.shape, case.deletion.name, verdict)

    def _of_partition(self, start: Object, case: PartitionCase) -> Object:
        """Return the state of a partition; a coordinator's partition concerns one group."""
        found = outcomes.of_partition(start, case.partition)
        if "groups" in found:
            group = self.base.groups[int(case.partition.removeprefix(f"{GROUPS}-"))]
            changed = found["groups"]
            found = {**found, "groups": {group: changed[group]} if group in changed else {}}
        return found

    def _cases(self) -> list[PartitionCase]:
        """Return the cases that change something."""
        return [case for case in self._assigned() if self._changes(case)]

    def _assigned(self) -> Iterator[PartitionCase]:
        return deletions.assigned(list(self.base.control.partitions), self._chosen)

    def _changes(self, case: PartitionCase) -> bool:
        """Return whether a deletion changes a partition, tried on a copy of it."""
        with self._scratch("try") as scratch:
            for source in self._dirs(self.base.disk):
                name = source.name
                if (source / case.partition).is_dir():
                    (scratch / name).mkdir(parents=True)
                    shutil.copytree(source / case.partition, scratch / name / case.partition)
                    for file in deletions.CHECKPOINTS:
                        if (source / file).exists():
                            shutil.copy(source / file, scratch / name / file)
                    return case.apply([scratch / name])
        return False

    @contextmanager
    def _home(self, names: Sequence[str], *, to_read: bool = False) -> Iterator[Path]:
        """Yield a copy of the base with some cases, for a start or for the commands to read."""
        chosen = set(names)
        with self._copy(to_read=to_read) as home:
            for case in self._assigned():
                if case.name in chosen:
                    case.apply(self._dirs(home))
            if to_read:
                as_original(home)
            yield home

    @contextmanager
    def _copy(self, *, to_read: bool) -> Iterator[Path]:
        with self._scratch("read" if to_read else "home") as home:
            yield self.base.copy(home)

    def _dirs(self, home: Path) -> list[Path]:
        """Return the log dirs of the judged node in a copy."""
        layout = self.kind.layout
        return [home / name for name in layout.nodes[layout.judged]]

    def _said(self, names: Sequence[str]) -> Sayings:
        def ask() -> Sayings:
            with self._home(names, to_read=True) as home:
                return self._say(home)

        return self._once(_digest(names), ask)

    def _once(self, case: str, ask: Callable[[], Sayings]) -> Sayings:
        """Return the sayings, which are kept for as long as the source of logtool is the same."""
        if case not in self._sayings:
            said = self._sayings[case] = ask().to_json()
            kept = {"made": self.base.made, "tool": sayings.tool(), "case": case, "said": said}
            with self._said_before.open("a") as file:
                file.write(json.dumps(kept) + "\n")
        return Sayings.from_json(self._sayings[case])

    def _may_ask(self, case: str) -> bool:
        return case in self._sayings or self.deadline is None or time.monotonic() < self.deadline

    @property
    def _said_before(self) -> Path:
        return self.work / f"{self.base.root.name}.said.jsonl"

    @cached_property
    def _sayings(self) -> dict[str, Object]:
        """Sayings by case, as plain data."""
        now = self.base.made, sayings.tool()
        found = [one for one in _lines(self._said_before) if (one["made"], one["tool"]) == now]
        return {one["case"]: one["said"] for one in found}

    def _say(self, home: Path, *, texts: bool = False) -> Sayings:
        layout = self.kind.layout
        own = self.work / f"{self.base.root.name}.properties"
        with self.base.cluster(home) as cluster:
            own.write_text(cluster.properties())
        others = [home / name for node, names in layout.nodes.items() if node != layout.judged
                  for name in names]  # fmt: skip
        return sayings.say(self._dirs(home), own, others, texts=texts)

    @contextmanager
    def _scratch(self, name: str) -> Iterator[Path]:
        path = self.work / f"{self.base.root.name}-{name}"
        shutil.rmtree(path, ignore_errors=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _keep(self, found: Object) -> None:
        self._outcomes[found["batch"]] = found
        with self._kept.open("a") as file:
            file.write(json.dumps(found) + "\n")


def as_original(home: Path) -> None:
    """Move the times of all files on by one span, so that none is older than its copy.

    A file that is older than its inode was copied. The commands forgive a copied log dir what a
    copy of a running broker explains, and the campaign asks about the broker's own disk.
    """
    times = {path: path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}
    span = time.time_ns() - min(times.values())
    for path, modified in times.items():
        os.utime(path, ns=(modified + span, modified + span))


def _digest(names: Sequence[str]) -> str:
    return hashlib.sha1("\n".join(names).encode()).hexdigest()[:12]


def _lines(path: Path) -> list[Object]:
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []
