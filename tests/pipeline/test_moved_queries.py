"""Queries that move to log dirs: options of Spark's own source, and tables of Spark's catalog."""

import json
from pathlib import Path
from typing import Any

import pytest
from pipeline.test_streaming import Log

from logtool.errors import UsageError
from logtool.schemas import arrow
from logtool.spark.source import options as source_options
from logtool.spark.source import reading
from logtool.spark.source.reading import ReadOptions
from logtool.spark.source.stream_offsets import Growing

START = 1_700_000_000_000
"""Time of the record at offset 0 in the logs of `Log`, whose batches hold three offsets each."""


def parsed(**options: Any) -> source_options.Options:
    given = {name: str(value) for name, value in options.items()}
    return source_options.parse({"table": "kafka", "path": "/logs", **given})


def planned(home: Path, **options: Any) -> list[tuple[str, int]]:
    """Return topic and offset of the rows of the table kafka, in order."""
    given = parsed(path=str(home), **options)
    asked = ReadOptions("kafka", tuple(arrow.schema("kafka").names), wanted=given.wanted)
    return [
        (row["topic"], row["offset"])
        for pieces in reading.plan(given.paths, asked, given.bundle_bytes, given.min_partitions)
        for piece in pieces
        for rows in reading.read(piece, asked)
        for row in rows.to_pylist()
    ]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a log dir with partitions of two topics; offsets 0 to 8, from three batches."""
    for name in ("orders-0", "orders-1", "paid-0", "__cluster_metadata-0"):
        log = Log(tmp_path / "home", name)
        log.append(2)
        log.roll()
        log.append(1)
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"subscribe": "paid"}, [("paid", n) for n in range(9)]),
        ({"subscribePattern": "p.*"}, [("paid", n) for n in range(9)]),
        ({"subscribePattern": "p"}, UsageError),
        ({"subscribePattern": "("}, UsageError),
        ({"subscribe": "paid,missing"}, UsageError),
        ({"subscribe": "__cluster_metadata"}, UsageError),
        ({"assign": '{"orders":[1]}'}, [("orders", n) for n in range(9)]),
        ({"assign": '{"orders":[1,7]}'}, UsageError),
        ({"assign": '{"orders":1}'}, UsageError),
        ({"assign": "{}"}, UsageError),
        ({"assign": '{"orders":[1]}', "subscribe": "orders"}, UsageError),
        ({"topic": "paid", "subscribe": "paid"}, UsageError),
        ({"subscribe": "paid", "startingTimestamp": START + 3}, [("paid", n) for n in range(3, 9)]),
        ({"subscribe": "paid", "endingTimestamp": START + 4}, [("paid", n) for n in range(6)]),
        ({"subscribe": "paid", "startingTimestamp": START + 7}, UsageError),
        ({"subscribe": "paid", "startingTimestamp": START + 7,
          "startingOffsetsByTimestampStrategy": "latest"}, []),
        ({"subscribe": "paid", "startingOffsetsByTimestampStrategy": "newest"}, UsageError),
        ({"subscribe": "paid", "endingTimestamp": START + 7}, [("paid", n) for n in range(9)]),
        ({"subscribe": "paid", "startingOffsetsByTimestamp": json.dumps({"paid": {"0": START + 1}}),
          "endingOffsetsByTimestamp": json.dumps({"paid": {"0": START + 6}})},
         [("paid", n) for n in range(3, 6)]),
        ({"subscribe": "orders", "startingOffsetsByTimestamp": json.dumps({"orders": {"0": 1}})},
         UsageError),
        ({"subscribe": "paid", "startingOffsetsByTimestamp": "noon"}, UsageError),
        ({"subscribe": "paid", "startingOffsets": '{"paid":{"0":7}}'}, [("paid", 7), ("paid", 8)]),
    ],
)  # fmt: skip
def test_options_of_sparks_own_source_choose_the_same_records(home, options, expected):
    if expected is UsageError:
        with pytest.raises(UsageError):
            planned(home, **options)
    else:
        assert planned(home, **options) == expected


def test_a_least_number_of_tasks_is_kept(home):
    asked = ReadOptions("kafka", ("offset",))
    assert len(reading.plan([home], asked)) == 1
    assert len(reading.plan([home], asked, min_bundles=5)) >= 5


def test_options_of_a_consumer_have_no_effect_and_are_named_once(home):
    found = parsed(**{
        "kafka.bootstrap.servers": "host:9092", "kafka.group.id": "g", "groupIdPrefix": "p",
        "kafkaConsumer.pollTimeoutMs": "5", "maxOffsetsPerTrigger": "9", "minPartitions": "4",
    })  # fmt: skip
    assert found.without_effect == (
        "groupidprefix", "kafka.bootstrap.servers", "kafka.group.id",
        "kafkaconsumer.polltimeoutms", "maxoffsetspertrigger",
    )  # fmt: skip
    assert found.min_partitions == 4
    for wrong in (
        {"kafka.isolation.level": "read_committed"}, {"kafkas.x": "1"}, {"minPartitions": "many"},
        {"table": "records", "kafka.bootstrap.servers": "h"}, {"table": "records", "assign": "{}"},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            parsed(**wrong)


def test_a_stream_of_kafka_begins_where_its_times_do_and_leaves_the_metadata_log_out(home):
    def stream(**options: Any) -> Growing:
        given = source_options.parse({"table": "kafka", "path": str(home), **options}, stream=True)
        return Growing(given.paths, ReadOptions("kafka", ("offset",), wanted=given.wanted))

    every = stream().latest()[str(home)]
    assert set(every) == {"orders-0", "orders-1", "paid-0"}
    begun = stream(startingTimestamp=str(START + 3), subscribe="paid")
    assert begun.initial() == {str(home): {"paid-0": 3}}
    rows = [
        row["offset"]
        for pieces in begun.between(begun.initial(), begun.latest())
        for piece in pieces
        for some in reading.read(piece, begun.asked)
        for row in some.to_pylist()
    ]
    assert rows == [*range(3, 9)]
    for wrong in ({"endingTimestamp": "5"}, {"endingOffsetsByTimestamp": "{}"}):
        with pytest.raises(UsageError):
            stream(**wrong)
    with pytest.raises(UsageError):
        source_options.parse(
            {"table": "records", "path": "/logs", "startingTimestamp": "5"}, stream=True
        )


PROPERTIES = {"provider": "kafka-log", "owner": "root", "location": "file:/l", "path": "file:/l"}


@pytest.mark.parametrize(
    ("more", "table"),
    [
        ({"option.table": "records", "table": "records"}, "records"),
        ({}, "batches"),
        ({"comment": "ours", "external": "true"}, "batches"),
        ({"option.tabel": "records", "tabel": "records"}, UsageError),
        ({"table": "records"}, UsageError),  # in TBLPROPERTIES, where nothing is checked
    ],
)
def test_a_new_table_of_the_catalog_has_the_options_of_its_clause(more, table):
    given = {**PROPERTIES, **more}
    if table is UsageError:
        with pytest.raises(UsageError):
            source_options.parse(given)
        return
    found = source_options.parse(given)
    assert (found.table, found.paths) == (table, (Path("/l"),))


@pytest.mark.parametrize("name", ["provider", "owner", "option.table", "location"])
def test_what_the_catalog_adds_is_no_option_of_a_query(name):
    with pytest.raises(UsageError):
        source_options.parse({"path": "/logs", name: "records"})


@pytest.mark.spark
@pytest.mark.lowest
def test_a_table_of_the_catalog_is_read_with_its_options(spark, tmp_path, home):
    from pyspark.errors import PySparkException

    from logtool.spark.source import source

    source.register(spark)
    using = "create table {} using `kafka-log`"
    named = f"options (path '{home}', table 'records', topic 'orders', partition '1')"
    spark.sql("drop table if exists moved")
    try:
        spark.sql(f"{using.format('moved')} {named}")
        rows = spark.sql("select distinct topic, partition from moved").collect()
        assert [tuple(row) for row in rows] == [("orders", 1)]
        assert spark.table("moved").where("offset >= 7").count() == 2
        later = spark.sql("select `offset` from moved with (startingOffsets = '6')")
        assert sorted(row.offset for row in later.collect()) == [6, 7, 8]
        for wrong in (f"options (path '{home}', tabel 'records')", "options (table 'records')",
                      f"options (path '{home}') tblproperties ('table' 'records')"):  # fmt: skip
            with pytest.raises(PySparkException):
                spark.sql(f"{using.format('wrong')} {wrong}")
    finally:
        spark.sql("drop table if exists moved")
        spark.sql("drop table if exists wrong")


@pytest.mark.spark
@pytest.mark.lowest
def test_a_query_and_a_stream_of_a_broker_move_with_their_options(spark, tmp_path, home):
    from logtool.spark.source import source

    source.register(spark)
    options = {
        "kafka.bootstrap.servers": "host:9092", "subscribePattern": "or.*", "groupIdPrefix": "p",
        "includeHeaders": "true", "startingOffsets": '{"orders":{"0":4,"1":-1}}',
    }  # fmt: skip
    read = spark.read.format("kafka-log").option("table", "kafka").options(**options)
    rows = read.load(str(home)).collect()
    assert sorted(row.offset for row in rows) == [*range(4, 9)]
    stream = spark.readStream.format("kafka-log").option("table", "kafka").options(**options)
    query = (
        stream.load(str(home)).writeStream.format("memory").queryName("moved_stream")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    )  # fmt: skip
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    found = spark.table("moved_stream").select("topic", "partition", "offset").collect()
    assert sorted(map(tuple, found)) == [("orders", 0, n) for n in range(4, 9)]
