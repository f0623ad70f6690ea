"""Remote segments by their records: each damage is named, and nothing else."""

import pytest
from remote_events import FIRST_MS, ORDERS, SIZE, EventLog, log_dir, segment_id

from logtool.findings import Finding
from logtool.formats.messages import remote_log
from logtool.formats.messages.remote_log import SegmentState
from logtool.remote import coverage
from logtool.remote.lineage import PartitionLineage
from logtool.remote.mending import MendedPartition
from logtool.remote.restore import RestoreRun
from logtool.remote.run import RemoteLineage
from logtool.remote.segments import RemotePartition, RemoteSegment

STARTED, COPIED = SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED


def judged(home, **more):
    """Return ranges as (first, last, place), and findings as (code, first, last) offsets."""
    found = list(RemoteLineage([home], **more))
    ranges = [(one.first_offset, one.last_offset, one.place)
              for item in found if isinstance(item, PartitionLineage)
              for one in item.ranges]  # fmt: skip
    findings = [(one.code, one.first_offset, one.last_offset)
                for one in found if isinstance(one, Finding)]  # fmt: skip
    return ranges, findings


def written(*, without=(), keys=False):
    """Return a log with six copied segments, without some (segment, state)."""
    log = EventLog()
    for number in range(6):
        for state in (STARTED, COPIED):
            if (number, state) in without:
                continue
            key = f"{number}:{int(state)}".encode() if keys else None
            if state is STARTED:
                log.start(number, key=key)
            else:
                log.update(number, state, key)
    return log


REMOTE, BOTH, LOCAL = (0, 49, "remote"), (50, 59, "both"), (60, 69, "local")
HEALTHY = [REMOTE, BOTH, LOCAL]


def test_a_healthy_partition_has_no_finding(tmp_path):
    home = log_dir(tmp_path, written(), local=(50, 70))
    assert judged(home) == (HEALTHY, [])


def without(home, *bases):
    """Remove the logs of local segments from a log dir; return it."""
    for base in bases:
        (home / "orders-0" / f"{base:020d}.log").unlink()
    return home


def test_a_hole_between_local_segments_hides_what_remote_storage_has(tmp_path):
    home = without(log_dir(tmp_path, written(), local=(20, 80)), 30, 40)
    ranges = [(0, 19, "remote"), (20, 29, "both"), (30, 49, "hidden"), (50, 59, "both"),
              (60, 79, "local")]  # fmt: skip
    assert judged(home) == (ranges, [("remote/hidden", 30, 49)])


def test_a_hole_between_local_segments_that_were_not_copied_is_lost(tmp_path):
    home = without(log_dir(tmp_path, written(), local=(20, 80)), 50, 60)
    ranges = [(0, 19, "remote"), (20, 49, "both"), (50, 59, "hidden"), (60, 69, "nowhere"),
              (70, 79, "local")]  # fmt: skip
    assert judged(home) == (ranges, [("remote/hidden", 50, 59), ("remote/hole", 60, 69)])


