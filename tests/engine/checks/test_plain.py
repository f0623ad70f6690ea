"""The quick look at small partitions, held against the rules that it goes round."""

import os
import shutil

import pytest
from conftest import SCENARIOS
from damage import flip
from verification import entries_of, hold_quick_look, log_dirs, verify

from logtool import verify as verifying
from logtool.checks.fast_path import PlainPartitions
from logtool.running.budget import Budget
from logtool.running.workers import Pace
from logtool.schemas.printed import SUMMARY
from logtool.verify import Level, Verification

KEPT = ("empty-topic-0", "index.dense-0", "idempotent_writes-0", "small-segments-0")
"""Partitions that a quick look is enough for, each for another reason."""


def said(home, **budget):
    """Return all that a run says."""
    run = Verification([home], level=Level.BATCHES, budget=Budget(**budget))
    items = [str(item) for item in run]
    summary = SUMMARY.row(run.summary) | {"elapsed_s": None}
    return items, {key: value for key, value in summary.items() if "time" not in key}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_says_the_same_with_and_without_it(scenario, name):
    for home in log_dirs(scenario(name)):
        assert said(home) == said(home, drop_cache=True), "which is never done with a quick look"


def test_the_rules_are_not_asked_about_what_is_plain(scenario, monkeypatch):
    home = scenario("4.3.1/clean")
    plain = hold_quick_look([home], [])
    assert set(KEPT) - {path.name for path in plain} == set()
    asked = []
    rules = verifying.check_partition

    def noted(partition, *others):
        asked.append(partition.path.name)
        return rules(partition, *others)

    monkeypatch.setattr(verifying, "check_partition", noted)
    list(Verification([home], level=Level.BATCHES))
    every = {path.name for path in entries_of(home) if path.is_dir()}
    # A partition that is being deleted is always reported.
    live = {path.name for path in plain if not path.name.endswith("-delete")}
    assert set(asked).isdisjoint(live)
    assert set(asked) < every


@pytest.mark.parametrize(
    "budget",
    [Budget(pace=Pace(bytes_per_second=1e9)), Budget(pace=Pace(deadline=1e12)),
     Budget(drop_cache=True)],
)  # fmt: skip
def test_a_run_that_keeps_to_a_budget_goes_without_it(scenario, budget):
    assert Verification([scenario("4.3.1/clean")], budget=budget)._plain(scenario("4.3.1")) is None


@pytest.mark.parametrize("name", ["index.dense-0", "idempotent_writes-0", "small-segments-0"])
def test_whatever_byte_is_damaged_it_is_not_plain_or_the_rules_say_nothing(
    scenario, tmp_path, name
):
    """Yield the first and the last bytes of each file: those of headers and entries."""
    home = tmp_path / name
    shutil.copytree(scenario("4.3.1/clean") / name, home)
    looks, plain, tried = PlainPartitions(), 0, 0
    for path in sorted(home.iterdir())[:14]:
        sound, status = path.read_bytes(), path.stat()
        times = status.st_atime_ns, status.st_mtime_ns
        for at in {*range(min(len(sound), 90)), *range(max(len(sound) - 24, 0), len(sound))}:
            tried += 1
            path.write_bytes(flip(sound, at, 1 << (at % 8)))
            os.utime(path, ns=times)
            if looks.look(home, 0, None):
                plain += 1
                assert not verify(home, level=Level.BATCHES).findings, (path.name, at)
        for cut in {0, 1, len(sound) // 2, max(len(sound) - 1, 0)} if sound else ():
            path.write_bytes(sound[:cut])
            os.utime(path, ns=times)
            if looks.look(home, 0, None):
                assert not verify(home, level=Level.BATCHES).findings, (path.name, cut)
        path.write_bytes(sound)
        os.utime(path, ns=times)
    assert looks.look(home, 0, None)
    assert plain < tried // 10, "nearly all damage is out of the ordinary"


@pytest.mark.parametrize(
    "stranger",
    ["a", f"{0:020d}.txnindex", f"{9:020d}.snapshot", f"{2**63:020d}.log", f"{7:020d}.index"],
)
def test_a_file_that_need_not_be_there_is_for_the_rules(scenario, tmp_path, stranger):
    home = tmp_path / "index.dense-0"
    shutil.copytree(scenario("4.3.1/clean") / home.name, home)
    assert PlainPartitions().look(home, 0, None)
    (home / stranger).touch()
    assert PlainPartitions().look(home, 0, None) is None


@pytest.mark.parametrize("missing", ["partition.metadata", "leader-epoch-checkpoint",
                                     f"{0:020d}.index", f"{0:020d}.timeindex"])  # fmt: skip
def test_a_file_that_is_missing_is_for_the_rules(scenario, tmp_path, missing):
    home = tmp_path / "index.dense-0"
    shutil.copytree(scenario("4.3.1/clean") / home.name, home)
    (home / missing).unlink()
    assert PlainPartitions().look(home, 0, None) is None
