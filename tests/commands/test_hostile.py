"""Attacks on undo directories: root may carry out a journal that another user forged.

Every such journal is refused, and nothing outside of the log dir is ever touched.
"""

import json
import os
import shutil
import stat

import crc32c
import pytest
from changes import Place, change, count, everything, failing, prepare

from logtool.actions import FileChange
from logtool.apply import Journal, default_undo_dir, dirfd, disk, find_unfinished
from logtool.errors import LogtoolError, RefusedError, UnreadableError

LOG = "small-segments-0/00000000000000000042.log"


@pytest.fixture
def place(template, tmp_path):
    """Return a log dir with a committed plan; its undo directory lies next to it."""
    place = Place(template, tmp_path)
    place.undo_dir = default_undo_dir(place.log_dir)
    place.reset()
    prepare(place.log_dir, place.undo_dir).commit()
    return place


@pytest.fixture
def victim(tmp_path):
    """Return a directory outside of the log dir with one file."""
    home = tmp_path / "victim"
    home.mkdir()
    (home / "file").write_bytes(b"precious")
    return home


def forge(undo_dir, alter):
    """Let `alter` change the lines of a journal, and make its checksum right again."""
    path = undo_dir / "journal.ndjson"
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    commit = lines[-1]
    alter(lines)
    at = lines.index(commit)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:at])
    lines[at]["crc32c"] = crc32c.crc32c(body)
    path.write_bytes(body + b"".join(json.dumps(x).encode() + b"\n" for x in lines[at:]))


def steps(lines, kind):
    return [line for line in lines if line.get("kind") == kind]


def put(key, value, kind="remove"):
    def alter(lines):
        steps(lines, kind)[0][key] = value

    return alter


def put_look(which, key, value, kind="replace"):
    def alter(lines):
        steps(lines, kind)[0][which][key] = value

    return alter


def put_in(type_, key, value):
    def alter(lines):
        next(line for line in lines if line["type"] == type_)[key] = value

    return alter


def drop_steps(lines):
    lines[:] = [line for line in lines if line["type"] != "step"]
    lines[-1]["steps"] = 0


NESTED = json.loads("[" * 900 + "]" * 900)
FORGED = {
    "before is absolute": put("before", "/etc/passwd"),
    "before leads out": put("before", "../victim/file"),
    "before leads out below": put("before", "small-segments-0/.."),
    "before is too deep": put("before", "a/b/c"),
    "before is the log dir": put("before", "."),
    "before has a NUL": put("before", "a\0b"),
    "before is a number": put("before", 7),
    "before is empty": put("before", ""),
    "after leads out": put("after", "../victim/file", "create"),
    "after is in another directory": put("after", "codec-none-0/x", "truncate"),
    "nothing is removed": put("before", None),
    "kind": put("kind", "chmod"),
    "kind of another step": put("kind", "create"),
    "kind is a list": put("kind", ["remove"]),
    "number": put("number", 99),
    "number is true": put("number", True),
    "number is text": put("number", "1"),
    "old is text": put("old", "x"),
    "old is missing": put("old", None),
    "set-user-id": put_look("new", "mode", 0o4755),
    "set-user-id of old": put_look("old", "mode", 0o4755),
    "set-group-id": put_look("new", "mode", 0o2755),
    "sticky": put_look("new", "mode", 0o1777),
    "mode is negative": put_look("new", "mode", -1),
    "mode is text": put_look("new", "mode", "0755"),
    "size is huge": put_look("new", "size", 10**400),
    "size is negative": put_look("new", "size", -1),
    "size is no number": put_look("new", "size", float("inf")),
    "mtime is huge": put_look("new", "mtime_ns", 1 << 64),
    "user is minus one": put_look("new", "user", -1),
    "user is the one that means none": put_look("new", "user", (1 << 32) - 1),
    "group is text": put_look("new", "group", "root"),
    "no checksum": put_look("old", "crc32c", None, "remove"),
    "cut to more": put_look("new", "size", 1 << 40, "truncate"),
    "directory is absolute": put_in("directory", "path", "/etc"),
    "directory leads out": put_in("directory", "path", ".."),
    "directory of no step": put_in("directory", "path", "elsewhere-0"),
    "directory time": put_in("directory", "mtime_ns", "now"),
    "log dir is relative": put_in("begin", "log_dir", "data"),
    "log dir leads out": put_in("begin", "log_dir", "/var/../etc"),
    "log dir is a number": put_in("begin", "log_dir", 5),
    "command is a list": put_in("begin", "command", ["x"]),
    "schema": put_in("begin", "schema", {"x": 1}),
    "no steps": drop_steps,
    "too few steps": put_in("commit", "steps", 3),
    "a line is a number": lambda lines: lines.insert(1, 17),
    "deep nesting": put("before", NESTED),
    "unknown state": lambda lines: lines.append({"type": "state", "state": "new", "time": ""}),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_journal_is_refused_in_one_line_and_nothing_is_touched(run, place, victim, name):
    forge(place.undo_dir, FORGED[name])
    for command in (
        ["undo", "--apply", place.undo_dir],
        ["undo", place.undo_dir],
        ["recover", "--apply", place.log_dir],
        ["rebuild-index", "--apply", place.log_dir],
        ["checkpoint", "set", "--apply",
         place.log_dir / "recovery-point-offset-checkpoint", "codec-none-0", "5"],
    ):  # fmt: skip
        result = run(*command)
        assert result.status == 5, command
        (line,) = [x for x in result.stderr.splitlines() if "journal.ndjson" in x]
        assert "damaged" in line
        assert len(line) < 600
    place.assert_untouched()
    assert (victim / "file").read_bytes() == b"precious"


@pytest.mark.parametrize(
    "line", [b"[" * 100_000 + b"]" * 100_000, b'{"type": ' + b"9" * 5000 + b"}", b"\xff\xfe", b""]
)
def test_a_line_that_is_no_json_is_refused(place, line):
    (place.undo_dir / "journal.ndjson").write_bytes(line + b"\n")
    with pytest.raises(RefusedError, match=r"journal\.ndjson: .*damaged"):
        Journal.open(place.undo_dir)


def test_a_journal_of_another_directory_is_refused(run, place, victim):
    """A journal that is right in itself, of a directory that no broker ever used."""

    def alter(lines):
        lines[0]["log_dir"] = str(victim)
        lines[:] = [x for x in lines if x["type"] != "directory" and x.get("kind") != "remove"]
        keep = [x for x in lines if x.get("kind") == "create"][:1]
        lines[:] = [lines[0], *keep, lines[-1]]
        keep[0] |= {"number": 1, "after": "file"}
        lines[-1]["steps"] = 1

    forge(place.undo_dir, alter)
    result = run("undo", "--apply", place.undo_dir)
    assert result.status == 5
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"logtool: {victim}: ")
    assert rows(victim).keys() == {victim / "file"}
    assert (victim / "file").read_bytes() == b"precious"


