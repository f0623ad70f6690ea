"""A change keeps other names of a file, holes, access lists, attributes and times."""

import os
import shutil
import stat
import struct
from pathlib import Path

import pytest
from changes import all_kinds, allocated, count, everything, killed, one, prepare

from logtool.actions import FileChange
from logtool.apply import Journal, disk, locked
from logtool.errors import UnwritableError

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
LOG = "small-segments-0/00000000000000000042.log"
INDEX = "small-segments-0/00000000000000000042.index"
MIB = 1 << 20


# Other names of a file: a snapshot made with `cp -al` shares every file with the log dir.


class Snapshot:
    """A second name for every file of a directory, and what these files were then."""

    def __init__(self, source, target):
        shutil.copytree(source, target, copy_function=os.link)
        self._path, self._before = target, {}
        self._before = self._rows()

    def _rows(self):
        rows = {}
        for path in sorted(self._path.rglob("*")):
            if path.is_file():
                status = path.stat()
                rows[path] = (status.st_mode, status.st_uid, status.st_mtime_ns, path.read_bytes())
        return rows

    def assert_kept(self):
        assert self._rows() == self._before


def test_a_snapshot_by_hard_links_keeps_every_byte_whatever_is_changed_and_undone(place, tmp_path):
    before = Snapshot(place.log_dir, tmp_path / "before")
    place.do()
    place.assert_finished()
    before.assert_kept()
    between = Snapshot(place.log_dir, tmp_path / "between")
    of_undo = Snapshot(place.undo_dir, tmp_path / "of-undo")
    place.undo()
    place.assert_untouched()
    for snapshot in (before, between, of_undo):
        snapshot.assert_kept()
    shutil.rmtree(place.undo_dir)
    place.do()
    place.undo()
    for snapshot in (before, between, of_undo):
        snapshot.assert_kept()


@pytest.mark.parametrize("number", range(5))
def test_each_kind_of_change_leaves_a_snapshot_alone(place, tmp_path, number):
    kind = list(FileChange)[number]
    (part,) = (
        changes
        for changes in [[c for part in all_kinds(place.log_dir) for c in part if c.kind is kind]]
    )
    snapshot = Snapshot(place.log_dir, tmp_path / "snapshot")
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    first = next(c for c in part if not c.target or not c.target.exists())
    journal.stage([first])
    journal.commit()
    journal.carry_out()
    assert everything(place.log_dir) != place.before
    snapshot.assert_kept()
    journal.undo()
    place.assert_untouched()
    snapshot.assert_kept()


def test_a_snapshot_that_is_made_between_the_plan_and_the_change_is_kept(place, tmp_path):
    journal = prepare(place.log_dir, place.undo_dir)
    journal.commit()
    snapshot = Snapshot(place.log_dir, tmp_path / "snapshot")
    journal.carry_out()
    place.assert_finished()
    snapshot.assert_kept()


@pytest.mark.parametrize("job", ["do", "undo"])
def test_a_kill_at_any_moment_leaves_a_snapshot_alone(place, tmp_path, job):
    total = count(place.do)
    if job == "undo":
        total = count(place.undo)
    for number in range(1, total + 1, 9):
        place.reset()
        shutil.rmtree(tmp_path / "snapshot", ignore_errors=True)
        if job == "undo":
            place.do()
        snapshot = Snapshot(place.log_dir, tmp_path / "snapshot")
        assert killed(number, getattr(place, job)), number
        snapshot.assert_kept()
        if place.is_committed:
            place.undo()
        place.assert_untouched()
        snapshot.assert_kept()


def test_a_cut_of_a_shared_file_needs_no_more_room_than_what_stays_and_what_goes(place, tmp_path):
    path = place.log_dir / LOG
    Snapshot(place.log_dir, tmp_path / "snapshot")
    size, before = path.stat().st_size, path.stat()
    one(place, FileChange.TRUNCATE, LOG, size=size - 10)
    after = path.stat()
    assert (place.undo_dir / "000001.old").stat().st_size == 10
    assert (after.st_nlink, after.st_size) == (1, size - 10)
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode, before.st_uid, before.st_gid,
    )  # fmt: skip


# Holes.


