"""The data source in a Spark session: the rows of the logs, whatever Spark asks for."""

import random
from pathlib import Path

import pytest
from conftest import SCENARIOS
from damage import copied, flip
from pipeline.places import homes
from verification import rewrite

from logtool.errors import UsageError
from logtool.pipeline import reading, tables
from logtool.pipeline.reading import TABLES, Asked
from logtool.pipeline.rows import Payload

pytestmark = pytest.mark.spark
SOME = ("3.9.0/compaction", "4.3.1/killed", "4.3.1/two-log-dirs")


@pytest.fixture
def source(spark):
    from logtool.pipeline import source

    source.register(spark)
    return source


def local(*paths: Path, table: str, payload: Payload = Payload.NONE, size: int | None = None):
    """Return the rows as they are read without Spark, every byte of them."""
    asked = Asked(table, tuple(tables.schema(table).names), payload=payload)
    return [
        row
        for pieces in reading.plan(paths, asked, size)
        for piece in pieces
        for rows in reading.read(piece, asked)
        for row in rows.to_pylist()
    ]


def in_order(rows) -> list[dict]:
    found = [row if isinstance(row, dict) else row.asDict() for row in rows]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row.values()])


def collected(frame) -> list[dict]:
    return in_order(frame.collect())


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("table", TABLES)
def test_rows_are_those_of_the_logs(source, spark, scenario, name, table):
    assert name in SCENARIOS
    paths = homes(scenario(name))
    frame = getattr(source, table)(spark, *paths)
    found = collected(frame)
    assert found == in_order(local(*paths, table=table))
    assert found
    assert frame.columns == tables.schema(table).names


@pytest.mark.parametrize("payload", Payload)
def test_keys_and_values_come_as_far_as_they_are_asked_for(source, spark, scenario, payload):
    (home,) = homes(scenario("4.3.1/java-clients"))
    found = collected(source.records(spark, home, payload=payload))
    assert found == in_order(local(home, table="records", payload=payload))
    assert any(row["key_length"] for row in found) == payload.tells(Payload.LENGTH)
    assert any(row["value"] for row in found) == payload.tells(Payload.FULL)


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
    "topic = 'codec-none'",
    "topic in ('codec-none', 'codec-zstd', null)",
    "topic like 'codec%' and partition = 0",
    "directory = 'nothing'",
    "partition > 0",
    "not (partition = 1)",
    "node_id is null or node_id <> 1",
    "node_id <=> 1",
    "base_offset between 3 and 20",
    "last_offset >= 10",
    "last_offset < 4 or base_offset > 30",
    "base_offset + 1 = 4",
    "base_offset = 3.0",
    "segment = 0",
    "crc > 2147483647",
    "producer_id = 1000 and producer_epoch < 100000",
    "producer_id is null",
    "transactional",
    "not control",
    "control_type in (0, 1)",
    "max_timestamp_ms >= (select max(max_timestamp_ms) - 2000 from everything)",
    "max_timestamp_ms is not null",
    "base_timestamp_ms > 0",
    "codec = 4 and magic = 2 and size > 100",
    "base_offset > 5 and base_offset < 5",
    "base_offset >= 9223372036854775807",
]


