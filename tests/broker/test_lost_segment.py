"""A follower that has lost a segment: no broker notices, and `cluster` fills it from the leader."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from broker import workloads
from broker.cluster import Cluster
from broker.command import objects, of_type, succeed
from broker.install import VERSIONS, major
from broker.topics import Topic

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

LEADER, FOLLOWER = 2, 3
NAME = "orders"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_segment_that_a_follower_has_lost_stays_lost_until_it_is_filled(
    version: str, tmp_path: Path
) -> None:
    key = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    topic = Topic(NAME, "several segments", replicas=(LEADER, FOLLOWER), config={key: "4000"})
    with Cluster(version, tmp_path / "live", [LEADER, FOLLOWER], {}, {}) as cluster:
        homes = [cluster.log_dir(node) for node in (1, LEADER, FOLLOWER)]
        cluster.start()
        workloads.create_topics(cluster.bootstrap(1), version, (topic,))
        cluster.wait_for_isr(1, [NAME], (LEADER, FOLLOWER))
        cluster.write(LEADER, NAME, "all", 300)
        cluster.wait_until_equal([NAME], (LEADER, FOLLOWER))
        cluster.stop()
        assert _fills(homes) == []
        theirs, ours = (cluster.log_dir(node) / f"{NAME}-0" for node in (LEADER, FOLLOWER))
        logs = sorted(ours.glob("*.log"))
        lost = logs[len(logs) // 2]
        end = int(logs[len(logs) // 2 + 1].stem)
        for path in ours.glob(f"{lost.stem}.*"):
            path.unlink()
        (choice,) = [one for one in _choices(homes) if one["node"] == FOLLOWER]
        assert choice["acknowledged_lost"] == end - int(lost.stem)
        cluster.start()
        cluster.wait_for_isr(1, [NAME], (LEADER, FOLLOWER))
        cluster.wait_until_equal([NAME], (LEADER, FOLLOWER))
        cluster.stop()
        # The two are in sync again, with the same log end, and the segment is still lost.
        assert not lost.exists()
        (fill,) = _fills(homes)
        succeed(*shlex.split(fill)[1:])
        assert _bytes(ours) == _bytes(theirs)
        assert _fills(homes) == []
        cluster.start()
        cluster.wait_for_isr(1, [NAME], (LEADER, FOLLOWER))


def _fills(homes: list[Path]) -> list[str]:
    """Return the commands of the steps that fill replicas."""
    commands = [one["command"] or "" for one in of_type(objects("cluster", *homes), "step")]
    return [one for one in commands if "--fill-from" in one]


def _choices(homes: list[Path]) -> list[dict[str, object]]:
    return of_type(objects("watermark", *homes), "choice")


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
