"""The data source in a Spark session: the rows of the logs, for every query of Spark."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import metadata_secrets
import pytest
from conftest import SCENARIOS
from damage import copied, flip
from pipeline.places import homes, span
from verification import rewrite

from logtool.errors import UnreadableError, UsageError
from logtool.formats import record_batch
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.source import finding_rows, question_rows, reading
from logtool.spark.source import options as source_options
from logtool.spark.source.reading import TABLES, ReadOptions

AnalysisException: Any = Exception
PySparkException: Any = Exception
if find_spec("pyspark"):
    from pyspark.errors import AnalysisException, PySparkException

pytestmark = pytest.mark.spark
SOME = ("3.9.0/compaction", "4.3.1/killed", "4.3.1/two-log-dirs")


@pytest.fixture
def source(spark):
    from logtool.spark.source import source

    source.register(spark)
    return source


def local(*paths: Path, table: str, payload: Payload = Payload.NONE, size: int | None = None):
    """Return the rows as they are read without Spark, every byte of them."""
    asked = ReadOptions(table, tuple(arrow.schema(table, payload).names), payload=payload)
    bundles: list[Any]
    if table == finding_rows.NAME:
        bundles = finding_rows.plan(paths, asked.wanted)
    else:
        bundles = reading.plan(paths, asked, size)
    return [
        row
        for pieces in bundles
        for piece in pieces
        for rows in reading.read(piece, asked)
        for row in rows.to_pylist()
    ]


def moment(value):
    """Return a time in UTC: Spark gives it to Python in the time zone of the machine."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def in_order(rows) -> list[dict]:
    found = [
        {name: moment(value) for name, value in row.items()}
        for row in (row if isinstance(row, dict) else row.asDict(recursive=True) for row in rows)
    ]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row.values()])


def collected(frame) -> list[dict]:
    return in_order(frame.collect())


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("table", [one for one in TABLES if one not in question_rows.TABLES])
def test_rows_are_those_of_the_logs(source, spark, scenario, name, table):
    assert name in SCENARIOS
    paths = homes(scenario(name))
    options = {"includeHeaders": "true"} if table == "kafka" else {}
    frame = getattr(source, table)(spark, *paths, **options)
    found = collected(frame)
    assert found == in_order(local(*paths, table=table))
    assert found
    assert frame.columns == arrow.schema(table, Payload.NONE).names


@pytest.mark.parametrize("payload", Payload)
def test_keys_and_values_come_as_far_as_they_are_asked_for(source, spark, scenario, payload):
    (home,) = homes(scenario("4.3.1/java-clients"))
    found = collected(source.records(spark, home, payload=payload))
    assert found == in_order(local(home, table="records", payload=payload))
    assert ("key_size" in found[0]) == payload.includes(Payload.LENGTH)
    assert ("value" in found[0]) == payload.includes(Payload.FULL)


def test_secrets_of_a_metadata_log_come_where_they_are_asked_for(source, spark, tmp_path):
    log = metadata_secrets.write(tmp_path)
    for options, expected in (({}, []), ({"showSecrets": True}, list(metadata_secrets.SECRETS))):
        frame = source.records(spark, tmp_path, payload="full", columns=["value"], **options)
        values = b" ".join(row["value"] or b"" for row in frame.collect())
        assert metadata_secrets.spelled(values) == expected
    assert metadata_secrets.spelled(log.read_bytes()) == list(metadata_secrets.SECRETS)


@pytest.mark.lowest
def test_keys_and_values_that_were_not_asked_for_are_no_columns(source, spark, scenario):
    """Taken for null, every record would look like a tombstone."""
    (home,) = homes(scenario("4.3.1/clean"))
    values = local(home, table="records", payload=Payload.FULL)
    tombstones = sum(row["value"] is None for row in values)
    assert 0 < tombstones < len(values) / 10
    whole = source.records(spark, home, payload="full")
    assert whole.where("value is null").count() == tombstones
    with pytest.raises(AnalysisException, match="`value`"):
        source.records(spark, home).where("value is null")
    needed = "value .*payload=full"
    with pytest.raises(UsageError, match=needed):
        source.records(spark, home, columns=["value"], payload="hash")
    read = spark.read.format("kafka-log").option("table", "records").schema("value binary")
    with pytest.raises(PySparkException, match=needed):
        read.load(str(home)).collect()


