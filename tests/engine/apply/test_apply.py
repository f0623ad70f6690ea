import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from changes import (
    all_kinds,
    allocated,
    carry_out,
    change,
    everything,
    failing,
    one,
    prepare,
    stamp,
)
from jsonschema import Draft202012Validator
from processes import locked_by_a_process

from logtool.actions import Change, FileChange, Stamp
from logtool.apply import Journal, PlanState, default_undo_dir, disk, find_unfinished, locked
from logtool.apply.dirfd import BLOCK
from logtool.apply.steps import merge
from logtool.disk import in_use
from logtool.errors import NothingMatchedError, RefusedError, UnwritableError
from logtool.formats.names import Reception, parse_partition_file, parse_root_file
from logtool.log import inputs
from logtool.schemas.printed import ACTION

LOG = Path("orders-0") / f"{0:020d}.log"


def test_a_plan_of_every_kind_is_carried_out(place):
    place.do()
    place.assert_finished()


def test_undo_brings_back_every_byte_name_mode_and_time(place):
    place.do()
    place.undo()
    place.assert_untouched()
    assert Journal.open(place.undo_dir).state is PlanState.UNDONE


def test_nothing_is_touched_before_carry_out(place):
    journal = prepare(place.log_dir, place.undo_dir)
    place.assert_untouched()
    journal.commit()
    place.assert_untouched()


def test_a_journal_says_how_far_it_has_come(place):
    journal = prepare(place.log_dir, place.undo_dir)
    assert [Journal.open(place.undo_dir).state, journal.state] == [PlanState.PREPARED] * 2
    journal.commit()
    assert [Journal.open(place.undo_dir).state, journal.state] == [PlanState.COMMITTED] * 2
    journal.carry_out()
    again = Journal.open(place.undo_dir)
    assert again.state is journal.state is PlanState.DONE
    assert (again.log_dir, again.command) == (place.log_dir, "logtool test")
    assert again.steps == journal.steps


def test_what_is_done_or_undone_may_be_asked_for_again(place):
    place.do()
    done = everything(place.log_dir)
    place.finish()
    assert everything(place.log_dir) == done
    place.undo()
    place.undo()
    place.assert_untouched()
    with pytest.raises(RefusedError, match="finish"):
        place.finish()


def test_what_was_committed_and_not_carried_out_can_be_undone(place):
    prepare(place.log_dir, place.undo_dir).commit()
    assert Journal.open(place.undo_dir).undo_actions() == []
    place.undo()
    place.assert_untouched()


def test_what_was_not_committed_can_be_discarded(place):
    prepare(place.log_dir, place.undo_dir).discard()
    assert not place.undo_dir.exists()
    journal = Journal.begin(place.undo_dir, place.log_dir, "x")
    journal.commit()
    journal.discard()
    assert place.undo_dir.exists()


def test_the_actions_are_reported_as_they_happen(place):
    reported = []
    journal = prepare(place.log_dir, place.undo_dir)
    journal.commit()
    journal.carry_out(reported.append)
    assert [a.action for a in reported] == [
        "remove", "remove", "remove", "remove", "truncate", "replace", "create", "remove",
        "rename", "rename", "replace", "rename", "truncate", "replace", "create",
    ]  # fmt: skip
    first = reported[0]
    assert (first.topic, first.partition, first.segment) == ("small-segments", 0, 77)
    assert (reported[-1].topic, reported[-1].segment) == (None, None)
    promised = journal.undo_actions()
    back = []
    journal.undo(back.append)
    assert list(map(ACTION.row, back)) == list(map(ACTION.row, promised))
    assert len(back) == len(reported)


def test_a_cut_file_stays_the_same_file_and_only_the_tail_is_saved(place):
    path = place.log_dir / "small-segments-0" / f"{42:020d}.log"
    before = path.stat()
    one(place, FileChange.TRUNCATE, size=before.st_size - 10)
    assert path.stat().st_ino == before.st_ino
    assert (place.undo_dir / "000001.old").stat().st_size == 10


