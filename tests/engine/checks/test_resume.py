"""Runs with --resume go on inside a segment, and find what one run finds."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from bench.generate import Spec, generate
from damage import copied, cut, damage_file, flip, zero
from verification import BytesLeft, Outcome, logs, verify

from logtool.checks import schedule, segment_part, segment_ranges
from logtool.checks.report import Level
from logtool.disk.files import LogFile
from logtool.errors import UsageError
from logtool.exits import Exit
from logtool.findings import Finding
from logtool.log.walk import scanner
from logtool.running.resume import load
from logtool.running.workers import Pace
from logtool.verify import Budget, Verification

BATCH, BATCHES = 1024, 256
CHUNK = 8 * BATCH


@pytest.fixture(scope="module")
def generated(tmp_path_factory) -> Path:
    return generate(tmp_path_factory.mktemp("made"), Spec(BATCH, BATCHES * BATCH, producers=3))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch) -> None:
    monkeypatch.setattr(scanner, "BUFFER_SIZE", CHUNK)
    monkeypatch.setattr(scanner, "_LONGEST_CHUNK", CHUNK)
    monkeypatch.setattr(scanner, "MOST_ROWS", CHUNK // BATCH)


@pytest.fixture
def bytes_read(monkeypatch) -> list[int]:
    """Return the sizes of all reads of logs from now on."""
    sizes: list[int] = []
    real = LogFile.read_into

    def counted(self, buffer, position):
        sizes.append(len(buffer))
        return real(self, buffer, position)

    monkeypatch.setattr(LogFile, "read_into", counted)
    return sizes


def run(home: Path, memory: Path, left: int | None, level: Level = Level.BATCHES) -> Outcome:
    """Verify with a memory until so many bytes were read; None for all."""
    pace = Pace() if left is None else BytesLeft(left)
    return verify(home, level=level, budget=Budget(1, pace, memory=load(memory)))


def position(memory: Path) -> int | None:
    """Return the byte at which the next run goes on; None for the start."""
    parts = list(json.loads(memory.read_text()).get("parts", {}).values())
    return parts[0][3]["position"] if parts else None


@pytest.mark.parametrize("level", [Level.BATCHES, Level.RECORDS])
def test_runs_that_are_too_short_for_a_segment_get_through_it(
    generated, tmp_path, bytes_read, level
):
    memory, size = tmp_path / "memory.json", logs(generated)[0].stat().st_size
    whole = verify(generated, level=level)
    read_once, places = sum(bytes_read), []
    bytes_read.clear()
    while True:
        outcome = run(generated, memory, 40 * BATCH, level)
        if outcome.summary.segments:
            break
        places.append(position(memory))
        assert outcome.findings == []

    assert places == sorted({*places})
    assert len(places) >= size // (48 * BATCH)
    assert sum(bytes_read) < read_once + (len(places) + 1) * 2 * CHUNK
    assert outcome.findings == whole.findings
    assert outcome.summary.batches == whole.summary.batches == BATCHES
    assert outcome.summary.records == whole.summary.records
    assert position(memory) is None


def places_of(findings: Iterable[Finding]) -> set[tuple[str, int | None]]:
    return {(one.code, one.position) for one in findings}


DAMAGE: dict[str, tuple[str, Callable[[bytes, int], bytes]]] = {
    "a bit of a batch": ("log", lambda data, at: flip(data, at * BATCH + 700)),
    "a leader epoch": ("log", lambda data, at: flip(data, at * BATCH + 15, 1)),
    "a base offset": ("log", lambda data, at: flip(data, at * BATCH + 6, 1)),
    "a page of zeros": ("log", lambda data, at: zero(data, at * BATCH, 512)),
    "the end": ("log", lambda data, at: cut(data, at * BATCH + 20)),
    "an offset entry": ("index", lambda data, at: flip(data, at % (len(data) // 8) * 8 + 2, 1)),
    "a position": ("index", lambda data, at: flip(data, at % (len(data) // 8) * 8 + 7, 1)),
    "a time entry": ("timeindex", lambda data, at: flip(data, at % (len(data) // 12) * 12 + 7, 1)),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_found_by_the_run_that_goes_on_as_by_one_run(generated, tmp_path, kind, damage):
    found: list[Finding] = []
    for at in (30, 101):
        home = copied(generated, tmp_path / f"t-{at}")
        damage_file(next(home.glob(f"*.{kind}")), damage, at)
        whole = verify(home, level=Level.BATCHES)
        found += whole.findings
        for left in (28, 90):
            memory = tmp_path / f"{at}-{left}.json"
            first = run(home, memory, left * BATCH)
            if first.summary.segments:
                assert first.findings == whole.findings
            # A run that is too short for the segment finds some of it, at the same bytes.
            assert places_of(first.findings) <= places_of(whole.findings)
            assert run(home, memory, None).findings == whole.findings
    assert found


@pytest.mark.parametrize("level", [Level.BATCHES, Level.RECORDS])
@pytest.mark.parametrize(("kind", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_runs_that_are_too_short_get_through_damage(generated, tmp_path, kind, damage, level):
    home, memory = copied(generated, tmp_path / "t-0"), tmp_path / "memory.json"
    for at in (101, 33, 30):
        damage_file(next(home.glob(f"*.{kind}")), damage, at)
    whole, seen, places = verify(home, level=level), set(), []
    while True:
        outcome = run(home, memory, 40 * BATCH, level)
        if outcome.summary.segments:
            break
        # What was found so far is found again by each run.
        assert seen <= places_of(outcome.findings) <= places_of(whole.findings)
        seen = places_of(outcome.findings)
        places.append(position(memory))
    assert places == sorted({*places})
    assert outcome.findings == whole.findings
    assert outcome.summary.batches == whole.summary.batches


@pytest.mark.parametrize(("kind", "damage"), DAMAGE.values(), ids=DAMAGE)
def test_findings_do_not_depend_on_where_a_run_goes_on(generated, tmp_path, kind, damage):
    home = copied(generated, tmp_path / "t-0")
    for at in (101, 33, 30):
        damage_file(next(home.glob(f"*.{kind}")), damage, at)
        whole = verify(home, level=Level.BATCHES)
        for left in range(24, 120, 8):
            memory = tmp_path / f"{at}-{left}.json"
            run(home, memory, left * BATCH)
            assert run(home, memory, None).findings == whole.findings


def test_odd_timestamps_of_an_earlier_run_are_counted(generated, tmp_path):
    home, memory = copied(generated, tmp_path / "t-0"), tmp_path / "memory.json"
    os.utime(logs(home)[0], (1_300_000_000, 1_300_000_000))
    whole = verify(home, level=Level.BATCHES)
    first = run(home, memory, 100 * BATCH)
    assert places_of(first.findings) == places_of(whole.findings)
    assert [one.code for one in whole.findings] == ["batch/timestamp-future"]
    assert run(home, memory, None).findings == whole.findings


@pytest.mark.parametrize("odd", ["findings", "damage", "odd_timestamps", "odd_offsets"])
def test_a_part_of_another_form_is_begun_again(generated, tmp_path, odd):
    home, memory = copied(generated, tmp_path / "t-0"), tmp_path / "memory.json"
    damage_file(logs(home)[0], flip, 30 * BATCH + 700)
    run(home, memory, 100 * BATCH)
    content = json.loads(memory.read_text())
    part = next(iter(content["parts"].values()))[3]
    part[odd] = {"regions": [[1]], "future": [1]} if isinstance(part[odd], dict) else [[1, 2]]
    memory.write_text(json.dumps(content))
    outcome = run(home, memory, None)
    assert outcome.summary.batches == BATCHES - 1
    assert outcome.findings == verify(home, level=Level.BATCHES).findings


def test_too_many_findings_are_not_kept_and_the_log_is_named(generated, tmp_path, monkeypatch):
    monkeypatch.setattr(segment_part, "_MOST_ODD", 0)
    home, memory = copied(generated, tmp_path / "t-0"), tmp_path / "memory.json"
    damage_file(logs(home)[0], flip, 30 * BATCH + 700)
    places = []
    for _ in range(3):
        run(home, memory, 50 * BATCH)
        places.append(position(memory))
    begun = json.loads(memory.read_text())["begun"]
    assert places[0] is None or places[0] <= 30 * BATCH + 700
    assert places[1] == places[2]
    assert list(begun) == [str(logs(home)[0])]


@pytest.mark.parametrize("kind", ["log", "index"])
def test_a_segment_that_changed_is_begun_again(generated, tmp_path, bytes_read, kind):
    home, memory = copied(generated, tmp_path / "t-0"), tmp_path / "memory.json"
    run(home, memory, 100 * BATCH)
    assert position(memory)
    next(home.glob(f"*.{kind}")).touch()
    bytes_read.clear()
    outcome = run(home, memory, None)
    assert outcome.summary.batches == BATCHES
    assert sum(bytes_read) >= logs(home)[0].stat().st_size


def test_another_level_begins_again(generated, tmp_path, bytes_read):
    memory = tmp_path / "memory.json"
    run(generated, memory, 100 * BATCH)
    bytes_read.clear()
    run(generated, memory, None, Level.RECORDS)
    assert sum(bytes_read) >= logs(generated)[0].stat().st_size


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("end_position", -1), ("end_position", 2**40), ("batches", None), ("gaps", [1]),
        ("epochs", [[0]]), ("producer_rows", "AAAA"), ("last_entry", []), ("old_formats", [[1]]),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_read_is_read_again(generated, tmp_path, key, value):
    memory = tmp_path / "memory.json"
    run(generated, memory, 100 * BATCH)
    content = json.loads(memory.read_text())
    next(iter(content["parts"].values()))[3][key] = value
    memory.write_text(json.dumps(content))
    outcome = run(generated, memory, None)
    assert outcome.summary.batches == BATCHES
    assert outcome.findings == verify(generated, level=Level.BATCHES).findings


def test_a_file_with_other_parts_is_refused(tmp_path):
    path = tmp_path / "memory.json"
    path.write_text('{"schema": "logtool.resume/1", "checked": {}, "parts": {"a": [1]}}')
    with pytest.raises(UsageError):
        load(path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_damage_in_a_segment_that_is_not_read_to_its_end_is_found(
    generated, tmp_path, monkeypatch, jobs
):
    """Without a memory, in one thread and in pieces."""
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(segment_ranges, "PIECE_BYTES", 100 * BATCH)
    home = copied(generated, tmp_path / "t-0")
    damage_file(logs(home)[0], flip, 30 * BATCH + 700)

    outcome = verify(home, budget=Budget(jobs, BytesLeft(jobs * 110 * BATCH)))

    assert [(one.code, one.position) for one in outcome.findings] == [("batch/crc", 30 * BATCH)]
    assert (outcome.summary.segments, outcome.summary.out_of_time) == (0, True)
    assert outcome.summary.exit_status() == Exit.FINDINGS


def test_the_coverage_says_what_was_never_checked_and_where_the_next_run_goes_on(
    generated, tmp_path
):
    """Log dirs have their turn one after the other, the one that was checked last at the end."""
    homes = [copied(generated, tmp_path / name) for name in ("a-0", "b-0")]
    memory, known, size = tmp_path / "memory.json", [], logs(generated)[0].stat().st_size
    for left in (BATCH * BATCHES * 3 // 2, 0, None, 0):
        pace = Pace() if left is None else BytesLeft(left)
        pace.ran_out = left == 0
        job = Verification(homes, level=Level.BATCHES, budget=Budget(1, pace, memory=load(memory)))
        assert list(job) == []
        found = job.coverage
        assert found
        known.append((found.segments, found.unchecked, found.unreached, found.next_path.parts[-2:]))
        assert found.unchecked_bytes == size * found.unchecked
        assert (found.oldest_s > 0) is (found.segments == 2 and not found.unchecked)
    log = logs(generated)[0].name
    assert known == [
        (2, 1, 0, ("b-0", log)),
        (0, 0, 2, (tmp_path.name, "b-0")),
        (2, 0, 0, ("b-0", log)),  # checked first, because the first run had not
        (0, 0, 2, (tmp_path.name, "b-0")),
    ]


def test_without_a_memory_nothing_is_known_of_other_runs(generated):
    job = Verification([generated])
    assert list(job) == []
    assert job.coverage is None


def test_an_active_segment_that_grows_keeps_no_other_from_its_turn(generated, tmp_path):
    data, memory = tmp_path / "data", tmp_path / "memory.json"
    data.mkdir()
    large, other = (logs(copied(generated, data / name))[0] for name in ("a-0", "b-0"))
    for _ in range(4):
        pace = BytesLeft(BATCHES * BATCH * 5 // 8)
        verify(data, budget=Budget(1, pace, memory=load(memory)))
        large.touch()
    assert list(json.loads(memory.read_text())["checked"]) == [str(other)]