def test_a_path_is_loaded_as_any_other_format_is(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))
    plain = spark.read.format("kafka-log").load(str(home))
    assert collected(plain) == in_order(local(home, table="batches"))
    several = sorted(path for path in home.iterdir() if path.name.startswith("codec"))[:2]
    found = spark.read.format("kafka-log").option("table", "segments").load([*map(str, several)])
    assert {row["directory"] for row in collected(found)} == {path.name for path in several}
    (log,) = several[0].glob("*.log")
    assert collected(source.batches(spark, log)) == in_order(local(log, table="batches"))


def test_only_columns_that_are_asked_for_come(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))
    columns = ["crc", "topic", "last_sequence"]
    expected = [
        {name: row[name] for name in columns} for row in local(home, table="batches")
    ]  # fmt: skip
    frame = source.batches(spark, home, columns=columns)
    assert frame.columns == columns
    assert collected(frame) == in_order(expected)
    schema = "crc bigint, topic string, last_sequence int"
    same = spark.read.format("kafka-log").schema(schema).load(str(home))
    assert collected(same) == in_order(expected)


CONDITIONS = [
    "topic in ('codec-none', 'codec-zstd', null)",
    "topic like 'codec%' and partition = 0",
    "not (partition = 1)",
    "node_id is null or node_id <> 1",
    "node_id <=> 1",
    "base_offset between 3 and 20",
    "last_offset < 4 or base_offset > 30",
    "base_offset + 1 = 4",
    "crc > 2147483647",
    "not control",
    "max_timestamp_ms >= (select max(max_timestamp_ms) - 2000 from everything)",
    "codec = 'zstd' and magic = 2 and size > 100",
    "base_offset > 5 and base_offset < 5",
]


@pytest.fixture(scope="module")
def everything(spark, scenario, tmp_path_factory):
    """Return log dirs with sound and with damaged logs, and the view of all their batches."""
    from logtool.spark.source import source

    damaged = copied(scenario("4.3.1/clean"), tmp_path_factory.mktemp("damaged") / "clean")
    for number, log in enumerate(sorted(damaged.rglob("*.log"))):
        data = log.read_bytes()
        if number % 3 == 0 and len(data) > 200:
            rewrite(log, flip(data, len(data) // 2))
    paths = [*homes(damaged), *homes(scenario("3.9.0/compaction"))]
    source.batches(spark, *paths, prune="false").cache().createOrReplaceTempView("everything")
    return paths


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_choose_the_same_rows(source, spark, everything, condition):
    if "select" in condition:
        least = spark.sql("select max(max_timestamp_ms) - 2000 from everything").first()[0]
        condition = f"max_timestamp_ms >= {least}"
    found = source.batches(spark, *everything).where(condition)
    assert collected(found) == collected(spark.table("everything").where(condition))


def test_options_choose_partitions_offsets_and_times(source, spark, everything):
    whole = spark.table("everything")
    named = {"codec-none": dict.fromkeys(map(str, range(9)), 3)}
    late = whole.selectExpr("max(max_timestamp_ms) - 2000").first()[0]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"topic": "codec-none"}, "topic = 'codec-none'"),
        ({"topic": "codec*, tx.mixed"}, "topic like 'codec%' or topic = 'tx.mixed'"),
        ({"partition": "1, 2"}, "partition in (1, 2)"),
        ({"startingOffsets": 20}, "last_offset >= 20"),
        ({"startingOffsets": 20, "endingOffsets": "40"}, "last_offset >= 20 and base_offset < 40"),
        ({"topic": "codec-none", "endingOffsets": json.dumps(named)},
         "topic = 'codec-none' and base_offset < 3"),
        ({"startingTimestamp": late}, f"max_timestamp_ms >= {late}"),
        ({"endingTimestamp": late}, f"max_timestamp_ms < {late}"),
    ]  # fmt: skip
    for options, condition in cases:
        expected = collected(whole.where(condition))
        assert expected, condition
        assert collected(source.batches(spark, *everything, **options)) == expected, options
        found = source.batches(spark, *everything, **options, columns=["crc"])
        assert sorted(row.crc for row in found.collect()) == sorted(row["crc"] for row in expected)


