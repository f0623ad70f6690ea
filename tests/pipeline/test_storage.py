"""Runs of the pipeline in their output: there as a whole or not at all, whatever happens."""

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from logtool.errors import RefusedError, UnwritableError, UsageError
from logtool.pipeline import ownership, storage, tables
from logtool.pipeline.ownership import Owner
from logtool.pipeline.storage import begin, clean, runs, staged

NAMES = ("batches", "segments")

# The child only does what is tested here, and no thread of pyarrow's is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def rows(table: str, *numbers: int):
    return pa.RecordBatch.from_pylist([{"segment": n} for n in numbers], tables.schema(table))


def write_run(output, run_id: str, *numbers: int, names=NAMES) -> None:
    """Write a run whose tables have these segments in them."""
    run = begin(str(output), run_id)
    try:
        for name in names:
            with run.staging.writer(name) as writer:
                writer.write(rows(name, *numbers))
            run.add(writer.parts)
            with run.staging.writer(name) as lost:
                lost.write(rows(name, 99))  # a task that was tried again
    except BaseException:
        run.abandon()
        raise
    run.commit(names, {"inputs": []})


def visible(output: Path, table: str) -> dict[str, list[int]]:
    """Return the segments in each run of a table, as any reader of Parquet finds them."""
    if not (output / table).exists():
        return {}
    found = dataset.dataset(output / table, partitioning="hive").to_table()
    result: dict[str, list[int]] = {}
    for run, number in zip(found["run_id"].to_pylist(), found["segment"].to_pylist(), strict=True):
        result.setdefault(run, []).append(number)
    return result


def test_runs_stand_beside_each_other(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    write_run(tmp_path / "out", "two", 3)
    for name in NAMES:
        assert visible(tmp_path / "out", name) == {"one": [1, 2], "two": [3]}
    assert [run["run_id"] for run in runs(str(tmp_path / "out"))] == ["one", "two"]
    assert not (tmp_path / "out" / "_staging").exists()


def test_the_record_of_a_run_tells_its_files(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    (record,) = runs(str(tmp_path / "out"))
    assert record["rows"] == {"batches": 2, "segments": 2}
    assert record["tables_version"] == tables.VERSION
    for file in record["files"]:
        path = tmp_path / "out" / file["path"]
        assert path.stat().st_size == file["size"]
        assert parquet.read_metadata(path).num_rows == file["rows"]
    on_disk = {str(p.relative_to(tmp_path / "out")) for p in tmp_path.rglob("*.parquet")}
    assert on_disk == {file["path"] for file in record["files"]}


def test_files_say_of_which_version_they_are_and_what_their_columns_mean(tmp_path):
    write_run(tmp_path / "out", "one", 1)
    for name in NAMES:
        (path,) = (tmp_path / "out" / name).rglob("*.parquet")
        schema = parquet.read_schema(path)
        assert schema.metadata[tables.VERSION_KEY] == f"{name}/{tables.VERSION}".encode()
        assert schema.equals(tables.schema(name), check_metadata=False)
        told = schema.field("segment").metadata[b"description"]
        assert told == b"base offset of the segment"


def test_a_table_with_no_rows_is_there_all_the_same(tmp_path):
    write_run(tmp_path / "out", "one")
    for name in NAMES:
        (path,) = (tmp_path / "out" / name).rglob("*.parquet")
        assert parquet.read_schema(path).names == tables.schema(name).names


def test_a_run_of_the_same_id_is_replaced(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    write_run(tmp_path / "out", "two", 5)
    write_run(tmp_path / "out", "one", 3, names=("batches",))
    assert visible(tmp_path / "out", "batches") == {"one": [3], "two": [5]}
    assert visible(tmp_path / "out", "segments") == {"two": [5]}


def test_what_is_given_up_leaves_nothing_and_what_was_there_stays(tmp_path):
    write_run(tmp_path / "out", "one", 1)
    run = begin(str(tmp_path / "out"), "one")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 2))
    run.abandon()
    assert visible(tmp_path / "out", "batches") == {"one": [1]}
    assert not (tmp_path / "out" / "_staging").exists()


@pytest.mark.parametrize("run_id", ["", "a/b", "..", "-x", "x y", "run\n"])
def test_a_run_id_is_a_plain_name(tmp_path, run_id):
    with pytest.raises(UsageError, match="--run-id"):
        begin(str(tmp_path / "out"), run_id)


def test_an_output_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RefusedError, match="something else"):
        begin(str(tmp_path), "one")
    with pytest.raises(RefusedError, match="is a file"):
        begin(str(tmp_path / "notes.txt"), "one")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_tables_of_another_version_are_not_mixed(tmp_path, monkeypatch):
    write_run(tmp_path / "out", "one", 1)
    monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
    with pytest.raises(RefusedError, match=r"version 2 .run one.*version 3"):
        begin(str(tmp_path / "out"), "two")


