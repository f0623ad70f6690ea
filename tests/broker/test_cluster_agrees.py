"""`cluster` agrees with the start of a cluster from volumes of different moments.

Its steps, carried out one after the other, lose no record that a volume has.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1500)]

MOMENTS = 3
"""Enough for a topic that is made again between two of them."""
NUMBERS = (0, 2, 3)
"""Situations with volumes of different moments: all in place, one missing, two swapped."""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """Return a function from a release to the copies of volumes of its cluster, made once."""
    # Imported here: without confluent-kafka these tests are skipped.
    from broker import volumes

    def made(version: str) -> volumes.Copies:
        found = volumes.collect(version, 1, tmp_path_factory.mktemp(f"v{version}"), MOMENTS)
        volumes.check_copies(found)
        return found

    return cache(made)


def restored(given, number: int, work: Path):
    """Return a situation and its volumes, with the metadata logs that the steps replace."""
    from broker import situations

    of = situations.situation(number, given.controllers, MOMENTS)
    homes = situations.restore(given, of, work)
    situations.mend(homes, situations.predicted(given, homes)[1])
    return of, homes


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_predicted_for_each_partition_is_what_the_start_does(
    kafka_version: str, copies, number: int, tmp_path
) -> None:
    from broker import situations

    given = copies(kafka_version)
    of, homes = restored(given, number, tmp_path)
    status, answer = situations.predicted(given, homes)
    seen = situations.start(given, of, homes, 600)
    assert seen.at_rest
    assert situations.differences(given, of, answer, seen) == []
    assert status == (4 if of.kind == "missing" else 1)
    assert len(seen.leaders) >= 7


@pytest.mark.parametrize("number", [0])
def test_the_steps_lose_no_record_that_a_volume_has(
    kafka_version: str, copies, number: int, tmp_path
) -> None:
    from broker import situations, steps

    given = copies(kafka_version)
    _, homes = restored(given, number, tmp_path)
    before = steps.values_in(homes)
    damaged = steps.damage(homes, 12, "plain.a-0")
    fills = [one for one in steps.commands(situations.predicted(given, homes)[1]) if "fill" in one]
    assert len(fills) == 1
    assert fills[0].endswith(f" {damaged}")
    subprocess.run(f"{sys.executable} -m {fills[0]}", shell=True, check=True)
    answer = situations.predicted(given, homes)[1]
    assert not any("fill" in one for one in steps.commands(answer))
    with steps.carried_out(given, homes, answer, tmp_path) as bootstrap:
        after = steps.values_at(bootstrap)
    for topic, values in before.items():
        assert {*values} <= {*after[topic]}, topic
        twice = {value for value, count in after[topic].items() if count > max(1, values[value])}
        assert twice == set(), topic
