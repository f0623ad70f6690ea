"""The live logs that retention and the log cleaner judge, while a broker changes them."""

import shutil

import pytest
from verification import small_log_dir

from logtool.errors import UnreadableError
from logtool.retention.logs import LiveLog, LiveLogs

NAME = "compacted.keys-0"


@pytest.fixture
def log_dir(copy_of, tmp_path):
    return small_log_dir(copy_of("4.3.1/killed"), tmp_path / "small", NAME)


def live(log_dir):
    logs = LiveLogs([log_dir], {})
    assert list(logs.open()) == []
    (one,) = (found for found in logs.each() if isinstance(found, LiveLog))
    return one


def test_a_partition_that_is_moved_away_keeps_the_segments_that_were_listed(log_dir):
    one = live(log_dir)
    shutil.move(log_dir / NAME, log_dir / f"{NAME}-gone")
    assert [segment.base_offset for segment in one.listed.segments] == one.log.columns.base_offset


def test_a_log_at_rest_that_is_listed_late_must_have_the_same_segments(scenario, tmp_path):
    log_dir = small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", NAME)
    one = live(log_dir)
    assert one.partition is None
    for file in (log_dir / NAME).glob(f"{min(one.log.columns.base_offset):020d}.*"):
        file.unlink()
    with pytest.raises(UnreadableError):
        _ = one.listed
