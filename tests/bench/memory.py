"""The largest memory that commands take: rows for `__main__.ROWS`."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.generate import GIB, KIB, MIB, Spec
from bench.measure import peak_memory
from bench.rows import IMPORTS, SIZES, Bar, Bench, Row, four_segments, logtool_path, many_partitions

_BAR = Bar(at_most=150)
_OUTPUT, _OTHER = "memory-output", "memory-other"
_COMMANDS = (
    ("dump", "--records", "--format", "ndjson"),
    ("dump", "--records", "--format", "parquet", "--output", _OUTPUT),
    ("dump-index",),
    ("stat",),
    ("gaps",),
    ("txns",),
    ("doctor",),
    ("sanity",),
    ("plan",),
    ("recover",),
    ("recover", "--apply"),
    ("rebuild-index", "--all", "--output", _OUTPUT),
    ("salvage", "--output", _OUTPUT),
    ("diff", _OTHER),
    ("diff", "--digest", _OUTPUT),
)
"""Commands that read logs. All except `dump` get a log dir that was never flushed; `diff` also gets
another copy of its partition."""


def verify(bench: Bench) -> Iterator[Row]:
    """Measure the largest resident set of verify."""
    bare = peak_memory([sys.executable, "-c", IMPORTS]) / 1e6
    note = f"an interpreter with typer, numpy and crc32c: {bare:.0f} MB"
    many, count = many_partitions(bench)
    inputs = [(_what(size, bench.total), bench.directory(Spec(size, bench.total)))
              for size in SIZES.values()]  # fmt: skip
    inputs.append((_what(16 * KIB, 4 * bench.total), bench.directory(four_segments(bench))))
    inputs.append((f"{count} partitions of 5 segments of 1 KiB", many))
    for what, path in inputs:
        for level in ("batches", "records"):
            command = [logtool_path(), "verify", "--level", level, str(path)]
            peaks = [peak_memory(command) / 1e6 for _ in range(bench.count)]
            title = f"peak memory of verify --level {level}, {what}"
            yield Row(title, peaks, _BAR, "MB", note)


def commands(bench: Bench) -> Iterator[Row]:
    """Measure the largest resident set of the other commands that read logs."""
    home, output = bench.home / "memory", bench.home / _OUTPUT
    for size in (200, KIB, MIB):
        source = bench.directory(Spec(size, bench.total))
        logs = [str(log) for log in sorted(source.glob("*.log"))]
        for arguments in _COMMANDS:
            places = {_OUTPUT: str(output), _OTHER: str(source)}
            given = [places.get(one, one) for one in arguments]
            paths = logs if arguments[0] == "dump" else [str(home)]
            peaks = []
            for _ in range(bench.count):
                _make(source, home, output)
                # A dry run with something to do ends with 1.
                peaks.append(peak_memory([logtool_path(), *given, *paths], (0, 1)) / 1e6)
            name = " ".join(one for one in arguments if one not in places)
            yield Row(f"peak memory of {name}, {_what(size, bench.total)}", peaks, _BAR, "MB")
    _remove(home, output)


def _what(size: int, total: int) -> str:
    batch = f"{size} B" if size < KIB else f"{size // KIB} KiB"
    return f"{total / GIB:g} GiB of batches of {batch}"


def _make(source: Path, home: Path, output: Path) -> None:
    """Make a log dir with one partition, whose logs are hard links."""
    _remove(home, output)
    target = home / source.name
    target.mkdir(parents=True)
    for path in source.iterdir():
        if path.suffix == ".log":
            (target / path.name).hardlink_to(path)
        else:
            shutil.copy(path, target)


def _remove(home: Path, output: Path) -> None:
    output.unlink() if output.is_file() else shutil.rmtree(output, ignore_errors=True)
    for path in home.parent.glob(f"{home.name}*"):
        if path.is_dir():
            shutil.rmtree(path)


ROWS = {"memory": verify, "memory-commands": commands}
