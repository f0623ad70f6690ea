"""Times brokers that load logs which were not flushed, and compares with the estimate of `plan`.

The script writes ``tests/broker/reports/estimates.md``. `plan` runs just before each start, on the
same bytes. The files are in the page cache (warm) or were removed from it (cold).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

# A script, not a module of the test run: it adds the folder of `broker` to the path.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from bench.generate import KIB, MIB, Spec, generate
from bench.rows import KAFKA_OPTIONS
from broker import many_logs, workloads
from broker.install import HERE, KAFKA_3, KAFKA_4, KAFKA_NEWEST
from broker.kafka import Broker, format_log_dir
from broker.topics import Topic

from logtool.formats import compression

REPORT = HERE / "reports" / "estimates.md"
FACTOR = 1.5
"""Largest accepted factor between the time and the estimate."""
SPREAD = 3
"""Largest accepted factor between the time and both ends of the range."""
RELEASES = (KAFKA_3, KAFKA_4, KAFKA_NEWEST)
"""The releases that start in turns."""
_PADDING = 10 * MIB
"""Size of an index with zeros at its end, as a killed broker leaves it."""
_STRAY = f"{'0' * 32}-stray"
_JVM = ("-XX:-UseSerialGC", "-XX:TieredStopAtLevel=4", *KAFKA_OPTIONS, "-Xms1G", "-Xmx1G")
"""The JVM options of `kafka-server-start.sh`; the other tests use options for a faster start."""
_HEAD = """# Time that a broker needs for recovery, and the estimate of `logtool plan`

