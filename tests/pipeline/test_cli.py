"""`logtool scan` and `verify --engine spark` in a terminal: missing programs, odd options."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import psutil
import pytest
from jsonschema import Draft202012Validator
from pipeline.places import LOGTOOL, logtool
from processes import children_of, wait_for
from verification import fingerprint

from logtool.spark.scan.runs import begin


def one_line(done: subprocess.CompletedProcess) -> str:
    """Return the line that says what stopped the job; the summary may follow it."""
    lines = [line for line in done.stderr.splitlines() if "logtool: starting Spark" not in line]
    assert len(lines) <= 2, done.stderr
    return lines[0]


@pytest.fixture
def home(scenario) -> Path:
    return scenario("4.3.1/empty")


BOTH = pytest.mark.parametrize(
    "command", [["scan", "--output"], ["verify", "--engine", "spark"]], ids=["scan", "verify"]
)


def words(command: list[str], home: Path, tmp_path: Path) -> list[object]:
    return [*command, *([tmp_path / "out"] if command[0] == "scan" else []), home]


@BOTH
def test_without_pyspark_it_is_said_how_to_install_it(home, tmp_path, command):
    missing = tmp_path / "missing"
    missing.mkdir()
    (missing / "pyspark.py").write_text("raise ImportError('No module named pyspark')")
    done = logtool(*words(command, home, tmp_path), PYTHONPATH=str(missing))
    assert done.returncode == 4
    assert "pip install 'kafka-logtool[spark]'" in one_line(done)
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
@BOTH
def test_without_java_it_is_said_which_one_is_needed(home, tmp_path, command):
    done = logtool(*words(command, home, tmp_path), PATH=str(tmp_path), JAVA_HOME="")
    assert done.returncode == 4
    assert "Java 17" in one_line(done)
    done = logtool(*words(command, home, tmp_path), JAVA_HOME=str(tmp_path))
    assert f"JAVA_HOME={tmp_path}" in one_line(done)
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_an_old_java_is_named(home, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    done = logtool("scan", home, "--output", tmp_path / "out", JAVA_HOME=str(tmp_path))
    assert done.returncode == 4
    assert all(word in one_line(done) for word in ("Java 17", str(java), "Java 11"))


@pytest.mark.spark
def test_a_jvm_that_is_killed_while_it_starts_is_no_error_of_spark(home, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(
        "#!/bin/sh\n"
        """[ "$1" = -version ] && { echo 'version "17.0.1"' >&2; exit; }\n"""
        # The first Java prints the command line of the second, and its own status.
        'case "$*" in *launcher.Main*) printf "\\n%s\\0000\\000" "$0" ;; *) kill -9 $$ ;; esac\n'
    )
    java.chmod(0o755)
    done = logtool("scan", home, "--output", tmp_path / "out", JAVA_HOME=str(tmp_path))
    assert done.returncode == 4
    assert "SIGKILL" in one_line(done)


@pytest.mark.spark
@BOTH
def test_spark_connect_is_refused_before_spark_starts(home, tmp_path, command):
    done = logtool(
        *words(command, home, tmp_path), "--master", "sc://127.0.0.1:1", JAVA_HOME=str(tmp_path)
    )
    assert done.returncode == 4
    assert "Spark Connect" in one_line(done)


@pytest.mark.spark
def test_a_setting_that_spark_cannot_read_is_one_line(home, tmp_path):
    done = logtool(
        "scan", home, "--output", tmp_path / "out", "--conf", "spark.driver.memory=plenty"
    )
    assert done.returncode == 4
    assert one_line(done).startswith("logtool: Spark ")
    assert "JAVA_GATEWAY_EXITED" in done.stderr  # Spark's own word; it does not name the setting.


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        ([], 2, "--output"),
        (["--output", "out", "--tables", "foo"], 2, "--tables foo"),
        (["--output", "out", "--payload", "full"], 2, "--payload"),
        (["--output", "out", "--show-secrets"], 2, "--show-secrets"),
        (["--output", "out", "--run-id", "a/b"], 2, "--run-id a/b"),
        (["--output", "out", "--conf", "x=y"], 2, "--conf x"),
        (["--output", "taken"], 5, "taken"),
        (["--output", "taken/file"], 5, "taken/file"),
        (["--output", "home/tables"], 5, "home/tables"),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(
    home, tmp_path, monkeypatch, arguments, status, named
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    (tmp_path / "home").symlink_to(home)
    before = fingerprint(tmp_path)
    done = logtool("scan", home, *arguments, JAVA_HOME=str(tmp_path))  # no Java: it is not reached
    assert (done.returncode, named in done.stderr) == (status, True), done.stderr
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize("option", ["--max-rate=1M", "--max-duration=1s", "--jobs=2", "--resume=x"])
def test_options_of_threads_are_refused_with_spark(home, option):
    done = logtool("verify", "--engine", "spark", option, home)
    assert done.returncode == 2
    assert all(word in done.stderr for word in (option.partition("=")[0], "--engine spark"))


def test_options_of_spark_are_refused_with_threads(home):
    done = logtool("verify", "--master", "local[2]", home)
    assert done.returncode == 2
    assert all(word in done.stderr for word in ("--master", "--engine local"))


@pytest.mark.spark
@BOTH
def test_a_selection_without_a_partition_is_incomplete(home, tmp_path, command):
    done = logtool(*words(command, home, tmp_path), "--topic", "nosuch", "--json")
    assert done.returncode == 4
    assert one_line(done).startswith(f"logtool: {home}: ")
    assert "--topic nosuch" in one_line(done)
    assert json.loads(done.stdout)["summary"]["complete"] is False
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


@pytest.mark.spark
def test_what_is_printed_keeps_to_its_schema(home, tmp_path):
    done = logtool("scan", home, tmp_path / "nowhere", "--output", tmp_path / "out", "--json",
                   "--run-id", "one", "--tables", "segments,findings")  # fmt: skip
    assert done.returncode == 4
    document = json.loads(done.stdout)
    schema = json.loads((files("logtool.schemas") / "scan.json").read_text())
    checker = Draft202012Validator(schema)
    assert not list(checker.iter_errors(document))
    for obj in (*document["items"], document["summary"]):
        assert checker.is_valid(obj)
        assert not checker.is_valid({**obj, "surprise": 1})
        for key in obj:
            assert not checker.is_valid({k: v for k, v in obj.items() if k != key}), key
    error, *tables = document["items"]
    assert (error["path"], error["reason"]) == (str(tmp_path / "nowhere"), "unreadable")
    assert [one["table"] for one in tables] == ["segments", "findings"]
    assert all(Path(one["path"]).is_dir() for one in tables)
    assert "incomplete" in done.stderr.splitlines()[-1]
    assert "run one: " in done.stderr.splitlines()[-1]


@pytest.mark.spark
def test_runs_are_listed_and_what_a_killed_one_left_is_removed(tmp_path):
    output = tmp_path / "out"
    left = "from logtool.spark.scan.runs import begin\nimport os, sys\n"
    left += f"begin({str(output)!r}, sys.argv[1])\n"
    subprocess.run([sys.executable, "-c", f"{left}os._exit(0)", "dead"], check=True, timeout=100)
    code = f"{left}print(flush=True)\nsys.stdin.read()\nos._exit(0)"
    with subprocess.Popen([sys.executable, "-c", code, "living"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as living:  # fmt: skip
        living.stdout.readline()
        done = logtool("scan", "--output", output, "--list", "--json")
        items = json.loads(done.stdout)["items"]
        schema = json.loads((files("logtool.schemas") / "scan.json").read_text())
        assert not list(Draft202012Validator(schema).iter_errors(json.loads(done.stdout)))
        assert {one["run_id"]: one["state"] for one in items} == {
            "dead": "killed", "living": "under way"}  # fmt: skip
        assert "logtool scan --clean" in done.stderr
        done = logtool("scan", "--output", output, "--clean", "-f", "csv")
        assert [line.split(",")[:2] for line in done.stdout.splitlines()[1:]] == [
            ["dead", "removed"]]  # fmt: skip
        assert [path.name.partition(".")[0] for path in (output / "_owners").iterdir()] == [
            "living"]  # fmt: skip
        living.communicate()
    done = logtool("scan", "--output", output, "--clean", tmp_path)
    assert (done.returncode, "PATH" in done.stderr) == (2, True)


@pytest.mark.spark
def test_a_second_run_of_a_living_id_is_refused(home, tmp_path):
    output = tmp_path / "out"
    run = begin(str(output), "one")
    done = logtool("scan", home, "--output", output, "--run-id", "one", "--tables", "segments")
    assert done.returncode == 5
    assert re.search(f"process {os.getpid()} on .* run one", one_line(done))
    run.abandon()


@pytest.mark.spark
def test_a_terminal_shows_what_is_done_from_the_start_of_spark_on(scenario, tmp_path):
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [*LOGTOOL, "scan", scenario("4.3.1/clean"), "--output", tmp_path / "out",
         "--tables", "producers"],
        stdin=terminal, stdout=terminal, stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    ) as job:  # fmt: skip
        os.close(terminal)
        shown = b""
        while piece := _read(controller):
            shown += piece
    os.close(controller)
    assert job.returncode == 0, shown
    steps = [b"starting Spark", b"partitions read, ", b"questions: producers",
             b"writing the manifest"]  # fmt: skip
    places = [shown.find(step) for step in steps]
    assert -1 not in places
    assert places == sorted(places)
    assert b"42 rows in 1 table" in shown


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 65536)
    except OSError:  # The terminal is closed on the other side.
        return b""


@pytest.mark.spark
def test_spark_itself_stays_quiet(home, tmp_path):
    done = logtool("scan", home, "--output", tmp_path / "out", "--tables", "segments", "--quiet")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[0].split() == ["table", "rows", "size", "path"]


@pytest.mark.spark
def test_spark_submit_says_where_it_runs(scenario, tmp_path):
    import pyspark

    home = scenario("4.3.1/killed")
    program = tmp_path / "run.py"
    program.write_text("from logtool.cli import main\n\nmain()\n")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--master", "local[1]", "--conf", "spark.ui.enabled=false", program,
         "verify", "--engine", "spark", "--format", "ndjson", home],
        capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    local = logtool("verify", "--format", "ndjson", home)
    # It gives what the program says on both streams to its own standard output.
    objects = [
        [line for line in text.splitlines() if line.startswith('{"') and "elapsed" not in line]
        for text in (done.stdout, local.stdout)
    ]
    assert objects[0] == objects[1]
    assert "85 infos in 35 partitions" in done.stdout


def _listens(process: psutil.Process) -> bool:
    kinds = []
    for child in children_of(process):
        with suppress(psutil.NoSuchProcess):
            kinds += [one.status for one in child.net_connections()]
    return psutil.CONN_LISTEN in kinds


MOMENTS: dict[str, Callable[[psutil.Process], object]] = {
    "Java starts": children_of,
    "Spark waits for work": _listens,
    "Python workers run": lambda process: [
        worker for child in children_of(process) for worker in children_of(child)
    ],
}


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", ["Java starts", "Spark waits for work", "Python workers run"])
def test_an_interrupt_leaves_no_process_and_no_file(home, tmp_path, moment):
    job = subprocess.Popen(
        [*LOGTOOL, "scan", str(home), "--output", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with job:
        wait_for(lambda: MOMENTS[moment](psutil.Process(job.pid)), 300)
        os.kill(job.pid, signal.SIGINT)
        errors = job.communicate(timeout=300)[1]
    assert job.returncode == 130, errors
    assert "Traceback" not in errors
    assert not list(tmp_path.rglob("*.parquet"))
    left = [one for one in psutil.process_iter() if _session_of(one) == job.pid]
    psutil.wait_procs(left, 100)
    assert not [one for one in left if one.is_running()]


def _session_of(process: psutil.Process) -> int:
    try:
        return os.getsid(process.pid)
    except OSError:
        return 0
