"""A recovery, or a rebuild of indexes, that dies at any moment: the same command ends it as if
nothing had been, and ``logtool undo`` takes it back."""

import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from changes import count, everything, failing, killed, make_log_dir, result
from damage import damage_file, flip, overwrite, remove_file

from logtool import cli
from logtool.exits import Exit

# From Python 3.12 on; the child only does what is tested here, and no thread is waited for.
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
PARTS = 2
"""The moments of a kill are shared out, so that several workers of pytest can take them."""
MOMENTS = 16
"""Of each part, spread over all of them; which ones they are differs from part to part."""


def damage_logs(home: Path) -> None:
    """Let a recovery cut a segment, remove the one behind it, and write the rest anew."""
    remove_file(home / "recovery-point-offset-checkpoint")
    damage_file(home / "small-segments-0" / f"{42:020d}.log", overwrite, 700, b"\xff\xff")
    (home / "codec-none-0" / f"{0:020d}.timeindex.deleted").touch()


def damage_indexes(home: Path) -> None:
    """Let indexes be missing and bad."""
    remove_file(home / "small-segments-0" / f"{0:020d}.index")
    damage_file(home / "small-segments-0" / f"{42:020d}.timeindex", flip, 3)
    damage_file(home / "codec-none-0" / f"{0:020d}.index", flip, 5)
    damage_file(next((home / "codec-none-0").glob("*.snapshot")), flip, 6)


COMMANDS = {
    "recover": (damage_logs, ["--accept-loss", "small-segments-0", "--mark-clean"]),
    "rebuild-index": (damage_indexes, ["--all"]),
}


@dataclass
class Command:
    """One command on fresh copies of a damaged log dir."""

    words: list[str]
    template: Path
    log_dir: Path

    def reset(self) -> None:
        for path in (self.log_dir, *self.undo_dirs()):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.template, self.log_dir)

    def undo_dirs(self) -> list[Path]:
        return sorted(self.log_dir.parent.glob(f"{self.log_dir.name}.logtool-undo-*"))

    def do(self) -> None:
        assert cli.run([*self.words, str(self.log_dir)]) == Exit.OK

    def undo(self) -> None:
        for undo_dir in reversed(self.undo_dirs()):
            assert cli.run(["undo", "--apply", str(undo_dir)]) == Exit.OK
        assert everything(self.log_dir) == everything(self.template)


@pytest.fixture(params=COMMANDS)
def command(request, scenario, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    damage, options = COMMANDS[request.param]
    template = make_log_dir(scenario("4.3.1/killed"), tmp_path / "template")
    damage(template)
    return Command([request.param, "--apply", *options], template, tmp_path / "data")


@pytest.mark.parametrize("part", range(PARTS))
def test_what_was_killed_ends_as_if_it_had_not_been_or_is_undone(command, part):
    command.reset()
    last = count(command.do)
    expected = result(command.log_dir)
    assert expected != result(command.template)
    moments = sorted({1 + part + i * (last - 1 - part) // (MOMENTS - 1) for i in range(MOMENTS)})
    committed = set()
    for number in moments:
        command.reset()
        assert killed(number, command.do), number
        committed.add(any((path / "journal.ndjson").exists() for path in command.undo_dirs()))
        with failing(0, lambda: None):
            command.undo()

        command.reset()
        assert killed(number, command.do), number
        with failing(0, lambda: None):
            command.do()
            assert result(command.log_dir) == expected, number
            command.undo()
    assert committed == {False, True}, "some before, some after the point of no return"


def test_a_sigkill_from_outside_at_any_time_loses_nothing(command, monkeypatch):
    monkeypatch.undo()  # with every fsync, as in earnest
    command.reset()
    command.do()
    expected = result(command.log_dir)
    draw = random.Random(command.words[0])
    latest, hits = 1.0, 0
    for _ in range(60):
        command.reset()
        began = time.monotonic()
        child = os.fork()
        if not child:
            try:
                command.do()
                os._exit(0)
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
            command.do()
            assert result(command.log_dir) == expected
            command.undo()
        hits += 1
        if hits == 5:
            return
    pytest.fail("the child was never killed in time")