def test_a_removed_file_costs_no_space_on_the_same_file_system(place):
    before = (place.log_dir / "small-segments-0" / f"{42:020d}.log").stat()
    one(place, FileChange.REMOVE)
    assert (place.undo_dir / "000001.old").stat().st_ino == before.st_ino


def test_an_index_of_zeros_stays_as_small_as_it_was(place, monkeypatch):
    monkeypatch.setattr(disk, "link", lambda *_: False)
    path = place.log_dir / "small-segments-0" / f"{42:020d}.index"
    with path.open("r+b") as file:
        file.truncate(10 << 20)
    place.before = everything(place.log_dir)
    journal = one(
        place, FileChange.REPLACE, path.relative_to(place.log_dir), content=bytes(10 << 20)
    )
    for file in (path, place.undo_dir / "000001.old", place.undo_dir / "000001.new"):
        assert file.stat().st_size == 10 << 20
        assert allocated(file) <= 2 * BLOCK
    journal.undo()
    place.assert_untouched()
    assert allocated(path) <= 2 * BLOCK


def test_mode_and_owner_stay_and_a_new_file_is_its_directory_s(place):
    home = place.log_dir / "small-segments-0"
    old = home / f"{42:020d}.index"
    old.chmod(0o604)
    home.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(old, 4321, 4322)
        os.chown(home, 1234, 1235)
    before = old.stat()
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    new = home / "new"
    journal.stage(
        [change(FileChange.REPLACE, old, content=b"x"), change(FileChange.CREATE, new, content=b"")]
    )
    journal.commit()
    journal.carry_out()
    for path, mode, like in ((old, 0o604, before), (new, 0o640, home.stat())):
        status = path.stat()
        assert stat.S_IMODE(status.st_mode) == mode
        assert (status.st_uid, status.st_gid) == (like.st_uid, like.st_gid)
    journal.undo()
    assert old.stat().st_uid == before.st_uid
    assert not new.exists()


def another_file_system(path):
    """Return a directory on another file system than `path`, or None."""
    for other in map(Path, ("/dev/shm", "/run/shm", "/var/tmp", str(Path.home()))):
        usable = other.is_dir() and os.access(other, os.W_OK)
        if usable and other.stat().st_dev != path.stat().st_dev:
            return other
    return None


def test_an_undo_directory_on_another_file_system_works_by_copying(place):
    other = another_file_system(place.log_dir)
    if other is None:
        pytest.fail("needs a second file system, such as /dev/shm")
    home = other / f"logtool-test-{os.getpid()}"
    home.mkdir()
    try:
        carry_out(place.log_dir, home / "undo")
        place.assert_finished()
        assert (home / "undo" / "000001.old").stat().st_nlink == 1
        Journal.open(home / "undo").undo()
        place.assert_untouched()
    finally:
        shutil.rmtree(home)


def test_a_name_that_is_no_utf_8_comes_through(place):
    name = os.fsdecode(b"small-segments-0/\xff\n.index")
    (place.log_dir / name).write_bytes(b"old")
    place.before = everything(place.log_dir)
    one(place, FileChange.REMOVE, name)
    place.undo()
    place.assert_untouched()


def test_a_log_dir_may_be_named_through_a_link(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place.log_dir)
    carry_out(link, place.undo_dir)
    place.assert_finished()
    place.undo()
    place.assert_untouched()


