"""``logtool undo``: its output, its changes with --apply, and its refusals."""

import errno
import json
import os

import loadable
import pytest
from answers import assert_valid, last_line, numbers
from changes import Place, disk_full, everything, failing, interrupt, prepare, result
from processes import locked_by_a_process

from logtool.apply import default_undo_dir, records

WATERMARK = "replication-offset-checkpoint"


@pytest.fixture
def place(template, tmp_path):
    """Return a log dir after a plan was carried out."""
    place = Place(template, tmp_path)
    place.undo_dir = default_undo_dir(place.log_dir)
    place.reset()
    place.do()
    return place


def test_without_apply_the_changes_are_shown_and_nothing_is_written(run, place):
    before, saved = everything(place.log_dir), everything(place.undo_dir)
    result = run("undo", place.undo_dir)
    assert result.status == 1
    assert len(result.lines) == 15
    home = place.log_dir / "small-segments-0"
    half = (home / f"{42:020d}.log").stat().st_size
    (line,) = [line for line in result.lines if f"{42:020d}.log" in line]
    assert line.startswith(f"append   {home}/{42:020d}.log @{half}, ")
    assert 15 in numbers(result.stderr)
    assert "'logtool test'" in result.stderr
    assert "--apply" in last_line(result)
    assert everything(place.log_dir) == before
    assert everything(place.undo_dir) == saved


def test_with_apply_everything_is_put_back(run, place):
    shown = run("undo", place.undo_dir).stdout
    result = run("undo", "--apply", place.undo_dir)
    assert (result.status, result.stdout) == (0, shown)
    place.assert_untouched()
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{place.log_dir} ")
    assert f" {place.undo_dir} " in line


@pytest.mark.parametrize("options", [(), ("--apply",)])
@pytest.mark.parametrize("state", ["undone", "never committed"])
def test_without_changes_to_undo_nothing_is_done(run, place, options, state):
    if state == "undone":
        run("undo", "--apply", place.undo_dir)
    else:
        place.reset()
        prepare(place.log_dir, place.undo_dir)
    result = run("undo", *options, place.undo_dir)
    assert (result.status, result.stdout) == (0, "")
    place.assert_untouched()


def test_a_committed_change_that_did_not_begin_is_closed(run, place):
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
    row = (renamed["action"], renamed["topic"], renamed["partition"])
    assert row == ("rename", "codec-none", 0)
    document = run("undo", "--json", place.undo_dir).document
    assert len(document["items"]) == 15
    assert_valid("plan", (document, *result.objects))
    rows = run("undo", "-f", "csv", place.undo_dir).rows
    assert [row["path"] for row in rows] == [obj["path"] for obj in (first, *actions)]
    assert run("undo", "-f", "markdown", place.undo_dir).lines[0].startswith("| action")


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_a_file_that_another_program_changed_is_named_and_nothing_is_put_back(run, place, options):
    path = place.log_dir / "small-segments-0" / f"{42:020d}.log"
    path.write_bytes(b"a broker was here")
    before = everything(place.log_dir)
    result = run("undo", *options, place.undo_dir)
    assert (result.status, result.stdout) == (5, "")
    assert result.stderr.startswith(f"logtool: {path}: ")
    assert everything(place.log_dir) == before
    objects = run("undo", *options, "-f", "ndjson", place.undo_dir).objects
    assert [obj["type"] for obj in objects] == ["error", "summary"]
    assert objects[0]["reason"] == "refused"


def test_another_directory_is_refused(run, place, tmp_path):
    result = run("undo", place.log_dir)
    assert result.status == 5
    assert f"{place.log_dir} " in result.stderr.replace(": ", " ")
    assert "journal.ndjson" in result.stderr
    assert run("undo", tmp_path / "missing").status == 4
    assert run("undo").status == 2


def test_a_log_dir_in_use_is_refused(run, place):
    lock = place.log_dir / ".lock"
    lock.touch()
    before = everything(place.log_dir)
    with locked_by_a_process(lock) as pid:
        result = run("undo", "--apply", place.undo_dir)
        assert run("undo", place.undo_dir).status == 1, "to look is allowed"
    assert result.status == 5
    assert f"(pid {pid})" in result.stderr
    assert everything(place.log_dir) == before


@pytest.mark.parametrize(("fault", "status"), [(disk_full, 4), (interrupt, 130)])
def test_an_undo_that_stops_half_way_goes_on_with_the_same_command(run, place, fault, status):
    with failing(20, fault):
        result = run("undo", "--apply", "-f", "ndjson", place.undo_dir)
    assert (result.status, result.objects[-1]["complete"]) == (status, False)
    if fault is disk_full:
        assert os.strerror(errno.ENOSPC) in result.stderr
        assert f"logtool undo --apply {place.undo_dir}" in result.stderr
    assert run("undo", "--apply", place.undo_dir).status == 0
    place.assert_untouched()


def test_files_of_others_that_go_with_a_swap_come_back(run, tmp_path):
    log_dir = tmp_path / "log-dir"
    loadable.write_swap(log_dir / "t-0")
    before = everything(log_dir / "t-0")
    assert run("recover", "--apply", log_dir).status == 0
    assert not any((log_dir / "t-0" / name).exists() for name in loadable.FOREIGN)
    (undo_dir,) = tmp_path.glob("*undo*")
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(log_dir / "t-0") == before


