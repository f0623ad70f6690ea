"""Two threads, and whole processes, against bare passes at once: rows for `__main__.ROWS`."""

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench import bare
from bench.bare import passes_at_once
from bench.generate import GIB, KIB, MIB, Spec
from bench.measure import run, spread
from bench.rows import SIZES, Bar, Bench, Row, four_segments, logtool_path, seconds

from logtool.running.budget import Budget
from logtool.verify import Verification

_LARGEST = 2 * GIB - MIB
"""Bytes of a log: no broker writes one of 2 GiB, nor could an index point further."""


def two_threads(bench: Bench) -> Iterator[Row]:
    """Time two threads against two bare passes at once, and against one thread."""
    if (cores := len(os.sched_getaffinity(0))) < 2:
        yield Row("verify with two threads", skipped=f"this machine has {cores} core")
        return
    one = Spec(16 * KIB, 2 * bench.total - MIB, segment_size=_LARGEST)
    for spec, what in ((one, "one segment"), (four_segments(bench), "four segments")):
        directory = bench.directory(spec)
        logs = sorted(directory.glob("*.log"))
        timing = bench.pairs(
            partial(_verify, directory, threads=2), partial(passes_at_once, logs, 2)
        )
        alone = bench.pairs(partial(passes_at_once, logs, 2), partial(passes_at_once, logs, 1))
        size = sum(log.stat().st_size for log in logs)
        title = f"verify with two threads, {what} of batches of 16 KiB, against two bare passes"
        note = f"{size / GIB:.3g} GiB, {seconds(timing)}; two passes at once are "
        note += f"{spread(alone.ratios)[0]:.2f} times as fast as one"
        yield Row(f"{title} at once", timing.ratios, Bar(0.9), note=note, timing=timing)
    several = str(bench.directory(four_segments(bench)))
    timing = bench.pairs(*(
        partial(run, [logtool_path(), "verify", "-j", count, several]) for count in ("2", "1")
    ))  # fmt: skip
    title = "verify -j 2 against -j 1, four segments of batches of 16 KiB, whole process"
    note = f"{seconds(timing)}; of bare passes {spread(alone.ratios)[0]:.2f}"
    yield Row(title, timing.ratios, Bar(1.8), note=note, timing=timing)


def whole(bench: Bench) -> Iterator[Row]:
    """Time verify as a whole process against one that loads the same and makes a bare pass."""
    cores = len(os.sched_getaffinity(0))
    for name, size in SIZES.items():
        directory = bench.directory(Spec(size, bench.total))
        log = str(min(directory.glob("*.log")))
        timing = bench.pairs(
            partial(run, [logtool_path(), "verify", str(directory)]),
            partial(run, [sys.executable, bare.__file__, str(cores), log]),
        )
        title = f"verify, batches of {name}, whole process, against the least that one takes"
        note = f"{bench.total / GIB:.3g} GiB, {seconds(timing)}: an interpreter with typer, numpy "
        note += f"and crc32c, and a bare pass with {cores} threads"
        yield Row(title, timing.ratios, Bar(0.8), note=note, timing=timing)


def _verify(directory: Path, threads: int) -> None:
    if found := list(Verification([directory], budget=Budget(jobs=threads))):
        raise AssertionError(f"verify found {found[:3]}")


ROWS = {"threads": two_threads, "whole": whole}