def test_a_file_under_way_is_nothing_to_a_broker():
    from logtool.apply.stepping import SUFFIX

    for name in (f"{0:020d}.log", f"{0:020d}.index", "leader-epoch-checkpoint"):
        assert parse_partition_file(name + SUFFIX).reception is Reception.IGNORED
    for name in ("meta.properties", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        assert parse_root_file(name + SUFFIX).reception is Reception.IGNORED


# What is refused.


@pytest.mark.parametrize("part", range(3))
def test_a_stale_plan_is_refused_and_names_the_file(place, part):
    plan = all_kinds(place.log_dir)
    path = plan[part][0].path
    path.write_bytes(path.read_bytes() + b"x")
    place.before = everything(place.log_dir)
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    with pytest.raises(RefusedError, match=rf"{path}: .*out of date"):
        for changes in plan:
            journal.stage(changes)
    place.assert_untouched()
    assert not place.undo_dir.exists()


def test_a_file_that_is_gone_or_there_by_now_makes_a_plan_stale(place):
    new, gone = place.log_dir / "new", place.log_dir / "gone"
    create = Change(FileChange.CREATE, new, None, b"")
    remove = Change(FileChange.REMOVE, gone, Stamp(1, 1))
    rename = change(FileChange.RENAME, place.log_dir / "meta.properties", target=new)
    new.write_bytes(b"")
    for wrong, path in ((create, new), (remove, gone), (rename, new)):
        journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
        with pytest.raises(RefusedError, match=rf"{path}: .*out of date"):
            journal.stage([wrong])


def test_a_file_that_changes_between_stage_and_carry_out_is_refused(place):
    journal = prepare(place.log_dir, place.undo_dir)
    journal.commit()
    path = place.log_dir / "recovery-point-offset-checkpoint"
    path.write_bytes(b"somebody else")
    place.before = everything(place.log_dir)
    with pytest.raises(RefusedError, match=f"{path}: .*changed"):
        journal.carry_out()
    place.assert_untouched()


def somebody_elses(log_dir):
    """Return changes that a broker might make after the plan of `all_kinds`."""
    home, other = log_dir / "small-segments-0", log_dir / "codec-none-0"

    def append(path):
        path.write_bytes(path.read_bytes() + b"more")

    def same_size(path):
        path.write_bytes(bytes(path.stat().st_size))

    return [
        (home / f"{77:020d}.log", lambda path: path.write_bytes(b"a new one")),
        (home / f"{42:020d}.log", append),
        (home / f"{42:020d}.log", same_size),
        (home / f"{42:020d}.log", Path.unlink),
        (home / f"{42:020d}.index", append),
        (home / f"{42:020d}.index", lambda path: path.write_bytes(b"\1" * path.stat().st_size)),
        (home / f"{42:020d}.txnindex", append),
        (home / f"{0:020d}.timeindex", append),
        (other / f"{301:020d}.snapshot", same_size),
        (other / f"{0:020d}.log.swap", append),
        (other / f"{0:020d}.log", lambda path: path.write_bytes(b"a new one")),
        (log_dir / ".kafka_cleanshutdown", same_size),
    ]


@pytest.mark.parametrize("number", range(12))
def test_undo_refuses_before_it_touches_anything_when_a_file_was_changed(place, number):
    place.do()
    path, disturb = somebody_elses(place.log_dir)[number]
    disturb(path)
    before = everything(place.log_dir)
    with pytest.raises(RefusedError, match=str(path.parent)):
        Journal.open(place.undo_dir).undo_actions()
    with pytest.raises(RefusedError, match=str(path.parent)):
        place.undo()
    assert everything(place.log_dir) == before
    assert Journal.open(place.undo_dir).state is PlanState.DONE


def test_undo_refuses_to_put_back_what_was_not_saved(place):
    place.do()
    saved = place.undo_dir / "000002.old"
    data = bytearray(saved.read_bytes())
    data[3] ^= 1
    saved.write_bytes(data)
    before = everything(place.log_dir)
    with pytest.raises(RefusedError, match=f"{saved}: "):
        place.undo()
    assert everything(place.log_dir) == before


def test_the_undo_directory_lies_outside_of_every_log_dir(place, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(place.log_dir, other)
    for path in (
        place.log_dir, place.log_dir / "undo", place.log_dir / "small-segments-0" / "undo",
        other / "undo", other / "small-segments-0" / "undo",
    ):  # fmt: skip
        with pytest.raises(RefusedError, match=str(path)):
            Journal.begin(path, place.log_dir, "logtool test")
    shutil.rmtree(other)
    place.assert_untouched()


def test_log_dirs_whose_names_look_like_partitions_have_undo_directories_next_to_them(place):
    home = place.log_dir.rename(place.log_dir.with_name("data-0"))
    with pytest.raises(NothingMatchedError, match=str(home)):
        inputs.kind_of(home.parent)
    Journal.begin(default_undo_dir(home), home, "logtool test")


def test_the_undo_directory_is_new_or_empty(place):
    place.undo_dir.mkdir()
    Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    (place.undo_dir / "mine").write_bytes(b"")
    with pytest.raises(RefusedError, match=f"{place.undo_dir}.*empty"):
        Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    with pytest.raises(RefusedError, match=f"{place.undo_dir}.*undo directory"):
        Journal.open(place.undo_dir)
    with pytest.raises(RefusedError, match=str(place.undo_dir / "mine")):
        Journal.begin(place.undo_dir / "mine", place.log_dir, "logtool test")


def test_a_plan_does_not_reach_out_of_its_log_dir(place, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"x")
    (place.log_dir / "orders-0").symlink_to(outside)
    for path in (outside / "file", place.log_dir / "orders-0" / "file"):
        journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
        with pytest.raises(RefusedError, match=f"file: .*{place.log_dir}"):
            journal.stage([change(FileChange.REMOVE, path)])


def test_a_symbolic_link_is_no_file(place):
    link = place.log_dir / "link"
    link.symlink_to("meta.properties")
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    with pytest.raises(RefusedError, match=f"{link}: .*regular"):
        journal.stage([change(FileChange.REMOVE, link)])


@pytest.mark.parametrize("position", [0, 10, 300, 2000])
def test_a_damaged_journal_is_refused(place, position):
    place.do()
    path = place.undo_dir / "journal.ndjson"
    data = bytearray(path.read_bytes())
    data[position] ^= 0x55
    path.write_bytes(data)
    with pytest.raises(RefusedError, match=f"{path}: .*damaged"):
        Journal.open(place.undo_dir)


def test_a_journal_keeps_to_its_schema(place):
    place.do()
    place.undo()
    checker = Draft202012Validator(
        json.loads((files("logtool.schemas") / "journal.json").read_text())
    )
    lines = (place.undo_dir / "journal.ndjson").read_text().splitlines()
    objects = [json.loads(line) for line in lines]
    assert {obj["type"] for obj in objects} == {"begin", "directory", "step", "commit", "state"}
    for obj in objects:
        assert checker.is_valid(obj), obj
        for key in obj:
            assert not checker.is_valid({k: v for k, v in obj.items() if k != key}), key


def test_what_power_loss_left_of_the_last_line_is_written_over(place):
    place.do()
    path = place.undo_dir / "journal.ndjson"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert Journal.open(place.undo_dir).state is PlanState.COMMITTED
    place.finish()
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [line.get("state") for line in lines[-2:]] == [None, "done"]


def test_a_log_dir_that_is_not_there_is_named(place):
    place.do()
    shutil.rmtree(place.log_dir)
    with pytest.raises(UnwritableError, match=f"{place.log_dir}: "):
        place.undo()


@pytest.mark.parametrize(
    "changes",
    [
        [Change(FileChange.CREATE, LOG, None, b""), Change(FileChange.REMOVE, LOG)],
        [
            Change(FileChange.CREATE, LOG, None, b""),
            Change(FileChange.RENAME, LOG, target=Path("orders-0/x")),
        ],
        [Change(FileChange.REMOVE, LOG), Change(FileChange.TRUNCATE, LOG, size=0)],
        [Change(FileChange.REPLACE, LOG, content=b""), Change(FileChange.CREATE, LOG, content=b"")],
        [Change(FileChange.RENAME, LOG, target=Path("orders-1/x"))],
        [
            Change(FileChange.RENAME, LOG, target=LOG.with_name("x")),
            Change(FileChange.CREATE, LOG, None, b""),
        ],
        [Change(FileChange.TRUNCATE, LOG)],
        [Change(FileChange.REPLACE, LOG)],
    ],
    ids=str,
)
def test_a_plan_that_makes_no_sense_is_a_bug(changes):
    with pytest.raises(ValueError, match="orders-0"):
        merge(changes)


def test_changes_of_one_file_become_one_step():
    swap = LOG.with_name("x.swap")
    removed, moved = merge(
        [
            Change(FileChange.RENAME, swap, Stamp(9, 9), target=LOG.with_name("x")),
            Change(FileChange.TRUNCATE, LOG.with_name("x"), size=7),
            Change(FileChange.REMOVE, LOG, Stamp(1, 1)),
            Change(FileChange.RENAME, LOG.with_name("x"), target=LOG),
            Change(FileChange.TRUNCATE, LOG, size=5),
        ]
    )
    assert (removed.kind, removed.before, removed.after) == (FileChange.REMOVE, LOG, None)
    assert (moved.kind, moved.before, moved.after) == (FileChange.TRUNCATE, swap, LOG)
    assert (moved.size, moved.seen) == (5, Stamp(9, 9))
    (replaced,) = merge(
        [Change(FileChange.REMOVE, LOG, Stamp(1, 1)), Change(FileChange.CREATE, LOG, None, b"x")]
    )
    assert (replaced.kind, replaced.content, replaced.seen) == (
        FileChange.REPLACE,
        b"x",
        Stamp(1, 1),
    )


# Where undo directories are, and which of them are unfinished.


def test_the_default_undo_directory_stands_next_to_the_log_dir(place):
    first = default_undo_dir(place.log_dir)
    assert first.parent == place.log_dir.parent
    assert first.name.startswith("data.logtool-undo-2")
    assert first.name.endswith("Z")
    first.mkdir()
    assert default_undo_dir(place.log_dir) != first


def test_what_was_begun_is_found_until_it_is_done(place):
    undo_dir = default_undo_dir(place.log_dir)
    journal = prepare(place.log_dir, undo_dir)
    assert find_unfinished(place.log_dir) == []
    journal.commit()
    (found,) = find_unfinished(place.log_dir)
    assert found.undo_dir == undo_dir
    found.finish()
    place.assert_finished()
    assert find_unfinished(place.log_dir) == []


def test_what_is_half_undone_is_found_and_is_not_finished(place):
    undo_dir = default_undo_dir(place.log_dir)
    carry_out(place.log_dir, undo_dir)

    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with failing(12, full), pytest.raises(UnwritableError, match="logtool undo --apply"):
        Journal.open(undo_dir).undo()
    (found,) = find_unfinished(place.log_dir)
    assert found.state is PlanState.UNDOING
    with pytest.raises(RefusedError, match=f"logtool undo --apply {undo_dir}"):
        found.finish()


# The lock.


@pytest.fixture
def holder(place):
    """Let another process hold the lock; yields its id."""
    path = place.log_dir / ".lock"
    path.touch()
    with locked_by_a_process(path) as pid:
        yield pid


def test_a_lock_that_is_held_is_refused_and_the_holder_named(place, holder):
    with (
        pytest.raises(RefusedError, match=rf"\.lock: .*python.*\b{holder}\b"),
        locked(place.log_dir),
    ):
        pytest.fail("was not refused")


def is_locked(log_dir):
    """Return whether another process finds the log dir locked."""
    code = "import sys; from pathlib import Path; from logtool.disk import in_use;"
    code += "print(in_use.holder(Path(sys.argv[1])) is not None)"
    command = [sys.executable, "-c", code, str(log_dir)]
    root = Path(__file__).parents[3]
    return subprocess.check_output(command, cwd=root, text=True).strip() == "True"


def test_to_look_who_holds_the_lock_does_not_let_it_go(place):
    with locked(place.log_dir):
        assert in_use.holder(place.log_dir) is None
        with locked(place.log_dir):
            pass
        assert is_locked(place.log_dir)
    assert not is_locked(place.log_dir)


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_leaves_no_trace(place, there):
    path = place.log_dir / ".lock"
    path.touch() if there else path.unlink(missing_ok=True)
    before = everything(place.log_dir)
    with locked(place.log_dir):
        assert path.exists()
    assert everything(place.log_dir) == before


def test_a_log_dir_that_is_not_there_cannot_be_locked(tmp_path):
    with (
        pytest.raises(UnwritableError, match=r"missing/\.lock: "),
        locked(tmp_path / "missing"),
    ):
        pytest.fail("was locked")


def test_the_stamp_of_a_test_is_that_of_a_plan(place):
    path = place.log_dir / "meta.properties"
    assert stamp(path) == Stamp(path.stat().st_size, path.stat().st_mtime_ns)
