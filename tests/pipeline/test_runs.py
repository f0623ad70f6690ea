"""Runs of the pipeline in their output: there as a whole or not at all, after any failure."""

import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from pipeline.places import logtool
from pyarrow import dataset, parquet

from logtool.errors import RefusedError, UnwritableError, UsageError
from logtool.schemas import arrow
from logtool.spark.scan import manifest, ownership, store
from logtool.spark.scan.ownership import Owner
from logtool.spark.scan.runs import begin, clean, remove, remove_incomplete, staged

NAMES = ("batches", "segments")

# The child only does what is tested here, and no thread of pyarrow's is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def rows(table: str, *numbers: int):
    return pa.RecordBatch.from_pylist([{"segment": n} for n in numbers], arrow.schema(table))


def write_run(output, run_id: str, *numbers: int, names=NAMES, **about) -> bool:
    """Write a run whose tables have these segments in them; return whether readers find it."""
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
    return run.commit(names, {"inputs": []} | about)


def visible(output: Path, table: str) -> dict[str, list[int]]:
    """Return the segments in each run of a table, as any reader finds them by the manifests."""
    result = {}
    for run in manifest.complete(str(output)):
        if files := manifest.files(str(output), table, run.run_id):
            result[run.run_id] = sorted(dataset.dataset(files).to_table()["segment"].to_pylist())
    return result


def on_disk(output: Path) -> set[str]:
    """Return the names of all files of tables below an output."""
    return {str(path.relative_to(output)) for path in output.rglob("*.parquet")}


def nothing_is_left_over(output: Path) -> bool:
    """Return whether there are only complete runs, and only files that they name."""
    named = {part.path for run in manifest.complete(str(output)) for part in run.parts}
    return not list((output / "_owners").glob("[!.]*")) and on_disk(output) == named


