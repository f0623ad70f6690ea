"""Changes where the undo directory or the log dir alone is on a disk that is full.

Where nothing may be mounted, errors that are made up stand for it; see `crash.mounts`.
"""

import errno
import os
import shutil
import subprocess
import sys

import pytest
from changes import carry_out
from crash import mounts

from logtool.actions import Change, FileChange
from logtool.apply import Journal, find_unfinished
from logtool.errors import UnwritableError

FULL = os.strerror(errno.ENOSPC)


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 1 MiB."""
    with mounts.small_disk(tmp_path / "small", 1 << 20) as path:
        yield path


def test_a_full_disk_for_the_undo_directory_changes_nothing(place, small_disk):
    place.reset()
    with mounts.full(small_disk, 40_000, call=5), pytest.raises(UnwritableError, match=FULL):
        carry_out(place.log_dir, small_disk / "undo")
    place.assert_untouched()
    assert not (small_disk / "undo").exists()


def test_a_full_disk_of_the_log_dir_is_finished_when_there_is_room(place, small_disk):
    log_dir = small_disk / "data"
    log_dir.mkdir()
    (log_dir / "meta.properties").write_bytes(b"version=1\n")
    journal = Journal.begin(place.undo_dir, log_dir, "logtool test")
    content = os.urandom(500_000)
    journal.stage([Change(FileChange.CREATE, log_dir / "large", None, content)])
    journal.commit()
    with (
        mounts.full(small_disk, 300_000, call=1),
        pytest.raises(UnwritableError, match=f": {FULL}; .*{place.undo_dir}"),
    ):
        journal.carry_out()
    assert find_unfinished(log_dir) == []
    Journal.open(place.undo_dir).finish()
    assert (log_dir / "large").read_bytes() == content
    assert sorted(path.name for path in log_dir.iterdir()) == ["large", "meta.properties"]
    Journal.open(place.undo_dir).undo()
    assert [path.name for path in log_dir.iterdir()] == ["meta.properties"]


def _recover(*options):
    command = [sys.executable, "-m", "logtool", "recover", "--apply", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def killed(copy_of):
    """Return a log dir of which recovery rebuilds every offset index."""
    home = copy_of("4.3.1/killed")
    for index in home.glob("*/*.index"):
        index.unlink()
    return home


@pytest.mark.skipif(not mounts.may_mount(), reason="no file system may be mounted here")
def test_a_full_disk_of_the_log_dir_leads_to_another_undo_directory(killed, tmp_path):
    with mounts.small_disk(tmp_path / "disk", 24 << 20) as disk:
        home = shutil.copytree(killed, disk / "data")
        with mounts.full(disk, 8192, call=1):
            status, errors = _recover(home)
            assert status == 4
            assert FULL in errors
            assert "--undo-dir DIR" in errors
            assert "incomplete, 1 file " in errors.splitlines()[-1]
            assert "could not be read" not in errors
        assert _recover("--undo-dir", tmp_path / "undo", home)[0] == 0


@pytest.mark.skipif(not mounts.may_mount(), reason="no file system may be mounted here")
def test_a_full_log_dir_is_not_said_to_be_unchanged(killed, tmp_path):
    with mounts.small_disk(tmp_path / "disk", 24 << 20) as disk:
        home = shutil.copytree(killed, disk / "data")
        undo = tmp_path / "undo"
        with mounts.full(disk, 8192, call=1):
            status, errors = _recover("--undo-dir", undo, home)
        assert status == 4
        assert f"logtool undo --apply {undo}" in errors
        assert errors.splitlines()[-1].startswith("incomplete, 1 file ")
        assert "nothing was changed" not in errors
        assert _recover("--undo-dir", undo, home)[0] == 0