@pytest.mark.parametrize("shared", [False, True])
def test_the_holes_of_a_tail_stay_holes_in_cut_save_and_undo(place, tmp_path, shared):
    path = place.log_dir / LOG
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(64 * MIB)
        file.seek(40 * MIB + 77)
        file.write(b"an island")
    place.before = everything(place.log_dir)
    most = allocated(path) + 64 * 1024
    assert most < MIB, "the file system keeps holes"
    if shared:
        Snapshot(place.log_dir, tmp_path / "snapshot")
    journal = one(place, FileChange.TRUNCATE, LOG, size=size // 2)
    assert allocated(place.undo_dir / "000001.old") <= most
    assert path.stat().st_size == size // 2
    journal.undo()
    assert allocated(path) <= most
    place.assert_untouched()


def test_the_holes_of_what_stays_are_kept_when_a_copy_is_cut(place, tmp_path):
    path = place.log_dir / LOG
    with path.open("r+b") as file:
        file.truncate(32 * MIB)
    Snapshot(place.log_dir, tmp_path / "snapshot")
    one(place, FileChange.TRUNCATE, LOG, size=30 * MIB)
    assert path.stat().st_size == 30 * MIB
    assert allocated(path) < MIB


def test_a_half_undone_sparse_tail_is_gone_on_with(place):
    path = place.log_dir / LOG
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(3 * MIB)
        file.seek(2 * MIB)
        file.write(b"an island")
    place.before = everything(place.log_dir)
    one(place, FileChange.TRUNCATE, LOG, size=size // 2)
    for number in range(1, 6):
        killed(number, Journal.open(place.undo_dir).undo)
    Journal.open(place.undo_dir).undo()
    place.assert_untouched()


# Access control lists and extended attributes.

ACL = struct.pack(
    "<I" + "HHI" * 5, 2,
    1, 6, 0xFFFFFFFF,  # the owner: read, write
    2, 6, 4321,  # user 4321: read, write
    4, 4, 0xFFFFFFFF,  # the group: read
    16, 6, 0xFFFFFFFF,  # the mask
    32, 0, 0xFFFFFFFF,  # others
)  # fmt: skip
"""The bytes that ``setfacl -m u:4321:rw`` writes."""


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


@pytest.fixture
def dressed(place):
    """Let an index have an access list and an attribute of its own."""
    for name in (INDEX, LOG):
        path = place.log_dir / name
        os.setxattr(path, "system.posix_acl_access", ACL)
        os.setxattr(path, "user.backup", b"weekly")
    place.before = everything(place.log_dir)
    return place


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize(
    ("kind", "name", "more"),
    [
        (FileChange.REPLACE, INDEX, {"content": b"new"}),
        (FileChange.REMOVE, INDEX, {}),
        (FileChange.TRUNCATE, LOG, {"size": 100}),
    ],
)
def test_access_lists_and_attributes_outlive_a_change_and_its_undoing(
    dressed, monkeypatch, tmp_path, kind, name, more, linked
):
    path = dressed.log_dir / name
    before = attributes(path)
    assert set(before) >= {"system.posix_acl_access", "user.backup"}
    if not linked:
        monkeypatch.setattr(disk, "link", lambda *_: False)
        Snapshot(dressed.log_dir, tmp_path / "snapshot")
    journal = one(dressed, kind, name, **more)
    if kind is not FileChange.REMOVE:
        assert attributes(path) == before
    journal.undo()
    assert attributes(path) == before
    dressed.assert_untouched()


def test_a_directory_s_default_list_is_not_given_to_a_file_that_had_none(place):
    os.setxattr(place.log_dir / "small-segments-0", "system.posix_acl_default", ACL)
    place.before = everything(place.log_dir)
    journal = one(place, FileChange.REPLACE, INDEX, content=b"new")
    assert attributes(place.log_dir / INDEX) == {}
    journal.undo()
    place.assert_untouched()


def test_an_attribute_that_cannot_be_kept_stops_it_before_anything_is_changed(dressed, monkeypatch):
    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(disk, "link", lambda *_: False)
    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(UnwritableError, match=r"extended attribute"):
        one(dressed, FileChange.REPLACE, INDEX, content=b"new")
    dressed.assert_untouched()


# The lock, and the times of directories.


def test_a_lock_that_a_kill_left_goes_with_the_next_command_and_so_does_its_trace(place):
    (place.log_dir / ".lock").unlink(missing_ok=True)
    os.utime(place.log_dir, ns=(1, 1_700_000_000_123_456_789))
    before = everything(place.log_dir)

    def hold():
        with locked(place.log_dir):
            pass

    last = count(hold)
    for number in range(1, last):
        assert killed(number, hold)
        hold()
        assert everything(place.log_dir) == before, number
    # Between the last two calls only the time differs.
    assert killed(last, hold)
    assert not (place.log_dir / ".lock").exists()


def test_what_somebody_changed_behind_a_lock_that_a_kill_left_keeps_its_time(place):
    (place.log_dir / ".lock").unlink(missing_ok=True)

    def hold():
        with locked(place.log_dir):
            os._exit(9)

    child = os.fork()
    if not child:
        hold()
    os.waitpid(child, 0)
    assert (place.log_dir / ".lock").exists()
    os.utime(place.log_dir, ns=(1, 1_800_000_000_000_000_000))
    with locked(place.log_dir):
        pass
    assert not (place.log_dir / ".lock").exists()
    assert place.log_dir.stat().st_mtime_ns == 1_800_000_000_000_000_000


def test_a_lock_of_a_broker_stays(place):
    path = place.log_dir / ".lock"
    path.touch()
    with locked(place.log_dir):
        pass
    assert path.exists()


def test_the_owner_of_the_log_dir_can_open_a_lock_that_a_kill_left(place):
    (place.log_dir / ".lock").unlink(missing_ok=True)
    with locked(place.log_dir):
        status = (place.log_dir / ".lock").stat()
    home = place.log_dir.stat()
    assert (status.st_uid, status.st_gid) == (home.st_uid, home.st_gid)
    assert stat.S_IMODE(status.st_mode) == stat.S_IMODE(home.st_mode) & 0o666
    assert Path(place.log_dir).is_dir()