@pytest.mark.parametrize("target", ["directory", "journal"])
@pytest.mark.parametrize("mode", [0o775, 0o707, 0o1777])
def test_an_undo_directory_that_others_may_write_is_refused(run, place, target, mode):
    path = place.undo_dir if target == "directory" else place.undo_dir / "journal.ndjson"
    path.chmod(mode)
    for command in (["undo", "--apply", place.undo_dir], ["recover", "--apply", place.log_dir]):
        result = run(*command)
        assert result.status == 5
        (line,) = (line for line in result.stderr.splitlines() if f"{path}: " in line)
        assert f"mode {mode:04o}" in line
    place.assert_untouched()


def disown(path, monkeypatch):
    """Let a path belong to another user than the one who runs the command, and not to root."""
    if os.geteuid() == 0:
        os.chown(path, 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 54321)


@pytest.mark.parametrize("target", ["directory", "journal"])
def test_an_undo_directory_of_another_user_is_refused(run, place, monkeypatch, target):
    path = place.undo_dir if target == "directory" else place.undo_dir / "journal.ndjson"
    disown(path, monkeypatch)
    for command in (["undo", "--apply", place.undo_dir], ["recover", "--apply", place.log_dir]):
        result = run(*command)
        assert result.status == 5
        assert f"{path}: " in result.stderr
        assert "root" in result.stderr
    place.assert_untouched()


def test_a_finished_change_of_another_user_stops_nothing(place, monkeypatch):
    Journal.open(place.undo_dir).finish()
    disown(place.undo_dir, monkeypatch)
    assert find_unfinished(place.log_dir) == []
    place.assert_finished()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_chosen_undo_directory_that_others_may_write_is_not_taken(run, place, tmp_path, mode):
    shutil.rmtree(place.undo_dir)
    chosen = tmp_path / "chosen"
    chosen.mkdir()
    chosen.chmod(mode)
    words = ["--delete", "--undo-dir", chosen, "--apply"]
    file = place.log_dir / "recovery-point-offset-checkpoint"
    result = run("checkpoint", "set", file, "codec-none-0", *words)
    assert result.status == 5
    assert f"{chosen}: " in result.stderr
    assert f"mode {mode:04o}" in result.stderr
    place.assert_untouched()
    assert list(chosen.iterdir()) == []


def test_a_chosen_undo_directory_of_another_user_is_not_taken(place, tmp_path, monkeypatch):
    chosen = tmp_path / "chosen"
    chosen.mkdir(mode=0o755)
    disown(chosen, monkeypatch)
    with pytest.raises(RefusedError, match=f"{chosen}: .*root"):
        Journal.begin(chosen, place.log_dir, "logtool test")


