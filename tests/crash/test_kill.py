"""A process that dies at any moment leaves the old state, the new one, or one that can be finished
and undone."""

import os
import random
import signal
import time

import pytest
from changes import count, failing, killed, result

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
PARTS = [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(4)]
"""The moments of a kill are shared out, so that several workers of pytest can take them."""


def moments(place, job):
    """Return how many moments there are for a job on a fresh log dir."""
    place.reset()
    return count(job)


@pytest.mark.parametrize("part", PARTS)
def test_what_was_killed_while_it_changed_a_log_dir_is_finished_or_undone(place, part):
    last = moments(place, place.do)
    for number in range(1 + part, last + 1, len(PARTS)):
        for after in (place.finish, place.undo):
            place.reset()
            assert killed(number, place.do), number
            if not place.is_committed:
                place.assert_untouched()
                break
            after()
            place.assert_finished() if after == place.finish else place.assert_untouched()


@pytest.mark.parametrize("part", PARTS)
def test_an_undo_that_was_killed_is_undone_again(place, part):
    place.reset()
    place.do()
    last = count(place.undo)
    for number in range(1 + part, last + 1, len(PARTS)):
        place.reset()
        with failing(0, lambda: None):
            place.do()
        assert killed(number, place.undo), number
        place.undo()
        place.assert_untouched()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_any_chain_of_kills_ends_in_one_of_two_states(place, seed):
    """Kill a change, what finishes it, its undo, and the undo of that."""
    draw = random.Random(seed)
    last = moments(place, place.do)
    for _ in range(12):
        place.reset()
        while not place.is_committed:
            place.reset()
            killed(draw.randint(1, last), place.do)
        for _ in range(draw.randint(0, 2)):
            killed(draw.randint(1, last // 2), place.finish)
        if draw.random() < 0.4:
            place.finish()
            place.assert_finished()
        for _ in range(draw.randint(1, 3)):
            killed(draw.randint(1, last // 2), place.undo)
        place.undo()
        place.assert_untouched()


def test_nothing_is_between_the_two_states_once_all_is_written(place):
    """The new state is there when the last record is written, and not before."""
    last = moments(place, place.do)
    place.reset()
    killed(last, place.do)
    assert result(place.log_dir) == place.after


@pytest.mark.parametrize("job", ["do", "undo"])
def test_a_sigkill_from_outside_at_any_time_loses_nothing(place, job, monkeypatch):
    monkeypatch.undo()  # with every fsync, as in earnest
    draw = random.Random(job)
    latest, hits = 1.0, 0
    for _ in range(100):
        place.reset()
        if job == "undo":
            with failing(0, lambda: None):
                place.do()
        began = time.monotonic()
        child = os.fork()
        if not child:
            try:
                getattr(place, job)()
                os._exit(0)
            finally:
                os._exit(1)
        time.sleep(draw.uniform(0, latest))
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        if status == 0:  # It was done before: how long it takes depends on the machine.
            latest = min(latest, time.monotonic() - began) * 0.7
        with failing(0, lambda: None):
            if place.is_committed:
                place.undo()
        place.assert_untouched()
        hits += status != 0
        if hits == 12:
            return
    pytest.fail("the child was never killed in time")
