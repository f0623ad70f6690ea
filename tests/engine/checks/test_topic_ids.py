"""Topic ids that differ between the partitions of one topic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import metadata_records
import pytest
from metadata_logs import log_dir

from logtool.findings import Finding
from logtool.verify import Verification

ONE, OTHER = "bG9ndG9vbC10ZXN0cy10MQ", "bG9ndG9vbC10ZXN0cy10Mg"


def partitions(home: Path, ids: Sequence[str]) -> None:
    """Write t-0, t-1 and so on, each with one of the topic ids."""
    for number, topic_id in enumerate(ids):
        path = home / f"t-{number}"
        path.mkdir()
        (path / f"{0:020d}.log").write_bytes(b"")
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")


def blamed(*homes: Path) -> list[tuple[str, str]]:
    """Return log dir and partition dir of each finding, in order."""
    found = (one for one in Verification(homes) if isinstance(one, Finding))
    paths = [one.path for one in found if one.code == "partition-metadata/topic-id" and one.path]
    return [(path.parent.parent.name, path.parent.name) for path in paths]


def meta(home: Path, node: int) -> Path:
    """Write meta.properties of a node into a new log dir, and return it."""
    home.mkdir()
    (home / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=c\n")
    return home


@pytest.mark.parametrize(
    ("ids", "expected"),
    [((ONE, OTHER, OTHER), ["t-0"]), ((OTHER, OTHER, ONE), ["t-2"]), ((ONE, ONE), []),
     ((ONE, OTHER), ["t-1"])],
)  # fmt: skip
def test_the_partition_that_differs_from_most_is_blamed(
    tmp_path: Path, ids: Sequence[str], expected: Sequence[str]
) -> None:
    home = meta(tmp_path / "n", 1)
    partitions(home, ids)
    assert [name for _, name in blamed(home)] == list(expected)


def test_the_metadata_log_says_which_id_is_right(tmp_path: Path) -> None:
    batch = metadata_records.batch(0, metadata_records.topic("t", ONE))
    home = log_dir(tmp_path, 1, batch)
    partitions(home, (OTHER, ONE, OTHER))
    assert [name for _, name in blamed(home)] == ["t-0", "t-2"]


def test_nodes_of_one_cluster_have_one_id(tmp_path: Path) -> None:
    homes = [meta(tmp_path / f"n{node}", node) for node in (1, 2, 3)]
    for home, topic_id in zip(homes, (ONE, OTHER, OTHER), strict=True):
        partitions(home, (topic_id,))
    assert blamed(*homes) == blamed(*reversed(homes)) == [("n1", "t-0")]
