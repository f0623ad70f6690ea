"""Sanity checks against the system calls they are made of: rows for `__main__.ROWS`."""

import json
import mmap
import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
from bench.measure import Timing, environment, timed
from bench.rows import Bar, Bench, Row, inverse, logtool_path, seconds

from logtool.formats import offset_index, time_index, transaction_index

PARTITIONS, SEGMENTS = 6000, 5
"""Partitions and segments of about the broker in KIP-263."""
_ENTRIES = 16
_INTERVAL = 4096
"""Bytes of log from an index entry to the next."""
_STEP = 1000
"""Offsets from a segment to the next."""
_FIRST_TIME = 1_700_000_000_000
_KINDS = (".index", ".timeindex", ".txnindex")


def eager(bench: Bench) -> Iterator[Row]:
    """Time sanity --mode eager against a loop that does no more than the same calls."""
    partitions = PARTITIONS // 20 if bench.quick else PARTITIONS
    log_dir = _log_dir(bench.home, partitions)
    indexes = sorted(path for path in log_dir.glob("*/*") if path.suffix in _KINDS)
    paths = [(os.fspath(path), path.suffix != ".txnindex") for path in indexes]
    count = partitions * SEGMENTS
    measured, whole = Timing([], []), Timing([], [])
    for number in range(bench.count + 1):
        began = perf_counter()
        start = _sanity(log_dir)
        took = perf_counter() - began
        bare = timed(partial(_bare, paths))
        if number:
            measured.ours.append(start)
            whole.ours.append(took)
            measured.theirs.append(bare)
            whole.theirs.append(bare)
    title = f"sanity --mode eager of {count} segments, the start that it times, against a bare "
    title += "loop of open, fstat, mmap or read, close"
    note = f"{len(paths)} indexes, {seconds(measured)}"
    yield Row(title, inverse(measured), Bar(at_most=2), note=note, timing=measured)
    note = f"{seconds(whole)}; with the start of Python, the listing of the log dir, and the rules "
    note += "of verify for what the checks pass over"
    yield Row("the same, whole process", inverse(whole), note=note, timing=whole)


def _sanity(log_dir: Path) -> float:
    command = [logtool_path(), "sanity", "--mode", "eager", "--json", str(log_dir)]
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
    )
    items = json.loads(done.stdout)["items"]
    (found,) = (item for item in items if item["type"] == "measurement")
    return float(found["seconds"])


def _bare(paths: Sequence[tuple[str, bool]]) -> None:
    """Open each file, map or read it, look at a byte of its last page, close it."""
    for path, mapped in paths:
        fd = os.open(path, os.O_RDONLY)
        size = os.fstat(fd).st_size
        if mapped:
            content = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
            _ = content[size - 1]
            content.close()
        else:
            os.read(fd, size)
        os.close(fd)


def _log_dir(home: Path, partitions: int) -> Path:
    """Return a log dir with so many partitions, whose logs are one hole."""
    target = home / f"starts-{partitions}x{SEGMENTS}"
    if not target.is_dir():
        part = target.with_suffix(".part")
        part.mkdir()
        contents = [_indexes(number * _STEP) for number in range(SEGMENTS)]
        for number in range(partitions):
            directory = part / f"bench-{number}"
            directory.mkdir()
            for segment, content in enumerate(contents):
                stem = directory / f"{segment * _STEP:020d}"
                with stem.with_suffix(".log").open("wb") as log:
                    log.truncate(_ENTRIES * _INTERVAL)
                for suffix, data in zip(_KINDS, content, strict=True):
                    stem.with_suffix(suffix).write_bytes(data)
        part.rename(target)
    return target


def _indexes(base: int) -> tuple[bytes, bytes, bytes]:
    """Return a sound offset, time and transaction index of a segment."""
    rising = np.arange(1, _ENTRIES + 1)
    offsets = np.zeros(_ENTRIES, offset_index.ENTRY)
    offsets["relative_offset"], offsets["position"] = rising * 10, (rising - 1) * _INTERVAL + 1
    times = np.zeros(_ENTRIES, time_index.ENTRY)
    times["relative_offset"], times["timestamp"] = rising * 10, _FIRST_TIME + base + rising * 10
    aborted = np.zeros(2, transaction_index.ENTRY)
    aborted["first_offset"] = base + rising[:2] * 10
    aborted["last_offset"] = aborted["first_offset"] + 5
    aborted["last_stable_offset"] = aborted["last_offset"] + 1
    return offsets.tobytes(), times.tobytes(), aborted.tobytes()


ROWS = {"starts": eager}