def test_offsets_that_the_cleaner_removed_are_no_hole(tmp_path):
    home = without(log_dir(tmp_path, written(), local=(20, 80)), 30, 60)
    (home / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 50\n")
    _, findings = judged(home)
    assert findings == [("remote/hole", 60, 69)]


@pytest.mark.parametrize("rows", ["0\n0\n", "0\n1\n0 60\n", None], ids=["none", "late", "gone"])
def test_missing_leader_epochs_are_one_finding(tmp_path, rows):
    home = log_dir(tmp_path, written(), local=(50, 70))
    file = home / "orders-0" / "leader-epoch-checkpoint"
    file.unlink()
    if rows:
        file.write_text(rows)
    ranges, findings = judged(home)
    assert ranges == HEALTHY
    assert findings == [("leader-epoch/missing-remote", 0, 49)]


def test_missing_leader_epochs_of_deleted_segments_are_no_finding(tmp_path):
    log = written()
    log.delete(*range(6))
    home = log_dir(tmp_path, log, local=(50, 70), epochs=((0, 50),))
    assert judged(home)[1] == []


DAMAGE = {
    # What is written behind six copied segments, the ranges, and the findings.
    "a segment in the middle is deleted": (
        lambda log: log.delete(2),
        [(0, 19, "remote"), (20, 29, "nowhere"), (30, 49, "remote"), BOTH, LOCAL],
        [("remote/hole", 20, 29)],
    ),
    "two neighbours are deleted": (
        lambda log: log.delete(2, 3),
        [(0, 19, "remote"), (20, 39, "nowhere"), (40, 49, "remote"), BOTH, LOCAL],
        [("remote/hole", 20, 39)],
    ),
    "the first segments are deleted": (
        lambda log: log.delete(0, 1), [(0, 19, "deleted"), (20, 49, "remote"), BOTH, LOCAL], [],
    ),
    "a deletion is not finished": (
        lambda log: log.update(0, DELETING),
        [(0, 9, "deleted"), (10, 49, "remote"), BOTH, LOCAL],
        [("remote/delete-unfinished", 0, 9)],
    ),
    "the newest copy is not finished": (
        lambda log: log.start(6), HEALTHY, [("remote/copy-unfinished", 60, 69)],
    ),
    "a copy is given up": (
        lambda log: (log.start(9, first=60, last=69), log.copy(6)),
        [REMOTE, (50, 69, "both")],
        [("remote/dangling-copy", 60, 69)],
    ),
    "a segment is copied again": (
        lambda log: log.copy(9, first=40, last=49), HEALTHY, [("remote/unreferenced", 40, 49)],
    ),
    "a copy reaches beyond the log end": (
        lambda log: log.copy(6, 7),
        [REMOTE, (50, 69, "both")],
        [("remote/beyond-log-end", 70, 79)],
    ),
    "a record goes backwards": (
        lambda log: log.update(5, STARTED), HEALTHY, [("remote/dropped-event", 12, None)],
    ),
    "a deletion is finished before it begins": (
        lambda log: log.update(5, DELETED), HEALTHY, [("remote/dropped-event", 12, None)],
    ),
    "a record is no record of Kafka": (
        lambda log: log.event(b"\x01\x00"), HEALTHY, [("remote/unreadable-record", 12, 12)],
    ),
    "a record is empty": (
        lambda log: log.event(None), HEALTHY, [("remote/unreadable-record", 12, 12)],
    ),
    "a record has an unknown type": (
        lambda log: log.event(b"\x01\x09\x00"), HEALTHY, [("remote/newer-record", None, None)],
    ),
    "a change of a segment that no record begins": (
        lambda log: log.update(77, COPIED), HEALTHY, [("remote/unknown-segment", 12, None)],
    ),
    "the end of the deletion of such a segment": (
        lambda log: log.update(77, DELETED), HEALTHY, [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_each_damage_is_named(tmp_path, name):
    damage, ranges, findings = DAMAGE[name]
    log = written()
    damage(log)
    assert judged(log_dir(tmp_path, log, local=(50, 70))) == (ranges, findings)


MISSING = {
    "the record that begins a segment": (
        {(2, STARTED)}, [("remote/unknown-segment", 4, None), ("remote/hole", 20, 29)],
    ),
    "the record that ends its copy": (
        {(2, COPIED)}, [("remote/hole", 20, 29), ("remote/dangling-copy", 20, 29)],
    ),
    "both records": ({(2, STARTED), (2, COPIED)}, [("remote/hole", 20, 29)]),
    "all records of the first segment": (
        {(0, STARTED), (0, COPIED)}, [("remote/hole", 0, 9)],
    ),
    "the records of a segment that is still local": ({(5, STARTED), (5, COPIED)}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_missing_records_are_named(tmp_path, name):
    without, findings = MISSING[name]
    home = log_dir(tmp_path, written(without=without), local=(50, 70))
    assert judged(home)[1] == findings


def test_without_any_record_nothing_remote_is_known(tmp_path):
    log = EventLog(topic_id=segment_id(99))
    log.copy(0)
    home = log_dir(tmp_path, log, local=(50, 70))
    ranges, findings = judged(home)
    assert (0, 49, "nowhere") in ranges
    assert findings == [("remote/deleted-topic", None, None), ("remote/hole", 0, 49)]


def test_a_log_that_begins_later_is_not_calm(tmp_path):
    log = written()
    del log.batches[:2]
    home = log_dir(tmp_path, log, local=(50, 70))
    old = home / "__remote_log_metadata-0" / f"{0:020d}.log"
    old.rename(old.with_name(f"{2:020d}.log"))
    ranges, findings = judged(home)
    assert ranges == [(0, 9, "unknown"), (10, 49, "remote"), BOTH, LOCAL]
    assert findings == [("remote/incomplete-history", 0, 2)]


def test_null_values_remove_what_has_their_key(tmp_path):
    log = written(keys=True)
    log.update(0, DELETING, b"0:1")
    log.update(0, DELETED, b"0:1")
    log.event(None, b"0:1")
    log.event(None, b"0:0")
    log.event(None, b"no record has this key")
    home = log_dir(tmp_path, log, local=(50, 70))
    assert judged(home) == ([(0, 9, "deleted"), (10, 49, "remote"), BOTH, LOCAL], [])
    log.event(None, b"3:0")
    log.write(home)
    assert judged(home)[1] == [("remote/hole", 30, 39)]


def test_a_compacted_topic_with_keys_goes_from_the_copy_to_the_deletion(tmp_path):
    log = written(keys=True)
    log.start(6, key=b"6:0")
    log.update(6, DELETED, b"6:1")
    assert judged(log_dir(tmp_path, log, local=(50, 70))) == (HEALTHY, [])


def test_segments_of_another_leader_do_not_fit(tmp_path):
    log = EventLog()
    log.copy(0, 1)
    log.copy(2, epochs=[(0, 20), (1, 25)])  # the leader of epoch 1 lost an unclean election
    log.copy(7, first=20, last=29, epochs=[(0, 20), (2, 23)])
    log.copy(3, epochs=[(2, 30)])
    log.copy(4, epochs=[(2, 40)])
    home = log_dir(tmp_path, log, local=(50, 60), epochs=[(0, 0), (2, 23)])
    ranges, findings = judged(home)
    assert ranges == [(0, 22, "remote"), (23, 49, "remote"), (50, 59, "local")]
    assert findings == [("remote/outside-lineage", 20, 29)]


def test_segments_below_the_log_start_wait_for_their_deletion(tmp_path):
    home = log_dir(tmp_path, written(), local=(50, 70), log_start=25)
    assert judged(home) == (
        [(25, 49, "remote"), BOTH, LOCAL], [("remote/below-log-start", 0, 19)],
    )  # fmt: skip


HOUR = 3_600_000
EARLY = {
    # Settings, the largest timestamp of the segments, and whether the deletion was too early.
    "the log is too large": ({"retention.bytes": "4000", "retention.ms": "-1"}, 0, False),
    "the segments are too old": ({"retention.bytes": "-1", "retention.ms": "1"}, 0, False),
    "nothing limits the log": ({"retention.bytes": "-1", "retention.ms": "-1"}, 0, True),
    "the log was smaller": ({"retention.bytes": "40000", "retention.ms": "-1"}, 0, True),
    "the segments were younger": (
        {"retention.bytes": "-1", "retention.ms": str(HOUR)}, FIRST_MS, True,
    ),
    "the limit of size is in another file": ({"retention.ms": "-1"}, 0, False),
}  # fmt: skip


@pytest.mark.parametrize("name", EARLY)
def test_deletions_are_compared_with_retention(tmp_path, name):
    settings, max_ms, is_early = EARLY[name]
    log = EventLog()
    log.copy(0, 1, 2, 3, 4, 5, max_ms=max_ms)
    log.delete(0, 1)
    home = log_dir(tmp_path, log, local=(50, 60), log_start=20, settings=settings)
    job = RemoteLineage([home])
    codes = [one.code for one in job if isinstance(one, Finding)]
    assert codes == ["remote/deleted-early"] * is_early
    assert job.unjudged == (2 if "retention.bytes" not in settings else 0)
    with_file = RemoteLineage([home], has_file=True)
    early = [one.code for one in with_file if isinstance(one, Finding)]
    assert early == ["remote/deleted-early"] * (is_early or "retention.bytes" not in settings)


def test_a_log_start_inside_a_segment_explains_deletions(tmp_path):
    log = EventLog()
    log.copy(0, 1, 2, 3, 4, 5)
    log.delete(0, 1)
    settings = {"retention.bytes": "-1", "retention.ms": "-1"}
    home = log_dir(tmp_path, log, local=(50, 60), log_start=23, settings=settings)
    assert judged(home)[1] == []


def test_segments_of_a_deleted_topic_are_left(tmp_path):
    log = EventLog(topic_id=segment_id(99))
    log.copy(0, 1)
    assert judged(log_dir(tmp_path, log, local=None))[1] == [("remote/deleted-topic", None, None)]
    log.delete(0, 1)
    log.write(tmp_path)
    assert judged(tmp_path)[1] == []


def test_the_state_of_a_moment(tmp_path):
    log = written()
    at_ms = log.now
    log.delete(0, 1, 2)
    home = log_dir(tmp_path, log, local=(50, 70))
    assert judged(home, at_ms=at_ms) == ([(0, 59, "remote")], [])
    assert judged(home, at_ms=at_ms - 1)[1] == [("remote/copy-unfinished", 50, 59)]
    assert judged(home)[0] == [(0, 29, "deleted"), (30, 49, "remote"), BOTH, LOCAL]


def test_an_absent_partition_of_the_topic_is_not_calm(tmp_path):
    right = remote_log.metadata_partition(ORDERS, 0, 3)
    other = EventLog(topic_id=segment_id(99))
    other.copy(0)
    home = log_dir(
        tmp_path, other, local=(50, 70), metadata_partitions=3, number=(right + 1) % 3
    )  # fmt: skip
    assert ("remote/absent-metadata-partition", None, None) in judged(home)[1]


def test_records_in_another_partition_are_not_read(tmp_path):
    right = remote_log.metadata_partition(ORDERS, 0, 3)
    home = log_dir(
        tmp_path, written(), local=(50, 70), metadata_partitions=3, number=(right + 1) % 3
    )
    assert judged(home)[1][0] == ("remote/misplaced-record", 0, None)


def test_the_furthest_copy_of_the_topic_counts(tmp_path):
    log = written()
    behind = log_dir(tmp_path / "1", log, local=(50, 70))
    log.delete(0)
    ahead = log_dir(tmp_path / "2", log, local=None)
    found = list(RemoteLineage([behind, ahead]))
    (one,) = [item for item in found if isinstance(item, PartitionLineage)]
    assert (one.metadata.path.parent, one.deleted, one.copied) == (ahead, 1, 5)
    assert one.local and one.local.path.parent == behind


def test_a_cut_log_of_the_topic_has_lost_its_end(tmp_path):
    home = log_dir(tmp_path, written(), local=(50, 70))
    (home / "replication-offset-checkpoint").write_text("0\n1\n__remote_log_metadata 0 14\n")
    (home / ".kafka_cleanshutdown").write_text("")
    assert judged(home) == (HEALTHY, [("remote/missing-records", 12, 13)])


def test_damaged_batches_of_the_topic_are_named(tmp_path):
    home = log_dir(tmp_path, written(), local=(50, 70))
    log = home / "__remote_log_metadata-0" / f"{0:020d}.log"
    data = bytearray(log.read_bytes())
    data[len(data) // 12 * 5 - 1] ^= 1
    log.write_bytes(data)
    codes = {code for code, *_ in judged(home)[1]}
    assert {"remote/missing-records", "remote/incomplete-history"} <= codes


@pytest.mark.parametrize("count", [1, 3, 50])
def test_every_partition_has_a_place(count):
    assert {
        remote_log.metadata_partition(segment_id(one), 7, count) for one in range(400)
    } == set(range(count))  # fmt: skip


def made(*segments):
    """Return a partition with copied segments (first offset, last offset, leader epochs)."""
    remote = RemotePartition("orders", ORDERS, 0)
    for number, (first, last, epochs) in enumerate(segments):
        segment = RemoteSegment(
            segment_id=segment_id(number), start_offset=first, end_offset=last, size=SIZE,
            max_timestamp_ms=0, leader_epochs=tuple(epochs), broker_id=1, state=COPIED,
            record_offset=number, started_ms=0,
        )  # fmt: skip
        remote.segments[segment.segment_id] = segment
        remote.timeline.append((COPIED, segment))
    return remote


def test_a_later_copy_that_reaches_less_far_hides_offsets():
    remote = made((0, 100, [(0, 0)]), (50, 60, [(0, 50)]))
    found = [(one.first, one.last) for one in coverage.index(remote)[0]]
    assert found == [(0, 49), (50, 60)]
    assert coverage.gaps(coverage.index(remote)[0], 0, 101) == [range(61, 101)]


def test_a_later_copy_that_reaches_further_takes_the_place_of_others():
    remote = made((10, 90, [(0, 10)]), (5, 100, [(0, 5)]), (101, 200, [(0, 101)]))
    found = coverage.index(remote)[0]
    assert [(one.first, one.last) for one in found] == [(5, 100), (101, 200)]
    assert not remote.segments[segment_id(0)].is_referenced


LINEAGES = {
    # The leader epochs of the log, those of the segment, its last offset, and whether they fit.
    "the same": ([(0, 0), (2, 20)], [(0, 10), (2, 20)], 29, True),
    "an epoch that the log does not have": ([(0, 0), (2, 20)], [(0, 10), (1, 15)], 19, False),
    "an epoch that begins elsewhere": ([(0, 0), (2, 20)], [(0, 10), (2, 21)], 29, False),
    "beyond the end of its epoch": ([(0, 0), (2, 20)], [(0, 10)], 20, False),
    "up to the end of its epoch": ([(0, 0), (2, 20)], [(0, 10)], 19, True),
    "epochs without a record": ([(0, 0), (1, 20), (2, 20)], [(0, 10), (2, 20)], 29, True),
    "before the first epoch": ([(3, 50)], [(0, 0)], 9, False),
    "across the first epoch": ([(2, 25), (3, 40)], [(0, 10), (2, 20)], 29, True),
    "beyond the log end": ([(0, 0)], [(0, 90)], 100, False),
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAGES)
def test_leader_epochs_of_a_segment_fit_those_of_the_log(name):
    log, own, last, fits = LINEAGES[name]
    (segment,) = made((own[0][1], last, own)).segments.values()
    assert coverage.is_in_lineage(segment, log, 100) is fits


@pytest.mark.parametrize("rows", ["0\n1\n0 50\n", None], ids=["moved", "gone"])
def test_leader_epochs_of_local_batches_suffice_if_all_remote_segments_are_deleted(tmp_path, rows):
    """The row of the log start is older than the deletion."""
    log = written()
    log.delete(*range(6))
    home = log_dir(tmp_path / "data", log, local=(50, 70))
    file = home / "orders-0" / "leader-epoch-checkpoint"
    file.unlink()
    if rows:
        file.write_text(rows)
    objects = tmp_path / "objects" / f"orders-0-{ORDERS}"
    objects.mkdir(parents=True)
    (objects / f"{0:020d}-{segment_id(0)}.log").touch()
    run = RestoreRun(tmp_path / "objects", [home], tmp_path / "back")
    found = [one for one in run if isinstance(one, MendedPartition)]
    assert [one.leader_epochs for one in found] == ([] if rows else [((0, 50),)])
    assert run.summary.complete
