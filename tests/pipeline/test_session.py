"""Errors that stop a job on Spark, in one line."""

from pathlib import Path
from typing import Any

import pytest

from logtool.errors import UnwritableError
from logtool.spark.engine import SparkRunner
from logtool.spark.session import SparkError, describe_error, session


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