@pytest.mark.lowest
def test_options_choose_records_one_by_one(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))
    rows = [row for row in local(home, table="records") if row["topic"] == "codec-zstd"]
    first = sorted(row["timestamp_ms"] for row in rows)[50]
    found = source.records(
        spark, home, topic="codec-zstd", startingTimestamp=first, endingTimestamp=first + 100,
        endingOffsets=57, columns=["partition", "offset"],
    )  # fmt: skip
    expected = [
        {name: row[name] for name in ("partition", "offset")} for row in rows
        if first <= row["timestamp_ms"] < first + 100 and row["offset"] < 57
    ]  # fmt: skip
    assert 0 < len(expected) < len(rows)
    assert collected(found) == in_order(expected)


ONE, OTHER = "topic = 'codec-none' and offset < 5", "topic = 'codec-zstd' and partition = 0"


@pytest.mark.lowest
def test_a_frame_that_is_used_twice_gives_the_same_rows_each_time(source, spark, scenario):
    """Up to 4.3 Spark takes the filters of one use of a frame for those of all others."""
    (home,) = homes(scenario("4.3.1/clean"))
    rows = local(home, table="records")
    one = sum(row["topic"] == "codec-none" and row["offset"] < 5 for row in rows)
    other = sum(row["topic"] == "codec-zstd" and row["partition"] == 0 for row in rows)
    assert one
    assert other
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # of no consequence
    frame = source.records(spark, home)
    assert frame.where(ONE).count() == one
    assert frame.count() == len(rows)
    assert frame.where(OTHER).count() == other
    assert frame.where(ONE).union(frame.where(OTHER)).count() == one + other
    left, right = frame.where(ONE).alias("l"), frame.where("offset < 3").alias("r")
    keys = ("log_dir", "directory", "offset")
    joined = left.join(right, list(keys))
    assert joined.count() == len(
        {tuple(row[key] for key in keys) for row in rows
         if row["topic"] == "codec-none" and row["offset"] < 3}
    )  # fmt: skip
    frame = source.records(spark, home)
    frame.createOrReplaceTempView("twice")
    counts = spark.sql(
        f"select (select count(*) from twice where {ONE}), (select count(*) from twice), "
        f"(select count(*) from twice where {OTHER})"
    )
    assert tuple(counts.first()) == (one, len(rows), other)
    assert spark.sql(f"select * from twice where {ONE}").count() == one
    assert spark.table("twice").count() == len(rows)
    frame = source.records(spark, home)
    some = frame.where(ONE).cache()
    assert some.count() == one
    assert frame.cache().count() == len(rows)
    assert frame.where(OTHER).count() == other
    some.unpersist()
    frame.unpersist()


@pytest.mark.lowest
def test_a_frame_that_two_threads_use_at_once_gives_each_its_own_rows(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))
    rows = local(home, table="records")
    expected = [
        sum(row["topic"] == topic for row in rows) for topic in ("codec-none", "codec-zstd")
    ]
    frame = source.records(spark, home)
    conditions = ["topic = 'codec-none'", "topic = 'codec-zstd'"] * 3
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda one: frame.where(one).count(), conditions))
    assert found == expected * 3


def test_options_leave_tasks_only_for_what_they_take(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))

    def tasks(**options: object) -> int:
        frame = source.batches(spark, home, bundleBytes=1, **options)
        return frame.rdd.getNumPartitions()

    assert tasks() >= len(local(home, table="segments"))
    assert 1 <= tasks(topic="codec-none", partition=0) < tasks(topic="codec-none")
    assert tasks(topic="codec-none", startingOffsets="latest") == 1  # an empty one


def test_nothing_is_left_out_where_pruning_is_off(source, spark, scenario, tmp_path):
    (home,) = homes(copied(scenario("4.3.1/clean"), tmp_path / "clean"))
    (log,) = (home / "codec-none-0").glob("*.log")
    # Under this name a broker would not look for what is in it.
    (home / "codec-none-0" / f"{10**9:020d}.log").write_bytes(log.read_bytes())
    batches = source.batches(spark, home / "codec-none-0", prune="false", endingOffsets=1)
    assert {row["segment"] for row in batches.collect()} == {0, 10**9}


