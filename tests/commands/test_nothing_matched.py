"""Exit status 4 of every command for a path or a selection that matches nothing."""

import shlex
import shutil

import pytest
import typer

from logtool import cli
from logtool.commands.program.command_tree import read_tree

READING = {
    ("verify",): (), ("doctor",): (), ("plan",): (), ("recover",): (), ("dump",): (),
    ("dump-index",): (),
    ("stat",): (), ("gaps",): (), ("watermark",): (), ("diff",): (), ("txns",): (), ("sanity",): (),
    ("rebuild-index",): (), ("retention",): (), ("cleaner",): (), ("space",): (),
    ("report",): ("--output", "report.html"),
    ("case",): ("--output", "case.tar.zst"),
    ("trim",): ("--free", "1M"), ("scrub",): ("--state", "scrub.db"),
    ("salvage",): ("--output", "saved"), ("undelete",): ("--output", "saved"),
    ("checkpoint", "show"): (), ("checkpoint", "lint"): (),
    ("checkpoint", "rebuild"): (), ("lookup",): ("--offset", "0"),
    ("metadata", "show"): (), ("metadata", "log"): (), ("metadata", "at"): ("--offset", "0"),
}  # fmt: skip
"""The commands that read paths, with the options that they need.

`scan` needs Spark. `groups` and `remote` always read one topic, `dirs` and
`cluster` always read log dirs."""
OF_LOG_DIRS = {
    ("groups",): (), ("dirs",): (),
    ("remote", "lineage"): (), ("remote", "verify"): ("--rsm", "local"),
    ("convert",): ("--to", "kafka", "--output", "converted"),
}  # fmt: skip
SELECTING = [name for name in READING if name[0] not in ("case", "lookup", "metadata")]
LISTING = [name for name in SELECTING if name[0] != "checkpoint"]
"""The commands that take --files-from."""
SELECTIONS = (
    ["--topic", "nosuch"], ["--partition", "99"], ["--exclude-topic", "*"],
    ["--topic", "orders", "--partition", "1"],
)  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Let a command write into the directory of its input."""
    monkeypatch.chdir(tmp_path)


def words(name):
    return "-".join(name)


def paths_for(name, *paths):
    """Return the paths to give: a comparison needs two."""
    return [*paths, *paths] if name == ("diff",) else list(paths)


def assert_named(text, path, *chosen):
    """Assert that a message names the path and the selection."""
    assert f"{path}: " in text
    assert shlex.join(chosen) in text


@pytest.fixture
def log_dir(partition):
    """Return a log dir with one partition, orders-0."""
    (partition.parent / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    return partition.parent


@pytest.fixture
def foreign(tmp_path):
    """Return a directory in which other programs left names like those of partitions."""
    path = tmp_path / "etc"
    (path / "dbus-1" / "system.d").mkdir(parents=True)
    (path / "hosts").write_text("127.0.0.1 localhost\n")
    return path


@pytest.mark.parametrize("chosen", SELECTIONS, ids=" ".join)
@pytest.mark.parametrize("name", SELECTING, ids=words)
def test_a_selection_without_a_partition_is_incomplete(run, log_dir, name, chosen):
    result = run(*name, *READING[name], *paths_for(name, log_dir), *chosen)
    assert result.status == 4
    assert_named(result.stderr.splitlines()[-1], log_dir, *chosen)


@pytest.mark.parametrize("chosen", [one for one in SELECTIONS if "--exclude-topic" not in one])
def test_a_lookup_of_no_partition_is_incomplete(run, log_dir, chosen):
    result = run("lookup", "--offset", 0, log_dir, *chosen)
    assert result.status == 4
    (line,) = result.stderr.splitlines()
    assert_named(line, log_dir, *chosen)


@pytest.mark.parametrize("name", SELECTING, ids=words)
def test_json_and_ndjson_of_a_selection_without_a_partition_are_incomplete(run, log_dir, name):
    command = (*name, *READING[name], *paths_for(name, log_dir), "--topic", "nosuch")
    result = run(*command, "--json")
    assert result.status == 4
    assert result.document["summary"]["complete"] is False
    (error,) = (item for item in result.items if item["type"] == "error")
    assert (error["reason"], error["path"]) == ("nothing-matched", str(log_dir))
    assert "--topic nosuch" in error["message"]
    lines = run(*command, "-f", "ndjson")
    assert (lines.status, lines.objects[-1]["type"]) == (4, "summary")
    assert lines.objects[-1]["complete"] is False


@pytest.mark.parametrize(
    "name", [one for one in (*READING, *OF_LOG_DIRS) if one != ("report",)], ids=words
)
def test_a_wrong_path_is_one_line_without_a_verdict(run, tmp_path, name):
    missing = tmp_path / "nosuch"
    options = {**READING, **OF_LOG_DIRS}[name]
    paths = paths_for(name, missing)
    result = run(*name, *options, *paths)
    assert result.status == 4
    assert set(result.stderr.splitlines()) == {f"logtool: {missing}: No such file or directory"}
    assert len(result.stderr.splitlines()) == len(paths)
    if name != ("doctor",):
        assert result.stdout == ""
    found = run(*name, *options, *paths, "-f", "json")
    assert (found.status, found.document["summary"]["complete"]) == (4, False)


def test_a_wrong_path_next_to_another_leaves_the_verdict(run, log_dir, tmp_path):
    result = run("gaps", tmp_path / "nosuch", log_dir)
    assert result.status == 4
    # The error, the note that no checkpoint shows the log end, and the verdict.
    assert len(result.stderr.splitlines()) == 3


@pytest.mark.parametrize("name", READING, ids=words)
def test_an_empty_directory_is_incomplete(run, tmp_path, name):
    empty = tmp_path / "empty"
    empty.mkdir()
    result = run(*name, *READING[name], *paths_for(name, empty), *READING[name], "-f", "json")
    assert result.status == 4
    assert f"{empty}: " in result.stderr
    assert result.document["summary"]["complete"] is False
    assert "nothing-matched" in [item.get("reason") for item in result.items]


@pytest.mark.parametrize("name", READING, ids=words)
def test_a_directory_of_other_programs_is_incomplete(run, foreign, name):
    command = (*name, *READING[name], *paths_for(name, foreign), *READING[name])
    result = run(*command)
    assert result.status == 4
    first, *others = result.stderr.splitlines()
    assert first.startswith(f"logtool: {foreign}: ")
    assert all(line.startswith(("logtool: ", "incomplete")) for line in others), "a verdict"


@pytest.mark.parametrize("name", LISTING, ids=words)
def test_paths_from_a_file_have_to_match_too(run, log_dir, foreign, tmp_path, name):
    listed = tmp_path / "paths"
    for path, chosen in ((log_dir, ("--topic", "nosuch")), (foreign, ())):
        listed.write_text("".join(f"{path}\n" for path in paths_for(name, path)))
        result = run(*name, *READING[name], "--files-from", listed, *chosen)
        assert result.status == 4
        assert_named(result.stderr, path, *chosen)


@pytest.mark.parametrize("name", [n for n in SELECTING if n != ("undelete",)], ids=words)
def test_one_log_dir_with_the_topic_is_enough(run, log_dir, tmp_path, name):
    other = tmp_path / "other"
    shutil.copytree(log_dir, other)
    (other / "orders-0").rename(other / "payments-0")
    if name == ("checkpoint", "rebuild"):
        other = log_dir  # It takes one path.
    given = dict.fromkeys([other, log_dir])
    more = [log_dir] if len(given) == 1 and name == ("diff",) else []
    result = run(*name, *READING[name], *given, *more, "--topic", "orders")
    assert result.status in (0, 1)


@pytest.mark.parametrize("name", SELECTING, ids=words)
def test_a_log_dir_without_partitions_is_a_sound_input(run, log_dir, name):
    shutil.rmtree(log_dir / "orders-0")
    result = run(*name, *READING[name], *paths_for(name, log_dir), "-f", "json")
    assert result.status == (4 if name == ("dump-index",) else 0), result.stderr
    assert "nothing-matched" not in [item.get("reason") for item in result.items]


def test_several_log_dirs_are_named_each(run, log_dir, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(log_dir, other)
    result = run("verify", log_dir, other, "--topic", "nosuch")
    assert result.status == 4
    for line, path in zip(result.stderr.splitlines(), (log_dir, other), strict=True):
        assert_named(line, path, "--topic", "nosuch")


def test_a_file_is_read_with_any_selection(run, log_dir):
    log = log_dir / "orders-0" / f"{0:020d}.log"
    assert run("verify", log, "--topic", "nosuch").status == 0
    assert run("dump", log, "--topic", "nosuch").status == 0


def test_a_selection_without_a_partition_of_digests_is_incomplete(run, log_dir, tmp_path):
    digest = tmp_path / "digest.npz"
    assert run("diff", "--digest", digest, log_dir).status == 0
    result = run("diff", digest, log_dir, "--topic", "nosuch")
    assert result.status == 4
    assert_named(result.stderr, digest, "--topic", "nosuch")


def test_a_plan_of_a_metadata_log_matches_no_partition(run, log_dir):
    metadata = log_dir / "__cluster_metadata-0"
    (log_dir / "orders-0").rename(metadata)
    result = run("plan", metadata, "-f", "ndjson")
    assert result.status == 4
    (error,) = result.of_type("error")
    assert (error["path"], error["reason"]) == (str(metadata), "nothing-matched")
    (line,) = result.stderr.splitlines()
    assert_named(line, metadata)


def test_without_a_partition_no_table_is_written(run, log_dir, tmp_path):
    target = tmp_path / "batches.parquet"
    result = run("dump", "--format", "parquet", "--output", target, "--topic", "nosuch", log_dir)
    assert result.status == 4
    assert not target.exists()
    assert list(tmp_path.glob("*.part")) == []


def test_every_command_that_selects_partitions_is_in_this_table():
    _, commands = read_tree(typer.main.get_command(cli.app))
    selecting = {
        tuple(one.name.split()) for one in commands for option in one.options
        if "--topic" in option.names and one.name.split()[0] != "metadata"
    }  # fmt: skip
    # `remote` reads the topic with the metadata of remote segments, or a bucket.
    others = {("remote", one) for one in ("lineage", "verify", "rebuild-plan", "restore")} | {
        ("cluster",)
    }
    assert selecting == {*SELECTING, ("scan",), ("lookup",), ("groups",), ("dirs",), *others}
