"""A segment file of another partition in a replica, filled from the leader's replica."""

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
NAMES = ("labels", "orders")
"""Topics with names of one length: the segments of both have the same base offsets."""
CODE = "segment/other-partition"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_swapped_segment_stays_until_it_is_filled_from_the_leader(
    version: str, tmp_path: Path
) -> None:
    key = "internal.segment.bytes" if major(version) >= 4 else "segment.bytes"
    config = {key: "4000"}
    topics = [Topic(one, "segments", replicas=(LEADER, FOLLOWER), config=config) for one in NAMES]
    with Cluster(version, tmp_path / "live", [LEADER, FOLLOWER], {}, {}) as cluster:
        homes = [cluster.log_dir(node) for node in (LEADER, FOLLOWER)]
        cluster.start()
        workloads.create_topics(cluster.bootstrap(1), version, topics)
        cluster.wait_for_isr(1, NAMES, (LEADER, FOLLOWER))
        for name in NAMES:
            writer = workloads.Writer(cluster.bootstrap(LEADER), enable_idempotence=True)
            content = [
                workloads.Message(None, f"{name} {at:04d}".encode(), workloads.EPOCH_MS + at, None)
                for at in range(300)
            ]
            writer.batches(name, content, (5,))
        cluster.wait_until_equal(NAMES, (LEADER, FOLLOWER))
        cluster.stop()
        before = [_contents(home) for home in homes]
        assert before[0] == before[1]
        base = _swap(homes[1])
        swapped = _contents(homes[1])
        cluster.start()
        cluster.wait_for_isr(1, NAMES, (LEADER, FOLLOWER))
        cluster.stop()
        assert _contents(homes[1]) == swapped  # No broker has noticed it.
        found = of_type(objects("verify", *homes, statuses=(1,)), "finding")
        found = [one for one in found if one["code"] == CODE]
        assert [(one["topic"], one["segment"]) for one in found] == [(one, base) for one in NAMES]
        for one in found:
            succeed(*shlex.split(one["next"])[1:])
        assert [_contents(home) for home in homes] == before
        cluster.start()
        cluster.wait_for_isr(1, NAMES, (LEADER, FOLLOWER))


def _swap(home: Path) -> int:
    """Exchange a segment file in the middle of the two partitions; return its base offset."""
    logs = sorted((home / f"{NAMES[0]}-0").glob("*.log"))
    one = logs[len(logs) // 2]
    other = home / f"{NAMES[1]}-0" / one.name
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    return int(one.stem)


def _contents(home: Path) -> dict[str, bytes]:
    """Return the bytes of all logs."""
    logs = (path for name in NAMES for path in (home / f"{name}-0").glob("*.log"))
    return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in logs}