def partitions(home: Path, *topics: str) -> dict[str, Path]:
    """Write partitions of 30 records in 3 batches, and return the path of each log."""
    data = b"".join(span(first, first + 9) for first in (0, 10, 20))
    logs = {topic: home / f"{topic}-0" / f"{0:020d}.log" for topic in topics}
    for log in logs.values():
        log.parent.mkdir(parents=True)
        log.write_bytes(data)
    return logs


def test_a_log_that_cannot_be_read_fails_the_query_or_is_a_row_of_findings(source, spark, tmp_path):
    home = tmp_path / "data"
    log = partitions(home, "sound", "odd")["odd"]
    log.rename(tmp_path / "moved")
    log.symlink_to(tmp_path / "moved")
    with pytest.raises(PySparkException) as error:
        source.batches(spark, home).collect()
    assert_one_sentence(error.value, str(log), "failOnDataLoss=false")
    loose = {"failOnDataLoss": False}
    assert source.records(spark, home, **loose).count() == 30
    found = {row["topic"]: row["read"] for row in source.segments(spark, home, **loose).collect()}
    assert found == {"sound": True, "odd": False}
    rows = source.findings(spark, home, **loose).where("severity = 'unreadable'").collect()
    assert [row["path"] for row in rows] == [str(log)]


def test_what_changes_between_planning_and_reading_fails_the_query(source, spark, tmp_path):
    logs = partitions(tmp_path / "data", "grows", "gone", "cut")

    def planned(*topics: str, **options: object) -> Any:
        """Return a query that has listed its inputs, and has read nothing."""
        frame = source.records(spark, tmp_path / "data", topic=",".join(topics), **options)
        assert frame.rdd.getNumPartitions()
        return frame.rdd

    grows, cut, kept = planned("grows"), planned("cut"), planned(*logs, failOnDataLoss=False)
    logs["grows"].write_bytes(logs["grows"].read_bytes() + span(30, 39) + b"a torn tail")
    logs["gone"].unlink()
    logs["cut"].write_bytes(logs["cut"].read_bytes()[:-1])
    assert grows.count() >= 30
    with pytest.raises(Exception, match=re.escape(str(logs["cut"]))):
        cut.count()
    assert {row["topic"] for row in kept.collect()} == {"grows", "cut"}


def test_findings_count_the_damage_in_a_selection_and_fail_no_query(source, spark, tmp_path):
    sound = span(0, 9)
    folder = tmp_path / "data" / "orders-0"
    folder.mkdir(parents=True)
    log = folder / f"{0:020d}.log"
    junk = record_batch.encode(b"no record", base_offset=20, last_offset_delta=0, record_count=1)
    log.write_bytes(sound + flip(span(10, 19), 70) + junk + span(21, 29) + b"torn")
    damage = {"batch/crc", "batch/records", "log/torn-tail"}
    for options, codes in (
        ({}, damage),
        ({"startingOffsets": 20}, {"batch/records", "log/torn-tail"}),
        ({"endingOffsets": 20}, {"batch/crc"}),
        ({"topic": "orders", "partition": 0, "endingOffsets": 5}, set()),
    ):
        rows = source.findings(spark, tmp_path / "data", **options).collect()
        assert {row["code"] for row in rows if row["path"] == str(log)} & damage == codes
        assert source.records(spark, tmp_path / "data", **options).count() >= 5
    assert source.findings(spark, tmp_path / "data").schema == source.spark_schema("findings")


ODD_OPTIONS = [
    ({"table": "topics"}, ("option table", "'topics'")),
    ({"table": "records", "payload": "some"}, ("option payload", "full")),
    ({"table": "records", "maxDecompressedBytes": "many"},
     ("option maxDecompressedBytes", "'many'")),
    ({"payload": "full"}, ("option payload", "records", "batches")),
    ({"prune": "no"}, ("option prune", "'no'")),
    ({"partition": "0-3"}, ("option partition", "'0-3'")),
    ({"topic": " "}, ("option topic", "empty")),
    ({"startingOffsets": "first"}, ("option startingOffsets", "earliest")),
    ({"endingTimestamp": "noon"}, ("option endingTimestamp", "1970")),
    ({"table": "segments", "endingTimestamp": "1"}, ("option endingTimestamp", "segments")),
    ({"table": "findings", "startingTimestamp": "1"}, ("option startingTimestamp", "findings")),
    ({"startingOffset": "5"}, ("option startingoffset", "startingOffsets")),
    ({"topics": "a"}, ("option topics", "topic?")),
    ({"limit": "5"}, ("option limit", "table, topic, partition, ")),
    ({"failOnDataLoss": "yes"}, ("option failOnDataLoss", "'yes'")),
    ({"maxOffsetsPerTrigger": "9"}, ("option maxOffsetsPerTrigger",)),
]  # fmt: skip


