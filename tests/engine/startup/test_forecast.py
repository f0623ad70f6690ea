"""Forecasts of a log dir as a whole: checkpoints, strays, settings, time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from damage import append_to_file, damage_file, overwrite, remove_file
from log_dir_damage import header
from verification import batches

from logtool.actions import Action
from logtool.commands.views.plan_tables import FORECAST
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.loading.result import Outcome
from logtool.log.dir import OFFSET_CHECKPOINTS
from logtool.node.options import StartOptions
from logtool.startup.forecast import Forecast
from logtool.startup.partition import PartitionForecast

Scenario = Callable[[str], Path]
KAFKA = StartOptions((4, 3))


def forecast(
    *paths: Path, settings: StartOptions = KAFKA
) -> tuple[dict[str, PartitionForecast], list[Action]]:
    """Return the forecasts by directory name, and what is said of the log dirs."""
    partitions, notes = {}, []
    for item in Forecast(paths, settings):
        assert not isinstance(item, UnreadableError), item
        if isinstance(item, PartitionForecast):
            partitions[item.request.path.name] = item
        else:
            notes.append(item)
    return partitions, notes


def actions_of(one: PartitionForecast, action: str) -> list[tuple[str, int | None, int | None]]:
    """Return (file name, position, length) of the actions of one kind."""
    return [(a.path.name, a.position, a.length) for a in one.actions if a.action == action]


def test_topics_are_loaded_with_their_own_index_interval(scenario: Scenario) -> None:
    partitions, _ = forecast(scenario("4.3.1/killed"))
    assert partitions["index.dense-0"].request.start.index_interval == 0
    assert partitions["small-segments-0"].request.start.index_interval == 4096


def test_a_clean_log_dir_is_read_nowhere(scenario: Scenario) -> None:
    partitions, notes = forecast(scenario("4.3.1/clean"))
    assert notes == []
    assert {one.outcome for one in partitions.values()} == {Outcome.LOADS}
    assert sum(one.bytes_scanned for one in partitions.values()) == 0


def test_without_its_marker_it_is_read_from_the_recovery_points(
    copy_of: Callable[[str], Path],
) -> None:
    home = copy_of("4.3.1/clean")
    remove_file(home / ".kafka_cleanshutdown")
    partitions, _ = forecast(home)
    one = partitions["small-segments-0"]
    assert one.recovered == 1 < one.segments
    assert one.request.start.recovery_point == one.log_end == one.recovery_point


POINTS = "recovery-point-offset-checkpoint"
# What each damage does was seen at starts of 3.3.2, 3.7.2, 3.9.2 and 4.3.1.
CHECKPOINT_DAMAGE = [
    ("0\n1\nplain 0 5\n", None),
    ("", None),
    ("0\n", None),
    ("1\n1\nplain 0 5\n", "offline"),
    ("0\n2\nplain 0 5\n", "offline"),
    ("0\n1\nplain 0\n", "offline"),
    ("0\n1\nplain 0 5\n\n", "offline"),
    ("\0\0\0\0", "offline"),
    ("0\n9999999999\nplain 0 5\n", "offline"),
    ("0\n-1\nplain 0 5\n", "ignore"),
    ("0\n1\nplain 0 99999999999999999999\n", "ignore"),
    ("0\n1\nplain x 5\n", "ignore"),
    # What is wrong first in the file counts; a count that is not kept is seen last.
    ("0\n3\nplain 0\nplain x 5\n", "offline"),
    ("0\n3\nplain x 5\nplain 0\n", "ignore"),
]


@pytest.mark.parametrize(("content", "action"), CHECKPOINT_DAMAGE)
@pytest.mark.parametrize("kind", OFFSET_CHECKPOINTS)
def test_a_checkpoint_that_cannot_be_read_costs_the_log_dir_unless_it_is_a_number(
    kind: FileKind, content: str, action: str | None, copy_of: Callable[[str], Path]
) -> None:
    home = copy_of("4.3.1/two-log-dirs") / "dir-2"
    damage_file(home / kind.value, lambda _: content.encode())
    notes = [note for note in forecast(home)[1] if note.path.name == kind.value]
    assert [note.action for note in notes] == [action][: bool(action)]


@pytest.mark.parametrize(("content", "action"), CHECKPOINT_DAMAGE)
def test_a_broker_does_not_start_without_the_log_dir_of_its_metadata_log(
    content: str, action: str | None, copy_of: Callable[[str], Path]
) -> None:
    home = copy_of("4.3.1/killed")
    damage_file(home / POINTS, lambda _: content.encode())
    expected = "refuse" if action == "offline" else action
    assert [note.action for note in forecast(home)[1]] == [expected][: bool(expected)]


def test_unreadable_recovery_points_count_as_none(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    damage_file(home / POINTS, overwrite, 0, b"x")
    one = forecast(home)[0]["small-segments-0"]
    assert one.recovered == one.segments


ID = "J8aAPcfLQt2bqs1JT_rMgQ"
# As above; 3.3 takes no other version than 0.
METADATA_DAMAGE = [
    ("", (Outcome.REFUSES, Outcome.REFUSES)),
    ("version: 0\n", (Outcome.REFUSES, Outcome.REFUSES)),
    ("version: 0\ntopic_id: AAAA", (Outcome.REFUSES, Outcome.REFUSES)),
    (f"version: 0\ntopic_id: {ID}\0", (Outcome.REFUSES, Outcome.REFUSES)),
    ("version: 0\ntopic_id: ", (Outcome.OFFLINE, Outcome.OFFLINE)),
    ("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", (Outcome.OFFLINE, Outcome.OFFLINE)),
    (f"version: 0\ntopic_id:{ID}", (Outcome.OFFLINE, Outcome.OFFLINE)),
    (f"topic_id: {ID}\nversion: 0", (Outcome.OFFLINE, Outcome.OFFLINE)),
    ("\0" * 43, (Outcome.OFFLINE, Outcome.OFFLINE)),
    (f"version: -1\ntopic_id: {ID}", (Outcome.OFFLINE, Outcome.OFFLINE)),
    (f"version: 1\ntopic_id: {ID}", (Outcome.OFFLINE, Outcome.LOADS)),
    (f" Version: 0\ntopicId: {ID}\nmore\n", (Outcome.LOADS, Outcome.LOADS)),
]


@pytest.mark.parametrize(("content", "outcomes"), METADATA_DAMAGE)
@pytest.mark.parametrize("suffix", ["", ".0123456789abcdef0123456789abcdef-delete"])
def test_partition_metadata_is_read_once_a_log_is_loaded(
    content: str, outcomes: tuple[Outcome, Outcome], suffix: str, copy_of: Callable[[str], Path]
) -> None:
    home = copy_of("4.3.1/clean")
    path = (home / "codec-gzip-0").rename(home / f"codec-gzip-0{suffix}")
    damage_file(path / "partition.metadata", lambda _: content.encode())
    found = [
        forecast(path, settings=StartOptions(kafka))[0][path.name] for kafka in ((3, 3), (4, 3))
    ]
    assert tuple(one.outcome for one in found) == outcomes
    assert all(
        one.reason.startswith("partition.metadata: ")
        for one in found
        if one.outcome is not Outcome.LOADS
    )


def test_a_torn_tail_is_cut_with_its_place_and_size(scenario: Scenario) -> None:
    partitions, _ = forecast(scenario("4.3.1/torn"))
    cuts = {name: actions_of(one, "truncate") for name, one in partitions.items()}
    (name, position, length) = cuts["torn.tail-1"][0]
    log = scenario("4.3.1/torn-recovered") / "torn.tail-1" / name
    assert position == log.stat().st_size
    assert (
        position + (length or 0) == (scenario("4.3.1/torn") / "torn.tail-1" / name).stat().st_size
    )


def test_a_cut_below_the_high_watermark_says_so(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    remove_file(home / "recovery-point-offset-checkpoint")
    logs = sorted((home / "small-segments-0").glob("*.log"))
    log, base = logs[2], int(logs[2].stem)
    damage_file(log, overwrite, 70, b"\xff\xff")
    partitions, _ = forecast(home)
    one = partitions["small-segments-0"]
    cut = next(a for a in one.actions if a.action == "truncate")
    assert (cut.position, cut.length, cut.segment) == (0, log.stat().st_size, base)
    assert cut.loss.below_high_watermark is True
    assert cut.loss.batches == cut.loss.batches_behind_damage > 0
    gone = [a for a in one.actions if a.action == "remove" and a.path.suffix == ".log"]
    assert [a.path for a in gone] == logs[3:]
    # The last segment has no batch yet.
    assert all(a.loss.batches > 0 for a in gone if a.length)
    assert one.log_end == base


def test_a_partition_that_waits_for_its_deletion_lacks_nothing(scenario: Scenario) -> None:
    """The high watermark of its name is of the log that it was."""
    partitions, _ = forecast(scenario("4.3.1/killed"))
    going = [one for name, one in partitions.items() if name.endswith("-delete")]
    assert going
    assert [one.lost_acknowledged for one in going] == [None] * len(going)
    assert all(one.lost_acknowledged in (0, None) for one in partitions.values())


def fates(home: Path, kafka: tuple[int, int]) -> dict[str, str]:
    """Return the fates of directories that the metadata log does not know."""
    partitions, _ = forecast(home, settings=StartOptions(kafka))
    kinds = ("stray", "delete", "adopt", "keep")
    return {
        name: action.action
        for name, one in partitions.items() for action in one.actions if action.action in kinds
    }  # fmt: skip


OTHER_ID = b"version: 0\ntopic_id: CCCCCCCCCCCCCCCCCCCCCA"


def test_another_topic_id_sets_aside_and_deletes_before_3_6(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("3.9.2/clean")
    damage_file(home / "codec-gzip-0" / "partition.metadata", lambda _: OTHER_ID)
    assert fates(home, (3, 9)) == {"codec-gzip-0": "stray"}
    assert fates(home, (3, 3)) == {"codec-gzip-0": "delete"}


def test_without_its_file_a_log_gets_its_id_by_name_in_3_3(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("3.9.2/clean")
    remove_file(home / "codec-gzip-0" / "partition.metadata")
    assert fates(home, (3, 7)) == {"codec-gzip-0": "stray"}
    assert fates(home, (3, 3)) == {"codec-gzip-0": "adopt"}
    # No such topic is known: then 3.3 deletes nothing at all.
    (home / "codec-gzip-0").rename(home / "no-such-topic-0")
    damage_file(home / "codec-lz4-0" / "partition.metadata", lambda _: OTHER_ID)
    assert fates(home, (3, 3)) == {"no-such-topic-0": "keep", "codec-lz4-0": "keep"}


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_the_release_is_that_of_the_broker_that_registered_last(
    release: str, scenario: Scenario
) -> None:
    found = Forecast([scenario(f"{release}/clean")], StartOptions())
    assert [item for item in found if isinstance(item, UnreadableError)] == []
    major, minor, _ = release.split(".")
    node = found.broker.node
    assert node.kafka == node.shown_kafka == (int(major), int(minor))
    assert not node.is_kafka_assumed


def test_a_partition_of_another_node_is_stray(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    damage_file(
        home / "codec-gzip-0" / "partition.metadata",
        lambda data: data.replace(data[-22:-1], b"AAAAAAAAAAAAAAAAAAAAA"),
    )
    partitions, _ = forecast(home)
    assert [name for name, one in partitions.items() if actions_of(one, "stray")] == [
        "codec-gzip-0"
    ]


def test_a_bad_index_below_the_recovery_point_stays_unnoticed(
    copy_of: Callable[[str], Path],
) -> None:
    home = copy_of("4.3.1/killed")
    index = sorted((home / "small-segments-0").glob("*.timeindex"))[1]
    append_to_file(index, b"\x01")
    partitions, _ = forecast(home)
    assert [name for name, *_ in actions_of(partitions["small-segments-0"], "unnoticed")] == [
        index.name
    ]


def test_damage_that_recovery_reads_and_leaves_is_unnoticed(copy_of: Callable[[str], Path]) -> None:
    """Recovery compares CRCs, and no offsets but those of index entries."""
    home = copy_of("4.3.1/killed")
    log = home / "codec-none-0" / f"{0:020}.log"
    sound, last = log.stat().st_size, batches(log)[-1:]
    start, size = int(last.position[0]), int(last.size[0])
    append_to_file(log, log.read_bytes()[start : start + size])
    header(-1, f"codec-gzip-0/{log.name}", record_count=lambda count: count + 5)(home)
    partitions, _ = forecast(home)
    again, miscounted = partitions["codec-none-0"], partitions["codec-gzip-0"]
    assert (again.outcome, again.lost_records) == (Outcome.LOADS, 0)
    assert actions_of(again, "unnoticed") == [(log.name, sound, size)]
    assert [name for name, *_ in actions_of(miscounted, "unnoticed")] == [log.name]
    assert (again.damage_left, miscounted.damage_left) == (1, 1)
    assert sum(one.damage_left for one in partitions.values()) == 2


def test_offsets_that_an_index_entry_shows_empty_the_segment(
    copy_of: Callable[[str], Path],
) -> None:
    home = copy_of("4.3.1/killed")
    log = home / "codec-none-0" / f"{0:020}.log"
    append_to_file(log, log.read_bytes())
    partitions, _ = forecast(home)
    one = partitions["codec-none-0"]
    assert (one.damage_left, one.log_end) == (0, 0)
    assert one.recover_log_end == 360
    assert [position for _, position, _ in actions_of(one, "truncate")] == [0]


def test_one_partition_is_judged_by_the_checkpoints_next_to_it(scenario: Scenario) -> None:
    home = scenario("4.3.1/killed")
    alone, _ = forecast(home / "small-segments-0")
    all_of_them, _ = forecast(home)
    assert list(alone) == ["small-segments-0"]
    assert FORECAST.row(alone["small-segments-0"]) == FORECAST.row(all_of_them["small-segments-0"])


@pytest.mark.parametrize(
    "name",
    [f"{version}/{state}" for version in ("3.9.2", "4.3.1")
     for state in ("clean", "cleaned", "default-settings", "killed", "killed-recovered")],
)  # fmt: skip
def test_what_a_stop_or_a_kill_leaves_is_nothing_to_worry_about(
    scenario: Scenario, name: str
) -> None:
    partitions, notes = forecast(scenario(name))
    done = [action for one in partitions.values() for action in one.actions]
    assert [action for action in (*notes, *done) if action.is_grave] == []
    assert sum(action.loss.bytes for action in done) == 0
    assert not any(one.losses for one in partitions.values())


def test_the_zeros_of_a_preallocated_log_are_no_loss(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    append_to_file(home / "codec-none-0" / f"{0:020d}.log", bytes(100_000))
    partitions, _ = forecast(home)
    one = partitions["codec-none-0"]
    (cut,) = [action for action in one.actions if action.action == "truncate"]
    assert (cut.length, cut.loss.bytes, cut.is_grave) == (100_000, 0, False)
    damage_file(home / "codec-none-0" / f"{0:020d}.log", lambda data: data[:-1] + b"x")
    partitions, _ = forecast(home)
    (cut,) = [a for a in partitions["codec-none-0"].actions if a.action == "truncate"]
    assert (cut.loss.bytes, cut.is_grave) == (100_000, True)
