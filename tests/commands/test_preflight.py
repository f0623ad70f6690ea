"""Mistakes that stop a job on Spark before Spark starts."""

import contextlib
import io
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logtool.commands.printing.progress import ProgressLines
from logtool.spark import session as spark_session
from logtool.spark.session import SparkError

pytest.importorskip("pyarrow")


@pytest.fixture
def starts(monkeypatch) -> list[str | None]:
    """Return the masters of the sessions that were started; none of them answers."""
    from logtool.commands.views import scan

    found: list[str | None] = []

    @contextlib.contextmanager
    def session(master: str | None, settings: object, on_start: Callable[[str], None]) -> Iterator:
        found.append(master)
        on_start("starting Spark")
        raise SparkError("it was started")
        yield

    monkeypatch.setattr(scan, "needed", lambda: None)
    monkeypatch.setattr(scan, "session", session)
    monkeypatch.setattr(spark_session, "session", session)
    return found


@pytest.fixture
def log_dir(partition) -> Path:
    (partition.parent / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    return partition.parent


BOTH = pytest.mark.parametrize("command", ["scan", "verify"])


def words(command: str, output: Path) -> list[object]:
    return ["scan", "--output", output] if command == "scan" else ["verify", "--engine", "spark"]


@BOTH
def test_spark_starts_for_sound_inputs_and_says_so_at_once(run, starts, log_dir, tmp_path, command):
    done = run(*words(command, tmp_path / "out"), log_dir, tmp_path / "missing")
    assert len(starts) == 1
    assert done.stderr.splitlines()[0] == "logtool: starting Spark"
    assert done.status == 4
    assert not (tmp_path / "out").exists()
    for quiet in ("--quiet", "--no-progress"):
        assert "starting" not in run(*words(command, tmp_path / "out"), log_dir, quiet).stderr


@BOTH
@pytest.mark.parametrize(
    ("paths", "more"),
    [
        (["missing"], []),
        (["missing", "empty"], []),
        (["log"], ["--topic", "nosuch"]),
        (["above"], []),
        (["log", "missing"], ["--partition", "99"]),
    ],
)
def test_inputs_without_a_partition_are_reported_as_by_the_local_command(
    run, starts, log_dir, tmp_path, command, paths, more
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "broker-1").symlink_to(log_dir)
    given = [log_dir if name == "log" else tmp_path / name for name in paths]
    done = run(*words(command, tmp_path / "out"), "--json", *given, *more)
    local = run("verify", "--json", *given, *more)
    assert starts == []
    assert (done.status, local.status) == (4, 4)
    errors = [
        [
            (one["path"], one["reason"], one["message"])
            for one in result.document["items"]
            if one["type"] == "error"
        ]
        for result in (done, local)
    ]
    assert errors[1]
    assert set(errors[1]) <= set(errors[0])
    assert json.loads(done.stdout)["summary"]["complete"] is False
    assert not (tmp_path / "out").exists()


def test_a_file_is_no_input_of_a_scan(run, starts, log_dir, tmp_path):
    log = next(log_dir.rglob("*.log"))
    assert run("scan", "--output", tmp_path / "out", log).status == 2
    assert starts == []


def test_an_output_that_cannot_be_made_is_named(run, starts, log_dir, tmp_path, monkeypatch):
    done = run("scan", "--output", "/proc/here/out", log_dir)
    assert (done.status, starts) == (4, [])
    assert "/proc/here/out" in done.stderr
    (tmp_path / "file").touch()
    assert run("scan", "--output", tmp_path / "file" / "out", log_dir).status in (4, 5)
    assert starts == []
    assert [one.name for one in tmp_path.iterdir() if one != log_dir] in (["file"], [])


def test_a_bucket_that_does_not_exist_is_named(run, starts, log_dir, monkeypatch):
    from logtool.spark.scan import runs

    def missing(self: object, name: str, data: bytes) -> None:
        raise FileNotFoundError("The specified bucket does not exist")

    monkeypatch.setattr("logtool.spark.scan.store.RemoteStore.put", missing)
    monkeypatch.setattr(runs, "check", lambda *_: None)
    done = run("scan", "--output", "memory://nowhere/out", log_dir)
    assert (done.status, starts) == (4, [])
    assert "memory://nowhere/out" in done.stderr


@pytest.mark.parametrize("command", ["scan", "verify"])
def test_a_log_dir_in_which_nothing_is_selected_by_default_goes_on(run, starts, log_dir, command):
    partition = next(path for path in log_dir.iterdir() if path.is_dir())
    run(*words(command, log_dir.parent / "out"), partition)
    assert len(starts) == 1


def test_a_master_that_takes_no_connection_is_named():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # no one listens
        place = f"127.0.0.1:{bound.getsockname()[1]}"
        with pytest.raises(SparkError, match=place):
            spark_session.check_master(f"spark://{place}")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            other = f"127.0.0.1:{listening.getsockname()[1]}"
            spark_session.check_master(f"spark://{place},{other}")


def test_a_master_that_spark_does_not_know_is_refused(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
                 "http_proxy", "ALL_PROXY", "all_proxy"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    for master in ("local", "local[2]", "local[*,4]", "local-cluster[2, 1, 1024]"):
        spark_session.check_master(master)
    for master in ("nonsense", "local[two]", "local[2", "spark://host", "spark://host:x", "yarn",
                   "k8s://", "k8s://ftp://host:1"):  # fmt: skip
        with pytest.raises(SparkError, match=re.escape(f"--master {master}")):
            spark_session.check_master(master)
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop")
    spark_session.check_master("yarn")
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # no one listens
        place = f"127.0.0.1:{bound.getsockname()[1]}"
        for url in (f"k8s://{place}", f"k8s://https://{place}"):
            with pytest.raises(SparkError, match=place):
                spark_session.check_master(url)
        monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
        spark_session.check_master(f"k8s://{place}")


@BOTH
def test_no_program_is_started_for_a_mistake(run, log_dir, tmp_path, monkeypatch, command):
    """Each Java is started with `subprocess.Popen`, by logtool as well as by pyspark."""
    from logtool.commands.views import scan

    started: list[object] = []

    class Recorded(subprocess.Popen):
        def __init__(self, words: list[str], **more: Any) -> None:
            started.append(words)
            super().__init__(words, **more)

    (tmp_path / "above").mkdir()
    (tmp_path / "above" / "broker-1").symlink_to(log_dir)
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java.parents[1]))
    monkeypatch.setattr(subprocess, "Popen", Recorded)
    no_session = SimpleNamespace(getActiveSession=lambda: None)  # `make test` installs no pyspark
    monkeypatch.setitem(sys.modules, "pyspark.sql", SimpleNamespace(SparkSession=no_session))
    monkeypatch.setattr(spark_session, "needed", lambda: None)
    monkeypatch.setattr(scan, "needed", lambda: None)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # no one listens
        free = f"spark://127.0.0.1:{bound.getsockname()[1]}"
        mistakes: list[list[object]] = [
            [tmp_path / "missing"], [tmp_path / "above"], [log_dir, "--topic", "nosuch"],
            [log_dir, "--master", free], [log_dir, "--master", "nonsense"],
        ]  # fmt: skip
        for words_of_mistake in mistakes:
            done = run(*words(command, tmp_path / "out"), *words_of_mistake)
            assert (done.status, started) == (4, [])
        if command == "scan":
            assert run("scan", log_dir, "--output", java / "out").status in (4, 5)
    assert started == []
    assert not (tmp_path / "out").exists()
    assert "Java 11" in run(*words(command, tmp_path / "out"), log_dir).stderr
    assert started == [[str(java), "-version"]]


def test_a_line_says_now_and_then_how_far_a_long_job_is():
    waits: list[float] = []
    stream = io.StringIO()

    ready = threading.Event()

    def wait(seconds: float) -> bool:
        ready.wait()
        waits.append(seconds)
        if len(waits) == 2:
            lines.update(5, 10, "reading")
        return len(waits) == 4

    lines = ProgressLines(stream, "starting", wait)
    ready.set()
    lines.close()
    found = stream.getvalue().splitlines()
    assert waits == [30.0] * 4
    assert found[0] == "logtool: starting"
    assert len(found) == 4
    assert "starting" in found[1]
    assert all("50 %" in line for line in found[2:])


@pytest.mark.parametrize(
    "words",
    [["--list"], ["--history"], ["--clean"], ["--list", "--tables", "gaps"]],
)
def test_an_output_that_does_not_exist_is_not_an_empty_one(run, tmp_path, words):
    done = run("scan", "--output", tmp_path / "missing", *words)
    assert (done.status, done.stdout) == (4, "")
    assert f"{tmp_path / 'missing'}: " in done.stderr.splitlines()[0]
    assert run("scan", "--output", tmp_path, *words).status == 0
