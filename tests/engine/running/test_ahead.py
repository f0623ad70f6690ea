"""A second thread does one thing at a time, and lets go of it."""

import threading
import weakref

import pytest

from logtool.running.ahead import OneAhead


@pytest.fixture
def second():
    made = OneAhead()
    yield made
    made.close()


def test_each_result_is_that_of_what_was_begun_last(second):
    for number in range(100):
        second.begin(lambda number=number: (number, threading.current_thread()))
        result, thread = second.end()
        assert result == number
        assert thread is not threading.current_thread()


def test_what_is_begun_before_the_end_of_another_is_done_behind_it(second):
    done = []
    for number in range(3):
        second.begin(lambda number=number: done.append(number) or number)
    assert [second.end() for _ in range(3)] == [0, 1, 2]
    assert done == [0, 1, 2]


def test_what_it_raises_is_raised_where_the_result_is_asked_for_and_it_goes_on(second):
    second.begin(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        second.end()
    second.begin(lambda: 7)
    assert second.end() == 7


def test_what_was_done_is_let_go_before_its_end_is_reported(second):
    class Work:
        def __call__(self):
            return None

    work = Work()
    gone = weakref.ref(work)
    second.begin(work)
    del work
    second.end()
    assert gone() is None


def test_closing_ends_what_was_begun_and_the_thread():
    before, done = threading.active_count(), []
    second = OneAhead()
    second.close()  # it has no thread yet
    second.begin(lambda: done.append(True))
    second.close()
    assert done == [True]
    assert threading.active_count() == before


def test_a_signal_before_the_thread_starts_leaves_nothing_to_close(monkeypatch):
    def interrupted(thread):
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    made = OneAhead()
    with pytest.raises(KeyboardInterrupt):
        made.begin(lambda: 1)
    made.close()
