"""A pass that keeps to a rate reads a log in short stretches, and asks its pace after each."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logtool.cli import app
from logtool.disk.files import LogFile
from logtool.formats import record, record_batch
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.running.budget import stretch_at
from logtool.running.workers import Pace

MIB = 1024 * 1024
RECORDS = record.encode([record.Record(0, 0, b"key", bytes(8000))])
STRETCH = 64 * 1024


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log of 4 MiB in a partition dir."""
    path = tmp_path / "events-0" / "00000000000000000000.log"
    path.parent.mkdir()
    batches = (
        record_batch.encode(
            RECORDS, base_offset=offset, last_offset_delta=0, record_count=1, max_timestamp=1
        )
        for offset in range(512)
    )
    path.write_bytes(b"".join(batches))
    return path


def _chunks(path: Path, *, payload: bool) -> list[Chunk]:
    with LogFile(path) as file:
        return list(read_batches(file, base_offset=0, payload=payload))


@pytest.mark.parametrize("payload", [False, True])
def test_chunks_are_no_longer_than_the_stretch(
    log: Path, payload: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _chunks(log, payload=payload)
    monkeypatch.setattr(LogFile, "stretch", STRETCH)
    chunks = _chunks(log, payload=payload)
    ends = [0, *(chunk.end_position for chunk in chunks)]
    assert max(after - before for before, after in pairwise(ends)) <= STRETCH
    assert sum(chunk.batches for chunk in chunks) == sum(chunk.batches for chunk in whole) == 512


def test_nothing_is_read_ahead_of_the_chunk(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "stretch", STRETCH)
    advice: list[int] = []
    advise = os.posix_fadvise

    def noted(fd: int, position: int, size: int, kind: int) -> None:
        advice.append(kind)
        advise(fd, position, size, kind)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    with LogFile(log) as file:
        assert file.map_range(0, file.size) is None
        read = 0
        read_into = file.read_into

        def counted(buffer: memoryview, position: int) -> int:
            nonlocal read
            read += (count := read_into(buffer, position))
            return count

        monkeypatch.setattr(file, "read_into", counted)
        for chunk in read_batches(file, base_offset=0, payload=False):
            assert read - chunk.end_position <= STRETCH
    assert advice == [os.POSIX_FADV_RANDOM]


@pytest.mark.parametrize(
    ("rate", "threads", "stretch"),
    [
        (None, 4, None),
        (4 * MIB, 1, MIB // 2),
        (4 * MIB, 4, MIB // 8),
        (1, 1, MIB // 8),
        (1, 4, MIB // 32),
        (256 * MIB, 1, None),
        (256 * MIB, 2, 16 * MIB),
    ],
)
def test_threads_share_what_is_ahead(rate: float | None, threads: int, stretch: int | None) -> None:
    assert stretch_at(rate, threads) == stretch


def test_a_rate_asks_the_pace_often(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogFile, "stretch", None)
    asked: list[int] = []
    monkeypatch.setattr(Pace, "spend", lambda self, count: asked.append(count))
    for rate, most in (("1M", MIB // 8), (None, log.stat().st_size)):
        asked.clear()
        options = ["--max-rate", rate] if rate else []
        result = CliRunner().invoke(app, ["verify", "-j", "1", *options, str(log.parent)])
        assert result.exit_code == 1  # the segment has no indexes
        assert sum(asked) == log.stat().st_size
        assert max(asked) <= most
