"""Commands on 50,000 partitions and on 20,000 segments: rows for `__main__.ROWS`.

A value is the CPU seconds of the command, user and system, divided by those of a bare pass in the
same run: `scandir` of each directory, then `open` and `read` of each file. So the value survives a
slower machine. The partitions are hard links of one small partition of a real broker.

The bars come from a machine whose bare pass takes 7.5 s for 50,000 partitions, where a command may
take 25 s, `doctor` and `dirs` 10 s, and 0.5 s for 20,000 segments, where a command may take 6 s.
Memory has rows of its own.
"""

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.generate import KIB, Spec, generate
from bench.measure import Timing, environment, spread
from bench.rows import Bar, Bench, Row, inverse, logtool_path, read_everything

COMMANDS = (
    ("verify",), ("stat",), ("gaps",), ("txns",), ("plan",), ("recover",), ("watermark",),
    ("checkpoint", "lint"), ("doctor",), ("dirs",),
)  # fmt: skip
_BAR, _QUICK_BAR, _SEGMENTS_BAR = Bar(at_most=3.33), Bar(at_most=1.33), Bar(at_most=12)
_QUICK = ("doctor", "dirs")
_MEMORY = Bar(at_most=200)
"""MB, for any number of partitions."""
TOPICS = 100
"""Number of topics, which share the partitions."""
_SOURCE, _END = "codec-none-1", 300
_ROWS = ("recovery-point-offset-checkpoint", "replication-offset-checkpoint")
_USED = (
    "import resource, subprocess, sys; "
    "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); "
    "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
    "print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)"
)
_DONE = (0, 1, 6)
"""Exit statuses: nothing found, something found, and a time limit as `doctor` has one."""


def many_links(bench: Bench) -> tuple[Path, int]:
    """Return a log dir of hard links of one partition, and how many partitions it has."""
    count = 500 if bench.quick else 50_000
    home = bench.home / f"links-{count}"
    if not home.is_dir():
        part = home.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        source = bench.fixture()
        for name in ("meta.properties", ".kafka_cleanshutdown"):
            shutil.copy2(source / name, part)
        files = sorted((source / _SOURCE).iterdir())
        keys = [(f"topic-{number % TOPICS}", number // TOPICS) for number in range(count)]
        for topic, number in keys:
            directory = part / f"{topic}-{number}"
            directory.mkdir()
            for file in files:
                (directory / file.name).hardlink_to(file)
        rows = "".join(f"{topic} {number} {_END}\n" for topic, number in keys)
        for name in _ROWS:
            (part / name).write_text(f"0\n{count}\n{rows}")
        part.rename(home)
    return home, count


def partitions(bench: Bench) -> Iterator[Row]:
    """Measure commands on many partitions."""
    home, count = many_links(bench)
    for command in COMMANDS:
        bar = _QUICK_BAR if command[0] in _QUICK else _BAR
        yield from _rows(bench, command, home, f"{count:,} partitions", bar)


def segments(bench: Bench) -> Iterator[Row]:
    """Measure commands on many segments of one partition."""
    count = 500 if bench.quick else 20_000
    home = generate(bench.home, Spec(KIB, count * KIB, segment_size=KIB)).parent
    for command in COMMANDS:
        what = f"{count:,} segments of one partition"
        yield from _rows(bench, command, home, what, _SEGMENTS_BAR)


def _rows(bench: Bench, command: tuple[str, ...], home: Path, what: str, bar: Bar) -> Iterator[Row]:
    timing = Timing([], [])
    peaks: list[float] = []
    for _ in range(bench.count):
        seconds, size = _cpu_of([logtool_path(), *command, str(home)])
        timing.ours.append(seconds)
        peaks.append(size / 1e3)
        before = resource.getrusage(resource.RUSAGE_SELF)
        read_everything(home)
        after = resource.getrusage(resource.RUSAGE_SELF)
        timing.theirs.append(_cpu(after) - _cpu(before))
    ours, bare = spread(timing.ours)[0], spread(timing.theirs)[0]
    note = f"{ours:.1f} s of CPU against {bare:.1f} s"
    name = " ".join(command)
    title = f"{name} of {what} against scandir + open + read, CPU"
    yield Row(title, inverse(timing), bar, note=note, timing=timing)
    yield Row(f"peak memory of {name} of {what}", peaks, _MEMORY, "MB")


def _cpu_of(command: list[str]) -> tuple[float, int]:
    """Run a command; return its CPU seconds and its largest memory in KiB.

    A small interpreter starts it: a process counts the memory of the one that starts it.
    """
    outer = [sys.executable, "-c", _USED, *command]
    done = subprocess.run(outer, env=environment(), stdout=subprocess.PIPE, check=True)
    status, seconds, size = done.stdout.split()
    if int(status) not in _DONE:
        raise subprocess.CalledProcessError(int(status), command)
    return float(seconds), int(size)


def _cpu(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


ROWS = {"scale-partitions": partitions, "scale-segments": segments}
