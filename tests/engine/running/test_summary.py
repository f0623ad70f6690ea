"""The exit status of a command follows from its counts; the gravest reason comes first."""

import signal
from pathlib import Path

import pytest

from logtool.errors import NothingMatchedError, UnreadableError
from logtool.exits import Exit
from logtool.findings import Finding, Severity
from logtool.running.budget import Pace
from logtool.running.summary import ActionSummary, Summary

INFO, WARNING, ERROR = "offset-index/preallocated", "offset-index/missing", "batch/crc"


def summary_of(*codes: str) -> Summary:
    made = Summary(partitions=1)
    for code in codes:
        made.add(Finding(code, "found"))
    return made


@pytest.mark.parametrize(
    ("code", "severity"),
    [(INFO, Severity.INFO), (WARNING, Severity.WARNING), (ERROR, Severity.ERROR)],
)
def test_a_finding_counts_from_its_severity_on(code: str, severity: Severity) -> None:
    made = summary_of(code)
    assert made.severities == {severity: 1}
    for least in Severity:
        counts = severity.weight >= least.weight
        assert made.exit_status(least) == (Exit.FINDINGS if counts else Exit.OK)


def test_what_was_not_read_or_written_makes_a_result_incomplete() -> None:
    assert Summary().exit_status() == Exit.OK
    assert Summary(unreadable=1).exit_status() == Exit.INCOMPLETE
    assert Summary(unwritten=1).exit_status() == Exit.INCOMPLETE
    assert not Summary(unreadable=1).complete
    assert not Summary(unwritten=1).complete


def test_the_same_error_counts_once() -> None:
    error, made = UnreadableError(Path("orders-0"), "no permission"), Summary()
    for one in (error, error, NothingMatchedError(Path("orders-1"), "nothing matched")):
        made.add(one)
    assert (made.unreadable, made.unmatched) == (2, 1)
    assert not made.nothing_matched


def test_a_signal_comes_before_everything_else() -> None:
    made = ActionSummary(ended_by=signal.SIGTERM, unreadable=1, refused=True, to_do=True)
    assert made.exit_status() == Exit.TERMINATED


def test_unread_input_comes_before_findings_and_those_before_time_that_is_over() -> None:
    made = summary_of(ERROR)
    made.pace = Pace()
    made.pace.ran_out = True
    assert made.exit_status() == Exit.FINDINGS
    known = summary_of(INFO)
    known.pace = made.pace
    assert known.exit_status() == Exit.BUDGET
    made.unreadable = 1
    assert made.exit_status() == Exit.INCOMPLETE


@pytest.mark.parametrize(
    ("made", "status"),
    [
        (ActionSummary(), Exit.OK),
        (ActionSummary(to_do=True), Exit.FINDINGS),
        (ActionSummary(refused=True), Exit.REFUSED),
        (ActionSummary(refused=True, unreadable=1, to_do=True), Exit.REFUSED),
        (ActionSummary(unreadable=1, to_do=True), Exit.INCOMPLETE),
    ],
)
def test_something_to_do_is_status_1_unless_it_was_refused_or_not_read(
    made: ActionSummary, status: Exit
) -> None:
    assert made.exit_status() == status
