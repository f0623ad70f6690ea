"""Records that only an observer has: those that change nothing, and a command for the others."""

import shutil
import subprocess
from pathlib import Path

import pytest
from metadata_logs import NO_OP, data, log_dir, voters_batch
from metadata_records import framed, text

from logtool.cluster.controllers import elect
from logtool.cluster.steps import steps
from logtool.log.inputs import NodeDir
from logtool.quorum.copy import MetadataCopy, read
from logtool.quorum.verdict import Quorum, judge
from logtool.running.run import Run

BEGIN = voters_batch(0, (1,))
FEATURE = framed(12, 0, text("kraft.version"), (1).to_bytes(2, "big"))


def judged(*dirs: Path) -> Quorum:
    items = list(read([NodeDir(path) for path in dirs], Run()))
    copies = [one for one in items if isinstance(one, MetadataCopy)]
    assert len(copies) == len(items)
    return judge(copies)


def test_an_observer_that_is_ahead_by_noop_records_is_no_problem(tmp_path: Path) -> None:
    voter = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP))
    observer = log_dir(tmp_path, 2, BEGIN, data(2, NO_OP), data(3, NO_OP), data(4, NO_OP))
    found = judged(voter, observer)
    assert [(one.record, one.count) for one in found.unvoted] == [("NoOpRecord", 2)]
    assert (found.voters_are_behind, found.is_grave, found.copying) == (False, False, None)
    controllers = elect(found)
    assert (controllers.behind, controllers.lacks_changes) == (2, False)
    assert not [one for one in steps((), controllers, (), []) if one.command]


def test_changes_that_no_voter_has_are_given_to_a_voter_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    voter = log_dir(tmp_path, 1, BEGIN, data(2, NO_OP))
    observer = log_dir(tmp_path, 2, BEGIN, data(2, NO_OP), data(3, FEATURE, NO_OP, NO_OP))
    found = judged(voter, observer)
    kinds = {one.record: one.count for one in found.unvoted}
    assert kinds == {"NoOpRecord": 2, "FeatureLevelRecord": 1}
    assert (found.voters_are_behind, found.is_grave) == (True, True)
    assert found.copying is not None
    commands = [one.command for one in steps((), elect(found), (), [])]
    assert found.copying in commands
    state = (voter / "__cluster_metadata-0" / "quorum-state").read_bytes()
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    subprocess.run(found.copying, shell=True, check=True)
    after = judged(voter, observer)
    assert (after.unvoted, after.is_grave, after.keep.node) == ((), False, 1)
    assert (voter / "__cluster_metadata-0" / "quorum-state").read_bytes() == state
    assert (work / "node-1.metadata-log").is_dir()


def test_without_the_copy_of_a_voter_nothing_is_compared(tmp_path: Path) -> None:
    voter = log_dir(tmp_path, 1, BEGIN)
    observer = log_dir(tmp_path, 2, BEGIN, data(2, NO_OP))
    assert not judged(voter, observer).voters_are_behind
    shutil.rmtree(voter)
    alone = judged(observer)
    assert (alone.unvoted, alone.voters_are_behind) == ((), False)
