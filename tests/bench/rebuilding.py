"""A rebuild of the indexes of small segments, against bare reads and writes: rows for `ROWS`."""

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.generate import KIB
from bench.measure import Timing, run, timed
from bench.rows import Bar, Bench, Row, inverse, logtool_path, seconds
from tiny_segments import write_log_dir

_INDEXES = (".index", ".timeindex")


def small_segments(bench: Bench) -> Iterator[Row]:
    """Time rebuild-index as a whole process, with nothing and with everything to rebuild."""
    partitions = 600 if bench.quick else 6000
    sound = bench.home / f"rebuild-{partitions}x5"
    if not sound.is_dir():
        part = sound.with_suffix(".part")
        write_log_dir(part, partitions, 5, KIB)
        part.rename(sound)
    lost = sound.with_name(f"{sound.name}-lost")
    if not lost.is_dir():
        skip = shutil.ignore_patterns(*(f"*{kind}" for kind in _INDEXES))
        shutil.copytree(sound, lost, ignore=skip)
    count = 5 * partitions
    title = f"rebuild-index of {count} segments of 1 KiB"
    for options, what in (((), "sound"), (("--all",), "sound, --all")):
        command = [logtool_path(), "rebuild-index", *options, str(sound)]
        timing = bench.pairs(partial(run, command), partial(_read, sound))
        note = f"{seconds(timing)}, with the start of Python"
        yield Row(f"{title}, {what}, against reads of their files", inverse(timing),
                  Bar(at_most=6), note=note, timing=timing)  # fmt: skip
    output = bench.home / "rebuild-output"
    command = [logtool_path(), "rebuild-index", "--output", str(output), str(lost)]
    ours, timing, plain = [], Timing([], []), Timing([], [])
    for _ in range(bench.count):
        ours.append(timed(partial(run, command)))
        shutil.rmtree(output)
        timing.theirs.append(timed(partial(_read_and_write, lost, output, sync=True)))
        shutil.rmtree(output)
        plain.theirs.append(timed(partial(_read_and_write, lost, output, sync=False)))
        shutil.rmtree(output)
    timing.ours.extend(ours)
    share = sorted(b - a for a, b in zip(plain.theirs, timing.theirs, strict=True))[len(ours) // 2]
    note = f"{seconds(timing)}, of which fsync takes {share:.3g} s"
    yield Row(f"{title} without indexes, --output, against reads, writes and fsync",
              inverse(timing), Bar(at_most=6), note=note, timing=timing)  # fmt: skip


def _read(home: Path) -> None:
    with os.scandir(home) as entries:
        for entry in entries:
            if entry.is_dir():
                _read_all(entry.path)


def _read_all(path: str) -> list[str]:
    with os.scandir(path) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with open(f"{path}/{name}", "rb", buffering=0) as file:  # noqa: PTH123
            file.read()
    return names


def _read_and_write(home: Path, output: Path, *, sync: bool) -> None:
    """Read everything, and write two small files for each log."""
    output.mkdir()
    with os.scandir(home) as entries:
        for entry in entries:
            if not entry.is_dir():
                continue
            (output / entry.name).mkdir()
            for name in _read_all(entry.path):
                if name.endswith(".log"):
                    _write(f"{output}/{entry.name}/{name[:20]}", sync=sync)


def _write(stem: str, *, sync: bool) -> None:
    for kind, content in zip(_INDEXES, (b"", bytes(12)), strict=True):
        fd = os.open(stem + kind, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(fd, content)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)


ROWS = {"rebuild": small_segments}
