"""Directories and files of output: they get their names when they are complete."""

import errno
import os
from pathlib import Path

import pytest
from changes import failing

from logtool.apply.output_tree import OutputTree
from logtool.apply.unfinished import new_file
from logtool.disk import unfinished
from logtool.errors import RefusedError, UnwritableError

PARTITION = Path("partitions", "orders-0")


def written(tree):
    """Write a partition dir of two files, and a file."""
    for name in ("0.log", "0.index"):
        tree.write(PARTITION / name, [b"some ", b"bytes"])
    tree.complete(PARTITION)
    tree.write(Path("manifest"), [b"{}"])
    tree.complete(Path("manifest"))


def files_of(path):
    return sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())


ALL = ["manifest", "partitions/orders-0/0.index", "partitions/orders-0/0.log"]


def test_what_is_complete_has_its_place_and_nothing_else_is_left(tmp_path):
    tree = OutputTree(tmp_path / "new", "logtool x")
    tree.check([])
    tree.write(PARTITION / "0.log", [b"x"])
    assert files_of(tmp_path / "new") == [
        "logtool-unfinished/partitions/orders-0/0.log", "logtool-unfinished/run.ndjson",
    ]  # fmt: skip
    assert unfinished.near(tmp_path / "new") == tree.work
    tree.complete(PARTITION)
    assert files_of(tree.path / "partitions") == ["orders-0/0.log"]
    assert unfinished.near(tree.path / PARTITION) == tree.work
    tree.finish()
    assert files_of(tree.path) == ["partitions/orders-0/0.log"]
    assert unfinished.near(tree.path / PARTITION) is None


def test_a_run_that_writes_nothing_makes_no_directory(tmp_path):
    tree = OutputTree(tmp_path / "new", "logtool x")
    tree.check([])
    tree.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", range(1, 40, 3))
def test_the_same_command_replaces_what_is_not_complete_and_another_does_not(tmp_path, number):
    path = tmp_path / "new"
    with pytest.raises(UnwritableError), failing(number, full) as calls:
        tree = OutputTree(path, "logtool x")
        tree.check([])
        written(tree)
        tree.finish()
        raise UnwritableError(path, "all calls were made")
    tree.close()
    if path.exists() and (path / unfinished.WORK / "run.ndjson").exists():
        with pytest.raises(RefusedError, match="logtool x"):
            OutputTree(path, "logtool y").check([])
    again = OutputTree(path, "logtool x")
    if not path.exists() or not any(path.iterdir()) or (path / unfinished.WORK).exists():
        if files_of(path) == ALL:  # Only an empty folder was left to remove.
            with pytest.raises(RefusedError):
                again.check([])
        else:
            again.check([])
            written(again)
            again.finish()
    assert number <= len(calls)
    assert files_of(path) == ALL
    assert unfinished.near(path) is None


def full():
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def left_behind(path):
    """Leave what a killed run leaves."""
    tree = OutputTree(path, "logtool x")
    tree.check([])
    tree.write(PARTITION / "0.log", [b"x"])
    tree.complete(PARTITION)
    return tree


def test_what_no_run_has_made_is_never_removed(tmp_path):
    path = tmp_path / "new"
    left_behind(path).close()
    (path / "mine").write_text("precious")
    with pytest.raises(RefusedError, match="mine"):
        OutputTree(path, "logtool x").check([])
    assert (path / PARTITION / "0.log").exists()
    (path / "mine").unlink()
    OutputTree(path, "logtool x").check([])
    assert files_of(path) == []


def test_two_runs_at_the_same_time_do_not_write_to_one_directory(tmp_path):
    path = tmp_path / "new"
    running = left_behind(path)
    with pytest.raises(RefusedError, match="another run"):
        OutputTree(path, "logtool x").check([])
    assert (path / PARTITION / "0.log").exists()
    running.finish()


def test_a_line_that_a_kill_tore_notes_nothing(tmp_path):
    path = tmp_path / "new"
    left_behind(path).close()
    with (path / unfinished.WORK / "run.ndjson").open("ab") as file:
        file.write(b'{"made": "other')
    OutputTree(path, "logtool x").check([])
    assert files_of(path) == []


def test_a_directory_that_is_not_empty_or_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(RefusedError):
            OutputTree(path, "logtool x").check([])


def test_a_new_file_has_its_name_when_it_is_complete(tmp_path):
    target = tmp_path / "a.npz"
    with new_file(target) as file:
        file.write(b"half")
        (now,) = tmp_path.iterdir()
        assert unfinished.is_unfinished(now.name)
    assert [one.name for one in tmp_path.iterdir()] == ["a.npz"]
    with pytest.raises(RefusedError), new_file(target):
        pass
    assert target.read_bytes() == b"half"


def test_a_new_file_removes_what_killed_runs_left_and_nothing_of_a_run_that_goes_on(tmp_path):
    left = tmp_path / f".0123456789abcdef.{unfinished.WORK}"
    left.write_bytes(b"half")
    other = tmp_path / f"orders.{unfinished.WORK}"  # the name of a topic, not one of a new file
    other.write_bytes(b"")
    with new_file(tmp_path / "a"), new_file(tmp_path / "b"):
        assert not left.exists()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a", "b", other.name]
