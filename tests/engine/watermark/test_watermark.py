"""Progress of replicas, compared with the files and dumps of the brokers."""

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from damage import append_to_file, cut, damage_file, remove_file

from logtool.actions import Action
from logtool.commands.views.watermark_tables import REPLICA
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.messages.cluster_metadata import PartitionRecord
from logtool.log.inputs import NodeDir
from logtool.metadata.image import MetadataImage
from logtool.node.options import StartOptions
from logtool.watermark.replica import Replica
from logtool.watermark.replica_group import ReplicaGroup, group_replicas
from logtool.watermark.run import Watermarks, least_in_sync

Scenario = Callable[[str], Path]
VERSIONS = ("4.3.1", "3.9.2")
TOPICS = ("diverged", "fetched-at-once", "in-sync", "lagging")
WATERMARKS = "replication-offset-checkpoint"
_BATCH = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*partitionLeaderEpoch: (\d+) .*"
    r"isControl: (\w+)"
)


class Seen:
    """Results of one run."""

    def __init__(self, *dirs: Path | NodeDir, leader: int | None = None) -> None:
        places = [one if isinstance(one, NodeDir) else NodeDir(one) for one in dirs]
        self.job = Watermarks(places, StartOptions((4, 3)), leader=leader)
        self.replicas: dict[tuple[str, int | None], Replica] = {}
        self.groups: dict[str, ReplicaGroup] = {}
        self.findings: list[tuple[str, str | None]] = []
        self.errors: list[UnreadableError] = []
        for item in self.job:
            if isinstance(item, Replica):
                self.replicas[f"{item.topic}-{item.partition}", item.node] = item
            elif isinstance(item, ReplicaGroup):
                self.groups[f"{item.topic}-{item.partition}"] = item
            elif isinstance(item, Finding):
                self.findings.append((item.code, item.topic))
            elif isinstance(item, UnreadableError):
                self.errors.append(item)
            else:
                assert isinstance(item, Action)


def nodes(home: Path) -> list[Path]:
    return [home / f"node-{node}" for node in (1, 2, 3)]


def rows(file: Path) -> dict[str, int]:
    """Return an offset checkpoint as its broker wrote it."""
    lines = [line.split() for line in file.read_text().splitlines()[2:]]
    return {f"{topic}-{number}": int(offset) for topic, number, offset in lines}


def set_row(data: bytes, partition: str, offset: int) -> bytes:
    """Return a checkpoint with another offset for ``topic number``."""
    row = rf"^({re.escape(partition)}) \d+$".encode()
    changed, count = re.subn(row, rb"\1 %d" % offset, data, flags=re.MULTILINE)
    assert count == 1
    return changed


def dumped(expected: Path, name: str) -> list[tuple[int, int, int, int, bool]]:
    """Return (first, last, count, epoch, control) of all batches, by Kafka's own dump tool."""
    text = "".join(p.read_text() for p in sorted((expected / "batches" / name).glob("*.log.txt")))
    found = [match.groups() for match in _BATCH.finditer(text)]
    return [(int(a), int(b), int(c), int(e), control == "true") for a, b, c, e, control in found]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_replica_is_as_its_broker_left_it(scenario: Scenario, version: str) -> None:
    home, expected = scenario(f"{version}/replicas"), scenario(f"{version}/replicas.expected")
    seen = Seen(*nodes(home))
    assert sorted(seen.replicas) == [(f"replica.{t}-0", node) for t in TOPICS for node in (2, 3)]
    for (name, node), one in seen.replicas.items():
        broker = home / f"node-{node}"
        batches = dumped(expected, f"node-{node}/{name}")
        assert one.log_start == 0
        assert one.recovery_point == rows(broker / "recovery-point-offset-checkpoint")[name]
        assert one.checkpointed == one.high_watermark == rows(broker / WATERMARKS)[name]
        assert one.last_stable == one.high_watermark
        assert one.log_end == batches[-1][1] + 1
        assert one.last_epoch == batches[-1][3]
        behind = [last - max(first, one.high_watermark) + 1 for first, last, *_ in batches
                  if last >= one.high_watermark]  # fmt: skip
        assert one.uncommitted_records == sum(behind)
        assert (one.tail, one.outcome, one.lost_records) == ("sound", "loads", 0)
    assert (seen.findings, seen.errors) == ([], [])