def test_runs_stand_next_to_each_other(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    write_run(tmp_path / "out", "two", 3)
    for name in NAMES:
        assert visible(tmp_path / "out", name) == {"one": [1, 2], "two": [3]}
    assert [run.run_id for run in manifest.complete(str(tmp_path / "out"))] == ["one", "two"]
    assert nothing_is_left_over(tmp_path / "out")


def test_the_manifest_of_a_run_names_its_files(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    manifest_data = json.loads((tmp_path / "out" / "_runs" / "one.1.json").read_text())
    assert manifest_data["rows"] == {"batches": 2, "segments": 2}
    assert manifest_data["tables_version"] == arrow.VERSION
    for file in manifest_data["files"]:
        path = tmp_path / "out" / file["path"]
        assert path.stat().st_size == file["size"]
        assert parquet.read_metadata(path).num_rows == file["rows"]
    assert on_disk(tmp_path / "out") == {file["path"] for file in manifest_data["files"]}
    (run,) = manifest.complete(str(tmp_path / "out"))
    assert manifest.Manifest.parse(run.text().encode()) == run


def test_files_say_of_which_version_they_are_and_what_their_columns_mean(tmp_path):
    write_run(tmp_path / "out", "one", 1)
    for name in NAMES:
        (path,) = manifest.files(str(tmp_path / "out"), name, "one")
        schema = parquet.read_schema(path)
        assert schema.metadata[arrow.VERSION_KEY] == f"{name}/{arrow.VERSION}".encode()
        assert schema.equals(arrow.schema(name), check_metadata=False)
        assert b"base offset" in schema.field("segment").metadata[b"description"]


def test_a_table_with_no_rows_is_there_all_the_same(tmp_path):
    write_run(tmp_path / "out", "one")
    for name in NAMES:
        (path,) = manifest.files(str(tmp_path / "out"), name, "one")
        assert parquet.read_schema(path).names == arrow.schema(name).names


def test_a_run_of_the_same_id_is_replaced(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2)
    write_run(tmp_path / "out", "two", 5)
    write_run(tmp_path / "out", "one", 3, names=("batches",))
    assert visible(tmp_path / "out", "batches") == {"one": [3], "two": [5]}
    assert visible(tmp_path / "out", "segments") == {"two": [5]}
    assert nothing_is_left_over(tmp_path / "out")


LESS = pytest.mark.parametrize("about", [{"complete": False}, {"segments": 0}], ids=str)
WHOLE = {"complete": True, "segments": 1}


@LESS
def test_a_run_that_read_less_does_not_replace_an_older_one(tmp_path, about):
    assert write_run(tmp_path / "out", "one", 1, 2, **WHOLE)
    for number in (3, 4):
        assert not write_run(tmp_path / "out", "one", number, **WHOLE | about)
        assert visible(tmp_path / "out", "batches") == {"one": [1, 2]}
        assert staged(str(tmp_path / "out")) == clean(str(tmp_path / "out")) == []
    left = manifest.incomplete(str(tmp_path / "out"))
    assert [(run.run_id, run.is_whole) for run in left] == [("one", False)] * 2
    assert write_run(tmp_path / "out", "one", 5, **WHOLE)
    assert visible(tmp_path / "out", "batches") == {"one": [5]}
    assert manifest.incomplete(str(tmp_path / "out")) == []
    assert nothing_is_left_over(tmp_path / "out")


def test_incomplete_runs_are_listed_and_cleaned(tmp_path):
    write_run(tmp_path / "out", "one", 1, 2, **WHOLE)
    write_run(tmp_path / "out", "one", 3, complete=False)
    write_run(tmp_path / "out", "two", 4, complete=False)
    found = [("one", "complete", 4), ("two", "incomplete", 2)]
    for option, expected in (
        ("--list", [*found, ("one", "incomplete", 2)]),
        ("--clean", [("one", "removed", 2)]),
        ("--list", found),
    ):
        done = logtool("scan", "--output", tmp_path / "out", option, "--json")
        items = json.loads(done.stdout)["items"]
        assert [(one["run_id"], one["state"], one["rows"]) for one in items] == expected


@LESS
def test_of_incomplete_runs_alone_readers_find_the_first(tmp_path, about):
    assert write_run(tmp_path / "out", "one", 1, **about)
    assert not write_run(tmp_path / "out", "one", 2, **about)
    assert visible(tmp_path / "out", "batches") == {"one": [1]}
    (left,) = manifest.incomplete(str(tmp_path / "out"))
    assert remove_incomplete(str(tmp_path / "out")) == [left]
    assert visible(tmp_path / "out", "batches") == {"one": [1]}
    assert nothing_is_left_over(tmp_path / "out")
    assert not write_run(tmp_path / "out", "one", 3, **about)
    remove(str(tmp_path / "out"), "one")
    assert visible(tmp_path / "out", "batches") == {}
    assert nothing_is_left_over(tmp_path / "out")


def test_a_run_that_is_removed_is_gone_with_its_files(tmp_path):
    write_run(tmp_path / "out", "one", 1)
    write_run(tmp_path / "out", "two", 2)
    remove(str(tmp_path / "out"), "one")
    assert visible(tmp_path / "out", "batches") == {"two": [2]}
    assert nothing_is_left_over(tmp_path / "out")
    with pytest.raises(RefusedError, match=r"run one.*\btwo"):
        remove(str(tmp_path / "out"), "one")


def test_what_is_given_up_leaves_nothing_and_what_was_there_stays(tmp_path):
    write_run(tmp_path / "out", "one", 1)
    run = begin(str(tmp_path / "out"), "one")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 2))
    run.abandon()
    assert visible(tmp_path / "out", "batches") == {"one": [1]}
    assert nothing_is_left_over(tmp_path / "out")


@pytest.mark.parametrize("run_id", ["", "a/b", "..", "-x", "x y", "run\n"])
def test_a_run_id_is_a_plain_name(tmp_path, run_id):
    with pytest.raises(UsageError, match="--run-id"):
        begin(str(tmp_path / "out"), run_id)


