"""Measurements of index sanity checks: Kafka's own checks, opened files, findings."""

import os
import shutil
import struct
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from calls import calls_of
from verification import numbers_in

from logtool.checks.index_sanity import (
    check_offset_index,
    check_time_index,
    check_transaction_index,
)
from logtool.errors import UnreadableError
from logtool.findings import Finding
from logtool.formats.names import FileKind
from logtool.log import opening
from logtool.log.selection import Selection
from logtool.running.workers import OutOfTimeError, Pace
from logtool.sanity import background, broker_load, judging, listing, measuring, model, screening
from logtool.sanity.background import GuardedPartition
from logtool.sanity.broker_load import Load
from logtool.sanity.indexes import Cost, Opener
from logtool.sanity.judging import Seen
from logtool.sanity.measuring import Cache, Sample, TimedStart, Usage
from logtool.sanity.model import Size, Target
from logtool.sanity.results import MeasuredDir, Measurement, Mode
from logtool.sanity.run import Procedure, Sanity
from logtool.sanity.starts import Eager, Lazy, readers
from logtool.schemas.tables import FINDING

STAMP = 1_700_000_000_000
PAIRS = ">ii"
STAMPED = ">qi"
ABORTED = ">hqqqq"


def pack(layout, *rows):
    return b"".join(struct.pack(layout, *row) for row in rows)


OFFSETS = pack(PAIRS, (10, 4200), (20, 8400))
TIMES = pack(STAMPED, (STAMP, 10), (STAMP + 9, 20))


def code(check, data, base=100):
    found = check(lambda position, size: data[position : position + size], len(data), base)
    return found.code if found else None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (OFFSETS, None),
        (OFFSETS + bytes(4096), None),
        (bytes(10_485_760), None),
        (pack(PAIRS, (10, 4200), (5, 8400)), None),
        (pack(PAIRS, (-10, 4200), (5, 8400)), None),
        (OFFSETS + pack(PAIRS, (-1, 9000)), "offset-index/offset-range"),
        (OFFSETS + pack(PAIRS, (-1, 9000)) + b"abc", "offset-index/offset-range"),
        (OFFSETS + b"abc", "offset-index/length"),
        (b"abc", "offset-index/length"),
        (OFFSETS[:-1], "offset-index/length"),
    ],
)
def test_of_an_offset_index_kafka_looks_at_the_last_entry_and_the_size(data, expected):
    assert code(check_offset_index, data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (TIMES, None),
        (bytes(12), None),
        (bytes(1200), None),
        (TIMES + bytes(1200), "time-index/padding"),
        (pack(STAMPED, (STAMP, 10), (STAMP + 9, 20), (STAMP + 1, 30)), None),
        (TIMES + pack(STAMPED, (STAMP - 1, 30)), "time-index/timestamp-order"),
        (TIMES + pack(STAMPED, (STAMP + 99, -3)), "time-index/offset-range"),
        (TIMES + b"abc", "time-index/length"),
        (TIMES + pack(STAMPED, (0, 30)) + b"abc", "time-index/timestamp-order"),
    ],
)
def test_of_a_time_index_kafka_looks_at_the_first_and_last_entry_and_the_size(data, expected):
    assert code(check_time_index, data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", None),
        (pack(ABORTED, (0, 1, 90, 110, 111)), None),
        (pack(ABORTED, (0, 1, 90, 110, 111)) + b"abc", None),
        (pack(ABORTED, (0, 1, 90, 110, 111), (0, 1, 80, 99, 100)), "transaction-index/below-base"),
        (pack(ABORTED, (255, 1, 90, 110, 111)), None),
        (pack(ABORTED, (-1, 1, 90, 110, 111)), None),
        (pack(ABORTED, (256, 1, 90, 110, 111)), "transaction-index/version"),
        (pack(ABORTED, (256, 1, 80, 99, 100)), "transaction-index/version"),
    ],
)
def test_of_a_transaction_index_kafka_looks_at_every_entry(data, expected):
    assert code(check_transaction_index, data) == expected


def tree(root, partitions, segments):
    """Make a log dir whose files are links to a few, which is quick."""
    root.mkdir()
    home = root.with_name("sources")
    home.mkdir()
    sources = {".log": bytes(10_000), ".index": OFFSETS, ".timeindex": TIMES}
    for number in range(partitions):
        if number % 1000 == 0:  # a file has a limited number of links
            for suffix, content in sources.items():
                (home / f"{number}{suffix}").write_bytes(content)
        folder = f"{root}/t-{number}"
        os.mkdir(folder)  # noqa: PTH102  (a Path for each of 90,000 names is slow)
        for segment in range(segments):
            for suffix in sources:
                source = f"{home}/{number // 1000 * 1000}{suffix}"
                os.link(source, f"{folder}/{segment * 100:020d}{suffix}")
    return root