@pytest.mark.parametrize("version", VERSIONS)
def test_who_was_last_in_sync_gives_the_high_watermark(scenario: Scenario, version: str) -> None:
    groups = Seen(*nodes(scenario(f"{version}/replicas"))).groups
    reported = {
        name: (group.in_sync, group.high_watermark, group.furthest.node, group.assumed.node)
        for name, group in groups.items()
    }
    assert reported == {
        "replica.diverged-0": ((3,), 170, 3, 3),
        "replica.fetched-at-once-0": ((2,), 720, 2, 2),
        "replica.in-sync-0": ((2,), 120, 2, 2),
        "replica.lagging-0": ((2,), 180, 2, 2),
    }
    assert all(group.from_metadata for group in groups.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unclean_leader_costs_what_the_other_had_committed_alone(
    scenario: Scenario, version: str
) -> None:
    """Node 2 alone was in sync when it wrote offsets 120 to 199; node 3 then led from 120 on."""
    seen = Seen(*nodes(scenario(f"{version}/replicas")))
    (one,) = seen.groups["replica.diverged-0"].truncations
    assert (one.follower.node, one.leader.node) == (2, 3)
    assert (one.by_high_watermark, one.by_leader_epoch, one.requests) == (120, 120, 1)
    assert (one.acknowledged_lost, one.diverges_from) == (80, None)
    assert seen.replicas["replica.diverged-0", 2].committed == 200
    assert seen.job.summary.exit_status() == 1


def test_another_leader_may_be_tried(scenario: Scenario) -> None:
    home = scenario("4.3.1/replicas")
    lagging = Seen(*nodes(home), leader=3).groups["replica.lagging-0"]
    (one,) = lagging.truncations
    assert (lagging.assumed.node, one.follower.node, one.by_leader_epoch) == (3, 2, 120)
    assert one.acknowledged_lost == lagging.acknowledged_lost == 60
    (back,) = Seen(*nodes(home), leader=2).groups["replica.diverged-0"].truncations
    assert (back.follower.node, back.by_leader_epoch, back.acknowledged_lost) == (3, 120, 50)


def test_without_a_metadata_log_all_are_in_sync(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    for node in nodes(home):
        shutil.rmtree(node / "__cluster_metadata-0")
    seen = Seen(*nodes(home)[1:])
    lagging = seen.groups["replica.lagging-0"]
    assert (lagging.in_sync, lagging.from_metadata, lagging.leader) == ((2, 3), False, None)
    assert (lagging.high_watermark, lagging.furthest.node) == (120, 2)
    # Nothing shows that node 2 was alone, so only its checkpoint proves the commits.
    (one,) = seen.groups["replica.diverged-0"].truncations
    assert (one.by_leader_epoch, one.acknowledged_lost) == (120, 0)


def test_a_high_watermark_in_records_that_the_leader_lacks_would_make_logs_differ(
    copy_of: Scenario,
) -> None:
    """KIP-101, second scenario: cut to 150, node 2 would keep 120 to 149 of another epoch."""
    home = copy_of("4.3.1/replicas")
    damage_file(home / "node-2" / WATERMARKS, set_row, "replica.diverged 0", 150)
    (one,) = Seen(*nodes(home)).groups["replica.diverged-0"].truncations
    assert (one.by_high_watermark, one.by_leader_epoch, one.diverges_from) == (150, 120, 120)


def test_without_leader_epochs_the_high_watermark_decides(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    # Recovery would rebuild the epochs from the batches that it reads.
    for node, name in ((2, "lagging"), (2, "diverged")):
        remove_file(home / f"node-{node}/replica.{name}-0/leader-epoch-checkpoint")
        (home / f"node-{node}/.kafka_cleanshutdown").write_text('{"version":0}')
    (one,) = Seen(*nodes(home)).groups["replica.diverged-0"].truncations
    assert (one.unknown, one.requests, one.by_leader_epoch) == (True, 0, 120)


def test_a_leader_without_its_epochs_takes_what_a_follower_has_for_its_own(
    copy_of: Scenario,
) -> None:
    home = copy_of("4.3.1/replicas")
    remove_file(home / "node-3/replica.diverged-0/leader-epoch-checkpoint")
    (home / "node-3/.kafka_cleanshutdown").write_text('{"version":0}')
    (one,) = Seen(*nodes(home)).groups["replica.diverged-0"].truncations
    # Up to the end of the leader's log nothing goes, though it holds others from 120 on.
    assert (one.unknown, one.by_leader_epoch, one.diverges_from) == (True, 170, None)
    assert one.acknowledged_lost == 200 - 170


def test_a_dir_that_is_given_twice_counts_once(scenario: Scenario) -> None:
    node = scenario("4.3.1/replicas") / "node-2"
    seen = Seen(node, NodeDir(node / ".." / "node-2", 9))
    assert {one.node for one in seen.replicas.values()} == {2}
    assert all(len(group.replicas) == 1 for group in seen.groups.values())


@pytest.mark.parametrize("version", VERSIONS)
def test_after_an_orderly_stop_everything_is_committed(scenario: Scenario, version: str) -> None:
    home, expected = scenario(f"{version}/clean"), scenario(f"{version}/clean.expected")
    seen = Seen(home)
    assert (seen.findings, seen.errors) == ([], [])
    assert seen.job.summary.exit_status() == 0
    for (name, _), one in seen.replicas.items():
        assert one.high_watermark == one.log_end == one.recovery_point, name
        assert one.uncommitted_records == 0
        batches = dumped(expected, name)
        assert one.log_end == (batches[-1][1] + 1 if batches else 0)
    assert seen.replicas["deleted-records.mid-0", 1].log_start == 77


@pytest.mark.parametrize("name", ["tx.mixed-0", "tx-interleaved_v2-0", "tx-interleaved_v2-1"])
def test_an_open_transaction_holds_the_last_stable_offset(scenario: Scenario, name: str) -> None:
    """Its first offset is the one that Kafka's tool prints of the producer snapshot."""
    expected = scenario("4.3.1/clean.expected") / "entries" / name
    newest = sorted(expected.glob("*.snapshot.txt"))[-1].read_text()
    first = min(map(int, re.findall(r"currentTxnFirstOffset: Optional(?:Long)?\[(\d+)\]", newest)))
    one = Seen(scenario("4.3.1/clean")).replicas[name, 1]
    assert one.last_stable == first < one.high_watermark


@pytest.mark.parametrize(
    ("watermark", "stable"), [(24, 0), (25, 25), (55, 28), (56, 56), (164, 140), (165, 165)]
)
def test_a_transaction_is_stable_once_its_marker_is_below_the_high_watermark(
    copy_of: Scenario, watermark: int, stable: int
) -> None:
    """Transactions from 0, 28 and 140 have their markers at 24, 55 and 164."""
    home = copy_of("4.3.1/clean")
    damage_file(home / WATERMARKS, set_row, "tx.mixed 0", watermark)
    assert Seen(home).replicas["tx.mixed-0", 1].last_stable == stable


@pytest.mark.parametrize(("watermark", "uncommitted"), [(119, 181), (298, 2), (299, 1), (301, 0)])
def test_the_record_at_the_high_watermark_is_not_committed(
    copy_of: Scenario, watermark: int, uncommitted: int
) -> None:
    """The log ends at 300, so that 299 is its last record: with 299 it is not committed yet."""
    home = copy_of("4.3.1/clean")
    damage_file(home / WATERMARKS, set_row, "codec-none 1", watermark)
    one = Seen(home).replicas["codec-none-1", 1]
    assert (one.checkpointed, one.log_end) == (watermark, 300)
    assert one.uncommitted_records == uncommitted


def test_checkpoints_that_contradict_the_log_are_findings(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    damage_file(home / WATERMARKS, set_row, "codec-gzip 0", 301)
    damage_file(home / WATERMARKS, set_row, "deleted-records.mid 0", 76)
    damage_file(home / "recovery-point-offset-checkpoint", set_row, "codec-lz4 0", 999)
    seen = Seen(home)
    assert sorted(seen.findings) == [
        ("checkpoint/high-watermark-below-start", "deleted-records.mid"),
        ("checkpoint/high-watermark-beyond-end", "codec-gzip"),
        ("checkpoint/recovery-point-beyond-end", "codec-lz4"),
    ]
    # A broker takes the nearest offset that the log has.
    assert seen.replicas["codec-gzip-0", 1].high_watermark == 300
    assert seen.replicas["deleted-records.mid-0", 1].high_watermark == 77
    assert seen.job.summary.exit_status() == 1


def test_a_torn_tail_below_the_high_watermark_is_found_and_its_replica_is_not_furthest(
    copy_of: Scenario,
) -> None:
    home = copy_of("4.3.1/replicas")
    log = home / "node-2" / "replica.in-sync-0" / f"{0:020d}.log"
    damage_file(log, cut, log.stat().st_size - 1)
    log.touch()  # So that it is no copy from before the checkpoint.
    seen = Seen(*nodes(home))
    torn = seen.replicas["replica.in-sync-0", 2]
    assert torn.tail == "log/torn-tail"
    assert torn.log_end < 120 == torn.checkpointed
    assert ("checkpoint/high-watermark-beyond-end", "replica.in-sync") in seen.findings
    group = seen.groups["replica.in-sync-0"]
    assert (group.furthest.node, group.assumed.node) == (3, 2)
    # The only one in sync leads all the same, and node 3 gives up what node 2 has lost.
    assert group.acknowledged_lost == 120 - torn.log_end
    assert Seen(*nodes(home), leader=3).groups["replica.in-sync-0"].acknowledged_lost == 0


def test_damage_in_the_tail_is_reported_with_what_a_broker_cuts(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    log = home / "node-2" / "replica.lagging-0" / f"{0:020d}.log"
    append_to_file(log, b"\0" * 100)
    seen = Seen(*nodes(home))
    one = seen.replicas["replica.lagging-0", 2]
    assert (one.log_end, one.lost_records) == (180, 0)
    assert one.tail != "sound"
    assert one.tail in [code for code, _ in seen.findings]


def test_a_replica_that_does_not_load_takes_no_part(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    (home / "node-3/replica.lagging-0/leader-epoch-checkpoint").write_text("0\n1\nno number\n")
    seen = Seen(*nodes(home))
    broken = seen.replicas["replica.lagging-0", 3]
    assert broken.outcome != "loads"
    assert REPLICA.row(broken)["log_end_offset"] is None
    assert [one.node for one in seen.groups["replica.lagging-0"].replicas] == [2]
    assert seen.job.summary.to_do


def test_a_high_watermark_stays_where_too_few_are_in_sync(scenario: Scenario) -> None:
    """The rule of brokers since 3.7; tests/broker/test_replicas_agree.py compares them."""
    group = Seen(*nodes(scenario("4.3.1/replicas"))).groups["replica.diverged-0"]
    assert (group.in_sync, group.least_in_sync, group.high_watermark) == ((3,), 1, 170)
    (follower,) = (one for one in group.replicas if one.node == 3)
    assert follower.high_watermark < follower.log_end
    kept = group_replicas([replace(one, topic_id=None) for one in group.replicas], state(3), 2)
    assert kept and kept.high_watermark == follower.high_watermark


def state(*isr: int) -> PartitionRecord:
    """Return the state in a metadata log: nodes 2 and 3 have the partition, the first leads."""
    return PartitionRecord("", 0, (2, 3), isr, isr[0], 9, 0, ())


def test_what_all_in_sync_have_was_committed_however_old_the_checkpoints_are(
    scenario: Scenario,
) -> None:
    known = Seen(*nodes(scenario("4.3.1/replicas"))).groups["replica.lagging-0"].replicas
    longer, shorter = (
        replace(one, topic_id=None, checkpointed=None, high_watermark=0, alone=False)
        for one in known
    )
    assert (longer.log_end, shorter.log_end) == (180, 120)
    alone = group_replicas((longer, shorter), state(2), wanted=3)
    assert alone and (alone.committed, alone.acknowledged_lost) == (180, 60)
    both = group_replicas((longer, shorter), state(2, 3), wanted=3)
    assert both and (both.high_watermark, both.committed, both.acknowledged_lost) == (120, 120, 0)
    # Another one in sync that was not looked at may have had less.
    absent = group_replicas((longer, shorter), state(2, 4), wanted=3)
    assert absent and (absent.high_watermark, absent.committed) == (180, 0)
    assert (absent.acknowledged_lost, absent.not_looked_at) == (0, (4,))
    assert absent.may_be_lost == 180 - 120
    # A leader in sync has all that was acknowledged; other replicas change nothing.
    in_sync = group_replicas((longer, shorter), state(2, 4), wanted=2)
    assert in_sync and (in_sync.not_looked_at, in_sync.may_be_lost) == ((4,), 0)
    # What one in sync has is no more than what another one in sync has.
    third = replace(longer, node=5, path=longer.path / "5", log_end=150)
    bound = group_replicas((longer, shorter, third), state(2, 4, 5), wanted=3)
    assert bound and bound.may_be_lost == 150 - 120
    unknown = group_replicas((longer, shorter), state(4), wanted=3)
    assert unknown and unknown.may_be_lost is None
    no_one_knows = group_replicas((longer, shorter), None, wanted=3)
    assert no_one_knows and no_one_knows.committed == 0


def test_the_high_watermark_is_not_behind_where_those_in_sync_differ(scenario: Scenario) -> None:
    group = Seen(*nodes(scenario("4.3.1/replicas"))).groups["replica.diverged-0"]
    assert sorted(one.log_end for one in group.replicas) == [170, 200]
    both = group_replicas([replace(one, topic_id=None) for one in group.replicas], state(3, 2))
    assert both and both.high_watermark == 120


@pytest.mark.parametrize(
    ("topic", "node", "all_brokers", "kafka", "least"),
    [
        (None, None, None, (4, 3), 1), ("2", None, None, (4, 3), 2), ("9", None, None, (4, 3), 3),
        ("2", "3", "1", (4, 3), 2), (None, "3", "1", (4, 3), 3), (None, None, "2", (4, 3), 2),
        ("2", None, None, (3, 7), 2), ("2", None, None, (3, 6), 1), ("?", None, None, (4, 3), 1),
    ],
)  # fmt: skip
def test_how_many_must_be_in_sync_is_what_the_metadata_says_but_not_more_than_there_are(
    topic: str | None, node: str | None, all_brokers: str | None, kafka: tuple[int, int], least: int
) -> None:
    name = "min.insync.replicas"
    image = MetadataImage(
        topic_configs={"orders": {name: topic}} if topic else {},
        broker_configs={
            key: {name: value} for key, value in (("7", node), ("", all_brokers)) if value
        },
    )
    known = PartitionRecord("id", 0, (7, 8, 9), (7,), 7, 0, 0, ())
    assert least_in_sync(image, known, "orders", 7, kafka) == least


def test_a_replica_of_another_topic_of_that_name_takes_no_part(scenario: Scenario) -> None:
    known = Seen(*nodes(scenario("4.3.1/replicas"))).groups["replica.lagging-0"].replicas
    leader, follower = (replace(one, alone=False) for one in known)
    assert leader.topic_id == follower.topic_id is not None
    older = replace(follower, topic_id="old")
    record = replace(state(2), topic_id=leader.topic_id)
    group = group_replicas((leader, older), record)
    assert group and (group.replicas, group.other_topic) == ((leader,), (older,))
    assert (group.truncations, group.from_metadata) == ((), True)
    assert group.topic_id == leader.topic_id
    # Without a metadata log most decide; a metadata log that knows neither says nothing.
    for unknown in (None, state(2)):
        group = group_replicas((older, leader, replace(follower, node=4)), unknown)
        assert group and [one.node for one in group.replicas] == [2, 4]
        assert (group.other_topic, group.from_metadata) == ((older,), False)


def test_without_a_metadata_log_two_topics_are_not_distinguished(
    scenario: Scenario,
) -> None:
    seen = Seen(*nodes(scenario("4.3.1/replicas")))
    one = seen.replicas["replica.lagging-0", 2]
    other = replace(seen.replicas["replica.lagging-0", 3], topic_id="A" * 21 + "Q")
    both = [group_replicas(order, None) for order in ((one, other), (other, one))]
    assert [group and (group.topic_id, group.assumed) for group in both] == [(None, other)] * 2
    assert [group and group.other_topic for group in both] == [(one,)] * 2


def test_a_topic_that_was_made_again_is_reported(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    # Its own metadata log would put it aside; without one only the other replica shows it.
    for node in nodes(home):
        shutil.rmtree(node / "__cluster_metadata-0")
    path = home / "node-3/replica.lagging-0/partition.metadata"
    path.write_text("version: 0\ntopic_id: " + "A" * 21 + "Q")
    seen = Seen(*nodes(home))
    group = seen.groups["replica.lagging-0"]
    assert [one.node for one in group.other_topic] in ([2], [3])
    assert seen.job.summary.exit_status() == 1


def test_a_directory_of_unknown_owner_may_be_given_one(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    remove_file(home / "node-2" / "meta.properties")
    assert ("replica.lagging-0", None) in Seen(home / "node-2").replicas
    seen = Seen(home / "node-1", NodeDir(home / "node-2", 2), home / "node-3")
    assert seen.groups["replica.lagging-0"].assumed.node == 2


def test_a_partition_dir_is_judged_by_the_checkpoints_next_to_it(scenario: Scenario) -> None:
    home = scenario("4.3.1/replicas")
    alone = Seen(*(home / f"node-{n}" / "replica.diverged-0" for n in (2, 3)))
    assert list(alone.groups) == ["replica.diverged-0"]
    assert alone.groups["replica.diverged-0"].acknowledged_lost == 80


def test_a_path_that_is_not_there_leaves_the_rest(scenario: Scenario, tmp_path: Path) -> None:
    seen = Seen(tmp_path / "missing", scenario("4.3.1/replicas") / "node-2")
    assert [error.path.name for error in seen.errors] == ["missing"]
    assert len(seen.replicas) == 4
    assert seen.job.summary.exit_status() == 4


def test_what_a_node_should_hold_and_does_not_is_reported(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    assert not [code for code, _ in Seen(home).findings if "/absent" in code or "/lost" in code]
    gone = next(path for path in sorted(home.glob("*-0")) if path.name != "__cluster_metadata-0")
    shutil.rmtree(gone)
    seen = Seen(home)
    assert ("partition/lost", gone.name.rpartition("-")[0]) in seen.findings
    assert seen.job.summary.exit_status() == 1


def test_a_log_that_other_files_prove_is_lost(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/clean")
    (path, *_) = [log.parent for log in sorted(home.glob("*-0/*.log")) if log.stat().st_size
                  and log.parent.name != "__cluster_metadata-0"]  # fmt: skip
    for file in path.glob("*.log"):
        remove_file(file)
    for name in ("replication", "recovery-point", "log-start"):
        remove_file(home / f"{name}-offset-checkpoint")
    seen = Seen(home)
    assert ("log/lost", path.name.rpartition("-")[0]) in seen.findings
    assert seen.groups[path.name].acknowledged_lost > 0


def test_a_metadata_log_of_another_node_says_what_a_node_should_hold(copy_of: Scenario) -> None:
    home = copy_of("4.3.1/replicas")
    shutil.rmtree(home / "node-2" / "__cluster_metadata-0")
    shutil.rmtree(home / "node-2" / "replica.lagging-0")
    for file in (home / "node-2").glob("*-offset-checkpoint"):
        remove_file(file)
    alone = [code for code, _ in Seen(home / "node-2").findings]
    assert alone == ["metadata/absent"]
    found = Seen(*nodes(home)).findings
    assert ("metadata/absent", None) not in found
    assert {topic for code, topic in found if code.startswith("partition/")} == {"replica.lagging"}


def test_an_election_that_loses_more_than_another_is_named(scenario: Scenario) -> None:
    seen = Seen(*nodes(scenario("4.3.1/replicas")))
    group = seen.groups["replica.diverged-0"]
    assert (group.best_leader, group.keep_stopped) == (2, ())
    harmless = [replace(one, acknowledged_lost=0) if one.replica.node == 2 else one
                for one in group.choices]  # fmt: skip
    assert replace(group, choices=tuple(harmless)).keep_stopped == (3,)
    assert seen.groups["replica.in-sync-0"].keep_stopped == ()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_segment_that_is_gone_is_missing_in_the_replica(
    copy_of: Scenario, is_clean: bool
) -> None:
    home = copy_of("4.3.1/clean" if is_clean else "4.3.1/killed")
    folder = home / "small-segments-0"
    assert Seen(folder).replicas["small-segments-0", 1].missing == ()
    logs = sorted(folder.glob("*.log"))
    remove_file(logs[3])
    first, end = int(logs[3].stem), int(logs[4].stem)
    seen = Seen(folder)
    assert seen.replicas["small-segments-0", 1].missing == ((first, end - 1),)
    assert ("segment/missing", "small-segments") in seen.findings
