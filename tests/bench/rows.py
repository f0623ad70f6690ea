"""The measurements: one function for each bar, which returns the rows of the report."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import cramjam
import numpy as np
from bench.bare import pass_over
from bench.generate import GIB, KIB, MIB, Spec, generate
from bench.measure import (
    PAIRS,
    Timing,
    pairs,
    run,
    runs,
    spread,
    timed,
)
from broker.install import KAFKA_4, cache_root, install
from tiny_segments import write_log_dir

from logtool.checks.report import SegmentTask
from logtool.checks.segment import check_segment
from logtool.disk.files import LogFile
from logtool.formats import _kernels, compression
from logtool.formats.record_batch import HEADER_SIZE
from logtool.log import opening
from logtool.log.batches import read_batches
from logtool.log.chunk import Chunk
from logtool.verify import Level, Verification

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = "4.3.1/clean"
SIZES = {"200 B": 200, "1 KiB": KIB, "16 KiB": 16 * KIB, "1 MiB": MIB}
IMPORTS = "import typer, numpy, crc32c"
LEAST = "import typer, numpy"
TIMES = "times"
RECORD_BARS = (0.50, 0.90, 0.70, 0.70, 0.85)
"""Bars in relation to the decompression alone, by codec id; for no codec, to the bare pass."""

KAFKA_OPTIONS = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
"""The JVM options of kafka-run-class.sh, which kafka-dump-log.sh runs."""


@dataclass(frozen=True)
class Bar:
    """The required range of a value."""

    at_least: float | None = None
    at_most: float | None = None

    def __str__(self) -> str:
        low = "" if self.at_least is None else f">= {self.at_least:g}"
        high = "" if self.at_most is None else f"<= {self.at_most:g}"
        return " and ".join(filter(None, (low, high)))

    def met(self, value: float) -> bool:
        """Return whether `value` is in the range."""
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class Row:
    """One line of the report: a median with its spread, or the reason for a missing one."""

    title: str
    values: list[float] = field(default_factory=list)
    """One value for each pair or run, in `unit`."""
    bar: Bar | None = None
    unit: str = TIMES
    note: str = ""
    """The parts and limits of the value."""
    timing: Timing | None = None
    skipped: str = ""

    @property
    def met(self) -> bool | None:
        """Return whether the median meets the bar; None without a bar or values."""
        return self.bar.met(spread(self.values)[0]) if self.bar and self.values else None


@dataclass(frozen=True)
class Bench:
    """The place and size of the inputs."""

    home: Path
    quick: bool = False
    drop_cache: bool = False
    """True if the logs are removed from the page cache before each run of a pair."""
    logs: list[Path] = field(default_factory=list)
    """Logs that jobs use."""

    @property
    def count(self) -> int:
        """Return the number of pairs of a median."""
        return 2 if self.quick else PAIRS

    @property
    def total(self) -> int:
        """Return the size that the bars call 1 GiB, in bytes."""
        return 64 * MIB if self.quick else GIB

    def directory(self, spec: Spec) -> Path:
        """Return a partition directory without findings of verify; its files are cached."""
        target = generate(self.home, spec)
        found = list(Verification([target]))
        if found:
            raise AssertionError(f"{spec.name} is not sound: {found[:3]}")
        self.logs.extend(target.glob("*.log"))
        if self.drop_cache:
            os.sync()  # dirty pages stay in the page cache
        return target

    def log(self, spec: Spec) -> Path:
        """Return the first log of a directory."""
        return min(self.directory(spec).glob("*.log"))

    def fixture(self) -> Path:
        """Return a log dir that a real broker wrote."""
        target = self.home / "fixture" / Path(FIXTURE).name
        if not target.is_dir():
            with tarfile.open(ROOT / "tests" / "data" / f"{FIXTURE}.tar.xz") as tar:
                tar.extractall(target.parent, filter="tar")
        return target

    def pairs(self, ours: Callable[[], object], theirs: Callable[[], object]) -> Timing:
        """Time two jobs in turns."""
        return pairs(ours, theirs, self.count, before=self._forget)

    def _forget(self) -> None:
        for log in self.logs if self.drop_cache else ():
            with LogFile(log) as file:
                file.forget(0, file.size)


def verify_batches(bench: Bench) -> Iterator[Row]:
    """Time verify against one pass of readinto(1 MiB) and crc32c over the same file."""
    bars = dict(zip(SIZES, (0.45, 0.80, 0.90, 0.92), strict=True))
    for name, size in SIZES.items():
        directory = bench.directory(Spec(size, bench.total))
        segment = opening.open_partition(directory).segments[0]
        log = segment.log.path
        timing = bench.pairs(lambda: check_segment(SegmentTask(segment)), lambda: pass_over(log))  # noqa: B023
        bare = bench.pairs(lambda: _scan(log), lambda: pass_over(log))  # noqa: B023
        note = (
            f"{_rate(bench.total, timing.ours)}, the pass {_rate(bench.total, timing.theirs)}; "
            f"scanning into columns, with no rules, reaches {spread(bare.ratios)[0]:.2f}"
        )
        title = f"verify, batches of {name}, against readinto(1 MiB) + crc32c"
        yield _ratio(title, timing, Bar(bars[name]), note)


def pure_build(bench: Bench) -> Iterator[Row]:
    """Time the same with the kernels as plain Python."""
    directory = bench.directory(Spec(16 * KIB, bench.total))
    command = [sys.executable, "-m", "bench.pure", str(directory), str(bench.count)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    timing = Timing(**json.loads(done.stdout))
    note = _rate(bench.total, timing.ours)
    yield _ratio("the same, batches of 16 KiB, kernels not compiled", timing, None, note)


def kafka_batches(bench: Bench) -> Iterator[Row]:
    """Time verify against Kafka's own tool."""
    for name, size in SIZES.items():
        if bench.quick and size != 16 * KIB:
            continue
        bar = Bar(20 if size == 200 else 10)
        yield _against_kafka(
            bench, f"verify, batches of {name}", Spec(size, bench.total), ["verify"], [], bar
        )


