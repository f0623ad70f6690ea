"""`logtool scan`: tables that say what the local commands say."""

import os
import shutil
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import duckdb
import metadata_secrets
import pandas
import psutil
import pytest
import redpanda_files as rp
from conftest import SCENARIOS
from damage import flip
from log_dir_damage import in_batch
from pipeline.places import homes
from scans import batch, wrapper
from verification import rewrite, small_log_dir, verify

from logtool.errors import UsageError
from logtool.formats import compression, record
from logtool.log.selection import Selection
from logtool.schemas import arrow
from logtool.schemas.arrow import Payload
from logtool.spark.scan import manifest
from logtool.spark.scan.scan import Scan
from logtool.stat.run import Survey, Surveyed
from logtool.verify import Level

pytestmark = pytest.mark.spark


def scan(spark, output: Path, *paths: Path, run_id: str = "run", **options) -> Scan:
    job = Scan(spark, paths, str(output), run_id, **options)
    job.run()
    return job


def table(output: Path, name: str) -> pandas.DataFrame:
    return duckdb.read_parquet(manifest.files(str(output), name)).df()


def surveyed(*paths: Path) -> list[Surveyed]:
    return [one for one in Survey(paths) if isinstance(one, Surveyed)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_tables_add_up_to_what_stat_and_verify_say(spark, scenario, tmp_path, name):
    paths = homes(scenario(name))
    job = scan(spark, tmp_path / "out", *paths, wanted=("segments", "batches", "findings"))
    local = verify(*paths, level=Level.BATCHES)
    known = [(one.partition.path, segment, segment.statistics) for one in surveyed(*paths)
             for segment in one.segments]  # fmt: skip
    segments = table(tmp_path / "out", "segments")
    assert len(segments) == len(known) == local.summary.segments
    by_place = segments.set_index(["log_dir", "directory", "segment"])
    batches = table(tmp_path / "out", "batches")
    counted = Counter(zip(batches.log_dir, batches.directory, batches.segment, strict=True))
    for home, segment, of in known:
        key = str(home.parent), home.name, segment.base_offset
        row = by_place.loc[key]
        assert (row.batches, row.records, row.log_bytes) == (of.batches, of.records, of.bytes)
        assert (row.transactional_batches, row.control_batches) == (of.transactional, of.control)
        assert (row.damaged_ranges, row.damaged_bytes) == (of.damaged_ranges, of.damaged_bytes)
        assert row.unused_bytes == of.unused_bytes
        assert none(row.first_timestamp_ms) == of.first_ms
        assert none(row.last_timestamp_ms) == of.last_ms
        assert none(row.first_offset) == of.first_offset
        assert none(row.last_offset) == of.last_offset
        assert counted[key] == of.batches
    assert len(batches) == local.summary.batches == job.summary.batches
    assert segments.records.sum() == local.summary.records
    rows = table(tmp_path / "out", "findings").sort_values("number")
    assert list(zip(rows.code, rows.message, rows.path, strict=True)) == [
        (found.code, found.message, str(found.path)) for found in local.findings
    ]


def none(value):
    return None if pandas.isna(value) else int(value)


def is_redpanda(batches: pandas.DataFrame, folder: Path, positions: list[int]) -> None:
    """Hold the rows of Redpanda's batches among those of Kafka's against what was written."""
    of_kafka = batches[batches.directory != folder.name]
    assert of_kafka.term.isna().all() and of_kafka.batch_type.isna().all()
    rows = batches[batches.directory == folder.name].sort_values(["segment", "position"])
    assert set(zip(rows.log_dir, rows.topic, rows.partition, strict=True)) == {
        (str(folder.parent), "orders", 0)
    }
    assert list(rows[rows.segment == 0].position) == positions
    assert list(rows.term) == [1] * 41 + [2] * 3
    types = ["raft_configuration", *["raft_data"] * 40, "raft_configuration", *["raft_data"] * 2]
    assert list(rows.batch_type) == types
    assert list(rows.last_offset)[-1] == 127


def test_pandas_and_duckdb_read_the_same(spark, scenario, tmp_path):
    first = rp.log(0, 40)
    folder = rp.data_dir(
        tmp_path, {"0-1-v1.log": first, "121-2-v1.log": rp.log(121, 2) + bytes(99)}
    )
    homes = scenario("4.3.1/clean"), folder.parents[2]
    scan(spark, tmp_path / "out", *homes, wanted=("batches",))
    files = manifest.files(str(tmp_path / "out"), "batches")
    by_pandas = pandas.read_parquet(files)
    by_duckdb = table(tmp_path / "out", "batches")
    is_redpanda(by_pandas, folder, rp.positions(first))
    by_spark = spark.read.parquet(*files).toPandas()
    for name in ("position", "base_offset", "crc", "max_timestamp_ms", "size"):
        assert by_pandas[name].sum() == by_duckdb[name].sum() == by_spark[name].sum()
    assert sorted(by_pandas.directory.unique()) == sorted(by_spark.directory.unique())


@pytest.mark.parametrize("payload", Payload)
def test_records_are_a_table_where_they_are_asked_for(spark, scenario, tmp_path, payload):
    home = scenario("4.3.1/clean")
    scan(spark, tmp_path / "out", home, wanted=("records",), payload=payload)
    records = table(tmp_path / "out", "records")
    assert len(records) == verify(home).summary.records
    levels = {"value_size": Payload.LENGTH, "value_hash": Payload.HASH, "value": Payload.FULL}
    for name, level in levels.items():
        # A column of nulls would be taken for one of tombstones.
        assert (name in records.columns) == payload.includes(level)
        assert name not in records.columns or records[name].notna().any()


def test_secrets_of_a_metadata_log_are_written_where_they_are_asked_for(spark, tmp_path):
    home, output = tmp_path / "home", tmp_path / "out"
    metadata_secrets.write(home)
    options = {"wanted": ("records",), "payload": Payload.FULL}
    scan(spark, output, home, run_id="hidden", **options)
    scan(spark, output, home, run_id="shown", show_secrets=True, **options)
    secrets = list(metadata_secrets.SECRETS)
    for run_id, expected in (("hidden", []), ("shown", secrets)):
        files = manifest.files(str(output), "records", run_id)
        values = duckdb.read_parquet(files).df().value
        assert metadata_secrets.spelled(b" ".join(map(bytes, values.dropna()))) == expected
    with pytest.raises(UsageError, match="--payload full --show-secrets --level records"):
        scan(spark, output, home, run_id="next", since="shown", **options)


def test_every_record_that_the_table_lacks_is_in_a_finding(spark, tmp_path):
    """The case of the issue: 207 of 208 records, status 0 and no finding."""
    gzip, sound = compression.GZIP, batch(1000, b"one", b"two")
    large = record.encode([record.Record(0, 0, None, bytes(5000))])
    cases = {
        "sound": sound,
        "short": batch(1002, b"three", b"four", payload=record.encode([record.Record(0, 0)])),
        "packed": batch(1002, b"three", codec=gzip, payload=b"no record"),
        "large": batch(1002, b"three", codec=gzip, payload=large),
        "old": wrapper(1003, b"three", b"four", magic=1, codec=gzip),
        "crc": flip(batch(1002, b"three"), 70),
    }
    for topic, added in cases.items():
        folder = tmp_path / "data" / f"{topic}-0"
        folder.mkdir(parents=True)
        data = added if topic == "sound" else sound + added
        (folder / f"{1000:020d}.log").write_bytes(data + batch(1004, b"last"))
    scan(spark, tmp_path / "out", tmp_path / "data", wanted=("segments", "records"), limit=3000)
    counted = table(tmp_path / "out", "segments").set_index("topic").records
    lacking = counted - table(tmp_path / "out", "records").groupby("topic").size()
    assert lacking[lacking > 0].to_dict() == {"short": 1, "packed": 1, "large": 1}
    findings = table(tmp_path / "out", "findings")
    about = findings[findings.code.isin(["batch/records", "batch/too-large", "batch/crc"])]
    codes = {"short": "batch/records", "packed": "batch/records", "large": "batch/too-large"}
    assert dict(zip(about.topic, about.code, strict=True)) == codes | {"crc": "batch/crc"}
    assert set(about.position.dropna()) == {len(sound)}


@pytest.mark.parametrize("damaged", [False, True])
def test_pieces_of_a_segment_give_each_row_once(spark, scenario, tmp_path, monkeypatch, damaged):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "index.dense-0")
    if damaged:
        in_batch(40, 70)(home)
    wanted = ("segments", "batches", "gaps", "findings", "records")
    scan(spark, tmp_path / "whole", home, wanted=wanted)
    monkeypatch.setattr("logtool.spark.engine.PIECE_BYTES", 2000)
    monkeypatch.setattr("logtool.spark.engine.TASK_BYTES", 2000)
    scan(spark, tmp_path / "cut", home, wanted=wanted)
    for name in wanted:
        whole, cut = (table(tmp_path / place, name) for place in ("whole", "cut"))
        order = [column for column in ("segment", "position", "offset", "first_offset", "number")
                 if column in whole]  # fmt: skip
        pandas.testing.assert_frame_equal(
            *(one.sort_values(order, ignore_index=True) for one in (whole, cut))
        )
    assert damaged or len(manifest.files(str(tmp_path / "cut"), "batches")) > 2
    assert damaged == (table(tmp_path / "cut", "segments").damaged_ranges.sum() > 0)


