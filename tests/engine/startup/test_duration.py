"""Duration of a start: the range, its causes, and the slowest partitions."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from verification import has_numbers, numbers_in

from logtool.errors import UnreadableError
from logtool.loading.result import Outcome, StartConditions
from logtool.startup import disks, rates
from logtool.startup.disks import Cold, DiskSample, StretchTimes
from logtool.startup.duration import MOST_NAMED, duration
from logtool.startup.partition import PartitionForecast, forecast_partition
from logtool.startup.rates import BATCH_SECONDS, BROKER_BYTES_PER_SECOND, MIB, ReadRates
from logtool.startup.request import LoadRequest


def load(name: str, size: int = 0, batches: int = 0, *timed: float) -> PartitionForecast:
    """Return a partition of which `size` bytes are read, and its stretches at so many bytes/s."""
    request = LoadRequest(Path(name), StartConditions(clean=False))
    return PartitionForecast(
        request, Outcome.LOADS, bytes_scanned=size, batches_scanned=batches, rates=timed
    )


@pytest.mark.parametrize(("threads", "seconds"), [(1, 8.0), (2, 5.0), (8, 5.0)])
def test_the_longest_partition_bounds_the_time(threads: int, seconds: float) -> None:
    loads = [load("a-0", 200), load("b-0", 500), load("c-0", 100)]
    found = duration(loads, threads, ReadRates(100.0, 100.0, 100.0))
    assert (found.bytes, found.seconds, found.critical) == (800, seconds, Path("b-0"))
    assert found.seconds_low == found.seconds_high == seconds
    assert found.probe_timeout_s == 2 * seconds + 60
    assert [one.seconds for one in found.slowest] == [5.0, 2.0, 1.0]


def test_the_range_goes_from_the_fastest_to_the_slowest_rate() -> None:
    found = duration([load("a-0", 800)], 1, ReadRates(slow=100.0, usual=200.0, fast=400.0))
    assert (found.seconds_low, found.seconds, found.seconds_high) == (2.0, 4.0, 8.0)
    assert found.probe_timeout_s == 76, "twice the longest time and a minute"


def test_each_batch_costs_a_broker_something_between_least_and_most() -> None:
    found = duration([load("a-0", 100, 1_000_000)], 1, ReadRates(100.0, 100.0, 100.0))
    least, usual, most = (1 + 1_000_000 * each for each in BATCH_SECONDS)
    reported = (found.seconds_low, found.seconds, found.seconds_high)
    assert reported == pytest.approx((least, usual, most))


def test_ten_are_named_and_none_of_which_nothing_is_read() -> None:
    loads = [load(f"a-{number}", number * 100) for number in range(15)]
    found = duration(loads, 1, ReadRates(100.0, 100.0, 100.0))
    names = [one.forecast.request.path.name for one in found.slowest]
    assert names == [f"a-{number}" for number in range(14, 14 - MOST_NAMED, -1)]
    assert duration(loads[:3], 1, ReadRates(1.0, 1.0, 1.0)).slowest[-1].seconds == 100


def test_of_nothing_to_load_the_time_is_nothing() -> None:
    found = duration([], 2, ReadRates(1.0, 1.0, 1.0))
    assert (found.seconds, found.seconds_high, found.critical, found.slowest) == (0, 0, None, [])


def test_the_rates_are_the_tenths_of_the_stretches_that_were_timed() -> None:
    timed = [MIB * number for number in range(100, 200)]
    found = rates.measured([load("a-0", 1, 1, *timed[::2]), load("b-0", 1, 1, *timed[1::2])])
    assert found is not None
    assert (found.slow, found.fast) == (110 * MIB, 189 * MIB)
    assert found.slow < found.usual < found.fast
    assert (found.pieces, found.basis, found.disk) == (100, "measured", None)


def test_no_broker_is_faster_than_one_was_measured_and_the_disk_may_be_the_slow_end() -> None:
    loads = [load("a-0", 1, 1, 4096.0 * MIB, 6000.0 * MIB)]
    found = rates.measured(loads)
    assert found is not None
    assert (found.slow, found.fast) == BROKER_BYTES_PER_SECOND
    two = {number: DiskSample(Path(str(number)), past_cache=number * MIB) for number in (80, 50)}
    found = rates.measured(loads, {**two, 1: DiskSample(Path("1"))})
    assert found is not None
    assert (found.slow, found.disk) == (50 * MIB, 50 * MIB)


def test_the_time_on_the_whole_is_calibrated_by_a_pass_over_memory() -> None:
    through = disks.memory_pass(0.001)
    assert through > 0
    found = rates.measured([load("a-0", 100, 1, 4096.0 * MIB)], through=through)
    assert found is not None
    assert found.slow <= found.usual <= found.fast
    assert found.strain == min(rates._PASS / through, 20)
    # Half as fast a machine takes twice as long for all that a processor does.
    many = replace(load("a-0", 0, 1_000_000), recovered=10, segments=10)
    quick, slow = (
        duration([many], 1, replace(found, strain=each, is_measured=False)) for each in (1.0, 2.0)
    )
    of_files = 10 * 10 * 4 * rates.LISTED_SECONDS[1]
    of_segments = rates.LOG_SECONDS[1] + 10 * rates.SEGMENT_SECONDS[1] + of_files
    assert slow.seconds - quick.seconds == pytest.approx(1.2 + of_segments)
    assert quick.seconds == pytest.approx(1.2 + of_segments + 10 * rates.SYNC_SECONDS)


@pytest.mark.parametrize(("load_average", "factor"), [(0.0, 1.0), (1.5, 1.5), (100.0, 2.0)])
def test_the_range_of_a_calibrated_estimate_is_wider_on_a_crowded_machine(
    monkeypatch: pytest.MonkeyPatch, load_average: float, factor: float
) -> None:
    cores = len(os.sched_getaffinity(0))
    monkeypatch.setattr(os, "getloadavg", lambda: (load_average * cores, 0.0, 0.0))
    one = load("a-0", 64 * MIB, 1000, 400.0 * MIB)
    found = rates.measured([one], through=1000.0 * MIB)
    assert found is not None
    time = duration([one], 1, found)
    for part in (time, time.slowest[0]):
        assert part.seconds_low == pytest.approx(rates.LEAST * part.seconds)
        assert part.seconds_high == pytest.approx(rates.MOST * factor * part.seconds)


def test_a_machine_that_takes_very_long_is_taken_to_be_slower_by_so_much_at_most() -> None:
    found = rates.measured([load("a-0", MIB, 1, 1.0 * MIB)], through=1.0)
    assert found is not None
    assert found.strain == 20
    assert found.usual == pytest.approx(rates._SHARE * rates._PASS / 20)


def test_what_is_not_in_the_page_cache_comes_from_its_disk_besides(tmp_path: Path) -> None:
    log_dir = tmp_path / "data"
    log_dir.mkdir()
    device = log_dir.stat().st_dev
    cold = replace(load(f"{log_dir}/a-0", 100 * MIB), cold=Cold(50 * MIB, 10))
    disk = DiskSample(log_dir, through_cache=25.0 * MIB, first_seconds=0.1)
    known = ReadRates(slow=MIB, usual=100 * MIB, fast=100 * MIB, disks={device: disk})
    assert duration([cold], 1, known).seconds == pytest.approx(1 + 2 + 1)
    other = replace(known, disks={device + 1: disk})
    assert duration([cold], 1, other).seconds == pytest.approx(1), "it lies on another disk"
    warm = replace(known, disks={device: DiskSample(log_dir, past_cache=1.0 * MIB)})
    assert duration([cold], 1, warm).seconds == pytest.approx(1), "nothing that is cold was read"


def test_each_log_dir_has_threads_of_its_own() -> None:
    loads = [load(f"{home}/{number}", 100) for home in ("a", "b") for number in range(3)]
    known = ReadRates(100.0, 100.0, 100.0)
    assert duration(loads, 1, known).seconds == 3
    assert duration(loads, 2, known).seconds == 2
    assert duration(loads[:3], 1, known).seconds == 3


def test_log_dirs_on_one_disk_wait_for_it_together(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in ("a", "b")]
    for home in homes:
        home.mkdir()
    disk = DiskSample(homes[0], through_cache=10.0 * MIB)
    known = ReadRates(MIB, MIB, MIB, disks={tmp_path.stat().st_dev: disk}, is_measured=True)
    loads = [replace(load(f"{home}/x-0"), cold=Cold(100 * MIB, 1)) for home in homes]
    assert duration(loads, 1, known).seconds == pytest.approx(20)
    assert duration(loads[:1], 1, known).seconds == pytest.approx(10)


@pytest.mark.parametrize(
    ("cores", "threads", "seconds"),
    [(4, 1, 1.0), (2, 1, 1.0), (2, 2, 1.5), (1, 1, 2.0)],
)
def test_threads_share_the_processors_with_each_other_and_with_the_compiler(
    cores: int, threads: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    loads = [load(f"a-{number}", 100) for number in range(threads)]
    known = ReadRates(100.0, 100.0, 100.0, is_measured=True)
    found = duration(loads, threads, known).seconds - rates.UNCOMPILED_SECONDS
    assert found == pytest.approx(seconds)
    long = [replace(one, bytes_scanned=100_000) for one in loads]
    found = duration(long, threads, known).seconds - rates.UNCOMPILED_SECONDS
    least = 1000 + rates.COMPILER_SECONDS / cores
    assert found == pytest.approx(1000 if seconds == 1 else least), "it is compiled at some time"


def on_disk(path: Path, size: int) -> tuple[Path, int]:
    """Write a log that the page cache does not hold, where the file system has one."""
    with path.open("wb") as file:
        file.write(bytes(size))
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return path, size


def test_the_page_cache_is_asked_without_reading(tmp_path: Path) -> None:
    log, size = on_disk(tmp_path / "a.log", 3 * MIB + 5)
    before = disks.cached_bytes(log)
    assert 0 <= before <= size
    assert disks.cached_bytes(log) == before
    log.read_bytes()
    assert disks.cached_bytes(log) == size
    (tmp_path / "empty.log").touch()
    assert disks.cached_bytes(tmp_path / "empty.log") == 0
    with pytest.raises(UnreadableError):
        disks.cached_bytes(tmp_path / "gone.log")


def test_what_is_cold_is_counted_and_some_small_logs_speak_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = {"large.log": 2 * MIB, "warm.log": 5 * MIB}
    asked: list[str] = []

    def cached_bytes(path: Path) -> int:
        asked.append(path.name)
        if path.name == "gone.log":
            raise UnreadableError(path, "No such file or directory")
        return cached.get(path.name, 0)

    monkeypatch.setattr(disks, "cached_bytes", cached_bytes)
    logs = {"large.log": 10 * MIB, "warm.log": 5 * MIB, "gone.log": 9 * MIB, "empty.log": 0}
    small = {f"{number}.log": 100 for number in range(32)}
    found = disks.cold((tmp_path / name, size) for name, size in {**logs, **small}.items())
    assert found == Cold(8 * MIB + 3200, 33)
    assert len(asked) == 3 + 4


def test_each_disk_is_sampled_by_its_largest_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[str] = []

    def through(path: Path, most: int, seconds: float) -> tuple[int, float, float]:
        timed.append(path.name)
        assert 0 < seconds <= 0.25
        return min(most, path.stat().st_size), 2**-7, 2**-9

    monkeypatch.setattr(disks, "cached_bytes", lambda path: 1 if path.name == "warm.log" else 0)
    monkeypatch.setattr(disks, "through_cache", through)
    monkeypatch.setattr(disks, "past_cache", lambda *_: (2 * MIB, 0.125))
    samples = disks.Samples()
    for name, size in (("small.log", MIB), ("large.log", 3 * MIB), ("warm.log", 2 * MIB)):
        (tmp_path / name).write_bytes(bytes(size))
        samples.add(tmp_path, [(tmp_path / name, size)])
    samples.add(tmp_path / "gone", [(tmp_path / "gone" / "a.log", 100)])
    disk = DiskSample(
        tmp_path, past_cache=16.0 * MIB, through_cache=256.0 * MIB, first_seconds=2**-9
    )
    assert samples.taken() == {tmp_path.stat().st_dev: disk}
    assert timed == ["large.log", "small.log"]


def test_a_log_is_read_through_the_page_cache_no_further_than_asked(tmp_path: Path) -> None:
    log, size = on_disk(tmp_path / "a.log", MIB + 100)
    count, seconds, first = disks.through_cache(log, 100 * 1024, 60.0)
    assert 100 * 1024 <= count < 120 * 1024
    assert 0 < first <= seconds
    assert disks.through_cache(log, 2 * size, 60.0)[0] == size
    assert disks.through_cache(log, size, 0.0)[0] == 0
    with pytest.raises(UnreadableError):
        disks.through_cache(tmp_path / "gone.log", 1, 1.0)


def test_many_segments_or_bytes_take_long_however_small_each_log_is() -> None:
    few, many = (replace(load("a-0", 100), recovered=count) for count in (499, 500))
    assert rates.known([few]) is None
    assert rates.known([many]) is None, "nothing was timed, and nothing more is read"
    known = rates.known([many], disks={})
    assert known is not None
    assert (known.is_calibrated, known.pieces) == (True, 0)


def test_many_logs_of_which_none_is_long_have_an_estimate(tmp_path: Path) -> None:
    for number in range(2):
        (tmp_path / f"a-{number}").mkdir()
        (tmp_path / f"a-{number}" / "a.log").write_bytes(bytes(3 * MIB))
    loads = [load(str(tmp_path / f"a-{number}"), 3 * MIB, 1) for number in range(2)]
    assert rates.known(loads[:1], disks={}) is None
    assert rates.known(loads, disks={}) is not None


def test_a_rate_that_is_given_is_the_whole_range_and_without_stretches_there_is_none() -> None:
    assert rates.known([], 5.0, disks={}) == ReadRates(5.0, 5.0, 5.0)
    assert rates.known([load("a-0", 100)], disks={}) is None


def test_a_stretch_is_timed_for_each_4_mib_and_each_is_reported() -> None:
    reported: list[int] = []
    stopwatch = StretchTimes(reported.append)
    for _ in range(11):
        stopwatch(MIB)
    assert reported == [MIB] * 11
    assert len(stopwatch.rates) == 2
    assert all(rate > 0 for rate in stopwatch.rates)


def test_the_disk_is_read_past_the_cache_no_further_than_asked(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(bytes(5 * MIB + 100))
    size, seconds = disks.past_cache(log, 2 * MIB, 60.0)
    assert (size, seconds > 0) in ((2 * MIB, True), (0, False)), "0: a file system in memory"
    assert disks.past_cache(log, 2 * MIB, 0.0)[0] == 0
    size, _ = disks.past_cache(log, 64 * MIB, 60.0)
    assert size in (5 * MIB + 100, 0)
    with pytest.raises(UnreadableError):
        disks.past_cache(tmp_path / "none.log", MIB, 1.0)


def test_a_partition_says_what_takes_its_time(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    directory = home / "small-segments-0"
    for index in sorted(directory.glob("*.index"))[:2]:
        index.unlink()
    one = forecast_partition(LoadRequest(directory, StartConditions(clean=False)), lambda _: None)
    assert isinstance(one, PartitionForecast)
    assert one.why == {"no offset index": 2, "unflushed": one.recovered}
    assert one.indexes_changed >= 2
    (slow,) = duration([one], 1, ReadRates(MIB, MIB, MIB)).slowest
    causes = list(slow.causes)
    assert has_numbers(causes[0], one.recovered, one.batches_scanned)
    numbers = [numbers_in(cause) for cause in causes]
    assert [2] in numbers
    assert [one.indexes_changed] in numbers
    directory = home / "tx.mixed-0"
    other = forecast_partition(LoadRequest(directory, StartConditions(clean=False)), lambda _: None)
    assert isinstance(other, PartitionForecast)
    assert other.producers > 1
    (slow,) = duration([other], 1, ReadRates(MIB, MIB, MIB)).slowest
    assert list(slow.causes)[-1] == f"{other.producers} producers"
