"""Bare passes read every byte, and pairs run in turns."""

import subprocess
from pathlib import Path

import pytest
from bench import rows
from bench.bare import pass_over, passes_at_once
from bench.generate import KIB, MIB, Spec
from bench.measure import pairs, peak_memory
from bench.rows import Bench
from crc32c import crc32c


@pytest.mark.parametrize("size", [0, 1, 3 * MIB + 7])
def test_a_bare_pass_checks_every_byte(size: int, tmp_path: Path) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    path = tmp_path / "a.log"
    path.write_bytes(data)
    assert pass_over(path) == pass_over(path, 1000) == crc32c(data)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_passes_at_once_read_all_files_to_their_ends(threads: int, tmp_path: Path) -> None:
    for name, size in (("a", 0), ("b", 1), ("c", MIB + 5)):
        (tmp_path / name).write_bytes(bytes(size))
    passes_at_once(sorted(tmp_path.iterdir()), threads)
    with pytest.raises(FileNotFoundError):
        passes_at_once([tmp_path / "gone"], threads)


def test_two_jobs_run_in_turns_with_something_before_each_run() -> None:
    done: list[str] = []
    timing = pairs(
        lambda: done.append("ours"), lambda: done.append("theirs"), 2,
        before=lambda: done.append("before"),
    )  # fmt: skip
    turn = ["before", "ours", "before", "theirs"]
    assert done == ["ours", "theirs", *turn, *turn]
    assert len(timing.ours) == len(timing.theirs) == 2


@pytest.mark.parametrize("drop", [False, True])
def test_logs_are_put_out_of_the_page_cache_where_that_is_wanted(
    drop: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgotten: list[Path] = []
    monkeypatch.setattr(
        rows.LogFile, "forget", lambda self, first, size: forgotten.append(self.path)
    )
    bench = Bench(tmp_path, quick=True, drop_cache=drop)
    log = bench.log(Spec(KIB, 64 * KIB))
    forgotten.clear()
    bench.pairs(lambda: None, lambda: None)
    assert forgotten == ([log] * 4 if drop else [])


def test_the_memory_of_a_command_is_only_reported_where_it_ended_as_it_should() -> None:
    assert peak_memory(["sh", "-c", "exit 1"], (0, 1)) > 0
    with pytest.raises(subprocess.CalledProcessError):
        peak_memory(["sh", "-c", "exit 1"])
