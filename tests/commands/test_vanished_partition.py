"""A partition dir that a broker renames or deletes while its log dir is read stops no command."""

import shutil

import pytest
from surveying import SURVEYING


@pytest.fixture
def log_dir(partition, tmp_path, monkeypatch, lock_up):
    """Return a log dir with orders-0 and orders-1, of which the latter goes when it is listed."""
    home = partition.parent
    (home / "meta.properties").write_text("version=0\ncluster.id=c\nbroker.id=1\n")
    going = home / "orders-1"
    shutil.copytree(partition, going)
    shutil.copytree(home, tmp_path / "OTHER")
    monkeypatch.chdir(tmp_path)
    lock_up(going, missing=True)
    return home


@pytest.mark.parametrize("name", SURVEYING)
def test_the_rest_is_read_and_nothing_is_amiss(run, log_dir, name):
    command, *options = SURVEYING[name]
    result = run(command, *options, log_dir)
    assert "No such file" not in result.stderr
    assert result.status == 0


@pytest.mark.parametrize("name", SURVEYING)
def test_a_partition_that_was_named_is_missed(run, log_dir, name):
    command, *options = SURVEYING[name]
    result = run(command, *options, log_dir / "orders-1")
    assert "orders-1: No such file" in result.stderr
    assert result.status == 4


@pytest.mark.parametrize("kind", ["partition", "segment"])
def test_stat_counts_the_others_where_one_cannot_be_read(run, log_dir, lock_up, kind):
    lock_up(log_dir / "orders-1")
    more = ["--segments"] if kind == "segment" else []
    result = run("stat", "-f", "ndjson", *more, log_dir)
    assert result.status == 4
    assert "orders-1: Permission denied" in result.stderr
    assert [one["partition"] for one in result.of_type(kind)] == [0]