def test_an_output_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableError):
        begin(str(tmp_path / "file" / "out"), "one")


class Counted:
    """A file system that counts what changes it, and does something instead of the last one."""

    changes = frozenset({"create_dir", "delete_dir", "delete_file", "move", "open_output_stream"})

    def __init__(self, found, last: int, instead, *, for_good: bool = False) -> None:
        self._found, self._last, self._instead = found, last, instead
        self._for_good = for_good
        self.count = 0

    def __getattr__(self, name):
        method = getattr(self._found, name)
        if name not in self.changes:
            return method

        def counted(*arguments, **options):
            self.count += 1
            if self.count == self._last or (self._for_good and self.count > self._last):
                self._instead()
            return method(*arguments, **options)

        return counted


def counting(monkeypatch, last: int, instead, **options) -> Counted:
    place = Counted(pa.fs.LocalFileSystem(), last, instead, **options)
    monkeypatch.setattr(storage, "filesystem", lambda url: (place, url.rstrip("/")))
    return place


def all_there(output: Path) -> dict[str, dict[str, list[int]]]:
    return {name: visible(output, name) for name in tables.NAMES if visible(output, name)}


BEFORE = {"batches": {"one": [1]}, "segments": {"one": [1]}, "gaps": {"one": [1]}}
AFTER = {"batches": {"one": [2]}, "segments": {"one": [2]}}


def replace_run(output: Path) -> None:
    write_run(output, "one", 2)


@pytest.fixture
def output(tmp_path) -> Path:
    run = begin(str(tmp_path / "out"), "one")
    for name in BEFORE:
        with run.staging.writer(name) as writer:
            schema = tables.schema(name)
            column = "segment" if "segment" in schema.names else "first_offset"
            writer.write(pa.RecordBatch.from_pylist([{column: 1}], schema))
        run.add(writer.parts)
    run.commit(tuple(BEFORE), {"inputs": []})
    return tmp_path / "out"


def told(output: Path) -> dict[str, dict[str, list[int]]]:
    """Return what is visible, by the column that tells old from new."""
    found = {}
    for name in ("batches", "segments"):
        if seen := visible(output, name):
            found[name] = seen
    if (output / "gaps").exists() and list((output / "gaps").rglob("*.parquet")):
        found["gaps"] = {"one": [1]}
    return found


def killed(number: int, work) -> bool:
    """Do `work` in a process that ends at a change; whether it came to that."""
    child = os.fork()
    if not child:
        with pytest.MonkeyPatch.context() as patch:
            counting(patch, number, lambda: os._exit(9))
            work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_killed_at_any_change_the_next_run_sets_it_right(output, monkeypatch, tmp_path):
    steps = counting(monkeypatch, -1, None)
    trial = tmp_path / "trial"
    shutil.copytree(output, trial)
    replace_run(trial)
    assert told(trial) == AFTER
    assert steps.count > 15
    monkeypatch.undo()
    for number in range(1, steps.count + 1):
        home = tmp_path / f"killed-{number}"
        shutil.copytree(output, home)
        assert killed(number, lambda home=home: replace_run(home)), number
        complete = {run["run_id"] for run in runs(str(home))}
        if complete:
            assert told(home) in (BEFORE, AFTER), number
        if number % 2:
            clean(str(home))
            assert not staged(str(home))
            assert told(home) in (BEFORE, AFTER), number
        begin(str(home), "one").abandon()
        assert told(home) in (BEFORE, AFTER), number
        assert {run["run_id"] for run in runs(str(home))} == {"one"}, number
        assert not (home / "_staging").exists()
        write_run(home, "one", 2)
        assert told(home) == AFTER, number