def assert_one_sentence(error: Exception, *named: str) -> None:
    text = str(error)
    assert all(word in text for word in named), text
    assert "Traceback" not in text
    assert 'File "' not in text
    assert "\tat " not in text
    assert len(text.splitlines()) <= 3


@pytest.mark.parametrize(("options", "named"), ODD_OPTIONS)
def test_an_option_that_makes_no_sense_is_refused(source, spark, tmp_path, options, named):
    with pytest.raises(PySparkException) as error:
        spark.read.format("kafka-log").options(**options).load(str(tmp_path))
    assert_one_sentence(error.value, *named)


def test_a_stream_and_a_read_take_the_options_that_each_can_keep():
    for value in ("true", "false"):
        stream = source_options.parse({"path": "/logs", "failOnDataLoss": value}, stream=True)
        assert stream.fail_on_data_loss is (value == "true")
        read = source_options.parse({"path": "/logs", "failOnDataLoss": value})
        assert read.fail_on_data_loss is (value == "true")
    with pytest.raises(UsageError, match=r"^option maxOffsetsPerTrigger: .*startingOffsets$"):
        source_options.parse({"path": "/logs", "maxoffsetspertrigger": "9"}, stream=True)


def test_functions_say_what_is_wrong_before_spark_is_asked(source, spark, scenario, tmp_path):
    (home,) = homes(scenario("4.3.1/clean"))
    with pytest.raises(UsageError, match=r"paylod.*payload"):
        source.records(spark, home, paylod="full")
    with pytest.raises(UsageError, match=r"batches.*'nothing'"):
        source.batches(spark, home, columns=["nothing"])
    with pytest.raises(UnreadableError) as unreadable:
        source.batches(spark, tmp_path / "missing")
    assert unreadable.value.path == tmp_path / "missing"
    with pytest.raises(UsageError, match="path"):
        source.batches(spark)


@pytest.mark.lowest
def test_a_column_or_a_path_that_does_not_exist_is_named(source, spark, scenario, tmp_path):
    (home,) = homes(scenario("4.3.1/clean"))
    read = spark.read.format("kafka-log")
    missing = str(tmp_path / "missing")
    for action, named in [
        (lambda: read.load(missing), [f"{missing}: No such file"]),
        (lambda: read.load(), ["load("]),
        (lambda: read.schema("size_of long").load(str(home)).collect(), ["batches", "'size_of'"]),
        (lambda: read.schema("size int").load(str(home)).collect(), ["size", "bigint"]),
        (lambda: spark.read.format("kafka-log").option("topic", "none").load(str(home)).collect(),
         ["topic", str(home)]),
    ]:  # fmt: skip
        with pytest.raises(PySparkException) as error:
            action()
        assert_one_sentence(error.value, *named)


@pytest.mark.lowest
def test_a_stream_of_segments_and_writing_are_refused_with_what_to_do_instead(
    source, spark, scenario, tmp_path
):
    (home,) = homes(scenario("4.3.1/clean"))
    rows = spark.range(1)
    with pytest.raises(PySparkException) as error:
        rows.write.format("kafka-log").mode("append").save(str(tmp_path / "new"))
    assert_one_sentence(error.value, "kafka-log only reads")
    assert not (tmp_path / "new").exists()
    stream = spark.readStream.format("kafka-log").option("table", "segments").load(str(home))
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    with pytest.raises(PySparkException) as error:
        query.awaitTermination(60)
    assert all(word in str(error.value) for word in ("segments", "spark.read"))
    assert "Traceback" not in str(error.value)


def test_a_batch_above_the_limit_ends_the_job_with_its_place(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))
    records = source.records(spark, home, topic="codec-zstd", maxDecompressedBytes=300)
    with pytest.raises(PySparkException) as error:
        records.collect()
    said = str(error.value)
    assert all(word in said for word in ("300", "maxDecompressedBytes"))
    assert "codec-zstd-" in said
    assert "Traceback" not in said
    assert "File " not in said
