"""A partition dir that a broker renames or deletes while its log dir is read stops no command."""

import shutil

import pytest

from logtool.disk import files
from logtool.errors import UnreadableError

SURVEYING = {
    "verify": ["verify"],
    "verify quick": ["verify", "--level", "quick"],
    "verify records": ["verify", "--level", "records"],
    "verify threads": ["verify", "--jobs", "2"],
    "dump": ["dump"],
    "dump-index": ["dump-index"],
    "stat": ["stat"],
    "stat segments": ["stat", "--segments"],
    "gaps": ["gaps"],
    "diff": ["diff", "OTHER"],
    "txns": ["txns"],
    "sanity": ["sanity"],
    "salvage": ["salvage", "--output", "saved"],
    "rebuild-index": ["rebuild-index"],
}
"""Commands that look at what is there. Those that judge a start of a broker, or which replica
has what, say that a partition could not be read: their answer is about a broker that is stopped."""


@pytest.fixture
def log_dir(partition, tmp_path, monkeypatch):
    """Return a log dir with orders-0 and orders-1, of which the latter goes when it is listed."""
    home = partition.parent
    (home / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    going = home / "orders-1"
    shutil.copytree(partition, going)
    shutil.copytree(home, tmp_path / "OTHER")
    monkeypatch.chdir(tmp_path)
    list_dir = files.list_dir

    def vanishing(path):
        if path == going:
            raise UnreadableError(path, "No such file or directory", missing=True)
        return list_dir(path)

    monkeypatch.setattr(files, "list_dir", vanishing)
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
    assert "orders-1: No such file or directory" in result.stderr
    assert result.status == 4


@pytest.mark.parametrize("kind", ["partition", "segment"])
def test_stat_counts_the_others_where_one_cannot_be_read(run, log_dir, monkeypatch, kind):
    vanishing = files.list_dir

    def refusing(path):
        try:
            return vanishing(path)
        except UnreadableError:
            raise UnreadableError(path, "Permission denied") from None

    monkeypatch.setattr(files, "list_dir", refusing)
    more = ["--segments"] if kind == "segment" else []
    result = run("stat", "-f", "ndjson", *more, log_dir)
    assert result.status == 4
    assert "orders-1: Permission denied" in result.stderr
    assert [one["partition"] for one in result.of_type(kind)] == [0]
