"""Log dirs that brokers wrote, and the view of clients before the brokers ended."""

from __future__ import annotations

import dataclasses
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from broker import workloads
from broker.install import major
from broker.kafka import CONTROLLER_ID

from absences import observation, traffic
from absences.clusters import LAYOUTS, Cluster, Layout
from absences.observation import View


@dataclass(frozen=True)
class Kind:
    """A way to make a base."""

    version: str
    layout: Layout
    end: str
    """``killed`` or ``stopped``."""
    partitions: int
    rolled: bool = False
    """True if the metadata log has several segments and snapshots."""

    @property
    def name(self) -> str:
        """Name of the base in the report."""
        rolled = " rolled" if self.rolled else ""
        return f"{self.version} {self.layout.name}{rolled} {self.end}"

    @property
    def replicas(self) -> int:
        """Replicas of each partition."""
        return 3 if self.layout.name == "three" else 1

    def settings(self, *, judged: bool) -> dict[str, str]:
        """Return the settings of its brokers while it is made, or of a start that is judged."""
        chosen = traffic.settings_of_starts if judged else traffic.settings
        config = chosen(self.partitions)
        if self.rolled:
            segment = "metadata.log.segment.bytes"
            if major(self.version) >= 4:
                config[f"internal.{segment}"] = "8000"
            else:
                config |= {segment: "8000", "metadata.log.segment.min.bytes": "8000"}
            config |= {
                "metadata.log.max.record.bytes.between.snapshots": "3000",
                "metadata.max.retention.bytes": "16000",
            }
        if self.replicas > 1:
            config |= {
                "offsets.topic.replication.factor": "3",
                "transaction.state.log.replication.factor": "3",
            }
        return config


@dataclass(frozen=True)
class Base:
    """A base on the disk."""

    kind: Kind
    root: Path

    @property
    def disk(self) -> Path:
        """The folder with all log dirs."""
        return self.root / "disk"

    @cached_property
    def control(self) -> View:
        """The view of clients before the brokers ended."""
        found = json.loads((self.root / "control.json").read_text())
        return View(found["partitions"], found["groups"])

    @cached_property
    def made(self) -> str:
        """Id of this base: outcomes belong to one making."""
        return str(json.loads((self.root / "control.json").read_text())["made"])

    @cached_property
    def groups(self) -> list[str]:
        """Groups that have committed, one for each partition of `traffic.GROUPS`."""
        return traffic.names_for("group", self.kind.partitions)

    def copy(self, target: Path) -> Path:
        """Copy the log dirs."""
        shutil.copytree(self.disk, target, symlinks=True)
        return target

    def cluster(self, root: Path) -> Cluster:
        """Return the nodes on a copy of the log dirs."""
        kind = self.kind
        return Cluster(kind.version, kind.layout, root, kind.settings(judged=True))


def ensure(kind: Kind, work: Path) -> Base:
    """Return a base, which is made if it is not below `work`."""
    root = work / f"{kind.name} {kind.partitions}".replace(" ", "-")
    if not (root / "control.json").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _make(kind, root)
    return Base(kind, root)


def _make(kind: Kind, root: Path) -> None:
    disk = root / "disk"
    disk.mkdir()
    with Cluster(kind.version, kind.layout, disk, kind.settings(judged=False)) as cluster:
        cluster.format()
        cluster.start()
        work = traffic.Traffic(cluster.client.bootstrap, kind.partitions)
        work.create(kind.version, kind.replicas)
        work.first_half()
        work.commit()
        cluster.stop()
        cluster.start()
        work = traffic.Traffic(cluster.client.bootstrap, kind.partitions)
        work.second_half()
        work.commit()
        work.delete_records()
        dirs = [path for node in kind.layout.nodes for path in cluster.dirs(node)]
        traffic.wait_until_settled(dirs)
        if kind.rolled:  # Controllers look every minute.
            first = cluster.dirs(CONTROLLER_ID)[0] / "__cluster_metadata-0" / f"{0:020}.log"
            workloads.wait_for(lambda: not first.exists(), 150, "the metadata log to begin later")
        # Now nothing is cleaned or deleted any more.
        cluster.stop()
    with Cluster(kind.version, kind.layout, disk, kind.settings(judged=True)) as cluster:
        cluster.start()
        work = traffic.Traffic(cluster.client.bootstrap, kind.partitions)
        work.dirty()
        work.leave_open()
        view = observation.look(cluster.client.bootstrap, work.groups)
        traffic.wait_for_checkpoints(
            [path for node in kind.layout.nodes for path in cluster.dirs(node)]
        )
        if kind.end == "killed":
            cluster.kill()
        else:
            cluster.stop()
    about: Mapping[str, Any] = {"made": str(time.time_ns()), **dataclasses.asdict(view)}
    (root / "control.json").write_text(json.dumps(about))


def layout(name: str) -> Layout:
    """Return a layout by its name."""
    return LAYOUTS[name]
