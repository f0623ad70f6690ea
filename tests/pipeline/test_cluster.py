"""A real cluster on this machine: a master and two workers, one of which is killed in mid-job."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas
import psutil
import pytest
from bench.generate import MIB, Spec, generate
from pipeline.places import LOGTOOL, logtool
from ports import free_port
from processes import command_of, kill_family, wait_for

from logtool.spark.scan import manifest

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
TABLES = "segments,batches,gaps,producers,findings"


@dataclass
class Cluster:
    """The processes of a standalone cluster."""

    master: str
    workers: list[subprocess.Popen]

    def options(self) -> list[str]:
        return [
            "--master", self.master, "--conf", "spark.executor.memory=512m",
            "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1",
            "--conf", "spark.sql.shuffle.partitions=2",
        ]  # fmt: skip


def end(process: subprocess.Popen) -> None:
    """End a process and what it started."""
    if process.poll() is None:
        psutil.wait_procs(kill_family(process.pid), 20)
    process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    import pyspark

    home = tmp_path_factory.mktemp("cluster")
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    port, *others = (free_port() for _ in range(6))
    outside = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
               "SPARK_DAEMON_MEMORY": "256m"}  # fmt: skip

    def start(stack: ExitStack, name: str, kind: str, *arguments: str) -> subprocess.Popen:
        log = stack.enter_context((home / f"{name}.log").open("wb"))
        command = [
            str(program),
            f"org.apache.spark.deploy.{kind}",
            "--host",
            "127.0.0.1",
            *arguments,
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log, env=outside)
        stack.callback(end, process)
        return process

    def says(name: str, text: str) -> bool:
        return text in (home / f"{name}.log").read_text(errors="replace")

    with ExitStack() as stack:
        start(stack, "master", "master.Master", "--port", str(port), "--webui-port", str(others[0]))
        wait_for(lambda: says("master", "New state: ALIVE"), 120)
        master = f"spark://127.0.0.1:{port}"
        workers = [
            start(
                stack, f"worker-{n}", "worker.Worker", "--cores", "1", "--memory", "600m",
                "--port", str(others[1 + 2 * n]), "--webui-port", str(others[2 + 2 * n]),
                "--work-dir", str(home / f"work-{n}"), master,
            )
            for n in range(2)
        ]  # fmt: skip
        for n in range(2):
            wait_for(lambda n=n: says(f"worker-{n}", "Successfully registered"), 120)
        yield Cluster(master, workers)


@pytest.fixture(scope="module")
def log_dir(tmp_path_factory) -> Path:
    """A log dir of 256 MiB in batches of 200 bytes: enough to be in the middle of it."""
    root = tmp_path_factory.mktemp("data")
    return generate(root, Spec(200, 256 * MIB, segment_size=16 * MIB)).parent


def verdict(text: str) -> list[str]:
    return [line for line in text.splitlines() if '"summary"' not in line]


def tables(output: Path, name: str) -> pandas.DataFrame:
    frame = duckdb.read_parquet(manifest.files(str(output), name)).df()
    order = [c for c in ("log_dir", "directory", "segment", "position", "first_offset", "number")
             if c in frame]  # fmt: skip
    return frame.sort_values(order, ignore_index=True)


def test_a_cluster_finds_what_this_process_finds(cluster, scenario):
    home = scenario("4.3.1/killed")
    local = logtool("verify", "--format", "ndjson", home)
    remote = logtool(
        "verify", "--engine", "spark", *cluster.options(), "--format", "ndjson", home
    )  # fmt: skip
    assert remote.returncode == local.returncode == 0, remote.stderr
    assert verdict(remote.stdout) == verdict(local.stdout)
    assert len(verdict(local.stdout)) > 10


def test_a_worker_killed_in_mid_job_changes_nothing(cluster, log_dir, tmp_path):
    here = logtool("scan", log_dir, "--output", tmp_path / "here", "--tables", TABLES)
    assert here.returncode == 0, here.stderr
    with subprocess.Popen(
        [*LOGTOOL, "scan", str(log_dir), "--output", str(tmp_path / "there"), "--tables", TABLES,
         *cluster.options()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as job:  # fmt: skip
        data = tmp_path / "there" / "_data"
        wait_for(lambda: job.poll() is not None or list(data.rglob("batches/*.parquet")), 200)
        assert job.poll() is None, job.communicate()
        worker = psutil.Process(cluster.workers[0].pid)
        family = [worker, *worker.children(recursive=True)]
        assert any("CoarseGrainedExecutor" in command_of(one) for one in family)
        kill_family(worker.pid)
        assert manifest.complete(str(tmp_path / "there")) == [], "no run is there in mid-job"
        _, said = job.communicate(timeout=400)
    assert job.returncode == 0, said
    for name in TABLES.split(","):
        pandas.testing.assert_frame_equal(
            tables(tmp_path / "there", name), tables(tmp_path / "here", name)
        )
    assert len(tables(tmp_path / "there", "batches")) == 256 * MIB // 200


def test_a_master_that_does_not_answer_is_one_line(tmp_path, scenario):
    port = free_port()
    done = logtool("scan", scenario("4.3.1/clean"), "--output", tmp_path / "out",
                   "--master", f"spark://127.0.0.1:{port}")  # fmt: skip
    assert done.returncode == 4
    lines = done.stderr.splitlines()
    assert f"127.0.0.1:{port}" in lines[0], done.stderr
    assert len(lines) <= 2
    assert not (tmp_path / "out").exists()