def test_a_run_that_read_nothing_leaves_the_older_run_of_its_id(spark, scenario, tmp_path):
    output, wanted = tmp_path / "out", ("segments", "findings")
    home = scenario("4.3.1/empty")
    assert scan(spark, output, home, wanted=wanted).is_found
    (whole,) = manifest.complete(str(output))
    assert whole.is_whole
    (tmp_path / "empty" / "orders-0").mkdir(parents=True)
    for path in ("misspelt", "empty"):
        job = scan(spark, output, tmp_path / path, wanted=wanted, on_unreadable=lambda _: None)
        assert not job.is_found
        assert manifest.complete(str(output)) == [whole]
    assert [run.rows["segments"] for run in manifest.incomplete(str(output))] == [0, 0]


def test_damage_makes_rows_and_no_failed_job(spark, scenario, tmp_path):
    home = tmp_path / "damaged"
    shutil.copytree(scenario("4.3.1/clean"), home)
    for number, log in enumerate(sorted(home.rglob("*.log"))):
        data = log.read_bytes()
        if number % 3 == 0 and len(data) > 200:
            rewrite(log, flip(data, len(data) // 2))
        elif number % 3 == 1:
            rewrite(log, data[:-7])
    (home / "codec-none-0" / f"{0:020d}.log").unlink()
    (home / "codec-none-0" / f"{0:020d}.log").symlink_to("nowhere")
    unreadable = []
    job = scan(spark, tmp_path / "out", home, tmp_path / "nowhere", on_unreadable=unreadable.append)
    assert [error.path.name for error in unreadable] == [f"{0:020d}.log", "nowhere"]
    assert not job.summary.complete
    local = verify(home, tmp_path / "nowhere", level=Level.BATCHES)
    rows = table(tmp_path / "out", "findings").sort_values("number")
    assert list(rows.code.dropna()) == [found.code for found in local.findings]
    assert (rows.severity == "unreadable").sum() == 2
    segments = table(tmp_path / "out", "segments")
    assert segments.damaged_ranges.sum() > 10
    assert list(segments[~segments.read].directory) == ["codec-none-0"]


@pytest.mark.lowest
def test_every_table_of_every_fixture_is_there(spark, scenario, tmp_path):
    paths = homes(scenario("4.3.1/replicas"))
    job = scan(spark, tmp_path / "out", *paths)
    assert set(job.rows) == set(arrow.DEFAULT)
    for name in arrow.DEFAULT:
        frame = table(tmp_path / "out", name)
        assert len(frame) == job.rows[name]
        assert set(frame.columns) == set(arrow.schema(name, Payload.NONE).names)
    assert job.rows["replicas"] > 0


@pytest.mark.parametrize("name", ["a b", "50%20[x]{y}*", "größe"])
def test_an_output_may_have_any_name(spark, scenario, tmp_path, name):
    job = scan(spark, tmp_path / name, scenario("4.3.1/clean"), wanted=("producers",))
    assert job.rows["producers"] > 0


def test_a_selection_takes_some_partitions(spark, scenario, tmp_path):
    chosen = Selection(topics=("codec-*",), partitions=(1,))
    scan(spark, tmp_path / "out", scenario("4.3.1/clean"), selection=chosen)
    for name in ("segments", "batches"):
        assert set(table(tmp_path / "out", name).partition) == {1}


def test_a_file_is_no_input(spark, scenario, tmp_path):
    with pytest.raises(UsageError, match=r"meta\.properties"):
        scan(spark, tmp_path / "out", scenario("4.3.1/clean") / "meta.properties")
    assert not (tmp_path / "out").exists()


def test_a_run_that_fails_leaves_nothing(spark, scenario, tmp_path, monkeypatch):
    home = scenario("4.3.1/clean")
    scan(spark, tmp_path / "out", home, wanted=("batches",))
    before = sorted(tmp_path.rglob("*.parquet"))

    def fail(*_):
        raise RuntimeError("in between")

    monkeypatch.setattr("logtool.spark.scan.scan.answer", fail)
    with pytest.raises(RuntimeError, match="in between"):
        scan(spark, tmp_path / "out", home, wanted=("batches",))
    assert sorted(tmp_path.rglob("*.parquet")) == before


def workers_of_python() -> list[int]:
    """Return the processes that run tasks: children of the daemon that Spark's JVM started."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # one that has ended since it was listed
            parent = child.parent()
            if parent and all("pyspark.daemon" in " ".join(p.cmdline()) for p in (child, parent)):
                found.append(child.pid)
    return found


def test_a_worker_that_is_killed_loses_and_doubles_nothing(spark, scenario, tmp_path):
    home = tmp_path / "many"
    home.mkdir()
    for number in range(60):
        for topic in ("codec-none-0", "small-segments-0", "index.dense-0"):
            shutil.copytree(scenario("4.3.1/clean") / topic, home / f"{topic[:-2]}-{number}")
    scan(spark, tmp_path / "whole", home, wanted=("batches", "segments"))
    killed = []
    stop = threading.Event()

    def strike() -> None:
        while not stop.wait(0.2) and len(killed) < 2:
            for pid in workers_of_python()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        scan(spark, tmp_path / "killed", home, wanted=("batches", "segments"))
    finally:
        stop.set()
        thread.join()
    assert killed
    for name in ("batches", "segments"):
        order = ["directory", "segment", *(["position"] if name == "batches" else [])]
        whole, again = (table(tmp_path / place, name) for place in ("whole", "killed"))
        pandas.testing.assert_frame_equal(
            *(one.sort_values(order, ignore_index=True) for one in (whole, again))
        )


def test_steps_are_reported_and_stand_in_the_pages_of_spark(spark, scenario, tmp_path, monkeypatch):
    monkeypatch.setattr("logtool.spark.scan.answers.LITTLE", -1)
    steps: list[str] = []
    scan(spark, tmp_path / "out", scenario("4.3.1/clean"), wanted=("gaps", "producers"),
         on_wait=steps.append)  # fmt: skip
    assert steps[0].endswith(": gaps, producers")
    assert "manifest" in steps[-1]
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    descriptions = [jobs.apply(at).description() for at in range(jobs.size())]
    said = {one.get() for one in descriptions if one.isDefined()}
    assert f"logtool: {steps[0]}" in said
    assert any(one.startswith("logtool: reading ") for one in said)


def test_little_is_answered_without_a_job_and_much_by_spark_with_the_same_rows(
    spark, scenario, tmp_path, monkeypatch
):
    paths = [*homes(scenario("4.3.1/replicas")), scenario("4.3.1/clean")]
    wanted = ("gaps", "producers", "transactions", "replicas")

    def jobs() -> int:
        return spark.sparkContext._jsc.sc().statusStore().jobsList(None).size()

    before = jobs()
    scan(spark, tmp_path / "here", *paths, wanted=wanted)
    between = jobs()
    monkeypatch.setattr("logtool.spark.scan.answers.LITTLE", -1)
    # As many rows in one Arrow batch: partitions end in the middle of them.
    monkeypatch.setattr("logtool.spark.scan.answers._ROWS_AT_ONCE", 3)
    scan(spark, tmp_path / "spark", *paths, wanted=wanted)
    assert jobs() - between > between - before
    for name in wanted:
        here, there = (table(tmp_path / place, name) for place in ("here", "spark"))
        order = ["log_dir", "directory", "first_offset"]
        order += ["producer_id"] if "producer_id" in here else []
        pandas.testing.assert_frame_equal(
            *(one.sort_values(order, ignore_index=True) for one in (here, there))
        )
        assert len(here)
