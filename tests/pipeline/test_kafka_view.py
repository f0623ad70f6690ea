"""The table ``kafka`` of the data source, compared with Spark's own source on a live broker."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from broker.install import KAFKA_4, available
from broker.kafka import Broker
from damage import copied
from pipeline import with_kafka

from logtool.errors import UsageError
from logtool.formats.names import DirectoryKind
from logtool.log import opening

PySparkException: Any = Exception
if find_spec("pyspark"):
    from pyspark.errors import PySparkException

# A session and a broker on one machine: minutes if the machine has other work.
pytestmark = pytest.mark.timeout(1200)
TESTS = Path(__file__).parents[1]
QUIET = {
    # Records of the fixtures are years old; what is deleted or compacted meanwhile would differ.
    "log.retention.check.interval.ms": "86400000", "log.retention.ms": "-1",
    "log.cleaner.enable": "false",
}  # fmt: skip


def topics_of(home: Path) -> list[str]:
    """Return the topics of a log dir that clients write to."""
    return sorted({
        directory.topic for _, directory in opening.open_log_dir(home).partitions
        if directory.kind is DirectoryKind.LIVE and not directory.topic.startswith("__")
    })  # fmt: skip


def write_more(bootstrap: str, topic: str) -> None:
    """Let the live broker take records with headers, keys and values of every kind, and none."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [
        ("unit", b"\xfe"), ("none", None), ("ключ", b""),
    ]  # fmt: skip
    for number in range(20):
        producer.produce(
            topic, partition=0, key=None if number % 5 == 0 else b"key %d" % number,
            value=None if number % 4 == 0 else b"\xff\x00 %d" % number,
            headers=headers[: number % 4] or None,
        )  # fmt: skip
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def compared(scenario, tmp_path_factory):
    """Return the answers of both to the same queries, while the broker runs."""
    from pipeline import connector
    from pyspark import __version__ as release

    if reason := available(KAFKA_4):
        if os.environ.get("LOGTOOL_REQUIRE_BROKER") == "1":
            pytest.fail(f"LOGTOOL_REQUIRE_BROKER=1, but {reason}")
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("live") / "data"
    shutil.copytree(scenario("4.3.1/clean"), home)
    topics = topics_of(home)
    with Broker(KAFKA_4, [home], QUIET) as broker:
        broker.start()
        write_more(broker.bootstrap, "codec-none")
        words = [broker.bootstrap, home, ",".join(topics),
                 ",".join(map(str, connector.jars(release)))]  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.with_kafka", *map(str, words)],
            cwd=TESTS, capture_output=True, text=True, check=False, timeout=1000,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.spark
@pytest.mark.connector
def test_the_columns_are_those_of_sparks_own_source(compared):
    for headers in "false", "true":
        theirs, ours = (compared["columns"][headers][name] for name in with_kafka.FORMATS)
        assert ours == theirs
    assert [field["name"] for field in theirs["fields"]][-1] == "headers"


@pytest.mark.spark
@pytest.mark.connector
@pytest.mark.parametrize("query", with_kafka.QUERIES)
def test_a_query_says_the_same_of_the_log_dir_as_of_the_broker(compared, query):
    theirs, ours = (compared["rows"][query][name] for name in with_kafka.FORMATS)
    assert theirs
    assert ours == theirs


@pytest.fixture
def kafka(spark):
    from logtool.spark.source import source

    def read(*paths, **options):
        return source.kafka(spark, *paths, **options)

    return read


@pytest.mark.spark
@pytest.mark.lowest
def test_control_records_and_what_no_consumer_reads_never_come(spark, kafka, scenario):
    from logtool.spark.source import source

    home = scenario("4.3.1/clean")
    rows = kafka(home).collect()
    every = source.records(spark, home).collect()
    controls = {(row.topic, row.partition, row.offset) for row in every if row.control}
    found = {(row.topic, row.partition, row.offset) for row in rows}
    assert controls and not controls & found
    assert "__cluster_metadata" not in {row.topic for row in rows}
    assert {row.directory for row in every} >= {"__cluster_metadata-0"}
    assert any(row.topic == "tx.mixed" for row in rows)


@pytest.mark.spark
def test_records_below_the_checkpointed_log_start_are_left_out(kafka, tmp_path, scenario):
    home = copied(scenario("4.3.1/clean"), tmp_path / "data")
    (home / "log-start-offset-checkpoint").write_text("0\n1\ncodec-none 0 155\n")
    offsets = [row.offset for row in kafka(home, topic="codec-none", partition=0).collect()]
    assert min(offsets) == 155
    later = kafka(home, topic="codec-none", partition=0, startingOffsets=200).collect()
    assert min(row.offset for row in later) == 200


@pytest.mark.spark
def test_two_copies_of_a_partition_are_refused(kafka, scenario):
    homes = sorted(path for path in scenario("4.3.1/replicas").iterdir() if path.is_dir())[1:]
    with pytest.raises(PySparkException, match="one copy"):
        kafka(*homes).collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"startingTimestamp": "noon"}, "startingTimestamp"),
        ({"kafka.isolation.level": "read_committed"}, "read_uncommitted"),
        ({"topic": "a", "subscribe": "b"}, "topic"),
        ({"payload": "full"}, "payload"),
        ({"columns": ["headers"]}, "includeHeaders=true"),
    ],
)
def test_what_the_table_cannot_do_is_refused_in_one_sentence(kafka, scenario, options, said):
    with pytest.raises(UsageError, match=said):
        kafka(scenario("4.3.1/clean"), **options)


@pytest.mark.spark
def test_options_of_the_table_kafka_are_refused_with_others(spark, scenario):
    from logtool.spark.source import source

    with pytest.raises(UsageError, match="includeHeaders"):
        source.records(spark, scenario("4.3.1/clean"), includeHeaders=True)
