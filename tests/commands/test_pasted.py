"""Every command that is printed can be pasted, with any names of directories."""

import os
import subprocess
import sys

import pytest
from changes import make_log_dir
from damage import damage_file, flip, overwrite, remove_file

NAMES = ["-rf-0", "two lines\n'", "$(touch evil)\udcff"]


@pytest.fixture(params=NAMES, ids=ascii)
def home(request, scenario, tmp_path, monkeypatch):
    """Return the relative name of a damaged log dir, in the current directory."""
    log_dir = make_log_dir(scenario("4.3.1/killed"), tmp_path / request.param)
    remove_file(log_dir / "recovery-point-offset-checkpoint")
    damage_file(log_dir / "small-segments-0" / f"{42:020d}.log", overwrite, 700, b"\xff\xff")
    damage_file(log_dir / "codec-none-0" / f"{0:020d}.index", flip, 5)
    damage_file(next((log_dir / "codec-none-0").glob("*.snapshot")), flip, 6)
    (log_dir / "small-segments-0").rename(log_dir / "-rf-0")
    (log_dir / "-rf-0" / "partition.metadata").unlink(missing_ok=True)
    monkeypatch.chdir(tmp_path)
    return f"./{request.param}"


def pasted(command, tmp_path):
    """Run a printed command as a person does; returns its status and what it said of errors."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir(exist_ok=True)
    tool = bin_dir / "logtool"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m logtool "$@"\n')
    tool.chmod(0o755)
    path = f"{bin_dir}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True
    )
    return done.returncode, done.stderr.decode("utf-8", "replace")


def test_what_verify_says_to_run_next_runs(run, home, tmp_path):
    summary = run("verify", "-f", "ndjson", home).objects[-1]
    commands = summary["next"]
    assert len(commands) >= 2
    text = run("verify", home).stdout + run("verify", home).stderr
    for command in commands:
        assert command in text
        status, errors = pasted(command, tmp_path)
        assert status in (0, 1), errors
    assert not (tmp_path / "evil").exists()


def test_what_plan_says_to_save_is_saved(run, home, tmp_path):
    result = run("plan", "-f", "ndjson", home)
    losing = [one for one in result.of_type("partition") if one["lost_batches"]]
    (command,) = [one for one in result.objects[-1]["next"] if "salvage" in one]
    assert command in run("plan", home).stdout + run("plan", home).stderr
    assert pasted(command, tmp_path)[0] == 1
    (saved,) = (tmp_path / "salvaged" / "partitions").iterdir()
    assert [f"{one['topic']}-{one['partition']}" for one in losing] == [saved.name]
    kept = losing[0]["log_end_offset"]
    ends = [one["last_offset"] for one in run("dump", "-f", "ndjson", saved).of_type("batch")]
    assert sum(end >= kept for end in ends) == losing[0]["lost_batches"] > 0


def test_what_plan_says_to_accept_is_accepted(run, home, tmp_path):
    found = run("plan", "-f", "ndjson", home).objects[-1]["next"]
    (command,) = [one for one in found if "--accept-loss" in one]
    assert f": {command}\n" in run("plan", home).stderr
    status, errors = pasted(command, tmp_path)
    assert status == 0, errors
    assert run("recover", home).status == 0


def test_what_recover_says_to_accept_and_to_undo_runs(run, home, tmp_path):
    refused = run("recover", "--apply", home)
    assert refused.status == 5
    (line,) = [x for x in refused.stderr.splitlines() if "--accept-loss" in x
               and x.startswith("logtool:")]  # fmt: skip
    assert line.endswith(" --accept-loss=-rf-0")
    done = run("recover", "--apply", "--accept-loss=-rf-0", home)
    assert done.status == 0
    (line,) = [x for x in done.lines if "logtool undo" in x]
    status, errors = pasted(line[line.index("logtool undo") :], tmp_path)
    assert status == 0, errors


def test_what_checkpoint_set_says_to_undo_runs(run, home, tmp_path):
    path = f"{home}/replication-offset-checkpoint"
    done = run("checkpoint", "set", path, "--apply", "--delete", "--", "codec-none-0")
    assert done.status == 0
    command = done.stderr[done.stderr.index("logtool ") :].strip()
    status, errors = pasted(command, tmp_path)
    assert status == 0, errors