def test_an_output_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for output in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(RefusedError, match=str(output)):
            begin(str(output), "one")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_tables_of_another_version_are_not_mixed(tmp_path, monkeypatch):
    write_run(tmp_path / "out", "one", 1)
    monkeypatch.setattr(arrow, "VERSION", arrow.VERSION + 1)
    text = rf"version {arrow.VERSION - 1} .run one.*version {arrow.VERSION}"
    with pytest.raises(RefusedError, match=text):
        begin(str(tmp_path / "out"), "two")


def test_an_output_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableError):
        begin(str(tmp_path / "file" / "out"), "one")


class Counted:
    """Counts what changes files, and does something instead of the last one."""

    def __init__(self, last: int, instead, *, for_good: bool = False) -> None:
        self._last, self._instead, self._for_good = last, instead, for_good
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self._last or (self._for_good and self.count > self._last):
            self._instead()


CHANGES = ("mkdir", "hardlink_to", "replace", "unlink", "rmdir", "open")


def counting(patch, last: int, instead, **options) -> Counted:
    """Count every call by which the store of this system changes something."""
    counted = Counted(last, instead, **options)

    def wrapped(name: str):
        method = getattr(Path, name)

        def call(self, *arguments, **named):
            if name != "open" or "xb" in arguments:
                counted()
            return method(self, *arguments, **named)

        return call

    counting_path = type("CountingPath", (type(Path()),), {name: wrapped(name) for name in CHANGES})
    patch.setattr(store, "Path", counting_path)
    return counted


BEFORE = {"batches": {"one": [1]}, "segments": {"one": [1]}, "gaps": {"one": [1]}}
AFTER = {"batches": {"one": [2]}, "segments": {"one": [2]}}


def replace_run(output: Path) -> None:
    write_run(output, "one", 2)


@pytest.fixture
def output(tmp_path) -> Path:
    run = begin(str(tmp_path / "out"), "one")
    for name in BEFORE:
        with run.staging.writer(name) as writer:
            schema = arrow.schema(name)
            column = "segment" if "segment" in schema.names else "first_offset"
            writer.write(pa.RecordBatch.from_pylist([{column: 1}], schema))
        run.add(writer.parts)
    run.commit(tuple(BEFORE), {"inputs": []})
    return tmp_path / "out"


def visible_rows(output: Path) -> dict[str, dict[str, list[int]]]:
    """Return the visible rows, by the column that differs between old and new."""
    found = {name: seen for name in ("batches", "segments") if (seen := visible(output, name))}
    if manifest.files(str(output), "gaps"):
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


def changes_of(work) -> int:
    """Return how many changes there are in all."""
    with pytest.MonkeyPatch.context() as patch:
        steps = counting(patch, -1, None)
        work()
    return steps.count


def test_killed_at_any_change_a_run_is_there_as_a_whole_or_not_at_all(output, tmp_path):
    trial = tmp_path / "trial"
    shutil.copytree(output, trial)
    steps = changes_of(lambda: replace_run(trial))
    assert visible_rows(trial) == AFTER
    assert steps > 15
    seen = []
    for number in range(1, steps + 1):
        home = tmp_path / f"killed-{number}"
        shutil.copytree(output, home)
        assert killed(number, lambda home=home: replace_run(home)), number
        seen.append(visible_rows(home))
        assert seen[-1] in (BEFORE, AFTER), number
        if number % 2:
            clean(str(home))
            assert not staged(str(home))
            assert visible_rows(home) == seen[-1], number
        begin(str(home), "one").abandon()
        assert visible_rows(home) == seen[-1], number
        assert nothing_is_left_over(home), number
        write_run(home, "one", 2)
        assert visible_rows(home) == AFTER, number
        assert nothing_is_left_over(home), number
    assert BEFORE in seen
    assert AFTER in seen