@pytest.mark.parametrize("saved", ["000002.old", "000006.new", "journal.ndjson"])
@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_another_kind_of_entry_in_an_undo_directory_is_refused(run, place, victim, saved, kind):
    if saved.endswith(".old"):
        Journal.open(place.undo_dir).finish()
    before = everything(place.log_dir)
    path = place.undo_dir / saved
    path.rename(victim / "moved")
    make = {"link": lambda: path.symlink_to(victim / "moved"), "fifo": lambda: os.mkfifo(path),
            "directory": path.mkdir}  # fmt: skip
    make[kind]()
    command = ["undo", "--apply", place.undo_dir]
    if saved.endswith(".new"):
        command = ["recover", "--apply", place.log_dir]
    result = run(*command)
    assert result.status in (4, 5)
    assert f"{path}: " in result.stderr
    if not saved.endswith(".new"):
        assert everything(place.log_dir) == before


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_another_kind_of_entry_in_the_log_dir_is_refused(place, victim, kind):
    path = place.log_dir / LOG
    path.rename(victim / "moved")
    os.mkfifo(path) if kind == "fifo" else path.symlink_to(victim / "moved")
    with pytest.raises(RefusedError, match=f"{path}: "):
        Journal.open(place.undo_dir).finish()


def test_a_set_user_id_file_is_not_changed(place):
    shutil.rmtree(place.undo_dir)
    path = place.log_dir / LOG
    path.chmod(0o4755)
    journal = Journal.begin(place.undo_dir, place.log_dir, "logtool test")
    with pytest.raises(RefusedError, match=f"{path}: .*4755"):
        journal.stage([change(FileChange.REMOVE, path)])


# Races: another process changes names between any two calls.


def attempt(job, number, deed):
    """Do a job; call `deed` just before the n-th call that changes anything."""
    original, calls = disk.change, 0

    def counted(path, call, *arguments):
        nonlocal calls
        calls += 1
        if calls == number:
            deed(path)
        return original(path, call, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(disk, "change", counted)
        try:
            job()
        except LogtoolError as error:
            assert "\n" not in str(error)


def rows(path):
    """Return mode, owner, time and bytes of each entry of a directory."""
    found = {}
    for entry in sorted(path.rglob("*")):
        status = entry.lstat()
        content = entry.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[entry] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


@pytest.mark.parametrize("moved", ["small-segments-0", "."])
@pytest.mark.parametrize("job", ["finish", "undo"])
def test_a_link_that_comes_between_two_calls_leads_nowhere(place, tmp_path, moved, job):
    """A partition dir, or the log dir, becomes a link to a directory with the same names."""
    place.finish()
    total = count(place.undo)
    shutil.rmtree(place.undo_dir)
    for number in range(1, total + 1, 5):
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        place.reset()
        prepare(place.log_dir, place.undo_dir).commit()
        if job == "undo":
            place.finish()
        target = tmp_path / "victim"
        shutil.copytree(place.log_dir / moved, target)
        before = rows(target)

        def swap(_, target=target):
            home = (place.log_dir / moved).resolve()
            home.rename(tmp_path / "aside")
            home.symlink_to(target)

        attempt(getattr(place, job), number, swap)
        assert rows(target) == before, number


def test_a_file_outside_with_the_name_of_a_new_file_gets_neither_owner_nor_mode(place, victim):
    """Link a file outside under the name of each file that is just being written."""
    shadow = victim / "file"
    with failing(0, lambda: None) as calls:
        place.finish()
    shutil.rmtree(place.undo_dir)
    moments = [i + 1 for i, path in enumerate(calls) if path.name.endswith(".logtool-tmp")]
    hits = 0
    for number in moments:
        place.reset()
        shutil.rmtree(place.undo_dir, ignore_errors=True)
        prepare(place.log_dir, place.undo_dir).commit()
        shadow.unlink()
        shadow.write_bytes(b"precious")
        shadow.chmod(0o600)
        before = rows(victim)
        done = []

        def swap(path, done=done):
            if path.name.endswith(".logtool-tmp") and path.exists():
                path.unlink()
                os.link(shadow, path)
                done.append(path)

        attempt(place.finish, number, swap)
        hits += bool(done)
        assert rows(victim) == before, number
    assert hits > 5


def test_an_undo_directory_that_is_swapped_is_still_the_one_that_was_opened(place, tmp_path):
    journal = Journal.open(place.undo_dir)
    place.undo_dir.rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", place.undo_dir)
    for path in place.undo_dir.glob("*.new"):
        path.write_bytes(b"evil")
    journal.finish()
    place.assert_finished()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd"])
def test_an_open_directory_is_not_left(place, name):
    home = dirfd.OpenDir(place.log_dir)
    with pytest.raises(RefusedError), home.reach(place.log_dir / name):
        pytest.fail("was reached")


def test_a_directory_with_a_link_on_the_way_is_not_opened(place, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(RefusedError, match=f"{tmp_path / 'link'}"):
        dirfd.OpenDir(tmp_path / "link" / "data")
    with pytest.raises(UnreadableError) as caught:
        dirfd.OpenDir(tmp_path / "missing")
    assert (caught.value.path, caught.value.missing) == (tmp_path / "missing", True)