def test_killed_again_while_that_is_done_nothing_is_lost(output, monkeypatch, tmp_path):
    steps = counting(monkeypatch, -1, None)
    trial = tmp_path / "trial"
    shutil.copytree(output, trial)
    replace_run(trial)
    monkeypatch.undo()
    twice = 0
    for number in range(steps.count - 9, steps.count + 1):
        once = tmp_path / f"once-{number}"
        shutil.copytree(output, once)
        assert killed(number, lambda once=once: replace_run(once))
        again = 1
        while True:
            home = tmp_path / f"killed-{number}-{again}"
            shutil.copytree(once, home)
            if not killed(again, lambda home=home: begin(str(home), "one")):
                break
            begin(str(home), "one").abandon()
            assert told(home) in (BEFORE, AFTER), (number, again)
            assert {run["run_id"] for run in runs(str(home))} == {"one"}, (number, again)
            again += 1
            twice += 1
    assert twice > 30


def test_a_failure_at_any_change_leaves_what_was_there(output, monkeypatch, tmp_path):
    def fail():
        raise OSError(28, "No space left on device")

    number, failed = 0, 0
    while True:
        number += 1
        home = tmp_path / f"failed-{number}"
        shutil.copytree(output, home)
        with pytest.MonkeyPatch.context() as patch:
            place = counting(patch, number, fail)
            try:
                replace_run(home)
            except (UnwritableError, OSError) as error:
                assert "No space left" in str(error)
                failed += 1
            if place.count < number:
                break
        assert told(home) in (BEFORE, AFTER), number
        (record,) = runs(str(home))
        assert set(record["rows"]) == set(told(home)), number
    assert failed > 15


def test_where_putting_back_fails_too_the_next_run_does_it(output, monkeypatch, tmp_path):
    def fail():
        raise OSError(28, "No space left on device")

    number = 0
    while True:
        number += 1
        home = tmp_path / f"failed-{number}"
        shutil.copytree(output, home)
        with pytest.MonkeyPatch.context() as patch:
            place = counting(patch, number, fail, for_good=True)
            try:
                replace_run(home)
            except UnwritableError as error:
                assert "No space left" in str(error)
            if place.count < number:
                break
        begin(str(home), "one").abandon()
        assert told(home) in (BEFORE, AFTER), number
        (record,) = runs(str(home))
        assert set(record["rows"]) == set(told(home)), number
    assert number > 15


def test_a_task_that_is_still_at_it_does_not_bring_a_run_back(tmp_path):
    run = begin(str(tmp_path / "out"), "one")
    with pytest.raises(UnwritableError), run.staging.writer("batches") as writer:
        writer.write(rows("batches", 1))
        run.abandon()
    assert not (tmp_path / "out" / "_staging").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run_id": "x"}'])
def test_what_is_no_record_of_a_run_is_refused(tmp_path, text):
    write_run(tmp_path / "out", "one", 1)
    (tmp_path / "out" / "_runs" / "two.json").write_text(text)
    with pytest.raises(RefusedError, match=r"two.json is no record"):
        begin(str(tmp_path / "out"), "three")


def test_what_a_library_raises_behind_a_url_is_told_by_the_place(monkeypatch):
    class NoCredentialsError(Exception):
        pass

    def fail():
        raise NoCredentialsError("Unable to locate\ncredentials")

    place = Counted(pa.fs.LocalFileSystem(), 1, fail)
    monkeypatch.setattr(storage, "filesystem", lambda _: (place, "/nowhere/tables"))
    with pytest.raises(UnwritableError, match=r"memory://x/tables: Unable to locate credentials"):
        begin("memory://x/tables", "one")


def left_by_a_kill(output: Path, run_id: str) -> None:
    """Begin a run in a process that ends in the middle of it."""

    def work() -> None:
        run = begin(str(output), run_id)
        with run.staging.writer("batches") as writer:
            writer.write(rows("batches", 7))
        os._exit(9)

    assert killed(-1, work)