@pytest.mark.long
def test_killed_again_while_that_is_cleaned_nothing_is_lost(output, tmp_path):
    trial = tmp_path / "trial"
    shutil.copytree(output, trial)
    steps = changes_of(lambda: replace_run(trial))
    twice = 0
    for number in range(steps - 9, steps + 1):
        once = tmp_path / f"once-{number}"
        shutil.copytree(output, once)
        assert killed(number, lambda once=once: replace_run(once))
        before, again = visible_rows(once), 1
        while True:
            home = tmp_path / f"killed-{number}-{again}"
            shutil.copytree(once, home)
            if not killed(again, lambda home=home: begin(str(home), "one")):
                break
            assert visible_rows(home) == before, (number, again)
            begin(str(home), "one").abandon()
            assert visible_rows(home) == before, (number, again)
            assert nothing_is_left_over(home), (number, again)
            again += 1
            twice += 1
    assert twice > 30


@pytest.mark.parametrize("for_good", [False, True])
def test_a_failure_at_any_change_leaves_what_was_there(output, tmp_path, for_good):
    def fail():
        raise OSError(28, "No space left on device")

    number, failed = 0, 0
    while True:
        number += 1
        home = tmp_path / f"failed-{number}"
        shutil.copytree(output, home)
        with pytest.MonkeyPatch.context() as patch:
            counted = counting(patch, number, fail, for_good=for_good)
            try:
                replace_run(home)
            except (UnwritableError, OSError) as error:
                assert "No space left" in str(error)
                assert visible_rows(home) in (BEFORE, AFTER), number
                failed += 1
            else:
                assert visible_rows(home) == AFTER, number
            if counted.count < number:
                break
        seen = visible_rows(home)
        begin(str(home), "one").abandon()
        assert visible_rows(home) == seen, number
        assert nothing_is_left_over(home), number
    assert failed > 10


def test_a_task_that_is_still_at_it_does_not_bring_a_run_back(tmp_path):
    run = begin(str(tmp_path / "out"), "one")
    with pytest.raises(UnwritableError), run.staging.writer("batches") as writer:
        writer.write(rows("batches", 1))
        run.abandon()
    assert nothing_is_left_over(tmp_path / "out")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"run_id": "x"}', "[" * 100_000])
@pytest.mark.parametrize("name", ["two.1.json", "two.json"])
def test_what_is_no_manifest_of_a_run_is_refused(tmp_path, name, text):
    write_run(tmp_path / "out", "one", 1)
    (tmp_path / "out" / "_runs" / name).write_text(text)
    with pytest.raises(RefusedError, match=name):
        begin(str(tmp_path / "out"), "three")


def only_file(path: str) -> dict[str, list[dict[str, object]]]:
    return {"files": [{"table": "batches", "path": path, "rows": 1, "size": 1}]}


@pytest.mark.parametrize(
    "change",
    [
        {"token": "../../.."}, {"token": "0123/../x"}, {"run_id": "one"}, {"run_id": "../two"},
        only_file("_data/two.0/../../x.parquet"), only_file("/etc/passwd"),
    ],
)  # fmt: skip
def test_no_manifest_leads_out_of_the_output(tmp_path, change):
    """The files that a manifest names are read, linked and removed."""
    write_run(tmp_path / "out", "two", 1)
    path = tmp_path / "out" / "_runs" / "two.1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    before = on_disk(tmp_path)
    for work in (begin, remove):
        with pytest.raises(RefusedError, match=r"two\.1\.json"):
            work(str(tmp_path / "out"), "two")
    assert on_disk(tmp_path) == before


def test_an_error_of_a_library_behind_a_url_has_the_place(monkeypatch):
    class NoCredentialsError(Exception):
        pass

    def fail():
        raise NoCredentialsError("Unable to locate\ncredentials")

    broken = store.LocalStore("/nowhere/tables")
    monkeypatch.setattr(broken, "entries", lambda _: fail())
    monkeypatch.setattr(store, "store_at", lambda _: broken)
    with pytest.raises(UnwritableError, match=r"^memory://x/tables: Unable"):
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
    # A reader sees nothing of it, and a run of another id works at the same time.
    assert visible(output, "batches") == {"one": [1]}
    write_run(output, "three", 3)
    assert visible(output, "batches") == {"one": [1], "three": [3]}
    begin(str(output), "two").abandon()
    assert nothing_is_left_over(output)


