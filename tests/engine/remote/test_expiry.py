"""The remote segments that retention deletes, by records and by the settings of a topic."""

import pytest
from remote_events import FIRST_MS, ORDERS, SIZE, EventLog, log_dir

from logtool.formats.messages.remote_log import SegmentState
from logtool.log import opening
from logtool.metadata import image
from logtool.remote.expiry import RemoteRetention, RemoteRetentionRun
from logtool.retention.settings import RetentionSettings
from logtool.running.run import Run

HOUR = 3_600_000
NO_LIMIT = {"retention.ms": "-1", "retention.bytes": "-1"}


def expiry(home, settings, now=FIRST_MS, *, wanted=("orders", 0)):
    """Return the remote part of orders-0, and how many partitions have none that is known."""
    known = RetentionSettings(image.read(home), changed={**NO_LIMIT, **settings})
    job = RemoteRetentionRun([opening.open_log_dir(home)], known, now, {wanted}, Run())
    found = [one for one in job if isinstance(one, RemoteRetention)]
    return (found[0] if found else None), job.unknown


def due(found):
    return [(one.start_offset, str(rule) if rule else None) for one, rule in found.due]


def six(home, local=(50, 70), **more):
    """Write six copied segments, an hour apart, of which the newest is local, too."""
    log = EventLog()
    for number in range(6):
        log.copy(number, max_ms=FIRST_MS + number * HOUR)
    return log, log_dir(home, log, local=local, **more)


def test_without_a_limit_nothing_is_deleted(tmp_path):
    _, home = six(tmp_path)
    found, unknown = expiry(home, {}, FIRST_MS + 100 * HOUR)
    assert (due(found), found.next_ms, found.log_start_offset, unknown) == ([], None, 0, 0)
    assert found.remote_bytes == 6 * SIZE


def test_the_oldest_segments_go_by_their_age(tmp_path):
    _, home = six(tmp_path)
    found, _ = expiry(home, {"retention.ms": str(HOUR)}, FIRST_MS + 3 * HOUR)
    assert due(found) == [(0, "time"), (10, "time")]
    assert (found.log_start_offset, found.next_ms) == (20, FIRST_MS + 3 * HOUR)


@pytest.mark.parametrize(("over", "deleted"), [(-1, 0), (SIZE - 1, 0), (SIZE, 1), (2 * SIZE, 2)])
def test_the_size_counts_both_parts_and_only_whole_segments_go(tmp_path, over, deleted):
    _, home = six(tmp_path)
    total = expiry(home, {})[0].total_bytes
    newest = (home / "orders-0" / f"{60:020d}.log").stat().st_size
    assert total == 6 * SIZE + newest
    found, _ = expiry(home, {"retention.bytes": str(total - over)})
    assert due(found) == [(10 * at, "size") for at in range(deleted)]


def test_local_segments_that_are_counted_twice_put_remote_ones_at_risk(tmp_path):
    _, home = six(tmp_path, local=(0, 70))
    total = expiry(home, {})[0].total_bytes
    found, _ = expiry(home, {"retention.bytes": str(total)})
    copied = sum(path.stat().st_size for path in (home / "orders-0").glob("*.log"))
    newest = (home / "orders-0" / f"{60:020d}.log").stat().st_size
    assert (due(found), found.at_risk_segments) == ([], (copied - newest) // SIZE)


def test_segments_below_the_log_start_and_begun_deletions_go_on(tmp_path):
    log = EventLog()
    log.copy(0, 1, 2)
    log.update(1, SegmentState.DELETE_STARTED)
    home = log_dir(tmp_path, log, local=(30, 40), log_start=10, epochs=[(0, 10)])
    found, _ = expiry(home, {})
    assert due(found) == [(0, "log-start"), (10, None)]
    assert found.log_start_offset == 10


def test_segments_of_another_lineage_neither_count_nor_go(tmp_path):
    log = EventLog()
    log.copy(0, 1)
    log.copy(7, first=10, last=19, epochs=[(5, 10)])
    home = log_dir(tmp_path, log, local=(20, 30))
    found, _ = expiry(home, {"retention.ms": "0"}, FIRST_MS + HOUR)
    assert (due(found), found.remote_bytes) == ([(0, "time"), (10, "time")], 2 * SIZE)


def test_a_partition_without_records_is_counted(tmp_path):
    _, home = six(tmp_path)
    assert expiry(home, {}, wanted=("payments", 0)) == (None, 1)
    assert ORDERS in image.read(home).topics.values()
