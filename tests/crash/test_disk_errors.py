"""A disk that is full, broken or read-only stops a change with one clear line; nothing is lost."""

import errno
import os
import re
import resource
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from changes import count, disk_full, failing, interrupt, prepare
from crash.commands_killed import JOBS, Command

from logtool.apply import Journal, PlanState
from logtool.errors import UnwritableError

REASONS = {
    errno.ENOSPC: "No space left on device",
    errno.EIO: "Input/output error",
    errno.EROFS: "Read-only file system",
    errno.EACCES: "Permission denied",
    errno.EDQUOT: "Disk quota exceeded",
    errno.EFBIG: "File too large",
}


def breaking(code):
    """Return a call that fails as the system would."""

    def fail():
        raise OSError(code, os.strerror(code))

    return fail


def assert_clear(error, code, place):
    """Check that an error is one line with a file, the reason and the way on."""
    text = str(error)
    assert "\n" not in text
    path, reason, state = re.fullmatch(r"(.+?): (.+?); (.+)", text).groups()
    assert Path(path).is_relative_to(place.log_dir.parent)
    assert reason == REASONS[code]
    if place.is_committed:
        assert f"logtool undo --apply {place.undo_dir}" in state
    else:
        assert ("logtool undo" in state, str(place.log_dir) in state) == (False, True)


@pytest.mark.long
@pytest.mark.parametrize("code", REASONS, ids=errno.errorcode.get)
def test_an_error_at_any_call_is_reported_and_can_be_finished_and_undone(place, code):
    place.reset()
    last = count(place.do)
    # Every call meets some error: the first three at each place, the rest in turns.
    step = 1 if code == errno.ENOSPC else 3
    start = 1 + list(REASONS).index(code) % step
    for number in range(start, last + 1, step):
        place.reset()
        with failing(number, breaking(code)), pytest.raises(UnwritableError) as caught:
            place.do()
        assert_clear(caught.value, code, place)
        if not place.is_committed:
            place.assert_untouched()
            assert not place.undo_dir.exists()
            continue
        if number % 2:
            place.finish()
            place.assert_finished()
        place.undo()
        place.assert_untouched()


@pytest.mark.long
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_an_error_at_any_call_of_an_undo_is_reported_and_it_goes_on(place, code):
    place.reset()
    place.do()
    last = count(place.undo)
    for number in range(1, last + 1, 2 if code == errno.EIO else 1):
        place.reset()
        with failing(0, lambda: None):
            place.do()
        with failing(number, breaking(code)), pytest.raises(UnwritableError) as caught:
            place.undo()
        assert_clear(caught.value, code, place)
        place.undo()
        place.assert_untouched()


@contextmanager
def file_size_limit(size):
    """Let this process write no file beyond a size: a real error of the system."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_that_grows_too_large_stops_it_before_anything_was_changed(place):
    place.reset()
    with file_size_limit(100_000), pytest.raises(UnwritableError) as caught:
        place.do()
    assert_clear(caught.value, errno.EFBIG, place)
    place.assert_untouched()
    assert not place.undo_dir.exists()


def test_a_file_that_grows_too_large_stops_it_half_way_and_it_goes_on(place):
    place.reset()
    journal = prepare(place.log_dir, place.undo_dir)
    journal.commit()
    with file_size_limit(1000), pytest.raises(UnwritableError) as caught:
        journal.carry_out()
    assert_clear(caught.value, errno.EFBIG, place)
    assert Journal.open(place.undo_dir).state is PlanState.COMMITTED
    place.finish()
    place.assert_finished()
    with file_size_limit(4000), pytest.raises(UnwritableError) as caught:
        place.undo()
    assert_clear(caught.value, errno.EFBIG, place)
    place.undo()
    place.assert_untouched()


@pytest.mark.parametrize("name", JOBS)
def test_a_command_that_is_stopped_half_way_does_not_say_that_nothing_was_done(
    scenario, tmp_path, name
):
    command = Command(JOBS[name], scenario("4.3.1/killed"), tmp_path)
    late = command.late_call()
    for fault, status in ((interrupt, 130), (disk_full, 4)):
        command.begin()
        with failing(late, fault):
            assert command.run(tmp_path / "errors") == status
        said = (tmp_path / "errors").read_text()
        assert command.looks() != command.begun
        assert "nothing was" not in said
        assert "logtool undo --apply" in said
