"""`may-delete` on a future copy and stray copies of real brokers, which are then deleted."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from broker import workloads
from broker.conftest import runnable
from broker.consuming import Records, consumed
from broker.install import KAFKA_4
from broker.kafka import Broker, format_log_dir
from broker.replicas import reassign
from broker.test_metadata_agrees import alter
from broker.topics import Topic
from broker.workloads import Message, Writer

from logtool.copies.sources import ListedCopy, find
from logtool.dirs.directories import DirsRun, FutureCopy, candidates
from logtool.dirs.proof import Other, Proof, prove
from logtool.errors import UnreadableError
from logtool.log import inputs
from logtool.log.selection import Selection
from logtool.running.run import Run

pytestmark = pytest.mark.broker

CONFIG = {
    "log.cleaner.backoff.ms": "100",
    "log.initial.task.delay.ms": "300",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "3600000",
    # The throttle of a move works after a fetch: only small fetches leave records for later.
    "replica.fetch.max.bytes": "4096",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
MOVING = Topic("moving", "on its way to the other log dir", replicas=(1,))
SHARED = Topic("shared", "taken from node 2 while it was down", replicas=(1, 2))
KEYED = Topic(
    "keyed",
    "taken from node 2 as well, and compacted on node 1 alone",
    replicas=(1, 2),
    config={"segment.bytes": "4096", "file.delete.delay.ms": "100"},
)
GONE = Topic("gone", "deleted while node 2 was down", replicas=(1, 2))
TOPICS = (MOVING, SHARED, KEYED, GONE)
KEYS = [b"key-%d" % number for number in range(20)]


@dataclass(frozen=True)
class Cluster:
    """Log dirs of two brokers that were stopped: two of node 1, one of node 2."""

    first: Broker
    homes: tuple[Path, Path, Path]
    read: Records
    """Records that a consumer of committed records read before the deletion."""
    written: dict[bytes, bytes | None]
    """The last committed value of each key of ``keyed``."""

    def one(self, pattern: str) -> Path:
        """Return the only directory of that name in any of the log dirs."""
        (found,) = (path for home in self.homes for path in home.glob(pattern))
        return found


def write(bootstrap: str) -> dict[bytes, bytes | None]:
    """Fill the topics; return the last committed value of each key of ``keyed``."""
    start = workloads.now_ms()
    plain = Writer(bootstrap, acks="all")
    # Too many records for a complete move, even in the minutes that a busy machine takes.
    large = [Message(b"%d" % number, b"x" * 2000, start) for number in range(600)]
    plain.batches(MOVING.name, large, (5, 20))
    for topic in (SHARED, GONE):
        ordinary = workloads.messages(topic.name, 600, workloads.EPOCH_MS)
        plain.batches(topic.name, ordinary, (5, 20))
    written: dict[bytes, bytes | None] = {}
    writer = workloads.transactional(bootstrap, "keyed")
    for turn in range(6):
        values = [b"%d " % turn + b"x" * 60] * len(KEYS)
        content = [Message(*pair, start) for pair in zip(KEYS, values, strict=True)]
        writer.producer.begin_transaction()
        writer.batches(KEYED.name, content, (10, 3))
        if turn % 3 == 1:
            writer.producer.abort_transaction(30)
        else:
            writer.producer.commit_transaction(30)
            written |= dict(zip(KEYS, values, strict=True))
    # A commit returns before its markers are written; the next init_transactions waits for them.
    workloads.transactional(bootstrap, "keyed")
    gone = [Message(key, None, start) for key in KEYS[:3]]
    plain.batches(KEYED.name, gone, (3,))
    return written | dict.fromkeys(KEYS[:3])


def push_out(bootstrap: str) -> dict[bytes, bytes | None]:
    """Write ``keyed`` again, with new keys, so that the cleaner cleans all earlier records."""
    start = workloads.now_ms()
    again = [Message(key, b"again", start) for key in KEYS[10:]]
    filler = [Message(b"filler-%d" % number, b"x" * 200, start) for number in range(60)]
    Writer(bootstrap, acks="all").batches(KEYED.name, again + filler, (6,))
    return {message.key: message.value for message in again + filler if message.key}


def size(homes: tuple[Path, ...], topic: Topic) -> int:
    return sum(path.stat().st_size for home in homes for path in home.glob(f"{topic.name}-0/*.log"))


def _is_level(homes: tuple[Path, ...], topic: Topic) -> bool:
    """Return whether the log dir of node 2 has as many bytes of a topic as those of node 1."""
    return size(homes[:2], topic) == size(homes[2:], topic)


def part_ways(first: Broker, second: Broker, homes: tuple[Path, Path, Path], work: Path) -> Records:
    """Make an unfinished copy and stray copies, and stop both brokers."""
    from confluent_kafka.admin import AdminClient, ResourceType

    here = next(home for home in homes if (home / "moving-0").is_dir())
    there = next(home for home in homes[:2] if home != here)
    admin = AdminClient({"bootstrap.servers": first.bootstrap})
    alter(
        admin, ResourceType.TOPIC, KEYED.name,
        cleanup_policy="compact", min_cleanable_dirty_ratio="0.01", delete_retention_ms="100",
    )  # fmt: skip
    for future in admin.delete_topics([GONE.name]).values():
        future.result(30)
    holder = next(home for home in homes[:2] if (home / "keyed-0").is_dir())
    workloads.wait_for(
        lambda: (holder / "cleaner-offset-checkpoint").exists(), 60, "the cleaner's checkpoint"
    )
    workloads.wait_for_cleaner(holder, KEYED.name, 0)
    wanted = [
        {"topic": "moving", "partition": 0, "replicas": [1], "log_dirs": [str(there.resolve())]},
        *({"topic": one.name, "partition": 0, "replicas": [1]} for one in (SHARED, KEYED)),
    ]
    reassign(first, wanted, work, throttle=100)

    def reassigned() -> bool:
        topics = admin.list_topics(timeout=10).topics
        return all(topics[one.name].partitions[0].replicas == [1] for one in (SHARED, KEYED))

    workloads.wait_for(reassigned, 60, "the end of the reassignment")
    workloads.wait_for(
        lambda: any(path.stat().st_size for path in there.glob("moving-0.*-future/*.log")),
        60,
        "the first bytes of the copy",
    )
    second.launch()
    read = consumed(first, [("moving", 0), ("shared", 0), ("keyed", 0)], "read_committed")
    workloads.wait_for(
        lambda: len(list(homes[2].glob("*-stray"))) == 3, 60, "three strays on node 2"
    )
    second.kill()
    first.stop()
    return read


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    version, work = runnable(KAFKA_4), tmp_path_factory.mktemp("may-delete")
    homes = work / "node-1-a", work / "node-1-b", work / "node-2"
    format_log_dir(version, homes[:2], extra_config=CONFIG)
    format_log_dir(version, homes[2:], node_id=2, extra_config=CONFIG)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Broker(version, homes[:2], CONFIG))
        second = stack.enter_context(
            Broker(version, homes[2:], CONFIG, node_id=2, controller=first.controller)
        )
        first.launch()
        second.launch()
        for broker in (first, second):
            broker.wait_until_ready()
        workloads.create_topics(first.bootstrap, version, TOPICS)
        written = write(first.bootstrap)
        for topic in (SHARED, KEYED, GONE):
            workloads.wait_for(
                partial(_is_level, homes, topic),
                60,
                f"node 2 to have all of {topic.name}",
            )
        second.stop()
        written |= push_out(first.bootstrap)
        read = part_ways(first, second, homes, work)
        yield Cluster(first, homes, read, written)


def asked(path: Path, *among: Path) -> Proof:
    """Return the proof of `may-delete` for a directory."""
    (target,) = find(path, None, Selection())
    assert isinstance(target, ListedCopy)
    others = list(candidates(target, [path.parent, *among]))
    assert all(isinstance(one, Other) for one in others), others
    (found,) = prove(target, [one for one in others if isinstance(one, Other)], Run())
    assert isinstance(found, Proof)
    return found


def audited(*homes: Path) -> Callable[[type], list[Any]]:
    """Return a function from a type to the items of `dirs` of this type."""
    items = list(DirsRun([inputs.parse_node_dir(str(home)) for home in homes], Selection(), Run()))
    assert not [item for item in items if isinstance(item, UnreadableError)]
    return lambda kind: [item for item in items if isinstance(item, kind)]


def test_may_delete_lists_the_records_of_a_stray_copy_alone(
    cluster: Cluster, tmp_path: Path
) -> None:
    """A segment of the compacted copy is gone, with the last records of some keys."""
    live = cluster.one("keyed-0")
    home = tmp_path / "node-1"
    shutil.copytree(live, home / "keyed-0")
    shutil.copy(live.parent / "meta.properties", home)
    shutil.copy(live.parent / "cleaner-offset-checkpoint", home)
    left: dict[bytes | None, list[tuple[int, bytes | None]]] = {key: [] for key in KEYS}
    for offset, key, value in cluster.read["keyed", 0]:
        if key in left:
            left[key].append((offset, value))
    at, _ = left[KEYS[5]][-1]
    logs = sorted((home / "keyed-0").glob("*.log"))
    bases = [*(int(log.stem) for log in logs), 2**63]
    number = max(n for n, base in enumerate(bases) if base <= at)
    logs[number].unlink()
    lost = {
        key
        for key, records in left.items()
        if records
        and records[-1][1] is not None
        and all(bases[number] <= offset < bases[number + 1] for offset, _ in records)
    }
    assert KEYS[5] in lost
    stray = cluster.one("keyed-0.*-stray")
    assert asked(stray, live.parent).may_delete
    found = asked(stray, home)
    assert any(one.first_offset <= at <= (one.last_offset or 0) for one in found.only)
    replaced = found.replaced
    assert replaced
    assert replaced.keys - replaced.stored - replaced.later - replaced.deleted == len(lost)


def test_a_deletion_that_may_delete_allows_loses_no_records(cluster: Cluster) -> None:
    homes, items = cluster.homes, audited(*cluster.homes)
    future, live = cluster.one("moving-0.*-future"), cluster.one("moving-0")
    (copy,) = items(FutureCopy)
    assert (copy.copy.path, copy.live.path) == (str(future), str(live))
    assert copy.status == "catching-up"
    assert 0 < copy.behind < 600
    assert not copy.assigned

    proofs = {one.copy.topic: one for one in items(Proof)}
    assert {topic: one.may_delete for topic, one in proofs.items()} == {
        "shared": True, "keyed": True, "gone": False,
    }  # fmt: skip
    # Without another copy `only` has everything.
    (only,) = proofs["gone"].only
    assert (only.first_offset, only.last_offset) == (0, 599)
    assert "no other live copy" in only.reason
    # The other copy has the same batches.
    (kept,) = proofs["shared"].stored
    assert kept.copy.path == str(cluster.one("shared-0"))
    assert kept.ranges == ((0, 599),)
    assert proofs["shared"].replaced is None
    # The compacted copy has the last record of each key, or a later one.
    replaced = proofs["keyed"].replaced
    assert replaced
    (by,) = replaced.by
    assert by.path == str(cluster.one("keyed-0"))
    assert by.evidence.startswith("cleanup.policy=compact")
    assert "metadata log" in by.evidence
    assert replaced.batches
    assert replaced.keys == replaced.stored + replaced.later + replaced.deleted

    assert asked(future, *homes).may_delete
    alone = asked(live, *homes)
    assert [(one.first_offset, one.last_offset) for one in alone.only] == [(0, 599)]
    assert str(future) in [one.path for one in alone.no_proof]

    for path in (future, cluster.one("shared-0.*-stray"), cluster.one("keyed-0.*-stray")):
        assert asked(path, *homes).may_delete
        shutil.rmtree(path)
    cluster.first.start()
    found = consumed(cluster.first, list(cluster.read), "read_committed")
    cluster.first.stop()
    for key in (("moving", 0), ("shared", 0)):
        assert len(found[key]) == 600
        assert found[key] == cluster.read[key]
    last = {key: value for _, key, value in found["keyed", 0]}
    assert all(last.get(key or b"") == value for key, value in cluster.written.items())
