"""`cluster` agrees with the start of a cluster from volumes of different moments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

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


@pytest.mark.parametrize("number", NUMBERS)
def test_what_is_predicted_for_each_partition_is_what_the_start_does(
    kafka_version: str, copies, number: int, tmp_path
) -> None:
    from broker import situations

    given = copies(kafka_version)
    of = situations.situation(number, given.controllers, MOMENTS)
    homes = situations.restore(given, of, tmp_path)
    situations.mend(homes, situations.predicted(given, homes)[1])
    status, answer = situations.predicted(given, homes)
    seen = situations.start(given, of, homes, 600)
    assert seen.at_rest
    assert situations.differences(given, of, answer, seen) == []
    assert status == (4 if of.kind == "missing" else 1)
    assert len(seen.leaders) >= 7
