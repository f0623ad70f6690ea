"""The tables gaps, producers and transactions of the data source, compared with those of `scan`."""

import shutil
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import redpanda_files as rp
from damage import flip
from pipeline.places import homes, span
from pyarrow import parquet
from staged_tables import answers
from verification import rewrite

from logtool.errors import UnreadableError, UsageError
from logtool.formats import offset_checkpoint
from logtool.log.selection import Selection
from logtool.schemas import arrow
from logtool.spark.source import listing, question_rows, reading
from logtool.spark.source import options as source_options
from logtool.spark.source.loss import LostDataError
from logtool.spark.source.question_rows import TABLES
from logtool.spark.source.reading import ReadOptions
from logtool.spark.source.wanted import RowFilter, parse_offsets

PySparkException: Any = Exception
if find_spec("pyspark"):
    from pyspark.errors import PySparkException


def read(*paths: Path, table: str, size: int | None = None, **wanted: Any) -> list[dict]:
    """Return the rows of the data source, as tasks make them."""
    fails = wanted.pop("fails", True)
    chosen = RowFilter(**wanted)
    columns = tuple(arrow.schema(table).names)
    asked = ReadOptions(table, columns, chosen, fail_on_data_loss=fails)
    bundles = question_rows.plan(paths, table, chosen, size, fails=fails)
    found = [rows for tasks in bundles for rows in reading.read_all(tasks, asked)]
    assert all(rows.schema == arrow.schema(table) for rows in found)
    return in_order(row for rows in found for row in rows.to_pylist())


def moments(rows: list[dict]) -> list[dict]:
    """Return rows with times in UTC: Spark gives them in the time zone of the machine."""
    return [
        {name: value.astimezone(UTC) if isinstance(value, datetime) else value
         for name, value in row.items()}
        for row in rows
    ]  # fmt: skip


def in_order(rows) -> list[dict]:
    return sorted(rows, key=lambda row: [(value is not None, value) for value in row.values()])


