"""Output of a killed run: recognised by its name, replaced by the same command."""

import pytest
import tiny_segments
from changes import disk_full, failing, interrupt
from crash.commands_killed import JOBS, Command

from logtool.disk import unfinished


@pytest.fixture
def home(tmp_path):
    """Return a log dir with two sound partitions."""
    home = tmp_path / "data"
    for name in ("orders-0", "orders-1"):
        tiny_segments.write(home / name, [0])
    (home / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return home


def killed(run, output, home):
    """Let salvage stop after its first partition, as a kill does."""

    def stop():
        raise KeyboardInterrupt

    with failing(0, lambda: None) as calls:
        run("salvage", "--output", output.with_name("whole"), home)
    with failing(len(calls) * 2 // 3, stop):
        assert run("salvage", "--output", output, home).status == 130
    assert (output / "partitions" / "orders-0").exists()
    assert not (output / "partitions" / "orders-1").exists()


def test_verify_and_plan_name_an_unfinished_output_and_no_other(run, home, tmp_path):
    output = tmp_path / "out"
    killed(run, output, home)
    for path in (output / "partitions", output / "partitions" / "orders-0"):
        result = run("verify", "-f", "ndjson", path)
        codes = [one["code"] for one in result.of_type("finding") if one["severity"] != "info"]
        assert "data-dir/unfinished" in codes
        assert result.status == 1
    plan = run("plan", "-f", "ndjson", output / "partitions")
    assert [one["action"] for one in plan.of_type("action") if unfinished.WORK in one["path"]] == [
        "damaged"
    ]
    for path in (home, tmp_path / "whole" / "partitions"):
        found = run("verify", "-f", "ndjson", path).of_type("finding")
        assert "data-dir/unfinished" not in [one["code"] for one in found]


def test_the_same_command_ends_with_the_whole_output(run, home, tmp_path):
    output = tmp_path / "out"
    killed(run, output, home)
    done = run("salvage", "--output", output, home)
    assert done.status == 0
    names = [
        sorted(str(one.relative_to(path)) for one in path.rglob("*"))
        for path in (output, tmp_path / "whole")
    ]
    assert names[0] == names[1]
    assert not any(map(unfinished.is_unfinished, names[0]))
    assert (output / "manifest.ndjson").read_text().endswith('{"type": "end", "complete": true}\n')
    assert run("salvage", "--output", output, home).status == 5


def test_images_of_a_failing_disk_are_not_replaced(run, home, tmp_path):
    output = tmp_path / "out"
    killed(run, output, home)
    image = output / "rejects" / "orders-0" / "x.log.image"
    image.parent.mkdir(parents=True)
    image.write_bytes(b"precious")
    refused = run("salvage", "--output", output, home)
    assert refused.status == 5
    assert f"--retry {output}" in refused.stderr
    assert image.read_bytes() == b"precious"


def test_a_digest_is_not_held_up_by_a_killed_run(run, home, tmp_path):
    (tmp_path / "d.npz.tmp").write_bytes(b"of an older release")
    left = tmp_path / f".0123456789abcdef.{unfinished.WORK}"
    left.write_bytes(b"half")
    assert run("diff", "--digest", tmp_path / "d.npz", home).status == 0
    assert not left.exists()


@pytest.mark.kills
@pytest.mark.parametrize("records", ["ndjson", "parquet", "kcat"])
def test_a_full_disk_at_any_call_leaves_what_the_same_command_replaces(
    run, home, tmp_path, monkeypatch, records
):
    command = ("salvage", "--records", records, "--output")
    with failing(0, lambda: None) as calls:
        assert run(*command, tmp_path / "whole", home).status == 0
    for moment in range(1, len(calls), 7):
        output = tmp_path / f"out-{moment}"
        with failing(moment, disk_full):
            status = run(*command, output, home).status
        assert status in (0, 4)  # 0 if only the removal of a temporary name failed.
        manifest = output / "manifest.ndjson"
        if status:
            assert not manifest.exists() or b'"complete": true' in manifest.read_bytes()
            assert run(*command, output, home).status == 0
        assert b'"complete": true' in manifest.read_bytes()


def test_verify_plan_and_doctor_name_a_change_that_is_not_finished(run, scenario, tmp_path):
    command = Command(JOBS["recover"], scenario("4.3.1/killed"), tmp_path)
    late = command.late_call()
    command.begin()
    with failing(late, interrupt):
        command.run()
    (place,) = command.undo_dirs()
    undo = f"logtool undo --apply {place}"
    (found,) = [one for one in run("verify", "-f", "ndjson", command.log_dir).of_type("finding")
                if one["code"] == "data-dir/unfinished-change"]  # fmt: skip
    assert (found["path"], found["severity"], found["next"]) == (str(place), "error", undo)
    actions = run("plan", "-f", "ndjson", command.log_dir).of_type("action")
    assert [one["action"] for one in actions if one["path"] == str(place)] == ["damaged"]
    (following,) = run("doctor", "-f", "ndjson", command.log_dir).of_type("next")
    assert following["command"] == undo
    place.chmod(0o770)  # Another user could have written the command.
    untrusted = run("verify", "-f", "ndjson", command.log_dir).of_type("finding")
    assert "data-dir/unfinished-change" not in [one["code"] for one in untrusted]
    place.chmod(0o700)
    assert run("undo", "--apply", place).status == 0
    after = run("verify", "-f", "ndjson", command.log_dir).of_type("finding")
    assert "data-dir/unfinished-change" not in [one["code"] for one in after]
