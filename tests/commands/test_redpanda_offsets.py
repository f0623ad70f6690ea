"""Raft offsets with their Kafka offsets: with and without a source of the start delta."""

import struct
from pathlib import Path

import pytest
import redpanda_files as rp

from logtool.formats.redpanda import snapshot

FENCE = 23
"""A type of batch that has no Kafka offset."""
DELTA = 40
"""The number of offsets below 1000, where the log begins, that are not offsets of Kafka."""


def data(first: int, last: int) -> bytes:
    return rp.batch(first, *(b"x" for _ in range(last - first + 1)))


def alone(first: int, kind: int = rp.CONFIGURATION, last: int | None = None) -> bytes:
    return rp.batch(first, b"c", kind=kind, last=last)


LOG = data(1000, 1009) + alone(1010) + data(1011, 1019) + data(1030, 1039)
"""The offsets 1020 through 1029 were compacted away."""
NEXT = alone(1040, FENCE) + alone(1041) + data(1042, 1049)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = rp.data_dir(tmp_path, {"1000-1-v1.log": LOG, "1040-2-v1.log": NEXT})
    (made / "1000-1-v1.compaction_index").touch()
    return made


def partition_and_gap(run, folder: Path) -> tuple[dict, dict]:
    objects = run("gaps", "-f", "ndjson", folder).objects
    (about,) = (obj for obj in objects if obj["type"] == "partition")
    (gap,) = (o for o in objects if o["type"] == "gap" and o["first_offset"] == 1020)
    return about, gap


def check(run, folder: Path, source: str) -> None:
    about, gap = partition_and_gap(run, folder)
    assert (about["kafka_offsets_from"], about["kafka_offsets_unknown"]) == (source, None)
    assert about["kafka_log_start_offset"] == 1000 - DELTA
    assert about["kafka_log_end_offset"] == 1050 - DELTA - 3
    assert (gap["kafka_first_offset"], gap["kafka_last_offset"]) == (1019 - DELTA, 1028 - DELTA)
    entries = [o for o in run("dump", "-f", "ndjson", folder).objects if o["type"] == "entry"]
    bases = [o["kafka_base_offset"] for o in entries if o["batch_type"] == "raft_data"]
    assert bases == [1000 - DELTA, 1010 - DELTA, 1029 - DELTA, 1039 - DELTA]


MINE = rp.offset_map(7, DELTA, (999, 1), (1010, 1), (1040, 1), (1041, 1))


def test_the_start_delta_comes_from_a_snapshot(run, folder):
    metadata = struct.pack("<qqb9sqq", 999, 1, 64, b"the group", 0, DELTA)
    (folder / "snapshot").write_bytes(snapshot.build(metadata))
    check(run, folder, "the Raft snapshot")


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param([MINE], id="the map of the log"),
        pytest.param([rp.offset_map(3, 9, (5, 1), (8, 1)), MINE], id="with that of another"),
        pytest.param([rp.offset_map(3, 9, (999, 1), (1013, 1)), MINE],
                     id="with that of another that begins there too"),
        pytest.param([rp.offset_map(7, DELTA - 2, (499, 1), (600, 2), (1010, 1))],
                     id="that begins below the log"),
        pytest.param([rp.offset_map(7, DELTA + 1, (1010, 1), (1040, 2))],
                     id="that begins in the log, neighbours as one"),
    ],
)  # fmt: skip
def test_the_start_delta_comes_from_the_kvstore(run, folder, stored):
    rp.kvstore(folder.parents[2], rp.stored(0, *stored))
    check(run, folder, "the kvstore")


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param([], id="nothing is stored"),
        pytest.param([rp.offset_map(7, DELTA, (999, 1))], id="nothing that can be compared"),
        pytest.param([rp.offset_map(7, DELTA, (999, 1), (1011, 1))], id="a map of another log"),
        pytest.param([rp.offset_map(7, DELTA, (999, 1), (1040, 1))], id="a batch too many here"),
        pytest.param([MINE, rp.offset_map(8, DELTA + 5, (999, 1), (1010, 1))],
                     id="two that contradict each other"),
    ],
)  # fmt: skip
def test_an_unknown_start_delta_is_not_guessed(run, folder, stored):
    rp.kvstore(folder.parents[2], rp.stored(0, *stored))
    about, gap = partition_and_gap(run, folder)
    assert "kvstore" in about["kafka_offsets_unknown"]
    assert about["kafka_log_start_offset"] is about["kafka_offsets_from"] is None
    assert gap["kafka_first_offset"] is gap["kafka_last_offset"] is None
    assert about["kafka_offsets_unknown"] in run("gaps", "-v", folder).stdout


def test_they_are_known_up_to_what_may_be_lost(run, folder):
    (folder / "1000-1-v1.compaction_index").unlink()
    rp.kvstore(folder.parents[2], rp.stored(0, MINE))
    about, gap = partition_and_gap(run, folder)
    assert (gap["loss"], gap["kafka_first_offset"]) == (True, 1019 - DELTA)
    assert gap["kafka_last_offset"] is about["kafka_log_end_offset"] is None
    assert str(1000 - DELTA) in run("gaps", folder).stdout


def test_kafkas_own_logs_have_but_one_offset(run, scenario):
    (about, *_) = run("gaps", "-f", "ndjson", scenario("4.3.1/clean") / "codec-none-0").objects
    assert about["kafka_offsets_from"] is about["kafka_offsets_unknown"] is None
    assert about["kafka_log_end_offset"] is None
