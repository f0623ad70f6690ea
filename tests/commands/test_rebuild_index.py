"""``logtool rebuild-index``: what it prints, what it writes, and how it ends."""

import csv
import json
import os

import pytest
from answers import assert_valid
from damage import damage_file, flip, remove_file
from log_dir_damage import in_batch
from processes import locked_by_a_process, without_rights
from verification import fingerprint, small_log_dir

NAME = "rebuild-index"


@pytest.fixture
def home(scenario, tmp_path):
    """Return a recovered log dir with three partitions and its metadata log."""
    return small_log_dir(
        scenario("4.3.1/killed-recovered"), tmp_path / "data", "index.dense-0", "tx.mixed-0",
        "codec-none-0", "__cluster_metadata-0",
    )  # fmt: skip


@pytest.fixture
def index(home):
    """Return an index that is missing."""
    path = home / "index.dense-0" / f"{0:020d}.index"
    remove_file(path)
    return path


def test_nothing_to_build_is_success(run, home):
    result = run(NAME, home)
    assert (result.status, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 1
    assert "--apply" not in result.stderr


def test_a_dry_run_says_what_is_to_be_built_and_writes_nothing(run, home, index):
    before = fingerprint(home.parent)
    result = run(NAME, home)
    assert result.status == 1
    (line,) = result.lines
    assert line.startswith(f"create     {index}, 1.0 KiB: ")
    assert "1 file to change" in result.stderr
    assert "--apply" in result.stderr
    assert fingerprint(home.parent) == before


def test_explain_names_the_command_that_saves_the_next_start_from_reading_the_segment(
    run, home, index
):
    (finding,) = run("verify", "-f", "ndjson", index.parent).of_type("finding")
    assert f"logtool {NAME} --apply" in " ".join(run("explain", finding["code"]).stdout.split())

    def recovered():
        found = run("plan", "-f", "ndjson", index.parent).of_type("partition")
        return [(one["recovered_segments"], one["lost_batches"]) for one in found]

    assert recovered() == [(1, 0)]
    assert run(NAME, "--apply", home).status == 0
    assert recovered() == [(0, 0)]


def test_with_apply_it_is_built_and_undo_takes_it_back(run, home, index, scenario):
    before = fingerprint(home)
    expected = scenario("4.3.1/killed-recovered") / index.parent.name / index.name
    result = run(NAME, "--apply", home)
    assert result.status == 0
    assert index.read_bytes() == expected.read_bytes()
    assert result.stderr.endswith("1 file changed\n")
    (line,) = (line for line in result.lines if "logtool undo" in line)
    undo_dir = line.split()[-1]
    assert run(NAME, home).status == 0
    assert run("undo", "--apply", undo_dir).status == 0
    assert fingerprint(home) == before


def test_ndjson_has_the_action_the_undo_directory_and_the_summary(run, home, index, tmp_path):
    undo_dir = tmp_path / "undo"
    result = run(NAME, "-f", "ndjson", "--apply", "--undo-dir", undo_dir, index)
    assert result.status == 0
    action, undo, summary = result.objects
    assert (action["schema"], action["type"], action["action"]) == (
        "logtool.plan/1", "action", "create",
    )  # fmt: skip
    assert (action["path"], action["topic"], action["partition"], action["segment"]) == (
        str(index), "index.dense", 0, 0,
    )  # fmt: skip
    assert action["length"] == index.stat().st_size
    assert undo == {"type": "undo", "path": str(undo_dir)}
    assert (summary["type"], summary["complete"], summary["segments"]) == ("summary", True, 1)


def test_what_is_printed_keeps_to_the_schema(run, home, index, tmp_path):
    in_batch(9, 70, log=f"tx.mixed-0/{140:020d}.log")(home)
    remove_file(home / "codec-none-0" / f"{0:020d}.log")
    paths = home, tmp_path / "missing"
    objects = [
        obj
        for options in ([], ["--all"], ["--output", tmp_path / "new"], ["--apply", "--all"])
        for obj in run(NAME, "-f", "ndjson", *options, *paths).objects
    ]
    assert {"action", "undo", "error", "summary"} == {obj["type"] for obj in objects}
    actions = {obj["action"] for obj in objects if obj["type"] == "action"}
    assert actions >= {"damaged", "impossible", "create", "replace"}
    assert_valid("plan", objects)


def test_csv_has_a_row_for_each_file(run, home, index):
    rows = list(csv.DictReader(run(NAME, "-f", "csv", home).lines))
    assert [(row["action"], row["path"]) for row in rows] == [("create", str(index))]
    document = json.loads(run(NAME, "--json", home).stdout)
    assert [item["path"] for item in document["items"]] == [str(index)]


def test_only_the_kinds_asked_for_are_built(run, home, index):
    times = index.with_suffix(".timeindex")
    damage_file(times, flip, 2)
    assert len(run(NAME, home).lines) == 2
    for kind, path in (("offset", index), ("time", times)):
        result = run(NAME, "--kind", kind, home)
        assert [line.split()[1].rstrip(",") for line in result.lines] == [str(path)]
    assert run(NAME, "--kind", "transaction", "--kind", "snapshot", home).status == 0


def test_selection_and_files_from_choose_partitions(run, home, index, tmp_path):
    assert run(NAME, "--topic", "codec*", home).status == 0
    assert run(NAME, "--exclude-topic", "index*", home).status == 0
    assert run(NAME, "--partition", "1", home).status == 4
    listed = tmp_path / "list"
    listed.write_bytes(os.fsencode(index) + b"\0")
    assert run(NAME, "--files-from", listed, "--null").status == 1


def test_the_interval_is_that_of_the_topic_unless_one_is_given(run, home, index):
    assert ", 1.0 KiB:" in run(NAME, index).stdout
    assert ", 56 B:" in run(NAME, "--index-interval-bytes", "4096", index).stdout


def test_output_gets_copies_and_the_log_dir_stays_as_it_is(run, home, index, tmp_path, scenario):
    output = tmp_path / "new"
    result = run(NAME, "--output", output, home)
    assert result.status == 0
    copy = output / "index.dense-0" / index.name
    expected = scenario("4.3.1/killed-recovered") / "index.dense-0" / index.name
    assert copy.read_bytes() == expected.read_bytes()
    assert [path for path in output.rglob("*") if path.is_file()] == [copy]
    assert "1 file " in result.stderr
    assert str(output) in result.stderr
    again = run(NAME, "--output", output, home)
    assert again.status == 5
    assert str(output) in again.stderr


def test_output_in_a_log_dir_is_refused(run, home, index):
    for output in (home / "new", home / "index.dense-0" / "new"):
        assert run(NAME, "--output", output, home).status == 5
        assert not output.exists()


def test_a_damaged_log_is_reported_and_is_not_changed(run, home):
    in_batch(9, 70, log=f"tx.mixed-0/{140:020d}.log")(home)
    log = home / "tx.mixed-0" / f"{140:020d}.log"
    before = log.read_bytes()
    damage_file(log.with_suffix(".index"), flip, 4)
    result = run(NAME, home)
    assert result.status == 1
    assert result.lines[0].startswith(f"damaged    {log} @")
    assert str(log.parent) in result.lines[0].partition("logtool recover ")[2]
    assert result.lines[1].startswith(f"replace    {log.with_suffix('.index')}, ")
    done = run(NAME, "--apply", home)
    assert done.status == 1
    assert log.read_bytes() == before
    assert "1 file changed; 1 obstacle" in done.stderr


def test_an_index_without_a_log_is_reported(run, home):
    log = home / "codec-none-0" / f"{0:020d}.log"
    remove_file(log)
    result = run(NAME, log.with_suffix(".index"))
    assert result.status == 1
    assert result.stdout.startswith("impossible ")


def test_a_path_that_is_not_there_is_named_and_the_rest_is_done(run, home, index, tmp_path):
    result = run(NAME, tmp_path / "tyop", home)
    assert result.status == 4
    assert f"{tmp_path / 'tyop'}: No such file" in result.stderr
    assert len(result.lines) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--kind", "ofset"], ["--output", "x", "--apply"], ["--output", "x", "--undo-dir", "y"],
        ["--index-interval-bytes", "-1"], ["--max-rate", "fast"], ["-q", "-v"], ["--rebuild"],
        ["--json", "-f", "csv"],
    ],
)  # fmt: skip
def test_a_command_line_that_makes_no_sense(run, home, arguments):
    before = fingerprint(home)
    result = run(NAME, *arguments, home)
    assert result.status == 2
    assert result.stdout == ""
    assert fingerprint(home) == before


