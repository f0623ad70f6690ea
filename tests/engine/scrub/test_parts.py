"""Segments for which the time of a night is too short: the next night goes on inside them."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrubbing import FIRST_NIGHT, World, make_world, stored_findings, watch
from verification import BytesLeft

from logtool.disk.files import LogFile
from logtool.log.walk import scanner
from logtool.scrub.run import ScrubOptions, ScrubRun
from logtool.scrub.state import open_for_run
from logtool.times import DAY_MS
from logtool.verify import Budget

RECORD = 700
CHUNK = 8 * 1024
RECORDS = 100
A_NIGHT = 3 * CHUNK
"""Bytes that a run may read: about a third of the large segment."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A log dir with two partitions; the first one has a large closed segment."""
    world = watch(make_world(tmp_path, 2, 2, 200), monkeypatch)
    monkeypatch.setattr(scanner, "BUFFER_SIZE", CHUNK)
    monkeypatch.setattr(scanner, "_LONGEST_CHUNK", CHUNK)
    monkeypatch.setattr(scanner, "MOST_ROWS", CHUNK // RECORD)
    for _ in range(RECORDS):
        world.append(0, RECORD)
    yield world


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of all reads of logs from now on."""
    sizes: list[int] = []
    real = LogFile.read_into

    def counted(self: LogFile, buffer: memoryview, position: int) -> int:
        sizes.append(len(buffer))
        return real(self, buffer, position)

    monkeypatch.setattr(LogFile, "read_into", counted)
    return sizes


def short(world: World, day: float) -> dict[Path, int]:
    """Run scrub for a part of the large segment; return the bytes at which the next run goes on."""
    job = world.night(day, cycle_days=5, budget=Budget(pace=BytesLeft(A_NIGHT)))
    return dict(job.read_in_part)


def parts(world: World) -> int:
    with open_for_run(world.state) as opened:
        return int(opened.execute("SELECT count(*) FROM part").fetchone()[0])


def large_log(world: World) -> Path:
    return max(world.partition(0).glob("*.log"), key=lambda log: log.stat().st_size)


def damage(log: Path, position: int) -> None:
    with log.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def test_nights_get_through_a_large_segment(world: World, bytes_read: list[int]) -> None:
    world.roll(0)
    large, places, night = large_log(world), [], 0
    while world.checked().get(large) is None:
        places += short(world, night).values()
        assert world.codes() == set()
        assert night < 12
        night += 1

    assert parts(world) == 0
    assert len(places) >= 2
    assert places == sorted({*places})
    # Each night reads one chunk twice at most.
    assert sum(bytes_read) < large.stat().st_size + (night + 1) * 2 * CHUNK


@pytest.mark.parametrize("position", [100, 60_000])
def test_damage_in_a_large_segment_is_found_by_the_night_that_gets_there(
    world: World, position: int
) -> None:
    world.roll(0)
    damage(large_log(world), position)
    codes: list[set[str]] = []
    for night in range(7):
        short(world, night)
        codes.append(world.codes())
    assert {"batch/crc"} in codes
    found = [(one.finding.code, one.state) for one in stored_findings(world)]
    assert found == [("batch/crc", "open")]
    assert None not in world.checked().values()


def test_a_large_segment_keeps_no_other_log_dir_from_its_turn(world: World, tmp_path: Path) -> None:
    world.roll(0)
    damage(large_log(world), 100)
    (tmp_path / "other").mkdir()
    other = make_world(tmp_path / "other", 2, 2, 200)
    paths = [world.home, other.home]
    checked: list[list[Path]] = []
    for night in range(7):
        with open_for_run(world.state) as opened:
            options = ScrubOptions(FIRST_NIGHT + night * DAY_MS, DAY_MS)
            job = ScrubRun(paths, opened, options, budget=Budget(pace=BytesLeft(A_NIGHT)))
            list(job)
            checked.append([Path(os.fsdecode(path)) for path in job.segments.fresh])
            assert not job.too_large
    large, others = large_log(world), set(other.home.glob("*/*.log"))
    turns = [night for night, logs in enumerate(checked) if large in logs]
    assert turns
    for path in others:
        assert len([night for night, logs in enumerate(checked) if path in logs]) >= 3


def test_a_segment_that_was_replaced_begins_again(world: World) -> None:
    world.roll(0)
    place = next(iter(short(world, 0)))
    assert parts(world) == 1
    world.flip(place)
    place.touch()
    world.night(1, cycle_days=1)
    assert "batch/crc" in world.codes()
    assert parts(world) == 0


def test_an_active_segment_that_grows_keeps_no_other_from_its_turn(world: World) -> None:
    large = world.active(0)
    for night in range(4):
        short(world, night)
        world.append(0, RECORD)
    never = {path for path, when in world.checked().items() if when is None}
    assert never <= {large}


def test_a_part_that_another_release_wrote_is_not_used(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.roll(0)
    first = short(world, 0)
    assert first
    monkeypatch.setattr("logtool.checks.segment_part.__version__", "0.0.1")
    assert short(world, 1) == first


def test_a_part_that_cannot_be_read_begins_again(world: World) -> None:
    world.roll(0)
    assert short(world, 0)
    with open_for_run(world.state) as opened:
        opened.execute("UPDATE part SET content = x'00'")
        opened.commit()
    job = world.night(1, cycle_days=1)
    assert (job.row.complete, world.codes(), parts(world)) == (True, set(), 0)