def test_a_killed_run_of_another_id_disturbs_nothing(output):
    left_by_a_kill(output, "two")
    # A reader sees nothing of it, and a run of another id works beside it.
    assert visible(output, "batches") == {"one": [1]}
    write_run(output, "three", 3)
    assert visible(output, "batches") == {"one": [1], "three": [3]}
    begin(str(output), "two").abandon()
    assert json.loads((output / "_runs" / "one.json").read_text())["run_id"] == "one"


def test_a_second_run_of_a_living_id_is_refused_and_harms_nothing(output):
    run = begin(str(output), "two")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)
    for _ in range(2):
        with pytest.raises(RefusedError, match=rf"process {os.getpid()} on .* at work on run two"):
            begin(str(output), "two")
    assert clean(str(output)) == []
    run.commit(("batches",), {"inputs": []})
    assert visible(output, "batches") == {"one": [1], "two": [7]}
    write_run(output, "two", 8, names=("batches",))
    assert visible(output, "batches") == {"one": [1], "two": [8]}


def test_of_two_runs_of_one_id_that_begin_at_once_one_at_most_goes_on(tmp_path):
    for number in range(20):
        output = str(tmp_path / f"{number}")
        with ThreadPoolExecutor(2) as pool:
            begun = [pool.submit(begin, output, "one") for _ in range(2)]
        done = [one.result() for one in begun if not one.exception()]
        assert len(done) <= 1
        for one in begun:
            assert isinstance(one.exception(), RefusedError | None)
        for run in done:
            run.abandon()
        begin(output, "one").abandon()


def test_what_a_killed_run_left_is_found_and_removed(output):
    left_by_a_kill(output, "two")
    living = begin(str(output), "three")
    found = {one.staging.run_id: one for one in staged(str(output))}
    assert {run_id: one.lives for run_id, one in found.items()} == {"two": False, "three": True}
    assert found["two"].owner.pid != os.getpid()
    assert [one.staging.run_id for one in clean(str(output))] == ["two"]
    assert [one.staging.run_id for one in staged(str(output))] == ["three"]
    living.abandon()
    assert not (output / "_staging").exists()
    assert visible(output, "batches") == {"one": [1]}


def test_a_run_that_another_took_for_given_up_does_not_become_visible(output, monkeypatch):
    run = begin(str(output), "two")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)
    with monkeypatch.context() as patch:
        patch.setattr(Owner, "lives", lambda _: False)
        assert len(clean(str(output))) == 1
    with pytest.raises(UnwritableError), run.staging.writer("segments") as late:
        late.write(rows("segments", 7))
    with pytest.raises((RefusedError, UnwritableError)):
        run.commit(("batches",), {"inputs": []})
    assert visible(output, "batches") == {"one": [1]}
    assert [record["run_id"] for record in runs(str(output))] == ["one"]
    assert not (output / "_staging").exists()


def test_whether_an_owner_lives_is_told_by_its_process_or_by_its_silence():
    mine = Owner.here()
    assert mine.lives()
    assert Owner.parse(mine.text()).pid == os.getpid()
    ownership.release(mine.token)
    assert not mine.lives()
    parent = psutil.Process(os.getppid())
    other = replace(mine, pid=parent.pid, process_started=parent.create_time())
    assert other.lives()
    assert not replace(other, process_started=parent.create_time() - 60).lives()
    elsewhere = replace(mine, machine="another", pid=1)
    assert elsewhere.lives()
    assert not replace(elsewhere, seen=mine.seen - 2 * ownership.SILENT_SECONDS).lives()
    for text in ("", "{}", "[]", "null", mine.text().replace(str(mine.pid), '"x"')):
        assert Owner.parse(text) is None


def test_a_heart_beats_until_it_is_stopped(monkeypatch):
    monkeypatch.setattr(ownership, "BEAT_SECONDS", 0.001)
    beats = threading.Semaphore(0)
    heart = ownership.Heart(beats.release)
    assert all(beats.acquire(timeout=60) for _ in range(3))
    heart.stop()
    while beats.acquire(blocking=False):
        pass
    assert not beats.acquire(blocking=False)
