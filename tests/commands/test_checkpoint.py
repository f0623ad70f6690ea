"""``logtool checkpoint``: its output, its changes with --apply, and its refusals."""

import shutil
import subprocess

import pytest
from answers import last_line, numbers, undo_dirs
from changes import everything
from processes import locked_by_a_process
from verification import fingerprint, set_offsets, small_log_dir

RECOVERY = "recovery-point-offset-checkpoint"
WATERMARK = "replication-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"
SUBCOMMANDS = ("show", "lint", "rebuild", "set")


@pytest.fixture
def home(scenario, tmp_path):
    """Return a log dir of two partitions, stopped cleanly: codec-zstd ends at offset 360."""
    names = ("codec-zstd-0", "mixed_codecs-0", "deleted-records.mid-0")
    return small_log_dir(scenario("4.3.1/clean"), tmp_path / "parent" / "data", *names)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_a_help_page(run, name):
    text = run("checkpoint", name, "--help").stdout
    assert text.startswith(f"Usage: logtool checkpoint {name} ")
    assert f"  Examples:\n    logtool checkpoint {name}" in text
    assert "  Exit status:\n    0  " in text


def test_the_group_lists_its_commands(run):
    text = run("checkpoint", "--help").stdout
    assert all(f"\n  {name} " in text for name in SUBCOMMANDS)
    assert "\n  checkpoint " in run("--help").stdout
    assert run("checkpoint").status == 2


def test_show_has_a_column_for_each_checkpoint(run, home):
    lines = run("checkpoint", "show", home).lines
    assert lines[0].split() == [
        "topic", "partition", "directory", "recovery_point", "high_watermark", "log_start_offset",
        "cleaner_offset", "leader_epoch", "epoch_start_offset",
    ]  # fmt: skip
    assert [line.split() for line in lines[2:]] == [
        ["codec-zstd", "0", "codec-zstd-0", "360", "360", "2", "300"],
        ["deleted-records.mid", "0", "deleted-records.mid-0", "300", "300", "77", "2", "300"],
        ["mixed_codecs", "0", "mixed_codecs-0", "500", "500", "2", "500"],
    ]


def test_show_has_rows_of_deleted_partitions_and_selects(run, home):
    set_offsets(home / WATERMARK, {("gone", 4): 5, ("other", 0): 1})
    found = run("checkpoint", "show", "-f", "ndjson", "--topic", "g*", home).of_type("partition")
    assert [(o["topic"], o["directory"], o["high_watermark"]) for o in found] == [("gone", None, 5)]


def test_show_of_a_partition_prints_its_epochs(run, home):
    for path in (home / "mixed_codecs-0", home / "mixed_codecs-0" / EPOCHS):
        rows = run("checkpoint", "show", "-f", "csv", path).rows
        keys = ("leader_epoch", "start_offset", "end_offset")
        assert [[row[key] for key in keys] for row in rows] == [["0", "0", "500"], ["2", "500", ""]]


def test_show_names_the_line_that_a_broker_cannot_read(run, home):
    (home / WATERMARK).write_bytes(b"0\n2\ncodec-zstd 0 360\nmixed_codecs zero 1\n")
    result = run("checkpoint", "show", home)
    assert result.status == 1
    assert f"{home / WATERMARK}: " in result.stderr
    assert "line 4" in result.stderr
    assert "codec-zstd" in result.stdout


def test_show_of_nothing_is_incomplete(run, home):
    assert run("checkpoint", "show", home / "missing").status == 4
    (home / "mixed_codecs-0" / EPOCHS).unlink()
    assert run("checkpoint", "show", home / "mixed_codecs-0").status == 4
    assert run("checkpoint", "show", home / "meta.properties").status == 2


def test_lint_has_the_findings_of_verify_in_the_small_files(run, home):
    assert run("checkpoint", "lint", home).status == 0
    set_offsets(home / WATERMARK, {("codec-zstd", 0): 9360})
    log = next((home / "mixed_codecs-0").glob("*.index"))
    log.write_bytes(log.read_bytes() + b"rot")
    result = run("checkpoint", "lint", "-f", "ndjson", home)
    assert result.status == 1
    (finding,) = result.of_type("finding")
    assert finding["code"] == "checkpoint/high-watermark-beyond-end"
    whole = run("verify", "-f", "ndjson", home).of_type("finding")
    assert {**finding, "schema": None} in [{**one, "schema": None} for one in whole]
    assert len(whole) > 1
    assert result.of_type("summary")[0]["codes"] == {finding["code"]: 1}
    assert run("checkpoint", "lint", "--fail-on", "error", home).status == 1


