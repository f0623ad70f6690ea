"""Budgets: processes, rate, time, and what is remembered from run to run."""

import json
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import wait_until_caught
from verification import BytesLeft

from commands.printing.interrupts import status_on_signal
from logtool.checks import schedule, segment_ranges
from logtool.checks.segment_ranges import check_tasks
from logtool.errors import RefusedError, UsageError
from logtool.formats import record, record_batch
from logtool.running import workers
from logtool.running.resume import load
from logtool.running.workers import OutOfTimeError, Pace, Workers
from logtool.schemas.printed import SUMMARY
from logtool.schemas.tables import FINDING
from logtool.verify import Budget, Verification

LOGTOOL = Path(sys.executable).parent / "logtool"


def batch(offset: int, size: int) -> bytes:
    return record_batch.encode(
        record.encode([record.Record(0, value=bytes(size))]),
        base_offset=offset, last_offset_delta=0, record_count=1, leader_epoch=0,
        base_timestamp=1, max_timestamp=1,
    )  # fmt: skip


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Twenty segments of 64 KiB, one of them with a flipped bit."""
    home = tmp_path / "t-0"
    home.mkdir()
    for number in range(20):
        data = bytearray(b"".join(batch(4 * number + i, 16 * 1024) for i in range(4)))
        if number == 7:
            data[40_000] ^= 1
        (home / f"{4 * number:020d}.log").write_bytes(data)
    return home


def outcome(path: Path, budget: Budget | None = None) -> tuple[list[str], dict[str, object]]:
    job = Verification([path], budget=budget)
    found = [json.dumps(FINDING.row(item)) for item in job]
    summary = SUMMARY.row(job.summary)
    del summary["elapsed_s"]
    return found, summary


def test_threads_change_nothing_of_what_is_found_nor_its_order(partition, scenario, monkeypatch):
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)

    for path in (partition, scenario("4.3.1/clean"), scenario("4.3.1/killed")):
        assert outcome(path, Budget(jobs=2)) == outcome(path)


def test_small_windows_and_units_change_nothing(partition, monkeypatch):
    before = outcome(partition)
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(schedule, "WINDOW", 1)
    monkeypatch.setattr(schedule, "_UNIT_SEGMENTS", 3)

    assert outcome(partition, Budget(jobs=2)) == before


def double(piece: int, on_bytes) -> int:
    on_bytes(piece)
    if piece == 13:
        raise OutOfTimeError
    return 2 * piece


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_work(jobs):
    seen: list[int] = []

    with Workers(double, jobs, Pace(), seen.append) as pool:
        found = list(pool.run([5, 1, 13, 9], order=lambda piece: -piece))

    assert [f if isinstance(f, int) else type(f) for f in found] == [10, 2, OutOfTimeError, 18]
    assert sum(seen) == 5 + 1 + 13 + 9


def test_one_piece_needs_no_thread_of_its_own():
    with Workers(lambda piece, _: threading.get_ident(), 3, Pace()) as pool:
        assert list(pool.run(["one"], order=len)) == [threading.get_ident()]
        assert threading.get_ident() not in pool.run(["one", "two"], order=len)


class Clock(threading.Event):
    """A time that goes on only where somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0
        return False


