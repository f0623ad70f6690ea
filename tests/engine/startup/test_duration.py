"""How long a start takes: the range, what it rests on, and which partitions take longest."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from logtool.disk import files
from logtool.errors import UnreadableError
from logtool.loading.loaded import Outcome, Start
from logtool.startup import rates
from logtool.startup.duration import MOST_NAMED, duration
from logtool.startup.partition import LoadRequest, PartitionForecast, forecast_partition
from logtool.startup.rates import BATCH_SECONDS, BROKER_BYTES_PER_SECOND, MIB, Rates, Stopwatch


def load(name: str, size: int = 0, batches: int = 0, *timed: float) -> PartitionForecast:
    """Return a partition of which `size` bytes are read, and its stretches at so many bytes/s."""
    request = LoadRequest(Path(name), Start(clean=False))
    return PartitionForecast(
        request, Outcome.LOADS, bytes_scanned=size, batches_scanned=batches, rates=timed
    )


@pytest.mark.parametrize(("threads", "seconds"), [(1, 8.0), (2, 5.0), (8, 5.0)])
def test_the_longest_partition_bounds_the_time(threads: int, seconds: float) -> None:
    loads = [load("a-0", 200), load("b-0", 500), load("c-0", 100)]
    found = duration(loads, threads, Rates(100.0, 100.0, 100.0))
    assert (found.bytes, found.seconds, found.critical) == (800, seconds, Path("b-0"))
    assert found.seconds_low == found.seconds_high == seconds
    assert found.probe_timeout_s == 2 * seconds + 60
    assert [one.seconds for one in found.slowest] == [5.0, 2.0, 1.0]


def test_the_range_goes_from_the_fastest_to_the_slowest_rate() -> None:
    found = duration([load("a-0", 800)], 1, Rates(slow=100.0, usual=200.0, fast=400.0))
    assert (found.seconds_low, found.seconds, found.seconds_high) == (2.0, 4.0, 8.0)
    assert found.probe_timeout_s == 76, "twice the longest time and a minute"


def test_each_batch_costs_a_broker_something_between_least_and_most() -> None:
    found = duration([load("a-0", 100, 1_000_000)], 1, Rates(100.0, 100.0, 100.0))
    least, most = (1 + 1_000_000 * each for each in BATCH_SECONDS)
    assert (found.seconds_low, found.seconds_high) == pytest.approx((least, most))


def test_ten_are_named_and_none_of_which_nothing_is_read() -> None:
    loads = [load(f"a-{number}", number * 100) for number in range(15)]
    found = duration(loads, 1, Rates(100.0, 100.0, 100.0))
    names = [one.forecast.request.path.name for one in found.slowest]
    assert names == [f"a-{number}" for number in range(14, 14 - MOST_NAMED, -1)]
    assert duration(loads[:3], 1, Rates(1.0, 1.0, 1.0)).slowest[-1].seconds == 100


def test_of_nothing_to_load_the_time_is_nothing() -> None:
    found = duration([], 2, Rates(1.0, 1.0, 1.0))
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
    found = rates.measured(loads, disk=50.0 * MIB)
    assert found is not None
    assert (found.slow, found.disk) == (50 * MIB, 50 * MIB)


def test_the_time_on_the_whole_is_calibrated_by_a_pass_over_a_log(tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0" / "a.log").write_bytes(bytes(3 * MIB + 100))
    one = load(str(tmp_path / "a-0"), 100, 1, 4096.0 * MIB)
    through = rates.of_pass([one, load("gone-0", 50)])
    assert through is not None
    found = rates.measured([one], through=through)
    assert found is not None
    assert found.slow <= found.usual <= found.fast
    assert found.strain == min(rates._PASS / through, 3)
    assert rates.of_pass([load("gone-0", 50)]) is None
    # Half as fast a machine takes twice as long for a batch, and for a segment with its log.
    quick, slow = (
        duration([replace(load("a-0", 1, 1_000_000), recovered=10)], 1, known)
        for known in (replace(found, strain=each) for each in (1.0, 2.0))
    )
    of_segments = rates.LOG_SECONDS[1] + 10 * rates.SEGMENT_SECONDS[1]
    assert slow.seconds - quick.seconds == pytest.approx(2.4 + of_segments)


def test_what_is_not_in_the_page_cache_comes_from_the_disk_besides(tmp_path: Path) -> None:
    cold = replace(load("a-0", 100 * MIB), cold_bytes=50 * MIB)
    known = Rates(slow=MIB, usual=100 * MIB, fast=100 * MIB, disk=25 * MIB)
    assert duration([cold], 1, known).seconds == pytest.approx(1 + 5)
    assert duration([replace(cold, cold_bytes=10**12)], 1, known).seconds == pytest.approx(1 + 10)
    log = tmp_path / "a.log"
    log.write_bytes(bytes(5 * MIB))
    assert rates.cold_bytes([(log, 5 * MIB), (log, 100)]) == 0, "it was just written"
    assert rates.cold_bytes([(tmp_path / "gone.log", 5 * MIB)]) == 0


def test_many_segments_take_long_however_small_they_are() -> None:
    few, many = (replace(load("a-0", 100), recovered=count) for count in (499, 500))
    assert rates.known([few], ask_disk=False) is None
    assert rates.known([many], ask_disk=False) is None, "with no log there is no pass over one"


def test_a_rate_that_is_given_is_the_whole_range_and_without_stretches_there_is_none() -> None:
    assert rates.known([], 5.0, ask_disk=True) == Rates(5.0, 5.0, 5.0)
    assert rates.known([load("a-0", 100)], ask_disk=True) is None


def test_a_stretch_is_timed_for_each_4_mib_and_everybody_is_told() -> None:
    told: list[int] = []
    stopwatch = Stopwatch(told.append)
    for _ in range(11):
        stopwatch(MIB)
    assert told == [MIB] * 11
    assert len(stopwatch.rates) == 2
    assert all(rate > 0 for rate in stopwatch.rates)


def test_the_disk_is_read_past_the_cache_no_further_than_asked(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(bytes(5 * MIB + 100))
    size, seconds = files.time_past_cache(log, 2 * MIB, 60.0)
    assert (size, seconds > 0) in ((2 * MIB, True), (0, False)), "0: a file system in memory"
    assert files.time_past_cache(log, 2 * MIB, 0.0)[0] == 0
    size, _ = files.time_past_cache(log, 64 * MIB, 60.0)
    assert size in (5 * MIB + 100, 0)
    with pytest.raises(UnreadableError):
        files.time_past_cache(tmp_path / "none.log", MIB, 1.0)


def test_a_partition_says_what_takes_its_time(copy_of: Callable[[str], Path]) -> None:
    home = copy_of("4.3.1/killed")
    directory = home / "small-segments-0"
    for index in sorted(directory.glob("*.index"))[:2]:
        index.unlink()
    one = forecast_partition(LoadRequest(directory, Start(clean=False)), lambda _: None)
    assert isinstance(one, PartitionForecast)
    assert one.why == {"no offset index": 2, "unflushed": one.recovered}
    assert one.indexes_changed >= 2
    (slow,) = duration([one], 1, Rates(MIB, MIB, MIB)).slowest
    causes = list(slow.causes)
    assert causes[0].endswith(f" of {one.recovered} segments in {one.batches_scanned:,} batches")
    assert "2 segments without offset index" in causes
    assert f"{one.indexes_changed} indexes made or changed" in causes
    directory = home / "tx.mixed-0"
    other = forecast_partition(LoadRequest(directory, Start(clean=False)), lambda _: None)
    assert isinstance(other, PartitionForecast)
    assert other.producers > 1
    (slow,) = duration([other], 1, Rates(MIB, MIB, MIB)).slowest
    assert list(slow.causes)[-1] == f"{other.producers} producers"
