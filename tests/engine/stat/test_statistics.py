"""Sums of logs: the counts of verify, for any pieces of the logs."""

from itertools import pairwise

import numpy as np
import pytest
from conftest import SCENARIOS
from damage import damage_file, flip
from hypothesis import given
from hypothesis import strategies as st
from verification import batches, log_dirs, logs, verify

from logtool.commands.views.stat_tables import TOTAL
from logtool.errors import UnreadableError
from logtool.formats import compression
from logtool.formats.record_batch import BatchTable
from logtool.log import opening
from logtool.running.budget import Budget
from logtool.running.run import Run
from logtool.running.workers import Pace
from logtool.stat.run import Survey
from logtool.stat.statistics import (
    MOST_BUCKETS,
    MeasureTask,
    Statistics,
    StatisticsOf,
    ValueCounts,
    measure,
    merged,
    of_table,
    tally,
    timeline,
)
from logtool.verify import Level

KEYS = list(Statistics.__dataclass_fields__)


def plain(one: Statistics):
    """Return statistics as values that compare."""
    found = {}
    for key in KEYS:
        value = getattr(one, key)
        if isinstance(value, ValueCounts):
            value = dict(zip(value.values.tolist(), value.counts.tolist(), strict=True))
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif hasattr(value, "shift"):
            value = (value.shift, value.first, value.sizes.tolist())
        found[key] = value
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_sums_are_those_of_verify(scenario, name):
    home = scenario(name)
    counted = verify(*log_dirs(home), level=Level.BATCHES).summary
    found = list(Survey(log_dirs(home)))
    whole = merged([one.statistics for one in found])
    assert len(found) == counted.partitions
    assert (whole.segments, whole.batches, whole.records, whole.bytes) == (
        counted.segments, counted.batches, counted.records, counted.bytes,
    )  # fmt: skip
    assert whole.sizes.total == whole.codecs.total == whole.batches
    assert whole.damaged_bytes + whole.unused_bytes + sum(
        whole.sizes.values * whole.sizes.counts
    ) == whole.bytes  # fmt: skip


def test_unpacking_says_how_well_each_codec_does(scenario):
    home = scenario("4.3.1/clean")
    for codec in compression.NAMES[1:]:
        (found,) = Survey([home / f"codec-{codec}-0"], unpack=True)
        assert found.statistics.compression_ratio > 1.3
    (found,) = Survey([home / "codec-none-1"], unpack=True)
    assert found.statistics.compression_ratio == 1
    (found,) = Survey([home / "codec-none-1"])
    assert found.statistics.compression_ratio is None


def test_damage_is_counted_and_so_is_what_stands_behind_it(copy_of):
    home = copy_of("4.3.1/clean") / "codec-none-1"
    (log,) = logs(home)
    table = batches(log)
    damage_file(log, flip, int(table.position[3]) + 70)
    (found,) = Survey([home])
    one = found.statistics
    assert (one.damaged_ranges, one.damaged_bytes) == (1, table.size[3])
    assert one.batches == len(table) - 1
    assert one.last_offset == table.last_offset[-1]


def test_zeros_of_preallocation_are_no_damage(copy_of):
    home = copy_of("4.3.1/clean") / "codec-none-1"
    (log,) = logs(home)
    log.write_bytes(log.read_bytes() + bytes(5000))
    (found,) = Survey([home])
    assert (found.statistics.damaged_ranges, found.statistics.unused_bytes) == (0, 5000)


def test_a_log_alone_can_be_measured_and_no_other_file(scenario):
    home = scenario("4.3.1/clean") / "small-segments-0"
    log = logs(home)[3]
    (found,) = Survey([log])
    assert found.statistics.batches == len(batches(log))
    (problem,) = Survey([home / "leader-epoch-checkpoint"])
    assert isinstance(problem, UnreadableError)


def test_threads_change_nothing(scenario, monkeypatch):
    home = scenario("4.3.1/clean")
    one = [plain(found.statistics) for found in Survey([home])]
    monkeypatch.setattr("logtool.running.run.WORTH_A_POOL", 1)
    assert [plain(found.statistics) for found in Survey([home], run=Run(budget=Budget(3)))] == one


def test_without_time_the_rest_is_said_to_be_unread(scenario):
    run = Run(budget=Budget(pace=Pace.starting_now(None, 1e-9)))
    (found, *rest) = list(Survey([scenario("4.3.1/clean")], run=run))
    assert run.ran_out
    assert (rest, found.statistics.unread_segments) == ([], 1)


def test_a_log_that_is_gone_is_said_and_the_rest_is_measured(copy_of):
    home = copy_of("4.3.1/clean") / "small-segments-0"
    segments = opening.open_partition(home).segments
    segments[1].log.path.unlink()
    assert isinstance(measure(MeasureTask(segments[1])), UnreadableError)
    assert measure(MeasureTask(segments[2])).batches


def table_of(rows) -> BatchTable:
    names = list(BatchTable.__dataclass_fields__)
    columns = {name: np.zeros(len(rows), np.int64) for name in names}
    columns["magic"][:] = 2
    for at, (size, newest, attributes, producer, count) in enumerate(rows):
        columns["size"][at], columns["record_count"][at] = size, count
        columns["base_timestamp"][at] = columns["max_timestamp"][at] = newest
        columns["attributes"][at], columns["producer_id"][at] = attributes, producer
    return BatchTable(*(columns[name] for name in names))


ROWS = st.lists(
    st.tuples(
        st.integers(61, 2**31), st.integers(-1, 2**62), st.sampled_from([0, 1, 4, 8, 16, 48, 64]),
        st.integers(-1, 5), st.integers(0, 9),
    ), max_size=30,
)  # fmt: skip


@given(ROWS, st.lists(st.integers(0, 30), max_size=4))
def test_parts_add_up_to_the_whole_wherever_it_is_cut(rows, cuts):
    whole = of_table(table_of(rows))
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = [of_table(table_of(rows[a:b])) for a, b in pairwise(edges)]
    assert plain(merged(pieces)) == plain(merged([whole])) == plain(whole)
    assert plain(merged([merged(pieces[:2]), *pieces[2:]])) == plain(whole)


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(1, 100)), min_size=1))
def test_a_timeline_holds_every_byte_in_few_buckets(rows):
    times, sizes = np.array(rows, np.int64).T
    found = timeline(times, sizes)
    assert len(found.sizes) <= MOST_BUCKETS
    assert found.sizes.sum() == sizes.sum()
    assert found.sizes[0] > 0
    assert found.sizes[-1] > 0
    assert found.start_ms <= times.min() < found.start_ms + found.width_ms


@given(st.lists(st.integers(1, 2**31), min_size=1))
def test_the_median_and_the_powers_of_two_are_those_of_all_sizes(sizes):
    found = tally(np.array(sizes, np.int64))
    assert found.median == sorted(sizes)[(len(sizes) - 1) // 2]
    for top, count in found.by_power_of_two():
        assert count == sum(top // 2 <= size < top for size in sizes)
    assert sum(count for _, count in found.by_power_of_two()) == len(sizes)


def test_nothing_adds_up_to_nothing():
    obj = TOTAL.row(StatisticsOf(merged([])))
    assert {key for key, value in obj.items() if value} == {"type"}