def test_a_rate_is_kept(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(workers, "time", clock)
    pace = Pace.starting_now(1_000_000, None)
    pace._over = clock

    for _ in range(10):
        pace.spend(20_000)

    assert clock.now - 1000 == pytest.approx(0.2)


def test_time_that_reading_takes_counts_for_the_rate(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(workers, "time", clock)
    pace = Pace.starting_now(1_000_000, None)
    pace._over = clock

    for _ in range(10):
        clock.now += 0.015
        pace.spend(20_000)
    assert clock.now - 1000 == pytest.approx(0.2)

    clock.now += 100  # of a long pause, only a little
    pace.spend(1_000_000)
    assert clock.now - 1000 == pytest.approx(100.2 + 0.75)


def test_time_that_is_over_ends_the_waiting_for_a_rate():
    pace = Pace(1, time.monotonic() + 0.1)

    with pytest.raises(OutOfTimeError):
        pace.spend(1_000_000)


@pytest.mark.parametrize("jobs", [1, 2])
def test_time_that_is_over_leaves_a_partial_verdict(partition, monkeypatch, jobs):
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)

    found, summary = outcome(partition, Budget(jobs, Pace(deadline=time.monotonic())))

    assert summary["complete"] is False
    assert summary["segments"] == summary["batches"] == 0
    assert not any("batch/crc" in line for line in found)


def test_runs_with_a_memory_get_through_everything(partition, tmp_path):
    memory = tmp_path / "memory.json"
    codes: list[str] = []
    segments = runs = 0

    while segments < 20:
        # Each run gets a few segments further.
        pace = BytesLeft(5 * 66_000)
        job = Verification([partition], budget=Budget(1, pace, memory=load(memory)))
        codes += [item.code for item in job]
        segments += job.summary.segments
        runs += 1
        assert runs < 40

    assert runs > 1
    assert "batch/crc" in codes
    assert len(json.loads(memory.read_text())["checked"]) == 20


@pytest.mark.parametrize("jobs", [1, 2])
@settings(max_examples=15)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=8), st.integers(1, 10))
def test_what_does_not_fit_into_a_run_keeps_nothing_else_from_its_turn(jobs, sizes, budget):
    """Sizes of segments and of runs in batches of 2 KiB; the large segments are cut in pieces."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "WORTH_A_POOL", 0)
        patch.setattr(segment_ranges, "PIECE_BYTES", 5000)
        partition, memory = Path(home) / "t-0", Path(home) / "memory.json"
        logs = write_segments(partition, sizes)
        room = budget * len(batch(0, 2048))
        too_large: set[Path] = set()
        done: set[str] = set()
        for _ in range(3 * len(sizes) + 1):
            job = Verification(
                [partition], budget=Budget(jobs, BytesLeft(room), memory=load(memory))
            )
            assert not [one for one in job if one.code.startswith("batch/")]
            too_large |= {log.path for log in job.too_large}
            before, done = done, set(json.loads(memory.read_text())["checked"])
            assert before <= done
        fitting = {log for log in logs if jobs == 1 and log.stat().st_size <= room}
        assert {str(log) for log in fitting} <= done
        assert {str(log) for log in logs} == done | {str(log) for log in too_large}


def test_what_never_fits_is_named_though_another_thread_gets_through(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "WORTH_A_POOL", 0)
    monkeypatch.setattr(schedule, "_UNIT_SEGMENTS", 1)
    logs = write_segments(tmp_path / "t-0", [1, 1])
    second_is_done = threading.Event()

    def check(tasks, on_bytes):
        if tasks[0].segment.log.path == logs[0]:
            assert second_is_done.wait(60)
            raise OutOfTimeError
        reports = check_tasks(tasks, on_bytes)
        second_is_done.set()
        return reports

    monkeypatch.setattr(schedule, "check_tasks", check)

    job = Verification([tmp_path / "t-0"], budget=Budget(2, memory=load(tmp_path / "m.json")))
    list(job)

    assert [log.path for log in job.too_large] == [logs[0]]
    memory = json.loads((tmp_path / "m.json").read_text())
    assert list(memory["checked"]) == [str(logs[1])]
    assert list(memory["begun"]) == [str(logs[0])]


def write_segments(partition: Path, sizes: Sequence[int]) -> list[Path]:
    """Write segments of so many batches of 2 KiB, with indexes; returns the logs."""
    partition.mkdir()
    offset, logs = 0, []
    for size in sizes:
        log = partition / f"{offset:020d}.log"
        log.write_bytes(b"".join(batch(offset + n, 2048) for n in range(size)))
        at = [(n, n * len(batch(0, 2048))) for n in range(1, size)]
        index = b"".join(struct.pack(">ii", *entry) for entry in at)
        log.with_suffix(".index").write_bytes(index)
        offset += size
        logs.append(log)
    return logs


def test_what_was_checked_least_recently_comes_first(partition, tmp_path, monkeypatch):
    memory = load(tmp_path / "memory.json")
    logs = sorted(partition.glob("*.log"))
    for log in logs[:10]:
        status = log.stat()
        memory.checked[str(log)] = (status.st_size, status.st_mtime_ns, 1.0)
    logs[4].touch()  # not any more what was checked
    looked_at: list[int] = []
    real = schedule.check_tasks

    def watched(tasks, on_bytes):
        looked_at.extend(task.segment.base_offset // 4 for task in tasks)
        return real(tasks, on_bytes)

    monkeypatch.setattr(schedule, "check_tasks", watched)

    list(Verification([partition], budget=Budget(memory=memory)))

    assert looked_at == [4, *range(10, 20), 0, 1, 2, 3, *range(5, 10)]


def test_a_memory_is_not_kept_in_a_log_dir(partition, scenario):
    with pytest.raises(RefusedError, match="log dir"):
        load(partition / "memory.json")
    with pytest.raises(RefusedError, match="log dir"):
        load(scenario("4.3.1/clean") / "memory.json")


@pytest.mark.parametrize(
    "content", ["", "[]", '{"schema": "other/1"}', '{"schema": 1, "checked": []}']
)
def test_a_file_that_is_no_memory_is_refused(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)

    with pytest.raises(UsageError, match="--resume"):
        load(path)

    assert path.read_text() == content


def logtool(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LOGTOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_command_line_takes_budgets(partition, tmp_path):
    memory = tmp_path / "m.json"

    done = logtool(
        "verify", partition, "--max-duration", "0.001s", "--resume", memory, "-f", "ndjson"
    )
    assert json.loads(done.stdout.splitlines()[-1])["complete"] is False, done.stderr

    assert logtool("verify", partition, "--max-rate", "1G", "--drop-cache", "-j", 2).returncode == 1
    assert logtool("verify", partition, "--resume", partition / "m.json").returncode == 5
    for option in ("--max-rate=fast", "--max-duration=1w", "--max-rate=0", "-j=0"):
        assert logtool("verify", partition, option).returncode == 2


def test_signals_that_arrive_while_the_status_is_reported_do_not_nest():
    running: list[int] = []
    reported: list[int] = []

    def note() -> None:
        running.append(1)
        reported.append(len(running))
        if len(reported) < 2_000:
            signal.raise_signal(signal.SIGUSR1)
        running.pop()

    with status_on_signal(note):
        signal.raise_signal(signal.SIGUSR1)

    assert reported == [1] * 2_000


def test_a_signal_asks_for_a_status_line(partition):
    command = [LOGTOOL, "verify", partition, "--max-rate", "100K"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        wait_until_caught(running.pid, signal.SIGUSR1)
        line = ""
        # A part of the segments is read, and something was found in it, before all is over.
        while not re.fullmatch(r"[01]\.\d of 1\.3 MiB.*; so far \d+ (error|warning)s?.*\n", line):
            running.send_signal(signal.SIGUSR1)
            line = running.stderr.readline()
            assert "; so far " in line
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130
