"""Needs of the logs of a broker; tests/broker/test_many_logs.py compares brokers."""

from pathlib import Path

import numpy as np
import pytest
from verification import numbers_in

from logtool.formats import producer_snapshot
from logtool.log import opening
from logtool.node import host_limits
from logtool.node.host_limits import BROKER_FILES, BROKER_MAPS, Limits, Needs

HOME = Path("data")
NEEDS = Needs(logs=10, segments=50, transaction_indexes=5, indexes=100, producers=1000)


def codes(limits, needs=NEEDS, **options):
    return [one.code for one in host_limits.judge(needs, limits, HOME, **options)]


@pytest.mark.parametrize(
    ("limits", "eager", "expected"),
    [
        (Limits(), False, []),
        (Limits(open_files=BROKER_FILES + 55), False, []),
        (Limits(open_files=BROKER_FILES + 54), False, ["host/open-files"]),
        (Limits(maps=BROKER_MAPS + 100), False, []),
        (Limits(maps=BROKER_MAPS + 100), True, []),
        (Limits(maps=BROKER_MAPS + 99), True, ["host/maps"]),
        (Limits(maps=BROKER_MAPS + 99), False, ["host/maps-when-read"]),
        (Limits(maps=BROKER_MAPS + 20), False, ["host/maps-when-read"]),
        (Limits(maps=BROKER_MAPS + 19), False, ["host/maps"]),
        (Limits(heap=450_000), False, []),
        (Limits(heap=449_999), False, ["host/producer-memory"]),
    ],
)
def test_a_limit_is_reported_from_the_first_that_is_too_few(limits, eager, expected):
    assert codes(limits, eager=eager) == expected


def test_a_finding_names_the_numbers_and_a_command():
    (one,) = host_limits.judge(NEEDS, Limits(open_files=100), HOME)
    assert numbers_in(one.message) == [205, 50, 5, 150, 100]
    assert (one.path, one.next) == (HOME, "logtool explain host/open-files")


def test_what_a_log_needs_is_reported_by_the_names_and_sizes_of_its_files(copy_of):
    home = copy_of("4.3.1/clean") / "tx.mixed-0"
    needs = host_limits.needs(opening.open_partition(home))
    assert needs == Needs(1, 4, transaction_indexes=3, indexes=8, producers=4)
    entries = np.zeros(7, producer_snapshot.ENTRY)
    newest = max(home.glob("*.snapshot"))
    newest.write_bytes(producer_snapshot.encode(producer_snapshot.build(entries)))
    (home / f"{140:020d}.index").write_bytes(b"")
    assert host_limits.needs(opening.open_partition(home)) == Needs(1, 4, 3, indexes=7, producers=7)


def test_of_a_partition_without_a_log_the_one_that_a_broker_makes_counts(tmp_path):
    home = tmp_path / "t-0"
    home.mkdir()
    assert host_limits.needs(opening.open_partition(home)) == Needs(logs=1, segments=1, indexes=2)