def test_what_was_applied_is_listed_and_whether_it_was_undone(run, place):
    command = ("checkpoint", "set", "--delete", "--apply", place.log_dir / WATERMARK)
    assert run(*command).status == 0
    first, second = run("undo", "--list", "-f", "ndjson", place.log_dir).of_type("applied")
    assert (first["command"], first["state"], first["undo_dir"], first["log_dir"]) == (
        "logtool test", "done", str(place.undo_dir), str(place.log_dir),
    )  # fmt: skip
    assert (second["state"], second["files"]) == ("done", 1)
    assert "checkpoint set" in second["command"]
    assert first["time"] <= first["state_time"] <= second["time"]
    assert run("undo", "--apply", second["undo_dir"]).status == 0
    states = [
        one["state"] for one in run("undo", "--list", "-f", "ndjson", place.log_dir).objects[:-1]
    ]
    assert states == ["done", "undone"]


def test_undo_directories_elsewhere_are_listed_where_they_are(run, place, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.undo_dir.rename(elsewhere / "first")
    assert run("undo", "--list", "-f", "ndjson", place.log_dir).of_type("applied") == []
    for given in (elsewhere, elsewhere / "first"):
        (one,) = run("undo", "--list", "-f", "ndjson", given).of_type("applied")
        assert one["undo_dir"] == str(elsewhere / "first")


def test_a_damaged_undo_directory_is_an_error_and_the_others_are_listed(run, place):
    other = place.undo_dir.with_name(f"{place.log_dir.name}.logtool-undo-x")
    other.mkdir()
    (other / records.NAME).write_text("junk\n")
    result = run("undo", "--list", "-f", "ndjson", place.log_dir)
    assert result.status == 4
    assert [one["undo_dir"] for one in result.of_type("applied")] == [str(place.undo_dir)]
    assert [one["path"] for one in result.of_type("error")] == [str(other)]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--list", "--apply", "."], ["--list", "--redo", "."], ["one", "two"]],
    ids=lambda one: " ".join(one),
)
def test_undo_takes_one_directory_or_a_list(run, arguments):
    assert run("undo", *arguments).status == 2


def test_a_redo_makes_the_same_changes_again_and_can_be_undone(run, place):
    after = result(place.log_dir)
    assert run("undo", "--apply", place.undo_dir).status == 0
    before, saved = everything(place.log_dir), everything(place.undo_dir)
    shown = run("undo", "--redo", place.undo_dir)
    assert (shown.status, len(shown.lines)) == (1, 15)
    assert (everything(place.log_dir), everything(place.undo_dir)) == (before, saved)
    done = run("undo", "--redo", "--apply", place.undo_dir)
    assert (done.status, done.stdout) == (0, shown.stdout)
    assert result(place.log_dir) == after
    (listed,) = run("undo", "--list", "-f", "ndjson", place.log_dir).of_type("applied")
    assert listed["state"] == "redone"
    assert_valid("undo", (listed,))
    for line in (place.undo_dir / records.NAME).read_text().splitlines():
        assert_valid("journal", (json.loads(line),))
    for options in ((), ("--apply",)):
        again = run("undo", "--redo", *options, place.undo_dir)
        assert (again.status, again.stdout) == (0, ""), "it is done already"
    assert run("undo", "--apply", place.undo_dir).status == 0
    place.assert_untouched()


def test_the_list_names_the_redo_of_the_last_undo(run, place):
    command = f"logtool undo --redo --apply {place.undo_dir}"
    assert command not in run("undo", "--list", place.log_dir).stderr
    assert command in run("undo", "--apply", place.undo_dir).stderr
    assert command in run("undo", "--list", place.log_dir).stderr
    assert run("undo", "--redo", "--apply", place.undo_dir).status == 0
    assert command not in run("undo", "--list", place.log_dir).stderr


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_a_redo_is_refused_after_a_change_by_another_program(run, place, options):
    assert run("undo", "--apply", place.undo_dir).status == 0
    path = place.log_dir / "small-segments-0" / f"{42:020d}.log"
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    before = everything(place.log_dir)
    refused = run("undo", "--redo", *options, place.undo_dir)
    assert (refused.status, refused.stdout) == (5, "")
    assert refused.stderr.startswith(f"logtool: {path}: ")
    assert everything(place.log_dir) == before


def test_a_redo_is_refused_if_the_new_content_was_changed(run, place):
    assert run("undo", "--apply", place.undo_dir).status == 0
    before = everything(place.log_dir)
    content = min(place.undo_dir.glob("*.new"))
    content.write_bytes(content.read_bytes()[:-1] + b"?")
    assert run("undo", "--redo", "--apply", place.undo_dir).status == 5
    assert everything(place.log_dir) == before


@pytest.mark.parametrize("then", ["redo", "undo"])
def test_a_redo_that_stops_half_way_goes_on_or_back(run, place, then):
    after = result(place.log_dir)
    assert run("undo", "--apply", place.undo_dir).status == 0
    with failing(20, interrupt):
        assert run("undo", "--redo", "--apply", place.undo_dir).status == 130
    (listed,) = run("undo", "--list", "-f", "ndjson", place.log_dir).of_type("applied")
    assert listed["state"] == "redoing"
    options = ("--redo",) if then == "redo" else ()
    assert run("undo", *options, "--apply", place.undo_dir).status == 0
    if then == "redo":
        assert result(place.log_dir) == after
    else:
        place.assert_untouched()


def test_a_change_or_an_undo_that_is_not_finished_is_not_redone(run, place):
    with failing(20, interrupt):
        assert run("undo", "--apply", place.undo_dir).status == 130
    before = everything(place.log_dir)
    assert run("undo", "--redo", "--apply", place.undo_dir).status == 5
    assert everything(place.log_dir) == before
