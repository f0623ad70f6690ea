"""Without a path a command takes the current directory, or says what it looked for."""

import shutil

import pytest
import sparse
from verification import small_log_dir

from logtool import cli

PARTITIONS = ("codec-none-0", "tx.mixed-0", "__cluster_metadata-0", "__consumer_offsets-1")
GROUPS = {"checkpoint": ("show", "lint", "rebuild", "set")}
NOT_FOR_A_LOG_DIR = {
    "checkpoint set": "changes one file, which is named",
    "diff": "compares at least two",
    "kafka-dump-log": "takes the command line of Kafka's tool, which names files",
    "may-delete": "is about one directory, which is named",
    "metadata": "reads the metadata log, which no other partition dir holds",
    "remote": "reads the partitions of __remote_log_metadata, which no other log dir holds",
    "undelete": "takes what waits for its deletion, which is nothing here",
    "undo": "takes an undo directory, which lies outside of every log dir",
    "watermark simulate": "plays a scenario",
    "convert": "takes segments or a partition dir",
    "explain": "explains a code",
    "schema": "describes a table",
    "completion": "prints completions",
    "man": "prints pages",
    "generate": "writes into the source",
    "scan": "needs Spark; takes its paths as the others do, by the same function",
}
MORE = {
    "lookup": ("--offset", "0"),
    "report": ("--output", "../saved.md"),
    "salvage": ("--output", "../saved"),
    "scrub": ("--state", "../state.db"),
    "case": ("--output", "../case.tar.zst"),
    "trim": ("--free", "1K"),
}
"""Options without which a command does nothing."""
PARTITION = {"groups": "__consumer_offsets-1", "quorum": "__cluster_metadata-0"}
"""The partition dirs that say something to a command, where not any does."""
COMMANDS = [
    name
    for command in cli.COMMANDS
    for name in ([f"{command} {one}" for one in GROUPS[command]] if command in GROUPS
                 else [command])
    if name not in NOT_FOR_A_LOG_DIR
]  # fmt: skip


@pytest.fixture(scope="module")
def home(scenario, tmp_path_factory):
    """Return a log dir for all tests: none of them changes it."""
    target = tmp_path_factory.mktemp("current") / "data"
    return small_log_dir(scenario("4.3.1/killed"), target, *PARTITIONS)


def subjects(result):
    """Return the status, and what each object is about."""
    about = ("type", "path", "topic", "partition", "segment", "code", "partitions", "segments")
    return result.status, [[one.get(key) for key in about] for one in result.objects]


PLACES = [
    (name, place) for name in COMMANDS for place in ("log dir", "partition dir")
    # They compare log dirs.
    if (name, place) not in (("dirs", "partition dir"), ("cluster", "partition dir"))
]  # fmt: skip


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_the_current_directory_is_taken(run, home, tmp_path, monkeypatch, name, place):
    directory = home if place == "log dir" else home / PARTITION.get(name, "codec-none-0")
    monkeypatch.chdir(directory)
    words = [*name.split(), *MORE.get(name, ())]
    target = tmp_path / ("saved.tar.zst" if name == "case" else "saved.md")
    if name in ("salvage", "scrub", "report", "case"):
        words[-1] = str(target)
    more: tuple[object, ...] = ()
    if name == "lookup" and place == "log dir":
        more = ("--topic", "codec-none", "--partition", 0)
    given = run(*words, "-f", "ndjson", *more, directory)
    target.unlink() if name in ("scrub", "case") else None
    shutil.rmtree(target, ignore_errors=True)
    assumed = run(*words, "-f", "ndjson", *more)
    assert given.status in (0, 1)
    assert subjects(assumed) == subjects(given)
    assert assumed.objects[-1]["partitions"] or name == "checkpoint rebuild"


@pytest.mark.parametrize("name", COMMANDS)
def test_elsewhere_it_is_said_what_was_looked_for(run, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    words = [*name.split(), *MORE.get(name, ())]
    result = run(*words)
    assert (result.status, result.stdout) == (2, "")
    assert str(tmp_path) in result.stderr
    assert "empty" in result.stderr


def test_above_log_dirs_they_are_named(run, home, monkeypatch):
    monkeypatch.chdir(home.parent)
    result = run("verify")
    assert result.status == 2
    assert "1" in result.stderr.replace(str(home), "")
    assert str(home) in result.stderr


def test_a_directory_that_is_gone_is_reported(run, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = run("verify")
    assert (result.status, "current directory" in result.stderr) == (2, True)


@pytest.mark.parametrize("place", ["log dir", "partition dir"])
@pytest.mark.parametrize("words", [["recover", "--from-checkpoint"], ["dump-index"]], ids=" ".join)
def test_the_two_lines_as_they_are_written(spawn, home, words, place):
    directory = home if place == "log dir" else home / "codec-none-0"
    result = spawn(*words, cwd=directory)
    given = spawn(*words, directory)
    assert result.status == given.status == (1 if words[0] == "recover" else 0)
    assert result.stdout == given.stdout
    assert result.stderr == given.stderr
    assert result.stdout or "nothing was written" in result.stderr


def test_recover_in_the_current_directory_is_done_and_undone(run, home, monkeypatch, tmp_path):
    monkeypatch.chdir(sparse.copytree(home, tmp_path / "copy"))
    undo = tmp_path / "undo"
    assert run("recover", "--from-checkpoint", "--apply", "--undo-dir", undo).status == 0
    assert run("recover", "--from-checkpoint").status == 0
    assert run("undo", "--apply", undo).status == 0
    assert run("recover", "--from-checkpoint").status == 1


def test_an_empty_list_of_paths_is_not_the_current_directory(run, home, monkeypatch, tmp_path):
    monkeypatch.chdir(home)
    (tmp_path / "list").write_text("")
    result = run("verify", "--files-from", tmp_path / "list")
    assert (result.status, str(tmp_path / "list") in result.stderr) == (2, True)


LOOKUPS: dict[str, tuple[list[object], int, str]] = {
    "no name": ([], 2, str(len(PARTITIONS))),
    "a topic of one partition": (["--topic", "codec-none"], 0, ""),
    "topic and partition": (["--topic", "tx.mixed", "--partition", 0], 0, ""),
    "no such partition": (["--topic", "tx.mixed", "--partition", 7], 4, "--partition 7"),
    "no such topic": (["--topic", "orders"], 4, "--topic orders"),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_lookup_finds_a_partition_of_a_log_dir(run, home, name):
    options, status, named = LOOKUPS[name]
    result = run("lookup", "--offset", 5, *options, home)
    said = result.stderr.replace(str(home), "")
    assert (result.status, named in said) == (status, True), said
    if not status:
        topic = options[1]
        assert result.stdout == run("lookup", "--offset", 5, home / f"{topic}-0").stdout


def test_lookup_takes_no_topic_with_a_partition_dir(run, home):
    result = run("lookup", "--offset", 5, "--topic", "tx.mixed", home / "tx.mixed-0")
    assert (result.status, "--topic" in result.stderr) == (2, True)
