"""The nodes that log dirs belong to, and the findings about the start of each node."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from logtool.checks import metadata_records
from logtool.checks.broker_dirs import BrokerDirs
from logtool.findings import Finding
from logtool.log.dir import LogDir
from logtool.metadata.releases import NEWEST
from logtool.node.identity import LogDirIdentity, identify
from logtool.node.node import Node, nodes_of


class NodeVerdicts:
    """Log dirs by their node, and the findings about a start of it, by log dir."""

    def __init__(self, static: Mapping[str, str], node_ids: Mapping[Path, int]) -> None:
        """Take the settings of the broker's own file, and the node ids of ``ID=DIR``, by path."""
        self._static, self._node_ids = static, node_ids
        self.nodes: dict[Path, Node] = {}
        """By log dir: its node, with all log dirs of it that were given."""
        self.findings: dict[Path, list[Finding]] = {}

    def gather(self, homes: Iterable[LogDir]) -> None:
        """Group the log dirs by node, and judge each group as a start of the node would.

        Log dirs with different ids in ``ID=DIR`` are of different nodes, whatever their files say.
        """
        by_id: dict[int | None, list[LogDirIdentity]] = {}
        for one in map(identify, homes):
            # A meta.properties that cannot be read is reported when the files are checked.
            if not one.unread:
                by_id.setdefault(self._node_ids.get(one.path), []).append(one)
        for group in by_id.values():
            for node in nodes_of(group, NEWEST, self._static):
                self._judge(node)

    def _judge(self, node: Node) -> None:
        for one in node.log_dirs:
            self.nodes[one.path] = node
        for verdict in BrokerDirs(node).verdicts:
            self.findings.setdefault(verdict.log_dir, []).append(verdict.finding)
        if node.metadata_log and node.image:
            faults = metadata_records.check(node.image)
            self.findings.setdefault(node.metadata_log.path, []).extend(faults)
