import csv
import errno
import json
import os
import subprocess
import sys
from importlib.resources import files

import pytest
from changes import Place, everything, failing, make_log_dir, prepare
from jsonschema import Draft202012Validator

from logtool.apply import default_undo_dir


@pytest.fixture(scope="module")
def template(scenario, tmp_path_factory):
    return make_log_dir(scenario("4.3.1/killed"), tmp_path_factory.mktemp("undo") / "template")


@pytest.fixture
def place(template, tmp_path, monkeypatch):
    """Return a log dir that a plan was carried out on."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    place = Place(template, tmp_path)
    place.undo_dir = default_undo_dir(place.log_dir)
    place.reset()
    place.do()
    return place


def test_without_apply_it_is_shown_and_nothing_is_written(run, place):
    before, saved = everything(place.log_dir), everything(place.undo_dir)
    result = run("undo", place.undo_dir)
    assert result.status == 1
    assert len(result.lines) == 15
    home = place.log_dir / "small-segments-0"
    half = (home / f"{42:020d}.log").stat().st_size
    (line,) = [line for line in result.lines if f"{42:020d}.log" in line]
    assert line.startswith(f"append   {home}/{42:020d}.log @{half}, ")
    assert "15 changes of 'logtool test' to take back" in result.stderr
    assert "nothing was written; add --apply to do it" in result.stderr
    assert everything(place.log_dir) == before
    assert everything(place.undo_dir) == saved


def test_with_apply_everything_is_put_back(run, place):
    shown = run("undo", place.undo_dir).stdout
    result = run("undo", "--apply", place.undo_dir)
    assert (result.status, result.stdout) == (0, shown)
    place.assert_untouched()
    told = f"{place.log_dir} is as it was before 'logtool test'; {place.undo_dir} can be removed\n"
    assert result.stderr == told


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_what_is_undone_needs_nothing(run, place, options):
    run("undo", "--apply", place.undo_dir)
    result = run("undo", *options, place.undo_dir)
    assert (result.status, result.stdout) == (0, "")
    place.assert_untouched()


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_what_was_never_committed_needs_nothing(run, place, options):
    place.reset()
    prepare(place.log_dir, place.undo_dir)
    result = run("undo", *options, place.undo_dir)
    assert (result.status, result.stdout) == (0, "")
    assert "no file was changed yet" in result.stderr
    place.assert_untouched()


def test_what_was_committed_and_not_begun_is_closed(run, place):
    place.reset()
    prepare(place.log_dir, place.undo_dir).commit()
    assert run("undo", place.undo_dir).status == 1
    assert run("undo", "--apply", place.undo_dir).status == 0
    assert run("undo", place.undo_dir).status == 0
    place.assert_untouched()


def test_the_objects_are_actions_and_a_summary(run, place):
    result = run("undo", "-f", "ndjson", place.undo_dir)
    first, *actions, summary = result.objects
    assert first["schema"] == "logtool.plan/1"
    assert {obj["type"] for obj in (first, *actions)} == {"action"}
    assert (summary["type"], summary["complete"]) == ("summary", True)
    (renamed,) = [a for a in actions if str(a["target"]).endswith("300.snapshot")]
    assert (renamed["action"], renamed["topic"], renamed["partition"]) == (
        "rename",
        "codec-none",
        0,
    )
    document = json.loads(run("undo", "--json", place.undo_dir).stdout)
    assert len(document["items"]) == 15
    schema = json.loads((files("logtool.schemas") / "plan.json").read_text())
    for obj in (document, first, *actions, summary):
        assert not list(Draft202012Validator(schema).iter_errors(obj)), obj
    rows = list(csv.DictReader(run("undo", "-f", "csv", place.undo_dir).stdout.splitlines()))
    assert [row["path"] for row in rows] == [obj["path"] for obj in (first, *actions)]
    assert run("undo", "-f", "markdown", place.undo_dir).lines[0].startswith("| action")


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_a_file_that_somebody_else_changed_is_named_and_nothing_is_put_back(run, place, options):
    path = place.log_dir / "small-segments-0" / f"{42:020d}.log"
    path.write_bytes(b"a broker was here")
    before = everything(place.log_dir)
    result = run("undo", *options, place.undo_dir)
    assert (result.status, result.stdout) == (5, "")
    assert f"logtool: {path}: was changed by somebody else" in result.stderr
    assert everything(place.log_dir) == before
    objects = run("undo", *options, "-f", "ndjson", place.undo_dir).objects
    assert [obj["type"] for obj in objects] == ["error", "summary"]


def test_a_directory_that_is_no_undo_directory_is_refused(run, place, tmp_path):
    result = run("undo", place.log_dir)
    assert result.status == 5
    assert "is not an undo directory: it has no journal.ndjson" in result.stderr
    assert run("undo", tmp_path / "missing").status == 4
    assert run("undo").status == 2


def test_a_log_dir_in_use_is_refused(run, place):
    lock = place.log_dir / ".lock"
    lock.touch()
    code = "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX);"
    code += "print(flush=True); sys.stdin.read()"
    before = everything(place.log_dir)
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout
        broker.stdout.readline()
        result = run("undo", "--apply", place.undo_dir)
        assert run("undo", place.undo_dir).status == 1, "to look is allowed"
        broker.communicate()
    assert result.status == 5
    assert f"(pid {broker.pid}) holds it; stop it first" in result.stderr
    assert everything(place.log_dir) == before


def test_a_full_disk_says_how_to_go_on_and_that_works(run, place):
    def full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with failing(20, full):
        result = run("undo", "--apply", "-f", "ndjson", place.undo_dir)
    assert result.status == 4
    assert result.objects[-1]["complete"] is False
    command = f"'logtool undo --apply {place.undo_dir}'"
    assert f"No space left on device; run {command} again to go on" in result.stderr
    assert run("undo", "--apply", place.undo_dir).status == 0
    place.assert_untouched()


def test_ctrl_c_stops_it_and_it_goes_on(run, place):
    def interrupt():
        raise KeyboardInterrupt

    with failing(20, interrupt):
        result = run("undo", "--apply", "-f", "ndjson", place.undo_dir)
    assert (result.status, result.objects[-1]["complete"]) == (130, False)
    assert run("undo", "--apply", place.undo_dir).status == 0
    place.assert_untouched()
