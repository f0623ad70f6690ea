"""The recipe of the guide for Delta Lake and Iceberg, run on the lowest release of Spark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
pytestmark = [pytest.mark.spark, pytest.mark.connector, pytest.mark.timeout(600)]


def test_a_lake_table_has_the_rows_of_a_run_and_keeps_those_of_the_run_before(tmp_path):
    from pipeline import connector
    from pyspark import __version__ as release

    jars = ",".join(map(str, connector.jars(release, connector.LAKE)))
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.with_lake", str(tmp_path), jars],
        cwd=TESTS, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == ["delta", "iceberg"]
    for kind, one in found.items():
        assert one["lake"] == one["runs"], kind
        assert one["now"] == one["runs"][1] != one["runs"][0], kind
    # The first segment did not change; the second grew and is closed, and a third is new.
    # Each of the latter has one new batch.
    assert [one["changed"] for one in found.values()] == [[["orders", 30], ["orders", 60]]] * 2