def test_a_sound_log_dir_needs_no_change(run, home):
    before = fingerprint(home)
    result = run("checkpoint", "rebuild", home)
    assert (result.status, result.stdout) == (0, "")
    assert run("checkpoint", "rebuild", home, "--apply").status == 0
    assert fingerprint(home) == before
    assert undo_dirs(home) == []


def test_rebuild_shows_a_difference_that_patch_takes(run, home, tmp_path):
    before, sound = fingerprint(home), (home / WATERMARK).read_bytes()
    set_offsets(home / WATERMARK, {("codec-zstd", 0): 9360, ("gone", 4): 5})
    damaged = fingerprint(home)
    result = run("checkpoint", "rebuild", home)
    assert fingerprint(home) == damaged != before
    assert result.status == 1
    path = home / WATERMARK
    assert result.lines[:2] == [f"--- {path}", f"+++ {path}"]
    assert {"-codec-zstd 0 9360", "+codec-zstd 0 360", "-gone 4 5", "-4", "+3"} <= set(result.lines)
    (line,) = (one for one in result.stderr.splitlines() if f"{path}: codec-zstd-0: " in one)
    assert numbers(line) == [9360, 360, 0, 360]
    assert numbers(last_line(result)) == [1]
    assert "--apply" in last_line(result)
    if shutil.which("patch"):
        copy = tmp_path / "copy"
        shutil.copy(path, copy)
        subprocess.run(["patch", "-s", copy], input=result.stdout.encode(), check=True)
        assert copy.read_bytes() == sound


def test_rebuild_applied_writes_the_bytes_of_kafka_and_can_be_undone(run, home):
    sound = (home / WATERMARK).read_bytes()
    set_offsets(home / WATERMARK, {("codec-zstd", 0): 9360})
    (home / "mixed_codecs-0" / EPOCHS).write_bytes(b"0\n1\n9 400\n")
    (home / "codec-zstd-0" / EPOCHS).unlink()
    damaged = everything(home)
    result = run("checkpoint", "rebuild", home, "--apply")
    assert result.status == 0
    assert (home / WATERMARK).read_bytes() == sound
    # Its empty epoch 2 at the end was nowhere else.
    assert (home / "mixed_codecs-0" / EPOCHS).read_bytes() == b"0\n1\n0 0\n"
    (undo_dir,) = undo_dirs(home)
    assert numbers(last_line(result))[0] == 3
    assert f"logtool undo --apply {undo_dir}" in result.stderr
    assert run("checkpoint", "rebuild", home).status == 0
    assert run("undo", "--apply", undo_dir).status == 0
    assert everything(home) == damaged


def test_rebuild_as_json_is_a_document_of_actions(run, home):
    set_offsets(home / RECOVERY, {("codec-zstd", 0): 9360})
    (action,) = run("checkpoint", "rebuild", "--json", home).items
    assert (action["type"], action["action"]) == ("action", "replace")
    assert action["path"] == str(home / RECOVERY)
    done = run("checkpoint", "rebuild", "-f", "ndjson", "--apply", home)
    assert [obj["type"] for obj in done.objects] == ["action", "undo", "summary"]
    assert [obj["path"] for obj in done.of_type("undo")] == [str(p) for p in undo_dirs(home)]


def test_rebuild_writes_nothing_if_a_log_could_not_be_read(run, home):
    set_offsets(home / WATERMARK, {("codec-zstd", 0): 9360})
    log = next((home / "mixed_codecs-0").glob("*.log"))
    log.rename(home.parent / "elsewhere.log")
    log.symlink_to(home.parent / "elsewhere.log")
    before = fingerprint(home)
    result = run("checkpoint", "rebuild", home, "--apply")
    assert result.status == 4
    assert numbers(last_line(result)) == [1, 1]
    assert fingerprint(home) == before
    assert undo_dirs(home) == []


