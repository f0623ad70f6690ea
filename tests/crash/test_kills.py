"""Every command with --apply, killed or stopped by a signal: a part of what ``make kills`` does at
every call. The same command ends it as if nothing had been, and ``logtool undo`` takes it back."""

import os
import random
import signal
import time

import pytest
from changes import failing
from crash import kills
from crash.commands_killed import JOBS, Command

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
MOMENTS = 4
"""Kills of each command, spread over all its calls; their places differ from one to the next."""


@pytest.fixture
def make(scenario, tmp_path):
    return lambda name: Command(JOBS[name], scenario("4.3.1/killed"), tmp_path)


def spread(calls, moments):
    """Return some moments among all calls: the first, the last, and some between."""
    return sorted({1 + i * (calls - 1) // (moments - 1) for i in range(moments)})


@pytest.mark.long
@pytest.mark.parametrize("name", JOBS)
def test_what_was_killed_ends_as_if_it_had_not_been_or_is_undone(make, name):
    command = make(name)
    moments = spread(command.calls(), MOMENTS)
    tally = kills.run(command, moments, random.Random(name))
    assert tally.kills >= 3 * len(moments)
    assert (tally.lost, tally.wrong) == ([], [])
    # Between the last two calls nothing is left that has the old time of the log dir.
    late = f"call {tally.calls} of", "then again"
    assert all(any(word in where for word in late) for where in tally.times)


def stopped(command, number, signum, errors):
    """Run a command in a child to which a signal comes at its n-th change; returns its status."""
    child = os.fork()
    if not child:
        try:
            for one in (signal.SIGINT, signal.SIGTERM):
                signal.signal(one, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with failing(number, lambda: os.kill(os.getpid(), signum)):
                os._exit(command.run(errors))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(
    ("name", "signum"),
    [
        ("recover", signal.SIGINT),
        ("undo", signal.SIGINT),
        *((name, signal.SIGTERM) for name in JOBS),
    ],
)
def test_a_signal_leaves_what_a_kill_leaves_and_says_how_to_go_on(make, tmp_path, name, signum):
    command = make(name)
    calls = command.calls()
    for number in spread(calls, MOMENTS)[1:-1]:
        command.begin()
        errors = tmp_path / "errors"
        assert stopped(command, number, signum, errors) == 128 + signum
        text = errors.read_text()
        assert "Traceback" not in text
        begun = any((path / "journal.ndjson").exists() for path in command.undo_dirs())
        if name == "undo":
            assert f"logtool undo --apply {command.undo_dirs()[0]}" in text
        elif begun:
            assert "logtool undo --apply " in text
        else:
            assert "logtool undo" not in text
            assert command.undo_dirs() == []
        with failing(0, lambda: None):
            assert list(kills.judge(command, goes_on=True)) == [], number


@pytest.mark.parametrize("name", ["recover", "rebuild-index"])
def test_a_sigkill_from_outside_at_any_time_loses_nothing(make, monkeypatch, name):
    command = make(name)
    monkeypatch.undo()  # with every fsync, as in earnest
    draw = random.Random(name)
    latest, hits = 1.0, 0
    for _ in range(60):
        command.begin()
        began = time.monotonic()
        child = os.fork()
        if not child:
            try:
                os._exit(command.run())
            finally:
                os._exit(1)
        time.sleep(draw.uniform(0, latest))
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        if status == 0:  # It was done before: how long it takes depends on the machine.
            latest = min(latest, time.monotonic() - began) * 0.7
            continue
        with failing(0, lambda: None):
            assert list(kills.judge(command, goes_on=True)) == []
        hits += 1
        if hits == 5:
            return
    pytest.fail("the child was never killed in time")
