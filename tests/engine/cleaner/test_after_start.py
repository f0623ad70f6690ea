"""The sums of what retention deletes, and what stays dirty, soon after a start."""

import struct

import pytest
from verification import batches, logs, small_log_dir

from logtool.cleaner.after_start import after_start, given_up
from logtool.formats import producer_snapshot
from logtool.log import opening
from logtool.log.selection import Selection
from logtool.metadata import image as metadata_image
from logtool.metadata.image import DIRECTORY
from logtool.node.identity import identify
from logtool.node.node import Node
from logtool.running.run import Run

KEYS, TX, PLAIN = "compacted.keys-0", "compacted-tx-0", "codec-gzip-0"
DAY_MS = 86_400_000
LATE_MS = 1_900_000_000_000
"""A time at which every record is older than a week."""


@pytest.fixture
def small(scenario, tmp_path):
    """Return a log dir with two compacted partitions, one that is not, and the metadata log."""
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", KEYS, TX, PLAIN, DIRECTORY)


def found(log_dir, start_ms=LATE_MS, static=None):
    node = Node([identify(opening.open_log_dir(log_dir))], None, static or {})
    return after_start([log_dir], node, start_ms, static or {})


def test_the_first_round_deletes_what_is_older_than_a_week(small):
    files = logs(small / PLAIN)
    one = found(small, static={"log.initial.task.delay.ms": "5000"})
    assert (one.delay_ms, one.first.oldest, one.first.partitions) == (5000, PLAIN, 1)
    assert one.first.segments == len(files)
    assert one.first.bytes == sum(log.stat().st_size for log in files)
    assert one.kept == ()


def test_nothing_is_deleted_that_is_younger(small):
    assert found(small, start_ms=1).first.segments == 0
    assert found(small, static={"log.retention.ms": "-1"}).first.segments == 0


def test_segments_that_go_by_local_retention_are_counted(small, scenario):
    assert found(small).first.copied == 0
    tiered = scenario("tiered/4.3.1") / "data"
    before, after = found(tiered), found(tiered, static={"log.local.retention.ms": "1000"})
    # timed-0 has a limit of the whole log, and plain-0 is not copied.
    assert (before.first.segments, before.first.copied) == (13, 0)
    closed = {name: len(list((tiered / name).glob("*.log"))) - 1
              for name in ("kept-0", "aborted-0", "timed-0")}  # fmt: skip
    assert after.first.copied == sum(closed.values())


def test_an_open_transaction_keeps_a_log_dirty(small):
    (small / "cleaner-offset-checkpoint").unlink()
    path = max((small / TX).glob("*.snapshot"))
    entries = producer_snapshot.parse(path.read_bytes()).entries.copy()
    entries["current_txn_first_offset"][0] = 5
    path.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    (kept,) = found(small).kept
    assert (kept.path.name, kept.transaction_first_offset) == (TX, 5)
    assert kept.producer_id == int(entries["producer_id"][0])


def test_the_metadata_log_of_the_node_is_not_read_again(small, monkeypatch):
    reads = []
    read = metadata_image.read
    monkeypatch.setattr(
        metadata_image, "read", lambda path, *more: reads.append(path) or read(path, *more)
    )
    assert found(small)
    assert reads == [small / DIRECTORY]


def test_without_a_metadata_log_there_is_no_answer(scenario, tmp_path):
    assert found(small_log_dir(scenario("4.3.1/clean"), tmp_path / "bare", PLAIN)) is None


def test_a_timestamp_more_than_a_day_ahead_keeps_a_log_from_retention(small):
    largest = max(int(batches(log).max_timestamp.max()) for log in logs(small / PLAIN))
    (one,) = found(small, start_ms=largest - 2 * DAY_MS).future_stamped
    assert (one.path.name, one.blocked_at) == (PLAIN, 0)
    assert one.next_ms > largest
    assert found(small, start_ms=largest - DAY_MS // 2).future_stamped == ()
    assert found(small).future_stamped == ()


def test_a_timestamp_in_seconds_lets_a_log_go_early(small):
    largest = max(int(batches(log).max_timestamp.max()) for log in logs(small / PLAIN))
    for log in logs(small / PLAIN):
        log.with_suffix(".timeindex").write_bytes(struct.pack(">qi", largest // 1000, 0))
    (one,) = found(small, start_ms=largest + DAY_MS).early
    assert (one.path.name, one.early.segments) == (PLAIN, len(logs(small / PLAIN)))
    assert one.early.newest_ms == largest // 1000 * 1000
    assert found(small, start_ms=largest + 8 * DAY_MS).early == ()


def given_up_in(log_dir, *names):
    keys = frozenset((name.rpartition("-")[0], 0) for name in names)
    node = Node([identify(opening.open_log_dir(log_dir))], None, {})
    return list(given_up([log_dir], node, LATE_MS, {}, Selection(keys=keys), Run()))


def test_the_cleaner_gives_up_a_compacted_log_with_damage(small):
    (small / "cleaner-offset-checkpoint").unlink()
    assert given_up_in(small, KEYS, TX) == []
    log = logs(small / KEYS)[0]
    with log.open("r+b") as file:
        file.seek(8)
        file.write(bytes(4))
    (one,) = given_up_in(small, KEYS, TX)
    assert (one.fault_path, one.fault_position) == (log, 0)
    assert given_up_in(small, TX) == []