def damaged_copy(source: Path, home: Path) -> Path:
    """Copy a log dir with damage in two logs of three, and directories that are no live ones."""
    shutil.copytree(source, home)
    for number, log in enumerate(sorted(home.rglob("*.log"))):
        data = log.read_bytes()
        if number % 3 == 0 and len(data) > 200:
            rewrite(log, flip(data, len(data) // 2))
        elif number % 3 == 1:
            rewrite(log, data[:-7])
    shutil.copytree(home / "tx.mixed-0", home / f"tx.mixed-0.{'0' * 32}-future")
    return home


def test_rows_are_those_of_the_tables_of_a_scan(scenario, tmp_path):
    redpanda = rp.data_dir(tmp_path / "redpanda", {"0-1-v1.log": rp.log(0, 40),
                                                   "151-2-v1.log": rp.log(151, 2)})  # fmt: skip
    damaged = damaged_copy(scenario("4.3.1/clean"), tmp_path / "damaged")
    paths = [damaged, redpanda.parents[2], *homes(scenario("1.0.2/magic-1"))]
    expected = answers(paths, TABLES, tmp_path)
    for table in TABLES:
        found = read(*paths, table=table, size=200_000)
        assert found == in_order(expected[table])
        assert {row["log_dir"] for row in found} >= {str(damaged)}


def with_gaps(home: Path, *names: str) -> list[Path]:
    """Write partitions that lack offsets 10 to 19 and 30 to 34; return their last segments."""
    batch = partial(span, producer_id=7, producer_epoch=0, base_sequence=0)
    for name in names:
        (home / name).mkdir(parents=True)
        (home / name / f"{0:020d}.log").write_bytes(batch(0, 9) + batch(20, 29))
        (home / name / f"{35:020d}.log").write_bytes(batch(35, 39))
    return [home / name / f"{35:020d}.log" for name in names]


def missing(rows) -> list[tuple[str, int, int]]:
    return [(row["directory"], row["first_offset"], row["last_offset"]) for row in rows]


def test_options_choose_partitions_and_rows_that_reach_into_the_offsets(tmp_path):
    with_gaps(tmp_path, "a-0", "a-1", "b-0")
    first, last = (10, 19), (30, 34)
    gaps = partial(read, tmp_path, table="gaps")
    assert len(missing(gaps())) == 6
    assert missing(gaps(selection=Selection(("a",), partitions=(1,)))) == [
        ("a-1", *first), ("a-1", *last),
    ]  # fmt: skip
    only: dict[str, Any] = {"selection": Selection(("b",))}
    assert missing(gaps(**only, starting_offsets=19)) == [("b-0", *first), ("b-0", *last)]
    assert missing(gaps(**only, starting_offsets=20)) == [("b-0", *last)]
    assert missing(gaps(**only, ending_offsets=30)) == [("b-0", *first)]
    each = parse_offsets("startingOffsets", '{"a":{"0":20,"1":-2},"b":{"0":-1}}')
    assert missing(gaps(starting_offsets=each)) == [
        ("a-0", *last), ("a-1", *first), ("a-1", *last),
    ]  # fmt: skip
    (row,) = read(tmp_path, table="producers", **only, starting_offsets=38)
    assert (row["producer_id"], row["first_offset"], row["last_offset"]) == (7, 0, 39)
    assert read(tmp_path, table="producers", **only, starting_offsets=40) == []
    with pytest.raises(UsageError):
        gaps(selection=Selection(("c",)))


def test_a_log_that_is_gone_when_it_is_read_is_a_loss(tmp_path, caplog):
    home = tmp_path / "data"
    log, _ = with_gaps(home, "a-0", "b-0")
    for table, kept in (("gaps", ["b-0", "b-0"]), ("producers", ["a-0", "b-0"])):
        options = [ReadOptions(table, ("directory",), fail_on_data_loss=fails)
                   for fails in (True, False)]  # fmt: skip
        bundles = [question_rows.plan([home], table, one.wanted) for one in options]
        log.rename(tmp_path / "moved")
        with pytest.raises(LostDataError, match=str(log)):
            list(reading.read_all(bundles[0][0], options[0]))
        rows = reading.read_all(bundles[1][0], options[1])
        assert [row["directory"] for some in rows for row in some.to_pylist()] == kept
        assert str(log) in caplog.text
        (tmp_path / "moved").rename(log)


def test_a_checkpoint_that_cannot_be_read_is_a_loss_of_gaps(tmp_path, caplog):
    with_gaps(tmp_path, "a-0")
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_bytes(offset_checkpoint.encode(offset_checkpoint.build({("a", 0): 20})))
    assert missing(read(tmp_path, table="gaps")) == [("a-0", 30, 34)]
    checkpoint.unlink()
    checkpoint.symlink_to("nowhere")
    with pytest.raises(LostDataError, match=str(checkpoint)):
        read(tmp_path, table="gaps")
    assert missing(read(tmp_path, table="gaps", fails=False)) == [("a-0", 10, 19), ("a-0", 30, 34)]
    assert str(checkpoint) in caplog.text
    assert len(read(tmp_path, table="producers")) == 1


def test_what_is_no_whole_partition_and_options_without_a_meaning_are_refused(tmp_path):
    (log,) = with_gaps(tmp_path, "a-0")
    for table in TABLES:
        with pytest.raises(UsageError, match=str(log)):
            read(log, table=table)
        for options, stream in (({"startingTimestamp": "1"}, False), ({}, True),
                                ({"payload": "full"}, False)):  # fmt: skip
            with pytest.raises(UsageError, match=table):
                source_options.parse({"path": "/p", "table": table, **options}, stream=stream)


def test_globs_are_the_paths_that_they_match(tmp_path):
    for name in ("broker-1/data", "broker-2/data", "broker-[3]/data", "other/data", ".hidden/data"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "broker-notes").write_bytes(b"")

    def found(*texts: str) -> list[str]:
        paths = listing.expanded([tmp_path / text for text in texts])
        return [str(path.relative_to(tmp_path)) for path in paths]

    brokers = ["broker-1/data", "broker-2/data", "broker-[3]/data"]
    assert found("broker-*/data") == brokers
    assert sorted(found("broker-[12]/da?a", "broker-1/data")) == brokers[:2]
    assert found("broker-[3]/data") == brokers[2:]
    assert found("*/data") == [*brokers, "other/data"]
    assert found(".h*/data") == [".hidden/data"]
    assert found("nowhere/data") == ["nowhere/data"]
    for glob in ("broker-9*/data", "broker-*/log", "nowhere/*"):
        with pytest.raises(UnreadableError, match="nowhere" if "nowhere" in glob else "broker"):
            found(glob)


@pytest.mark.spark
def test_the_data_source_has_the_tables_that_scan_writes(spark, scenario, tmp_path):
    from logtool.spark.scan import manifest
    from logtool.spark.scan.scan import Scan
    from logtool.spark.source import source

    source.register(spark)
    sound = scenario("4.3.1/clean")
    damaged = damaged_copy(sound, tmp_path / "damaged-1" / "data")
    shutil.copytree(damaged / "tx.mixed-0", damaged / f"tx.mixed-0.{'0' * 32}-delete")
    output = str(tmp_path / "out")
    Scan(spark, (sound, damaged), output, "run", wanted=TABLES).run()
    for table in TABLES:
        written = [row for file in manifest.files(output, table)
                   for row in parquet.read_table(file).to_pylist()]  # fmt: skip
        frame = spark.read.format("kafka-log").option("table", table)
        frame = frame.load([str(sound), str(tmp_path / "damaged-*" / "data")])
        assert frame.schema == source.spark_schema(table)
        rows = in_order(row.asDict() for row in frame.collect())
        assert moments(rows) == moments(in_order(written))
        assert len({row["log_dir"] for row in rows}) == 2


@pytest.mark.spark
def test_gaps_are_a_table_of_the_catalog_and_a_lost_log_fails_the_query(spark, tmp_path):
    from logtool.spark.source import source

    source.register(spark)
    home = tmp_path / "data"
    log, _ = with_gaps(home, "a-0", "b-0")
    spark.sql("drop table if exists asked")
    try:
        options = f"options (path '{tmp_path}/da*', table 'gaps', topic 'a', startingOffsets '20')"
        spark.sql(f"create table asked using `kafka-log` {options}")
        rows = spark.sql("select directory, first_offset, last_offset from asked").collect()
        assert [tuple(row) for row in rows] == [("a-0", 30, 34)]
    finally:
        spark.sql("drop table if exists asked")
    log.rename(tmp_path / "moved")
    log.symlink_to(tmp_path / "moved")
    with pytest.raises(PySparkException, match=str(log)):
        source.gaps(spark, home).collect()