@pytest.fixture(scope="module")
def everything(spark, scenario, tmp_path_factory):
    """Return log dirs with sound and with damaged logs, and the view of all their batches."""
    from logtool.pipeline import source

    damaged = copied(scenario("4.3.1/clean"), tmp_path_factory.mktemp("damaged") / "clean")
    for number, log in enumerate(sorted(damaged.rglob("*.log"))):
        data = log.read_bytes()
        if number % 3 == 0 and len(data) > 200:
            rewrite(log, flip(data, len(data) // 2))
    paths = [*homes(damaged), *homes(scenario("3.9.0/compaction"))]
    source.batches(spark, *paths, prune="false").cache().createOrReplaceTempView("everything")
    return paths


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_that_are_pushed_down_choose_the_same_rows(source, spark, everything, condition):
    if "select" in condition:
        least = spark.sql("select max(max_timestamp_ms) - 2000 from everything").first()[0]
        condition = f"max_timestamp_ms >= {least}"
    found = source.batches(spark, *everything).where(condition)
    assert collected(found) == collected(spark.table("everything").where(condition))


def test_random_filters_choose_the_same_records(source, spark, everything):
    rng = random.Random(11)
    whole = source.records(spark, *everything, prune="false", columns=["topic", "partition",
            "segment", "offset", "timestamp_ms", "producer_id", "sequence"]).cache()  # fmt: skip
    rows = collected(whole)
    for _ in range(8):
        parts = []
        for name in rng.sample(["offset", "timestamp_ms", "partition", "topic", "sequence"], 2):
            value = rng.choice(rows)[name]
            shown = "null" if value is None else f"{value!r}"
            parts.append(f"{name} {rng.choice(['=', '<', '<=', '>', '>=', '<=>'])} {shown}")
        condition = rng.choice([" and ", " and ", " or "]).join(parts)
        found = source.records(spark, *everything, columns=whole.columns).where(condition)
        assert collected(found) == collected(whole.where(condition)), condition


def test_a_filter_leaves_tasks_only_for_what_it_takes(source, spark, scenario):
    (home,) = homes(scenario("4.3.1/clean"))

    def tasks(condition: str) -> int:
        frame = source.batches(spark, home, bundle_bytes=1).where(condition)
        return frame.rdd.getNumPartitions()

    rows = local(home, table="segments")
    assert tasks("size > 0") >= len(rows)
    one = [row for row in rows if row["directory"] == "codec-none-0"]
    assert 1 <= tasks("topic = 'codec-none' and partition = 0") < tasks("topic = 'codec-none'")
    assert tasks("directory = 'codec-none-0' and segment < 0") == 1  # an empty one
    assert one


def test_nothing_is_left_out_where_pruning_is_off(source, spark, scenario, tmp_path):
    (home,) = homes(copied(scenario("4.3.1/clean"), tmp_path / "clean"))
    (log,) = (home / "codec-none-0").glob("*.log")
    # Under this name a broker would not look for what is in it.
    (home / "codec-none-0" / f"{10**9:020d}.log").write_bytes(log.read_bytes())
    batches = source.batches(spark, home / "codec-none-0", prune="false").where("base_offset = 0")
    assert {row["segment"] for row in batches.collect()} == {0, 10**9}


def test_what_cannot_be_read_has_no_rows_and_fails_no_job(source, spark, scenario, tmp_path):
    (home,) = homes(copied(scenario("4.3.1/clean"), tmp_path / "clean"))
    (log,) = (home / "codec-none-0").glob("*.log")
    expected = [row for row in local(home, table="batches") if row["directory"] != "codec-none-0"]
    log.rename(tmp_path / "moved")
    log.symlink_to(tmp_path / "moved")
    assert collected(source.batches(spark, home)) == in_order(expected)
    unread = source.segments(spark, home).where("not read").collect()
    assert [row["directory"] for row in unread] == ["codec-none-0"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "findings"}, "option table: expected batches, records, segments"),
        ({"table": "records", "payload": "some"}, "option payload: expected none, length"),
        ({"limit": "many"}, "option limit: expected a number of bytes, found 'many'"),
        ({"prune": "no"}, "option prune: expected true, false, found 'no'"),
    ],
)
def test_an_option_that_does_not_exist_is_told(source, spark, tmp_path, options, said):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=said):
        spark.read.format("kafka-log").options(**options).load(str(tmp_path)).collect()


def test_a_column_or_a_path_that_does_not_exist_is_told(source, spark, tmp_path):
    from pyspark.errors import PySparkException

    read = spark.read.format("kafka-log")
    with pytest.raises(PySparkException, match="batches has no column 'size_of'"):
        read.schema("size_of long").load(str(tmp_path)).collect()
    with pytest.raises(PySparkException, match="the column size of batches is int"):
        read.schema("size long").load(str(tmp_path)).collect()
    with pytest.raises(UsageError, match="has no column 'nothing'"):
        source.batches(spark, tmp_path, columns=["nothing"])
    with pytest.raises(PySparkException, match="No such file or directory"):
        spark.read.format("kafka-log").load(str(tmp_path / "missing")).collect()
    with pytest.raises(PySparkException, match="expected a path"):
        spark.read.format("kafka-log").load().collect()
