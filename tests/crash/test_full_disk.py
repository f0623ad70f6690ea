"""Changes on a disk that is really full; collected only where a file system may be mounted.

`test_disk_errors` does the same with errors that are made up, for any user.
"""

import os
import subprocess

import pytest
from changes import carry_out

from logtool.apply import Journal, find_unfinished
from logtool.errors import UnwritableError
from logtool.plan import Change, Kind


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(path)], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_for_the_undo_directory_changes_nothing(place, small_disk):
    place.reset()
    (small_disk / "filler").write_bytes(bytes((1 << 20) - 40_000))
    with pytest.raises(UnwritableError, match="No space left on device; nothing in"):
        carry_out(place.log_dir, small_disk / "undo")
    place.assert_untouched()
    assert not (small_disk / "undo").exists()


def test_a_full_disk_of_the_log_dir_is_finished_when_there_is_room(place, small_disk):
    log_dir = small_disk / "data"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_bytes(b"version=1\n")
    filler = small_disk / "filler"
    filler.write_bytes(bytes(700_000))
    journal = Journal.begin(place.undo_dir, log_dir, "logtool test")
    content = os.urandom(500_000)
    journal.stage([Change(Kind.CREATE, log_dir / "large", None, content)])
    journal.commit()
    with pytest.raises(UnwritableError, match="No space left on device; the change is not"):
        journal.carry_out()
    filler.unlink()
    assert find_unfinished(log_dir) == []
    Journal.open(place.undo_dir).finish()
    assert (log_dir / "large").read_bytes() == content
    assert sorted(path.name for path in log_dir.iterdir()) == ["large", "meta.properties"]
    Journal.open(place.undo_dir).undo()
    assert [path.name for path in log_dir.iterdir()] == ["meta.properties"]
