"""Errors that stop a job on Spark, in one line."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from logtool.errors import UnwritableError
from logtool.spark import connect
from logtool.spark.engine import SparkEngine, SparkRunner
from logtool.spark.session import SparkError, _settings, describe_error, job_failed, killed, session


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "Traceback (most recent call last):\n  File 'x', line 1\n"
            "logtool.errors.UnwritableError: /out/part: No space left on device\n\n\tat java",
            "/out/part: No space left on device",
        ),
        (
            "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: Job aborted"
            "\nCaused by: java.io.IOException: No space left\n\tat x",
            "IOException: No space left",
        ),
        ("Job 3 cancelled", "Job 3 cancelled"),
        ("", "RuntimeError"),
    ],
)
def test_the_line_that_says_most(text, line):
    assert describe_error(RuntimeError(text)) == line


def fail(rows):
    raise UnwritableError(Path("/out/part"), "No space left on device")
    yield from rows


@pytest.mark.spark
def test_what_spark_raises_in_the_middle_of_a_session_is_one_line(spark):
    with (
        pytest.raises(SparkError, match=r"Spark.*: /out/part: No space"),
        session("local", {}),
    ):
        spark.range(1).mapInArrow(fail, "id long").collect()


class Gone:
    """The context of a Spark that was killed: every call fails."""

    def __getattr__(self, name):
        def fail(*_, **__):
            raise ConnectionRefusedError(111, "Connection refused")

        return fail


def test_a_spark_that_died_is_an_error_of_spark():
    gone: Any = Gone()
    runner = SparkRunner(gone, 1, lambda units: units, lambda _: None)
    with pytest.raises(SparkError, match="Connection refused"):
        runner.again([])
    runner.stop()


@pytest.mark.parametrize(
    ("code", "name"),
    [(-9, "SIGKILL"), (137, "SIGKILL"), (-15, "SIGTERM"), (1, None), (0, None), (-999, None)],
)
def test_a_jvm_that_a_signal_ended_is_no_error_of_spark(code, name):
    assert (killed(code) is None) == (name is None)
    assert name is None or name in str(killed(code))


@pytest.mark.spark
def test_a_jvm_that_is_killed_in_a_job_is_reported_as_that(monkeypatch):
    from pyspark import SparkContext

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:

        class Gateway:
            proc = process

        monkeypatch.setattr(SparkContext, "_gateway", Gateway)
        process.send_signal(signal.SIGKILL)
        assert "SIGKILL" in str(job_failed(ConnectionRefusedError(111, "Connection refused")))
        assert "SIGKILL" not in str(job_failed(RuntimeError("the sink is full")))


@pytest.mark.parametrize(
    ("master", "settings", "environment", "asked"),
    [
        ("sc://server", {}, {}, "--master sc://server"),
        (None, {"spark.remote": "sc://server"}, {}, "spark.remote"),
        ("local", {}, {"SPARK_REMOTE": "sc://server"}, "SPARK_REMOTE"),
        (None, {"spark.api.mode": "connect"}, {}, "connect"),
        (None, {}, {"SPARK_API_MODE": "connect"}, "connect"),
        ("local", {"spark.api.mode": "classic"}, {"SPARK_API_MODE": "connect"}, None),
        ("spark://server:7077", {}, {}, None),
    ],
)
def test_what_asks_for_spark_connect_is_named(monkeypatch, master, settings, environment, asked):
    for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = connect.asked(master, settings)
    assert (asked or "") in (found or "")
    assert (found is None) == (asked is None)


def test_a_session_of_spark_connect_is_refused_where_rdds_are_needed():
    of_connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    session_there: Any = of_connect()
    assert connect.is_connect(session_there)
    with pytest.raises(SparkError, match="Spark Connect"):
        SparkEngine(session_there)


@pytest.mark.spark
def test_the_driver_does_not_import_pandas():
    """Pandas takes longer to import than pyspark and logtool together; only executors use it."""
    code = (
        "import sys; from logtool.spark.session import needed; needed(); "
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_jvm_on_this_machine_does_without_its_slower_compiler():
    name, option = "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1"
    assert option in _settings("local[2,4]")[name].split()
    assert option not in _settings("spark://host:7077")[name].split()
    assert name not in _settings(None)  # spark-submit has started the JVM
