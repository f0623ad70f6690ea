"""The bound of `scan --max-batch-memory` in the executors: the records of one batch."""

from pathlib import Path

import duckdb
import pandas
import pytest
from pipeline.places import logtool

from logtool.formats import compression, record, record_batch
from logtool.formats.record import Record
from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
MIB = 1024 * 1024
WANTED = ("records", "gaps")


def scan(spark, output: Path, home: Path, run_id: str, limit: int, **options) -> Scan:
    job = Scan(spark, [home], str(output), run_id, WANTED, limit=limit, **options)
    job.run()
    return job


def table(output: Path, name: str, run_id: str) -> pandas.DataFrame:
    frame = duckdb.read_parquet(manifest.files(str(output), name, run_id)).df()
    return frame.sort_values("offset" if "offset" in frame else "number", ignore_index=True)


@pytest.fixture
def home(tmp_path) -> Path:
    """Return a log dir with a batch that is small on disk and 4 MiB in memory, and one behind."""
    payloads = [
        b"".join(record.encode([Record(at, 0, None, bytes(size))]) for at in range(4))
        for size in (MIB, 10)
    ]
    data = b"".join(
        record_batch.encode(
            payload,
            base_offset=4 * number,
            last_offset_delta=3,
            record_count=4,
            leader_epoch=0,
            attributes=compression.ZSTD,
            base_timestamp=1000,
            max_timestamp=1000,
        )
        for number, payload in enumerate(payloads)
    )
    assert len(data) < 8192
    folder = tmp_path / "data" / "bombs-0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}.log").write_bytes(data)
    for kind in ("index", "timeindex"):
        (folder / f"{0:020d}.{kind}").touch()
    return folder.parent


def test_records_beyond_the_limit_are_left_out_and_reported(spark, home, tmp_path):
    output = tmp_path / "out"
    scan(spark, output, home, "all", 8 * MIB)
    scan(spark, output, home, "few", MIB)
    assert table(output, "records", "all").offset.tolist() == list(range(8))
    assert table(output, "records", "few").offset.tolist() == list(range(4, 8))
    assert "batch/too-large" not in set(table(output, "findings", "all").code)
    (message,) = table(output, "findings", "few").query("code == 'batch/too-large'").message
    assert ("offset 0: " in message, "1048576" in message) == (True, True)
    # Under another limit something else may be found: nothing is taken over.
    assert scan(spark, output, home, "later", 8 * MIB, since="few").carried == 0
    assert table(output, "records", "later").offset.tolist() == list(range(8))


def test_the_option_says_it_to_the_executors(home, tmp_path):
    words = ["--tables", "records", "--run-id", "one"]
    done = logtool(
        "scan", home, "--output", tmp_path / "out", *words, "--max-batch-memory", "1M"
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert table(tmp_path / "out", "records", "one").offset.tolist() == list(range(4, 8))
    assert "batch/too-large" in set(table(tmp_path / "out", "findings", "one").code)


def test_a_bad_limit_is_refused_before_spark_starts(home, tmp_path):
    done = logtool("scan", home, "--output", tmp_path / "out", "--max-batch-memory", "much")
    assert done.returncode == 2
    assert "--max-batch-memory" in done.stderr.splitlines()[0]
    assert not (tmp_path / "out").exists()
