"""What is measured of index sanity checks: Kafka's own checks, what is opened, what is seen."""

import os
import shutil
import struct
from collections import Counter
from dataclasses import replace

import pytest

from logtool import partition
from logtool.data_dir import Selection
from logtool.errors import UnreadableError
from logtool.formats.names import FileKind
from logtool.sanity import homes, measuring
from logtool.sanity.indexes import Cost, Opener
from logtool.sanity.judging import Seen
from logtool.sanity.kafka_check import (
    check_offset_index,
    check_time_index,
    check_transaction_index,
)
from logtool.sanity.results import Directory, Measurement, Mode
from logtool.sanity.run import Sanity, Settings
from logtool.sanity.starts import Eager, Lazy
from logtool.workers import Pace

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
    """Return what a run says of one path, measurements by mode."""
    job = Sanity([path], Settings(**settings))
    said = list(job)
    assert not [item for item in said if isinstance(item, UnreadableError)]
    return {item.mode: item for item in said if isinstance(item, Measurement)}, said


def seen(said):
    return [(item.finding.code, str(item.by)) for item in said if isinstance(item, Seen)]


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Yield a log dir of 3,000 partitions with 10 segments each."""
    home = tmp_path_factory.mktemp("large")
    yield tree(home / "data", 3000, 10)
    shutil.rmtree(home)


def test_a_lazy_start_does_not_grow_with_inactive_segments(large):
    found = homes.read(large, Selection(), Pace())
    cut = [keep_active(one) for one in found.partitions]
    eager = measuring.run(Eager(Opener()), found.partitions, 1, Pace())
    lazy = measuring.run(Lazy(Opener()), found.partitions, 2, Pace())
    lazy_of_cut = measuring.run(Lazy(Opener()), cut, 1, Pace())
    assert (eager.cost.files, eager.cost.bytes) == (60_000, 30_000 * (8 + 12 + 8))
    assert (lazy.cost.files, lazy.cost.bytes) == (6_000, 3_000 * (8 + 12))
    assert (lazy_of_cut.cost.files, lazy_of_cut.cost.bytes) == (6_000, 3_000 * (8 + 12))
    assert (eager.cost.segments, lazy.cost.segments) == (30_000, 3_000)
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
    directory = next(item for item in said if isinstance(item, Directory))
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
    found = partition.read(folder)
    mapped, plain = Cost(), Cost()
    assert Eager(Opener(mapped=True))(found, mapped) == Eager(Opener(mapped=False))(found, plain)
    assert (mapped.files, mapped.bytes) == (plain.files, plain.bytes)
    assert (mapped.maps > 0, plain.maps) == (True, 0)


def test_what_cannot_be_opened_is_told_once_and_the_rest_is_checked(tmp_path):
    home = tree(tmp_path / "data", 1, 3)
    index = home / f"t-0/{0:020d}.index"
    index.unlink()
    index.symlink_to(home / f"t-0/{100:020d}.index")
    job = Sanity([home], Settings())
    told = [item for item in job if isinstance(item, UnreadableError)]
    assert [item.path for item in told] == [index]
    assert int(job.summary.exit_status()) == 4


def test_time_by_kind_is_a_part_of_the_whole(scenario):
    by_mode, _ = measured(scenario("4.3.1/clean"), repeat=3)
    run = by_mode[Mode.EAGER].run
    assert 0 < sum(run.cost.ns.values()) / 1e9 < run.seconds
    assert all(run.cost.ns[kind] > 0 for kind in (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX))