def test_the_lock_of_a_broker_is_respected(run, home):
    set_offsets(home / WATERMARK, {("codec-zstd", 0): 9360})
    with locked_by_a_process(home / ".lock") as pid:
        before = fingerprint(home)
        result = run("checkpoint", "rebuild", home, "--apply")
        assert (result.status, result.stdout) == (5, "")
        assert f"(pid {pid})" in result.stderr
        assert run("checkpoint", "rebuild", home).status == 1
        assert fingerprint(home) == before


def test_set_shows_and_then_writes_one_row(run, home, tmp_path):
    path = home / RECOVERY
    result = run("checkpoint", "set", path, "codec-zstd-0", "300")
    assert result.status == 1
    assert {"-codec-zstd 0 360", "+codec-zstd 0 300"} <= set(result.lines)
    assert path.read_bytes().count(b"codec-zstd 0 360\n") == 1
    undo_dir = tmp_path / "undo"
    result = run(
        "checkpoint", "set", path, "codec-zstd-0", "300", "--apply", "--undo-dir", undo_dir
    )
    assert result.status == 0
    assert path.read_bytes().count(b"codec-zstd 0 300\n") == 1
    assert (undo_dir / "journal.ndjson").exists()
    assert run("checkpoint", "set", path, "codec-zstd-0", "300").status == 0


def test_without_a_recovery_point_the_marker_has_to_go_too(run, home):
    marker = home / ".kafka_cleanshutdown"
    result = run("checkpoint", "set", home / RECOVERY, "codec-zstd-0", "--delete")
    assert result.status == 1
    assert str(marker) in result.stderr
    done = run("checkpoint", "set", marker, "--delete", "--apply")
    assert done.status == 0
    assert done.lines[1] == "+++ /dev/null"
    assert done.lines[-1].startswith("\\ ")  # the file does not end with a newline
    assert not marker.exists()
    result = run("checkpoint", "set", home / RECOVERY, "--delete", "--apply")
    assert result.status == 0
    assert str(marker) not in result.stderr
    assert not (home / RECOVERY).exists()


def test_set_of_an_epoch_has_its_undo_directory_next_to_the_log_dir(run, home):
    path = home / "codec-zstd-0" / EPOCHS
    assert run("checkpoint", "set", path, "1", "200", "--apply").status == 0
    assert path.read_bytes() == b"0\n3\n0 0\n1 200\n2 300\n"
    assert len(undo_dirs(home)) == 1


def test_a_new_file_is_compared_with_nothing(run, home):
    (home / RECOVERY).unlink()
    result = run("checkpoint", "set", home / RECOVERY, "a-0", "1")
    assert result.lines[:2] == ["--- /dev/null", f"+++ {home / RECOVERY}"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["a-0"], ["a-0", "1", "--delete"], ["a-0", "x"], ["a", "1"], ["gone", "--delete"]],
)
def test_a_row_that_makes_no_sense_is_wrong_usage(run, home, arguments):
    result = run("checkpoint", "set", home / RECOVERY, *arguments)
    assert (result.status, result.stdout) == (2, "")
    assert "'logtool checkpoint set --help'" in last_line(result)


@pytest.mark.parametrize("words", [["a-0"], []])
def test_a_second_removal_is_no_error(run, home, words):
    """Run the same command again, such as after a kill at the end of the first run."""
    command = ["checkpoint", "set", home / RECOVERY, *words, "--delete", "--apply"]
    assert run(*command).status == 0
    after = everything(home)
    result = run(*command)
    assert (result.status, result.stdout) == (0, "")
    assert everything(home) == after
    assert run(*command[:-1]).status == 0


def test_a_file_a_broker_cannot_read_is_not_set(run, home):
    (home / RECOVERY).write_bytes(b"0\n9\n")
    result = run("checkpoint", "set", home / RECOVERY, "a-0", "1")
    assert result.status == 5
    assert "logtool checkpoint rebuild" in result.stderr


def test_a_difference_is_fit_for_a_terminal(run, home):
    (home / RECOVERY).write_bytes(b"0\n1\n\x1b[31mred 0 1\n")
    result = run("checkpoint", "rebuild", home / RECOVERY)
    assert "\x1b" not in result.stdout
    assert "-\\x1b[31mred 0 1" in result.lines
