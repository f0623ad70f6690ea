"""Commands that read like verify, against verify; and a dump to Parquet: rows for `ROWS`."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.generate import KIB, Spec
from bench.measure import Timing, run, seconds_of, spread
from bench.rows import IMPORTS, SIZES, Bar, Bench, Row, logtool_path, seconds
from pyarrow import parquet

from logtool.commands.printing.dump_parquet import packed
from logtool.diff import Diff
from logtool.errors import LogtoolError
from logtool.formats import compression
from logtool.gaps.run import GapOptions, Gaps
from logtool.log.inputs import NodeDir
from logtool.schemas import parquet_options
from logtool.stat.run import Survey
from logtool.txns.run import TransactionsRun
from logtool.verify import Verification

_NOW_MS = 1_800_000_000_000
_BAR = Bar(at_least=0.9)
NAMES = ("gaps", "stat", "txns", "diff")
Engine = Callable[[list[Path]], object]


def _gaps(paths: list[Path]) -> object:
    return _sound(list(Gaps(paths, GapOptions())))


def _stat(paths: list[Path]) -> object:
    return _sound(list(Survey(paths)))


def _txns(paths: list[Path]) -> object:
    return _sound(list(TransactionsRun(paths, _NOW_MS)))


def _diff(paths: list[Path]) -> object:
    return _sound(list(Diff([NodeDir(path) for path in paths])))


_ENGINES: dict[str, Engine] = {"gaps": _gaps, "stat": _stat, "txns": _txns, "diff": _diff}


def against_verify(bench: Bench) -> Iterator[Row]:
    """Time their engines with one thread, and whole commands with their default threads."""
    for name, size in SIZES.items():
        two = _copies(bench, Spec(size, bench.total))
        for command in NAMES:
            paths = two if command == "diff" else two[:1]
            timing = bench.pairs(partial(_ENGINES[command], paths), partial(_verify, paths))
            copies = "two copies of " if command == "diff" else ""
            title = f"{command} of {copies}batches of {name} against verify of the same, one thread"
            yield _row(title, timing)
    two = _copies(bench, Spec(16 * KIB, 4 * bench.total, segment_size=bench.total))
    for command in NAMES:
        chosen = [str(path) for path in (two if command == "diff" else two[:1])]
        timing = bench.pairs(
            partial(run, [logtool_path(), command, *chosen]),
            partial(run, [logtool_path(), "verify", *chosen]),
        )
        title = f"{command} of 4 segments of batches of 16 KiB against verify, whole process"
        yield _row(title, timing)


def dump_parquet(bench: Bench) -> Iterator[Row]:
    """Time records of 200 bytes on their way into a Parquet file, on one core."""
    target = bench.home / "dumped.parquet"
    command = [logtool_path(), "dump", "--records", "--format", "parquet", "--output", str(target)]
    for codec in (compression.NONE, compression.ZSTD):
        log = bench.log(Spec(16 * KIB, bench.total, codec))
        rates, alone = [], []
        for _ in range(bench.count):
            target.unlink(missing_ok=True)
            worked = seconds_of([*command, str(log)])[1]
            count, writing = _written_again(target)
            rates.append(count / worked / 1e6)
            alone.append(writing)
        target.unlink()
        start = seconds_of([sys.executable, "-c", f"{IMPORTS}, pyarrow.parquet"])[1]
        bare = [sys.executable, str(Path(__file__).with_name("bare.py")), "1", str(log)]
        floor = seconds_of(bare)[1] - seconds_of([*bare[:-1], os.devnull])[1]
        title = f"dump --records --format parquet, records of 200 B ({compression.name(codec)})"
        writing = spread(alone)[0]
        note = (
            f"{count} rows; writing alone, by Arrow, of columns that are there: {writing:.2f} s; "
            f"an interpreter with typer, numpy, crc32c and pyarrow: {start:.2f} s; a bare pass "
            f"over the log: {floor:.2f} s; so no more than "
            f"{count / (writing + start + floor) / 1e6:.2f} can be reached"
        )
        unit = "million a second"
        yield Row(f"{title}, whole process, processor time", rates, Bar(3), unit, note)


def _written_again(path: Path) -> tuple[int, float]:
    """Write a Parquet file again to /dev/null; return its rows and the seconds of a core.

    Text is dictionary-encoded before, as in a dump.
    """
    source, took = parquet.ParquetFile(path), 0.0
    schema = packed(source.schema_arrow)
    with Path(os.devnull).open("wb") as sink:
        writer = parquet.ParquetWriter(sink, schema, **parquet_options.options(schema.names))
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group).cast(schema).unify_dictionaries()
            before = time.process_time()
            writer.write_table(rows)
            took += time.process_time() - before
        writer.close()
    return source.metadata.num_rows, took


def _copies(bench: Bench, spec: Spec) -> list[Path]:
    """Return a partition directory and a copy of hard links."""
    first = bench.directory(spec)
    second = bench.home / "copies" / spec.name / first.name
    if not second.is_dir():
        second.mkdir(parents=True)
        for file in first.iterdir():
            (second / file.name).hardlink_to(file)
    return [first, second]


def _verify(paths: list[Path]) -> object:
    return _sound(list(Verification(paths)))


def _sound(items: list[object]) -> list[object]:
    """Return the items; an error among them fails the measurement."""
    if errors := [item for item in items if isinstance(item, LogtoolError)]:
        raise AssertionError(f"could not be read: {errors[:3]}")
    return items


def _row(title: str, timing: Timing) -> Row:
    return Row(title, timing.ratios, _BAR, note=seconds(timing), timing=timing)


ROWS = {"readers": against_verify, "dump-parquet": dump_parquet}
