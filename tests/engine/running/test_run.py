from pathlib import Path

from logtool.running import run
from logtool.running.budget import Budget
from logtool.running.run import Progress, Run

HERE, THERE = Path("here"), Path("there")


def test_each_step_is_reported_with_the_path_it_was_taken_in():
    reported = []
    progress = Progress(
        on_progress=lambda now: reported.append((now.bytes_done, now.bytes_total, now.path)),
        bytes_total=9,
        path=HERE,
    )
    progress.advance(2)
    progress.advance(3, THERE)
    progress.advance(4)
    assert reported == [(2, 9, HERE), (5, 9, THERE), (9, 9, THERE)]


def test_threads_are_started_only_where_there_is_enough_to_read(monkeypatch):
    monkeypatch.setattr(run, "WORTH_A_POOL", 10)
    job = Run(budget=Budget(jobs=3), bytes_total=9)
    assert job.workers(lambda work, on_bytes: work).jobs == 1
    assert job.workers(lambda work, on_bytes: work, 10).jobs == 3
    job.bytes_total = 10
    assert job.workers(lambda work, on_bytes: work).jobs == 3


def test_what_threads_read_is_progress_of_the_run():
    def read(work, on_bytes):
        on_bytes(work)
        return -work

    job = Run(bytes_total=6)
    with job.workers(read) as workers:
        assert list(workers.run([1, 2, 3], lambda work: work)) == [-1, -2, -3]
    assert job.bytes_done == 6


def test_a_run_that_begins_again_keeps_its_budget_and_its_receiver():
    reported = []
    job = Run(on_progress=reported.append, budget=Budget(jobs=3), bytes_done=5, bytes_total=7)
    again = job.restarted()
    again.advance(1)
    assert (again.bytes_done, again.bytes_total, again.budget) == (1, 0, job.budget)
    assert reported == [again]
    assert job.bytes_done == 5
