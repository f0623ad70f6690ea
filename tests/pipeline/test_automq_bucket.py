"""A bucket of AutoMQ on Spark: the same rows and findings as the local commands give."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from logtool import cli
from logtool.checks.automq import BucketVerification
from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.formats.automq import names
from logtool.log.inputs import GivenPaths
from logtool.log.selection import Selection
from logtool.metadata import automq_tree
from logtool.running.summary import Summary
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.schemas.tables import FINDING
from logtool.spark.source import reading
from logtool.spark.source.loss import LostDataError
from logtool.spark.source.reading import ReadOptions

STATES = ("broker-crash", "broker-clean")
CLUSTER = "rtcdRH6ESFi-nWZAzLnP0g"
SECRET = b"secretKey="
TYPES = {"batches": "batch", "records": "record"}
COLUMNS = {
    "batches": ("topic", "partition", "segment", "position", "size", "base_offset", "last_offset",
                "record_count", "codec", "max_timestamp_ms", "leader_epoch", "producer_id",
                "base_sequence", "transactional", "control", "control_type", "crc"),
    "records": ("topic", "partition", "segment", "batch_position", "offset", "timestamp_ms",
                "leader_epoch", "producer_id", "sequence", "control", "control_type"),
}  # fmt: skip
"""Columns of both a table and the objects of `dump`."""
Rows = list[dict[str, Any]]


def paths_of(home: Path) -> tuple[Path, Path]:
    return home / "s3", home / "meta"


def joined(home: Path) -> list[Path]:
    return list(automq_tree.join(GivenPaths(paths_of(home))).paths)


@pytest.fixture
def damaged(copy_of):
    """Return a function: a copy of the killed node without an object."""
    home = copy_of("automq/broker-crash")

    def without(number: int) -> Path:
        (home / "s3" / names.data_key(CLUSTER, number)).unlink()
        return home

    return without


@pytest.fixture
def printed(capsys):
    """Return a function: the objects that a command prints of a node."""

    def run(home: Path, *words: str, status: int = 0) -> Rows:
        capsys.readouterr()
        assert cli.run([*words, "-f", "ndjson", *map(str, paths_of(home))]) == status
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def source_rows(home: Path, table: str, **more) -> Rows:
    """Return the rows that the data source reads, in this process."""
    asked = ReadOptions(table, tuple(arrow.schema(table).names), **more)
    return [
        row
        for pieces in reading.plan(paths_of(home), asked)
        for rows in reading.read_all(pickle.loads(pickle.dumps(pieces)), asked)
        for row in rows.to_pylist()
    ]


def same(rows: Rows, known: Rows, table: str) -> None:
    """Compare rows of a table with the objects that `dump` prints, by the columns of both."""
    names = COLUMNS[table]
    found, wanted = (
        sorted((tuple(row[name] for name in names) for row in some), key=lambda row: row[:5])
        for some in (rows, known)
    )
    assert found == wanted
    assert found


def of_partitions(rows: Rows) -> Rows:
    return [row for row in rows if row["topic"] != "__cluster_metadata"]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("table", TYPES)
def test_the_data_source_has_the_rows_of_a_dump(scenario, printed, table, state):
    home = scenario(f"automq/{state}")
    words = ["dump", "--values", "len", *(["--records"] if table == "records" else [])]
    known = [one for one in printed(home, *words) if one["type"] == TYPES[table]]
    same(of_partitions(source_rows(home, table)), of_partitions(known), table)


def test_no_row_shows_the_keys_of_the_object_store(scenario):
    rows = source_rows(scenario("automq/broker-crash"), "records", payload=Payload.FULL)
    nodes = [row for row in rows if b"__automq_node/1" in (row["value"] or b"")]
    assert nodes
    assert not any(SECRET in (row["value"] or b"") for row in rows)


def test_missing_offsets_are_a_loss_of_data(damaged):
    home = damaged(1)
    with pytest.raises(LostDataError):
        source_rows(home, "batches")
    assert source_rows(home, "batches", fail_on_data_loss=False)


def test_a_process_opens_a_tree_once(scenario):
    (path,) = joined(scenario("automq/broker-crash"))
    sent = [pickle.dumps(path / name) for name in ("orders-0", "orders-1")]
    tree: Any = getattr(path, "tree")  # noqa: B009
    first, second = (pickle.loads(one) for one in sent)
    assert first.tree is second.tree is tree
    automq_tree._OPENED.clear()
    first, second = (pickle.loads(one) for one in sent)
    assert first.tree is second.tree is not tree
    assert files.list_dir(first) == files.list_dir(path / "orders-0")


def checked(home: Path, **more) -> tuple[list[Any], dict[str, int]]:
    summary = Summary()
    items = BucketVerification(
        paths_of(home), summary, selection=Selection(), reads_blocks=True, **more
    )
    found = [
        (str(one.path), one.reason) if isinstance(one, UnreadableError) else FINDING.row(one)
        for one in items
    ]
    return found, {name: getattr(summary, name) for name in ("records", "bytes", "partitions")}


@pytest.mark.spark
def test_executors_find_what_this_process_finds(spark, scenario, damaged):
    from logtool.spark.engine import SparkEngine

    engine = SparkEngine(spark)
    for home in (scenario("automq/broker-clean"), damaged(1)):
        here, there = checked(home), checked(home, each=engine.map)
        assert here == there
        assert here[0]


@pytest.mark.spark
@pytest.mark.parametrize(
    "state", ["broker-crash", pytest.param("broker-clean", marks=pytest.mark.long)]
)
def test_the_tables_of_a_scan_are_those_of_local_commands(
    spark, scenario, printed, tmp_path, state
):
    from logtool.spark.scan import manifest
    from logtool.spark.scan.scan import Scan

    home, output = scenario(f"automq/{state}"), str(tmp_path / "out")
    job = Scan(spark, joined(home), output, "one", arrow.NAMES)
    job.run()
    assert job.summary.complete
    rows = {
        name: [row for file in manifest.files(output, name)
               for row in parquet.read_table(file, partitioning=None).to_pylist()]
        for name in arrow.NAMES
    }  # fmt: skip
    for table, kind in TYPES.items():
        words = ["dump", "--values", "len", *(["--records"] if table == "records" else [])]
        known = [one for one in printed(home, *words) if one["type"] == kind]
        same(of_partitions(rows[table]), of_partitions(known), table)
    segments = [one for one in printed(home, "stat", "--segments") if one["type"] == "segment"]
    counts = {
        (one["topic"], one["partition"], one["segment"]): (one["batches"], one["records"])
        for one in segments
    }
    found = {
        (one["topic"], one["partition"], one["segment"]): (one["batches"], one["records"])
        for one in of_partitions(rows["segments"])
    }
    assert found == {key: one for key, one in counts.items() if key[0] != "__cluster_metadata"}
    assert found
    # A scan has no gaps inside batches, for log dirs of Kafka neither.
    gaps = [one for one in printed(home, "gaps") if one["type"] == "gap"]
    names = ("topic", "kind", "first_offset", "last_offset", "reason")
    outside = {tuple(one[name] for name in names) for one in gaps if one["kind"] != "in-batch"}
    assert {tuple(one[name] for name in names) for one in rows["gaps"]} == outside
    assert outside
    severities = {one["severity"] for one in rows["findings"]}
    assert severities <= {"info"}


@pytest.mark.spark
def test_a_scan_of_a_damaged_bucket_is_incomplete_and_has_the_rest(spark, damaged, tmp_path):
    from logtool.spark.scan import manifest
    from logtool.spark.scan.scan import Scan

    unread: list[UnreadableError] = []
    output = str(tmp_path / "out")
    wanted = ("segments", "findings")
    job = Scan(spark, joined(damaged(1)), output, "one", wanted, on_unreadable=unread.append)
    job.run()
    assert unread
    assert not job.summary.complete
    (file,) = manifest.files(output, "findings")
    codes = set(parquet.read_table(file).column("code").to_pylist())
    assert {"automq-stream/hole", "automq-bucket/missing-object"} <= codes


@pytest.mark.spark
def test_the_commands_read_a_bucket_with_its_metadata_log(spark, scenario, printed, tmp_path):
    home = scenario("automq/broker-crash")
    here, there = printed(home, "verify"), printed(home, "verify", "--engine", "spark")
    del here[-1]["elapsed_s"], there[-1]["elapsed_s"]
    assert here == there
    words = ("scan", "--tables", "segments", "--output")
    (table, summary) = printed(home, *words, str(tmp_path / "out"))
    assert (table["rows"], summary["partitions"], summary["complete"]) == (18, 12, True)


@pytest.mark.spark
def test_no_table_is_written_into_a_bucket(scenario, printed):
    home = scenario("automq/broker-crash")
    printed(home, "scan", "--output", str(home / "s3" / "tables"), status=5)
    assert not (home / "s3" / "tables").exists()