def test_a_second_run_of_a_living_id_is_refused_and_harms_nothing(output):
    run = begin(str(output), "two")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)
    for _ in range(2):
        with pytest.raises(RefusedError, match=rf"process {os.getpid()} on .* run two"):
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
    assert nothing_is_left_over(output)
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
    assert [run.run_id for run in manifest.complete(str(output))] == ["one"]
    assert nothing_is_left_over(output)


def another_machine(patch) -> None:
    """Let this process take every run for one of a machine that has been silent for long."""
    patch.setattr(ownership, "_machine", lambda: "another")
    patch.setattr(ownership, "SILENT_SECONDS", -1000)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("replaces", [False, True])
def test_a_run_that_was_given_up_elsewhere_never_becomes_complete(
    output, monkeypatch, again, replaces
):
    """It has looked for its owner file already when the other process removes everything."""
    run_id = "one" if replaces else "two"
    run = begin(str(output), run_id)
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)
    before = visible_rows(output)

    def late(*_):
        monkeypatch.undo()  # only this one
        with monkeypatch.context() as patch:
            another_machine(patch)
            assert len(clean(str(output))) == 1
            assert not staged(str(output))
        if again:
            write_run(output, run_id, 9)
        return run.heart  # anything that is true: the owner was there when it was looked for

    monkeypatch.setattr("logtool.spark.scan.runs._owner_of", late)
    with pytest.raises(RefusedError, match=f"run {run_id}"):
        run.commit(("batches",), {})
    if again:
        assert visible(output, "batches")[run_id] == [9]
    else:
        assert visible_rows(output) == before
    assert nothing_is_left_over(output)


def test_files_that_no_run_has_are_found_and_removed(output):
    """A task that had not heard that its run is gone wrote them, in an object store."""
    orphan = output / "_data" / "two.0123" / "batches" / "part-x.parquet"
    orphan.parent.mkdir(parents=True)
    orphan.touch()
    living = begin(str(output), "three")
    (left, under_way) = staged(str(output))[::-1]
    assert (left.staging.run_id, left.lives) == ("two", False)
    assert (under_way.staging.run_id, under_way.lives) == ("three", True)
    assert [one.staging.run_id for one in clean(str(output))] == ["two"]
    living.abandon()
    assert nothing_is_left_over(output)


def test_a_reader_at_any_moment_finds_whole_runs_only(tmp_path):
    """The reader polls until the writer has ended; each run holds its number in every row."""
    output = tmp_path / "out"
    code = f"""
import sys
sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[:2]]!r}
from test_runs import write_run
for number in range(1, 16):
    write_run({str(output)!r}, "one", *[number] * number)
    write_run({str(output)!r}, f"run-{{number}}", *[number] * number)
"""
    polls = wholes = 0
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        ended = False
        while not ended:
            ended = writer.poll() is not None
            polls += 1
            for run in manifest.complete(str(output)):
                try:
                    found = [parquet.read_table(output / part.path)["segment"].to_pylist()
                             for part in run.parts]  # fmt: skip
                except FileNotFoundError:
                    now = {one.run_id: one.token for one in manifest.complete(str(output))}
                    assert run.run_id == "one"
                    assert now["one"] != run.token, "only a run that was replaced loses files"
                    continue
                (number,) = set(found[0])
                assert found == [[number] * number] * len(NAMES)
                wholes += 1
    assert writer.returncode == 0
    assert wholes > 16
    assert polls > 1
    assert nothing_is_left_over(output)


def test_an_owner_lives_until_its_process_ends_or_it_is_silent():
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
