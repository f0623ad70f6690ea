"""Changes where the undo directory or the log dir alone is on a disk that is full.

Where nothing may be mounted, errors that are made up stand for it; see `crash.mounts`.
"""

import os

import pytest
from changes import carry_out
from crash import mounts

from logtool.actions import Change, Kind
from logtool.apply import Journal, find_unfinished
from logtool.errors import UnwritableError


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    with mounts.small_disk(tmp_path / "small", 1 << 20) as path:
        yield path


def test_a_full_disk_for_the_undo_directory_changes_nothing(place, small_disk):
    place.reset()
    with (
        mounts.full(small_disk, 40_000, call=5),
        pytest.raises(UnwritableError, match="No space left on device; nothing in"),
    ):
        carry_out(place.log_dir, small_disk / "undo")
    place.assert_untouched()
    assert not (small_disk / "undo").exists()


def test_a_full_disk_of_the_log_dir_is_finished_when_there_is_room(place, small_disk):
    log_dir = small_disk / "data"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_bytes(b"version=1\n")
    journal = Journal.begin(place.undo_dir, log_dir, "logtool test")
    content = os.urandom(500_000)
    journal.stage([Change(Kind.CREATE, log_dir / "large", None, content)])
    journal.commit()
    with (
        mounts.full(small_disk, 300_000, call=1),
        pytest.raises(UnwritableError, match="No space left on device; the change is not"),
    ):
        journal.carry_out()
    assert find_unfinished(log_dir) == []
    Journal.open(place.undo_dir).finish()
    assert (log_dir / "large").read_bytes() == content
    assert sorted(path.name for path in log_dir.iterdir()) == ["large", "meta.properties"]
    Journal.open(place.undo_dir).undo()
    assert [path.name for path in log_dir.iterdir()] == ["meta.properties"]
