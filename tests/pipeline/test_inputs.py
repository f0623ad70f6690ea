"""The inputs of a scan: absolute paths, and nothing twice, however it is spelled."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from logtool.disk.files import text_of
from logtool.errors import RefusedError, UsageError
from logtool.findings import Finding
from logtool.log.selection import Selection
from logtool.spark.finding_row import finding_row
from logtool.spark.identity import place_of_dir
from logtool.spark.scan.scan import _inputs, check_output


@pytest.fixture
def home(scenario, tmp_path, monkeypatch) -> Path:
    """Return a log dir in the current directory."""
    target = tmp_path / "data"
    target.mkdir()
    for name in ("codec-none-0", "codec-none-1", "codec-zstd-0", "meta.properties"):
        source = scenario("4.3.1/clean") / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target / name)
    monkeypatch.chdir(tmp_path)
    return target


def seen(*texts: str, **chosen: Any) -> list[Path]:
    return _inputs([Path(text) for text in texts], Selection(**chosen)).paths


def test_paths_are_absolute(home, monkeypatch):
    assert seen("data", "nowhere") == [home, home.parent / "nowhere"]
    monkeypatch.chdir(home / "codec-none-0")
    assert seen(".") == [home / "codec-none-0"]
    assert seen("..") == [home]


def test_a_partition_dir_of_a_log_dir_that_is_given_comes_once(home):
    (home.parent / "link").symlink_to("data")
    assert seen("data/codec-none-0", "data", "link/codec-zstd-0") == [home]
    assert seen("link", "data/codec-none-0") == [home.parent / "link"]
    assert seen("data/codec-none-0", "data/codec-none-1") == [
        home / "codec-none-0", home / "codec-none-1",
    ]  # fmt: skip


def test_a_partition_dir_that_its_log_dir_leaves_out_is_looked_at(home):
    found = seen("data", "data/codec-none-0", "data/codec-zstd-0", topics=("codec-zstd",))
    assert found == [home, home / "codec-none-0"]


def test_facts_that_a_log_dir_does_not_have_come_from_the_directory(home):
    odd = home.parent / "codec-none-0.copy"
    shutil.copytree(home / "codec-none-0", odd)
    found = _inputs([home / "codec-none-0", odd], Selection())
    assert set(found.with_facts) == {home, home.parent, odd}
    assert found.log_dirs == {home, home.parent}


def test_a_file_is_no_input(home):
    with pytest.raises(UsageError, match=r"data/meta\.properties"):
        seen("data/meta.properties")


def test_a_finding_in_a_partition_dir_that_is_given_is_of_its_partition(home):
    inputs = _inputs([home / "codec-none-0"], Selection())
    for path in (home / "codec-none-0", home / "codec-none-0" / "x.log"):
        row = finding_row(Finding("log/torn-tail", "x", path=path), 0, inputs.log_dirs)
        assert (row["log_dir"], row["topic"], row["partition"]) == (str(home), "codec-none", 0)


def test_a_name_that_is_no_utf_8_is_escaped():
    path = Path("/data/caf\udce9")
    assert text_of(path) == r"/data/caf\xe9"
    row = finding_row(Finding("log/torn-tail", f"see {path}", path=path), 0, frozenset())
    assert (row["path"], row["message"]) == (r"/data/caf\xe9", r"see /data/caf\xe9")
    assert place_of_dir(path / "orders-0").log_dir == r"/data/caf\xe9"


@pytest.mark.parametrize("output", ["data", "data/tables", "data/codec-none-0/x", "link/tables"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_an_output_in_a_log_dir_is_refused(home, output, scheme):
    (home.parent / "link").symlink_to("data")
    text = f"{scheme}{home.parent / output}" if scheme else output
    with pytest.raises(RefusedError, match="log dir"):
        check_output(text, [])


def test_an_output_in_an_endless_link_or_a_closed_directory_is_not_our_bug(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    check_output(str(tmp_path / "loop" / "tables"), [])
