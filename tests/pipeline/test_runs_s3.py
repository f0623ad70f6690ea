"""Runs in a bucket: few requests, whole or not at all, and what killed ones left is removed."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3fs
from pipeline.test_runs import NAMES, another_machine, rows, write_run
from pyarrow import parquet
from s3_server import requests, serving, settings

from logtool.errors import RefusedError, UnwritableError
from logtool.spark.scan import manifest, runs
from logtool.spark.scan.runs import begin, clean, staged
from logtool.spark.scan.store import filesystem

OUTPUT = "s3://bucket/some/tables"
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def address(tmp_path) -> Iterator[str]:
    with serving() as found:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in settings(found, tmp_path).items():
                patch.setenv(name, value)
            forget()
            s3fs.S3FileSystem().mkdir("bucket")
            yield found
        forget()


def forget() -> None:
    """Let nothing be known of a server that there was before, on the same port or another."""
    filesystem.__globals__["_behind"].cache_clear()
    s3fs.S3FileSystem.clear_instance_cache()


def read(path: str) -> list[int]:
    found, name = filesystem(path)
    with found.open_input_file(name) as file:
        return parquet.read_table(file)["segment"].to_pylist()


def visible(table: str) -> dict[str, list[int]]:
    """Return the segments in each run of a table, as any reader finds them by the manifests."""
    return {
        run.run_id: [n for path in manifest.files(OUTPUT, table, run.run_id) for n in read(path)]
        for run in manifest.complete(OUTPUT)
    }


def nothing_is_left_over() -> bool:
    objects = set(s3fs.S3FileSystem(use_listings_cache=False).find("bucket/some/tables"))
    named = {part.path for run in manifest.complete(OUTPUT) for part in run.parts}
    data = {name.partition("tables/")[2] for name in objects if "/_data/" in name}
    return data == named and not any("/_owners/" in name for name in objects)


def write_files(run_id: str, count: int) -> None:
    run = begin(OUTPUT, run_id)
    for number in range(count):
        with run.staging.writer("segments") as writer:
            writer.write(rows("segments", number))
        run.add(writer.parts)
    run.commit(("segments",), {})


@pytest.mark.long
def test_a_file_costs_two_requests_at_most(address):
    costs = []
    for count in (20, 120):
        before = requests(address).total()
        write_files(f"run-{count}", count)
        costs.append(requests(address).total() - before)
    assert (costs[1] - costs[0]) / 100 <= 2, costs
    assert costs[0] < 2 * 20 + 40, "what a run costs without its files"
    assert sorted(visible("segments")["run-120"]) == list(range(120))


def test_runs_are_replaced_and_given_up_as_on_a_disk(address):
    write_run(OUTPUT, "one", 1, 2)
    write_run(OUTPUT, "two", 5)
    write_run(OUTPUT, "one", 3, names=("batches",))
    assert visible("batches") == {"one": [3], "two": [5]}
    assert visible("segments") == {"one": [], "two": [5]}
    run = begin(OUTPUT, "one")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.abandon()
    assert visible("batches") == {"one": [3], "two": [5]}
    runs.remove(OUTPUT, "two")
    assert visible("batches") == {"one": [3]}
    assert nothing_is_left_over()


def test_a_second_run_of_a_living_id_is_refused(address):
    run = begin(OUTPUT, "two")
    with pytest.raises(RefusedError, match=rf"process {os.getpid()} on .* run two"):
        begin(OUTPUT, "two")
    assert clean(OUTPUT) == []
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)
    run.commit(("batches",), {})
    assert visible("batches") == {"two": [7]}
    assert nothing_is_left_over()


def child(code: str) -> subprocess.Popen[str]:
    """Start a process that has the helpers of this test."""
    head = f"import os, sys\nsys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
    head += "from pipeline.test_runs import *\nfrom pipeline.test_runs_s3 import *\n"
    return subprocess.Popen(
        [sys.executable, "-c", head + textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )


KILLED_AT = {
    "begin": "begin(OUTPUT, 'one'); os._exit(9)",
    "a file": "runs.ScanRun._drop_the_rest = lambda *_: os._exit(9); write_run(OUTPUT, 'one', 2)",
    "its end": "runs.ownership.release = lambda *_: os._exit(9)\nwrite_run(OUTPUT, 'one', 2)",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("moment", KILLED_AT)
def test_what_a_killed_run_left_is_found_and_removed(address, moment):
    write_run(OUTPUT, "one", 1)
    with child(KILLED_AT[moment]) as job:
        assert job.wait(100) == 9
    after = {"one": [2]} if moment == "its end" else {"one": [1]}
    assert visible("batches") == visible("segments") == after
    assert [(one.staging.run_id, one.lives) for one in staged(OUTPUT)] == [("one", False)]
    assert [one.staging.run_id for one in clean(OUTPUT)] == ["one"]
    assert visible("batches") == visible("segments") == after
    assert nothing_is_left_over()
    assert not staged(OUTPUT)


def test_a_run_that_was_given_up_elsewhere_never_becomes_complete(address, monkeypatch):
    run = begin(OUTPUT, "two")
    with run.staging.writer("batches") as writer:
        writer.write(rows("batches", 7))
    run.add(writer.parts)

    def late(*_):
        monkeypatch.delattr("logtool.spark.scan.runs._owner_of")
        with monkeypatch.context() as patch:
            another_machine(patch)
            assert len(clean(OUTPUT)) == 1
        return run.heart  # anything that is true: the owner was there when it was looked for

    monkeypatch.setattr("logtool.spark.scan.runs._owner_of", late)
    with pytest.raises(RefusedError, match="run two"):
        run.commit(("batches",), {})
    assert manifest.complete(OUTPUT) == []
    assert nothing_is_left_over()


@pytest.mark.long
def test_a_reader_at_any_moment_finds_whole_runs_only(address):
    """The reader polls until the writer has ended; each run holds its number in every row."""
    code = """
        for number in range(1, 9):
            write_run(OUTPUT, "one", *[number] * number)
            write_run(OUTPUT, f"run-{number}", *[number] * number)
    """
    wholes = 0
    with child(code) as writer:
        ended = False
        while not ended:
            ended = writer.poll() is not None
            for run in manifest.complete(OUTPUT):
                try:
                    found = [read(f"{OUTPUT}/{part.path}") for part in run.parts]
                except FileNotFoundError:
                    now = {one.run_id: one.token for one in manifest.complete(OUTPUT)}
                    assert run.run_id == "one"
                    assert now["one"] != run.token, "only a run that was replaced loses files"
                    continue
                (number,) = set(found[0])
                assert found == [[number] * number] * len(NAMES)
                wholes += 1
    assert writer.returncode == 0
    assert wholes > 8
    assert nothing_is_left_over()


def test_a_bucket_that_is_not_there_is_one_line(address):
    with pytest.raises((UnwritableError, RefusedError)) as caught:
        begin("s3://nowhere/tables", "one")
    assert re.fullmatch(r"s3://nowhere/tables[^\n]*bucket[^\n]*", str(caught.value))