def test_no_path_is_a_usage_error(run):
    assert run(NAME).status == 2


def test_when_time_is_over_nothing_was_changed(run, home, index):
    assert run(NAME, "--apply", "--max-duration", "0.000001", home).status == 6
    assert not index.exists()


def test_a_log_dir_in_use_is_refused(run, home, index):
    with locked_by_a_process(home / ".lock"):
        refused = run(NAME, "-f", "ndjson", "--apply", home)
        assert run(NAME, home).status == 1
    assert refused.status == 5
    assert refused.of_type("error")[0]["reason"] == "refused"
    assert not index.exists()


@pytest.mark.parametrize("suffix", [".log", ".index", ".txnindex", ".snapshot"])
def test_what_may_not_be_read_is_named_and_the_rest_is_looked_at(home, index, suffix):
    secret = sorted((home / "tx.mixed-0").glob(f"*{suffix}"))[0]
    secret.chmod(0)
    status, said, complaints = without_rights(NAME, home)
    assert status == 4
    assert f"{secret}: Permission denied" in complaints
    assert [line for line in said.splitlines() if str(index) in line]
    assert str(secret) not in said


def test_where_nothing_may_be_written_nothing_is_changed(home, index):
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = fingerprint(home.parent)
    status, _, complaints = without_rights(NAME, "--apply", home)
    assert status == 4
    assert "Permission denied" in complaints
    assert fingerprint(home.parent) == before