def measured(path, **settings):
    """Return the results of a run for one path, measurements by mode."""
    job = Sanity([path], Procedure(**settings))
    said = list(job)
    assert not [item for item in said if isinstance(item, UnreadableError)]
    return {item.mode: item for item in said if isinstance(item, Measurement)}, said


def seen(said):
    return [(item.finding.code, str(item.by)) for item in said if isinstance(item, Seen)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Yield a log dir of 300 partitions with 10 segments each."""
    home = tmp_path_factory.mktemp("large")
    yield tree(home / "data", 300, 10)
    shutil.rmtree(home)


def test_a_lazy_start_does_not_grow_with_inactive_segments(large):
    found = listing.read(large, Selection(), Pace())
    cut = [keep_active(one) for one in found.partitions]
    eager = measuring.run(Eager(Opener()), found.partitions, 1, Pace())
    lazy = measuring.run(Lazy(Opener()), found.partitions, 2, Pace())
    lazy_of_cut = measuring.run(Lazy(Opener()), cut, 1, Pace())
    assert (eager.cost.files, eager.cost.bytes) == (6_000, 3_000 * (8 + 12 + 8))
    assert (lazy.cost.files, lazy.cost.bytes) == (600, 300 * (8 + 12))
    assert (lazy_of_cut.cost.files, lazy_of_cut.cost.bytes) == (600, 300 * (8 + 12))
    assert (eager.cost.segments, lazy.cost.segments) == (3_000, 300)
    assert eager.found == lazy.found == []


def keep_active(found):
    return replace(found, segments=found.segments[-1:])


def test_transaction_indexes_are_checked_by_every_start(tmp_path):
    home = tree(tmp_path / "data", 2, 3)
    bad = home / "t-1" / f"{100:020d}.txnindex"
    bad.write_bytes(pack(ABORTED, (0, 1, 80, 99, 100)))
    by_mode, said = measured(home)
    assert by_mode[Mode.LAZY].run.cost.files == 2 * 2 + 1
    assert by_mode[Mode.EAGER].run.cost.files == 2 * 6 + 1
    assert ("transaction-index/below-base", "lazy") in seen(said)


@pytest.mark.parametrize("version", ["4.3.1", "3.9.2"])
def test_what_a_broker_left_in_order_passes(scenario, version):
    by_mode, said = measured(scenario(f"{version}/clean"))
    # The metadata log and a topic that is being deleted are not closed in the usual way.
    serious = [one for one in said if isinstance(one, Seen) and one.finding.severity != "info"]
    assert serious == []
    directory = next(item for item in said if isinstance(item, MeasuredDir))
    assert directory.partitions > 30 and directory.segments > 80
    assert by_mode[Mode.LAZY].run.cost.files < by_mode[Mode.EAGER].run.cost.files


def test_an_eager_start_takes_the_padding_of_a_killed_broker_for_damage(scenario):
    home = scenario("4.3.1/killed")
    _, said = measured(home)
    padded = Counter(seen(said))
    assert padded["time-index/preallocated", "eager"] > 20
    assert padded["offset-index/preallocated", "eager"] == 0


FIRST = f"t-0/{0:020d}"


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        (".index", lambda data: data[:-1], ("offset-index/length", "eager")),
        (".index", lambda data: data + b"x", ("offset-index/length", "eager")),
        (".timeindex", lambda data: data + bytes(12), ("time-index/padding", "eager")),
        (".timeindex", lambda data: data[:-1], ("time-index/length", "eager")),
        (".index", lambda data: data + bytes(8), ("offset-index/padding", "neither")),
        (".index", lambda data: bytes(len(data)), ("offset-index/padding", "neither")),
        (
            ".index",
            lambda data: pack(PAIRS, (30, 40), (20, 50)),
            ("offset-index/offset-order", "neither"),
        ),
        (
            ".timeindex",
            lambda data: pack(STAMPED, (STAMP, 9), (STAMP + 5, 8)),
            ("time-index/offset-order", "neither"),
        ),
    ],
)
def test_who_sees_which_damage_of_an_inactive_segment(tmp_path, name, change, expected):
    home = tree(tmp_path / "data", 1, 3)
    replaced = home / (FIRST + name)
    content = change(replaced.read_bytes())
    replaced.unlink()
    replaced.write_bytes(content)
    _, said = measured(home)
    of_first = [
        (one.finding.code, str(one.by))
        for one in said
        if isinstance(one, Seen) and one.finding.segment == 0
    ]
    assert of_first == [expected]


def test_a_missing_offset_index_is_seen_by_every_start_and_a_missing_time_index_by_none(tmp_path):
    home = tree(tmp_path / "data", 2, 2)
    (home / f"t-0/{0:020d}.index").unlink()
    (home / f"t-1/{0:020d}.timeindex").unlink()
    found = seen(measured(home)[1])
    assert ("offset-index/missing", "lazy") in found
    assert ("time-index/missing", "neither") in found


def test_without_maps_the_same_is_read(scenario):
    folder = scenario("4.3.1/clean") / "tx.mixed-0"
    found = opening.open_partition(folder)
    mapped, plain = Cost(), Cost()
    assert Eager(Opener(mapped=True))(found, mapped) == Eager(Opener(mapped=False))(found, plain)
    assert (mapped.files, mapped.bytes) == (plain.files, plain.bytes)
    assert (mapped.maps > 0, plain.maps) == (True, 0)


def test_what_cannot_be_opened_is_reported_once_and_the_rest_is_checked(tmp_path):
    home = tree(tmp_path / "data", 1, 3)
    index = home / f"t-0/{0:020d}.index"
    index.unlink()
    index.symlink_to(home / f"t-0/{100:020d}.index")
    job = Sanity([home], Procedure())
    reported = [item for item in job if isinstance(item, UnreadableError)]
    assert [item.path for item in reported] == [index]
    assert int(job.summary.exit_status()) == 4


def test_time_by_kind_is_a_part_of_the_whole(scenario):
    by_mode, _ = measured(scenario("4.3.1/clean"), repeat=3)
    run = by_mode[Mode.EAGER].run
    assert 0 < sum(run.cost.ns.values()) / 1e9 < run.seconds
    assert all(run.cost.ns[kind] > 0 for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX))


def reported(partitions):
    """Return the findings in the inactive and active segments of partitions, as JSON."""
    found = judging.passed_over(partitions, {}, clean=False)
    return sorted(str(FINDING.row(one)) for one in found if isinstance(one, Finding))


@pytest.mark.parametrize("name", ["4.3.1/clean", "4.3.1/killed", "3.9.2/torn", "2.2.2/zookeeper"])
def test_what_is_passed_over_is_the_same_as_if_the_rules_judged_every_segment(
    scenario, name, monkeypatch
):
    found = listing.read(scenario(name), Selection(), Pace()).partitions
    screened = reported(found)
    passed = sum(len(one.segments) for one in found)
    passed -= len(list(screening.suspects((one, at) for one in found for at in one.segments)))
    monkeypatch.setattr(screening, "suspects", lambda places: places)
    assert screened == reported(found)
    assert passed > 0 or name.endswith("torn")  # nearly every log of that is one open segment


def test_one_wrong_byte_of_an_index_is_not_passed_over(tmp_path, monkeypatch):
    home = tree(tmp_path / "data", 1, 2)
    (home / f"t-0/{0:020d}.txnindex").write_bytes(
        pack(ABORTED, (0, 1, 10, 20, 25), (0, 2, 30, 40, 45))
    )
    for suffix in (".index", ".timeindex", ".txnindex"):
        path = home / f"{FIRST}{suffix}"
        content = path.read_bytes()
        path.unlink()
        for at in range(len(content)):
            for bit in (1, 0x80):
                changed = bytearray(content)
                changed[at] ^= bit
                path.write_bytes(changed)
                one = [opening.open_partition(home / "t-0")]
                screened = reported(one)
                with monkeypatch.context() as patch:
                    patch.setattr(screening, "suspects", lambda places: places)
                    assert screened == reported(one), (suffix, at, bit)
        path.write_bytes(content)


def opened(monkeypatch, home, **settings):
    """Return how often each file is opened by a run, as a sorted list of numbers."""
    counts: Counter[str] = Counter()
    plain = os.open

    def counted(path, *arguments, **more):
        counts[os.fspath(path)] += 1
        return plain(path, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", counted)
        measured(home, **settings)
    return counts


def test_to_ask_costs_one_look_more_at_each_index_and_none_without_verify(monkeypatch, tmp_path):
    home = tree(tmp_path / "data", 20, 5)
    plain = opened(monkeypatch, home, verify=False)
    full = opened(monkeypatch, home)
    indexes = [str(path) for path in home.glob("t-*/*index")]
    assert sum(plain[path] for path in indexes) == 20 * (5 + 1) * 2  # eager, and lazy of the last
    assert sum(full[path] for path in indexes) == sum(plain[path] for path in indexes) + 200
    assert sum(full.values()) == sum(plain.values()) + 200
    assert sum(plain[str(path)] for path in home.glob("t-*/*.log")) == 100


def test_the_rules_cost_few_calls_for_a_segment_in_order(tmp_path):
    found = [opening.open_partition(tree(tmp_path / "data", 1, 400) / "t-0")]
    calls = calls_of(lambda: reported(found))
    assert calls < 400 * 90  # each judged by itself it is more than 330 for a segment


class Spy:
    """Stands for the check of a segment: remembers the order, finds some segments bad."""

    def __init__(self, *bad, seconds=0.0):
        self.order = []
        self._bad = bad
        self._seconds = seconds

    def __call__(self, segment, cost):
        time.sleep(self._seconds)
        number = segment.base_offset // 100
        self.order.append(number)
        return [Finding("offset-index/length", "bad")] if number in self._bad else []


@pytest.fixture
def ten(tmp_path):
    """Return a partition with ten segments."""
    return opening.open_partition(tree(tmp_path / "data", 1, 10) / "t-0")


def test_corruption_forces_the_check_of_every_earlier_segment(ten):
    spy = Spy(5)
    guarded = GuardedPartition(ten, spy)
    guarded.access_active()
    guarded.access(7)
    assert spy.order == [9, 7]
    guarded.access(5)
    assert spy.order == [9, 7, 5, 0, 1, 2, 3, 4]
    assert guarded.forced == 5
    guarded.access_all()
    assert spy.order == [9, 7, 5, 0, 1, 2, 3, 4, 8, 6]


def test_a_bad_active_segment_forces_the_check_of_all_before_service(ten):
    spy = Spy(9)
    GuardedPartition(ten, spy).access_active()
    assert spy.order == [9, 0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_an_earlier_segment_that_is_bad_too_is_checked_once(ten):
    spy = Spy(3, 6)
    guarded = GuardedPartition(ten, spy)
    guarded.access(6)
    guarded.access_all()
    assert sorted(spy.order) == list(range(10))


def test_no_one_reads_the_partition_before_the_forced_checks_are_done(ten):
    spy = Spy(5, seconds=0.02)
    guarded = GuardedPartition(ten, spy)
    guarded.access(8)
    finder = threading.Thread(target=guarded.access, args=(5,))
    finder.start()
    while len(spy.order) < 2:
        time.sleep(0.001)
    guarded.access(8)  # long checked, and yet it has to wait
    assert spy.order == [8, 5, 0, 1, 2, 3, 4]
    finder.join()


def test_in_the_end_the_background_has_checked_each_segment_once(tmp_path):
    home = tree(tmp_path / "data", 20, 5)
    bad = home / f"t-3/{200:020d}.index"
    bad.unlink()
    bad.write_bytes(OFFSETS + b"x")
    by_mode, said = measured(home, background_threads=3, readers=30)
    run = by_mode[Mode.BACKGROUND].run
    # The time index of the bad segment is not read: the broker rebuilds all of it.
    assert (run.cost.segments, run.cost.files) == (100, 199)
    assert run.readers and run.readers.count == 30
    assert 0 < run.service_seconds < run.seconds
    assert run.forced in (0, 1, 2)
    assert seen(said) == [("offset-index/length", "eager")]


def test_first_readers_open_inactive_segments_only_and_come_to_each_partition_in_turn(tmp_path):
    home = tree(tmp_path / "data", 3, 3)
    found = listing.read(home, Selection(), Pace()).partitions
    wanted = [(one.path.name, at) for one, at in readers(found, 5)]
    assert wanted == [("t-0", 0), ("t-1", 0), ("t-2", 0), ("t-0", 1), ("t-1", 1)]
    by_mode, _ = measured(home, readers=100)
    run = by_mode[Mode.FIRST_ACCESS].run
    assert run.readers and run.readers.count == 6
    assert (run.cost.segments, run.cost.files) == (6, 12)
    assert run.readers.longest <= run.readers.seconds


def a_run(sizes, seconds):
    samples = [Sample(n, size, seconds(n, size)) for n, size in sizes]
    total = sum(sample.seconds for sample in samples)
    return TimedStart(total, Usage(0, 0, 0), samples=samples)


def test_a_known_sum_is_found_and_extended():
    sizes = [(n, 28 * n + 34 * (n * n % 7)) for n in range(1, 40)]
    run = a_run(sizes, lambda n, size: 1e-4 + 5e-5 * n + 1e-8 * size)
    fitted = model.fit(Path("data"), Mode.EAGER, run)
    assert fitted.terms == pytest.approx((1e-4, 5e-5, 1e-8))
    assert fitted.r_squared == pytest.approx(1)
    projection = fitted.at(Target(partitions=100, segments=1000))
    ratio = 1000 / fitted.measured.segments
    expected = 100 * 1e-4 + 1000 * 5e-5 + 1e-8 * fitted.measured.bytes * ratio
    assert projection.seconds == pytest.approx(expected)


@pytest.mark.parametrize(
    ("mode", "terms"), [(Mode.EAGER, (None, 5e-5, None)), (Mode.LAZY, (5e-4, None, None))]
)
def test_partitions_of_one_size_show_one_term(mode, terms):
    fitted = model.fit(Path("data"), mode, a_run([(10, 280)] * 50, lambda n, size: 5e-5 * n))
    assert fitted.terms == pytest.approx(terms)
    assert fitted.r_squared is None
    assert fitted.at(Target(segments=1000)).seconds == pytest.approx(0.05)


def test_a_term_is_never_below_zero():
    fitted = model.fit(
        Path("data"), Mode.EAGER, a_run([(n, 28 * n) for n in range(2, 9)], lambda n, _: n - 1.5)
    )
    assert all(term is None or term >= 0 for term in fitted.terms)


def test_what_is_not_said_of_a_target_is_in_proportion():
    have = Size(10, 100, 2800)
    assert Target(segments=1000).size(have) == Size(100, 1000, 28_000)
    assert Target(partitions=20).size(have) == Size(20, 200, 5600)
    assert Target(partitions=5, segments=1000).size(have) == Size(5, 1000, 28_000)


def test_an_empty_log_dir_has_no_model(tmp_path):
    (tmp_path / "meta.properties").write_text("version=1\n")
    by_mode, said = measured(tmp_path, readers=5, background_threads=1)
    assert (by_mode, len(said)) == ({}, 1)


def test_the_interval_of_a_projection_holds_what_the_samples_scatter():
    sizes = [(n % 7 + 1, 0) for n in range(200)]
    noise = [0.5 if n % 2 else -0.5 for n in range(200)]
    seconds = iter([2 + n + extra for (n, _), extra in zip(sizes, noise, strict=True)])
    run = a_run(sizes, lambda n, size: next(seconds))
    found = model.fit(Path("data"), Mode.EAGER, run).at(Target(partitions=100))
    low, high = found.interval
    assert low < found.seconds < high
    # A hundred partitions scatter by 0.5 s each, and what a sample of 200 leaves unsure.
    assert 1.96 * 0.5 * 10 < found.seconds - low < 1.96 * 0.5 * 10 * 1.3
    assert high - found.seconds == pytest.approx(found.seconds - low)
    assert found.doubts == ()


def doubts_of(sizes, seconds, **target):
    fitted = model.fit(Path("data"), Mode.EAGER, a_run(sizes, seconds))
    return fitted.at(Target(**target)).doubts


def test_a_projection_from_samples_that_do_not_carry_it_says_so():
    good = [(n % 7 + 1, 0) for n in range(40)]
    assert doubts_of(good, lambda n, _: 2 + n, segments=500) == ()
    (few,) = doubts_of(good[:10], lambda n, _: 2 + n, segments=50)
    assert numbers_in(few) == [10]
    turn = iter(range(40))
    (poor,) = doubts_of(good, lambda n, _: 2 + n / 100 + next(turn) % 2, segments=500)
    assert "%" in poor
    (far,) = doubts_of(good, lambda n, _: 2 + n, segments=155_000)
    assert numbers_in(far) == [1000]
    (large,) = doubts_of(good, lambda n, _: 2 + n, partitions=10, segments=500)
    assert numbers_in(large) == [50, 7]


def test_data_rate_and_retention_give_the_segments():
    have = Size(10, 100, 2800)
    week = Target(partitions=20, rate=1 << 20, retention=1024.0, segment_bytes=1 << 25)
    assert (week.size(have).partitions, week.size(have).segments) == (20, 52)
    assert Target(rate=1 << 20, retention=1024.0).size(have).partitions == 10


def test_a_load_grows_with_logs_and_segments_and_snapshots_that_are_missing(tmp_path):
    home = tree(tmp_path / "data", 30, 5)
    said = [item for item in measured(home)[1] if isinstance(item, Load)]
    eager, lazy = said
    assert (eager.mode, lazy.mode) == (Mode.EAGER, Mode.LAZY)
    assert (lazy.partitions, lazy.segments, lazy.snapshots) == (30, 150, 3 * 30)
    low, high = broker_load.seconds(Mode.LAZY, 30, 150, threads=1, snapshots=90)
    assert lazy.seconds_low == low
    assert lazy.seconds_high == pytest.approx(high + lazy.check_seconds + lazy.open_seconds)
    more = broker_load.seconds(Mode.LAZY, 30, 300, threads=1)
    assert more > broker_load.seconds(Mode.LAZY, 30, 150, threads=1)
    assert broker_load.seconds(Mode.LAZY, 30, 300, threads=4)[1] == more[1]


@pytest.mark.parametrize(
    ("segments", "size", "expected"), [(5, 100, 3), (2, 100, 2), (1, 100, 1), (1, 0, 0), (3, 0, 2)]
)
def test_snapshots_that_a_start_writes_are_those_of_the_last_two_segments_and_the_end(
    tmp_path, segments, size, expected
):
    home = tmp_path / "t-0"
    home.mkdir()
    for number in range(segments):
        (home / f"{number * 100:020d}.log").write_bytes(bytes(size))
    found = broker_load.estimate(
        home, Mode.LAZY, [opening.open_partition(home)], threads=1, check=0, opening=0
    )
    assert found.snapshots == expected
    (home / f"{50:020d}.snapshot").write_bytes(b"")
    found = broker_load.estimate(
        home, Mode.LAZY, [opening.open_partition(home)], threads=1, check=0, opening=0
    )
    assert found.snapshots == 0


def test_a_new_leader_checks_the_inactive_segments_of_its_partition(tmp_path):
    home = tree(tmp_path / "data", 4, 5)
    bad = home / f"t-1/{300:020d}.index"
    bad.unlink()
    bad.write_bytes(OFFSETS + b"x")
    by_mode, said = measured(home, new_leaders=3)
    run = by_mode[Mode.BECOME_LEADER].run
    assert run.readers and run.readers.count == 3
    assert (run.cost.segments, run.forced) == (12, 3)
    (found,) = (item for item in said if isinstance(item, Seen))
    assert "2.3" in found.risk


def test_a_cold_run_differs_from_one_that_was_not_by_what_came_from_the_disk():
    def cache(disk_bytes):
        run = TimedStart(1.0, Usage(0, 0, disk_bytes))
        run.cost.filled = 100
        return run.cache

    page = measuring.PAGE
    assert cache(100 * page) is cache(95 * page) is Cache.DROPPED
    assert cache(50 * page) is Cache.PARTLY
    assert cache(0) is Cache.KEPT
    assert cache(None) is Cache.UNKNOWN


def test_a_file_system_in_memory_drops_nothing_and_that_is_said(scenario):
    memory = Path("/dev/shm")
    assert memory.is_dir()
    home = memory / f"logtool-sanity-{os.getpid()}"
    try:
        shutil.copytree(scenario("4.3.1/clean") / "tx.mixed-0", home / "tx.mixed-0")
        by_mode, _ = measured(home, cold=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    assert by_mode[Mode.EAGER].cache in (Cache.KEPT, Cache.UNKNOWN)


def test_dropping_the_cache_leaves_the_files_alone(copy_of):
    home = copy_of("4.3.1/clean")
    before = {path: path.read_bytes() for path in home.rglob("*index")}
    by_mode, _ = measured(home, cold=True, repeat=2)
    assert {path: path.read_bytes() for path in home.rglob("*index")} == before
    assert by_mode[Mode.LAZY].cache is not None


def test_no_partition_is_begun_once_time_is_over(ten):
    pace = Pace.starting_now(None, 0.0)
    for work in (
        lambda: measuring.run(Eager(Opener()), [ten], 2, pace),
        lambda: background.run(
            Opener(), [ten], threads=1, background_threads=1, reader_count=1, pace=pace
        ),
    ):
        with pytest.raises(OutOfTimeError):
            work()