def kafka_records(bench: Bench) -> Iterator[Row]:
    """Time commands that read records against Kafka's tool."""
    spec = Spec(16 * KIB, bench.total // 4)
    for codec in (compression.NONE, compression.ZSTD):
        spec = Spec(16 * KIB, bench.total // 4, codec)
        yield _against_kafka(
            bench, f"verify --level records, batches of 16 KiB ({compression.name(codec)})", spec,
            ["verify", "--level", "records"], ["--deep-iteration"], Bar(10),
        )  # fmt: skip
        if bench.quick:
            return
    spec = Spec(16 * KIB, bench.total // 4)
    yield _against_kafka(
        bench, "dump --records --format ndjson, batches of 16 KiB", spec,
        ["dump", "--records", "--format", "ndjson"], ["--print-data-log"], Bar(8),
    )  # fmt: skip
    yield _against_kafka(
        bench, "kafka-dump-log --print-data-log, batches of 16 KiB", spec,
        ["kafka-dump-log", "--print-data-log", "--files"], ["--print-data-log"], Bar(4),
    )  # fmt: skip
    few = Spec(200, bench.total // 4)
    yield _against_kafka(
        bench, "kafka-dump-log, batches of 200 B", few, ["kafka-dump-log", "--files"], [], Bar(4)
    )


def kafka_fixture(bench: Bench) -> Iterator[Row]:
    """Time verify of a real broker's log dir against Kafka's tool on its logs."""
    title = f"verify of the log dir {FIXTURE}, against kafka-dump-log of its logs, whole process"
    if reason := no_kafka():
        yield Row(title, skipped=reason)
        return
    home = bench.fixture()
    logs = sorted(home.rglob("*.log"))
    timing = bench.pairs(
        partial(run, [logtool_path(), "verify", str(home)]), partial(run, _kafka(logs))
    )
    yield _ratio(title, timing, None, f"{len(logs)} logs, {seconds(timing)}")


def decode(bench: Bench) -> Iterator[Row]:
    """Time the decoding of uncompressed 200-byte records into columns."""
    for name in ("16 KiB", "1 MiB"):
        log = bench.log(Spec(SIZES[name], bench.total))
        chunks = [_Stretch(chunk) for chunk in _first(log, 64 * MIB)]
        count = sum(stretch.records for stretch in chunks)
        took = runs(lambda: sum(stretch.decode() for stretch in chunks), 2 * bench.count)  # noqa: B023
        size = sum(int((stretch.ends - stretch.starts).sum()) for stretch in chunks)
        yield Row(
            f"decoding records of 200 bytes to columns, batches of {name}, one core",
            [count / second / 1e6 for second in took], Bar(20), "million a second",
            f"{count} records, {_rate(size, took)}",
        )  # fmt: skip


def codecs(bench: Bench) -> Iterator[Row]:
    """Time records in every codec against decompressing alone."""
    for codec, name in enumerate(compression.NAMES):
        directory = bench.directory(Spec(16 * KIB, bench.total // 16, codec))
        segment = opening.open_partition(directory).segments[0]
        log = segment.log.path
        # The xerial header and the length of the one block are no part of what is decompressed.
        first = HEADER_SIZE + (20 if codec == compression.SNAPPY else 0)
        batches = [bytes(batch)[first:] for batch in _batches(log)]
        room = bytearray(64 * KIB)
        alone = partial(_alone, codec, batches, room) if codec else partial(pass_over, log)
        timing = bench.pairs(partial(check_segment, SegmentTask(segment, Level.RECORDS)), alone)
        plain = _alone(codec, batches, room) if codec else sum(map(len, batches))
        note = f"{_rate(plain, timing.ours)} of records, alone {_rate(plain, timing.theirs)}"
        other = "decompressing alone, by the library" if codec else "readinto(1 MiB) + crc32c"
        title = f"verify --level records, 16 KiB of {name}, against {other}"
        yield _ratio(title, timing, Bar(RECORD_BARS[codec]), note)


def start(bench: Bench) -> Iterator[Row]:
    """Time commands without any work."""
    small = str(bench.fixture() / "codec-none-0")
    dump = [logtool_path(), "dump", f"{small}/{'0' * 20}.log", "--limit", "1"]
    for title, ours, theirs, most in (
        ("logtool --help", [logtool_path(), "--help"], "import typer", 1.3),
        ("logtool verify of a small directory", [logtool_path(), "verify", small], IMPORTS, 2),
        ("logtool explain batch/crc", [logtool_path(), "explain", "batch/crc"], LEAST, 1.5),
        ("logtool dump FILE --limit 1", dump, LEAST, 1.5),
    ):
        other = [sys.executable, "-c", theirs]
        timing = pairs(partial(run, ours), partial(run, other), 4 * bench.count)
        yield Row(f"{title} against python -c '{theirs}'", inverse(timing),
                  Bar(at_most=most), note=seconds(timing), timing=timing)  # fmt: skip


def linear(bench: Bench) -> Iterator[Row]:
    """Time ten times the amount of data."""
    for name in ("200 B", "16 KiB"):
        many, few = (
            opening.open_partition(bench.directory(Spec(SIZES[name], size))).segments[0]
            for size in (bench.total, bench.total // 10)
        )
        timing = pairs(
            lambda: check_segment(SegmentTask(many)), lambda: check_segment(SegmentTask(few)),  # noqa: B023
            2 * bench.count,
        )  # fmt: skip
        factor = many.log.size / few.log.size
        bare = bench.pairs(partial(pass_over, many.log.path), partial(pass_over, few.log.path))
        note = f"{seconds(timing)}; of the bare pass {spread(inverse(bare))[0] / factor:.2f}"
        yield Row(
            f"verify of ten times the data, batches of {name}: time for a byte",
            [value / factor for value in inverse(timing)], Bar(0.9, 1.1), note=note,
            timing=timing,
        )  # fmt: skip


def many_partitions(bench: Bench) -> tuple[Path, int]:
    """Return a log dir of many partitions, each of 5 segments of 1 KiB, and how many they are."""
    count = 500 if bench.quick else 10_000
    home = bench.home / f"partitions-{count}x5"
    if not home.is_dir():
        part = home.with_suffix(".part")
        write_log_dir(part, count, 5, KIB)
        part.rename(home)
    return home, count


def _many_partitions(bench: Bench) -> Row:
    """Time a log dir of many small partitions."""
    home, count = many_partitions(bench)
    read_everything(home)
    timing = bench.pairs(lambda: _must_be_sound(home), lambda: read_everything(home))
    note = f"{seconds(timing)}, {spread(timing.ours)[0] / count * 1e6:.0f} us a partition"
    title = f"verify of {count} partitions of 5 segments of 1 KiB against scandir + open + read"
    return Row(title, inverse(timing), Bar(at_most=6), note=note, timing=timing)


def read_everything(home: Path) -> None:
    """Read all files of a log dir, by a list of each directory."""
    with os.scandir(home) as entries:
        for entry in entries:
            if entry.is_dir():
                _read_all(Path(entry.path))


def tiny_segments(bench: Bench) -> Iterator[Row]:
    """Time many segments of one batch, whose files are opened and read one by one."""
    yield _many_partitions(bench)
    few, many = (1000, 1000) if bench.quick else (10_000, 100_000)
    directory = generate(bench.home, Spec(KIB, many * KIB, segment_size=KIB))
    _read_all(directory)
    first = timed(lambda: _must_be_sound(directory))
    theirs = timed(lambda: _read_all(directory))
    note = f"one pair of {many}: {first:.1f} s against {theirs:.1f} s, {first / theirs:.1f} times"
    if first > 30:
        many, directory = few, generate(bench.home, Spec(KIB, few * KIB, segment_size=KIB))
    timing = bench.pairs(lambda: _must_be_sound(directory), lambda: _read_all(directory))
    note += f"; here {seconds(timing)}, {spread(timing.ours)[0] / many * 1e6:.0f} us a segment"
    title = f"verify of {many} segments of 1 KiB against scandir + open + read of their files"
    yield Row(title, inverse(timing), Bar(at_most=3), note=note, timing=timing)


ROWS = {
    "verify": verify_batches,
    "pure": pure_build,
    "kafka-batches": kafka_batches,
    "kafka-records": kafka_records,
    "kafka-fixture": kafka_fixture,
    "decode": decode,
    "codecs": codecs,
    "start": start,
    "linear": linear,
    "tiny": tiny_segments,
}


class _Stretch:
    """The uncompressed batches of a chunk, ready to be decoded."""

    def __init__(self, chunk: Chunk) -> None:
        self.data = memoryview(bytearray(chunk.data))
        begin = chunk.table.position - chunk.data_position
        self.starts, self.ends = begin + HEADER_SIZE, begin + chunk.table.size
        self.counts = chunk.table.record_count.astype(np.int64)
        self.records = int(self.counts.sum())

    def decode(self) -> int:
        """Decode all records into fresh columns; returns how many."""
        rows = np.empty((self.records, _kernels.RECORD_COLUMNS), np.int64)
        results = np.empty((len(self.starts), 3), np.int64)
        done = _kernels.decode_batches(
            self.data, self.starts, self.ends, self.counts, rows, results
        )
        if done != self.records:
            raise AssertionError(f"{done} of {self.records} records were decoded")
        return done


def _against_kafka(
    bench: Bench, title: str, spec: Spec, ours: Sequence[str], flags: Sequence[str], bar: Bar
) -> Row:
    title += f", against kafka-dump-log {' '.join(flags)}".rstrip() + ", whole process"
    if reason := no_kafka():
        return Row(title, skipped=reason)
    log = bench.log(spec)
    timing = pairs(
        partial(run, [logtool_path(), *ours, str(log)]), partial(run, _kafka([log], *flags)),
        bench.count, warm=False,
    )  # fmt: skip
    floor = spread(runs(lambda: pass_over(log), bench.count))[0]
    floor += spread(runs(partial(run, [sys.executable, "-c", IMPORTS]), bench.count))[0]
    best = spread(timing.theirs)[0] / floor
    note = (
        f"{log.stat().st_size / MIB:.0f} MiB, {seconds(timing)}; an interpreter with typer, numpy "
        f"and crc32c and one bare pass: {floor:.2f} s, so no more than {best:.1f} can be reached "
        "in one process"
    )
    return _ratio(title, timing, bar, note)


def _kafka(logs: Sequence[Path], *flags: str) -> list[str]:
    classes = f"{install(KAFKA_4)}/*"
    files = ",".join(map(str, logs))
    tool = "org.apache.kafka.tools.DumpLogSegments"
    return ["java", *KAFKA_OPTIONS, "-cp", classes, tool, "--files", files, *flags]


def no_kafka() -> str:
    if shutil.which("java") is None:
        return "java is not on the PATH"
    if not (cache_root() / KAFKA_4).is_dir() and shutil.which("mvn") is None:
        return f"Kafka {KAFKA_4} is not in the cache and mvn is not on the PATH"
    return ""


def logtool_path() -> str:
    """Return the command that is measured."""
    return str(Path(sys.executable).with_name("logtool"))


def four_segments(bench: Bench) -> Spec:
    """Return the input that the bars call 4 GiB, in segments of 1 GiB."""
    return Spec(16 * KIB, 4 * bench.total, segment_size=bench.total)


def _scan(log: Path) -> None:
    with LogFile(log) as file:
        for _ in read_batches(file, base_offset=0):
            pass


def _first(log: Path, size: int) -> Iterator[Chunk]:
    with LogFile(log) as file:
        for chunk in read_batches(file, base_offset=0):
            yield chunk
            if chunk.end_position >= size:
                return


def _batches(log: Path) -> Iterator[memoryview]:
    for chunk in _first(log, 2**63):
        yield from map(chunk.batch, range(len(chunk.table)))


def _alone(codec: int, payloads: Sequence[bytes], room: bytearray) -> int:
    """Decompress all payloads one by one, by the library itself; returns the bytes that came out.

    Each is what a batch of 16 KiB holds: one gzip member, xerial block, LZ4 frame or zstd frame.
    """
    if codec == compression.GZIP:
        return sum(len(zlib.decompress(payload, wbits=31)) for payload in payloads)
    into = {
        compression.SNAPPY: cramjam.snappy.decompress_raw_into,
        compression.LZ4: cramjam.lz4.decompress_into,
        compression.ZSTD: cramjam.zstd.decompress_into,
    }[codec]
    return sum(into(payload, room) for payload in payloads)


def _must_be_sound(directory: Path) -> None:
    if found := list(Verification([directory])):
        raise AssertionError(f"verify found {found[:3]}")


def _read_all(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123
                file.read()


def _ratio(title: str, timing: Timing, bar: Bar | None, note: str) -> Row:
    return Row(title, timing.ratios, bar, note=note, timing=timing)


def inverse(timing: Timing) -> list[float]:
    """Return how many times as long as theirs ours takes."""
    return [1 / ratio for ratio in timing.ratios]


def _rate(size: int, seconds: Sequence[float]) -> str:
    return f"{size / spread(seconds)[0] / 1e9:.2f} GB/s"


def seconds(timing: Timing) -> str:
    """Return the times of both, as a note."""
    ours, theirs = spread(timing.ours)[0], spread(timing.theirs)[0]
    return f"{ours:.3g} s against {theirs:.3g} s"
