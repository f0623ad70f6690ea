"""The campaign of kills: every command with --apply dies at every call that changes something.

After each kill one copy goes on with the same command, another goes back with ``logtool undo``, and
a third is killed once more, at a moment drawn from a seed, while it does one of the two. Run it
with ``make kills``; it writes the report that is committed. `test_kills.py` does a part of it.
"""

import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from changes import failing
from crash.commands_killed import JOBS, Command

Die = Callable[[], None]


@dataclass(slots=True)
class Tally:
    """The results of the kills of one command."""

    calls: int = 0
    kills: int = 0
    lost: list[str] = field(default_factory=list)
    """Moments after which the log dir was neither as before nor as it should be."""
    wrong: list[str] = field(default_factory=list)
    """Moments after which a command had another status than 0."""
    times: list[str] = field(default_factory=list)
    """Moments after which only the log dir's own mtime was another."""


def kill(job: Callable[[], int], number: int) -> bool:
    """Let a process die just before its n-th change; False if it came to its end before."""
    child = os.fork()
    if not child:
        try:
            with failing(number, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                job()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        raise AssertionError(f"the child ended with {status}")
    return status != 0


def run(command: Command, moments: list[int], draw: random.Random) -> Tally:
    """Kill a command at these moments, each in three copies."""
    tally = Tally(calls=command.calls())
    for number in moments:
        for way in ("on", "back", "again"):
            command.begin()
            # A time that is right already is not set: a run may have a call less than another.
            tally.kills += kill(command.run, number)
            where = f"call {number} of {tally.calls}, then {way}"
            if way == "again":
                onward = draw.random() < 0.5
                following = command.run if onward else lambda: max(command.undo(), default=0)
                tally.kills += kill(following, draw.randint(1, tally.calls))
            with failing(0, lambda: None):
                for problem in judge(command, goes_on=way == "on"):
                    kind = {"status": tally.wrong, "time": tally.times}
                    kind.get(problem.partition(" ")[0], tally.lost).append(f"{where}: {problem}")
    return tally


def judge(command: Command, *, goes_on: bool) -> Iterator[str]:
    """Yield the problems after a kill: first with going on, then in any case with going back."""
    if goes_on:
        status = command.run()
        if status:
            yield f"status {status} of the same command"
        if command.looks() != command.done:
            yield "the same command does not end where it should"
    for status in command.undo():
        if status:
            yield f"status {status} of undo"
    if command.is_as_at_first():
        return
    if command.is_as_at_first(but_for_its_time=True):
        yield "time of the log dir is another"
    else:
        yield "undo does not bring everything back"


def commands(source: Path, home: Path, only: Sequence[str] = ()) -> Iterator[tuple[str, Command]]:
    """Yield every command with --apply, or `only` some, on a log dir made of `source`."""
    for number, (name, job) in enumerate(JOBS.items()):
        if only and name not in only:
            continue
        place = home / str(number)
        place.mkdir()
        yield name, Command(job, source, place)


_PAGE = """\
# Kills of every command that changes a log dir

Written by `make kills`. A process dies, by SIGKILL, just before each call that changes something
on disk. Then one copy goes on with the same command, one goes back with `logtool undo --apply`,
and one is killed once more on its way, then goes back. *Lost* counts log dirs that were not byte
for byte, mode and time what they should be; *wrong status* counts commands that did not end with
0. *Own time* counts log dirs of which only the directory's own mtime was another: a kill came
between the last two calls, after `.lock` was removed and before the time was set back.

| command | calls that change | kills | lost | wrong status | own time |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def report(tallies: dict[str, Tally]) -> str:
    """Return the page that is committed."""
    total = Tally()
    for tally in tallies.values():
        total.calls += tally.calls
        total.kills += tally.kills
        total.lost += tally.lost
        total.wrong += tally.wrong
        total.times += tally.times
    rows = "".join(row(name, one) for name, one in (tallies | {"all": total}).items())
    return _PAGE + rows + "".join(f"- {problem}\n" for problem in total.lost + total.wrong)


def row(name: str, one: Tally) -> str:
    """Return the line of one command."""
    return (
        f"| {name} | {one.calls} | {one.kills:,} | {len(one.lost)} | {len(one.wrong)} "
        f"| {len(one.times)} |\n"
    )


def main(source: Path, target: Path, only: Sequence[str] = ()) -> int:
    """Run the whole campaign and write its report; returns the exit status.

    With names of commands in `only`, run these and print their lines.
    """
    tallies = {}
    with tempfile.TemporaryDirectory() as home:
        for name, command in commands(source, Path(home), only):
            moments = list(range(1, command.calls() + 1))
            tallies[name] = run(command, moments, random.Random(name))
            sys.stderr.write(f"{name}: {tallies[name]}\n")
    if only:
        sys.stdout.writelines(row(name, one) for name, one in tallies.items())
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(report(tallies))
    return int(any(tally.lost or tally.wrong for tally in tallies.values()))
