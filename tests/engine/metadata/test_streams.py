"""The image of AutoMQ's metadata log: streams, objects and keys, equal to what AutoMQ says."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from logtool.metadata import image
from logtool.metadata.image import Until
from logtool.metadata.state import MetadataImage
from logtool.metadata.streams import ObjectState

CHECKPOINT = "00000000000000001984-0000000003.checkpoint"
LOG = "00000000000000000000.log"


@pytest.fixture
def later(scenario: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return the log without its snapshot, in a directory of its own."""
    source = scenario("automq/broker-clean") / "meta-later" / LOG
    target = tmp_path / image.DIRECTORY
    target.mkdir()
    (target / LOG).write_bytes(source.read_bytes())
    return tmp_path


def test_the_log_gives_the_image_of_the_snapshot(
    later: Path, scenario: Callable[[str], Path]
) -> None:
    snapshot = image.read_snapshot(scenario("automq/broker-clean") / "meta-later" / CHECKPOINT)
    replayed = image.read(later, Until(1983))
    assert snapshot.damage is None
    assert replayed.damage is None
    assert replayed.offset == snapshot.offset == 1984
    assert not (replayed.problems or snapshot.problems)
    assert not (replayed.not_understood or snapshot.not_understood)
    ours, theirs = replayed.streams, snapshot.streams
    assert len(theirs.streams) == 36
    for name in (
        "streams", "end_offsets", "stream_objects", "set_objects", "objects", "wals",
        "uncommitted", "meta_streams", "keys", "next_stream_id", "next_object_id",
    ):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert {key: one for key, one in ours.ranges.items() if one} == theirs.ranges
    assert ours == theirs
    assert (replayed.topics, replayed.partitions) == (snapshot.topics, snapshot.partitions)


def test_end_offsets_equal_those_that_the_restarted_broker_logged(
    scenario: Callable[[str], Path],
) -> None:
    answers = scenario("automq/broker-crash.expected") / "truth-recovery-from-broker-log.json"
    found = crashed(scenario).streams
    truth = json.loads(answers.read_text())["streams"]
    assert {one["stream_id"]: one["kraft_end_offset"] for one in truth} == {
        key: found.end_offsets[key] for key in found.streams
    }
    assert {one["stream_id"]: one["start_offset"] for one in truth} == {
        key: one.start_offset for key, one in found.streams.items()
    }


def crashed(scenario: Callable[[str], Path]) -> MetadataImage:
    return image.read(scenario("automq/broker-crash") / "meta")


def test_streams_name_their_partitions(scenario: Callable[[str], Path]) -> None:
    found = crashed(scenario)
    streams = found.streams
    assert len(streams.meta_streams) == 11
    for (topic_id, number), stream_id in streams.meta_streams.items():
        own = {one.stream_id for one in streams.of_partition(topic_id, number)}
        assert stream_id in own
        assert topic_id in found.names
    assert streams.wals[1].epoch > 0
    assert streams.next_stream_id == max(streams.streams) + 1


def test_states_of_objects(scenario: Callable[[str], Path]) -> None:
    objects = image.read(scenario("automq/broker-clean") / "meta").streams.objects
    by_state = {
        state: [key for key, one in objects.items() if one.state == state] for state in ObjectState
    }
    assert sorted(by_state[ObjectState.MARKED_DESTROYED]) == [26, 31, 34]
    assert by_state[ObjectState.PREPARED] == [48]
    assert len(by_state[ObjectState.COMMITTED]) == 42


def test_a_copy_does_not_change_its_image(scenario: Callable[[str], Path]) -> None:
    found = crashed(scenario)
    copied = found.copy()
    copied.streams.streams.clear()
    copied.streams.ranges[0].clear()
    copied.streams.keys.clear()
    assert found.streams.streams
    assert found.streams.ranges[0]
    assert found.streams.keys


def test_an_image_holds_no_secret(scenario: Callable[[str], Path]) -> None:
    assert "secretKey" not in repr(crashed(scenario).streams)
