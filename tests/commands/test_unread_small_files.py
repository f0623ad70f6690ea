"""A small file of a log dir that cannot be read: one line, status 4, and all else is done."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import without_rights

from logtool.disk import files

OFFSETS = (
    "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
    "log-start-offset-checkpoint", "cleaner-offset-checkpoint",
)  # fmt: skip
ROOT = (*OFFSETS, "meta.properties")
OF_PARTITION = ("orders-0/leader-epoch-checkpoint", "orders-0/partition.metadata")
ALL = (*ROOT, *OF_PARTITION)
DECIDE = {
    "recover": (*OFFSETS[:3], "meta.properties"),
    "rebuild-index": ("log-start-offset-checkpoint", "meta.properties"),
}
"""The files without which a command does not know what it would write."""


@pytest.fixture
def home(partition: Path) -> Path:
    """Return a log dir of two partitions, with all its small files."""
    path = partition.parent
    other = path / "payments-0"
    shutil.copytree(partition, other)
    (other / "partition.metadata").write_text("version: 0\ntopic_id: K8aAPcfLQt2bqs1JT_rMgQ")
    for name in OFFSETS:
        (path / name).write_text("0\n2\norders 0 0\npayments 0 0\n")
    cluster = "version=1\nnode.id=1\ncluster.id=J8aAPcfLQt2bqs1JT_rMgQ\n"
    (path / "meta.properties").write_text(cluster)
    return path


def to_itself(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink()
    path.symlink_to(path.name)


def to_nothing(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink()
    path.symlink_to(path.with_name("not-there"))


def failing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk fail where the file is read."""
    read, pread, preadv = os.read, os.pread, os.preadv
    inode = path.stat().st_ino

    def check(fd: int) -> None:
        if os.fstat(fd).st_ino == inode:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def reads_on(fd: int, *more: Any) -> Any:
        check(fd)
        return read(fd, *more)

    def reads(fd: int, *more: Any) -> Any:
        check(fd)
        return pread(fd, *more)

    def reads_into(fd: int, *more: Any) -> Any:
        check(fd)
        return preadv(fd, *more)

    monkeypatch.setattr(files.os, "read", reads_on)
    monkeypatch.setattr(files.os, "pread", reads)
    monkeypatch.setattr(files.os, "preadv", reads_into)


WAYS = {"a link to itself": to_itself, "a link to nothing": to_nothing, "a failing disk": failing}


@pytest.fixture(params=WAYS)
def spoil(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, home: Path
) -> Iterator[Callable[[str], None]]:
    """Return a function that makes a file of the log dir unreadable."""
    yield lambda name: WAYS[request.param](home / name, monkeypatch)
    monkeypatch.undo()


def assert_reported_once(result: Any, path: Path) -> None:
    assert result.status == 4, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith(f"logtool: {path}: ")]
    assert len(lines) == 1, result.stderr


def assert_incomplete(result: Any) -> None:
    last = result.stderr.splitlines()[-1]
    assert last.startswith("incomplete, 1 input "), last


@pytest.mark.parametrize("name", ROOT)
@pytest.mark.parametrize("command", ["plan", "recover", "gaps", "watermark", "rebuild-index"])
def test_what_a_log_dir_says_costs_no_partition(run, home, spoil, command, name):
    (home / "payments-0" / f"{0:020d}.index").unlink()
    spoil(name)
    result = run(command, "-f", "ndjson", home)
    assert_reported_once(result, home / name)
    assert_incomplete(result)
    assert result.objects[-1]["complete"] is False
    assert result.objects[-1]["partitions"] == 2
    assert "payments-0" in result.stdout


@pytest.mark.parametrize("name", OF_PARTITION)
@pytest.mark.parametrize("command", ["plan", "recover", "watermark"])
def test_what_a_partition_says_costs_that_partition_alone(run, home, spoil, command, name):
    spoil(name)
    result = run(command, "-f", "ndjson", home)
    assert_reported_once(result, home / name)
    assert_incomplete(result)
    assert result.objects[-1]["partitions"] == 1
    assert "payments-0" in result.stdout


@pytest.mark.parametrize("path", ["", "orders-0", f"orders-0/{0:020d}.log"])
def test_gaps_without_leader_epochs_are_listed_and_incomplete(run, home, spoil, path):
    spoil("orders-0/leader-epoch-checkpoint")
    result = run("gaps", "-f", "ndjson", home / path)
    assert_reported_once(result, home / "orders-0" / "leader-epoch-checkpoint")
    assert result.objects[-1]["partitions"] == (1 if path else 2)


