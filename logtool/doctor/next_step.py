"""The one command to run after `doctor`: the first that applies, the gravest first."""

from collections.abc import Sequence
from pathlib import Path

from logtool.disk import shell
from logtool.doctor.answers import Answer, DiskAnswer, Gravity, Next, NextStart
from logtool.doctor.examination import Examination
from logtool.errors import NothingMatchedError, UnreadableError
from logtool.findings import Broker, Finding, Severity


def choose(run: Examination, given: Sequence[Answer]) -> Next:
    """Return the command to run next, after these answers."""
    start = next((one for one in given if isinstance(one, NextStart)), None)
    by_severity = {severity: [one for one in run.findings if one.severity is severity]
                   for severity in Severity}  # fmt: skip
    refusing = next((one for one in run.findings if one.broker is Broker.REFUSES), None)
    if run.unread and not run.summary.partitions:
        return _unread(run.unread[0])
    if start and start.refuses:
        return _finding(refusing) if refusing else _plan(run, "what stops the start")
    if start and (start.losing or start.state is Gravity.ERROR):
        return _plan(run, "what the next start does, and what is lost")
    for found in by_severity[Severity.ERROR]:
        return _finding(found)
    if run.unread:
        return _unread(run.unread[0])
    if any(isinstance(one, DiskAnswer) and one.state is Gravity.ERROR for one in given):
        return Next(_logtool(run, "stat --level quick --top 10"), "what takes up the disk")
    if start and start.state is Gravity.WARNING:
        return _plan(run, "what the next start does, and what it does not notice")
    for found in by_severity[Severity.WARNING]:
        return _finding(found)
    if not run.deep.is_whole:
        return Next(_logtool(run, "verify"), "every batch, without a time limit")
    return Next(_logtool(run, "verify --level records"), "every record too; nothing is wrong yet")


def _logtool(run: Examination, command: str) -> str:
    words = [f"logtool {command}", str(run.selection), *map(shell.path, run.paths)]
    return " ".join(word for word in words if word)


def _plan(run: Examination, reason: str) -> Next:
    return Next(_logtool(run, "plan"), reason)


def _finding(found: Finding) -> Next:
    if found.next:
        return Next(found.next, f"where {found.code} was found")
    return Next(f"logtool explain {found.code}", "what it means and what to do")


def _unread(error: UnreadableError) -> Next:
    """Return how to look at a path that could not be read: who may, or what is there instead."""
    path = error.path
    if isinstance(error, NothingMatchedError):
        return Next(f"ls -la {shell.path(path)}", "what is there instead")
    if path.exists():
        return Next(f"ls -ld {shell.path(path)}", "who may read it")
    there: Path = next((one for one in path.absolute().parents if one.exists()), Path("/"))
    return Next(f"ls -la {shell.path(there)}", "what is there instead")
