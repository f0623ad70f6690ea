"""The flavour of a directory: an argument and a field, the same in every process."""

import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import redpanda_files as rp

from logtool.errors import NothingMatchedError
from logtool.formats.names import FileKind
from logtool.log import opening
from logtool.log.flavour import Flavour
from logtool.log.kafka import KAFKA
from logtool.log.redpanda import REDPANDA

ANOTHER_PROCESS = (
    "import pickle, sys;"
    "from logtool.log import opening;"
    "path, flavour = pickle.loads(sys.stdin.buffer.read());"
    "sys.stdout.buffer.write(pickle.dumps(opening.try_partition(path, flavour)))"
)


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """Return a partition dir that either flavour could have written: a log of each lies in it."""
    folder = tmp_path / "topic-0"
    folder.mkdir()
    (folder / "0-1-v1.log").write_bytes(rp.log())
    (folder / "00000000000000000000.log").touch()
    return folder


@pytest.mark.parametrize("flavour", [KAFKA, REDPANDA])
def test_a_flavour_that_is_pickled_is_the_same_object(flavour: Flavour) -> None:
    assert pickle.loads(pickle.dumps(flavour)) is flavour


@pytest.mark.parametrize("flavour", [None, KAFKA, REDPANDA])
def test_a_spawned_process_lists_a_partition_as_this_one_does(
    odd: Path, flavour: Flavour | None
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_PROCESS],
        input=pickle.dumps((odd, flavour)), stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    there, here = pickle.loads(done.stdout), opening.open_partition(odd, flavour)
    assert there == here
    assert there.flavour is here.flavour is (flavour or KAFKA)
    assert [segment.flavour for segment in there.segments] == [there.flavour]
    name = "0-1-v1.log" if flavour is REDPANDA else "00000000000000000000.log"
    assert [segment.log.path.name for segment in there.segments] == [name]


def test_the_flavour_of_one_listing_is_not_that_of_the_next(odd: Path) -> None:
    for flavour in (REDPANDA, None, KAFKA, None, REDPANDA):
        assert opening.open_partition(odd, flavour).flavour is (flavour or KAFKA)


def test_a_segment_is_read_in_the_form_of_its_flavour(odd: Path) -> None:
    (segment,) = opening.open_partition(odd, REDPANDA).segments
    tables = [chunk.table for chunk in segment.batches()]
    assert all(chunk.damage is None for chunk in segment.batches())
    assert {int(term) for table in tables for term in table.leader_epoch} == {1}
    (segment,) = opening.open_partition(odd, KAFKA).segments
    assert [*segment.batches()] == []


def test_a_log_dir_hands_its_flavour_to_its_partitions(tmp_path: Path) -> None:
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    data = opening.open_log_dir(folder.parents[2])
    assert data.flavour is REDPANDA
    assert [path for path, _ in data.partitions] == [folder]
    assert opening.open_partition(folder, data.flavour).flavour is REDPANDA


def test_names_decide_where_no_flavour_is_given(tmp_path: Path, scenario) -> None:
    kafka = scenario("4.3.1/clean")
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    for path in (
        folder,
        folder.parent,
        folder.parents[1],
        folder.parents[2],
        folder / "0-1-v1.log",
    ):
        assert opening.flavour_at(path) is REDPANDA
    for path in (kafka, kafka / "codec-none-0", *(kafka / "codec-none-0").glob("*.log")):
        assert opening.flavour_at(path) is KAFKA
    assert opening.flavour_at(folder / "0-1-v1.log", KAFKA) is KAFKA
    assert opening.try_flavour(folder / "1-1-v1.base_index") is REDPANDA
    assert opening.try_flavour(tmp_path / "absent") is None


def test_a_directory_that_holds_nothing_of_a_given_flavour_is_refused(scenario) -> None:
    with pytest.raises(NothingMatchedError):
        opening.flavour_at(scenario("4.3.1/clean"), REDPANDA)


def test_what_a_deleted_topic_left_is_not_among_the_latest(tmp_path: Path) -> None:
    folder = rp.data_dir(tmp_path, {"0-1-v1.log": rp.log()})
    older = folder.with_name(folder.name.partition("_")[0] + "_1")
    shutil.copytree(folder, older)
    data = opening.open_log_dir(folder.parents[2])
    assert sorted(path for path, _ in data.partitions) == sorted([folder, older])
    assert [path for path, _ in data.latest] == [folder]


def test_kafka_s_latest_partitions_are_all(scenario) -> None:
    root = opening.open_log_dir(scenario("4.3.1/clean"))
    assert root.latest == root.partitions
    assert FileKind.META_PROPERTIES in root.files
