"""A thread beside that of the caller does one thing at a time, and lets go of it."""

import threading
import weakref

import pytest

from logtool.running.ahead import OneAhead


@pytest.fixture
def beside():
    made = OneAhead()
    yield made
    made.close()


def test_each_result_is_that_of_what_was_begun_last(beside):
    for number in range(100):
        beside.begin(lambda number=number: (number, threading.current_thread()))
        result, thread = beside.end()
        assert result == number
        assert thread is not threading.current_thread()


def test_what_is_begun_before_the_end_of_another_is_done_behind_it(beside):
    done = []
    for number in range(3):
        beside.begin(lambda number=number: done.append(number) or number)
    assert [beside.end() for _ in range(3)] == [0, 1, 2]
    assert done == [0, 1, 2]


def test_what_it_raises_is_raised_where_the_result_is_asked_for_and_it_goes_on(beside):
    beside.begin(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        beside.end()
    beside.begin(lambda: 7)
    assert beside.end() == 7


def test_what_was_done_is_let_go_before_its_end_is_told(beside):
    class Work:
        def __call__(self):
            return None

    work = Work()
    gone = weakref.ref(work)
    beside.begin(work)
    del work
    beside.end()
    assert gone() is None


def test_closing_ends_what_was_begun_and_the_thread():
    before, done = threading.active_count(), []
    beside = OneAhead()
    beside.close()  # it has no thread yet
    beside.begin(lambda: done.append(True))
    beside.close()
    assert done == [True]
    assert threading.active_count() == before