def test_gaps_without_an_index_that_gives_a_reason_are_listed_and_incomplete(
    run: Callable[..., Any], home: Path, spoil: Callable[[str], None], make_batch: Any
) -> None:
    index = home / "orders-0" / f"{0:020d}.index"
    log = home / "payments-0" / f"{0:020d}.log"
    (home / "orders-0" / f"{20:020d}.log").write_bytes(log.read_bytes()[:0])
    spoil(str(index.relative_to(home)))
    result = run("gaps", "-f", "ndjson", home)
    assert_reported_once(result, index)
    assert result.of_type("gap")
    assert result.objects[-1]["partitions"] == 2


def test_checkpoint_show_prints_the_offsets_of_the_files_that_it_can_read(run, home, spoil):
    rows = "0\n2\norders 0 3\npayments 0 6\n"
    (home / "replication-offset-checkpoint").write_text(rows)
    spoil("recovery-point-offset-checkpoint")
    result = run("checkpoint", "show", "-f", "ndjson", home)
    assert_reported_once(result, home / "recovery-point-offset-checkpoint")
    shown = [(o["recovery_point"], o["high_watermark"]) for o in result.of_type("partition")]
    assert shown == [(None, 3), (None, 6)]


@pytest.mark.parametrize("name", OFFSETS)
def test_checkpoint_rebuild_does_not_calm_about_what_it_did_not_read(run, home, spoil, name):
    spoil(name)
    result = run("checkpoint", "rebuild", home)
    assert_reported_once(result, home / name)
    assert_incomplete(result)


@pytest.mark.parametrize("command", DECIDE)
@pytest.mark.parametrize("name", ROOT)
def test_nothing_is_written_where_what_decides_could_not_be_read(run, home, spoil, command, name):
    (home / "payments-0" / f"{0:020d}.index").unlink()
    spoil(name)
    before = sorted((path, path.lstat().st_mtime_ns) for path in home.glob("*/*"))
    result = run(command, "--apply", home)
    after = sorted((path, path.lstat().st_mtime_ns) for path in home.glob("*/*"))
    assert f"logtool: {home / name}: " in result.stderr
    if name not in DECIDE[command]:
        assert result.status == 4, result.stderr
        assert (home / "payments-0" / f"{0:020d}.index").exists()
        return
    assert (result.status, after) == (5, before), result.stderr
    assert result.stderr.count(name) > 1, "the refusal names the file too"
    assert not list(home.parent.glob("*undo*"))


@pytest.mark.parametrize("options", [[], ["--mark-clean"]])
def test_a_dry_run_says_that_apply_would_refuse(run, home, spoil, options):
    spoil("recovery-point-offset-checkpoint")
    result = run("recover", *options, home)
    assert result.status == (5 if options else 4)
    assert ("clean" if options else "refuse") in result.stderr
    changed = [line for line in result.lines if "recovery-point-offset-checkpoint" in line]
    assert not changed


@pytest.mark.parametrize("name", ROOT)
def test_diff_compares_what_it_can(run, home, spoil, name, tmp_path):
    shutil.copytree(home, tmp_path / "other")
    spoil(name)
    result = run("diff", "-f", "ndjson", home, tmp_path / "other")
    if name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        assert result.status in (0, 4)
    else:
        assert_reported_once(result, home / name)
    assert "payments-0" in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("command", ["plan", "recover", "rebuild-index"])
@pytest.mark.parametrize("name", ROOT)
def test_what_the_caller_may_not_read_costs_no_partition(home, tmp_path, command, name):
    there = tmp_path / "unreadable"
    shutil.copytree(home, there)
    (there / name).chmod(0)
    status, out, said = without_rights(command, "-f", "ndjson", there)
    assert status == 4, said
    assert f"logtool: {there / name}: Permission denied" in said.splitlines()
    assert json.loads(out.splitlines()[-1])["partitions"] == 2


def test_a_log_dir_that_no_broker_starts_with_is_not_calm(copy_of, run):
    home = copy_of("4.3.1/killed")
    path = home / "replication-offset-checkpoint"
    path.unlink()
    path.mkdir()
    result = run("watermark", home)
    assert result.status == 1
    assert f"{path}: " in result.stderr
    assert "no broker" in result.stderr
