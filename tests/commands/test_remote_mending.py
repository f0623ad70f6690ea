"""Local logs of tiered partitions that lack leader epochs or segments which remote storage has."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import aiven_objects
import pytest

EPOCHS = "leader-epoch-checkpoint"
CODE = "leader-epoch/missing-remote"
WHOLE = "0\n2\n0 0\n2 6\n"
"""leader-epoch-checkpoint of each partition."""
LOCAL = "0\n1\n2 9\n"
"""The file that a recovery writes from the local segment of `aged`."""


@pytest.fixture
def tiers(copy_of) -> Path:
    """Return a folder with `data` and `objects`; `aged` has the local segment 9 alone, and
    `kept` has all segments in both places, but the last one.
    """
    return copy_of("tiered/4.3.1")


def lose_epochs(tiers: Path, content: str | None, *, clean: bool = True) -> Path:
    """Remove leader-epoch-checkpoint of aged-0, or replace its content; return the file."""
    file = tiers / "data" / "aged-0" / EPOCHS
    assert file.read_text() == WHOLE
    file.unlink()
    if content is not None:
        file.write_text(content)
    if not clean:
        (tiers / "data" / ".kafka_cleanshutdown").unlink()
    return file


def lose_segment(tiers: Path, base: int, *kinds: str) -> list[Path]:
    """Remove files of a segment of kept-0; return them."""
    kept = tiers / "data" / "kept-0"
    gone = [kept / f"{base:020d}.{kind}" for kind in kinds or ("log", "index", "timeindex")]
    for path in gone:
        path.unlink()
    return gone


def codes(run, command, *words):
    found = run(*command.split(), "-f", "ndjson", *words).of_type("finding")
    return {(one["code"], one["topic"], one["partition"]) for one in found
            if one["severity"] != "info"}  # fmt: skip


def lost(run, home):
    actions = run("plan", "-f", "ndjson", home).of_type("action")
    return {(one["topic"], one["partition"]) for one in actions if one["action"] == "lost"}


def named_next(run, home):
    """Return the commands that `doctor` names to run next."""
    return [one["command"] for one in run("doctor", "-f", "ndjson", home).of_type("next")]


def restore(run, tiers, *words, objects=None):
    return run("remote", "restore", "--output", tiers / "back", "-f", "ndjson", *words,
               objects or tiers / "objects", tiers / "data")  # fmt: skip


def carry_out(result):
    """Carry out the commands that were printed to put files in place."""
    for line in result.stderr.splitlines():
        if line.startswith(("  mv ", "  cp ")):
            subprocess.run(["sh", "-c", line], check=True)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "killed"])
@pytest.mark.parametrize("content", [None, "0\n0\n", LOCAL], ids=["gone", "no row", "local"])
def test_missing_epochs_of_remote_segments_are_an_error(run, tiers, content, clean):
    lose_epochs(tiers, content, clean=clean)
    data = tiers / "data"
    expected = (CODE, "aged", 0)
    for command in ("verify", "verify --level quick", "doctor"):
        of_aged = {one for one in codes(run, command, data) if one[1] == "aged"}
        assert of_aged == {expected}
    assert expected in codes(run, "remote lineage", data)
    assert lost(run, data) == {("aged", 0)}
    assert run("plan", data).status == 1
    (finding,) = [one for one in run("verify", "-f", "ndjson", data).of_type("finding")
                  if one["code"] == CODE]  # fmt: skip
    assert (finding["first_offset"], finding["last_offset"]) == (0, 8)
    assert (finding["severity"], finding["remedy"]) == ("error", "remote")


@pytest.mark.parametrize(
    ("content", "row"), [(WHOLE, 0), ("0\n1\n2 7\n", 7), (None, 9)],
    ids=["whole", "moved", "all is local"],
)  # fmt: skip
def test_epochs_that_suffice_are_no_error(run, tiers, content, row):
    lose_epochs(tiers, content)
    starts = tiers / "data" / "log-start-offset-checkpoint"
    lines = [f"aged 0 {row}" if one.startswith("aged 0 ") else one
             for one in starts.read_text().splitlines()]  # fmt: skip
    starts.write_text("\n".join(lines) + "\n")
    assert CODE not in {one for one, *_ in codes(run, "verify", tiers / "data")}
    assert lost(run, tiers / "data") == set()


def test_a_killed_broker_may_have_moved_the_first_row(run, tiers):
    """The row of the log start is written later than the leader epochs."""
    lose_epochs(tiers, "0\n1\n2 7\n", clean=False)
    assert CODE not in {one for one, *_ in codes(run, "verify", tiers / "data")}
    assert lost(run, tiers / "data") == set()


def test_without_the_rows_of_the_log_start_a_first_row_may_be_right(run, tiers):
    lose_epochs(tiers, LOCAL)
    (tiers / "data" / "log-start-offset-checkpoint").unlink()
    assert ("leader-epoch/missing-remote", "aged", 0) not in codes(run, "verify", tiers / "data")


def test_doctor_names_the_commands(run, tiers):
    lose_epochs(tiers, None)
    result = run("doctor", "-f", "ndjson", tiers / "data")
    commands = {one["command"] for one in result.of_type("remedy") if one["remedy"] == "remote"}
    assert commands == {f"logtool remote restore --output restored PREFIX {tiers / 'data'}"}
    named = named_next(run, tiers / "data")
    assert f"logtool remote lineage {tiers / 'data'}" in named


def test_doctor_names_the_lineage_for_a_missing_segment_of_a_tiered_topic_alone(run, tiers):
    lose_segment(tiers, 3)
    named = named_next(run, tiers / "data")
    assert f"logtool remote lineage {tiers / 'data'}" in named


def test_doctor_does_not_name_the_lineage_if_no_tiered_topic_is_concerned(run, tiers):
    (tiers / "data" / "plain-0" / EPOCHS).unlink()
    named = named_next(run, tiers / "data")
    assert not [one for one in named if "remote" in one]


def test_recover_and_checkpoint_rebuild_write_no_local_epochs(run, tiers):
    file = lose_epochs(tiers, None, clean=False)
    data = tiers / "data"
    assert run("recover", "--full", "--apply", data / "aged-0").status == 5
    assert run("checkpoint", "rebuild", "--apply", data).status == 1
    assert not file.exists()
    assert run("recover", "--full", "--apply", "--accept-loss", "aged-0", data).status in (0, 1)
    assert file.exists()


@pytest.mark.parametrize("metadata", [True, False], ids=["metadata log", "without"])
def test_checkpoint_rebuild_keeps_the_epochs_of_remote_segments(run, tiers, metadata):
    files = [tiers / "data" / name / EPOCHS for name in ("aged-0", "aged-1", "sized-0")]
    before = [file.read_bytes() for file in files]
    if not metadata:
        shutil.rmtree(tiers / "data" / "__cluster_metadata-0")
    assert run("checkpoint", "rebuild", "--apply", tiers / "data").status == 0
    assert [file.read_bytes() for file in files] == before


@pytest.mark.parametrize("content", [None, LOCAL], ids=["gone", "local"])
def test_restore_writes_the_whole_epochs(run, tiers, content):
    file = lose_epochs(tiers, content)
    result = restore(run, tiers)
    (found,) = result.of_type("mended-partition")
    assert result.status == 0
    assert (found["topic"], found["partition"], found["files"]) == ("aged", 0, [EPOCHS])
    assert found["leader_epochs"] == [[0, 0], [2, 6]]
    assert found["replaces"] == (str(file) if content else None)
    carry_out(result)
    assert file.read_text() == WHOLE
    assert lost(run, tiers / "data") == set()


def test_restore_reads_the_epochs_of_objects_of_aiven(run, tiers):
    lose_epochs(tiers, None)
    bucket = aiven_objects.write(tiers / "objects", tiers / "bucket", "aged")
    (found,) = restore(run, tiers, objects=bucket).of_type("mended-partition")
    assert Path(found["path"], EPOCHS).read_text() == WHOLE


def test_restore_takes_the_epochs_of_the_records_if_no_object_has_them(run, tiers):
    lose_epochs(tiers, None)
    for path in tiers.glob("objects/aged-0-*/*.leader_epoch_checkpoint"):
        path.unlink()
    (found,) = restore(run, tiers).of_type("mended-partition")
    assert Path(found["path"], EPOCHS).read_text() == WHOLE


def test_restore_writes_no_epochs_that_local_batches_contradict(run, tiers):
    lose_epochs(tiers, None)
    for path in tiers.glob("objects/aged-0-*/*.leader_epoch_checkpoint"):
        path.write_text("0\n3\n0 0\n2 6\n3 9\n")
    result = restore(run, tiers)
    assert (result.of_type("mended-partition"), result.status) == ([], 4)
    assert not list((tiers / "back").rglob(EPOCHS))


def places(run, home, topic):
    found = run("remote", "lineage", "-f", "ndjson", "--topic", topic, home)
    return {(one["first_offset"], one["last_offset"]): one["place"]
            for one in found.of_type("range")}, found  # fmt: skip


def test_a_local_hole_hides_offsets_that_remote_storage_has(run, tiers):
    gone = lose_segment(tiers, 3)
    before, result = places(run, tiers / "data", "kept")
    assert before[3, 3] == "hidden"
    assert result.status == 1
    assert [one["code"] for one in result.of_type("finding")] == ["remote/hidden"]
    restored = restore(run, tiers)
    (found,) = restored.of_type("mended-partition")
    assert (found["segments"], found["leader_epochs"]) == ([[3, 3]], [])
    assert sorted(found["files"]) == sorted(path.name for path in gone)
    carry_out(restored)
    after, result = places(run, tiers / "data", "kept")
    assert ("hidden" in after.values(), result.status) == (False, 0)
    assert ("segment/hole", "kept", 0) not in codes(run, "verify", tiers / "data")


def test_restore_takes_no_log_without_its_indexes(run, tiers):
    lose_segment(tiers, 3)
    for path in tiers.glob(f"objects/kept-0-*/{3:020d}-*.index"):
        path.unlink()
    result = restore(run, tiers)
    assert (result.of_type("mended-partition"), result.status) == ([], 4)


def test_objects_that_a_local_segment_has_can_be_put_back(run, tiers):
    (log,) = tiers.glob(f"objects/kept-0-*/{3:020d}-*.log")
    (index,) = tiers.glob(f"objects/kept-0-*/{3:020d}-*.index")
    contents = {path: path.read_bytes() for path in (log, index)}
    for path in contents:
        path.unlink()
    given = ("--rsm", "local", "--topic", "kept", tiers / "objects", tiers / "data")
    (finding,) = run("remote", "verify", "-f", "ndjson", *given).of_type("finding")
    assert (finding["topic"], finding["partition"]) == ("kept", 0)
    assert (finding["first_offset"], finding["last_offset"]) == (3, 3)
    # It begins with the command that checks the bytes of the local segment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(["sh", "-c", finding["next"]], check=True, env={**os.environ, "PATH": path})
    assert {path: path.read_bytes() for path in contents} == contents


@pytest.mark.parametrize("topic", ["aged", "kept"])
def test_objects_that_no_local_segment_has_are_lost(run, tiers, topic):
    (log,) = tiers.glob(f"objects/{topic}-0-*/{3:020d}-*.log")
    log.unlink()
    if topic == "kept":
        lose_segment(tiers, 3)
    given = ("--rsm", "local", "--topic", topic, "--partition", "0", tiers / "objects",
             tiers / "data")  # fmt: skip
    (finding,) = run("remote", "verify", "-f", "ndjson", *given).of_type("finding")
    assert (finding["code"], finding["next"]) == ("remote/missing-object", None)
    assert "lost" in finding["message"]


def test_plan_names_the_commands(run, tiers):
    lose_epochs(tiers, None)
    lose_segment(tiers, 3)
    commands = run("plan", "-f", "ndjson", tiers / "data").of_type("summary")[0]["next"]
    for command in ("restore --output restored PREFIX", "lineage"):
        assert f"logtool remote {command} {tiers / 'data'}" in commands
