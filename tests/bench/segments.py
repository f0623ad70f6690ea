"""A partition of very many segments after an unclean start: rows for `__main__.ROWS`."""

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.measure import Timing, environment, timed
from bench.rows import Bar, Bench, Row, inverse, logtool_path, seconds
from tiny_segments import write

SEGMENTS = 10_000


def unclean(bench: Bench) -> Iterator[Row]:
    """Time plan and recover against verify where every segment is recovered."""
    count = SEGMENTS // 10 if bench.quick else SEGMENTS
    log_dir = make(bench.home, count)
    times: dict[str, list[float]] = {"verify": [], "plan": [], "recover": []}
    for number in range(bench.count + 1):
        for command, values in times.items():
            took = timed(partial(_run, command, log_dir))
            values += [took] if number else []  # the first makes the page cache warm
    for command in ("plan", "recover"):
        timing = Timing(times[command], times["verify"])
        title = f"{command}, {count:,} segments of one record after an unclean stop, against verify"
        note = f"{seconds(timing)}, whole processes, -j 1 each"
        yield Row(title, inverse(timing), Bar(at_most=5), note=note, timing=timing)


def make(home: Path, count: int) -> Path:
    """Return a log dir of one partition whose segments have a record each, and all files."""
    target = home / f"segments-{count}"
    if target.is_dir():
        return target
    part = target.with_suffix(".part")
    write(part / "bench-0", range(count))
    (part / "recovery-point-offset-checkpoint").write_text("0\n1\nbench 0 0\n")
    part.rename(target)
    return target


def _run(command: str, log_dir: Path) -> None:
    """Run a command to its end; a dry run that finds something to do ends with 1."""
    done = subprocess.run(
        [logtool_path(), command, "-j", "1", str(log_dir)],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        done.check_returncode()


ROWS = {"segments": unclean}
