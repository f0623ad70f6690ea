"""The fast reader of a log at rest says what the careful one says, or nothing."""

import os
import shutil
from pathlib import Path

import pytest
from verification import small_log_dir

from logtool.log import opening
from logtool.log.kafka import KAFKA
from logtool.retention import resting, segments
from logtool.retention.segments import CheckpointedOffsets

STATE = CheckpointedOffsets(clean=True, recovery_point=5, log_start=2, high_watermark=7)
NAME = "compacted.keys-0"


def careful(path, state=STATE):
    return segments.read(opening.open_partition(path, KAFKA), state)


def test_every_log_of_a_clean_broker_is_read_fast(scenario):
    found = 0
    for path, _ in opening.open_log_dir(scenario("4.3.1/clean")).partitions:
        fast = resting.read(path, STATE)
        assert fast in (None, careful(path)), path.name
        found += fast is not None
    assert found > 20


@pytest.fixture
def partition(scenario, tmp_path):
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "small", NAME) / NAME


def test_an_empty_time_index_leaves_the_mtime(partition):
    for times in partition.glob("*.timeindex"):
        times.write_bytes(b"")
    fast = resting.read(partition, STATE)
    assert fast == careful(partition)
    assert set(fast.sources) == {"mtime"}


@pytest.mark.parametrize(
    "name", ["0.log", f"{0:020d}.log.deleted", f"{99:020d}.index", "\u0661" * 20 + ".log"]
)
def test_a_further_file_is_left_to_the_careful_reader(partition, name):
    assert resting.read(partition, STATE) is not None
    (partition / name).write_bytes(b"")
    assert resting.read(partition, STATE) is None


@pytest.mark.parametrize("kind", ["index", "timeindex", "log"])
def test_a_missing_file_or_a_link_is_left_to_the_careful_reader(partition, kind):
    file = min(partition.glob(f"*.{kind}"))
    aside = partition.parent / file.name
    shutil.move(file, aside)
    assert resting.read(partition, STATE) is None
    file.symlink_to(aside)
    assert kind == "index" or resting.read(partition, STATE) is None


def test_a_log_that_a_start_recovers_is_left_to_the_careful_reader(partition):
    state = CheckpointedOffsets(clean=False, recovery_point=5)
    assert resting.read(partition, state) is None


def test_a_listing_that_changes_is_left_to_the_careful_reader(partition, monkeypatch):
    names = [path.name for path in Path(partition).iterdir()]
    listings = iter([names, [*names, "new"]])
    monkeypatch.setattr(os, "listdir", lambda _: next(listings))
    assert resting.read(Path(partition), STATE) is None
