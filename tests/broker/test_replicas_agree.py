"""`watermark` and `diff` agree with the offsets and the next start of brokers."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from broker.install import major

from logtool.copies.pair import CopyPair, Status
from logtool.copies.verdict import CopiesVerdict
from logtool.diff import Diff
from logtool.dump.log import Filter
from logtool.dump.missing import MissingIn
from logtool.dump.records import Object
from logtool.dump.stream import Dump
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.log.inputs import NodeDir
from logtool.log.selection import Selection
from logtool.node.options import StartOptions
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import ReplicaGroup
from logtool.watermark.run import Watermarks

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]

SITUATIONS = ("killed", "diverged", "seesaw")
COMMON = 70
"""Records that all replicas have, in each topic that is written by more than one leader."""
PLAIN_TOPICS = ("behind", "hung", "hung.unclean", "below.min", "diverged", "seesaw")
VERSIONS_OF = {"4.3.1": (4, 3), "3.9.2": (3, 9)}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """Return a function from a release to the story of its cluster, which runs once."""
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import leaders

    return cache(lambda version: leaders.run(version, tmp_path_factory.mktemp(f"story-{version}")))


class Seen:
    """The replicas and groups of `watermark`, by topic."""

    def __init__(self, dirs: list[Path], version: str, leader: int | None = None) -> None:
        self.replicas: dict[tuple[str, int | None], Replica] = {}
        self.groups: dict[str, ReplicaGroup] = {}
        selection = Selection(exclude_topics=("__*",))
        settings = StartOptions(VERSIONS_OF[version])
        for item in Watermarks(
            [NodeDir(one) for one in dirs], settings, selection=selection, leader=leader
        ):
            assert not isinstance(item, Finding | UnreadableError), item
            if isinstance(item, Replica):
                self.replicas[item.topic, item.node] = item
            elif isinstance(item, ReplicaGroup):
                self.groups[item.topic] = item


def compared(*dirs: Path) -> dict[str, CopiesVerdict]:
    """Return the verdict of `diff` on each topic."""
    found = {}
    for item in Diff([NodeDir(one) for one in dirs], selection=Selection(exclude_topics=("__*",))):
        assert isinstance(item, CopiesVerdict), item
        found[item.copies[0].topic] = item
    return found


def pair(verdict: CopiesVerdict, left: int, right: int) -> CopyPair:
    (found,) = (one for one in verdict.pairs if (one.left.node, one.right.node) == (left, right))
    return found


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_replica_has_the_offsets_of_its_broker(kafka_version: str, story, name: str) -> None:
    situation = getattr(story(kafka_version), name)
    replicas = Seen(situation.dirs, kafka_version).replicas
    assert len(situation.live) >= 14
    for key, live in situation.live.items():
        one = replicas[key]
        assert (one.log_start, one.log_end) == (live.log_start, live.log_end)
        assert (one.checkpointed, one.last_stable) == (live.high_watermark, live.last_stable)
        assert one.uncommitted_records == live.log_end - live.high_watermark
        assert one.outcome == "loads"


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_broker_begins_with_the_offsets_that_logtool_shows(
    kafka_version: str, story, name: str
) -> None:
    situation = getattr(story(kafka_version), name)
    replicas = Seen(situation.dirs, kafka_version).replicas
    assert len(situation.loaded) >= 9
    assert set(situation.loaded) == set(situation.watermarks)
    for key, end in situation.loaded.items():
        assert (replicas[key].log_end, replicas[key].lost_records) == (end, 0)
        assert replicas[key].high_watermark == situation.watermarks[key]


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_isr_and_the_high_watermark_agree(kafka_version: str, story, name: str) -> None:
    situation = getattr(story(kafka_version), name)
    groups = Seen(situation.dirs, kafka_version).groups
    for topic, (leader, in_sync) in situation.leadership.items():
        group = groups[topic]
        # 4.x removes even the last node from the ISR; the metadata log has its earlier ISR.
        assert tuple(sorted(group.in_sync)) == (in_sync or (2,))
        assert group.from_metadata
        assert group.leader == (None if leader < 0 else leader)
        live = situation.live[topic, 2 if leader < 0 else leader]
        assert group.high_watermark == live.high_watermark, topic


def test_the_replica_of_a_killed_follower_is_behind(kafka_version: str, story) -> None:
    situation = story(kafka_version).killed
    seen = Seen(situation.dirs, kafka_version)
    end = situation.live["behind", 2].log_end
    late = seen.replicas["behind", 4].log_end
    assert COMMON < late < end
    assert seen.groups["behind"].in_sync == (2, 3)
    assert seen.groups["behind"].furthest.log_end == end
    verdict = compared(*situation.dirs)["behind"]
    assert (verdict.status, verdict.behind, verdict.superset) == (Status.BEHIND, ("4",), ("2", "3"))
    assert pair(verdict, 2, 4).common == (0, late)


@pytest.mark.parametrize("topic", ["hung", "hung.unclean", "below.min"])
def test_records_above_the_high_watermark_are_counted(
    kafka_version: str, story, topic: str
) -> None:
    situation = story(kafka_version).killed
    seen = Seen(situation.dirs, kafka_version)
    live = situation.live[topic, 2]
    assert (live.high_watermark, live.log_end) == (COMMON, COMMON + 30)
    assert seen.replicas[topic, 2].uncommitted_records == 30
    assert seen.groups[topic].high_watermark == COMMON
    assert seen.groups[topic].furthest.node == 2


def test_an_open_transaction_holds_the_last_stable_offset(kafka_version: str, story) -> None:
    situation = story(kafka_version).killed
    seen = Seen(situation.dirs, kafka_version)
    for node in (2, 3):
        live = situation.live["open.tx", node]
        assert (live.last_stable, live.high_watermark) == (COMMON, COMMON + 25)
        assert seen.replicas["open.tx", node].last_stable == COMMON


@pytest.mark.parametrize("name", SITUATIONS)
def test_followers_truncate_to_the_predicted_offsets(kafka_version: str, story, name: str) -> None:
    situation = getattr(story(kafka_version), name)
    cuts = {}
    for leader in set(situation.leaders.values()):
        for topic, group in Seen(situation.dirs, kafka_version, leader).groups.items():
            if situation.leaders.get(topic) != leader:
                continue
            assert group.assumed.node == leader
            for one in group.truncations:
                key = topic, one.follower.node
                if one.follower.node in situation.away:
                    continue
                if one.by_leader_epoch < one.follower.log_end:
                    cuts[key] = one.by_leader_epoch
                assert not one.unknown
                if key in situation.cuts:
                    assert one.requests == len(situation.cuts[key])
    assert cuts == {key: offsets[-1] for key, offsets in situation.cuts.items()}
    wanted = {"killed": "hung.unclean", "diverged": "diverged", "seesaw": "seesaw"}[name]
    assert cuts[wanted, 2] == COMMON


def test_an_unclean_leader_loses_the_acknowledged_records(kafka_version: str, story) -> None:
    whole = story(kafka_version)
    for name, topic in (("diverged", "diverged"), ("seesaw", "seesaw")):
        situation = getattr(whole, name)
        group = Seen(situation.dirs, kafka_version).groups[topic]
        assert group.assumed.node == situation.leadership[topic][0]
        high_watermark = situation.live[topic, 2].high_watermark
        assert group.acknowledged_lost == high_watermark - COMMON > 0


def test_a_topic_that_was_deleted_and_made_again_is_another_topic(
    kafka_version: str, story
) -> None:
    """Node 4 was away; at its return its old log becomes a stray log."""
    whole = story(kafka_version)
    group = Seen(whole.killed.dirs, kafka_version).groups["made.again"]
    assert [one.node for one in group.replicas] == [2, 3]
    assert [(one.node, one.log_end) for one in group.other_topic] == [(4, COMMON)]
    assert (group.high_watermark, group.acknowledged_lost) == (40, 0)
    verdict = compared(*whole.killed.dirs)["made.again"]
    assert verdict.status == pair(verdict, 2, 4).status == Status.OTHER_TOPIC
    assert pair(verdict, 2, 3).status == Status.SAME
    assert list(whole.end[3].glob("made.again-0.*-stray"))


def test_a_leader_behind_loses_committed_records_that_no_checkpoint_shows(
    kafka_version: str, story, tmp_path: Path
) -> None:
    """The checkpoints are rewritten as if they were older than these records."""
    situation = story(kafka_version).killed
    dirs = [tmp_path / path.name for path in situation.dirs]
    for source, target in zip(situation.dirs, dirs, strict=True):
        shutil.copytree(source, target)
    for target in dirs[1:]:
        path = target / "replication-offset-checkpoint"
        text, changed = re.subn(r"(?m)^behind 0 \d+$", f"behind 0 {COMMON}", path.read_text())
        assert changed == 1
        path.write_text(text)
    groups = Seen(dirs, kafka_version, leader=4).groups
    committed = situation.live["behind", 2].high_watermark
    late = situation.loaded["behind", 4]
    assert groups["behind"].committed == committed
    assert groups["behind"].acknowledged_lost == committed - late > 0
    # Without node 3 of the ISR the loss is only possible.
    unsure = Seen([dirs[0], dirs[1], dirs[3]], kafka_version, leader=4).groups["behind"]
    assert (unsure.not_looked_at, unsure.acknowledged_lost) == ((3,), 0)
    assert unsure.may_be_lost is not None
    assert unsure.may_be_lost >= committed - late
    # Records of the leader alone were not committed.
    assert groups["hung"].acknowledged_lost == 0


@pytest.mark.parametrize("topic", ["diverged", "seesaw"])
def test_the_first_batch_that_differs_has_the_epochs_of_both_leaders(
    kafka_version: str, story, topic: str
) -> None:
    situation = story(kafka_version).diverged
    verdict = compared(*situation.dirs)[topic]
    assert (verdict.status, verdict.diverges_at) == (Status.DIVERGED, COMMON)
    found = pair(verdict, 2, 3)
    for batch, node in ((found.left_batch, 2), (found.right_batch, 3)):
        assert batch is not None
        assert batch.base_offset == COMMON
        assert batch.leader_epoch == situation.live[topic, node].leader_epoch
    assert found.epochs_diverge_at == COMMON
    if topic == "diverged":
        assert pair(verdict, 3, 4).status == Status.SAME


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_next_leader_is_one_that_logtool_named(kafka_version: str, story, name: str) -> None:
    """Controllers elect leaders with and without eligible leader replicas."""
    situation = getattr(story(kafka_version), name)
    groups = Seen(situation.dirs, kafka_version).groups
    judged = 0
    for topic, leader in situation.leaders.items():
        ways = {one.replica.node: one for one in groups[topic].choices} if topic in groups else {}
        if leader in ways and topic not in ("hung.unclean", "diverged", "seesaw"):
            assert ways[leader].standing.election != "unclean", topic
            assert ways[leader].acknowledged_lost == 0
            judged += 1
    assert judged >= 4


def test_in_the_end_all_copies_are_the_same(kafka_version: str, story) -> None:
    whole = story(kafka_version)
    for topic, verdict in compared(*whole.end).items():
        if not topic.startswith("compacted"):
            assert verdict.status == Status.SAME, topic
    for topic in ("diverged", "seesaw"):
        before, after = (dirs[1] / f"{topic}-0" for dirs in (whole.diverged.dirs, whole.end))
        (change,) = compared(before, after)[topic].pairs
        assert change.diverges_at == COMMON
    for (_, node), one in Seen(whole.end, kafka_version).replicas.items():
        assert node in (2, 3, 4)
        assert (one.high_watermark, one.uncommitted_records) == (one.log_end, 0)


def test_the_isr_is_not_taken_from_an_old_metadata_log(kafka_version: str, story) -> None:
    """After an orderly stop 4.x has an empty ISR; the older log of node 4 has all three nodes."""
    whole = story(kafka_version)
    dirs = [*whole.end[:3], whole.killed.dirs[3]]
    group = Seen(dirs, kafka_version).groups["behind"]
    assert not (group.from_metadata and group.in_sync == (2, 3, 4))
    assert Seen(dirs, kafka_version, leader=4).groups["behind"].acknowledged_lost > 0


@pytest.mark.parametrize("topic", ["compacted.keys", "compacted-tx"])
def test_compaction_on_some_brokers_is_not_a_divergence(
    kafka_version: str, story, topic: str
) -> None:
    whole = story(kafka_version)
    for dirs in (whole.killed.dirs, whole.diverged.dirs, whole.end):
        verdict = compared(*dirs)[topic]
        assert verdict.status == Status.COMPACTED
        assert "4" in verdict.superset
        assert verdict.diverges_at is None
        records = {copy.node: copy.records for copy in verdict.copies}
        assert records[2] < records[4]
        assert {copy.log_end for copy in verdict.copies} == {verdict.copies[0].log_end}
        # Node 3 starts to compact later.
        assert (records[3] == records[4]) == (dirs is whole.killed.dirs)


def test_the_releases_are_those_that_are_known(kafka_version: str) -> None:
    assert VERSIONS_OF[kafka_version][0] == major(kafka_version)


def records_of(home: Path, missing_in: Path | None = None) -> list[Object]:
    """Return the records of clients in a copy; with `missing_in` those that the other lacks."""
    missing = MissingIn([home], missing_in) if missing_in else None
    found = []
    for item in Dump([home], chosen=Filter(records=True), missing=missing):
        assert isinstance(item, dict), item
        if item["type"] == "record" and not item["control"]:
            found.append(item)
    return found


def contents(records: list[Object]) -> list[tuple[object, ...]]:
    names = ("offset", "timestamp_ms", "key", "value", "headers")
    return [tuple(one[name] for name in names) for one in records]


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_records_missing_in_the_leader_are_those_that_the_start_truncates(
    kafka_version: str, story, name: str
) -> None:
    situation = getattr(story(kafka_version), name)
    judged = 0
    for (topic, node), cuts in situation.cuts.items():
        leader = situation.leaders.get(topic, -1)
        if leader in (node, -1) or topic not in PLAIN_TOPICS:
            continue
        old, new = (situation.log_dir(one) / f"{topic}-0" for one in (node, leader))
        before, missing = records_of(old), records_of(old, new)
        gone = [one["offset"] for one in before if one["offset"] >= min(cuts)]
        assert [one["offset"] for one in missing] == gone, (topic, node)
        # With the records that the leader has, each record of the old copy is there once.
        kept = [one for one in records_of(new) if one["offset"] < min(cuts)]
        assert contents([*kept, *missing]) == contents(before), (topic, node)
        judged += bool(gone)
    assert judged >= (0 if name == "killed" else 1)
