"""Delivery states of a share group, against a state for each single record."""

import random

import pytest

from logtool.groups import deliveries
from logtool.groups.deliveries import ACKNOWLEDGED, ARCHIVED, AVAILABLE, Delivery


def some(rng, most):
    first = rng.randrange(most)
    last = min(most - 1, first + rng.randrange(6))
    state = rng.choice((AVAILABLE, ACKNOWLEDGED, ARCHIVED))
    return Delivery(first, last, state, rng.randrange(1, 4), 0)


@pytest.mark.parametrize("seed", range(40))
def test_states_are_those_of_each_single_record(seed):
    rng, most = random.Random(seed), 24
    combined, single = [], {}
    for step in range(8):
        new = [some(rng, most)._replace(record_offset=step) for _ in range(3)]
        combined = deliveries.combined(combined, new)
        for one in new:
            for offset in range(one.first, one.last + 1):
                rank = one.times, one.state
                single[offset] = max(single.get(offset, rank), rank)
        for ranges in (combined, deliveries.joined(combined)):
            found = [
                (offset, (one.times, one.state))
                for one in ranges
                for offset in range(one.first, one.last + 1)
            ]
            assert found == sorted(single.items())
    start = rng.randrange(most)
    below, live = deliveries.split(combined, start)
    assert all(one.last < start for one in below)
    assert all(one.first >= start for one in live)
    done = {offset for offset, (_, state) in single.items() if state != AVAILABLE}
    expected = next(offset for offset in range(start, most + 1) if offset not in done)
    assert deliveries.next_offset(live, start) == expected
