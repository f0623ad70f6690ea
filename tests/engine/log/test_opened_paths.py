from collections import Counter

import pytest

from logtool.errors import UnreadableError
from logtool.formats.names import CLUSTER_METADATA
from logtool.log import inputs, opening
from logtool.log.inputs import OpenedPath, open_each
from logtool.node.options import StartOptions
from logtool.startup.recover import ApplyConsent, Recover


@pytest.fixture
def calls(monkeypatch):
    """Count how often a path is classified and a log dir is read."""
    counted = Counter()

    def counting(name, function):
        def call(path, *more):
            counted[name, path] += 1
            return function(path, *more)

        return call

    for name in ("kind_of", "open_log_dir"):
        monkeypatch.setattr(inputs, name, counting(name, getattr(inputs, name)))
    return counted


def test_a_log_dir_is_read_once_however_many_of_its_partitions_are_given(scenario, calls):
    home = scenario("4.3.1/clean")
    paths = [home / "codec-none-0", home / "codec-none-1", home]
    opened = list(open_each(paths))
    assert [one.name for one in opened] == ["codec-none-0", "codec-none-1", None]
    assert {one.log_dir for one in opened} == {home}
    assert calls["open_log_dir", home] == 1


def test_what_is_no_directory_of_logs_is_said_in_its_place(scenario):
    home = scenario("4.3.1/clean")
    missing, there = open_each([home / "missing", home])
    assert isinstance(missing, UnreadableError)
    assert isinstance(there, OpenedPath)


def test_recover_looks_each_path_up_once_and_again_only_under_the_lock(copy_of, calls):
    home = copy_of("4.3.1/killed")
    list(Recover([home], StartOptions((4, 3)), ApplyConsent()))
    assert calls == {("kind_of", home): 1, ("open_log_dir", home): 1}
    calls.clear()
    list(Recover([home], StartOptions((4, 3)), ApplyConsent(apply=True)))
    assert calls == {("kind_of", home): 1, ("open_log_dir", home): 2}


def test_recover_lists_a_partition_dir_once_under_the_lock(copy_of, monkeypatch):
    home = copy_of("4.3.1/killed")
    listed = Counter()
    read = opening.open_partition

    def counting(path, *more):
        listed[path] += 1
        return read(path, *more)

    monkeypatch.setattr(opening, "open_partition", counting)
    list(Recover([home], StartOptions((4, 3)), ApplyConsent(apply=True)))
    # What the metadata log says is read on a way of its own.
    counts = {path: count for path, count in listed.items() if CLUSTER_METADATA not in path.name}
    assert len(counts) > 5
    assert set(counts.values()) == {1}


def test_of_a_log_dir_that_goes_away_meanwhile_the_reading_says_so(copy_of):
    home = copy_of("4.3.1/killed")
    (one,) = open_each([home])
    home.rename(home.with_name("elsewhere"))
    assert len(one.read().partitions) > 1
    with pytest.raises(UnreadableError):
        one.again().read()
