"""`verify` on Spark: the same as in threads of this process."""

import shutil
from pathlib import Path

import pytest
import redpanda_files as rp
from conftest import SCENARIOS
from damage import flip
from log_dir_damage import in_batch
from pipeline.places import homes
from verification import Outcome, logs, rewrite, small_log_dir, verify

from logtool.checks import segment_ranges
from logtool.log import opening
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA
from logtool.schemas.printed import SUMMARY
from logtool.schemas.tables import FINDING
from logtool.spark.engine import SparkEngine, _shared_out
from logtool.verify import Level

pytestmark = pytest.mark.spark
MANY = 70
"""Directories, more than the driver lists by itself."""


def everything(outcome: Outcome) -> tuple[object, ...]:
    """Return all that is said, in its order, but for how long it took."""
    summary = SUMMARY.row(outcome.summary)
    del summary["elapsed_s"]
    unreadable = [(str(error.path), error.reason) for error in outcome.unreadable]
    findings = [FINDING.row(finding) for finding in outcome.findings]
    return findings, unreadable, summary, outcome.exit_status


def agree(
    spark, *paths: Path, level: Level = Level.BATCHES, flavour: Flavour | None = None
) -> Outcome:
    """Return the result of both engines, which is the same."""
    local = verify(*paths, level=level, flavour=flavour)
    engine = SparkEngine(spark)
    remote = verify(*paths, level=level, engine=engine, flavour=flavour)
    assert everything(remote) == everything(local)
    return local


@pytest.mark.parametrize("level", [Level.BATCHES, Level.RECORDS])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_fixture_gets_the_same_verdict(spark, scenario, name, level):
    agree(spark, *homes(scenario(name)), level=level)


@pytest.mark.parametrize("level", Level)
def test_damage_gets_the_same_verdict(spark, scenario, tmp_path, level):
    home = tmp_path / "damaged"
    shutil.copytree(scenario("4.3.1/clean"), home)
    for number, log in enumerate(sorted(home.rglob("*.log"))):
        data = log.read_bytes()
        if number % 3 == 0 and len(data) > 200:
            rewrite(log, flip(data, len(data) // 2))
        elif number % 3 == 1:
            rewrite(log, data[:-7])
    for index in sorted(home.rglob("*.index"))[::2]:
        rewrite(index, b"\xff" * 16)
    (home / "codec-none-1" / "leader-epoch-checkpoint").write_text("nonsense")
    next(home.rglob("*.timeindex")).unlink()
    outcome = agree(spark, home, level=level)
    assert outcome.exit_status == 1
    assert len(outcome.codes) > 5


def test_a_missing_path_is_reported_with_the_rest(spark, scenario, tmp_path):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "codec-none-0")
    log = logs(home / "codec-none-0")[0]
    target = shutil.move(log, tmp_path / "elsewhere")
    log.symlink_to(target)
    outcome = agree(spark, tmp_path / "nowhere", home, home / "meta.properties")
    assert outcome.exit_status == 4
    assert len(outcome.unreadable) == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_a_segment_in_pieces_gets_the_same_verdict(spark, scenario, tmp_path, monkeypatch, damaged):
    home = small_log_dir(scenario("4.3.1/clean"), tmp_path / "clean", "index.dense-0")
    if damaged:
        in_batch(40, 70)(home)
    monkeypatch.setattr("logtool.spark.engine.PIECE_BYTES", 2000)
    monkeypatch.setattr("logtool.spark.engine.TASK_BYTES", 2000)
    cut = []
    monkeypatch.setattr(
        "logtool.checks.schedule.cut", lambda *a: cut.append(segment_ranges.cut(*a)) or cut[-1]
    )
    outcome = agree(spark, home)
    assert max(map(len, cut)) > 2
    assert bool(outcome.codes["batch/crc"]) == damaged


def test_many_directories_are_listed_by_executors(spark, scenario, tmp_path):
    home = tmp_path / "many"
    home.mkdir()
    for number in range(70):
        shutil.copytree(scenario("4.3.1/clean") / "codec-none-0", home / f"orders-{number}")
    (home / "orders-3").chmod(0)
    assert agree(spark, home).summary.partitions >= 69


def test_work_is_shared_out_evenly_and_nothing_is_lost(scenario):
    from logtool.checks.report import SegmentTask
    from logtool.log import opening

    segments = opening.open_partition(scenario("4.3.1/clean") / "small-segments-0").segments
    units = [[SegmentTask(segment)] for segment in segments]
    tasks = _shared_out(units, 4)
    assert sorted(number for task in tasks for number, _ in task) == list(range(len(units)))
    assert len(tasks) == 4
    assert all(units[number] == unit for task in tasks for number, unit in task)
    loads = [sum(unit[0].segment.log.size for _, unit in task) for task in tasks]
    assert max(loads) <= 2 * min(loads)


@pytest.mark.parametrize("flavour", [None, KAFKA, REDPANDA])
def test_executors_list_directories_in_the_flavour_that_is_given(spark, tmp_path, flavour):
    """More directories than the driver lists by itself, which by their names are of Redpanda."""
    folders = [tmp_path / f"topic-{number}" for number in range(MANY)]
    for folder in folders:
        folder.mkdir()
        (folder / "0-1-v1.log").write_bytes(rp.log())
    there = list(SparkEngine(spark).partitions(folders, flavour))
    assert there == list(opening.try_partitions(folders, flavour))
    assert {one.flavour for one in there} == {flavour or REDPANDA}
    assert {len(one.segments) for one in there} == {0 if flavour is KAFKA else 1}


def test_executors_check_segments_in_the_flavour_that_is_given(spark, tmp_path):
    for number in range(MANY):
        log = rp.log() if number else flip(rp.log(), 10)
        folder = rp.data_dir(tmp_path / str(number), {"0-1-v1.log": log})
        folder.rename(tmp_path / f"{number}_7")
    found = agree(spark, tmp_path, flavour=REDPANDA)
    assert found.summary.partitions == MANY
    assert set(found.codes) == {"batch/header-crc", "base-index/not-written"}


def test_executors_judge_a_log_dir_of_kafka_that_holds_logs_of_redpanda(spark, tmp_path):
    """Names say Redpanda for each partition; the log dir is Kafka's, and so is what lies in it."""
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\n")
    for number in range(MANY):
        (tmp_path / f"topic-{number}").mkdir()
        (tmp_path / f"topic-{number}" / "0-1-v1.log").write_bytes(rp.log())
    codes = [agree(spark, tmp_path, flavour=flavour).codes for flavour in (None, KAFKA)]
    assert codes[0] == codes[1]
    assert codes[0] == {"partition/stops-broker": MANY, "partition/empty": MANY}
