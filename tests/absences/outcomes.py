"""Two starts of brokers on log dirs from which something is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.install import HarnessError

from absences import observation
from absences.clusters import Cluster, first_error
from absences.observation import View
from absences.traffic import GROUPS, TRANSACTIONS

Object = dict[str, Any]
_OFFLINE = re.compile(
    r"Stopping serving logs in dir (\S+)|Failed to create or validate data directory (\S+)"
)
_STRAY = re.compile(r"\.[0-9a-f]{32}-stray$")
PATIENCE = 45
"""Seconds after which a broker that does not answer is said to wait."""


def two_starts(cluster: Cluster, control: View, groups: Sequence[str], disk: Path) -> list[Object]:
    """Start the nodes twice; return the view at each start, compared with `control`.

    `disk` has the log dirs as they were. The nodes are not started again if they did not start.
    """
    found: list[Object] = []
    for _ in range(2):
        before = len(cluster.log)
        outcome = _start(cluster, control, groups)
        outcome["lacks"] = dict(_lacking(disk, cluster.root, cluster.layout.dirs))
        log = cluster.log[before:]
        if not outcome["starts"]:
            outcome["error"] = first_error(log)
        offline = {Path(one or other).name for one, other in _OFFLINE.findall(log)}
        outcome["offline"] = sorted(offline)
        outcome["stray"] = sorted({
            _STRAY.sub("", path.name) for name in cluster.layout.dirs
            for path in (cluster.root / name).glob("*-stray")
        })  # fmt: skip
        found.append(outcome)
        if not outcome["starts"]:
            cluster.kill()
            return found
        try:
            cluster.stop()
        except HarnessError:
            cluster.kill()
    return found


def _lacking(disk: Path, root: Path, names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the files of each partition that the broker has not made again."""
    for name in names:
        for folder in (disk / name).iterdir():
            if folder.is_dir():
                gone = [
                    path.name for path in folder.iterdir()
                    if path.stat().st_size and not _has_bytes(root / name / folder.name / path.name)
                ]  # fmt: skip
                if gone:
                    yield folder.name, sorted(gone)


def _has_bytes(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _start(cluster: Cluster, control: View, groups: Sequence[str]) -> Object:
    try:
        cluster.start(PATIENCE)
    except HarnessError as error:
        if "BindException" in cluster.log:
            raise
        waits = "was not ready" in str(error)
        cluster.kill()
        return {"starts": False, "waits": waits}
    view = observation.look(cluster.client.bootstrap, groups)
    return {"starts": True, **compared(view, control)}


def compared(view: View, control: View) -> Object:
    """Return the differences from the control: of partitions, and of groups."""
    partitions: Object = {}
    for name, was in control.partitions.items():
        seen = view.partitions.get(name)
        partitions[name] = {"absent": True} if seen is None else _difference(name, seen, was)
    groups = {
        group: view.groups.get(group, {}) for group, was in control.groups.items()
        if view.groups.get(group, {}) != was
    }  # fmt: skip
    return {"partitions": partitions, "groups": groups}


def _difference(name: str, seen: Object, was: Object) -> Object:
    """Return offsets, and the records that readers miss or get in addition."""
    found: Object = {key: seen[key] for key in ("start", "end", "error", "unread") if key in seen}
    for isolation in observation.ISOLATIONS:
        here = {tuple(row) for row in seen.get(isolation, ())}
        there = {tuple(row) for row in was.get(isolation, ())}
        if missing := there - here:
            found[f"{isolation}_misses"] = spans(offset for offset, _ in missing)
        more = {offset for offset, _ in here - there}
        if name.rpartition("-")[0] in (GROUPS, TRANSACTIONS):
            # Coordinators go on writing.
            more = {offset for offset in more if offset < was["end"]}
        if more:
            found[f"{isolation}_gets"] = spans(more)
    return found


def spans(offsets: Any) -> list[list[int]]:
    """Return offsets as runs: [first, last]."""
    runs: list[list[int]] = []
    for offset in sorted(offsets):
        if runs and runs[-1][1] == offset - 1:
            runs[-1][1] = offset
        else:
            runs.append([offset, offset])
    return runs


def of_partition(outcome: Object, name: str) -> Object:
    """Return the state of one partition after a start."""
    if not outcome["starts"]:
        return {"refused": True, "error": outcome.get("error", "")}
    found: Mapping[str, Any] = outcome["partitions"].get(name, {"absent": True})
    stray = {"stray": True} if name in outcome["stray"] else {}
    groups = {}
    if name.startswith(GROUPS):
        groups = {"groups": outcome["groups"]}
    return {**found, **stray, **groups, "lacks": outcome["lacks"].get(name, [])}
