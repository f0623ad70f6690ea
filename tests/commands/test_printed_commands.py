"""Every command that any output proposes is pasted into bash, with hostile names of all kinds."""

import json
import os
import re
import shlex
import shutil
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_segments
from changes import make_log_dir
from damage import damage_file, flip, overwrite, remove_file
from group_records import OffsetsLog, data_log

from logtool.commands.views.dump_export import FORMATS

NAMES = [
    '-rf $(touch evil) `touch evil` "q" it\'s & touch evil; ~ * !ls',
    "=ls\n\t\x1b[31m\udcff'$(touch evil)\\",
]
TOOLS = ("logtool", "kcat", "kafka-transactions.sh", "kafka-consumer-groups.sh", "ls",
         "kafka-console-producer.sh", "kafka-leader-election.sh")  # fmt: skip
_COMMAND = re.compile(
    rf"(?:^|: |\bwith )((?:printf '|(?:{'|'.join(map(re.escape, TOOLS))}) (?=[-a-z])).*)$"
)
_SUBCOMMAND = re.compile(r"logtool (verify|dump|dump-index|explain|plan|recover|undo|salvage|stat"
                         r"|metadata|checkpoint) ")  # fmt: skip


@pytest.fixture
def paste(tmp_path):
    """Return a function that runs a command in bash, and returns the words of its last program."""
    stub, folder = tmp_path / "stub", tmp_path / "bin"
    folder.mkdir()
    stub.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {shlex.quote(str(tmp_path / 'words'))}\n")
    stub.chmod(0o755)
    for tool in TOOLS:
        (folder / tool).symlink_to(stub)
    path = f"{folder}:{os.environ['PATH']}"

    def pasted(command):
        remove_words = tmp_path / "words"
        remove_words.unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path},
            capture_output=True,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b""), command
        assert not (tmp_path / "evil").exists(), command
        return os.fsdecode(remove_words.read_bytes()).split("\0")[:-1]

    return pasted


@pytest.fixture(params=NAMES, ids=ascii)
def name(request):
    return request.param


@pytest.fixture
def home(name, scenario, tmp_path, monkeypatch):
    """Return the relative name of a damaged log dir with a topic, both with a hostile name."""
    log_dir = make_log_dir(scenario("4.3.1/killed"), tmp_path / name)
    remove_file(log_dir / "recovery-point-offset-checkpoint")
    shutil.copytree(log_dir, tmp_path / "copies" / name)
    damage_file(log_dir / "small-segments-0" / f"{42:020d}.log", overwrite, 700, b"\xff\xff")
    damage_file(log_dir / "codec-none-0" / f"{0:020d}.index", flip, 5)
    damage_file(next((log_dir / "codec-none-0").glob("*.snapshot")), flip, 6)
    for place in (log_dir, tmp_path / "copies" / name):
        (place / "small-segments-0").rename(place / f"{name}-0")
        (place / f"{name}-0" / "partition.metadata").unlink(missing_ok=True)
    shutil.copytree(scenario("4.3.1/killed") / "tx.mixed-0", log_dir / f"{name}-1")
    monkeypatch.chdir(tmp_path)
    return f"./{name}"


def texts(value):
    """Yield every text in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts(inner)


def proposed(*runs):
    """Return the commands in the objects and lines of some runs of logtool."""
    lines = []
    for run in runs:
        assert run.status != 70
        lines += run.stderr.splitlines()
        for line in run.lines:
            try:
                lines += texts(json.loads(line))
            except ValueError:
                lines.append(line.strip())
    found = [match[1] for line in lines if (match := _COMMAND.search(line))]
    return {one for one in found if not one.startswith("logtool ") or _SUBCOMMAND.match(one)}


def check(commands, paste, name, at_least=1):
    """Paste every command; each of its words that is a path leads to a file that exists."""
    named = 0
    assert commands
    for command in commands:
        assert command.isprintable()
        words = paste(command)
        named += any(name in word for word in words)
        for word in words:
            assert os.path.lexists(word) or not word.startswith(("./", "/")), command
    assert named >= at_least


@pytest.mark.parametrize("words", [
    ("verify", "{}"), ("verify", "--level", "records", "{}/{name}-0"), ("doctor", "{}"),
    ("recover", "--full", "--strategy", "supplement", "--trust-log", "{}"),
    ("diff", "{}", "copies/{name}"),
    ("txns", "{}/{name}-1"), ("sanity", "{}"),
], ids=lambda words: words[0])  # fmt: skip
def test_what_commands_that_read_propose_can_be_pasted(run, home, name, paste, words):
    given = [word.format(home, name=name) for word in words]
    runs = [run(given[0], "-f", "ndjson", *given[1:]), run(*given)]
    check(proposed(*runs), paste, name)


def test_what_salvage_and_the_producers_propose_can_be_pasted(run, name, paste, tmp_path):
    home, output = tmp_path / name, tmp_path / f"saved {name}"
    tiny_segments.write(home / f"{name}-0", [0])
    runs = [run("salvage", "--records", "kcat", "-f", "ndjson", "--output", output, home)]
    for form in FORMATS:
        runs.append(run("dump", "--records", "-f", form, home / f"{name}-0"))
    commands = proposed(*runs)
    assert sorted(one.split()[0] for one in commands) == [
        "kafka-console-producer.sh",
        *["kcat"] * 2,
    ]
    check(commands, paste, name, at_least=3)


def test_what_changes_propose_can_be_pasted(run, home, name, paste):
    refused = run("recover", "--apply", home)
    done = run("recover", "--apply", f"--accept-loss={name}-0", home)
    assert done.status in (0, 1)
    assert refused.status == 5
    check(proposed(done), paste, name)


def test_what_groups_proposes_can_be_pasted(run, name, paste, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = name.encode("utf-8", "replace").decode()
    log_dir, log = tmp_path / "log", OffsetsLog()
    log_dir.mkdir()
    log.commit(text, "orders", 0, 7)
    data_log(log_dir, "orders-0", 9)
    log.write(log_dir)
    words = ("groups", "--restore-plan", "--bootstrap-server", text)
    (restore,) = run(*words, "-f", "ndjson", "log").of_type("restore")
    given = paste(restore["command"])
    assert [text in word for word in given].count(True) == 2
    check(proposed(run(*words, "log")), paste, text)


def test_the_election_that_watermark_proposes_can_be_pasted(run, copy_of, name, paste):
    """The metadata log of the nodes does not know a topic of that name: only the text counts."""
    from logtool.commands.views.watermark_plan import plan_lines

    choices = [
        SimpleNamespace(
            replica=SimpleNamespace(node=node),
            standing=SimpleNamespace(election="unclean"),
            acknowledged_lost=5,
        )
        for node in (1, 2)
    ]
    group: Any = SimpleNamespace(
        topic=name, partition=0, keep_stopped=(2,), best_leader=1, choices=choices,
        loses_more=lambda one: one.replica.node == 2,
    )  # fmt: skip
    (command,) = [m[1] for m in map(_COMMAND.search, map(str.strip, plan_lines([group], []))) if m]
    assert name in [word.removeprefix("--topic=") for word in paste(command)]