Written by `make estimates`. For each line Kafka {releases} started once each, with the options
that `kafka-server-start.sh` gives to Java, on copies of the same log dirs, which were never
flushed. `logtool plan` ran just before each start. Before both the files were read (warm) or
removed from the page cache by `POSIX_FADV_DONTNEED` (cold). "estimate" is `seconds` of
`plan --json` with its range, "took" the time that the broker logs (`Loaded N logs in ...ms`), "ran"
the time during which the loading threads had a processor, "waited" the time during which they were
ready to run and had no processor. All are medians; the ratio is took / estimate, with the smallest
and the largest. "load" is the number of processes that wanted one of the {cpus} processors. If
this is more than there are, the share of the broker cannot be predicted: `plan` assumes the share
that it had itself, and the threads of a broker, with its compiler, share that of one process.
"""
_COLUMNS = (
    "logs", "page cache", "estimate", "took", "ran", "waited", "took / estimate",
    "within the range",
    "load",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """Log dirs of equal logs."""

    title: str
    spec: Spec
    """The contents of each log."""
    logs: int = 1
    """In each log dir."""
    dirs: int = 1
    threads: int = 1
    """`num.recovery.threads.per.data.dir`."""

    def make(self, work: Path, release: str) -> list[Path]:
        """Write the log dirs below `work`; return them."""
        with tempfile.TemporaryDirectory(dir=work) as temporary:
            source = generate(Path(temporary), self.spec)
            (source / "partition.metadata").unlink()
            last = max(source.glob("*.log"))
            for suffix in (".index", ".timeindex"):
                os.truncate(last.with_suffix(suffix), _PADDING)
            homes = [work / f"dir-{number}" for number in range(self.dirs)]
            format_log_dir(release, homes)
            for home in homes:
                for number in range(self.logs):
                    _copy(source, home / f"load-{number}.{_STRAY}")
        return homes


@dataclass(frozen=True)
class Killed:
    """The log dir of a broker that is killed while producers write to it."""

    title: str = "40 partitions of a broker that was killed, 4 MB each"
    threads: int = 1

    def make(self, work: Path, release: str) -> list[Path]:
        """Run the broker, write and kill it; return its log dir."""
        home, topic = work / "dir-0", Topic("written", "batches of all sizes", partitions=40)
        format_log_dir(release, [home])
        with Broker(release, [home], many_logs.CONFIG).start() as broker:
            workloads.create_topics(broker.bootstrap, release, [topic])
            writer, large = workloads.Writer(broker.bootstrap), random.Random(1).randbytes(16 * KIB)
            for number in range(topic.partitions):
                small = workloads.messages(topic.name, 2000, workloads.now_ms())
                writer.batches(topic.name, small, (10, 100, 400), number)
                many = (workloads.Message(None, large, workloads.now_ms()) for _ in range(240))
                writer.batches(topic.name, many, (60,), number)
            broker.kill()
        return [home]


@dataclass
class Case:
    """The starts on one shape, with the page cache in one state."""

    title: str
    is_cold: bool
    starts: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ratios(self) -> list[float]:
        """Return the ratio of time and estimate of each start."""
        return [one["took"] / one["estimate"]["seconds"] for one in self.starts]

    @property
    def narrow(self) -> int:
        """Return how many starts are within `SPREAD` of both ends of the range."""
        return sum(
            one["estimate"]["seconds_high"] / SPREAD
            <= one["took"]
            <= SPREAD * one["estimate"]["seconds_low"]
            for one in self.starts
        )

    @property
    def is_near(self) -> bool:
        """Return whether the median ratio is within `FACTOR`."""
        return 1 / FACTOR <= median(self.ratios) <= FACTOR

    def cells(self) -> tuple[str, ...]:
        """Return the line of the table."""

        def of(name: str) -> float:
            return median(one["estimate"].get(name, one.get(name)) for one in self.starts)

        inside = sum(
            one["estimate"]["seconds_low"] <= one["took"] <= one["estimate"]["seconds_high"]
            for one in self.starts
        )
        ratio, mark = median(self.ratios), "" if self.is_near else "**"
        return (
            self.title,
            "cold" if self.is_cold else "warm",
            f"{of('seconds'):.2f} s ({of('seconds_low'):.2f} to {of('seconds_high'):.2f})",
            f"{of('took'):.2f} s",
            f"{of('ran'):.2f} s",
            f"{of('waited'):.2f} s",
            f"{mark}{ratio:.2f}{mark} ({min(self.ratios):.2f} to {max(self.ratios):.2f})",
            f"{inside} of {len(self.starts)}",
            f"{of('load'):.0f}",
        )


def _spec(batch: int, mib: int, segment: int = 256 * MIB, codec: int = 0) -> Spec:
    return Spec(batch, mib * MIB, codec, segment)


SHAPES: tuple[Shape | Killed, ...] = (
    Shape("2 segments of 192 MiB, batches of 1 KiB", _spec(KIB, 384, 192 * MIB)),
    Shape("2 segments of 192 MiB, batches of 16 KiB", _spec(16 * KIB, 384, 192 * MIB)),
    Shape("2 segments of 192 MiB, batches of 1 MiB", _spec(MIB, 384, 192 * MIB)),
    Shape("1 segment of 192 MiB, batches of 200 B", _spec(200, 192)),
    Shape("1 log of 500 segments of 64 KiB, batches of 1 KiB", _spec(KIB, 32, 64 * KIB)),
    Shape("100 logs of 5 segments of 64 KiB, batches of 1 KiB",
          Spec(KIB, 320 * KIB, segment_size=64 * KIB), 100),
    Shape("24 logs of 16 MiB, batches of 16 KiB, 2 threads", _spec(16 * KIB, 16), 24, threads=2),
    Shape("2 log dirs of a log of 192 MiB, batches of 16 KiB", _spec(16 * KIB, 192), dirs=2),
    Shape("2 segments, 16 KiB of zstd in a batch",
          _spec(16 * KIB, 384, 192 * MIB, compression.ZSTD)),
    Shape("2 segments, 16 KiB of lz4 in a batch",
          _spec(16 * KIB, 384, 192 * MIB, compression.LZ4)),
    Killed(),
)  # fmt: skip


def starts(shape: Shape | Killed, work: Path) -> Iterator[Case]:
    """Yield the starts of a broker on a shape, warm and cold, in turns."""
    cases = [Case(shape.title, is_cold) for is_cold in (False, True)]
    for release in RELEASES:
        made = [path.rename(path.with_name(f"{path.name}.made")) for path in
                shape.make(work, release)]  # fmt: skip
        homes = [path.with_name(path.stem) for path in made]
        for case in cases:
            for source, home in zip(made, homes, strict=True):
                _copy(source, home)
            os.sync()
            case.starts.append(_start(release, homes, shape.threads, case.is_cold))
            for home in homes:
                shutil.rmtree(home)
        for path in made:
            shutil.rmtree(path)
    yield from cases


def _start(release: str, homes: Sequence[Path], threads: int, is_cold: bool) -> dict[str, Any]:
    logs = [log for home in homes for log in home.rglob("*") if log.is_file()]
    _prepare(logs, is_cold)
    command = [str(Path(sys.executable).with_name("logtool")), "plan", "--json"]
    command += ["--recovery-threads", str(threads), *map(str, homes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    (estimate,) = (one for one in json.loads(done.stdout)["items"] if one["type"] == "duration")
    config = {**many_logs.CONFIG, "num.recovery.threads.per.data.dir": str(threads)}
    _prepare(logs, is_cold)
    with Broker(release, homes, config, jvm_options=_JVM) as broker:
        broker.launch()
        milliseconds, loading = many_logs.watched(broker)
    return {
        "release": release,
        "estimate": estimate,
        "took": milliseconds / 1000,
        "ran": sum(one.ran for one in loading),
        "waited": sum(one.waited for one in loading),
        "load": os.getloadavg()[0],
    }


def _prepare(paths: Sequence[Path], is_cold: bool) -> None:
    """Read files into the page cache, or remove them from it."""
    for path in paths:
        with path.open("rb", buffering=0) as file:
            if is_cold:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while not is_cold and file.read(MIB):
                pass


def _copy(source: Path, target: Path) -> None:
    """Copy a directory with its holes."""
    subprocess.run(["cp", "-a", source, target], check=True)


def write(done: Sequence[Case]) -> None:
    """Write the report of these lines."""
    near, count = sum(case.is_near for case in done), sum(len(case.starts) for case in done)
    releases = f"{', '.join(RELEASES[:-1])} and {RELEASES[-1]}"
    lines = [_HEAD.format(releases=releases, cpus=os.cpu_count())]
    lines.append(f"{near} of {len(done)} lines are within a factor of {FACTOR}.")
    narrow = sum(case.narrow for case in done)
    lines.append(
        f"Both ends of the range are within a factor of {SPREAD} of the time in {narrow} of "
        f"{count} starts.\n"
    )
    lines.append(f"| {' | '.join(_COLUMNS)} |")
    lines.append(f"|{' --- |' * len(_COLUMNS)}")
    lines += [f"| {' | '.join(case.cells())} |" for case in done]
    REPORT.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="shapes with this in the title")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where every start goes as JSON")
    options = parser.parse_args()
    done: list[Case] = []
    for shape in SHAPES:
        if options.only not in shape.title:
            continue
        with tempfile.TemporaryDirectory(prefix="logtool-estimates-") as temporary:
            for case in starts(shape, Path(temporary)):
                done.append(case)
                print(*case.cells(), sep=" | ", flush=True)
        if options.json:
            options.json.write_text(json.dumps([vars(case) for case in done], indent=1))
    if not options.only:
        write(done)


if __name__ == "__main__":
    main()
