"""A log that ends below its high watermark has lost its end, or was only copied."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from verification import logs, numbers_in, set_offsets, verify

from logtool.node import lost_end
from logtool.verify import Level

WATERMARKS, MARKER = "replication-offset-checkpoint", ".kafka_cleanshutdown"
GONE, AHEAD = "checkpoint/high-watermark-beyond-end", "checkpoint/high-watermark-ahead"
SECOND = 10**9


@pytest.fixture
def home(copy_of: Callable[[str], Path]) -> Path:
    """Return a killed log dir: a log that ends at 360, and its high watermark, younger, of 400."""
    path = copy_of("4.3.1/killed")
    set_offsets(path / WATERMARKS, {("codec-none", 0): 400})
    written(path / WATERMARKS, written(log_of(path)) + 4 * SECOND)
    written(path / "meta.properties", written(log_of(path)) - 9 * SECOND)
    written(path / "codec-none-0" / "partition.metadata", written(log_of(path)) - 8 * SECOND)
    return path


def log_of(home: Path) -> Path:
    return logs(home / "codec-none-0")[-1]


def written(path: Path, time_ns: int | None = None) -> int:
    """Return when a file was written, or say when."""
    if time_ns is not None:
        os.utime(path, ns=(time_ns, time_ns))
    return path.stat().st_mtime_ns


def codes_in(home: Path) -> list[str]:
    found = verify(home, level=Level.QUICK).findings
    return [one.code for one in found if one.code in (GONE, AHEAD)]


@pytest.fixture
def original(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the log dir as if its files had never been copied."""
    monkeypatch.setattr(lost_end, "_is_copy", lambda file: False)
    return home


def test_a_copy_with_its_times_may_have_been_made_while_the_broker_ran(home: Path) -> None:
    assert codes_in(home) == [AHEAD]


def test_in_the_log_dir_itself_nothing_but_a_loss_explains_it(original: Path) -> None:
    assert codes_in(original) == [GONE]


@pytest.mark.parametrize("later_ns", [0, 1])
def test_a_log_that_is_not_older_than_the_checkpoint_was_not_copied_before_it(
    home: Path, later_ns: int
) -> None:
    written(log_of(home), written(home / WATERMARKS) + later_ns)
    assert codes_in(home) == [GONE]


def test_after_a_clean_stop_there_is_no_other_explanation(home: Path) -> None:
    (home / MARKER).write_bytes(b'{"version":0,"brokerEpoch":-1}')
    assert codes_in(home) == [GONE]


def test_a_copy_without_its_times_shows_nothing(original: Path) -> None:
    written(original / "meta.properties", written(original / WATERMARKS) - SECOND)
    assert codes_in(original) == [AHEAD]


def test_a_row_may_be_of_an_older_topic_of_that_name(original: Path) -> None:
    metadata = original / "codec-none-0" / "partition.metadata"
    written(metadata, written(original / WATERMARKS) + 1)
    assert codes_in(original) == [AHEAD]


def test_the_number_of_lost_offsets_is_reported(original: Path) -> None:
    finding = verify(original, level=Level.QUICK).one(GONE)
    assert {400, 360, 40} <= set(numbers_in(finding.message))


@pytest.mark.parametrize(
    ("index", "names", "end", "left"),
    [
        (b"", [f"{5:020d}.snapshot"], 5, f"{5:020d}.snapshot"),
        (b"", [f"{5:020d}.snapshot"], 4, None),  # One of an earlier stop: the log was cut below.
        (bytes(16), [f"{5:020d}.snapshot"], 5, None),  # The segment before was written to.
        (b"", [f"{5:020d}.snapshot", f"{5:020d}.log"], 5, None),
        (bytes(16), [f"{5:020d}.index"], 5, f"{5:020d}.index"),
        (b"", [], 5, None),
    ],
)
def test_a_file_is_left_of_a_segment_that_is_gone(
    tmp_path: Path, index: bytes, names: list[str], end: int, left: str | None
) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(b"")
    (partition / f"{0:020d}.index").write_bytes(index)
    for name in names:
        (partition / name).write_bytes(b"")
    assert lost_end.left_of_segment(partition, end, clean=False) == left
    after_stop = left if left and left.endswith(".index") else None
    assert lost_end.left_of_segment(partition, end, clean=True) == after_stop
